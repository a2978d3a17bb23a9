"""What is not a whole, unaltered, writable ledger is refused in one clear sentence."""

import os
import shutil
import sqlite3
import stat
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from dpscreen.privacy import ZCDP
from dpscreen.privacy.ledger import PrivacyLedger
from dpscreen.privacy.ledger.file import SCHEMA, Content, LedgerBusy, LedgerProblem
from dpscreen.privacy.ledger.records import Reservation
from tools.ledgers import database, make_ledger, python


def edit(path, *statements):
    """Change the database behind the ledger's back, as far as SQLite allows."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def edit_unguarded(path, *statements):
    """Take the triggers off, change the database, and put them on again."""
    triggers = {name: sql for name, sql in SCHEMA.items() if "TRIGGER" in sql}
    edit(path, *(f"DROP TRIGGER {name}" for name in triggers), *statements, *triggers.values())


def refuses(path, told, **options):
    with pytest.raises(LedgerProblem, match=told) as problem:
        PrivacyLedger(path, **options)
    assert "\n" not in str(problem.value)
    assert problem.value.__suppress_context__ or problem.value.__context__ is None


def directory(path, content=None):
    """Make a directory like that of a ledger, with this for its database."""
    path.mkdir()
    (path / "lock").touch()
    if content is not None:
        database(path).write_bytes(content)
    return path


def test_missing_empty_text_and_directory(tmp_path):
    (tmp_path / "text.db").write_text("name,value\n" * 500)
    refuses(tmp_path / "missing.ledger", "does not exist")
    refuses(tmp_path / "no" / "where.ledger", "does not exist")
    refuses(tmp_path / "text.db", "not a directory")
    refuses(tmp_path, "not a whole ledger: it has no ledger.db and no lock")
    refuses(tmp_path / "text.db" / "inside.ledger", "does not exist|cannot be used")
    refuses(tmp_path / ("x" * 300), "cannot be used")
    refuses(tmp_path / "nul\0.ledger", "does not exist|cannot be used")
    refuses(directory(tmp_path / "empty", b""), "is not a ledger")
    refuses(directory(tmp_path / "short", b"x"), "is not a ledger")
    refuses(directory(tmp_path / "text", b"name,value\n" * 500), "not an SQLite database")
    assert not (tmp_path / "missing.ledger").exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
@pytest.mark.parametrize("name", ["ledger.db", "ledger.db-journal", "lock"])
def test_a_pipe_is_not_waited_for(tmp_path, ledger, name):
    os.mkfifo(tmp_path / "pipe")
    refuses(tmp_path / "pipe", "is not a directory")
    (ledger.path / name).unlink(missing_ok=True)
    os.mkfifo(ledger.path / name)
    refuses(ledger.path, f"{name} is not a file")


def test_foreign_databases_and_an_impostor_with_the_right_id(tmp_path, ledger):
    edit(database(directory(tmp_path / "foreign")), "CREATE TABLE t (a)")
    refuses(tmp_path / "foreign", "not a ledger")
    identity = "PRAGMA application_id = 0x64707363", "PRAGMA user_version = 2"
    edit(database(tmp_path / "foreign"), *identity)
    refuses(tmp_path / "foreign", "tables are not those of a ledger")
    edit(database(ledger), "PRAGMA application_id = 7")
    refuses(ledger.path, "not a ledger")


def test_a_newer_format_asks_for_an_upgrade(ledger):
    edit(database(ledger), "PRAGMA user_version = 3")
    refuses(ledger.path, "format 3.*upgrade")
    with pytest.raises(LedgerProblem, match=r"upgrade.*No reservation was booked"):
        ledger.reserve(ledger.total / 10, purpose="test")


def test_create_overwrites_nothing(tmp_path, ledger):
    before = database(ledger).read_bytes()
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("budget.ledger", "notes.txt", "empty", "link", "."):
        with pytest.raises(LedgerProblem, match="never overwritten"):
            make_ledger(tmp_path / name)
    assert database(ledger).read_bytes() == before
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert list((tmp_path / "empty").iterdir()) == []
    with pytest.raises(LedgerProblem, match="does not exist"):
        make_ledger(tmp_path / "no" / "where.ledger")


def test_a_creation_that_fails_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setitem(SCHEMA, "broken", "CREATE NONSENSE")
    with pytest.raises(LedgerProblem, match="could not be read or written"):
        make_ledger(tmp_path / "budget.ledger")
    assert list(tmp_path.iterdir()) == []


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
        edit(database(ledger), statement)
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
        edit(database(ledger), statement)
    else:
        edit_unguarded(database(ledger), statement)
    refuses(ledger.path, "is damaged|journal mode")


def test_an_alteration_that_was_undone_is_none(ledger):
    edit_unguarded(database(ledger), "UPDATE reservation SET rho = rho")
    edit(database(ledger), "VACUUM")
    edit(database(ledger), "ANALYZE")
    assert PrivacyLedger(ledger.path).spent == ledger.total * 3 / 10


def test_what_sqlite_quotes_and_python_cannot_decode_is_damage(ledger):
    image = database(ledger).read_bytes()
    database(ledger).write_bytes(
        image.replace(b"CREATE TRIGGER account_", b"CREATE \xe4RIGGER account_")
    )
    refuses(ledger.path, "is damaged")


def test_a_total_that_does_not_belong_to_epsilon_is_refused_though_sealed(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(ZCDP, "within", classmethod(lambda cls, budget: cls(5)))
        path = tmp_path / "budget.ledger"
        with pytest.raises(LedgerProblem, match="rho does not belong"):
            make_ledger(path)
    refuses(path, "rho does not belong")


def test_more_booked_than_granted_is_refused_though_sealed(ledger):
    with ledger._file.writing() as content:
        chain, _ = ledger._catch_up(content)
        asked = Reservation.ask(ledger.total, purpose="too much", who="forger", detail="")
        content.append(chain.sealed(asked))
    refuses(ledger.path, "more is booked than was granted")


def test_an_older_copy_is_noticed_by_who_has_seen_more(tmp_path, ledger):
    shutil.copy(database(ledger), tmp_path / "old.db")
    receipt = ledger.reserve(ledger.total / 10, purpose="after the copy").hash
    PrivacyLedger(ledger.path, since=receipt)
    (tmp_path / "old.db").replace(database(ledger))
    for act in (
        lambda: ledger.reserve(ledger.total / 10, purpose="test"),
        lambda: ledger.spent,
        ledger.entries,
    ):
        with pytest.raises(LedgerProblem, match="older copy"):
            act()
    refuses(ledger.path, "older copy", since=receipt)
    PrivacyLedger(ledger.path)  # from the file alone it cannot be seen


def test_a_tail_cut_off_with_care_is_noticed_by_any_of_its_hashes(ledger):
    head = ledger.head
    for entry in ledger.entries():
        PrivacyLedger(ledger.path, since=entry.hash)
    cut = "DELETE FROM reservation WHERE number = 3", "UPDATE sqlite_sequence SET seq = 2"
    edit_unguarded(database(ledger), *cut)
    refuses(ledger.path, "older copy", since=head)
    fresh = make_ledger(ledger.path.with_name("fresh.ledger"))
    PrivacyLedger(fresh.path, since=fresh.head)  # that of no reservation yet
    refuses(fresh.path, "another ledger", since=head)


def test_another_ledger_in_its_place_is_noticed(tmp_path, ledger):
    database(make_ledger(tmp_path / "other.ledger", 5)).replace(database(ledger))
    with pytest.raises(LedgerProblem, match=r"no longer holds.*No reservation was booked"):
        ledger.reserve(ledger.total / 10, purpose="test")


def test_a_file_replaced_during_a_booking_grants_nothing(tmp_path, ledger, monkeypatch):
    shutil.copy(database(ledger), tmp_path / "old.db")
    append = Content.append

    def replace(content, entry):
        append(content, entry)
        (tmp_path / "old.db").replace(database(ledger))

    monkeypatch.setattr(Content, "append", replace)
    with pytest.raises(LedgerProblem, match=r"replaced|could not be read or written"):
        ledger.reserve(ledger.total / 10, purpose="test")


@pytest.mark.parametrize("hold", ["BEGIN EXCLUSIVE", "BEGIN"])
def test_a_ledger_that_others_hold_or_read_is_busy_and_books_nothing(ledger, hold):
    hasty = PrivacyLedger(ledger.path, timeout=0.05)
    with closing(sqlite3.connect(database(ledger), isolation_level=None)) as holder:
        holder.execute(hold)
        assert holder.execute("SELECT count(*) FROM reservation").fetchone() == (3,)
        with pytest.raises(LedgerBusy, match=r"0\.05 s\. No reservation was booked"):
            hasty.reserve(ledger.total / 10, purpose="test")
        if hold == "BEGIN EXCLUSIVE":  # a reader who stays makes the commit fail, and lets read
            for act in (lambda: PrivacyLedger(ledger.path, timeout=0.05), lambda: hasty.remaining):
                with pytest.raises(LedgerBusy):
                    act()
    assert len(ledger.entries()) == 3
    assert hasty.reserve(ledger.total / 10, purpose="test").number == 4


READ_ONLY = """
import os, sys
from dpscreen._core.messages import catalogue
from dpscreen.privacy.ledger import LedgerProblem, PrivacyLedger
catalogue()  # whoever has no rights below may not read the files of the package either
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
        (0o444, 0o777, ["opened 3", "read-only", "Permission denied"]),
        (0o666, 0o555, ["opened 3", "read-only", "Permission denied"]),
        (0o000, 0o555, ["Permission denied", "Permission denied"]),
        (0o666, 0o000, ["Permission denied", "Permission denied"]),
    ],
)
def test_what_may_not_be_written_is_told(file_mode, folder_mode, told):
    with tempfile.TemporaryDirectory() as name:
        ledger = make_ledger(Path(name) / "budget.ledger", 3)
        Path(name).chmod(0o755)
        for file in ledger.path.iterdir():
            file.chmod(file_mode)
        ledger.path.chmod(folder_mode)
        done = python("-c", READ_ONLY, ledger.path)
        ledger.path.chmod(0o700)
        for file in ledger.path.iterdir():
            file.chmod(0o600)
        assert len(ledger.entries()) == 3
    lines = done.stdout.splitlines()
    assert len(lines) == len(told), done.stdout
    assert all(part in line for part, line in zip(told, lines, strict=True)), done.stdout


@pytest.mark.skipif(os.name != "posix", reason="permissions as POSIX has them")
def test_a_new_ledger_is_for_its_owner_alone(tmp_path):
    before = os.umask(0)
    try:
        ledger = make_ledger(tmp_path / "budget.ledger", 1)
    finally:
        os.umask(before)
    assert stat.S_IMODE(ledger.path.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in ledger.path.iterdir()} == {0o600}
