"""The engine of the sparse models: what one row moves, the posterior, and its oracles."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LinearRegression, LogisticRegression

from dpscreen import PrivateLasso, PrivateLogisticLasso
from dpscreen.families import BINOMIAL, GAUSSIAN
from dpscreen.privacy.accountant import BESIDE, DIAGONAL
from dpscreen.rows.lattice import UNITS, LatticeDesign
from dpscreen.rows.loss import LOGISTIC, SQUARED
from dpscreen.rows.sums import LEVELS, ShortRows
from dpscreen.solvers.posterior import (
    Posterior,
    Score,
    q_values,
    sparse_mean,
)

pytestmark = pytest.mark.filterwarnings("ignore::dpscreen.SeededNoiseWarning")

CELLS = (-1.0, -0.3, 0.0, 0.7, 1.0)


@pytest.mark.parametrize("norm", [0.6, 1.0])
@pytest.mark.parametrize("loss", [SQUARED, LOGISTIC])
def test_lemmas_e1_to_e3_one_row_moves_no_release_by_more_than_it_books(norm, loss):
    """Brute force over rows of three columns, the last of them a constant, and their targets."""
    rows, clip = ShortRows(np.arange(3), norm, LEVELS // 2), 0.6
    factors = np.where(np.eye(3, dtype=bool), DIAGONAL, BESIDE)[np.triu_indices(3)]
    widest = np.zeros(3)
    weights = np.array([0.8, -1.5, 0.3])
    for x, z, y in itertools.product(CELLS, CELLS, (-5.0, 0.0, 0.4, 1.0)):
        X, target = np.array([[0.2, -0.6, 1.0], [x, z, 1.0]]), np.array([0.5, y])
        found = []
        for n in (1, 2):
            columns = np.trunc(X[:n].T * LEVELS).astype(np.int16)
            design = LatticeDesign(columns, target[:n], loss)
            point = design.at(weights)
            gram = design.short_gram(rows)[np.triu_indices(3)] * factors / UNITS
            score = point.short_products(clip, rows) / UNITS
            sizes = point.residual_counts(clip) @ np.arange(LEVELS + 1) / LEVELS
            found.append((gram, score, np.atleast_1d(sizes)))
        moved = [np.linalg.norm(b - a) for a, b in zip(*found, strict=True)]
        widest = np.maximum(widest, moved)
    booked = np.array([DIAGONAL * norm**2, norm, 1.0])
    assert (widest <= booked * (1 + 1e-9)).all()
    assert (widest >= booked * 0.75).all()


def test_a_score_has_the_posterior_of_linear_algebra():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(6, 4))
    gram, value, prior = root.T @ root, rng.normal(size=4), rng.uniform(0.5, 2, size=4)
    posterior = Posterior(gram, 0.0, 1e-9, prior[3:])
    posterior.update(Score(np.zeros(4), value, 0.5), 1.0, 2.0)
    mean, root_of_covariance = posterior.given(prior[:3])
    covariance = 0.5**2 * np.eye(4) + 2 * gram
    precision = gram @ np.linalg.solve(covariance, gram) + np.diag(1 / prior)
    found = root_of_covariance @ root_of_covariance.T
    np.testing.assert_allclose(found, np.linalg.inv(precision), rtol=1e-8)
    expected = np.linalg.solve(precision, gram @ np.linalg.solve(covariance, value))
    np.testing.assert_allclose(mean, expected, rtol=1e-8)


def test_scores_without_noise_give_the_coefficients():
    rng = np.random.default_rng(1)
    root = rng.normal(size=(400, 5))
    gram, truth = root.T @ root, np.array([1.0, -2.0, 0.0, 0.5, 3.0])
    posterior = Posterior(gram, 1e-6, 400.0, np.array([100.0]))
    for _ in range(3):
        at = posterior.mean
        posterior.update(Score(at, gram @ (truth - at), 1e-6), 1.0, 1e-12)
    np.testing.assert_allclose(posterior.mean, truth, atol=1e-5)


def test_the_spectral_norm_of_noise_is_what_the_floor_supposes():
    """Of 200 noise matrices of 40 columns."""
    rng, k, noise = np.random.default_rng(2), 40, 3.0
    norms = []
    for _ in range(200):
        upper = np.triu(rng.normal(0, noise / math.sqrt(2), (k, k)), 1)
        values = np.linalg.eigvalsh(upper + upper.T + np.diag(rng.normal(0, noise, k)))
        norms.append(np.abs(values).max())
    assert np.mean(norms) == pytest.approx(noise * math.sqrt(2 * k), rel=0.1)


def test_eigenvalues_that_noise_may_have_lowered_are_floored():
    """A direction that the noisy matrix makes negative moves no further than the floor lets it."""
    posterior = Posterior(np.diag([-2.0, 0.1, 4.0]), 0.1, 1.0, np.ones(0))
    floor = 0.5 * 0.1 * math.sqrt(2 * 3)
    assert posterior.spread(np.array([1.0, 0, 0]), 1.0) == pytest.approx(math.sqrt(floor))
    assert posterior.spread(np.array([0, 1.0, 0]), 1.0) == pytest.approx(math.sqrt(floor))
    assert posterior.spread(np.array([0, 0, 1.0]), 1.0) == pytest.approx(2.0)


def test_elimination_sets_others_to_their_conditional_means():
    mean, covariance = np.array([2.0, 0.1, 1.0]), np.array([[1, 0.8, 0], [0.8, 1, 0], [0, 0, 1.0]])
    sparse = sparse_mean(mean, covariance, 2)
    np.testing.assert_allclose(sparse, [2.0 - 0.8 * 0.1, 0.0, 1.0])
    np.testing.assert_array_equal(sparse_mean(mean, covariance, 2, limit=0), [0, 0, 1.0])


def test_q_values_count_features_that_were_not_fitted():
    z = np.array([4.0, 0.1, -3.0])
    found = q_values(z, 30)
    p = 2 * stats.norm.sf(np.abs(z))
    assert found[0] == pytest.approx(30 * p[0])
    assert found[2] == pytest.approx(30 * p[2] / 2)
    assert (q_values(z, 3) <= found).all()


def test_estimates_without_a_prior_have_the_errors_they_claim():
    """z-values of features without effect, 400 posteriors: false alarm below 1e-6.

    Their mean square is at most 1 and, as all noise counts, not far below.
    """
    rng, n, k, noise = np.random.default_rng(3), 2000, 6, 25.0
    root = rng.normal(size=(n, k))
    exact, found = root.T @ root, []
    for _ in range(400):
        upper = np.triu(rng.normal(0, noise / math.sqrt(2), (k, k)), 1)
        gram = exact + upper + upper.T + np.diag(rng.normal(0, noise, k))
        truth = np.array([0.5, -0.3, 0, 0, 0, 0.2])
        sampling = np.linalg.cholesky(exact) @ rng.normal(size=k)
        posterior = Posterior(gram, noise, n, np.array([1.0]))
        for _ in range(4):
            at = posterior.mean
            value = exact @ (truth - at) + sampling + rng.normal(0, 60.0, k)
            posterior.update(Score(at, value, 60.0), 1.0, 1.0)
        found.extend(posterior.z_values[2:5])
    square = float(np.mean(np.square(found)))
    assert 0.6 < square < 1.15


def test_with_a_large_budget_the_engine_is_least_squares_and_maximum_likelihood():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(4000, 5))
    effect = X @ [1.0, -0.5, 0.25, 0.0, 0.7]
    public = {"epsilon": 3000.0, "delta": 1e-6, "feature_bounds": (-6, 6)}
    y = effect + rng.normal(size=4000)
    model = PrivateLasso(**public, target_bounds=(-12, 12)).fit(X, y)
    np.testing.assert_allclose(model.coef_, LinearRegression().fit(X, y).coef_, atol=0.02)
    outcomes = (effect + rng.logistic(size=4000) > 0).astype(int)
    logistic = PrivateLogisticLasso(**public).fit(X, outcomes)
    plain = LogisticRegression(C=1e6).fit(X, outcomes)
    np.testing.assert_allclose(logistic.coef_, plain.coef_, atol=0.05)


@pytest.mark.parametrize("family", [GAUSSIAN, BINOMIAL])
def test_a_family_is_consistent(family):
    means = np.linspace(0.05, 0.95, 19)
    np.testing.assert_allclose(family.inverse_link(family.link(means)), means)
    step = 1e-6
    slope = np.diff([family.inverse_link(family.link(means) + h) for h in (-step, step)], axis=0)
    np.testing.assert_allclose(slope[0] / (2 * step), family.variance(means), rtol=1e-5)
    assert family.mean_curvature(0.0, 0.0) == pytest.approx(family.loss.curvature)
    assert 0 < family.damping(3.0) <= 1


@pytest.mark.parametrize("estimator", [PrivateLasso, PrivateLogisticLasso])
def test_selection_controls_the_false_discovery_rate(estimator):
    """Mean share of false selections in 30 fits: at most 0.1, plus 3.5 standard errors."""
    shares, power = [], []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X = 0.5 * rng.normal(size=(3000, 1)) + rng.normal(size=(3000, 12))
        effect = X[:, :3] @ [0.8, -0.6, 0.5]
        own = {}
        if estimator is PrivateLasso:
            y, own = effect + rng.normal(size=3000), {"target_bounds": (-15, 15)}
        else:
            y = (effect + rng.logistic(size=3000) > 0).astype(int)
        public = {"epsilon": 3.0, "delta": 1e-6, "feature_bounds": (-6, 6), "quality": False}
        model = estimator(**public, **own, random_state=seed).fit(X, y)
        found = model.selected_
        np.testing.assert_array_equal(
            found, (model.q_values_ <= 0.1) & (np.ravel(model.coef_) != 0)
        )
        shares.append(found[3:].sum() / max(found.sum(), 1))
        power.append(found[:3].mean())
    assert np.mean(shares) <= 0.1 + 3.5 * 0.2 / math.sqrt(30)
    assert np.mean(power) > 0.8
