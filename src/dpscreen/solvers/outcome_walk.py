"""Steps along all features at once, for outcomes: where noise lets them be seen, none is chosen.

A path spends half of the budget on choices, and what it leaves out is lost. Here each step releases
Σ(p − y)x of all features and moves to what weights are believed to be, given all sums so far, their
noise, and how rows are drawn. What weights may be, the sums tell themselves: many small ones, or
few that are large (docs/yes-no.md, Lemma 40).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpscreen._core.arrays import Array, Integers, Mask
from dpscreen.privacy import ZCDP
from dpscreen.rows.lattice import ExactPoint
from dpscreen.rows.loss import SATURATED
from dpscreen.rows.source import PublicUnits
from dpscreen.solvers import rules
from dpscreen.solvers.base import Solution
from dpscreen.solvers.belief import Seen, SumsTold, lifted, sizes_of, sure_threshold
from dpscreen.solvers.least_squares import users_units
from dpscreen.solvers.logistic import OutcomeTask, solve_logistic
from dpscreen.solvers.placing import is_binary
from dpscreen.solvers.refit import move, release_moment, unseen
from dpscreen.solvers.walk import all_short, release_squares, walks

GRAINS_PER_LOG_ODDS = 2.0**20
FEWEST_STEPS, MOST_STEPS, DEPTH_PER_STEP = 5, 16, 8.0
"""How many sums are released, and how large n√(2ρ)/d must be for each."""

LEAST = 0.5
"""How large n√(2ρ) must be, in d^1.5, for no feature to be chosen."""

_NODES, _PARTS = np.polynomial.hermite_e.hermegauss(21)


def walks_on_outcomes(task: OutcomeTask) -> bool:
    """Whether no feature is chosen."""
    return walks(task, LEAST)


def n_walk_steps(task: OutcomeTask) -> int:
    """Return how many steps there are: more where noise is small, as all sums count in the end."""
    regime = task.regime
    wanted = regime.depth(regime.rho) / regime.n_features / DEPTH_PER_STEP
    return round(rules.clamp(wanted, FEWEST_STEPS, MOST_STEPS))


def solve_outcomes(task: OutcomeTask) -> Solution:
    """Walk along all features where that pays; else choose, then refit."""
    return solve_outcome_walk(task) if walks_on_outcomes(task) else solve_logistic(task)


def solve_outcome_walk(task: OutcomeTask) -> Solution:
    """Take all steps along all features, and tell which of them stand out of the noise."""
    point, rich = started(task), rules.refits_all(task.regime)
    gram_cost = task.spending.remaining * Fraction(rules.GRAM_PART)
    steps_cost = ZCDP(task.spending.remaining.rho - gram_cost.rho)
    short, gram_cost = all_short(task, float(steps_cost)), gram_cost / (1 + rich)
    gram, noise = release_squares(task, task.design.short_gram(short), short, gram_cost)
    seen = _seen_columns(task, gram, noise)
    chosen, units = short.chosen[seen], short.in_weights()[seen]
    gram = lifted(gram, noise, seen)
    levels = _levels(task, gram, noise, chosen, units)
    belief = WeightBelief(gram, units[chosen >= task.n_features], levels)
    curvature, cost = None, steps_cost / n_walk_steps(task)
    start = point.weights[chosen] / units
    for step in range(n_walk_steps(task)):
        moment = release_moment(task.spending, point, 1.0, short, cost)
        belief.see(-moment[seen], short.row_norm / math.sqrt(2 * float(cost)))
        if rich and step == n_walk_steps(task) // 2:
            squares = release_squares(task, point.curved_gram(short), short, gram_cost)
            curvature = task.design.loss.curvature * lifted(*squares, seen)
        here = levels.curvature(start + belief.weights, *_log_odds_now(task, point, belief))
        by = belief.move(here if curvature is None else curvature, task.regime.n_rows)
        move(point, chosen, by * units)
    sure = belief.sizes >= sure_threshold(task.n_features)
    stands_out = np.isin(np.arange(point.weights.size), chosen[sure])
    return Solution(point.weights, n_walk_steps(task), None, task.deviation, stands_out)


def started(task: OutcomeTask) -> ExactPoint:
    """Return the point whose intercept is where the released share says."""
    point = task.design.start(task.deviation / GRAINS_PER_LOG_ODDS)
    if task.choices.intercept:
        point.add(task.n_features, round(task.share.log_odds / point.scale))
    return point


def _seen_columns(task: OutcomeTask, gram: Array, noise: float) -> Integers:
    """Return the places of all columns but numbers that may be one point, for all that is seen.

    A rare level stays: its prior keeps it small, and it may tell most.
    """
    every = np.arange(len(gram))
    doubtful = np.zeros(task.n_features, dtype=bool)
    if task.doubtful is not None:
        doubtful = task.doubtful & ~task.binary
    seen = np.delete(every, unseen(doubtful[task.candidates], gram, noise))
    return seen if seen.size else every


def _levels(task: OutcomeTask, gram: Array, noise: float, chosen: Integers, units: Array) -> Levels:
    """Return what the matrix tells of the rows of each level that is among the chosen columns."""
    to_users = users_units(task.units)[np.ix_(chosen, chosen)] * units
    return Levels.of(gram, noise, to_users, columns_of_levels(task.units)[chosen])


def _log_odds_now(
    task: OutcomeTask, point: ExactPoint, belief: WeightBelief
) -> tuple[float, float]:
    """Return about the mean of log-odds, and the variance that weights say."""
    constant = float(point.weights[task.n_features :].sum())
    weights = belief.weights.copy()
    weights[len(weights) - belief.n_constants :] = 0
    square = max(float(weights @ belief.gram @ weights) / task.regime.n_rows, 0.0)
    return constant, square


def mean_curvature(log_odds: float, variance: float) -> float:
    """Return the mean of p(1 − p) of rows whose log-odds are normal."""
    places = np.clip(log_odds + math.sqrt(variance) * _NODES, -SATURATED, SATURATED)
    chances = 1 / (1 + np.exp(-places))
    return float(_PARTS @ (chances * (1 - chances)) / _PARTS.sum())


# --- what is believed -----------------------------------------------------------------------------


SEEN = 4.0
"""How many deviations of its noise the number of a level's rows must be, to have a mean."""


def columns_of_levels(units: PublicUnits) -> Mask:
    """Return which weights are of columns of 0 and 1: none, if no constant stands for the rest."""
    constants = np.zeros(int(units.constant), dtype=bool)
    return np.append(is_binary(units.feature_bounds) & units.constant, constants)


@dataclass(frozen=True, eq=False)
class Levels:
    """What a released Gram matrix tells of the rows of each level, in the user's units.

    `squares` are of features and constant as they are, `places` those of levels that noise lets
    see: their own square is the number of their rows (docs/yes-no.md, Lemma 40).
    """

    to_users: Array
    squares: Array
    places: Integers

    @classmethod
    def of(cls, gram: Array, noise: float, to_users: Array, binary: Mask) -> Levels:
        """Return what a matrix tells, with the one from its weights to the user's coefficients."""
        back = np.linalg.inv(to_users)
        squares = back.T @ gram @ back
        seen = np.diag(squares) > SEEN * noise * (back**2).sum(axis=0)
        return cls(to_users, squares, np.flatnonzero(binary & seen))

    @classmethod
    def none(cls, gram: Array) -> Levels:
        """Return what is told where no column is one of a level."""
        return cls(np.eye(len(gram)), gram, np.zeros(0, dtype=np.int64))

    def log_odds(self, weights: Array) -> Array:
        """Return the mean of log-odds over the rows of each level."""
        sums = (self.squares @ (self.to_users @ weights))[self.places]
        return np.asarray(sums / np.diag(self.squares)[self.places])

    def largest_move(self, way: Array, gram: Array, n_rows: int) -> float:
        """Return how far log-odds move, in the root mean square or over the rows of a level."""
        square = max(float(way @ gram @ way) / n_rows, 0.0)
        return max(math.sqrt(square), float(np.abs(self.log_odds(way)).max(initial=0.0)))

    def curvature(self, weights: Array, mean: float, variance: float) -> Array:
        """Return what Σp(1 − p)xxᵀ is about: each level has the mean of p(1 − p) of its own rows.

        Where outcomes are rare, those of a level with a strong effect are several times less sure
        than all, and steps would swing about it.
        """
        own = np.full(len(weights), mean_curvature(mean, variance))
        own[self.places] = [mean_curvature(at, variance) for at in self.log_odds(weights)]
        roots = np.sqrt(own)[:, None] * self.to_users
        return np.asarray(roots.T @ self.squares @ roots)


class WeightBelief:
    """What weights are believed to be, given sums at the weights on the way.

    (docs/yes-no.md, Lemma 40) The last of them are of constants, if any, in the units that are
    given; their prior has a deviation of 1 log-odds.
    """

    def __init__(self, gram: Array, units: Array, levels: Levels) -> None:
        self.gram, self._constants, self.levels = gram, 1 / units**2, levels
        self.n_constants = len(units)
        self.weights, self.sizes = np.zeros(len(gram)), np.zeros(len(gram))
        self._seen = list[Seen]()

    def see(self, sums: Array, noise: float) -> None:
        """Take in what was released where weights are now."""
        self._seen.append(Seen(self.weights, sums, noise))

    def move(self, curvature: Array, n_rows: int) -> Array:
        """Go to what is believed if the loss is curved like that, and return how far that is.

        Where log-odds would move by m, of all rows or of those of a level, only by ln(1 + m): a
        square tells no more (Lemma 41).
        """
        told = self._told(curvature)
        variances = told.variances(self._constants)
        believed, covariance = told.posterior(variances)
        way = believed - self.weights
        way *= safe_part(self.levels.largest_move(way, self.gram, n_rows))
        self.weights = self.weights + way
        self.sizes = sizes_of(believed, covariance, variances)
        return np.asarray(way)

    def doubt(self, curvature: Array) -> Array:
        """Return how far off weights may be if the loss is curved like that, as a covariance.

        The mean of what they vary by is taken for each: one that noise hides may be large.
        """
        told = self._told(curvature)
        variances = told.variances(self._constants)
        return told.posterior(np.full_like(variances, variances.mean()))[1]

    def _told(self, curvature: Array) -> SumsTold:
        answer, noise = pooled_sums(self._seen, curvature)
        values, vectors = np.linalg.eigh(curvature)
        return SumsTold(values, vectors, noise**2 + values, answer)


def safe_part(size: float) -> float:
    """Return which part of a move to go that changes log-odds by that size: ln(1 + m) of m."""
    return math.log1p(size) / size if size > 1e-6 else 1.0


def pooled_sums(seen: Sequence[Seen], curvature: Array) -> tuple[Array, float]:
    """Return Hθ as all sums tell it, s + Hw each, and its noise.

    The earlier ones count for less by as much as they are further from the last than by noise: so
    far the loss is no square.
    """
    answers = [one.sums + curvature @ one.weights for one in seen]
    squares = np.array([one.noise**2 for one in seen])
    apart = np.array([((answer - answers[-1]) ** 2).mean() for answer in answers])
    weights = 1 / (squares + np.maximum(apart - squares - squares[-1], 0.0))
    pooled = np.tensordot(weights, answers, axes=1) / weights.sum()
    return np.asarray(pooled), 1 / math.sqrt(float(weights.sum()))
