"""A ledger is one under all names of its directory; its files have no names of their own."""

import os
import shutil

import pytest

from dpscreen.privacy.ledger import LedgerProblem, PrivacyLedger, directory, records
from dpscreen.privacy.ledger.file import Content, LedgerBusy
from tools.ledgers import database, make_ledger, said_by
from tools.mounts import may_mount, mounted

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links and locks as POSIX has them")
MOUNTS = pytest.mark.skipif(not may_mount(), reason="nothing may be mounted here")
FILES = ("ledger.db", "ledger.db-journal", "lock")


def book(ledger):
    return ledger.reserve(ledger.total / 10, purpose="test")


def refuses(ledger, told):
    """Book, read and open: all are refused in one sentence."""
    for act in (lambda: book(ledger), ledger.entries, lambda: PrivacyLedger(ledger.path)):
        assert "\n" not in refused(act, told)


def refused(act, told):
    with pytest.raises(LedgerProblem, match=told) as problem:
        act()
    return str(problem.value)


# --- names of the directory -----------------------------------------------------------------------


def test_a_link_to_the_directory_is_the_same_ledger(tmp_path, ledger):
    (tmp_path / "link").symlink_to("budget.ledger")
    linked = PrivacyLedger(tmp_path / "link")
    receipts = {book(ledger).hash, book(linked).hash}
    assert receipts <= {entry.hash for entry in linked.entries()}
    assert linked.head == ledger.head


def test_a_directory_is_renamed_and_goes_on(tmp_path, ledger):
    receipt = book(ledger).hash
    ledger.path.rename(tmp_path / "other.ledger")
    refused(lambda: book(ledger), r"does not exist. No reservation was booked")
    moved = PrivacyLedger(tmp_path / "other.ledger", since=receipt)
    assert book(moved).number == 5


def test_a_link_that_leads_elsewhere_meanwhile_is_noticed(tmp_path, ledger):
    other = make_ledger(tmp_path / "other.ledger", 3)
    (tmp_path / "link").symlink_to("budget.ledger")
    linked = PrivacyLedger(tmp_path / "link")
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("other.ledger")
    refused(lambda: book(linked), "no longer holds")
    assert len(ledger.entries()) == len(other.entries()) == 3


@pytest.mark.parametrize("replaced", [False, True])
def test_a_directory_renamed_during_a_booking_grants_nothing(
    tmp_path, ledger, monkeypatch, replaced
):
    append, before = Content.append, ledger.head

    def rename(content, entry):
        append(content, entry)
        ledger.path.rename(tmp_path / "other.ledger")
        if replaced:
            shutil.copytree(tmp_path / "other.ledger", ledger.path)

    monkeypatch.setattr(Content, "append", rename)
    refused(lambda: book(ledger), "replaced|could not be read or written|read-only|does not exist")
    monkeypatch.undo()
    assert PrivacyLedger(tmp_path / "other.ledger", since=before).entries()[:3]


BOOK = """
import sys
from dpscreen.privacy.ledger import LedgerProblem, PrivacyLedger
for path in sys.argv[1:]:
    try:
        ledger = PrivacyLedger(path)
        print(len(ledger.entries()), end=" ")
        print("booked", ledger.reserve(ledger.total / 10, purpose="test").number)
    except LedgerProblem as problem:
        print(problem)
"""


@MOUNTS
def test_a_mounted_directory_is_the_same_ledger(tmp_path, ledger):
    (tmp_path / "mounted").mkdir()
    before = mounted(ledger.path, tmp_path / "mounted")
    said = said_by("-c", BOOK, tmp_path / "mounted", ledger.path, before=before)
    assert said.splitlines() == ["3 booked 4", "4 booked 5"]
    assert len(ledger.entries()) == 5


@MOUNTS
def test_a_read_only_mount_can_be_read(tmp_path, ledger):
    (tmp_path / "mounted").mkdir()
    before = mounted(ledger.path, tmp_path / "mounted", "ro")
    said = said_by("-c", BOOK, tmp_path / "mounted", before=before)
    assert said.startswith("3 ")
    assert "read-only" in said
    assert "No reservation was booked" in said
    assert len(ledger.entries()) == 3


# --- names of the files in it ---------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
def test_a_file_with_a_second_name_is_refused(tmp_path, ledger, name):
    (ledger.path / name).touch()
    (tmp_path / "second").hardlink_to(ledger.path / name)
    refuses(ledger, f"{name} has a second name")
    (tmp_path / "second").unlink()
    assert book(ledger).number == 4


@pytest.mark.parametrize("name", FILES)
def test_a_link_in_place_of_a_file_is_refused(tmp_path, ledger, name):
    (ledger.path / name).touch()
    (ledger.path / name).rename(tmp_path / "elsewhere")
    (ledger.path / name).symlink_to(tmp_path / "elsewhere")
    refuses(ledger, f"{name} is not a file, or is a link")


@MOUNTS
def test_a_database_that_is_mounted_by_itself_is_refused(tmp_path, ledger):
    # From the same disk, so that the device does not tell it apart.
    other = make_ledger(tmp_path / "other.ledger", 0)
    before = mounted(database(ledger), database(other))
    said = said_by("-c", BOOK, other.path, ledger.path, before=before)
    assert "ledger.db is mounted by itself" in said.splitlines()[0]
    assert said.splitlines()[1] == "3 booked 4"


def test_a_second_name_given_during_a_booking_grants_nothing(tmp_path, ledger, monkeypatch):
    append = Content.append

    def link(content, entry):
        append(content, entry)
        (tmp_path / "second").hardlink_to(database(ledger))

    monkeypatch.setattr(Content, "append", link)
    refused(lambda: book(ledger), "second name, while a reservation was made; it does not count")


def test_where_mounts_have_no_numbers_devices_are_compared(ledger, monkeypatch):
    monkeypatch.delattr(os, "O_PATH", raising=False)
    assert book(ledger).number == 4


# --- what is not whole ----------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [("ledger.db",), ("lock",), ("ledger.db", "lock")])
def test_a_directory_that_is_not_whole_is_no_new_budget(ledger, missing):
    for name in missing:
        (ledger.path / name).unlink()
    refuses(ledger, f"not a whole ledger: it has no {' and no '.join(missing)}")
    refused(lambda: make_ledger(ledger.path), "never overwritten")
    assert {path.name for path in ledger.path.iterdir()} == {"ledger.db", "lock"} - {*missing}


# --- the lock -------------------------------------------------------------------------------------


def test_the_lock_is_one_under_all_names(tmp_path, ledger):
    (tmp_path / "link").symlink_to("budget.ledger")
    linked = PrivacyLedger(tmp_path / "link", timeout=0.02)
    with ledger._file.held():
        with pytest.raises(LedgerBusy, match="No reservation was booked"):
            book(linked)
        with pytest.raises(LedgerBusy):
            _ = linked.spent
    assert book(linked).number == 4


def test_a_handle_that_is_closed_meanwhile_lets_no_other_in(ledger, monkeypatch):
    # It takes SQLite's own locks away, in this process: POSIX says so.
    append, said = Content.append, []

    def intrude(content, entry):
        append(content, entry)
        with database(ledger).open("rb"):
            pass
        code = BOOK.replace("PrivacyLedger(path)", "PrivacyLedger(path, timeout=0.02)")
        said.append(said_by("-c", code, ledger.path))

    monkeypatch.setattr(Content, "append", intrude)
    assert book(ledger).number == 4
    assert "in use by another process" in said[0]
    assert len(PrivacyLedger(ledger.path).entries()) == 4


def test_a_ledger_that_is_replaced_while_its_lock_is_waited_for_is_noticed(
    tmp_path, ledger, monkeypatch
):
    lock = directory._lock

    def replace(handle, until):
        shutil.copytree(ledger.path, tmp_path / "copy")
        ledger.path.rename(tmp_path / "gone")
        (tmp_path / "copy").rename(ledger.path)
        lock(handle, until)

    monkeypatch.setattr(directory, "_lock", replace)
    refused(lambda: book(ledger), "replaced while this process waited for its lock")


CHILD = """
import os, sys, time
from dpscreen.privacy.ledger import PrivacyLedger
ledger = PrivacyLedger(sys.argv[1])
with ledger._file.held():
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
print(PrivacyLedger(sys.argv[1], timeout=0).reserve(ledger.total / 10, purpose="test").number)
os.kill(child, 9)
os.waitpid(child, 0)
"""


def test_a_child_that_was_forked_meanwhile_does_not_keep_the_lock(ledger):
    assert said_by("-c", CHILD, ledger.path) == "4"


# --- the clock ------------------------------------------------------------------------------------


def test_a_clock_that_is_changed_changes_nothing_but_times(ledger, monkeypatch):
    times = ["2099-01-01T00:00:00+00:00", "1970-01-01T00:00:00+00:00", "2026-03-29T01:59:59+00:00"]
    for moment in times:
        monkeypatch.setattr(records, "now", lambda moment=moment: moment)
        book(ledger)
    entries = PrivacyLedger(ledger.path).entries()
    assert [entry.number for entry in entries] == [1, 2, 3, 4, 5, 6]
    assert [entry.at for entry in entries[3:]] == times
    for moment in (0.0, 1e12):
        monkeypatch.setattr("time.time", lambda moment=moment: moment)
        with ledger._file.held(), pytest.raises(LedgerBusy):
            PrivacyLedger(ledger.path, timeout=0.02)
    assert ledger.spent == ledger.total * 6 / 10
