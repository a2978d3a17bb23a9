"""The ways of other authors, and the public rules by which they are set.

What was measured for each is in docs/peers.md, for those of outcomes in docs/yes-no.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np

from dpscreen._core.arrays import Array, Integers
from dpscreen.privacy import ZCDP, NoisyMax
from dpscreen.privacy.accountant import release_sums, release_triangle
from dpscreen.rows.lattice import LONGEST_WAY, UNITS, ExactPoint
from dpscreen.rows.sums import ShortRows
from dpscreen.solvers import rules
from dpscreen.solvers.base import Solution, Spending, Task, intercept_move, rescaled
from dpscreen.solvers.logistic import OutcomeTask, release_intercept_move
from dpscreen.solvers.outcome_walk import started
from dpscreen.solvers.refit import release_moment, rows_of_features
from dpscreen.solvers.rules import Regime, clamp
from dpscreen.solvers.stagewise import Schedule, solve_frank_wolfe

TARGET_CLIP = 2.0
"""Where the target is clipped for its moments, in its deviations."""

GRAM_SHARE = Fraction(1, 2)
"""The share of a refit that pays for the matrix; the rest is for the moment."""

ROUNDS = 20
"""How often boosting fits residuals."""

BOOSTED_CLIP = 0.7
"""Where it clips them, in the target's deviations."""

BOOSTED_SHARE = Fraction(1, 5)
"""The share of boosting that pays for the matrix; the rest is for its rounds."""

SIS_SHARE = Fraction(1, 4)
"""The share of what is left that screening takes before its refit."""

GCD_SHARE = Fraction(3, 4)
"""The share of a coordinate step that the choice takes; the rest is for its length."""

TURN = 0.3
"""A thresholded step whose cosine with the one before is below −TURN went too far."""


def ridge_floor(n_columns: int) -> float:
    """Return what the least eigenvalue is lifted to, in deviations of the Gram matrix's noise."""
    return 0.25 * math.sqrt(n_columns) + 1.5


def boosted_floor(n_columns: int) -> float:
    """Return the same for boosting, which makes up in later rounds for what a ridge holds back."""
    return 2 * math.sqrt(n_columns)


def n_selected(regime: Regime) -> int:
    """Return how many features screening keeps."""
    return round(clamp(regime.signal / 10, 1, min(40, regime.n_features)))


def n_kept(regime: Regime) -> int:
    """Return how many weights hard thresholding keeps."""
    return round(clamp(regime.signal / 5, 1, min(40, regime.n_features)))


def iht_steps(regime: Regime) -> int:
    """Return how many thresholded gradient steps are taken."""
    return round(clamp(regime.signal / 2, 3, 100))


def first_length(n_kept: int) -> float:
    """Return the length of a thresholded step, over the inverse curvature of one feature."""
    return 1.5 / math.sqrt(n_kept)


def fading(time: float) -> float:
    """Return by how much steps are shortened at that part of the way."""
    return 1 - time / 2


def gcd_steps(regime: Regime) -> int:
    """Return how many coordinate steps are taken."""
    return round(clamp(regime.signal / 3, 4, 200))


HALF = Fraction(1, 2)
FINEST = 2.0**-20
"""The grain of weights, in deviations of the target."""

MOST_LEVELS = 2.0**56
"""Where released weights are cut off before they join whole-number sums."""


def row_norm(task: Task, n_columns: int) -> float:
    """Return ν for so many features: what was declared, or what few rows of that spread exceed."""
    square = task.spread**2 * (n_columns + 3 * math.sqrt(2 * n_columns))
    declared = math.inf if task.choices.row_norm is None else task.choices.row_norm**2
    return math.sqrt(min(square, n_columns, declared))


# --- least squares from noisy moments -------------------------------------------------------------


def solve_adassp(task: Task) -> Solution:
    """Release Σxxᵀ and Σxy of all features, and solve with an adaptive ridge."""
    return least_squares(task, np.arange(task.n_features))


def solve_sis(task: Task) -> Solution:
    """Peel off the features most correlated with the target, then solve on them alone."""
    d, count = task.n_features, n_selected(task.regime)
    chosen = np.arange(d)
    if count < d:
        sums = task.design.start(1.0).clipped_sums(_target_clip(task))[:d]
        cost = task.spending.remaining * SIS_SHARE
        purpose = "correlation with the target"
        chosen = np.sort(peel(task.spending, sums, count, cost=cost, purpose=purpose))
    return least_squares(task, chosen)


def peel(spending: Spending, sums: Integers, count: int, *, cost: ZCDP, purpose: str) -> Integers:
    """Release the places of the largest |sums|, one noisy maximum after the other.

    Sums are whole numbers of 2^-28, and one row moves each by at most 1; so it moves |sums|
    (docs/peers.md, Lemma P1).
    """
    mechanism = NoisyMax.of_cost(cost / count, sensitivity=1.0, unit=1 / UNITS)
    left, sizes = np.arange(len(sums)), np.abs(sums)
    found = []
    for _ in range(count):
        place = spending.accountant.release(mechanism, sizes[left], purpose=purpose)
        found.append(left[place])
        left = np.delete(left, place)
    return np.array(found)


def least_squares(task: Task, chosen: Integers) -> Solution:
    """Release weights of the chosen features, (Ĝ + λI)⁻¹b̂, and an intercept, for all that is left.

    Features and target are centred by their bounds, so the intercept can come last.
    """
    intercept = task.spending.share(rules.INTERCEPT_SHARE) * int(task.choices.intercept)
    weights = np.zeros(task.design.n_features)
    weights[chosen] = _release_ridge(task, chosen, _less(task.spending.remaining, intercept))
    if task.choices.intercept:
        point = task.design.at(weights, scale=task.deviation)
        weights[-1] = intercept_move(task, point, task.deviation, intercept)
    return Solution(weights, 1, None, task.deviation)


def _less(cost: ZCDP, other: ZCDP) -> ZCDP:
    return ZCDP(cost.rho - other.rho)


def _release_ridge(task: Task, chosen: Integers, budget: ZCDP) -> Array:
    """Release Σxxᵀ and Σψx over rows shortened to ν, and solve.

    (docs/private-lasso.md, Lemmas 13 and 17)
    """
    clip, norm = _target_clip(task), row_norm(task, len(chosen))
    short = ShortRows(chosen, norm)
    gram_cost = budget * GRAM_SHARE
    gram, noise = _release_gram(task, short, gram_cost)
    moment, _ = release_sums(
        task.spending.accountant,
        task.design.start(1.0).short_products(clip, short),
        units_per_one=UNITS,
        change=norm,
        cost=_less(budget, gram_cost),
        purpose="features times target, in units of the clip",
    )
    most = rules.LARGEST_WEIGHT * task.deviation
    return np.clip(-clip * Ridge(gram, ridge_floor(len(gram)) * noise)(moment), -most, most)


def _release_gram(task: Task, short: ShortRows, cost: ZCDP) -> tuple[Array, float]:
    """Release Σxxᵀ over rows shortened to ν, and its noise's deviation.

    (docs/private-lasso.md, Lemmas 13 and 17)
    """
    return release_triangle(
        task.spending.accountant,
        task.design.short_gram(short),
        units_per_one=UNITS,
        row_norm=short.row_norm,
        cost=cost,
        purpose="features squared",
    )


class Ridge:
    """Solves (Ĝ + λI)w = b̂, λ just enough to lift the least eigenvalue to a floor (Lemma 7)."""

    def __init__(self, gram: Array, floor: float) -> None:
        values, self._vectors = np.linalg.eigh(gram)
        self._lifted = values + max(0.0, floor - float(values[0]))

    def __call__(self, moment: Array) -> Array:
        """Return w for one right-hand side."""
        return np.asarray(self._vectors @ ((self._vectors.T @ moment) / self._lifted))


def _target_clip(task: Task) -> float:
    return TARGET_CLIP * task.deviation


# --- boosting -------------------------------------------------------------------------------------


def solve_boosted(task: Task) -> Solution:
    """Release Σxxᵀ once, then fit residuals again and again with its ridge.

    The constant is a column: the residuals of every round need an intercept.
    """
    columns, budget = task.design.n_features, task.spending.remaining
    short = rows_of_features(task, np.arange(columns), row_norm(task, columns))
    point, clip = task.design.start(task.deviation * FINEST), BOOSTED_CLIP * task.deviation
    gram, noise = _release_gram(task, short, budget * BOOSTED_SHARE)
    ridge = Ridge(gram, boosted_floor(columns) * noise)
    for _ in range(ROUNDS):
        moment, _ = release_sums(
            task.spending.accountant,
            point.short_products(clip, short),
            units_per_one=UNITS,
            change=short.row_norm,
            cost=budget * (1 - BOOSTED_SHARE) / ROUNDS,
            purpose="features times residuals, in units of the clip",
        )
        _move_all(point, -clip * ridge(moment) * short.in_weights())
    return Solution(point.weights, ROUNDS, None, task.deviation)


def _move_all(point: ExactPoint, moves: Array) -> None:
    """Add the moves, in whole grains; cut off so that those of all rounds stay in exact sums."""
    most = min(rules.LARGEST_WEIGHT / FINEST, LONGEST_WAY / (2 * ROUNDS * len(moves)))
    grains = np.rint(np.clip(moves / point.scale, -most, most)).astype(np.int64)
    for feature in np.flatnonzero(grains):
        point.add(int(feature), int(grains[feature]))


# --- steps ----------------------------------------------------------------------------------------


class MovingPoint:
    """A point that moves; on its way the scale and the intercept are renewed as in PrivateLasso."""

    def __init__(self, task: Task, n_iter: int) -> None:
        self.task = replace(task, choices=replace(task.choices, n_iter=n_iter))
        self.plan = Schedule.of(self.task)
        self.point = task.design.start(task.deviation * FINEST)
        self.deviation = task.deviation

    @property
    def clip(self) -> float:
        """Return where residuals are clipped now."""
        return self.task.clip(self.deviation)

    @property
    def curvature(self) -> float:
        """Return nσ_x², by which a sum of residuals times a feature is divided."""
        return self.task.regime.n_rows * self.task.spread**2

    @property
    def weights(self) -> Array:
        """Return the features' weights."""
        return self.point.weights[: self.task.n_features]

    def steps(self) -> Iterator[int]:
        """Yield every step, after what is due before it; after the last, move the intercept."""
        for t in range(self.plan.n_iter):
            if t in self.plan.rescale_at:
                cost = self.plan.rescale_cost
                self.deviation = rescaled(self.task, self.point, self.deviation, cost)
            self._centre(t)
            yield t
        self._centre(self.plan.n_iter)

    def move(self, feature: int, by: float) -> None:
        """Move one weight, by a whole number of grains."""
        most = rules.LARGEST_WEIGHT * self.task.deviation
        grains = round(rules.clamp(by, -most, most) / self.point.scale)
        self.point.add(feature, grains)

    def move_to(self, weights: Array) -> None:
        """Move the features' weights there."""
        moves = weights - self.weights
        for feature in np.flatnonzero(moves):
            self.move(int(feature), float(moves[feature]))

    def solution(self) -> Solution:
        """Return where the walk has come to."""
        return Solution(self.point.weights, self.plan.n_iter, None, self.deviation)

    def _centre(self, t: int) -> None:
        if t in self.plan.intercept_at:
            clip = rules.intercept_clip(self.clip, self.deviation)
            cost = self.plan.intercept_cost
            self.move(self.task.n_features, intercept_move(self.task, self.point, clip, cost))


def solve_gcd(task: Task) -> Solution:
    """Choose the feature of the largest gradient, release that gradient, step along it."""
    walk = MovingPoint(task, gcd_steps(task.regime))
    choice = walk.plan.step_cost * GCD_SHARE
    value = walk.plan.step_cost * (1 - GCD_SHARE)
    lengths, last = np.ones(task.n_features), np.zeros(task.n_features)
    for _ in walk.steps():
        clip = walk.clip
        sums = walk.point.clipped_sums(clip)[: task.n_features]
        feature = int(peel(task.spending, sums, 1, cost=choice, purpose="greedy coordinate")[0])
        noisy, _ = task.spending.release_sum(
            int(sums[feature]), most=UNITS, bound=clip, cost=value, purpose="its gradient"
        )
        if overshot(noisy, float(last[feature])):
            lengths[feature] /= 2
        last[feature] = noisy
        walk.move(feature, -float(lengths[feature]) * noisy / walk.curvature)
    return walk.solution()


def overshot(gradient: float, before: float) -> bool:
    """Whether a step went more than twice too far, by released numbers (Lemma 7)."""
    return gradient * before < 0 and abs(gradient) >= abs(before)


def solve_iht(task: Task) -> Solution:
    """Take noisy gradient steps, and keep the largest weights after each."""
    walk = MovingPoint(task, iht_steps(task.regime))
    count = n_kept(task.regime)
    whole = row_norm(task, task.n_features) ** 2 <= 2 * count
    length, last = first_length(count), np.zeros(task.n_features)
    for t in walk.steps():
        fade = fading(t / walk.plan.n_iter)
        kept = None if whole else _release_largest(walk, count, fade * length)
        way = _release_way(walk, kept)
        if turned_back(way, last):
            length /= 2
        last = way
        walk.move_to(_largest(walk.weights + fade * length * way, count, kept))
    return walk.solution()


def turned_back(way: Array, before: Array) -> bool:
    """Whether a step went too far, by released numbers: the next way points back (Lemma 7)."""
    sizes = float(np.linalg.norm(way) * np.linalg.norm(before))
    return float(way @ before) < -TURN * sizes


def _release_largest(walk: MovingPoint, count: int, length: float) -> Integers:
    """Release which weights will be the largest after a step of that length, by peeling.

    (docs/peers.md, Lemma P1)
    """
    levels = walk.weights * (walk.curvature / length / walk.clip * UNITS)
    here = np.rint(np.clip(levels, -MOST_LEVELS, MOST_LEVELS)).astype(np.int64)
    sums = here - walk.point.clipped_sums(walk.clip)[: walk.task.n_features]
    cost = walk.plan.step_cost * HALF
    return peel(walk.task.spending, sums, count, cost=cost, purpose="largest weights")


def _release_way(walk: MovingPoint, kept: Integers | None) -> Array:
    """Release −Σψ_c(r)x/(nσ_x²) of all features, or of the kept ones; zero for the others.

    Rows are shortened to ν, so one row moves the sums by cν in L2 (docs/privacy.md, Lemma 1;
    docs/private-lasso.md, Lemmas 13 and 17).
    """
    places = np.arange(walk.task.n_features) if kept is None else kept
    norm = row_norm(walk.task, len(places))
    noisy, _ = release_sums(
        walk.task.spending.accountant,
        _short_sums(walk, kept, norm),
        units_per_one=UNITS,
        change=norm,
        cost=walk.plan.step_cost * (1 if kept is None else HALF),
        purpose="noisy gradient, in units of the clip",
    )
    way = np.zeros(walk.task.n_features)
    way[places] = -walk.clip / walk.curvature * noisy
    return way


def _short_sums(walk: MovingPoint, kept: Integers | None, norm: float) -> Integers:
    if kept is None:
        return walk.point.short_gradient(walk.clip, walk.task.n_features, norm)
    return walk.point.short_products(walk.clip, ShortRows(kept, norm))


def _largest(weights: Array, count: int, kept: Integers | None) -> Array:
    """Return the weights with all but the kept ones zero, or all but the largest."""
    order = np.argsort(-np.abs(weights), kind="stable")[:count] if kept is None else kept
    out = np.zeros_like(weights)
    out[order] = weights[order]
    return out


# --- of outcomes ----------------------------------------------------------------------------------

MEANS_SHARE = Fraction(9, 10)
"""The share of what is left that class means take; the rest moves the intercept."""

INTERCEPT_MOVES = 3
BALL = 2.0
"""The radius of Frank-Wolfe's ball, in log-odds for one deviation of a feature."""


def gradient_steps(regime: Regime) -> int:
    """Return how many noisy gradients are taken."""
    return round(clamp(regime.signal / 5, 5, 50))


def solve_class_means(task: OutcomeTask) -> Solution:
    """Release how far apart the means of the two classes lie, and weigh features by that."""
    point, budget = started(task), task.spending.remaining
    short = ShortRows(np.arange(task.n_features), row_norm(task, task.n_features))
    moment = release_moment(task.spending, point, 1.0, short, budget * MEANS_SHARE)
    moved(point, -moment / (task.regime.n_rows * task.share.variance * task.spread**2))
    if task.choices.intercept:
        cost = budget * (1 - MEANS_SHARE) / INTERCEPT_MOVES
        for _ in range(INTERCEPT_MOVES):
            move = release_intercept_move(task, point, task.share, cost)
            point.add(task.n_features, round(move / point.scale))
    return Solution(point.weights, 1, None, task.deviation)


def solve_gradient_descent(task: OutcomeTask) -> Solution:
    """Take noisy gradient steps along all features and the constant at once."""
    point, n_iter = started(task), gradient_steps(task.regime)
    columns = task.design.n_features
    short = rows_of_features(task, np.arange(columns), row_norm(task, columns))
    cost: ZCDP = task.spending.remaining / n_iter
    length, last = first_length(columns), np.zeros(columns)
    curvature = task.regime.n_rows * task.design.loss.curvature * task.spread**2
    for t in range(n_iter):
        way = -release_moment(task.spending, point, 1.0, short, cost) / curvature
        if turned_back(way, last):
            length /= 2
        last = way
        moved(point, fading(t / n_iter) * length * way * short.in_weights())
    return Solution(point.weights, n_iter, None, task.deviation)


def solve_outcome_frank_wolfe(task: OutcomeTask) -> Solution:
    """Run clipped DP-FW on the logistic loss; the constant is one more candidate."""
    choices = replace(task.choices, radius=task.choices.radius or BALL / task.spread)
    return solve_frank_wolfe(replace(task, choices=choices))


def moved(point: ExactPoint, moves: Array) -> None:
    """Move the first weights, each by a whole number of grains."""
    most = rules.LARGEST_WEIGHT / FINEST
    for feature, grains in enumerate(np.rint(np.clip(moves / point.scale, -most, most))):
        if grains:
            point.add(feature, int(grains))
