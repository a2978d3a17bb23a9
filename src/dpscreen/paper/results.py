"""Result rows, and the file they live in: JSON lines, appended one by one, never lost.

Every line carries a checksum. What is damaged or cut short is not used, as its trial can be run
again, and rows computed with other settings or versions are recognised by their fingerprint.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from dpscreen._core.files import strict_json
from dpscreen._core.messages import message
from dpscreen._core.words import how_many

FILE_NAME = "results.jsonl"
REVISION = 3
"""Part of every fingerprint: raise it when a method computes something else than before."""


class StudyError(Exception):
    """The study cannot go on; the message says why."""


RowKey = tuple[str, str, str, int]
"""What a row is a result of: suite, data set, method and trial."""


@dataclass(frozen=True)
class TrialRow:
    """One trial of one method on one data set.

    An undefined metric is nan. `seed` names the noise (`experiments`). `settings` says what was run
    and which of its choices were not private.
    """

    suite: str
    data: str
    method: str
    trial: int
    seed: str
    metrics: Mapping[str, float]
    series: Mapping[str, list[float]]
    settings: Mapping[str, Any]
    versions: Mapping[str, str]
    fingerprint: str
    seconds: float

    @property
    def key(self) -> RowKey:
        """What it is a result of."""
        return self.suite, self.data, self.method, self.trial


class StudyRun(NamedTuple):
    """Good rows, what was wrong with others, and why data sets could not be used, by name."""

    rows: tuple[TrialRow, ...] = ()
    problems: tuple[str, ...] = ()
    skipped: Mapping[str, str] = {}


@cache
def versions() -> dict[str, str]:
    """What the numbers of a row may depend on, and the machine it was made on."""
    import platform
    from importlib.metadata import version

    from dpscreen import __version__

    libraries = {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}
    machine = {"python": platform.python_version(), "machine": platform.machine()}
    return {"dpscreen": __version__, **libraries, **machine}


def fingerprint(declared: Mapping[str, Any]) -> str:
    """Return a short hash of the settings and of the versions that numbers depend on."""
    relevant = {k: v for k, v in versions().items() if k not in ("python", "machine")}
    content = {"revision": REVISION, "versions": relevant, "declared": declared}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


# --- one row, one line ------------------------------------------------------------------------


def to_line(row: TrialRow) -> str:
    """Write a row as JSON with a checksum; nan, which JSON lacks, becomes null."""
    content = asdict(row)
    content["metrics"] = {k: None if math.isnan(v) else v for k, v in row.metrics.items()}
    text = json.dumps(content, ensure_ascii=False, allow_nan=False)
    return json.dumps({"check": _checksum(text), "row": content}, ensure_ascii=False)


def from_line(line: str) -> TrialRow:
    """Read a row; an error of `NOT_A_ROW` if it is not what `to_line` wrote."""
    entry = strict_json(line)
    content = entry["row"]
    if _checksum(json.dumps(content, ensure_ascii=False)) != entry["check"]:
        raise ValueError("the checksum does not fit")
    content["metrics"] = {k: math.nan if v is None else v for k, v in content["metrics"].items()}
    return TrialRow(**content)


NOT_A_ROW = (ValueError, TypeError, AttributeError, LookupError, RecursionError)


def _checksum(text: str) -> str:
    return f"{zlib.crc32(text.encode()):08x}"


# --- the file ---------------------------------------------------------------------------------


class ResultStore:
    """The results of one output directory."""

    def __init__(self, directory: Path | str) -> None:
        self.directory = Path(directory)
        self.path = self.directory / FILE_NAME

    def read(self) -> StudyRun:
        """Read every good row, and say how many lines are damaged: their trials are run again."""
        if not self.path.exists():
            return StudyRun()
        rows, damaged = [], 0
        for line in self.path.read_bytes().splitlines():
            try:
                rows.append(from_line(line.decode()))
            except NOT_A_ROW:
                damaged += 1
        problem = message("study.damaged", path=self.path, lines=how_many(damaged, "line"))
        return StudyRun(tuple(rows), (problem,) if damaged else ())

    def open(self) -> StudyRun:
        """Make sure that rows can be written, each on a line of its own, and read the file."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            with self.path.open("a+b") as file:
                if file.tell():
                    file.seek(-1, os.SEEK_END)
                    if file.read() != b"\n":  # a last line that was cut short
                        file.write(b"\n")
        except OSError as error:
            raise self._not_written(error) from error
        return self.read()

    def append(self, row: TrialRow) -> None:
        """Write one row, through to the operating system."""
        try:
            with self.path.open("ab") as file:
                file.write(to_line(row).encode() + b"\n")
        except OSError as error:
            raise self._not_written(error) from error

    def _not_written(self, error: OSError) -> StudyError:
        return StudyError(message("study.not-written", path=self.path, reason=error.strerror))
