"""Compiled loops of the exact selection. `sampling` says what they are for."""

from __future__ import annotations

import math

import numpy as np

from dpscreen._core.arrays import compiled, inlined

# Degree-6 polynomial for 2^f on [0, 1], within 2^−28 of it; a test checks the bound.
_C0, _C1, _C2, _C3, _C4, _C5, _C6 = (
    1.0000000025307452,
    0.6931469327588669,
    0.24023045441230567,
    0.05548063019670533,
    0.009684186310342369,
    0.001239133183441148,
    0.00021865784786598053,
)
_LEAST_EXPONENT = -62.0
BLOCK = 512
LOG2_E = math.log2(math.e)


@inlined
def upper_weight(top, score, rate, unit):
    """Return H: a whole number that is certainly at least 2^B·exp((score − top)/β).

    Only IEEE +, −, × and floor are used, and integer shifts: no function whose last bits depend on
    the platform. The factor 1 + 2^−16 in `unit` outweighs all rounding and the polynomial's error
    together. The difference is taken in unsigned 64 bits, where it cannot overflow.
    """
    below_top = np.float64(np.uint64(top) - np.uint64(score))
    exponent = max(-rate * below_top, _LEAST_EXPONENT)
    whole = np.floor(exponent)
    f = exponent - whole
    power = _C0 + f * (_C1 + f * (_C2 + f * (_C3 + f * (_C4 + f * (_C5 + f * _C6)))))
    return ((np.int64(power * unit) + 1) >> np.int64(-whole)) + 1


@inlined
def weight_unit(n_bits):
    """Return 2^B with the margin that makes H an upper bound."""
    return (1 + 2.0**-16) * 2.0**n_bits


@compiled
def block_sums(scores, top, rate, n_bits, blocks):
    """Fill `blocks` with the sums of H over blocks of candidates; return the total."""
    unit = weight_unit(n_bits)
    total = np.int64(0)
    for block in range(blocks.size):
        first = block * BLOCK
        share = np.int64(0)
        for i in range(first, min(first + BLOCK, scores.size)):
            share += upper_weight(top, scores[i], rate, unit)
        blocks[block] = share
        total += share
    return total


@compiled
def locate(scores, top, rate, n_bits, blocks, number):
    """Return the candidate whose share holds `number`, the place within the share, and its H.

    The H of one block are computed again: keeping them all would cost more than it saves.
    """
    unit = weight_unit(n_bits)
    block = 0
    while number >= blocks[block]:
        number -= blocks[block]
        block += 1
    first = block * BLOCK
    for i in range(first, min(first + BLOCK, scores.size)):
        bound = upper_weight(top, scores[i], rate, unit)
        if number < bound:
            return i, number, bound
        number -= bound
    raise ValueError("a block does not add up to its sum")


@compiled
def class_bounds(rate, n_bits, shift, aligned, opposite):
    """Fill the H of aligned candidates i classes below the top, and of opposite ones (Lemma 20).

    The edge of an aligned class lies i·2^s below that of the top class. An opposite candidate's
    edge lies (i + 1)·2^s − 1 below it, i being the sum of its class and of the top class.
    """
    unit = weight_unit(n_bits)
    for i in range(aligned.size):
        near = np.int64(i) << shift
        far = near + ((np.int64(1) << shift) - 1)
        aligned[i] = upper_weight(near, np.int64(0), rate, unit)
        opposite[i] = upper_weight(far, np.int64(0), rate, unit)


@compiled
def count_classes(values, shift, depth, limit):
    """Return the highest class |value| >> shift, and the counts of `depth` classes from it down.

    There are fewer counts if class 0 is nearer, and the class is −1 if a value is not below the
    limit. Neighbours are counted apart: adding to one place twice in a row would wait for memory.
    """
    high, low = np.int64(0), np.int64(0)
    for i in range(values.size):
        high = max(high, values[i])
        low = min(low, values[i])
    if high >= limit or low <= -limit:
        return np.int64(-1), np.empty(0, dtype=np.int64)
    top = max(high, -low) >> shift
    n_classes = min(depth, top + 1)
    parts = np.zeros((4, n_classes + 1), dtype=np.int64)  # the last takes all that lies deeper
    for i in range(values.size):
        below = top - (abs(values[i]) >> shift)
        parts[i & 3, min(below, n_classes)] += 1
    return top, parts[0, :-1] + parts[1, :-1] + parts[2, :-1] + parts[3, :-1]


@compiled
def member_of(values, shift, lowest, highest, rank):
    """Return the index of the rank-th value whose class lies between two classes, ends included."""
    for i in range(values.size):
        number = abs(values[i]) >> shift
        if lowest <= number <= highest:
            if rank == 0:
                return i
            rank -= 1
    raise ValueError("a class has fewer members than were counted")


@compiled
def class_total(counts, size, top, aligned, opposite):
    """Return ΣH over all candidates, two for each score; those below all classes have H = 1."""
    total, n_deep = np.int64(0), np.int64(size)
    for below in range(counts.size):
        across = 2 * top - below
        other = opposite[across] if across < opposite.size else np.int64(1)
        total += counts[below] * (aligned[below] + other)
        n_deep -= counts[below]
    return total + 2 * n_deep


@compiled
def locate_class(counts, top, aligned, opposite, number):
    """Return the lowest and the highest class that `number` falls to, the sign, rank and place.

    A class has the shares of its aligned members, then those of its opposite ones. What is left
    falls to the scores below all that were counted, which are taken together and have H = 1.
    """
    for below in range(counts.size):
        share = counts[below] * aligned[below]
        if number < share:
            return top - below, top - below, 1, number // aligned[below], number % aligned[below]
        number -= share
        across = 2 * top - below
        bound = opposite[across] if across < opposite.size else np.int64(1)
        share = counts[below] * bound
        if number < share:
            return top - below, top - below, -1, number // bound, number % bound
        number -= share
    return np.int64(0), top - counts.size, 1 - 2 * (number & 1), number >> 1, np.int64(0)


@compiled
def own_bound(top, score, rate, n_bits):
    """Return the H of one candidate."""
    return upper_weight(top, score, rate, weight_unit(n_bits))
