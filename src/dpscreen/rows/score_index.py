"""Sums that know how many of them lie in each class |sum| >> shift, and which come first.

Classes are counted whole and by buckets of neighbouring features, so the rank-th member of a class,
in the order of the features, is found without visiting the features. Only some classes are kept, a
window that reaches from below the highest one to beyond it; when sums leave it, all are counted
anew.
"""

from __future__ import annotations

import numpy as np

from dpscreen._core.arrays import Integers, Loops, Narrow

kernels = Loops("dpscreen.rows.sparse_kernels")

_WINDOW = 1024
_LEAST_BUCKET_BITS, _MOST_BUCKET_BITS = 5, 14


class ScoreIndex:
    """A view of sums that others may update through `state`, as the kernels do."""

    def __init__(self, sums: Integers) -> None:
        bits = (max(sums.size - 1, 1).bit_length() + 1) // 2
        self.bucket_bits = min(max(bits, _LEAST_BUCKET_BITS), _MOST_BUCKET_BITS)
        self.sums = sums
        self.shift = -1
        n_buckets = -(-sums.size // (1 << self.bucket_bits))
        self.counts = np.zeros((_WINDOW, n_buckets), dtype=np.int16)
        self.totals = np.zeros(_WINDOW, dtype=np.int64)
        self.state = np.zeros(3, dtype=np.int64)

    @property
    def size(self) -> int:
        """Return how many sums there are."""
        return self.sums.size

    @property
    def live(self) -> bool:
        """Whether the counts are those of the sums, so that moves must update them."""
        return self.shift >= 0 and not self.state[kernels.BROKEN]

    @property
    def kept_up_to_date(self) -> tuple[int, int, Narrow, Integers, Integers]:
        """Return what `update_sums_and_classes` needs to keep the counts right."""
        return self.shift, self.bucket_bits, self.counts, self.totals, self.state

    def forget(self) -> None:
        """Count anew when next asked: the sums have changed."""
        self.shift = -1

    def classes(self, shift: int, depth: int) -> tuple[int, Integers]:
        """Return the highest class, and the counts of `depth` classes from it down, as far as 0."""
        lowest, top, _ = self.state.tolist()
        if shift != self.shift or not self.live or 0 < lowest > top + 1 - depth:
            lowest, top = self._count(shift)
        first = top - lowest - min(depth, top + 1) + 1
        return top, self.totals[first : top - lowest + 1][::-1].copy()

    def member(self, lowest: int, highest: int, rank: int) -> int:
        """Return the index of the rank-th sum, by index, in these classes (ends included)."""
        place = lowest - int(self.state[kernels.LOWEST])
        if lowest < highest or place < 0:
            classes = np.abs(self.sums) >> self.shift
            return int(np.flatnonzero((lowest <= classes) & (classes <= highest))[rank])
        found = kernels.member_by_bucket(
            self.counts[place], self.bucket_bits, self.sums, self.shift, lowest, rank
        )
        return int(found)

    def score(self, index: int) -> int:
        """Return one sum."""
        return int(self.sums[index])

    def _count(self, shift: int) -> tuple[int, int]:
        """Count the sums in classes around the highest; return the lowest kept, and the highest."""
        top = int(np.abs(self.sums).max(initial=0)) >> shift
        lowest = max(0, top - 3 * _WINDOW // 4)
        self.shift = shift
        self.state[:] = lowest, top, 0
        kernels.fill_classes(
            self.sums, shift, self.bucket_bits, self.counts, self.totals, self.state
        )
        return lowest, top
