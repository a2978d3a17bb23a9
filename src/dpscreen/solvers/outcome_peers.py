"""Other ways to outcomes, as baselines: class means, noisy gradients, Frank-Wolfe.

They share PrivateLogistic's placing, its exact sums and its accountant; each has one public rule
for every setting (docs/yes-no.md).
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen.privacy import ZCDP
from dpscreen.rows.lattice import ExactPoint
from dpscreen.rows.sums import ShortRows
from dpscreen.solvers import rules
from dpscreen.solvers.base import Solution
from dpscreen.solvers.logistic import OutcomeTask, release_intercept_move
from dpscreen.solvers.outcome_walk import started
from dpscreen.solvers.peers import FINEST, fading, first_length, row_norm, turned_back
from dpscreen.solvers.refit import release_moment, rows_of_features
from dpscreen.solvers.stagewise import solve_frank_wolfe

MEANS_SHARE = Fraction(9, 10)
"""The share of what is left that class means take; the rest moves the intercept."""

INTERCEPT_MOVES = 3
BALL = 2.0
"""The radius of Frank-Wolfe's ball, in log-odds for one deviation of a feature."""


def gradient_steps(regime: rules.Regime) -> int:
    """Return how many noisy gradients are taken."""
    return round(rules.clamp(regime.signal / 5, 5, 50))


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
