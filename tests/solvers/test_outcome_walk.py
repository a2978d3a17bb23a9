"""Steps along all features at once: what is believed is what Bayes says, and told apart."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import expit

from dpscreen import PrivateLogistic
from dpscreen.solvers.belief import Seen, SumsTold, lifted
from dpscreen.solvers.outcome_walk import Levels, Squares, WeightBelief, pooled_sums

NONE = np.zeros(0)


def square(k: int, size: float, seed: int):
    """Return a positive matrix that couples k weights."""
    half = np.random.default_rng(seed).normal(size=(k, 2 * k))
    return size * half @ half.T / (2 * k)


def test_on_a_square_loss_all_sums_count_alike_wherever_they_were_taken():
    rng, curvature, truth = np.random.default_rng(0), square(4, 100, 0), np.arange(4.0)
    places = rng.normal(size=(3, 4))
    seen = [
        Seen(w, curvature @ (truth - w), noise) for w, noise in zip(places, (1, 2, 4), strict=True)
    ]
    pooled, noise = pooled_sums(seen, curvature, np.array([1.0, 4.0, 16.0]))
    np.testing.assert_allclose(pooled, curvature @ truth)
    assert noise == pytest.approx((1 + 1 / 4 + 1 / 16) ** -0.5)


def test_sums_from_far_away_count_for_less_by_how_far_log_odds_went():
    """Where log-odds went by m, the curvature is off by m-th parts, and by half on the way."""
    curvature = 100 * np.eye(1)
    belief = WeightBelief(curvature, NONE, Levels.none(curvature))
    for place in (0.0, 2.0, 2.2):
        belief.weights = np.array([place])
        belief.see(np.zeros(1), 5.0)
    far = 100 * np.array([2.2, 0.2, 0.0])
    expected = 25 + (far * np.array([1.1, 0.1, 0.0])) ** 2
    np.testing.assert_allclose(belief._squares(curvature, 100), expected)


def test_steps_arrive_along_a_direction_whose_curvature_noise_made_too_large():
    """Five times too large there, steps go a fifth of what is left, and pooled ones less."""
    true, truth = np.diag([1000.0, 20.0]), np.array([0.1, 1.0])
    found = []
    for doubt in (0.0, 25.0):
        belief = WeightBelief(true, NONE, Levels.none(true))
        for _ in range(6):
            belief.see(true @ (truth - belief.weights), 0.1)
            belief.move(np.diag([1000.0, 100.0]), 10**6, doubt)
        found.append(belief.weights[1])
    assert found[0] < 0.6 < 0.85 < found[1] < 1.05


def test_a_curved_matrix_follows_how_unsure_outcomes_are():
    gram = square(3, 100, 5)
    levels, unsure = Levels.none(gram), np.array([0.2, 0.1, 0.05])
    there = Squares(gram, 2.0, size=1 / unsure)
    matrix, doubt = levels.curvature(there, unsure)
    np.testing.assert_allclose(matrix, gram)
    assert doubt == pytest.approx(2.0)
    np.testing.assert_allclose(levels.curvature(there, unsure / 2)[0], gram / 2)


def test_short_moves_go_to_the_posterior_mean():
    """By precisions: (HV⁻¹H + Λ⁻¹)⁻¹HV⁻¹s, for the variances Λ that were found."""
    rng, curvature, noise = np.random.default_rng(4), square(5, 1e4, 1), 60.0
    answer = curvature @ rng.normal(0, 0.01, 5) + noise * rng.normal(size=5)
    belief = WeightBelief(curvature, NONE, Levels.none(curvature))
    doubt = noise**2 * np.eye(5) + curvature
    belief.see(answer, noise)
    way = belief.move(curvature, 10**15)  # so many rows that log-odds hardly move
    told = curvature @ np.linalg.inv(doubt)
    values, vectors = np.linalg.eigh(curvature)
    sums = SumsTold(values, vectors, noise**2 + values, answer)
    prior = np.diag(1 / sums.variances(NONE))
    np.testing.assert_allclose(
        way, np.linalg.solve(told @ curvature + prior, told @ answer), rtol=1e-4
    )
    np.testing.assert_array_equal(way, belief.weights)


def test_long_moves_are_cut_to_their_logarithm():
    curvature = 1e6 * np.eye(1)
    open_prior = np.full(1, 1e-6)  # of a constant alone
    belief = WeightBelief(curvature, open_prior, Levels.none(curvature))
    belief.see(curvature @ [9.0], 1e-6)
    assert belief.move(curvature, 10**6)[0] == pytest.approx(np.log1p(9), rel=1e-4)


@pytest.mark.parametrize("variance", [0.01, 1.0, 2.0])
def test_the_likeliest_variance_is_near_the_true_one(variance):
    """To the grid of factors of 4; noise alone has next to none."""
    rng, noise = np.random.default_rng(1), 2.0
    curved, noises = rng.uniform(50, 500, 200), np.full(200, noise**2)

    def likeliest(answer):
        return SumsTold(curved, np.eye(200), noises, answer)._common_variance()

    seen = curved * rng.normal(0, np.sqrt(variance), 200) + noise * rng.normal(size=200)
    assert variance / 3 < likeliest(seen) < 3 * variance
    assert likeliest(noise * rng.normal(size=200)) < 0.01


def test_few_large_weights_vary_by_more_than_the_others():
    rng, curvature, noises = np.random.default_rng(2), 100 * np.eye(40), np.full(40, 100.0)
    truth = np.where(np.arange(40) < 3, 2.0, 0.0)
    answer = curvature @ truth + 10 * rng.normal(size=40)
    found = SumsTold(np.diag(curvature), np.eye(40), noises, answer).variances(NONE)
    assert found[:3].min() > 20 * np.median(found[3:])


def test_sizes_without_an_effect_are_a_normals():
    """2000 weights: a deviation that is 15 % off is seen with chance .99, and 1 in 10 000 fails."""
    rng, found = np.random.default_rng(3), []
    for _ in range(40):
        curvature = np.diag(rng.uniform(50, 500, 50))
        belief = WeightBelief(curvature, NONE, Levels.none(curvature))
        drawn = rng.normal(size=50) * np.sqrt(np.diag(curvature)) + 8 * rng.normal(size=50)
        belief.see(drawn, 8.0)
        belief.move(curvature, 10**6)
        found.append(belief.sizes)
    square = float((np.ravel(found) ** 2).mean())
    low, high = stats.chi2.ppf([5e-5, 1 - 5e-5], 2000) / 2000
    assert low < square < high
    assert not low < square * 1.15**2 < high


def test_noise_alone_in_a_gram_matrix_is_taken_off_and_what_differs_stays():
    rng = np.random.default_rng(2)
    half = np.triu(rng.normal(size=(30, 30)))
    noise = half + np.triu(half, 1).T
    alike = np.linalg.eigvalsh(lifted(1000 * np.eye(30) + noise, 1.0))
    assert np.ptp(alike) < 0.3 * np.ptp(np.linalg.eigvalsh(noise))
    apart = np.linalg.eigvalsh(lifted(np.diag(np.linspace(0, 3000, 30)) + noise, 1.0))
    assert apart.min() == pytest.approx(np.sqrt(30))  # the blur: nothing is seen below it
    np.testing.assert_allclose(apart[1:], np.linspace(0, 3000, 30)[1:], atol=8)
    drowned = np.linalg.eigvalsh(lifted(np.eye(30) + noise, 1.0))
    assert drowned.max() < 2  # where noise hides it, all directions are as the mean


@pytest.mark.filterwarnings("ignore::dpscreen.SeededNoiseWarning")
@pytest.mark.parametrize("epsilon", [3.0, 10.0])
def test_a_rare_level_with_a_strong_effect_on_a_rare_outcome_keeps_its_log_odds(epsilon):
    """It had −18 to 24 for 4: rows of the level are less sure than all, and steps swung about."""
    rng, n = np.random.default_rng(0), 20_000
    rare, x = rng.random(n) < 0.02, rng.normal(40, 15, n)
    y = (rng.random(n) < expit(-5 + 4 * rare + 0.03 * (x - 40))).astype(int)
    X = pd.DataFrame({"x": x, "level": np.where(rare, "d", "a")})
    public = {"feature_bounds": {"x": (-50, 150)}, "categories": {"level": ["a", "d"]}}
    for seed in range(3):
        model = PrivateLogistic(epsilon=epsilon, delta=1e-6, random_state=seed, **public)
        slope, level = model.fit(X, y).coef_.ravel()
        assert 3.3 < level < 4.9
        assert 0.01 < slope < 0.045
