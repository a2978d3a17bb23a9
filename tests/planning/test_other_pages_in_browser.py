"""Pages of tables, of coefficients and odds ratios, and of a model of outcomes, in a browser."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest

from dpscreen import PrivateLogistic, PrivateLogit, PrivateOLS, load, write_model_page
from dpscreen.planning.regression_plan import expected_table
from tools.browser import browser

WIDTHS = (360, 1280)
JARGON = re.compile(r"ρ|\brho\b|zCDP|Lemma|\b[MQ] = |e[+-]\d\d")
ABOUT = {"target": "cost", "author": "A. <b>", "date": "2026-01-31", "purpose": "the report"}
BOUNDS = {"age": (0, 120), "income": (0, 500_000), "smoker": (0, 1), "twin": (0, 120)}

# What the usual checkers call serious, as far as a page without scripts can have it.
SERIOUS = """
(() => {
  const found = [], all = s => [...document.querySelectorAll(s)];
  const ids = all('[id]').map(e => e.id);
  found.push(...ids.filter((id, i) => ids.indexOf(id) !== i).map(id => 'two of ' + id));
  all('[aria-labelledby]').forEach(e => e.getAttribute('aria-labelledby').split(' ').forEach(
    id => document.getElementById(id)?.textContent.trim() || found.push('no label ' + id)));
  all('[role=img]').forEach(e => e.getAttribute('aria-label') || found.push('image: no words'));
  all('a').forEach(e => e.textContent.trim() || found.push('link without words'));
  all('table').forEach(e => e.caption && e.tHead || found.push('table without headings'));
  all('th').forEach(e => e.scope || found.push('heading without scope'));
  all('dl > div').forEach(e => [...e.children].every(c => ['DT', 'DD'].includes(c.tagName))
    || found.push('list'));
  const levels = all('h1, h2, h3, h4').map(e => +e.tagName[1]);
  levels.forEach((l, i) => i && l > levels[i - 1] + 1 && found.push('headings skip'));
  if (levels.filter(l => l === 1).length !== 1) found.push('one h1');
  all('.scroll').forEach(e => e.scrollWidth > e.clientWidth && e.tabIndex < 0 &&
    found.push('cannot be scrolled by keyboard'));
  if (!document.documentElement.lang || !document.title) found.push('language, title');
  if (!document.querySelector('main')) found.push('main');
  return found;
})()
"""


def table() -> tuple[pd.DataFrame, np.ndarray]:
    rng, n = np.random.default_rng(5), 12_000
    age = rng.uniform(20, 80, n).round()
    columns = {
        "age": age,
        "income": rng.lognormal(10, 0.5, n),
        "smoker": rng.random(n) < 0.3,
        "twin": age,
    }
    cost = 1000 + 20 * age + 0.003 * columns["income"] + 300 * columns["smoker"]
    return pd.DataFrame(columns), cost + rng.normal(0, 400, n)


@pytest.fixture(scope="module", params=["table", "odds", "outcomes", "split"])
def page(request, tmp_path_factory):
    """Return a page that was written from a model file."""
    (X, y), place = table(), tmp_path_factory.mktemp("other")
    told = {"epsilon": 2, "delta": 1e-6, "feature_bounds": BOUNDS, "n_rows": 12_000}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = None  # so it is simulated
        if request.param == "table":
            model = PrivateOLS(**told, target_bounds=(0, 20_000), random_state=3).fit(X, y)
            public = {"n_rows": 12_000, "n_features": 4, "epsilon": 2, "delta": 1e-6}
            expected = expected_table(**public, tables=2)
        else:
            kind = PrivateLogit if request.param == "odds" else PrivateLogistic
            more = {"inference": "split"} if request.param == "split" else {}
            model = kind(**told, **more, random_state=3).fit(X, (y > 2500).astype(int))
    model.save(place / "model.json", about=ABOUT)
    loaded = load(place / "model.json")
    return request.param, write_model_page(loaded, place / "page.html", expected=expected)


@pytest.fixture(scope="module")
def tab(page):
    with browser() as tab:
        tab.open(page[1])
        yield tab


def test_nothing_serious_and_no_message(tab):
    assert tab.evaluate(SERIOUS) == []
    assert tab.messages() == []


def test_the_check_sees_what_is_wrong(tab):
    tab.evaluate(
        "document.body.insertAdjacentHTML('beforeend', '<div id=bad><h4>x</h4><a></a>"
        "<i id=bad></i><b role=img></b><table></table></div>')"
    )
    found = set(tab.evaluate(SERIOUS))
    tab.evaluate("document.querySelectorAll('#bad').forEach(e => e.remove())")
    assert {"two of bad", "link without words", "table without headings"} <= found
    assert {"image: no words", "headings skip"} <= found
    assert tab.evaluate(SERIOUS) == []


def test_no_jargon_above_the_fold_and_numbers_as_people_write_them(tab):
    tab.resize(1280)
    top = tab.evaluate(
        "document.querySelector('header').innerText"
        " + document.querySelector('dl.promise').innerText"
    )
    assert JARGON.search(top) is None, JARGON.search(top)
    for text in ("cost", "A. <b>", "2026-01-31", "the report", "12\u202f000 rows (declared)"):
        assert text.replace("\u202f", " ") in top.replace("\u202f", " ").replace("\u00a0", " ")
    features = tab.evaluate("document.querySelector('#features').innerText")
    assert re.search(r"\de[+-]\d", features) is None
    assert "0 → 1" in features


@pytest.mark.parametrize("width", WIDTHS)
def test_it_fits_and_charts_are_legible(tab, width):
    tab.resize(width)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    charts = "[...document.querySelectorAll('.plot svg')]"
    heights = tab.evaluate(
        f"{charts}.flatMap(c => [...c.querySelectorAll('text')])"
        ".map(t => t.getBoundingClientRect().height)"
    )
    assert min(heights) >= 8
    used = tab.evaluate(
        "(() => { const e = [...document.querySelectorAll('#model .beside > *')]"
        ".map(e => e.getBoundingClientRect());"
        " return Math.max(...e.map(r => r.right)) - Math.min(...e.map(r => r.left)); })()"
    )
    assert used > 0.85 * width


def test_the_table_needs_no_scrolling_on_a_desk(tab):
    tab.resize(1280)
    assert tab.evaluate(
        "[...document.querySelectorAll('#model .scroll')]"
        ".every(e => e.scrollWidth <= e.clientWidth)"
    )


def test_dark_is_dark_and_legible(tab):
    tab.prefer("dark")
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 29)"
    inks = tab.evaluate(
        "[...document.querySelectorAll('.plot text')].map(t => getComputedStyle(t).fill)"
    )
    assert set(inks) == {"rgb(227, 232, 238)"}
    tab.prefer("light")


def test_what_each_kind_shows(page, tab):
    kind, _ = page
    told = tab.evaluate("document.querySelector('main').innerText")
    assert "Not simulated" not in told
    assert "what came" not in told  # nothing is expected by another rule than the fit's
    assert ("Odds ratio" in told) == (kind != "table")
    if kind != "table":
        (share,) = re.findall(r"with a yes in (\d+) % of them", told)  # as released
        assert abs(int(share) - 100 * (table()[1] > 2500).mean()) < 3
    assert ("the half that selects" in told) == (kind == "split")
    if kind in ("outcomes", "split"):
        assert tab.evaluate("document.querySelectorAll('#model .plot svg').length") == 3
        assert "Which effects such a fit detects" in told
        assert tab.evaluate("document.querySelectorAll('#what-if-table tbody tr').length") == 7
        head = tab.evaluate("document.querySelector('#features thead').innerText")
        assert ("Refit" in head) == (kind == "split")
        return
    plain = "least squares’" if kind == "table" else "logistic regression’s"
    assert f"about as wide as {plain} own interval" in told
    assert "not separable from" in told  # the twin, which has no interval
    assert tab.evaluate("document.querySelectorAll('#widths tbody tr').length") == 7
    if kind == "table":
        return
    assert "the change of the log-odds for one unit" in told
    cells = tab.evaluate(
        "[...document.querySelectorAll('#features tbody tr')].map(r => r.innerText)"
    )
    for name, _, ratio, ends, *_ in (row.split("\t") for row in cells[:-1]):
        low, high = map(float, ends.split(" to "))
        assert low < float(ratio) < high, name


def test_every_stop_of_the_keyboard_can_be_seen(tab):
    tab.resize(360)
    tab.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")
    stops = []
    for _ in range(25):
        tab.press("Tab")
        stops.append(
            tab.evaluate(
                "[document.activeElement.className || document.activeElement.tagName,"
                " getComputedStyle(document.activeElement).outlineStyle]"
            )
        )
    assert {"skip", "scroll", "SUMMARY"} <= {name for name, _ in stops}
    assert all(outline == "solid" for name, outline in stops if name != "BODY")
