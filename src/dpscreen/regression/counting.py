"""How many cells of raw rows fall where: counts of whole rows, column by column or pooled.

A column's cells are looked at in units in which its bounds are −1 and 1; beyond them they are
clipped. Each cell is placed by itself, so a count of two sets of rows is the sum of their counts.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from dpscreen._core.arrays import Array, Integers, Narrow
from dpscreen._core.compiled import pool, threads
from dpscreen.regression.moments import LEVELS

POOLED_CELLS = 2**12

# Below this many cells a second thread costs more than it saves.
_PARALLEL_CELLS = 500_000


def counts_on_grid(
    X: Array, bounds: Array, origin: Array, per_unit: float, n_cells: int
) -> Integers:
    """Return, for each column, how many u lie below `origin`, in each of n cells, and above."""
    from dpscreen.regression import _kernels as kernels

    low, high = _ends(bounds)
    shape = (X.shape[1], n_cells + 2)
    return _over_rows(
        X, shape, lambda part, out: kernels.uniform_cells(part, low, high, origin, per_unit, out)
    )


def counts_by_distance(X: Array, bounds: Array, centres: Array, edges: Array) -> Integers:
    """Return, for each column, how many |u − centre| lie below each edge, and all rows last."""
    from dpscreen.regression import _kernels as kernels

    low, high = _ends(bounds)
    every = np.append(edges, np.inf)
    shape = (X.shape[1], len(every))
    return _over_rows(
        X, shape, lambda part, out: kernels.distances_below(part, low, high, centres, every, out)
    )


def pooled_counts(X: Array, bounds: Array) -> Integers:
    """Return how many |u| of all columns together lie in each of 2^12 equal cells of [0, 1]."""
    from dpscreen.regression import _kernels as kernels

    low, high = _ends(bounds)
    return _over_rows(
        X, (POOLED_CELLS,), lambda part, out: kernels.pooled_cells(part, low, high, out)
    )


def lattice_columns(X: Array, bounds: Array, *, constant: bool) -> Narrow:
    """Return the columns in units of their bounds, truncated to 1/2^14; a constant comes last."""
    from dpscreen.regression import _kernels as kernels

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
