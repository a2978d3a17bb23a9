"""Whether counts follow a law."""

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
