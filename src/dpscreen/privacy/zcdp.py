"""Zero-concentrated differential privacy: the currency in which every proven method pays.

ρ adds under adaptive composition, so it is kept as an exact fraction: paying n times is the same
number as n payments, and a total never passes its limit by a rounding error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen.privacy.budget import Budget


@dataclass(frozen=True, order=True)
class ZCDP:
    """A cost of ρ in zero-concentrated differential privacy (docs/privacy.md, Lemma 4)."""

    rho: Fraction

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "rho", Fraction(self.rho))
        except (ValueError, OverflowError):
            raise ValueError(f"rho must be a finite number; got {self.rho!r}.") from None
        if self.rho < 0:
            raise ValueError(f"rho must not be negative; got {float(self.rho)!r}.")

    @classmethod
    def free(cls) -> ZCDP:
        """Return the cost of a rule computed from released values alone (Lemma 7)."""
        return cls(Fraction(0))

    @classmethod
    def within(cls, budget: Budget) -> ZCDP:
        """Return the largest ρ that is certified to stay within (ε, δ).

        For each order α the bound of Lemma 4 can be solved for ρ, and every α is a certificate, so
        the best of them is taken; then it is rounded down and checked again the other way round.
        """
        epsilon, log_delta = budget.epsilon, math.log(budget.delta)

        def negative_rho(alpha: Array) -> Array:
            return -(epsilon - np.log1p(-1 / alpha) + (log_delta + np.log(alpha)) / (alpha - 1)) / (
                alpha
            )

        rho = -_least_over_orders(negative_rho)
        while rho > 0:
            rho *= 1 - 1e-9
            if cls(Fraction(rho)).delta(epsilon) <= budget.delta:
                return cls(Fraction(rho))
        raise ValueError(
            f"epsilon={budget.epsilon!r} with delta={budget.delta!r} is too small to be divided up."
        )

    def __add__(self, other: ZCDP) -> ZCDP:
        return ZCDP(self.rho + other.rho)

    def __mul__(self, count: int | Fraction) -> ZCDP:
        return ZCDP(self.rho * count)

    __rmul__ = __mul__

    def __truediv__(self, count: int) -> ZCDP:
        return ZCDP(self.rho / count)

    def __float__(self) -> float:
        """Return ρ rounded up, so that what is printed never understates the cost."""
        near = float(self.rho)
        return near if Fraction(near) >= self.rho else math.nextafter(near, math.inf)

    def epsilon(self, delta: float) -> float:
        """Return the least ε certified at this δ."""
        if not 0 < delta < 1:
            raise ValueError(f"delta must lie strictly between 0 and 1; got {delta!r}.")
        rho, log_delta = float(self), math.log(delta)
        if rho == 0:
            return 0.0

        def bound(alpha: Array) -> Array:
            return rho * alpha + np.log1p(-1 / alpha) - (log_delta + np.log(alpha)) / (alpha - 1)

        return max(0.0, _least_over_orders(bound) * (1 + 1e-12))

    def delta(self, epsilon: float) -> float:
        """Return the least δ certified at this ε, rounded up."""
        rho = float(self)
        if rho == 0:
            return 0.0

        def log_bound(alpha: Array) -> Array:
            exponent = (alpha - 1) * (alpha * rho - epsilon + np.log1p(-1 / alpha))
            size = (alpha - 1) * (alpha * rho + epsilon) + np.log(alpha) + 1
            return exponent - np.log(alpha) + 1e-14 * size  # the last term outweighs rounding

        bound = math.exp(min(0.0, _least_over_orders(log_bound)))
        return max(bound, math.nextafter(0.0, 1.0))  # what underflows is still not nothing


def _least_over_orders(bound: Callable[[Array], Array]) -> float:
    """Minimise over orders α > 1. Any α is valid, so a grid, refined once, loses only tightness."""
    exponents = np.linspace(-4, 12, 1601)
    values = bound(1 + 10**exponents)
    centre, width = exponents[int(np.argmin(values))], exponents[1] - exponents[0]
    finer = bound(1 + 10 ** np.linspace(centre - width, centre + width, 401))
    return float(min(values.min(), finer.min()))
