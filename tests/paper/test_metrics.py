"""The metrics against scikit-learn, against brute force, and against their own algebra."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.linear_model import LinearRegression
from sklearn.metrics import f1_score, recall_score

from dpscreen.paper import metrics
from dpscreen.paper.agreement import compare

mask_pairs = st.integers(1, 30).flatmap(
    lambda d: st.tuples(hnp.arrays(np.bool_, d), hnp.arrays(np.bool_, d))
)
seeds = st.integers(0, 2**32 - 1)
both = pytest.mark.parametrize("intercept", [True, False])


# --- supports -------------------------------------------------------------------------------


@given(mask_pairs)
def test_f1_is_scikit_learns(pair):
    found, true = pair
    assert metrics.f1(found, true) == pytest.approx(f1_score(true, found, zero_division=1.0))


@given(mask_pairs)
def test_rates_are_recalls_of_the_two_classes(pair):
    found, true = pair
    tpr = recall_score(true, found, zero_division=math.nan)
    fpr = 1 - recall_score(~true, ~found, zero_division=math.nan)
    assert metrics.true_positive_rate(found, true) == pytest.approx(tpr, nan_ok=True)
    assert metrics.false_positive_rate(found, true) == pytest.approx(fpr, nan_ok=True)


def test_zero_over_zero():
    nothing, everything = np.zeros(4), np.ones(4)
    assert math.isnan(metrics.true_positive_rate(everything, nothing))
    assert math.isnan(metrics.false_positive_rate(everything, everything))
    assert math.isnan(metrics.density([]))
    assert metrics.f1(nothing, nothing) == 1
    assert metrics.f1(nothing, everything) == metrics.f1(everything, nothing) == 0


@pytest.mark.parametrize("bad", [[1.0, math.nan], [1.0, math.inf], [[1.0, 0.0]], [1.0, 0.0, 1.0]])
def test_supports_that_make_no_sense_are_refused(bad):
    with pytest.raises(ValueError, match=r"finite|axis|length"):
        metrics.f1(bad, [1.0, 0.0])


# --- R² of the features left out ----------------------------------------------------------------


def features(seed, n=40, d=9, *, mixing=1.0):
    """Correlated features with means away from 0 and unequal scales.

    Not too unequal: recent scikit-learn drops directions below 1e-6 of the largest, whatever the
    units, and could not serve as oracle.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + mixing * rng.normal(size=(n, 2)) @ rng.normal(size=(2, d))
    return (X + rng.normal(size=d)) * 10.0 ** rng.uniform(-1, 1, d)


def scikit_learn_r2(X, chosen, targets, *, intercept):
    model = LinearRegression(fit_intercept=intercept).fit(X[:, chosen], X[:, targets])
    return model.score(X[:, chosen], X[:, targets])


def r2_missed(X, chosen, support, *, intercept):
    found, true = np.asarray(chosen) != 0, np.asarray(support) != 0
    return metrics.explained_r2(metrics.Gram(X), found, true & ~found, intercept=intercept)


def r2_unchosen(X, chosen, *, intercept):
    found = np.asarray(chosen) != 0
    return metrics.explained_r2(metrics.Gram(X), found, ~found, intercept=intercept)


def proper_masks(seed, d=9):
    """A choice and a reference support, with something chosen and something missed."""
    rng = np.random.default_rng(seed)
    chosen, support = rng.random(d) < 0.5, rng.random(d) < 0.5
    chosen[0], chosen[1], support[1] = True, False, True
    return chosen, support


@both
@settings(max_examples=50)
@given(seed=seeds)
def test_r2_is_scikit_learns(seed, intercept):
    X, (chosen, support) = features(seed), proper_masks(seed)
    missed = scikit_learn_r2(X, chosen, support & ~chosen, intercept=intercept)
    unchosen = scikit_learn_r2(X, chosen, ~chosen, intercept=intercept)
    assert r2_missed(X, chosen, support, intercept=intercept) == pytest.approx(
        missed, rel=1e-8, abs=1e-8
    )
    assert r2_unchosen(X, chosen, intercept=intercept) == pytest.approx(
        unchosen, rel=1e-8, abs=1e-8
    )


@both
@settings(max_examples=30)
@given(seed=seeds)
def test_r2_does_not_depend_on_units(seed, intercept):
    X, (chosen, _) = features(seed), proper_masks(seed)
    units = 10.0 ** np.random.default_rng(seed).uniform(-6, 6, X.shape[1])
    assert r2_unchosen(X * units, chosen, intercept=intercept) == pytest.approx(
        r2_unchosen(X, chosen, intercept=intercept), abs=1e-9
    )


@both
@settings(max_examples=30)
@given(seed=seeds)
def test_copies_of_a_chosen_feature_change_nothing(seed, intercept):
    X, (chosen, _) = features(seed), proper_masks(seed)
    wide = np.column_stack([X, -2 * X[:, chosen], X[:, chosen].sum(axis=1)])
    gram = metrics.Gram(wide)
    targets = np.concatenate([~chosen, np.zeros(wide.shape[1] - chosen.size, bool)])
    more = ~targets
    assert metrics.explained_r2(gram, more, targets, intercept=intercept) == pytest.approx(
        r2_unchosen(X, chosen, intercept=intercept), abs=1e-8
    )


def test_near_collinear_features_keep_their_digits():
    # The third feature is the difference of two that agree to 1e-9: a formed Gram matrix loses it.
    rng = np.random.default_rng(0)
    base, small = rng.normal(size=(2, 200))
    X = np.column_stack([base, base + 1e-9 * small, small])
    assert r2_unchosen(X, [1, 1, 0], intercept=True) == pytest.approx(1, abs=1e-6)


def test_nothing_missed_is_undefined_and_nothing_chosen_predicts_the_mean_or_zero():
    X, support, nothing = features(2), np.arange(9) < 3, np.zeros(9)
    for intercept in (True, False):
        assert math.isnan(r2_unchosen(X, np.ones(9), intercept=intercept))
        assert math.isnan(r2_missed(X, support, support, intercept=intercept))
    assert r2_unchosen(X, nothing, intercept=True) == pytest.approx(0)
    by_zero = np.mean(1 - np.mean(X**2, axis=0) / X.var(axis=0))
    assert r2_unchosen(X, nothing, intercept=False) == pytest.approx(by_zero)


@pytest.mark.parametrize(
    ("constant", "intercept", "expected"),
    [(0.0, True, 1), (0.1, True, 1), (0.0, False, 1), (0.1, False, 0)],
)
def test_a_constant_target_is_fitted_or_not(constant, intercept, expected):
    X = np.column_stack([features(4)[:, :2], np.full(40, constant)])
    assert r2_unchosen(X, [1, 1, 0], intercept=intercept) == expected
    X[:, 1] = 0.3 - X[:, 0]  # now it is in the span of the chosen
    assert r2_unchosen(X, [1, 1, 0], intercept=intercept) == 1


# --- the sign test --------------------------------------------------------------------------


def test_ties_are_dropped_and_more_is_better_for_f1_alone():
    pairs = [(1, 0)] * 15 + [(0, 1)] * 5 + [(0.5, 0.5)] * 3
    more, less = compare(pairs, "f1"), compare(pairs, "mse")
    assert (more.wins, more.losses, less.wins, less.losses) == (15, 5, 5, 15)
    assert (more.better, less.better) == (True, False)
    assert more.p_two_sided == less.p_two_sided == pytest.approx(0.0414, rel=0.01)
    assert compare([], "f1").p_two_sided == 1


# --- Theorem 2 ------------------------------------------------------------------------------


@given(st.integers(1, 12), st.integers(0, 30))
def test_theorem_2_follows_the_chain(d, n_iter):
    nonzero = 0.0
    for _ in range(n_iter):
        after_update = nonzero + (1 - nonzero) / d
        nonzero = after_update * (1 - 1 / d)
    assert metrics.expected_nonzeros(d, n_iter) == pytest.approx(d * nonzero, abs=1e-12)


@given(st.integers(1, 200))
def test_limits_in_iterations(d):
    assert metrics.expected_nonzeros(d, 100 * d) == pytest.approx(
        metrics.expected_nonzeros_many_iterations(d)
    )
    assert metrics.expected_nonzeros_published(d, 100 * d) == pytest.approx(
        metrics.expected_nonzeros_many_iterations_published(d), abs=1e-9
    )


@given(st.integers(1, 50))
def test_limits_in_features(n_iter):
    d = 10**8
    assert metrics.expected_nonzeros(d, n_iter) == pytest.approx(n_iter, rel=1e-5)
    # The printed limit is T - 1, which does not even follow from the printed expression.
    assert metrics.expected_nonzeros_published(d, n_iter) == pytest.approx(2 * n_iter - 1, rel=1e-5)
