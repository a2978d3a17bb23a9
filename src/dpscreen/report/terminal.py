"""Tables for a terminal; rich leaves plain text elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dpscreen.report.grid import Entry, Grid
from dpscreen.report.verdicts import verdict
from dpscreen.report.wide import wide_enough
from dpscreen.study.claims import ClaimCheck


def show(grid: Grid, console: Console) -> None:
    """Print a table with its notes."""
    table = _table(grid)
    wide_enough(console, table).print(table)
    for remark in grid.remarks:
        console.print(Text(remark, style="dim"))
    for note in grid.notes:
        console.print(Text(f"≠ {note.mark}  {note.reason}"))
        for detail in note.details:
            console.print(Text(f"     {detail}", style="dim"))


def show_claims(claims: Iterable[ClaimCheck], console: Console) -> None:
    """Print what became of some claims."""
    for claim in claims:
        console.print(Text(f"{claim.where}: {claim.description}"))
        console.print(Text(f"  {verdict(claim)}. {claim.finding}"))


def _table(grid: Grid) -> Table:
    table = Table(
        title=Text(grid.title),
        title_style="bold",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    table.add_column(Text(grid.corner))
    for heading in _headings(grid):
        table.add_column(heading, justify="right")
    for cells in _rows(grid):
        table.add_row(*cells)
    return table


def _headings(grid: Grid) -> Iterator[Text]:
    for group in grid.columns:
        for name in group.names:
            heading = group.heading.partition(",")[0]
            yield Text(f"{heading}\n{name}" if heading else name)


def _rows(grid: Grid) -> Iterator[list[Text]]:
    for section in grid.sections:
        if section.title:
            yield [Text(section.title, style="bold")]
        for line in section.lines:
            yield [Text(line.name), *map(_cell, line.entries)]


def _cell(entry: Entry) -> Text:
    text = Text(entry.text, style="bold" if entry.strong else "")
    return text.append(f" ≠{entry.mark}", style="bold yellow") if entry.mark else text
