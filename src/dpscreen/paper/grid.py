"""A table as data, from which text, Markdown and HTML are made alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from dpscreen._core.words import NOTHING, decimals, markdown
from dpscreen.paper.agreement import Estimate
from dpscreen.paper.errata import Erratum
from dpscreen.paper.findings import ClaimCheck
from dpscreen.paper.published import label

Kind = Literal["plain", "printed", "here", "proven"]
Columns = tuple[tuple[str, tuple[str, ...]], ...]
"""Groups of columns: the heading, which may be empty, and the names below it."""


class GridNumber(NamedTuple):
    """One number as text. `mark` names the note that says why it differs from the paper."""

    text: str = NOTHING
    kind: Kind = "plain"
    strong: bool = False
    mark: str = ""


class Section(NamedTuple):
    """Named rows of numbers that belong together; without a title they stand alone."""

    lines: tuple[tuple[str, tuple[GridNumber, ...]], ...]
    title: str = ""
    detail: str = ""


class Note(NamedTuple):
    """Why numbers with this mark differ, and how far each is off."""

    mark: str
    reason: str
    details: tuple[str, ...]
    explained: bool


@dataclass(frozen=True)
class Grid:
    """A table: sections of rows, columns in groups under a heading, notes and remarks below."""

    key: str
    title: str
    corner: str
    columns: Columns
    sections: tuple[Section, ...]
    notes: tuple[Note, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def headings(self) -> list[tuple[str, str]]:
        """The heading that each column of numbers stands under, if any, and its own name."""
        return [(heading, name) for heading, names in self.columns for name in names]


def flat_grid(
    key: str, title: str, columns: str, rows: Iterable[Sequence[str]], *remarks: str
) -> Grid:
    """Return a table of plain text; columns are parted by "|", the first one names the rows."""
    lines = tuple((name, tuple(map(GridNumber, texts))) for name, *texts in rows)
    corner, *names = columns.split(" | ")
    return Grid(key, title, corner, (("", tuple(names)),), (Section(lines),), remarks=remarks)


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


def grid_to_markdown(grid: Grid) -> str:
    """Return the table with its heading, remarks and notes."""
    head = [": ".join(filter(None, names)) for names in grid.headings]
    parts = [f"# {markdown(grid.title)}", "", _row(map(markdown, [grid.corner, *head]))]
    parts.append(_row(["---", *["---:"] * len(head)]))
    parts += [line for section in grid.sections for line in _section(section, len(head))]
    for remark in grid.remarks:
        parts += ["", markdown(remark)]
    if grid.notes:
        parts += ["", "Numbers marked ≠ differ from the paper:", ""]
    for note in grid.notes:
        parts.append(f"* **≠ {note.mark}** {markdown(note.reason)}")
        parts += [f"  * {markdown(detail)}" for detail in note.details]
    return "\n".join(parts) + "\n"


def _section(section: Section, width: int) -> Iterable[str]:
    if section.title:
        detail = f" ({markdown(section.detail)})" if section.detail else ""
        yield _row([f"**{markdown(section.title)}**{detail}", *[""] * width])
    for name, numbers in section.lines:
        yield _row([markdown(name), *map(_number, numbers)])


def _number(number: GridNumber) -> str:
    text = f"**{markdown(number.text)}**" if number.strong else markdown(number.text)
    return f"{text} ≠ {number.mark}" if number.mark else text


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def claims_to_markdown(claims: Iterable[ClaimCheck]) -> str:
    """Return the paper's statements outside its tables, each with what became of it."""
    parts = ["# Claims outside the tables", ""]
    for claim in claims:
        told = f"({markdown(claim.where)}): {markdown(claim.description)}"
        parts.append(f"* **{claim.verdict}** {told}")
        for one in claim.judged:
            parts.append(f"  * Reading: {markdown(one.reading)}. Run: {markdown(one.run)}.")
            parts.append(f"    **{one.verdict}** {markdown(one.outcome.finding)}")
        if claim.caveat:
            parts.append(f"  * Mind: {markdown(claim.caveat)}")
    return "\n".join(parts) + "\n"


def errata_to_markdown(errata: Iterable[Erratum]) -> str:
    """Return the errata, each with the evidence of this study and the command that shows it."""
    parts = ["# Errata", ""]
    for erratum in errata:
        parts += [f"## {erratum.key}: {markdown(erratum.title)} ({markdown(erratum.kind)})", ""]
        for name, text in (
            ("Claim.", erratum.claim),
            ("Reason.", erratum.reason),
            ("Evidence.", erratum.evidence),
            ("How much it matters.", erratum.matters),
        ):
            parts += [f"**{name}** {markdown(text)}", ""]
        parts += [f"`{erratum.command}`", ""]
    return "\n".join(parts)
