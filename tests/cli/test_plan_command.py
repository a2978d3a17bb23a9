"""`dpscreen plan`, as a real process and in this one."""

from __future__ import annotations

import json
from functools import partial

import pytest

from dpscreen.planning import plan as planning
from dpscreen.planning import power
from dpscreen.planning.plan import Needed, setting_of
from tools.command import dpscreen, here, succeeded

dpscreen_plan = partial(here, "plan")


def test_a_plan_with_its_picture(tmp_path):
    done = dpscreen(
        "plan",
        *("--rows", 500, "--features", 10, "--epsilon", 1, "--effect", 0.4),
        *("--plot", "plan.png"),
        cwd=tmp_path,
    )
    succeeded(done, "M = 36.8", "power")
    assert "\x1b" not in done.stdout
    assert done.stderr == "Picture written to plan.png\n"
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")


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
