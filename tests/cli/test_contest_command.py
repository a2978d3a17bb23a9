"""`dpscreen contest`."""

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest

from dpscreen.planning.standings import CONTESTED
from tools.browser import browser, check_page
from tools.command import failed, here

contest = partial(here, "contest")


def field(name, low, high):
    return {"name": name, "type": "number", "constraints": {"minimum": low, "maximum": high}}


TRUTH = {"name": "paid", "type": "boolean", "trueValues": ["yes"], "falseValues": ["no"]}
FEATURES = [field("age", 0, 120), field("size", -10, 10)]


def write(folder, name, frame, target):
    folder.mkdir(exist_ok=True)
    frame.to_csv(folder / f"{name}.csv", index=False)
    schema = {"fields": [*FEATURES, target], "dpscreen": {"target": target["name"]}}
    (folder / f"{name}.json").write_text(json.dumps(schema))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return two tiny tables with their schemas: a number, and yes or no."""
    rng, place = np.random.default_rng(8), tmp_path_factory.mktemp("contest") / "tables"
    age, size = rng.uniform(20, 80, 900), rng.normal(size=900)
    cost = 10 * age + 100 * size + 40 * rng.normal(size=900)
    frame = pd.DataFrame({"age": age, "size": size})
    write(place, "costs", frame.assign(cost=cost), field("cost", -500, 2000))
    paid = np.where(cost > 500, "yes", "no")
    write(place, "bills & <b>", frame.assign(paid=paid), TRUTH)
    return place


@pytest.fixture(scope="module")
def page(folder):
    """Return the page, and what the real process said."""
    done = here(
        *("contest", "tables", "--public", "--trials", 1, "--epsilon", 5),
        *("--page", "contest.html"),
        cwd=folder.parent,
    )
    assert done.returncode == 0, done.stderr
    return folder.parent / "contest.html", done


def test_all_methods_play_and_nothing_is_said_to_be_protected(page):
    _, done = page
    for method in CONTESTED:  # the folder has no table of counts
        assert (method in done.stdout) == ("poisson" not in method)
    assert "nothing here was protected" in done.stdout
    assert "\x1b" not in done.stdout
    assert done.stderr == "Page written to contest.html\n"


def test_json_has_every_fit_and_can_be_repeated(folder):
    given = ("tables", "--public", "--json", "--epsilon", 5, "--trials", 2)
    given += ("--method", "private-lasso", "--method", "adassp", "--method", "private-logistic")
    output, again = (json.loads(contest(*given, cwd=folder.parent).stdout) for _ in range(2))
    fits = {(one["table"], one["method"], one["epsilon"], one["trial"]) for one in output["fits"]}
    expected = {("costs", method, 5, t) for method in ("private-lasso", "adassp") for t in (0, 1)}
    expected |= {("bills & <b>", "private-logistic", 5, t) for t in (0, 1)}
    expected |= {
        (name, "not private", None, t) for name in ("costs", "bills & <b>") for t in (0, 1)
    }
    assert fits == expected
    assert [one["score"] for one in output["fits"]] == [one["score"] for one in again["fits"]]
    assert all(one["score"] > 0.8 for one in output["fits"] if one["epsilon"] is None)
    ranks = {one["method"]: one["rank"] for one in output["divisions"]["numbers"]["ranks"]}
    assert sorted(ranks.values()) == [1, 2]
    assert [one["ours"] for one in output["divisions"]["numbers"]["lost"]] in (
        [],
        ["private-lasso"],
    )


def test_the_page_in_a_browser(page):
    with browser() as tab:
        tab.open(page[0])
        check_page(tab)
        text = tab.evaluate("document.body.textContent")
        assert "bills & <b>" in text  # escaped, not made bold
        assert "public tables only" in text


def test_a_folder_must_be_there(tmp_path):
    failed(contest("nowhere", "--public"), 1, "There is no folder", stdout="")
    page = tmp_path / "nowhere/a.html"
    failed(contest("--simulated", "--page", page), 1, "There is no directory", stdout="")


def test_what_cannot_be_played_on_is_named(tmp_path):
    frame = pd.DataFrame({"age": np.arange(30.0), "size": 0.0, "cost": 1.0})
    target = field("cost", 0, 9)

    def message(name, change):
        write(tmp_path / name, "costs", frame, target)
        change(tmp_path / name)
        done = contest(tmp_path / name, "--public")
        assert (done.returncode, done.stdout) == (1, "")
        return done.stderr

    assert "no table in" in message("none", lambda at: (at / "costs.csv").unlink())
    lost = message("bare", lambda at: (at / "costs.json").unlink())
    assert "costs.csv has no schema: expected costs.toml, costs.json or" in lost
    short = message("short", lambda at: write(at, "costs", frame[:5], target))
    assert "costs.csv: it has fewer than 20 rows" in short
    whose = frame.rename(columns={"age": "who"}).astype({"who": "int"})
    who = {"name": "who", "type": "integer"}
    told_units = {"target": "cost", "features": ["size"], "unit": "who", "rows_per_unit": 3}
    of_units = {"fields": [who, FEATURES[1], target], "dpscreen": told_units}

    def with_units(at):
        whose.to_csv(at / "costs.csv", index=False)
        (at / "costs.json").write_text(json.dumps(of_units))

    assert "protect single rows" in message("units", with_units)
    no_target = {"fields": FEATURES, "dpscreen": {}}
    aimless = message("t", lambda at: (at / "costs.json").write_text(json.dumps(no_target)))
    assert "costs.csv: " in aimless
    assert "target" in aimless
