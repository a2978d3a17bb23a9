"""A model on the columns of the raw table: what each cell adds to the prediction.

Every export is generated from this one description, so that SQL, R, Excel, ONNX and scikit-learn
all predict what `predict` does. It is derived from the release and its schema alone. A prediction
is an intercept and one sum of terms; a term is a `Lookup` (a value stands for a number) or a `Line`
(a coefficient times a clipped and transformed number).

A cell is compared by its value, as in `tables.encode`: blanks around a text do not count, and 1,
1.0, true and their texts are one value. A value is a float or, where it spells no number, a text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen.models.categories import FrameColumns
from dpscreen.models.release import Release, target_transform
from dpscreen.tables.columns import OTHER, CategoryColumn, Column
from dpscreen.tables.columns.base import (
    PLAIN_MARKS,
    TRANSFORMS,
    TRUTHS,
    Level,
    Transform,
    value_of,
)
from dpscreen.tables.columns.date import ISO, DateColumn
from dpscreen.tables.columns.number import BooleanColumn, NumberColumn
from dpscreen.tables.declaration import SchemaProblem
from dpscreen.tables.schema import TableSchema

UNCHANGED = "none"


class NoFormula(ValueError):
    """A model that a format cannot hold, and why."""


@dataclass(frozen=True)
class Cell:
    """A cell of a column and how it is read: as a "number", a "text" or a "day" since 1970.

    `missing` lists the values that count as missing. Where `plain` is False, numbers have a decimal
    comma or other signs, so that a text must not be read as one. Where `declared` is False there is
    no schema: then a missing cell has no meaning, and its prediction is missing.
    """

    column: str
    kind: str
    missing: tuple[Level, ...] = ()
    form: str = ISO
    plain: bool = True
    declared: bool = True


@dataclass(frozen=True)
class Lookup:
    """What a column adds by the value of its cell, or by a `part` of its day."""

    cell: Cell
    values: Mapping[Level, float]
    missing: float
    otherwise: float
    part: str = ""

    @property
    def words(self) -> dict[str, float]:
        """Return what texts add: the values that spell no number."""
        return {one: adds for one, adds in self.values.items() if isinstance(one, str)}

    @property
    def numbers(self) -> dict[float, float]:
        """Return what numbers add, by their values."""
        return {one: adds for one, adds in self.values.items() if not isinstance(one, str)}

    @property
    def number_read(self) -> bool:
        """Whether a cell has to be read as a number: some value, or missing value, is one."""
        return any(isinstance(one, float) for one in (*self.values, *self.cell.missing))


@dataclass(frozen=True)
class Line:
    """What a column adds as a number: coefficient * transform(clip(number - since, low, high)).

    Without ends there is no clip. `missing` is what a cell adds that is missing, or unreadable;
    None if then there is no prediction.
    """

    cell: Cell
    coefficient: float
    ends: tuple[float, float] | None
    missing: float | None
    transform: str = UNCHANGED
    part: str = ""
    since: float = 0.0

    def of_number(self, number: float) -> float:
        """Return what a number adds."""
        value = np.array([number - self.since])
        if self.ends is not None:
            value = np.clip(value, *self.ends)
        return float(self.coefficient * TRANSFORMS[self.transform].apply(value)[0])


Term = Lookup | Line


@dataclass(frozen=True)
class RawModel:
    """A prediction: the intercept and all terms, in the user's units or as a probability.

    `columns` are all that features are made of, `terms` those that add something. The sum is
    clipped to `bounds`, if there are any, and `inverse` applied: the inverse of the link, or of the
    target's transform. `predicts` is the method of scikit-learn that gives that: where there are
    `classes`, it is the probability of the second.
    """

    intercept: float
    terms: tuple[Term, ...]
    columns: tuple[str, ...]
    bounds: tuple[float, float] | None
    inverse: str = ""
    predicts: str = "predict"
    classes: tuple[Any, ...] = ()
    named: bool = True

    @property
    def cells(self) -> dict[str, Cell]:
        """Return the cells that are needed, by column."""
        return {term.cell.column: term.cell for term in self.terms}


INVERSES = {UNCHANGED: "", "log": "exp", "log1p": "expm1", "sqrt": "square"}
"""What takes a transformed target back to the user's units."""


def words_of(value: Level) -> list[str]:
    """Return the usual spellings of a value: of 1 also true, True and TRUE."""
    if isinstance(value, str):
        return [value]
    return [word for word, digit in TRUTHS.items() if float(digit) == value]


def raw_model_of(release: Release) -> RawModel:
    """Return the model on raw columns; refuse a schema that does not describe its features."""
    sums, family = _Sums(release), release.family
    shared: dict[str, Any] = {
        "intercept": release.intercept,
        "bounds": family.predictor_bounds(release.target_bounds),
        "predicts": family.predicts,
        "classes": release.classes or (),
        "named": release.named,
    }
    if release.schema is None:
        columns = FrameColumns.of_features(release.names, release.categories)
        assert columns is not None  # checked where the model was made or read
        terms = tuple(_frame_terms(sums, columns))
        return RawModel(terms=terms, columns=columns.names, inverse=family.inverse, **shared)
    schema, names = _schema_of(release)
    if schema.block.formula is not None:
        raise NoFormula("a model with a formula is predicted with dpscreen predict, or in Python.")
    terms = tuple(_schema_terms(sums, schema, names))
    inverse = family.inverse or INVERSES[target_transform(release.schema)[1]]
    return RawModel(terms=terms, columns=schema.columns, inverse=inverse, **shared)


def _schema_of(release: Release) -> tuple[TableSchema, list[str]]:
    """Return the schema, and what it calls the features; or say why there is none to use."""
    try:
        schema = TableSchema.from_dict(release.schema or {})
        schema.check()
    except SchemaProblem:
        raise NoFormula(
            "the schema in the model cannot be used, so it is not known what its cells mean. Save "
            "the model with the schema of its table, or without one."
        ) from None
    return schema, described_features(schema, release.names, named=release.named)


def described_features(schema: TableSchema, names: Sequence[str], *, named: bool) -> list[str]:
    """Return what a schema calls a model's features, which may have one for every level."""
    own = list(schema.feature_names)
    every = [one for name in schema.columns for one in schema.field(name).every_feature]
    listed = list(names) if named else own
    if listed not in (own, every) or len(listed) != len(names):
        raise NoFormula("the schema in the model does not describe its features.")
    return listed


@dataclass(frozen=True)
class _Sums:
    """What features add to the log-odds or the line, clipped as `predict` clips them."""

    release: Release

    def added(self, features: Mapping[int, float]) -> float:
        """Return the sum over some features, by their places."""
        places, values = list(features), np.array(list(features.values()), dtype=np.float64)
        if self.release.clips_features:
            values = np.clip(values, *self.release.feature_bounds[places].T)
        return float(sum((self.release.coefficients[places] * values).tolist()))

    def used(self, places: Sequence[int]) -> bool:
        """Whether any of these features has a coefficient."""
        return bool(self.release.coefficients[list(places)].any())

    def levels(self, places: Sequence[int | None]) -> list[float]:
        """Return what each level adds, given the place of its feature; None has none."""
        features = [place for place in places if place is not None]
        return [self.added({place: float(place == one) for place in features}) for one in places]

    def line(
        self,
        cell: Cell,
        place: int,
        *,
        declared: tuple[float, float] | None,
        missing: float | None,
        transform: Transform = TRANSFORMS[UNCHANGED],
        part: str = "",
        since: float = 0.0,
    ) -> Line:
        """Return a feature that is a number; its two clips, before and after, are one before."""
        released = self.release.feature_bounds[place] if self.release.clips_features else None
        ends = declared
        if declared is None and released is not None:
            ends = float(released[0]), float(released[1])
        elif declared is not None and released is not None:
            after = transform.apply(np.array(declared))
            kept = np.clip(after, *released)
            moved = np.where(kept == after, declared, transform.invert(kept))
            ends = float(moved[0]), float(moved[1])
        return Line(
            cell=cell,
            coefficient=float(self.release.coefficients[place]),
            ends=ends,
            missing=missing,
            transform=transform.name,
            part=part,
            since=since,
        )


# --- columns of a frame ---------------------------------------------------------------------------


def _frame_terms(sums: _Sums, columns: FrameColumns) -> Iterator[Term]:
    """Yield what columns add that no schema describes: numbers, and categories of the model."""
    place = 0
    for name in columns.names:
        levels = columns.levels.get(name)
        width = 1 if levels is None else len(levels) - 1
        places = range(place, place + width)
        place += width
        if not sums.used(places):
            continue
        if levels is None:
            cell = Cell(name, "number", declared=False)
            yield sums.line(cell, places[0], declared=None, missing=None)
        else:
            adds = sums.levels([None, *places])
            values = dict(zip(map(value_of, levels), adds, strict=True))
            yield Lookup(Cell(name, "text"), values, missing=adds[0], otherwise=adds[0])


# --- columns of a schema --------------------------------------------------------------------------


def _schema_terms(sums: _Sums, schema: TableSchema, names: Sequence[str]) -> Iterator[Term]:
    place_of = {name: place for place, name in enumerate(names)}
    nothing = _features_of_nothing(schema, names)
    missing = np.where(np.isnan(nothing), sums.release.centres, nothing)
    for name in schema.columns:
        column = schema.field(name)
        places = [place_of.get(one) for one in column.every_feature]
        there = [place for place in places if place is not None]
        if sums.used(there):
            yield from _terms(sums, column, places, {one: float(missing[one]) for one in there})


def _features_of_nothing(schema: TableSchema, names: Sequence[str]) -> Array:
    """Return the features of a row whose cells are all missing; NaN without a fill."""
    import pyarrow as pa

    from dpscreen.tables.encode import Encoder

    encoder, out = Encoder(schema, names), np.empty((1, len(names)))
    encoder.features(pa.table({one: pa.nulls(1, pa.string()) for one in encoder.columns}), out)
    return np.asarray(out[0])


def _terms(
    sums: _Sums, column: Column, places: list[int | None], missing: dict[int, float]
) -> Iterator[Term]:
    """Yield what a column adds, by its kind."""
    gone = sums.added(missing)
    match column:
        case CategoryColumn():
            cell, adds = _cell(column.of), sums.levels(places)
            values = dict(zip((value_of(str(one)) for one in column.levels), adds, strict=True))
            nothing = sums.levels([*places, None])[-1]
            yield Lookup(cell, values, missing=gone, otherwise=values.get(OTHER, nothing))
        case BooleanColumn():
            yield _truth(sums, column, next(iter(missing)), gone)
        case DateColumn():
            yield from _days(sums, column, places, missing)
        case _:
            yield sums.line(
                _cell(column),
                next(iter(missing)),
                declared=column.declared_bounds,
                missing=gone,
                transform=column.transform,
            )


def _cell(column: Column) -> Cell:
    if isinstance(column, NumberColumn):
        from dpscreen.tables.encode import missing_numbers

        codes = tuple(sorted(missing_numbers(column.missing, column.marks)))
        return Cell(column.name, "number", codes, plain=column.marks == PLAIN_MARKS)
    return Cell(column.name, "text", tuple(dict.fromkeys(map(value_of, column.missing))))


def _truth(sums: _Sums, column: BooleanColumn, place: int, missing: float) -> Lookup:
    cell = _cell(column)
    words = [(one, 1.0) for one in column.true_values] + [(one, 0.0) for one in column.false_values]
    words += [("1", 1.0), ("0", 0.0)]  # what is stored as a truth needs no words
    values = {value_of(word): sums.added({place: truth}) for word, truth in reversed(words)}
    kept = {one: adds for one, adds in values.items() if one not in cell.missing}
    return Lookup(cell, kept, missing=missing, otherwise=missing)


def _days(
    sums: _Sums, column: DateColumn, places: list[int | None], missing: dict[int, float]
) -> Iterator[Term]:
    import pyarrow as pa

    from dpscreen.tables.days import written_days

    days = written_days(pa.array(column.missing, pa.string()), column.form)
    cell = Cell(column.name, "day", tuple(days[~np.isnan(days)].tolist()), column.form)
    levels: dict[str, dict[Level, int | None]] = {}
    for feature, place in zip(column.features, places, strict=True):
        if feature.level is not None:
            levels.setdefault(feature.part, {})[float(feature.level)] = place
        elif place is not None and sums.used([place]):
            bounds, since = feature.bounds, feature.since
            yield sums.line(
                cell,
                place,
                declared=bounds,
                missing=sums.added({place: missing[place]}),
                part=feature.part,
                since=since,
            )
    for part, named in levels.items():
        there = [place for place in named.values() if place is not None]
        if sums.used(there):
            values = dict(zip(named, sums.levels(list(named.values())), strict=True))
            gone = sums.added({place: missing[place] for place in there})
            yield Lookup(cell, values, missing=gone, otherwise=gone, part=part)
