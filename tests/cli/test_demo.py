"""The demonstration, as a real process: one screen, and a page that holds all the rest."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pytest

from dpscreen import __version__
from dpscreen._core.words import percent_at_most
from dpscreen.cli import _demo_table
from dpscreen.models.explain import posterior
from dpscreen.paper import demo as demonstration
from dpscreen.paper.demo import FITS, outcomes, paper_data
from tools.browser import browser
from tools.command import dpscreen, here, invoke

METHODS = (
    "RNM-Screen, published",
    "… with fewer steps, from 0",
    "RNM-Screen, proven",
    "… with clip=1",
    "DP-FW, proven, clip=1",
    "PrivateLasso",
    "LASSO, not private",
)


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    return folder, dpscreen("demo", cwd=folder)


def scores(stdout):
    """Return F1 and what is said of ε, by method."""
    row = re.compile(
        r"^(.{27}) *\d* +\d+ % +(?:< )?\d+ % +(\d\.\d\d) +\d\.\d\d  (.*)$", re.MULTILINE
    )
    return {name.strip(): (float(score), told) for name, score, told in row.findall(stdout)}


def test_demo_fits_one_screen(demo):
    _, done = demo
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines() + done.stderr.splitlines()
    assert len(lines) <= 30
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in done.stdout


def test_demo_says_who_finds_what_and_whose_promise_holds(demo):
    """The noise is fresh: bands are ten deviations of a mean of five fits wide."""
    found = scores(demo[1].stdout)
    assert tuple(found) == METHODS
    published, fewer, proven, clipped, unscreened, lasso, plain = (found[name] for name in METHODS)
    assert {one[1] for one in (published, fewer)} == {"does NOT hold"}
    assert {one[1] for one in (proven, clipped, unscreened, lasso)} == {"holds"}
    assert plain == (1.0, "no privacy")
    assert published[0] < 0.4 < 0.55 < fewer[0]  # fewer steps help without any clip
    assert proven[0] < 0.4 < 0.65 < min(clipped[0], unscreened[0])  # proven noise needs the clip
    assert lasso[0] > 0.95


def test_demo_shows_means_and_names_the_steps(demo):
    assert f"means of {FITS} fits" in demo[1].stdout
    assert re.search(r"^RNM-Screen, published +1000 ", demo[1].stdout, re.MULTILINE)
    assert re.search(r"^… with clip=1 +120 ", demo[1].stdout, re.MULTILINE)


def test_the_means_are_those_of_all_fits(monkeypatch):
    """A stand-in finds nothing, then everything: the mean of F1 is one half."""
    data = paper_data("uncorrelated", np.random.default_rng(0))
    found = iter((np.zeros_like(data.coef), data.coef))

    class Fitted:
        n_iter_ = 7
        privacy_ = SimpleNamespace(holds=True)

        def fit(self, X, _y):
            self.coef_ = next(found)
            return self

        def predict(self, X):
            return X @ self.coef_

    one = demonstration.Contestant("stand-in", "why", Fitted, fits=2)
    monkeypatch.setattr(demonstration, "contestants", lambda: (one,))
    (outcome,) = outcomes(data)
    assert (outcome.f1, outcome.found, outcome.n_iter) == (0.5, 0.5, 7)


def test_demo_shows_a_real_table_and_says_what_epsilon_means(demo):
    told = " ".join(demo[1].stdout.split())
    for one in _demo_table.MEASUREMENTS:
        assert f"{one.name}, {one.step_words}" in told
    assert "Released R²" in told
    sure = percent_at_most(posterior(0.5, _demo_table.EPSILON))
    assert f"becomes at most {sure} sure" in told


def test_the_page_holds_pictures_and_statements_and_messages_go_to_stderr(demo):
    folder, done = demo
    assert [path.name for path in folder.iterdir()] == ["dpscreen-demo.html"]
    page = (folder / "dpscreen-demo.html").read_text(encoding="utf-8")
    assert page.count("<svg") == len(METHODS) + 1
    assert page.count("Treated as public") == len(METHODS)
    assert page.count("NOT PRIVATE AS STATED") == 2
    assert len(page) < 700_000
    assert "dpscreen-demo.html" in done.stderr
    assert "dpscreen-demo.html" not in done.stdout


def test_the_page_in_a_browser_asks_for_nothing_and_fits_a_phone(demo):
    with browser() as tab:
        tab.open(demo[0] / "dpscreen-demo.html")
        assert tab.messages() == []
        assert len(tab.asked_for()) == 1
        for width in (360, 1280):
            tab.resize(width)
            assert tab.evaluate("document.documentElement.scrollWidth") <= width
            assert tab.evaluate(
                "[...document.querySelectorAll('.plot svg')]"
                ".every(c => c.getBoundingClientRect().width > 280)"
            )


def test_statements_and_a_picture_are_written_when_asked_for(tmp_path):
    files = ("--plot", tmp_path / "all.svg", "--report", tmp_path / "x.html")
    done = invoke("demo", "--statements", *files)
    assert done.exit_code == 0, done.stderr
    assert done.stdout.count("Treated as public") == len(METHODS)
    assert done.stdout.count("NOT PRIVATE AS STATED") == 2
    assert (tmp_path / "all.svg").read_text(encoding="utf-8").startswith("<?xml")
    assert (tmp_path / "x.html").exists()


def test_private_effects_are_near_those_of_least_squares():
    """In a hundred fits at ε = 3 none strayed by more than 20."""
    block = _demo_table.regression_block()
    for effect in block.effects:
        assert effect.effect == pytest.approx(effect.plain, abs=40)
    assert block.plain_r2 == pytest.approx(0.51, abs=0.01)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["dmo"], "Did you mean 'demo'?"),
        (["frobnicate"], "No such command"),
        (["demo", "--plot", "x.gif"], "--plot"),
        (["demo", "--plot", "nowhere/at/all.png"], "no directory"),
        (["demo", "--data", "real"], "--data"),
    ],
)
def test_wrong_usage_exits_with_2_and_says_why(arguments, told, tmp_path):
    done = here(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert told in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_version_and_help():
    assert __version__ in dpscreen("--version").stdout
    told = here("--help").stdout
    assert "demo" in told
    assert "Examples:" in here("demo", "-h").stdout
