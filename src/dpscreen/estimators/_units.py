"""The public map between the user's units and those in which the guarantee is stated.

Each feature is mapped from its bounds onto [−1, 1]; the target is only centred on its bounds, so
that radius, clip and residuals stay in the target's units. Values outside the bounds are clipped,
never refused: a refusal would tell something about the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen.regression import DenseDesign, Design, GramDesign, LatticeDesign
from dpscreen.regression.counting import lattice_columns

_BLOCK_BYTES = 8 << 20


@dataclass(frozen=True)
class PublicUnits:
    """Bounds, and whether a constant candidate stands beside the features."""

    feature_bounds: Array
    target_bounds: Array
    constant: bool

    @property
    def n_candidates(self) -> int:
        """Return the number of weights: one for each feature, and one for the constant if any."""
        return len(self.feature_bounds) + self.constant

    @property
    def target_bound(self) -> float:
        """Return B, the half-width of the target's bounds."""
        return float(self.target_bounds[1] / 2 - self.target_bounds[0] / 2)

    @property
    def target_centre(self) -> float:
        """Return the middle of the target's bounds."""
        return float(self.target_bounds[1] / 2 + self.target_bounds[0] / 2)

    @property
    def feature_centres(self) -> Array:
        """Return the middle of each feature's bounds."""
        return np.asarray(self.feature_bounds[:, 1] / 2 + self.feature_bounds[:, 0] / 2)

    @property
    def feature_halves(self) -> Array:
        """Return the half-width of each feature's bounds."""
        return np.asarray(self.feature_bounds[:, 1] / 2 - self.feature_bounds[:, 0] / 2)

    def float_design(self, X: Array, y: Array, *, gram: bool) -> Design:
        """Return the rows in public units in float64, as a Gram or a dense design."""
        build = self._gram_design if gram else self._dense_design
        return build(X, self.centred_target(y))

    def lattice_design(self, X: Array, y: Array) -> LatticeDesign:
        """Return the rows in public units on the lattice, on which sums are exact."""
        columns = lattice_columns(X, self.feature_bounds, constant=self.constant)
        return LatticeDesign(columns, self.centred_target(y))

    def in_users_units(self, weights: Array) -> tuple[Array, float]:
        """Return coefficients and intercept that apply to the features as the user has them."""
        n_features = len(self.feature_bounds)
        coef = weights[:n_features] / self.feature_halves
        constant = float(weights[n_features]) if self.constant else 0.0
        return coef, self.target_centre + constant - float(coef @ self.feature_centres)

    def _dense_design(self, X: Array, target: Array) -> DenseDesign:
        rows = np.empty((len(X), self.n_candidates), order="F")
        for where, block in self._blocks(X):
            rows[where] = block
        return DenseDesign(rows, target)

    def _gram_design(self, X: Array, target: Array) -> GramDesign:
        gram = np.zeros((self.n_candidates, self.n_candidates))
        moment = np.zeros(self.n_candidates)
        for where, block in self._blocks(X):
            gram += block.T @ block
            moment += block.T @ target[where]
        return GramDesign(gram, moment, float(target @ target), n_rows=len(X))

    def _blocks(self, X: Array) -> Iterator[tuple[slice, Array]]:
        """Yield scaled rows a few at a time, so that no second copy of all rows is needed."""
        size = max(1, _BLOCK_BYTES // (8 * self.n_candidates))
        for first in range(0, len(X), size):
            where = slice(first, min(first + size, len(X)))
            yield where, self._scaled(X[where])

    def _scaled(self, rows: Array) -> Array:
        n_features = len(self.feature_bounds)
        out = np.ones((len(rows), self.n_candidates))
        features = out[:, :n_features]
        # The first clip keeps the difference finite, the last removes what rounding adds.
        np.clip(rows, self.feature_bounds[:, 0], self.feature_bounds[:, 1], out=features)
        features -= self.feature_centres
        features /= self.feature_halves
        np.clip(features, -1.0, 1.0, out=features)
        return out

    def centred_target(self, y: Array) -> Array:
        """Return the target, clipped to its bounds and centred on them."""
        low, high = self.target_bounds
        centred = np.clip(y, low, high) - self.target_centre
        return np.clip(centred, -self.target_bound, self.target_bound)
