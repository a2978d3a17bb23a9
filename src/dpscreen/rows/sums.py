"""How many cells of raw rows fall where: counts of whole rows, column by column or pooled.

A column's cells are looked at in units in which its bounds are −1 and 1; beyond them they are
clipped. Each cell is placed by itself, so a count of two sets of rows is the sum of their counts.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from dpscreen._core.arrays import Array, Integers, Narrow, pool, threads

POOLED_CELLS = 2**12

# Below this many cells a second thread costs more than it saves.
_PARALLEL_CELLS = 500_000


def counts_on_grid(
    X: Array, bounds: Array, origin: Array, per_unit: float, n_cells: int
) -> Integers:
    """Return, for each column, how many u lie below `origin`, in each of n cells, and above."""
    from dpscreen.rows import kernels

    low, high = _ends(bounds)
    shape = (X.shape[1], n_cells + 2)
    return _over_rows(
        X, shape, lambda part, out: kernels.uniform_cells(part, low, high, origin, per_unit, out)
    )


def counts_by_distance(X: Array, bounds: Array, centres: Array, edges: Array) -> Integers:
    """Return, for each column, how many |u − centre| lie below each edge, and all rows last."""
    from dpscreen.rows import kernels

    low, high = _ends(bounds)
    every = np.append(edges, np.inf)
    shape = (X.shape[1], len(every))
    return _over_rows(
        X, shape, lambda part, out: kernels.distances_below(part, low, high, centres, every, out)
    )


def pooled_counts(X: Array, bounds: Array) -> Integers:
    """Return how many |u| of all columns together lie in each of 2^12 equal cells of [0, 1]."""
    from dpscreen.rows import kernels

    low, high = _ends(bounds)
    return _over_rows(
        X, (POOLED_CELLS,), lambda part, out: kernels.pooled_cells(part, low, high, out)
    )


def lattice_columns(X: Array, bounds: Array, *, constant: bool) -> Narrow:
    """Return the columns in units of their bounds, truncated to 1/2^14; a constant comes last."""
    from dpscreen.rows import kernels

    low, high = _ends(bounds)
    n, d = X.shape
    columns = np.empty((d + constant, n), dtype=np.int16)
    columns[d:] = LEVELS

    def convert(first: int, last: int) -> None:
        kernels.to_lattice(X[first:last], low, high, float(LEVELS), columns[:d, first:last])

    _in_parts(n, d, convert)
    return columns


def _ends(bounds: Array) -> tuple[Array, Array]:
    return np.ascontiguousarray(bounds[:, 0]), np.ascontiguousarray(bounds[:, 1])


def _over_rows(
    X: Array, shape: tuple[int, ...], count: Callable[[Array, Integers], None]
) -> Integers:
    """Add up the counts of several parts of the rows, each in a thread of its own."""
    found: list[Integers] = []

    def run(first: int, last: int) -> None:
        out = np.zeros(shape, dtype=np.int64)
        count(X[first:last], out)
        found.append(out)

    _in_parts(X.shape[0], X.shape[1], run)
    return np.asarray(np.sum(found, axis=0, dtype=np.int64))


def _in_parts(n_rows: int, n_columns: int, run: Callable[[int, int], None]) -> None:
    if n_rows * n_columns < _PARALLEL_CELLS:
        run(0, n_rows)
        return
    edges = np.linspace(0, n_rows, threads() + 1).astype(int).tolist()
    for job in [pool().submit(run, *part) for part in pairwise(edges)]:
        job.result()


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
