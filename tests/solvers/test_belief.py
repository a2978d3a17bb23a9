"""What is believed of a line's weights: what Bayes says, and nothing where all is noise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from dpscreen.solvers.belief import LineBelief, entry_doubt, sparse_threshold, sure_threshold

NONE = np.zeros(0)


def features(k: int, seed: int, alike: float = 0.0):
    """Return the Gram matrix of 1 000 rows of k features, the first two of which may be alike."""
    rows = np.random.default_rng(seed).normal(size=(1000, k))
    rows[:, 1] = alike * rows[:, 0] + np.sqrt(1 - alike**2) * rows[:, 1]
    return rows.T @ rows


def noisy(gram, noise: float, seed: int):
    drawn = np.triu(np.random.default_rng(seed).normal(0, noise, gram.shape))
    return gram + drawn + np.triu(drawn, 1).T


def walked(gram, truth, *, gram_noise: float, noise: float, steps: int = 8, seed: int = 0):
    """Return the belief after steps whose sums are those of a line, and how far it ended."""
    rng = np.random.default_rng(seed)
    belief, here = LineBelief(noisy(gram, gram_noise, seed), gram_noise), np.zeros(len(gram))
    for _ in range(steps):
        sums = gram @ (truth - here) + noise * rng.normal(size=len(gram))
        belief.see(here, sums, noise)
        belief.renew(1.0, NONE)
        here = belief.weights
    return belief


def test_without_noise_one_step_leads_to_the_answer():
    gram, truth = features(5, 0), np.array([3.0, -1.0, 2.0, 1.0, -2.0])
    found = walked(gram, truth, gram_noise=1e-9, noise=1e-9, steps=1)
    np.testing.assert_allclose(
        found.weights, truth, rtol=2e-3
    )  # but for what rows being drawn takes


def test_one_step_is_the_posterior_mean():
    """By precisions: weights with the variances that were found, sums with noise and sampling."""
    gram, noise = features(4, 1), 40.0
    answer = gram @ np.array([1.0, 0.0, -0.5, 0.2]) + noise * np.random.default_rng(5).normal(
        size=4
    )
    belief = LineBelief(gram, 1e-6)
    belief.see(np.zeros(4), answer, noise)
    belief.renew(2.0, np.full(4, 0.25))  # constants all: their variances are known
    told = gram @ np.linalg.inv(noise**2 * np.eye(4) + 4.0 * gram)
    expected = np.linalg.solve(told @ gram + np.eye(4) / 0.25, told @ answer)
    np.testing.assert_allclose(belief.weights, expected, rtol=1e-6)


def test_sums_put_the_matrix_right_where_its_noise_hides_a_direction():
    """Two columns that are nearly one, with opposite effects: eigenvalue 20, noise 8 an entry."""
    gram, truth = features(8, 2, alike=0.98), np.zeros(8)
    truth[:2] = 3.0, -3.0
    errors = [
        np.abs(walked(gram, truth, gram_noise=8.0, noise=3.0, seed=seed).weights - truth)[:2].max()
        for seed in range(10)
    ]
    assert np.median(errors) < 0.6
    one = [
        np.abs(walked(gram, truth, gram_noise=8.0, noise=3.0, steps=1, seed=seed).weights - truth)[
            :2
        ].max()
        for seed in range(10)
    ]
    assert np.median(one) > 1.0  # so much is hidden at first


def test_steps_do_not_run_away_where_the_matrix_is_all_noise():
    """Eight features that are one: the matrix seems to be a multiple of the identity."""
    rows = np.random.default_rng(3).normal(size=(1000, 1)) + 0.3 * np.random.default_rng(4).normal(
        size=(1000, 8)
    )
    gram, truth = rows.T @ rows, np.full(8, 0.1)
    for seed in range(10):
        found = walked(gram, truth, gram_noise=1000.0, noise=30.0, seed=seed).weights
        left = truth - found
        assert left @ gram @ left < truth @ gram @ truth


def test_where_all_is_noise_next_to_nothing_is_believed():
    gram = features(20, 6)
    sizes = [
        np.linalg.norm(walked(gram, np.zeros(20), gram_noise=100.0, noise=100.0, seed=s).weights)
        for s in range(10)
    ]
    assert np.median(sizes) < 0.05  # sums alone would say .4


@pytest.mark.parametrize("noise", [1.0, 1e3])
def test_an_entry_is_never_believed_to_be_off_by_more_than_its_noise_or_its_prior(noise):
    values = np.linalg.eigvalsh(noisy(1000 * np.eye(30), noise, 1))
    assert entry_doubt(values, noise) <= min(noise, 0.3 * values.mean() + 0.3 * noise)


def test_weights_are_dropped_that_are_likelier_noise():
    sizes = np.array([9.0, 8.0, 3.0, 1.0, 0.5])
    assert sparse_threshold(sizes, 100) == pytest.approx(np.sqrt(2 * np.log(100 / 3)), abs=0.3)
    assert sparse_threshold(np.full(100, 5.0), 100) == 0  # all have an effect


def test_of_features_that_are_alike_one_stands_for_all():
    """Each of them alone is as good as noise beside the others; together they are not."""
    rng = np.random.default_rng(9)
    one = rng.normal(size=(1000, 1))
    rows = np.hstack([one + 1e-3 * rng.normal(size=(1000, 3)), rng.normal(size=(1000, 20))])
    gram, truth = rows.T @ rows, np.append(np.full(3, 0.2), np.zeros(20))
    for seed in range(5):
        found = walked(gram, truth, gram_noise=10.0, noise=20.0, seed=seed).sparse_weights(23)
        assert found[:3].sum() == pytest.approx(0.6, abs=0.15)
        assert np.count_nonzero(found[:3]) < 3
        assert np.count_nonzero(found[3:]) < 8


def test_without_a_feature_others_are_what_they_would_be_believed_to_be():
    """Conditioning step by step is leaving out the columns, with the same priors."""
    gram, noise = features(5, 11, alike=0.8), 30.0
    answer = gram @ np.array([0.5, 0.0, 0.4, 0.0, 0.01]) + noise * np.ones(5)
    belief = LineBelief(gram, 1e-9)
    belief.see(np.zeros(5), answer, noise)
    belief.renew(1.0, NONE)
    sparse = belief.sparse_weights(5)
    kept, variances = np.flatnonzero(sparse), belief._variances
    assert 0 < kept.size < 5
    told = gram @ np.linalg.inv(noise**2 * np.eye(5) + gram)
    precision = (told @ gram)[np.ix_(kept, kept)] + np.diag(1 / variances[kept])
    np.testing.assert_allclose(
        sparse[kept], np.linalg.solve(precision, (told @ answer)[kept]), rtol=1e-6
    )


@pytest.mark.parametrize("n_offered", [1, 2, 12, 1000])
def test_nothing_stands_out_by_chance_in_19_of_20_fits(n_offered):
    """Sizes are normal here; the chance that the largest exceeds it is exact, and near 5 %."""
    below = 1 - 2 * norm.sf(sure_threshold(n_offered))
    assert 0.95 <= below**n_offered < 0.9513
