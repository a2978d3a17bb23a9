"""Cells to features and target, as the schema declares: clipped, filled, transformed, one-hot.

And which rows count: of each unit, the first few.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np

from dpscreen._core.arrays import AnyArray, Array, Mask, Objects, Words
from dpscreen.tables.cells import tells_ids_apart
from dpscreen.tables.columns import Column
from dpscreen.tables.declaration import Declaration
from dpscreen.tables.problem import TableProblem, quietly

T = TypeVar("T")


@dataclass(frozen=True)
class EncodedColumn:
    """A column of the table and where its features go; `picks` are (place, level) pairs."""

    column: Column
    picks: tuple[tuple[int, int], ...]


class Encoder:
    """Turns batches into numbers, each row by itself.

    `features` chooses some, by their names or by the column they are made of, in that order.
    """

    def __init__(self, schema: Declaration, features: Sequence[str] | None = None) -> None:
        self._schema = schema
        chosen = _chosen(schema, features)
        self._encoded = _grouped(schema, chosen)
        self.feature_names = tuple(schema.field(name).feature_names[k] for name, k in chosen)
        self.width = len(chosen)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table that are needed for the features."""
        return tuple(one.column.name for one in self._encoded)

    @property
    def columns_of_rows(self) -> tuple[str, ...]:
        """The same, and those of target and unit."""
        others = (self._schema.target, self._schema.unit)
        return tuple(dict.fromkeys((*self.columns, *(name for name in others if name is not None))))

    @property
    def other_columns(self) -> list[str]:
        """The columns of the table that features do without."""
        needed = set(self.columns)
        return [column.name for column in self._schema.fields if column.name not in needed]

    def features(self, batch: Any, out: Array) -> None:
        """Write the features of a batch into as many rows."""
        for one in self._encoded:
            _read(one.column.name, batch, partial(one.column.write, picks=one.picks, out=out))

    def target(self, batch: Any) -> Array:
        """Return the target, NaN where it is missing."""
        target = self._schema.target
        return _read(target, batch, self._schema.field(target).values)

    def unit_ids(self, batch: Any) -> Objects:
        """Return whose row it is; "" where that is missing."""
        name = str(self._schema.unit)
        if not tells_ids_apart(batch.column(name).type):
            raise TableProblem(
                f"column {name!r} is stored as floats of fewer than 64 bits, which cannot tell ids "
                "apart; store ids as text or as whole numbers."
            )
        return _read(name, batch, self._schema.field(name).unit_ids)


def _read(name: str, batch: Any, read: Callable[[Any], T]) -> T:
    """Read a column of a batch, without a word of what another library says about its cells."""
    return quietly(
        lambda: read(batch.column(name)),
        lambda error: f"column {name!r} cannot be read; {type(error).__name__} was raised.",
    )


def _grouped(schema: Declaration, chosen: Sequence[tuple[str, int]]) -> tuple[EncodedColumn, ...]:
    """Group the chosen features by the column that they are made of, in their order."""
    groups: dict[str, list[tuple[int, int]]] = {}
    for place, (name, level) in enumerate(chosen):
        groups.setdefault(name, []).append((place, level))
    return tuple(EncodedColumn(schema.field(name), tuple(picks)) for name, picks in groups.items())


def _chosen(schema: Declaration, features: Sequence[str] | None) -> list[tuple[str, int]]:
    every = {
        feature: (name, level)
        for name in schema.columns
        for level, feature in enumerate(schema.field(name).feature_names)
    }
    if features is None:
        return list(every.values())
    chosen: list[tuple[str, int]] = []
    for wanted in features:
        if wanted in every:
            chosen.append(every[wanted])
        elif wanted in schema.columns:
            chosen += [pair for pair in every.values() if pair[0] == wanted]
        else:
            raise TableProblem(f"there is no feature {wanted!r} in the schema.")
    return chosen


# --- the first k rows of each unit ----------------------------------------------------------------

_SMALLEST = 1 << 12


class UnitCounter:
    """Finds the first k rows of each unit in one pass over a file of any length.

    Which rows of a unit are kept depends on their order alone, and on no other unit's rows: that is
    what makes one unit change at most k rows of what is fitted. So two ids must never be taken for
    one another. They are compared by 128 bits of SipHash under two random keys: for ten million ids
    some two agree with probability below 2e-25. Rows without an id may be anybody's, so they are
    left out: taken as one unit, the removal of one person's row would let another's in. The memory
    grows with the units, not with their ids.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._keys = secrets.token_hex(8), secrets.token_hex(8)
        self._table, self._counts = _empty(_SMALLEST)
        self._n_units = 0

    def keep(self, ids: Objects) -> Mask:
        """Tell which of these rows are among their unit's first; rows come in file order.

        Never one whose id is "", which is none.
        """
        from dpscreen.rows.kernels import count_up

        self._make_room(len(ids))
        keep = np.zeros(len(ids), dtype=np.bool_)
        first, second = (_hashed(ids, key) for key in self._keys)
        self._n_units += count_up(first, second, self._table, self._counts, self._most, keep)
        keep &= ids != ""
        return keep

    def _make_room(self, more: int) -> None:
        from dpscreen.rows.kernels import move_over

        needed = len(self._counts)
        while 10 * (self._n_units + more) > 7 * needed:  # a fuller table would be slow
            needed *= 2
        if needed > len(self._counts):
            table, counts = _empty(needed)
            move_over(self._table, self._counts, table, counts)
            self._table, self._counts = table, counts


def _empty(size: int) -> tuple[Words, AnyArray]:
    return np.zeros((size, 2), dtype=np.uint64), np.zeros(size, dtype=np.int32)


def _hashed(texts: Objects, key: str) -> Words:
    from pandas.util import hash_array

    return np.asarray(hash_array(texts, hash_key=key, categorize=False), dtype=np.uint64)
