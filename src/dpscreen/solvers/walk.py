"""Steps along all features at once: where noise lets their Gram matrix be seen, none is chosen.

A path spends most of the budget on choices, and what it leaves out is lost. Here each step releases
Σψ(r)x of all features and goes to what weights are believed to be, given all sums so far
(docs/private-lasso.md, Lemma 51). What is as good as noise is dropped at the end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpscreen._core.arrays import Array, Integers
from dpscreen.privacy import ZCDP
from dpscreen.privacy.accountant import release_triangle
from dpscreen.rows.lattice import UNITS, ExactPoint
from dpscreen.rows.sums import ShortRows
from dpscreen.solvers import rules
from dpscreen.solvers.base import Solution, Task, mean_cost, release_mean_move, rescaled
from dpscreen.solvers.belief import LineBelief
from dpscreen.solvers.refit import move, release_moment, rows_of_features, unseen

GRAINS_PER_DEVIATION = 2.0**20

LEAST = 5.0
"""How large n√(2ρ) must be, in d^1.5, for no feature of a line to be chosen."""


def walks(task: Task, least: float) -> bool:
    """Whether no feature is chosen: the matrix can be seen, and nobody asks for a path."""
    return task.choices.n_iter is None and rules.sees_matrix(task.regime, least)


def suits_line(regime: rules.Regime) -> bool:
    """Whether a line may be found so: residuals have a scale that can be told as it shrinks."""
    return bool(rules.rescale_times(regime)) and rules.sees_matrix(regime, LEAST)


def walks_on_line(task: Task) -> bool:
    """Whether no feature of a line is chosen."""
    return task.refits and not task.idle and suits_line(task.regime) and walks(task, LEAST)


def all_short(task: Task, steps_rho: float) -> ShortRows:
    """Return rows of all features and the constant, as short as noise demands."""
    constants = np.arange(task.n_features, task.design.n_features)
    columns = np.append(task.candidates, constants)
    _, length = rules.refit_clips(task.regime, len(columns), steps_rho)
    norm = min(length * task.spread, 1.0) * math.sqrt(len(columns))
    return rows_of_features(task, columns, norm)


def release_squares(
    task: Task, total: Integers, short: ShortRows, cost: ZCDP
) -> tuple[Array, float]:
    """Release Σxxᵀ of short rows, or of rows that are shorter still where chances are near 0 or 1.

    (docs/private-lasso.md, Lemmas 17 and 23; docs/yes-no.md, Lemma 32)
    """
    return release_triangle(
        task.spending.accountant,
        total,
        units_per_one=UNITS,
        row_norm=short.row_norm,
        cost=cost,
        purpose="all features squared",
    )


@dataclass(frozen=True)
class WalkCosts:
    """What the Gram matrix costs, each estimate of the residuals' scale, each step and the mean."""

    gram: ZCDP
    rescale: ZCDP
    steps: tuple[ZCDP, ...]
    mean: ZCDP

    @classmethod
    def of(cls, task: Task) -> WalkCosts:
        """Divide what is left of the budget."""
        parts, last = rules.walk_parts(), mean_cost(task)
        budget = ZCDP(task.spending.remaining.rho - 2 * last.rho)
        share = rules.walk_rescale_share(task.regime) if task.rescales else 0.0
        rescale = task.spending.share(share)
        gram = budget * Fraction(rules.WALK_GRAM_PART)
        rest = ZCDP(budget.rho - gram.rho - (len(parts) - 1) * rescale.rho)
        return cls(gram, rescale, tuple(rest * part for part in parts), last)


def solve_walk(task: Task) -> Solution:
    """Take all steps along all features, and drop what is as good as noise."""
    costs = WalkCosts.of(task)
    short = all_short(task, float(costs.steps[-1]))
    gram, noise = release_squares(task, task.design.short_gram(short), short, costs.gram)
    walk = LineWalk(task, short, _seen_columns(task, gram, noise), gram, noise)
    for step, cost in enumerate(costs.steps):
        if step and task.rescales:
            walk.rescale(costs.rescale)
        walk.step(cost, last=costs.steps[-1])
    walk.drop_noise()
    if costs.mean.rho:
        walk.centre(costs.mean)
    return Solution(walk.point.weights, len(costs.steps), None, walk.deviation)


def _seen_columns(task: Task, gram: Array, noise: float) -> Integers:
    """Return the places of all columns but those that may be one point, for all that is seen."""
    every = np.arange(len(gram))
    if task.doubtful is None:
        return every
    seen = np.delete(every, unseen(task.doubtful[task.candidates], gram, noise))
    return seen if seen.size else every


class LineWalk:
    """A point on its way, and what is believed of where it should be."""

    def __init__(
        self, task: Task, short: ShortRows, seen: Integers, gram: Array, noise: float
    ) -> None:
        self._task, self._short, self._seen = task, short, seen
        self._columns, self._units = short.chosen[seen], short.in_weights()[seen]
        self._belief = LineBelief(gram[np.ix_(seen, seen)], noise)
        self.point: ExactPoint = task.design.start(task.deviation / GRAINS_PER_DEVIATION)
        self.deviation = task.deviation

    def rescale(self, cost: ZCDP) -> None:
        """Release the residuals' deviation where the point is now."""
        self.deviation = rescaled(self._task, self.point, self.deviation, cost)

    def step(self, cost: ZCDP, *, last: ZCDP) -> None:
        """Release Σψx, and go to what is believed then; clips are those of the last step.

        Clipped sums are those of a line that is flatter by as much as residuals are inside the
        clip: the normal's share is made up for.
        """
        task, width = self._task, len(self._short.chosen)
        factor, _ = rules.refit_clips(task.regime, width, float(last))
        clip = min(task.choices.clip or factor * self.deviation, task.design.loss.bound)
        inside = math.erf(clip / self.deviation / math.sqrt(2))
        moment = release_moment(task.spending, self.point, clip, self._short, cost)
        noise = clip * self._short.row_norm / math.sqrt(2 * float(cost))
        here = self._weights
        self._belief.see(here, -clip / inside * moment[self._seen], noise / inside)
        self._belief.renew(self.deviation / math.sqrt(task.regime.thinning), self._constants)
        move(self.point, self._columns, (self._belief.weights - here) * self._units)

    def centre(self, cost: ZCDP) -> None:
        """Move the constant to where residuals have no mean."""
        by = release_mean_move(self._task, self.point, self.deviation, cost)
        move(self.point, np.array([self._task.n_features]), np.array([by]))

    def drop_noise(self) -> None:
        """Drop features whose weights are as good as noise."""
        n_features = int(np.count_nonzero(self._columns < self._task.n_features))
        sparse = self._belief.sparse_weights(n_features, self._task.choices.max_features)
        move(self.point, self._columns, (sparse - self._weights) * self._units)
        for feature in self._columns[:n_features][sparse[:n_features] == 0]:
            self.point.zero(int(feature))

    @property
    def _weights(self) -> Array:
        return np.asarray(self.point.weights[self._columns] / self._units)

    @property
    def _constants(self) -> Array:
        """Return the prior variance of the constant: the centre's doubt, if that is known."""
        units = self._units[self._columns >= self._task.n_features]
        return np.asarray((min(self.deviation, self._task.doubt) / units) ** 2)
