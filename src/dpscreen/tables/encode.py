"""Cells to features and target, as the schema declares: clipped, filled, transformed, one-hot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dpscreen._core.arrays import Array, Objects
from dpscreen.tables import cells
from dpscreen.tables.problem import TableProblem, quietly
from dpscreen.tables.schema import TableSchema
from dpscreen.tables.schema.fields import TRANSFORMS, Field


@dataclass(frozen=True)
class EncodedColumn:
    """A column of the table and where its features go; `picks` are (place, level) pairs.

    `fill` is what a missing number becomes, or the place of the level that a missing one becomes.
    """

    field: Field
    picks: tuple[tuple[int, int], ...]
    fill: float | None


class Encoder:
    """Turns batches into numbers, each row by itself."""

    def __init__(self, schema: TableSchema, columns: Sequence[str] | None = None) -> None:
        self._schema = schema
        self._missing = schema.missing_values
        self._parts = _parts(schema, columns)
        self.width = sum(len(part.picks) for part in self._parts)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table that are needed for the features."""
        return tuple(part.field.name for part in self._parts)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the features, in their order."""
        named = {
            place: part.field.feature_names[level]
            for part in self._parts
            for place, level in part.picks
        }
        return tuple(named[place] for place in range(self.width))

    def features(self, batch: Any, out: Array) -> None:
        """Write the features of a batch into as many rows."""
        for part in self._parts:
            column = batch.column(part.field.name)
            quietly(partial(self._write, part, column, out), _told(part.field.name))

    def target(self, batch: Any) -> Array:
        """Return the target, NaN where it is missing."""
        name = self._schema.target
        column = batch.column(name)
        return quietly(lambda: self._scaled(self._schema.field(name), column), _told(name))

    def unit_ids(self, batch: Any) -> Objects:
        """Return whose row it is; "" where that is missing."""
        name = str(self._schema.unit)
        column, field = batch.column(name), self._schema.field(name)
        if not cells.tells_ids_apart(column.type):
            raise TableProblem(
                f"column {name!r} is stored as floats of fewer than 64 bits, which cannot tell ids "
                "apart; store ids as text or as whole numbers."
            )
        read = partial(cells.unit_ids, field=field, missing=self._missing)
        return quietly(lambda: cells.each(read, column), _told(name))

    def _write(self, part: EncodedColumn, column: Any, out: Array) -> None:
        if part.field.is_categorical:
            read = partial(cells.level_codes, field=part.field, missing=self._missing)
            codes = cells.each(read, column)
            if part.fill is not None:
                codes[codes == cells.MISSING] = part.fill
            for place, level in part.picks:
                out[:, place] = codes == level
            return
        values = self._scaled(part.field, column)
        values[np.isnan(values)] = part.fill
        for place, _ in part.picks:
            out[:, place] = values

    def _scaled(self, field: Field, column: Any) -> Array:
        """Return numbers clipped to the declared bounds, then transformed; NaN stays."""
        if field.type == "boolean":
            return cells.each(partial(cells.truths, field=field, missing=self._missing), column)
        read = partial(cells.numbers, decimal=field.decimal, missing=self._missing)
        values = cells.each(read, column)
        np.clip(values, *field.declared_bounds, out=values)
        word = self._schema.transform_of(field.name)
        if word == "none":
            return values
        # Once more, should a C library's logarithm not be increasing to the last bit.
        return np.clip(TRANSFORMS[word].apply(values), *self._schema.bounds_of(field.name))


def _told(name: str) -> Any:
    return lambda error: f"column {name!r} cannot be read; {type(error).__name__} was raised."


def _parts(schema: TableSchema, columns: Sequence[str] | None) -> tuple[EncodedColumn, ...]:
    """Group the chosen features by the column that they are made of, in their order."""
    chosen = _chosen(schema, columns)
    groups: dict[str, list[tuple[int, int]]] = {}
    for place, (name, level) in enumerate(chosen):
        groups.setdefault(name, []).append((place, level))
    return tuple(
        EncodedColumn(schema.field(name), tuple(picks), _fill(schema, schema.field(name)))
        for name, picks in groups.items()
    )


def _fill(schema: TableSchema, field: Field) -> float | None:
    if not field.is_categorical:
        return schema.fill_of(field.name)
    declared = dict(schema.settings.fill).get(field.name)
    return None if declared is None else (field.levels or ()).index(declared)


def _chosen(schema: TableSchema, columns: Sequence[str] | None) -> list[tuple[str, int]]:
    every = {
        feature: (name, level)
        for name in schema.columns
        for level, feature in enumerate(schema.field(name).feature_names)
    }
    if columns is None:
        return list(every.values())
    chosen: list[tuple[str, int]] = []
    for asked in columns:
        if asked in every:
            chosen.append(every[asked])
        elif asked in schema.columns:
            chosen += [pair for pair in every.values() if pair[0] == asked]
        else:
            raise TableProblem(f"there is no feature {asked!r} in the schema.")
    return chosen
