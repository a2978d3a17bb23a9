"""The kinds of columns that a schema can declare, by the `type` of an entry of its `fields`.

A new kind is a class in a file of its own, and a line in KINDS.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dpscreen._core.words import listed, mistyped
from dpscreen.tables.columns.base import Column, Entry
from dpscreen.tables.columns.boolean import BooleanColumn
from dpscreen.tables.columns.category import CategoryColumn, read_levels
from dpscreen.tables.columns.number import IntegerColumn, NumberColumn
from dpscreen.tables.values import Transform

__all__ = ["KINDS", "CategoryColumn", "Column", "read_column"]

KINDS: dict[str, type[Column]] = {
    "number": NumberColumn,
    "integer": IntegerColumn,
    "boolean": BooleanColumn,
    "string": Column,
}


@dataclass(frozen=True)
class UntypedColumn(Column):
    """A column of which it is not declared yet what it holds."""

    roles = frozenset({"unit", "untyped"})

    def lacks(self) -> Iterator[str]:
        """Yield that there is no type."""
        yield f"column {self.name!r} has no type: set `type` to {listed(KINDS, 'or')}."


def read_column(
    given: Mapping[str, Any], *, missing: tuple[str, ...], fill: Any, transform: Transform
) -> Column:
    """Read a declaration whose name is known to be text."""
    entry = Entry(given)
    kind = _kind(entry)
    constraints = entry.constraints()
    shared: dict[str, Any] = {
        "name": given["name"],
        "minimum": kind.read_bound(entry, "minimum", constraints.get("minimum")),
        "maximum": kind.read_bound(entry, "maximum", constraints.get("maximum")),
        "declared": frozenset(name for name, one in constraints.items() if one not in (None, [])),
        "missing": missing,
        "fill": fill,
        "transform": transform,
    }
    levels = read_levels(kind, entry, constraints.get("enum"))
    column = kind(**shared, **kind.own(entry))
    if levels is not None:
        column = CategoryColumn(**shared, of=column, levels=levels)
    return replace(column, faults=tuple(entry.faults))


def _kind(entry: Entry) -> type[Column]:
    word = entry.given.get("type", "any")
    if word == "any":
        return UntypedColumn
    if not isinstance(word, str) or word not in KINDS:
        entry.fault(mistyped("type", word, tuple(KINDS)))
        return UntypedColumn
    return KINDS[word]
