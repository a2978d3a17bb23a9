"""The metrics against scikit-learn, against brute force, and against their own algebra."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import binomtest
from sklearn.metrics import f1_score, recall_score

from dpscreen.paper import metrics

mask_pairs = st.integers(1, 30).flatmap(
    lambda d: st.tuples(hnp.arrays(np.bool_, d), hnp.arrays(np.bool_, d))
)


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


# --- R² of the features left out ----------------------------------------------------------------


def features(seed, n=40, d=9, *, mixing=1.0):
    """Correlated features with means away from 0 and unequal scales.

    Not too unequal: recent scikit-learn drops directions below 1e-6 of the largest, whatever the
    units, and could not serve as oracle.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + mixing * rng.normal(size=(n, 2)) @ rng.normal(size=(2, d))
    return (X + rng.normal(size=d)) * 10.0 ** rng.uniform(-1, 1, d)


# --- the sign test --------------------------------------------------------------------------


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 5))
def test_sign_test_is_the_exact_binomial_test(wins, losses, ties):
    a = np.concatenate([np.ones(wins), np.zeros(losses), np.full(ties, 0.5)])
    b = np.concatenate([np.zeros(wins), np.ones(losses), np.full(ties, 0.5)])
    result = metrics.sign_test(a, b)
    assert (result.wins, result.losses) == (wins, losses)
    assert metrics.sign_test(b, a).p_two_sided == result.p_two_sided
    if wins + losses == 0:
        assert result.p_two_sided == 1
        return
    expected = binomtest(wins, wins + losses).pvalue
    assert result.p_two_sided == pytest.approx(expected, rel=1e-9)


# --- Theorem 2 ------------------------------------------------------------------------------


@given(st.integers(1, 12), st.integers(0, 30))
def test_theorem_2_follows_the_chain(d, n_iter):
    nonzero = 0.0
    for _ in range(n_iter):
        after_update = nonzero + (1 - nonzero) / d
        nonzero = after_update * (1 - 1 / d)
    assert metrics.expected_nonzeros(d, n_iter) == pytest.approx(d * nonzero, abs=1e-12)
