"""What is reported of how good a model is: that intervals cover, and when nothing is reported."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, logit
from sklearn.metrics import log_loss, roc_auc_score

from dpscreen import PrivateLasso, PrivateOLS
from dpscreen.families.binomial import OutcomeQuality
from dpscreen.families.gaussian import Quality, magnitude_edges
from dpscreen.families.quality import (
    CONSTANT,
    NOISE,
    UNDETECTED,
    NoisyHistogram,
    QualityReleases,
    Ranges,
)
from dpscreen.privacy import ZCDP, Accountant, SeededNoise
from dpscreen.rows.lattice import LatticeDesign
from dpscreen.rows.loss import LOGISTIC
from dpscreen.solvers.base import Spending
from dpscreen.solvers.rules import QUALITY_SHARE, Regime

pytestmark = [
    pytest.mark.filterwarnings("ignore::dpscreen.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::dpscreen.WeakDeltaWarning"),
]

RHO = Fraction(174, 10_000)
"""That of ε = 1 and δ = 1e-6."""


def released(kind, design, weights, ranges, seed, share=QUALITY_SHARE):
    """Return the quality at ε = 1 with a noisy count; its cost is spent, and no more."""
    rng, limit, n_rows = np.random.default_rng(seed), ZCDP(RHO), design.n_rows
    regime = Regime(round(n_rows + 55 * rng.normal()), 1, float(limit))
    accountant = Accountant(SeededNoise(seed), limit=limit)
    spending = Spending(accountant, limit, regime, count_noise=55.0)
    cost = spending.share(share)
    releases = QualityReleases(accountant, spending.release_sum, regime.n_rows, 55.0, cost)
    point = design.at(weights, scale=max(ranges.target_scale, np.abs(weights).max()))
    found = kind.release_measures(releases, point, design.start(1.0), ranges, in_sample=True)
    assert 0.999 * cost.rho <= accountant.spent.rho <= cost.rho
    return found


def measured(fitted, target, seed, *, bound, weight=1.0):
    """Return the quality of a model whose fitted values are the first column."""
    design = LatticeDesign.from_rows(fitted[:, None], target)
    left = np.quantile(np.abs(target - weight * fitted), 0.68)
    most = weight * float(np.abs(fitted).max())
    effects = np.array([[-most, most]])
    ranges = Ranges((-bound, bound), effects, left, np.quantile(np.abs(target), 0.68))
    return released(Quality, design, np.full(1, weight), ranges, seed)


def outcome_measured(line, y, seed, *, weight=1.0, log_odds=0.0, share=QUALITY_SHARE):
    """Return the quality of a model whose log-odds are the first column."""
    design = LatticeDesign.from_rows(np.column_stack((line / 8, np.ones(len(y)))), y)
    design.loss = LOGISTIC
    effects = np.array([[-8 * weight, 8 * weight], [0.0, 0.0]])
    ranges = Ranges((0.0, 1.0), effects, weight * line.std(), null=log_odds)
    return released(OutcomeQuality, design, np.array([8 * weight, 0.0]), ranges, seed, share)


def truth(fitted, target, bound):
    left = np.mean((target - np.clip(fitted, -bound, bound)) ** 2)
    return 1 - left / target.var(), math.sqrt(left)


def covering(found, true, names):
    """Return how many of 20 intervals are reported; at most 4 miss: a false alarm in 400."""
    ends = [tuple(getattr(one, f"{names}_{end}") for end in ("low", "high")) for one in found]
    known = [(low, high) for low, high in ends if not math.isnan(low)]
    assert sum(low <= true <= high for low, high in known) >= len(known) - 4
    return len(known)


def tail(kind, rng, n):
    rare = rng.random(n)
    return {
        "normal": lambda: rng.normal(size=n),
        "uniform": lambda: rng.uniform(-1, 1, n),
        "exponential": lambda: rng.exponential(size=n) - 1,
        "t with 3 degrees": lambda: rng.standard_t(3, n),
        "lognormal": lambda: np.exp(rng.normal(0, 1.3, n)) - math.exp(0.845),
        "zero-inflated": lambda: np.where(rare < 0.8, 0.0, rng.exponential(size=n)) - 0.2,
        "outliers": lambda: np.where(rare < 0.01, 10, 1) * rng.normal(size=n),
        "one-sided outliers": lambda: np.where(rare < 0.003, 20, rng.normal(size=n)),
    }[kind]()


LIGHT = {"normal", "uniform"}


@pytest.mark.parametrize("kind", [*sorted(LIGHT), "exponential", "t with 3 degrees", "lognormal",
                                  "zero-inflated", "outliers", "one-sided outliers"])  # fmt: skip
@pytest.mark.parametrize("r2", [0.2, 0.7])
@pytest.mark.parametrize("wide", [1, 4])
def test_intervals_cover_however_heavy_tails_are(kind, r2, wide):
    """Light tails are reported, too."""
    rng = np.random.default_rng(12)
    noise = tail(kind, rng, 20_000) / 1000
    noise -= noise.mean()
    line = np.clip(rng.normal(size=20_000), -4, 4)
    fitted = math.sqrt(r2 / (1 - r2)) * noise.std() * line
    target = fitted + noise
    bound = wide * float(np.abs(target).max())
    found = [measured(fitted, target, seed, bound=bound) for seed in range(20)]
    for true, name in zip(truth(fitted, target, bound), ("r2", "error"), strict=True):
        known = covering(found, true, name)
        assert known >= 18 or wide > 1 or kind not in LIGHT
    assert all(one.error_high <= 2 * one.error_low for one in found if not one.error_reason)


def test_r2_is_that_of_predictions_clipped_to_the_target_bounds():
    """Without clipping it is 0.23 where 0.59 is true."""
    rng = np.random.default_rng(3)
    fitted = rng.normal(size=30_000) * np.where(rng.random(30_000) < 0.1, 0.3, 0.05)
    target = np.clip(fitted + rng.normal(0, 0.06, 30_000), -0.2, 0.2)
    true, _ = truth(fitted, target, 0.2)
    assert true > 1 - np.mean((target - fitted) ** 2) / target.var() + 0.3
    found = [measured(fitted, target, seed, bound=0.2) for seed in range(20)]
    assert covering(found, true, "r2") == 20


def test_rows_that_are_not_detected_are_within_the_interval():
    """Forty of 10 000 rows at the end of the bounds: noise hides them, and R² falls to a quarter.

    Without what noise hides, all intervals would miss.
    """
    rng = np.random.default_rng(4)
    fitted = np.clip(rng.normal(size=10_000), -3, 3) / 100
    target = fitted + rng.normal(0, 0.01, 10_000)
    target[:40] = np.where(np.arange(40) % 2, 0.2, -0.2)
    true, _ = truth(fitted, target, 0.2)
    assert true < 0.35
    found = [measured(fitted, target, seed, bound=0.2) for seed in range(20)]
    assert covering(found, true, "r2") >= 15
    assert np.nanmean([one.r2 for one in found]) > 0.42  # the number is of what is detected


def test_a_model_that_is_a_constant_has_no_r2():
    target = np.random.default_rng(2).normal(size=20_000) / 9
    found = measured(np.zeros(20_000), target, 0, bound=0.5, weight=0.0)
    assert math.isnan(found.r2)
    assert found.r2_reason == CONSTANT
    assert "R² not known" in str(found)
    assert "the model is a constant" in str(found)
    assert found.error_low < target.std() < found.error_high


def test_what_is_not_known_is_nan_with_a_reason_and_is_not_printed():
    rng = np.random.default_rng(0)
    fitted = rng.normal(size=300) / 10
    few = measured(fitted, fitted + rng.normal(size=300) / 10, 0, bound=1.0)
    assert np.isnan((few.r2, few.r2_low, few.r2_high)).all()
    assert few.r2_reason in (NOISE, UNDETECTED)
    assert not any(digit in str(few) for digit in "013456789")  # but that of R²
    with pytest.raises(ValueError, match="not known"):
        few.residual_size(0.9)


def test_a_scale_that_is_that_of_a_point_mass_claims_nothing_wrong():
    """A quarter of the target lies hundreds of its scales out."""
    rng = np.random.default_rng(7)
    fitted = rng.uniform(-0.001, 0.001, 30_000)
    target = np.where(rng.random(30_000) < 0.25, rng.uniform(0.2, 1, 30_000), 0.0) + fitted
    found = [measured(fitted, target, seed, bound=1.2) for seed in range(20)]
    for true, name in zip(truth(fitted, target, 1.2), ("r2", "error"), strict=True):
        covering(found, true, name)


# --- the noisy histogram --------------------------------------------------------------------------


def test_edges_reach_the_bound_and_are_an_octave_wide_at_most_beyond_four_scales():
    for scale, bound in ((1.0, 3.0), (1.0, 100.0), (1.0, 1e100), (1e-8, 1.0)):
        edges = magnitude_edges(scale, bound)
        assert edges[0] == 0
        assert edges[-1] == bound
        assert (np.diff(edges) > 0).all()
        assert (edges[2:] / edges[1:-1] <= 2.0001).sum() >= len(edges) - 3


def test_the_last_octave_with_rows_is_detected_and_noise_is_not():
    """3 standard deviations in some 30 places: noise alone is taken for rows in 1 of 25 draws."""
    edges, rng = magnitude_edges(1.0, 64.0), np.random.default_rng(0)
    counts = 1e4 * np.diff(stats.chi(1).cdf(edges))
    far = sum(
        NoisyHistogram(edges, counts + rng.normal(0, 5, counts.size), 5.0).last_detected() > 8
        for _ in range(200)
    )
    assert far <= 20  # a false alarm in 10 000
    counts[-1] += 40
    assert NoisyHistogram(edges, counts, 5.0).last_detected() == 64
    assert NoisyHistogram(edges, 0 * counts, 5.0).last_detected() == 0
    beyond = np.maximum(edges[1:] ** 2 - 8**2, 0)
    squares = NoisyHistogram(edges, counts, 5.0).weighted(beyond)
    assert squares.value >= 40 * (64**2 - 8**2)
    assert squares.noise > 0


@pytest.mark.parametrize("noise", [2.0, 10.0])
def test_shares_of_residuals_are_not_reached_by_noise(noise):
    """Of 200 fixed draws; sums of noisy counts alone reach 0.9 too soon in 40 of them at 10."""
    edges = magnitude_edges(1.0, 16.0)
    inside = np.append(stats.chi(1).cdf(edges[1:-1]), 1.0)
    counts, rng = 400 * np.diff(inside, prepend=0), np.random.default_rng(0)
    found = []
    for _ in range(200):
        noisy = counts + noise * rng.normal(size=counts.size)
        shares = NoisyHistogram(edges, noisy, noise).shares(400)
        found.append(inside[np.flatnonzero(shares >= 0.9)[0]])
    assert np.mean(np.array(found) < 0.85) <= 0.05
    assert np.median(found) < 0.999
    assert not NoisyHistogram(edges, noisy, 60.0).shares(400).any()


# --- binary outcomes ------------------------------------------------------------------------------


@pytest.mark.parametrize(("steep", "weight"), [(0.3, 1.0), (1.0, 1.0), (1.0, 0.3), (-1.0, 1.0)])
@pytest.mark.parametrize("spread", [0.5, 2.0])
def test_auc_and_deviance_are_within_their_intervals(steep, weight, spread):
    """Models that are right, too sure, not sure enough, or wrong."""
    rng = np.random.default_rng(5)
    line = np.clip(rng.normal(0, spread, 10_000), -8, 8)
    y = (rng.random(10_000) < expit(steep * line)).astype(float)
    chance = expit(weight * line)
    found = [outcome_measured(line, y, seed, weight=weight) for seed in range(20)]
    for true, name in (
        (roc_auc_score(y, chance), "auc"),
        (2 * log_loss(y, chance), "deviance"),
    ):
        assert covering(found, true, name) >= 15


def test_an_interval_of_the_auc_counts_pairs_within_one_cell():
    """All rows in one cell of probabilities, ordered rightly there: the AUC is 1, or 0."""
    rng = np.random.default_rng(6)
    line = rng.uniform(0.0001, 0.05, 20_000)
    for y in ((line > 0.025).astype(float), (line < 0.025).astype(float)):
        found = outcome_measured(line, y, 0, share=0.9)
        low, high = (found.auc_low, found.auc_high)
        assert math.isnan(low) or low <= roc_auc_score(y, line) <= high


def test_a_deviance_that_could_be_zero_is_not_known():
    """Rows of one class to which the model is sure: printed was 0.000 (0.000 to 0.666)."""
    line = np.full(3000, -7.9)
    found = outcome_measured(line, np.zeros(3000), 1, log_odds=logit(0.001))
    assert math.isnan(found.deviance)
    assert found.deviance_reason in (NOISE, UNDETECTED)
    assert found.auc_reason == NOISE
    assert "0." not in str(found)


def test_a_measure_is_shown_with_its_interval_or_as_not_known():
    half = Quality(0.5, 0.4, 0.6, *[math.nan] * 3, False, (1.0,), (0.0,), None, UNDETECTED)
    assert str(half).startswith("R² 0.500 (0.400 to 0.600), RMSE not")
    assert "on rows held out" in str(half)
    counts = (0.5,), (1.0, 2.0), (2.0, 1.0)
    poor = OutcomeQuality(0.48, 0.44, 0.52, 1.4, 1.3, 1.5, 1.39, True, *counts)
    assert str(poor).endswith("By its AUC and deviance the model is no better than a constant.")


# --- bounds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [PrivateLasso, PrivateOLS])
def test_bounds_twice_the_range_are_not_warned_about(kind):
    """Skewed and zero-inflated columns, none of which lies beyond its bounds: no warning in 10.

    A column whose point mass is within 1 % of the width of the bounds from an end is reported;
    where bounds are placed at random around the range, that is 2 % of such columns.
    """
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = np.column_stack(
            (
                rng.normal(size=3000),
                np.exp(rng.normal(0, 1.5, 3000)),
                np.where(rng.random(3000) < 0.8, 0.0, rng.exponential(size=3000)),
                rng.poisson(0.3, 3000),
            )
        )
        y = np.exp(X[:, 0] / 2 + rng.normal(size=3000))
        ends = np.stack((X.min(axis=0), X.max(axis=0)), axis=1)
        place = rng.uniform(0.05, 0.95, (5, 1))
        extra = np.ptp(np.vstack((ends, (y.min(), y.max()))), axis=1)[:, None]
        low_high = np.vstack((ends, (y.min(), y.max()))) + extra * np.hstack((-place, 1 - place))
        model = kind(
            epsilon=1,
            delta=1e-6,
            feature_bounds=low_high[:4],
            target_bounds=tuple(low_high[4]),
            random_state=seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y)
        assert not any(one.end for one in model.bounds_notes_)
