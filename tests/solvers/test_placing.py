"""Released bounds: what one row can change, that they find loose data, and where they stay put."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpscreen.privacy import ZCDP, Accountant, SeededNoise
from dpscreen.privacy.releases import excess_change
from dpscreen.rows.source import ArrayRows
from dpscreen.solvers import base, rules
from dpscreen.solvers import placing as bounds
from dpscreen.solvers.base import FINE, Spending


def spending(
    n_rows: int, n_features: int = 1, *, rho: float = 0.5, seed: str = "bounds"
) -> Spending:
    limit = ZCDP(Fraction(rho))
    accountant = Accountant(SeededNoise(seed), limit=limit)
    return Spending(accountant, limit, rules.Regime(n_rows, n_features, rho))


def rows_of(X) -> ArrayRows:
    return ArrayRows(X, np.zeros(len(X)))


def columns_of(X, public) -> bounds.FeatureCounts:
    return bounds.FeatureCounts(rows_of(X), public)


def target_of(y) -> ArrayRows:
    return ArrayRows(np.zeros((len(y), 1)), np.asarray(y, dtype=float))


# --- sensitivities --------------------------------------------------------------------------------


@given(total=st.integers(-(10**12), 10**12), most=st.integers(1, 10**9), data=st.data())
def test_lemma_13_flooring_a_sum_adds_nothing_to_its_sensitivity(total, most, data):
    change = data.draw(st.integers(-most, most))
    assert abs(FINE * (total + change) // most - FINE * total // most) <= FINE


def test_lemma_13_is_attained():
    assert FINE * (5 + 7) // 7 - FINE * 5 // 7 == FINE


def test_counts_over_all_cells_move_by_one_row_of_cells():
    """Lemma 12 for pooled counts, by brute force over rows of two features."""
    public = np.array([[-1.0, 1.0], [-1.0, 1.0]])
    part, whole = base.HIGH.as_integer_ratio()
    most = 0
    for first, extra in itertools.product(itertools.product((-0.9, 0.1, 0.6), repeat=2), repeat=2):
        here = columns_of(np.array([first]), public).pooled()
        there = columns_of(np.array([first, extra]), public).pooled()
        for distance in (0.05, 0.5, 1.0):
            inside = [bounds.near_the_middle(pooled, distance) for pooled in (here, there)]
            change = whole * (inside[1] - inside[0]) - part * 2
            assert 0 <= inside[1] - inside[0] <= 2
            most = max(most, abs(change))
    assert most == 2 * excess_change(base.HIGH)


def test_each_rows_share_of_a_count_depends_on_that_row_alone():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9000, 3))
    public = np.array([[-4.0, 4.0]] * 3)
    origin, centres, distances = np.array([0.1, -0.2, 0.0]), np.zeros(3), np.array([0.1, 0.5])

    def counts(rows):
        columns = columns_of(rows, public)
        grid, near = columns.below_grid(origin, 0.5, 8), columns.within(centres, distances)
        return np.concatenate((grid.ravel(), near.ravel(), columns.pooled()))

    np.testing.assert_array_equal(counts(X), counts(X[:4097]) + counts(X[4097:]))


def test_counts_on_a_grid_are_counts():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300_000, 3))  # enough for several threads
    public = np.array([[-4.0, 4.0], [-2.0, 6.0], [0.0, 1.0]])
    u = (np.clip(X, public[:, 0], public[:, 1]) - public.mean(axis=1)) / np.ptp(public, axis=1) * 2
    columns, origin = columns_of(X, public), np.array([-0.25, 0.0, 0.5])
    grid = columns.below_grid(origin, 0.5, 8)
    for k in range(9):
        np.testing.assert_array_equal(grid[:, k], (u < origin + k / 16).sum(axis=0))
    np.testing.assert_array_equal(grid[:, 9], np.full(3, len(X)))
    near = columns.within(origin, np.array([0.1, 0.3, 2.0]))
    for k, distance in enumerate((0.1, 0.3, 2.0)):
        np.testing.assert_array_equal(near[:, k], (np.abs(u - origin) < distance).sum(axis=0))
    assert bounds.near_the_middle(columns.pooled(), 0.25) == (np.abs(u) < 0.25).sum()


@given(seed=st.integers(0, 99), depth=st.sampled_from([1, 2, 3, 6]))
def test_a_tabled_search_sees_what_looking_at_each_level_would_see(seed, depth):
    rng = np.random.default_rng(seed)
    X, public = rng.normal(size=(200, 4)), np.array([[-4.0, 4.0]] * 4)
    columns = columns_of(X, public)
    table = bounds.TabledSearch(columns.below_grid, bounds.MEDIAN, 2.0, depth=depth)
    low, high = np.full(4, -1.0), np.full(4, 1.0)
    for _ in range(6):
        middle = low / 2 + high / 2
        np.testing.assert_array_equal(table(middle), 2 * (middle > X / 4).sum(axis=0) - len(X))
        up = rng.random(4) < 0.5  # whatever the noise decides
        low, high = np.where(up, middle, low), np.where(up, high, middle)


# --- the target -----------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [4.0, 16.0, 64.0])
@pytest.mark.parametrize("side", [0.0, 0.8])
def test_a_target_is_found_in_loose_bounds(width, side):
    y = np.random.default_rng(3).normal(7.0, 2.0, size=3000)
    public = np.array([7 - 10 * width * (1 - side), 7 + 10 * width * (1 + side)])
    place = bounds.place_target(spending(3000), target_of(y), public)
    assert place.bounds.mean() == pytest.approx(7, abs=0.3)
    assert place.deviation == pytest.approx(2, rel=0.25)


def test_few_rows_keep_bounds_that_seem_to_fit():
    y = np.random.default_rng(4).normal(0.0, 1.0, size=60)
    paid = spending(60, rho=0.3)
    place = bounds.place_target(paid, target_of(y), np.array([-5.0, 5.0]))
    assert place.bounds.mean() == 0
    purposes = [use.purpose for use in paid.accountant.uses]
    assert purposes == ["the target's scale", "rows near the middle"]


def test_very_few_rows_are_asked_for_a_scale_only():
    paid = spending(20, rho=0.3)
    place = bounds.place_target(paid, target_of(np.linspace(-1, 1, 20)), np.array([-5.0, 5.0]))
    assert place.bounds.mean() == 0
    assert [use.purpose for use in paid.accountant.uses] == ["the target's scale"]


def test_a_target_off_the_middle_is_not_taken_for_one_that_fits():
    """Both have the same median distance from the middle; the count near the middle tells."""
    y = np.random.default_rng(5).normal(2.0, 0.1, size=150)
    place = bounds.place_target(spending(150, rho=0.3), target_of(y), np.array([-7.0, 7.0]))
    assert place.bounds.mean() == pytest.approx(2, abs=0.4)
    assert place.deviation < 0.5


@pytest.mark.parametrize("y", [np.zeros(500), np.full(500, 99.0), np.array([1e308, -1e308] * 250)])
def test_odd_targets_get_proper_bounds(y):
    for public in ([-1.0, 1.0], [-1e308, 1e308], [1e9, 1e9 + 1e-6]):
        low, high = bounds.place_target(spending(500), target_of(y), np.array(public)).bounds
        assert np.isfinite([low, high]).all()
        assert high / 2 - low / 2 > 0


# --- the features ---------------------------------------------------------------------------------


def columns_of_all_kinds(n_rows=4000):
    rng = np.random.default_rng(5)
    return np.column_stack(
        (
            rng.normal(0, 1, n_rows),
            rng.normal(50, 0.1, n_rows),
            rng.exponential(3, n_rows),
            rng.integers(0, 2, n_rows),
            np.full(n_rows, 2.0),
        )
    )


def test_features_are_found_in_loose_bounds():
    X = columns_of_all_kinds()
    public = np.array([[-30.0, 90.0], [0.0, 64.0], [-100.0, 300.0], [-20.0, 20.0], [0.0, 9.0]])
    found = bounds.place_features(spending(4000, 5), columns_of(X, public))
    inside = ((found[:, 0] <= X) & (found[:, 1] >= X)).mean(axis=0)
    assert (inside[[0, 1, 2, 4]] > 0.85).all()
    width = (found[:, 1] - found[:, 0]) / 2
    assert (width[:3] < 6 * X.std(axis=0)[:3]).all()
    assert np.median(X, axis=0)[:2] == pytest.approx(found.mean(axis=1)[:2], abs=0.5)


def test_good_bounds_are_left_alone_and_loose_ones_are_not():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(1000, 20))
    good = np.array([[-3.0, 3.0]] * 20)
    np.testing.assert_array_equal(
        bounds.tightened(spending(1000, 20), rows_of(X), good, always=False), good
    )
    for public in (good * 16, good * 16 + 24, np.array([[-3.0, 45.0]] * 20)):
        found = bounds.tightened(spending(1000, 20), rows_of(X), public, always=False)
        assert (found[:, 1] - found[:, 0]).max() < 20
        assert np.abs(found.mean(axis=1)).max() < 1.5


def test_where_single_features_cannot_be_seen_all_are_narrowed_together():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(300, 400))
    paid = spending(300, 400, rho=0.2)
    assert not rules.can_place_features(paid.regime)
    found = bounds.tightened(paid, rows_of(X), np.array([[-48.0, 48.0]] * 400), always=False)
    assert np.ptp(found[:, 1]) == 0
    assert 1.5 < found[0, 1] < 6


@given(noise=st.floats(1e-3, 0.2), seed=st.integers(0, 100))
def test_shrinking_takes_noise_off_and_leaves_outliers(noise, seed):
    rng = np.random.default_rng(seed)
    raw = np.append(rng.normal(-4, noise / 0.31, size=20), -11.9)
    found = bounds.shrunk_exponents(raw, noise)
    assert found[:20].std() <= raw[:20].std() + 1e-12
    assert found[20] == pytest.approx(-11.9, abs=0.3 + 6 * noise)
    centres = bounds.shrunk_centres(np.array([0.0, 1e-9, 0.9]), np.full(3, -4.0), noise)
    assert centres[0] == centres[1] == 0
    assert centres[2] == pytest.approx(0.9, abs=0.1)
