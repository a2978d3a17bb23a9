"""The demonstration, as a real process: one screen, and a page that holds all the rest."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from dpscreen.cli.demo import MEASUREMENTS
from dpscreen.paper.demo import FITS, contestants
from tools.browser import browser, check_page
from tools.command import dpscreen, invoke

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
        r"^(.{26}) *\d* +\d+ % +(?:< )?\d+ % +(\d\.\d\d) +\d\.\d\d  (.*?) *$", re.MULTILINE
    )
    return {name.strip(): (float(score), message) for name, score, message in row.findall(stdout)}


def test_demo_fits_one_screen(demo):
    _, done = demo
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines() + done.stderr.splitlines()
    assert len(lines) <= 32
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in done.stdout


def test_demo_says_who_finds_what_and_whose_promise_holds(demo):
    """The noise is fresh: bands are ten deviations of a mean of five fits wide."""
    found = scores(demo[1].stdout)
    assert tuple(found) == METHODS
    assert f"means of {FITS} fits" in demo[1].stdout
    published, fewer, proven, clipped, unscreened, lasso, plain = (found[name] for name in METHODS)
    assert {one[1] for one in (published, fewer)} == {"does NOT hold"}
    assert {one[1] for one in (proven, clipped, unscreened, lasso)} == {"holds"}
    assert plain == (1.0, "no privacy")
    assert published[0] < 0.4 < 0.55 < fewer[0]  # fewer steps help without any clip
    assert proven[0] < 0.4 < 0.65 < min(clipped[0], unscreened[0])  # proven noise needs the clip
    assert lasso[0] > 0.95


def test_demo_shows_the_summary_of_a_real_table(demo):
    for name, _ in MEASUREMENTS.values():
        assert re.search(rf"^{name} +\S+ +\S+ ", demo[1].stdout, re.MULTILINE)
    assert "Privacy: epsilon = 5" in demo[1].stdout


def test_the_page_holds_pictures_and_statements_and_messages_go_to_stderr(demo):
    folder, done = demo
    assert {path.name for path in folder.iterdir()} == {"dpscreen-demo.html"}
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
        check_page(tab)
        tab.resize(360)
        charts = "[...document.querySelectorAll('.plot svg')]"
        assert tab.evaluate(f"{charts}.every(c => c.getBoundingClientRect().width > 280)")


def test_statements_are_printed_when_asked_for(tmp_path, monkeypatch):
    once = [replace(one, fits=1) for one in contestants()]
    monkeypatch.setattr("dpscreen.paper.demo.contestants", lambda: once)
    done = invoke("demo", "--statements", "--report", tmp_path / "x.html")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.count("Treated as public") == len(METHODS)
    assert done.stdout.count("NOT PRIVATE AS STATED") == 2
    assert (tmp_path / "x.html").exists()
