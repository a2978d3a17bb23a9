"""One column as declared: its type, bounds or levels, and what is wrong with the declaration.

Reading a declaration never fails: what cannot be used is left out and told in `faults`, so that a
check can list every problem of a schema at once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen._core.words import listed, mistyped

NUMERIC = ("number", "integer")
TYPES = (*NUMERIC, "boolean", "string", "any")
TRUE_VALUES = ("true", "True", "TRUE", "1")
FALSE_VALUES = ("false", "False", "FALSE", "0")
NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
TRUTHS = dict.fromkeys(TRUE_VALUES[:-1], "1") | dict.fromkeys(FALSE_VALUES[:-1], "0")
"""The numbers that a truth is, by its usual words."""
BLANKS = " \t\r\n\v\f"
CONSTRAINTS = (
    *("minimum", "maximum", "enum", "required", "unique", "pattern"),
    *("minLength", "maxLength", "jsonSchema", "exclusiveMinimum", "exclusiveMaximum"),
)
_UNREADABLE = {
    "groupChar": "write the numbers without a sign between thousands",
    "bareNumber": "write the numbers without signs around them",
    "missingValues": "put missingValues beside `fields`: they hold for all columns",
    "categories": "list the levels in constraints.enum",
}
Level = str | float


@dataclass(frozen=True)
class Field:
    """A column of the table. `levels` is None where no enum can be used.

    `declared` names the constraints that were given, whether or not they can be used.
    """

    name: str
    type: str = "any"
    minimum: float | None = None
    maximum: float | None = None
    levels: tuple[Level, ...] | None = None
    decimal: str = "."
    true_values: tuple[str, ...] = TRUE_VALUES
    false_values: tuple[str, ...] = FALSE_VALUES
    declared: frozenset[str] = frozenset()
    faults: tuple[str, ...] = ()

    @property
    def is_numeric(self) -> bool:
        """Whether cells are numbers."""
        return self.type in NUMERIC

    @property
    def is_categorical(self) -> bool:
        """Whether the column becomes one feature for each declared level."""
        return self.type != "boolean" and self.levels is not None

    @property
    def feature_names(self) -> tuple[str, ...]:
        """What the column is called as features of a model."""
        if not self.is_categorical:
            return (self.name,)
        return tuple(f"{self.name}={level_text(level)}" for level in self.levels or ())

    @property
    def declared_bounds(self) -> tuple[float, float]:
        """The two bounds in the user's units; only of a field without problems."""
        if self.type == "boolean":
            return 0.0, 1.0
        if self.minimum is None or self.maximum is None:
            raise ValueError(f"column {self.name!r} has no bounds")
        return self.minimum, self.maximum

    def needs(self, *, as_target: bool) -> tuple[str, ...]:
        """List what is not declared yet, and how to declare it."""
        here = f"column {self.name!r}"
        if self.type == "any":
            return (f"{here} has no type: set `type` to {listed(TYPES[:-1], 'or')}.",)
        if as_target and (self.type == "string" or self.is_categorical):
            return (f"{here} is the target, so it must be a number with a minimum and a maximum.",)
        if self.type == "boolean" or self.is_categorical:
            return ()
        if "enum" in self.declared:  # and cannot be used, which is told as a fault
            return ()
        if self.type == "string":
            return (
                f"{here} has no levels: list the texts that may occur in constraints.enum, from "
                "what you know, not from the data.",
            )
        return tuple(self._bounds_needed(here))

    def _bounds_needed(self, here: str) -> Iterable[str]:
        missing = [name for name in ("minimum", "maximum") if name not in self.declared]
        if missing:
            yield (
                f"{here} has no {' and no '.join(missing)}: set constraints."
                f"{' and constraints.'.join(missing)} from what you know, not from the data."
            )


def read_field(given: Mapping[str, Any]) -> Field:
    """Read a declaration whose name is known to be text."""
    name, faults = given["name"], list[str]()
    here = f"column {name!r}"
    kind = given.get("type", "any")
    if kind not in TYPES:
        faults.append(f"{here}: {mistyped('type', kind, TYPES[:-1])}")
        kind = "any"
    constraints = given.get("constraints") or {}
    if not isinstance(constraints, Mapping):
        faults.append(f'{here}: constraints must be an object, such as {{"minimum": 0}}.')
        constraints = {}
    faults += _strange(here, given, constraints)
    return Field(
        name,
        kind,
        _bound(here, constraints, "minimum", faults),
        _bound(here, constraints, "maximum", faults),
        _levels(here, kind, constraints.get("enum"), faults),
        _decimal(here, given, faults) if kind in NUMERIC else ".",
        _words(here, given, "trueValues", TRUE_VALUES, faults),
        _words(here, given, "falseValues", FALSE_VALUES, faults),
        frozenset(name for name, value in constraints.items() if value not in (None, [])),
        tuple(faults),
    )


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


def _strange(here: str, given: Mapping[str, Any], constraints: Mapping[str, Any]) -> list[str]:
    """Tell what would change the meaning of cells and is not read."""
    found = [
        f"{here}: {name} is not read; {way}."
        for name, way in _UNREADABLE.items()
        if name in given and (name, given[name]) != ("bareNumber", True)
    ]
    for name in constraints:
        if name not in CONSTRAINTS:
            found.append(f"{here}: {mistyped('constraint', name, CONSTRAINTS[:3])}")
        elif name.startswith("exclusive"):
            found.append(f"{here}: constraints.{name} is not read; use minimum and maximum.")
    return found


def _bound(here: str, constraints: Mapping[str, Any], name: str, faults: list[str]) -> float | None:
    value = constraints.get(name)
    if value is None:
        return None
    number = finite(value)
    if number is None:
        faults.append(f"{here}: constraints.{name} must be a finite number, without quotes.")
    return number


def _levels(here: str, kind: str, given: Any, faults: list[str]) -> tuple[Level, ...] | None:
    if given is None or given == []:  # as a new schema leaves it
        return None
    if kind == "boolean":
        faults.append(f"{here}: a boolean needs no enum; leave it out.")
        return None
    levels = _read_levels(kind, given)
    if levels is None:
        sort = "numbers" if kind in NUMERIC else "texts that are not empty"
        faults.append(f"{here}: constraints.enum must be a list of {sort}, each level once.")
    elif len({value_of(str(level)) for level in levels}) < len(levels):
        faults.append(f"{here}: constraints.enum holds one number or truth in two spellings.")
    return levels


def _read_levels(kind: str, given: Any) -> tuple[Level, ...] | None:
    if not isinstance(given, list):
        return None
    read = finite if kind in NUMERIC else _text
    levels = tuple(level for level in map(read, given) if level is not None)
    return levels if len(set(levels)) == len(given) else None


def _text(value: object) -> str | None:
    # Cells are compared without the blanks around them.
    return (value.strip(" \t\r\n") or None) if isinstance(value, str) else None


def _decimal(here: str, given: Mapping[str, Any], faults: list[str]) -> str:
    sign = given.get("decimalChar", ".")
    if sign in (".", ","):
        return str(sign)
    faults.append(f'{here}: decimalChar must be "." or ",".')
    return "."


def _words(
    here: str,
    given: Mapping[str, Any],
    name: str,
    usual: tuple[str, ...],
    faults: list[str],
) -> tuple[str, ...]:
    words = given.get(name, list(usual))
    if isinstance(words, list) and words and all(isinstance(word, str) for word in words):
        return tuple(words)
    faults.append(f"{here}: {name} must be a list of texts.")
    return usual


@dataclass(frozen=True)
class Transform:
    """An increasing function with its inverse, and what a lower bound must be for it."""

    apply: Callable[[Array], Array]
    invert: Callable[[Array], Array]
    allows: Callable[[float], bool]
    needs: str


def _same(values: Array) -> Array:
    return values


def _each(function: str) -> Callable[[Array], Array]:
    """Return one of Arrow's functions of a number, for arrays of any layout."""

    def apply(values: Array) -> Array:
        import pyarrow as pa
        import pyarrow.compute as pc

        done = pc.call_function(function, [pa.array(values, type=pa.float64())])
        return np.array(done.to_numpy(zero_copy_only=False), dtype=np.float64)

    return apply


TRANSFORMS = {
    "none": Transform(_same, _same, lambda _: True, ""),
    "log": Transform(_each("ln"), np.exp, lambda low: low > 0, "above 0"),
    "log1p": Transform(_each("log1p"), np.expm1, lambda low: low > -1, "above -1"),
    "sqrt": Transform(_each("sqrt"), np.square, lambda low: low >= 0, "0 or above"),
}
