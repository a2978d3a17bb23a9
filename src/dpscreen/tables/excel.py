"""Sheets of Excel workbooks (.xlsx), row by row; the field's own reader is an extra of ours."""

from __future__ import annotations

import datetime
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from dpscreen._core.messages import message
from dpscreen._core.words import plain
from dpscreen.tables.declaration import Batches, Declaration, Dialect, TableProblem, quietly

ROWS_TOGETHER = 1 << 12
_DAMAGED = "table.excel-damaged"


def excel_names(path: Path, dialect: Dialect) -> tuple[str, ...]:
    """Return the names in the first row of a sheet; no other row is read."""
    with _sheet(path, dialect) as sheet:
        rows = sheet.iter_rows(max_row=1, values_only=True)
        row = quietly(lambda: next(rows, ()), _DAMAGED, path=path)
    names = [_name(cell) for cell in row]
    while names and not names[-1]:  # formatted, but empty
        names.pop()
    if not names:
        raise TableProblem(message("table.nameless", path=path))
    return tuple(names)


class ExcelBatches(Batches):
    """The wanted columns of a sheet, which may claim more rows than it has.

    A row of empty cells is no row.
    """

    def __init__(
        self, path: Path, names: Sequence[str], schema: Declaration, wanted: Sequence[str]
    ) -> None:
        self._path, self._dialect = path, schema.dialect
        self._places = {name: names.index(name) for name in wanted}
        self._width = len(names)

    def _batches(self) -> Generator[Any, None, None]:
        import pyarrow as pa

        from dpscreen.tables.arrow import mixed_cells

        with _sheet(self._path, self._dialect) as sheet:
            rows = sheet.iter_rows(min_row=2, values_only=True)
            while some := quietly(
                lambda: list(islice(rows, ROWS_TOGETHER)), _DAMAGED, path=self._path
            ):
                self.share = min(1.0, self.share + len(some) / (sheet.max_row or 1))
                # As many cells as there are names: what stands right of the table is no part.
                rows_cut = [
                    (*row[: self._width], *[None] * (self._width - len(row))) for row in some
                ]
                if kept := [row for row in rows_cut if any(cell is not None for cell in row)]:
                    places = self._places.items()
                    columns = {name: mixed_cells(row[k] for row in kept) for name, k in places}
                    yield pa.RecordBatch.from_pydict(columns)


@contextmanager
def _sheet(path: Path, dialect: Dialect) -> Iterator[Any]:
    """Open the declared sheet, or the first; close the workbook afterwards."""
    try:
        import openpyxl
        from openpyxl.worksheet import _reader
    except ImportError:
        raise TableProblem(message("table.needs-openpyxl", path=path)) from None
    # It warns of a day that Excel cannot have, with the cell's number, also of the row after the
    # names; a filter of warnings would not hold in all threads.
    _reader.warn = lambda *_: None
    load = partial(openpyxl.load_workbook, path, read_only=True, data_only=True)
    book = quietly(load, _DAMAGED, path=path)
    try:
        yield book[_sheet_name(path, book.sheetnames, dialect.sheet)]
    finally:
        book.close()


def _sheet_name(path: Path, names: Sequence[str], wanted: str | int | None) -> str:
    if wanted is not None and str(wanted) in names:
        return str(wanted)
    if not isinstance(wanted, str) and 1 <= (wanted or 1) <= len(names):
        return names[(wanted or 1) - 1]
    known = tuple(map(plain, names))
    raise TableProblem(message("table.no-sheet", path=path, sheet=wanted, known=known))


def _name(cell: Any) -> str:
    if cell is None:
        return ""
    whole = isinstance(cell, float) and cell.is_integer()
    day = isinstance(cell, datetime.date)
    return str(int(cell) if whole else cell.isoformat()[:10] if day else cell).strip()
