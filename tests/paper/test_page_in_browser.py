"""The page in a real browser: everything is there, it asks for nothing, and it fits a phone."""

import pytest

from dpscreen.paper.report import Report, write_report
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


def test_an_empty_study_is_a_page_too(tmp_path):
    write_report(Report(()), tmp_path)
    with browser() as tab:
        tab.open(tmp_path / "index.html")
        assert tab.seen("Runtime.exceptionThrown") == []
        assert tab.evaluate("document.querySelectorAll('.absent').length") > 4
        assert tab.evaluate("document.querySelectorAll('#table3 td.printed').length") == 64


def test_without_a_browser_the_test_is_skipped_but_fails_in_ci(monkeypatch):
    from tools import browser as module

    monkeypatch.setattr(module.shutil, "which", lambda name: None)
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no Chromium"):
        module.find_browser()
    monkeypatch.setenv("CI", "1")
    with pytest.raises(pytest.fail.Exception, match="no Chromium"):
        module.find_browser()
