"""Laws of fits that are small enough to enumerate: their divergence, and whether models follow."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
from scipy import stats

CORNERS = np.array(list(itertools.product((-1.0, 0.0, 1.0), repeat=2)))


def neighbours(trials):
    """Yield small tables of two features, and the same with an extreme row more."""
    rng = np.random.default_rng(0)
    for trial in range(trials):
        n = trial % 4
        X, y = rng.choice([-1.0, 0.0, 1.0, 0.4], size=(n, 2)), rng.choice([-1.0, 1.0, 0.3], size=n)
        yield (X, y), (np.vstack([X, CORNERS[trial % 9]]), np.append(y, rng.choice([-1.0, 1.0])))


def law_of_paths(n_positions, start, scores, move, steps=2):
    """Return by path, a sequence of positions, its probability and the weights that it leads to."""
    law = {}
    for path in itertools.product(range(n_positions), repeat=steps):
        point, probability = start(), 1.0
        for t, position in enumerate(path):
            here = scores(point)
            chances = np.exp(here - here.max())
            probability *= chances[position] / chances.sum()
            move(point, t, position)
        law[path] = (probability, point.weights)
    return law


def divergence(law, other):
    """Return the least rho of two laws of paths."""
    return largest_rho(*(np.array([one[path][0] for path in law]) for one in (law, other)))


def counted(weights):
    """Return how often released weights were each of what they can be."""
    return Counter((np.round(one, 9) + 0.0).tobytes() for one in weights)


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
