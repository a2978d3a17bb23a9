"""What a data owner grants, a pair (ε, δ), and for whom: the unit of privacy."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen._core.messages import message

MOST_EPSILON = 1e4
"""A sum that takes this whole budget still has noise of 7 of the 2^10 units of one row."""


@dataclass(frozen=True)
class Budget:
    """(ε, δ)-differential privacy for adding or removing one row.

    Adding two budgets is basic composition: ε and δ both add.
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.epsilon) and self.epsilon > 0):
            raise ValueError(message("budget.epsilon", given=self.epsilon))
        if self.epsilon > MOST_EPSILON:
            most = MOST_EPSILON
            raise ValueError(message("budget.epsilon-too-large", given=self.epsilon, most=most))
        if not 0 < self.delta < 1:
            raise ValueError(message("budget.delta", given=self.delta))

    def __add__(self, other: Budget) -> Budget:
        return Budget(self.epsilon + other.epsilon, self.delta + other.delta)

    def split(self, *, share: float, delta_share: float) -> tuple[Budget, Budget]:
        """Return (the rest, the part): the part has `share` of ε and `delta_share` of δ."""
        part = Budget(self.epsilon * share, self.delta * delta_share)
        return Budget(self.epsilon * (1 - share), self.delta * (1 - delta_share)), part


@dataclass(frozen=True, order=True)
class ZCDP:
    """A cost of ρ in zero-concentrated differential privacy.

    (docs/theory/mechanisms.md, Lemma 4)
    """

    rho: Fraction

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "rho", Fraction(self.rho))
        except (ValueError, OverflowError):
            raise ValueError(message("budget.rho", given=self.rho)) from None
        if self.rho < 0:
            raise ValueError(message("budget.rho-negative", given=float(self.rho)))

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
        less = 1e-9
        while rho > 0 and less < 1:
            rho, less = rho * (1 - less), 2 * less
            if cls(Fraction(rho)).delta(epsilon) <= budget.delta:
                return cls(Fraction(rho))
        raise ValueError(message("budget.too-small", epsilon=epsilon, delta=budget.delta))

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
            raise ValueError(message("budget.delta", given=delta))
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


def advanced_share(budget: Budget, *, count: int) -> float:
    """Return the ε of each of `count` pure steps: ε / √(8 T ln(1/δ)) (Algorithm 2, line 2)."""
    return budget.epsilon / math.sqrt(8 * count * math.log(1 / budget.delta))


def advanced_share_approximate(budget: Budget, *, count: int) -> Budget:
    """Return the (ε, δ) of each of `count` approximate steps (Algorithm 1, lines 3 and 4)."""
    delta = budget.delta / (count + 1)
    return Budget(budget.epsilon / (2 * math.sqrt(2 * count * math.log(1 / delta))), delta)


def gaussian_sigma(step: Budget, *, sensitivity: float) -> float:
    """Return the classical σ = Δ₂ √(2 ln(1.25/δ)) / ε (Algorithm 1, line 5)."""
    return sensitivity * math.sqrt(2 * math.log(1.25 / step.delta)) / step.epsilon


# --- for whom -------------------------------------------------------------------------------------
#
# Statements, model files and ledgers hold a unit as a sentence. It is worded and read here alone.


NAMELESS = "one unit"
COUNTED = ", with the disclosed number of rows held fixed"
MOST_ROWS = re.compile(r" \((?:at most ([0-9]+) rows?|all rows)\)$")
ALL_ROWS = 2**20
"""What stands for the number of rows of a unit where no number is declared or needed."""
ESCAPED = r"\\(?:[\\'nrt]|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})"
QUOTED = re.compile(rf"""'(?:[^'\\\n]|{ESCAPED})*'|"(?:[^"\\\n]|{ESCAPED})*\"""")


@dataclass(frozen=True)
class Unit:
    """A row; or whoever has up to so many rows, identified by the values of a column if it has one.

    A unit with `ALL_ROWS` may have any number: then ids came with the rows, which count together.
    Where there is a column, surplus rows of a unit were left out, and rows without a value. A row
    that is added can then take another's place, so even at one row a unit the promise is not one
    for rows (docs/theory/mechanisms.md, Lemma 18).
    """

    rows_per_unit: int = 1
    column: str | None = None

    def __post_init__(self) -> None:
        if self.rows_per_unit < 1:
            raise ValueError(message("budget.rows-per-unit"))

    @property
    def whole(self) -> bool:
        """Whether all rows of a unit are used, however many."""
        return self.rows_per_unit == ALL_ROWS

    @property
    def most(self) -> str:
        """Say how many rows of it there are at most."""
        if self.whole:
            return "all rows"
        return f"at most {self.rows_per_unit} row{'s' * (self.rows_per_unit > 1)}"

    @property
    def preparation(self) -> str:
        """Say what was done to the rows for its sake; nothing if no column identifies units."""
        if self.column is None:
            return "rows without an id left out; " if self.whole else ""
        return (
            f"of each value of the column {self.column!r} {self.most} kept, and rows without one "
            "left out; "
        )

    @property
    def brief(self) -> str:
        """Return the unit in few words."""
        return str(self) if self.column is None else f"each {self.column!r} ({self.most})"

    def __str__(self) -> str:
        if self == ROW:
            return "one row"
        kind = NAMELESS if self.column is None else f"one value of the column {self.column!r}"
        return f"{kind} ({self.most})"

    @classmethod
    def of_words(cls, words: str) -> Unit | None:
        """Return the unit that says so; None for words that are not from here."""
        kind, rows = worded(words)
        number = int(rows) if rows and len(rows) < 10 else 1  # a longer one is not said again
        made, column = cls(max(1, number)), QUOTED.search(kind)
        with suppress(ValueError, SyntaxError):
            made = made if column is None else replace(made, column=ast.literal_eval(column[0]))
        return made if str(made) == words else None


ROW = Unit()


def worded(words: str) -> tuple[str, str | None]:
    """Return a unit in anybody's words without its number of rows, and that number if it is given.

    A ledger's owner may have named a unit in words of their own.
    """
    most = MOST_ROWS.search(words)
    return (words, None) if most is None else (words[: most.start()], most[1] or str(ALL_ROWS))


def neighbours_of(unit: str, *, rows_disclosed: bool) -> str:
    """Describe how two data sets differ between which the promise holds."""
    return f"adding or removing {unit}{COUNTED if rows_disclosed else ''}"


def posterior(prior: float, epsilon: float) -> float:
    """Return how sure one can become: the odds grow by at most e^ε.

    (docs/theory/mechanisms.md, Lemma 19)
    """
    if prior in (0.0, 1.0):
        return prior
    log_odds = math.log(prior) - math.log1p(-prior) + epsilon
    return 1 / (1 + math.exp(-log_odds)) if log_odds > -700 else 0.0
