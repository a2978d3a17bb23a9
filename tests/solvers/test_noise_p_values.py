"""Noise p-values: the law they are computed from, validity under no gradient, and power."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from dpscreen import PrivateLasso
from dpscreen.solvers.base import Path
from dpscreen.solvers.selection import (
    farther_way,
    noise_p_values,
    signed_chances,
    step_weights,
    tail_of_sum,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::dpscreen.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::dpscreen.WeakDeltaWarning"),
]
SETTING = {
    "epsilon": 2.0,
    "delta": 1e-6,
    "feature_bounds": (-1, 1),
    "target_bounds": (-4, 4),
    "standardize": False,
}


def path_of(*chosen, steps):
    features, signs = np.array(chosen, dtype=np.int64).T
    return Path(features, signs, np.asarray(steps, dtype=float))


# --- the law --------------------------------------------------------------------------------------


def test_the_tail_is_that_of_all_outcomes():
    weights, chances = np.array([4, 3, 2, 1]), np.array([0.1, 0.2, 0.3, 0.4])
    expected = np.zeros(11)
    for outcome in itertools.product((0, 1), repeat=4):
        drawn = np.array(outcome)
        probability = np.prod(np.where(drawn, chances, 1 - chances))
        expected[: drawn @ weights + 1] += probability
    np.testing.assert_allclose(tail_of_sum(weights, chances), expected, rtol=1e-12)


def test_small_tails_keep_their_precision():
    tail = tail_of_sum(np.arange(100, 0, -1), np.full(100, 1e-3))
    assert tail[-1] == pytest.approx(1e-300, rel=1e-9)
    assert (np.diff(tail) <= 0).all()


def test_both_directions_are_counted_apart_and_the_constant_is_no_feature():
    path = path_of((0, 1), (0, -1), (1, -1), (3, 1), (0, 1), steps=[5, 4, 3, 2, 1])
    ways = farther_way(path, step_weights(path.steps), 3)
    assert ways.tolist() == [6, 3, 0]


def test_a_door_cannot_close_before_as_many_steps_as_it_admits():
    assert signed_chances(4, 10, 0, None) == pytest.approx([0.05] * 4)
    assert signed_chances(4, 9, 1, 2) == pytest.approx([0.05, 0.05, 1 / 6, 1 / 6])
    assert signed_chances(3, 5, 0, 8) == pytest.approx([0.1] * 3)


@pytest.mark.parametrize("n_iter", [1, 2, 200, 5000])
def test_weights_of_steps_are_positive_and_few_enough(n_iter):
    weights = step_weights(np.arange(n_iter, 0, -1) * 0.37)
    assert weights.min() >= 1
    assert weights.sum() <= max(2**18, n_iter)
    if n_iter <= 500:
        assert weights.tolist() == list(range(n_iter, 0, -1))


# --- validity: whatever the others do -------------------------------------------------------------

RUNS = 4_000


def null_paths(rng, *, limit, n_features, n_iter):
    """Return features and signs of steps whose other scores are an adversary's, of all runs.

    They follow feature 0, which has no score.
    """
    noise = rng.gumbel(size=(RUNS, n_iter, 2 * n_features))
    entered = np.zeros((RUNS, n_features), dtype=bool)
    chosen = np.empty((n_iter, RUNS), dtype=np.int64)
    for t in range(n_iter):
        scores = np.where(entered[:, :1], 0.0, 1e-3 * t) * (np.arange(n_features) > 0)
        both = np.hstack((scores, -scores)) + noise[:, t]
        closed = entered.sum(axis=1, keepdims=True) == limit
        both[closed & ~np.tile(entered, 2)] = -np.inf
        chosen[t] = both.argmax(axis=1)
        entered[np.arange(RUNS), chosen[t] % n_features] = True
    signs = np.where(chosen < n_features, 1, -1)
    return chosen.T % n_features, signs.T


def null_p_values(rng, *, limit=None, n_features=5, n_iter=12, doubled=1):
    """Return the p-values of feature 0; as if there were more features, if `doubled`."""
    paths = zip(*null_paths(rng, limit=limit, n_features=n_features, n_iter=n_iter), strict=True)
    told = {"n_features": doubled * n_features, "n_constants": 0, "limit": limit}
    steps = np.arange(n_iter, 0, -1.0)
    return np.array([noise_p_values(Path(*path, steps), **told)[0] for path in paths])


def excess(p_values):
    """Return the smallest chance of so many small p-values, if each level were kept."""
    levels = (0.001, 0.01, 0.05, 0.1, 0.3, 0.6)
    counts = [np.count_nonzero(p_values <= level) for level in levels]
    return min(
        stats.binom.sf(count - 1, len(p_values), level)
        for count, level in zip(counts, levels, strict=True)
    )


@pytest.mark.parametrize("limit", [None, 2, 3])
def test_p_values_are_super_uniform_without_a_gradient(limit):
    """False alarm below 6e-6 for each limit; chances that are half as large are found out."""
    p_values = null_p_values(np.random.default_rng(20), limit=limit)
    assert excess(p_values) > 1e-6
    if limit is None:
        assert excess(null_p_values(np.random.default_rng(20), doubled=2)) < 1e-6
        assert np.mean(p_values <= 0.1) > 0.04  # not idle


@pytest.mark.parametrize(
    "choices", [{}, {"solver": "frank-wolfe"}, {"max_features": 4}], ids=["", "fw", "few"]
)
def test_columns_of_zeros_get_valid_p_values(choices):
    """Their gradient is zero in every step of a real fit. False alarm below 6e-6."""
    rng = np.random.default_rng(21)
    X = np.zeros((60, 8))
    X[:, :2] = rng.uniform(-1, 1, size=(60, 2))
    found = []
    for seed in range(40):
        y = 2 * X[:, 0] + rng.normal(size=60)
        walk = SETTING | {"n_iter": 15, "quality": False, "random_state": seed}
        model = PrivateLasso(**walk, **choices).fit(X, y)
        found.append(model.noise_p_values()[2 + seed % 6])
    assert excess(np.array(found)) > 1e-6


# --- power and form -------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["stagewise", "frank-wolfe"])
def test_a_strong_feature_is_told_from_noise(solver):
    rng = np.random.default_rng(22)
    X = rng.uniform(-1, 1, size=(3000, 30))
    y = 2 * X[:, 4] + rng.normal(0, 0.5, size=3000)
    model = PrivateLasso(**SETTING, solver=solver, random_state=0).fit(X, y)
    p_values = model.noise_p_values()
    assert p_values.shape == (30,)
    assert p_values[4] < 1e-6
    chosen = np.isin(np.arange(30), model.path_.features)
    assert ((p_values > 0) & (p_values < 1) | np.isnan(p_values)).all()
    assert np.isnan(p_values[~chosen]).all()  # the path says nothing of them
