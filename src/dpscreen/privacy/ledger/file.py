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

_SAYS = {
    sqlite3.SQLITE_READONLY: "is read-only, or its directory or disk is",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened: its directory may be read-only",
    sqlite3.SQLITE_PERM: "may not be opened by this user",
    sqlite3.SQLITE_FULL: "cannot grow: the disk is full",
    sqlite3.SQLITE_NOTADB: "is not a ledger: it is not an SQLite database",
    sqlite3.SQLITE_CORRUPT: "is damaged: SQLite cannot read it",
}


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
            raise Damaged("its account is missing")
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
            raise Damaged("its last number is not where it should be")
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
            raise Damaged("SQLite finds its pages inconsistent")


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
        saying = self.problems("No reservation was booked")
        with saying, self.held() as place, closing(self._connect()) as database:
            database.execute("BEGIN IMMEDIATE")
            _check_format(database)
            yield Content(database)
            database.execute("COMMIT")
            if self._place_now() != place:
                raise LedgerProblem(
                    f"The ledger {self.path} was replaced, or its database was given a second "
                    "name, while a reservation was made; it does not count."
                )

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
    def problems(self, outcome: str = "") -> Iterator[None]:
        """Say in one sentence what went wrong, and what became of the reservation."""
        ending = f" {outcome}." if outcome else ""
        try:
            yield
        except FileNotFoundError:
            raise LedgerProblem(f"{self.path} or its directory does not exist.{ending}") from None
        except TimeoutError:
            raise self._busy(ending) from None
        except OSError as error:
            raise LedgerProblem(f"{self.path} cannot be used: {error.strerror}.{ending}") from None
        except Foreign as error:
            raise LedgerProblem(f"{self.path} {error}.{ending}") from None
        except Damaged as error:
            raise LedgerProblem(
                f"The ledger {self.path} is damaged or was altered: {error}.{ending}"
            ) from None
        except UnicodeError:  # SQLite quotes what it cannot read, and Python cannot either
            raise LedgerProblem(
                f"The ledger {self.path} {_SAYS[sqlite3.SQLITE_CORRUPT]}.{ending}"
            ) from None
        except sqlite3.Error as error:
            raise self._explained(error, ending) from None

    def _busy(self, ending: str) -> LedgerBusy:
        return LedgerBusy(
            f"The ledger {self.path} has been in use by another process for more than "
            f"{self.timeout:g} s.{ending}"
        )

    def _explained(self, error: sqlite3.Error, ending: str) -> LedgerProblem:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return self._busy(ending)
        if code in _SAYS:
            return LedgerProblem(f"The ledger {self.path} {_SAYS[code]}.{ending}")
        unknown = " A reservation may have been booked, but must not be used." if ending else ""
        name = getattr(error, "sqlite_errorname", type(error).__name__)
        return LedgerProblem(
            f"The ledger {self.path} could not be read or written ({name}).{unknown}"
        )


def _check_format(database: sqlite3.Connection) -> None:
    """Refuse what is not a ledger of this layout, to the letter of its schema.

    A trigger or a column that a ledger does not have could undo what is booked.
    """
    if _pragma(database, "application_id") != APPLICATION_ID:
        raise Foreign("is not a ledger")
    version = _pragma(database, "user_version")
    if isinstance(version, int) and version > LAYOUT:
        raise Foreign(
            f"is a ledger of format {version}; this dpscreen reads format {LAYOUT}: upgrade it"
        )
    found = database.execute(
        "SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite~_%' ESCAPE '~'"
    )
    if version != LAYOUT or dict(found.fetchall()) != SCHEMA:
        raise Damaged("its tables are not those of a ledger")
    if _pragma(database, "journal_mode") != "delete":
        raise Foreign("is a ledger whose journal mode is no longer DELETE: set it back")


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
        raise Damaged("a cell cannot be read") from None
