"""Vectors of sums with Gaussian noise, exactly: first and second moments of short rows.

Sums come as whole numbers of a small unit and are floored to a coarser one, so that the noise is
drawn on a lattice of reasonable size. Proofs: docs/private-lasso.md, Lemmas 13 and 17.
"""

from __future__ import annotations

import math

from dpscreen._core.arrays import Array, Integers
from dpscreen.privacy.accountant import Accountant
from dpscreen.privacy.mechanisms import DiscreteGaussian
from dpscreen.privacy.zcdp import ZCDP

_FINE = 2**13
"""Into how many units one row's largest change is divided, about."""

_OUTWARDS = 1 + 1e-12
"""More than all roundings of a sensitivity."""


def triangle_change(row_norm: float) -> float:
    """Return how far a row with ‖x‖₂ ≤ ν, ‖x‖∞ ≤ 1 moves the upper triangle of Σxxᵀ (Lemma 17)."""
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
    """Release sums, and their noise's deviation.

    The sums are whole numbers of 1/units_per_one, and one row moves them by at most `change` in L2.
    They are floored to whole numbers of a coarser unit u; the move is then at most
    change + u·√d for d sums (Lemma 13).
    """
    coarse = max(1, math.floor(change * units_per_one / _FINE))
    unit = coarse / units_per_one
    mechanism = DiscreteGaussian.of_cost(
        cost,
        sensitivity=(change + unit * math.sqrt(sums.size)) * _OUTWARDS,
        unit=unit,
    )
    return accountant.release(mechanism, sums // coarse, purpose=purpose), mechanism.scale
