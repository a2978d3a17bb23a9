"""Tables, claims and errata as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dpscreen.report.errata import Erratum
from dpscreen.report.grid import Entry, Grid, Section
from dpscreen.report.verdicts import verdict
from dpscreen.study.claims import ClaimCheck

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
