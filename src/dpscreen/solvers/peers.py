"""Methods of other authors, and the public rules by which they are set.

All share the marginals, exact sums, noise and accounting of PrivateLasso. What was measured for
each is in docs/peers.md; constants without another
origin are tuned there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np

from dpscreen._core.arrays import Array, Integers, clamp
from dpscreen.privacy import ZCDP, NoisyMax
from dpscreen.privacy.accountant import release_sums, release_triangle
from dpscreen.rows.lattice import LONGEST_WAY, UNITS, ExactPoint
from dpscreen.rows.sums import ShortRows
from dpscreen.solvers import rules
from dpscreen.solvers.base import (
    Solution,
    Spending,
    Task,
    intercept_move,
    release_scale,
)
from dpscreen.solvers.clipped_frank_wolfe import solve_frank_wolfe
from dpscreen.solvers.engine import norm_clipped
from dpscreen.solvers.selection import Schedule

TARGET_CLIP, BOOSTED_CLIP = 2.0, 0.7
"""Where the target is clipped for its moments, and residuals for boosting, in the target's standard
deviations."""

GRAM_SHARE, BOOSTED_SHARE = Fraction(1, 2), Fraction(1, 5)
"""The share for the Gram matrix of a ridge regression, and of boosting; the rest is for moments."""

ROUNDS = 20
"""How often boosting fits residuals."""

SIS_SHARE = Fraction(1, 4)
"""The share of what is left that screening takes before its ridge regression."""

GCD_SHARE = Fraction(3, 4)
"""The share of a coordinate step that the choice takes; the rest is for its length."""

MEANS_SHARE, INTERCEPT_MOVES = Fraction(9, 10), 3
"""The share of what is left for class means; the rest is for so many moves of the intercept."""

BALL = 2.0
"""The radius of Frank-Wolfe's ball, in log-odds for one standard deviation of a feature."""

TURN = 0.3
"""A step whose cosine with the one before is below −TURN went too far."""

MOST_KEPT = 40
"""Conventional: at most so many features are kept by screening and by hard thresholding."""

FINEST = 2.0**-20
"""The grain of weights, in standard deviations of the target."""

MOST_LEVELS = 2.0**56
"""Where released weights are cut off before they join whole-number sums."""

HALF = Fraction(1, 2)


def _n_of_signal(task: Task, part: float, least: int, most: int) -> int:
    """Return a number of steps or features that is a part of the signal M."""
    return round(clamp(task.regime.signal * part, least, most))


def row_norm(task: Task, n_columns: int) -> float:
    """Return ν for so many features: as declared, or what few rows of that scale exceed."""
    square = task.spread**2 * (n_columns + 3 * math.sqrt(2 * n_columns))
    declared = math.inf if task.choices.row_norm is None else task.choices.row_norm**2
    return math.sqrt(min(square, n_columns, declared))


def _release_products(task: Task, sums: Integers, norm: float, cost: ZCDP, purpose: str) -> Array:
    """Release Σψx, which one row moves by at most ν, in units of the clip.

    (docs/theory/mechanisms.md, Lemmas 1, 13 and 17)
    """
    noisy, _ = release_sums(
        task.spending.accountant,
        sums,
        units_per_one=UNITS,
        change=norm,
        cost=cost,
        purpose=f"{purpose}, in units of the clip",
    )
    return noisy


def _move(point: ExactPoint, moves: Array, most: float = rules.LARGEST_WEIGHT / FINEST) -> None:
    """Move the first weights, each by a whole number of grains."""
    grains = np.rint(np.clip(moves / point.scale, -most, most)).astype(np.int64)
    for feature in np.flatnonzero(grains).tolist():
        point.add(feature, int(grains[feature]))


# --- least squares from noisy moments -------------------------------------------------------------


def solve_adassp(task: Task) -> Solution:
    """Release Σxxᵀ and Σxy of all features, and solve with an adaptive ridge."""
    return _solve_ridge(task, np.arange(task.n_features))


def solve_sis(task: Task) -> Solution:
    """Peel off the features most correlated with the target, then solve on them alone."""
    d = task.n_features
    count, chosen = _n_of_signal(task, 1 / 10, 1, min(MOST_KEPT, d)), np.arange(d)
    if count < d:
        sums = task.design.start(1.0).clipped_sums(TARGET_CLIP * task.deviation)[:d]
        cost = task.spending.remaining * SIS_SHARE
        purpose = "correlation with the target"
        chosen = np.sort(peel(task.spending, sums, count, cost=cost, purpose=purpose))
    return _solve_ridge(task, chosen)


def peel(spending: Spending, sums: Integers, count: int, *, cost: ZCDP, purpose: str) -> Integers:
    """Release the positions of the largest |sums|, one noisy maximum after the other.

    Sums are whole numbers of 2^-28, and one row moves each by at most 1; so it moves |sums|
    (docs/theory/peers.md, Lemma P1).
    """
    mechanism = NoisyMax.of_cost(cost / count, sensitivity=1.0, unit=1 / UNITS)
    left, sizes = np.arange(len(sums)), np.abs(sums)
    found = []
    for _ in range(count):
        place = spending.accountant.release(mechanism, sizes[left], purpose=purpose)
        found.append(left[place])
        left = np.delete(left, place)
    return np.array(found)


def _solve_ridge(task: Task, chosen: Integers) -> Solution:
    """Release weights of the chosen features, (Ĝ + λI)⁻¹b̂, and an intercept, for all that is left.

    Features and target are centred by their bounds, so the intercept can come last
    (docs/theory/mechanisms.md, Lemmas 13 and 17).
    """
    intercept = task.spending.share(rules.INTERCEPT_SHARE) * int(task.choices.intercept)
    budget = ZCDP(task.spending.remaining.rho - intercept.rho)
    clip, short = TARGET_CLIP * task.deviation, ShortRows(chosen, row_norm(task, len(chosen)))
    gram, noise = _release_gram(task, short, budget * GRAM_SHARE)
    sums, purpose = task.design.start(1.0).short_products(clip, short), "features times target"
    moment = _release_products(task, sums, short.row_norm, budget * (1 - GRAM_SHARE), purpose)
    floor = 0.25 * math.sqrt(len(chosen)) + 1.5
    most = rules.LARGEST_WEIGHT * task.deviation
    weights = np.zeros(task.design.n_features)
    weights[chosen] = np.clip(-clip * Ridge(gram, floor * noise)(moment), -most, most)
    if task.choices.intercept:
        point = task.design.at(weights, scale=task.deviation)
        weights[-1] = intercept_move(task, point, task.deviation, intercept)
    return Solution(weights, 1, None, task.deviation)


def _release_gram(task: Task, short: ShortRows, cost: ZCDP) -> tuple[Array, float]:
    """Release Σxxᵀ over rows norm-clipped to ν, and the standard deviation of its noise.

    (docs/theory/mechanisms.md, Lemmas 13 and 17)
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


def solve_boosted(task: Task) -> Solution:
    """Release Σxxᵀ once, then fit residuals again and again with its ridge.

    The constant is a column: the residuals of every round need an intercept. The ridge is larger
    than that of one fit: later rounds make up for what it holds back.
    """
    columns, budget = task.design.n_features, task.spending.remaining
    short = norm_clipped(task, np.arange(columns), row_norm(task, columns))
    point, clip = task.design.start(task.deviation * FINEST), BOOSTED_CLIP * task.deviation
    gram, noise = _release_gram(task, short, budget * BOOSTED_SHARE)
    ridge = Ridge(gram, 2 * math.sqrt(columns) * noise)
    cost = budget * (1 - BOOSTED_SHARE) / ROUNDS
    # Moves are cut off so that those of all rounds stay in exact sums.
    most = min(rules.LARGEST_WEIGHT / FINEST, LONGEST_WAY / (2 * ROUNDS * columns))
    for _ in range(ROUNDS):
        sums = point.short_products(clip, short)
        moment = _release_products(task, sums, short.row_norm, cost, "features times residuals")
        _move(point, -clip * ridge(moment) * short.in_weights(), most)
    return Solution(point.weights, ROUNDS, None, task.deviation)


# --- steps ----------------------------------------------------------------------------------------


class MovingPoint:
    """A point that moves; on its way the scale and the intercept are renewed."""

    def __init__(self, task: Task, n_iter: int) -> None:
        self.task = replace(task, choices=replace(task.choices, n_iter=n_iter))
        self.plan = Schedule.of(self.task, task.spending.remaining, n_intercepts=2)
        self.point = task.design.start(task.deviation * FINEST)
        self.deviation = task.deviation
        self.curvature = task.regime.n_rows * task.spread**2  # of Σψx, in a feature's weight

    @property
    def clip(self) -> float:
        """Return where residuals are clipped now."""
        return self.task.clip(self.deviation)

    @property
    def weights(self) -> Array:
        """Return the features' weights."""
        return self.point.weights[: self.task.n_features]

    def steps(self) -> Iterator[int]:
        """Yield every step; halfway renew scale and intercept, and the intercept after the last."""
        for t in range(self.plan.n_iter):
            if t == self.plan.n_iter // 2:
                self.deviation = release_scale(
                    self.task, self.point, self.deviation, self.plan.scale
                )
                self._centre()
            yield t
        self._centre()

    def move(self, feature: int, by: float) -> None:
        """Move one weight."""
        _move(self.point, by * np.eye(1, feature + 1, feature)[0])

    def solution(self) -> Solution:
        """Return the weights where the steps have ended."""
        return Solution(self.point.weights, self.plan.n_iter, None, self.deviation)

    def _centre(self) -> None:
        if self.plan.intercept.rho:
            by = intercept_move(self.task, self.point, self.deviation, self.plan.intercept)
            self.move(self.task.n_features, by)


def solve_gcd(task: Task) -> Solution:
    """Choose the feature of the largest gradient, release that gradient, step along it."""
    walk = MovingPoint(task, _n_of_signal(task, 1 / 3, 4, 200))
    choice = walk.plan.step * GCD_SHARE
    value = walk.plan.step * (1 - GCD_SHARE)
    lengths, last = np.ones(task.n_features), np.zeros(task.n_features)
    for _ in walk.steps():
        clip = walk.clip
        sums = walk.point.clipped_sums(clip)[: task.n_features]
        feature = int(peel(task.spending, sums, 1, cost=choice, purpose="greedy coordinate")[0])
        noisy, _ = task.spending.release_sum(
            int(sums[feature]), most=UNITS, bound=clip, cost=value, purpose="its gradient"
        )
        # The step before went more than twice too far, by released numbers (Lemma 7).
        if noisy * last[feature] < 0 and abs(noisy) >= abs(last[feature]):
            lengths[feature] /= 2
        last[feature] = noisy
        walk.move(feature, -float(lengths[feature]) * noisy / walk.curvature)
    return walk.solution()


class StepLength:
    """The length of gradient steps, over the inverse curvature of one feature.

    It fades to half on the way, and is halved whenever a released direction points back (Lemma 7).
    """

    def __init__(self, n_weights: int, n_iter: int) -> None:
        self._length, self._n_iter = 1.5 / math.sqrt(n_weights), n_iter
        self._last: Array | None = None

    def at(self, t: int) -> float:
        """Return the length at step t."""
        return (1 - t / self._n_iter / 2) * self._length

    def follow(self, way: Array) -> None:
        """Take note of the direction that was released, which may point back."""
        if self._last is not None:
            sizes = float(np.linalg.norm(way) * np.linalg.norm(self._last))
            if float(way @ self._last) < -TURN * sizes:
                self._length /= 2
        self._last = way


def solve_iht(task: Task) -> Solution:
    """Take noisy gradient steps, and keep the largest weights after each."""
    walk = MovingPoint(task, _n_of_signal(task, 1 / 2, 3, 100))
    count = _n_of_signal(task, 1 / 5, 1, min(MOST_KEPT, task.n_features))
    whole = row_norm(task, task.n_features) ** 2 <= 2 * count
    length = StepLength(count, walk.plan.n_iter)
    for t in walk.steps():
        kept = None if whole else _release_largest(walk, count, length.at(t))
        way = _release_way(walk, kept)
        length.follow(way)
        moved = walk.weights + length.at(t) * way
        if kept is None:
            kept = np.argsort(-np.abs(moved), kind="stable")[:count]
        target = np.zeros_like(moved)
        target[kept] = moved[kept]
        _move(walk.point, target - walk.weights)
    return walk.solution()


def _release_largest(walk: MovingPoint, count: int, length: float) -> Integers:
    """Release which weights will be the largest after a step of that length, by peeling.

    (docs/theory/peers.md, Lemma P1)
    """
    levels = walk.weights * (walk.curvature / length / walk.clip * UNITS)
    here = np.rint(np.clip(levels, -MOST_LEVELS, MOST_LEVELS)).astype(np.int64)
    sums = here - walk.point.clipped_sums(walk.clip)[: walk.task.n_features]
    cost = walk.plan.step * HALF
    return peel(walk.task.spending, sums, count, cost=cost, purpose="largest weights")


def _release_way(walk: MovingPoint, kept: Integers | None) -> Array:
    """Release −Σψ_c(r)x/(nσ_x²) of all features, or of the kept ones; zero for the others.

    Rows are norm-clipped to ν, so one row moves the sums by cν in L2
    (docs/theory/mechanisms.md, Lemmas 1, 13 and 17).
    """
    d, cost, purpose = walk.task.n_features, walk.plan.step, "noisy gradient"
    norm = row_norm(walk.task, d if kept is None else len(kept))
    way = np.zeros(d)
    if kept is None:
        sums = walk.point.short_gradient(walk.clip, d, norm)
        way[:] = _release_products(walk.task, sums, norm, cost, purpose)
    else:
        sums = walk.point.short_products(walk.clip, ShortRows(kept, norm))
        way[kept] = _release_products(walk.task, sums, norm, cost * HALF, purpose)
    return -walk.clip / walk.curvature * way


# --- of binary outcomes ---------------------------------------------------------------------------

CHOSEN = "residuals times chosen features"


def solve_class_means(task: Task) -> Solution:
    """Release how far apart the means of the two classes lie, and weigh features by that."""
    point, budget, d = (
        task.start_point(task.deviation * FINEST),
        task.spending.remaining,
        task.n_features,
    )
    short = ShortRows(np.arange(d), row_norm(task, d))
    sums = point.short_products(1.0, short)
    moment = _release_products(task, sums, short.row_norm, budget * MEANS_SHARE, CHOSEN)
    _move(
        point,
        -moment
        / (task.regime.n_rows * task.family.mean_curvature(task.start, 0.0) * task.spread**2),
    )
    if task.choices.intercept:
        cost = budget * (1 - MEANS_SHARE) / INTERCEPT_MOVES
        for _ in range(INTERCEPT_MOVES):
            by = intercept_move(task, point, 1.0, cost)
            point.shift(np.array([task.n_features]), np.array([by]))
    return Solution(point.weights, 1, None, task.deviation)


def solve_gradient_descent(task: Task) -> Solution:
    """Take noisy gradient steps along all features and the constant at once."""
    point, n_iter = task.start_point(task.deviation * FINEST), _n_of_signal(task, 1 / 5, 5, 50)
    columns = task.design.n_features
    short = norm_clipped(task, np.arange(columns), row_norm(task, columns))
    cost: ZCDP = task.spending.remaining / n_iter
    length = StepLength(columns, n_iter)
    curvature = task.regime.n_rows * task.design.loss.curvature * task.spread**2
    for t in range(n_iter):
        sums = point.short_products(1.0, short)
        way = -_release_products(task, sums, short.row_norm, cost, CHOSEN) / curvature
        length.follow(way)
        _move(point, length.at(t) * way * short.in_weights())
    return Solution(point.weights, n_iter, None, task.deviation)


def solve_outcome_frank_wolfe(task: Task) -> Solution:
    """Run clipped DP-FW on the logistic loss; the constant is one more candidate."""
    choices = replace(task.choices, radius=task.choices.radius or BALL / task.spread)
    return solve_frank_wolfe(replace(task, choices=choices))
