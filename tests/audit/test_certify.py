"""Confidence limits and events: they must hold as often as they say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dpscreen.audit.audit import best_event, certified_epsilon, clopper_pearson


@pytest.mark.parametrize("p", [0.0, 0.003, 0.2, 0.5, 0.97, 1.0])
@pytest.mark.parametrize("runs", [1, 40, 1000])
def test_limits_miss_no_more_often_than_stated(p, runs):
    """Exactly, over the binomial law."""
    law = stats.binom(runs, p)
    k = np.arange(runs + 1)
    low, high = clopper_pearson(k, runs, miss=0.05)
    low_misses = law.pmf(k) @ (low > p)
    high_misses = law.pmf(k) @ (high < p)
    assert low_misses <= 0.05 + 1e-12
    assert high_misses <= 0.05 + 1e-12


def test_certified_epsilon_reaches_the_truth_and_does_not_pass_it():
    many = 10**9
    hits, other = round(0.4 * many), round(0.1 * many)
    found = certified_epsilon((hits, many), (other, many), delta=0.1, confidence=0.99)
    assert found == pytest.approx(np.log(3), abs=1e-3)
    assert found < np.log(3)
    assert certified_epsilon((0, 100), (0, 100), delta=0.0, confidence=0.9) == 0.0


def test_choosing_and_judging_on_one_half_would_flatter_but_on_two_halves_does_not():
    """With no difference at all, the split bound is 0 but for the stated chance."""
    rng = np.random.default_rng(0)
    flattered = certified = 0
    for _ in range(60):
        here, there = rng.normal(size=(2, 400, 3))
        event = best_event(here[:200], there[:200], delta=0.0, confidence=0.8)
        flattered += event.epsilon(here[:200], there[:200], delta=0.0, confidence=0.8) > 0
        certified += event.epsilon(here[200:], there[200:], delta=0.0, confidence=0.8) > 0
    assert certified <= stats.binom(60, 0.2).isf(1e-6)
    assert flattered > certified
