"""Generated Markdown in lines of at most 100 columns: prose is wrapped, wide tables are split."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

WIDTH = 100


def write(kind: str, text: str, beside: str = "") -> None:
    """Print a text, and put it between its markers on the page that `DPSCREEN_PAGE` names.

    With `beside` it goes to the page of that name in the same folder.
    """
    text = narrow(text)
    print(f"\n{kind}\n\n{text}", flush=True)
    if place := os.environ.get("DPSCREEN_PAGE"):
        page = Path(place).with_name(beside) if beside else Path(place)
        begin, end = f"<!-- {kind} -->", f"<!-- end of {kind} -->"
        between = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
        whole = page.read_text(encoding="utf-8")
        new = between.sub(lambda _: f"{begin}\n{text}\n{end}", whole)
        page.write_text(new, encoding="utf-8")


def narrow(text: str) -> str:
    """Return Markdown in lines of at most `WIDTH` columns."""
    lines: list[str] = []
    for is_table, group in groupby(text.split("\n"), key=lambda line: line.startswith("|")):
        lines.extend((_tables if is_table else _prose)(list(group)))
    return "\n".join(lines)


def _prose(lines: list[str]) -> Iterator[str]:
    for line in lines:
        indent = "  " if line.startswith("* ") else ""
        yield from textwrap.wrap(
            line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        ) or [""]


def _tables(lines: list[str]) -> list[str]:
    """Split columns into two tables until every row fits; the first column names the rows."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    if len(rows[0]) <= 2 or max(map(len, lines)) <= WIDTH:
        return lines
    middle = (len(rows[0]) + 1) // 2
    left, right = (
        [row[:1] + row[part] for row in rows] for part in (slice(1, middle), slice(middle, None))
    )
    return [*_tables(_joined(left)), "", *_tables(_joined(right))]


def _joined(rows: list[list[str]]) -> list[str]:
    return [
        f"| {' | '.join(row)} |" if row[0] != "---" else "|---" * len(row) + "|" for row in rows
    ]
