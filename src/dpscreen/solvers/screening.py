"""Screening rules: scores whose being negative is meant to prove that an optimal weight is zero.

S = Xᵀ(Xw − y), and Γ = wᵀS + λ‖S‖∞ is the Wolfe gap, both in sums. For f(u) = ‖u − y‖²/(2n) the
paper's Eq. 1 has L = μ = 1/n, so that n times its score is |S_i| + wᵀS + (‖x_(i)‖ + ‖Xw‖)√Γ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from dpscreen._core.arrays import Array, Integers
from dpscreen.privacy import (
    ZCDP,
    Accountant,
    Budget,
    DiscreteGaussian,
    GaussianVector,
    Noise,
    NoisyMax,
    ThresholdedNoisyMin,
    sensitivity,
)
from dpscreen.privacy.budget import advanced_share, advanced_share_approximate, gaussian_sigma
from dpscreen.rows.design import Design, Point
from dpscreen.rows.lattice import UNITS, ExactDesign, ExactPoint, RelaxedRule, exact_relaxed_scores
from dpscreen.solvers.base import Path
from dpscreen.solvers.clipped_frank_wolfe import vertex_path
from dpscreen.solvers.frank_wolfe import (
    Choose,
    P,
    Screen,
    Vertex,
    frank_wolfe,
    proven_choice,
    published_choice,
    starting_point,
    steepest_vertex,
    wolfe_gap,
)

Rule = Callable[..., Array]


def published_scores(design: Design, point: Point, *, radius: float) -> Array:
    """Return Eq. 1 as printed, in its own units (means over n rows).

    It is stated for the unit ball; for λ > 1 it can screen what the optimum needs (erratum E3).
    """
    return _scores(design, point, radius, 1.0)


def safe_scores(design: Design, point: Point, *, radius: float) -> Array:
    """Return the rule with the radius corrected (erratum E3), in means: negative is a proof."""
    return _scores(design, point, radius, radius)


def _scores(design: Design, point: Point, radius: float, factor: float) -> Array:
    gradient = point.gradient()
    size, slope = np.abs(gradient), float(point.weights @ gradient)
    root = math.sqrt(wolfe_gap(slope, size, radius=radius))
    scores = factor * (size + root * design.column_norms) + (slope + point.fitted_norm() * root)
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
        return steepest_vertex(point, self.active) if self.active.any() else None

    def screen(self, point: Point, _t: int) -> Iterable[int]:
        """Reject the features whose score is negative."""
        scores = self._rule(self._design, point, radius=self._radius)
        # A needed feature may score 0 at the optimum, up to rounding.
        largest = float(np.abs(point.gradient()).max())
        rounding = 1e-12 * max(1.0, self._radius) * largest / self._design.n_rows
        rejected = np.flatnonzero(self.active & (scores < -rounding))
        self.active[rejected] = False
        return rejected.tolist()


SCREENING = "screening"


def published_rnm(
    accountant: Accountant, design: Design, budget: Budget, *, radius: float, n_iter: int
) -> Screen[Point]:
    """Zero the feature with the smallest noisy score of Eq. 1 when it is negative (Algorithm 2)."""
    bound = sensitivity.published_screening_score(radius=radius, n_rows=design.n_rows)
    share = advanced_share(budget, count=n_iter)
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
    share = advanced_share_approximate(budget, count=len(at))
    mechanism = GaussianVector(bound, gaussian_sigma(share, sensitivity=bound))

    def screen(point: Point, _t: int) -> Iterable[int]:
        scores = published_scores(design, point, radius=radius)
        noisy = accountant.release(mechanism, scores, purpose=SCREENING)
        return np.flatnonzero(noisy < 0).tolist()

    return only_at(at, screen)


def proven_rnm(
    accountant: Accountant, design: ExactDesign, cost: ZCDP, *, rule: RelaxedRule
) -> Screen[ExactPoint]:
    """Select one feature, or "screen nothing", by the relaxed rule: Δ²/(8β²)-zCDP.

    (docs/theory/selection.md, Lemma 6.) "Screen nothing" scores 0 plus a public head start of β ln
    d: against d flat scores it then wins every other time instead of once in d + 1.
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
    """Zero every feature whose relaxed score, with Gaussian noise, is negative.

    (docs/theory/selection.md, Lemma 6)
    """
    bound = math.nextafter(math.sqrt(design.n_features) * _relaxed_bound(rule), math.inf)
    mechanism = DiscreteGaussian.of_cost(cost, sensitivity=bound, unit=_relaxed_unit(rule))
    squares = design.column_squares()

    def screen(point: ExactPoint, _t: int) -> Iterable[int]:
        scores = exact_relaxed_scores(point, squares, rule)
        noisy = accountant.release(mechanism, scores, purpose=SCREENING)
        return np.flatnonzero(noisy < 0).tolist()

    return only_at(at, screen)


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


# --- Frank-Wolfe, with or without screening -------------------------------------------------------


Schedule = Callable[[int], frozenset[int]]
"""After which of so many steps to screen."""


@dataclass(frozen=True)
class Screening:
    """Which part of the budget screens, when, and whether one feature at a time or all at once."""

    share: float
    delta_share: float
    at: Schedule
    one_at_a_time: bool


@dataclass(frozen=True)
class FrankWolfeSettings:
    """The parameters of a run, checked; None where a rule decides once the bounds are known."""

    radius: float | None
    n_iter: int | None
    intercept: bool
    published: bool
    start: str
    clip: float | None = None
    screening: Screening | None = None

    @property
    def size(self) -> float:
        """Return λ, once it is settled."""
        assert self.radius is not None
        return self.radius

    @property
    def steps(self) -> int:
        """Return T, once it is settled."""
        assert self.n_iter is not None
        return self.n_iter


Steps = tuple[Choose[P], Screen[P] | None]


def only_at(at: frozenset[int], screen: Screen[P]) -> Screen[P]:
    """Return a screening step that rests at all other iterations."""
    return lambda point, t: screen(point, t) if t in at else ()


def published_steps(
    settings: FrankWolfeSettings, accountant: Accountant, design: Design, budget: Budget
) -> Steps[Point]:
    """Return the paper's choice and screening, with its constants."""
    part, screen, radius, n_iter = settings.screening, None, settings.size, settings.steps
    if part is not None:
        budget, share = budget.split(share=part.share, delta_share=part.delta_share)
        at = part.at(n_iter)
        if part.one_at_a_time:
            one = published_rnm(accountant, design, share, radius=radius, n_iter=len(at))
            screen = only_at(at, one)
        else:
            screen = published_adp(accountant, design, share, radius=radius, at=at)
    choose = published_choice(
        accountant, budget, radius=radius, n_iter=n_iter, n_rows=design.n_rows
    )
    return choose, screen


def proven_steps(
    settings: FrankWolfeSettings,
    accountant: Accountant,
    design: ExactDesign,
    cost: ZCDP,
    *,
    target_bound: float,
) -> Steps[ExactPoint]:
    """Return choice and screening whose costs for one row add up to `cost`.

    The choice clips residuals, the rule that screens does not (docs/theory/selection.md, Lemma 35).
    """
    part, screen, radius, n_iter = settings.screening, None, settings.size, settings.steps
    if part is not None:
        share, at = Fraction(part.share), part.at(n_iter)
        cost, left = cost * (1 - share), cost * share / len(at)
        rule = RelaxedRule(radius, target_bound)
        if part.one_at_a_time:
            screen = only_at(at, proven_rnm(accountant, design, left, rule=rule))
        else:
            screen = proven_adp(accountant, design, left, rule=rule, at=at)
    bound = sensitivity.residual_bound(radius=radius, target_bound=target_bound)
    clip = min(settings.clip or bound, bound)
    return proven_choice(accountant, cost / n_iter, clip=clip), screen


class Trail(NamedTuple):
    """What a run releases: where it ended, its steps, and which feature was screened when."""

    weights: Array
    path: Path
    screened: Integers

    @property
    def n_iter(self) -> int:
        """Return T."""
        return len(self.path)


def optimise(settings: FrankWolfeSettings, design: Any, steps: Steps[Any], noise: Noise) -> Trail:
    """Run the loop from the starting point that the settings ask for.

    Steps and screened features are what the mechanisms released, so keeping them is free (Lemma 7).
    """
    radius = settings.size
    start = starting_point(settings.start, design.n_features, radius=radius, noise=noise)
    choose, screen = steps
    chosen: list[Vertex] = []
    screened: list[tuple[int, int]] = []

    def choosing(point: Any) -> Vertex | None:
        vertex = choose(point)
        assert vertex is not None, "private choices always name a vertex"
        chosen.append(vertex)
        return vertex

    def screening(point: Any, t: int) -> Iterable[int]:
        found = list(screen(point, t)) if screen else []
        screened.extend((t, feature) for feature in found)
        return found

    weights = frank_wolfe(
        design, start, radius=radius, n_iter=settings.steps, choose=choosing, screen=screening
    )
    marks = np.array(screened, dtype=np.int64).reshape(-1, 2)
    return Trail(weights, vertex_path(chosen, radius), marks)
