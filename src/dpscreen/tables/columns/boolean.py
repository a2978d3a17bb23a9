"""Columns of truths."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen.tables.columns.base import FALSE_VALUES, TRUE_VALUES, Cells, Column, FieldEntry

YES = (*TRUE_VALUES, "yes", "Yes", "YES", "y", "Y", "t", "T")
NO = (*FALSE_VALUES, "no", "No", "NO", "n", "N", "f", "F")
"""The words that people use, for declarations that shall read whichever a table has."""


@dataclass(frozen=True)
class BooleanColumn(Column):
    """True and false, by declared words: one feature that is 1 or 0."""

    true_values: tuple[str, ...] = TRUE_VALUES
    false_values: tuple[str, ...] = FALSE_VALUES

    level_sort = None
    roles = frozenset({"target"})

    @classmethod
    def own(cls, entry: FieldEntry) -> dict[str, Any]:
        """Read the words for true and false."""
        return {
            "true_values": entry.words("trueValues", TRUE_VALUES),
            "false_values": entry.words("falseValues", FALSE_VALUES),
        }

    def lacks(self) -> Iterator[str]:
        """Yield nothing: bounds and levels are known."""
        yield from ()

    @property
    def declared_bounds(self) -> tuple[float, float]:
        """False is 0 and true is 1."""
        return 0.0, 1.0

    def fill_problem(self, value: Any, /) -> str | None:
        """Say that a fill must be a truth."""
        return None if isinstance(value, bool) else "must be true or false."

    def values(self, cells: Cells) -> Array:
        """Return 1 for true, 0 for false, NaN for anything else."""
        # What is stored as a truth needs no words: it is 1 or 0, unless declared otherwise.
        words = (*self.true_values, *self.false_values, "1", "0")
        worth = [1.0] * len(self.true_values) + [0.0] * len(self.false_values) + [1.0, 0.0]
        places = cells.word_places(words, missing=self.missing)
        return np.array([*worth, np.nan, np.nan])[places]  # the last two: MISSING and UNKNOWN

    def draw(self, n_rows: int, rng: np.random.Generator, /) -> Any:
        """Draw truths by a fair coin."""
        return rng.random(n_rows) < 0.5

    def placed(self, within: Array) -> Any:
        """Return what lies in the upper half as true."""
        return within > 0

    def spelled(self, cell: Any) -> str:
        """Write a truth by the first of its words."""
        return (self.true_values if cell else self.false_values)[0]
