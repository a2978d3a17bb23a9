"""A check of private rows against their schema, for the curator, before any budget is spent.

>>> report = schema.check(frame)       # or the path of a table
>>> print(report)                      # exact counts: not private, never to be released
>>> report.stop()                      # raises `FormatFault` where a fit would be of nonsense

Nothing of it enters a fit: a fit reads the same rows by the same rules whether or not they were
checked. docs/guide/declare-your-data.md shows a report; what an abort reveals is in
docs/explanation/what-is-protected.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Never

import numpy as np

from dpscreen._core.arrays import Mask, Objects, Words
from dpscreen._core.messages import message
from dpscreen._core.words import how_many, plain, whole_percent
from dpscreen.rows.owners import unit_ranks
from dpscreen.tables.columns import Column
from dpscreen.tables.declaration import MOST_UNREADABLE, Declaration, TableProblem
from dpscreen.tables.encode import read_cells
from dpscreen.tables.reading import Progress, UnitIds, encoder_of, source_of

COARSE = ((0.5, "more than half"), (0.1, "more than a tenth"))
"""All that is said of values outside the bounds: above the first share, a fit is stopped."""
MOST_EXAMPLES = 5
NOT_PRIVATE = (
    "NOT PRIVATE: counts of confidential rows, for the curator. Do not release or keep them.\n"
    "Correcting formats, levels and ids by them is no leak; changing bounds by them is one."
)

WRITTEN_SO = "Declare how cells are written: decimal, thousands, bare, format, true and false."
ADVICE = "`schema.check(rows)` counts the cells, for the curator alone."


class FormatFault(TableProblem):
    """The rows do not fit their declaration. Names columns, and holds neither cells nor counts."""


@dataclass(frozen=True)
class Misfit:
    """One thing that does not fit. `rows` are numbers of rows, the first below the names being 1.

    `why` is said where a fit is stopped, and holds no count; "" if this does not stop it.
    """

    column: str
    words: str
    why: str = ""
    rows: tuple[int, ...] = ()


@dataclass(frozen=True, repr=False)
class RowsReport:
    """What does not fit the declaration: exact counts of private rows, which stay in memory."""

    n_rows: int
    findings: tuple[Misfit, ...]

    @property
    def stops(self) -> tuple[Misfit, ...]:
        """What keeps a fit from being started."""
        return tuple(one for one in self.findings if one.why)

    def stop(self, advice: str = ADVICE) -> None:
        """Raise `FormatFault` if a fit of these rows had better not be started."""
        if self.stops:
            causes = "; ".join(f"column {one.column!r}: {one.why}" for one in self.stops)
            raise FormatFault(message("rows.misfit", causes=causes, advice=advice))

    def text(self, *, examples: bool = False) -> str:
        """Return the report in words, with numbers of rows if `examples` are wanted."""
        lines = [NOT_PRIVATE, ""]
        for one in self.findings:
            numbers = [*map(str, one.rows[:MOST_EXAMPLES])]
            numbers += ["…"] if len(one.rows) > MOST_EXAMPLES else []
            where = f" (rows {', '.join(numbers)})" if examples and numbers else ""
            lines.append(f"{'*' if one.why else '-'} {plain(one.column)}: {one.words}{where}")
        end = "Everything fits the schema." if not self.findings else ""
        if self.stops:
            faults = how_many(len(self.stops), "fault")
            end = f"A fit stops here: {faults} marked with *.\n{WRITTEN_SO}"
        checked = f"{how_many(self.n_rows, 'row')} checked. {end}".rstrip()
        return "\n".join([*lines, *([""] if self.findings else []), checked])

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def __reduce__(self) -> Never:
        raise TypeError(message("rows.report-stays"))


def check_rows(
    rows: Any,
    schema: Declaration,
    *,
    most_unreadable: float = MOST_UNREADABLE,
    progress: Progress | None = None,
) -> RowsReport:
    """Check a frame, or the table at a path, against its schema; `progress` receives the share."""
    counts = RowsCheck(schema)
    source = source_of(
        Path(rows) if isinstance(rows, str) else rows, schema, counts.encoder.columns_of_rows
    )
    for batch in source:
        counts.add(batch)
        if progress is not None:
            progress(source.share)
    return counts.report(most_unreadable)


class RowsCheck:
    """Counts of what does not fit a schema, of rows that come in batches."""

    def __init__(self, schema: Declaration) -> None:
        self.encoder, self._n_rows, self._unit = encoder_of(schema), 0, schema.unit
        used = (name for name in self.encoder.columns_of_rows if name != schema.unit)
        self._columns = [_ColumnCount(schema.field(name)) for name in used]
        self._units = None if schema.unit is None else _UnitCount(schema.rows_per_unit)

    def add(self, batch: Any) -> None:
        """Count the next rows."""
        for one in self._columns:
            read_cells(one.column.name, batch, partial(one.add, first=self._n_rows))
        if self._units is not None:
            self._units.add(self.encoder.unit_ids(batch), self._n_rows)
        self._n_rows += len(batch)

    def report(self, most_unreadable: float = MOST_UNREADABLE) -> RowsReport:
        """Return what was found."""
        if not 0 <= most_unreadable <= 1:
            raise ValueError(message("rows.share"))
        about = [column.findings(self._n_rows, most_unreadable) for column in self._columns]
        if self._units is not None:
            about.append(self._units.findings(str(self._unit)))
        return RowsReport(self._n_rows, tuple(chain(*about)))


# --- counts ---------------------------------------------------------------------------------------


@dataclass
class _Count:
    """How many rows have a fault, and the numbers of the first."""

    n: int = 0
    rows: list[int] = field(default_factory=list)

    def add(self, found: Mask, first: int) -> None:
        places = np.flatnonzero(found)
        self.n += len(places)
        left = MOST_EXAMPLES + 1 - len(self.rows)
        self.rows += (places[:left] + first + 1).tolist()


@dataclass
class _ColumnCount:
    """What is counted of one column."""

    column: Column
    unreadable: _Count = field(default_factory=_Count)
    missing: _Count = field(default_factory=_Count)
    outside: int = 0
    low: float = np.inf
    high: float = -np.inf

    def add(self, cells: Any, *, first: int) -> None:
        values, unreadable = self.column.raw(cells), self.column.unreadable(cells)
        absent = np.isnan(values)
        self.unreadable.add(unreadable, first)
        self.missing.add(absent & ~unreadable, first)
        known = values[~absent]
        if not len(known):
            return
        self.low, self.high = min(self.low, known.min()), max(self.high, known.max())
        if {"transformed", "days"} & self.column.roles:
            low, high = self.column.declared_bounds
            self.outside += int(np.count_nonzero((known < low) | (known > high)))

    def findings(self, n_rows: int, most_unreadable: float) -> Iterator[Misfit]:
        name, misfit = self.column.name, self.column.misfit
        if bad := self.unreadable.n:
            stops = bad > most_unreadable * n_rows
            why = f"more than {100 * most_unreadable:g}% of its cells are {misfit}" if stops else ""
            yield Misfit(name, _counted(bad, n_rows, misfit), why, tuple(self.unreadable.rows))
        if gone := self.missing.n:
            yield Misfit(name, _counted(gone, n_rows, "missing"), rows=tuple(self.missing.rows))
        readable = n_rows - bad - gone
        for share, words in COARSE:
            if self.outside > share * readable:
                says = f"{words} of its values are outside the declared bounds"
                why = f"{says} (is it in the declared unit?)" if share == COARSE[0][0] else ""
                yield Misfit(name, says, why)
                break
        if readable > 1 and self.low == self.high:
            yield Misfit(name, "constant: all cells that can be read are the same")


def _counted(n: int, n_rows: int, what: str) -> str:
    are = "is" if n == 1 else "are"
    return f"{n} of {how_many(n_rows, 'cell')} ({whole_percent(n / n_rows)}) {are} {what}"


class _UnitCount:
    """Units with more rows than declared, and rows of nobody."""

    def __init__(self, most: int) -> None:
        self._most, self._ids = most, UnitIds()
        self._keys: list[Words] = []
        self._nobody = _Count()

    def add(self, ids: Objects, first: int) -> None:
        named = np.flatnonzero(ids != "")
        rows = (named + first).astype(np.uint64)
        self._keys.append(np.column_stack((self._ids.words(ids[named]), rows, rows)))
        self._nobody.add(ids == "", first)

    def findings(self, name: str) -> Iterator[Misfit]:
        keys = np.concatenate([np.empty((0, 4), dtype=np.uint64), *self._keys])
        # A unit with more rows has one that is its first beyond the limit.
        over = np.sort(keys[unit_ranks(keys) == self._most, 2]) + 1
        if n := len(over):
            have, most = "has" if n == 1 else "have", how_many(self._most, "row")
            words = f"{how_many(n, 'unit')} {have} more than {most}, as declared"
            why = f"some units have more than {most}, as rows_per_unit declares"
            yield Misfit(name, words, why, tuple(over[: MOST_EXAMPLES + 1].tolist()))
        if self._nobody.n:
            left = f"{how_many(self._nobody.n, 'row')} without an id, left out of a fit"
            yield Misfit(name, left, rows=tuple(self._nobody.rows))
