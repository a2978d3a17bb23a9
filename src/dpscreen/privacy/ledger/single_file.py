"""Ledgers of earlier versions, which were single files: each is imported into a directory, once.

The file's account and reservations are written to a draft in the directory, which nobody can book
from. When that is on the disk, the file is overwritten and cut: from then on nobody can book from
it either, under whatever name and with whatever journal beside it. Then the draft becomes the
database. Whenever this is interrupted, at most one of the two can be booked from, and the same
import goes on where it stopped: with the draft, if the file is overwritten, and else anew. The
draft has the name of the account's seal, so that it is never taken for that of another ledger.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

from dpscreen.privacy.ledger.directory import Foreign, check_one_name
from dpscreen.privacy.ledger.file import (
    SINGLE_FILE,
    Content,
    LedgerFile,
    check_format,
    draft_name,
)
from dpscreen.privacy.ledger.records import Account, Reservation

IMPORTED = "This ledger was imported into a directory, where it is continued. Seal: "
SEAL = 64  # hexadecimal digits

Verify = Callable[[Content], tuple[Account, tuple[Reservation, ...]]]


@dataclass(frozen=True)
class SingleFile:
    """A ledger of an earlier version, or what an import left of it."""

    file: LedgerFile

    def move_into(self, new: LedgerFile, verify: Verify) -> None:
        """Import the ledger into a directory that does not exist, or go on with that."""
        with self.file.problems():
            check_one_name(self.file.path)
            seal = self._seal() or self._write_draft(new, verify)
            draft = draft_name(seal)
            if not (new.path / draft).exists():
                raise Foreign("was imported before; it cannot be imported again")
            self._overwrite(seal)
        with new.problems(), new.directory.locked():
            with closing(new.connect(new.path / draft)) as database:
                database.execute("BEGIN")
                check_format(database)
                verify(Content(database))
            new.directory.finish(draft)

    def _write_draft(self, new: LedgerFile, verify: Verify) -> str:
        """Write the draft and, when it is on the disk, overwrite the file; return the seal."""
        with closing(self.file.connect(self.file.path)) as database:
            database.execute("BEGIN EXCLUSIVE")
            check_format(database, SINGLE_FILE)
            account, entries = verify(Content(database))
            with new.problems(), new.directory.begun(draft_name(account.seal), again=True) as draft:
                new.write(draft, account, entries)
            self._overwrite(account.seal)
            return account.seal

    def _seal(self) -> str | None:
        """Return the seal of the ledger that was imported from here; None if none was."""
        with self.file.path.open("rb") as stream:
            start = stream.read(len(IMPORTED) + SEAL).decode("latin-1")
        return start.removeprefix(IMPORTED) if start.startswith(IMPORTED) else None

    def _overwrite(self, seal: str) -> None:
        """Leave a note in place of the ledger; its head first, without which it is none."""
        with self.file.path.open("r+b", buffering=0) as stream:
            stream.write(f"{IMPORTED}{seal}\n".encode())
            os.fsync(stream.fileno())
            stream.truncate()
            os.fsync(stream.fileno())
