"""Gradient steps with hard thresholding, several lengths at a time."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen.privacy import ZCDP, DiscreteGaussian, NoisyMax, sensitivity
from dpscreen.privacy.accountant import release_cell
from dpscreen.rows.lattice import UNITS, ExactPoint
from dpscreen.rows.sums import LEVELS
from dpscreen.solvers import rules
from dpscreen.solvers.base import Solution, Spending, Task, intercept_move, rescaled


def hard_threshold(weights: Array, level: float) -> Array:
    """Return the weights with those of size `level` or less set to zero."""
    return np.where(np.abs(weights) > level, weights, 0.0)


def thresholded_steps(
    weights: Array, direction: Array, lengths: Iterable[float], *, level: float
) -> list[Array]:
    """Return w itself, then H(w + a·direction) for each length a, thresholded at a·level."""
    moved = (hard_threshold(weights + a * direction, a * level) for a in lengths)
    return [weights, *moved]


def capped_loss(point: ExactPoint, cap: float) -> int:
    """Return Σ min(|r_i|/cap, 1) in whole numbers of 1/2^14: a row counts between 0 and 2^14."""
    counts = point.residual_counts(cap)
    return int(counts @ np.arange(len(counts)))


def rows_fill_the_norm(task: Task, row_norm: float) -> bool:
    """Release whether nine rows in ten are nearly as long as declared: a count, moved by one."""
    shortest = math.floor((rules.FULL_LENGTH * row_norm) ** 2 * UNITS)
    edges = np.array([0, shortest, np.iinfo(np.int64).max])
    noisy, _ = task.spending.release_sum(
        int(task.design.length_counts(task.n_features, edges)[1]),
        most=1,
        bound=1.0,
        cost=task.spending.share(rules.ROWS_SHARE),
        purpose="how many rows are long",
    )
    return rules.gradients_pay(noisy, task.regime.n_rows)


def release_row_norm(task: Task) -> float:
    """Release a bound on rows' norms: the upper edge of the cell that holds their median.

    (docs/private-lasso.md, Lemma 11)
    """
    edges = np.sqrt(task.n_features) * 2.0 ** (np.arange(-32, 1) / 4)
    squares = np.ceil((edges[:-1] * LEVELS) ** 2).astype(np.int64)
    cells = np.concatenate(([0], squares, [np.iinfo(np.int64).max]))
    cell = release_cell(
        task.spending.accountant,
        task.design.length_counts(task.n_features, cells),
        cost=task.spending.share(rules.target_share(task.regime)),
        purpose="the rows' norm",
    )
    return float(edges[cell])


def solve_noisy_gradient(task: Task) -> Solution:
    """Take a few gradients with Gaussian noise, threshold at the noise, search each step length."""
    longest = math.sqrt(task.n_features)  # no row is longer, whatever was declared
    row_norm = min(task.choices.row_norm or release_row_norm(task), longest)
    run = GradientRun(task, row_norm)
    weights = np.zeros(task.design.n_features)
    for k in range(run.n_iter):
        weights = run.improved(k, weights)
    return run.finish(weights)


class GradientRun:
    """One fit by noisy gradients: what each release costs, and the scale on the way."""

    def __init__(self, task: Task, row_norm: float) -> None:
        self._task = task
        self._row_norm = row_norm
        self._deviation = task.deviation
        self._entered = np.zeros(task.n_features, dtype=bool)
        self.n_iter = task.choices.n_iter or rules.n_gradients(task.regime, row_norm)
        self._set_costs(task.spending)

    def _set_costs(self, spending: Spending) -> None:
        fewer = min(1.0, rules.MOST_GRADIENTS / self.n_iter)
        line = spending.share(fewer * rules.LINE_SHARE)
        rescale = spending.share(fewer * rules.rescale_share(spending.regime))
        intercept = spending.share(rules.INTERCEPT_SHARE) / self.n_iter
        reserved = self.n_iter * line + (self.n_iter - 1) * rescale
        if self._task.choices.intercept:
            reserved += self.n_iter * intercept
        # Whatever the estimates before have left, half of it is for the gradients.
        part = min(Fraction(1), spending.remaining.rho / (2 * reserved.rho))
        self._line_cost, self._rescale_cost = line * part, rescale * part
        self._intercept_cost = intercept * part
        left = spending.remaining.rho - part * reserved.rho
        self._gradient_cost = ZCDP(left) / self.n_iter

    def improved(self, k: int, weights: Array) -> Array:
        """Return the weights after one more gradient."""
        point = self._at(weights)
        if k > 0:
            self._deviation = rescaled(self._task, point, self._deviation, self._rescale_cost)
        clip = self._task.choices.clip or self._deviation / rules.GAUSSIAN
        weights = point.weights
        if self._task.choices.intercept:
            most = rules.LARGEST_WEIGHT * self._task.deviation
            move = intercept_move(self._task, point, clip, self._intercept_cost)
            weights[-1] = rules.clamp(weights[-1] + move, -most, most)
        return self._searched(weights, point, clip)

    def finish(self, weights: Array) -> Solution:
        """Drop what is small and return the rest."""
        task, d = self._task, self._task.n_features
        middle = math.sqrt(task.deviation * self._deviation)
        weights = weights.copy()
        weights[:d] = hard_threshold(weights[:d], task.smallest_weight(middle))
        return Solution(weights, self.n_iter, None, self._deviation)

    def _at(self, weights: Array) -> ExactPoint:
        return self._task.design.at(weights, scale=self._task.deviation)

    def _searched(self, weights: Array, point: ExactPoint, clip: float) -> Array:
        """Return the best of several steps along one noisy gradient."""
        d = self._task.n_features
        gradient, noise = self._release_gradient(point, clip)
        curvature = self._task.spread**2 * self._task.regime.n_rows
        level = rules.threshold(d) * noise / curvature
        steps = thresholded_steps(weights[:d], -gradient / curvature, rules.LENGTHS, level=level)
        most = rules.LARGEST_WEIGHT * self._task.deviation
        steps = [self._admitted(np.clip(step, -most, most)) for step in steps]
        tried = [np.append(step, weights[d:]) for step in steps]
        best = tried[self._release_best(tried)]
        self._entered |= best[:d] != 0
        return best

    def _release_gradient(self, point: ExactPoint, clip: float) -> tuple[Array, float]:
        """Release Σψ_c(r_i)x_i over the shortened rows, floored to c/2^14.

        (docs/privacy.md, Lemma 1; docs/private-lasso.md, Lemma 13)
        """
        change = sensitivity.clipped_gradient_l2(clip=clip, row_norm=self._row_norm)
        rounding = math.sqrt(self._task.n_features) * clip / LEVELS
        mechanism = DiscreteGaussian.of_cost(
            self._gradient_cost,
            sensitivity=(change + rounding) * (1 + 1e-12),
            unit=clip / LEVELS,
        )
        sums = point.short_gradient(clip, n_features=self._task.n_features, row_norm=self._row_norm)
        release = self._task.spending.accountant.release
        return release(mechanism, sums // LEVELS, purpose="noisy gradient"), mechanism.scale

    def _admitted(self, weights: Array) -> Array:
        """Return the weights of features that entered before, and of the largest new ones.

        Together at most `max_features` (Lemma 7).
        """
        limit = self._task.choices.max_features
        if limit is None:
            return weights
        rank = np.lexsort((-np.abs(weights), ~self._entered))
        admitted = np.zeros_like(weights)
        admitted[rank[:limit]] = weights[rank[:limit]]
        return admitted

    def _release_best(self, tried: list[Array]) -> int:
        """Release the step of least capped loss: a row adds to every loss, at most 1.

        (docs/private-lasso.md, Lemma 14)
        """
        cap = rules.LOSS_CAP * self._deviation / rules.GAUSSIAN
        scores = np.array([-capped_loss(self._at(weights), cap) for weights in tried])
        mechanism = NoisyMax.of_cost(
            self._line_cost, sensitivity=1.0, score_range=1.0, unit=1 / LEVELS
        )
        return self._task.spending.accountant.release(mechanism, scores, purpose="step length")
