"""Whose the rows are: those of one privacy unit follow each other, and count as one together.

A unit adds the mean of what its rows add, so it moves no sum further than one row could, however
many rows it has (docs/theory/mechanisms.md, Lemma 89).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Self

import numpy as np

from dpscreen._core.arrays import AnyArray, Array, Integers, Mask, Narrow, Words
from dpscreen.rows.sums import LEVELS, scaled

_SAFE = 1 - 1e-12


def row_digests(X: Array, y: Array) -> Words:
    """Return 128 bits of what each row holds; minus nought is nought, and a NaN is any other."""
    rows = np.column_stack((X, y)) + 0.0
    rows[np.isnan(rows)] = np.nan
    cells = rows.tobytes()
    size = 8 * (X.shape[1] + 1)
    digests = b"".join(
        blake2b(cells[k : k + size], digest_size=16).digest() for k in range(0, len(cells), size)
    )
    return np.frombuffer(digests, dtype=np.uint64).reshape(-1, 2)


def sorted_by_owner(keys: AnyArray) -> tuple[Integers, Mask]:
    """Return an order of rows by the words in `keys`, and which are the first of their owner.

    The last two words are the digest of the row, those before it identify the owner.
    """
    order = np.lexsort(keys.T[::-1])
    owners = keys[order, :-2]
    first = np.r_[True, (owners[1:] != owners[:-1]).any(axis=1)][: len(order)]
    return order, first


def unit_ranks(keys: AnyArray) -> Integers:
    """Return the place of each row among those of its owner, 0 for the first."""
    order, first = sorted_by_owner(keys)
    place = np.arange(len(order))
    ranks = np.empty_like(place)
    ranks[order] = place - np.maximum.accumulate(np.where(first, place, 0))
    return ranks


@dataclass(frozen=True, eq=False)
class Owners:
    """Where the rows of each unit begin, and how many it has.

    The first row of a unit, that with the smallest digest, stands for it where one row is enough
    (docs/theory/row-order.md, Lemma 76).
    """

    starts: Integers
    sizes: Integers

    @classmethod
    def of(cls, keys: AnyArray) -> tuple[Integers, Self]:
        """Return the order that brings the rows of each unit together, and whose they are then."""
        order, first = sorted_by_owner(keys)
        starts = np.flatnonzero(first)
        return order, cls(starts, np.diff(starts, append=len(order)))

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def n_rows(self) -> int:
        """Return the number of rows."""
        return int(self.sizes.sum())

    def parts(self, n_rows: int) -> Iterator[slice]:
        """Yield rows of whole units, about so many at a time."""
        ends = self.starts + self.sizes
        first = 0
        while first < self.n_rows:
            at = int(np.searchsorted(ends, first + n_rows))
            last = int(ends[min(at, len(ends) - 1)])
            yield slice(first, last)
            first = last

    def part(self, rows: slice) -> Owners:
        """Return the owners of some rows, which are of whole units."""
        first, last = np.searchsorted(self.starts, (rows.start, rows.stop))
        found = Owners(self.starts[first:last] - rows.start, self.sizes[first:last])
        assert found.n_rows == rows.stop - rows.start, "a unit lies in two parts"
        return found

    @property
    def singles(self) -> Mask:
        """Return a flag for each row: one row of every unit has it."""
        found = np.zeros(self.n_rows, dtype=np.bool_)
        found[self.starts] = True
        return found

    def shared(self, rows: Narrow) -> Narrow:
        """Return x/√m for the m rows of each unit, truncated: then Σxxᵀ is a sum of means."""
        roots = np.where(self.sizes == 1, 1.0, _SAFE / np.sqrt(self.sizes))
        return scaled(rows, np.repeat(roots, self.sizes))

    def means(self, rows: Narrow, levels: Narrow) -> Narrow:
        """Return the mean of ψx over the rows of each unit, in whole numbers of 1/2^14."""
        found = np.empty((len(rows), len(self)), dtype=np.int16)
        for mean, row in zip(found, rows, strict=True):
            sums = np.add.reduceat(row.astype(np.int64) * levels, self.starts)
            mean[:] = np.rint(sums / (self.sizes * LEVELS))
        return found
