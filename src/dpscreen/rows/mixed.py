"""Whole-number combinations of columns, made short, and sums in which no row counts for much.

Columns that are alike are told apart badly by sums with noise in them. Combinations of columns that
vary alike, and independently of each other, are not: which combinations these are, released numbers
say. A combination is a function of its row alone, as residuals are (docs/exactness.md, Lemma 8).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpscreen._core.arrays import Array, Integers, Narrow
from dpscreen.rows.sums import LEVELS, added_up, both_triangles, in_parts

RowCount = Callable[..., Integers]
"""Short rows, ‖x‖², residuals in levels and other arguments to whole numbers that add up."""

_SAFE = 1 - 1e-12
_BITS = 53 - 14 - 1  # of a sum of products with cells, all exact in floats


@dataclass(frozen=True, eq=False)
class MixedRows:
    """Rows x = Mk/2^bits of all chosen columns, those longer than 1 in L2 shrunk to it.

    M holds whole numbers; k, and x too, are whole numbers of 1/2^14. In products with residuals,
    rows up to `reach` times as long count whole, and longer ones as if they were that long. Where
    residuals are at most 1, a row that was shrunk by f counts f² of itself and, in other sums,
    f√(1 − f²), the "rest".
    """

    chosen: Integers
    mixing: Integers
    bits: int
    reach: float = 1.0
    weighing: Literal["short", "rest"] = "short"

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
        """Return what tells it from others."""
        return self.chosen.tobytes(), self.mixing.tobytes(), self.bits

    def smaller(self, times: float) -> MixedRows:
        """Return rows so many times smaller: those are shrunk that are as much longer."""
        return MixedRows.near(self.chosen, self.matrix / times) if times > 1 else self

    def of(self, columns: Narrow) -> tuple[Narrow, Array]:
        """Return the rows, and what each was multiplied by: 1 if it was short enough."""
        from dpscreen.rows import kernels

        rows, factors = np.empty(columns.shape, dtype=np.int16), np.empty(columns.shape[1])
        whole = self.mixing.astype(np.float64), math.ldexp(1.0, -self.bits), LEVELS * _SAFE

        def mix(first: int, last: int) -> None:
            kernels.mix(columns, *whole, first, last, factors, rows)

        in_parts(columns.shape[1], columns.shape[0], mix)
        return rows, factors

    def residuals(self, levels: Narrow, factors: Array) -> Narrow:
        """Return what goes with short rows so that products are those of longer ones."""
        from dpscreen.rows import kernels

        if self.weighing == "rest":
            return np.trunc(levels * np.sqrt(1 - factors * factors)).astype(np.int16)
        weighed = np.empty_like(levels)
        kernels.weigh(levels, factors, self.reach**2, float(LEVELS), weighed)
        return weighed


def capped(squares: Integers, residuals: Narrow, cap: float) -> Narrow:
    """Return residuals so small that |ψ|·‖x‖ ≤ cap, both as parts of 2^14 (Lemma 25)."""
    from dpscreen.rows import kernels

    out = np.empty_like(residuals)
    kernels.cap(residuals, squares, cap * _SAFE * LEVELS * LEVELS, float(LEVELS), out)
    return out


def capped_products(rows: Narrow, squares: Integers, residuals: Narrow, cap: float) -> Integers:
    """Return Σψx in 1/2^28, each row's residual capped."""
    from dpscreen.rows import kernels

    out = np.empty(len(rows), dtype=np.int64)
    kernels.column_sums(rows, capped(squares, residuals, cap), out, 0, len(rows))
    return out


def capped_middle(rows: Narrow, squares: Integers, residuals: Narrow, cap: float) -> Integers:
    """Return Σzzᵀ in 1/2^28, z = ψx/cap truncated to 1/2^14, each row's residual capped."""
    from dpscreen.rows import kernels

    per_level, kept = float(math.ceil(cap * LEVELS)), capped(squares, residuals, cap)

    def count(first: int, last: int, out: Integers) -> None:
        for start in range(first, last, kernels.GRAM_ROWS):
            z = np.empty((len(rows), min(kernels.GRAM_ROWS, last - start)), dtype=np.int16)
            kernels.divided_products(rows, kept, per_level, start, z)
            kernels.add_gram(z, 0, z.shape[1], out)

    return both_triangles(added_up(rows.shape[::-1], (len(rows), len(rows)), count))


def size_counts(
    _rows: Narrow, squares: Integers, residuals: Narrow, top: float, n_cells: int
) -> Integers:
    """Return how many |ψ|·‖x‖ lie below top/√2^n, in each of n half octaves from there, and beyond.

    The exponent of a square tells.
    """
    from dpscreen.rows import kernels

    counts = np.zeros(n_cells + 2, dtype=np.int64)
    unit = (top * float(LEVELS) ** 2) ** 2
    kernels.count_half_octaves(residuals, squares, unit, counts)
    return counts


def length_counts(_rows: Narrow, squares: Integers, residuals: Narrow, n_cells: int) -> Integers:
    """Return how many rows have ‖x‖ below 1/√2^n, in each of n half octaves from there, and 1."""
    from dpscreen.rows import kernels

    counts = np.zeros(n_cells + 2, dtype=np.int64)
    kernels.count_half_octaves(np.ones_like(residuals), squares, float(LEVELS) ** 2, counts)
    return counts


def long_count(rows: Narrow, squares: Integers, _residuals: Narrow) -> Integers:
    """Return how many rows are as long as they may be: those that were shrunk, to rounding."""
    whole = (LEVELS - len(rows)) ** 2
    return np.array([np.count_nonzero(squares >= whole)], dtype=np.int64)
