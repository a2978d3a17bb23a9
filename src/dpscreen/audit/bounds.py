"""From counts to a certified lower bound on ε.

If an event has probability p on one data set and q on a neighbouring one, (ε, δ)-differential
privacy demands p ≤ e^ε q + δ. So a lower confidence limit of p and an upper one of q certify
ε ≥ ln((p − δ)/q), at the confidence of the two limits together.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from dpscreen._core.arrays import Array


def clopper_pearson(successes: ArrayLike, runs: int, *, miss: float) -> tuple[Array, Array]:
    """Return one-sided limits (low, high); each fails to hold with probability at most `miss`."""
    k = np.asarray(successes, dtype=np.float64)
    low = np.where(k > 0, betaincinv(np.maximum(k, 1), runs - k + 1, miss), 0.0)
    high = np.where(k < runs, betaincinv(k + 1, np.maximum(runs - k, 1), 1 - miss), 1.0)
    return low, high


def certified_epsilon(
    hits: ArrayLike,
    runs: int,
    other_hits: ArrayLike,
    other_runs: int,
    *,
    delta: float,
    confidence: float,
) -> Array:
    """Return the ε that the counts of events certify, 0 where they certify nothing."""
    miss = (1 - confidence) / 2
    low = clopper_pearson(hits, runs, miss=miss)[0]
    high = clopper_pearson(other_hits, other_runs, miss=miss)[1]
    ratio = np.maximum(low - delta, 0.0) / high
    return np.log(np.maximum(ratio, 1.0))
