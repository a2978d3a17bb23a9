"""Tables as text in a terminal and as HTML in a notebook."""

from __future__ import annotations

import textwrap
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from html import escape

from dpscreen._core.words import WIDTH, number, plain

LONGEST_NAME = 32


class PrintedTable(ABC):
    """A table with a title, and notes below it, that prints itself."""

    title: str
    notes: tuple[str, ...]

    @abstractmethod
    def _cells(self) -> list[list[str]]:
        """Return the table as text, headings first."""

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        head, *body = self._cells()
        rows = "".join(_html_row(cells, "td") for cells in body)
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return (
            f"<table><caption>{escape(self.title)}</caption><thead>{_html_row(head, 'th')}</thead>"
            f"<tbody>{rows}</tbody></table>{notes}"
        )

    def _lines(self) -> Iterator[str]:
        cells = self._cells()
        widths = column_widths(cells)
        head, *body = (aligned(row, widths) for row in cells)
        across = max(sum(widths) + 2 * (len(widths) - 1), len(self.title))
        yield from (self.title, "=" * across, head, "-" * across, *body, "=" * across)
        yield from (textwrap.fill(note, WIDTH, break_on_hyphens=False) for note in self.notes)


def column_widths(cells: Sequence[Sequence[str]]) -> list[int]:
    """Return how wide each column of a table is."""
    return [max(map(len, column)) for column in zip(*cells, strict=True)]


def aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Return a row as one line: the first cell to the left, numbers to the right."""
    first, *rest = zip(cells, widths, strict=True)
    told = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in rest)]
    return "  ".join(told).rstrip()


def short_name(name: str) -> str:
    """Return a column's name, safe to print and no longer than a table has room for."""
    text = plain(name)
    return text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 1] + "…"


def step_words(step: float, zero_one: bool) -> str:
    """Return a step as tables have it: 0 → 1, or +5."""
    return "0 → 1" if zero_one else f"+{number(step)}"


def _html_row(cells: Sequence[str], kind: str) -> str:
    return "<tr>" + "".join(f"<{kind}>{escape(cell)}</{kind}>" for cell in cells) + "</tr>"
