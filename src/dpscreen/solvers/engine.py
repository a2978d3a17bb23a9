"""The engine of the sparse models: Newton iterations on noisy scores, for every family.

A Gram matrix is released once. Each round releases the score Σψ(r)x of norm-clipped rows at the
present coefficients and moves to their posterior mean given all scores so far. Where the matrix of
all features would be noise, a private path selects features first (`selection`). All that steers
the iterations is public or released (docs/theory/engine.md).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dpscreen._core.arrays import Array, Integers, clamp
from dpscreen.privacy import ZCDP
from dpscreen.privacy.accountant import release_gram, release_sums
from dpscreen.rows.lattice import UNITS, ExactPoint
from dpscreen.rows.sums import LEVELS, ShortRows
from dpscreen.solvers import rules
from dpscreen.solvers.base import Path, Solution, Task, release_scale, scale_cost
from dpscreen.solvers.posterior import Posterior, Score, q_values, sparse_mean
from dpscreen.solvers.rules import Regime
from dpscreen.solvers.selection import PathRun, select

GRAINS_PER_SCALE = 2.0**20
"""Into how many grains the target's standard deviation is divided (conventional)."""

ROUNDS = 12
"""Number of scores (tuned)."""

STEP = 2 / 3
"""Part of the way to the posterior mean that a round moves. Derived: with the eigenvalue floor of
`posterior`, noise makes an eigenvalue too small by a factor of three at most, and rounds converge
while the factor times the step is below two."""

GRAM_PART = 0.2
"""The part of the engine's budget for the Gram matrix (tuned)."""

LEAST_SIGNAL = 0.8
"""The least n√(2ρ), in d^1.5, at which d features are fitted at once (tuned)."""

ROWS_PER_FEATURE, MOST_FITTED = 10, 500
"""Least number of rows for each feature that is fitted at once, and most of such features, for the
time that it takes (conventional)."""

SIGNAL_PER_CLIP, WIDEST_CLIP = 50.0, 3.0
"""How much n√(2ρ)/d is for each standard deviation at which residuals are clipped, and the widest
clip, in standard deviations (tuned)."""

DRIFT, SHORTFALL = 0.25, 0.1
"""The squared relative change, from one score to another, of a curvature that is not the same
everywhere; and how far log-means of predictions may be too small (conventional)."""


def most_columns(regime: Regime) -> int:
    """Return how many features can be fitted at once: noise must not hide their Gram matrix."""
    by_noise, drawn = (regime.depth / LEAST_SIGNAL) ** (2 / 3), regime.n_rows * regime.thinning
    return min(int(by_noise), max(1, int(drawn) // ROWS_PER_FEATURE), MOST_FITTED)


def is_dense(task: Task) -> bool:
    """Whether all features are fitted at once: there are not too many, and no path is wanted."""
    free = task.choices.n_iter is None and task.choices.radius is None
    return free and len(task.candidates) <= most_columns(task.regime)


def residual_clip(regime: Regime, n_columns: int) -> float:
    """Return where residuals are clipped, in standard deviations, by how much signal there is."""
    return clamp(regime.depth / n_columns / SIGNAL_PER_CLIP, 1.0, WIDEST_CLIP)


def norm_clipped(task: Task, columns: Integers, norm: float) -> ShortRows:
    """Return rows clipped to a norm; a constant, the last column if any, is as large as others."""
    constant = max(1, round(LEVELS * task.spread)) if task.choices.intercept else 0
    return ShortRows(columns, norm, constant)


class Engine:
    """Rows at the present coefficients, and the posterior given what was released of them.

    `features` are fitted, and the constant if there is one, by rows that are clipped to a norm.
    """

    def __init__(self, task: Task, point: ExactPoint, features: Integers, scale: float) -> None:
        self._task, self.point, self.features = task, point, features
        constants = np.arange(task.n_features, task.design.n_features)
        self._columns = np.append(features, constants).astype(np.int64)
        largest = math.sqrt(task.family.loss.curvature)
        self.scale = min(task.residual_scale if task.family.has_scale else largest, scale)

        # What is left of the budget: for the matrix, scales, and scores.
        budget, width = task.spending.remaining, len(self._columns)
        gram_cost, renewal = budget * Fraction(GRAM_PART), scale_cost(task, budget)
        left = budget.rho - gram_cost.rho - (ROUNDS - 1) * renewal.rho
        self._scale_cost, self._score_cost = renewal, ZCDP(left) / ROUNDS

        # Where residuals are clipped, in standard deviations, and the norm of rows.
        self._clip = residual_clip(task.regime, width)
        norm = min(task.spread, 1.0) * math.sqrt(width)
        if task.choices.row_norm is not None:
            norm = min(norm, math.hypot(task.choices.row_norm, task.spread))
        self._rows = norm_clipped(task, self._columns, norm)
        self._units = self._rows.in_weights()
        gram, noise = release_gram(
            task.spending.accountant,
            task.design.short_gram(self._rows),
            units_per_one=UNITS,
            row_norm=self._rows.row_norm,
            cost=gram_cost,
            purpose="Gram matrix",
        )
        own = task.family.has_scale and task.family.quadratic
        prior = (task.deviation if own else 1.0) / self._units[len(features) :]
        square = task.regime.n_rows * task.spread**2
        self.posterior = Posterior(gram, noise, square, prior**2)
        self._move(np.zeros(width))
        self._start = np.where(self._columns < task.n_features, 0.0, self._coefficients)

    def _move(self, way: Array) -> None:
        """Move the point; find the coefficients, and constant and spread of the predictors."""
        self.point.shift(self._columns, way * self._units)
        weights, n_features = self.point.weights, self._task.n_features
        self._coefficients = weights[self._columns] / self._units
        features = np.where(self._columns < n_features, self._coefficients, 0.0)
        self._constant = float(weights[n_features:].sum())
        self._spread = self.posterior.spread(features, self._task.regime.n_rows)

    def run(self) -> None:
        """Release all scores, each where the posterior mean given those before is.

        One row moves a score by at most its norm, in units of the clip (docs/theory/engine.md,
        Lemma 23).
        """
        task, family, rows = self._task, self._task.family, self._rows
        for k in range(ROUNDS):
            if k:
                self.scale = release_scale(task, self.point, self.scale, self._scale_cost)
            clip = min(task.choices.clip or self._clip * self.scale, task.design.loss.bound)
            score, noise = release_sums(
                task.spending.accountant,
                self.point.short_products(clip, rows),
                units_per_one=UNITS,
                change=rows.row_norm,
                cost=self._score_cost,
                purpose="score",
            )
            flatter, at = family.unclipped(clip / self.scale), self._coefficients - self._start
            score, noise = -clip / flatter * score, clip / flatter * noise

            # The mean curvature at the present coefficients, as if predictors were normal.
            size = family.mean_curvature(self._constant, self._spread**2)
            dispersion = family.dispersion(self.scale, size) / task.regime.thinning
            drift = 0.0 if family.quadratic else DRIFT
            self.posterior.update(Score(at, score, noise), size, dispersion, drift)
            way = self.posterior.mean - at
            way = STEP * family.damping(self.posterior.spread(way, task.regime.n_rows)) * way
            self._move(way)

    def solution(self, path: Path | None, n_iter: int) -> Solution:
        """Return the coefficients, those without a detected effect set to zero, and q-values.

        Clips leave out rows far off on one side, and with them much of what costs add up to: the
        constant is raised where predictions fall short of the released mean of the outcome. The
        mean of predictions is that for normal predictors; with an offset it is not known.
        """
        task, n_features, choices = self._task, len(self.features), self._task.choices
        mean, root = self.posterior.mean + self._start, self.posterior.root
        sparse = sparse_mean(mean, root @ root.T, n_features, choices.max_features)
        self._move(sparse - self._coefficients)
        short = task.start - self._spread**2 / 2 - self._constant
        known = task.family.in_parts and choices.intercept and choices.offset is None
        if known and short > SHORTFALL:
            self.point.shift(np.array([task.n_features]), np.array([short]))

        found = np.ones(task.n_features)  # 1 for features that were not fitted
        z_values = self.posterior.z_values[:n_features]
        found[self.features] = q_values(z_values, len(task.candidates))
        return Solution(self.point.weights, n_iter, path, self.scale, found)


def solve(task: Task, run_of: type[PathRun] | None = None) -> Solution:
    """Fit all features at once; or select features by a private path, and fit those it selected."""
    path, n_iter, scale = None, ROUNDS, task.residual_scale
    if run_of is None:
        point, features = task.start_point(task.deviation / GRAINS_PER_SCALE), task.candidates
    else:
        refits, n_iter = task.choices.radius is None, task.path_steps
        rest = rules.INTERCEPT_SHARE if task.choices.intercept else 0.0
        part = 1 - (rules.refit_share(task.regime) if refits else rest)
        point, path, scale = select(task, task.spending.remaining * Fraction(part), run_of)
        task.keep(Solution(point.weights, n_iter, path, scale))

        # The features of the largest weights, as many as can be fitted at once.
        sizes = np.zeros(task.n_features)
        sizes[task.candidates] = np.abs(point.weights[task.candidates])
        most = most_columns(task.regime) if refits else 0
        largest = np.argsort(-sizes, kind="stable")[:most]
        features = np.sort(largest[sizes[largest] > 0])
    if not features.size and not task.choices.intercept:
        return Solution(point.weights, n_iter, path, scale)
    engine = Engine(task, point, features, scale)
    engine.run()
    return engine.solution(path, n_iter)
