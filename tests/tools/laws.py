"""Whether counts follow a law, and the laws of selections."""

from fractions import Fraction

import mpmath
import numpy as np
from scipy import stats


def chi_square(counts, probabilities) -> float:
    """Return the p-value of the counts under the law; small cells are joined."""
    counts, probabilities = np.asarray(counts), np.asarray(probabilities)
    group = joined(probabilities, counts.sum())
    expected = np.bincount(group, probabilities) * counts.sum()
    if expected.size == 1:
        return 1.0
    return float(stats.chisquare(np.bincount(group, counts), expected).pvalue)


def joined(probabilities, draws):
    """Return a group for every cell: small cells are joined until ten draws are expected.

    The largest cell comes last, so no group is left with too little.
    """
    group, label, expected = np.empty(len(probabilities), dtype=int), 0, 0.0
    for cell in np.argsort(probabilities, kind="stable"):
        group[cell], expected = label, expected + probabilities[cell] * draws
        if expected >= 10:
            label, expected = label + 1, 0.0
    return group


def softmax(scores, scale):
    """Return the probabilities; differences and quotients are exact, only exp is a float."""
    scores = [int(score) for score in scores]
    exponents = [float((score - max(scores)) / Fraction(scale)) for score in scores]
    weights = np.exp(np.maximum(exponents, -745))
    return weights / weights.sum()


def true_weight(difference, scale, n_bits):
    """Return 2^B·exp(−difference/scale) to 60 digits."""
    with mpmath.workdps(60):
        x = mpmath.mpf(int(difference)) * scale.denominator / scale.numerator
        return mpmath.ldexp(mpmath.exp(-x), n_bits)
