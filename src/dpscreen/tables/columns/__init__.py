"""The kinds of columns that a schema can declare, by the `type` of an entry of its `fields`.

A new kind is a class, and a line in KINDS. Columns of any kind can have levels
instead of bounds, which makes them categories.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dpscreen._core.arrays import Array, Integers
from dpscreen._core.messages import Message, message, unknown
from dpscreen.tables.columns.base import (
    MISSING,
    UNKNOWN,
    Cells,
    Column,
    Entry,
    Level,
    Picks,
    Transform,
    are_texts,
    chosen,
    level_text,
    value_of,
)
from dpscreen.tables.columns.date import DateColumn, day_number
from dpscreen.tables.columns.number import BooleanColumn, IntegerColumn, NumberColumn

__all__ = ["KINDS", "CategoryColumn", "Column", "read_column"]

OTHER = "(other)"
"""The level to which texts belong that are not declared, if a column declares it."""

KINDS: dict[str, type[Column]] = {
    "number": NumberColumn,
    "integer": IntegerColumn,
    "boolean": BooleanColumn,
    "date": DateColumn,
    "string": Column,
}


@dataclass(frozen=True)
class UntypedColumn(Column):
    """A column of which it is not declared yet what it holds."""

    roles = frozenset({"unit", "untyped"})

    def needs(self, *, as_target: bool) -> Iterator[Message]:  # noqa: ARG002
        yield message("column.untyped", column=self.name, kinds=tuple(KINDS))


@dataclass(frozen=True)
class CategoryColumn(Column):
    """Levels of a column that is `of` another kind: one feature, 1 or 0, for each but the first.

    The first level is the reference, which the others are compared with; a lone one is a feature.
    """

    of: Column = field(default_factory=lambda: Column(""))
    levels: tuple[Level, ...] = ()

    @property
    def roles(self) -> Set[str]:
        """What the levels' kind may be, but no number; two levels are an outcome."""
        outcome = {"target"} if len(self.levels) == 2 else set()
        return (self.of.roles - {"target", "transformed"}) | outcome

    @property
    def classes(self) -> tuple[Level, Level] | None:
        """Two levels, the reference first."""
        if len(self.levels) != 2:
            return None
        first, second = self.levels
        return first, second

    @property
    def declared_bounds(self) -> tuple[float, float]:
        """Of two levels the first is 0 and the other 1."""
        return 0.0, 1.0

    @property
    def fill_value(self) -> float:
        return float(self.levels.index(self.fill))

    def values(self, cells: Cells) -> Array:
        """Return 0 and 1 for two levels, NaN for anything else."""
        places = self.of.places(cells, self.classes or ())
        return np.array([0.0, 1.0, np.nan, np.nan])[places]  # the last two: MISSING and UNKNOWN

    def placed(self, within: Array) -> Any:
        """Return levels, each as likely; of two, the second above 0."""
        return self.of.drawn_levels(self.levels, chosen(within, len(self.levels)))

    def needs(self, *, as_target: bool) -> Iterator[Message]:
        """Yield what the levels' kind lacks, which is a type if anything."""
        needs = self.of.needs if "untyped" in self.roles else super().needs
        yield from needs(as_target=as_target)

    def problems(self) -> Iterator[Message]:
        """Yield levels that are declared to be missing."""
        missing = {value_of(text) for text in self.missing}
        clash = [text for text in map(level_text, self.levels) if value_of(text) in missing]
        if clash:
            yield message("column.level-missing", column=self.name, levels=tuple(clash))

    def fill_problem(self, value: Any, /) -> Message | None:
        known = value in self.levels and not isinstance(value, bool)
        return None if known else message("must.level")

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The name of the column with each level but the reference."""
        return self.every_feature[1:] or self.every_feature

    @property
    def every_feature(self) -> tuple[str, ...]:
        """The name of the column with each level."""
        return tuple(f"{self.name}={level_text(level)}" for level in self.levels)

    @property
    def feature_bounds(self) -> list[tuple[float, float]]:
        return [(0.0, 1.0)] * len(self.feature_names)

    def raw(self, cells: Cells) -> Array:
        """Return the places of the levels."""
        places = self._places(cells)
        return np.where(places < 0, np.nan, places)

    def _places(self, cells: Cells) -> Integers:
        """Return the place of each cell's level; what is not declared is of the level (other)."""
        places = self.of.places(cells, self.levels)
        if OTHER in self.levels:
            places[places == UNKNOWN] = self.levels.index(OTHER)
        return places

    def write(self, cells: Cells, picks: Picks, out: Array) -> None:
        """Write 1 where the cell is the level, else 0; a missing one is of no level, or filled."""
        places = self._places(cells)
        if self.fill is not None:
            places[places == MISSING] = self.levels.index(self.fill)
        columns = np.full(len(self.levels), -1)
        for place, level in picks:
            columns[level] = place
        out[:, columns[columns >= 0]] = 0.0
        (rows,) = np.nonzero(places >= 0)
        found = columns[places[rows]]
        out[rows[found >= 0], found[found >= 0]] = 1.0

    def spelled(self, cell: Any) -> str:
        return self.of.spelled(cell)


def read_column(
    given: Mapping[str, Any], *, missing: tuple[str, ...], fill: Any, transform: Transform
) -> Column:
    """Read a declaration whose name is known to be text."""
    entry = Entry(given, column=given["name"])
    word = given.get("type", "any")
    kind: type[Column] = UntypedColumn
    if isinstance(word, str) and word in KINDS:
        kind = KINDS[word]
    elif word != "any":
        entry.fault("setting.name", reason=unknown("type", word, tuple(KINDS)))
    constraints = entry.constraints()
    shared: dict[str, Any] = {
        "name": given["name"],
        "declared": frozenset(name for name, one in constraints.items() if one not in (None, [])),
        "missing": tuple(entry.setting("missingValues", missing, are_texts, "missing-values")),
        "fill": fill,
        "transform": transform,
    }
    for name in ("minimum", "maximum"):
        bound = constraints.get(name)
        shared[name] = kind.read_bound(bound)
        if shared[name] is None and bound is not None:
            sort = kind.bound_sort if day_number(bound) is None else "bound-no-day"
            entry.must(f"constraints.{name}", sort)
    levels = _levels(kind, entry, constraints.get("enum"))
    column = kind(**shared, **kind.own(entry))
    if levels is not None:
        column = CategoryColumn(**shared, of=column, levels=levels)
    return replace(column, faults=tuple(entry.faults))


def _levels(kind: type[Column], entry: Entry, given: Any) -> tuple[Level, ...] | None:
    """Return the levels that are declared for a kind of column; None if there are none to use."""
    if given is None or given == []:  # as a new schema leaves it
        return None
    if kind.level_sort is None:
        entry.fault("column.no-enum", kind=entry.given["type"])
        return None
    found = [kind.read_level(one) for one in given] if isinstance(given, list) else [None]
    levels = tuple(level for level in found if level is not None)
    if len(set(levels)) < len(found):
        entry.fault("column.levels", sort=kind.level_sort)
        return None
    if len({value_of(str(level)) for level in levels}) < len(levels):
        entry.fault("column.levels-spelled-twice")
    return levels
