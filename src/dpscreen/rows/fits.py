"""Counts and sums over rows of a fitted value and a target, each of which looks at one row alone.

They use IEEE operations whose result does not depend on where a row stands, so the answers are
the same in any order and in any number of parts (docs/theory/exactness.md, Lemma 8).
"""

from __future__ import annotations

import numpy as np

from dpscreen._core.arrays import Array, Integers
from dpscreen.rows.loss import CELLS_PER_UNIT, FADED, FALLS, POWERS
from dpscreen.rows.sums import LEVELS

LARGEST_LOG_ODDS, PER_UNIT = 32, 2**10
"""Where log-odds are clipped, and into how many levels one unit of them is divided."""
_FEW_CELLS = 64
"""With more cells than these it is faster to sort all values."""
N_LEVELS = 2 * LARGEST_LOG_ODDS * PER_UNIT + 1


def magnitude_counts(
    fitted: Array, target: Array, ends: tuple[float, float], edges: Array
) -> Integers:
    """Return how many residuals have a magnitude in each cell; those beyond are in the last.

    A prediction is the fitted value clipped to the target's bounds.
    """
    values = np.abs(target - np.clip(fitted, *ends))
    if len(edges) <= _FEW_CELLS:
        places = np.searchsorted(edges[1:-1], values, side="right")
        return np.bincount(places, minlength=len(edges) - 1).astype(np.int64)
    below = np.searchsorted(np.sort(values), edges[1:-1])  # faster than a search for each value
    return np.diff(below, prepend=0, append=len(values)).astype(np.int64)


def level_sums(fitted: Array, target: Array, ends: tuple[float, float], clip: float) -> Integers:
    """Return the number of rows, Σψ and Σψ² of clipped residuals, in levels of clip/2^14."""
    with np.errstate(over="ignore"):
        share = np.clip((target - np.clip(fitted, *ends)) / clip, -1.0, 1.0)
    levels = np.rint(share * LEVELS).astype(np.int64)
    return np.array([len(levels), levels.sum(), levels @ levels], dtype=np.int64)


def log_odds_counts(fitted: Array, target: Array) -> Integers:
    """Return how many rows with outcome 0, then with 1, have which level of fitted log-odds."""
    clipped = np.clip(fitted, -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS)
    levels = np.rint(clipped * PER_UNIT).astype(np.int64) + LARGEST_LOG_ODDS * PER_UNIT
    return np.bincount(levels + N_LEVELS * (target > 0.5), minlength=2 * N_LEVELS).astype(np.int64)


# --- outcomes that are not negative, as parts of their largest ------------------------------------

LOG_CELLS = 2**10
LN_2 = 0.6931471805599453
_LOGS = np.rint(np.log1p(np.arange(LOG_CELLS + 2) / LOG_CELLS) * 2.0**40) / 2.0**40
"""ln(1 + k/2^10), rounded to 2^−40: the last bits of a library's logarithm depend on the machine.
"""

MOST_DEVIANCE = 2.0 * FADED + 2.0
"""No row has a larger unit deviance: y ≤ 1, and means are taken for at least e^−32."""


def means(fitted: Array) -> tuple[Array, Array]:
    """Return predictors from −32 to 0, and e to them, as the loss has it (Lemma 90)."""
    predictors = np.clip(fitted, -float(FADED), 0.0)
    places = -predictors * CELLS_PER_UNIT
    cells = places.astype(np.int64)
    return predictors, POWERS[cells] + (places - cells) * FALLS[cells]


def logarithms(values: Array) -> Array:
    """Return ln of positive values, within 2·10^−7, by lines in a table; 0 of zero."""
    fractions, exponents = np.frexp(values)
    places = (2 * fractions - 1) * LOG_CELLS
    cells = np.clip(places.astype(np.int64), 0, LOG_CELLS)
    found = _LOGS[cells] + (places - cells) * (_LOGS[cells + 1] - _LOGS[cells])
    return np.where(values > 0, found + (exponents - 1) * LN_2, 0.0)


def unit_deviances(fitted: Array, target: Array) -> Array:
    """Return 2(y ln(y/μ) − y + μ) of every row, at least 0 (docs/theory/quality.md, Lemma 92)."""
    predictors, mean = means(fitted)
    found = 2 * (target * (logarithms(target) - predictors) - target + mean)
    return np.clip(found, 0.0, MOST_DEVIANCE)


def deviance_total(fitted: Array, target: Array, shift: float, clip: float) -> Integers:
    """Return the number of rows, and Σ of clipped unit deviances in levels of clip/2^14."""
    share = np.minimum(unit_deviances(fitted + shift, target) / clip, 1.0)
    levels = np.trunc(share * LEVELS).astype(np.int64)
    return np.array([len(levels), levels.sum()], dtype=np.int64)


def calibration_sums(fitted: Array, target: Array, edges: Array, clip: float) -> Integers:
    """Return counts, and Σy clipped, both in 1/2^14 and parts of the clip, by cell of predictor."""
    cells = np.searchsorted(edges, means(fitted)[0], side="right")
    levels = np.trunc(np.minimum(target / clip, 1.0) * LEVELS).astype(np.int64)
    out = np.zeros((2, len(edges) + 1), dtype=np.int64)
    np.add.at(out[0], cells, LEVELS)
    np.add.at(out[1], cells, levels)
    return out
