"""Gradient steps with hard thresholding, several lengths at a time."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen.regression.lattice import ExactPoint


def hard_threshold(weights: Array, level: float) -> Array:
    """Return the weights with those of size `level` or less set to zero."""
    return np.where(np.abs(weights) > level, weights, 0.0)


def thresholded_steps(
    weights: Array, direction: Array, lengths: Iterable[float], *, level: float
) -> list[Array]:
    """Return w itself, then H(w + a·direction) for each length a, thresholded at a·level."""
    moved = (hard_threshold(weights + a * direction, a * level) for a in lengths)
    return [weights, *moved]


def capped_loss(point: ExactPoint, cap: float) -> int:
    """Return Σ min(|r_i|/cap, 1) in whole numbers of 1/2^14: a row counts between 0 and 2^14."""
    counts = point.residual_counts(cap)
    return int(counts @ np.arange(len(counts)))
