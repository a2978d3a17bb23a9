"""Columns of numbers between declared bounds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpscreen._core.arrays import AnyArray, Array, Integers
from dpscreen.tables.columns.base import (
    PLAIN_MARKS,
    Cells,
    Column,
    FieldEntry,
    Level,
    NumberMarks,
    finite,
)

NARROWEST, WIDEST = 2e-60, 2e60
"""How wide bounds may be: between these no square and no ratio of a fit overflows."""

THOUSANDS = (",", ".", " ", "'")


@dataclass(frozen=True)
class NumberColumn(Column):
    """Numbers between two bounds: one feature, clipped and then transformed."""

    marks: NumberMarks = PLAIN_MARKS

    level_sort = "numbers"
    roles = frozenset({"target", "transformed"})
    read_level = staticmethod(finite)

    @classmethod
    def own(cls, entry: FieldEntry) -> dict[str, Any]:
        """Read which signs stand in numbers, and around them."""
        sign, between = entry.given.get("decimalChar", "."), entry.given.get("groupChar", "")
        if sign not in (".", ","):
            entry.fault('decimalChar must be "." or ",".')
            sign = "."
        if between not in ("", *THOUSANDS) or between == sign:
            entry.fault("groupChar must be a comma, point, blank or ', and not decimalChar.")
            between = ""
        bare = entry.given.get("bareNumber", True)
        if not isinstance(bare, bool):
            entry.fault("bareNumber must be true or false.")
        return super().own(entry) | {"marks": NumberMarks(sign, between, bare is not False)}

    def lacks(self) -> Iterator[str]:
        """Yield that bounds are not given."""
        yield from self.lacks_bounds("from what you know, not from the data.")

    def problems(self) -> Iterator[str]:
        """Yield what is wrong with the bounds."""
        low, high = self.minimum, self.maximum
        if low is None or high is None:
            return
        here = f"column {self.name!r}"
        if not low < high:
            yield f"{here}: the minimum must be below the maximum."
        elif not self.transform.allows(low):
            yield (
                f"{here}: its transform {self.transform.name} needs a minimum "
                f"{self.transform.needs}; raise the minimum or drop the transform."
            )
        elif not NARROWEST <= self.bounds[1] - self.bounds[0] <= WIDEST:
            yield f"{here}: bounds must be between {NARROWEST:g} and {WIDEST:g} apart."

    def fill_problem(self, value: Any, /) -> str | None:
        """Say that a fill must lie within the bounds."""
        if self.minimum is None or self.maximum is None:
            return None
        number = finite(value)
        within = number is not None and self.minimum <= number <= self.maximum
        return None if within else "must be a number within its bounds."

    def values(self, cells: Cells) -> Array:
        """Return numbers clipped to the declared bounds, then transformed; NaN stays."""
        values = cells.numbers(marks=self.marks, missing=self.missing)
        # A fit clips too, as it scales; but a transform is defined between the bounds only.
        np.clip(values, *self.declared_bounds, out=values)
        return self.transform.apply(values)

    def places(self, cells: Cells, levels: Sequence[Level]) -> Integers:
        """Return the place of each number among the levels."""
        return cells.number_places(levels, marks=self.marks, missing=self.missing)

    def draw(self, n_rows: int, rng: np.random.Generator, /) -> Any:
        """Draw numbers that are spread evenly between the bounds, after the transform."""
        if self.minimum is None or self.maximum is None:
            return super().draw(n_rows, rng)
        return self.placed(rng.uniform(-1, 1, n_rows))

    def placed(self, within: Array) -> Any:
        """Return numbers from their place between the bounds, from -1 to 1."""
        low, high = self.bounds
        scaled = low / 2 + high / 2 + (high / 2 - low / 2) * within
        return self.rounded(self.transform.invert(scaled))

    def rounded(self, values: Array) -> AnyArray:
        """Return numbers as the column may hold them."""
        return np.clip(values, *self.declared_bounds)

    def drawn_levels(self, levels: Sequence[Level], chosen: Integers) -> Any:
        """Return numbers that are the chosen levels."""
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
        """Return whole numbers between the bounds."""
        low, high = self.declared_bounds
        rounded = np.clip(np.round(values), math.ceil(low), max(math.ceil(low), math.floor(high)))
        return _whole(rounded, [math.ceil(low), high])

    def drawn_levels(self, levels: Sequence[Level], chosen: Integers) -> Any:
        """Return whole numbers that are the chosen levels."""
        return _whole(super().drawn_levels(levels, chosen), levels)


def _whole(values: Array, declared: Sequence[Level]) -> AnyArray:
    """Return whole numbers as such, if that holds all that may be drawn: one type for all parts."""
    largest = np.abs(np.array(declared, dtype=np.float64)).max()
    return values.astype(np.int64) if largest < 2**53 else values
