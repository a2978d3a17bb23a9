"""Noise p-values: could a feature have been chosen by privacy noise alone?

Computed from the released path, so free (Lemma 7). What they test, and why they are valid whatever
the other features do: docs/private-lasso.md, Lemma 15.
"""

from __future__ import annotations

import numpy as np

from dpscreen._core.arrays import Array, Integers
from dpscreen.regression.stagewise import Path

_MOST_WORK = 2**18
"""Bound on T times the largest weight of a step, unless T itself is larger."""


def noise_p_values(path: Path, *, n_features: int, n_constants: int, limit: int | None) -> Array:
    """Return for each feature a p-value of "its gradient was zero at every step" (Lemma 15).

    `n_constants` candidates compete beside the features; `limit` is `max_features`.
    """
    weights = step_weights(path.steps)
    chances = signed_chances(len(path), n_features, n_constants, limit)
    tail = tail_of_sum(weights, chances)
    return np.minimum(1.0, 2 * tail[farther_way(path, weights, n_features)])


def step_weights(steps: Array) -> Integers:
    """Return the steps' lengths as whole numbers, at least 1. They depend on T alone."""
    finest = max(1, min(len(steps), _MOST_WORK // len(steps)))
    weights = np.rint(steps / steps.max() * finest).astype(np.int64)
    return np.asarray(np.maximum(weights, 1), dtype=np.int64)


def signed_chances(n_iter: int, n_features: int, n_constants: int, limit: int | None) -> Array:
    """Return at each step a bound on the chance of one sign of a feature without gradient.

    1/(2m) for m candidates. So many steps as `limit` must be over before only those features
    compete that have entered.
    """
    chances = np.full(n_iter, 0.5 / (n_features + n_constants))
    if limit is not None and limit < n_features:
        chances[limit:] = 0.5 / (limit + n_constants)
    return chances


def farther_way(path: Path, weights: Integers, n_features: int) -> Integers:
    """Return for each feature max(L⁺, L⁻): how far its steps of one sign go, all counted."""
    ways = []
    for sign in (-1, 1):
        taken = (path.signs == sign) & (path.features < n_features)
        way = np.bincount(path.features[taken], weights[taken], minlength=n_features)
        ways.append(way.astype(np.int64))
    return np.maximum(*ways)


def tail_of_sum(weights: Integers, chances: Array) -> Array:
    """Return P(Σ a_t B_t ≥ l) for l = 0, 1, …, Σ a_t, B_t independent with the given chances."""
    law = np.zeros(int(weights.sum()) + 1)
    law[0], top = 1.0, 0
    for weight, chance in zip(weights.tolist(), chances.tolist(), strict=True):
        moved = chance * law[: top + 1]
        law[: top + 1] -= moved
        law[weight : weight + top + 1] += moved
        top += weight
    # Summed from the far end: small tails keep their precision, as all terms are positive.
    return np.asarray(np.cumsum(law[::-1])[::-1], dtype=np.float64)
