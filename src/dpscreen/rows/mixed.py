"""Whole-number combinations of columns, made short, and sums in which no row counts for much.

The effects of collinear columns are poorly separable in sums with noise. Those of whitened columns,
which are uncorrelated and have equal variance, are not: released numbers say which combinations
these are. A combination, like a residual, is a function of its row alone (docs/theory/exactness.md,
Lemma 8).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpscreen._core.arrays import Array, Integers, Loops, Narrow
from dpscreen.rows.sums import LEVELS, column_sums, exact_gram, in_parts, scaled

kernels = Loops("dpscreen.rows.kernels")

RowCount = Callable[..., Integers]
"""Short rows, ‖x‖², residuals in levels and other arguments to whole numbers that add up."""

WHOLE = LEVELS - 1
"""A residual of nearly 1, which is not clipped: that of a unit, whose row is a mean of ψx."""

_SAFE = 1 - 1e-12
_BITS = 53 - 14 - 1  # of a sum of products with cells, all exact in floats


@dataclass(frozen=True, eq=False)
class MixedRows:
    """Rows x = Mk/2^bits of chosen columns, as many as M has rows, shrunk to a norm of 1 in L2.

    M holds whole numbers; k, and x too, are whole numbers of 1/2^14. In products with residuals,
    rows up to `reach` times as long count whole, and longer ones as if they were that long.
    """

    chosen: Integers
    mixing: Integers
    bits: int
    reach: float = 1.0

    @classmethod
    def near(cls, chosen: Integers, mixing: Array) -> MixedRows:
        """Return rows x = Mk for the M next to `mixing` with which products are exact."""
        room = _BITS - math.ceil(math.log2(len(chosen) + 1))
        bits = room - math.ceil(math.log2(float(np.abs(mixing).max()) + 1e-300))
        return cls(chosen, np.rint(np.ldexp(mixing, bits)).astype(np.int64), bits)

    @property
    def matrix(self) -> Array:
        """Return M as numbers."""
        return np.ldexp(self.mixing.astype(np.float64), -self.bits)

    @property
    def key(self) -> tuple[bytes, bytes, int]:
        """Return what identifies it."""
        return self.chosen.tobytes(), self.mixing.tobytes(), self.bits

    def smaller(self, times: float) -> MixedRows:
        """Return rows so many times smaller: those are shrunk that are as much longer."""
        return MixedRows.near(self.chosen, self.matrix / times) if times > 1 else self

    def of(self, columns: Narrow) -> tuple[Narrow, Array]:
        """Return the rows, and what each was multiplied by: 1 if it was short enough."""
        shape = len(self.mixing), columns.shape[1]
        rows, factors = np.empty(shape, dtype=np.int16), np.empty(columns.shape[1])
        whole = self.mixing.astype(np.float64), math.ldexp(1.0, -self.bits), LEVELS * _SAFE
        in_parts(columns.shape[::-1], kernels.mix, columns, *whole, factors, rows)
        return rows, factors

    def residuals(self, levels: Narrow, factors: Array) -> Narrow:
        """Return what goes with short rows so that products are those of longer ones."""
        with np.errstate(all="ignore"):  # a warning would depend on the rows
            weights = np.minimum(1 / factors, self.reach**2 * factors)
        return np.trunc(np.clip(levels * weights, -LEVELS, LEVELS)).astype(np.int16)


def capped(squares: Integers, residuals: Narrow, cap: float) -> Narrow:
    """Return residuals so small that |ψ|·‖x‖ ≤ cap, both as parts of 2^14 (Lemma 25)."""
    lengths = np.maximum(np.sqrt(squares), 1.0)
    bounds = np.floor(np.minimum(cap * _SAFE * LEVELS * LEVELS / lengths, LEVELS))
    return np.clip(residuals, -bounds, bounds).astype(np.int16)


def capped_products(rows: Narrow, squares: Integers, residuals: Narrow, cap: float) -> Integers:
    """Return Σψx in 1/2^28, each row's residual capped."""
    return column_sums(rows, capped(squares, residuals, cap))


def clipped_directions(rows: Narrow, squares: Integers, residuals: Narrow, cap: float) -> Integers:
    """Return Σ sign(ψ)x/‖x‖ over the rows whose residuals are capped, in 1/2^14 (Lemma 69).

    Every term is truncated, so that it is no longer than 1.
    """
    cut = np.abs(residuals) > np.abs(capped(squares, residuals, cap))
    cut |= np.abs(residuals) == LEVELS
    signs = np.sign(residuals[cut]) * _SAFE * LEVELS / np.maximum(np.sqrt(squares[cut]), 1.0)
    return np.asarray(np.trunc(rows[:, cut] * signs).sum(axis=1), dtype=np.int64)


def capped_middle(rows: Narrow, squares: Integers, residuals: Narrow, cap: float) -> Integers:
    """Return Σzzᵀ in 1/2^28, z = ψx/cap truncated to 1/2^14, each row's residual capped."""
    per_level, kept = float(math.ceil(cap * LEVELS)), capped(squares, residuals, cap)
    return exact_gram(scaled(rows, kept.astype(np.float64), per_level))


def size_counts(
    _rows: Narrow, squares: Integers, residuals: Narrow, top: float, n_cells: int
) -> Integers:
    """Return how many |ψ|·‖x‖ lie below top/√2^n, in each of n half octaves from there, and beyond.

    The exponent of the square decides: a logarithm might differ between machines.
    """
    sizes = residuals.astype(np.float64) ** 2 * squares
    with np.errstate(all="ignore"):  # a warning would depend on the rows
        octaves = np.frexp(sizes / (top * float(LEVELS) ** 2) ** 2)[1]
    cells = np.where(sizes == 0, 0, np.clip(n_cells + octaves, 0, n_cells + 1))
    return np.bincount(cells, minlength=n_cells + 2).astype(np.int64)


def length_counts(rows: Narrow, squares: Integers, residuals: Narrow, n_cells: int) -> Integers:
    """Return how many rows have ‖x‖ below 1/√2^n, in each of n half octaves from there, and 1."""
    return size_counts(rows, squares, np.ones_like(residuals), 1 / LEVELS, n_cells)


def long_count(rows: Narrow, squares: Integers, _residuals: Narrow) -> Integers:
    """Return how many rows are as long as they may be: those that were shrunk, to rounding."""
    whole = (LEVELS - len(rows)) ** 2
    return np.array([np.count_nonzero(squares >= whole)], dtype=np.int64)
