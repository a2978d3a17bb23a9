"""Steps along all features at once, for outcomes: where noise lets them be seen, none is chosen.

A path spends half of the budget on choices, and what it leaves out is lost. Here each step releases
Σ(p − y)x of all features and moves to what weights are believed to be, given all sums so far, their
noise, and how rows are drawn. What weights may be, the sums tell themselves: many small ones, or
few that are large (docs/yes-no.md, Lemma 40).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dpscreen._core.arrays import Array, Integers, Mask
from dpscreen.privacy import ZCDP
from dpscreen.rows.lattice import ExactPoint
from dpscreen.rows.loss import SATURATED
from dpscreen.rows.source import PublicUnits
from dpscreen.solvers import rules
from dpscreen.solvers.base import Solution
from dpscreen.solvers.belief import (
    FLOOR,
    Seen,
    SumsTold,
    entry_doubt,
    lifted,
    put_right,
    sizes_of,
    sure_threshold,
)
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

_FINE = np.linspace(-8, 8, 801)
_NORMAL = np.exp(-(_FINE**2) / 2) / np.exp(-(_FINE**2) / 2).sum()


def walks_on_outcomes(task: OutcomeTask) -> bool:
    """Whether the fit is dense: no `max_features`, and the noise permits it."""
    return task.choices.max_features is None and walks(task, LEAST)


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
    squares = Squares.of(gram, noise, seen)
    levels = _levels(task, squares.matrix, noise, chosen, units)
    belief = WeightBelief(squares.matrix, units[chosen >= task.n_features], levels)
    start, cost = point.weights[chosen] / units, steps_cost / n_walk_steps(task)
    for step in range(n_walk_steps(task)):
        moment = release_moment(task.spending, point, 1.0, short, cost)
        belief.see(-moment[seen], short.row_norm / math.sqrt(2 * float(cost)))
        unsure = levels.unsure(start + belief.weights, *_log_odds_now(task, point, belief))
        if rich and step == n_walk_steps(task) // 2:
            gram, noise = release_squares(task, point.curved_gram(short), short, gram_cost)
            size = task.design.loss.curvature / unsure
            squares = replace(Squares.of(gram, noise, seen), size=size)
        curvature, doubt = levels.curvature(squares, unsure)
        by = belief.move(curvature, task.regime.n_rows, doubt)
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
    to_users = users_units(task.units, chosen) * units
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
    places = np.clip(log_odds + math.sqrt(variance) * _FINE, -SATURATED, SATURATED)
    chances = 1 / (1 + np.exp(-places))
    return float(_NORMAL @ (chances * (1 - chances)))


def unsure_spread(log_odds: float, variance: float) -> float:
    """Return the variance of normal log-odds, each counting as p(1 − p), as a part of the whole.

    Rows far out are sure: so much less is the loss curved where all log-odds grow by one factor.
    """
    places = np.clip(log_odds + math.sqrt(variance) * _FINE, -SATURATED, SATURATED)
    chances = 1 / (1 + np.exp(-places))
    parts = _NORMAL * chances * (1 - chances)
    mean = _FINE @ parts / parts.sum()
    return float((_FINE - mean) ** 2 @ parts / parts.sum())


def farther_end(log_odds: float, variance: float, reach: float) -> float:
    """Return how many times farther log-odds of a spread may go than a line says.

    Rows far out are sure, so sums change ever less where log-odds grow. If they may be off by
    `reach`, in a row, for growing k times, a line ends too early: and there may be no end at all.
    """
    times, around = np.geomspace(1, 64, 200)[:, None], _FINE * math.sqrt(variance)
    chances = 1 / (1 + np.exp(-np.clip(log_odds + times * around, -SATURATED, SATURATED)))
    sums = chances @ (around * _NORMAL)
    slope = chances[0] * (1 - chances[0]) @ (around**2 * _NORMAL)
    end = float(np.interp(reach, sums - sums[0], times[:, 0], right=math.inf))
    return max((end - 1) * float(slope) / reach, 1.0) if reach else 1.0


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

    def unsure(self, weights: Array, mean: float, variance: float) -> Array:
        """Return the mean of p(1 − p) for each column: over the rows of its level, or all rows.

        Where outcomes are rare, those of a level with a strong effect are several times less sure
        than all, and steps would swing about it.
        """
        own = np.full(len(weights), mean_curvature(mean, variance))
        own[self.places] = [mean_curvature(at, variance) for at in self.log_odds(weights)]
        return own

    def curvature(self, squares: Squares, unsure: Array) -> tuple[Array, float]:
        """Return what Σp(1 − p)xxᵀ is about, by how unsure outcomes are, and the entries' doubt."""
        sizes = squares.size * unsure
        ways = np.linalg.solve(self.to_users, np.sqrt(sizes)[:, None] * self.to_users)
        return ways.T @ squares.matrix @ ways, squares.doubt * float(sizes.mean())


@dataclass(frozen=True, eq=False)
class Squares:
    """A matrix as its release makes it likely, and how far off its entries may be.

    `size` is what a column counts for each part that outcomes are unsure: 1 of Σxxᵀ, and of a
    curved matrix as much less as they were unsure where it was released.
    """

    matrix: Array
    doubt: float
    size: Array | float = 1.0

    @classmethod
    def of(cls, released: Array, noise: float, seen: Integers) -> Squares:
        """Return what is believed of these columns."""
        values = np.linalg.eigvalsh(released[np.ix_(seen, seen)]).astype(np.float64)
        return cls(lifted(released, noise, seen), entry_doubt(values, noise))


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

    def move(self, curvature: Array, n_rows: int, doubt: float = 0.0) -> Array:
        """Go to what is believed if the loss is about so curved, and return how far that is.

        Entries of the curvature may be off by `doubt`, which differences of sums put right. Where
        log-odds would move by m, of all rows or of those of a level, only by ln(1 + m): a square
        tells no more (Lemma 41).
        """
        squares = self._squares(curvature, n_rows)
        told = self._told(self._put_right(curvature, doubt, squares), squares)
        variances = told.variances(self._constants)
        believed, covariance = told.posterior(variances)
        way = believed - self.weights
        way *= safe_part(self.levels.largest_move(way, self.gram, n_rows))
        self.weights = self.weights + way
        self.sizes = sizes_of(believed, covariance, variances)
        return np.asarray(way)

    def doubt(self, curvature: Array, n_rows: int) -> Array:
        """Return how far off weights may be if the loss is curved like that, as a covariance.

        The mean of what they vary by is taken for each: one that noise hides may be large.
        """
        told = self._told(curvature, self._squares(curvature, n_rows))
        variances = told.variances(self._constants)
        return told.posterior(np.full_like(variances, variances.mean()))[1]

    def _squares(self, curvature: Array, n_rows: int) -> Array:
        """Return by how much, squared, each of the sums is off the square at the last weights.

        Where log-odds went by m since, its curvature was another one by about the m-th part, and
        half of that on the way.
        """
        ways = [one.weights - self._seen[-1].weights for one in self._seen]
        moved = np.array([self.levels.largest_move(way, self.gram, n_rows) for way in ways])
        off = np.array([((curvature @ way) ** 2).mean() for way in ways])
        noises = np.array([one.noise for one in self._seen])
        return np.asarray(noises**2 + (moved / 2) ** 2 * off)

    def _put_right(self, curvature: Array, doubt: float, squares: Array) -> Array:
        """Return what differences of sums make of it; none is below half of blur or mean."""
        if not doubt:
            return curvature
        values, vectors = np.linalg.eigh(put_right(curvature, doubt, self._seen, squares))
        blur = doubt * math.sqrt(len(values))
        values = np.maximum(values, FLOOR * min(blur, float(values.mean())))
        return np.asarray((vectors * values) @ vectors.T)

    def _told(self, curvature: Array, squares: Array) -> SumsTold:
        answer, noise = pooled_sums(self._seen, curvature, squares)
        values, vectors = np.linalg.eigh(curvature)
        return SumsTold(values, vectors, noise**2 + values, answer)


def safe_part(size: float) -> float:
    """Return which part of a move to go that changes log-odds by that size: ln(1 + m) of m."""
    return math.log1p(size) / size if size > 1e-6 else 1.0


def pooled_sums(seen: Sequence[Seen], curvature: Array, squares: Array) -> tuple[Array, float]:
    """Return Hθ as all sums tell it, s + Hw each, and its noise, if they are off by so much."""
    answers = [one.sums + curvature @ one.weights for one in seen]
    pooled = np.average(answers, axis=0, weights=1 / squares)
    return np.asarray(pooled), float((1 / squares).sum()) ** -0.5
