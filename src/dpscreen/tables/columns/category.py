"""Columns of declared levels."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen._core.words import listed
from dpscreen.tables.columns.base import Column, Entry, Picks
from dpscreen.tables.values import Level, level_text, value_of


@dataclass(frozen=True)
class CategoryColumn(Column):
    """Levels of a column that is `of` another kind: one feature for each level, 1 or 0."""

    of: Column = field(default_factory=lambda: Column(""))
    levels: tuple[Level, ...] = ()

    @property
    def roles(self) -> Set[str]:
        """What the levels' kind may be, but no number."""
        return self.of.roles - {"target", "transformed"}

    def lacks(self) -> Iterator[str]:
        """Yield what the levels' kind lacks, which is a type if anything."""
        yield from self.of.lacks()

    def problems(self) -> Iterator[str]:
        """Yield levels that are declared to be missing."""
        missing = {value_of(text) for text in self.missing}
        clash = [text for text in map(level_text, self.levels) if value_of(text) in missing]
        if clash:
            yield (
                f"column {self.name!r}: {listed(map(repr, clash))} is a level and one of "
                "missingValues: take it out of one of them."
            )

    def fill_problem(self, value: Any, /) -> str | None:
        """Say that a fill must be a level."""
        known = value in self.levels and not isinstance(value, bool)
        return None if known else "must be one of its levels."

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The name of the column with each level."""
        return tuple(f"{self.name}={level_text(level)}" for level in self.levels)

    @property
    def feature_bounds(self) -> list[tuple[float, float]]:
        """Each feature is 0 or 1."""
        return [(0.0, 1.0)] * len(self.levels)

    def write(self, cells: Any, picks: Picks, out: Array) -> None:
        """Write 1 where the cell is the level, else 0; a missing one is of no level, or filled."""
        from dpscreen.tables.cells import MISSING, each

        places = each(lambda part: self.of.places(part, self.levels), cells)
        if self.fill is not None:
            places[places == MISSING] = self.levels.index(self.fill)
        for place, level in picks:
            out[:, place] = places == level

    def draw(self, n_rows: int, rng: np.random.Generator, /) -> Any:
        """Draw levels, each as likely."""
        return self.of.drawn_levels(self.levels, rng.integers(len(self.levels), size=n_rows))

    def spelled(self, cell: Any) -> str:
        """Write a drawn cell as the levels' kind does."""
        return self.of.spelled(cell)


def read_levels(kind: type[Column], entry: Entry, given: Any) -> tuple[Level, ...] | None:
    """Return the levels that are declared for a kind of column; None if there are none to use."""
    if given is None or given == []:  # as a new schema leaves it
        return None
    if kind.level_sort is None:
        entry.fault("a boolean needs no enum; leave it out.")
        return None
    found = [kind.read_level(one) for one in given] if isinstance(given, list) else [None]
    levels = tuple(level for level in found if level is not None)
    if len(set(levels)) < len(found):
        entry.fault(f"constraints.enum must be a list of {kind.level_sort}, each level once.")
        return None
    if len({value_of(str(level)) for level in levels}) < len(levels):
        entry.fault("constraints.enum holds one number or truth in two spellings.")
    return levels
