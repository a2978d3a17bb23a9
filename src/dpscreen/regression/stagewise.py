"""Forward stagewise regression: one small signed step along one feature at a time.

No other weight shrinks, so a step touches one column. How far the steps go is fixed beforehand, in
whole numbers of a grain, so that sums stay exact; who chooses the feature is an argument. The loop
knows nothing of privacy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpscreen._core.arrays import Array, Integers
from dpscreen.regression.frank_wolfe import Vertex
from dpscreen.regression.lattice import ExactPoint

GRAINS = 2**10
"""Into how many grains the last, smallest step is divided: the intercept moves by grains."""

Choose = Callable[[int, ExactPoint], Vertex]
"""Looks at a point before step t = 0, 1, … and names the feature and the sign of the step."""


@dataclass(frozen=True, eq=False)
class Path:
    """What was chosen at each step, and how far the step went, in units of the mapped features."""

    features: Integers
    signs: Integers
    steps: Array

    def __len__(self) -> int:
        return len(self.steps)

    def weights(self, n_features: int) -> Array:
        """Return the sum of all steps."""
        moves = self.signs * self.steps
        return np.bincount(self.features, moves, minlength=n_features).astype(np.float64)

    def trace(self, n_features: int) -> Array:
        """Return the weights after 0, 1, … steps, one row each."""
        moves = np.zeros((len(self) + 1, n_features))
        moves[np.arange(1, len(self) + 1), self.features] = self.signs * self.steps
        return np.cumsum(moves, axis=0)


def decaying_grains(n_iter: int) -> Integers:
    """Return T, T − 1, …, 1 in grains: steps that decay like 1 − t/T."""
    return GRAINS * np.arange(n_iter, 0, -1, dtype=np.int64)


def grain_size(*, first_step: float, n_iter: int) -> float:
    """Return the grain with which the first of `decaying_grains` is `first_step` long."""
    return first_step / (GRAINS * n_iter)


def stagewise(point: ExactPoint, grains: Integers, *, choose: Choose) -> Path:
    """Take every step from the point, in place, and return what was done."""
    chosen = np.empty((2, len(grains)), dtype=np.int64)
    for t, grain in enumerate(grains):
        vertex = choose(t, point)
        point.add(vertex.feature, vertex.sign * int(grain))
        chosen[:, t] = vertex
    return Path(chosen[0], chosen[1], (point.scale * grains).astype(np.float64))
