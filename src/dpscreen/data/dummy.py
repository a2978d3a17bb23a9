"""Dummy tables of a schema's shape: to try everything out before any private row is touched."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpscreen.data.schema import TableSchema
from dpscreen.data.schema_fields import Field
from dpscreen.data.schema_transforms import TRANSFORMS
from dpscreen.data.tables_encode import Encoder

Array = NDArray[np.float64]
MOST_EFFECTS = 5
_SIGNAL, _NOISE = 0.35, 0.2


@dataclass(frozen=True, eq=False)
class Dummy:
    """A table with nothing private in it, and the features that truly have an effect there."""

    table: Any
    effects: tuple[str, ...]


def simulate_table(
    schema: TableSchema, n_rows: int, *, rng: np.random.Generator, missing: float = 0.0
) -> Dummy:
    """Draw rows within the declared bounds and levels, and a target that is partly linear.

    `missing` is the share of cells that are empty, in features and target.
    """
    schema.check()
    columns = {field.name: _drawn(schema, field, n_rows, rng) for field in schema.fields}
    places = _with_effect(len(schema.feature_names))
    columns[schema.target] = _target(schema, pa.table(columns), places, rng)
    for name in (*schema.columns, schema.target):
        empty = rng.random(n_rows) < missing
        columns[name] = pa.array(columns[name].to_pylist(), columns[name].type, mask=empty)
    effects = tuple(schema.feature_names[place] for place in places)
    return Dummy(pa.table(columns), effects)


def as_csv(dummy: Dummy, schema: TableSchema) -> bytes:
    """Write a dummy table as the schema's dialect has it."""
    text = io.StringIO()
    writer = csv.writer(
        text, delimiter=schema.delimiter or ",", quotechar=schema.quote, lineterminator="\n"
    )
    writer.writerow(dummy.table.column_names)
    empty = "" if "" in schema.missing_values else next(iter(schema.missing_values), "")
    spelled = [
        [_spelled(cell, field, empty) for cell in dummy.table.column(field.name).to_pylist()]
        for field in schema.fields
    ]
    writer.writerows(zip(*spelled, strict=True))
    return text.getvalue().encode()


def as_parquet(dummy: Dummy) -> bytes:
    """Write a dummy table as Parquet."""
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(dummy.table, sink)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _spelled(cell: object, field: Field, empty: str) -> str:
    if cell is None:
        return empty
    if isinstance(cell, bool):
        return (field.true_values if cell else field.false_values)[0]
    return str(cell).replace(".", field.decimal) if isinstance(cell, float) else str(cell)


# --- columns --------------------------------------------------------------------------------------


def _drawn(schema: TableSchema, field: Field, n_rows: int, rng: np.random.Generator) -> Any:
    if field.name == schema.unit:
        return _unit_ids(schema, field, n_rows, rng)
    if field.is_categorical:
        levels = field.levels or ()
        drawn = [levels[place] for place in rng.integers(len(levels), size=n_rows)]
        return _whole(np.array(drawn)) if field.type == "integer" else pa.array(drawn)
    if field.type == "boolean":
        return pa.array(rng.random(n_rows) < 0.5)
    if field.is_numeric and field.minimum is not None and field.maximum is not None:
        return _numbers(schema, field, rng.uniform(-1, 1, n_rows))
    return pa.array(["unused"] * n_rows)  # a column that is neither feature nor target


def _numbers(schema: TableSchema, field: Field, within: Array) -> Any:
    """Return numbers of a column from their place between its bounds, from -1 to 1."""
    low, high = schema.bounds_of(field.name)
    scaled = low / 2 + high / 2 + (high / 2 - low / 2) * within
    values = TRANSFORMS[schema.transform_of(field.name)].invert(scaled)
    if field.type != "integer":
        return pa.array(np.clip(values, *field.declared_bounds))
    low, high = field.declared_bounds
    return _whole(np.clip(np.round(values), math.ceil(low), max(math.ceil(low), math.floor(high))))


def _whole(values: Array) -> Any:
    """Return whole numbers as such, as far as 64 bits hold them."""
    return pa.array(values.astype(np.int64) if np.abs(values).max(initial=0) < 2**53 else values)


def _unit_ids(schema: TableSchema, field: Field, n_rows: int, rng: np.random.Generator) -> Any:
    """Return ids of which some have more rows than are used."""
    units = max(1, math.ceil(1.5 * n_rows / (schema.rows_per_unit + 1)))
    numbers = rng.integers(1, units + 1, size=n_rows)
    if field.type == "integer":
        return pa.array(numbers)
    return pa.array([f"u{number:07d}" for number in numbers])


# --- target ---------------------------------------------------------------------------------------


def _with_effect(n_features: int) -> list[int]:
    spread = np.linspace(0, n_features - 1, min(MOST_EFFECTS, n_features))
    return sorted({round(place) for place in spread.tolist()})


def _target(schema: TableSchema, table: Any, places: list[int], rng: np.random.Generator) -> Any:
    encoder = Encoder(schema)
    features = np.empty((table.num_rows, encoder.width))
    encoder.features(table.combine_chunks(), features)
    low, high = schema.feature_bounds[places].T
    centred = (features[:, places] - (low / 2 + high / 2)) / (high / 2 - low / 2)
    signs = np.where(np.arange(len(places)) % 2, -1.0, 1.0)
    signal = centred @ signs / math.sqrt(len(places) / 3)
    within = np.clip(_SIGNAL * signal + _NOISE * rng.standard_normal(len(signal)), -1, 1)
    field = schema.field(schema.target)
    if field.type == "boolean":
        return pa.array(within > 0)
    return _numbers(schema, field, within)
