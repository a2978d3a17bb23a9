"""Compiled loops over rows that lie on a lattice. `lattice` says what they are for.

Loops that begin with `first` and `last` are over the rows first ≤ i < last.

Whole numbers add up to the same sum in any order, so the loops may be split over threads and
vector lanes at will. Float arithmetic looks at one row at a time, in operations whose order does
not depend on where the row stands.
"""

from __future__ import annotations

import numpy as np

from dpscreen._core.arrays import compiled, inlined

GRAM_ROWS, MIXED_ROWS = 1024, 128
"""How many rows are looked at together: as many as the cache holds."""


@compiled
def column_sums(first, last, columns, levels):
    """Return Σ_i columns[j, i]·levels[i] for every j."""
    out = np.zeros(len(columns), dtype=np.int64)
    add_products(columns, levels, out, 0, first, last)
    return out


@compiled
def add_products(columns, levels, out, j, a, b):
    """Add Σ_i columns[j, i]·levels[i], a ≤ i < b, to out[j] from j on: four columns at a time.

    Factors are at most 2^14, so a product fits 32 bits and a sum of 2^34 of them fits 64.
    """
    part, last = levels[a:b], out.size
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
def gram(first, last, columns):
    """Return the upper triangle of Σ_i k_i k_iᵀ."""
    out = np.zeros((len(columns), len(columns)), dtype=np.int64)
    for a in range(first, last, GRAM_ROWS):
        for j in range(len(columns)):
            add_products(columns, columns[j], out[j], j, a, min(a + GRAM_ROWS, last))
    return out


@compiled
def add_columns(first, last, fit, columns, chosen, amounts):
    """Add Σ_k amounts[k]·columns[chosen[k]] to the fit, exactly."""
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
def squared_lengths(columns):
    """Return ‖k_i‖² of every row."""
    out = np.zeros(columns.shape[1], dtype=np.int64)
    for j in range(len(columns)):
        for i in range(out.size):
            cell = np.int64(columns[j, i])
            out[i] += cell * cell
    return out


@compiled
def scale_rows(first, last, rows, factors, divisor, out):
    """Set out to the rows times a factor for each, over the divisor, truncated."""
    for j in range(len(rows)):
        for i in range(first, last):
            out[j, i] = np.int16(rows[j, i] * factors[i] / divisor)


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
def mix(first, last, columns, mixing, unit, most, factors, rows):
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
def fill_tile(tile, X, j, start, last, low, high, middle, half_width):
    """Put column j of rows from `start` on into `tile`, clipped and in its units.

    A missing cell, NaN, is at the centre: 0. Return how many rows there are, and missing cells.
    """
    size, missing = min(TILE, last - start), 0
    for i in range(size):
        tile[i] = X[start + i, j]
    for i in range(size):  # loops apart from the reading one run in vector lanes
        missing += tile[i] != tile[i]
    for i in range(size):
        inside = in_units(tile[i], low, high, middle, half_width)
        tile[i] = inside if tile[i] == tile[i] else 0.0
    return size, missing


@inlined
def add_up(cells, size, counts):
    """Count cells. They were found before, all at once: in vector lanes."""
    for i in range(size):
        counts[cells[i]] += 1


@compiled
def uniform_cells(first, last, X, chosen, low, high, middle, half_width, origin, per_unit, n_cells):
    """Count cells floor((u − origin)·per_unit) of chosen columns, and what lies below and above.

    Missing cells, NaN, are counted nowhere.
    """
    tile, cells = np.empty(TILE), np.empty(TILE, dtype=np.uint32)
    out, above = np.zeros((chosen.size, n_cells + 2), dtype=np.int64), np.float64(n_cells + 1)
    for start in range(first, last, TILE):
        for k in range(chosen.size):
            j = chosen[k]
            size, gone = fill_tile(
                tile, X, j, start, last, low[k], high[k], middle[k], half_width[k]
            )
            for i in range(size):
                place = np.floor((tile[i] - origin[k]) * per_unit[k]) + 1
                cells[i] = np.uint32(min(max(0.0, place), above))
            add_up(cells, size, out[k])
            for i in range(size if gone else 0):
                if X[start + i, j] != X[start + i, j]:
                    out[k, cells[i]] -= 1
    return out


@compiled
def octaves_by_side(first, last, X, chosen, low, high, middle, half_width, first_octave, near):
    """Count the octaves of |u| of chosen columns, below zero from the farthest on, and above.

    The exponent decides. What is below the first of `near` octaves is in the middle cell.
    """
    tile, cells = np.empty(TILE), np.empty(TILE, dtype=np.uint32)
    bits, out = tile.view(np.int64), np.zeros((chosen.size, 2 * near + 1), dtype=np.int64)
    for start in range(first, last, TILE):
        for k in range(chosen.size):
            j = chosen[k]
            size, _ = fill_tile(tile, X, j, start, last, low[k], high[k], middle[k], half_width[k])
            for i in range(size):
                exponent = ((bits[i] >> 52) & 2047) - 1022 - first_octave
                away = min(max(exponent, 0), near)
                cells[i] = np.uint32(near + (away if bits[i] >= 0 else -away))
            add_up(cells, size, out[k])
    return out


@inlined
def level_of(value, levels):
    """Return a number, clipped to [−1, 1], in whole numbers of 1/levels, truncated."""
    return np.trunc(min(max(-1.0, value), 1.0) * levels)


@compiled
def level_moments(first, last, X, chosen, low, high, middle, half_width, levels):
    """Return the sums of the levels of chosen columns, and of their squares over `levels`."""
    tile, out = np.empty(TILE), np.zeros((2, chosen.size), dtype=np.int64)
    for start in range(first, last, TILE):
        for k in range(chosen.size):
            j = chosen[k]
            size, _ = fill_tile(tile, X, j, start, last, low[k], high[k], middle[k], half_width[k])
            total, squares = np.int64(0), np.int64(0)
            for i in range(size):
                level = level_of(tile[i], levels)
                total += np.int64(level)
                squares += np.int64(np.floor(level * level / levels))
            out[0, k] += total
            out[1, k] += squares
    return out


@compiled
def to_lattice(first, last, X, low, high, middle, half_width, levels, more, out):
    """Set out[j, i] to X[i, j], clipped, in its units, in whole numbers of 1/levels, truncated.

    Before that `more` is added to its size: one half for the nearest whole number, or nothing.
    """
    tile = np.empty(TILE)
    for start in range(first, last, TILE):
        for j in range(X.shape[1]):
            size, _ = fill_tile(tile, X, j, start, last, low[j], high[j], middle[j], half_width[j])
            for i in range(size):
                level = min(max(-1.0, tile[i]), 1.0) * levels
                out[j, start + i] = np.int16(np.trunc(level + np.copysign(more, level)))
