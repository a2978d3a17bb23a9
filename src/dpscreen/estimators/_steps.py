"""Where privacy meets regression: private choices and private screening, as steps of the loop.

Each function fixes its noise from public numbers before any row is read, and returns a step that
releases through the accountant. `published_*` follow the paper to the letter; `proven_*` cite the
lemma that their cost rests on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen.privacy import (
    ZCDP,
    Accountant,
    Budget,
    DiscreteGaussian,
    GaussianVector,
    LaplaceNoisyMax,
    Noise,
    NoisyMax,
    SignedNoisyMax,
    ThresholdedNoisyMin,
    composition,
    sensitivity,
)
from dpscreen.regression import (
    Design,
    ExactDesign,
    ExactPoint,
    Point,
    RelaxedRule,
    Vertex,
    exact_relaxed_scores,
    published_scores,
    random_start,
    vertex_at,
    vertex_scores,
    zero_start,
)
from dpscreen.regression.frank_wolfe import Choose, Screen
from dpscreen.regression.lattice import UNITS

STEP = "Frank-Wolfe step"
SCREENING = "screening"


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
        composition.advanced_share(budget, count=n_iter),
        sensitivity=sensitivity.published_vertex_score(radius=radius, n_rows=n_rows),
    )


def proven_choice(accountant: Accountant, cost: ZCDP, *, clip: float) -> Choose[ExactPoint]:
    """Choose a vertex by noisy max on exact clipped sums: c²/(2β²)-zCDP (Lemmas 1, 2 and 8)."""
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


def published_rnm(
    accountant: Accountant, design: Design, budget: Budget, *, radius: float, n_iter: int
) -> Screen[Point]:
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
) -> Screen[Point]:
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
    accountant: Accountant, design: ExactDesign, cost: ZCDP, *, rule: RelaxedRule
) -> Screen[ExactPoint]:
    """Select one feature, or "screen nothing", by the relaxed rule: Δ²/(8β²)-zCDP (Lemma 6).

    "Screen nothing" scores 0 plus a public head start of β ln d: against d flat scores it then wins
    every other time instead of once in d + 1.
    """
    unit, bound = _relaxed_unit(rule), _relaxed_bound(rule)
    mechanism = NoisyMax.of_cost(cost, sensitivity=bound, score_range=bound, unit=unit)
    nothing = round(mechanism.scale * math.log(design.n_features) / unit)
    if nothing >= 2**62:
        raise ValueError("epsilon is too small: the noise of screening would overflow.")
    squares = design.column_squares()

    def screen(point: ExactPoint, _t: int) -> Iterable[int]:
        scores = -exact_relaxed_scores(point, squares, rule)
        candidates = np.append(scores, nothing)
        found = accountant.release(mechanism, candidates, purpose=SCREENING)
        return (found,) if found < scores.size else ()

    return screen


def proven_adp(
    accountant: Accountant,
    design: ExactDesign,
    cost: ZCDP,
    *,
    rule: RelaxedRule,
    at: frozenset[int],
) -> Screen[ExactPoint]:
    """Zero every feature whose relaxed score, with Gaussian noise, is negative (Lemmas 3 and 6)."""
    bound = math.nextafter(math.sqrt(design.n_features) * _relaxed_bound(rule), math.inf)
    mechanism = DiscreteGaussian.of_cost(cost, sensitivity=bound, unit=_relaxed_unit(rule))
    squares = design.column_squares()

    def screen(point: ExactPoint, t: int) -> Iterable[int]:
        if t not in at:
            return ()
        scores = exact_relaxed_scores(point, squares, rule)
        return _negative(accountant.release(mechanism, scores, purpose=SCREENING))

    return screen


def _relaxed_unit(rule: RelaxedRule) -> float:
    """Return the unit of exact relaxed scores, which are divided by λ: R/2^28."""
    return rule.residual_bound / UNITS


def _relaxed_bound(rule: RelaxedRule) -> float:
    """Return how far one row moves an exact relaxed score, its two roundings included."""
    change = sensitivity.relaxed_screening_score(
        radius=rule.radius, target_bound=rule.target_bound, kappa=float(rule.kappa)
    )
    # A relative 1e-12 outweighs the float64 arithmetic of the line above many times over.
    return change / rule.radius * (1 + 1e-12) + rule.rounding * _relaxed_unit(rule)


def _negative(noisy: Array) -> list[int]:
    found: list[int] = np.flatnonzero(noisy < 0).tolist()
    return found
