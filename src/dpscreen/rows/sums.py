"""Whole-number sums over raw rows, column by column, and over rows that were made short.

A column's cells are clipped to its bounds and looked at in units of its own (`ColumnMap`). Each
cell is placed by itself, so a count of two sets of rows is the sum of their counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from dpscreen._core.arrays import AnyArray, Array, Integers, Loops, Narrow, pool, threads

kernels = Loops("dpscreen.rows.kernels")

T = TypeVar("T")

# Below this many cells a second thread costs more than it saves.
_PARALLEL_CELLS = 500_000


@dataclass(frozen=True, eq=False)
class ColumnMap:
    """How columns are looked at: clipped to bounds, then in units of a half-width from a centre.

    `chosen` are the columns that are meant, of which the other arrays have one entry each. Cells on
    the lattice are truncated, or the `nearest` level: that biases no slope.
    """

    chosen: Integers
    bounds: Array
    centres: Array
    half_widths: Array
    nearest: bool = False

    @classmethod
    def of_bounds(cls, bounds: Array, chosen: Integers | None = None) -> ColumnMap:
        """Return the map of bounds onto −1 and 1, of all columns or of the chosen ones."""
        chosen = np.arange(len(bounds)) if chosen is None else chosen
        low, high = bounds[chosen].T
        return cls(chosen, bounds[chosen], low / 2 + high / 2, high / 2 - low / 2)

    @property
    def numbers(self) -> tuple[Array, Array, Array, Array]:
        """Return lower and upper ends, centres and half-widths, as loops take them."""
        low, high = (np.ascontiguousarray(end) for end in self.bounds.T)
        return low, high, self.centres, self.half_widths


def counts_on_grid(
    X: Array, columns: ColumnMap, origin: Array, per_unit: Array, n_cells: int
) -> Integers:
    """Return, for each column, how many u lie below `origin`, in each of n cells, and above."""
    shape = len(columns.chosen), n_cells + 2
    return _over_rows(kernels.uniform_cells, X, columns, (origin, per_unit), shape)


def counts_by_octave(X: Array, columns: ColumnMap, octaves: Integers) -> Integers:
    """Return, for each column, how many u are in which octave, those below zero first, inwards.

    What is nearer to zero than the first octave is in the middle, what is beyond the last at ends.
    """
    shape = len(columns.chosen), 2 * len(octaves) + 1
    return _over_rows(kernels.octaves_by_side, X, columns, (octaves[0],), shape)


def level_moments(X: Array, columns: ColumnMap) -> Integers:
    """Return Σk and Σ⌊k²/2^14⌋ of each column, k = u in whole numbers of 1/2^14, truncated."""
    shape = 2, len(columns.chosen)
    return _over_rows(kernels.level_moments, X, columns, (float(LEVELS),), shape)


def lattice_columns(X: Array, columns: ColumnMap, *, constant: bool) -> Narrow:
    """Return all columns of X in their units, truncated to 1/2^14; a constant comes last."""
    n, d = X.shape
    given = *columns.numbers, float(LEVELS), 0.5 if columns.nearest else 0.0
    out = np.empty((d + constant, n), dtype=np.int16)
    out[d:] = LEVELS
    in_parts(
        n,
        d,
        lambda first, last: kernels.to_lattice(X[first:last], *given, out[:d, first:last]),
    )
    return out


def _over_rows(
    kernel: Any, X: AnyArray, columns: ColumnMap, args: tuple[Any, ...], shape: tuple[int, int]
) -> Integers:
    """Add up what a compiled loop counts in the chosen columns of several parts of the rows."""
    given = columns.chosen, *columns.numbers, *args
    return added_up(X.shape, shape, lambda first, last, out: kernel(X[first:last], *given, out))


def added_up(
    size: tuple[int, ...], shape: tuple[int, ...], count: Callable[[int, int, Integers], None]
) -> Integers:
    """Add up the counts of several parts of the rows, each in a thread of its own."""

    def run(first: int, last: int) -> Integers:
        out = np.zeros(shape, dtype=np.int64)
        count(first, last, out)
        return out

    return np.asarray(np.sum(in_parts(size[0], size[1], run), axis=0, dtype=np.int64))


def in_parts(n_rows: int, n_columns: int, run: Callable[[int, int], T]) -> list[T]:
    """Run over rows from the first to the last, in parts and threads where there are many."""
    if n_rows * n_columns < _PARALLEL_CELLS:
        return [run(0, n_rows)]
    edges = np.linspace(0, n_rows, threads() + 1).astype(int).tolist()
    jobs = [pool().submit(run, *part) for part in pairwise(edges)]
    return [job.result() for job in jobs]


def add_columns(fit: Integers, columns: Narrow, chosen: Integers, amounts: Integers) -> None:
    """Add Σ_k amounts[k]·columns[chosen[k]] to the fit."""
    in_parts(
        len(fit),
        len(chosen),
        lambda first, last: kernels.add_columns(fit, columns, chosen, amounts, first, last),
    )


LEVELS = 2**14
"""Into how many levels 1 is divided."""


def squared_lengths(columns: Narrow) -> Integers:
    """Return ‖k_i‖² of every row, in whole numbers of 1/2^28."""
    squares = np.zeros(columns.shape[1], dtype=np.int64)
    kernels.add_squares(columns, squares)
    return squares


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
        units[len(units) - 1 :] = self.constant / LEVELS if self.constant else 1.0
        return units

    def of(self, columns: Narrow) -> tuple[Narrow, Array]:
        """Return the rows, those that are longer shrunk, and what each was multiplied by."""
        cells = columns[:-1] if self.constant else columns
        factors = short_factors(squared_lengths(cells) + self.constant**2, self.row_norm)
        rows = np.empty_like(columns)
        rows[len(cells) :] = np.trunc(self.constant * factors)

        def shorten(first: int, last: int) -> None:
            for row, column in zip(rows, cells, strict=False):
                row[first:last] = np.trunc(column[first:last] * factors[first:last])

        in_parts(columns.shape[1], len(cells), shorten)
        return rows, factors


def short_residuals(residuals: Narrow, factors: Array) -> Narrow:
    """Return residuals, each shrunk by as much as its row."""
    return np.trunc(residuals * factors).astype(np.int16)


def curved_rows(rows: Narrow, residuals: Narrow) -> Narrow:
    """Return rows times 2√(p(1 − p)), at most 1, truncated; residuals are ± p or ± (1 − p)."""
    sizes = np.abs(residuals.astype(np.float64))
    factors = 2 * np.sqrt(sizes * (LEVELS - sizes)) / LEVELS
    curved = np.empty_like(rows)
    for row, given in zip(curved, rows, strict=True):
        row[:] = np.trunc(given * factors)
    return curved


def exact_gram(columns: Narrow) -> Integers:
    """Return Σ_i k_i k_iᵀ, in whole numbers."""
    return gram_over_rows(columns, partial(kernels.add_gram, columns))


def gram_over_rows(columns: Narrow, count: Callable[[int, int, Integers], None]) -> Integers:
    """Return the symmetric matrix whose upper triangle `count` adds up over parts of the rows."""
    upper = added_up(columns.shape[::-1], (len(columns),) * 2, count)
    return np.asarray(upper + np.triu(upper, 1).T)
