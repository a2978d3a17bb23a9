"""Counts and sums over rows of a fitted value and a target, each of which looks at one row alone.

They use IEEE operations whose result does not depend on where a row stands, so the answers are
the same in any order and in any number of parts (docs/theory/exactness.md, Lemma 8).
"""

from __future__ import annotations

import numpy as np

from dpscreen._core.arrays import Array, Integers
from dpscreen.rows.lattice import cell_counts
from dpscreen.rows.sums import LEVELS

LARGEST_LOG_ODDS, PER_UNIT = 32, 2**10
"""Where log-odds are clipped, and into how many levels one unit of them is divided."""
N_LEVELS = 2 * LARGEST_LOG_ODDS * PER_UNIT + 1


def residuals(fitted: Array, target: Array, ends: tuple[float, float]) -> Array:
    """Return target less prediction, which is the fitted value clipped to the target's bounds."""
    return np.asarray(target - np.clip(fitted, *ends))


def magnitude_counts(
    fitted: Array, target: Array, ends: tuple[float, float], edges: Array
) -> Integers:
    """Return how many residuals have a magnitude in each cell; those beyond are in the last."""
    return cell_counts(np.abs(residuals(fitted, target, ends)), edges)


def level_sums(fitted: Array, target: Array, ends: tuple[float, float], clip: float) -> Integers:
    """Return the number of rows, Σψ and Σψ² of clipped residuals, in levels of clip/2^14."""
    with np.errstate(over="ignore"):
        share = np.clip(residuals(fitted, target, ends) / clip, -1.0, 1.0)
    levels = np.rint(share * LEVELS).astype(np.int64)
    return np.array([len(levels), levels.sum(), levels @ levels], dtype=np.int64)


def log_odds_counts(fitted: Array, target: Array) -> Integers:
    """Return how many rows with outcome 0, then with 1, have which level of fitted log-odds."""
    clipped = np.clip(fitted, -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS)
    levels = np.rint(clipped * PER_UNIT).astype(np.int64) + LARGEST_LOG_ODDS * PER_UNIT
    return np.bincount(levels + N_LEVELS * (target > 0.5), minlength=2 * N_LEVELS).astype(np.int64)
