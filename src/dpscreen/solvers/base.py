"""How PrivateLasso pays: shares of one budget, and single numbers bought with them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dpscreen._core.arrays import Array, Integers, Mask
from dpscreen.privacy import (
    ZCDP,
    Accountant,
    Budget,
    DiscreteGaussian,
    Noise,
    SignedNoisyMax,
    sensitivity,
)
from dpscreen.privacy.accountant import MEDIAN, release_cell, release_histograms
from dpscreen.privacy.budget import Unit
from dpscreen.rows.lattice import UNITS, ExactDesign, ExactPoint
from dpscreen.rows.sums import LEVELS
from dpscreen.solvers import rules
from dpscreen.solvers.frank_wolfe import Vertex
from dpscreen.solvers.rules import Regime
from dpscreen.solvers.zoom import last_seen

MOST_GRAINS = 2.0**40
"""How far a weight moves at most, in grains: beyond, whole numbers would overflow."""

FINE = 2**10
"""Into how many units one row's largest change of a sum is divided before noise is added."""


@dataclass(frozen=True)
class Spending:
    """One accountant, its limit, and the numbers that say how much it buys.

    The limit is for one unit. What is handed out are costs for one row, of which a unit with k rows
    pays k² times as much (Lemma 18). A share of the limit may be `reserved` for later. The number
    of rows is known but for `count_noise`.
    """

    accountant: Accountant
    limit: ZCDP
    regime: Regime
    reserved: float = 0.0
    count_noise: float = 0.0

    @classmethod
    def of(
        cls, budget: Budget, unit: Unit, noise: Noise, *, n_rows: int | None, n_features: int
    ) -> Spending:
        """Return the whole budget for one unit; the rules see what of it one row may cost.

        Where the number of rows is not public, it has to be `counted` first.
        """
        limit = ZCDP.within(budget)
        rho = float(limit / unit.rows_per_unit**2)
        regime = Regime(n_rows or rules.LEAST_ROWS, n_features, rho)
        accountant, doubt = Accountant(noise, limit=limit, unit=unit), rules.ROUND * regime.n_rows
        return cls(accountant, limit, regime, count_noise=doubt)

    def counted(
        self, n_rows: int, admit: Callable[[Spending, ZCDP], None] | None = None
    ) -> Spending:
        """Release a noisy count of the rows, for all rules to use; again if that is too coarse.

        In between `admit` is called with what is known by then and the cost of a second count. It
        may raise, and the first count is all that was released (docs/private-lasso.md, Lemma 22).
        """
        first, noise = self._release_count(n_rows, rules.COUNT_SHARE)
        found = self._with_rows(first, noise)
        again = rules.recount_share(found.regime)
        if admit is not None:
            admit(found, self.share(again))
        if not again:
            return found
        second, _ = self._release_count(n_rows, again)
        weight = again / (again + rules.COUNT_SHARE)
        return self._with_rows((1 - weight) * first + weight * second, noise * (1 - weight) ** 0.5)

    def _release_count(self, n_rows: int, share: float) -> tuple[float, float]:
        """Release the number of rows, which one row moves by one.

        (docs/private-lasso.md, Lemma 22)
        """
        cost, purpose = self.share(share), "the number of rows"
        return self.release_sum(n_rows, most=1, bound=1.0, cost=cost, purpose=purpose)

    def _with_rows(self, noisy: float, noise: float) -> Spending:
        regime = replace(self.regime, n_rows=rules.usable_count(noisy))
        return replace(self, regime=regime, count_noise=noise)

    @property
    def remaining(self) -> ZCDP:
        """Return what has not been spent or reserved, for one row."""
        reserved = self.limit * Fraction(self.reserved)
        left = ZCDP(self.limit.rho - reserved.rho - self.accountant.spent.rho)
        return left / self.accountant.rows_per_unit**2

    def share(self, share: float) -> ZCDP:
        """Return a share of the whole budget, for one row."""
        return self.limit * Fraction(share) / self.accountant.rows_per_unit**2

    def release_sum(
        self, total: int, *, most: int, bound: float, cost: ZCDP, purpose: str
    ) -> tuple[float, float]:
        """Release a sum of whole numbers, each at most `most` in size, and its noise's deviation.

        Both are returned in units in which `most` is `bound`. The sum is first floored to whole
        numbers of most/2^10, which one row still moves by at most 2^10 (docs/private-lasso.md,
        Lemma 13).
        """
        unit = bound / FINE
        assert unit * FINE == bound, "a bound this small has no exact unit"
        mechanism = DiscreteGaussian.of_cost(cost, sensitivity=bound, unit=unit)
        coarse = np.array([FINE * total // most], dtype=np.int64)
        noisy = self.accountant.release(mechanism, coarse, purpose=purpose)
        return float(noisy[0]), mechanism.scale


@dataclass(frozen=True)
class Choices:
    """What the user fixed; None, or "auto", leaves it to the rules."""

    radius: float | None = None
    n_iter: int | None = None
    clip: float | None = None
    row_norm: float | None = None
    max_features: int | None = None
    intercept: bool = True
    standardize: bool | str = "auto"
    n_rows: int | None = None
    refit: bool = False
    quality: bool = False


@dataclass(frozen=True)
class Task:
    """What a solver may use: rows behind a spending, and public or released numbers.

    `deviation` is the target's, `spread` the features' on the lattice. The last column of the
    design is the constant, if there is an intercept. `moving` are the features that seem to vary;
    `doubtful` those that may be one point; `at_ends` those whose released centre is at an
    end of the declared bounds, and at which. `heaped` says that most of the target is in a heap,
    and `doubt` how far its centre may be off, where that is known. `narrowed` says that features
    are clipped to less than their declared bounds. `keep` holds weights that are released already,
    for a fit that fails numerically later.
    """

    spending: Spending
    design: ExactDesign
    deviation: float
    spread: float
    choices: Choices
    moving: Integers | None = None
    doubtful: Mask | None = None
    at_ends: tuple[tuple[int, str], ...] = ()
    heaped: bool = False
    doubt: float = math.inf
    narrowed: bool = False
    keep: Callable[[Solution], None] = lambda _: None

    @property
    def refits(self) -> bool:
        """Whether chosen features are refitted: not where the user bounds the path's length."""
        return self.choices.refit and self.choices.radius is None

    @property
    def refits_all(self) -> bool:
        """Whether all features are refitted, not only those that were chosen."""
        return rules.refits_all(self.regime)

    @property
    def candidates(self) -> Integers:
        """Return the features that may be chosen: all, if none is seen to vary."""
        return np.arange(self.n_features) if self.moving is None or self.idle else self.moving

    @property
    def idle(self) -> bool:
        """Whether no feature is seen to vary: a step along one would be one of the intercept."""
        return self.moving is not None and self.moving.size == 0

    @property
    def regime(self) -> rules.Regime:
        """Return the numbers that rules rest on."""
        return self.spending.regime

    @property
    def n_features(self) -> int:
        """Return the number of features, without the constant."""
        return self.regime.n_features

    @property
    def n_steps(self) -> int:
        """Return T."""
        return self.choices.n_iter or rules.n_steps(self.regime)

    @property
    def path_steps(self) -> int:
        """Return T of a path: fewer where features are limited and a refit follows."""
        limit = self.choices.max_features if self.refits else None
        return self.choices.n_iter or rules.path_steps(self.regime, limit)

    def first_step(self, n_iter: int) -> float:
        """Return η₀: what the rules say, or what makes the steps add up to the radius."""
        if self.choices.radius is not None:
            return 2 * self.choices.radius / (n_iter + 1)
        return rules.first_step(
            self.regime, deviation=self.deviation, spread=self.spread, n_iter=n_iter
        )

    @property
    def rescales(self) -> bool:
        """Whether the clip follows the residuals' scale: not where r is bounded."""
        scale_tells = math.isinf(self.design.loss.bound) and not self.heaped
        return scale_tells and not self.choices.clip

    def clip(self, deviation: float) -> float:
        """Return the clip: the user's, or a multiple of the residuals' median size.

        It is never above the bound of the loss: that would add noise and nothing else. Where there
        is a bound it is half of that (docs/yes-no.md, Lemma 33).
        """
        bound, factor = self.design.loss.bound, rules.clip_factor(self.regime)
        widest = bound if self.choices.clip else bound / 2
        return min(self.choices.clip or factor * deviation / rules.GAUSSIAN, widest)

    def smallest_weight(self, deviation: float) -> float:
        """Return the size below which a final weight is dropped."""
        return rules.smallest_weight(self.regime, deviation=deviation, spread=self.spread)


@dataclass(frozen=True)
class Solution:
    """Released weights, the constant last if there is one, and how they came about.

    `chosen` tells which of them the path left, before a refit.
    """

    weights: Array
    n_iter: int
    path: Path | None
    deviation: float
    chosen: Mask | None = None

    @property
    def chosen_weights(self) -> Array:
        """Return the weights; zero for features that only a refit of all brought in."""
        return self.weights if self.chosen is None else np.where(self.chosen, self.weights, 0.0)


class Admission:
    """Which candidates may be chosen: the features offered, until `limit` entered (Lemma 7).

    Constants are no features, and are never shut out.
    """

    def __init__(
        self, features: Integers, limit: int | None = None, *, constants: Sequence[int] = ()
    ) -> None:
        self._entered: set[int] = set()
        self._constants = list(constants)
        self._limit = len(features) if limit is None else limit
        self.allowed = np.append(features, self._constants).astype(np.int64)

    def enter(self, candidate: int) -> None:
        """Count a feature that was chosen; the last one admitted closes the door."""
        if candidate in self._constants:
            return
        self._entered.add(candidate)
        if len(self._entered) == self._limit:
            self.close()

    @property
    def n_entered(self) -> int:
        """Return the number of distinct features selected so far."""
        return len(self._entered)

    def close(self) -> None:
        """Admit no feature from now on that was not selected before."""
        self.allowed = np.array(sorted(self._entered) + self._constants, dtype=np.int64)


class Selector:
    """Chooses a signed candidate by noisy max over clipped sums.

    (docs/privacy.md, Lemmas 1 and 2; docs/exactness.md, Lemma 8.) Cells are clipped to ±cell_clip
    for the choice alone; the point moves along whole columns.
    """

    def __init__(
        self,
        spending: Spending,
        admission: Admission,
        cost: ZCDP,
        *,
        purpose: str,
        cell_clip: float = 1.0,
    ) -> None:
        self._accountant = spending.accountant
        self._cell_clip = int(rules.clamp(cell_clip * LEVELS, 1, LEVELS))
        self._admission = admission
        self._cost = cost
        self._purpose = purpose

    def clip_at(self, clip: float) -> None:
        """Clip residuals there from now on; the noise follows."""
        self.clip = clip
        change = sensitivity.clipped_gradient(clip=clip, cell_clip=self._cell_clip / LEVELS)
        self._mechanism = SignedNoisyMax.of_cost(self._cost, sensitivity=change, unit=clip / UNITS)

    def choose(self, point: ExactPoint) -> Vertex:
        """Release the candidate and the sign of the next step."""
        allowed = self._admission.allowed
        scores = point.signed_scores(self.clip, allowed, self._cell_clip)
        place, sign = self._accountant.release(self._mechanism, scores, purpose=self._purpose)
        candidate = int(allowed[place])
        self._admission.enter(candidate)
        return Vertex(candidate, -sign)  # a step against the gradient


def rescaled(task: Task, point: ExactPoint, deviation: float, cost: ZCDP) -> float:
    """Release the residuals' deviation; it is only ever lowered.

    Where the target is heaped, it tells nothing of the rows beside the heap. Of few rows it is by a
    quantile: at their price the noise of a mean square is that of residuals half as wide.
    """
    if task.heaped:
        return deviation
    release = _quantile_of_sizes if rules.has_few_residuals(task.regime) else _root_mean_square
    return min(release(task, point, deviation, cost), deviation)


def _root_mean_square(task: Task, point: ExactPoint, deviation: float, cost: ZCDP) -> float:
    """Release √(Σ min(|r|, c)²/n).

    Of residuals that are either small or large, as those of a target of 0 and 1, a median tells the
    small ones, and clips that follow it make them smaller still; a mean square is least where the
    mean is. Its noise is added: a clip that is too small does more harm (docs/private-lasso.md,
    Lemma 13).
    """
    clip = rules.RESIDUAL_CLIP * deviation
    noisy, noise = task.spending.release_sum(
        int(point.residual_counts(clip) @ np.arange(LEVELS + 1) ** 2),
        most=LEVELS**2,
        bound=1.0,
        cost=cost,
        purpose="the residuals' scale",
    )
    return clip * math.sqrt((max(noisy, 0.0) + noise) / task.regime.n_rows)


def _quantile_of_sizes(task: Task, point: ExactPoint, deviation: float, cost: ZCDP) -> float:
    """Release a quantile of |r|, as the deviation of a normal with it.

    (docs/private-lasso.md, Lemma 11)
    """
    top = 2 * rules.RESIDUAL_CLIP * deviation
    sizes = point.residual_counts(top)

    def count(edges: Array) -> Integers:
        starts = np.ceil(edges[1:-1] / top * LEVELS).astype(np.int64)
        return np.asarray(np.add.reduceat(sizes, np.append(0, starts)))

    noise = math.sqrt(1 / (2 * float(cost))) / task.regime.n_rows
    return release_deviation(
        task.spending,
        count,
        top=top,
        cost=cost,
        purpose="the residuals' scale",
        quantile=rules.clear_quantile(10 * noise),
    )


def intercept_move(task: Task, point: ExactPoint, clip: float, cost: ZCDP) -> float:
    """Release how far to move the intercept: −Σψ_c(r)/n, which one row moves by c/n.

    Where the target's centre is known to some doubt, no further than that is worth beside the noise
    (docs/privacy.md, Lemma 1).
    """
    noisy, noise = task.spending.release_sum(
        point.residual_total(clip), most=LEVELS, bound=clip, cost=cost, purpose="the intercept"
    )
    n_rows = task.regime.n_rows
    known = rules.kept((noise / n_rows / task.doubt) ** 2)
    return rules.clamp(-known * rules.shrunk(noisy, noise) / n_rows, -clip, clip)


MEAN_OCTAVES = 10
"""How far out residuals are looked for, from their deviation on."""


def sure_noises(octaves: Array) -> Array:
    """Return how many noises it takes to see rows so many octaves out: 3, and more further out.

    To clip an octave further out where there is nothing adds four times as much to the mean square
    of an error, so noise may be taken for rows a quarter as often.
    """
    return np.asarray(np.sqrt(9 + 2 * math.log(4) * octaves))


SURE_NOISES = sure_noises(np.arange(MEAN_OCTAVES + 1.0))


def mean_cost(task: Task) -> ZCDP:
    """Return what `release_mean_move` costs, twice; nothing where it is not asked for.

    Where little is left, it takes no more than half of that.
    """
    free = math.isinf(task.design.loss.bound) and task.choices.clip is None
    told = bool(rules.rescale_times(task.regime)) and task.refits and task.choices.intercept
    wanted = task.spending.share(rules.MEAN_SHARE) * int(free and told)
    return min(wanted, task.spending.remaining / 4)


def release_mean_move(task: Task, point: ExactPoint, deviation: float, cost: ZCDP) -> float:
    """Release how far the intercept is from where residuals have no mean: −Σψ_c(r)/n.

    Clips that suit most rows leave those out that are far out on one side, and with them most of
    what costs or claims add up to. Here the clip is as far out as residuals are seen, in a noisy
    histogram of their sizes by octaves (docs/private-lasso.md, Lemma 24).
    """
    top = math.ldexp(deviation, MEAN_OCTAVES)
    sizes = point.residual_counts(top)
    starts = LEVELS >> np.arange(MEAN_OCTAVES, 0, -1)
    counts = np.add.reduceat(sizes, np.append(0, starts + 1))
    noisy, noise = release_histograms(
        task.spending.accountant, counts[None, :], cost=cost, purpose="how far residuals lie"
    )
    last = last_seen(noisy[0], noise, SURE_NOISES)
    clip = math.ldexp(deviation, 0 if last is None else last)
    return intercept_move(task, point, clip, cost)


HIGH = Fraction(4, 5)
DEVIATIONS = {MEDIAN: 0.6745, Fraction(7, 10): 1.0364, HIGH: 1.2816}
"""Quantiles of |z|, z standard normal."""

CELLS_PER_OCTAVE = 4
SCALE_OCTAVES = 12


def deviation_edges(top: float) -> Array:
    """Return the edges of the cells in which a deviation up to `top` is looked for."""
    exponents = np.arange(SCALE_OCTAVES * CELLS_PER_OCTAVE, 0, -1) / CELLS_PER_OCTAVE
    return np.concatenate(([0.0], top * 2.0**-exponents, [math.inf]))


def release_deviation(
    spending: Spending,
    count: Callable[[Array], Integers],
    *,
    top: float,
    cost: ZCDP,
    purpose: str,
    quantile: Fraction,
) -> float:
    """Release a quantile of |values|, as the deviation of a normal with that quantile.

    `count` says how many values lie in each cell between the edges that it is given
    (docs/private-lasso.md, Lemma 11).
    """
    edges = deviation_edges(top)
    cell = release_cell(
        spending.accountant, count(edges), cost=cost, purpose=purpose, quantile=quantile
    )
    middle = float(edges[max(cell, 1)]) * 2 ** (0.5 / CELLS_PER_OCTAVE)
    return middle / DEVIATIONS[quantile]


@dataclass(frozen=True, eq=False)
class Path:
    """What was chosen at each step, and how far the step went, in units of the mapped features.

    `n_candidates` features were offered at the first step; all of them, if that is None.
    """

    features: Integers
    signs: Integers
    steps: Array
    n_candidates: int | None = None

    def __len__(self) -> int:
        return len(self.steps)

    def weights(self, n_features: int) -> Array:
        """Return the sum of all steps."""
        moves = self.signs * self.steps
        return np.bincount(self.features, moves, minlength=n_features).astype(np.float64)

    def trace(self, n_features: int) -> Array:
        """Return the weights after 0, 1, … steps, one row each."""
        moves = np.zeros((len(self) + 1, n_features))
        moves[np.arange(1, len(self) + 1), self.features] = self.signs * self.steps
        return np.cumsum(moves, axis=0)


def vertex_path(chosen: Sequence[Vertex], radius: float) -> Path:
    """Return Frank-Wolfe's path as the last iterate weighs it: 2λ(t+1)/((T+1)(T+2)) for step t."""
    n_iter = len(chosen)
    steps = 2 * radius * np.arange(2, n_iter + 2) / ((n_iter + 1) * (n_iter + 2))
    features, signs = np.array(chosen, dtype=np.int64).T
    return Path(features, signs, steps)


# --- could a path be privacy noise alone? ---------------------------------------------------------

_MOST_WORK = 2**18
"""Bound on T times the largest weight of a step, unless T itself is larger."""


def noise_p_values(path: Path, *, n_features: int, n_constants: int, limit: int | None) -> Array:
    """Return for each feature a p-value of "its gradient was zero at every step" (Lemma 15).

    `n_constants` candidates compete beside the features; `limit` is `max_features`. NaN where
    noise alone would take the feature as far half of the time: then the path says nothing of it.
    """
    weights = step_weights(path.steps)
    offered = path.n_candidates or n_features
    chances = signed_chances(len(path), offered, n_constants, limit)
    tail = tail_of_sum(weights, chances)
    found = 2 * tail[farther_way(path, weights, n_features)]
    return np.where(found < 1, found, np.nan)


def step_weights(steps: Array) -> Integers:
    """Return the steps' lengths as whole numbers, at least 1. They depend on T alone."""
    finest = max(1, min(len(steps), _MOST_WORK // len(steps)))
    weights = np.rint(steps / steps.max() * finest).astype(np.int64)
    return np.asarray(np.maximum(weights, 1), dtype=np.int64)


def signed_chances(n_iter: int, n_features: int, n_constants: int, limit: int | None) -> Array:
    """Return at each step a bound on the chance of one sign of a feature without gradient.

    1/(2m) for m candidates. So many steps as `limit` must be over before only those features
    compete that have entered.
    """
    chances = np.full(n_iter, 0.5 / (n_features + n_constants))
    if limit is not None and limit < n_features:
        chances[limit:] = 0.5 / (limit + n_constants)
    return chances


def farther_way(path: Path, weights: Integers, n_features: int) -> Integers:
    """Return for each feature max(L⁺, L⁻): how far its steps of one sign go, all counted."""
    ways = []
    for sign in (-1, 1):
        taken = (path.signs == sign) & (path.features < n_features)
        way = np.bincount(path.features[taken], weights[taken], minlength=n_features)
        ways.append(way.astype(np.int64))
    return np.maximum(*ways)


def tail_of_sum(weights: Integers, chances: Array) -> Array:
    """Return P(Σ a_t B_t ≥ l) for l = 0, 1, …, Σ a_t, B_t independent with the given chances."""
    law = np.zeros(int(weights.sum()) + 1)
    law[0], top = 1.0, 0
    for weight, chance in zip(weights.tolist(), chances.tolist(), strict=True):
        moved = chance * law[: top + 1]
        law[: top + 1] -= moved
        law[weight : weight + top + 1] += moved
        top += weight
    # Summed from the far end: small tails keep their precision, as all terms are positive.
    return np.asarray(np.cumsum(law[::-1])[::-1], dtype=np.float64)
