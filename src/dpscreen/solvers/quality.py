"""How good a model is, by its own account: noisy mean squares and a noisy histogram of residuals.

Paid for with a small share of the budget (docs/private-lasso.md, Lemmas 24 and 45).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen._core.words import number
from dpscreen.privacy import ZCDP
from dpscreen.privacy.accountant import release_histograms
from dpscreen.rows.lattice import ExactDesign, ExactPoint
from dpscreen.rows.sums import LEVELS, whole_sum
from dpscreen.solvers import rules
from dpscreen.solvers.base import Spending, sure_noises

TOP_OCTAVES = 7
"""Up to how far out sizes are told apart, from a deviation on."""

WIDEST = 0.6
"""A wider interval tells nothing about R²."""

LEAST_CLIP = 2.0
"""In deviations: what 19 of 20 values of a normal law are within."""

MOST_NOISE = 0.5
"""Of the squares that are seen; squares are clipped lower if their noise is more, at 95 %."""

HARDLY_WIDER = 1.5
"""If declared bounds reach no further than this part of a clip, the target is not cut."""

MOST_MOVED = 0.5
"""If noise may move as many residuals from their sizes, there is nothing to tell of these."""

SIZES_PART, MEAN_PART = Fraction(1, 4), Fraction(1, 5)
"""Of the cost, for sizes of residuals, for those of the target, and for either sum of squares; of
what the target's sum costs, for its mean."""

MOST_UNEXPLAINED = 100.0
"""What is put for a share that has no upper end."""

CUT = "The intervals are for privacy noise; no rows are expected far beyond all that are seen."
LOST = "cannot be told from noise with these rows at this budget"
FAR = "few rows far out, which noise hides, may decide it"
ASIDE = (
    "If rows that noise hides lie far out on one side, as high costs do, predictions add up to "
    "less than the target, or to more. Narrower target bounds would tell more."
)

CUT_NAMES = [
    *("cut_r2", "cut_r2_low", "cut_r2_high"),
    *("cut_error", "cut_target_low", "cut_target_high"),
]
CELLS_PER_OCTAVE, OCTAVES = 4, 11
AHEAD = 2 * CELLS_PER_OCTAVE
NORMAL_95, NORMAL_975 = 1.6448536269514722, 1.959963984540054


@dataclass(frozen=True)
class Quality:
    """R² and the typical error of a model, each with the interval of its privacy noise.

    The typical error is the root mean square of residuals. The intervals hold what rows may add
    that are too few to be seen beyond all others. Where these may be far out, the typical error is
    known from below: `error_high` is infinite and `typical_error` NaN. All are NaN where noise
    hides them, and so is R² of a model that is a constant. `sizes` and `shares` tell which share of
    residuals is at most that size, or nothing: all 0.

    Where rows may hide that would decide it, `cut_r2` is R² if residuals beyond ± `cut_error` count
    as that, and targets beyond `cut_target_low` and `cut_target_high` as these; NaN where they are
    not cut, as declared bounds are no wider.
    """

    r2: float
    r2_low: float
    r2_high: float
    typical_error: float
    error_low: float
    error_high: float
    in_sample: bool
    sizes: tuple[float, ...]
    shares: tuple[float, ...]
    cut_r2: float = math.nan
    cut_r2_low: float = math.nan
    cut_r2_high: float = math.nan
    cut_error: float = math.nan
    cut_target_low: float = math.nan
    cut_target_high: float = math.nan

    @property
    def tells_r2(self) -> bool:
        """Whether the noise leaves anything to tell of R²."""
        return self.r2_high - self.r2_low <= WIDEST

    @property
    def tells_error(self) -> bool:
        """Whether the typical error is seen to be larger than 0."""
        return self.error_low > 0

    @property
    def tells_cut_r2(self) -> bool:
        """Whether the noise leaves anything to tell of R² of cut values."""
        return self.cut_r2_high - self.cut_r2_low <= WIDEST

    def without_noise(self) -> Quality:
        """Return the same with NaN in place of what is noise."""
        names = [] if self.tells_r2 else ["r2", "r2_low", "r2_high"]
        names += [] if self.tells_cut_r2 else CUT_NAMES
        names += [] if self.tells_error else ["typical_error", "error_low", "error_high"]
        hidden: dict[str, Any] = dict.fromkeys(names, math.nan)
        return replace(self, **hidden)

    def residual_size(self, level: float) -> float:
        """Return a size that this share of residuals does not exceed.

        Raise a ValueError where the noise leaves none: beyond the last size but one all residuals
        count as the largest.
        """
        pairs = zip(self.sizes[:-1], self.shares[:-1], strict=True)
        found = next((size for size, share in pairs if share >= level), None)
        if found is None:
            raise ValueError(
                f"the size that a share of {level:g} of residuals does not exceed {LOST}."
            )
        return found

    def __str__(self) -> str:
        return self.told()

    def told(self, *, constant: bool = False) -> str:
        """Say it in a sentence or two; a model that is a constant has no R²."""
        if not (self.tells_r2 or self.tells_cut_r2 or self.tells_error):
            return f"R² and typical error {LOST}."
        where = "in-sample: on the rows of the fit" if self.in_sample else "on rows held out"
        error = self._error() if self.tells_error else f"typical error {LOST}"
        if constant:
            return f"the model is a constant and has no R²; {error}; {where}. {CUT}"
        open_end = math.isinf(self.error_high)
        bounded = self.tells_cut_r2 and math.isnan(self.cut_target_low)
        notes = [ASIDE] * (open_end and not bounded) + [CUT] * (self.tells_r2 or not open_end)
        return " ".join((f"{self._r2()}, {error}; {where}.", *notes))

    def _r2(self) -> str:
        if self.tells_r2:
            return f"R² {self.r2:.3f} ({self.r2_low:.3f} to {self.r2_high:.3f})"
        if self.tells_cut_r2:
            told = f"R² {self.cut_r2:.3f} ({self.cut_r2_low:.3f} to {self.cut_r2_high:.3f})"
            return f"{told} {self.where_cut} (noise hides how many lie beyond)"
        return f"R² cannot be told: {FAR}" if math.isinf(self.error_high) else f"R² {LOST}"

    @property
    def where_cut(self) -> str:
        """Say which values `cut_r2` is of."""
        errors = f"with errors cut at ±{number(self.cut_error, digits=3)}"
        if math.isnan(self.cut_target_low):
            return errors
        ends = (number(one, digits=3) for one in (self.cut_target_low, self.cut_target_high))
        return f"{errors} and the target at {' and '.join(ends)}"

    def _error(self) -> str:
        if math.isinf(self.error_high):
            return f"typical error at least {number(self.error_low, digits=4)}"
        told = (self.typical_error, self.error_low, self.error_high)
        return "typical error {} ({} to {})".format(*(number(one, digits=4) for one in told))


@dataclass(frozen=True)
class Deviations:
    """Of the residuals and of the target, where its centre is, and its declared bounds."""

    residuals: float
    target: float
    centre: float = 0.0
    bounds: tuple[float, float] = (-math.inf, math.inf)

    @property
    def bound(self) -> float:
        """Return how far the target may be from its centre."""
        return max(self.bounds[1] - self.centre, self.centre - self.bounds[0])

    def cut(self, clip: float) -> tuple[float, float]:
        """Return where a clip cuts the target; NaN if the declared bounds are no wider."""
        if clip >= self.bound:
            return math.nan, math.nan
        low, high = self.bounds
        return max(self.centre - clip, low), min(self.centre + clip, high)


def release_quality(
    spending: Spending,
    design: ExactDesign,
    weights: Array,
    deviations: Deviations,
    *,
    cost: ZCDP,
    in_sample: bool,
) -> Quality:
    """Release sums of squares of residuals and target, and histograms of their sizes.

    (docs/private-lasso.md, Lemmas 24 and 45)
    """
    point = design.at(weights, scale=max(deviations.target, float(np.abs(weights).max(initial=0))))
    target, part = design.start(1.0), cost * SIZES_PART
    reach, bound = deviations.bound + float(np.abs(weights).sum()), deviations.bound
    deviation = max(deviations.residuals, deviations.target / 16)
    sizes = _release_sizes(spending, point, deviation, reach, part, "residuals")
    ends = _release_sizes(spending, target, deviations.target, bound, part, "the target")
    far, out, clip = _reaches(sizes, ends, part)
    left, both = _release_left(spending, point, far.clip, clip, part)
    whole = _release_variation(spending, target, out.clip, ZCDP(cost.rho - 3 * part.rho))
    if clip or math.inf in (far.light, out.light):  # where one is heavy, so may be the other
        far, out = replace(far, light=math.inf), replace(out, light=math.inf)
    n_rows, count_noise = spending.regime.n_rows, spending.count_noise
    some = bool(weights[: spending.regime.n_features].any())
    return Quality(
        *(_r2(left, whole, (far, out), count_noise) if some and not clip else NOT_TOLD),
        *_error(left, far, n_rows, count_noise),
        in_sample,
        tuple(sizes.ends.tolist()),
        tuple(_shares(sizes.counts, sizes.noise, n_rows).tolist()),
        *(_r2(both, whole, NOTHING_HIDDEN, count_noise) if some and clip else NOT_TOLD),
        clip,
        *deviations.cut(out.clip),
    ).without_noise()


def _reaches(sizes: SizeCounts, ends: SizeCounts, cost: ZCDP) -> tuple[Reach, Reach, float]:
    """Return where squares of residuals and of the target are clipped, and where both are, or 0.

    Each where rows are seen to end, unless hidden ones may decide R². Then R² of cut values is
    told, for which both are cut alike: to cut the residuals of far rows lower than their targets
    would count as explained what is cut off. The residuals have a clip of their own all the same,
    if their sum would have twice the noise without.
    """
    far, out = sizes.reach(cost), ends.reach(cost)
    if math.isfinite(out.hidden) and _undecided(sizes, ends, far, out) <= WIDEST:
        return far, out, 0.0
    clip = max(far.clip, out.clip)
    clip = max(clip, ends.limit) if ends.limit < HARDLY_WIDER * clip else clip
    return far if 2 * far.clip**2 < clip**2 else sizes.beyond(clip), ends.beyond(clip), clip


def _undecided(sizes: SizeCounts, ends: SizeCounts, far: Reach, out: Reach) -> float:
    """Return how far apart R² may be, about, as hidden rows are the residuals' or the target's."""
    whole = max(ends.squares, sizes.squares)
    if whole <= 0:
        return math.inf
    return far.hidden / whole + sizes.squares / whole * out.hidden / (whole + out.hidden)


def _release_left(
    spending: Spending, point: ExactPoint, own: float, clip: float, cost: ZCDP
) -> tuple[NoisySum, NoisySum]:
    """Release the residuals' squares up to their own clip, and up to that of the target's.

    (docs/private-lasso.md, Lemmas 24 and 45)
    """
    alike = not own < clip
    clips, cost = ((own,), cost) if alike else ((own, clip), cost * Fraction(1, 2))
    made = [_release_squares(spending, point, one, cost, "squared residuals") for one in clips]
    return made[0], made[-1]


@dataclass(frozen=True)
class Reach:
    """Where squares are clipped, and what rows beyond may add to their sum.

    `light` if sizes fall off faster and faster, infinite if they are not seen to; `heavy` if they
    fall off as a power does.
    """

    clip: float
    light: float = 0.0
    heavy: float = 0.0

    @property
    def hidden(self) -> float:
        """Return what rows beyond may add by the milder of both."""
        return min(self.light, self.heavy)


NOTHING_HIDDEN = Reach(0.0), Reach(0.0)


@dataclass(frozen=True)
class SizeCounts:
    """Noisy counts of rows by size, up to each of some `ends`; none is beyond `limit`."""

    ends: Array
    counts: Array
    noise: float
    deviation: float
    limit: float

    def reach(self, cost: ZCDP) -> Reach:
        """Return an octave beyond the last size from which on rows are seen, or all there can be.

        All, if the sum's noise is then less than what may hide beyond the octave, and less than
        half of the squares that are seen. Less than the octave, if its noise is much of these; but
        no less than that last size, nor than what holds 19 of 20 values of a normal law.
        """
        least, last = LEAST_CLIP * self.deviation, self._last_seen()
        if last is None:
            return self.beyond(least)
        start, per_square = self._start(last), NORMAL_975 / math.sqrt(2 * float(cost))
        quiet = min(math.sqrt(MOST_NOISE * self.squares / per_square), 2 * start)
        found = self.beyond(max(quiet, least, start))
        noise = per_square * self.limit**2
        if noise <= min(found.light + per_square * found.clip**2, MOST_NOISE * self.squares):
            return Reach(self.limit)
        return found

    def beyond(self, clip: float) -> Reach:
        """Return a clip, and what rows beyond it may add if they fall off as they are seen to."""
        last = self._last_seen()
        if clip >= self.limit:
            return Reach(self.limit)
        if last is None or clip < self._start(last):
            return Reach(clip, math.inf, math.inf)
        return self._falling(last, clip)

    @property
    def squares(self) -> float:
        """Return the sum of squares of the rows that are seen, about."""
        last = self._last_seen() or 0
        return max(float(self.counts[:last] @ self._starts[:last] ** 2), 0.0)

    @property
    def _starts(self) -> Array:
        return np.append(0.0, self.ends[:-1])

    def _start(self, cell: int) -> float:
        return float(self._starts[cell])

    def _ahead(self) -> tuple[Array, Array]:
        """Return how many rows are in each cell and the next ones, two octaves, and the noise."""
        held = np.minimum(np.arange(len(self.counts), 0, -1), AHEAD)
        sums = np.convolve(self.counts[::-1], np.ones(AHEAD))[: len(held)][::-1]
        return sums, self.noise * np.sqrt(held)

    def _last_seen(self) -> int | None:
        rows, noises = self._ahead()
        octaves = np.log2(np.maximum(self.ends / self.deviation, 1.0))
        seen = np.flatnonzero(rows >= sure_noises(octaves) * noises)
        return int(seen[-1]) if seen.size and seen[-1] > AHEAD else None

    def _falling(self, last: int, clip: float) -> Reach:
        """Return what rows beyond a clip may add if they go on to fall off as they are seen to.

        They are taken to be light if their logarithm falls off faster in the last octave, however
        much of that is noise, than in the one before: such tails end no later than an exponential
        one.
        """
        rows, noises = self._ahead()
        at = [last - AHEAD, last - CELLS_PER_OCTAVE, last]
        first, middle, start = self._starts[at].tolist()
        most, few = (float(rows[last] + self.counts[one:last].sum()) for one in at[:2])
        upper = float(rows[last]) + NORMAL_975 * float(noises[last])
        if not most > few > upper:
            return Reach(clip, math.inf, math.inf)
        rate = math.log(few / upper) / (start - middle)
        faster = rate > math.log(most / few) / (middle - first)
        power = math.log2(max((few - 2 * NORMAL_975 * self.noise) / upper, 1.0))  # at least
        light = upper * math.exp(-rate * (clip - start)) * 2 * (clip / rate + 1 / rate**2)
        span = math.log(self.limit / clip)
        grown = span if power == 2 else math.expm1((2 - power) * span) / (2 - power)
        heavy = 2 * upper * (clip / start) ** -power * clip**2 * grown
        return Reach(clip, light if faster else math.inf, heavy)


@dataclass(frozen=True)
class NoisySum:
    """A released sum, its own noise, and what it would be more if one row more had been counted."""

    value: float
    noise: float
    per_row: float

    def deviation(self, count_noise: float) -> float:
        """Return that of all noise."""
        return math.hypot(self.noise, self.per_row * count_noise)

    def mean(self, n_rows: int, count_noise: float) -> tuple[float, float]:
        """Return the sum over the number of rows, and its noise."""
        mean = self.value / n_rows
        return mean, math.hypot(self.noise, (self.per_row - mean) * count_noise) / n_rows


def _release_squares(
    spending: Spending, point: ExactPoint, clip: float, cost: ZCDP, purpose: str
) -> NoisySum:
    """Release Σψ_c(r)².

    A row's square less up to a half of the largest is smaller than the square; what that takes off
    in all is known as the number of rows is (docs/private-lasso.md, Lemma 45).
    """
    counts, squares = point.residual_counts(clip), np.arange(LEVELS + 1, dtype=np.int64) ** 2
    largest, unit = LEVELS**2, (clip / LEVELS) ** 2
    noise = 1 / math.sqrt(2 * float(cost))
    middle = math.floor(largest * min(0.5, noise**2 / (noise**2 + spending.count_noise**2)))
    most = largest - middle
    total = whole_sum(counts * (squares - middle))
    noisy, own = spending.release_sum(
        total, most=most, bound=most * unit, cost=cost, purpose=purpose
    )
    per_row = middle * unit
    return NoisySum(noisy + per_row * spending.regime.n_rows, own, per_row)


def _release_variation(spending: Spending, point: ExactPoint, clip: float, cost: ZCDP) -> NoisySum:
    """Release Σψ_c(y)² − (Σψ_c(y))²/n: for most of the cost the first sum.

    The target is taken from a released centre, from which its mean may be far
    (docs/private-lasso.md, Lemmas 24 and 45).
    """
    part, n_rows = cost * MEAN_PART, spending.regime.n_rows
    rest = ZCDP(cost.rho - part.rho)
    square = _release_squares(spending, point, clip, rest, "squared target")
    total, noise = spending.release_sum(
        point.residual_total(clip), most=LEVELS, bound=clip, cost=part, purpose="the target's sum"
    )
    mean = rules.clamp(rules.shrunk(total, noise) / n_rows, -clip, clip)
    left = max(square.value - mean**2 * n_rows, 0.0)
    return NoisySum(left, math.hypot(square.noise, 2 * mean * noise), square.per_row + mean**2)


def _release_sizes(
    spending: Spending, point: ExactPoint, deviation: float, reach: float, cost: ZCDP, what: str
) -> SizeCounts:
    """Release how many rows are of which size: one row is in one cell.

    (docs/private-lasso.md, Lemmas 22 and 24)
    """
    top = min(math.ldexp(deviation, TOP_OCTAVES), reach)
    steps = np.arange(OCTAVES * CELLS_PER_OCTAVE, -1, -1) / CELLS_PER_OCTAVE
    levels = np.floor(LEVELS * 2.0**-steps).astype(np.int64)
    below = np.cumsum(point.residual_counts(top))
    at_most = np.concatenate((below[levels[:-1]], below[-1:]))
    counts = np.diff(at_most, prepend=0)[None, :]
    noisy, noise = release_histograms(
        spending.accountant, counts, cost=cost, purpose=f"sizes of {what}"
    )
    # They add up to the number of rows, which is known better.
    spare = (float(noisy.sum()) - spending.regime.n_rows) / noisy.size
    return SizeCounts(top * levels / LEVELS, noisy[0] - spare, noise, deviation, reach)


def _shares(noisy: Array, noise: float, n_rows: int) -> Array:
    """Return the share of residuals that is at most each size; 0 where noise may move half of them.

    Of the counts that are nearest to the noisy ones, none below 0, that add up to the rows: sums of
    the noisy ones wander, and would reach any share too soon where rows are few.
    """
    if NORMAL_95 * noise * math.sqrt(noisy.size) / 2 > MOST_MOVED * n_rows:
        return np.zeros(noisy.size)
    most = np.cumsum(np.sort(noisy)[::-1])
    spare = float(((most - n_rows) / np.arange(1, noisy.size + 1)).max())
    return np.asarray(np.minimum(np.cumsum(np.maximum(noisy - spare, 0)) / n_rows, 1))


Told = tuple[float, float, float]
"""A number and the ends of its interval."""
NOT_TOLD = (math.nan, math.nan, math.nan)


def _r2(left: NoisySum, whole: NoisySum, beyond: tuple[Reach, Reach], count_noise: float) -> Told:
    """Return R²: what is hidden may be the residuals' alone, or the target's alone."""
    added, more = (one.hidden for one in beyond)
    if math.isinf(added) or math.isinf(more):
        return NOT_TOLD
    most = _ratio_interval(replace(left, value=left.value + added), whole, count_noise)[1]
    least = _ratio_interval(left, replace(whole, value=whole.value + more), count_noise)[0]
    top, bottom = (max(one.value, one.deviation(count_noise)) for one in (left, whole))
    return 1 - rules.clamp(top / bottom, least, most), 1 - most, 1 - least


def _error(left: NoisySum, far: Reach, n_rows: int, count_noise: float) -> Told:
    """Return the typical error; NaN and infinite where rows beyond the clip may add anything."""
    mean, noise = left.mean(n_rows, count_noise)
    low = math.sqrt(max(mean - NORMAL_975 * noise, 0.0))
    if math.isinf(far.light):
        return math.nan, low, math.inf
    high = max(mean, noise) + NORMAL_975 * noise + far.light / n_rows
    return math.sqrt(max(mean, noise)), low, math.sqrt(high)


def _ratio_interval(top: NoisySum, bottom: NoisySum, count_noise: float) -> tuple[float, float]:
    """Return the 95 % interval of a ratio of two noisy numbers, both at least 0 (Fieller's).

    It is right however large the noise is: where the lower number could be 0, there is no end.
    """
    terms = (top.value, bottom.value, *(one.deviation(count_noise) for one in (top, bottom)))
    unit = 2.0 ** (math.frexp(max(terms))[1] - 1)  # so that no square overflows
    a, b, a_noise, b_noise = (term / unit for term in terms)
    common = (top.per_row / unit * count_noise) * (bottom.per_row / unit * count_noise)
    square = b**2 - (NORMAL_975 * b_noise) ** 2
    if b <= 0 or square <= 0:
        return 0.0, MOST_UNEXPLAINED
    rest = max(a, 0.0) ** 2 - (NORMAL_975 * a_noise) ** 2
    centre = max(a, 0.0) * b - NORMAL_975**2 * common
    off = math.sqrt(max(centre**2 - square * rest, 0.0))
    ends = (centre - off) / square, (centre + off) / square
    return max(ends[0], 0.0), rules.clamp(ends[1], 0.0, MOST_UNEXPLAINED)
