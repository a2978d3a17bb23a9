"""A design that holds rows and Gram matrix side by side and asks whichever is cheaper.

Clipping needs single rows; everything else costs d instead of n·d from the Gram matrix.
"""

from __future__ import annotations

import numpy as np

from dpscreen.regression import DenseDesign, GramDesign, Point
from dpscreen.regression.design import Array


class PairedDesign:
    """The same rows twice: whole, and folded into their Gram matrix."""

    def __init__(self, rows: DenseDesign, folded: GramDesign) -> None:
        self.rows = rows
        self.folded = folded
        self.n_rows, self.n_features = rows.n_rows, rows.n_features
        self.column_norms = folded.column_norms

    def at(self, weights: Array, *, scale: float = 1.0) -> PairedPoint:
        """Return the point w = `weights`, stored with the given scale."""
        weights = np.asarray(weights, dtype=np.float64)
        return PairedPoint(self.rows.at(weights, scale=scale), self.folded.at(weights, scale=scale))


class PairedPoint:
    """One point, moved in both designs at once."""

    def __init__(self, whole: Point, folded: Point) -> None:
        self._whole = whole
        self._folded = folded

    @property
    def scale(self) -> float:
        """The scale of w = scale · v."""
        return self._folded.scale

    @scale.setter
    def scale(self, value: float) -> None:
        self._whole.scale = self._folded.scale = value

    @property
    def weights(self) -> Array:
        """Return w."""
        return self._folded.weights

    def add(self, index: int, amount: float) -> None:
        """Add to one unscaled weight."""
        self._whole.add(index, amount)
        self._folded.add(index, amount)

    def zero(self, index: int) -> None:
        """Set one weight to zero."""
        self._whole.zero(index)
        self._folded.zero(index)

    def gradient(self, *, clip: float | None = None) -> Array:
        """Return Σ ψ_c(r_i) x_i: from the rows when clipped, else from the Gram matrix."""
        return self._folded.gradient() if clip is None else self._whole.gradient(clip=clip)

    def fitted_norm(self) -> float:
        """Return ‖Xw‖₂."""
        return self._folded.fitted_norm()

    def squared_error(self) -> float:
        """Return ‖Xw − y‖²."""
        return self._folded.squared_error()
