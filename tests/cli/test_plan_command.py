"""`dpscreen plan`, as a real process and in this one."""

from __future__ import annotations

import json
from functools import partial

import pytest

from dpscreen.planning import plan as planning
from dpscreen.planning import power
from dpscreen.planning.plan import Needed, setting_of
from tools.command import dpscreen, here, invoke

dpscreen_plan = partial(here, "plan")


def test_a_plan_with_its_picture(tmp_path):
    done = dpscreen(
        "plan",
        *("--rows", 500, "--features", 10, "--epsilon", 1, "--effect", 0.4),
        *("--plot", "plan.png"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "M = 36.8" in done.stdout
    assert "power" in done.stdout
    assert "\x1b" not in done.stdout
    assert done.stderr == "Picture written to plan.png\n"
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")


def test_a_plan_as_json(monkeypatch):
    monkeypatch.setattr(power, "affordable_repetitions", lambda *_, **__: 4)
    done = dpscreen_plan("--rows", 100, "--features", 10, "--epsilon", 1, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert not told["useful"]
    assert "do not expect a useful model" in told["words"]
    assert {"effect", "power", "r2", "false_positives"} <= set(told["rows"][0])


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
    told = json.loads(done.stdout)
    assert told["name"] == "epsilon"
    assert told["value"] == 0.5
    assert "Epsilon of about 0.5" in told["words"]
    assert (asked["n_rows"], asked["n_features"], asked["effect"]) == (500, 8, 0.3)


@pytest.mark.usefixtures("asked")
def test_the_inverse_in_a_sentence():
    done = invoke("plan", "--epsilon", 1, "--features", 8, "--effect", 0.3)
    assert done.exit_code == 0, done.stderr
    assert "rows are needed to detect effects of 0.3" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "--features"),
        (["--features", 10], "Give --rows, --epsilon, or both"),
        (["--features", 10, "--rows", 100], "--epsilon, or --effect"),
        (["--features", 10, "--epsilon", 1], "--rows, or --effect"),
        (["--features", 10, "--epsilon", 0, "--rows", 100], "--epsilon"),
        (["--features", 10, "--epsilon", 1, "--rows", 100, "--plot", "a.gif"], ".png"),
        (["--features", 10, "--epsilon", 1, "--rows", 100, "--plot", "no/a.png"], "directory"),
        (["--features", 10, "--epsilon", 1, "--effect", 0.1, "--plot", "a.png"], "both"),
        (["--features", 40, "--epsilon", 1, "--rows", 100, "--effect", 0.9], "variance"),
    ],
)
def test_wrong_usage_exits_with_2_and_says_why(arguments, told, tmp_path):
    done = dpscreen_plan(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert told in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_how_wide_a_regression_table_will_be():
    asked = ("--rows", 3000, "--features", 3, "--epsilon", 1, "--model", "ols")
    done = invoke("plan", *asked)
    assert done.exit_code == 0, done.stderr
    assert "times as wide as those of least squares" in " ".join(done.stdout.split())
    told = json.loads(invoke("plan", *asked, "--json").stdout)
    assert told["widths"][0] == {"epsilon": 0.1, "ratio": None}
    assert invoke("plan", "--features", 3, "--epsilon", 1, "--model", "ols").exit_code == 2


def test_how_wide_odds_ratios_will_be():
    asked = ("--rows", 3000, "--features", 3, "--epsilon", 2, "--model", "logit", "--json")
    half, rare = (json.loads(invoke("plan", *asked, "--rate", rate).stdout) for rate in (0.5, 0.05))
    assert (half["rate"], rare["rate"]) == (0.5, 0.05)
    ratios = [[one["ratio"] or 99 for one in told["widths"]] for told in (half, rare)]
    assert ratios[0][3] < ratios[1][3]
    assert "logistic regression" in half["finding"]


def test_what_will_be_found_of_a_yes_or_no():
    asked = ("--rows", 900, "--features", 4, "--epsilon", 3, "--model", "logistic")
    told = invoke("plan", *asked, "--rate", 0.2, "--effect", 0.9)
    assert told.exit_code == 0
    assert "900 rows, 20% yes, 4 features" in " ".join(told.output.split())
    assert "held-out AUC" in told.output
    found = json.loads(invoke("plan", *asked, "--effect", 0.9, "--json").output)
    assert (found["rate"], found["rows"][0]["effect"]) == (0.5, 0.9)
    assert invoke("plan", *asked, "--rate", 2).exit_code == 2
    assert invoke("plan", *asked, "--plot", "p.png").exit_code == 2
    assert invoke("plan", *asked[:6], "--rate", 0.5).exit_code == 2
    assert invoke("plan", *asked[2:], "--effect", 0.9).exit_code == 2


def test_help_teaches_by_example():
    assert "dpscreen plan --rows 5000 --features 40 --epsilon 1" in dpscreen_plan("-h").stdout


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


def test_a_schema_shapes_the_plan(tmp_path, monkeypatch):
    monkeypatch.setattr(power, "affordable_repetitions", lambda *_, **__: 4)
    asked = ("--rows", 500, "--epsilon", 1, "--json", "--schema", "s.toml")
    (tmp_path / "s.toml").write_text(SCHEMA + "y = {bounds = [0, 9]}")
    done = dpscreen_plan(*asked, cwd=tmp_path)
    assert "A unit has up to 3 rows: epsilon below is for one row" in done.stderr
    setting = json.loads(done.stdout)["setting"]
    assert setting["n_features"] == 4  # ward=b, ward=c, age and smoker
    assert setting["epsilon"] == pytest.approx(1 / 3, rel=0.1)
    (tmp_path / "s.toml").write_text(SCHEMA.replace("= 3", "= 1") + 'y = {type = "boolean"}')
    done = dpscreen_plan(*asked, cwd=tmp_path)
    assert done.stderr == ""
    assert json.loads(done.stdout)["rate"] == 0.5  # of a yes or no, chances are planned for


def test_levels_of_a_schema_are_planned_as_levels(tmp_path, monkeypatch):
    seen = {}

    def table(**public):
        seen.update(public)
        raise ValueError("seen")

    monkeypatch.setattr("dpscreen.planning.regression_plan.expected_table", table)
    (tmp_path / "s.toml").write_text(SCHEMA + 'y = {type = "boolean"}')
    asked = ("--rows", 500, "--epsilon", 1, "--model", "logit", "--schema", "s.toml")
    with pytest.raises(ValueError, match="seen"):
        dpscreen_plan(*asked, cwd=tmp_path)
    assert (seen["n_features"], seen["levels"]) == (4, 3)


@pytest.mark.parametrize("given", [(), ("--features", 3, "--schema", "s.toml")])
def test_features_or_a_schema(given):
    done = dpscreen_plan("--rows", 500, "--epsilon", 1, *given)
    assert "Give --features or --schema: one of them." in done.stderr
