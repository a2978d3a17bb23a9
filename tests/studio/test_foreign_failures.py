"""The text of another library's exception may hold a cell: no browser and no command repeats it."""

import asyncio
import warnings
from concurrent.futures import Future
from types import SimpleNamespace

import pytest
from test_spending import order_of

from dpscreen import BoundsWarning, FallbackWarning
from dpscreen.planning import fitting
from dpscreen.planning.fitting import FitFailed, fit_rows
from dpscreen.studio import steps, work
from dpscreen.studio.server import COOKIE, Guard, Keys
from dpscreen.studio.views import StepRequest
from tools.studio import SECRET, write_table

FOREIGN = [
    KeyError(SECRET),
    RuntimeError(f"could not convert {SECRET}"),
    OverflowError(SECRET),
    MemoryError(SECRET),
    OSError(5, SECRET),
    UnicodeDecodeError("utf-8", SECRET.encode(), 0, 1, SECRET),
]
each_failure = pytest.mark.parametrize("error", FOREIGN, ids=lambda one: type(one).__name__)


def raises(error):
    def function(*_, **__):
        raise error

    return function


@each_failure
def test_a_release_that_fails_says_what_kind_of_failure_it_was_and_no_more(
    error, tmp_path, monkeypatch, ready
):
    session = ready(write_table(tmp_path / "survey.csv", 50), tmp_path / "place")
    order = order_of(session, session.ticket())
    monkeypatch.setattr(fitting, "checked_rows", raises(error))
    reported = work._outcome(order, lambda _: None)
    assert reported == ("failed", f"The release failed ({type(error).__name__}).")


@each_failure
def test_a_fit_that_fails_says_what_kind_of_failure_it_was_and_no_more(error):
    class Model:
        fit = staticmethod(raises(error))

    if isinstance(error, ValueError):
        pytest.skip("what is wrong with rows is said by the package itself, in a ValueError")
    with pytest.raises(FitFailed) as reported:
        fit_rows(Model(), None, None)
    assert str(reported.value) == f"The fit failed ({type(error).__name__})."
    assert reported.value.__cause__ is None
    assert reported.value.__context__ is None


@each_failure
def test_a_page_that_fails_says_what_kind_of_failure_it_was_and_no_more(error):
    keys, sent = Keys(), []
    headers = {"host": "127.0.0.1:1", "cookie": f"{COOKIE}={keys.session}"}
    scope = {
        **{"type": "http", "method": "GET", "path": f"/{keys.place}/table", "query_string": b""},
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }

    async def fails(*_):
        raise error

    async def send(message):
        sent.append(message)

    asyncio.run(Guard(fails, keys, 1)(scope, None, send))
    assert sent[0]["status"] == 500
    page = b"".join(message.get("body", b"") for message in sent).decode()
    assert f"The studio failed ({type(error).__name__})." in page
    assert SECRET not in page


@each_failure
def test_a_dry_run_that_fails_says_what_kind_of_failure_it_was_and_no_more(error, monkeypatch):
    failed = Future()
    failed.set_exception(error)
    monkeypatch.setattr(steps, "reachable", lambda _: ["dry-run"])
    monkeypatch.setattr(steps, "_dry_run_future", lambda _: failed)
    session = SimpleNamespace(draft=SimpleNamespace(rows=9, in_words="", fingerprint=""))
    content = steps.dry_run(session, StepRequest()).content
    assert content["failure"] == f"The dry run failed ({type(error).__name__})."
    assert not content["ready"]


def test_warnings_of_other_libraries_are_not_passed_on():
    class Model:
        @staticmethod
        def fit(*_, **__):
            for kind in (UserWarning, RuntimeWarning, BoundsWarning):
                warnings.warn(f"near {SECRET}", kind, stacklevel=2)
            warnings.warn("ours", FallbackWarning, stacklevel=2)

    assert fit_rows(Model(), None, None) == ("ours",)


def test_a_table_that_changes_while_it_is_read_is_not_released(tmp_path, monkeypatch, ready):
    table = write_table(tmp_path / "survey.csv", 50)
    session = ready(table, tmp_path / "place")
    order = order_of(session, session.ticket())
    read = fitting.checked_rows

    def changed(*given, **watching):
        found = read(*given, **watching)
        write_table(table, 51)
        return found

    monkeypatch.setattr(fitting, "checked_rows", changed)
    outcome, words = work._outcome(order, lambda _: None)
    assert outcome == "failed"
    assert "changed since" in words
    assert not session.ledger.entries()
