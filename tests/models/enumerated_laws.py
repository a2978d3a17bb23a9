"""Laws of fits that are small enough to enumerate: their divergence, and whether models follow."""

from __future__ import annotations

import numpy as np
from scipy import stats


def largest_rho(p, q):
    """Return the least rho with which D_alpha <= alpha·rho holds both ways, at several orders."""
    return max(
        np.log(np.sum(a**alpha * b ** (1 - alpha))) / (alpha - 1) / alpha
        for a, b in ((p, q), (q, p))
        for alpha in (1.01, 1.5, 2, 4, 16, 64)
    )


def p_value(counts, law):
    """Return that of counts of released weights under a law of paths: (probability, weights)."""
    expected: dict[bytes, float] = {}
    for probability, weights in law.values():
        key = (np.round(weights, 9) + 0.0).tobytes()
        expected[key] = expected.get(key, 0.0) + probability
    assert set(counts) <= set(expected)
    observed = np.array([counts.get(key, 0) for key in expected])
    return stats.chisquare(observed, observed.sum() * np.array(list(expected.values()))).pvalue
