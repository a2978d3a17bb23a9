"""Rows on the lattice that are not longer than a bound, and exact sums of their products.

Columns are whole numbers of 1/2^14, one array a feature. A row that is longer than the bound is
shrunk to it; the factor is a little too small and everything is truncated towards zero, so that no
rounding leaves a row longer than the bound.
"""

from __future__ import annotations

import numpy as np

from dpscreen._core.arrays import Array, Integers, Narrow

LEVELS = 2**14
"""Into how many levels 1 is divided."""

_BLOCK = 2**16


def squared_lengths(columns: Narrow) -> Integers:
    """Return ‖k_i‖² of every row, in whole numbers of 1/2^28."""
    squares = np.zeros(columns.shape[1], dtype=np.int64)
    for column in columns:
        squares += column.astype(np.int64) ** 2
    return squares


def whole_sum(values: Integers) -> int:
    """Return the sum of whole numbers that are not negative, also where it exceeds 64 bits."""
    high, low = values >> 28, values & (2**28 - 1)
    return (int(high.sum()) << 28) + int(low.sum())


def short_rows(columns: Narrow, row_norm: float) -> Narrow:
    """Return the rows, those longer than `row_norm` in L2 shrunk to it."""
    return np.trunc(columns * short_factors(squared_lengths(columns), row_norm)).astype(np.int16)


def short_factors(squares: Integers, row_norm: float) -> Array:
    """Return what rows of these squared lengths are multiplied by: 1 if they are short enough."""
    lengths = np.sqrt(squares) / LEVELS
    safe = row_norm * (1 - 1e-12)
    return np.where(lengths > safe, safe / np.maximum(lengths, safe), 1.0)


def short_pair(columns: Narrow, residuals: Narrow, row_norm: float) -> tuple[Narrow, Narrow]:
    """Return the rows, each shrunk to `row_norm` together with its residual if it is longer."""
    factors = short_factors(squared_lengths(columns), row_norm)
    rows = np.trunc(columns * factors).astype(np.int16)
    return rows, np.trunc(residuals * factors).astype(np.int16)


def short_moments(columns: Narrow, residuals: Narrow, row_norm: float) -> Integers:
    """Return Σxxᵀ, Σψx and Σzzᵀ of q columns, one after the other, in whole numbers of 1/2^28.

    Rows x of norm at most ν; those that are longer are shrunk together with their residual ψ, a
    whole number of 1/2^14 between −1 and 1; z = ψx, truncated to 1/2^14.
    """
    rows, psi = short_pair(columns, residuals, row_norm)
    both = exact_gram(np.vstack((rows, psi)))
    products = rows.astype(np.int64) * psi
    z = (np.sign(products) * (np.abs(products) // LEVELS)).astype(np.int16)
    return np.concatenate((both[:-1, :-1].ravel(), both[-1, :-1], exact_gram(z).ravel()))


def unpacked(moments: Integers, n_columns: int) -> tuple[Integers, Integers, Integers]:
    """Return the Gram matrix, the moment and the middle that `short_moments` put together."""
    q = n_columns
    gram, moment, middle = np.split(moments, (q * q, q * q + q))
    return gram.reshape(q, q), moment, middle.reshape(q, q)


def exact_gram(columns: Narrow) -> Integers:
    """Return Σ_i k_i k_iᵀ. Sums of 2^16 products of at most 2^28 are exact in floats."""
    gram = np.zeros((len(columns), len(columns)), dtype=np.int64)
    for first in range(0, columns.shape[1], _BLOCK):
        block = columns[:, first : first + _BLOCK].astype(np.float64)
        gram += (block @ block.T).astype(np.int64)
    return gram
