"""The public rules by which the peers are set. No function here sees a row.

What was measured for each is in docs/peers.md.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dpscreen.estimators._private_lasso_rules import Regime, clamp

TARGET_CLIP = 2.0
"""Where the target is clipped for its moments, in its deviations."""

GRAM_SHARE = Fraction(1, 2)
"""The share of a refit that pays for the matrix; the rest is for the moment."""

SIS_SHARE = Fraction(1, 4)
"""The share of what is left that screening takes before its refit."""

GCD_SHARE = Fraction(3, 4)
"""The share of a coordinate step that the choice takes; the rest is for its length."""

TURN = 0.3
"""A thresholded step whose cosine with the one before is below −TURN went too far."""


def ridge_floor(n_columns: int) -> float:
    """Return what the least eigenvalue is lifted to, in deviations of the Gram matrix's noise."""
    return 0.25 * math.sqrt(n_columns) + 1.5


def n_selected(regime: Regime) -> int:
    """Return how many features screening keeps."""
    return round(clamp(regime.signal / 10, 1, min(40, regime.n_features)))


def n_kept(regime: Regime) -> int:
    """Return how many weights hard thresholding keeps."""
    return round(clamp(regime.signal / 5, 1, min(40, regime.n_features)))


def iht_steps(regime: Regime) -> int:
    """Return how many thresholded gradient steps are taken."""
    return round(clamp(regime.signal / 2, 3, 100))


def first_length(n_kept: int) -> float:
    """Return the length of a thresholded step, over the inverse curvature of one feature."""
    return 1.5 / math.sqrt(n_kept)


def fade(time: float) -> float:
    """Return by how much steps are shortened at that part of the way."""
    return 1 - time / 2


def gcd_steps(regime: Regime) -> int:
    """Return how many coordinate steps are taken."""
    return round(clamp(regime.signal / 3, 4, 200))
