"""Gradient steps with hard thresholding, several lengths at a time, on rows of bounded length."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from dpscreen.regression.lattice import LEVELS, LatticeDesign, LatticePoint

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


def hard_threshold(weights: Array, level: float) -> Array:
    """Return the weights with those of size `level` or less set to zero."""
    return np.where(np.abs(weights) > level, weights, 0.0)


def thresholded_steps(
    weights: Array, direction: Array, lengths: Iterable[float], *, level: float
) -> list[Array]:
    """Return w itself, then H(w + a·direction) for each length a, thresholded at a·level."""
    moved = (hard_threshold(weights + a * direction, a * level) for a in lengths)
    return [weights, *moved]


def capped_loss(point: LatticePoint, cap: float) -> int:
    """Return Σ min(|r_i|/cap, 1) in whole numbers of 1/2^14: a row counts between 0 and 2^14."""
    return int(np.abs(point.residual_levels(cap)).sum(dtype=np.int64))


def squared_lengths(design: LatticeDesign, n_features: int) -> Integers:
    """Return ‖x_i‖² of every row, over the first features, in whole numbers of 1/2^28."""
    squares = np.zeros(design.n_rows, dtype=np.int64)
    for column in design.columns[:n_features]:
        squares += column.astype(np.int64) ** 2
    return squares


def rows_within(design: LatticeDesign, n_features: int, row_norm: float) -> LatticeDesign:
    """Return the first features of all rows, those longer than `row_norm` in L2 shrunk to it.

    The factor is a little too small, and entries are truncated towards zero, so that no rounding
    leaves a row longer than `row_norm`.
    """
    lengths = np.sqrt(squared_lengths(design, n_features)) / LEVELS
    safe = row_norm * (1 - 1e-12)
    factors = np.where(lengths > safe, safe / np.maximum(lengths, safe), 1.0)
    short = np.trunc(design.columns[:n_features] * factors).astype(np.int16)
    return LatticeDesign(short, design.target)
