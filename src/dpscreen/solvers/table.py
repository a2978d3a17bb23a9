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

import numpy as np

from dpscreen._core.arrays import Array, Integers
from dpscreen.families import Family
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
    largest_detected,
    permitted_square,
    release_columns,
    release_conditioner,
    unidentified,
)
from dpscreen.solvers.marginals import SQUARED_NORM, WideTask, is_yes_no
from dpscreen.solvers.rules import GAUSSIAN as PER_MEDIAN


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

INTEREST_CLIPPED = RoundPlan((1, 1, 1, 2, 2, 3), curvature=28, last=(12, 30), margin=1.7, gram=0.1)
"""Rounds where that is so, and influences are clipped. Tuned."""

SEARCH_SHARE, LAST_SHARE = 0.01, 0.04
"""Shares of a histogram of influences in search rounds and in last ones. Tuned."""

MEAT_SHARE, LONG_SHARE, CUT_SHARE = 0.08, 0.005, 0.05
"""Shares of the meat (or of the last curvature), of the number of norm-clipped rows, and of the
direction of clipped influences, twice. Tuned."""

KEPT, REACH = 2.0, 3.0
"""Residuals of high-leverage rows that clips keep, in standard deviations; and the multiple of the
norm bound up to which rows count whole in the last round. Tuned."""

ROOM, SHORT_ROWS, FAR_OUT = 4.0, 0.5, 2.0
"""Multiple of the clip of units up to which residuals of their single rows stay whole: two bits of
the lattice; norms, over their mean, below which rows have residuals clipped alike, and from which
on they have high leverage. Conventional."""

FAR_CELLS, GROUP_CELLS, TAIL_RATES = 6, 4, np.linspace(1.4, 12.0, 54)
"""Half octaves beyond the last clip, three of which make one cell of a histogram; cells over which
a group of similar rows is spread, at most; and logarithmic slopes of the tail, equally likely at
first. Conventional; Lemma 28."""

ONE_SIDED, UNSURE, NEGLIGIBLE, SETTLED = 1 / 3, 1.0, 0.1, 0.5
"""Part of what clips cut off that is taken to be on one side; error of its size, as a part; privacy
noise over sampling, as variances, up to which nothing is clipped for it; and the largest move of a
coefficient, per standard deviation of its feature and beyond noise, in the last round of a curved
loss. Tuned."""

LARGE, LEANING = 0.5, 2.5
"""Part of the clip from which on influences count in the direction of large ones; and standard
deviations of noise from which on they lean to one side along a coefficient. Tuned."""

LEAST_MEAT, LEAST_FREEDOM, ROWS_PER_COLUMN = 0.1, 4.0, 10
"""Least variance of a direction over their mean; least degrees of freedom; and rows per column with
fewer of which a sandwich covariance is too small even without noise. Conventional."""

MOST_ERROR, PLACED = 0.5, 0.8
"""Largest error by privacy of an interval, in largest possible effects (Lemma 52); and least share
of a fit's budget for the table. Derived."""


@dataclass(frozen=True, eq=False)
class TableRelease:
    """Released weights of the table, one for each column, and of the model for predictions.

    The two differ where features are not identifiable: predictions have posterior means of all.
    Covariance, degrees of freedom, largest `bias` by clips and `plain` standard errors, those
    without privacy, are of coefficients in the user's units, the constant last if there is one.
    `deviation` is the standard deviation of residuals, `target_deviation` that of the target. Fewer
    rows than `undetected` may go undetected, and move coefficients by up to `shift` (Lemma 65).
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

    def placed(self, places: Integers, size: int) -> TableRelease:
        """Return it as a table of so many coefficients, of the others of which nothing is known."""

        def whole(values: Array, filled: float = 0.0) -> Array:
            found = np.full(size, filled)
            found[places] = values
            return found

        covariance = np.zeros((size, size))
        covariance[np.ix_(places, places)] = self.covariance
        moved = (
            replace(
                one,
                feature=int(places[one.feature]),
                partners=tuple(int(places[j]) for j in one.partners),
            )
            for one in self.unidentified
        )
        return replace(
            self,
            covariance=covariance,
            freedom=whole(self.freedom, 1.0),
            bias=whole(self.bias),
            plain=whole(self.plain),
            shift=whole(self.shift),
            unidentified=tuple(moved),
        )


Known = tuple[Array, Array, Array, Array, Array]
"""Covariance, freedom, bias, plain and shift of a `TableRelease`."""


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
        if family.has_scale:
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


@dataclass(eq=False)
class Influences:
    """A noisy histogram of influences ‖u‖·|r|: counts below, between and beyond edges.

    They are `detected` if most rows are in cells that are; `median` is interpolated.
    """

    edges: Array
    counts: Array
    noise: float
    n_rows: int
    one_sided: float = ONE_SIDED

    def __post_init__(self) -> None:
        clear = self.counts >= DETECTED * self.noise
        self.detected = bool(clear[1:].any() and self.counts[clear].sum() >= 0.6 * self.n_rows)
        below = np.append(0.0, np.maximum.accumulate(np.cumsum(self.counts[:-1])))
        half = max(float(self.counts.sum()), 1.0) / 2
        self.median = float(np.interp(half, below, np.append(0.0, self.edges)))

        # Sizes C, the rows beyond C, and their integral Σ(q − C)₊ (Lemma 28). From the last
        # detected cell on rows fall by a law, each as far as the counts make it likely; before it
        # they are what cells hold. A group of large influences is detected by its own cells,
        # whatever noise is in those beyond.
        sums = np.append(0.0, np.cumsum(self.counts))
        first, end = np.triu_indices(len(sums), 1)
        clear = sums[end] - sums[first] >= DETECTED * self.noise * np.sqrt(end - first)
        last = min(max(int(first[clear].max(initial=0)) - 1, 1), len(self.edges) - 1)
        counts, edge = self.counts[last:], float(self.edges[last])
        shares = -np.diff(_falls(self.edges[last - 1 :] / edge), append=0.0)
        precision = 1 / (self.noise**2 + np.maximum(counts, 0.0))
        rows = np.maximum(shares * precision @ counts / (shares**2 @ precision), 0.0)
        misfits = (counts - rows[:, None] * shares) ** 2 @ precision
        likely = np.exp((misfits.min() - misfits) / 2)
        self.sizes = edge * 2.0 ** (np.arange(-24, 97) / 8)
        beyond = (rows * likely / likely.sum()) @ _falls(np.maximum(self.sizes / edge, 1.0))
        held = np.cumsum(np.maximum(self.counts[last:0:-1], 0.0))[::-1]
        beyond += np.interp(self.sizes, self.edges[: last + 1], np.append(held, 0.0))
        pieces = (beyond[1:] + beyond[:-1]) / 2 * np.diff(self.sizes)
        self.rows, self.cuts = beyond, np.append(np.cumsum(pieces[::-1])[::-1], 0.0)

    def beyond(self, clip: float) -> tuple[float, float]:
        """Return the rows beyond a clip, and Σ(q − C)₊, which it cuts off.

        The latter is nothing where most rows are hidden.
        """
        cut = float(np.interp(clip, self.sizes, self.cuts)) if self.detected else 0.0
        return float(np.interp(clip, self.sizes, self.rows)), cut

    def clip(self, rho: float, least: float, room: float) -> float:
        """Return the clip C ≥ `least` with the least C²/2ρ + B².

        B is the part of what it cuts off that may be on one side; up to `room`, where noise is
        negligible, it is all of it.
        """
        clips = np.maximum(self.sizes, least)
        cuts = np.interp(clips, self.sizes, self.cuts)
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

    def posterior(
        self, origin: Array, curvature: Curvature, prior: Array, values: Array | None = None
    ) -> tuple[Array, Array]:
        """Return posterior mean and covariance for a prior precision about an origin (Lemma 63).

        Eigenvalues of H are as floored, unless others are given.
        """
        known = curvature.values if values is None else values
        turned = (curvature.axes * known**2) @ curvature.axes.T * self.precision
        covariance = np.asarray(np.linalg.inv(turned + prior), dtype=np.float64)
        return origin + covariance @ turned @ (self.theta - origin), covariance


@dataclass(frozen=True, eq=False)
class CutOff:
    """What clips cut off the score: its posterior mean, and the standard deviation by noise.

    The direction of clipped influences is released, and their mean `excess` over the clip follows
    from the histogram; `UNSURE` is the error of that, as a part. `leaning` is the direction of all
    large ones, in standard deviations of its noise, and `total` all that is cut off (Lemma 69).
    """

    mean: Array
    leaning: Array
    noise: float = 0.0
    excess: float = 0.0
    total: float = 0.0

    @classmethod
    def of(cls, directions: Array, noise: float, one_sided: float, excess: float) -> CutOff:
        """Return it from a noisy sum of directions, and the mean excess of clipped rows.

        The prior has so many rows `one_sided`, unless the sum is beyond that and its noise.
        """
        k, square = len(directions), float(directions @ directions)
        detected = square / k - noise**2 * (1 + 2 * math.sqrt(2 / k))
        prior = max(one_sided**2 / k, detected)
        kept = prior / (prior + noise**2)
        noise_kept = excess * noise * math.sqrt(kept)
        return cls(excess * kept * directions, directions / noise, noise_kept, excess)


@dataclass(eq=False)
class Meat:
    """The noisy ΣΨΨᵀ of clipped influences Ψ = ψu, and the noise of its diagonal.

    `total` is its trace, which is less noisy than any direction's part.
    """

    matrix: Array
    noise: float

    def __post_init__(self) -> None:
        least = math.sqrt(len(self.matrix)) * self.noise
        self.total = max(float(np.trace(self.matrix)), least)

    def shrunk(
        self, directions: Array, spread: Array, meant: Array | None = None
    ) -> tuple[Array, Array, Array]:
        """Return hᵀMh/‖h‖² of every direction, its standard error, and M itself.

        Each is shrunk to the mean over directions, by squared spreads, or to what is `meant` in
        the place of hᵀMh; eigenvalues of M are no less than a part of that mean.
        """
        squares = np.maximum((directions**2).sum(axis=1), 1e-300)
        mean = self.total / float(spread @ spread)
        even = mean * (directions**2 @ spread**2) / squares if meant is None else meant / squares
        off = ((directions @ self.matrix) * directions).sum(axis=1) / squares - even
        kept = off**2 / (off**2 + self.noise**2)
        error = self.noise * np.maximum(kept, 1 / math.sqrt(len(self.matrix)))
        scales = np.outer(spread, spread)
        values, vectors = np.linalg.eigh(self.matrix / scales)
        floored = (vectors * np.maximum(values, LEAST_MEAT * mean)) @ vectors.T * scales
        return np.maximum(even + kept * off, LEAST_MEAT * even), error, floored


# --- the fit --------------------------------------------------------------------------------------


def plan_of(family: Family, *, of_interest: bool = False) -> RoundPlan:
    """Return the plan of the rounds for all coefficients, or for some that are of interest."""
    if family.quadratic:
        return INTEREST_QUADRATIC if of_interest else QUADRATIC
    if family.has_scale:
        return INTEREST_CLIPPED if of_interest else CURVED_CLIPPED
    return INTEREST_CURVED if of_interest else CURVED


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
    offset, size = wide.task.choices.offset, wide.task.design.n_features
    places = np.arange(size if columns is None else len(columns))
    if columns is None:
        columns = places = places[places != offset]
    named = (tuple(np.searchsorted(places, one).tolist()) for one in (interest, required))
    task = TableTask(wide, columns, *named)
    plan = plan_of(family, of_interest=bool(interest))
    # Where no influence is clipped, noise of scores grows with the norm bound.
    most = math.inf if family.has_scale else math.sqrt(LEVERAGE * len(columns))
    conditioner = release_conditioner(task, plan.margin, most, plan.gram)
    found = TableEngine(task, family, plan, conditioner, task.start()).release(constant)
    return found if offset is None else found.placed(places, size)


@dataclass(frozen=True, eq=False)
class Nuisance:
    """What is known of all coefficients before rounds of those of interest (Lemma 97).

    `variances` are those that errors of the others and of the matrix add to coefficients of
    interest; `left` is the standard deviation that the other features leave of each, `weights` are
    those of all columns where the rounds begin, and `deviation` is that of residuals.
    """

    weights: Array
    variances: Array
    left: Array
    deviation: float


@dataclass(eq=False)
class TableEngine:
    """A point on its way to the estimate, and what is released of the rows there.

    A fit of coefficients of interest begins where one of all columns ended, its `nuisance`.
    """

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

    def __post_init__(self) -> None:
        task = self.task
        # To coefficients in the user's units, of all columns or of those of interest; and a step
        # of each: the scale of a feature, 1 of a level, 0 of the constant.
        self.users = task.wide.units.to_users(task.columns) @ self.conditioner.matrix.T
        levels = is_yes_no(task.wide.units.feature_bounds)
        self.steps = np.append(np.where(levels, 1.0, task.wide.scales), 0.0)[task.columns]
        if self.nuisance:
            chosen = list(task.interest)
            self.users, self.steps = self.users[chosen], self.steps[chosen]
        # No variance function holds for means over a unit's rows.
        self.releases_meat = self.family.has_scale or task.averaged
        # Rows that the last histogram of influences, or of norms, could not detect.
        share = LAST_SHARE if self.family.has_scale else NORM_SHARE
        self.undetected = DETECTED * math.sqrt(GROUP_CELLS / (2 * float(task.share(share))))
        # The standard deviation of residuals, or of units' means, as far as it is known.
        self.deviation = task.wide.task.residual_scale
        if self.nuisance:
            self.deviation = self.nuisance.deviation

    def release(self, constant: float) -> TableRelease:
        """Release rounds, and what the covariance rests on."""
        task, family = self.task, self.family
        budget = self._budget()
        weights = np.where(task.columns < task.wide.task.n_features, 0.0, constant)
        theta = np.asarray(np.linalg.solve(self.conditioner.matrix.T, weights), dtype=np.float64)

        # Search: rounds to the posterior mean, with the mean curvature.
        gram = self.conditioner.gram.shrunk_to(task.n_rows * np.diag(self.conditioner.spread**2))
        for part in self.plan.search:
            self._round(theta, budget * Fraction(part, 80), SEARCH_SHARE)
            mean, doubt = self._posterior(gram.times(self._mean_curvature(theta)))
            theta = theta + self._damped(mean - theta)

        # The curvature where the search ended, and the features that it does not identify.
        curvature = gram
        if not task.interest:
            self.without = unidentified(task, self.conditioner, gram, {})
        if not family.quadratic:
            self.move_to(theta)
            curvature = self._release_curvature(theta, budget * Fraction(self.plan.curvature, 80))
        if task.interest:
            return self._release_interest(theta, curvature, budget)
        if not family.quadratic:
            dropped = {j: one for j, one in self.without.items() if one.dropped}
            self.without = unidentified(task, self.conditioner, curvature, dropped)
        curvature = curvature.without(self.conditioner, self.without)
        if task.required:
            doubt = self._doubt(curvature.without(self.conditioner, ()))
        gone = [j for j, one in self.without.items() if one.dropped]
        if gone:  # others take over what these had
            theta = gram.without(self.conditioner, gone).inverse @ gram.matrix @ theta

        estimate, curvature, known = self._finish(theta, curvature, doubt, budget)
        table, explained_by = self.point.weights, self._moved(estimate.theta)
        hidden = tuple(explained(task, self.conditioner, self.without))
        if self.without:
            self.move_to(self._posterior(curvature.without(self.conditioner, ()))[0])
        predicting = self.point.weights
        predicting[task.columns[[j for j in self.without if task.constant[j]]]] = 0
        return self._table(table, predicting, known, hidden, explained_by)

    def _budget(self) -> ZCDP:
        """Return what rounds and curvature share: what histograms, meat and count leave."""
        task, curved, scaled = self.task, not self.family.quadratic, self.family.has_scale
        histograms = len(self.plan.search) * SEARCH_SHARE
        histograms += len(self.plan.last) * LAST_SHARE
        histograms += LAST_SHARE * task.averaged
        # Norms of weighted rows; and, with interest, of rows of few columns, plain and weighted.
        norms = (curved and scaled) * (1 + bool(task.interest)) + bool(task.interest)
        share = (curved + self.releases_meat) * MEAT_SHARE + LONG_SHARE + NORM_SHARE * norms
        later = task.share(share + (2 * CUT_SHARE + histograms) * scaled)
        return ZCDP(task.wide.task.spending.remaining.rho - later.rho)

    def _release_interest(self, theta: Array, curvature: Curvature, budget: ZCDP) -> TableRelease:
        """Release rounds of the coefficients of interest, the others being where they are.

        They are of columns that are uncorrelated with all others (docs/theory/tables.md, Lemma 97).
        """
        self.move_to(theta)
        task, interest = self.task, list(self.task.interest)
        users, k = self.users[interest], len(interest)
        directions = users @ curvature.inverse
        level = task.n_rows * self._mean_curvature(theta)
        values, vectors = np.linalg.eigh(directions @ users.T)
        turned = (vectors * np.sqrt(level / values)) @ vectors.T @ directions

        # Variances by errors of all coefficients and of the matrix.
        doubt = self._doubt(curvature)
        by_noise = (directions**2).sum(axis=1) * np.trace(doubt)
        by_noise += ((directions @ doubt) * directions).sum(axis=1)
        off = directions @ curvature.matrix - users
        nuisance = Nuisance(
            self.point.weights[task.columns],
            curvature.noise**2 / 2 * by_noise + ((off @ doubt) * off).sum(axis=1),
            self._left(curvature)[interest],
            self.deviation,
        )
        whole = self.family.has_scale
        conditioner = release_columns(
            task, turned @ self.conditioner.matrix, self.plan.margin, whole
        )
        last = TableEngine(task, self.family, self.plan, conditioner, self.point, nuisance=nuisance)
        noise = curvature.noise * float(np.linalg.norm(turned, 2)) ** 2
        of_interest = Curvature(level * np.eye(k), noise)
        known = last._finish(np.zeros(k), of_interest, np.zeros((k, k)), budget)[2]

        weights = predicting = self.point.weights
        reached = np.linalg.solve(self.conditioner.matrix.T, weights[task.columns])
        explained_by = self._moved(np.asarray(reached, dtype=np.float64))
        if last.without:
            self.move_to(theta)
            predicting = self.point.weights
        hidden = tuple(one for _, one in sorted(last.without.items()))
        found = last._table(weights, predicting, known, hidden, explained_by)
        found = found.placed(np.array(interest), len(task.columns))
        others = set(range(task.n_features)).difference(interest)
        hidden = (*found.unidentified, *(Unidentified(j, nuisance=True) for j in others))
        return replace(found, unidentified=tuple(sorted(hidden, key=lambda one: one.feature)))

    def _finish(
        self, theta: Array, curvature: Curvature, doubt: Array, budget: ZCDP
    ) -> tuple[Pooled, Curvature, Known]:
        """Release the last rounds, and return the estimate, the curvature and what is known."""
        task, family = self.task, self.family
        now, at = curvature, self._mean_curvature(theta)
        for part in self.plan.last:
            if family.has_scale and part == self.plan.last[-1]:  # high-leverage rows count whole
                reaching = replace(self.conditioner.rows, reach=REACH)
                self.conditioner = replace(self.conditioner, rows=reaching)
            self._round(theta, budget * Fraction(part, 80), LAST_SHARE)
            now = curvature.times(self._mean_curvature(theta) / at)
            theta = theta + self._damped(now.inverse @ self.rounds[-1].score)

        # What the clips of the last two rounds cut off, and its direction (Lemma 69).
        curvature, last, found = now, self.rounds[-2:], self.influences
        cuts = np.array([0.0 if found is None else found.beyond(one.clip)[1] for one in last])
        one_sided = found.one_sided if found else 0.0
        estimate = Pooled.of(last, curvature, one_sided * cuts, settling=True)
        self.move_to(estimate.theta)
        cut_off = CutOff(*np.zeros((2, len(theta))))
        if family.has_scale:
            rows = max(found.beyond(last[-1].clip)[0] if found else 0.0, 1.0)
            total = float(np.array([1 - estimate.part, estimate.part]) @ cuts)
            directions, noise = self._release_direction(last[-1].clip)
            cut_off = CutOff.of(directions, noise, one_sided * rows, total / rows)
            # Beyond the clip are too few rows to tell to which side large influences lean.
            directions, noise = self._release_direction(LARGE * last[-1].clip)
            cut_off = replace(cut_off, leaning=directions / noise, total=total)
        if not family.quadratic:
            theta = estimate.theta + curvature.inverse @ cut_off.mean
            self.move_to(theta)
            again = self._release_curvature(theta, task.share(MEAT_SHARE))
            again = again.shrunk_to(curvature.matrix, curvature.noise)
            curvature = again.without(self.conditioner, self.without)
            estimate = Pooled.of(last, curvature, one_sided * cuts, settling=True)
        estimate = replace(estimate, theta=estimate.theta + curvature.inverse @ cut_off.mean)
        self.move_to(estimate.theta)
        meat = Meat(curvature.matrix, curvature.noise)
        if self.releases_meat:  # (docs/theory/tables.md, Lemma 25; mechanisms.md, Lemma 26)
            residual, cap = self._clips(last[-1].clip)
            matrix, noise = release_gram(
                task.accountant,
                self.point.row_total(capped_middle, residual, self.conditioner.rows, cap),
                units_per_one=UNITS,
                cost=task.share(MEAT_SHARE),
                purpose="meat of the sandwich covariance",
            )
            meat = Meat(last[-1].clip ** 2 * matrix, last[-1].clip ** 2 * noise)
        return estimate, curvature, self._known(curvature, doubt, estimate, meat, cut_off)

    def _table(
        self,
        weights: Array,
        predicting: Array,
        known: Known,
        hidden: tuple[Unidentified, ...],
        explained_by: float,
    ) -> TableRelease:
        """Release what is reported beside coefficients, and return all of it."""
        task = self.task
        deviation = self.deviation
        if task.averaged and self.family.has_scale:
            # That of residuals of one row of each unit (docs/theory/marginals.md, Lemma 22).
            top = 8 * self.rounds[-1].clip
            cost, purpose = task.share(LAST_SHARE), "sizes of influences of one row of each unit"
            residual = self._clips(top)[0]
            deviation = self._release_influences(self._single(), top, residual, cost, purpose)[1]
        # How many rows were norm-clipped, if any (docs/theory/mechanisms.md, Lemma 13).
        far = FAR_OUT * self.conditioner.mean_norm / self.conditioner.row_norm
        rows = self.conditioner.rows.smaller(1.0 if self.nuisance else far)
        count = self._single().row_total(long_count, task.wide.task.deviation, rows)
        noisy, noise = task.wide.task.spending.release_sum(
            int(count[0]),
            most=1,
            bound=1.0,
            cost=task.share(LONG_SHARE),
            purpose="the number of norm-clipped rows",
        )
        return TableRelease(
            self.family,
            weights,
            predicting,
            *known,
            hidden,
            deviation,
            math.hypot(deviation, explained_by) if self.family.linear else 1.0,
            long_rows=noisy if noisy > 2 * noise else 0.0,
            undetected=self.undetected,
        )

    # --- what released numbers say ---

    def _posterior(self, curvature: Curvature, values: Array | None = None) -> tuple[Array, Array]:
        """Return posterior mean and covariance given all rounds; H changes as predictors move.

        Eigenvalues of H are as floored, unless others are given.
        """
        ways = np.array([one.start - self.rounds[-1].start for one in self.rounds])
        scores = np.sqrt(((ways @ curvature.axes * curvature.values) ** 2).mean(axis=1))
        bends = np.array([self._moved(way) for way in ways]) / 2 * (not self.family.quadratic)
        in_scales = self.conditioner.matrix / self.task.scales_per_cell
        prior = len(in_scales) / self.task.wide.task.deviation**2 * in_scales @ in_scales.T
        pooled = Pooled.of(self.rounds, curvature, bends * scores)
        return pooled.posterior(self.rounds[0].start, curvature, prior, values)

    def _doubt(self, curvature: Curvature) -> Array:
        """Return the posterior covariance of all parameters, the matrix counting less by its noise.

        Of directions that noise hides only the prior is known (Lemma 63).
        """
        known = np.maximum(curvature.unfloored - 2 * curvature.noise, 0.0)
        return self._posterior(curvature, known)[1]

    def _known(
        self, curvature: Curvature, doubt: Array, estimate: Pooled, meat: Meat, cut_off: CutOff
    ) -> Known:
        """Return the covariance H⁻¹(M + P)H⁻¹ of all that is counted, and what goes with it.

        Features whose coefficients noise hides get no interval: an effect, per standard deviation
        that others leave of its feature, is at most that of the linear predictor (Lemmas 27, 52).
        """
        family, spread = self.family, self.conditioner.spread
        # Where the last curvature does not resolve a direction, it may be as flat as noise permits.
        flat = np.maximum(curvature.unfloored, np.minimum(curvature.values, curvature.noise))
        directions = self.users @ (curvature.axes / flat @ curvature.axes.T)
        squares = np.maximum((directions**2).sum(axis=1), 1e-300)
        # Privacy's noise in the score: its own, and that of H along the way.
        way, by_matrix = estimate.way, curvature.noise**2 / 2
        noise = (estimate.variance + by_matrix * float(way @ way)) * np.eye(len(way))
        noise = noise + by_matrix * np.outer(way, way)
        private = ((directions @ noise) * directions).sum(axis=1)
        private += self._by_leverage_and_held(directions, squares, curvature, doubt, estimate)
        private += self.nuisance.variances if self.nuisance else 0.0
        moved = np.abs(self.users @ way)
        if not family.quadratic:  # the curvature changes along the way
            private += (np.maximum(self._moved(way), self.steps * moved) * moved) ** 2
            short = (self.users @ curvature.axes) * (curvature.axes.T @ estimate.last)
            private += (short @ (curvature.values / flat - 1)) ** 2  # by floored steps

        by_noise = cut_off.noise * np.sqrt((directions**2).sum(axis=1))
        bias = np.hypot(UNSURE * (directions @ cut_off.mean), by_noise)
        # All that is cut off may move coefficients along which large influences lean to one side.
        leans = np.abs(directions @ cut_off.leaning) > LEANING * np.sqrt(squares)
        largest_bias = np.maximum(bias, leans * cut_off.total * np.sqrt(squares))
        plain = np.maximum((directions * self.users).sum(axis=1), 0.0)
        meant = None
        if not family.quadratic and self.releases_meat:
            meant = meat.total / float(curvature.values.sum()) * plain
        sampling, error, middle = meat.shrunk(directions, spread, meant)
        variances = squares * sampling + private + bias**2
        freedom = 2 * (variances / np.maximum(squares * error, 1e-300)) ** 2
        if not family.quadratic:
            turned = np.sqrt(((directions @ curvature.inverse) ** 2).sum(axis=1) / squares)
            known = 0.0 if self.releases_meat else squares * sampling
            parts = 2 - known / np.maximum(variances, 1e-300)
            off = np.maximum(curvature.noise * turned * parts, 1e-3) ** 2 / 2
            freedom = 1 / (off + (1 / np.maximum(freedom, 1e-9) if self.releases_meat else 0.0))
        common = directions @ (middle + noise) @ directions.T
        wider = np.sqrt(variances / np.maximum(np.diag(common), 1e-300))
        covariance = common * np.outer(wider, wider)
        usual = np.sqrt(squares * sampling)

        errors = np.sqrt(private)
        d = len(errors) if self.nuisance else self.task.n_features
        most = MOST_ERROR * max(self.task.wide.task.deviation, self.deviation)
        hidden = np.sqrt(variances) * self._left(curvature) > most
        converged = ((moved - errors) * self.steps <= SETTLED) | family.quadratic
        for j in np.flatnonzero((hidden | ~converged)[:d]).tolist():
            self.without.setdefault(j, Unidentified(j, converged=bool(converged[j])))
        largest = self.rounds[-1].clip + cut_off.excess
        return (
            (covariance + covariance.T) / 2,
            np.clip(freedom, LEAST_FREEDOM, 1e6),
            largest_bias,
            usual,
            self.undetected * largest * np.sqrt(squares),
        )

    def _by_leverage_and_held(
        self,
        directions: Array,
        squares: Array,
        curvature: Curvature,
        doubt: Array,
        estimate: Pooled,
    ) -> Array:
        """Return variances by rows of larger norms and by what held coefficients may be.

        Rows: what the last round changed beyond noise (Lemma 50). Others take over what a held
        coefficient lacks, as far as they correlate with it beyond noise, or with noise where it is
        required (Lemma 64).
        """
        changed = (self.users @ estimate.last) ** 2 - 2 * squares * estimate.apart
        by_leverage = np.maximum(changed, 0.0) * ((1 - estimate.part) ** 2 + 1 / 3)
        held = [one.feature for one in self.without.values() if not one.dropped]
        ways = np.linalg.inv(self.users)[:, held]
        moved = (directions @ curvature.matrix @ ways) ** 2
        chance = curvature.noise**2 / 2 * np.outer(squares, (ways**2).sum(axis=0))
        chance = np.where(np.isin(held, self.task.required), -chance, chance)
        doubts = np.diag(self.users @ doubt @ self.users.T)[held]
        return np.asarray(by_leverage + np.maximum(moved - chance, 0.0) @ doubts)

    def _left(self, curvature: Curvature) -> Array:
        """Return the standard deviation that other columns leave of each."""
        if self.nuisance:
            return self.nuisance.left
        back = np.linalg.inv(self.users)
        moments = np.diag(back.T @ curvature.matrix @ back)
        inverse = ((self.users @ curvature.inverse) * self.users).sum(axis=1)
        scales = np.append(self.task.wide.scales, 1.0)[self.task.columns]
        return np.asarray(scales / np.sqrt(np.maximum(moments * inverse, 1.0)))

    def _moved(self, way: Array) -> float:
        """Return the root mean square by which linear predictors move."""
        square = float(way @ self.conditioner.gram.matrix @ way) / self.task.n_rows
        return math.sqrt(max(square, 0.0))

    def _damped(self, way: Array) -> Array:
        """Return as much of a move as Lemma 41 permits."""
        return way if self.family.quadratic else way * self.family.damping(self._moved(way))

    def _mean_curvature(self, theta: Array) -> float:
        """Return the mean curvature there, if linear predictors are normal."""
        weights = self.conditioner.matrix.T @ theta
        constant = float(weights[self.task.n_features :].sum())
        return self.family.mean_curvature(constant, max(self._moved(theta) ** 2 - constant**2, 0.0))

    def move_to(self, theta: Array) -> None:
        """Move the point's weights there, by whole steps of its lattice."""
        weights = self.conditioner.matrix.T @ theta
        weights = weights + (self.nuisance.weights if self.nuisance else 0.0)
        columns = self.task.columns
        self.point.shift(columns, weights - self.point.weights[columns])

    # --- releases ---

    def _round(self, theta: Array, cost: ZCDP, share: float) -> None:
        """Move there, choose from a histogram where to clip influences, and release the score.

        Residuals of high-leverage rows stay whole: few rows may identify a coefficient.
        """
        self.move_to(theta)
        task, conditioner = self.task, self.conditioner
        clip = self.family.loss.bound * conditioner.row_norm
        if self.family.has_scale:
            bound = task.wide.units.target_bound
            top, residual = bound * conditioner.row_norm, bound
            if self.rounds:
                top = 8 * self.rounds[-1].clip
                residual = self._clips(top)[0]
            cost_of_histogram, purpose = task.share(share), "sizes of influences"
            found, deviation = self._release_influences(
                self.point, top, residual, cost_of_histogram, purpose
            )
            self.influences = found
            if not self.nuisance:
                self.deviation = deviation
            clip = conditioner.longest * KEPT * self.deviation
            if found.detected:
                room = math.sqrt(NEGLIGIBLE * 2 * float(cost) * task.n_rows) * self.deviation
                clip = found.clip(float(cost), clip, room)
        # −Σψu, which a row moves by its clip at most (docs/theory/tables.md, Lemma 25).
        residual, cap = self._clips(clip)
        sums = self.point.row_total(capped_products, residual, conditioner.rows, cap)
        noisy, noise = release_sums(
            task.accountant,
            sums,
            units_per_one=UNITS,
            change=cap,
            cost=cost,
            purpose="score: clipped residuals times whitened features",
        )
        size = residual * conditioner.row_norm
        self.rounds.append(Round(theta, -size * noisy, size * noise, clip))

    def _clips(self, influence: float) -> tuple[float, float]:
        """Return where residuals are clipped whatever their row, and where times a row's norm.

        Short rows stay whole, and rows of units, of which only the mean is clipped for noise. The
        second is in units in which both bounds are 1.
        """
        short = SHORT_ROWS * self.conditioner.mean_norm / (ROOM if self.task.averaged else 1.0)
        residual = min(influence / short, self.family.loss.bound)
        return residual, min(influence / (residual * self.conditioner.row_norm), 1.0)

    def _release_influences(
        self, point: ExactPoint, top: float, residual: float, cost: ZCDP, purpose: str
    ) -> tuple[Influences, float]:
        """Release how many influences have which size, and return the scale of residuals, too.

        (docs/theory/marginals.md, Lemma 22)
        """
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
        task = self.task.wide.task
        one_sided = max(task.asymmetry, ONE_SIDED)
        found = Influences(edges[first[1:] - 1], noisy[0], noise, self.task.n_rows, one_sided)
        deviation = task.residual_scale
        if found.detected:
            by_median = PER_MEDIAN * found.median / self.conditioner.mean_norm
            deviation = max(by_median, deviation if task.point_mass else 0.0)
        return found, deviation

    def _single(self) -> ExactPoint:
        """Return the point where it is, of all rows or of one of each unit."""
        if not self.task.averaged:
            return self.point
        point = self.task.start(single=True)
        columns = self.task.columns
        point.shift(columns, self.point.weights[columns] - point.weights[columns])
        return point

    def _release_direction(self, influence: float) -> tuple[Array, float]:
        """Return a noisy sum of directions of influences beyond one; a row has one of length 1.

        (docs/theory/tables.md, Lemma 69)
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
        return -noisy, noise

    def _release_curvature(self, theta: Array, cost: ZCDP) -> Curvature:
        """Release Σv(μ)uuᵀ, v being the variance function (docs/theory/tables.md, Lemma 32).

        Where residuals have a scale, rows √v(μ)u are clipped to the largest norm that is detected
        (docs/theory/tables.md, Lemma 91).
        """
        task, rows, bound = self.task, self.conditioner.rows, self.family.loss.bound
        if self.family.has_scale:
            if self.curved_norm is None:
                top = self.conditioner.row_norm * math.sqrt(bound)
                counts = self._single().curved_total(size_counts, 1.0, rows, 1.0, N_CELLS)
                purpose = "norms of whitened rows times roots of means"
                k, mean = len(task.columns), self._mean_curvature(theta)
                permitted = mean * max(SQUARED_NORM * k, permitted_square(task, k, cost))
                longest = largest_detected(task, counts, top, purpose)
                self.curved_norm = min(longest, math.sqrt(permitted))
            square = self.curved_norm**2
            root, cap = self._clips(self.curved_norm)
            sums = self.point.curved_total(capped_middle, root, rows, cap)
        else:
            square = self.family.loss.curvature * self.conditioner.row_norm**2
            sums = self.point.curved_gram(rows)
        matrix, noise = release_gram(
            task.accountant, sums, units_per_one=UNITS, cost=cost, purpose="curvature of the loss"
        )
        return Curvature(square * matrix, square * noise)
