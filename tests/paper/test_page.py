"""The page: complete, self-contained, and safe against what rows may hold."""

import dataclasses

from dpscreen.paper.report import Report, render
from tools.browser import browser, check_page
from tools.pages import Page

HOSTILE = "<script>alert('x')</script>\"'><img src=x onerror=alert(1)>{{ 7 * 7 }}[bold]"


def test_nothing_is_loaded_from_elsewhere(written):
    text = (written / "index.html").read_text(encoding="utf-8")
    Page(text).check_alone()
    assert len(text.encode()) < 3_000_000


def test_what_rows_hold_is_shown_and_never_run(rows):
    bad = dataclasses.replace(
        rows[0],
        versions={"numpy": HOSTILE},
        settings={**rows[0].settings, "preparation": [HOSTILE]},
    )
    report = Report((bad, *rows[1:]), ("housing",), (HOSTILE,))
    text = render(report)
    assert 'id="skipped"' in text
    assert text.count("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;") == 3
    assert "<script" not in text
    assert "<img" not in text
    assert "{{ 7 * 7 }}" in text


def test_the_page_in_a_browser_has_every_table_and_figure(written):
    with browser() as tab:
        tab.open(written / "index.html")
        check_page(tab)
        tables = "[...document.querySelectorAll('table')]"
        assert tab.evaluate(f"{tables}.length") == 12
        assert tab.evaluate(f"{tables}.every(t => t.closest('.scroll[tabindex=\"0\"]'))")
        for number, panels in enumerate((2, 8, 3, 1), start=1):
            plot = f"document.querySelector('#figure{number} .plot svg')"
            assert tab.evaluate(f"{plot}.querySelectorAll('[id*=-axes_]').length") == panels
            assert tab.evaluate(f"{plot}.getBoundingClientRect().width") > 500
            assert tab.evaluate(f"{plot}.querySelectorAll('path').length") > 5 * panels
