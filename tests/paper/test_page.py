"""The page as text: complete, self-contained, and safe against what rows may hold."""

import dataclasses
import re
from html.parser import HTMLParser

import pytest

from dpscreen.paper.published import published_cells, published_claims
from dpscreen.paper.report import Report, render
from dpscreen.paper.runner import Skipped

HOSTILE = "<script>alert('x')</script>\"'><img src=x onerror=alert(1)>{{ 7 * 7 }}[bold]"


class Reader(HTMLParser):
    """Collects tags, the attributes that could load something, and the text of cells."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.loads, self.cells, self._cell = [], [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.loads += [v for k, v in attributes if k in ("src", "href", "srcset", "xlink:href")]
        if tag == "td":
            self.cells.append("")
            self._cell = True

    def handle_endtag(self, tag):
        if tag == "td":
            self._cell = False

    def handle_data(self, data):
        if self._cell:
            self.cells[-1] += data


@pytest.fixture(scope="module")
def page(written):
    return (written / "index.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def parsed(page):
    return Reader(page)


def test_nothing_is_loaded_from_elsewhere(page, parsed):
    assert all(place.startswith(("#", "data:")) for place in parsed.loads)
    assert "script" not in parsed.tags
    assert not re.search(r"url\((?!#)", page)
    assert "@import" not in page
    assert not re.search(r"https?://", page)


def test_it_is_small_enough(page):
    assert len(page.encode()) < 3_000_000


@pytest.mark.parametrize("table", range(1, 6))
def test_every_printed_number_is_in_a_cell(parsed, table):
    cells = list(parsed.cells)
    for cell in published_cells(table):
        cells.remove(f"{cell.value:.3f}")


def test_every_claim_and_erratum_is_there(page):
    for key in published_claims():
        assert f'id="claim-{key}"' in page
    for number in range(1, 12):
        assert f'id="E{number}"' in page


def test_tables_have_captions_and_scopes(page, parsed):
    assert parsed.tags.count("table") == parsed.tags.count("caption") == 12
    assert not re.search(r"<th(?![^>]*scope=)[ >]", page)
    assert page.count('role="img" aria-label="') == 14


def test_what_rows_hold_is_shown_and_never_run(rows):
    bad = dataclasses.replace(
        rows[0],
        versions={"numpy": HOSTILE},
        settings={**rows[0].settings, "preparation": [HOSTILE]},
    )
    report = Report((bad, *rows[1:]), (Skipped("housing", HOSTILE),), (HOSTILE,))
    text = render(report)
    assert text.count("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;") == 4
    assert "<script" not in text
    assert "<img" not in text
    assert "{{ 7 * 7 }}" in text


def test_what_was_left_out_and_what_was_wrong_is_said(rows):
    report = Report(rows, (Skipped("housing", "Housing: not found."),), ("a line was damaged",))
    text = render(report)
    assert 'id="skipped"' in text
    assert "Housing: not found." in text
    assert "a line was damaged" in text


def test_the_same_rows_give_the_same_page(rows, page):
    assert render(Report(rows)) == page
