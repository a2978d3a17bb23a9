"""Compiled loops over rows that lie on a lattice. `lattice` says what they are for.

Whole numbers add up to the same sum in any order, so the loops may be split over threads and
vector lanes at will. Float arithmetic looks at one row at a time, in operations whose order does
not depend on where the row stands.
"""

from __future__ import annotations

import numpy as np

from dpscreen._core.arrays import compiled, inlined

GRAM_ROWS, MIXED_ROWS = 4096, 128
"""How many rows are looked at together: as many as the cache holds."""


@compiled
def column_sums(columns, levels, out, first, last):
    """Set out[j] = Σ_i columns[j, i]·levels[i] for first ≤ j < last."""
    out[first:last] = 0
    add_products(columns, levels, out, first, last, 0, levels.size)


@compiled
def add_products(columns, levels, out, first, last, a, b):
    """Add Σ_i columns[j, i]·levels[i], a ≤ i < b, to out[j]: four columns at a time.

    Factors are at most 2^14, so a product fits 32 bits and a sum of 2^34 of them fits 64.
    """
    part = levels[a:b]
    j = first
    while j + 4 <= last:
        c0, c1 = columns[j][a:b], columns[j + 1][a:b]
        c2, c3 = columns[j + 2][a:b], columns[j + 3][a:b]
        s0, s1, s2, s3 = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
        for i in range(part.size):
            level = np.int32(part[i])
            s0 += np.int64(np.int32(c0[i]) * level)
            s1 += np.int64(np.int32(c1[i]) * level)
            s2 += np.int64(np.int32(c2[i]) * level)
            s3 += np.int64(np.int32(c3[i]) * level)
        out[j] += s0
        out[j + 1] += s1
        out[j + 2] += s2
        out[j + 3] += s3
        j += 4
    while j < last:
        column, s0 = columns[j][a:b], np.int64(0)
        for i in range(part.size):
            s0 += np.int64(np.int32(column[i]) * np.int32(part[i]))
        out[j] += s0
        j += 1


@compiled
def add_gram(columns, first, last, out):
    """Add Σ_i k_i k_iᵀ of rows first ≤ i < last to the upper triangle of out."""
    d = columns.shape[0]
    for a in range(first, last, GRAM_ROWS):
        for j in range(d):
            add_products(columns, columns[j], out[j], j, d, a, min(a + GRAM_ROWS, last))


@compiled
def add_columns(fit, columns, chosen, amounts, first, last):
    """Add Σ_k amounts[k]·columns[chosen[k]] to the fit of rows first ≤ i < last, exactly."""
    for a in range(first, last, GRAM_ROWS):
        b = min(a + GRAM_ROWS, last)
        part = fit[a:b]
        k = 0
        while k + 4 <= chosen.size:
            c0, c1 = columns[chosen[k]][a:b], columns[chosen[k + 1]][a:b]
            c2, c3 = columns[chosen[k + 2]][a:b], columns[chosen[k + 3]][a:b]
            m0, m1, m2, m3 = amounts[k], amounts[k + 1], amounts[k + 2], amounts[k + 3]
            for i in range(part.size):
                low = m0 * np.int64(c0[i]) + m1 * np.int64(c1[i])
                part[i] += low + m2 * np.int64(c2[i]) + m3 * np.int64(c3[i])
            k += 4
        while k < chosen.size:
            column, amount = columns[chosen[k]][a:b], amounts[k]
            for i in range(part.size):
                part[i] += amount * np.int64(column[i])
            k += 1


@compiled
def add_squares(columns, out):
    """Add the squares of every row's cells to out."""
    for j in range(columns.shape[0]):
        for i in range(out.size):
            cell = np.int64(columns[j, i])
            out[i] += cell * cell


@inlined
def combine(cells, parts, size, out):
    """Set out[i] to Σ_k parts[k]·cells[k, i], exact in any order, four products at a time."""
    out[:] = 0.0
    d = parts.size
    for k in range(d // 4 * 4, d):
        part, column = parts[k], cells[k]
        for i in range(size):
            out[i] += part * column[i]
    for k in range(0, d // 4 * 4, 4):
        p0, p1, p2, p3 = parts[k], parts[k + 1], parts[k + 2], parts[k + 3]
        c0, c1, c2, c3 = cells[k], cells[k + 1], cells[k + 2], cells[k + 3]
        for i in range(size):
            out[i] += p0 * c0[i] + p1 * c1[i] + p2 * c2[i] + p3 * c3[i]


@compiled
def mix(columns, mixing, unit, most, first, last, factors, rows):
    """Set rows to mixing·columns·unit, those longer than `most` in L2 shrunk, all truncated.

    Say by how much in factors. Whole numbers as `mixing` and columns are, products are exact.
    """
    cells = np.empty((len(columns), MIXED_ROWS))
    mixed = np.empty((len(mixing), MIXED_ROWS))
    for a in range(first, last, MIXED_ROWS):
        size = min(MIXED_ROWS, last - a)
        factor = factors[a : a + size]
        factor[:] = 0.0
        for j in range(len(columns)):
            column = columns[j][a : a + size]
            for i in range(size):
                cells[j, i] = column[i]
        for j in range(len(mixing)):
            row = mixed[j]
            combine(cells, mixing[j], size, row)
            for i in range(size):
                row[i] *= unit
                factor[i] += row[i] * row[i]
        for i in range(size):
            factor[i] = most / max(np.sqrt(factor[i]), most)
        for j in range(len(mixing)):
            short, row = rows[j][a : a + size], mixed[j]
            for i in range(size):
                short[i] = np.int16(row[i] * factor[i])


@inlined
def in_units(value, low, high, middle, half_width):
    """Return a cell, clipped to its bounds, in units in which they are −1 and 1.

    In this order a NaN is clipped too: what follows may use the result as an index.
    """
    return (min(max(low, value), high) - middle) / half_width


TILE = 256
"""Rows are looked at by tiles, so that a tile stays in the cache whatever the layout of X."""


@inlined
def fill_tile(tile, X, j, first, low, high, middle, half_width):
    """Put column j of some rows into `tile`, clipped and in its units.

    A missing cell, NaN, is at the centre: 0. Return how many rows there are, and missing cells.
    """
    size, missing = min(TILE, X.shape[0] - first), 0
    for i in range(size):
        value = X[first + i, j]
        inside = in_units(value, low, high, middle, half_width)
        tile[i] = inside if value == value else 0.0
        missing += value != value
    return size, missing


@inlined
def add_up(cells, size, counts):
    """Count cells. They were found before, all at once: in vector lanes."""
    for i in range(size):
        counts[cells[i]] += 1


@compiled
def uniform_cells(X, chosen, low, high, middle, half_width, origin, per_unit, out):
    """Count cells floor((u − origin)·per_unit) of chosen columns; beyond, at the ends of out.

    Missing cells, NaN, are counted nowhere.
    """
    tile, cells = np.empty(TILE), np.empty(TILE, dtype=np.uint32)
    last = np.float64(out.shape[1] - 1)
    for first in range(0, X.shape[0], TILE):
        for k in range(chosen.size):
            j = chosen[k]
            size, gone = fill_tile(tile, X, j, first, low[k], high[k], middle[k], half_width[k])
            for i in range(size):
                place = np.floor((tile[i] - origin[k]) * per_unit[k]) + 1
                cells[i] = np.uint32(min(max(0.0, place), last))
            add_up(cells, size, out[k])
            for i in range(size if gone else 0):
                if X[first + i, j] != X[first + i, j]:
                    out[k, cells[i]] -= 1


@compiled
def octaves_by_side(X, chosen, low, high, middle, half_width, first_octave, out):
    """Count the octaves of |u| of chosen columns, below zero from the farthest on, and above.

    The exponent decides. What is below the first octave, 2^first, is in the middle cell.
    """
    tile, cells = np.empty(TILE), np.empty(TILE, dtype=np.uint32)
    bits = tile.view(np.int64)
    near = np.int64(out.shape[1] // 2)
    for first in range(0, X.shape[0], TILE):
        for k in range(chosen.size):
            j = chosen[k]
            size, _ = fill_tile(tile, X, j, first, low[k], high[k], middle[k], half_width[k])
            for i in range(size):
                exponent = ((bits[i] >> 52) & 2047) - 1022 - first_octave
                away = min(max(exponent, 0), near)
                cells[i] = np.uint32(near + (away if bits[i] >= 0 else -away))
            add_up(cells, size, out[k])


@inlined
def level_of(value, levels):
    """Return a number, clipped to [−1, 1], in whole numbers of 1/levels, truncated."""
    return np.trunc(min(max(-1.0, value), 1.0) * levels)


@compiled
def level_moments(X, chosen, low, high, middle, half_width, levels, out):
    """Add up the levels of chosen columns in out[0], and their squares over `levels` in out[1]."""
    tile = np.empty(TILE)
    for first in range(0, X.shape[0], TILE):
        for k in range(chosen.size):
            j = chosen[k]
            size, _ = fill_tile(tile, X, j, first, low[k], high[k], middle[k], half_width[k])
            total, squares = np.int64(0), np.int64(0)
            for i in range(size):
                level = level_of(tile[i], levels)
                total += np.int64(level)
                squares += np.int64(np.floor(level * level / levels))
            out[0, k] += total
            out[1, k] += squares


@compiled
def to_lattice(X, low, high, middle, half_width, levels, more, out):
    """Set out[j, i] to X[i, j], clipped, in its units, in whole numbers of 1/levels, truncated.

    Before that `more` is added to its size: one half for the nearest whole number, or nothing.
    """
    tile = np.empty(TILE)
    for first in range(0, X.shape[0], TILE):
        for j in range(X.shape[1]):
            size, _ = fill_tile(tile, X, j, first, low[j], high[j], middle[j], half_width[j])
            for i in range(size):
                level = min(max(-1.0, tile[i]), 1.0) * levels
                out[j, first + i] = np.int16(np.trunc(level + np.copysign(more, level)))
