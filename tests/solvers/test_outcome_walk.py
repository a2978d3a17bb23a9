"""Steps along all features at once: the filter is what Bayes says, and weights are told apart."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dpscreen.solvers import outcome_walk
from dpscreen.solvers.outcome_walk import Directions, Filter, likeliest_variance

CURVATURE = np.array([0.5, 2.0, 40.0, 900.0])


def walked(truth, prior, noise, rng, n_iter=3):
    """Return the filter after steps on a square loss, and the sums that it saw from zero."""
    walk, answers = Filter(CURVATURE, prior, noise), []
    for _ in range(n_iter):
        seen = CURVATURE * (truth - walk.weights) + noise * rng.normal(size=4)
        answers.append(seen + CURVATURE * walk.weights)
        walk.step(seen)
    return walk, answers


@pytest.mark.parametrize("n_iter", [1, 2, 5])
def test_on_a_square_loss_the_filter_is_the_posterior_mean_of_all_sums(n_iter, monkeypatch):
    monkeypatch.setattr(outcome_walk, "STILL_OPEN", 0.0)
    rng, prior, noise = np.random.default_rng(n_iter), 0.7, 3.0
    truth = rng.normal(0, np.sqrt(prior), 4)
    walk, answers = walked(truth, prior, noise, rng, n_iter)
    precision = n_iter * CURVATURE**2 / noise**2 + 1 / prior
    expected = CURVATURE * np.sum(answers, axis=0) / noise**2 / precision
    np.testing.assert_allclose(walk.weights, expected, rtol=1e-9)


def test_variances_are_those_of_the_weights():
    """4000 walks: a variance that is 10 % off is seen with chance .99, and 1 in 10 000 fails."""
    rng, noise, times = np.random.default_rng(0), 3.0, 4000
    truth = np.array([0.3, -0.2, 0.1, 0.5])
    walks = [
        walked(truth + rng.normal(size=4) / np.sqrt(CURVATURE), 0.7, noise, rng)[0]
        for _ in range(times)
    ]
    found = np.var([walk.weights for walk in walks], axis=0, ddof=1)
    low, high = stats.chi2.ppf([1.25e-5, 1 - 1.25e-5], times - 1) / (times - 1)
    ratios = found / walks[0].variances
    assert ((ratios > low) & (ratios < high)).all()
    assert not ((ratios / 1.2 > low) & (ratios / 1.2 < high)).any()


@pytest.mark.parametrize("variance", [0.01, 1.0, 30.0])
def test_the_likeliest_variance_is_near_the_true_one(variance):
    rng, noise = np.random.default_rng(1), 2.0
    curvature = rng.uniform(50, 500, 200)
    seen = curvature * rng.normal(0, np.sqrt(variance), 200) + noise * rng.normal(size=200)
    assert likeliest_variance(seen, curvature, noise) == pytest.approx(variance, rel=0.4)
    assert likeliest_variance(noise * rng.normal(size=200), curvature, noise) < 0.01


def test_noise_alone_in_a_gram_matrix_is_taken_off_and_what_differs_stays():
    rng = np.random.default_rng(2)
    half = np.triu(rng.normal(size=(30, 30)))
    noise = half + np.triu(half, 1).T
    alike = Directions.of(1000 * np.eye(30) + noise, 1.0)
    assert np.ptp(alike.values) < 0.3 * np.ptp(np.linalg.eigvalsh(noise))
    apart = Directions.of(np.diag(np.linspace(0, 3000, 30)) + noise, 1.0)
    assert apart.values.min() == pytest.approx(np.sqrt(30))  # the blur: nothing is seen below it
    np.testing.assert_allclose(apart.values[1:], np.linspace(0, 3000, 30)[1:], atol=8)
