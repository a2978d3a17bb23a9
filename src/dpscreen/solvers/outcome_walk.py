"""Steps along all features at once, for outcomes: where all are refitted, none has to be chosen.

A path spends half of the budget on choices. Where all features are refitted whatever it chose, that
half is better spent on the sums themselves. Each step releases Σ(p − y)x and moves by as much as it
tells beyond what the steps before told, noise being known: a Kalman filter, in the directions of
one noisy Gram matrix (docs/yes-no.md, Lemma 40).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen.privacy import ZCDP
from dpscreen.privacy.accountant import release_triangle
from dpscreen.rows.lattice import UNITS, ExactPoint
from dpscreen.rows.sums import ShortRows
from dpscreen.solvers import rules
from dpscreen.solvers.base import Solution
from dpscreen.solvers.logistic import OutcomeTask, solve_logistic, sure_threshold
from dpscreen.solvers.refit import move, release_moment, rows_of_features

GRAINS_PER_LOG_ODDS = 2.0**20
STEPS = 3

STILL_OPEN = 0.1
"""Which part of what weights may vary by is never taken for known, as the loss is not a square."""

PRIOR_VARIANCES = 2.0 ** np.arange(-8, 20, 0.5)
"""What is tried, in squares of the noise of a middling direction."""


def walks(task: OutcomeTask) -> bool:
    """Whether no feature is chosen: all are refitted, noise is large, and nobody asks for steps.

    Where least squares, too, would refit all of them, the budget is enough for both.
    """
    choices, regime = task.choices, task.regime
    asked = choices.n_iter is not None or choices.max_features is not None
    few = regime.n_features <= rules.most_refitted(regime)
    return task.refits_all and few and not asked and not rules.refits_all(regime)


def solve_outcomes(task: OutcomeTask) -> Solution:
    """Walk along all features where that pays; else choose, then refit."""
    return solve_walk(task) if walks(task) else solve_logistic(task)


def solve_walk(task: OutcomeTask) -> Solution:
    """Take all steps along all features, and tell which of them stand out of the noise."""
    point, n_iter = started(task), STEPS
    gram_cost = task.spending.remaining * Fraction(rules.GRAM_PART)
    steps_cost = ZCDP(task.spending.remaining.rho - gram_cost.rho)
    short = _all_short(task, float(steps_cost))
    directions = release_directions(task, short, gram_cost)
    curvature = task.share.variance * directions.values
    walk, noise = None, short.row_norm / math.sqrt(2 * float(steps_cost / n_iter))
    for _ in range(n_iter):
        moment = release_moment(task.spending, point, 1.0, short, steps_cost / n_iter)
        seen = -directions.vectors.T @ moment
        walk = walk or Filter.begun(curvature, seen, noise)
        by = directions.vectors @ walk.step(seen)
        move(point, short.chosen, by * short.in_weights())
    assert walk is not None, "there is at least one step"
    sure = directions.sizes(walk.weights, walk.variances) >= sure_threshold(task.n_features)
    stands_out = np.isin(np.arange(point.weights.size), short.chosen[sure])
    return Solution(point.weights, n_iter, None, task.deviation, stands_out)


def started(task: OutcomeTask) -> ExactPoint:
    """Return the point whose intercept is where the released share says."""
    point = task.design.start(task.deviation / GRAINS_PER_LOG_ODDS)
    if task.choices.intercept:
        point.add(task.n_features, round(task.share.log_odds / point.scale))
    return point


def _all_short(task: OutcomeTask, steps_rho: float) -> ShortRows:
    """Return rows of all features and the constant, as short as noise demands."""
    constants = np.arange(task.n_features, task.design.n_features)
    columns = np.append(task.candidates, constants)
    _, length = rules.refit_clips(task.regime, len(columns), steps_rho)
    norm = min(length * task.spread, 1.0) * math.sqrt(len(columns))
    return rows_of_features(task, columns, norm)


@dataclass(frozen=True, eq=False)
class Directions:
    """A noisy Gram matrix Σxxᵀ by its eigenvectors, and its values as far as noise lets see."""

    values: Array
    vectors: Array

    @classmethod
    def of(cls, gram: Array, noise: float) -> Directions:
        """Draw the values to their mean by as much as noise explains; none is below the blur."""
        k, values_vectors = len(gram), np.linalg.eigh(gram)
        values, vectors = values_vectors
        mean = max(float(values.mean()), noise / math.sqrt(k))
        apart = float(((values - mean) ** 2).sum())
        part = min(1.0, (k * noise) ** 2 / max(apart, 1e-300))
        drawn = (1 - part) * values + part * mean
        return cls(np.maximum(drawn, noise * math.sqrt(k)), vectors)

    def sizes(self, along: Array, variances: Array) -> Array:
        """Return weights of columns in deviations, from those along the directions."""
        return np.asarray(np.abs(self.vectors @ along) / np.sqrt(self.vectors**2 @ variances))


def release_directions(task: OutcomeTask, short: ShortRows, cost: ZCDP) -> Directions:
    """Release Σxxᵀ of short rows (docs/private-lasso.md, Lemmas 17 and 23)."""
    gram, noise = release_triangle(
        task.spending.accountant,
        task.design.short_gram(short),
        units_per_one=UNITS,
        row_norm=short.row_norm,
        cost=cost,
        purpose="all features squared",
    )
    return Directions.of(gram, noise)


class Filter:
    """Weights along each direction, their variance, and what noise has added to them.

    (docs/yes-no.md, Lemma 40)
    """

    def __init__(self, curvature: Array, prior: float, noise: float) -> None:
        self._curvature, self._noise = curvature, noise
        self._least = STILL_OPEN * prior
        self.weights = np.zeros(len(curvature))
        self._open = np.full(len(curvature), prior)
        self._missed, self._noisy = np.ones(len(curvature)), np.zeros(len(curvature))

    @classmethod
    def begun(cls, curvature: Array, seen: Array, noise: float) -> Filter:
        """Return the filter before the first step, whose sums tell what weights may vary by."""
        return cls(curvature, likeliest_variance(seen, curvature, noise), noise)

    def step(self, seen: Array) -> Array:
        """Return how far to go for sums that were seen, and know that much more."""
        curved = self._curvature
        gain = self._open * curved / (curved**2 * self._open + self._noise**2)
        left = 1 - gain * curved
        self._open = np.maximum(self._open * left, self._least)
        self._missed *= left
        self._noisy = left**2 * self._noisy + (gain * self._noise) ** 2
        self.weights = self.weights + gain * seen
        return np.asarray(gain * seen)

    @property
    def variances(self) -> Array:
        """Return those of the weights: of sampling, as far as it was followed, and of all noise."""
        return np.asarray((1 - self._missed) ** 2 / self._curvature + self._noisy)


def likeliest_variance(seen: Array, curvature: Array, noise: float) -> float:
    """Return the variance of weights under which such sums are likeliest: z ~ N(0, h²τ² + σ²)."""
    tried = (noise / float(curvature.mean())) ** 2 * PRIOR_VARIANCES
    variances = np.outer(tried, curvature**2) + noise**2
    fits = np.log(variances).sum(axis=1) + (seen**2 / variances).sum(axis=1)
    return float(tried[int(np.argmin(fits))])
