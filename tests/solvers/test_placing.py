"""Released places: what one row can change, that they find loose data, and where they stay put."""

from __future__ import annotations

import itertools
from dataclasses import fields, replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpscreen import PrivateLasso
from dpscreen.privacy import ZCDP, Accountant, NoisyMax, SeededNoise
from dpscreen.privacy.accountant import MEDIAN
from dpscreen.rows.source import ArrayRows
from dpscreen.rows.sums import LEVELS, ColumnMap, level_moments
from dpscreen.solvers import placing as bounds
from dpscreen.solvers import rules
from dpscreen.solvers.base import FINE, Choices, Spending
from dpscreen.solvers.zoom import OCTAVES, Belief, OffPoints, templates
from tools.noise import ScriptedAccountant

pytestmark = [
    pytest.mark.filterwarnings("ignore::dpscreen.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::dpscreen.WeakDeltaWarning"),
    pytest.mark.filterwarnings("ignore::dpscreen.BoundsWarning"),
]


def spending(
    n_rows: int, n_features: int = 1, *, rho: float = 0.5, seed: str = "bounds"
) -> Spending:
    limit = ZCDP(Fraction(rho))
    accountant = Accountant(SeededNoise(seed), limit=limit)
    return Spending(accountant, limit, rules.Regime(n_rows, n_features, rho))


def rows_of(X) -> ArrayRows:
    return ArrayRows(X, np.zeros(len(X)))


def columns_of(X, public) -> bounds.NumericColumns:
    return bounds.NumericColumns(rows_of(X), ColumnMap.of_bounds(public))


def target_of(y) -> ArrayRows:
    return ArrayRows(np.zeros((len(y), 1)), np.asarray(y, dtype=float))


def kinds_of(public) -> bounds.FeatureKinds:
    binary = bounds.is_yes_no(public)
    return bounds.FeatureKinds(np.flatnonzero(~binary), np.flatnonzero(binary))


def placed(X, public, *, n_rows=None, rho=0.5, seed="bounds") -> bounds.Places:
    paid = spending(n_rows or len(X), len(public), rho=rho, seed=seed)
    kinds = kinds_of(public)
    places = bounds.Places.unplaced(public)
    return bounds.place_features(paid, rows_of(X), places, kinds, seen=kinds.numeric.size > 0)


# --- sensitivities --------------------------------------------------------------------------------


@given(total=st.integers(-(10**12), 10**12), most=st.integers(1, 10**9), data=st.data())
def test_lemma_13_flooring_a_sum_adds_nothing_to_its_sensitivity(total, most, data):
    change = data.draw(st.integers(-most, most))
    assert abs(FINE * (total + change) // most - FINE * total // most) <= FINE


def test_lemma_13_is_attained():
    assert FINE * (5 + 7) // 7 - FINE * 5 // 7 == FINE


class Scripted(ScriptedAccountant):
    def answer(self, mechanism, values, purpose):
        if isinstance(mechanism, NoisyMax):
            return int(self.rng.integers(len(values)))
        answer = self.rng.normal(30, 20, size=values.size)
        if purpose == "the features' histograms":  # narrow columns, so that there is more to see
            cells = answer.reshape(-1, rules.HISTOGRAM_CELLS)
            again = any(of == purpose for _, _, of in self.given[:-1])
            cells[again:, 0] += 10**5
            wide = np.argmin(np.abs(templates().centres) + np.abs(templates().scales - 0.3))
            cells[:again] += 10**5 * templates().shares[wide]
        return answer


def scripted_placing(X, y, public, seed, *, rich):
    """Return what every mechanism of a placing is given, and places, the answers being scripted."""
    regime = rules.Regime(10**5 if rich else 150, X.shape[1], 0.5)
    paid = Spending(Scripted(seed), ZCDP(Fraction(1, 2)), regime)
    paid = paid if rich else paid.counted(len(X))
    paid = Spending(paid.accountant, paid.limit, regime)  # rules as if another number came out
    bounds.place_target(paid, ArrayRows(X, y), np.array([-2.0, 2.0]))
    kinds = kinds_of(public)
    unplaced = bounds.Places.unplaced(public)
    places = bounds.place_features(paid, ArrayRows(X, y), unplaced, kinds, seen=True)
    return paid.accountant.given, places


@pytest.mark.parametrize("rich", [True, False])
def test_lemmas_22_and_46_no_release_moves_further_than_is_booked(rich):
    """Neighbouring rows under one transcript; extreme rows come close to the bounds."""
    rng = np.random.default_rng(33)
    public = np.array([[-3.0, 5.0], [0.0, 1.0], [-1.0, 1.0], [1.0, 2.0]])
    corners = list(itertools.product(*public, (0, 1)))
    closest: dict[str, float] = {}
    for trial, (*corner, side) in enumerate(itertools.chain(corners, corners)):
        n = trial % 5
        X, y = rng.uniform(*public.T, size=(n, 4)), rng.uniform(-2, 2, size=n)
        place = int(rng.integers(n + 1))
        more = np.insert(X, place, corner, axis=0), np.insert(y, place, (-2.0, 2.0)[side])
        before, _ = scripted_placing(X, y, public, trial, rich=rich)
        after, _ = scripted_placing(*more, public, trial, rich=rich)
        for (mechanism, old, purpose), (same, new, _) in zip(before, after, strict=True):
            assert mechanism == same
            move = (new - old).astype(float)
            size = np.abs(move).max() if isinstance(mechanism, NoisyMax) else np.linalg.norm(move)
            share = size * getattr(mechanism, "unit", 1.0) / mechanism.sensitivity
            closest[purpose] = max(closest.get(purpose, 0.0), share)
    assert max(closest.values()) <= 1
    assert min(closest.values()) > 0.6
    assert {"the features' histograms", "the features' means and mean squares"} <= set(closest)
    assert "the features' distances from points" in closest
    assert ("the features' tails" in closest) == rich
    assert ("the number of rows" in closest) != rich


@given(
    low=st.integers(-(2**53), 2**53 - 1) | st.integers(2**52, 2**53 - 1),
    row=st.floats(allow_infinity=False, allow_nan=False) | st.integers(-2, 2),
)
@example(low=2**52 + 1, row=0)
@example(low=2**52 + 1, row=1)
@example(low=2**53 - 1, row=1)
def test_lemma_22_holds_for_bounds_next_to_each_other_wherever_they_are(low, row):
    """From 2^52 on their middle is no float: mapped, one end would be 0, and the other 2."""
    public = np.array([[low, low + 1.0]])
    assert bounds.is_yes_no(public).all()
    rows = rows_of(np.array([[low + row]], dtype=float))
    moved = bounds.centred_moments(rows, public, np.arange(1), np.array([1]))
    assert np.linalg.norm(moved) <= bounds.moments_change(0, 1) * 2 * LEVELS


def test_yes_and_no_are_whole_numbers_next_to_each_other():
    pairs = [(0, 1), (1, 2), (-1, 0), (2**53 - 1, 2**53), (0.5, 1.5), (0, 2), (2**53, 2**53 + 2)]
    told = [True, True, True, True, False, False, False]
    assert bounds.is_yes_no(np.array(pairs, dtype=float)).tolist() == told


def test_a_rare_level_is_offered_whichever_of_1_and_2_it_is():
    """Of 0 and 1 it is 1, and one that is 1 in all rows is none; of 1 and 2 nobody says which."""
    rare = np.zeros((3000, 1))
    for ends, moving in (((0.0, 1.0), (True, False)), ((1.0, 2.0), (True, True))):
        found = [placed(rare + end, np.array([ends])).moving.size > 0 for end in ends]
        assert tuple(found) == moving


@given(
    low=st.integers(0, 2**20),
    width=st.integers(1, 2**22),
    size=st.sampled_from([1.0, 1.7e18]),
    centre=st.floats(-1.2, 1.2),
    row=st.integers(-(2**20), 2**22),
)
@example(low=2, width=3, size=1.0, centre=1.0, row=-2)
def test_lemma_46_a_row_is_in_one_cell_of_bounds_that_are_a_few_floats_wide(
    low, width, size, centre, row
):
    """Times in nanoseconds are 256 apart: a point at an end is rounded to beyond it."""
    step = np.spacing(size)
    declared = ColumnMap.of_bounds(size + step * np.array([[low, low + width]]))
    at = replace(declared, centres=declared.centres + declared.half_widths * centre)
    counts = bounds.counts_by_side(rows_of(np.array([[size + step * (low + row)]])), at)
    assert counts.sum() == 1
    assert counts.min() == 0


@pytest.mark.parametrize("rich", [True, False])
def test_places_are_made_of_releases_alone(rich):
    """Rows all over the bounds, and rows that are all at one end: the same where answers are."""
    public = np.array([[-3.0, 5.0], [0.0, 1.0], [-1.0, 1.0]])
    X, y = np.random.default_rng(9).uniform(*public.T, size=(3000, 3)), np.zeros(3000)
    ends = np.tile(public[:, 0], (20, 1))
    _, spread = scripted_placing(X, y, public, 1, rich=rich)
    _, at_ends = scripted_placing(ends, y[:20], public, 1, rich=rich)
    for field in fields(bounds.Places):
        np.testing.assert_array_equal(getattr(spread, field.name), getattr(at_ends, field.name))


def test_moments_are_those_of_the_lattice():
    rng = np.random.default_rng(2)
    X, public = rng.normal(size=(300, 3)), np.array([[-1.0, 2.0], [0.0, 1.0], [-4.0, 4.0]])
    u = (np.clip(X, *public.T) - public.mean(axis=1)) / np.ptp(public, axis=1) * 2
    levels = np.trunc(u * LEVELS).astype(np.int64)
    first, second = level_moments(X, ColumnMap.of_bounds(public))
    np.testing.assert_array_equal(first, levels.sum(axis=0))
    np.testing.assert_array_equal(second, (levels**2 // LEVELS).sum(axis=0))


def test_each_rows_share_of_a_count_depends_on_that_row_alone():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9000, 3))
    public = np.array([[-4.0, 4.0]] * 3)
    middles, half_widths = np.array([0.1, -0.2, 0.0]), np.array([0.5, 1.0, 0.01])

    def counts(rows):
        columns = columns_of(rows, public)
        near = columns.within(middles, np.array([0.1, 0.5]))
        return np.concatenate((columns.histograms(middles, half_widths).ravel(), near.ravel()))

    np.testing.assert_array_equal(counts(X), counts(X[:4097]) + counts(X[4097:]))


def test_histograms_and_distances_are_counts():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300_000, 3))  # enough for several threads
    public = np.array([[-4.0, 4.0], [-2.0, 6.0], [0.0, 1.0]])
    u = (np.clip(X, public[:, 0], public[:, 1]) - public.mean(axis=1)) / np.ptp(public, axis=1) * 2
    columns, middles = columns_of(X, public), np.array([-0.25, 0.0, 0.5])
    found = columns.histograms(middles, np.array([0.75, 0.375, 1.5]))
    for j, half_width in enumerate((0.75, 0.375, 1.5)):
        edges = middles[j] + half_width * np.linspace(-1, 1, 25)
        edges[[0, -1]] = -np.inf, np.inf
        np.testing.assert_array_equal(found[j], np.histogram(u[:, j], edges)[0])
    near = columns.within(middles, np.array([0.1, 0.3, 2.0]))
    for k, far in enumerate((0.1, 0.3, 2.0)):
        np.testing.assert_array_equal(near[:, k], (np.abs(u - middles) < far).sum(axis=0))


@given(seed=st.integers(0, 99), depth=st.sampled_from([1, 2, 3, 6]))
def test_a_tabled_search_sees_what_looking_at_each_level_would_see(seed, depth):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 4))

    def below(origin, width, n_cells):
        edges = origin[:, None] + width * np.arange(n_cells + 1) / n_cells
        counts = (X[:, :, None] < edges).sum(axis=0)
        return np.concatenate((counts, np.full((4, 1), len(X))), axis=1)

    table = bounds.TabledSearch(below, MEDIAN, 2.0, depth=depth)
    low, high = np.full(4, -1.0), np.full(4, 1.0)
    for _ in range(6):
        middle = low / 2 + high / 2
        np.testing.assert_array_equal(table(middle), 2 * (middle > X).sum(axis=0) - len(X))
        up = rng.random(4) < 0.5  # whatever the noise decides
        low, high = np.where(up, middle, low), np.where(up, high, middle)


# --- the target -----------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [4.0, 16.0, 64.0])
@pytest.mark.parametrize("side", [0.0, 0.8])
def test_a_target_is_found_in_loose_bounds(width, side):
    y = np.random.default_rng(3).normal(7.0, 2.0, size=3000)
    public = np.array([7 - 10 * width * (1 - side), 7 + 10 * width * (1 + side)])
    place = bounds.place_target(spending(3000), target_of(y), public)
    assert place.centre == pytest.approx(7, abs=0.3)
    assert place.deviation == pytest.approx(2, rel=0.25)


def test_few_rows_have_a_centre_that_is_in_doubt():
    paid = spending(20, rho=0.3)
    place = bounds.place_target(paid, target_of(np.linspace(-1, 1, 20)), np.array([-5.0, 5.0]))
    assert abs(place.centre) < 1
    assert 0 < place.doubt < place.deviation < 5
    purposes = [use.purpose for use in paid.accountant.uses]
    assert purposes == ["the target's centre", "the target's scale"]


@pytest.mark.parametrize("y", [np.zeros(500), np.full(500, 99.0), np.array([1e308, -1e308] * 250)])
def test_odd_targets_get_proper_places(y):
    for public in ([-1.0, 1.0], [-1e308, 1e308], [1e9, 1e9 + 1e-6]):
        place = bounds.place_target(spending(500), target_of(y), np.array(public))
        assert public[0] <= place.centre <= public[1]
        assert 0 < place.deviation < np.inf


# --- the features ---------------------------------------------------------------------------------


@pytest.mark.parametrize("rho", [0.02, 0.5, 50.0])
@pytest.mark.parametrize("width", [1.0, 16.0])
def test_features_are_found_in_loose_bounds(rho, width):
    rng = np.random.default_rng(5)
    X = np.column_stack(
        (rng.normal(0, 1, 6000), rng.normal(50, 0.5, 6000), rng.exponential(3, 6000))
    )
    tight = np.array([[-3.0, 9.0], [40.0, 55.0], [-10.0, 30.0]])
    public = tight + (width - 1) * np.array([-4.0, 12.0])
    found = placed(X, public, rho=rho)
    inside = ((found.bounds[:, 0] <= X) & (found.bounds[:, 1] >= X)).mean(axis=0)
    assert (inside > 0.85).all()
    assert np.abs(found.centres - X.mean(axis=0)) == pytest.approx(0, abs=1.5)
    assert (np.abs(np.log2(found.scales / X.std(axis=0))) < 1).all()
    assert not found.still.any()


def test_a_0_1_column_keeps_its_bounds_and_gets_its_own_scale():
    rng = np.random.default_rng(6)
    shares = np.array([0.0, 0.03, 0.5, 1.0])
    X = np.column_stack([rng.random(20_000) < share for share in shares]).astype(float)
    public = np.array([[0.0, 1.0]] * 4)
    for rho in (0.02, 10.0):
        found = placed(X, public, rho=rho)
        np.testing.assert_array_equal(found.bounds, public)
        assert found.still.tolist() == [False, False, False, True]  # a refit tells what occurs
        assert found.doubtful.tolist() == [True, False, False, True]
        assert found.centres == pytest.approx(X.mean(axis=0), abs=0.01)
        assert found.scales[1:3] == pytest.approx(X.std(axis=0)[1:3], rel=0.1)
        assert list(found.at_ends) == [(3, "upper")]


def test_where_all_rows_sit_on_one_point_the_declared_bounds_stay():
    rng = np.random.default_rng(7)
    many = np.where(rng.random(20_000) < 0.04, rng.exponential(5, 20_000), 0.0)
    public = np.array([[-20.0, 100.0], [-20.0, 100.0]])
    X = np.column_stack((many, np.full(20_000, 3.0)))
    for seed in range(3):
        found = placed(X, public, seed=f"point {seed}")
        np.testing.assert_array_equal(found.bounds[1], public[1])
        assert found.still.tolist() == [False, True]
        assert found.varying.tolist() == [True, False]
        assert found.scales[0] == pytest.approx(many.std(), rel=0.5)
        assert np.quantile(many, 0.999) < found.bounds[0, 1] < public[0, 1]


def at_a_point(n_columns) -> Belief:
    """Columns whose last look saw them at −1, in cells of 2^−12."""
    each = np.ones(n_columns)
    return Belief(-each, 1e-9 * each, -9 * each, 0.1 * each, np.log(2.0**-12) * each)


def test_rows_off_a_point_are_seen_if_they_stand_out_of_the_noise():
    """Of 20 000 constants at most 1 in 1 000 seems to vary (3e-6 for each sum of neighbours)."""
    rng, n_cells = np.random.default_rng(12), 2 * len(OCTAVES) + 1
    counts = rng.normal(0, 10, (20_000, n_cells))
    counts[:, len(OCTAVES)] += 10_000
    assert OffPoints.of(counts, 10.0, 10_000, at_a_point(20_000)).seen.mean() < 0.001
    counts[:, len(OCTAVES) + 1 + 14 : len(OCTAVES) + 1 + 18] += 40  # together 8 noises
    off = OffPoints.of(counts, 10.0, 10_000, at_a_point(20_000))
    assert off.seen.mean() > 0.99
    edges = OCTAVES[14:18]
    scale = np.sqrt(40 * (7 / 3 * edges**2).sum() / 10_000)
    assert np.median(off.scales[off.seen] / scale) == pytest.approx(1, abs=0.2)
    assert (off.reaches[off.seen] >= edges[0]).all()


@given(seed=st.integers(0, 10**6), share=st.floats(0.02, 0.2), width=st.floats(1e-3, 0.4))
def test_scales_off_a_point_are_those_of_the_rows(seed, share, width):
    """But for where in an octave rows lie: at most twice or half of it."""
    rng = np.random.default_rng(seed)
    rows = np.minimum(rng.exponential(width, 5000), 2.0) * (rng.random(5000) < share)
    columns = ColumnMap.of_bounds(np.array([[-1.0, 1.0]]))
    where = replace(columns, centres=np.array([-1.0]))
    counts = bounds.counts_by_side(rows_of(rows[:, None] - 1), where)
    assert counts.sum() == 5000
    off = OffPoints.of(counts, 0.01, 5000, at_a_point(1))
    assert off.seen.all()
    assert np.abs(np.log2(off.scales / rows.std())) < 1
    assert off.means == pytest.approx(rows.mean(), rel=0.5)


SHAPES = {
    "normal": lambda rng, n: rng.normal(size=n),
    "point": lambda rng, n: np.full(n, rng.uniform(-3, 3)),
    "two points": lambda rng, n: rng.choice([-1.0, 2.0], size=n),
    "mostly zero": lambda rng, n: rng.normal(size=n) * (rng.random(n) < 0.03),
    "heavy": lambda rng, n: rng.standard_cauchy(n) * 100,
    "at an end": lambda rng, n: np.full(n, 1e9),
    "whole": lambda rng, n: rng.integers(0, 4, n).astype(float),
    "0/1": lambda rng, n: (rng.random(n) < rng.choice([0.0, 0.01, 0.5, 1.0])).astype(float),
}


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    shapes=st.lists(st.sampled_from(sorted(SHAPES)), min_size=1, max_size=4),
    n_rows=st.sampled_from([30, 300, 3000]),
    epsilon=st.sampled_from([0.01, 1.0, 1000.0]),
    public=st.sampled_from(
        [(0.0, 1.0), (-5.0, 5.0), (1e9, 1e9 + 1e-6), (-1e50, 1e50), (0.0, 50.0)]
    ),
    standardize=st.sampled_from(["auto", True, False]),
)
def test_released_bounds_lie_inside_declared_ones_whatever_the_column(
    seed, shapes, n_rows, epsilon, public, standardize
):
    """And a coefficient over the declared width is what predictions on it can use."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([SHAPES[shape](rng, n_rows) for shape in shapes])
    y = rng.normal(size=n_rows)
    model = PrivateLasso(
        epsilon=epsilon,
        delta=1e-6,
        feature_bounds=public,
        target_bounds=(-10, 10),
        standardize=standardize,
        random_state=seed,
    ).fit(X, y)
    low, high = model.feature_bounds_.T
    assert (public[0] <= low).all()
    assert (low < high).all()
    assert (high <= public[1]).all()
    ends = np.array([public[0], public[1]])
    for j in range(X.shape[1]):
        rows = np.tile(model.feature_bounds_[:, 0], (2, 1))
        rows[:, j] = ends
        moved = abs(float(np.diff(model.predict(rows))[0]))
        used = abs(model.coef_[j]) * (high[j] - low[j])
        assert moved == pytest.approx(used, rel=1e-6, abs=1e-6 + 1e-9 * abs(model.intercept_))


def test_few_rows_or_a_wish_keep_the_public_map():
    rng = np.random.default_rng(8)
    X, public = rng.normal(size=(300, 400)), np.array([[-48.0, 48.0]] * 400)
    paid = spending(300, 400, rho=0.2)
    assert not rules.can_place(paid.regime, 400)
    for choices in (Choices(), Choices(standardize=False), Choices(row_norm=2.0)):
        task, units = bounds.place_rows(paid, rows_of(X), (public, np.array([-1, 1.0])), choices)
        np.testing.assert_array_equal(units.feature_bounds, public)
        assert units.features_at is None
        assert len(task.candidates) == 400
