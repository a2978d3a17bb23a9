"""Compiled loop of the privacy unit. `tables_units` says what it is for."""

from __future__ import annotations

import numpy as np

from dpscreen._core.compiled import compiled


@compiled
def count_up(first, second, table, counts, most, keep):
    """Count each key in an open hash table; tell whether it was seen fewer than `most` times.

    A key is two words; a count of 0 marks a free place. Returns how many keys are new. The table's
    length is a power of two, and there is room for every key.
    """
    mask = np.uint64(len(counts) - 1)
    one = np.uint64(1)
    new = 0
    for row in range(len(first)):
        a, b = first[row], second[row]
        place = a & mask
        while counts[place] != 0 and (table[place, 0] != a or table[place, 1] != b):
            place = (place + one) & mask
        if counts[place] == 0:
            table[place, 0], table[place, 1] = a, b
            new += 1
        keep[row] = counts[place] < most
        if keep[row]:
            counts[place] += 1
    return new


@compiled
def move_over(table, counts, larger, larger_counts):
    """Put every key of a table into a larger, empty one."""
    mask = np.uint64(len(larger_counts) - 1)
    one = np.uint64(1)
    for old in range(len(counts)):
        if counts[old] == 0:
            continue
        place = table[old, 0] & mask
        while larger_counts[place] != 0:
            place = (place + one) & mask
        larger[place] = table[old]
        larger_counts[place] = counts[old]
