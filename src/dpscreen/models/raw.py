"""A model on the columns of the raw table: what each cell adds to the prediction.

Every export is generated from this one description, so that SQL, R, Excel, ONNX and scikit-learn
all predict what `predict` does. It is derived from the release and its schema alone. A prediction
is an intercept and one sum of terms; a term is a `Lookup` (a value stands for a number), a `Line`
(an expression of one number) or a `Joint` (an expression of several cells). Expressions are those
of model formulas, and every format writes them by one walk over the tree (`Writer`).

A cell is compared by its value, as in `tables.encode`: blanks around a text do not count, and 1,
1.0, true and their texts are one value. A value is a float or, where it spells no number, a text.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen._core.messages import message
from dpscreen.models.categories import FrameColumns
from dpscreen.models.release import Release
from dpscreen.tables.arithmetic import (
    Constant,
    Expression,
    Feature,
    Function,
    Operation,
    Pieces,
    Power,
)
from dpscreen.tables.columns import OTHER, CategoryColumn, Column
from dpscreen.tables.columns.base import (
    PLAIN_MARKS,
    TRANSFORMS,
    TRUTHS,
    Level,
    NumberMarks,
    Transform,
    value_of,
)
from dpscreen.tables.columns.date import ISO, DateColumn
from dpscreen.tables.columns.number import BooleanColumn, NumberColumn
from dpscreen.tables.declaration import SchemaProblem
from dpscreen.tables.formula import DerivedColumn
from dpscreen.tables.schema import TableSchema

T = TypeVar("T")
UNCHANGED = "none"
CELL = Feature("cell")
"""The number that a cell holds, in the expression of a `Line`."""


class NoFormula(ValueError):
    """A model that a format cannot hold, and why."""


@dataclass(frozen=True)
class Cell:
    """A cell of a column and how it is read: as a "number", a "text" or a "day" since 1970.

    `missing` lists the values that count as missing. Unless the cell is `plain`, texts have numbers
    with the signs of `marks`, so that a text must not be read as one. Where `declared` is False
    there is no schema: then a missing cell has no meaning, and its prediction is missing.
    """

    column: str
    kind: str
    missing: tuple[Level, ...] = ()
    form: str = ISO
    marks: NumberMarks = PLAIN_MARKS
    declared: bool = True

    @property
    def plain(self) -> bool:
        """Return whether a text that is a number has no signs but a decimal point."""
        return self.marks == PLAIN_MARKS


@dataclass(frozen=True)
class Lookup:
    """What a column adds by the value of its cell, or by a `part` of its day."""

    cell: Cell
    values: Mapping[Level, float]
    missing: float | None
    otherwise: float | None
    part: str = ""

    @property
    def reads(self) -> tuple[Lookup]:
        """Return the term itself, which reads one cell."""
        return (self,)

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
    """What a column adds as a number: an expression of `CELL`, which is clip(number - since, ends).

    Without ends there is no clip. `missing` is what a cell adds that is missing, or unreadable;
    None if then there is no value.
    """

    cell: Cell
    of: Expression
    missing: float | None
    ends: tuple[float, float] | None = None
    since: float = 0.0
    part: str = ""

    @property
    def whole(self) -> Expression:
        """Return what the number itself adds."""
        moved = Operation("-", CELL, Constant(self.since)) if self.since else CELL
        return _substituted(self.of, CELL.name, clipped(moved, self.ends))

    @property
    def reads(self) -> tuple[Line]:
        """Return the term itself, which reads one cell."""
        return (self,)

    def of_number(self, number: float) -> float:
        """Return what a number adds."""
        return _value(self.whole, CELL.name, number)


@dataclass(frozen=True)
class Joint:
    """What several cells add together: an expression of what each of `inputs` gives.

    `missing` is what is added where one of them is missing that has no value then.
    """

    inputs: Mapping[str, Lookup | Line]
    of: Expression
    missing: float

    @property
    def reads(self) -> tuple[Lookup | Line, ...]:
        """Return what reads its cells."""
        return tuple(self.inputs.values())


Term = Lookup | Line | Joint


def _substituted(of: Expression, name: str, by: Expression) -> Expression:
    """Return an expression with another in place of a variable."""
    match of:
        case Feature(name=found) if found == name:
            return by
        case Operation(left=left, right=right):
            sides = (_substituted(one, name, by) for one in (left, right))
            return Operation(of.sign, *sides)
        case Function(of=inner) | Power(of=inner) | Pieces(of=inner):
            return replace(of, of=_substituted(inner, name, by))
    return of


def _value(of: Expression, name: str, number: float) -> float:
    return float(np.atleast_1d(of.values({name: np.array([number])}))[0])


def clipped(of: Expression, ends: tuple[float, float] | None) -> Expression:
    """Return an expression clipped to two ends, if there are any."""
    if ends is None:
        return of
    low, high = map(Constant, ends)
    return Operation("minimum", Operation("maximum", of, low), high)


ONE = Constant(1.0)
DERIVED: dict[str, Callable[[Expression], Expression]] = {
    "log1p": lambda x: Function("log", Operation("+", ONE, x)),
    "log2": lambda x: Operation("/", Function("log", x), Constant(math.log(2))),
    "log10": lambda x: Operation("/", Function("log", x), Constant(math.log(10))),
    "expm1": lambda x: Operation("-", Function("exp", x), ONE),
    "expit": lambda x: Operation(
        "/", ONE, Operation("+", ONE, Function("exp", Operation("-", Constant(0.0), x)))
    ),
    "square": lambda x: Operation("*", x, x),
}
"""Functions by log and exp, for languages that have few others."""


class Writer(ABC, Generic[T]):
    """Writes an expression in a language: the one walk over its tree.

    `leaf` gives what stands for a variable, anew each time it occurs. A language that `derives` has
    log, exp and sqrt alone.
    """

    derives = False

    def written(self, of: Expression, leaf: Callable[[str], T]) -> T:
        """Return the expression in the language."""
        match of:
            case Constant(value=value):
                return self.number(value)
            case Feature(name=name):
                return leaf(name)
            case Operation(sign=sign, left=left, right=right):
                return self.operation(sign, self.written(left, leaf), self.written(right, leaf))
            case Function(name=name, of=inner) if self.derives and name in DERIVED:
                return self.written(DERIVED[name](inner), leaf)
            case Function(name=name, of=inner):
                return self.function(name, self.written(inner, leaf))
            case Power(of=base, exponent=exponent):
                found = self.written(base, leaf)
                for _ in range(exponent - 1):
                    found = self.operation("*", found, self.written(base, leaf))
                return found
            case Pieces():
                return self._pieces(of, leaf, 0)
        raise AssertionError(f"{type(of).__name__} cannot be exported.")

    def _pieces(self, of: Pieces, leaf: Callable[[str], T], k: int) -> T:
        """Return the polynomial of a piece, by Horner's rule, or else the next ones."""
        moved = Operation("-", of.of, Constant(of.breaks[k]))
        polynomial: Expression = Constant(of.coefficients[k][0])
        for one in of.coefficients[k][1:]:
            polynomial = Operation("+", Operation("*", polynomial, moved), Constant(one))
        here = self.written(polynomial, leaf)
        if k == len(of.coefficients) - 1:
            return here
        x, end = self.written(of.of, leaf), self.number(of.breaks[k + 1])
        return self.choice(x, end, here, self._pieces(of, leaf, k + 1))

    @abstractmethod
    def number(self, value: float) -> T:
        """Return a number."""

    @abstractmethod
    def operation(self, sign: str, left: T, right: T) -> T:
        """Return two values joined by a sign of `Operation`; a comparison is 1 or 0."""

    @abstractmethod
    def function(self, name: str, of: T) -> T:
        """Return a function of `tables.arithmetic.FUNCTIONS` or `INVERSES`."""

    @abstractmethod
    def choice(self, value: T, end: T, below: T, otherwise: T) -> T:
        """Return one value where another is below an end, and else a third."""


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
    def whole(self) -> Expression:
        """Return the prediction, given the intercept and all terms as `CELL`."""
        clip = clipped(CELL, self.bounds)
        return Function(self.inverse, clip) if self.inverse else clip

    @property
    def cells(self) -> dict[str, Cell]:
        """Return the cells that are needed, by column."""
        return {one.cell.column: one.cell for one in self.reads}

    @property
    def reads(self) -> tuple[Lookup | Line, ...]:
        """Return all that reads a cell."""
        return tuple(one for term in self.terms for one in term.reads)


INVERSES = {UNCHANGED: "", "log": "exp", "log1p": "expm1", "sqrt": "square"}
"""What takes a transformed target back to the user's units."""


def words_of(value: Level) -> list[str]:
    """Return the usual spellings of a value: of 1 also true, True and TRUE."""
    if isinstance(value, str):
        return [value]
    return [word for word, digit in TRUTHS.items() if float(digit) == value]


def raw_model_of(release: Release) -> RawModel:
    """Return the model on raw columns; refuse a schema that does not describe its features."""
    sums, family = _Sums.of(release), release.family
    shared: dict[str, Any] = {
        "intercept": release.intercept,
        "bounds": family.predictor_bounds(release.target_bounds),
        "predicts": family.target.predicts,
        "classes": release.classes or (),
        "named": release.named,
    }
    if release.schema is None:
        columns = FrameColumns.of_features(release.names, release.categories)
        assert columns is not None  # checked where the model was made or read
        terms = tuple(_frame_terms(sums, columns))
        return RawModel(terms=terms, columns=columns.names, inverse=family.inverse, **shared)
    schema, names = _schema_of(release)
    formed = _formula_terms if schema.block.formula is not None else _schema_terms
    terms = tuple(formed(sums, schema, names))
    inverse = family.inverse or INVERSES[release.declared_target[1]]
    return RawModel(terms=terms, columns=schema.columns, inverse=inverse, **shared)


def _schema_of(release: Release) -> tuple[TableSchema, list[str]]:
    """Return the schema, and what it calls the features; or say why there is none to use."""
    try:
        schema = TableSchema.from_dict(release.schema or {})
        schema.check()
    except SchemaProblem:
        raise NoFormula(message("export.schema")) from None
    return schema, described_features(schema, release.names, named=release.named)


def described_features(schema: TableSchema, names: Sequence[str], *, named: bool) -> list[str]:
    """Return what a schema calls a model's features, which may have one for every level."""
    own = list(schema.feature_names)
    every = [one for name in schema.columns for one in schema.field(name).every_feature]
    listed = list(names) if named else own
    if listed not in (own, every) or len(listed) != len(names):
        raise NoFormula(message("export.features"))
    return listed


@dataclass(frozen=True)
class _Sums:
    """What features add to the log-odds or the line, clipped as `predict` clips them.

    `missing` is what a feature counts as where it has no value, NaN if there is no such value.
    """

    coefficients: Array
    missing: Array
    bounds: Array | None = None

    @classmethod
    def of(cls, release: Release) -> _Sums:
        """Return those of a release."""
        bounds = release.feature_bounds if release.clips_features else None
        return cls(release.coefficients, release.centres, bounds)

    def added(self, features: Mapping[int, float]) -> float:
        """Return the sum over some features, by their places."""
        places, values = list(features), np.array(list(features.values()), dtype=np.float64)
        if self.bounds is not None:
            values = np.clip(values, *self.bounds[places].T)
        return float(sum((self.coefficients[places] * values).tolist()))

    def used(self, places: Sequence[int]) -> bool:
        """Whether any of these features has a coefficient."""
        return bool(self.coefficients[list(places)].any())

    def levels(self, places: Sequence[int | None]) -> list[float]:
        """Return what each level adds, given the place of its feature; None has none."""
        features = [place for place in places if place is not None]
        return [self.added({place: float(place == one) for place in features}) for one in places]

    def weighted(self, place: int, of: Expression) -> Expression:
        """Return what a feature adds, given its value."""
        coefficient = float(self.coefficients[place])
        return of if coefficient == 1 else Operation("*", Constant(coefficient), of)

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
        released = None if self.bounds is None else self.bounds[place]
        ends = declared
        if declared is None and released is not None:
            ends = float(released[0]), float(released[1])
        elif declared is not None and released is not None:
            after = transform.apply(np.array(declared))
            kept = np.clip(after, *released)
            moved = np.where(kept == after, declared, transform.invert(kept))
            ends = float(moved[0]), float(moved[1])
        of = CELL if transform.name == UNCHANGED else Function(transform.name, CELL)
        return Line(
            cell=cell,
            of=self.weighted(place, of),
            missing=_or_none(missing),
            ends=ends,
            since=since,
            part=part,
        )


def _or_none(value: float | None) -> float | None:
    return None if value is None or np.isnan(value) else value


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
    missing = np.where(np.isnan(nothing), sums.missing, nothing)
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
            yield Lookup(cell, values, missing=_or_none(gone), otherwise=values.get(OTHER, nothing))
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
        return Cell(column.name, "number", codes, marks=column.marks)
    return Cell(column.name, "text", tuple(dict.fromkeys(map(value_of, column.missing))))


def _truth(sums: _Sums, column: BooleanColumn, place: int, missing: float) -> Lookup:
    cell = _cell(column)
    words = [(one, 1.0) for one in column.true_values] + [(one, 0.0) for one in column.false_values]
    words += [("1", 1.0), ("0", 0.0)]  # what is stored as a truth needs no words
    values = {value_of(word): sums.added({place: truth}) for word, truth in reversed(words)}
    kept = {one: adds for one, adds in values.items() if one not in cell.missing}
    gone = _or_none(missing)
    return Lookup(cell, kept, missing=gone, otherwise=gone)


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
            gone = _or_none(sums.added({place: missing[place] for place in there}))
            yield Lookup(cell, values, missing=gone, otherwise=gone, part=part)


# --- columns of a formula -------------------------------------------------------------------------


def _formula_terms(sums: _Sums, schema: TableSchema, names: Sequence[str]) -> Iterator[Term]:
    """Yield what the features of a formula add; all of one cell are one term."""
    derived = {one.name: one for one in schema.derived}
    used = [(place, derived[name]) for place, name in enumerate(names) if sums.used([place])]
    inputs = dict.fromkeys(name for _, one in used for name in one.of.occurrences())
    plain = replace(schema, block=replace(schema.block, formula=None))
    read = {name: _input(plain, name) for name in inputs}
    alone: dict[Any, list[Lookup | Line]] = {}
    for place, one in used:
        term = _derived_term(sums, place, one, read)
        if isinstance(term, Joint):
            yield term
        else:
            alone.setdefault((type(term), term.cell, term.part), []).append(term)
    for terms in alone.values():
        yield _sum(terms)


def _input(schema: TableSchema, name: str) -> Lookup | Line:
    """Return what reads one feature as it is, without a value where its cell is missing."""
    sums = _Sums(np.ones(1), np.full(1, np.nan))
    (term,) = _schema_terms(sums, schema, [name])
    assert not isinstance(term, Joint)
    return term


def _derived_term(
    sums: _Sums, place: int, one: DerivedColumn, read: Mapping[str, Lookup | Line]
) -> Term:
    ends = None
    if sums.bounds is not None:
        low, high = map(float, sums.bounds[place])
        ends = (low, high) if (low, high) != one.bounds else None  # it is within those anyway
    of = sums.weighted(place, clipped(one.of, ends))
    missing = sums.added({place: float(sums.missing[place])})
    inputs = {name: read[name] for name in one.of.occurrences()}
    if len(inputs) > 1:
        return Joint(inputs, of, missing)
    ((name, term),) = inputs.items()

    def added(value: float | None) -> float:
        return missing if value is None else _value(of, name, value)

    if isinstance(term, Line):
        return replace(term, of=_substituted(of, name, term.of), missing=added(term.missing))
    values = {level: added(value) for level, value in term.values.items()}
    return replace(
        term, values=values, missing=added(term.missing), otherwise=added(term.otherwise)
    )


def _sum(terms: Sequence[Lookup | Line]) -> Lookup | Line:
    """Return terms of the same cell as one."""
    found = terms[0]
    for one in terms[1:]:
        missing = (found.missing or 0.0) + (one.missing or 0.0)
        if isinstance(found, Line) and isinstance(one, Line):
            found = replace(found, of=Operation("+", found.of, one.of), missing=missing)
        elif isinstance(found, Lookup) and isinstance(one, Lookup):
            values = {level: adds + one.values[level] for level, adds in found.values.items()}
            otherwise = (found.otherwise or 0.0) + (one.otherwise or 0.0)
            found = replace(found, values=values, missing=missing, otherwise=otherwise)
    return found
