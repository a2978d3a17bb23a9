"""The curve of what each ε buys: monotone, quick to read, and what a simulation at that ε says."""

import itertools
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import isotonic_regression

from dpscreen.families import FAMILIES
from dpscreen.planning import curve_points as module
from dpscreen.planning.curve import BudgetCurve, BudgetPoint, monotone_curve
from dpscreen.planning.curve_points import budget_point
from dpscreen.planning.setting import Setting


def asked(n_rows, n_features, delta=1e-6, **more):
    return Setting(n_rows, n_features, 1.0, delta, **more)


def rising(*values):
    points = tuple(
        BudgetPoint(epsilon, {"r2": value, "found": 2 * value, "width": 1 / value})
        for epsilon, value in zip((0.1, 1.0, 10.0), values, strict=True)
    )
    return BudgetCurve(asked(1000, 5, split=True), points)


def test_a_curve_goes_through_its_points_and_never_falls():
    curve = rising(0.1, 0.3, 0.5)
    for point in curve.points:
        assert curve.at(point.epsilon).values == pytest.approx(point.values)
    steps = [curve.at(0.1 * 1.1**k).values for k in range(60)]
    for one, two in itertools.pairwise(steps):
        assert one["r2"] <= two["r2"] + 1e-12
        assert one["found"] <= two["found"] + 1e-12
        assert one["width"] >= two["width"] - 1e-12


def test_chance_dips_are_levelled_and_ends_are_level():
    curve = rising(0.1, 0.5, 0.4)
    r2 = {epsilon: curve.at(epsilon).values["r2"] for epsilon in (1e-4, 1.0, 10.0, 1e4)}
    assert r2 == pytest.approx({1e-4: 0.1, 1.0: 0.45, 10.0: 0.45, 1e4: 0.45})
    assert "width" not in curve.at(0.01).values  # no interval where none was simulated
    assert BudgetCurve(curve.setting).at(1.0) is None


@given(arrays(float, st.integers(1, 12), elements=st.floats(-5, 5, width=16)))
def test_it_goes_through_isotonic_regression_and_stays_between_points(values):
    found = isotonic_regression(values).x
    x = np.arange(len(values)) ** 1.5
    read = monotone_curve(x, values)
    assert np.all(np.diff([read(at) for at in np.linspace(0, x[-1], 50)]) >= -1e-9)
    assert [read(at) for at in x] == pytest.approx(found, abs=1e-9)


def test_reading_a_curve_loads_nothing_that_takes_long():
    code = "import sys, dpscreen.planning.curve, dpscreen.studio.steps, dpscreen.privacy.ledger\n"
    heavy = "{'sklearn', 'pandas', 'scipy.stats', 'dpscreen.models'} & set(sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}print({heavy} or 'nothing')"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "nothing"


@pytest.mark.parametrize("family", FAMILIES.values())
def test_an_epsilon_that_is_none_has_no_point(family):
    for table in (False, True):
        assert budget_point(asked(1000, 5, family=family.name, table=table), 0.0) is None


# --- the curve and the simulation -----------------------------------------------------------------

NEAR = {"r2": 0.025, "found": 0.25, "auc": 0.015}
"""How far a curve may lie from a simulation, beside four errors of each."""


@pytest.mark.parametrize(
    ("case", "at"),
    [
        (asked(1500, 6), 0.42),
        (asked(3000, 4, table=True), 0.75),
        (asked(1500, 6, rate=0.3, family="binomial"), 0.42),
        (asked(6000, 4, rate=0.5, family="binomial", table=True), 0.75),
    ],
)
def test_between_its_points_the_curve_says_what_a_simulation_says(monkeypatch, case, at):
    """The points share their seeds, so that little but its shape can differ; a width a seventh."""
    monkeypatch.setattr(module, "MOST_TABLES", 8)
    points = tuple(budget_point(case, epsilon) for epsilon in (0.18, 0.3, 0.55, 1.0))
    read, direct = BudgetCurve(case, points).at(at), budget_point(case, at)
    assert read.values.keys() == direct.values.keys()
    for name, near in NEAR.items():
        if name in read.values:
            error = read.errors[name] + direct.errors[name]
            assert abs(read.values[name] - direct.values[name]) <= near + 4 * error, name
    for name in {"width", "needed"} & set(read.values):
        assert read.values[name] == pytest.approx(direct.values[name], rel=1 / 7)


def test_a_regression_table_says_how_many_rows_it_needs():
    few = budget_point(asked(300, 20, table=True), 0.5)
    assert few.values.keys() == {"needed"}
    assert few.values["needed"] > 300
    wide = budget_point(asked(10**9, 2000, table=True), 0.5)
    assert wide.values.keys() == {"needed"}  # too large to be simulated while somebody waits


def test_a_split_of_outcomes_tells_how_wide_intervals_are_and_selects_with_half():
    given = {"rate": 0.4, "family": "binomial"}
    whole = budget_point(asked(12_000, 8, **given), 1.0)
    split = budget_point(asked(12_000, 8, split=True, **given), 1.0)
    half = budget_point(asked(6_000, 8, **given), 1.0)
    assert "width" not in whole.values
    assert 2**0.5 <= split.values["width"] < 4
    assert split.values["auc"] == half.values["auc"]
    few = budget_point(asked(200, 8, split=True, **given), 0.3)
    assert "width" not in few.values


@pytest.mark.slow
def test_widths_of_thinned_tables_are_those_of_whole_ones(monkeypatch):
    """A table of 40 000 rows, simulated with a quarter of them and with all."""
    setting = asked(40_000, 40)
    thinned = module.split_width(setting)
    monkeypatch.setattr(module.simulation, "MOST_CELLS", 2_000_000)
    monkeypatch.setattr(module.simulation, "MOST_CELLS_CLIPPED", 2_000_000)
    assert module.split_width(setting) == pytest.approx(thinned, rel=0.15)
