"""Whole-number sums over raw rows, column by column, and over rows that were made short.

A column's cells are clipped to its bounds and looked at in units of its own (`ColumnMap`). Each
cell is placed by itself, so a count of two sets of rows is the sum of their counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np

from dpscreen._core.arrays import Array, Integers, Loops, Narrow, pool, threads

kernels = Loops("dpscreen.rows.kernels")

T = TypeVar("T")

LEVELS = 2**14
"""Into how many levels 1 is divided."""

# Below this many cells a second thread costs more than it saves.
_PARALLEL_CELLS = 500_000


class ColumnMap(NamedTuple):
    """How columns are looked at: clipped to bounds, then in units of a half-width from a centre.

    `chosen` are the columns that are meant, of which the other arrays have one entry each.
    """

    chosen: Integers
    low: Array
    high: Array
    centres: Array
    half_widths: Array

    @classmethod
    def of_bounds(cls, bounds: Array, chosen: Integers | None = None) -> ColumnMap:
        """Return the map of bounds onto −1 and 1, of all columns or of the chosen ones."""
        chosen = np.arange(len(bounds)) if chosen is None else chosen
        low, high = np.ascontiguousarray(bounds[chosen].T)
        return cls(chosen, low, high, low / 2 + high / 2, high / 2 - low / 2)


def counts_on_grid(
    X: Array, columns: ColumnMap, origin: Array, per_unit: Array, n_cells: int
) -> Integers:
    """Return, for each column, how many u lie below `origin`, in each of n cells, and above."""
    return added_up(X.shape, kernels.uniform_cells, X, *columns, origin, per_unit, n_cells)


def counts_by_octave(X: Array, columns: ColumnMap, octaves: Integers) -> Integers:
    """Return, for each column, how many u are in which octave, those below zero first, inwards.

    What is nearer to zero than the first octave is in the middle, what is beyond the last at ends.
    """
    return added_up(X.shape, kernels.octaves_by_side, X, *columns, octaves[0], len(octaves))


def level_moments(X: Array, columns: ColumnMap) -> Integers:
    """Return Σk and Σ⌊k²/2^14⌋ of each column, k = u in whole numbers of 1/2^14, truncated."""
    return added_up(X.shape, kernels.level_moments, X, *columns, float(LEVELS))


def added_up(size: tuple[int, ...], count: Callable[..., Integers], *args: Any) -> Integers:
    """Return the sum of count(first, last, *args) over parts of the rows."""
    return np.asarray(np.sum(in_parts(size, count, *args), axis=0, dtype=np.int64))


def in_parts(size: tuple[int, ...], run: Callable[..., T], *args: Any) -> list[T]:
    """Return run(first, last, *args) of all rows, or of parts in threads if there are many cells.

    `size` are the numbers of rows and of columns.
    """
    n_rows, n_columns = size
    if n_rows * n_columns < _PARALLEL_CELLS:
        return [run(0, n_rows, *args)]
    edges = np.linspace(0, n_rows, threads() + 1).astype(int).tolist()
    jobs = [pool().submit(run, *part, *args) for part in pairwise(edges)]
    return [job.result() for job in jobs]


def column_sums(columns: Narrow, levels: Narrow) -> Integers:
    """Return Σ_i levels_i k_ij for every column j."""
    return added_up(columns.shape[::-1], kernels.column_sums, columns, levels)


def scaled(rows: Narrow, factors: Array, divisor: float = 1.0) -> Narrow:
    """Return the rows times a factor for each, over the divisor, truncated."""
    out = np.empty_like(rows)
    in_parts(rows.shape[::-1], kernels.scale_rows, rows, factors, divisor, out)
    return out


def whole_sum(values: Integers) -> int:
    """Return the sum of whole numbers, also where it exceeds 64 bits."""
    high, low = values >> 28, values & (2**28 - 1)
    return (int(high.sum()) << 28) + int(low.sum())


def short_factors(squares: Integers, row_norm: float) -> Array:
    """Return what rows of these squared lengths are multiplied by: 1 if they are short enough."""
    lengths = np.sqrt(squares) / LEVELS
    safe = row_norm * (1 - 1e-12)
    return np.where(lengths > safe, safe / np.maximum(lengths, safe), 1.0)


@dataclass(frozen=True, eq=False)
class ShortRows:
    """Which columns make rows, and how long those may be in L2.

    Where `constant` is not 0, the last of the chosen columns is a constant at that level, whatever
    its cells are.
    """

    chosen: Integers
    row_norm: float
    constant: int = 0

    @property
    def key(self) -> tuple[bytes, float, int]:
        """Return what identifies it."""
        return self.chosen.tobytes(), self.row_norm, self.constant

    def in_weights(self) -> Array:
        """Return what a solution on short rows is multiplied by: a weight is for whole cells."""
        units = np.ones(len(self.chosen))
        if self.constant:
            units[-1] = self.constant / LEVELS
        return units

    def of(self, columns: Narrow) -> tuple[Narrow, Array]:
        """Return the rows, those that are longer shrunk, and what each was multiplied by."""
        cells = columns[:-1] if self.constant else columns
        factors = short_factors(kernels.squared_lengths(cells) + self.constant**2, self.row_norm)
        rows = scaled(columns, factors)
        if self.constant:
            rows[-1] = np.trunc(self.constant * factors)
        return rows, factors


def curved_rows(rows: Narrow, residuals: Narrow) -> Narrow:
    """Return rows times 2√(p(1 − p)), at most 1, truncated; residuals are ± p or ± (1 − p)."""
    sizes = np.abs(residuals.astype(np.float64))
    factors = 2 * np.sqrt(sizes * (LEVELS - sizes)) / LEVELS
    return scaled(rows, factors)


def exact_gram(columns: Narrow) -> Integers:
    """Return Σ_i k_i k_iᵀ, in whole numbers."""
    upper = added_up(columns.shape[::-1], kernels.gram, columns)
    return np.asarray(upper + np.triu(upper, 1).T)
