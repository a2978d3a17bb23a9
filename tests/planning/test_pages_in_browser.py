"""The pages of models in a real browser: complete, silent, legible, and they fit a phone."""

from __future__ import annotations

import base64
import re
import warnings

import numpy as np
import pandas as pd
import pytest

from dpscreen import PrivateLogisticLasso, PrivateLogit, PrivateOLS, load, write_model_page
from dpscreen.planning.regression_plan import expected_table
from dpscreen.planning.setting import Setting
from tools.browser import SERIOUS, browser, check_page

WIDTHS = (390, 1280)
FOLD = "document.querySelector('details').getBoundingClientRect().top + scrollY"
OTHERS = ("table", "odds", "outcomes", "split")
hostile_names = pytest.mark.parametrize("page", ["selection"], indirect=True)
other_models = pytest.mark.parametrize("page", OTHERS, indirect=True)
JARGON = re.compile(r"ρ|\brho\b|zCDP|Lemma|\b[MQ] = |e[+-]\d\d")
ABOUT = {"target": "cost", "author": "A. <b>", "date": "2026-01-31", "purpose": "the report"}
BOUNDS = {"age": (0, 120), "income": (0, 500_000), "smoker": (0, 1), "twin": (0, 120)}


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


def other_page(kind, place):
    """Return a page that was written from a model file."""
    X, y = table()
    given = {"epsilon": 2, "delta": 1e-6, "feature_bounds": BOUNDS, "n_rows": 12_000}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = None  # so it is simulated
        if kind == "table":
            model = PrivateOLS(**given, target_bounds=(0, 20_000), random_state=3).fit(X, y)
            expected = expected_table(Setting(12_000, 4, 2.0, 1e-6, table=True), tables=2)
        else:
            estimator = PrivateLogit if kind == "odds" else PrivateLogisticLasso
            more = {"inference": "split"} if kind == "split" else {}
            model = estimator(**given, **more, random_state=3).fit(X, (y > 2500).astype(int))
    model.save(place / "model.json", about=ABOUT)
    return write_model_page(load(place / "model.json"), place / "page.html", expected=expected)


@pytest.fixture(scope="module", params=["selection", *OTHERS])
def page(request, tmp_path_factory):
    """Return a kind of model, and a page about one."""
    if request.param == "selection":
        return request.param, request.getfixturevalue("model_page")
    return request.param, other_page(request.param, tmp_path_factory.mktemp("other"))


@pytest.fixture(scope="module")
def tab(page):
    with browser() as tab:
        tab.open(page[1])
        yield tab


def unfold(tab, *, yes=True):
    tab.evaluate(f"document.querySelectorAll('details').forEach(e => e.open = {str(yes).lower()})")


@pytest.fixture
def unfolded(tab):
    """Return the tab with all that is folded opened."""
    unfold(tab)
    yield tab
    unfold(tab, yes=False)


def test_nothing_serious_no_message_and_no_request_but_for_the_page(tab):
    check_page(tab)


@hostile_names
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


@pytest.mark.parametrize("width", WIDTHS)
def test_it_fits_and_charts_are_legible(unfolded, width):
    tab = unfolded
    tab.resize(width)
    wide = tab.evaluate(
        "[...document.querySelectorAll('main *')].filter(e => !e.closest('.scroll, svg'))"
        f".filter(e => e.getBoundingClientRect().right > {width} + 1).map(e => e.outerHTML)"
    )
    assert wide == []
    charts = "[...document.querySelectorAll('.plot svg')]"
    assert tab.evaluate(f"{charts}.every(c => c.getBoundingClientRect().width > 280)")
    assert tab.evaluate(
        f"{charts}.every(c => [...c.querySelectorAll('text')].every(t =>"
        " t.getBoundingClientRect().left >= c.getBoundingClientRect().left - 12 &&"
        " t.getBoundingClientRect().right <= c.getBoundingClientRect().right + 12 &&"
        " t.getBoundingClientRect().height >= 8))"
    )


def test_the_first_screen_ends_before_the_first_fold(tab):
    for width, height in ((1280, 1200), (390, 3 * 844)):
        tab.resize(width)
        assert tab.evaluate(FOLD) <= height
        assert tab.evaluate("!document.querySelector('details[open]')")


def test_text_and_curves_are_legible_in_both_themes(unfolded):
    tab = unfolded
    for scheme in ("light", "dark"):
        tab.prefer(scheme)
        paper = luminance(tab.evaluate("getComputedStyle(document.body).backgroundColor"))
        inks = tab.evaluate(
            "[...document.querySelectorAll('.plot text')].map(t => getComputedStyle(t).fill)"
        )
        lines = tab.evaluate(
            "[...document.querySelectorAll('.plot [style*=\"--c\"]')]"
            ".map(e => ['stroke', 'fill'].filter(p => e.style[p].startsWith('var(--c'))"
            ".map(p => getComputedStyle(e)[p])).flat()"
        )
        quiet = tab.evaluate(
            "[...document.querySelectorAll('.remark, .promise dt')]"
            ".map(e => getComputedStyle(e).color)"
        )
        assert min(contrast(luminance(ink), paper) for ink in (*inks, *quiet)) >= 4.5
        assert lines
        assert min(contrast(luminance(line), paper) for line in lines) >= 3
    tab.prefer("light")


def luminance(colour: str) -> float:
    """Return the relative luminance of "rgb(r, g, b)", as WCAG defines it."""
    parts = [int(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: float, other: float) -> float:
    return (max(one, other) + 0.05) / (min(one, other) + 0.05)


def test_every_stop_of_the_keyboard_can_be_seen(tab):
    tab.resize(390)
    tab.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")
    stops = []
    for _ in range(40):
        tab.press("Tab")
        stops.append(
            tab.evaluate(
                "[document.activeElement.className || document.activeElement.tagName,"
                " getComputedStyle(document.activeElement).outlineStyle]"
            )
        )
    assert stops[0][0] == "skip"
    assert {"scroll", "SUMMARY"} <= {name for name, _ in stops}
    assert {outline for name, outline in stops if name != "BODY"} == {"solid"}, stops


@other_models
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
    assert "0→1" in features


@other_models
def test_what_each_kind_shows(page, unfolded):
    (kind, _), tab = page, unfolded
    message = tab.evaluate("document.querySelector('main').innerText")
    assert "Not simulated" not in message
    assert ("Odds ratio" in message) == (kind != "table")
    if kind != "table":
        (share,) = re.findall(r"with a yes in (\d+) % of them", message)  # as released
        assert abs(int(share) - 100 * (table()[1] > 2500).mean()) < 3
    assert ("the half that selects" in message) == (kind == "split")
    if kind in ("outcomes", "split"):
        assert tab.evaluate("document.querySelectorAll('#quality .plot svg').length") == 2
        assert "Which effects such a fit detects" in message
        assert tab.evaluate("document.querySelectorAll('#what-if-table tbody tr').length") == 7
        head = tab.evaluate("document.querySelector('#features thead').innerText")
        assert ("Refit" in head) == (kind == "split")
        return
    plain = "least squares" if kind == "table" else "logistic regression"
    assert f"approximate interval of {plain}" in message
    assert "not separable from" in message  # the twin, which has no interval
    assert tab.evaluate("document.querySelectorAll('#widths tbody tr').length") == 7
    if kind == "table":
        return
    cells = "[...document.querySelectorAll('#features tbody tr')].map(r => r.innerText)"
    rows = [row.split("\t") for row in tab.evaluate(cells)[:-1]]
    ends = [row[2].split(" to ") for row in rows if row[2] != "–"]
    assert len(ends) >= len(rows) - 1  # all but the twin
    for (_, ratio, *_), (low, high) in zip((r for r in rows if r[2] != "–"), ends, strict=True):
        assert float(low) < float(ratio) < float(high)


@hostile_names
def test_names_are_shown_as_they_are_and_run_nothing(tab):
    named = tab.evaluate(
        "[...document.querySelectorAll('#features tbody th')].map(t => t.innerText)"
    )
    assert "<script>alert('x')</script>" in named
    assert tab.evaluate("document.querySelectorAll('script, img, iframe').length") == 0


@hostile_names
def test_a_screen_reader_finds_landmarks_charts_and_tables(unfolded):
    tab = unfolded
    tree = tab.send("Accessibility.getFullAXTree")["nodes"]
    roles = [node["role"]["value"] for node in tree if not node["ignored"]]
    assert {"main", "banner"} <= set(roles)
    assert roles.count("table") >= 3
    charts = [node for node in tree if not node["ignored"] and node["role"]["value"] == "image"]
    assert len(charts) == 2
    assert all(len(node["name"]["value"]) > 40 for node in charts)
    regions = [node for node in tree if not node["ignored"] and node["role"]["value"] == "region"]
    assert len(regions) >= 5
    assert all(node["name"]["value"] for node in regions)


@hostile_names
def test_it_prints_in_ink_on_paper_with_all_details(tab):
    tab.send(
        "Emulation.setEmulatedMedia",
        media="print",
        features=[{"name": "prefers-color-scheme", "value": "dark"}],
    )
    tab.resize(760)
    assert luminance(tab.evaluate("getComputedStyle(document.body).backgroundColor")) > 0.9
    assert tab.evaluate("document.querySelector('#mechanisms').getBoundingClientRect().height") > 60
    assert tab.evaluate("document.documentElement.scrollWidth") <= 760
    tab.send("Emulation.setEmulatedMedia", media="", features=[])
    paper = base64.b64decode(tab.send("Page.printToPDF")["data"])
    assert paper.startswith(b"%PDF")
    assert paper.count(b"/Type /Page\n") <= 12
