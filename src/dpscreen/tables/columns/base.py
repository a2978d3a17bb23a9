"""A column of a table as declared, whatever its kind.

A kind of column is a class: it checks its declaration, reads its cells, names and bounds its
features, fills what is missing, and draws dummy cells. Reading a declaration never fails: what
cannot be used is left out and listed in `faults`, so that a check can list every problem at
once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from dpscreen._core.arrays import Array, Integers, Mask, Objects
from dpscreen._core.messages import Message, SchemaKey, message, unknown

TRUE_VALUES = ("true", "True", "TRUE", "1")
FALSE_VALUES = ("false", "False", "FALSE", "0")
NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
TRUTHS = dict.fromkeys(TRUE_VALUES[:-1], "1") | dict.fromkeys(FALSE_VALUES[:-1], "0")
"""The numbers that a boolean is, by its usual words."""
BLANKS = " \t\r\n\v\f"
Level = str | float
UNKNOWN, MISSING = -1, -2
"""The places of cells that are no level, and of cells that are missing."""
Picks = Sequence[tuple[int, int]]
"""Where features of a column go: pairs of a place among all features, and one in the column."""
CONSTRAINTS = (
    *("minimum", "maximum", "enum", "required", "unique", "pattern"),
    *("minLength", "maxLength", "jsonSchema", "exclusiveMinimum", "exclusiveMaximum"),
)


# --- what a text or a JSON value stands for -------------------------------------------------------


def level_text(level: Level) -> str:
    """Write a level as it stands in a feature's name."""
    return level if isinstance(level, str) else repr(level).removesuffix(".0")


def value_of(text: str) -> Level:
    """Return the finite number that a text spells, true being 1 and false 0, or else the text.

    Texts of one value mean the same in every column: libraries turn one into another when a row
    comes that does not fit.
    """
    text = text.strip(BLANKS)
    digits = TRUTHS.get(text, text)
    number = float(digits) if re.fullmatch(NUMBER, digits) else math.inf
    return number if math.isfinite(number) else text


def finite(value: object) -> float | None:
    """Return a JSON number as float; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def plain_text(value: object) -> str | None:
    """Return a JSON text without the blanks around it, as cells are compared; None if empty."""
    return (value.strip(" \t\r\n") or None) if isinstance(value, str) else None


def are_texts(value: object) -> bool:
    """Whether a JSON value is a list of texts."""
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def chosen(within: Array, n_levels: int) -> Integers:
    """Return which of so many levels lies at each place between -1 and 1."""
    return np.minimum(((within + 1) / 2 * n_levels).astype(np.int64), n_levels - 1)


# --- increasing functions of a number -------------------------------------------------------------


@dataclass(frozen=True)
class Transform:
    """An increasing function with its inverse, and what a lower bound must be for it."""

    name: str
    apply: Callable[[Array], Array]
    invert: Callable[[Array], Array]
    lowest: float = -math.inf
    relation: str = "above"
    """Where it is defined: "above" `lowest`, or "at least" that."""

    def allows(self, low: Array | float) -> bool:
        """Whether it is defined from these bounds on."""
        return bool(np.all(low > self.lowest if self.relation == "above" else low >= self.lowest))


def _arrow_function(function: str) -> Callable[[Array], Array]:
    """Return one of Arrow's functions of a number, for arrays of any layout."""

    def apply(values: Array) -> Array:
        import pyarrow as pa
        import pyarrow.compute as pc

        done = pc.call_function(function, [pa.array(values, type=pa.float64())])
        return np.array(done.to_numpy(zero_copy_only=False), dtype=np.float64)

    return apply


UNCHANGED = Transform("none", lambda values: values, lambda values: values)
LOGARITHM = Transform("log", _arrow_function("ln"), np.exp, 0.0)
LOG1P = Transform("log1p", _arrow_function("log1p"), np.expm1, -1.0)
ROOT = Transform("sqrt", _arrow_function("sqrt"), np.square, 0.0, "at least")
LOG2 = Transform("log2", _arrow_function("log2"), np.exp2, 0.0)
LOG10 = Transform("log10", _arrow_function("log10"), lambda values: 10.0**values, 0.0)
TRANSFORMS = {one.name: one for one in (UNCHANGED, LOGARITHM, LOG1P, ROOT)}
"""What a column, or the target of a formula, may be transformed by."""
FUNCTIONS = {one.name: one for one in (LOGARITHM, LOG2, LOG10, LOG1P, ROOT)}
"""What the terms of a formula may be made of."""


# --- columns --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NumberMarks:
    """How numbers are written: the sign before decimals, and one between thousands if any.

    Unless `bare`, signs and words may stand around them: $1.50, 12 %, EUR 3.
    """

    decimal: str = "."
    thousands: str = ""
    bare: bool = True


PLAIN_MARKS = NumberMarks()


class Cells(Protocol):
    """Cells of a column, however they are stored: what a column asks of them."""

    def numbers(self, *, marks: NumberMarks, missing: Sequence[str]) -> Array:
        """Return finite numbers; NaN for what is none, not finite, or declared as missing."""

    def number_places(
        self, levels: Sequence[Level], *, marks: NumberMarks, missing: Sequence[str]
    ) -> Integers:
        """Return the place of each number among the levels; MISSING where there is no number."""

    def days(self, *, form: str, missing: Sequence[str]) -> Array:
        """Return days since 1970; NaN for what is no day, or declared as missing."""

    def word_places(self, words: Sequence[str], *, missing: Sequence[str]) -> Integers:
        """Return the place of the first word of each cell's value; MISSING comes before words."""

    def missing(self, words: Sequence[str]) -> Mask:
        """Return which cells hold nothing, or one of these words."""

    def unit_ids(self, *, whole: bool, missing: Sequence[str]) -> Objects:
        """Return ids as text, blanks off; "" where there is none.

        With `whole`, only whole numbers are ids, each in one spelling.
        """


@dataclass
class Entry:
    """Settings while they are read; `faults` says what is wrong with them so far.

    They are those of a `column`, or of a part of the schema whose name is their `prefix`.
    """

    given: Mapping[str, Any]
    prefix: str = ""
    faults: list[Message] = field(default_factory=list)
    column: str | None = None

    def fault(self, code: str, **fields: Any) -> None:
        """Report one more fault."""
        here = {} if self.column is None else {"column": self.column}
        self.faults.append(message(code, **here, **fields))

    def must(self, name: str, code: str, **fields: Any) -> None:
        """Report that a setting is not what it must be."""
        required = message(f"must.{code}", **fields)
        self.fault("setting.must", setting=SchemaKey(f"{self.prefix}{name}"), must=required)

    def ignored(self, name: str, instead: str) -> None:
        """Report that a setting is not supported, and what to do instead."""
        way = message(f"instead.{instead}")
        self.fault("setting.ignored", setting=SchemaKey(f"{self.prefix}{name}"), instead=way)

    def setting(
        self, name: str, usual: Any, fits: Callable[[Any], bool], must: str, **fields: Any
    ) -> Any:
        """Return a setting; the usual one where it is not given, or not what it `must` be."""
        value = self.given.get(name, usual)
        if name not in self.given or fits(value):
            return value
        self.must(name, must, **fields)
        return usual

    def constraints(self) -> Mapping[str, Any]:
        """Return the constraints; report what would change the meaning of cells and is not read."""
        constraints = self.given.get("constraints") or {}
        if not isinstance(constraints, Mapping):
            self.must("constraints", "constraints")
            constraints = {}
        if "categories" in self.given:
            self.ignored("categories", "categories")
        for name in constraints:
            if name not in CONSTRAINTS:
                self.fault("setting.name", reason=unknown("constraint", name, CONSTRAINTS[:3]))
            elif name.startswith("exclusive"):
                self.ignored(f"constraints.{name}", "exclusive")
        return constraints


@dataclass(frozen=True)
class Column:
    """What every column is, here one of texts: ids of units, or levels once these are declared.

    `declared` names the constraints that were given, whether or not they can be used. `fill` is
    what the schema gives for a missing cell, in the user's units, if it gives anything.
    """

    name: str
    minimum: float | None = None
    maximum: float | None = None
    declared: frozenset[str] = frozenset()
    missing: tuple[str, ...] = ()
    fill: Any = None
    transform: Transform = UNCHANGED
    faults: tuple[Message, ...] = ()

    must_have: ClassVar[str] = "levels"
    """What must be declared besides the type: "levels", "bounds" or "" for nothing."""
    level_sort: ClassVar[str | None] = "texts that are not empty"
    """What levels must be; None if the kind cannot have any."""
    bound_sort: ClassVar[str] = "bound-number"
    """What bounds must be, by the code of a message."""
    misfit: ClassVar[str] = "not one of the declared levels"
    """What is said of cells that the kind cannot read."""
    read_level: ClassVar[Any] = staticmethod(plain_text)
    read_bound: ClassVar[Any] = staticmethod(finite)

    # --- declaration ----------------------------------------------------------------------------

    @classmethod
    def own(cls, _entry: Entry) -> dict[str, Any]:
        """Read what only this kind of column has."""
        return {}

    @property
    def roles(self) -> Set[str]:
        """What it may be: "target", "unit", "transformed"; and if "whole", "days" or "untyped"."""
        return frozenset({"unit"})

    def needs(self, *, as_target: bool) -> Iterator[Message]:
        """Yield what is not declared yet, and how to declare it."""
        missing = tuple(name for name in ("minimum", "maximum") if name not in self.declared)
        if as_target and not {"target", "untyped"} & self.roles:
            yield message("column.not-a-target", column=self.name)
        elif "enum" in self.declared:
            return  # an enum that cannot be used is a fault already
        elif self.must_have == "levels":
            yield message("column.no-levels", column=self.name)
        elif self.must_have == "bounds" and missing:
            settings = tuple(SchemaKey(f"constraints.{name}") for name in missing)
            yield message("column.no-bounds", column=self.name, missing=missing, settings=settings)

    def problems(self) -> Iterator[Message]:
        """Yield what is wrong with a declaration that has all it needs."""
        yield from ()

    def fill_problem(self, _value: Any, /) -> Message | None:
        """Return what a fill must be, if this is none."""
        return None

    @property
    def classes(self) -> tuple[Level | bool, Level | bool] | None:
        """The two outcomes that a target may be, in order, as 0 and 1; None if it is a number."""
        return None

    # --- features -------------------------------------------------------------------------------

    @property
    def feature_names(self) -> tuple[str, ...]:
        """What the column is called as features of a model."""
        return (self.name,)

    @property
    def every_feature(self) -> tuple[str, ...]:
        """The same and, of levels, the reference: what a table can be asked for by name."""
        return self.feature_names

    @property
    def feature_bounds(self) -> list[tuple[float, float]]:
        """Lower and upper bound of each feature, after the transform."""
        return [self.bounds]

    @property
    def declared_bounds(self) -> tuple[float, float]:
        """The two bounds in the user's units; only of a column without problems."""
        if self.minimum is None or self.maximum is None:
            raise ValueError(f"column {self.name!r} has no bounds")
        return self.minimum, self.maximum

    @property
    def bounds(self) -> tuple[float, float]:
        """The two bounds after the transform."""
        low, high = self.transform.apply(np.array(self.declared_bounds))
        return float(low), float(high)

    @property
    def fill_value(self) -> float:
        """What a missing cell becomes where a fill is declared, after the transform."""
        return float(self.transform.apply(np.array([self.fill], dtype=np.float64))[0])

    # --- cells ----------------------------------------------------------------------------------

    def values(self, cells: Cells) -> Array:
        """Return cells as numbers within the bounds; NaN where a cell is missing."""
        raise NotImplementedError(f"column {self.name!r} does not hold numbers")

    def raw(self, cells: Cells) -> Array:
        """Return cells as numbers in the user's units, not clipped; NaN where there is none."""
        return np.zeros(len(cells.missing(self.missing)))

    def unreadable(self, cells: Cells) -> Mask:
        """Return which cells hold something that is neither declared as missing nor readable."""
        return np.isnan(replace(self, missing=()).raw(cells)) & ~cells.missing(self.missing)

    def write(self, cells: Cells, picks: Picks, out: Array) -> None:
        """Write the picked features; NaN where a cell is missing and has no fill."""
        values = self.values(cells)
        if self.fill is not None:
            values[np.isnan(values)] = self.fill_value
        for place, _ in picks:
            out[:, place] = values

    def places(self, cells: Cells, levels: Sequence[Level]) -> Integers:
        """Return the place of each cell's level; MISSING or UNKNOWN where there is none."""
        return cells.word_places([str(level) for level in levels], missing=self.missing)

    # --- dummy cells ----------------------------------------------------------------------------

    def placed(self, within: Array) -> Any:
        """Return cells that the declaration allows from their places, between -1 and 1."""
        return ["unused"] * len(within)  # neither feature nor target

    def drawn_levels(self, levels: Sequence[Level], chosen: Integers) -> Any:
        """Return cells that hold the chosen levels."""
        return np.array(levels, dtype=np.object_)[chosen]

    def spelled(self, cell: Any) -> str:
        """Write a drawn cell as a file of text has it."""
        return str(cell)
