"""A design: rows, accessed only through the sums that the algorithms need.

A `Point` is a place w in weight space together with what the data says there. Algorithms move a
point one coordinate at a time and ask it for sums; how rows are held (whole, or folded into a Gram
matrix; later sparse, streamed or spread over a cluster) is the design's own business.

A point stores unscaled weights v and a scale: w = scale · v. Frank-Wolfe shrinks all weights at
every step; kept in the scale, a step still touches one column only (`frank_wolfe`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol

import numpy as np

from dpscreen._core.arrays import Array


class Position(Protocol):
    """Weights w = scale · v that can be moved one coordinate at a time."""

    scale: float

    @property
    def weights(self) -> Array:
        """Return w, as a new array."""

    def add(self, feature: int, amount: int, /) -> None:
        """Add `amount` to the unscaled weight v of one feature."""

    def zero(self, feature: int, /) -> None:
        """Set the weight of one feature to zero."""


class Point(ABC):
    """A position with unscaled weights in float64, and the sums of the data there."""

    def __init__(self, unscaled: Array, scale: float) -> None:
        self._v, self.scale = unscaled, scale

    @property
    def weights(self) -> Array:
        """Return w."""
        return self.scale * self._v

    def zero(self, index: int) -> None:
        """Set one weight to zero."""
        if self._v[index]:
            self.add(index, -self._v[index])

    @abstractmethod
    def add(self, index: int, amount: float) -> None:
        """Add to one unscaled weight."""

    @abstractmethod
    def gradient(self) -> Array:
        """Return S = Σ r_i x_i with r = Xw − y."""

    @abstractmethod
    def fitted_norm(self) -> float:
        """Return ‖Xw‖₂."""

    @abstractmethod
    def squared_error(self) -> float:
        """Return ‖Xw − y‖²."""


class DenseDesign:
    """Rows in memory, stored by columns, because a step moves along one column."""

    def __init__(self, X: Array, y: Array) -> None:
        self.X = np.asfortranarray(X, dtype=np.float64)
        self.y = np.asarray(y, dtype=np.float64)
        self.n_rows, self.n_features = self.X.shape
        self.column_norms = np.sqrt(np.einsum("ij,ij->j", self.X, self.X))

    def at(self, weights: Array, *, scale: float = 1.0) -> DensePoint:
        """Return the point w = `weights`, stored with the given scale."""
        return DensePoint(self, np.asarray(weights, dtype=np.float64) / scale, scale)


class DensePoint(Point):
    """A point that keeps Xv, one number a row: a move costs n, a gradient one pass over X."""

    def __init__(self, design: DenseDesign, unscaled: Array, scale: float) -> None:
        super().__init__(unscaled, scale)
        self.design = design
        # From the zero start, which private methods use, no pass over the data is needed.
        self._fit = design.X @ unscaled if unscaled.any() else np.zeros(design.n_rows)
        self._row = np.empty(design.n_rows)

    def add(self, index: int, amount: float) -> None:
        self._v[index] += amount
        np.multiply(self.design.X[:, index], amount, out=self._row)
        self._fit += self._row

    def gradient(self) -> Array:
        return np.asarray(self.design.X.T @ self._residual(), dtype=np.float64)

    def fitted_norm(self) -> float:
        return abs(self.scale) * float(np.linalg.norm(self._fit))

    def squared_error(self) -> float:
        residual = self._residual()
        return float(residual @ residual)

    def _residual(self) -> Array:
        np.multiply(self._fit, self.scale, out=self._row)
        self._row -= self.design.y
        return self._row


class GramDesign:
    """Rows folded into XᵀX, Xᵀy and yᵀy once; from then on nothing costs n."""

    def __init__(self, gram: Array, moment: Array, target_square: float, *, n_rows: int) -> None:
        self.gram = gram
        self.moment = moment
        self.target_square = target_square
        self.n_rows = n_rows
        self.n_features = moment.size
        self.column_norms = np.sqrt(np.diagonal(gram))

    @classmethod
    def from_rows(cls, X: Array, y: Array) -> GramDesign:
        """Fold rows that are in memory."""
        return cls(X.T @ X, X.T @ y, float(y @ y), n_rows=X.shape[0])

    def at(self, weights: Array, *, scale: float = 1.0) -> GramPoint:
        """Return the point w = `weights`, stored with the given scale."""
        return GramPoint(self, np.asarray(weights, dtype=np.float64) / scale, scale)


class GramPoint(Point):
    """A point that keeps XᵀXv: a move and a gradient both cost d, whatever the number of rows."""

    def __init__(self, design: GramDesign, unscaled: Array, scale: float) -> None:
        super().__init__(unscaled, scale)
        self.design = design
        self._gram_v = design.gram @ unscaled if unscaled.any() else np.zeros(design.n_features)

    def add(self, index: int, amount: float) -> None:
        self._v[index] += amount
        self._gram_v += amount * self.design.gram[index]

    def gradient(self) -> Array:
        return self.scale * self._gram_v - self.design.moment

    def fitted_norm(self) -> float:
        """Return ‖Xw‖₂, from wᵀXᵀXw; rounding may leave a tiny negative square, which is 0."""
        return abs(self.scale) * float(np.sqrt(max(0.0, float(self._v @ self._gram_v))))

    def squared_error(self) -> float:
        """Return ‖Xw − y‖² = wᵀXᵀXw − 2wᵀXᵀy + yᵀy."""
        quadratic = self.scale**2 * (self._v @ self._gram_v)
        linear = self.scale * (self._v @ self.design.moment)
        return max(0.0, float(quadratic - 2 * linear) + self.design.target_square)


Design = DenseDesign | GramDesign
"""Rows (x_i, y_i), accessed through sums only."""


def gram_pays(n_rows: int, n_features: int, *, n_iter: int) -> bool:
    """Whether folding rows into XᵀX is worth it: less memory than the rows, and less work.

    The fold is d passes' worth of arithmetic but runs at the speed of matrix products, which was
    measured at about 20 times that of one pass.
    """
    return 2 * n_features <= n_rows and n_features <= 20 * n_iter


def choose_design(X: Array, y: Array, *, n_iter: int) -> Design:
    """Return the cheaper form for `n_iter` steps."""
    if gram_pays(*X.shape, n_iter=n_iter):
        return GramDesign.from_rows(X, y)
    return DenseDesign(X, y)
