"""Rows of anything that exports Arrow: relations, lazy frames, cursors, datasets, readers.

>>> rows = schema.encode(duckdb.sql("SELECT * FROM visits"))
>>> rows = dpscreen.scan(polars.scan_parquet("visits.parquet"), schema)

A source is read once, batch by batch. What its library says about a cell that it cannot convert is
not repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import Any

import pyarrow as pa

from dpscreen._core.words import some
from dpscreen.tables.arrow import ROWS_PER_BATCH, check_stored, days_of, is_in_memory
from dpscreen.tables.declaration import Batches, Declaration, TableProblem, match_names, quietly
from dpscreen.tables.encode import unmixed

_HERE = "the source"


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


def reader_of(rows: Any) -> Any:
    """Return a reader of the batches of a source, or say that there is none."""
    opener = _opener(rows)
    assert opener is not None, "is_stream was asked before"
    return quietly(opener, _explained)


def frames_of(rows: Any, names: Sequence[str] | None = None) -> Generator[Any, None, None]:
    """Yield a source as frames of pandas, of some columns or of all."""
    reader = reader_of(rows)
    kept = list(names or reader.schema.names)
    _check_there(kept, reader)
    with closing(reader):  # a connection may serve one reader at a time
        for batch in read_batches(reader):
            table = pa.table({name: unmixed(batch.column(name)) for name in kept})
            yield quietly(table.to_pandas, _explained)


class StreamBatches(Batches):
    """The wanted columns of a reader of batches."""

    share = 0.9  # nobody knows, so room is made for a little more

    def __init__(
        self, reader: Any, schema: Declaration, wanted: Sequence[str], optional: Sequence[str] = ()
    ) -> None:
        self._reader, self._wanted = reader, list(wanted)
        known = {column.name for column in schema.fields}
        names = [name for name in reader.schema.names if name in known]  # others are not read
        match_names(_HERE, names, schema, optional)
        _check_there(wanted, reader)
        read = [name for name in wanted if name in known]
        check_stored(_HERE, read, lambda name: reader.schema.field(name).type, days_of(schema))

    def _batches(self) -> Generator[Any, None, None]:
        for batch in read_batches(self._reader):
            yield batch.select(self._wanted)


def _check_there(names: Sequence[str], reader: Any) -> None:
    absent = [repr(name) for name in names if name not in reader.schema.names]
    if absent:
        raise TableProblem(f"{_HERE} lacks column {some(absent)}.")


def read_batches(reader: Any) -> Iterator[Any]:
    """Yield batches of a bounded number of rows."""
    batches = iter(reader)
    while (batch := quietly(lambda: next(batches, None), _explained)) is not None:
        for first in range(0, len(batch), ROWS_PER_BATCH):
            yield batch.slice(first, ROWS_PER_BATCH)


def _explained(error: Exception) -> str:
    return f"{_HERE} could not be read ({type(error).__name__})."
