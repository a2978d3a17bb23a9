"""Marks by which a ledger recognises rows: keyed hashes of what their columns hold.

A mark is of all cells of one column, or of all rows across the first columns, in any order: the sum
of keyed hashes, modulo 2⁶⁴, which parts of the rows add up. Two tables have a mark in common if one
column holds the same values, so further columns, other bounds and other models change nothing,
while one row more or less changes every mark. A column of few values has no mark: its counts could
be found by trying. Whoever has the key can confirm a guess of a whole column, so marks are as
confidential as the rows (docs/explanation/what-is-protected.md).
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b

import numpy as np

from dpscreen._core.arrays import Array, Integers, Words

MOST_COLUMNS = 32
"""Columns that have marks: recognising rows does not need all."""
BINS, MANY = 64, 32
"""Hashes fall into so many bins; a column has a mark if so many are hit, by about 45 values."""


Sums = Callable[..., Integers]


def marks_of(features: Sums, target: Sums, key: bytes) -> frozenset[str]:
    """Return the marks of rows under a key, given what sums hashes of their cells."""
    first, second = (int(one) for one in np.frombuffer(blake2b(key, digest_size=16).digest(), "u8"))
    found = np.concatenate([features(first, second), target(column_sums, first, second)[:1]])
    many = np.count_nonzero(found[:, 1:], axis=1) >= MANY
    return frozenset(
        blake2b(total.tobytes(), key=key, digest_size=16).hexdigest() for total in found[many, 0]
    )


def column_sums(X: Array, first: int, second: int) -> Integers:
    """Return, of each column and of whole rows, the sum of hashes and how many fall into a bin."""
    X = X.reshape(len(X), -1)
    columns = range(min(X.shape[1], MOST_COLUMNS))
    out = np.zeros((len(columns) + 1, 1 + BINS), dtype=np.int64)
    whole = np.zeros(len(X), dtype=np.uint64)
    for j in columns:
        cells = mixed(X[:, j], first, second)
        out[j] = summed(cells)
        whole += cells
    out[-1] = summed(_stirred(whole))
    return out


def summed(hashes: Words) -> Integers:
    """Return the sum of hashes, and how many fall into each bin."""
    bins = np.bincount((hashes >> np.uint64(58)).astype(np.int64), minlength=BINS)
    return np.concatenate([hashes.sum(keepdims=True, dtype=np.uint64).view(np.int64), bins])


def mixed(values: Array, first: int, second: int) -> Words:
    """Return a hash of each number under two keys; -0 is 0, and one NaN is another."""
    plain = np.array(values, dtype=np.float64) + 0.0
    plain[np.isnan(plain)] = np.nan
    return _stirred((plain.view(np.uint64) ^ np.uint64(first)) * np.uint64(second | 1))


def _stirred(words: Words) -> Words:
    """Return words of which every bit depends on all bits (splitmix64)."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        words = (words ^ (words >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(words ^ (words >> np.uint64(31)), dtype=np.uint64)
