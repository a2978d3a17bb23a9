"""A table as data, from which text, Markdown and HTML are made alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dpscreen._core.numbers import NOTHING, decimals
from dpscreen.study.compare import Estimate

Kind = Literal["plain", "printed", "here", "proven"]


@dataclass(frozen=True)
class Entry:
    """One number. `mark` names the note that says why it differs from the paper."""

    text: str = NOTHING
    kind: Kind = "plain"
    strong: bool = False
    mark: str = ""


@dataclass(frozen=True)
class Columns:
    """Neighbouring columns under one heading."""

    heading: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class Line:
    """One row of numbers with its name."""

    name: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Section:
    """Rows that belong together; without a title they stand alone."""

    lines: tuple[Line, ...]
    title: str = ""
    detail: str = ""


@dataclass(frozen=True)
class Note:
    """Why numbers with this mark differ, and how far each is off."""

    mark: str
    reason: str
    details: tuple[str, ...]
    explained: bool = True


@dataclass(frozen=True)
class Grid:
    """A table: sections of rows, grouped columns, notes under it and remarks on it."""

    key: str
    title: str
    corner: str
    columns: tuple[Columns, ...]
    sections: tuple[Section, ...]
    notes: tuple[Note, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def column_names(self) -> tuple[str, ...]:
        """Every column's own name, from left to right."""
        return tuple(name for group in self.columns for name in group.names)

    @property
    def width(self) -> int:
        """The number of columns of numbers."""
        return len(self.column_names)

    @property
    def grouped(self) -> bool:
        """Whether any column stands under a heading."""
        return any(group.heading for group in self.columns)


def flat_grid(
    key: str,
    title: str,
    columns: tuple[str, ...],
    rows: Sequence[Sequence[str]],
    remarks: tuple[str, ...] = (),
) -> Grid:
    """Return a table without groups from plain text; its first column names the rows."""
    lines = tuple(Line(name, tuple(Entry(text) for text in texts)) for name, *texts in rows)
    corner, *names = columns
    return Grid(key, title, corner, (Columns("", tuple(names)),), (Section(lines),), (), remarks)


def letters(position: int) -> str:
    """Return a, b, …, z, aa, ab, … for 0, 1, …"""
    first, last = divmod(position, 26)
    return (letters(first - 1) if first else "") + chr(ord("a") + last)


def mean_and_error(found: Estimate | None) -> str:
    """Return "mean ± standard error"; the mean alone where there is no spread to speak of."""
    if found is None:
        return NOTHING
    if found.standard_error == 0:
        return decimals(found.mean)
    return f"{decimals(found.mean)} ± {decimals(found.standard_error)}"
