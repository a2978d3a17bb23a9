"""From counts to a certified lower bound on ε.

If an event has probability p on one data set and q on a neighbouring one, (ε, δ)-differential
privacy demands p ≤ e^ε q + δ. So a lower confidence limit of p and an upper one of q certify
ε ≥ ln((p − δ)/q), at the confidence of the two limits together.
"""

from __future__ import annotations

import math

from scipy.stats import beta


def clopper_pearson(successes: int, runs: int, *, miss: float) -> tuple[float, float]:
    """Return one-sided limits (low, high); each fails to hold with probability at most `miss`."""
    low = float(beta.ppf(miss, successes, runs - successes + 1)) if successes else 0.0
    high = float(beta.isf(miss, successes + 1, runs - successes)) if successes < runs else 1.0
    return low, high


def certified_epsilon(
    hits: int, runs: int, other_hits: int, other_runs: int, *, delta: float, confidence: float
) -> float:
    """Return the ε that the counts of one event certify, 0 if they certify nothing."""
    miss = (1 - confidence) / 2
    low = clopper_pearson(hits, runs, miss=miss)[0]
    high = clopper_pearson(other_hits, other_runs, miss=miss)[1]
    return max(0.0, math.log((low - delta) / high)) if low > delta else 0.0
