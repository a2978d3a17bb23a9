"""Data frames in memory, read by the same rules as files.

A frame may hold any Python object. Only text, numbers and truths are looked at; anything else is
missing, and is never asked to show itself.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from dpscreen._core.arrays import Array
from dpscreen.data.schema import TableSchema
from dpscreen.data.tables import Rows, gathered, gathered_features
from dpscreen.data.tables_encode import Encoder
from dpscreen.data.tables_header import match_names
from dpscreen.data.tables_parquet import ROWS_PER_BATCH, check_stored
from dpscreen.data.tables_problem import TableProblem, quietly

_HERE = "the frame"


def encode_frame(frame: Any, schema: TableSchema) -> Rows:
    """Return the rows of a frame that count, within the schema's bounds."""
    schema.check()
    encoder = Encoder(schema)
    others = (schema.target, schema.unit)
    wanted = dict.fromkeys((*encoder.columns, *(name for name in others if name is not None)))
    return gathered(FrameBatches(_matched(frame, schema), tuple(wanted)), encoder, schema)


def frame_features(frame: Any, schema: TableSchema) -> Array:
    """Return the features of every row of a frame; other columns may be absent."""
    schema.check()
    encoder = Encoder(schema)
    optional = [field.name for field in schema.fields if field.name not in encoder.columns]
    return gathered_features(
        FrameBatches(_matched(frame, schema, optional), encoder.columns), encoder
    )


def _matched(frame: Any, schema: TableSchema, optional: Sequence[str] = ()) -> Any:
    """Return a frame or Arrow table whose columns are those of the schema."""
    table = frame if _is_pandas(frame) else quietly(partial(_arrow, frame), _told)
    names = quietly(lambda: list(table.columns if _is_pandas(table) else table.column_names), _told)
    match_names(_HERE, names, schema, optional)
    return table


class FrameBatches:
    """The wanted columns of a frame, as Arrow batches."""

    def __init__(self, frame: Any, wanted: Sequence[str]) -> None:
        self._columns = {name: quietly(partial(_column, frame, name), _told) for name in wanted}
        check_stored(_HERE, wanted, lambda name: self._columns[name].type)
        lengths = {len(column) for column in self._columns.values()}
        if len(lengths) > 1:
            raise TableProblem(f"{_HERE} is not a table: its columns are not equally long.")
        self.n_rows: int | None = lengths.pop()

    def share(self) -> float:
        """Return how much has been read; it is all there from the start."""
        return 1.0

    def __iter__(self) -> Iterator[Any]:
        table = pa.table(self._columns)
        yield from table.to_batches(max_chunksize=ROWS_PER_BATCH)


def _is_pandas(frame: Any) -> bool:
    return hasattr(frame, "iloc") and hasattr(frame, "columns")


def _arrow(frame: Any) -> Any:
    if isinstance(frame, pa.Table):
        return frame
    return frame.to_arrow() if hasattr(frame, "to_arrow") else pa.table(frame)


def _column(frame: Any, name: str) -> Any:
    if not _is_pandas(frame):
        return frame.column(name)
    series = frame[name]
    if getattr(series.dtype, "kind", "O") in "biuf" and isinstance(series.dtype, np.dtype):
        return pa.chunked_array([pa.array(series.to_numpy(), from_pandas=True)])
    return pa.chunked_array([pa.array([_cell(cell) for cell in series], type=pa.string())])


def _cell(cell: Any) -> str | None:
    """Spell a cell as a file would; None for what no file of this kind holds."""
    # The methods of the plain types, not those of a class that may tell more than its value.
    if isinstance(cell, str):
        return str.__str__(cell)
    if isinstance(cell, bool | np.bool_):
        return "true" if cell else "false"
    if isinstance(cell, np.integer | np.floating):
        cell = cell.item()
    if isinstance(cell, int):
        return int.__repr__(cell)
    if isinstance(cell, float):
        return None if math.isnan(cell) else float.__repr__(cell)
    if isinstance(cell, decimal.Decimal):
        return decimal.Decimal.__str__(cell) if cell.is_finite() else None
    return None


def _told(error: Exception) -> str:
    return (
        f"{_HERE} cannot be read as a table ({type(error).__name__}); pass a pandas or polars "
        "frame, or an Arrow table, with columns of numbers, truths or text."
    )
