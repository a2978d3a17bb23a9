"""A table as data, from which text, Markdown and HTML are made alike."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from dpscreen._core.words import NOTHING, decimals
from dpscreen.paper.agreement import Estimate
from dpscreen.paper.claims import ClaimCheck
from dpscreen.paper.errata import Erratum
from dpscreen.paper.published import label

Kind = Literal["plain", "printed", "here", "proven"]


@dataclass(frozen=True)
class Entry:
    """One number. `mark` names the note that says why it differs from the paper."""

    text: str = NOTHING
    kind: Kind = "plain"
    strong: bool = False
    mark: str = ""


@dataclass(frozen=True)
class ColumnGroup:
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
    columns: tuple[ColumnGroup, ...]
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
    return Grid(
        key, title, corner, (ColumnGroup("", tuple(names)),), (Section(lines),), (), remarks
    )


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


def metric_name(metric: str) -> str:
    """Return the metric's name; what the paper calls sparsity is called what it is, density."""
    return "Density" if metric == "density" else label(metric)


def verdict(claim: ClaimCheck) -> str:
    """Return "holds", "does not hold", "not run" or "open"."""
    if claim.holds is None:
        return "not run" if claim.finding.startswith("Not run") else "open"
    return "holds" if claim.holds else "does not hold"


SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~])")


def escaped(text: str) -> str:
    """Return the text so that Markdown shows it as it is, on one line."""
    return SPECIAL.sub(r"\\\1", " ".join(text.split()))


def grid_to_markdown(grid: Grid, level: int = 1) -> str:
    """Return the table with its heading, remarks and notes."""
    head = [grid.corner, *_headings(grid)]
    rule = ["---", *["---:"] * grid.width]
    parts = [f"{'#' * level} {escaped(grid.title)}", ""]
    parts += [_row(escaped(name) for name in head), _row(rule)]
    parts += [line for section in grid.sections for line in _section(section, grid.width)]
    for remark in grid.remarks:
        parts += ["", escaped(remark)]
    if grid.notes:
        parts += ["", "Numbers marked ≠ differ from the paper:", ""]
    for note in grid.notes:
        parts.append(f"* **≠ {note.mark}** {escaped(note.reason)}")
        parts += [f"  * {escaped(detail)}" for detail in note.details]
    return "\n".join(parts) + "\n"


def _headings(grid: Grid) -> list[str]:
    return [
        f"{group.heading}: {name}" if group.heading else name
        for group in grid.columns
        for name in group.names
    ]


def _section(section: Section, width: int) -> Iterable[str]:
    if section.title:
        detail = f" ({escaped(section.detail)})" if section.detail else ""
        yield _row([f"**{escaped(section.title)}**{detail}", *[""] * width])
    for line in section.lines:
        yield _row([escaped(line.name), *map(_entry, line.entries)])


def _entry(entry: Entry) -> str:
    text = f"**{escaped(entry.text)}**" if entry.strong else escaped(entry.text)
    return f"{text} ≠ {entry.mark}" if entry.mark else text


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def claims_to_markdown(claims: Iterable[ClaimCheck]) -> str:
    """Return the paper's statements outside its tables, each with what became of it."""
    parts = ["# Claims outside the tables", ""]
    for claim in claims:
        parts.append(
            f"* **{verdict(claim)}** ({escaped(claim.where)}): {escaped(claim.description)}"
        )
        parts.append(f"  * Here: {escaped(claim.finding)}")
        if claim.caveat:
            parts.append(f"  * Mind: {escaped(claim.caveat)}")
    return "\n".join(parts) + "\n"


def errata_to_markdown(errata: Iterable[Erratum]) -> str:
    """Return the errata, each with the evidence of this study."""
    parts = ["# Errata", ""]
    for erratum in errata:
        parts += [f"## {erratum.key}: {escaped(erratum.title)} ({escaped(erratum.kind)})", ""]
        parts += [escaped(erratum.text), ""]
        if erratum.evidence:
            parts += [f"**Evidence.** {escaped(erratum.evidence)}", ""]
    return "\n".join(parts)
