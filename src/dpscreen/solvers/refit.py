"""Newton steps on what was chosen: a noisy Gram matrix once, then noisy sums of residuals.

A path is short of the least-squares answer by its fixed length. The refit goes the rest of the way:
rows of the chosen features are shortened, their Gram matrix is released, and each step solves with
it for a released Σψx (docs/private-lasso.md, Lemma 23).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpscreen._core.arrays import Array, Integers, Mask
from dpscreen.privacy import ZCDP
from dpscreen.privacy.accountant import release_sums, release_triangle
from dpscreen.rows.lattice import UNITS, ExactPoint
from dpscreen.rows.sums import LEVELS, ShortRows
from dpscreen.solvers import rules
from dpscreen.solvers.base import MOST_GRAINS, Spending, Task


@dataclass(frozen=True)
class RefitCosts:
    """What the Gram matrix costs, and what each Newton step."""

    gram: ZCDP
    steps: tuple[ZCDP, ...]

    @classmethod
    def of(cls, budget: ZCDP) -> RefitCosts:
        """Divide a budget."""
        gram = budget * Fraction(rules.GRAM_PART)
        left = ZCDP(budget.rho - gram.rho)
        return cls(gram, tuple(left * part for part in rules.newton_parts()))


def refitted_features(task: Task, weights: Array, entered: Integers) -> Integers:
    """Return what is refitted: all that vary, if there are rows enough, or what was chosen.

    Where all chosen weights were dropped as small, what `entered` the path. If these are too many,
    those of the largest weights.
    """
    chosen = np.flatnonzero(weights[: task.n_features])
    if task.refits_all and task.choices.max_features is None and not task.idle:
        chosen = task.candidates
    chosen = chosen if chosen.size else np.unique(entered)
    largest = np.argsort(-np.abs(weights[chosen]), kind="stable")
    return np.sort(chosen[largest[: rules.most_refitted(task.regime)]])


def rows_of_features(task: Task, columns: Integers, row_norm: float) -> ShortRows:
    """Return short rows; a constant, the last column if any, is as large as features are."""
    return ShortRows(
        columns, row_norm, constant_level(task.spread) if task.choices.intercept else 0
    )


def constant_level(spread: float) -> int:
    """Return the level at which a constant is as large as the features' deviation."""
    return max(1, round(LEVELS * spread))


def refit(
    task: Task, point: ExactPoint, features: Integers, deviation: float, budget: ZCDP
) -> Refit:
    """Move the point by Newton steps along the features, and the constant if there is one."""
    costs = RefitCosts.of(budget)
    columns = np.append(features, task.n_features) if task.choices.intercept else features
    factor, length = rules.refit_clips(task.regime, len(columns), float(costs.steps[-1]))
    norm = min(length * task.spread, 1.0) * math.sqrt(len(columns))
    short = rows_of_features(task, columns, norm)
    units = short.in_weights()
    clip = min(task.choices.clip or factor * deviation, task.design.loss.bound)
    solve = release_solver(task, point, short, costs.gram)
    if task.doubtful is not None:
        solve = solve.without(unseen(task.doubtful[features], solve.gram, solve.noise))
    if task.design.loss.curvature == 1:
        for feature in columns[solve.still]:
            point.zero(int(feature))
    start = point.weights[columns] / units
    noises = tuple(clip * norm / math.sqrt(2 * float(cost)) for cost in costs.steps)
    for cost, noise in zip(costs.steps, noises, strict=True):
        moment = release_moment(task.spending, point, clip, short, cost)
        part = _kept(task, solve, noise / deviation)
        move(point, columns, task.design.loss.safe_moves(-part * clip * solve(moment) * units))
    return Refit(features, start, point.weights[columns] / units, noises, solve)


def _kept(task: Task, solve: NoisySolver, noise: float) -> float:
    """Return which part of a step to take, for noise in units of the residuals' deviation.

    A step explains their variance at most, and its noise adds a known one to predictions. Where the
    loss is curved otherwise, rules of its own keep steps short.
    """
    if task.design.loss.curvature != 1:
        return 1.0
    return rules.kept(solve.added_variance(noise) / task.regime.n_rows)


class NoisySolver:
    """Solves with a noisy Gram matrix, lifted so that no direction is noise."""

    def __init__(self, gram: Array, noise: float, still: Integers | None = None) -> None:
        blur = noise * math.sqrt(len(gram))
        self.gram, self.noise = gram, noise
        self.still = np.zeros(0, dtype=np.int64) if still is None else still
        self.lift = max(0.0, blur - float(np.linalg.eigvalsh(gram)[0])) + rules.RIDGE * blur
        self._lifted = gram + self.lift * np.eye(len(gram))

    def without(self, still: Integers) -> NoisySolver:
        """Return what solves for the other columns only."""
        return NoisySolver(self.gram, self.noise, still)

    def __call__(self, moment: Array) -> Array:
        """Return the solution; zero for columns that are still."""
        found, moving = np.zeros(len(moment)), np.delete(np.arange(len(moment)), self.still)
        found[moving] = np.linalg.solve(self._lifted[np.ix_(moving, moving)], moment[moving])
        return found

    def added_variance(self, noise: float) -> float:
        """Return Σ(x·δ)² over all rows, for the error δ of a solution for a moment with that noise.

        It is the mean, or more: σ²·tr(L⁻¹GL⁻¹), and the lifted matrix L is above G.
        """
        moving = np.delete(np.arange(len(self.gram)), self.still)
        return noise**2 * float(np.trace(np.linalg.inv(self._lifted[np.ix_(moving, moving)])))

    def deviations(self, noise: float) -> Array:
        """Return those of a solution for a moment with that noise, beside one of sampling."""
        inverse = np.linalg.inv(self._lifted)
        return np.asarray(np.sqrt(np.diag(inverse) + noise**2 * np.sum(inverse**2, axis=0)))


def unseen(doubtful: Mask, gram: Array, noise: float) -> Integers:
    """Return the doubtful features whose variance does not stand out of the matrix's noise.

    The variance is what the constant leaves, if there is one, of the mean square; for a quotient a
    of mean and constant its noise is √(1 + 4a² + a⁴) times that of the matrix.
    """
    squares, off = np.diag(gram), np.zeros(len(gram))
    if len(squares) > len(doubtful):
        off = gram[:, -1] / max(squares[-1], noise)
    variances = squares - off**2 * squares[-1]
    noises = noise * np.sqrt(1 + 4 * off**2 + off**4)
    hidden = variances < rules.SEEN * noises
    return np.flatnonzero(doubtful & hidden[: len(doubtful)])


@dataclass(frozen=True, eq=False)
class Refit:
    """Where Newton steps began and ended, and their noise: all of it released.

    What weights are worth follows for a loss whose curvature is the residuals' variance, as that of
    chances is. The last of them may be the constant's.
    """

    features: Integers
    start: Array
    end: Array
    noises: tuple[float, ...]
    solver: NoisySolver

    @property
    def sizes(self) -> Array:
        """Return the features' weights in deviations, of sampling and of the last step's noise.

        Where the matrix was lifted much, they are shorter than that, and sizes at most these.
        """
        found = np.abs(self.end) / self.solver.deviations(self.noises[-1])
        return found[: len(self.features)]

    @property
    def sure_sizes(self) -> Array:
        """Return how much the steps themselves found, in deviations of sampling and of all noise.

        A lifted matrix leaves some of what the path had chosen where it was: that is taken off.
        """
        values, vectors = np.linalg.eigh(self.solver.gram)
        lifted = values + self.solver.lift
        kept = np.clip(self.solver.lift / lifted, 0.0, 1.0)
        ways = [kept**later / lifted for later in reversed(range(len(self.noises)))]
        found = self.end - vectors @ (kept ** len(ways) * (vectors.T @ self.start))
        variances = np.maximum(values, 0.0) * np.sum(ways, axis=0) ** 2
        for noise, way in zip(self.noises, ways, strict=True):
            variances += (noise * way) ** 2
        sizes = np.abs(found) / np.sqrt(vectors**2 @ variances)
        return np.asarray(sizes[: len(self.features)])


def release_solver(task: Task, point: ExactPoint, short: ShortRows, cost: ZCDP) -> NoisySolver:
    """Release the Gram matrix of short rows (docs/private-lasso.md, Lemmas 17 and 23).

    Where the loss is not curved alike everywhere, that of rows that are shorter still
    (docs/yes-no.md, Lemma 32).
    """
    most = task.design.loss.curvature
    gram, noise = release_triangle(
        task.spending.accountant,
        task.design.short_gram(short) if most == 1 else point.curved_gram(short),
        units_per_one=UNITS,
        row_norm=short.row_norm,
        cost=cost,
        purpose="chosen features squared",
    )
    return NoisySolver(most * gram, most * noise)


def release_moment(
    spending: Spending, point: ExactPoint, clip: float, short: ShortRows, cost: ZCDP
) -> Array:
    """Release Σψx, which one row moves by at most ν, in units of the clip.

    (docs/private-lasso.md, Lemmas 17 and 23)
    """
    noisy, _ = release_sums(
        spending.accountant,
        point.short_products(clip, short),
        units_per_one=UNITS,
        change=short.row_norm,
        cost=cost,
        purpose="residuals times chosen features, in units of the clip",
    )
    return noisy


def move(point: ExactPoint, columns: Integers, moves: Array) -> None:
    """Move weights by whole numbers of grains: residuals stay exact functions of their rows."""
    for column, grains in _in_grains(point.scale, columns, moves):
        point.add(column, grains)


def _in_grains(grain: float, columns: Integers, moves: Array) -> Iterator[tuple[int, int]]:
    for column, move in zip(columns.tolist(), moves.tolist(), strict=True):
        yield column, round(rules.clamp(move / grain, -MOST_GRAINS, MOST_GRAINS))
