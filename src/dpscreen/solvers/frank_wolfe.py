"""One Frank-Wolfe loop over the L1 ball, for the non-private, the published and the proven method.

The loop knows nothing of privacy: who chooses the vertex, and who screens, are arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from dpscreen._core.arrays import Array, Integers, Mask
from dpscreen.privacy import (
    ZCDP,
    Accountant,
    Budget,
    LaplaceNoisyMax,
    Noise,
    SignedNoisyMax,
    sensitivity,
)
from dpscreen.privacy.budget import advanced_share
from dpscreen.rows.design import Point, Position
from dpscreen.rows.lattice import UNITS, ExactPoint

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


def steepest_vertex(point: Point, active: Mask | None = None) -> Vertex:
    """Choose without noise the best vertex of active features: against the largest gradient."""
    gradient = point.gradient()
    sizes = np.abs(gradient)
    feature = int(np.argmax(sizes if active is None else np.where(active, sizes, -1.0)))
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


STEP = "Frank-Wolfe step"


def starting_point(kind: str, n_features: int, *, radius: float, noise: Noise) -> Array:
    """Return w⁽⁰⁾, zero or uniform in the ball. It looks at no data, so it costs nothing."""
    if kind == "zero":
        return zero_start(n_features)
    return random_start(noise.exponential(n_features + 1), noise.signs(n_features), radius=radius)


def published_choice(
    accountant: Accountant, budget: Budget, *, radius: float, n_iter: int, n_rows: int
) -> Choose[Point]:
    """Choose a vertex by report-noisy-max on ⟨v, g⟩, with the paper's noise."""
    mechanism = published_step_mechanism(budget, radius=radius, n_iter=n_iter, n_rows=n_rows)

    def choose(point: Point) -> Vertex:
        scores = vertex_scores(point.gradient())
        scores *= radius / n_rows
        return vertex_at(accountant.release(mechanism, scores, purpose=STEP), scores.size // 2)

    return choose


def published_step_mechanism(
    budget: Budget, *, radius: float, n_iter: int, n_rows: int
) -> LaplaceNoisyMax:
    """Return the noise of a published DP-FW step: Lap(λ√(8T ln(1/δ))/(nε))."""
    return LaplaceNoisyMax.as_published(
        advanced_share(budget, count=n_iter),
        sensitivity=sensitivity.published_vertex_score(radius=radius, n_rows=n_rows),
    )


def proven_choice(accountant: Accountant, cost: ZCDP, *, clip: float) -> Choose[ExactPoint]:
    """Choose a vertex by noisy max on exact clipped sums: c²/(2β²)-zCDP.

    (docs/theory/mechanisms.md, Lemmas 1 and 2; docs/theory/exactness.md, Lemma 8)
    """
    mechanism = step_mechanism(cost, clip=clip)

    def choose(point: ExactPoint) -> Vertex:
        feature, sign = accountant.release(mechanism, point.clipped_sums(clip), purpose=STEP)
        return Vertex(feature, -sign)  # a step against the gradient

    return choose


def step_mechanism(cost: ZCDP, *, clip: float) -> SignedNoisyMax:
    """Return the selection of a proven step, on clipped sums in whole numbers of clip/2^28."""
    return SignedNoisyMax.of_cost(
        cost, sensitivity=sensitivity.clipped_gradient(clip=clip), unit=clip / UNITS
    )
