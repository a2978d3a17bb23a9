"""The first k rows of each unit, found in one pass over a file of any length.

Which rows of a unit are kept depends on their order alone, and on no other unit's rows: that is
what makes one unit change at most k rows of what is fitted. So two ids must never be taken for
one another. They are compared by 128 bits of SipHash under two random keys: for ten million ids
some two agree with probability below 2e-25. Rows without an id may be anybody's, so they are left
out: taken as one unit, the removal of one person's row would let another's in.
"""

from __future__ import annotations

import secrets

import numpy as np

from dpscreen._core.arrays import AnyArray, Mask, Objects, Words

_SMALLEST = 1 << 12


class UnitCounter:
    """Counts the rows of each unit; the memory grows with the units, not with their ids."""

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
