"""The engine of the sparse models: Newton iterations on noisy scores, for every family.

A Gram matrix is released once. Each round releases the score Σψ(r)x of norm-clipped rows at the
present coefficients and moves to their posterior mean given all scores so far. Where the matrix of
all features would be noise, a private path selects features first (`selection`). All that steers
the iterations is public or released (docs/theory/engine.md).
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from dpscreen._core.arrays import Array, Integers, clamp
from dpscreen.privacy import ZCDP
from dpscreen.privacy.accountant import release_gram, release_sums
from dpscreen.rows.lattice import UNITS, ExactPoint
from dpscreen.rows.sums import LEVELS, ShortRows
from dpscreen.solvers import rules
from dpscreen.solvers.base import (
    Solution,
    Spending,
    Task,
    move_constant,
    release_scale,
    scale_cost,
)
from dpscreen.solvers.posterior import (
    Posterior,
    Score,
    q_values,
    sparse_mean,
)
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

SIGNAL_PER_CLIP, WIDEST_CLIP = 50.0, 3.0
"""How much n√(2ρ)/d is for each standard deviation at which residuals are clipped, and the widest
clip, in standard deviations (tuned)."""

DRIFT, SHORTFALL = 0.25, 0.1
"""The squared relative change, from one score to another, of a curvature that is not the same
everywhere; and how far log-means of predictions may be too small (conventional)."""


def most_columns(regime: Regime) -> int:
    """Return how many features can be fitted at once: noise must not hide their Gram matrix."""
    by_noise = (regime.depth(regime.rho) / LEAST_SIGNAL) ** (2 / 3)
    return min(int(by_noise), rules.most_refitted(regime))


def is_dense(task: Task) -> bool:
    """Whether all features are fitted at once: there are not too many, and no path is wanted."""
    free = task.choices.n_iter is None and task.refits
    return free and len(task.candidates) <= most_columns(task.regime)


def n_passes(task: Task) -> int:
    """Return how often the engine looks at the rows, about."""
    return ROUNDS + 1 + (0 if is_dense(task) else task.path_steps)


def residual_clip(regime: Regime, n_columns: int) -> float:
    """Return where residuals are clipped, in standard deviations, by how much signal there is."""
    signal = regime.depth(regime.rho) / n_columns
    return clamp(signal / SIGNAL_PER_CLIP, 1.0, WIDEST_CLIP)


class Engine:
    """Rows at the present coefficients, and the posterior given what was released of them.

    `features` are fitted, and the constant if there is one, by rows that are clipped to a norm.
    """

    def __init__(self, task: Task, point: ExactPoint, features: Integers) -> None:
        self._task, self.point, self.features = task, point, features
        constants = np.arange(task.n_features, task.design.n_features)
        self._columns = np.append(features, constants).astype(np.int64)
        largest = math.sqrt(task.family.loss.curvature)
        self.scale = task.residual_scale if task.family.has_scale else largest

        # What is left of the budget: for the matrix, scales, and scores.
        budget, width = task.spending.remaining, len(self._columns)
        gram_cost, scale = budget * Fraction(GRAM_PART), scale_cost(task, budget)
        left = budget.rho - gram_cost.rho - (ROUNDS - 1) * scale.rho
        self._scale_cost, self._score_cost = scale, ZCDP(left) / ROUNDS

        # Where residuals are clipped, in standard deviations, and the norm of rows.
        self._clip = residual_clip(task.regime, width)
        norm = min(task.spread, 1.0) * math.sqrt(width)
        if task.choices.row_norm is not None:
            norm = min(norm, math.hypot(task.choices.row_norm, task.spread))
        self._rows = norm_clipped(task, self._columns, norm)
        self._units = self._rows.in_weights()
        self._start = np.append(np.zeros(len(features)), self._coefficients[len(features) :])
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

    @property
    def _coefficients(self) -> Array:
        return np.asarray(self.point.weights[self._columns] / self._units)

    def run(self) -> None:
        """Release all scores, each where the posterior mean given those before is."""
        task, family, n = self._task, self._task.family, self._task.regime.n_rows
        for k in range(ROUNDS):
            if k:
                self.scale = release_scale(task, self.point, self.scale, self._scale_cost)
            clip = min(task.choices.clip or self._clip * self.scale, task.design.loss.bound)
            score, noise = release_score(
                task.spending, self.point, clip, self._rows, self._score_cost
            )
            flatter, at = family.unclipped(clip / self.scale), self._coefficients - self._start
            score, noise = -clip / flatter * score, clip / flatter * noise

            # The mean curvature at the present coefficients, as if predictors were normal.
            features = self._coefficients
            features[len(self.features) :] = 0
            constant = float(self.point.weights[task.n_features :].sum())
            size = family.mean_curvature(constant, self.posterior.spread(features, n) ** 2)
            dispersion = family.dispersion(self.scale, size) / task.regime.thinning
            drift = 0.0 if family.quadratic else DRIFT
            self.posterior.update(Score(at, score, noise), size, dispersion, drift)
            way = self.posterior.mean - at
            way = STEP * family.damping(self.posterior.spread(way, n)) * way
            self.point.shift(self._columns, way * self._units)

    def sparsify(self) -> None:
        """Set the coefficients without a detected effect to zero, and the others accordingly."""
        n_features, limit = len(self.features), self._task.choices.max_features
        mean, root = self.posterior.mean + self._start, self.posterior.root
        sparse = sparse_mean(mean, root @ root.T, n_features, limit)
        self.point.shift(self._columns, (sparse - self._coefficients) * self._units)
        for feature in self.features[sparse[:n_features] == 0]:
            self.point.zero(int(feature))

    def restore_mean(self) -> None:
        """Raise the constant where predictions fall short of the released mean of the outcome.

        Clips leave out rows far off on one side, and with them much of what costs add up to. The
        mean of predictions is that for normal predictors; with an offset it is not known.
        """
        task, features = self._task, self._coefficients
        features[len(self.features) :] = 0
        explained = self.posterior.spread(features, task.regime.n_rows) ** 2
        short = task.start - explained / 2 - float(self.point.weights[task.n_features :].sum())
        if task.family.in_parts and task.choices.offset is None and short > SHORTFALL:
            move_constant(task, self.point, short)

    @property
    def q_values(self) -> Array:
        """Return the q-value of every feature; 1 for those that were not fitted."""
        found, task = np.ones(self._task.n_features), self._task
        z_values = self.posterior.z_values[: len(self.features)]
        found[self.features] = q_values(z_values, len(task.candidates))
        return found


def norm_clipped(task: Task, columns: Integers, norm: float) -> ShortRows:
    """Return rows clipped to a norm; a constant, the last column if any, is as large as others."""
    constant = max(1, round(LEVELS * task.spread)) if task.choices.intercept else 0
    return ShortRows(columns, norm, constant)


def release_score(
    spending: Spending, point: ExactPoint, clip: float, rows: ShortRows, cost: ZCDP
) -> tuple[Array, float]:
    """Release Σψx, which one row moves by at most its norm, in units of the clip, and its noise.

    (docs/theory/engine.md, Lemma 23)
    """
    return release_sums(
        spending.accountant,
        point.short_products(clip, rows),
        units_per_one=UNITS,
        change=rows.row_norm,
        cost=cost,
        purpose="score",
    )


def solve_dense(task: Task) -> Solution:
    """Fit all features at once."""
    point = task.start_point(task.deviation / GRAINS_PER_SCALE)
    features = task.candidates
    start = Solution(point.weights, ROUNDS, None, task.residual_scale)
    return _finished(task, point, features, start)


def solve_selected(task: Task, run_of: type[PathRun] = PathRun) -> Solution:
    """Select features by a private path, then fit those that it selected."""
    left = task.spending.remaining
    rest = rules.INTERCEPT_SHARE if task.choices.intercept else 0.0
    part = 1 - (rules.refit_share(task.regime) if task.refits else rest)
    point, path, scale = select(task, left * Fraction(part), run_of)
    found = Solution(point.weights, task.path_steps, path, scale)
    task.keep(found)
    return _finished(task, point, _refitted(task, found), found)


def _refitted(task: Task, found: Solution) -> Integers:
    """Return the features of the largest weights, as many as can be fitted at once."""
    if not task.refits:
        return np.zeros(0, dtype=np.int64)
    sizes = np.zeros(task.n_features)
    sizes[task.candidates] = np.abs(found.weights[task.candidates])
    largest = np.argsort(-sizes, kind="stable")[: most_columns(task.regime)]
    return np.sort(largest[sizes[largest] > 0])


def _finished(task: Task, point: ExactPoint, features: Integers, found: Solution) -> Solution:
    """Run the engine from a point, for what is left of the budget; return what it leads to."""
    if not features.size and not task.choices.intercept:
        return found
    engine = Engine(task, point, features)
    engine.scale = min(engine.scale, found.deviation)
    engine.run()
    engine.sparsify()
    engine.restore_mean()
    return replace(found, weights=point.weights, deviation=engine.scale, q_values=engine.q_values)
