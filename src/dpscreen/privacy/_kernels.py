"""Compiled loops of the exact selection. `selection` says what they are for."""

from __future__ import annotations

import math

import numba
import numpy as np

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


@numba.njit(nogil=True, cache=True)
def upper_weights(scores, top, rate, n_bits, bounds, blocks):
    """Fill `bounds` with H_j and `blocks` with their sums over blocks; return the total.

    Only IEEE +, −, × and floor are used, and integer shifts: no function whose last bits depend on
    the platform. The factor 1 + 2^−16 outweighs all rounding and the polynomial's error together.
    """
    unit = (1 + 2.0**-16) * 2.0**n_bits
    total = np.int64(0)
    for block in range(blocks.size):
        first = block * BLOCK
        last = min(first + BLOCK, scores.size)
        for i in range(first, last):
            exponent = max(-rate * np.float64(top - scores[i]), _LEAST_EXPONENT)
            whole = np.floor(exponent)
            f = exponent - whole
            power = _C0 + f * (_C1 + f * (_C2 + f * (_C3 + f * (_C4 + f * (_C5 + f * _C6)))))
            bounds[i] = ((np.int64(power * unit) + 1) >> np.int64(-whole)) + 1
        blocks[block] = bounds[first:last].sum()
        total += blocks[block]
    return total


@numba.njit(nogil=True, cache=True)
def locate(bounds, blocks, number):
    """Return the candidate whose share holds `number`, and the place within the share."""
    block = 0
    while number >= blocks[block]:
        number -= blocks[block]
        block += 1
    index = block * BLOCK
    while number >= bounds[index]:
        number -= bounds[index]
        index += 1
    return index, number
