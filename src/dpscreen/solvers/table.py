"""Regression tables under differential privacy: estimates and covariances for every `Family`.

Newton rounds on clipped scores in whitened coordinates, pooled over the last two; then what the
covariance rests on is released. Everything but `release_*` is made from released numbers.
Statements and proofs: docs/theory/tables.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dpscreen._core.arrays import Array, Integers, Mask
from dpscreen.privacy import ZCDP
from dpscreen.privacy.accountant import release_gram, release_histograms, release_sums
from dpscreen.rows.lattice import UNITS, ExactPoint
from dpscreen.rows.mixed import (
    capped_middle,
    capped_products,
    clipped_directions,
    long_count,
    size_counts,
)
from dpscreen.rows.sums import LEVELS
from dpscreen.solvers.family import Family
from dpscreen.solvers.gram import (
    DETECTED,
    GRAM_SHARE,
    LEVERAGE,
    N_CELLS,
    NORM_SHARE,
    ROUND_SHARE,
    Conditioner,
    Curvature,
    TableTask,
    Unidentified,
    explained,
    last_detected,
    release_columns,
    release_conditioner,
    unidentified,
)
from dpscreen.solvers.marginals import SQUARED_NORM, WideTask, is_yes_no
from dpscreen.solvers.rules import GAUSSIAN as PER_MEDIAN
from dpscreen.solvers.rules import clamp


@dataclass(frozen=True)
class RoundPlan:
    """Eightieths of the rounds' budget for search, a released curvature, and the last rounds.

    `margin` is the norm bound of rows over the largest norm that is detected, `gram` the share of
    the table's budget for the last Gram matrix.
    """

    search: tuple[int, ...]
    curvature: int
    last: tuple[int, ...]
    margin: float
    gram: float = GRAM_SHARE


QUADRATIC = RoundPlan(search=(8, 8), curvature=0, last=(20, 44), margin=1.7)
"""Rounds where the curvature of the loss is constant. Tuned."""

CURVED = RoundPlan(search=(1,) * 12, curvature=28, last=(8, 12, 20), margin=1.2)
"""Rounds where the curvature of the loss changes with the coefficients. Tuned."""

CURVED_CLIPPED = RoundPlan((1, 1, 1, 2, 2, 3), curvature=14, last=(16, 40), margin=1.7, gram=0.1)
"""Rounds where that is so, and influences are clipped. Tuned."""
INTEREST_QUADRATIC = RoundPlan(search=(10, 10), curvature=0, last=(20, 40), margin=1.7)
"""Rounds of a constant curvature where the last ones are of coefficients of interest. Tuned."""

INTEREST_CURVED = RoundPlan(search=(2,) * 12, curvature=28, last=(8, 20), margin=1.2)
"""Rounds of other losses where the last ones are of coefficients of interest. Tuned."""

HISTOGRAM_SHARES, FEW_SHARE = (0.01, 0.04), 0.02
"""Shares of a histogram of influences in search and last rounds; both where rows are few. Tuned."""

MEAT_SHARE, LONG_SHARE, CUT_SHARE = 0.08, 0.005, 0.05
"""Shares of the meat (or of the last curvature), of the number of norm-clipped rows, and of the
direction of clipped influences. Tuned."""

KEPT, REACH = 2.0, 3.0
"""Residuals of high-leverage rows that clips keep, in standard deviations; and the multiple of the
norm bound up to which rows count whole in the last round. Tuned."""

ROOM = 4.0
"""Multiple of the clip of units up to which residuals of their single rows stay whole: two bits of
the lattice. Conventional."""

SHORT_ROWS, FAR_OUT = 0.5, 2.0
"""Norms, over their mean, below which rows have residuals clipped alike, and from which on they
have high leverage. Conventional."""

FAR_CELLS, TAIL_RATES = 6, np.linspace(1.4, 12.0, 54)
"""Half octaves beyond the last clip, three of which make one cell of a histogram; and logarithmic
slopes of its tail, equally likely at first. Conventional; Lemma 28."""

ONE_SIDED, UNSURE, NEGLIGIBLE, SETTLED = 1 / 3, 1.0, 0.1, 0.5
"""Part of what clips cut off that is taken to be on one side where clips are chosen; error of its
size, as a part; privacy noise over sampling, as
variances, up to which nothing is clipped for it; and the largest move of a coefficient, per
standard deviation of its feature and beyond noise, in the last round of a curved loss. Tuned."""

LEAST_MEAT, LEAST_FREEDOM, ROWS_PER_COLUMN = 0.1, 4.0, 10
"""Least variance of a direction over their mean; least degrees of freedom; and rows per column with
fewer of which a sandwich covariance is too small even without noise. Conventional."""

MOST_ERROR, PLACED, MOST_GRAINS = 0.5, 0.8, 2.0**36
"""Largest error by privacy of an interval, in largest possible effects (Lemma 52); least share of a
fit's budget for the table; largest move of a weight, in steps of its lattice (Lemma 8). Derived."""


@dataclass(frozen=True, eq=False)
class TableRelease:
    """Released weights of the table, one for each column, and of the model for predictions.

    The two differ where features are not identifiable: predictions have posterior means of all.
    Covariance, degrees of freedom, `bias` by clips and `plain` standard errors, those without
    privacy, are of coefficients in the user's units, the constant last if there is one. `deviation`
    is the standard deviation of residuals, `target_deviation` that of the target. Fewer rows than
    `undetected` may go undetected, and move coefficients by up to `shift` (Lemma 65).
    """

    family: Family
    weights: Array
    predicting: Array
    covariance: Array
    freedom: Array
    bias: Array
    plain: Array
    shift: Array
    unidentified: tuple[Unidentified, ...]
    deviation: float
    target_deviation: float
    long_rows: float
    undetected: float

    def beside(self, offset: int) -> TableRelease:
        """Return the table with a place for an offset, whose coefficient is not estimated."""

        def wider(values: Array, filled: float = 0.0) -> Array:
            return np.insert(values, offset, filled)

        moved = (
            replace(
                one,
                feature=one.feature + (one.feature >= offset),
                partners=tuple(j + (j >= offset) for j in one.partners),
            )
            for one in self.unidentified
        )
        rows = np.insert(self.covariance, offset, 0.0, axis=0)
        return replace(
            self,
            covariance=np.insert(rows, offset, 0.0, axis=1),
            freedom=wider(self.freedom, 1.0),
            bias=wider(self.bias),
            plain=wider(self.plain),
            shift=wider(self.shift),
            unidentified=tuple(moved),
        )


class Known(NamedTuple):
    """What is known of coefficients, as a `TableRelease` holds it."""

    covariance: Array
    freedom: Array
    bias: Array
    plain: Array
    shift: Array

    def of(self, places: Sequence[int], size: int) -> Known:
        """Return it as that of so many coefficients, of which nothing else is known."""
        covariance = np.zeros((size, size))
        covariance[np.ix_(places, places)] = self.covariance
        others = [np.zeros(size) for _ in self[1:]]
        for whole, part in zip(others, self[1:], strict=True):
            whole[list(places)] = part
        others[0] = np.maximum(others[0], 1.0)
        return Known(covariance, *others)


@dataclass(frozen=True)
class TableRule:
    """Which tables are possible in the best case: uncorrelated standardised features (Lemma 60).

    `matrix_share` is the share of the fit's ρ that the matrix to be solved gets; `score` is n√ρ per
    column below which noise of the score makes every interval meaningless.
    """

    matrix_share: float
    score: float = 0.0

    @classmethod
    def of(cls, family: Family, variance: float = math.inf) -> TableRule:
        """Return the rule of a family, the mean of whose variance function is at most that."""
        if family.quadratic:
            return cls(PLACED * GRAM_SHARE)
        if family.releases_meat:
            return cls(PLACED * CURVED_CLIPPED.gram)
        before = ROUND_SHARE + 2 * NORM_SHARE + GRAM_SHARE + MEAT_SHARE + LONG_SHARE
        left, variance = PLACED * (1 - before), min(variance, family.loss.curvature)
        matrix = left * CURVED.curvature / 80 * (variance / family.loss.curvature) ** 2 / 4
        last = left * sum(CURVED.last[-2:]) / 80
        return cls(matrix, math.sqrt(SQUARED_NORM / (2 * last)) / (variance * MOST_ERROR))

    def rows_needed(self, n_columns: int, rho: float) -> int:
        """Return the least number of rows with which such a table is possible at this ρ."""
        by_noise = math.ceil(self._signal(n_columns) / math.sqrt(rho))
        return max(by_noise, ROWS_PER_COLUMN * n_columns)

    def rho_needed(self, n_columns: int, n_rows: int) -> float | None:
        """Return the least ρ with which it is possible; None: rows are too few at any ρ."""
        if n_rows < ROWS_PER_COLUMN * n_columns:
            return None
        return (self._signal(n_columns) / n_rows) ** 2

    def most_columns(self, n_rows: int, rho: float, limit: int) -> int:
        """Return the largest number of columns, up to a limit, with which it is possible."""
        counts = range(limit, 0, -1)
        return next((k for k in counts if self.rows_needed(k, rho) <= n_rows), 0)

    def _signal(self, n_columns: int) -> float:
        """Return n√ρ at which the noise of the matrix has the norm of the matrix itself."""
        noise = SQUARED_NORM * n_columns / math.sqrt(2 * self.matrix_share)
        kept = 1 - 1 / math.sqrt(math.pi * n_columns)
        return max(math.sqrt(2 * n_columns) * noise / kept, self.score * n_columns)


@dataclass(frozen=True, eq=False)
class Influences:
    """A noisy histogram of influences ‖u‖·|r|: counts below, between and beyond edges."""

    edges: Array
    counts: Array
    noise: float
    n_rows: int
    one_sided: float = ONE_SIDED

    @property
    def detected(self) -> bool:
        """Whether most rows are in cells that are detected."""
        clear = self.counts >= DETECTED * self.noise
        return bool(clear[1:].any() and self.counts[clear].sum() >= 0.6 * self.n_rows)

    @property
    def median(self) -> float:
        """Return the median, interpolated."""
        below = np.maximum.accumulate(np.cumsum(self.counts[:-1]))
        edges = np.concatenate(([0.0], self.edges))
        half = max(float(self.counts.sum()), 1.0) / 2
        return float(np.interp(half, np.concatenate(([0.0], below)), edges))

    @cached_property
    def _tail(self) -> tuple[Array, Array, Array]:
        """Return sizes C, the rows beyond C, and their integral Σ(q − C)₊ (Lemma 28).

        From the last detected cell on rows fall by a law, each as far as the counts make it likely;
        before it they are what cells hold.
        """
        last = min(max(last_detected(self.counts, self.noise) - 1, 1), len(self.edges) - 1)
        counts, edge = self.counts[last:], float(self.edges[last])
        shares = -np.diff(_falls(self.edges[last - 1 :] / edge), append=0.0)
        precision = 1 / (self.noise**2 + np.maximum(counts, 0.0))
        rows = np.maximum(shares * precision @ counts / (shares**2 @ precision), 0.0)
        misfits = (counts - rows[:, None] * shares) ** 2 @ precision
        likely = np.exp((misfits.min() - misfits) / 2)
        sizes = edge * 2.0 ** (np.arange(-24, 97) / 8)
        beyond = (rows * likely / likely.sum()) @ _falls(np.maximum(sizes / edge, 1.0))
        held = np.cumsum(np.maximum(self.counts[last:0:-1], 0.0))[::-1]
        beyond += np.interp(sizes, self.edges[: last + 1], np.append(held, 0.0))
        pieces = (beyond[1:] + beyond[:-1]) / 2 * np.diff(sizes)
        return sizes, beyond, np.append(np.cumsum(pieces[::-1])[::-1], 0.0)

    def cut_off(self, clip: float) -> float:
        """Return Σ(q − C)₊, what a clip cuts off; nothing where most rows are hidden."""
        sizes, _, integral = self._tail
        return float(np.interp(clip, sizes, integral)) if self.detected else 0.0

    def beyond(self, clip: float) -> float:
        """Return the number of rows beyond a clip."""
        return float(np.interp(clip, *self._tail[:2]))

    def clip(self, rho: float, least: float, room: float) -> float:
        """Return the clip C ≥ `least` with the least C²/2ρ + B², B being what it cuts off.

        Up to `room`, where noise is negligible, all of it is taken to be on one side.
        """
        sizes, _, integral = self._tail
        clips = np.maximum(sizes, least)
        cuts = np.interp(clips, sizes, integral)
        squares = [clips**2 / (2 * rho) + (part * cuts) ** 2 for part in (self.one_sided, 1.0)]
        best, loose = (float(clips[np.argmin(one)]) for one in squares)
        return max(best, min(room, loose))


def _falls(sizes: Array) -> Array:
    """Return the rows beyond sizes, 1 beyond 1, by laws that fall as power, exponential, normal."""
    rates = TAIL_RATES[:, None]
    falls = (np.log(sizes), sizes - 1, (sizes**2 - 1) / 2)
    return np.asarray(np.exp(-np.concatenate([rates * one for one in falls])))


@dataclass(frozen=True, eq=False)
class Round:
    """Where a round began, the noisy score Σψu there, its noise, and its clip."""

    start: Array
    score: Array
    noise: float
    clip: float


@dataclass(frozen=True, eq=False)
class Pooled:
    """The weighted mean of the answers of rounds, each Newton's step from its start (Lemma 27).

    `way` is how far it is from the rounds' mean start, `last` how far the last answer is from the
    first, and `part` the weight of the last one; `variance` is that of the noise in the mean score,
    `apart` that of the difference, and `precision` counts all that makes answers differ.
    """

    theta: Array
    way: Array
    last: Array
    part: float
    variance: float
    apart: float
    precision: float

    @classmethod
    def of(
        cls, rounds: Sequence[Round], curvature: Curvature, extra: Array, *, settling: bool = False
    ) -> Pooled:
        """Return the mean; scores may be off by `extra`, and by noise in H times the way.

        If rounds are `settling`, the first counts for less by as much as noise does not explain how
        far its answer is from the last one.
        """
        noises = np.array([one.noise for one in rounds])
        starts = np.array([one.start for one in rounds])
        answers = starts + np.array([one.score for one in rounds]) @ curvature.inverse
        off = curvature.noise**2 * ((starts - answers[-1]) ** 2).sum(axis=1) / 2
        variances, last = noises**2 + off + extra**2, answers[-1] - answers[0]
        if settling:
            square = float(((last @ curvature.axes * curvature.values) ** 2).sum()) / len(last)
            variances[0] += max(0.0, square - float(variances.sum()))
        weights = (1 / variances) / (1 / variances).sum()
        theta = weights @ answers
        return cls(
            theta,
            theta - weights @ starts,
            last,
            float(weights[-1]),
            float(weights**2 @ noises**2),
            float(noises @ noises + off.sum()),
            float((1 / variances).sum()),
        )

    def moved(self, by: Array) -> Pooled:
        """Return the estimate moved by what clips cut off (Lemma 69)."""
        return replace(self, theta=self.theta + by)

    def posterior(self, origin: Array, curvature: Curvature, prior: Array) -> tuple[Array, Array]:
        """Return posterior mean and covariance for a prior precision about an origin (Lemma 63)."""
        turned = (curvature.axes * curvature.values**2) @ curvature.axes.T * self.precision
        covariance = np.asarray(np.linalg.inv(turned + prior), dtype=np.float64)
        return origin + covariance @ turned @ (self.theta - origin), covariance

    def private(self, noise: float) -> Array:
        """Return the covariance of privacy's noise in the score: its own, and H's along the way."""
        square = self.variance + noise**2 / 2 * float(self.way @ self.way)
        return square * np.eye(len(self.way)) + noise**2 / 2 * np.outer(self.way, self.way)

    def by_leverage(self, to_parameters: Array, squares: Array) -> Array:
        """Return variances by rows of larger norms: what the last round changed beyond noise.

        (Lemma 50)
        """
        changed = (to_parameters @ self.last) ** 2 - 2 * squares * self.apart
        return np.maximum(changed, 0.0) * ((1 - self.part) ** 2 + 1 / 3)


@dataclass(frozen=True, eq=False)
class CutOff:
    """What clips cut off the score: its posterior mean, and the standard deviation by noise.

    The direction of clipped influences is released, and their mean `excess` over the clip follows
    from the histogram; `UNSURE` is the error of that, as a part (Lemma 69).
    """

    mean: Array
    noise: float = 0.0
    excess: float = 0.0

    @classmethod
    def of(cls, directions: Array, noise: float, one_sided: float, excess: float) -> CutOff:
        """Return it from a noisy sum of directions, and the mean excess of clipped rows.

        The prior has so many rows `one_sided`, unless the sum is beyond that and its noise.
        """
        k, square = len(directions), float(directions @ directions)
        detected = square / k - noise**2 * (1 + 2 * math.sqrt(2 / k))
        prior = max(one_sided**2 / k, detected)
        kept = prior / (prior + noise**2)
        return cls(excess * kept * directions, excess * noise * math.sqrt(kept), excess)

    def error(self, directions: Array) -> Array:
        """Return the standard error that it adds along directions of the parameters."""
        by_noise = self.noise * np.sqrt((directions**2).sum(axis=1))
        return np.asarray(np.hypot(UNSURE * (directions @ self.mean), by_noise))


@dataclass(frozen=True, eq=False)
class Meat:
    """The noisy ΣΨΨᵀ of clipped influences Ψ = ψu, and the noise of its diagonal."""

    matrix: Array
    noise: float

    def dispersion(self, curvature: Curvature) -> float:
        """Return it over the curvature, the mean of all directions."""
        whole = float(curvature.values.sum())
        return max(float(np.trace(self.matrix)), math.sqrt(len(self.matrix)) * self.noise) / whole

    def mean(self, spread: Array) -> float:
        """Return it over squared spreads, the mean of all directions: less noisy than any."""
        whole = float(spread @ spread)
        return max(float(np.trace(self.matrix)), math.sqrt(len(spread)) * self.noise) / whole

    def floored(self, spread: Array) -> Array:
        """Return it with eigenvalues that are no less than a part of the mean."""
        scales = np.outer(spread, spread)
        values, vectors = np.linalg.eigh(self.matrix / scales)
        least = LEAST_MEAT * self.mean(spread)
        return np.asarray((vectors * np.maximum(values, least)) @ vectors.T * scales)

    def along(
        self, directions: Array, spread: Array, meant: Array | None = None
    ) -> tuple[Array, Array]:
        """Return hᵀMh/‖h‖² of every direction, shrunk to the mean, and its standard error.

        Or shrunk to what is `meant`, in the place of hᵀMh.
        """
        squares = np.maximum((directions**2).sum(axis=1), 1e-300)
        even = self.mean(spread) * (directions**2 @ spread**2) / squares
        if meant is not None:
            even = meant / squares
        off = ((directions @ self.matrix) * directions).sum(axis=1) / squares - even
        kept = off**2 / (off**2 + self.noise**2)
        error = self.noise * np.maximum(kept, 1 / math.sqrt(len(self.matrix)))
        return np.maximum(even + kept * off, LEAST_MEAT * even), error


# --- the fit --------------------------------------------------------------------------------------


def plan_of(family: Family, *, of_interest: bool = False) -> RoundPlan:
    """Return the plan of the rounds for all coefficients, or for some that are of interest."""
    if of_interest:
        return INTEREST_CURVED if family.releases_curvature else INTEREST_QUADRATIC
    curved = CURVED_CLIPPED if family.has_scale else CURVED
    return curved if family.releases_curvature else QUADRATIC


def release_table(
    wide: WideTask,
    columns: Integers | None = None,
    *,
    family: Family,
    constant: float = 0.0,
    interest: Sequence[int] = (),
    required: Sequence[int] = (),
) -> TableRelease:
    """Release a table of some columns, or all but an offset, for what is left of the budget.

    `constant` is where the constant starts. The place of a feature is that among the columns
    (docs/theory/tables.md, Lemma 27). With coefficients of `interest` the last rounds are of these
    alone, and the others are adjusted for (Lemma 97); those of `required` are never dropped.
    """
    every = np.arange(wide.task.design.n_features)
    chosen = every[every != wide.task.choices.offset] if columns is None else columns
    task = TableTask(wide, chosen, wide.task.spending.remaining, tuple(interest), tuple(required))
    plan = plan_of(family, of_interest=bool(interest))
    # Where no influence is clipped, noise of scores grows with the norm bound.
    most = math.inf if family.has_scale else math.sqrt(LEVERAGE * len(chosen))
    conditioner = release_conditioner(task, plan.margin, most, plan.gram)
    return TableRounds(task, family, plan, conditioner, task.start()).release(constant)


@dataclass(frozen=True, eq=False)
class Nuisance:
    """What is known of all coefficients before rounds of those of `interest` (Lemma 97).

    `weights` of columns are where these rounds begin. `variances` are those that errors of the
    others and of the matrix add to coefficients of interest; `left` is the standard deviation that
    the other features leave of each, and `deviation` that of residuals.
    """

    interest: tuple[int, ...]
    weights: Array
    variances: Array
    left: Array
    deviation: float


@dataclass(eq=False)
class TableRounds:
    """A point on its way to the estimate, and what is released of the rows there."""

    task: TableTask
    family: Family
    plan: RoundPlan
    conditioner: Conditioner
    point: ExactPoint
    rounds: list[Round] = field(default_factory=list)
    influences: Influences | None = None
    curved_norm: float | None = None
    without: dict[int, Unidentified] = field(default_factory=dict)
    nuisance: Nuisance | None = None

    def release(self, constant: float) -> TableRelease:
        """Release rounds, and what the covariance rests on."""
        budget = self._budget()
        weights = np.where(self.task.columns < self.task.wide.task.n_features, 0.0, constant)
        start = np.linalg.solve(self.conditioner.matrix.T, weights)
        theta, doubt = self._search(np.asarray(start, dtype=np.float64), budget)
        curvature = self._curvature(theta, budget)
        if self.task.interest:
            return self._release_interest(theta, curvature, budget)
        if self.task.required:
            doubt = self._doubt(curvature.without(self.conditioner, ()))
        estimate, curvature, known = self._finish(self._restricted(theta), curvature, doubt, budget)
        table, explained_by = self.point.weights, self._moved(estimate.theta)
        hidden = tuple(explained(self.task, self.conditioner, self.without))
        if self.without:
            self.move_to(self._posterior(curvature.without(self.conditioner, ()))[0])
        predicting = self.point.weights
        predicting[self.task.columns[[j for j in self.without if self.task.constant[j]]]] = 0
        deviation = self.release_deviation() if self.task.averaged else self.deviation
        return self._table(table, predicting, known, hidden, explained_by, deviation)

    def _table(
        self,
        weights: Array,
        predicting: Array,
        known: Known,
        hidden: tuple[Unidentified, ...],
        explained_by: float,
        deviation: float,
    ) -> TableRelease:
        return TableRelease(
            self.family,
            weights,
            predicting,
            *known,
            hidden,
            deviation,
            self.family.target_deviation(deviation, explained_by),
            self.release_long(),
            self.undetected,
        )

    def _finish(
        self, theta: Array, curvature: Curvature, doubt: Array, budget: ZCDP
    ) -> tuple[Pooled, Curvature, Known]:
        """Release the last rounds, and return the estimate, the curvature and what is known."""
        curvature = self._last_rounds(theta, curvature, budget)
        estimate = self._pooled(curvature)
        self.move_to(estimate.theta)
        cut_off = CutOff(np.zeros_like(estimate.theta))
        if self.family.has_scale:
            cut_off = self.release_cut_off(self.rounds[-1].clip, estimate.part)
            estimate = estimate.moved(curvature.inverse @ cut_off.mean)
            self.move_to(estimate.theta)
        if self.family.releases_curvature:
            now = self.release_curvature(self.task.share(MEAT_SHARE))
            now = now.shrunk_to(curvature.matrix, curvature.noise)
            curvature = now.without(self.conditioner, self.without)
            estimate = self._pooled(curvature).moved(curvature.inverse @ cut_off.mean)
            self.move_to(estimate.theta)
        meat = Meat(curvature.matrix, curvature.noise)
        if self.family.releases_meat:
            meat = self.release_meat(self.rounds[-1].clip)
        known = Answer(self, curvature, doubt, estimate, meat, cut_off).known()
        return estimate, curvature, known

    def _release_interest(self, theta: Array, curvature: Curvature, budget: ZCDP) -> TableRelease:
        """Release rounds of the coefficients of interest, the others being where they are.

        (docs/theory/tables.md, Lemma 97)
        """
        self.move_to(theta)
        last, curvature = self._of_interest(theta, curvature)
        interest, k = self.task.interest, len(self.task.interest)
        known = last._finish(np.zeros(k), curvature, np.zeros((k, k)), budget)[2]
        weights = predicting = self.point.weights
        moved = np.linalg.solve(self.conditioner.matrix.T, weights[self.task.columns])
        if last.without:
            self.move_to(theta)
            predicting = self.point.weights
        hidden = {interest[j]: replace(one, feature=interest[j]) for j, one in last.without.items()}
        for j in set(range(self.task.n_features)).difference(interest):
            hidden[j] = Unidentified(j, nuisance=True)
        return last._table(
            weights,
            predicting,
            known.of(interest, len(self.task.columns)),
            tuple(hidden[j] for j in sorted(hidden)),
            self._moved(np.asarray(moved, dtype=np.float64)),
            self.release_deviation() if self.task.averaged else self.deviation,
        )

    def _of_interest(self, theta: Array, curvature: Curvature) -> tuple[TableRounds, Curvature]:
        """Return rounds on columns that are uncorrelated with all others, and their curvature.

        (docs/theory/tables.md, Lemma 97)
        """
        interest = list(self.task.interest)
        users = self.users[interest]
        directions = users @ curvature.inverse
        level = self.task.n_rows * self._mean_curvature(theta)
        values, vectors = np.linalg.eigh(directions @ users.T)
        turned = (vectors * np.sqrt(level / values)) @ vectors.T @ directions
        nuisance = Nuisance(
            self.task.interest,
            self.point.weights[self.task.columns],
            self._by_nuisance(users, curvature),
            self.left(curvature)[interest],
            self.deviation,
        )
        conditioner = release_columns(
            self.task, turned @ self.conditioner.matrix, self.plan.margin, self.family.has_scale
        )
        noise, whole = float(np.linalg.norm(turned, 2)) ** 2, np.eye(len(interest))
        last = TableRounds(
            self.task, self.family, self.plan, conditioner, self.point, nuisance=nuisance
        )
        return last, Curvature(level * whole, curvature.noise * noise, whole)

    def _by_nuisance(self, users: Array, curvature: Curvature) -> Array:
        """Return the variances of coefficients by errors of all coefficients and of the matrix.

        (Lemma 97)
        """
        doubt = self._doubt(curvature)
        directions = users @ curvature.inverse
        by_noise = (directions**2).sum(axis=1) * np.trace(doubt)
        by_noise += ((directions @ doubt) * directions).sum(axis=1)
        off = directions @ curvature.matrix - users
        return np.asarray(curvature.noise**2 / 2 * by_noise + ((off @ doubt) * off).sum(axis=1))

    def _doubt(self, curvature: Curvature) -> Array:
        """Return the posterior covariance of all parameters, the matrix counting less by its noise.

        Of directions that noise hides only the prior is known (Lemma 63).
        """
        pooled, prior = self._search_mean(curvature)
        known = np.maximum(curvature.unfloored - 2 * curvature.noise, 0.0)
        turned = (curvature.axes * known**2) @ curvature.axes.T * pooled.precision
        return np.asarray(np.linalg.inv(turned + prior))

    @cached_property
    def users(self) -> Array:
        """Return the matrix from whitened parameters to coefficients in the user's units."""
        units, chosen = self.task.wide.units, self.nuisance.interest if self.nuisance else ()
        matrix = units.to_users(self.task.columns) @ self.conditioner.matrix.T
        return np.asarray(matrix[list(chosen)] if chosen else matrix)

    def left(self, curvature: Curvature) -> Array:
        """Return the standard deviation that other columns leave of each."""
        if self.nuisance:
            return self.nuisance.left
        back = np.linalg.inv(self.users)
        moments = np.diag(back.T @ curvature.matrix @ back)
        alike = np.maximum(
            moments * ((self.users @ curvature.inverse) * self.users).sum(axis=1), 1.0
        )
        return np.asarray(np.append(self.task.wide.scales, 1.0)[self.task.columns] / np.sqrt(alike))

    @property
    def undetected(self) -> float:
        """Return how many rows the last histogram of influences, or of norms, could not detect."""
        share = self._histogram_shares[1] if self.family.has_scale else NORM_SHARE
        return DETECTED / math.sqrt(2 * float(self.task.share(share)))

    def _budget(self) -> ZCDP:
        """Return what rounds and curvature share: what histograms, meat and count leave."""
        search, last = self._histogram_shares
        histograms = len(self.plan.search) * search + len(self.plan.last) * last
        histograms += last * self.task.averaged
        scaled = (CUT_SHARE + histograms) * self.family.has_scale
        curved, meat = self.family.releases_curvature, self.family.releases_meat
        scaled += NORM_SHARE * (curved and meat)
        scaled += NORM_SHARE * bool(self.task.interest)
        later = self.task.share((curved + meat) * MEAT_SHARE + LONG_SHARE + scaled)
        return ZCDP(self.task.wide.task.spending.remaining.rho - later.rho)

    @property
    def _histogram_shares(self) -> tuple[float, float]:
        """Return the share of a histogram of influences in search and in last rounds."""
        few = min(FEW_SHARE, 4000 / (self.task.n_rows**2 * float(self.task.budget)))
        return max(HISTOGRAM_SHARES[0], few), max(HISTOGRAM_SHARES[1], few)

    def _search(self, theta: Array, budget: ZCDP) -> tuple[Array, Array]:
        """Take rounds to the posterior mean, with the mean curvature; return it, and its doubt."""
        for part in self.plan.search:
            self._round(theta, budget * Fraction(part, 80), self._histogram_shares[0])
            mean, doubt = self._posterior(self._gram.times(self._mean_curvature(theta)))
            theta = theta + self._safe(mean - theta)
        return theta, doubt

    def _posterior(self, curvature: Curvature) -> tuple[Array, Array]:
        """Return posterior mean and covariance given all rounds."""
        pooled, prior = self._search_mean(curvature)
        return pooled.posterior(self.rounds[0].start, curvature, prior)

    def _search_mean(self, curvature: Curvature) -> tuple[Pooled, Array]:
        """Return the mean of all rounds, and the prior precision; H changes as predictors move."""
        ways = np.array([one.start - self.rounds[-1].start for one in self.rounds])
        scores = np.sqrt(((ways @ curvature.axes * curvature.values) ** 2).mean(axis=1))
        bends = np.array([self._moved(way) for way in ways]) / 2 * (not self.family.quadratic)
        in_scales = self.conditioner.matrix / self.task.scales_per_cell
        prior = len(in_scales) / self.task.wide.task.deviation**2 * in_scales @ in_scales.T
        return Pooled.of(self.rounds, curvature, bends * scores), prior

    @cached_property
    def _gram(self) -> Curvature:
        found = self.conditioner
        whole = Curvature(found.gram, found.noise, np.eye(len(found.gram)))
        return whole.shrunk_to(self.task.n_rows * np.diag(found.spread**2))

    def _curvature(self, theta: Array, budget: ZCDP) -> Curvature:
        """Return the curvature, released where the search ended, without what is unidentified."""
        curvature = self._gram
        if self.task.interest and self.family.quadratic:
            return curvature
        self.without = unidentified(self.task, self.conditioner, curvature, {})
        if not self.family.quadratic:
            self.move_to(theta)
            curvature = self.release_curvature(budget * Fraction(self.plan.curvature, 80))
            if self.task.interest:
                return curvature
            dropped = {j: one for j, one in self.without.items() if one.dropped}
            self.without = unidentified(self.task, self.conditioner, curvature, dropped)
        return curvature.without(self.conditioner, self.without)

    def _restricted(self, theta: Array) -> Array:
        """Return the parameters where others take over what dropped features had."""
        dropped = [one.feature for one in self.without.values() if one.dropped]
        left = self._gram.without(self.conditioner, dropped)
        return np.asarray(left.inverse @ self._gram.matrix @ theta) if dropped else theta

    def _last_rounds(self, theta: Array, curvature: Curvature, budget: ZCDP) -> Curvature:
        """Take Newton rounds, and return the curvature as it is where the last one began.

        In the last round high-leverage rows count whole, where influences are clipped.
        """
        at = self._mean_curvature(theta)
        for part in self.plan.last:
            if self.family.has_scale and part == self.plan.last[-1]:
                self.conditioner = self.conditioner.reaching(REACH)
            self._round(theta, budget * Fraction(part, 80), self._histogram_shares[1])
            now = curvature.times(self._mean_curvature(theta) / at)
            theta = theta + self._safe(now.inverse @ self.rounds[-1].score)
        return now

    def _round(self, theta: Array, cost: ZCDP, share: float) -> None:
        self.move_to(theta)
        clip = self._clip(cost, share)
        self.rounds.append(Round(theta, *self.release_score(clip, cost), clip))

    def _clip(self, cost: ZCDP, share: float) -> float:
        """Release a histogram of influences, and return where to clip them.

        Residuals of high-leverage rows stay whole: few rows may identify a coefficient.
        """
        if not self.family.has_scale:
            return self.family.loss.bound * self.conditioner.row_norm
        last = self.rounds[-1].clip if self.rounds else 0.0
        bound = self.task.wide.units.target_bound
        top = 8 * last if last else bound * self.conditioner.row_norm
        residual = self._clips(top)[0] if last else bound
        self.influences = self.release_influences(top, residual, self.task.share(share))
        least = self.conditioner.longest * KEPT * self.deviation
        if not self.influences.detected:
            return least
        room = math.sqrt(NEGLIGIBLE * 2 * float(cost) * self.task.n_rows) * self.deviation
        return self.influences.clip(float(cost), least, room)

    def _pooled(self, curvature: Curvature) -> Pooled:
        """Return the estimate of the last two rounds."""
        return Pooled.of(self.rounds[-2:], curvature, self._one_sided * self._cuts, settling=True)

    @property
    def _one_sided(self) -> float:
        return self.influences.one_sided if self.influences else 0.0

    @property
    def _cuts(self) -> Array:
        """Return what the clips of the last two rounds cut off."""
        found, last = self.influences, self.rounds[-2:]
        return np.array([0.0 if found is None else found.cut_off(one.clip) for one in last])

    @property
    def deviation(self) -> float:
        """Return the standard deviation of residuals, or of units' means, as far as it is known."""
        if self.nuisance:
            return self.nuisance.deviation
        return self._deviation_of(self.influences)

    def _deviation_of(self, found: Influences | None) -> float:
        task = self.task.wide.task
        if found is None or not found.detected:
            return task.residual_scale
        by_median = PER_MEDIAN * found.median / self.conditioner.mean_norm
        return max(by_median, task.residual_scale if task.point_mass else 0.0)

    def _moved(self, way: Array) -> float:
        """Return the root mean square by which linear predictors move."""
        square = float(way @ self.conditioner.gram @ way) / self.task.n_rows
        return math.sqrt(max(square, 0.0))

    def _safe(self, way: Array) -> Array:
        """Return as much of a move as Lemma 41 permits."""
        moved = self._moved(way)
        full = self.family.quadratic or moved < 1e-6
        return way if full else way * (math.log1p(moved) / moved)

    def _mean_curvature(self, theta: Array) -> float:
        """Return the mean curvature there, if linear predictors are normal."""
        weights = self.conditioner.matrix.T @ theta
        constant = float(weights[self.task.n_features :].sum())
        return self.family.mean_curvature(constant, max(self._moved(theta) ** 2 - constant**2, 0.0))

    def move_to(self, theta: Array) -> None:
        """Move the point's weights there, by whole steps of its lattice."""
        weights = self.conditioner.matrix.T @ theta
        weights += self.nuisance.weights if self.nuisance else 0.0
        self._move(self.point, weights)

    def _move(self, point: ExactPoint, weights: Array) -> None:
        moves = (weights - point.weights[self.task.columns]) / point.scale
        for column, move in zip(self.task.columns.tolist(), moves.tolist(), strict=True):
            point.add(column, round(clamp(move, -MOST_GRAINS, MOST_GRAINS)))

    def _clips(self, influence: float) -> tuple[float, float]:
        """Return where residuals are clipped whatever their row, and where times a row's norm.

        Short rows stay whole, and rows of units, of which only the mean is clipped for noise. The
        second is in units in which both bounds are 1.
        """
        short = SHORT_ROWS * self.conditioner.mean_norm / (ROOM if self.task.averaged else 1.0)
        residual = min(influence / short, self.family.loss.bound)
        return residual, min(influence / (residual * self.conditioner.row_norm), 1.0)

    def release_influences(self, top: float, residual: float, cost: ZCDP) -> Influences:
        """Release how many influences have which size (docs/theory/marginals.md, Lemma 22)."""
        return self._influences(self.point, top, residual, cost, "sizes of influences")

    def _influences(
        self, point: ExactPoint, top: float, residual: float, cost: ZCDP, purpose: str
    ) -> Influences:
        cap = top / (residual * self.conditioner.row_norm)
        counts = point.row_total(size_counts, residual, self.conditioner.rows, cap, N_CELLS)
        near = N_CELLS + 1 - (FAR_CELLS if self.rounds else 0)
        first = np.array([*range(near), *range(near, N_CELLS + 2, 3)])
        noisy, noise = release_histograms(
            self.task.accountant,
            np.add.reduceat(counts, first)[None, :],
            cost=cost,
            purpose=purpose,
        )
        edges = top * 2.0 ** (np.arange(-N_CELLS, 1) / 2)
        one_sided = max(self.task.wide.task.asymmetry, ONE_SIDED)
        return Influences(edges[first[1:] - 1], noisy[0], noise, self.task.n_rows, one_sided)

    def release_deviation(self) -> float:
        """Release the standard deviation of residuals from one row of each unit.

        (docs/theory/marginals.md, Lemma 22; docs/theory/mechanisms.md, Lemma 89)
        """
        point, last = self.task.start(single=True), self.rounds[-1].clip
        self._move(point, self.point.weights[self.task.columns])
        top, cost = 8 * last, self.task.share(self._histogram_shares[1])
        purpose = "sizes of influences of one row of each unit"
        return self._deviation_of(self._influences(point, top, self._clips(top)[0], cost, purpose))

    def release_score(self, influence: float, cost: ZCDP) -> tuple[Array, float]:
        """Release −Σψu, which a row moves by its clip at most (docs/theory/tables.md, Lemma 25)."""
        residual, cap = self._clips(influence)
        sums = self.point.row_total(capped_products, residual, self.conditioner.rows, cap)
        noisy, noise = release_sums(
            self.task.accountant,
            sums,
            units_per_one=UNITS,
            change=cap,
            cost=cost,
            purpose="score: clipped residuals times whitened features",
        )
        size = residual * self.conditioner.row_norm
        return -size * noisy, size * noise

    def release_cut_off(self, influence: float, part: float) -> CutOff:
        """Release the direction of clipped influences; a row adds a vector of length 1 at most.

        `part` is the weight of the last round in the estimate (docs/theory/tables.md,
        Lemma 69).
        """
        residual, cap = self._clips(influence)
        sums = self.point.row_total(clipped_directions, residual, self.conditioner.rows, cap)
        noisy, noise = release_sums(
            self.task.accountant,
            sums,
            units_per_one=LEVELS,
            change=1.0,
            cost=self.task.share(CUT_SHARE),
            purpose="direction of clipped influences",
        )
        found, cuts = self.influences, self._cuts
        rows, size = found.beyond(influence) if found else 0.0, np.array([1 - part, part]) @ cuts
        return CutOff.of(-noisy, noise, self._one_sided * rows, float(size) / max(rows, 1.0))

    def release_meat(self, influence: float) -> Meat:
        """Release ΣΨΨᵀ of clipped influences Ψ = ψu.

        (docs/theory/tables.md, Lemma 25; docs/theory/mechanisms.md, Lemma 26)
        """
        residual, cap = self._clips(influence)
        matrix, noise = release_gram(
            self.task.accountant,
            self.point.row_total(capped_middle, residual, self.conditioner.rows, cap),
            units_per_one=UNITS,
            cost=self.task.share(MEAT_SHARE),
            purpose="meat of the sandwich covariance",
        )
        return Meat(influence**2 * matrix, influence**2 * noise)

    def release_curvature(self, cost: ZCDP) -> Curvature:
        """Release Σv(μ)uuᵀ, v being the variance function (docs/theory/tables.md, Lemma 32)."""
        if self.family.has_scale:
            return self._release_clipped_curvature(cost)
        matrix, noise = release_gram(
            self.task.accountant,
            self.point.curved_gram(self.conditioner.rows),
            units_per_one=UNITS,
            cost=cost,
            purpose="curvature of the loss",
        )
        size = self.family.loss.curvature * self.conditioner.row_norm**2
        return Curvature(size * matrix, size * noise, np.eye(len(matrix)))

    def _release_clipped_curvature(self, cost: ZCDP) -> Curvature:
        """Release it of rows √v(μ)u that are clipped to the largest norm that is detected.

        (docs/theory/tables.md, Lemma 91)
        """
        top = self.conditioner.row_norm * math.sqrt(self.family.loss.bound)
        if self.curved_norm is None:
            counts = self.point.curved_total(size_counts, 1.0, self.conditioner.rows, 1.0, N_CELLS)
            noisy, noise = release_histograms(
                self.task.accountant,
                counts[None, :],
                cost=self.task.share(NORM_SHARE),
                purpose="norms of whitened rows times roots of means",
            )
            edges = top * 2.0 ** (np.arange(-N_CELLS, 1) / 2)
            self.curved_norm = float(edges[min(last_detected(noisy[0], noise), N_CELLS)])
        root, cap = self._clips(self.curved_norm)
        matrix, noise = release_gram(
            self.task.accountant,
            self.point.curved_total(capped_middle, root, self.conditioner.rows, cap),
            units_per_one=UNITS,
            cost=cost,
            purpose="curvature of the loss",
        )
        square = self.curved_norm**2
        return Curvature(square * matrix, square * noise, np.eye(len(matrix)))

    def release_long(self) -> float:
        """Release how many rows were norm-clipped (docs/theory/mechanisms.md, Lemma 13), if any."""
        far = FAR_OUT * self.conditioner.mean_norm / self.conditioner.row_norm
        times = 1.0 if self.nuisance else far
        rows = self.conditioner.rows.smaller(times)
        point = self.task.start(single=True) if self.task.averaged else self.point
        count = point.row_total(long_count, self.task.wide.task.deviation, rows)
        noisy, noise = self.task.wide.task.spending.release_sum(
            int(count[0]),
            most=1,
            bound=1.0,
            cost=self.task.share(LONG_SHARE),
            purpose="the number of norm-clipped rows",
        )
        return noisy if noisy > 2 * noise else 0.0


# --- how well coefficients are known --------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Answer:
    """An estimate with all that its covariance counts (Lemma 27)."""

    fit: TableRounds
    curvature: Curvature
    doubt: Array
    estimate: Pooled
    meat: Meat
    cut_off: CutOff

    @property
    def _users(self) -> Array:
        return self.fit.users

    @cached_property
    def _directions(self) -> Array:
        return np.asarray(self._users @ self.curvature.inverse)

    @cached_property
    def _squares(self) -> Array:
        return np.asarray(np.maximum((self._directions**2).sum(axis=1), 1e-300))

    @property
    def _dispersion(self) -> float:
        """Return the variance of a residual over the variance function."""
        if self.fit.family.releases_curvature and self.fit.family.releases_meat:
            return self.meat.dispersion(self.curvature)
        return self.fit.family.dispersion(self.fit.deviation)

    def known(self) -> Known:
        """Return the covariance H⁻¹(M + P)H⁻¹ of all that is counted, and what goes with it."""
        spread, directions, squares = self.fit.conditioner.spread, self._directions, self._squares
        private, family = self._private(), self.fit.family
        bias = self.cut_off.error(directions)
        plain = np.maximum((directions * self._users).sum(axis=1), 0.0)
        both = family.releases_curvature and family.releases_meat
        meant = self._dispersion * plain if both else None
        sampling, error = self.meat.along(directions, spread, meant)
        variances = squares * sampling + private + bias**2
        freedom = 2 * (variances / np.maximum(squares * error, 1e-300)) ** 2
        if family.releases_curvature:
            turned = np.sqrt(((directions @ self.curvature.inverse) ** 2).sum(axis=1) / squares)
            known = 0.0 if family.releases_meat else squares * sampling
            parts = 2 - known / np.maximum(variances, 1e-300)
            off = np.maximum(self.curvature.noise * turned * parts, 1e-3) ** 2 / 2
            freedom = 1 / (off + (1 / np.maximum(freedom, 1e-9) if family.releases_meat else 0.0))
        noise = self.estimate.private(self.curvature.noise)
        common = directions @ (self.meat.floored(spread) + noise) @ directions.T
        wider = np.sqrt(variances / np.maximum(np.diag(common), 1e-300))
        covariance = common * np.outer(wider, wider)
        usual = np.sqrt(plain) * math.sqrt(self._dispersion)
        if self.fit.task.averaged:  # rows of a unit are not independent
            usual = np.sqrt(squares * sampling)
        self._withhold(np.sqrt(private))
        largest = self.fit.rounds[-1].clip + self.cut_off.excess
        return Known(
            (covariance + covariance.T) / 2,
            np.clip(freedom, LEAST_FREEDOM, 1e6),
            bias,
            usual,
            self.fit.undetected * largest * np.sqrt(squares),
        )

    def _private(self) -> Array:
        """Return variances by privacy noise, high leverage, held features and changed curvature."""
        directions, estimate, fit = self._directions, self.estimate, self.fit
        noise = estimate.private(self.curvature.noise)
        variances = ((directions @ noise) * directions).sum(axis=1)
        variances += estimate.by_leverage(self._users, self._squares) + self._by_held()
        variances += fit.nuisance.variances if fit.nuisance else 0.0
        if not fit.family.quadratic:
            moved = np.abs(self._users @ estimate.way)
            variances += (np.maximum(fit._moved(estimate.way), self._steps * moved) * moved) ** 2
        return np.asarray(variances)

    def _by_held(self) -> Array:
        """Return the variances of coefficients by what held ones may be.

        Others take over what a held one lacks, as far as they correlate beyond noise, or with it,
        of those that are required (Lemma 64).
        """
        required = self.fit.task.required
        held = [one.feature for one in self.fit.without.values() if not one.dropped]
        ways = np.linalg.inv(self._users)[:, held]
        moved = (self._directions @ self.curvature.matrix @ ways) ** 2
        chance = self.curvature.noise**2 / 2 * np.outer(self._squares, (ways**2).sum(axis=0))
        doubts = np.diag(self._users @ self.doubt @ self._users.T)[held]
        chance = np.where(np.isin(held, required), -chance, chance)
        return np.asarray(np.maximum(moved - chance, 0.0) @ doubts)

    def _withhold(self, errors: Array) -> None:
        """Add features whose coefficients noise hides to those without an interval.

        A feature's effect, per standard deviation that others leave of it, is at most the standard
        deviation of the linear predictor (Lemma 52).
        """
        task, nuisance = self.fit.task, self.fit.nuisance
        d = len(nuisance.interest) if nuisance else task.n_features
        per_scale = errors * self.fit.left(self.curvature)
        most = MOST_ERROR * max(task.wide.task.deviation, self.fit.deviation)
        converged = self._converged(errors)[:d]
        for j in np.flatnonzero((per_scale[:d] > most) | ~converged).tolist():
            self.fit.without.setdefault(j, Unidentified(j, converged=bool(converged[j])))

    @property
    def _steps(self) -> Array:
        """Return a step of every column: its scale, 1 of a level, 0 of the constant."""
        wide = self.fit.task.wide
        steps = np.where(is_yes_no(wide.units.feature_bounds), 1.0, wide.scales)
        steps = np.append(steps, 0.0)[self.fit.task.columns]
        return steps[list(self.fit.nuisance.interest)] if self.fit.nuisance else steps

    def _converged(self, errors: Array) -> Mask:
        """Return of which coefficients the last move is small, per step and beyond noise."""
        moved = np.abs(self._users @ self.estimate.way) - errors
        return np.asarray((moved * self._steps <= SETTLED) | self.fit.family.quadratic)
