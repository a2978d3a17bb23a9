"""Columns of numbers between declared bounds, and of booleans."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpscreen._core.arrays import AnyArray, Array, Integers
from dpscreen._core.messages import Message, message
from dpscreen.tables.columns.base import (
    FALSE_VALUES,
    PLAIN_MARKS,
    TRUE_VALUES,
    Cells,
    Column,
    Entry,
    Level,
    NumberMarks,
    are_texts,
    finite,
)

NARROWEST, WIDEST = 2e-60, 2e60
"""How wide bounds may be: between these no square and no ratio of a fit overflows."""

THOUSANDS = (",", ".", " ", "'")
YES = (*TRUE_VALUES, "yes", "Yes", "YES", "y", "Y", "t", "T")
NO = (*FALSE_VALUES, "no", "No", "NO", "n", "N", "f", "F")
"""The words that people use, for declarations that shall read whichever a table has."""


@dataclass(frozen=True)
class NumberColumn(Column):
    """Numbers between two bounds: one feature, clipped and then transformed."""

    marks: NumberMarks = PLAIN_MARKS

    must_have = "bounds"
    level_sort = "numbers"
    misfit = "not a number as declared"
    roles = frozenset({"target", "transformed"})
    read_level = staticmethod(finite)

    @classmethod
    def own(cls, entry: Entry) -> dict[str, Any]:
        """Read which signs stand in numbers, and around them."""
        sign = entry.setting("decimalChar", ".", lambda one: one in (".", ","), "decimal")
        thousands = entry.setting(
            "groupChar",
            "",
            lambda one: one in ("", *THOUSANDS) and one != sign,
            "thousands",
        )
        bare = entry.setting("bareNumber", True, lambda one: isinstance(one, bool), "boolean")
        return {"marks": NumberMarks(sign, thousands, bare)}

    def problems(self) -> Iterator[Message]:
        low, high = self.minimum, self.maximum
        if low is None or high is None:
            return
        here, transform = self.name, self.transform
        if not low < high:
            yield message("column.order", column=here)
        elif not transform.allows(low):
            yield message(
                "column.transform",
                column=here,
                transform=transform.name,
                relation=transform.relation,
                lowest=transform.lowest,
            )
        elif not NARROWEST <= self.bounds[1] - self.bounds[0] <= WIDEST:
            yield message("column.width", column=here, narrowest=NARROWEST, widest=WIDEST)

    def fill_problem(self, value: Any, /) -> Message | None:
        if self.minimum is None or self.maximum is None:
            return None
        number = finite(value)
        within = number is not None and self.minimum <= number <= self.maximum
        return None if within else message("must.within-bounds")

    def values(self, cells: Cells) -> Array:
        """Return numbers clipped to the declared bounds, then transformed; NaN stays."""
        values = self.raw(cells)
        # A fit clips too, as it scales; but a transform is defined between the bounds only.
        np.clip(values, *self.declared_bounds, out=values)
        return self.transform.apply(values)

    def raw(self, cells: Cells) -> Array:
        return cells.numbers(marks=self.marks, missing=self.missing)

    def places(self, cells: Cells, levels: Sequence[Level]) -> Integers:
        return cells.number_places(levels, marks=self.marks, missing=self.missing)

    def placed(self, within: Array) -> Any:
        """Return numbers from their places between the bounds, after the transform."""
        if self.minimum is None or self.maximum is None:
            return super().placed(within)
        low, high = self.bounds
        scaled = low / 2 + high / 2 + (high / 2 - low / 2) * within
        return self.rounded(self.transform.invert(scaled))

    def rounded(self, values: Array) -> AnyArray:
        """Return numbers as the column may hold them."""
        return np.clip(values, *self.declared_bounds)

    def drawn_levels(self, levels: Sequence[Level], chosen: Integers) -> Any:
        return np.array(levels, dtype=np.float64)[chosen]

    def spelled(self, cell: Any) -> str:
        """Write a number with the declared sign before decimals."""
        if not isinstance(cell, float):
            return str(cell)
        return str(cell).replace(".", self.marks.decimal)


@dataclass(frozen=True)
class IntegerColumn(NumberColumn):
    """Whole numbers; read like other numbers, as a cell may be off."""

    roles = NumberColumn.roles | {"unit", "whole"}

    def rounded(self, values: Array) -> AnyArray:
        low, high = self.declared_bounds
        rounded = np.clip(np.round(values), math.ceil(low), max(math.ceil(low), math.floor(high)))
        return _whole(rounded, [math.ceil(low), high])

    def drawn_levels(self, levels: Sequence[Level], chosen: Integers) -> Any:
        return _whole(super().drawn_levels(levels, chosen), levels)


def _whole(values: Array, declared: Sequence[Level]) -> AnyArray:
    """Return whole numbers as such, if that holds all that may be drawn: one type for all parts."""
    largest = np.abs(np.array(declared, dtype=np.float64)).max()
    return values.astype(np.int64) if largest < 2**53 else values


@dataclass(frozen=True)
class BooleanColumn(Column):
    """True and false, by declared words: one feature that is 1 or 0."""

    true_values: tuple[str, ...] = TRUE_VALUES
    false_values: tuple[str, ...] = FALSE_VALUES

    must_have = ""
    level_sort = None
    misfit = "neither of the words for true and for false"
    roles = frozenset({"target"})

    @classmethod
    def own(cls, entry: Entry) -> dict[str, Any]:
        """Read the words for true and false."""
        words = {"trueValues": TRUE_VALUES, "falseValues": FALSE_VALUES}
        true, false = (
            tuple(entry.setting(name, usual, lambda one: one != [] and are_texts(one), "texts"))
            for name, usual in words.items()
        )
        return {"true_values": true, "false_values": false}

    @property
    def classes(self) -> tuple[bool, bool]:
        return False, True

    @property
    def declared_bounds(self) -> tuple[float, float]:
        return 0.0, 1.0

    def fill_problem(self, value: Any, /) -> Message | None:
        return None if isinstance(value, bool) else message("must.boolean")

    def values(self, cells: Cells) -> Array:
        """Return 1 for true, 0 for false, NaN for anything else."""
        # What is stored as a boolean needs no words: it is 1 or 0, unless declared otherwise.
        words = (*self.true_values, *self.false_values, "1", "0")
        worth = [1.0] * len(self.true_values) + [0.0] * len(self.false_values) + [1.0, 0.0]
        places = cells.word_places(words, missing=self.missing)
        return np.array([*worth, np.nan, np.nan])[places]  # the last two: MISSING and UNKNOWN

    def raw(self, cells: Cells) -> Array:
        return self.values(cells)

    def placed(self, within: Array) -> Any:
        """Return what lies in the upper half as true."""
        return within > 0

    def spelled(self, cell: Any) -> str:
        """Write a boolean by the first of its words."""
        return (self.true_values if cell else self.false_values)[0]
