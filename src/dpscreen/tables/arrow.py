"""Rows of a Parquet file, of a frame, or of anything that exports Arrow, as Arrow batches.

>>> rows = schema.encode(duckdb.sql("SELECT * FROM visits"))
>>> rows = dpscreen.scan(polars.scan_parquet("visits.parquet"), schema)

A source, such as a relation, a lazy frame, a cursor, a dataset or a reader, is read once, batch by
batch. What a library says about a cell that it cannot convert is not repeated.
"""

from __future__ import annotations

import datetime
import decimal
import math
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dpscreen._core.arrays import Integers
from dpscreen._core.messages import message
from dpscreen.tables.days import is_days
from dpscreen.tables.declaration import (
    Batches,
    Declaration,
    TableProblem,
    called,
    each_quietly,
    match_names,
    quietly,
)
from dpscreen.tables.encode import mixed, only_days, read_cells, readable, unmixed

ROWS_PER_BATCH = 1 << 16
_BUFFER = 1 << 20


class ParquetBatches(Batches):
    """The wanted columns of a Parquet file."""

    def __init__(self, path: Path, schema: Declaration, wanted: Sequence[str]) -> None:
        import pyarrow.parquet as pq

        self._path, self._wanted = path, list(wanted)
        # Column by column through small buffers: a row group may be as large as the file.
        opened = partial(pq.ParquetFile, path, buffer_size=_BUFFER, pre_buffer=False)
        self._file = quietly(opened, "table.parquet-damaged", path=path)
        stored = self._file.schema_arrow
        check_stored(path, {name: stored.field(name).type for name in wanted}, schema)

    def _batches(self) -> Generator[Any, None, None]:
        batches = self._file.iter_batches(ROWS_PER_BATCH, columns=self._wanted)
        for batch in each_quietly(batches, "table.parquet-damaged", path=self._path):
            self.share += len(batch) / self._file.metadata.num_rows
            yield batch


def check_stored(
    place: Path | str, kinds: Mapping[str, pa.DataType], schema: Declaration | None = None
) -> None:
    """Refuse columns stored as something that is neither numbers, booleans, text nor days."""
    fields = () if schema is None else schema.fields
    days = {column.name for column in fields if "days" in column.roles}
    for name, kind in kinds.items():
        if not readable(kind, days=name in days):
            raise TableProblem(message("table.stored", table=called(place), column=name))


_HERE, _FRAME = "the frame", "table.frame"
_PLAIN: tuple[Any, ...] = (int, float, decimal.Decimal)
_NUMPY, _COMPLEX = (np.bool_, np.integer, np.floating), (complex, np.complexfloating)


class FrameBatches(Batches):
    """The wanted columns of a frame, all of which is there from the start."""

    share = 1.0

    def __init__(
        self, frame: Any, schema: Declaration, wanted: Sequence[str], optional: Sequence[str] = ()
    ) -> None:
        table = quietly(partial(_table, frame), _FRAME)
        names = quietly(
            lambda: list(table.columns if _is_pandas(table) else table.column_names), _FRAME
        )
        match_names(_HERE, names, schema, optional)
        self._columns = {name: quietly(partial(_column, table, name), _FRAME) for name in wanted}
        check_stored(_HERE, {name: one.type for name, one in self._columns.items()}, schema)

    def __iter__(self) -> Iterator[Any]:
        return self._batches()

    def _batches(self) -> Generator[Any, None, None]:
        yield from pa.table(self._columns).to_batches(max_chunksize=ROWS_PER_BATCH)


def frame_levels(frame: Any, name: str, levels: Sequence[str]) -> Integers:
    """Return the place of each cell's level in a frame of that one column; below 0 for none."""
    cells = quietly(lambda: _column(_table(frame), name), _FRAME)
    check_stored(_HERE, {name: cells.type})
    batches = pa.table({name: cells}).to_batches(max_chunksize=ROWS_PER_BATCH)
    found = [
        read_cells(name, batch, lambda one: one.word_places(levels, missing=()))
        for batch in batches
    ]
    return np.concatenate([np.empty(0, dtype=np.int64), *found])


def _is_pandas(frame: Any) -> bool:
    return hasattr(frame, "iloc") and hasattr(frame, "columns")


def is_in_memory(frame: Any) -> bool:
    """Whether all rows of a frame, or of a series, are there, in an order that stays."""
    theirs = hasattr(frame, "get_columns") or hasattr(frame, "to_frame")
    return theirs or _is_pandas(frame) or isinstance(frame, pa.Table)


def _table(frame: Any) -> Any:
    """Return a frame of pandas as it is, and others as Arrow tables."""
    if isinstance(frame, pa.Table) or _is_pandas(frame):
        return frame
    if not hasattr(frame, "get_columns"):
        return pa.table(frame)
    columns = {series.name: series for series in frame.get_columns()}
    beyond_arrow = ("Object", "Int128", "UInt128")
    return pa.table(
        {
            name: mixed_cells(one) if str(one.dtype) in beyond_arrow else one.to_arrow()
            for name, one in columns.items()
        }
    )


def _column(table: Any, name: str) -> Any:
    if _is_pandas(table):
        return pa.chunked_array([_pandas_cells(table[name])])
    return table.column(name)


def _pandas_cells(series: Any) -> Any:
    """Return an Arrow array of what a pandas column holds, cell by cell where nothing else will."""
    kind = series.dtype
    if isinstance(kind, np.dtype) and kind.kind in "biuf":
        values = series.to_numpy()
        # A float of more than 64 bits would be none to Arrow.
        return pa.array(values if kind.itemsize <= 8 else values.astype(np.float64))
    if isinstance(kind, np.dtype) and kind.kind == "M":
        return only_days(pa.array(series.to_numpy()))
    if kind == "category":
        codes = series.cat.codes.to_numpy()
        return mixed_cells(series.cat.categories).take(pa.array(codes, mask=codes < 0))
    from pandas.api.types import infer_dtype

    # A type that Arrow shares, or texts alone; others cell by cell.
    typed = hasattr(series.array, "__arrow_array__") and not isinstance(kind, np.dtype)
    if typed or infer_dtype(series, skipna=True) == "string":
        with suppress(ValueError, pa.ArrowException):  # half a character, or a number too long
            found = pa.array(series.array) if typed else pa.array(series, pa.large_string())
            found = found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
            if is_days(found.type) and getattr(found.type, "tz", None) is None:
                return only_days(found)
            if readable(found.type):
                return found
    return mixed_cells(series)


def mixed_cells(cells: Iterable[Any]) -> Any:
    """Return an Arrow column of Python objects: numbers, texts and days, each read by itself."""
    return mixed([_value(cell) for cell in cells])


def _value(cell: Any) -> float | str | datetime.date | None:
    """Return a cell's number, text or day; None for what no file of this kind holds."""
    if type(cell) is float:
        return cell
    # The methods of the plain types, not those of a class that may reveal more than its value.
    if isinstance(cell, str):
        text = str.__str__(cell)
        halves = not text.isascii() and any("\ud800" <= one <= "\udfff" for one in text)
        return None if halves else text  # halves of characters
    if isinstance(cell, _COMPLEX):
        cell = cell.real if cell.imag == 0 else None  # one such cell makes its whole column complex
    if isinstance(cell, _NUMPY):
        return float(cell)
    for plain in _PLAIN:
        if isinstance(cell, plain):
            try:
                return float(plain.__float__(cell))
            except (OverflowError, ValueError):  # too large; a NaN that signals
                return math.nan
    return _day(cell)


def _day(cell: Any) -> datetime.date | None:
    """Return the day of a day or time, on its own clock."""
    if isinstance(cell, np.datetime64):
        cell = cell.astype("datetime64[D]").item()
    if not isinstance(cell, datetime.date) or cell != cell:  # pandas' NaT is a day of its own
        return None
    found = datetime.date.fromordinal(datetime.date.toordinal(cell))
    return found if found.year == cell.year else None  # pandas' beyond 9999 have a base in 1970


# --- sources that export Arrow --------------------------------------------------------------------

_SOURCE, _STREAM = "the source", "table.source"


def is_stream(rows: Any) -> bool:
    """Whether rows are read batch by batch, as they come from a source that exports Arrow."""
    return not is_in_memory(rows) and _opener(rows) is not None


def _opener(rows: Any) -> Callable[[], Any] | None:
    """Return what makes a reader of batches, by what the source offers; None if it offers none."""
    if hasattr(rows, "collect_batches"):
        return partial(_lazy_reader, rows)
    if hasattr(rows, "scanner"):  # a dataset
        return lambda: rows.scanner().to_reader()
    if hasattr(rows, "__arrow_c_stream__"):
        return partial(pa.RecordBatchReader.from_stream, rows)
    for name in ("fetch_record_batch", "to_reader"):  # a cursor of ADBC, a scanner
        if hasattr(rows, name):
            return partial(getattr(rows, name))
    return None


def _lazy_reader(rows: Any) -> Any:
    """Return a reader of a lazy frame of polars, which computes some rows at a time."""
    kinds = rows.head(0).collect().to_arrow().schema
    frames = (frame.to_arrow().to_batches() for frame in rows.collect_batches())
    return pa.RecordBatchReader.from_batches(kinds, (one for frame in frames for one in frame))


def _reader_of(rows: Any) -> Any:
    opener = _opener(rows)
    assert opener is not None, "is_stream was asked before"
    return quietly(opener, _STREAM)


def frames_of(rows: Any, names: Sequence[str] | None = None) -> Generator[Any, None, None]:
    """Yield a source as frames of pandas, of some columns or of all.

    Words that are stored once, in a dictionary, are texts here as elsewhere: which there are is
    known from the rows, and no declaration of levels.
    """
    reader = _reader_of(rows)
    kept = list(names or reader.schema.names)
    _check_there(kept, reader)
    with closing(reader):  # a connection may serve one reader at a time
        for batch in _read_batches(reader):
            table = pa.table({name: unmixed(batch.column(name)) for name in kept})
            texts = [
                pa.field(
                    one.name, one.type.value_type if pa.types.is_dictionary(one.type) else one.type
                )
                for one in table.schema
            ]
            yield quietly(table.cast(pa.schema(texts)).to_pandas, _STREAM)


class StreamBatches(Batches):
    """The wanted columns of a reader of batches."""

    def __init__(
        self, rows: Any, schema: Declaration, wanted: Sequence[str], optional: Sequence[str] = ()
    ) -> None:
        reader = self._reader = _reader_of(rows)
        self._wanted = list(wanted)
        known = {column.name for column in schema.fields}
        names = [name for name in reader.schema.names if name in known]  # others are not read
        match_names(_SOURCE, names, schema, optional)
        _check_there(wanted, reader)
        kinds = {name: reader.schema.field(name).type for name in wanted if name in known}
        check_stored(_SOURCE, kinds, schema)

    def _batches(self) -> Generator[Any, None, None]:
        for batch in _read_batches(self._reader):
            yield batch.select(self._wanted)


def _check_there(names: Sequence[str], reader: Any) -> None:
    absent = tuple(repr(name) for name in names if name not in reader.schema.names)
    if absent:
        raise TableProblem(message("table.source-lacks", names=absent))


def _read_batches(reader: Any) -> Iterator[Any]:
    """Yield batches of a bounded number of rows."""
    for batch in each_quietly(iter(reader), _STREAM):
        for first in range(0, len(batch), ROWS_PER_BATCH):
            yield batch.slice(first, ROWS_PER_BATCH)
