"""`dpscreen contest`, as a real process and in this one."""

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest

from dpscreen.planning.standings import CONTESTED
from tools.browser import browser
from tools.command import dpscreen, here

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
    done = dpscreen(
        *("contest", "tables", "--public", "--trials", 1, "--epsilon", 5),
        *("--page", "contest.html"),
        cwd=folder.parent,
    )
    assert done.returncode == 0, done.stderr
    return folder.parent / "contest.html", done


def test_all_methods_play_and_nothing_is_said_to_be_protected(page):
    _, done = page
    for method in CONTESTED:
        assert method in done.stdout
    assert "nothing here was protected" in done.stdout
    assert "\x1b" not in done.stdout
    assert done.stderr == "Page written to contest.html\n"


def test_the_page_in_a_browser(page):
    with browser() as tab:
        tab.open(page[0])
        for width in (360, 1280):
            tab.resize(width)
            assert tab.evaluate("document.documentElement.scrollWidth") <= width
        text = tab.evaluate("document.body.textContent")
        assert "bills & <b>" in text  # escaped, not made bold
        assert "public tables only" in text
        assert tab.evaluate("document.querySelectorAll('.plot svg').length") == 4
        unlabelled = "[...document.querySelectorAll('table')].filter(t => !t.caption || !t.tHead)"
        assert tab.evaluate(f"{unlabelled}.length") == 0
        ids = "[...document.querySelectorAll('[id]')].map(e => e.id)"
        assert tab.evaluate(f"new Set({ids}).size === {ids}.length")
        assert tab.messages() == []
