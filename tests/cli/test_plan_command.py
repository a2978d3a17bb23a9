"""`dpscreen plan`."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest

from dpscreen.planning import plan as planning
from dpscreen.planning import power
from dpscreen.planning.plan import Needed, setting_of
from dpscreen.privacy import ZCDP, Budget
from tools.command import failed, here, invoke, succeeded

dpscreen_plan = partial(here, "plan")


@pytest.fixture(autouse=True)
def _few_tables(monkeypatch):
    monkeypatch.setattr(power, "affordable_repetitions", lambda *_, **__: 4)


def test_a_plan_with_its_picture(tmp_path):
    done = here(
        "plan",
        *("--rows", 500, "--features", 10, "--epsilon", 1, "--effect", 0.4),
        *("--plot", "plan.png"),
        cwd=tmp_path,
    )
    succeeded(done, "M = 36.8", "power")
    assert "\x1b" not in done.stdout
    assert done.stderr == "Picture written to plan.png\n"
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")


def test_a_plan_of_a_yes_or_no_has_its_picture_and_correlations(tmp_path):
    asked = ("--rows", 500, "--features", 8, "--epsilon", 3, "--effect", 0.4)
    asked += ("--model", "logistic", "--correlation", 0.5)
    done = dpscreen_plan(*asked, "--rate", 0.2, "--plot", "plan.svg", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "Picture written to plan.svg\n")
    assert "held-out AUC" in done.stdout
    assert "500 rows, 20% yes, 8 features" in " ".join(done.stdout.split())
    assert (tmp_path / "plan.svg").stat().st_size > 0
    found = json.loads(dpscreen_plan(*asked, "--json").stdout)
    assert (found["rate"], found["rows"][0]["effect"]) == (0.5, 0.4)


@pytest.fixture
def asked(monkeypatch):
    """Put a fixed answer in the place of the search, and return what it was asked for."""
    asked = {}

    def least(effect, **public):
        asked.update(public, effect=effect)
        name, value = ("n_rows", 1234.0) if public.get("n_rows") is None else ("epsilon", 0.5)
        return Needed(name, value, (0.01, 1e9), effect, 0.8, setting_of(2, 8, 1.0, 1e-6))

    monkeypatch.setattr(planning, "plan_for", least)
    return asked


def test_the_inverse(asked):
    done = dpscreen_plan("--rows", 500, "--features", 8, "--effect", 0.3, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    output = json.loads(done.stdout)
    assert output["name"] == "epsilon"
    assert output["value"] == 0.5
    assert "Epsilon of about 0.5" in output["words"]
    assert (asked["n_rows"], asked["n_features"], asked["effect"]) == (500, 8, 0.3)
    done = invoke("plan", "--epsilon", 1, "--features", 8, "--effect", 0.3)
    succeeded(done, "rows are needed to detect effects of 0.3")


def test_how_wide_a_regression_table_will_be():
    asked = ("--rows", 1000, "--features", 3, "--epsilon", 1, "--model", "ols")
    done = succeeded(invoke("plan", *asked))
    assert "times as wide as those of least squares" in " ".join(done.stdout.split())
    output = json.loads(invoke("plan", *asked, "--json").stdout)
    assert output["widths"][0] == {"epsilon": 0.1, "ratio": None}


def test_how_wide_odds_ratios_will_be():
    asked = ("--rows", 3000, "--features", 3, "--epsilon", 2, "--model", "logit", "--json")
    half, rare = (json.loads(invoke("plan", *asked, "--rate", rate).stdout) for rate in (0.5, 0.05))
    assert (half["rate"], rare["rate"]) == (0.5, 0.05)
    ratios = [[one["ratio"] or 99 for one in output["widths"]] for output in (half, rare)]
    assert ratios[0][3] < ratios[1][3]
    assert "logistic regression" in half["finding"]


SCHEMA = """
target = "y"
unit = "who"
rows_per_unit = 3
[columns]
who = {}
ward = {categories = ["a", "b", "c"]}
age = {bounds = [0, 120]}
smoker = {type = "boolean"}
"""


def test_a_schema_shapes_the_plan(tmp_path):
    asked = ("--rows", 500, "--epsilon", 1, "--json", "--schema", "s.toml")
    (tmp_path / "s.toml").write_text(SCHEMA + "y = {bounds = [0, 9]}")
    done = dpscreen_plan(*asked, cwd=tmp_path)
    plan = json.loads(done.stdout)
    setting, alone = plan["setting"], 500 * (2 * float(ZCDP.within(Budget(1, 1e-6)).rho)) ** 0.5
    assert setting["n_features"] == 4  # ward=b, ward=c, age and smoker
    assert (setting["epsilon"], setting["rows_per_unit"]) == (1, 3)
    assert plan["signal"] == pytest.approx(alone / np.log(2 * 4) / 3)
    (tmp_path / "s.toml").write_text(SCHEMA.replace("= 3", "= 1") + 'y = {type = "boolean"}')
    done = dpscreen_plan(*asked, cwd=tmp_path)
    assert done.stderr == ""
    assert json.loads(done.stdout)["rate"] == 0.5  # of a yes or no, chances are planned for


def test_levels_of_a_schema_are_planned_as_levels(tmp_path, monkeypatch):
    seen = {}

    def table(setting, **_):
        seen.update(vars(setting))
        raise ValueError("seen")

    monkeypatch.setattr("dpscreen.planning.regression_plan.expected_table", table)
    (tmp_path / "s.toml").write_text(SCHEMA + 'y = {type = "boolean"}')
    asked = ("--rows", 500, "--epsilon", 1, "--model", "logit", "--schema", "s.toml")
    named = ("--interest", "ward", "--required", "age", "--required", "smoker")
    with pytest.raises(ValueError, match="seen"):
        dpscreen_plan(*asked, *named, cwd=tmp_path)
    assert (seen["n_features"], seen["levels"]) == (4, 3)
    assert (seen["interest"], seen["required"]) == ((0, 1), (3, 2))  # levels come first
    failed(dpscreen_plan(*asked, "--interest", "wrad", cwd=tmp_path), 2, "'wrad'", "mean 'ward")


def test_a_coefficient_of_interest_is_planned_for_without_a_schema():
    asked = ("--rows", 5000, "--features", 8, "--epsilon", 1)
    all_, one = (
        json.loads(invoke("plan", *asked, "--model", "ols", "--json", *more).stdout)
        for more in ((), ("--interest", "x0", "--required", "x7"))
    )
    assert one["widths"][3]["ratio"] < all_["widths"][3]["ratio"]
    assert "Intervals of the coefficient of interest" in one["finding"]
    failed(invoke("plan", *asked, "--interest", "x0"), 2, "for tables: ols, logit")
    failed(invoke("plan", *asked, "--model", "ols", "--required", "x8"), 2, "'x8'")
