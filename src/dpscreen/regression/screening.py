"""Screening rules: scores whose being negative is meant to prove that an optimal weight is zero.

S = Xᵀ(Xw − y), and Γ = wᵀS + λ‖S‖∞ is the Wolfe gap, both in sums. For f(u) = ‖u − y‖²/(2n) the
paper's Eq. 1 has L = μ = 1/n, so that n times its score is |S_i| + wᵀS + (‖x_(i)‖ + ‖Xw‖)√Γ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen.regression.design import Design, Point
from dpscreen.regression.frank_wolfe import Vertex, wolfe_gap

Rule = Callable[..., Array]


class _Terms(NamedTuple):
    """What all rules are made of, at one point."""

    size: Array  # |S_i|
    slope: float  # wᵀS
    gap: float  # Γ
    fit: float  # ‖Xw‖₂


def _terms(point: Point, radius: float) -> _Terms:
    gradient = point.gradient()
    size = np.abs(gradient)
    slope = float(point.weights @ gradient)
    return _Terms(size, slope, wolfe_gap(slope, size, radius=radius), point.fitted_norm())


def published_scores(design: Design, point: Point, *, radius: float) -> Array:
    """Return Eq. 1 as printed, in its own units (means over n rows).

    It is stated for the unit ball; for λ > 1 it can screen what the optimum needs (erratum E3).
    """
    scores, slope, gap, fit = _terms(point, radius)
    root = math.sqrt(gap)
    scores += root * design.column_norms
    scores += slope + fit * root
    scores /= design.n_rows
    return scores


def safe_scores(design: Design, point: Point, *, radius: float) -> Array:
    """Return the rule with the radius put right (erratum E3), in means: negative is a proof."""
    size, slope, gap, fit = _terms(point, radius)
    root = math.sqrt(gap)
    scores = radius * (size + root * design.column_norms) + (slope + fit * root)
    return np.asarray(scores / design.n_rows, dtype=np.float64)


class Elimination:
    """Non-private screening at every iteration: what a rule rejects is left out for good."""

    def __init__(self, design: Design, rule: Rule, *, radius: float) -> None:
        self._design = design
        self._rule = rule
        self._radius = radius
        self.active = np.ones(design.n_features, dtype=bool)

    def choose(self, point: Point) -> Vertex | None:
        """Choose the steepest vertex among the features that are left."""
        if not self.active.any():
            return None
        gradient = point.gradient()
        feature = int(np.argmax(np.where(self.active, np.abs(gradient), -1.0)))
        return Vertex(feature, -1 if gradient[feature] > 0 else 1)

    def screen(self, point: Point, _t: int) -> Iterable[int]:
        """Reject the features whose score is negative."""
        scores = self._rule(self._design, point, radius=self._radius)
        rejected = np.flatnonzero(self.active & (scores < -self._rounding(point)))
        self.active[rejected] = False
        return rejected.tolist()

    def _rounding(self, point: Point) -> float:
        """Return how far below 0 a score must be: a needed feature may score 0 at the optimum."""
        largest = float(np.abs(point.gradient()).max())
        return 1e-12 * max(1.0, self._radius) * largest / self._design.n_rows
