"""Sparse rows: zeros are never stored, so a feature is scaled by its bounds and never centred.

Zero stays zero if bounds are symmetric; those of a sparse feature are made so, by the larger of
their two ends. Whatever is computed visits the nonzeros alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy import sparse

from dpscreen._core.arrays import Array, Integers, Mask
from dpscreen.rows.source import Count, RowSource
from dpscreen.rows.sparse_lattice import SparseLatticeDesign

if TYPE_CHECKING:
    from dpscreen.rows.source import PublicUnits


@dataclass(frozen=True, eq=False)
class SparseRows(RowSource):
    """A scipy matrix in memory, and a target."""

    X: Any
    y: Array

    keeps_zero: ClassVar[bool] = True

    @property
    def disclosed(self) -> tuple[str, ...]:
        """Return what the form of the rows tells."""
        return (
            "that the rows are sparse: each feature is clipped to plus and minus the larger end of "
            "its bounds, and not centred",
        )

    @property
    def n_features(self) -> int:
        """Return d."""
        return int(self.X.shape[1])

    @property
    def n_rows(self) -> int:
        """Return the number of rows."""
        return len(self.y)

    def usable_bounds(self, bounds: Array) -> Array:
        """Return bounds ± the larger end."""
        half_widths = np.abs(bounds).max(axis=1)
        return np.stack((-half_widths, half_widths), axis=1)

    def target_total(self, count: Count, *args: Any) -> Integers:
        """Return count(y, *args)."""
        return count(self.y, *args)

    def feature_total(self, count: Count, *args: Any) -> Integers:
        """Refuse: the cells of sparse rows are never looked at one by one."""
        raise NotImplementedError("sparse rows keep their public bounds.")

    def lattice(self, units: PublicUnits) -> SparseLatticeDesign:
        """Return the rows in public units on the lattice."""
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
        """Return the chosen rows."""
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
