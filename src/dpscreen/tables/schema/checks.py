"""What is wrong with a schema as a whole, each with how to mend it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from dpscreen._core.words import listed, mistyped
from dpscreen.tables.schema.fields import TRANSFORMS, Field, finite, level_text, value_of

if TYPE_CHECKING:
    from dpscreen.tables.schema import TableSchema

NARROWEST, WIDEST = 2e-60, 2e60
"""How wide bounds may be: between these no square and no ratio of a fit overflows."""


def problems(schema: TableSchema) -> Iterator[str]:
    """Yield every problem, in the order in which one mends them."""
    yield from schema.faults
    for field in schema.fields:
        yield from field.faults
    yield from schema.settings.faults
    yield from _names(schema)
    yield from _target(schema)
    yield from _features(schema)
    yield from _unit(schema)
    for field in _used(schema):
        yield from field.needs(as_target=field.name == schema.settings.target)
        yield from _bounds(schema, field)
        yield from _levels(schema, field)
    yield from _fills(schema)
    yield from _transformed_columns(schema)
    yield from _feature_names(schema)


def _names(schema: TableSchema) -> Iterator[str]:
    counts = Counter(field.name for field in schema.fields)
    for name, count in counts.items():
        if count > 1:
            yield f"column {name!r} is declared {count} times: keep one."
        if not name.strip():
            yield "a column has an empty name: give it one, in the table and here."


def _target(schema: TableSchema) -> Iterator[str]:
    target = schema.settings.target
    if target is None:
        yield "the target is not named: set dpscreen.target to the column to be predicted."
    else:
        yield from _unknown(schema, "dpscreen.target", target)


def _unknown(schema: TableSchema, where: str, name: str) -> Iterator[str]:
    if not schema.has_field(name):
        yield f"{where}: {mistyped('column', name, [field.name for field in schema.fields])}"


def _features(schema: TableSchema) -> Iterator[str]:
    chosen = schema.settings.features
    if chosen is None:
        if schema.settings.target is not None and not schema.columns:
            yield "there is no feature: declare at least one column beside the target."
        return
    if not chosen:
        yield "dpscreen.features is empty: name a column, or leave the list out to take all."
    for name, count in Counter(chosen).items():
        yield from _unknown(schema, "dpscreen.features", name)
        if count > 1:
            yield f"dpscreen.features names column {name!r} {count} times: name it once."
        if name in (schema.settings.target, schema.settings.unit):
            yield f"dpscreen.features names the target or the unit, {name!r}: leave it out."


def _unit(schema: TableSchema) -> Iterator[str]:
    unit, most = schema.settings.unit, schema.settings.rows_per_unit
    if unit is None:
        if most is not None:
            yield (
                "dpscreen.rows_per_unit needs dpscreen.unit, the column that tells whose row it "
                "is; leave both out if a row is the unit."
            )
        return
    yield from _unknown(schema, "dpscreen.unit", unit)
    if unit == schema.settings.target:
        yield "dpscreen.unit and dpscreen.target name the same column."
    if most is None and not any("rows_per_unit" in told for told in schema.settings.faults):
        yield (
            "dpscreen.unit needs dpscreen.rows_per_unit, the most rows of one unit that are used: "
            "choose it from what you know; noise grows with it."
        )
    for field in schema.fields:
        if field.name == unit and field.type in ("number", "boolean"):
            yield f"column {unit!r} is the unit: set its type to string or integer."


def _used(schema: TableSchema) -> Iterator[Field]:
    names = {*schema.columns, schema.settings.target}
    yield from (field for field in schema.fields if field.name in names)


def _bounds(schema: TableSchema, field: Field) -> Iterator[str]:
    low, high = field.minimum, field.maximum
    if not field.is_numeric or field.is_categorical or low is None or high is None:
        return
    here = f"column {field.name!r}"
    if not low < high:
        yield f"{here}: the minimum must be below the maximum."
        return
    word = schema.transform_of(field.name)
    if not TRANSFORMS[word].allows(low):
        yield (
            f"{here}: its transform {word} needs a minimum {TRANSFORMS[word].needs}; raise the "
            "minimum or drop the transform."
        )
        return
    below, above = TRANSFORMS[word].apply(np.array([low, high]))
    if not NARROWEST <= above - below <= WIDEST:
        yield f"{here}: bounds must be between {NARROWEST:g} and {WIDEST:g} apart."


def _levels(schema: TableSchema, field: Field) -> Iterator[str]:
    if not field.is_categorical:
        return
    missing = {value_of(text) for text in schema.missing_values}
    clash = [level for level in map(level_text, field.levels or ()) if value_of(level) in missing]
    if clash:
        yield (
            f"column {field.name!r}: {listed(map(repr, clash))} is a level and one of "
            "missingValues: take it out of one of them."
        )


def _fills(schema: TableSchema) -> Iterator[str]:
    fields = {field.name: field for field in schema.fields}
    for name, value in schema.settings.fill:
        yield from _unknown(schema, "dpscreen.fill", name)
        if name == schema.settings.unit:
            yield f"dpscreen.fill of column {name!r}: rows without a unit count as one unit."
        elif name in fields:
            yield from _fill(fields[name], value)


def _fill(field: Field, value: Any) -> Iterator[str]:
    here = f"dpscreen.fill of column {field.name!r}"
    if field.is_categorical:
        if value not in (field.levels or ()) or isinstance(value, bool):
            yield f"{here} must be one of its levels."
    elif field.type == "boolean":
        if not isinstance(value, bool):
            yield f"{here} must be true or false."
    elif field.is_numeric and field.minimum is not None and field.maximum is not None:
        number = finite(value)
        if number is None or not field.minimum <= number <= field.maximum:
            yield f"{here} must be a number within its bounds."


def _transformed_columns(schema: TableSchema) -> Iterator[str]:
    fields = {field.name: field for field in schema.fields}
    for name, word in schema.settings.transform:
        yield from _unknown(schema, "dpscreen.transform", name)
        field = fields.get(name)
        if field is None or word == "none" or field.type == "any":
            continue
        if not field.is_numeric or field.is_categorical:
            yield f"dpscreen.transform of column {name!r}: only numbers with bounds have one."


def _feature_names(schema: TableSchema) -> Iterator[str]:
    columns = [name for name in dict.fromkeys(schema.columns) if schema.has_field(name)]
    groups = (schema.field(name).feature_names for name in columns)
    counts = Counter(name for group in groups for name in group)
    for name, count in counts.items():
        if count > 1:
            yield f"{count} features would be called {name!r}: rename a column or a level."
