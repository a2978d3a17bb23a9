"""The page in a real browser: everything is there, it asks for nothing, and it fits a phone."""

import pytest

from tools.browser import browser


@pytest.fixture(scope="module")
def tab(written):
    with browser() as tab:
        tab.open(written / "index.html")
        yield tab


def test_no_console_message_and_no_request_but_for_the_page(tab):
    assert tab.messages() == []
    assert [url[:5] for url in tab.asked_for()] == ["file:"]
    assert tab.seen("Network.loadingFailed") == []


@pytest.mark.parametrize(("number", "panels"), [(1, 2), (2, 8), (3, 3), (4, 1)])
def test_every_figure_is_there_and_can_be_seen(tab, number, panels):
    plot = f"document.querySelector('#figure{number} .plot svg')"
    assert tab.evaluate(f"{plot}.querySelectorAll('[id*=-axes_]').length") == panels
    assert tab.evaluate(f"{plot}.getBoundingClientRect().width") > 500
    assert tab.evaluate(f"{plot}.querySelectorAll('path').length") > 5 * panels


def test_ids_are_unique_and_links_lead_somewhere(tab):
    assert (
        tab.evaluate(
            "(() => { const all = [...document.querySelectorAll('[id]')].map(e => e.id);"
            " return all.length - new Set(all).size; })()"
        )
        == 0
    )
    assert tab.evaluate(
        "[...document.querySelectorAll('a[href^=\"#\"]')].map(a => a.getAttribute('href'))"
        ".filter(h => !document.getElementById(h.slice(1)))"
    ) == []  # fmt: skip


@pytest.mark.parametrize("width", [390, 1280])
def test_tables_scroll_inside_themselves(tab, width):
    tab.resize(width)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.evaluate(
        "[...document.querySelectorAll('table')].every(t => t.closest('.scroll[tabindex=\"0\"]'))"
    )


def test_the_dark_theme_turns_text_lines_and_curves(tab):
    colours = (
        "[getComputedStyle(document.body).backgroundColor,"
        " getComputedStyle(document.querySelector('.plot text')).fill,"
        " getComputedStyle(document.querySelector('.plot [id*=legend] path')).stroke]"
    )
    tab.prefer("light")
    light = tab.evaluate(colours)
    tab.prefer("dark")
    dark = tab.evaluate(colours)
    tab.prefer("light")
    assert all(one != other for one, other in zip(light, dark, strict=True))
    assert brightness(light[0]) > 200 > brightness(light[1])
    assert brightness(dark[0]) < 60 < brightness(dark[1])


def brightness(colour: str) -> float:
    return sum(map(int, colour.removeprefix("rgb(").removesuffix(")").split(","))) / 3
