"""Marginals: what one row can move, that they rest on releases alone, and how close they are."""

from __future__ import annotations

import itertools
import math
import warnings
from dataclasses import fields
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpscreen import PrivateLasso, PrivateOLS
from dpscreen.privacy import ZCDP, Accountant, SeededNoise
from dpscreen.privacy.replay import record, replay
from dpscreen.rows.source import ArrayRows
from dpscreen.rows.sums import LEVELS
from dpscreen.solvers import marginals, rules
from dpscreen.solvers.base import FINE, Choices, Spending
from dpscreen.solvers.marginals import OCTAVES, Columns, Distances, Marginals
from tools.noise import ScriptedAccountant

IGNORED = ("SeededNoiseWarning", "WeakDeltaWarning", "BoundsWarning")
pytestmark = [pytest.mark.filterwarnings(f"ignore::dpscreen.{one}") for one in IGNORED]

MIDDLE = len(OCTAVES)
"""The cell of distances below the first octave."""


def spending(n_rows, n_features=1, *, rho=0.5) -> Spending:
    limit = ZCDP(Fraction(rho))
    accountant = Accountant(SeededNoise("marginals"), limit=limit)
    return Spending(accountant, limit, rules.Regime(n_rows, n_features, rho))


def rows_of(X, y=None) -> ArrayRows:
    X = np.asarray(X, dtype=float)
    return ArrayRows(X, np.zeros(len(X)) if y is None else np.asarray(y, dtype=float))


def features(X, bounds, *, rho=0.5) -> Marginals:
    paid = spending(len(X), len(bounds), rho=rho)
    return marginals.release_marginals(paid, rows_of(X), np.array(bounds, float), Choices())


def target(y, bounds) -> marginals.TargetMarginal:
    rows = rows_of(np.zeros((len(y), 1)), y)
    return marginals.release_target(spending(len(y)), rows, np.array(bounds, float))


# --- what one row moves ---------------------------------------------------------------------------


class Scripted(ScriptedAccountant):
    def answer(self, mechanism, values, purpose):
        return self.rng.normal(3000, 2000, size=values.size) * mechanism.unit * FINE


DECLARED = np.array([[-3.0, 5.0], [0.0, 1.0], [-1.0, 1.0], [1.0, 2.0]])
TARGET = np.array([-2.0, 2.0])


def scripted(X, y, seed, *, n_rows):
    """Return what every mechanism is given, and all that is made of scripted answers."""
    limit, regime = ZCDP(Fraction(1, 2)), rules.Regime(n_rows, len(DECLARED), 0.5)
    paid = Spending(Scripted(seed), limit, regime)
    rows = ArrayRows(X, y)
    found = (
        marginals.release_target(paid, rows, TARGET),
        marginals.release_marginals(paid, rows, DECLARED, Choices()),
    )
    share = marginals.release_share(paid, ArrayRows(X, (y > 0).astype(float)))
    norm = Choices(row_norm=1.0)
    kept, _ = marginals.standardise(paid, rows, (DECLARED, TARGET), norm)
    return paid.accountant.given, (*found, share, kept.spread)


@pytest.mark.parametrize("n_rows", [10**5, 120])
def test_lemma_22_no_release_moves_further_than_is_booked(n_rows):
    """Neighbouring rows under one transcript: corners, cells beyond the bounds, duplicates."""
    rng = np.random.default_rng(33)
    corners = [*itertools.product(*DECLARED, TARGET), (9e9,) * 5, (-1e300,) * 5]
    closest: dict[str, float] = {}
    for trial, (*cells, end) in enumerate(corners):
        n = trial % 5
        X, y = rng.uniform(*DECLARED.T, size=(n, 4)), rng.uniform(*TARGET, size=n)
        if n > 2:
            X[:] = cells
        place = int(rng.integers(n + 1))
        more = np.insert(X, place, cells, axis=0), np.insert(y, place, end)
        before, _ = scripted(X, y, trial, n_rows=n_rows)
        after, _ = scripted(*more, trial, n_rows=n_rows)
        for (mechanism, old, purpose), (same, new, _) in zip(before, after, strict=True):
            assert mechanism == same
            move = np.linalg.norm((new - old).astype(float)) * mechanism.unit
            closest[purpose] = max(closest.get(purpose, 0.0), move / mechanism.sensitivity)
    assert max(closest.values()) <= 1
    assert min(closest.values()) > 0.8
    assert set(closest) == RELEASES - (SPREAD if n_rows < 1000 else set())


SPREAD = {"features: mean square of all"}
RELEASES = SPREAD | {
    *("target: histogram", "target: distances from the centre"),
    *("features: histogram", "features: distances from the centre"),
    *("features: means and mean squares", "number of rows of the second class"),
}


@pytest.mark.parametrize("n_rows", [10**5, 120])
def test_all_is_made_of_releases_alone(n_rows):
    """Rows all over the bounds, and a few that are all at one end: the same where answers are."""
    X = np.random.default_rng(9).uniform(*DECLARED.T, size=(3000, 4))
    _, all_over = scripted(X, X[:, 2], 1, n_rows=n_rows)
    _, at_ends = scripted(np.tile(DECLARED[:, 0], (20, 1)), np.full(20, -2.0), 1, n_rows=n_rows)
    assert all_over[0] == at_ends[0]
    assert all_over[2:] == at_ends[2:]
    for field in fields(Marginals):
        first, second = (getattr(one[1], field.name) for one in (all_over, at_ends))
        if isinstance(first, Distances):
            first, second = first.counts, second.counts
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("estimator", [PrivateLasso, PrivateOLS])
def test_whether_there_is_a_point_mass_is_released(estimator):
    """Rows without one, under the same releases, give the same model."""
    rng = np.random.default_rng(0)
    X, zero = rng.normal(size=(2000, 3)), rng.random(2000) < 0.8
    bounds = {"feature_bounds": (-8, 12), "target_bounds": (0, 1000)}
    model = estimator(epsilon=5, delta=1e-6, random_state=0, **bounds)
    with record() as made:
        first = model.fit(X, np.where(zero, 0.0, rng.gamma(2, 10, 2000))).coef_
    with replay(made):
        other = model.fit(X, rng.uniform(0, 1000, 2000)).coef_
    np.testing.assert_array_equal(first, other)


def test_every_release_is_booked_and_costs_its_share():
    X = np.random.default_rng(1).normal(size=(3000, 3))
    bounds = np.array([[-4.0, 4.0], [-9.0, 30.0], [0.0, 1.0]])
    paid = spending(3000, 3)
    marginals.release_target(paid, rows_of(X, X[:, 0]), np.array([-9.0, 9.0]))
    marginals.release_share(paid, rows_of(X, X[:, 0] > 0))
    before = paid.accountant.spent.rho
    share = rules.target_share(paid.regime) + rules.CLASS_SHARE
    assert float(before) == pytest.approx(share / 2, rel=1e-9)
    marginals.release_marginals(paid, rows_of(X), bounds, Choices())
    share = rules.marginals_share(paid.regime, 2)
    assert float(paid.accountant.spent.rho - before) == pytest.approx(share / 2, rel=1e-9)
    counts = {use.purpose: use.count for use in paid.accountant.uses}
    assert set(counts) == RELEASES - SPREAD
    assert counts["target: histogram"] == counts["features: histogram"] == marginals.ROUNDS


def test_few_rows_or_a_wish_keep_the_declared_bounds():
    bounds, X = np.array([[-48.0, 48.0]] * 400), np.zeros((300, 400))
    for choices in (Choices(), Choices(standardize=False), Choices(row_norm=2.0)):
        paid = spending(300, 400, rho=0.2)
        task, units = marginals.standardise(paid, rows_of(X), (bounds, TARGET), choices)
        np.testing.assert_array_equal(units.feature_bounds, bounds)
        assert units.features_at is None
        assert task.marginals is None
        assert not any("features: hist" in use.purpose for use in paid.accountant.uses)


@given(
    low=st.integers(-(2**53), 2**53 - 1) | st.integers(2**52, 2**53 - 1),
    row=st.floats(allow_infinity=False, allow_nan=False) | st.integers(-2, 2),
)
@example(low=2**52 + 1, row=0)
@example(low=2**52 + 1, row=1)
@example(low=2**53 - 1, row=1)
def test_lemma_22_holds_for_bounds_next_to_each_other_wherever_they_are(low, row):
    """From 2^52 on their middle is no float: mapped, one end would be 0, and the other 2."""
    bounds = np.array([[low, low + 1.0]])
    assert marginals.is_yes_no(bounds).all()
    given = rows_of([[low + row]]), bounds, np.arange(1), np.array([1])
    moved, booked = marginals.centred_moments(*given)
    assert np.linalg.norm(moved) <= booked * 2 * LEVELS


@given(
    low=st.integers(0, 2**20),
    width=st.integers(1, 2**22),
    size=st.sampled_from([1.0, 1.7e18]),
    centre=st.floats(-1, 1),
    row=st.integers(-(2**20), 2**22),
)
@example(low=2, width=3, size=1.0, centre=1.0, row=-2)
def test_a_row_is_in_one_cell_of_bounds_that_are_a_few_floats_wide(low, width, size, centre, row):
    """Times in nanoseconds are 256 apart: a centre at an end is rounded to beyond it."""
    step = np.spacing(size)
    bounds = size + step * np.array([[low, low + width]])
    rows = rows_of([[size + step * (low + row)]])
    columns = Columns(rows.feature_total, bounds, np.arange(1))
    at = np.array([centre])
    for counts in (columns.by_octave(at), columns.histograms(at, np.array([0.1]))):
        assert counts.sum() == 1
        assert counts.min() == 0


def test_two_values_are_whole_numbers_next_to_each_other():
    pairs = [(0, 1), (1, 2), (-1, 0), (2**53 - 1, 2**53), (0.5, 1.5), (0, 2), (2**53, 2**53 + 2)]
    expected = [True, True, True, True, False, False, False]
    assert marginals.is_yes_no(np.array(pairs, dtype=float)).tolist() == expected


# --- what is made of noisy counts -----------------------------------------------------------------


def test_cells_beyond_the_last_detected_one_are_noise():
    """Of 20 000 constants at most 1 in 500 seems to vary; a mass in four cells is detected."""
    rng = np.random.default_rng(12)
    counts = rng.normal(0, 10, (20_000, 2 * MIDDLE + 1))
    counts[:, MIDDLE] += 10_000
    off = np.arange(counts.shape[1]) != MIDDLE
    noise = np.full((len(counts), 1), 10.0)
    assert Distances(counts, noise, 10_000).detected[:, off].any(axis=1).mean() < 0.002
    counts[:, MIDDLE + 15 : MIDDLE + 19] += 40  # together 8 standard deviations of their noise
    found = Distances(counts, noise, 10_000).detected
    assert found[:, MIDDLE + 12 : MIDDLE + 19].any(axis=1).mean() > 0.99
    assert found[:, MIDDLE + 19 :].any(axis=1).mean() < 0.001
    assert found[:, :MIDDLE].any(axis=1).mean() < 0.001


def cells_of(u) -> Distances:
    """Return exact counts of distances from zero, of one column in half-widths."""
    columns = Columns(rows_of(u[:, None]).feature_total, np.array([[-1.0, 1.0]]), np.arange(1))
    counts = columns.by_octave(np.zeros(1)).astype(float)
    return Distances(counts, np.full((1, 1), 1e-9), len(u))


@given(st.integers(0, 99), st.floats(0.01, 0.03) | st.floats(0.15, 1), st.floats(1e-3, 0.1))
@example(seed=0, share=0.03, width=0.04)
def test_scales_are_root_mean_squares_but_for_octaves(seed, share, width):
    """But for where in an octave rows lie, and beside 85 to 97 % zeros for winsorising."""
    rng = np.random.default_rng(seed)
    u = rng.uniform(0, width, 5000) * (rng.random(5000) < share)
    found = cells_of(u)
    assert abs(math.log(found.scales()[0] / np.sqrt(np.mean(u**2)))) < math.log(1.6)


def test_scales_are_winsorised():
    """One row in a hundred, 500 scales away, counts as one at five."""
    u = np.random.default_rng(3).normal(0, 2e-3, 10_000)
    u[:100] = 1.0
    assert cells_of(u).scales()[0] == pytest.approx(2e-3 / math.sqrt(1 - 0.25), rel=0.15)


@pytest.mark.parametrize("share", [0.5, 0.02, 0.98])
@pytest.mark.parametrize("longest", [2.0, 30.0])
def test_what_is_kept_of_a_level_if_rows_are_norm_clipped(share, longest):
    rows = np.repeat([0.0, 1.0], [round(1000 * (1 - share)), round(1000 * share)])
    z = (rows - rows.mean()) / rows.std()
    truth = math.sqrt(float((np.clip(z, -longest, longest) ** 2).mean()))
    assert marginals.kept_of_level(rows.std(keepdims=True), longest)[0] == pytest.approx(truth)


def test_released_moments_show_two_values_and_constants():
    """A number, two levels that vary, one that does not, and a share between two levels."""
    declared = np.array([False, True, True, True])
    sums = 1000 * np.array([0.5, 0.25, 0.5, 0.25, 0.0, 0.25, 0.25, 0.0])
    means, variances, two, detected = marginals.read_moments(sums, 2.0, 1000, declared)
    assert means == pytest.approx([0.5, 0.5, 1.0, 0.5], abs=0.01)
    assert two.tolist() == [False, True, True, False]
    assert variances[[0, 1, 3]] == pytest.approx([0.25, 0.75, 0.25], abs=0.01)
    assert detected.tolist() == [True, True, False, True]


# --- centres, scales and ranges against the rows --------------------------------------------------

SHAPES = {
    "normal": lambda rng, n: rng.normal(size=n),
    "lognormal": lambda rng, n: rng.lognormal(0, 0.6, n),
    "uniform": lambda rng, n: rng.uniform(-1, 1, n),
    "half zero": lambda rng, n: rng.gamma(2, 1, n) * (rng.random(n) < 0.5),
    "mostly zero": lambda rng, n: rng.gamma(2, 1, n) * (rng.random(n) < 0.15),
    "two values": lambda rng, n: rng.choice([-1.0, 2.0], n),
}


def declared(column, width, place):
    """Return bounds so many times as wide as the column's range, which lies there in them."""
    low, high = column.min(), column.max()
    room = (width - 1) * (high - low)
    return low - place * room, high + (1 - place) * room


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("width", [1, 4, 300])
@pytest.mark.parametrize("place", [0.4, 0.0])
def test_columns_are_located(shape, width, place):
    """10 000 rows at ρ = 0.5, four columns of one shape.

    Centres are off by half a scale, at 300 times by 1.5, and scales by a factor of two.
    """
    rng = np.random.default_rng(5)
    X = np.column_stack([SHAPES[shape](rng, 10_000) for _ in range(4)])
    bounds = np.array([declared(column, width, place) for column in X.T])
    found = features(X, bounds)
    assert not found.constant.any()
    most = 1.5 if width == 300 else 0.5
    assert (np.abs(found.centres - X.mean(axis=0)) < most * X.std(axis=0)).all()
    assert (np.abs(np.log2(found.scales / X.std(axis=0))) < 1).all()
    inside = (found.ranges[:, 0] <= X) & (found.ranges[:, 1] >= X)
    assert inside.mean(axis=0).min() > 0.97
    assert (np.ptp(found.ranges, axis=1) < 30 * X.std(axis=0)).all()
    paid = spending(len(X), len(bounds))
    task, units = marginals.standardise(paid, rows_of(X), (bounds, TARGET), Choices())
    assert task.spread >= 1 / rules.MOST_RATIO
    reach = np.abs(units.feature_bounds.T - units.feature_centres).max(axis=0)
    assert (units.feature_half_widths >= reach).all()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("width", [1, 4, 300])
def test_targets_are_located(shape, width):
    """Scales to a factor of 2.5, as octaves are factors of 2 and two values may lie in one.

    With 85 % zeros there is a point mass, with 50 % there may be: scales are then those of other
    rows, about it. At 300 times the bounds no histogram resolves it. Of two values the centre may
    be one.
    """
    y = SHAPES[shape](np.random.default_rng(6), 10_000)
    found = target(y, declared(y, width, 0.3))
    if shape != "half zero" and width < 300:
        assert found.point_mass == (shape == "mostly zero")
    assert abs(math.log(found.spread / y.std())) < math.log(2.5)
    if found.point_mass:
        assert found.centre == pytest.approx(0, abs=0.25 * y.std())
        assert abs(math.log2(found.scale / np.sqrt(np.mean(y[y > 0] ** 2)))) < 1
    else:
        most = (1.0 if shape == "two values" else 0.5) * y.std()
        assert abs(found.centre - y.mean()) < most
        assert abs(math.log(found.scale / y.std())) < math.log(2.5)


def test_constants_keep_their_declared_bounds():
    X = np.column_stack((np.full(5000, 3.0), np.full(5000, -20.0), np.arange(5000) % 3 == 0))
    bounds = np.array([[-20.0, 100.0], [-20.0, 100.0], [0.0, 1.0]])
    found = features(X, bounds)
    assert found.constant.tolist() == [True, True, False]
    np.testing.assert_array_equal(found.ranges, bounds)
    assert list(found.at_ends) == [(0, "neither"), (1, "lower")]
    hidden = np.sqrt(3 * found.distances.noise[:2, 0] / 5000)  # as many rows, anywhere
    assert (found.scales[:2] >= 0.999 * 60 * hidden).all()


@pytest.mark.parametrize("end", [0.0, 10.0])
def test_a_target_that_is_one_value_at_an_end_has_a_point_mass(end):
    found = target(np.full(3000, end), (0, 10))
    assert found.point_mass
    assert found.centre == pytest.approx(end, abs=0.1)


def test_a_share_is_not_taken_for_two_values():
    X = np.random.default_rng(5).normal(0.1, 0.014, (12_000, 1))
    found = features(X, [(0.0, 1.0)], rho=0.02)
    assert found.centres == pytest.approx(0.1, abs=0.01)
    assert found.scales < 0.06
    assert not found.two.any()


def test_levels_keep_their_bounds_and_get_scales_of_their_own():
    rng, shares = np.random.default_rng(6), np.array([0.0, 0.03, 0.5, 1.0])
    X = (rng.random((20_000, 4)) < shares).astype(float)
    for rho, shift in itertools.product((0.02, 10.0), (0.0, 1.0)):
        bounds = np.array([[0.0, 1.0]] * 4) + shift
        found = features(X + shift, bounds, rho=rho)
        np.testing.assert_array_equal(found.ranges, bounds)
        assert found.constant.tolist() == [True, False, False, True]
        assert found.centres == pytest.approx(shares + shift, abs=0.01)
        assert found.scales[1:3] == pytest.approx(X.std(axis=0)[1:3], rel=0.1)
        assert list(found.at_ends) == [(3, "upper")]


@pytest.mark.parametrize("factor", [2.0**-9, 1.0, 1e6])
@pytest.mark.parametrize("shift", [0.0, 77.0])
def test_units_do_not_matter(factor, shift):
    rng = np.random.default_rng(8)
    X = np.column_stack((rng.normal(5, 1, 4000), rng.exponential(2, 4000)))
    bounds = np.array([[-40.0, 45.0], [-3.0, 90.0]])
    first = features(X, bounds)
    other = features(factor * (X + shift), factor * (bounds + shift))
    np.testing.assert_allclose(other.centres, factor * (first.centres + shift), rtol=1e-3)
    np.testing.assert_allclose(other.scales, factor * first.scales, rtol=1e-3)
    np.testing.assert_allclose(other.ranges, factor * (first.ranges + shift), rtol=1e-3)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    shape=st.sampled_from([*sorted(SHAPES), "constant", "heavy", "at an end"]),
    n_rows=st.sampled_from([1, 30, 300, 3000]),
    rho=st.sampled_from([1e-4, 0.05, 1000.0]),
    bounds=st.sampled_from(
        [
            (0, 1),
            (-5, 5),
            (1e9, 1e9 + 1e-6),
            (-1e300, 1e300),
            (1, 1 + 2**-52),
            (-1e308, 1.7e308),
            (1e306, 3e306),
        ]
    ),
    standardize=st.sampled_from(["auto", True]),
)
def test_ranges_lie_inside_declared_bounds_without_a_warning(
    seed, shape, n_rows, rho, bounds, standardize
):
    rng = np.random.default_rng(seed)
    special = {"constant": 3.0, "at an end": 1e308}
    column = rng.standard_cauchy(n_rows) * 100 if shape == "heavy" else np.full(n_rows, 0.0)
    column = SHAPES[shape](rng, n_rows) if shape in SHAPES else column + special.get(shape, 0.0)
    X, ends = np.column_stack((column, rng.normal(size=n_rows))), np.array([bounds] * 2, float)
    choices = Choices(standardize=standardize)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        task, units = marginals.standardise(
            spending(n_rows, 2, rho=rho), rows_of(X, column), (ends, ends[0]), choices
        )
    low, high = units.feature_bounds.T
    assert ((ends[0, 0] <= low) & (low < high) & (high <= ends[0, 1])).all()
    assert (units.feature_half_widths > 0).all()
    assert ends[0, 0] <= units.target_centre <= ends[0, 1]
    assert 0 < task.deviation < math.inf
    assert 1 / rules.MOST_RATIO <= task.spread <= 1
