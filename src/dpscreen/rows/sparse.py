"""Sparse rows: zeros are never stored, so a feature is scaled by its bounds and never centred.

Zero stays zero if bounds are symmetric; those of a sparse feature are made so, by the larger of
their two ends. A step touches the rows that hold one feature, and no others.

The numbers are those of `lattice`, bit for bit; what is never stored are zeros, and the constant.
Nonzeros are kept twice, by column to move a feature and by row to update sums, in 6 bytes each. The
sums Σψk of the current clip are kept from step to step: where a row's rounded, clipped residual
changed, the change times the row is added, in whole numbers, so there is no drift
(docs/theory/sparse.md, Lemma 21).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from dpscreen._core.arrays import (
    Array,
    Indices,
    Integers,
    Loops,
    Mask,
    Narrow,
    Words,
    pool,
    threads,
)
from dpscreen.rows.lattice import (
    MOST_ROWS,
    LatticePoint,
    LatticeRows,
    few,
    keeps_last,
    on_lattice,
)
from dpscreen.rows.loss import SQUARED, Loss, Rounding
from dpscreen.rows.marks import mixed, summed
from dpscreen.rows.score_index import ScoreIndex
from dpscreen.rows.source import Count, PublicUnits, RowSource
from dpscreen.rows.sums import LEVELS, short_factors

kernels = Loops("dpscreen.rows.sparse_kernels")

MOST_COLUMNS = 2**31 - 2
MALFORMED = "the sparse matrix is malformed: it has indices outside its shape."
_BLOCK = 2**18
_TILE = 2**16
# A step that changes more than this part of the nonzeros sums them all up again: by column they are
# read in order, and by several threads, which is faster than adding to sums all over the place.
_HEAVY = 1 / 3
# Below this many nonzeros a second thread costs more than it saves.
_PARALLEL_NONZEROS = 1_000_000


class Packed(NamedTuple):
    """Rows (or columns) one after the other: row i is at starts[i] : starts[i + 1]."""

    starts: Words
    indices: Indices
    values: Narrow

    def at(self, i: int) -> tuple[Indices, Narrow]:
        """Return the indices and the values of one row."""
        where = slice(self.starts[i], self.starts[i + 1])
        return self.indices[where], self.values[where]


class SparseLatticeDesign(LatticeRows):
    """Nonzeros by row and by column, a target, and maybe a constant as the last column.

    `constant_level` is what the constant's cells are, in sums.
    """

    constant_level = LEVELS

    def __init__(
        self,
        rows: Packed,
        target: Array,
        *,
        n_columns: int,
        constant: bool = False,
        loss: Loss = SQUARED,
    ) -> None:
        if len(target) > MOST_ROWS:
            raise ValueError(f"exact sums hold at most {MOST_ROWS} rows.")
        if target.shape != (len(rows.starts) - 1,):
            raise ValueError("there must be one target for every row.")
        self.by_row = rows
        self.by_column = _transposed(rows, n_columns)
        self.target, self.loss, self.last_answers = target, loss, {}
        self.n_rows, self.n_columns, self.constant = len(target), n_columns, constant
        self.n_features = n_columns + constant

    @classmethod
    def from_rows(
        cls,
        X: Any,
        y: Array,
        *,
        bounds: Array | None = None,
        constant: bool = False,
        loss: Loss = SQUARED,
    ) -> SparseLatticeDesign:
        """Put a scipy matrix on the lattice: values in [−1, 1], or in ±bounds[j] in column j."""
        rows = _packed(without_duplicates(X), bounds)
        target = np.asarray(y, dtype=np.float64)
        return cls(rows, target, n_columns=int(X.shape[1]), constant=constant, loss=loss)

    def start(self, scale: float, grain: int = 1) -> SparsePoint:
        return SparsePoint(self, scale, grain=grain)

    def move(self, fit: Integers, features: Integers, amounts: Integers) -> None:
        for feature, amount in zip(features.tolist(), amounts.tolist(), strict=True):
            if feature == self.n_columns and self.constant:
                fit += amount * LEVELS
            else:
                kernels.add_sparse_column(fit, *self.by_column.at(feature), amount)

    def column_squares(self) -> Integers:
        squares = np.full(self.n_features, self.n_rows * LEVELS**2, dtype=np.int64)
        kernels.sparse_squares(
            self.by_column.starts, self.by_column.values, squares[: self.n_columns]
        )
        return squares

    def sums(self, levels: Narrow) -> Integers:
        out = np.empty(self.n_features, dtype=np.int64)
        self.feature_sums(levels, out[: self.n_columns])
        out[self.n_columns :] = self.constant_level * int(levels.sum(dtype=np.int64))
        return out

    def feature_sums(self, levels: Narrow, out: Integers) -> None:
        """Fill `out` with Σ_i levels_i k_ij for every column but the constant."""
        starts, rows, values = self.by_column
        if rows.size < _PARALLEL_NONZEROS:
            kernels.sparse_column_sums(starts, rows, values, levels, out, 0, out.size)
            return
        # Edges between threads where the nonzeros are halved, not the columns.
        parts = np.linspace(0, rows.size, 4 * threads() + 1).astype(np.uint64)
        edges = np.searchsorted(starts, parts)
        edges[0], edges[-1] = 0, out.size
        jobs = [
            pool().submit(kernels.sparse_column_sums, starts, rows, values, levels, out, *part)
            for part in pairwise(edges)
        ]
        for job in jobs:
            job.result()

    @keeps_last
    def _capped(self, cell_clip: int) -> SparseLatticeDesign:
        starts, indices, values = self.by_row
        rows = Packed(starts, indices, np.clip(values, np.int16(-cell_clip), np.int16(cell_clip)))
        design = self._with(rows, constant=self.constant)
        design.constant_level = cell_clip
        return design

    @keeps_last
    def only(self, chosen: Integers) -> SparseLatticeDesign:
        cells = [self.by_column.at(feature) for feature in chosen.tolist()]
        ends = np.cumsum([rows.size for rows, _ in cells])
        columns = Packed(
            np.append(0, ends).astype(np.uint64),
            np.concatenate([rows for rows, _ in cells]),
            np.concatenate([values for _, values in cells]),
        )
        rows = _transposed(columns, self.n_rows)
        return SparseLatticeDesign(rows, self.target, n_columns=len(chosen), loss=self.loss)

    @keeps_last
    def shortened(self, n_features: int, row_norm: float) -> SparseLatticeDesign:
        """Return all features of all rows, clipped in norm."""
        if n_features != self.n_columns:
            raise ValueError("sparse rows are measured over all their features.")
        squares = np.empty(self.n_rows, dtype=np.int64)
        kernels.sparse_squares(self.by_row.starts, self.by_row.values, squares)
        factors = short_factors(squares, row_norm)
        starts, indices, values = self.by_row
        lengths = np.diff(starts).astype(np.int64)
        shrunk = np.trunc(values * np.repeat(factors, lengths)).astype(np.int16)
        return self._with(Packed(starts, indices, shrunk), constant=False)

    def _with(self, rows: Packed, *, constant: bool) -> SparseLatticeDesign:
        return SparseLatticeDesign(
            rows, self.target, n_columns=self.n_columns, constant=constant, loss=self.loss
        )

    def dense_columns(self, chosen: Integers) -> Narrow:
        out = np.zeros((len(chosen), self.n_rows), dtype=np.int16)
        for place, feature in enumerate(chosen.tolist()):
            if feature == self.n_columns and self.constant:
                out[place] = LEVELS
            else:
                rows, values = self.by_column.at(feature)
                out[place, rows] = values
        return out


class SparsePoint(LatticePoint):
    """A lattice point that keeps the sums of one clip from step to step."""

    design: SparseLatticeDesign

    def __init__(self, design: SparseLatticeDesign, scale: float, *, grain: int = 1) -> None:
        super().__init__(design, scale, grain=grain)
        self._kept: KeptSums | None = None

    def _moved(self, features: Integers, grains: Integers) -> None:
        super()._moved(features, grains)
        if self._kept is not None:
            self._kept.moved.extend(features.tolist())

    def signed_scores(
        self, clip: float, allowed: Integers, cell_clip: int = LEVELS
    ) -> Integers | ScoreIndex:
        """Return the sums of the allowed candidates, counted by class if they are all features.

        Candidates come in order, the constant last. Counted sums belong to the point: the next move
        changes them.
        """
        n_columns = self.design.n_columns
        has_constant = len(allowed) > 0 and allowed[-1] == n_columns
        features = allowed[: len(allowed) - has_constant]
        if few(features, n_columns):
            kept = self._current(clip, cell_clip, features)
            scores = kept.sums.copy()
        else:
            kept = self._current(clip, cell_clip)
            if len(features) == len(allowed) == n_columns:
                return kept.index
            scores = kept.sums[features]
        if not has_constant:
            return scores
        total = int(kept.levels.sum(dtype=np.int64))
        return np.append(scores, kept.whole.constant_level * total)

    def _current(self, clip: float, cell_clip: int, features: Integers | None = None) -> KeptSums:
        """Return the sums at this clip, from those that are kept if the rows allow it."""
        rounding, whole = self._rounding(clip), self.design.capped(cell_clip)
        design = whole if features is None else whole.only(features)
        if self._kept is None or self._kept.design is not design:
            self._kept = KeptSums(design, whole)
        self._kept.renew(self._fit, rounding)
        return self._kept


class KeptSums:
    """Levels ψ of all rows and the sums Σψk, at one clip and scale, and what moved since.

    The sums are over the columns of `design`, which may be some of those of `whole`; any column may
    move.
    """

    def __init__(self, design: SparseLatticeDesign, whole: SparseLatticeDesign) -> None:
        self.design, self.whole = design, whole
        self.levels = np.zeros(design.n_rows, dtype=np.int16)
        self.sums = np.zeros(design.n_columns, dtype=np.int64)
        self.index = ScoreIndex(self.sums)
        self.moved: list[int] = []
        self._rounding: Rounding | None = None
        self._changed = np.empty(design.n_rows, dtype=np.uint32)
        self._changes = np.empty(design.n_rows, dtype=np.int32)

    def renew(self, fit: Integers, rounding: Rounding) -> None:
        """Bring levels and sums up to date: by rows that moved, or all if the clip is another."""
        if rounding != self._rounding or self.whole.n_columns in self.moved:
            self.design.loss.levels(fit, self.design.target, rounding, self.levels)
            self._rounding = rounding
            self._sum_up()
        else:
            for feature in dict.fromkeys(self.moved):
                self._update(feature, fit, rounding)
        self.moved.clear()

    def _sum_up(self) -> None:
        self.design.feature_sums(self.levels, self.sums)
        self.index.forget()

    def _update(self, feature: int, fit: Integers, rounding: Rounding) -> None:
        design, index = self.design, self.index
        rows, _ = self.whole.by_column.at(feature)
        new = np.empty(rows.size, dtype=np.int16)
        design.loss.levels(fit, design.target, rounding, new, rows=rows)
        count = kernels.changed_levels(rows, new, self.levels, self._changed, self._changes)
        changed, changes = self._changed[:count], self._changes[:count]
        starts, indices, _ = design.by_row
        if (starts[changed + 1] - starts[changed]).sum() > _HEAVY * indices.size:
            self._sum_up()
        elif index.live:
            kernels.update_sums_and_classes(
                changed, changes, *design.by_row, self.sums, *index.kept_up_to_date
            )
        else:
            kernels.update_sums(changed, changes, *design.by_row, self.sums)


def without_duplicates(X: Any) -> Any:
    """Return the matrix by rows, duplicates added up; one that is so already is not copied."""
    if X.format == "csc":
        _increases(X, X.shape[0])  # or converting it might read where it must not
    if X.format == "coo":
        for places, size in zip(X.coords, X.shape, strict=True):
            if len(places) and not 0 <= int(places.min()) <= int(places.max()) < size:
                raise ValueError(MALFORMED)
    rows = X.tocsr()
    if not _increases(rows, X.shape[1]):
        rows = rows.copy() if rows is X else rows
        rows.has_sorted_indices = rows.has_canonical_format = False
        rows.sum_duplicates()
    return rows


def _increases(X: Any, n_indices: int) -> bool:
    """Whether the indices of every row increase, or refuse those that lie outside the matrix.

    The matrix may say so itself, but a cell that is there twice would count twice: it is looked at.
    """
    found = kernels.order_of(X.indptr, X.indices, min(len(X.indices), len(X.data)), n_indices)
    if found == kernels.OUTSIDE:
        raise ValueError(MALFORMED)
    return bool(found == kernels.INCREASING)


def _packed(X: Any, bounds: Array | None) -> Packed:
    """Return the rows on the lattice, without zeros."""
    if X.shape[1] > MOST_COLUMNS:
        raise ValueError(f"a sparse design has at most {MOST_COLUMNS} columns.")
    n_nonzero = int(X.indptr[-1])
    starts = np.zeros(X.shape[0] + 1, dtype=np.uint64)
    indices = np.empty(n_nonzero, dtype=np.uint32)
    values = np.empty(n_nonzero, dtype=np.int16)
    used = first = 0
    while first < X.shape[0]:  # about 2^18 nonzeros at a time
        last = int(np.searchsorted(X.indptr, int(X.indptr[first]) + _BLOCK, side="right")) - 1
        last = min(max(last, first + 1), X.shape[0])
        where = slice(int(X.indptr[first]), int(X.indptr[last]))
        columns, cells = X.indices[where].astype(np.uint32), X.data[where].astype(np.float64)
        if bounds is not None:
            bound = bounds[columns]
            cells = np.clip(cells, -bound, bound) / bound
        ends = X.indptr[first + 1 : last + 1].astype(np.int64) - where.start
        out_ends = starts[first + 1 : last + 1]
        used = kernels.pack_rows(ends, columns, on_lattice(cells), used, indices, values, out_ends)
        first = last
    return Packed(starts, indices[:used], values[:used])


def _transposed(rows: Packed, n_columns: int) -> Packed:
    columns = Packed(
        np.zeros(n_columns + 1, dtype=np.uint64),
        np.empty_like(rows.indices),
        np.empty_like(rows.values),
    )
    kernels.transpose(*rows, *columns, _TILE)
    return columns


# --- as private rows ------------------------------------------------------------------------------


class SparseRows(RowSource):
    """A scipy matrix in memory, and a target."""

    keeps_zero: ClassVar[bool] = True
    disclosed: ClassVar[tuple[str, ...]] = (
        "that the rows are sparse: each feature is clipped to plus and minus the larger end of "
        "its bounds, and not centred",
    )

    def __init__(self, X: Any, y: Array) -> None:
        self.X, self.y = X, y
        self.n_rows, self.n_features = len(y), int(X.shape[1])

    def usable_bounds(self, bounds: Array) -> Array:
        """Return bounds ± the larger end."""
        half_widths = np.abs(bounds).max(axis=1)
        return np.stack((-half_widths, half_widths), axis=1)

    def target_total(self, count: Count, *args: Any) -> Integers:
        return count(self.y, *args)

    def feature_total(self, count: Count, *args: Any) -> Integers:
        """Refuse: the cells of sparse rows are never looked at one by one."""
        raise NotImplementedError("sparse rows keep their public bounds.")

    def content(self, *keys: int) -> Integers:
        cells = self.X.tocoo()
        kept = cells.data != 0
        places = mixed(cells.col[kept], *keys)
        return summed(mixed(cells.data[kept], *keys) ^ places)[None]

    def lattice(self, units: PublicUnits) -> SparseLatticeDesign:
        if units.feature_centres.any():
            raise ValueError("the bounds of sparse features must be symmetric.")
        return SparseLatticeDesign.from_rows(
            self.X,
            units.centred_target(self.y),
            bounds=units.feature_half_widths,
            constant=units.constant,
            loss=units.loss,
        )

    def where(self, chosen: Mask) -> SparseRows:
        return SparseRows(self.X.tocsr()[chosen], self.y[chosen])


def clipped_product(rows: Any, bounds: Array, coef: Array) -> Array:
    """Return the rows, every cell clipped to the bounds of its column, times the coefficients.

    What a zero is clipped to is added for whole rows, and taken off where a cell is stored.
    """
    low, high = bounds.T
    zeros = np.clip(0.0, low, high)
    clipped = np.clip(rows.data, low[rows.indices], high[rows.indices]) - zeros[rows.indices]
    matrix = sparse.csr_array((clipped, rows.indices, rows.indptr), shape=rows.shape)
    return np.asarray(matrix @ coef + zeros @ coef, dtype=np.float64)
