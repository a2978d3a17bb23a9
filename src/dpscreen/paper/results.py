"""Result rows, and the file they live in: JSON lines, appended one by one, never lost.

Every line carries a checksum. What is damaged or cut short is left out, as its trial can be run
again, and rows computed with other settings or versions are recognised by their fingerprint.
"""

from __future__ import annotations

import hashlib
import json
import math
import shutil
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from dpscreen._core.files import strict_json, write_text
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


class Skipped(NamedTuple):
    """A data set that could not be used, and why or how to get it."""

    data: str
    message: str


class StudyRun(NamedTuple):
    """Good rows, what was wrong with others, and the data sets that could not be used."""

    rows: tuple[TrialRow, ...] = ()
    problems: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()


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


def read_rows(path: Path) -> StudyRun:
    """Read every good row, and say how many lines are damaged. The file is not changed."""
    if not path.exists():
        return StudyRun()
    *lines, tail = path.read_bytes().split(b"\n")
    rows, damaged = [], int(tail != b"")  # a last line that was cut short
    for line in lines:
        try:
            rows.append(from_line(line.decode()))
        except NOT_A_ROW:
            damaged += 1
    left_out = f"{path}: left out {how_many(damaged, 'damaged line')}, to be computed again."
    return StudyRun(tuple(rows), (left_out,) if damaged else ())


# --- the file ---------------------------------------------------------------------------------


class ResultStore:
    """The results of one output directory."""

    def __init__(self, directory: Path | str) -> None:
        self.directory = Path(directory)
        self.path = self.directory / FILE_NAME

    def open(self) -> StudyRun:
        """Make sure that rows can be written, and read the file.

        Of a damaged file the good rows are kept, and beside it the file as it was.
        """
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            self.path.open("ab").close()
        except OSError as error:
            raise StudyError(f"cannot write results to {self.path}: {error.strerror}") from error
        loaded = read_rows(self.path)
        if not loaded.problems:
            return loaded
        before = self.path.with_name(f"{FILE_NAME}.corrupt")
        shutil.copyfile(self.path, before)
        # A full copy first, then one rename: at no moment is a good row in neither file.
        write_text(self.path, "".join(f"{to_line(row)}\n" for row in loaded.rows))
        told = (f"{one} The file as it was is {before}." for one in loaded.problems)
        return StudyRun(loaded.rows, tuple(told))

    def append(self, row: TrialRow) -> None:
        """Write one row, through to the operating system."""
        try:
            with self.path.open("ab") as file:
                file.write(to_line(row).encode() + b"\n")
        except OSError as error:
            raise StudyError(f"cannot write to {self.path}: {error.strerror}") from error
