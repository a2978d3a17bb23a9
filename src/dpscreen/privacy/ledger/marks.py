"""The rows that a ledger knows: marks of those that were booked, and the key of the marks.

They lie in a file of the ledger's directory, and nowhere else: no export, model or page holds them.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpscreen._core.files import NotStrictJson, replacing, strict_json
from dpscreen._core.messages import message
from dpscreen.privacy.ledger.directory import DATABASE, Foreign
from dpscreen.privacy.ledger.file import LedgerProblem

ROWS = "rows.json"


class OtherRows(LedgerProblem):
    """The rows are not those that were booked from this ledger before. Nothing was booked."""


@dataclass(frozen=True)
class KnownRows:
    """What stands in the file: a secret key, and the marks of all rows that were booked."""

    key: bytes
    marks: frozenset[str]

    @classmethod
    def of(cls, home: Path) -> KnownRows:
        """Read it, or begin it; the lock of the directory is held."""
        try:
            content: Any = strict_json((home / ROWS).read_bytes())
            return cls(bytes.fromhex(content["key"]), frozenset(map(str, content["marks"])))
        except FileNotFoundError:
            new = cls(secrets.token_bytes(32), frozenset())
            new.write(home)
            return new
        except (NotStrictJson, KeyError, TypeError, ValueError):
            raise Foreign("rows", file=ROWS) from None

    def write(self, home: Path) -> None:
        """Write it, for those who may use the database."""
        with replacing(home / ROWS) as stream:
            Path(stream.name).chmod((home / DATABASE).stat().st_mode & 0o777)
            stream.write(json.dumps({"key": self.key.hex(), "marks": sorted(self.marks)}).encode())

    def admit(self, marks: Set[str], home: Path, *, others: bool) -> None:
        """Remember rows, if they are known or nothing is; or raise `OtherRows` without `others`."""
        if self.marks and not marks & self.marks and not others:
            raise OtherRows(message("ledger.other-rows", path=str(home)))
        if not marks <= self.marks:
            KnownRows(self.key, self.marks | marks).write(home)
