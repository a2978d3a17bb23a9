"""The folder of one table: its schema, its ledger, and every release that was made from it.

    schema.json     what the person declared, as the command line reads it
    budget.ledger/  the budget of the data set
    release-001/    a model with what belongs to it; there whole or not at all

A release is put together in a folder with another name, which takes its own in one step. What a
killed process left half-made is cleared away the next time the folder is opened.
"""

from __future__ import annotations

import json
import shlex
import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from dpscreen._core.files import NotStrictJson, strict_json

FILES = {
    "model.json": "The model file",
    "page.html": "The page",
    "schema.json": "The schema",
    "command.txt": "The command line that does the same",
}
"""What can be downloaded of a release, in words."""
RECORD, LOCK = "release.json", ".lock"


class FolderInUse(Exception):
    """Another studio has the folder open."""


@dataclass(frozen=True)
class ReleaseRecord:
    """What a release was made with: public values. `ticket` finds its booking in the ledger."""

    ticket: str
    at: str
    table: str
    target: str
    method: str
    epsilon: float
    delta: float
    n_rows: int | None
    inference: str | None
    ledger: str
    settings: Mapping[str, list[str]] = field(default_factory=dict)

    def command(self) -> str:
        """Return the command line that fits the same model, and spends as much again."""
        words = ["dpscreen", "fit", self.table, "--schema", "schema.json"]
        words += ["--epsilon", f"{self.epsilon!r}", "--delta", f"{self.delta!r}"]
        words += ["--model", self.method.removeprefix("private-")]
        words += ["--inference", self.inference] if self.inference else []
        words += [
            word
            for key, names in self.settings.items()
            for one in names
            for word in (f"--{key}", one)
        ]
        words += ["--rows-public", str(self.n_rows)] if self.n_rows else []
        words += ["--ledger", self.ledger, "-o", "model.json", "--report", "page.html"]
        return shlex.join(words) + "\n"


@dataclass(frozen=True)
class KeptRelease:
    """A release on the shelf."""

    number: int
    folder: Path
    record: ReleaseRecord

    @property
    def name(self) -> str:
        """Return what it is called."""
        return f"Release {self.number}"

    def file(self, name: str) -> Path | None:
        """Return one of its files, if it is one of those and there."""
        path = self.folder / name
        return path if name in FILES and path.is_file() else None


class Shelf:
    """The folder, held by one studio at a time."""

    def __init__(self, folder: Path, ledger: Path | None = None) -> None:
        self.folder = folder.absolute()
        self.schema_file = self.folder / "schema.json"
        self.ledger = (ledger or self.folder / "budget.ledger").absolute()
        self._lock: sqlite3.Connection | None = None

    def open(self) -> None:
        """Take hold of the folder, and clear away what was left half-made."""
        self.folder.mkdir(exist_ok=True)
        # SQLite's lock goes with the process, whatever ends it, on every system.
        lock = sqlite3.connect(self.folder / LOCK, timeout=0, check_same_thread=False)
        try:
            lock.execute("PRAGMA journal_mode = MEMORY")  # no second file
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            lock.close()
            raise FolderInUse(
                "Another studio has this table open; use that one, or end it."
            ) from None
        self._lock = lock
        self.clear()

    def close(self) -> None:
        """Let go of the folder."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def clear(self) -> None:
        """Remove what no process is working on any more."""
        for left in self.folder.glob(".release-*.tmp"):
            shutil.rmtree(left, ignore_errors=True)
        for left in self.folder.glob(".*.tmp"):  # of a file that was being written
            with suppress(OSError):
                left.unlink()

    def releases(self) -> list[KeptRelease]:
        """Return all releases, the last one first."""
        found = []
        for folder in self.folder.glob("release-*"):
            number = folder.name.removeprefix("release-")
            with suppress(OSError, NotStrictJson, TypeError):  # a folder that is no release
                record = ReleaseRecord(**strict_json((folder / RECORD).read_bytes()))
                if number.isdecimal():
                    found.append(KeptRelease(int(number), folder, record))
        return sorted(found, key=lambda one: -one.number)

    def find(self, ticket: str) -> KeptRelease | None:
        """Return the release that was made with a ticket."""
        return next((one for one in self.releases() if one.record.ticket == ticket), None)

    def keep(self, record: ReleaseRecord, files: Mapping[str, bytes]) -> int:
        """Put a release on the shelf, in one step, and return its number."""
        beside = self.folder / f".release-{record.ticket}.tmp"
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir()
        written = {RECORD: json.dumps(asdict(record), indent=2).encode()}
        written |= {"command.txt": record.command().encode(), **files}
        for name, content in written.items():
            (beside / name).write_bytes(content)
        number = 1 + max((one.number for one in self.releases()), default=0)
        while True:
            place = self.folder / f"release-{number:03d}"
            try:
                beside.rename(place)
                return number
            except OSError:
                if not place.exists():
                    raise
            number += 1
