"""The only door through which a private number becomes a released one, and what goes through it.

Every release is booked before its noise exists, and one that the limit does not cover is refused.
What happened (uses) is kept apart from what it costs.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from dpscreen._core.arrays import Array, Integers
from dpscreen.privacy.budget import ROW, ZCDP, Unit
from dpscreen.privacy.mechanisms import DiscreteGaussian, Mechanism
from dpscreen.privacy.noise import Noise

Released = TypeVar("Released")


class BudgetExceeded(RuntimeError):
    """A release was asked for that the budget does not cover. Nothing was released."""


@dataclass(frozen=True)
class Use:
    """A mechanism, what it was used for, and how often."""

    purpose: str
    mechanism: Mechanism[object]
    count: int


class Accountant:
    """Books and makes releases under one zCDP limit (Lemma 4: costs add, adaptively).

    `limit=None` is the published calibration: uses are listed, but no cost is claimed, because the
    sensitivities they rest on are wrong.

    The limit is for one unit. Mechanisms state what one row costs; the k rows of a unit move
    whatever they are given k times as far, so a unit costs k² as much (Lemma 18). Where units are
    `averaged`, the rows of one move it as far as one row (Lemma 89).
    """

    def __init__(
        self, noise: Noise, *, limit: ZCDP | None, unit: Unit = ROW, averaged: bool = False
    ) -> None:
        self.noise = noise
        self.limit = limit
        self.unit = unit
        self.averaged = averaged
        # The most rows of one unit that count by themselves.
        self.rows_per_unit = 1 if averaged else unit.rows_per_unit
        self.spent = ZCDP.free()
        self._counts: Counter[tuple[str, Mechanism[object]]] = Counter()

    def release(self, mechanism: Mechanism[Released], values: Any, *, purpose: str) -> Released:
        """Book one call of the mechanism, then make it."""
        if self.limit is not None:
            cost = mechanism.cost * self.rows_per_unit**2
            total = self.spent + cost
            if total > self.limit:
                raise BudgetExceeded(
                    f"a release of rho={float(cost):.6g} does not fit: "
                    f"{float(self.spent):.6g} of {float(self.limit):.6g} is spent."
                )
            self.spent = total
        self._counts[purpose, mechanism] += 1
        return self.noise.answer(mechanism, values, purpose=purpose, account=self)

    @property
    def uses(self) -> tuple[Use, ...]:
        """List what has been released so far, in order of first use."""
        return tuple(Use(purpose, of, count) for (purpose, of), count in self._counts.items())


# --- counts ---------------------------------------------------------------------------------------


def release_histograms(
    accountant: Accountant,
    counts: Integers,
    *,
    cost: ZCDP,
    purpose: str,
    change: float | None = None,
) -> tuple[Array, float]:
    """Release a histogram of every column, a row each, and their noise's standard deviation.

    Every row is counted in exactly one cell of each of d columns, and moves the counts by √d in L2,
    unless that is said to be another `change`. It is rounded up (docs/theory/marginals.md, Lemma
    22). The lattice is finer than counts: a large budget allows less noise than one row.
    """
    if change is None:
        change = math.sqrt(len(counts))
    most, fine = math.nextafter(change, math.inf), 2**10
    mechanism = DiscreteGaussian.of_cost(cost, sensitivity=most, unit=1 / fine)
    noisy = accountant.release(mechanism, fine * counts.ravel(), purpose=purpose)
    return noisy.reshape(counts.shape), mechanism.scale


# --- sums -----------------------------------------------------------------------------------------

_FINE = 2**13
"""Into how many units one row's largest change is divided, about."""

_OUTWARDS = 1 + 1e-12
"""More than all roundings of a sensitivity."""


def triangle_change(row_norm: float) -> float:
    """Return how far a row with ‖x‖₂ ≤ ν, ‖x‖∞ ≤ 1 moves the upper triangle of Σxxᵀ in L2.

    (docs/theory/mechanisms.md, Lemma 17)
    """
    square = row_norm**2
    return math.sqrt((square**2 + min(square, square**2)) / 2)


def release_sums(
    accountant: Accountant,
    sums: Integers,
    *,
    units_per_one: int,
    change: float,
    cost: ZCDP,
    purpose: str,
) -> tuple[Array, float]:
    """Release sums, and the standard deviation of their noise.

    The sums are whole numbers of 1/units_per_one, and one row moves them by at most `change` in L2.
    They are floored to whole numbers of a coarser unit u; the move is then at most
    change + u·√d for d sums (docs/theory/mechanisms.md, Lemma 13).
    """
    coarse = max(1, math.floor(change * units_per_one / _FINE))
    unit = coarse / units_per_one
    mechanism = DiscreteGaussian.of_cost(
        cost,
        sensitivity=(change + unit * math.sqrt(sums.size)) * _OUTWARDS,
        unit=unit,
    )
    return accountant.release(mechanism, sums // coarse, purpose=purpose), mechanism.scale


def release_triangle(
    accountant: Accountant,
    matrix: Integers,
    *,
    units_per_one: int,
    row_norm: float,
    cost: ZCDP,
    purpose: str,
) -> tuple[Array, float]:
    """Release Σxxᵀ of rows with ‖x‖₂ ≤ ν by its upper triangle.

    (docs/theory/mechanisms.md, Lemma 17)

    Also return the standard deviation of its noise.
    """
    upper = np.triu_indices(len(matrix))
    released, noise = release_sums(
        accountant,
        matrix[upper],
        units_per_one=units_per_one,
        change=triangle_change(row_norm),
        cost=cost,
        purpose=purpose,
    )
    out = np.zeros(matrix.shape)
    out[upper] = released
    return out + np.triu(out, 1).T, noise


DIAGONAL, BESIDE = 5, 7
"""What entries of a Gram matrix are multiplied by: 7/5 is next to √2, and below it."""


def release_gram(
    accountant: Accountant,
    matrix: Integers,
    *,
    units_per_one: int,
    cost: ZCDP,
    purpose: str,
    row_norm: float = 1.0,
) -> tuple[Array, float]:
    """Release Σxxᵀ of rows with ‖x‖₂ ≤ ν, with nearly isotropic noise.

    Also return the standard deviation of the noise on the diagonal; beside it, it is 5/7 of that.
    A row moves the upper triangle, its diagonal times 5 and the rest times 7, by at most 5ν² in L2
    (docs/theory/mechanisms.md, Lemma 26).
    """
    upper = np.triu_indices(len(matrix))
    factors = np.where(upper[0] == upper[1], DIAGONAL, BESIDE)
    released, noise = release_sums(
        accountant,
        factors * matrix[upper],
        units_per_one=units_per_one,
        change=DIAGONAL * row_norm**2,
        cost=cost,
        purpose=purpose,
    )
    out = np.zeros(matrix.shape)
    out[upper] = released / factors
    return out + np.triu(out, 1).T, noise / DIAGONAL
