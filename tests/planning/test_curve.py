"""The curve of what each ε buys: monotone, quick to read, and what a simulation at that ε says."""

import itertools

import pytest

from dpscreen.planning import curve as module
from dpscreen.planning.curve import (
    EPSILONS,
    BudgetCase,
    BudgetCurve,
    BudgetPoint,
    budget_point,
    simulated_curve,
)


def rising(*values):
    points = tuple(
        BudgetPoint(epsilon, value, 0.01, 2 * value, 0.1, 1 / value)
        for epsilon, value in zip((0.1, 1.0, 10.0), values, strict=True)
    )
    return BudgetCurve(BudgetCase(1000, 5, 1e-6, intervals=True), points)


def test_a_curve_goes_through_its_points_and_never_falls():
    curve = rising(0.1, 0.3, 0.5)
    for point in curve.points:
        read = curve.at(point.epsilon)
        assert read.r2 == pytest.approx(point.r2)
        assert read.found == pytest.approx(point.found)
        assert read.width == pytest.approx(point.width)
    steps = [curve.at(0.1 * 1.1**k) for k in range(60)]
    pairs = list(itertools.pairwise(steps))
    assert all(one.r2 <= two.r2 + 1e-12 and one.found <= two.found + 1e-12 for one, two in pairs)
    assert all(one.width >= two.width - 1e-12 for one, two in pairs)


def test_chance_dips_are_levelled_and_ends_are_level():
    curve = rising(0.1, 0.5, 0.4)
    assert curve.at(1.0).r2 == curve.at(10.0).r2 == pytest.approx(0.45)
    assert curve.at(1e-4).r2 == pytest.approx(0.1)
    assert curve.at(1e4).r2 == pytest.approx(0.45)
    assert curve.at(0.01).width is None  # no interval where none was simulated
    assert BudgetCurve(curve.case).at(1.0) is None


def test_an_epsilon_that_is_none_has_no_point():
    assert budget_point(BudgetCase(1000, 5, 1e-6), 0.0) is None


def agrees(case, epsilons, at):
    """Whether the curve says what a simulation says, within its error and a twentieth."""
    curve = simulated_curve(case, epsilons)
    for epsilon in at:
        read, direct = curve.at(epsilon), budget_point(case, epsilon)
        assert abs(read.r2 - direct.r2) <= 0.025 + 4 * (read.r2_se + direct.r2_se)
        assert abs(read.found - direct.found) <= 0.05 * 5 + 4 * (read.found_se + direct.found_se)


def test_between_its_points_the_curve_says_what_a_simulation_says(monkeypatch):
    """The points share their seeds, so that little but the curve's shape can differ."""
    monkeypatch.setattr(module, "MOST_TABLES", 8)
    agrees(BudgetCase(1500, 6, 1e-6), (0.18, 0.3, 0.55, 1.0), (0.42,))


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [
        BudgetCase(440, 10, 1e-4),
        BudgetCase(5000, 40, 1e-6),
        BudgetCase(5000, 40, 1e-6, rows_per_unit=4),
        BudgetCase(200_000, 300, 1e-8),
    ],
)
def test_the_whole_curve_says_what_simulations_say(case):
    agrees(case, EPSILONS, (0.07, 0.24, 0.75, 2.3, 7.5))


@pytest.mark.slow
def test_widths_of_thinned_tables_are_those_of_whole_ones(monkeypatch):
    """A table of 40 000 rows, simulated with a quarter of them and with all."""
    setting = BudgetCase(40_000, 40, 1e-6).at(1.0)
    thinned = module.width_over_ols(setting)
    monkeypatch.setattr(module.simulation, "MOST_CELLS", 2_000_000)
    monkeypatch.setattr(module.simulation, "MOST_CELLS_CLIPPED", 2_000_000)
    assert module.width_over_ols(setting) == pytest.approx(thinned, rel=0.15)
