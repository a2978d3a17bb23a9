"""Two tabs, two processes, a cancel, a kill at any moment: the ledger is right, nothing half."""

import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest

from dpscreen import PrivacyLedger
from dpscreen.privacy import ZCDP, Budget
from dpscreen.studio import session as module
from dpscreen.studio import work
from dpscreen.studio.session import Problems
from dpscreen.studio.shelf import FolderInUse, Shelf
from dpscreen.studio.work import ReleaseOrder
from tools.ledgers import database
from tools.studio import studio, ticket_of, write_table


@pytest.fixture
def table(tmp_path):
    return write_table(tmp_path / "survey.csv", 400)


def over(run, seconds=120):
    end = time.monotonic() + seconds
    while run.running:
        assert time.monotonic() < end
        time.sleep(0.05)


def test_two_tabs_with_one_ticket_start_one_release(table, tmp_path, monkeypatch, ready):
    started = []

    class Run:
        running = True

        def __init__(self, order):
            time.sleep(0.05)
            started.append(order.ticket)

    monkeypatch.setattr(module, "ReleaseRun", Run)
    session = ready(table, tmp_path / "place")
    ticket = session.ticket()
    answers = []
    tabs = [
        threading.Thread(target=lambda: answers.append(session.release(ticket))) for _ in range(8)
    ]
    for tab in tabs:
        tab.start()
    for tab in tabs:
        tab.join()
    assert started == [ticket]
    assert sorted(answers) == [False] * 7 + [True]
    with pytest.raises(Problems, match="is running"):
        session.release(session.ticket())
    session.run = None
    old = session.ticket()
    session.draft.epsilon = 0.5
    with pytest.raises(Problems, match="another tab"):
        session.release(old)
    with pytest.raises(FolderInUse):
        Shelf(tmp_path / "place").open()


def test_two_processes_cannot_spend_one_budget_twice(table, tmp_path, ready):
    ledger = PrivacyLedger.create(tmp_path / "s.ledger", dataset="survey", epsilon=1.5, delta=1e-6)
    folders = (tmp_path / "one", tmp_path / "other")
    both = [ready(table, one, ledger=ledger.path, epsilon=1.2) for one in folders]
    for session in both:
        assert session.release(session.ticket())
    for session in both:
        over(session.run)
    assert sorted(session.run.outcome for session in both) == ["done", "failed"]
    (failed,) = [session for session in both if session.run.outcome == "failed"]
    assert "Nothing was booked" in failed.ended()
    assert len(ledger.entries()) == 1
    assert sum(len(session.shelf.releases()) for session in both) == 1


def test_a_refused_table_says_what_it_takes_and_that_its_count_alone_is_spent(tmp_path, ready):
    few = write_table(tmp_path / "few.csv", 100)  # with 400 rows noise permits a table once in 500
    session = ready(few, tmp_path / "place", epsilon=0.2)
    session.draft.method = "private-ols"
    assert session.release(session.ticket())
    over(session.run)
    assert session.run.outcome == "failed"
    message = session.ended()
    assert message.startswith("A table of 3 features is not possible with about ")
    assert "PrivateLasso selects features" in message
    (entry,) = session.ledger.entries()
    assert entry.cost < ZCDP.within(Budget(0.2, 1e-6)) / 50
    spent = re.search(r"What was booked stays booked: epsilon ([0-9.]+) at", message)
    assert float(spent[1]) == pytest.approx(entry.cost.epsilon(1e-6), rel=0.01)
    assert session.shelf.releases() == []


# --- a kill at any moment -------------------------------------------------------------------------

KILLED = """
import os, signal, sys
from pathlib import Path
from dpscreen._core.files import file_state
from dpscreen.models.file import encoded
from dpscreen.privacy.ledger import PrivacyLedger
from dpscreen.privacy.ledger.file import Content
from dpscreen.studio import work
from dpscreen.tables.reading import read_rows
from dpscreen.tables.schema import load_schema

moments, place, table = sys.argv[1].split(","), Path(sys.argv[2]), Path(sys.argv[3])
declared = load_schema(place / "schema.json").to_dict()
fit = work.FitOrder(declared, "private-lasso", 0.1, 1e-6, None, None)
schema, model = fit.prepared(None)
model.fit(read_rows(table, schema))  # what is compiled is loaded once, and not after every fork

def die(*_args, **_more):
    os.kill(os.getpid(), signal.SIGKILL)

def after(function):
    def work(*args, **more):
        function(*args, **more)
        die()
    return work

def release(moment, number):
    state, ledger = file_state(table), place / "budget.ledger"
    order = work.ReleaseOrder(fit, table, state, place, ledger, f"t{number}")
    if moment == "booking":
        Content.append = after(Content.append)  # within the ledger's transaction
    if moment == "booked":
        PrivacyLedger.reserve = after(PrivacyLedger.reserve)
    if moment == "writing":
        Path.write_bytes = after(Path.write_bytes)  # one file of a release is there
    if moment == "naming":
        Path.rename = die
    work._release(order, lambda report: die() if report[0] == moment else None)

for number, moment in enumerate(moments):
    child = os.fork()
    if child == 0:
        try:
            release(moment, number)
        finally:
            os._exit(3)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL, (moment, status)
    booked = len(PrivacyLedger(place / "budget.ledger").entries())
    print(moment, booked, len(list(place.glob(".*.tmp"))), flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="fork and kill -9")
def test_killed_at_any_moment_the_ledger_is_right_and_nothing_half_made_stays(
    table, tmp_path, ready
):
    place = tmp_path / "place"
    session = ready(table, place)
    session.draft.save(session.shelf.schema_file)
    session.close()
    moments = ["reading", "fitting", "booking", "booked", "saving", "writing", "naming"]
    done = subprocess.run(
        [sys.executable, "-c", KILLED, ",".join(moments), place, table],
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True, text=True, timeout=170, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    output = [line.split() for line in done.stdout.splitlines()]
    assert [line[0] for line in output] == moments
    assert [int(line[1]) for line in output] == [0, 0, 0, 1, 2, 3, 4]  # booked before, lost after
    assert int(output[-1][2]) > 0  # a half-made release was there
    shelf = Shelf(place)
    shelf.open()
    assert shelf.releases() == []
    assert {path.name for path in place.iterdir()} == {".lock", "budget.ledger", "schema.json"}
    shelf.close()


@pytest.mark.slow
def test_a_killed_server_takes_its_release_with_it(tmp_path):
    psutil = pytest.importorskip("psutil")
    table = write_table(tmp_path / "survey.csv", 200_000)
    with studio(table) as running:
        page = running.up_to_release()
        running.post("release", ticket=ticket_of(page), dataset="survey")
        running.wait("progress", "Reading the table")
        children = psutil.Process(running.process.pid).children(recursive=True)
        assert children
        running.process.send_signal(signal.SIGKILL)
        running.process.wait(10)
        _, alive = psutil.wait_procs(children, timeout=30)
        assert not alive
    booked = len(PrivacyLedger(running.folder / "budget.ledger").entries())
    with studio(table) as again:
        again.enter()
        assert again.get("table").step == "table"
        released = list(running.folder.glob("release-*"))
        assert booked in (0, 1)
        assert len(released) <= booked
        assert not list(running.folder.glob(".*.tmp"))


PLANTED = {
    "age": lambda note, age, *others: (note, "old", *others),
    "sex": lambda note, age, sex, *others: (note, age, sex.replace("f", "woman"), *others),
    "cost": lambda *cells: (*cells[:-1], cells[-1].replace(".", "")),
}


@pytest.mark.parametrize("column", PLANTED)
def test_rows_that_do_not_fit_stop_a_release_unless_told_otherwise(column, table, tmp_path, ready):
    head, *rows = table.read_text().splitlines()
    planted = (",".join(PLANTED[column](*row.split(","))) for row in rows)
    table.write_text("\n".join([head, *planted]) + "\n")
    session = ready(table, tmp_path / "place")
    assert session.release(session.ticket())
    over(session.run)
    assert f"column {column!r}: more than" in session.ended()
    assert "Nothing was booked" in session.ended()
    assert session.ledger.entries() == ()
    if column != "sex":
        return
    for most_unreadable, outcome in ((0.3, "failed"), (0.9, "done"), (None, "done")):
        session.most_unreadable = most_unreadable
        session.draft.epsilon = 0.5
        assert session.release(session.ticket())
        over(session.run)
        assert session.run.outcome == outcome


def test_an_early_cancel_spends_nothing(table, tmp_path, ready):
    session = ready(table, tmp_path / "place")
    assert session.release(session.ticket())
    session.cancel()
    assert session.run.outcome == "cancelled"
    assert "Nothing was booked" in session.ended()


@pytest.mark.slow
def test_a_late_cancel_says_what_was_spent(tmp_path, ready):
    table = write_table(tmp_path / "survey.csv", 60_000)
    session = ready(table, tmp_path / "place", epsilon=0.5)
    session.release(session.ticket())
    end = time.monotonic() + 120
    while not session.ledger.entries() and session.run.running and time.monotonic() < end:
        time.sleep(0.005)
    session.cancel()
    message = session.ended()
    if session.shelf.releases():  # it was quicker than the cancel
        assert message == "The release is finished."
    else:
        assert "stays booked: epsilon 0.5 at delta 1e-06" in message
    assert len(session.ledger.entries()) == 1
    assert not list((tmp_path / "place").glob(".*.tmp"))


@pytest.mark.slow
def test_a_model_that_the_disk_refuses_is_handed_out(table, tmp_path, ready):
    session = ready(table, tmp_path / "place")
    blocked = tmp_path / "place" / f".release-{session.ticket()}.tmp"
    blocked.write_text("in the way")
    assert session.release(session.ticket())
    over(session.run)
    assert "Download it now" in session.ended()
    assert b'"dpscreen-model"' in session.run.unsaved
    assert session.shelf.releases() == []


def test_a_damaged_ledger_stops_everything_in_words(table, tmp_path, ready):
    session = ready(table, tmp_path / "place")
    ticket = session.ticket()
    database(session.shelf.ledger).write_bytes(b"no ledger")
    with pytest.raises(Problems, match=r"budget\.ledger") as message:
        session.release(ticket)
    assert str(tmp_path) not in str(message.value)


def order_of(session, ticket):
    """Return the order that the process of a release receives."""
    return ReleaseOrder(
        session.order(session.ledger), session.table, session.state, session.shelf.folder,
        session.shelf.ledger, ticket,
    )  # fmt: skip


def test_a_release_is_booked_at_its_whole_cost_with_its_ticket(table, tmp_path, ready):
    session = ready(table, tmp_path / "place")
    ticket = session.ticket()
    outcome, _ = work._outcome(order_of(session, ticket), lambda message: None)
    booked = session.ledger.entries()
    assert outcome == "done"
    assert [ticket in one.detail for one in booked] == [True]
    budget = Budget(session.draft.epsilon, session.delta(session.ledger))
    assert booked[0].cost == ZCDP.within(budget)


def test_a_table_that_changes_between_steps_is_noticed(table, tmp_path, ready):
    session = ready(table, tmp_path / "place")
    ticket = session.ticket()
    write_table(table, 401)
    with pytest.raises(Problems, match="it changed since"):
        session.release(ticket)
    order = order_of(session, ticket)
    outcome, words = work._outcome(order, lambda message: None)  # the process looks once more
    assert not session.ledger.entries()
    assert outcome == "failed"
    assert "it changed since" in words
