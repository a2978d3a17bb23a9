"""Columns that are one point for the most: no coefficient that declared bounds could not use."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpscreen import PrivateLasso, PrivateLogistic

pytestmark = [
    pytest.mark.filterwarnings("ignore::dpscreen.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::dpscreen.WeakDeltaWarning"),
    pytest.mark.filterwarnings("ignore::dpscreen.BoundsWarning"),
]


def _mostly(share, point, others):
    return lambda rng, n: np.where(rng.random(n) < share, point, others(rng, n))


def _spikes(rng, n):
    return np.exp(rng.normal(7, 1.5, n))


POINTS = {
    "constant": (lambda _, n: np.full(n, 7.0), (0, 100)),
    "constant at an end": (lambda _, n: np.zeros(n), (0, 50)),
    "two points": (_mostly(0.95, 0.0, lambda _, n: np.ones(n)), (0, 50)),
    "a rare one": (_mostly(0.99, 0.0, lambda _, n: np.ones(n)), (0, 50)),
    "rare counts": (lambda rng, n: rng.poisson(0.03, n).astype(float), (0, 50)),
    "rare spikes": (_mostly(0.95, 0.0, _spikes), (0, 1e5)),
    "spikes": (_mostly(0.8, 0.0, _spikes), (0, 1e5)),
    "in the middle": (_mostly(0.9, 40.0, lambda rng, n: rng.normal(50, 10, n)), (0, 100)),
    "few values": (lambda rng, n: rng.integers(0, 4, n).astype(float), (0, 50)),
    "heavy tails": (lambda rng, n: 2 * rng.standard_cauchy(n), (-1000, 1000)),
}
TARGET = (-60.0, 60.0)


def rows_with(columns, n_rows, seed, *, category):
    """Return rows with some columns, two normal ones, and a 0/1 one if asked, and a target."""
    rng = np.random.default_rng(seed)
    given_columns = [make(rng, n_rows) for make, _ in columns]
    normal = rng.normal(size=(n_rows, 2))
    level = (rng.random((n_rows, 1)) < 0.3).astype(float)
    X = np.column_stack((*given_columns, normal, level)[: None if category else -1])
    y = 2 * normal[:, 0] - normal[:, 1] + level[:, 0] + rng.normal(0, 3, n_rows)
    public = [pair for _, pair in columns] + [(-20, 20)] * 2 + [(0, 1)] * category
    return X, y, public


@settings(max_examples=30)
@given(
    names=st.lists(st.sampled_from(sorted(POINTS)), min_size=1, max_size=5),
    n_rows=st.sampled_from([200, 400, 2000, 20_000]),
    epsilon=st.sampled_from([0.5, 1.0, 5.0, 10.0]),
    seed=st.integers(0, 10**6),
    category=st.booleans(),
)
@example(["rare counts", "two points", "rare spikes"], 2000, 5.0, 2, False)
@example(["rare counts", "two points", "rare spikes"], 20_000, 1.0, 1, True)
@example(["a rare one", "constant", "in the middle"], 20_000, 5.0, 1, True)
@example(["constant at an end", "rare counts", "two points"], 400, 1.0, 0, False)
def test_no_coefficient_is_larger_than_declared_bounds_can_use(
    names, n_rows, epsilon, seed, category
):
    """Slivers of bounds gave up to sixty times the target's declared width."""
    columns = [POINTS[name] for name in names]
    X, y, public = rows_with(columns, n_rows, seed, category=category)
    model = PrivateLasso(
        epsilon=epsilon,
        delta=1e-6,
        feature_bounds=public,
        target_bounds=TARGET,
        random_state=seed,
    ).fit(X, y)
    low, high = np.array(public, dtype=float).T
    assert (low <= model.feature_bounds_[:, 0]).all()
    assert (model.feature_bounds_[:, 1] <= high).all()
    assert np.isfinite(model.coef_).all()
    reach = np.abs(model.coef_) * (high - low)
    assert (reach[: len(names)] <= 3 * (TARGET[1] - TARGET[0])).all()


@pytest.mark.parametrize("n_rows", [1000, 2000, 12_000])
@pytest.mark.parametrize("epsilon", [1.0, 5.0])
@pytest.mark.parametrize("others", [(-3, 3), (-50, 50)])
def test_a_column_not_seen_to_vary_gets_nothing(n_rows, epsilon, others):
    rng = np.random.default_rng(n_rows)
    normal = rng.normal(size=(n_rows, 3))
    X = np.column_stack((np.full(n_rows, 50.0), normal, np.full(n_rows, 7.0)))
    signal = 2 * normal[:, 0] - normal[:, 1]
    setting = {"epsilon": epsilon, "delta": 1e-6, "random_state": 3}
    public = [(0, 100), *[others] * 3, (0, 100)]
    y = signal + rng.normal(0, 3, n_rows)
    linear = PrivateLasso(feature_bounds=public, target_bounds=TARGET, **setting).fit(X, y)
    yes = (rng.random(n_rows) < 1 / (1 + np.exp(-signal))).astype(int)
    odds = PrivateLogistic(feature_bounds=public, **setting).fit(X, yes)
    for model in (linear, odds):
        assert np.ravel(model.coef_)[[0, 4]] == pytest.approx(0, abs=0.002)


@pytest.mark.parametrize("looseness", [16, 100, 1000])
@pytest.mark.parametrize("others", [(-3, 3), (-50, 50)])
def test_a_narrow_column_is_still_placed(looseness, others):
    """Whatever the bounds of the columns beside it."""
    rng = np.random.default_rng(looseness)
    normal, deviation = rng.normal(size=(20_000, 3)), 30 / looseness
    X = np.column_stack((rng.normal(30, deviation, 20_000), normal))
    y = 2 * X[:, 0] / deviation + 2 * normal[:, 0] + rng.normal(0, 3, 20_000)
    y = y - 60 / deviation
    model = PrivateLasso(
        epsilon=1.0,
        delta=1e-6,
        feature_bounds=[(-50, 150), *[others] * 3],
        target_bounds=TARGET,
        random_state=4,
    ).fit(X, y)
    assert model.coef_[0] * deviation == pytest.approx(2, rel=0.15)


OFF_A_POINT = {
    "exponential": (_mostly(0.95, 0.0, lambda rng, n: rng.exponential(5, n)), (0, 200)),
    "lognormal": (_mostly(0.95, 0.0, lambda rng, n: rng.lognormal(1.5, 0.8, n)), (0, 200)),
    "counts": (_mostly(0.97, 0.0, lambda rng, n: 1.0 + rng.poisson(1, n)), (0, 200)),
    "hours": (_mostly(0.9, 40.0, lambda rng, n: rng.choice([20.0, 50.0], n)), (0, 168)),
}


@pytest.mark.parametrize("name", sorted(OFF_A_POINT))
def test_the_effect_of_a_few_rows_off_a_point_is_found(name):
    """In declared bounds they weighed nothing: the coefficient was 0, and R² .17 where .84 is."""
    rng, (make, declared) = np.random.default_rng(11), OFF_A_POINT[name]
    X = np.column_stack((make(rng, 10_000), rng.normal(5, 3, (10_000, 7))))
    effect = 2 / X[:, 0].std()
    signal = X @ [effect, 0.3, -0.2, 0, 0, 0, 0, 0]
    setting = {"epsilon": 1.0, "delta": 1e-6, "random_state": 1}
    public = [declared, *[(-20, 40)] * 7]
    y = signal - signal.mean() + rng.normal(size=10_000)
    linear = PrivateLasso(feature_bounds=public, target_bounds=(-60, 60), **setting).fit(X, y)
    assert linear.coef_[0] == pytest.approx(effect, rel=0.15)
    assert linear.score(X, y) > 0.8
    yes = (rng.random(10_000) < 1 / (1 + np.exp(signal.mean() - signal))).astype(int)
    odds = PrivateLogistic(feature_bounds=public, **setting).fit(X, yes)
    assert np.ravel(odds.coef_)[0] > 0.2 * effect


@pytest.mark.parametrize("seed", [1, 3])
def test_a_slope_is_not_drawn_on_to_where_it_was_not_measured(seed):
    """Mostly zero, with a long tail in which the effect has levelled off: R² was below -1.

    Clipped residuals measure the slope where most rows are; bounds of 64 scales took it farther.
    """
    rng = np.random.default_rng(seed)
    visits = np.where(rng.random(4000) < 0.7, 0.0, np.ceil(rng.lognormal(0.5, 1.2, 4000)))
    X = np.column_stack((visits, rng.normal(70, 10, 4000), rng.normal(5, 2, 4000)))
    y = np.minimum(visits, 4) + 0.05 * X[:, 1] - 0.2 * X[:, 2] + rng.normal(0, 0.5, 4000)
    model = PrivateLasso(
        epsilon=5.0,
        delta=1e-6,
        feature_bounds=[(-50, 500), (0, 150), (-10, 30)],
        target_bounds=(-20, 40),
        random_state=seed,
    ).fit(X, y)
    assert model.score(X, y) > -0.4


def test_effects_of_many_columns_that_are_mostly_zero_are_found():
    """Of eight, at a tenth of the rows each: none was seen to vary, and R² was .05."""
    rng = np.random.default_rng(8)
    X = rng.poisson(0.2, (2500, 8)) * rng.choice([1.0, 2.0], (2500, 8))
    y = X @ [1, 1, 0.8, 0, 0, 0, 0, 0] + rng.normal(0, 0.3, 2500)
    public = [(-5, 15)] * 8
    for seed in range(3):
        setting = {"epsilon": 1.0, "delta": 1e-6, "random_state": seed}
        model = PrivateLasso(feature_bounds=public, target_bounds=(-10, 20), **setting).fit(X, y)
        assert model.score(X, y) > 0.5


def test_a_share_between_0_and_1_competes_in_its_own_scale():
    """As a column of 0 and 1 it would have a deviation of .3, and get a quarter of its effect."""
    rng = np.random.default_rng(5)
    narrow, level = rng.normal(0.1, 0.014, 12_000), rng.random(12_000) < 0.05
    X = np.column_stack((narrow, rng.beta(2, 5, 12_000), level, rng.normal(size=12_000)))
    y = X @ [100, 5, 4, 1] + rng.normal(0, 1.5, 12_000)
    model = PrivateLasso(
        epsilon=1.0,
        delta=1e-6,
        feature_bounds=[(0, 1)] * 3 + [(-10, 10)],
        target_bounds=(-50, 100),
        random_state=7,
    ).fit(X, y)
    assert model.coef_ == pytest.approx([100, 5, 4, 1], rel=0.15)
    np.testing.assert_array_equal(model.feature_bounds_[:3], [[0, 1]] * 3)


@pytest.mark.parametrize("n_rows", [800, 5000])
def test_a_share_that_is_the_same_in_all_rows_gets_nothing(n_rows):
    """Truths that no cell spells as declared count as one half: effects of thousands were told."""
    rng = np.random.default_rng(n_rows)
    X = np.column_stack((np.full(n_rows, 0.5), rng.normal(size=(n_rows, 2))))
    y = 1000 * X[:, 1] + rng.normal(0, 500, n_rows)
    for seed in range(4):
        model = PrivateLasso(
            epsilon=3.0,
            delta=1e-6,
            feature_bounds=[(0, 1), (-5, 5), (-5, 5)],
            target_bounds=(-10_000, 10_000),
            random_state=seed,
        ).fit(X, y)
        assert model.coef_[0] == 0


@pytest.mark.parametrize("share", [0.5, 0.38])
def test_slopes_of_a_target_of_0_and_1_are_those_of_its_mean(share):
    """Not of its median, to which clips that follow the middle residual lead: .99, not .44."""
    rng = np.random.default_rng(1)
    X = np.column_stack((rng.random(5000) < 0.5, rng.normal(size=(5000, 3)))).astype(float)
    odds = np.log(share / (1 - share)) + 2 * (X[:, 0] - 0.5) + 0.5 * X[:, 1]
    y = (rng.random(5000) < 1 / (1 + np.exp(-odds))).astype(float)
    slopes = np.linalg.lstsq(np.column_stack((X, np.ones(5000))), y, rcond=None)[0]
    for seed in range(4):
        model = PrivateLasso(
            epsilon=1.0,
            delta=1e-6,
            feature_bounds=[(0, 1), *[(-5, 5)] * 3],
            target_bounds=(0, 1),
            random_state=seed,
        ).fit(X, y)
        assert model.coef_[0] == pytest.approx(slopes[0], rel=0.5)
        assert model.score(X, y) > 0.18


# --- bounds that say nothing ----------------------------------------------------------------------


def narrow_table(half_width, off):
    """Five normal columns of deviation 1 in bounds that are so wide, and may be off-centre."""
    rng = np.random.default_rng(0)
    X = rng.normal(0, 1, (3000, 5))
    y = X @ [2.0, -1.0, 0.5, 0.0, 0.0] + rng.normal(0, 1, 3000)
    bounds = half_width * np.array([-1 + off, 1 + off])
    return X, y, {"feature_bounds": tuple(bounds), "target_bounds": tuple(2.5 * bounds)}


@pytest.mark.parametrize("off", [0.0, 0.3])
@pytest.mark.parametrize("half_width", [4e3, 4e4])
def test_columns_are_found_in_bounds_a_thousand_times_too_wide(half_width, off):
    """Where the middle of a window was an edge between two cells, 4 of 10 fits had R² .2 to .7."""
    X, y, bounds = narrow_table(half_width, off)
    for seed in range(3):
        model = PrivateLasso(epsilon=1.0, delta=1e-6, **bounds, random_state=seed).fit(X, y)
        assert model.score(X, y) > 0.82


@pytest.mark.filterwarnings("ignore::dpscreen.BoundsWarning")
def test_bounds_a_million_times_too_wide_leave_a_constant_and_a_note():
    """The columns cannot be found; the intercept was off by hundreds of the target's deviations."""
    X, y, bounds = narrow_table(4e6, 0.0)
    for seed in range(3):
        model = PrivateLasso(epsilon=1.0, delta=1e-6, **bounds, random_state=seed).fit(X, y)
        assert not model.coef_.any()
        assert model.score(X, y) > -0.2
        assert model.bounds_notes_[0] == (
            "x0: declared (-4e+06, 4e+06); not seen to vary, so it takes no part"
        )
        assert "not seen to vary" in str(model.summary()) or "on one point" in " ".join(
            str(model.summary()).split()
        )


def test_columns_that_are_mostly_zero_keep_their_effects_where_few_rows_hide_that_they_vary():
    """Mean R² of eight fits: .58 when the refit had to see each of them vary, .91 so."""
    scores = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = np.where(rng.random((600, 40)) < 0.15, rng.choice([1.0, 2.0, 3.0], (600, 40)), 0.0)
        y = X[:, 0] - X[:, 1] + X[:, 2] + rng.normal(0, 0.3, 600)
        model = PrivateLasso(
            epsilon=3.0,
            delta=1e-3,
            feature_bounds=(0, 3),
            target_bounds=(-6, 6),
            random_state=seed,
        ).fit(X[:300], y[:300])
        scores.append(model.score(X[300:], y[300:]))
    assert np.mean(scores) > 0.8
