"""The curve of what each ε buys: monotone, quick to read, and what a simulation at that ε says."""

import itertools
import subprocess
import sys

import pytest

from dpscreen.planning import curve_points as module
from dpscreen.planning.curve import (
    BudgetCase,
    BudgetCurve,
    BudgetPoint,
)
from dpscreen.planning.curve_points import budget_point


def rising(*values):
    points = tuple(
        BudgetPoint(epsilon, {"r2": value, "found": 2 * value, "width": 1 / value})
        for epsilon, value in zip((0.1, 1.0, 10.0), values, strict=True)
    )
    return BudgetCurve(BudgetCase(1000, 5, 1e-6, intervals=True), points)


def test_a_curve_goes_through_its_points_and_never_falls():
    curve = rising(0.1, 0.3, 0.5)
    for point in curve.points:
        assert curve.at(point.epsilon).values == pytest.approx(point.values)
    steps = [curve.at(0.1 * 1.1**k).values for k in range(60)]
    for one, two in itertools.pairwise(steps):
        assert one["r2"] <= two["r2"] + 1e-12
        assert one["found"] <= two["found"] + 1e-12
        assert one["width"] >= two["width"] - 1e-12


def test_reading_a_curve_loads_nothing_that_takes_long():
    code = "import sys, dpscreen.planning.curve, dpscreen.studio.steps, dpscreen.privacy.ledger\n"
    heavy = "{'sklearn', 'pandas', 'scipy.stats', 'dpscreen.models'} & set(sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}print({heavy} or 'nothing')"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "nothing"


@pytest.mark.parametrize("method", module.POINTS)
def test_an_epsilon_that_is_none_has_no_point(method):
    assert budget_point(BudgetCase(1000, 5, 1e-6, method=method), 0.0) is None


# --- the curve and the simulation -----------------------------------------------------------------

NEAR = {"r2": 0.025, "found": 0.25, "auc": 0.015}
"""How far a curve may lie from a simulation, beside four errors of each."""


def agrees(case, epsilons, at):
    """Whether the curve says what a simulation says; a width within a seventh."""
    curve = BudgetCurve(case)
    for epsilon in epsilons:
        curve = curve.with_point(budget_point(case, epsilon))
    for epsilon in at:
        read, direct = curve.at(epsilon), budget_point(case, epsilon)
        assert read.values.keys() == direct.values.keys()
        for name, near in NEAR.items():
            if name in read.values:
                error = read.errors[name] + direct.errors[name]
                assert abs(read.values[name] - direct.values[name]) <= near + 4 * error, name
        for name in {"width", "needed"} & set(read.values):
            assert read.values[name] == pytest.approx(direct.values[name], rel=1 / 7)


@pytest.mark.parametrize(
    ("case", "at"),
    [
        (BudgetCase(1500, 6, 1e-6), 0.42),
        (BudgetCase(3000, 4, 1e-6, method="private-ols"), 0.75),
        (BudgetCase(1500, 6, 1e-6, rate=0.3, method="private-logistic"), 0.42),
        (BudgetCase(6000, 4, 1e-6, rate=0.5, method="private-logit"), 0.75),
    ],
)
def test_between_its_points_the_curve_says_what_a_simulation_says(monkeypatch, case, at):
    """The points share their seeds, so that little but the curve's shape can differ."""
    monkeypatch.setattr(module, "MOST_TABLES", 8)
    agrees(case, (0.18, 0.3, 0.55, 1.0), (at,))


def test_a_regression_table_says_how_many_rows_it_needs():
    few = budget_point(BudgetCase(300, 20, 1e-6, method="private-ols"), 0.5)
    assert few.values.keys() == {"needed"}
    assert few.values["needed"] > 300
    wide = budget_point(BudgetCase(10**9, 2000, 1e-6, method="private-ols"), 0.5)
    assert wide.values.keys() == {"needed"}  # too large to be simulated while somebody waits
