"""One Frank-Wolfe loop over the L1 ball, for the non-private, the published and the proven method.

The loop knows nothing of privacy: who chooses the vertex, and who screens, are arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from dpscreen._core.arrays import Array, Integers
from dpscreen.regression.design import Point, Position

P = TypeVar("P", bound=Position)
Sums = TypeVar("Sums", Array, Integers)
Place = TypeVar("Place", bound=Position, covariant=True)


class Vertex(NamedTuple):
    """The vertex sign · λ · e_feature of the L1 ball of radius λ."""

    feature: int
    sign: int


Choose = Callable[[P], Vertex | None]
"""Looks at a point and names the vertex to move to; None: nothing is left to move to."""

Screen = Callable[[P, int], Iterable[int]]
"""Looks at a point after step t and names the features to set to zero."""

Watch = Callable[[int, P], None]
"""Sees each iterate, for studies on public data. It must never be given private rows."""


class Ground(Protocol[Place]):
    """What can be moved about on: a design of any kind."""

    def at(self, weights: Array, *, scale: float) -> Place:
        """Return the point w = `weights`, stored with the given scale."""


def frank_wolfe(
    design: Ground[P],
    start: Array,
    *,
    radius: float,
    n_iter: int,
    choose: Choose[P],
    screen: Screen[P] | None = None,
    watch: Watch[P] | None = None,
) -> Array:
    """Run w ← (1 − γ)w + γ·vertex with γ = 2/(t + 2), t = 1..n_iter, and return the last w.

    Unrolled, step t has weight (t + 1)·α_t in every later iterate, with α_t = 2λ/((t + 1)(t + 2)).
    So w = α_t·v, where v changes in the chosen coordinate alone, by ±(t + 1): a step costs one
    column, and from a zero start v holds integers.
    """
    point = design.at(start, scale=radius)
    for t in range(1, n_iter + 1):
        vertex = choose(point)
        if vertex is not None:
            point.add(vertex.feature, vertex.sign * (t + 1))
        point.scale = 2 * radius / ((t + 1) * (t + 2))
        for feature in screen(point, t) if screen else ():
            point.zero(feature)
        if watch:
            watch(t, point)
    return point.weights


def vertex_scores(gradient: Sums) -> Sums:
    """Return −⟨v, S⟩/λ for the 2d vertices: +e_1 … +e_d, then −e_1 … −e_d. The largest is best."""
    return np.concatenate((-gradient, gradient), axis=-1)


def vertex_at(position: int, n_features: int) -> Vertex:
    """Return the vertex whose score `vertex_scores` puts at this position."""
    return Vertex(position % n_features, 1 if position < n_features else -1)


def steepest_vertex(point: Point) -> Vertex:
    """Choose without noise: the vertex that the gradient points away from most."""
    gradient = point.gradient()
    feature = int(np.argmax(np.abs(gradient)))
    return Vertex(feature, -1 if gradient[feature] > 0 else 1)


def wolfe_gap(slope: float, gradient: Array, *, radius: float) -> float:
    """Return wᵀS + λ‖S‖∞ ≥ 0 from `slope` = wᵀS and S, or |S|.

    It bounds how far ½‖Xw − y‖² is above its least value on the ball.
    """
    return max(0.0, slope + radius * max(float(gradient.max()), -float(gradient.min())))


def zero_start(n_features: int) -> Array:
    """Return the start w = 0."""
    return np.zeros(n_features)


def random_start(exponentials: Array, signs: Array, *, radius: float) -> Array:
    """Return a uniform point of the L1 ball from d + 1 exponentials and d signs.

    d + 1 exponentials over their sum are uniform on the simplex; leaving one out fills the ball.
    """
    return np.asarray(radius * signs * exponentials[:-1] / exponentials.sum(), dtype=np.float64)
