"""Where privacy meets regression: private choices and private screening, as steps of the loop.

Each function fixes its noise from public numbers before any row is read, and returns a step that
releases through the accountant. `published_*` follow the paper to the letter; `proven_*` cite the
lemma that their cost rests on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from dpscreen.privacy import (
    ZCDP,
    Accountant,
    Budget,
    GaussianVector,
    GumbelNoisyMax,
    LaplaceNoisyMax,
    Noise,
    ThresholdedNoisyMin,
    composition,
    sensitivity,
)
from dpscreen.regression import (
    Design,
    Point,
    Vertex,
    least_sensitive_kappa,
    published_scores,
    random_start,
    relaxed_scores,
    vertex_at,
    vertex_scores,
    zero_start,
)
from dpscreen.regression.frank_wolfe import Array, Choose, Screen

STEP = "Frank-Wolfe step"
SCREENING = "screening"


def starting_point(kind: str, n_features: int, *, radius: float, noise: Noise) -> Array:
    """Return w⁽⁰⁾, zero or uniform in the ball. It looks at no data, so it costs nothing."""
    if kind == "zero":
        return zero_start(n_features)
    return random_start(noise.exponential(n_features + 1), noise.signs(n_features), radius=radius)


def published_choice(
    accountant: Accountant, budget: Budget, *, radius: float, n_iter: int, n_rows: int
) -> Choose:
    """Choose a vertex by report-noisy-max on ⟨v, g⟩ with Lap(λ√(8T ln(1/δ))/(nε)) (MATH §1)."""
    mechanism = LaplaceNoisyMax.as_published(
        composition.advanced_share(budget, count=n_iter),
        sensitivity=sensitivity.published_vertex_score(radius=radius, n_rows=n_rows),
    )

    def choose(point: Point) -> Vertex:
        scores = vertex_scores(point.gradient())
        scores *= radius / n_rows
        return vertex_at(accountant.release(mechanism, scores, purpose=STEP), scores.size // 2)

    return choose


def proven_choice(
    accountant: Accountant, cost: ZCDP, *, clip: float, residual_bound: float
) -> Choose:
    """Choose a vertex by Gumbel noisy max on clipped sums: c²/(2β²)-zCDP (Lemmas 1 and 2)."""
    clip = min(clip, residual_bound)
    mechanism = GumbelNoisyMax.of_cost(cost, sensitivity=sensitivity.clipped_gradient(clip=clip))
    binding = clip if clip < residual_bound else None

    def choose(point: Point) -> Vertex:
        scores = vertex_scores(point.gradient(clip=binding))
        return vertex_at(accountant.release(mechanism, scores, purpose=STEP), scores.size // 2)

    return choose


def published_rnm(
    accountant: Accountant, design: Design, budget: Budget, *, radius: float, n_iter: int
) -> Screen:
    """Zero the feature with the smallest noisy score of Eq. 1 when it is negative (Algorithm 2)."""
    bound = sensitivity.published_screening_score(radius=radius, n_rows=design.n_rows)
    share = composition.advanced_share(budget, count=n_iter)
    mechanism = ThresholdedNoisyMin(bound, bound / share)

    def screen(point: Point, _t: int) -> Iterable[int]:
        scores = published_scores(design, point, radius=radius)
        found = accountant.release(mechanism, scores, purpose=SCREENING)
        return () if found is None else (found,)

    return screen


def published_adp(
    accountant: Accountant, design: Design, budget: Budget, *, radius: float, at: frozenset[int]
) -> Screen:
    """Zero every feature whose score of Eq. 1, with Gaussian noise, is negative (Algorithm 1)."""
    bound = sensitivity.published_screening_vector(
        radius=radius, n_rows=design.n_rows, n_features=design.n_features
    )
    share = composition.advanced_share_approximate(budget, count=len(at))
    mechanism = GaussianVector(bound, composition.gaussian_sigma(share, sensitivity=bound))

    def screen(point: Point, t: int) -> Iterable[int]:
        if t not in at:
            return ()
        scores = published_scores(design, point, radius=radius)
        return _negative(accountant.release(mechanism, scores, purpose=SCREENING))

    return screen


def proven_rnm(
    accountant: Accountant, design: Design, cost: ZCDP, *, radius: float, target_bound: float
) -> Screen:
    """Select one feature, or "screen nothing", by the relaxed rule: Δ²/(8β²)-zCDP (Lemma 6).

    "Screen nothing" scores 0 plus a public head start of β ln d: against d flat scores it then wins
    every other time instead of once in d + 1.
    """
    kappa = _kappa(radius, target_bound)
    bound = sensitivity.relaxed_screening_score(
        radius=radius, target_bound=target_bound, kappa=kappa
    )
    mechanism = GumbelNoisyMax.of_cost(cost, sensitivity=bound, score_range=bound)
    nothing = mechanism.scale * math.log(design.n_features)

    def screen(point: Point, _t: int) -> Iterable[int]:
        scores = -relaxed_scores(design, point, radius=radius, kappa=kappa)
        candidates = np.append(scores, nothing)
        found = accountant.release(mechanism, candidates, purpose=SCREENING)
        return (found,) if found < scores.size else ()

    return screen


def proven_adp(
    accountant: Accountant,
    design: Design,
    cost: ZCDP,
    *,
    radius: float,
    target_bound: float,
    at: frozenset[int],
) -> Screen:
    """Zero every feature whose relaxed score, with Gaussian noise, is negative (Lemmas 3 and 6)."""
    kappa = _kappa(radius, target_bound)
    bound = sensitivity.relaxed_screening_vector(
        radius=radius, target_bound=target_bound, kappa=kappa, n_features=design.n_features
    )
    mechanism = GaussianVector.of_cost(cost, sensitivity=bound)

    def screen(point: Point, t: int) -> Iterable[int]:
        if t not in at:
            return ()
        scores = relaxed_scores(design, point, radius=radius, kappa=kappa)
        return _negative(accountant.release(mechanism, scores, purpose=SCREENING))

    return screen


def _kappa(radius: float, target_bound: float) -> float:
    residual = sensitivity.residual_bound(radius=radius, target_bound=target_bound)
    return least_sensitive_kappa(radius=radius, residual_bound=residual)


def _negative(noisy: Array) -> list[int]:
    found: list[int] = np.flatnonzero(noisy < 0).tolist()
    return found
