"""What a text or a JSON value stands for, and public transforms of numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpscreen._core.arrays import Array

TRUE_VALUES = ("true", "True", "TRUE", "1")
FALSE_VALUES = ("false", "False", "FALSE", "0")
NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
TRUTHS = dict.fromkeys(TRUE_VALUES[:-1], "1") | dict.fromkeys(FALSE_VALUES[:-1], "0")
"""The numbers that a truth is, by its usual words."""
BLANKS = " \t\r\n\v\f"
Level = str | float


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


@dataclass(frozen=True)
class Transform:
    """An increasing function with its inverse, and what a lower bound must be for it."""

    name: str
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


UNCHANGED = Transform("none", _same, _same, lambda _: True, "")
TRANSFORMS = {
    "none": UNCHANGED,
    "log": Transform("log", _each("ln"), np.exp, lambda low: low > 0, "above 0"),
    "log1p": Transform("log1p", _each("log1p"), np.expm1, lambda low: low > -1, "above -1"),
    "sqrt": Transform("sqrt", _each("sqrt"), np.square, lambda low: low >= 0, "0 or above"),
}
