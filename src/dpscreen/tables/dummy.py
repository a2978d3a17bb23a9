"""Dummy tables of a schema's shape: to try everything out before any private row is touched."""

from __future__ import annotations

import codecs
import csv
import io
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpscreen.tables.declaration import Declaration
from dpscreen.tables.encode import Encoder

MOST_EFFECTS = 5
ROWS_TOGETHER = 1 << 16
_SIGNAL, _NOISE = 0.35, 0.2


def simulate_table(
    schema: Declaration, n_rows: int, *, rng: np.random.Generator, missing: float = 0.0
) -> pa.Table:
    """Draw rows within the declared bounds and levels, and a target that is partly linear.

    `missing` is the share of cells that are empty, in features and target.
    """
    return pa.concat_tables(simulate_parts(schema, n_rows, rng=rng, missing=missing))


def simulate_parts(
    schema: Declaration, n_rows: int, *, rng: np.random.Generator, missing: float = 0.0
) -> Iterator[pa.Table]:
    """Draw the rows of `simulate_table` some at a time, for tables of any length."""
    schema.check()
    units = max(1, math.ceil(1.5 * n_rows / (schema.rows_per_unit + 1)))
    starts = range(0, max(1, n_rows), ROWS_TOGETHER)  # a table of no rows is a part, too
    sizes = (min(ROWS_TOGETHER, n_rows - first) for first in starts)
    return (_part(schema, size, units, rng, missing) for size in sizes)


def _part(
    schema: Declaration, n_rows: int, units: int, rng: np.random.Generator, missing: float
) -> pa.Table:
    columns = {}
    for column in schema.fields:
        cells: Any
        if column.name == schema.unit:  # some units have more rows than are used
            ids = rng.integers(1, units + 1, size=n_rows)
            cells = ids if "whole" in column.roles else [f"u{one:07d}" for one in ids]
        else:
            cells = column.placed(rng.uniform(-1, 1, n_rows))
        columns[column.name] = pa.array(cells)
    places = _with_effect(len(schema.feature_names))
    columns[schema.target] = _target(schema, pa.table(columns), places, rng)
    for name in (*schema.columns, schema.target):
        empty = pa.array(rng.random(n_rows) < missing)
        columns[name] = pc.if_else(empty, None, columns[name])
    return pa.table(columns)


def effects_of(schema: Declaration) -> tuple[str, ...]:
    """Return the features that have a true effect on the target of a dummy table."""
    names = schema.feature_names
    return tuple(names[place] for place in _with_effect(len(names)))


def csv_parts(parts: Iterable[pa.Table], schema: Declaration) -> Iterator[bytes]:
    """Yield the bytes of a table as the schema's dialect has it, the names first."""
    encoder = codecs.getincrementalencoder(schema.dialect.encoding)(errors="replace")
    signs: dict[str, Any] = {
        "delimiter": schema.dialect.delimiter or ",",
        "quotechar": schema.dialect.quote,
    }

    def encoded(rows: Iterable[Iterable[str]]) -> bytes:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n", **signs).writerows(rows)
        return encoder.encode(text.getvalue())

    yield encoded([[column.name for column in schema.fields]])
    for part in parts:
        spelled = []
        for column in schema.fields:
            empty = "" if "" in column.missing else next(iter(column.missing), "")
            cells = part.column(column.name).to_pylist()
            spelled.append([empty if cell is None else column.spelled(cell) for cell in cells])
        yield encoded(zip(*spelled, strict=True))


def write_parquet(parts: Iterable[pa.Table], path: Path) -> None:
    """Write parts of a table into one Parquet file, as they come."""
    import pyarrow.parquet as pq

    rest = iter(parts)
    first = next(rest)
    with pq.ParquetWriter(path, first.schema) as writer:
        writer.write_table(first)
        for part in rest:
            writer.write_table(part)


# --- target ---------------------------------------------------------------------------------------


def _with_effect(n_features: int) -> list[int]:
    spread = np.linspace(0, n_features - 1, min(MOST_EFFECTS, n_features))
    return sorted({round(place) for place in spread.tolist()})


def _target(schema: Declaration, table: Any, places: list[int], rng: np.random.Generator) -> Any:
    encoder = Encoder(schema)
    features = np.empty((table.num_rows, encoder.width))
    encoder.features(table.combine_chunks(), features)
    low, high = schema.feature_bounds[places].T
    centred = (features[:, places] - (low / 2 + high / 2)) / (high / 2 - low / 2)
    signs = np.where(np.arange(len(places)) % 2, -1.0, 1.0)
    signal = centred @ signs / math.sqrt(len(places) / 3)
    within = np.clip(_SIGNAL * signal + _NOISE * rng.standard_normal(len(signal)), -1, 1)
    return pa.array(schema.field(schema.target).placed(within))
