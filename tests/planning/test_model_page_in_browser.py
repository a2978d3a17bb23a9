"""The page of a model in a real browser: complete, silent, legible, and it fits a phone."""

import base64

import pytest
from model_pages import SECTIONS

from tools.browser import browser

WIDTHS = (360, 1280)


@pytest.fixture(scope="module")
def tab(model_page):
    with browser() as tab:
        tab.open(model_page)
        yield tab


def test_no_console_message_and_no_request_but_for_the_page(tab):
    assert tab.messages() == []
    assert [url[:5] for url in tab.asked_for()] == ["file:"]


@pytest.mark.parametrize("width", WIDTHS)
def test_every_section_can_be_seen(tab, width):
    tab.resize(width)
    for name in SECTIONS:
        assert tab.evaluate(f"document.querySelector('#{name} h2').checkVisibility()")
        assert tab.evaluate(
            f"document.getElementById('{name}').getBoundingClientRect().height > 60"
        )


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_sticks_out_but_what_scrolls_in_itself(tab, width):
    tab.resize(width)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    wide = tab.evaluate(
        "[...document.querySelectorAll('main *')].filter(e => !e.closest('.scroll, svg, details'))"
        f".filter(e => e.getBoundingClientRect().right > {width} + 1).map(e => e.outerHTML)"
    )
    assert wide == []


@pytest.mark.parametrize("width", WIDTHS)
def test_charts_fill_their_place_and_their_words_stay_inside(tab, width):
    tab.resize(width)
    charts = "[...document.querySelectorAll('.plot svg')]"
    assert tab.evaluate(f"{charts}.length") == 2
    assert tab.evaluate(f"{charts}.every(c => c.getBoundingClientRect().width > 280)")
    assert tab.evaluate(
        f"{charts}.every(c => [...c.querySelectorAll('text')].every(t =>"
        " t.getBoundingClientRect().left >= c.getBoundingClientRect().left - 12 &&"
        " t.getBoundingClientRect().right <= c.getBoundingClientRect().right + 12))"
    )
    # Readable on a phone: at least 8 pixels high.
    assert tab.evaluate(
        f"{charts}.every(c => [...c.querySelectorAll('text')].every(t =>"
        " t.getBoundingClientRect().height >= 8))"
    )


def test_names_are_shown_as_they_are_and_run_nothing(tab):
    named = tab.evaluate(
        "[...document.querySelectorAll('#features tbody th')].map(t => t.innerText)"
    )
    assert "<script>alert('x')</script>" in named
    assert tab.evaluate("document.querySelectorAll('script, img, iframe').length") == 0


def test_text_and_curves_are_legible_in_both_themes(tab):
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


def test_the_first_tab_offers_to_skip_and_focus_can_be_seen(tab):
    tab.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")
    press(tab, "Tab")
    assert tab.evaluate("document.activeElement.className") == "skip"
    assert tab.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
    assert tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_every_scrolling_table_and_detail_can_be_reached_by_keyboard(tab):
    tab.resize(360)
    reached = set()
    for _ in range(40):
        press(tab, "Tab")
        reached.add(
            tab.evaluate("document.activeElement.className || document.activeElement.tagName")
        )
    assert {"scroll", "SUMMARY"} <= reached


def press(tab, key: str) -> None:
    for kind in ("keyDown", "keyUp"):
        tab.send("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=9)


def test_a_screen_reader_finds_landmarks_charts_and_tables(tab):
    tree = tab.send("Accessibility.getFullAXTree")["nodes"]
    roles = [node["role"]["value"] for node in tree if not node["ignored"]]
    assert {"main", "navigation", "banner"} <= set(roles)
    assert roles.count("table") >= 3
    charts = [node for node in tree if not node["ignored"] and node["role"]["value"] == "image"]
    assert len(charts) == 2
    assert all(len(node["name"]["value"]) > 40 for node in charts)
    regions = [node for node in tree if not node["ignored"] and node["role"]["value"] == "region"]
    assert len(regions) >= len(SECTIONS)
    assert all(node["name"]["value"] for node in regions)


def test_it_prints_in_ink_on_paper_with_all_details(tab):
    tab.send(
        "Emulation.setEmulatedMedia",
        media="print",
        features=[{"name": "prefers-color-scheme", "value": "dark"}],
    )
    tab.resize(760)
    assert luminance(tab.evaluate("getComputedStyle(document.body).backgroundColor")) > 0.9
    assert not tab.evaluate("document.querySelector('nav').checkVisibility()")
    assert tab.evaluate("document.querySelector('#mechanisms').getBoundingClientRect().height") > 60
    assert tab.evaluate("document.documentElement.scrollWidth") <= 760
    tab.send("Emulation.setEmulatedMedia", media="", features=[])
    paper = base64.b64decode(tab.send("Page.printToPDF")["data"])
    assert paper.startswith(b"%PDF")
    assert paper.count(b"/Type /Page\n") <= 12
