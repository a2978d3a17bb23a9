"""A file that is not a whole, unaltered, writable ledger is refused in one clear sentence."""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpscreen.privacy import ZCDP
from dpscreen.privacy.ledger import PrivacyLedger
from dpscreen.privacy.ledger.file import SCHEMA, Content, LedgerBusy, LedgerProblem
from dpscreen.privacy.ledger.records import Reservation


def make(path, reservations=3):
    ledger = PrivacyLedger.create(path, dataset="survey", epsilon=2, delta=1e-6)
    for number in range(reservations):
        ledger.reserve(ledger.total / 10, purpose=f"model {number}")
    return ledger


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return a ledger that stays whole; its copies are broken."""
    return make(tmp_path_factory.mktemp("whole") / "budget.db")


@pytest.fixture
def ledger(tmp_path, whole):
    return PrivacyLedger(shutil.copy(whole.path, tmp_path))


def edit(path, *statements):
    """Change the file behind the ledger's back, as far as SQLite allows."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        for statement in statements:
            database.execute(statement)


def edit_unguarded(path, *statements):
    """Take the triggers off, change the file, and put them on again."""
    triggers = {name: sql for name, sql in SCHEMA.items() if "TRIGGER" in sql}
    edit(path, *(f"DROP TRIGGER {name}" for name in triggers), *statements, *triggers.values())


def refuses(path, told, **options):
    with pytest.raises(LedgerProblem, match=told) as problem:
        PrivacyLedger(path, **options)
    assert "\n" not in str(problem.value)
    assert problem.value.__suppress_context__ or problem.value.__context__ is None


def test_missing_empty_text_and_directory(tmp_path):
    (tmp_path / "empty.db").touch()
    (tmp_path / "text.db").write_text("name,value\n" * 500)
    (tmp_path / "short.db").write_text("x")
    refuses(tmp_path / "missing.db", "does not exist")
    refuses(tmp_path / "no" / "where.db", "does not exist")
    refuses(tmp_path / "empty.db", "is empty")
    refuses(tmp_path / "text.db", "not an SQLite database")
    refuses(tmp_path / "short.db", "not a ledger")
    refuses(tmp_path, "is not a file")
    refuses(tmp_path / "text.db" / "inside.db", "does not exist|cannot be used")
    refuses(tmp_path / ("x" * 300), "cannot be used")
    refuses(tmp_path / "nul\0.db", "does not exist|cannot be used")
    assert not (tmp_path / "missing.db").exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.db")
    refuses(tmp_path / "pipe.db", "is not a file")


def test_foreign_databases(tmp_path, ledger):
    edit(tmp_path / "foreign.db", "CREATE TABLE t (a)")
    refuses(tmp_path / "foreign.db", "not a ledger")
    edit(ledger.path, "PRAGMA application_id = 7")
    refuses(ledger.path, "not a ledger")


def test_an_impostor_with_the_right_id(tmp_path):
    edit(
        tmp_path / "impostor.db",
        "CREATE TABLE t (a)",
        "PRAGMA application_id = 0x64707363",
        "PRAGMA user_version = 1",
    )
    refuses(tmp_path / "impostor.db", "tables are not those of a ledger")


def test_a_newer_format_asks_for_an_upgrade(ledger):
    edit(ledger.path, "PRAGMA user_version = 2")
    refuses(ledger.path, "format 2.*upgrade")
    with pytest.raises(LedgerProblem, match=r"upgrade.*No reservation was booked"):
        ledger.reserve(ledger.total / 10, purpose="test")


def test_create_overwrites_nothing(tmp_path, ledger):
    before = ledger.path.read_bytes()
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "link.db").symlink_to(tmp_path / "nowhere.db")
    for name in ("budget.db", "notes.txt", "link.db", "."):
        with pytest.raises(LedgerProblem, match="never overwritten"):
            make(tmp_path / name)
    assert ledger.path.read_bytes() == before
    assert (tmp_path / "notes.txt").read_text() == "mine"
    with pytest.raises(LedgerProblem, match="does not exist"):
        make(tmp_path / "no" / "where.db")


def test_a_creation_that_fails_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setitem(SCHEMA, "broken", "CREATE NONSENSE")
    with pytest.raises(LedgerProblem, match="could not be read or written"):
        make(tmp_path / "budget.db")
    assert list(tmp_path.iterdir()) == []


def test_the_journal_of_a_ledger_that_was_deleted_does_no_harm(tmp_path, whole):
    (tmp_path / "budget.db-journal").write_bytes(whole.path.read_bytes())
    assert make(tmp_path / "budget.db").entries()[0].number == 1


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE reservation SET rho = '1/1000000'",
        "DELETE FROM reservation",
        "UPDATE account SET rho = '9/1'",
        "DELETE FROM account",
    ],
)
def test_triggers_stop_a_careless_edit(ledger, statement):
    with pytest.raises(sqlite3.IntegrityError, match="only ever added to"):
        edit(ledger.path, statement)
    assert len(PrivacyLedger(ledger.path).entries()) == 3


ALTERED = [
    "UPDATE reservation SET rho = '1/1000000000' WHERE number = 2",
    "UPDATE reservation SET rho = '0/1' WHERE number = 2",
    "UPDATE reservation SET rho = '2/2000000000' WHERE number = 2",
    "UPDATE reservation SET rho = '-1/2' WHERE number = 2",
    "UPDATE reservation SET rho = '1/0' WHERE number = 2",
    "UPDATE reservation SET rho = 'nan' WHERE number = 2",
    "UPDATE reservation SET rho = 0.5 WHERE number = 2",
    "UPDATE reservation SET rho = x'00ff' WHERE number = 2",
    "UPDATE reservation SET purpose = CAST(x'ff' AS TEXT) WHERE number = 2",
    "UPDATE reservation SET rho = '1/' || hex(zeroblob(5000)) WHERE number = 2",
    "UPDATE reservation SET purpose = 'other' WHERE number = 1",
    "UPDATE reservation SET purpose = char(27) || '[2J' WHERE number = 1",
    "UPDATE reservation SET purpose = 'model  1' WHERE number = 2",
    "UPDATE reservation SET who = 'other' WHERE number = 3",
    "UPDATE reservation SET at = '2001-01-01T00:00:00+00:00' WHERE number = 3",
    "UPDATE reservation SET at = 'yesterday' WHERE number = 3",
    "UPDATE reservation SET at = '2026-01-01T00:00:00+01:00' WHERE number = 3",
    "UPDATE reservation SET hash = '' WHERE number = 3",
    "UPDATE reservation SET number = 7 WHERE number = 3",
    "UPDATE reservation SET number = 0 WHERE number = 1",
    "DELETE FROM reservation WHERE number = 1",
    "DELETE FROM reservation WHERE number = 2",
    "DELETE FROM reservation WHERE number = 3",
    "DELETE FROM reservation",
    "UPDATE sqlite_sequence SET seq = 'many'",
    "DELETE FROM sqlite_sequence",
    "INSERT INTO reservation SELECT 4, rho, purpose, who, at, library, detail, nonce, hash "
    "FROM reservation WHERE number = 3",
    "INSERT INTO reservation SELECT -1, rho, purpose, who, at, library, detail, nonce, hash "
    "FROM reservation WHERE number = 3",
    "UPDATE account SET rho = '5/1'",
    "UPDATE account SET epsilon = '4.0'",
    "UPDATE account SET delta = 'x'",
    "UPDATE account SET dataset = 'other'",
    "UPDATE account SET declared = '[1]'",
    "UPDATE account SET declared = replace(hex(zeroblob(50000)), '0', '[')",
    "DELETE FROM account",
    "PRAGMA journal_mode = WAL",
    "CREATE TABLE extra (a)",
    "CREATE TRIGGER undo AFTER INSERT ON reservation BEGIN "
    "UPDATE reservation SET rho = '1/9' WHERE number = new.number; END",
    "CREATE VIEW peek AS SELECT * FROM reservation",
    "ALTER TABLE reservation ADD COLUMN refunded TEXT",
    "DROP TABLE reservation",
]


@pytest.mark.parametrize("statement", ALTERED)
def test_an_altered_ledger_is_refused(ledger, statement):
    if statement.startswith("DROP"):
        edit(ledger.path, statement)
    else:
        edit_unguarded(ledger.path, statement)
    refuses(ledger.path, "is damaged|journal mode")


def test_an_alteration_that_was_undone_is_none(ledger):
    edit_unguarded(ledger.path, "UPDATE reservation SET rho = rho")
    edit(ledger.path, "VACUUM")
    edit(ledger.path, "ANALYZE")
    assert PrivacyLedger(ledger.path).spent == ledger.total * 3 / 10


def test_what_sqlite_quotes_and_python_cannot_decode_is_damage(ledger):
    image = ledger.path.read_bytes()
    ledger.path.write_bytes(
        image.replace(b"CREATE TRIGGER account_", b"CREATE \xe4RIGGER account_")
    )
    refuses(ledger.path, "is damaged")


def test_a_total_that_does_not_belong_to_epsilon_is_refused_though_sealed(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(ZCDP, "within", classmethod(lambda cls, budget: cls(5)))
        path = tmp_path / "budget.db"
        with pytest.raises(LedgerProblem, match="rho does not belong"):
            make(path, 0)
    refuses(path, "rho does not belong")


def test_more_booked_than_granted_is_refused_though_sealed(ledger):
    with ledger._file.writing() as content:
        chain, _ = ledger._catch_up(content)
        asked = Reservation.ask(ledger.total, purpose="too much", who="forger", detail="")
        content.append(chain.sealed(asked))
    refuses(ledger.path, "more is booked than was granted")


def test_an_older_copy_is_noticed_by_who_has_seen_more(tmp_path, ledger):
    shutil.copy(ledger.path, tmp_path / "old.db")
    receipt = ledger.reserve(ledger.total / 10, purpose="after the copy").hash
    PrivacyLedger(ledger.path, since=receipt)
    (tmp_path / "old.db").replace(ledger.path)
    for act in (
        lambda: ledger.reserve(ledger.total / 10, purpose="test"),
        lambda: ledger.spent,
        ledger.entries,
    ):
        with pytest.raises(LedgerProblem, match="older copy"):
            act()
    refuses(ledger.path, "older copy", since=receipt)
    PrivacyLedger(ledger.path)  # from the file alone it cannot be seen


def test_a_tail_cut_off_with_care_is_noticed_by_its_hash(ledger):
    head = ledger.head
    edit_unguarded(
        ledger.path,
        "DELETE FROM reservation WHERE number = 3",
        "UPDATE sqlite_sequence SET seq = 2",
    )
    refuses(ledger.path, "older copy", since=head)


def test_since_takes_any_earlier_hash(ledger):
    for entry in ledger.entries():
        PrivacyLedger(ledger.path, since=entry.hash)
    fresh = make(ledger.path.with_name("fresh.db"), 0)
    head = fresh.head
    fresh.reserve(fresh.total, purpose="all")
    PrivacyLedger(fresh.path, since=head)
    refuses(ledger.path, "another ledger", since=head)


def test_another_ledger_in_its_place_is_noticed(tmp_path, ledger):
    make(tmp_path / "other.db", 5).path.replace(ledger.path)
    with pytest.raises(LedgerProblem, match=r"no longer holds.*No reservation was booked"):
        ledger.reserve(ledger.total / 10, purpose="test")


def test_a_file_replaced_during_a_booking_grants_nothing(tmp_path, ledger, monkeypatch):
    shutil.copy(ledger.path, tmp_path / "old.db")
    append = Content.append

    def replace(content, entry):
        append(content, entry)
        (tmp_path / "old.db").replace(ledger.path)

    monkeypatch.setattr(Content, "append", replace)
    with pytest.raises(LedgerProblem, match=r"replaced|could not be read or written"):
        ledger.reserve(ledger.total / 10, purpose="test")


@given(st.lists(st.tuples(st.integers(0, 2**30), st.integers(1, 255)), min_size=1, max_size=4))
@settings(max_examples=150)
def test_no_flipped_byte_gives_budget_back(whole, flips):
    image = whole.path.read_bytes()
    broken = bytearray(image)
    for place, bits in flips:
        broken[place % len(image)] ^= bits
    path = whole.path.with_name("broken.db")
    path.write_bytes(broken)
    assert_intact_or_refused(path, whole)


@given(st.integers(0, 2**30))
@settings(max_examples=60)
def test_no_truncation_gives_budget_back(whole, length):
    image = whole.path.read_bytes()
    path = whole.path.with_name("broken.db")
    path.write_bytes(image[: length % len(image)])
    with pytest.raises(LedgerProblem):
        PrivacyLedger(path)


@given(st.binary(max_size=3000))
@settings(max_examples=60)
def test_no_stranger_passes_for_a_ledger(whole, noise):
    image = whole.path.read_bytes()
    path = whole.path.with_name("broken.db")
    for content in (noise, image[:100] + noise):
        path.write_bytes(content)
        with pytest.raises(LedgerProblem):
            PrivacyLedger(path)


def assert_intact_or_refused(path, ledger):
    for suffix in ("-journal", "-wal", "-shm"):  # what a broken header may have called for
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    try:
        found = PrivacyLedger(path)
        assert found.entries() == ledger.entries()
        assert found.total == ledger.total
    except LedgerProblem:
        pass


def test_a_locked_ledger_is_busy_and_books_nothing(ledger):
    hasty = PrivacyLedger(ledger.path, timeout=0.05)
    with closing(sqlite3.connect(ledger.path, isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(LedgerBusy, match=r"0\.05 s\. No reservation was booked"):
            hasty.reserve(ledger.total / 10, purpose="test")
        with pytest.raises(LedgerBusy):
            PrivacyLedger(ledger.path, timeout=0.05)
        with pytest.raises(LedgerBusy):
            _ = hasty.remaining
    assert len(ledger.entries()) == 3
    hasty.reserve(ledger.total / 10, purpose="test")


def test_a_reader_who_stays_makes_the_commit_fail_and_books_nothing(ledger):
    hasty = PrivacyLedger(ledger.path, timeout=0.05)
    with closing(sqlite3.connect(ledger.path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM reservation").fetchone() == (3,)
        with pytest.raises(LedgerBusy, match="No reservation was booked"):
            hasty.reserve(ledger.total / 10, purpose="test")
    assert len(ledger.entries()) == 3
    assert hasty.reserve(ledger.total / 10, purpose="test").number == 4


READ_ONLY = """
import os, sys
from dpscreen.privacy.ledger import LedgerProblem, PrivacyLedger
if os.getuid() == 0:
    os.setuid(65534)
try:
    ledger = PrivacyLedger(sys.argv[1])
    print("opened", len(ledger.entries()))
    ledger.reserve(ledger.total / 10, purpose="test")
    print("booked")
except LedgerProblem as problem:
    print(problem)
try:
    PrivacyLedger.create(sys.argv[1] + ".new", dataset="x", epsilon=1, delta=1e-6)
    print("created")
except LedgerProblem as problem:
    print(problem)
"""


@pytest.mark.skipif(os.name != "posix", reason="permissions as POSIX has them")
@pytest.mark.parametrize(
    ("file_mode", "folder_mode", "told"),
    [
        (0o444, 0o555, ["opened 3", "read-only", "Permission denied"]),
        (0o444, 0o777, ["opened 3", "read-only", "created"]),
        (0o666, 0o555, ["opened 3", "read-only", "Permission denied"]),
        (0o000, 0o555, ["cannot be opened", "Permission denied"]),
        (0o666, 0o000, ["Permission denied", "Permission denied"]),
    ],
)
def test_what_may_not_be_written_is_told(file_mode, folder_mode, told):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ledger = make(folder / "budget.db")
        ledger.path.chmod(file_mode)
        folder.chmod(folder_mode)
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", READ_ONLY, str(ledger.path)],
            capture_output=True,
            text=True,
            check=True,
        )
        folder.chmod(0o755)
        ledger.path.chmod(0o644)
        assert len(ledger.entries()) == 3
    lines = done.stdout.splitlines()
    assert len(lines) == len(told), done.stdout
    assert all(part in line for part, line in zip(told, lines, strict=True)), done.stdout
