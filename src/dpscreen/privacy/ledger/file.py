"""The database of a ledger: SQLite, read and written in whole transactions.

Why a rollback journal and not a write-ahead log: at rest the ledger is then one database, so that
nothing booked lies elsewhere; and readers need no shared memory. Why `synchronous=EXTRA` and not
FULL: with a rollback journal, a transaction is committed when the journal is deleted, and FULL does
not wait until that deletion has reached the disk. After a power cut the journal could reappear and
undo a reservation whose release had already been handed out. EXTRA waits, and `fullfsync` makes
macOS wait as well.

Each transaction has a connection of its own, under the lock of the directory. Nothing is kept open
that a fork could share, and a database that was replaced is noticed. It is never opened by other
means than SQLite: closing such a handle would drop SQLite's locks in this process (POSIX).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from dpscreen._core.messages import Message, message
from dpscreen.privacy.ledger.directory import DATABASE, Foreign, LedgerDirectory, Place
from dpscreen.privacy.ledger.records import Account, Damaged, Reservation

Parsed = TypeVar("Parsed")

APPLICATION_ID = 0x64707363  # "dpsc"
LAYOUT = 2

_KEPT = "BEGIN SELECT RAISE(ABORT, 'a ledger is only ever added to'); END"
SCHEMA = {
    "account": (
        "CREATE TABLE account (id INTEGER PRIMARY KEY CHECK (id = 0), dataset TEXT NOT NULL, "
        "declared TEXT NOT NULL, epsilon TEXT NOT NULL, delta TEXT NOT NULL, rho TEXT NOT NULL, "
        "note TEXT NOT NULL, who TEXT NOT NULL, at TEXT NOT NULL, library TEXT NOT NULL, "
        "nonce TEXT NOT NULL, hash TEXT NOT NULL)"
    ),
    # AUTOINCREMENT remembers the last number given, so that a row cut off the end is missed.
    "reservation": (
        "CREATE TABLE reservation (number INTEGER PRIMARY KEY AUTOINCREMENT, rho TEXT NOT NULL, "
        "purpose TEXT NOT NULL, who TEXT NOT NULL, at TEXT NOT NULL, library TEXT NOT NULL, "
        "detail TEXT NOT NULL, nonce TEXT NOT NULL, hash TEXT NOT NULL)"
    ),
} | {
    f"{table}_{event}": f"CREATE TRIGGER {table}_{event} BEFORE {event} ON {table} {_KEPT}"
    for table in ("account", "reservation")
    for event in ("update", "delete")
}

_REASONS = {
    sqlite3.SQLITE_READONLY: "read-only",
    sqlite3.SQLITE_CANTOPEN: "closed",
    sqlite3.SQLITE_PERM: "forbidden",
    sqlite3.SQLITE_FULL: "full",
    sqlite3.SQLITE_NOTADB: "no-database",
    sqlite3.SQLITE_CORRUPT: "corrupt",
}
_BUSY = sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED


class LedgerProblem(RuntimeError):
    """A ledger cannot be used. No budget was granted, so nothing may be released."""


class LedgerBusy(LedgerProblem):
    """Another process held the ledger for too long. Nothing was booked; try again."""


class Content:
    """What stands in an open ledger, within one transaction."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def account(self) -> Account:
        """Read the account."""
        rows = self._database.execute(
            "SELECT dataset, declared, epsilon, delta, rho, note, who, at, library, nonce, hash "
            "FROM account"
        ).fetchall()
        if len(rows) != 1:
            raise Damaged("account-missing")
        return _parsed(Account.parse, rows[0])

    def reservations(self, *, after: int = 0) -> Iterator[Reservation]:
        """Read the reservations behind the given number, in order."""
        rows = self._database.execute(
            "SELECT number, rho, purpose, who, at, library, detail, nonce, hash "
            "FROM reservation WHERE number > ? ORDER BY number",
            (after,),
        )
        return (_parsed(Reservation.parse, row) for row in rows)

    def seal(self, number: int) -> str | None:
        """Return the hash of a reservation, or of the account for number 0."""
        table, key = ("reservation", "number") if number else ("account", "id")
        row = self._database.execute(
            f"SELECT hash FROM {table} WHERE {key} = ?", (number,)
        ).fetchone()
        return None if row is None else str(row[0])

    def last_number(self) -> int:
        """Return the last number that was ever given, whether or not its row is still there."""
        rows = self._database.execute("SELECT name, seq FROM sqlite_sequence").fetchall()
        if any(name != "reservation" for name, _ in rows) or len(rows) > 1:
            raise Damaged("last-number")
        return _parsed(int, rows[0][1]) if rows else 0

    def count(self) -> int:
        """Return how many rows there are, those included that no reservation has a number for."""
        (number,) = self._database.execute("SELECT count(*) FROM reservation").fetchone()
        return int(number)

    def append(self, entry: Reservation) -> None:
        """Write a reservation; it is booked when the transaction has been committed."""
        self._database.execute(
            "INSERT INTO reservation VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", entry.row()
        )

    def check_pages(self) -> None:
        """Let SQLite check the structure of the whole file."""
        if self._database.execute("PRAGMA quick_check(1)").fetchall() != [("ok",)]:
            raise Damaged("pages")


class LedgerFile(LedgerDirectory):
    """The database of a ledger in its directory."""

    def create(self, account: Account) -> None:
        """Make a new ledger; one that is there, or anything else, is never overwritten."""
        cells = account.row()
        with self.problems(), self.begun() as draft:
            with closing(self._connect(draft)) as database:
                database.execute("BEGIN IMMEDIATE")
                database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                database.execute(f"PRAGMA user_version = {LAYOUT}")
                for statement in SCHEMA.values():
                    database.execute(statement)
                marks = ", ".join("?" * len(cells))
                database.execute(f"INSERT INTO account VALUES (0, {marks})", cells)
                database.execute("COMMIT")
            self.finish(draft)

    @contextmanager
    def reading(self) -> Iterator[Content]:
        """Read in one transaction, so that all of it is of one moment."""
        with self.problems(), self.held(), closing(self._connect()) as database:
            database.execute("BEGIN")
            _check_format(database)
            yield Content(database)

    @contextmanager
    def writing(self) -> Iterator[Content]:
        """Read and write in one transaction that no other writer can enter.

        It is committed and on the disk when the block has been left, and only then.
        """
        explained = self.problems(booking=True)
        with explained, self.held() as place, closing(self._connect()) as database:
            database.execute("BEGIN IMMEDIATE")
            _check_format(database)
            yield Content(database)
            database.execute("COMMIT")
            if self._place_now() != place:
                raise LedgerProblem(message("ledger.replaced-meanwhile", path=str(self.path)))

    def _place_now(self) -> Place | None:
        try:
            return self.place()
        except (Foreign, OSError):
            return None

    def _connect(self, draft: Path | None = None) -> sqlite3.Connection:
        """Open the database, or the draft of a new one; it must be there."""
        path = self.path / DATABASE if draft is None else draft
        database = sqlite3.connect(
            f"{path.as_uri()}?mode=rw", uri=True, timeout=self.timeout, isolation_level=None
        )
        try:
            database.execute("PRAGMA trusted_schema = OFF")  # a stranger's triggers run nothing
            database.execute("PRAGMA synchronous = EXTRA")
            database.execute("PRAGMA fullfsync = ON")
        except BaseException:
            database.close()
            raise
        return database

    @contextmanager
    def problems(self, *, booking: bool = False) -> Iterator[None]:
        """Say in one sentence what went wrong, and what became of the reservation."""
        try:
            yield
        except (OSError, Foreign, Damaged, UnicodeError, sqlite3.Error) as error:
            raise self._explained(error, booking=booking) from None

    def _explained(self, error: Exception, *, booking: bool) -> LedgerProblem:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF

        def problem(name: str, outcome: str = "not-booked", **fields: object) -> Message:
            ending = message(f"ledger.{outcome}") if booking else ""
            return message(f"ledger.{name}", path=str(self.path), outcome=ending, **fields)

        if isinstance(error, TimeoutError) or code in _BUSY:
            return LedgerBusy(problem("busy", seconds=self.timeout))
        match error:
            case FileNotFoundError():
                found = problem("gone")
            case OSError():
                found = problem("unusable", reason=error.strerror)
            case Foreign():
                found = problem("foreign", reason=error.args[0])
            case Damaged():
                found = problem("damaged", reason=error.args[0])
            case _ if code in _REASONS:  # also where SQLite quotes what Python cannot decode
                found = problem("database", reason=message(f"not-a-ledger.{_REASONS[code]}"))
            case _:
                name = getattr(error, "sqlite_errorname", type(error).__name__)
                found = problem("unreadable", "perhaps-booked", error=name)
        return LedgerProblem(found)


def _check_format(database: sqlite3.Connection) -> None:
    """Refuse what is not a ledger of this layout, to the letter of its schema.

    A trigger or a column that a ledger does not have could undo what is booked.
    """
    if _pragma(database, "application_id") != APPLICATION_ID:
        raise Foreign("foreign")
    version = _pragma(database, "user_version")
    if isinstance(version, int) and version > LAYOUT:
        raise Foreign("newer", version=version, known=LAYOUT)
    found = database.execute(
        "SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite~_%' ESCAPE '~'"
    )
    if version != LAYOUT or dict(found.fetchall()) != SCHEMA:
        raise Damaged("schema")
    if _pragma(database, "journal_mode") != "delete":
        raise Foreign("journal")


def _pragma(database: sqlite3.Connection, name: str) -> object:
    row = database.execute(f"PRAGMA {name}").fetchone()
    return None if row is None else row[0]


def _parsed(parse: Callable[[Any], Parsed], stored: object) -> Parsed:
    """Parse what was stored. Only `Damaged` knows what may be said of it."""
    try:
        return parse(stored)
    except Damaged:
        raise
    except (ValueError, TypeError, RecursionError):
        raise Damaged("cell") from None
