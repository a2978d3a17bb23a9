"""How good a model is on its rows: R², typical error, AUC and deviance, each with an interval.

Every sum is released with clipped terms, and a noisy histogram bounds what lies beyond the clip. An
interval counts the noise of the sum, the width of cells, and rows that are too few to be detected;
where that is too much, the measure is not known (docs/private-lasso.md, Lemmas 24 and 45;
docs/yes-no.md, Lemma 34).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.special import expit

from dpscreen._core.arrays import Array, Mask
from dpscreen._core.words import number
from dpscreen.privacy import ZCDP
from dpscreen.privacy.accountant import release_histograms
from dpscreen.rows.fits import (
    LARGEST_LOG_ODDS,
    N_LEVELS,
    PER_UNIT,
    level_sums,
    log_odds_counts,
    magnitude_counts,
)
from dpscreen.rows.lattice import ExactDesign, ExactPoint
from dpscreen.rows.source import PublicUnits
from dpscreen.rows.sums import LEVELS, whole_sum
from dpscreen.solvers import rules
from dpscreen.solvers.base import Spending

NORMAL_95, NORMAL_975 = 1.6448536269514722, 1.959963984540054
"""One-sided limits of what noise hides, and two-sided ones of noisy sums, both at 95 %."""

DETECTED = 3.0
"""In standard deviations of the noise: what a count must be to be taken for rows."""

NOISE, UNDETECTED, CONSTANT = "noise", "undetected rows", "constant"
REASONS = {
    NOISE: "privacy noise is too large for so few rows",
    UNDETECTED: "rows too few to be detected could decide it; narrower bounds would help",
    CONSTANT: "the model is a constant",
}
"""Why a measure is not known."""

WIDEST_R2, WIDEST_AUC, WIDEST_FACTOR = 0.7, 0.4, 2.0
"""A measure is not known if its interval is wider; of an error and a deviance, by this factor."""

COVERAGE = "The 95 % intervals account for privacy noise and for rows that it may hide."


@dataclass(frozen=True)
class Measure:
    """A number and the ends of its interval; NaN where it is not known, and the reason why."""

    value: float
    low: float
    high: float
    reason: str | None = None

    @classmethod
    def not_known(cls, reason: str) -> Measure:
        """Return a measure without a number."""
        return cls(math.nan, math.nan, math.nan, reason)

    @classmethod
    def of(cls, quality: Any, name: str, stem: str) -> Measure:
        """Return a measure from the fields of a quality."""
        ends = (getattr(quality, f"{stem}_{end}") for end in ("low", "high", "reason"))
        return cls(getattr(quality, name), *ends)

    def fields(self, name: str, stem: str, unit: float = 1.0) -> dict[str, Any]:
        """Return the fields of a quality."""
        names = name, f"{stem}_low", f"{stem}_high"
        ends = self.value, self.low, self.high
        values = ends if self.reason is not None else (unit * one for one in ends)
        return dict(zip(names, values, strict=True)) | {f"{stem}_reason": self.reason}

    def shown(self, name: str, digits: int | None = None) -> str:
        """Return `value (low to high)`, or that it is not known."""
        if self.reason is not None:
            return f"{name} not known"
        value, low, high = (
            f"{one:.3f}" if digits is None else number(one, digits=digits)
            for one in (self.value, self.low, self.high)
        )
        return f"{name} {value} ({low} to {high})"


def _sentence(*measures: tuple[str, str | None], in_sample: bool) -> str:
    """Return what is known of each measure, why others are not, and on which rows."""
    reasons = dict.fromkeys(reason for _, reason in measures if reason is not None)
    shown = ", ".join(text for text, _ in measures)
    why = "; ".join(REASONS[reason] for reason in reasons)
    if all(reason is not None for _, reason in measures):
        return f"{shown}: {why}."
    where = "in-sample: on the rows of the fit" if in_sample else "on rows held out"
    return f"{shown}{f' ({why})' * bool(why)}; {where}. {COVERAGE}"


# --- noisy histograms and sums --------------------------------------------------------------------


@dataclass(frozen=True)
class NoisySum:
    """A released sum, its own noise, and what it would be more if one row more had been counted."""

    value: float
    noise: float = 0.0
    per_row: float = 0.0

    @property
    def limit(self) -> float:
        """Return the upper limit at 95 %, of what noise hides."""
        return self.value + NORMAL_95 * self.noise

    def deviation(self, count_noise: float) -> float:
        """Return the standard deviation of all noise."""
        return math.hypot(self.noise, self.per_row * count_noise)

    def mean(self, n_rows: int, count_noise: float) -> tuple[float, float]:
        """Return the sum over the number of rows, and its noise."""
        mean = self.value / n_rows
        return mean, math.hypot(self.noise, (self.per_row - mean) * count_noise) / n_rows


@dataclass(frozen=True)
class NoisyHistogram:
    """Noisy counts of rows by cell, each row in one, and the standard deviation of their noise."""

    edges: Array
    counts: Array
    noise: float

    def weighted(self, weights: Array) -> NoisySum:
        """Return Σ weight·count, if no weight is negative."""
        value = max(float(weights @ self.counts), 0.0)
        return NoisySum(value, self.noise * float(np.linalg.norm(weights)))

    def last_detected(self) -> float:
        """Return the end of the last octave in which rows are detected; 0 if there is none."""
        starts, ends = self.edges[:-1], self.edges[1:]
        first = np.arange(len(starts))
        last = np.maximum(np.searchsorted(ends, 2.001 * starts), first + 1)
        sums = np.append(0.0, np.cumsum(self.counts))
        clear = sums[last] - sums[first] >= DETECTED * self.noise * np.sqrt(last - first)
        return float(np.max(ends[last - 1], where=clear, initial=0.0))

    def squares_beyond(self, clip: float, most: float = math.inf) -> NoisySum:
        """Return Σ(min(size, most)² − clip²) over the rows beyond a clip, at most."""
        return self.weighted(np.maximum(np.minimum(self.edges[1:], most) ** 2 - clip**2, 0.0))

    def shares(self, n_rows: int) -> Array:
        """Return the share of rows up to each cell's end; zeros if noise may move half of them.

        Of the counts nearest to the noisy ones that are not negative and add up to the rows: sums
        of the noisy ones wander, and would reach a share too soon where rows are few.
        """
        if NORMAL_95 * self.noise * math.sqrt(self.counts.size) > n_rows:
            return np.zeros(self.counts.size)
        most = np.cumsum(np.sort(self.counts)[::-1])
        spare = float(((most - n_rows) / np.arange(1, most.size + 1)).max())
        return np.asarray(np.minimum(np.cumsum(np.maximum(self.counts - spare, 0)) / n_rows, 1))


def _release_histogram(
    spending: Spending, counts: Any, edges: Array, cost: ZCDP, purpose: str
) -> NoisyHistogram:
    """Release counts of rows, each in one cell (docs/private-lasso.md, Lemmas 22 and 24)."""
    noisy, noise = release_histograms(
        spending.accountant, counts[None, :], cost=cost, purpose=purpose
    )
    return NoisyHistogram(edges, noisy[0], noise)


def _release_total(
    spending: Spending, total: int, n_rows: int, most: int, cost: ZCDP, purpose: str
) -> NoisySum:
    """Release a sum of whole numbers between 0 and `most`, in units of `most`.

    Of every term up to a half of the most is taken off first, which makes it smaller; what that is
    in all is known as well as the number of rows (docs/private-lasso.md, Lemma 45).
    """
    noise = 1 / math.sqrt(2 * float(cost))
    middle = math.floor(most * min(0.5, noise**2 / (noise**2 + spending.count_noise**2)))
    largest, per_row = most - middle, middle / most
    noisy, own = spending.release_sum(
        total - middle * n_rows, most=largest, bound=largest / most, cost=cost, purpose=purpose
    )
    return NoisySum(noisy + per_row * spending.regime.n_rows, own, per_row)


# --- continuous targets ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Quality:
    """R² and typical error of a model on the rows of the fit, each with a 95 % interval.

    R² is 1 − Σ(y − ŷ)²/Σ(y − ȳ)², and the typical error √(Σ(y − ŷ)²/n), the root mean squared
    error; y and predictions ŷ are clipped to the declared target bounds. A measure that is not
    known is NaN, and `r2_reason` or `error_reason` says why: "noise", "undetected rows" or
    "constant"; else that is None. `sizes` and `shares` give which share of residuals is at most
    that size; all shares are 0 if noise hides them.
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
    r2_reason: str | None = None
    error_reason: str | None = None

    def residual_size(self, level: float) -> float:
        """Return a size that this share of residuals does not exceed.

        Raise a ValueError where the noise leaves none: beyond the last size but one all residuals
        count as the largest.
        """
        pairs = zip(self.sizes[:-1], self.shares[:-1], strict=True)
        found = next((size for size, share in pairs if share >= level), None)
        if found is None:
            raise ValueError(
                f"the size that a share of {level:g} of residuals does not exceed is not known: "
                f"{REASONS[NOISE]}."
            )
        return found

    def __str__(self) -> str:
        r2, error = Measure.of(self, "r2", "r2"), Measure.of(self, "typical_error", "error")
        return _sentence(
            (r2.shown("R²"), r2.reason),
            (error.shown("typical error (root mean square)", 4), error.reason),
            in_sample=self.in_sample,
        )


@dataclass(frozen=True)
class Ranges:
    """Where target and predictions can lie, from the target's centre, and their scales.

    `target` are the declared bounds; `effects` are what each feature, and the constant, can add to
    a fitted value, by weights and the bounds of features.
    """

    target: tuple[float, float]
    effects: Array
    residual_scale: float
    target_scale: float

    @classmethod
    def of(cls, units: PublicUnits, weights: Array, residual: float, target: float) -> Ranges:
        """Return those of a fit, all public or released."""
        low, high = (end - units.target_centre for end in units.target_ends)
        return cls((low, high), units.effect_ranges(weights), residual, target)

    def in_scales(self) -> Ranges:
        """Return the same in units of the target's scale."""
        with np.errstate(over="ignore"):
            ends, effects = (
                np.clip(np.divide(one, self.target_scale), -MOST_SCALES, MOST_SCALES)
                for one in (self.target, self.effects)
            )
        scale = max(self.residual_scale / self.target_scale, LEAST_SCALE)
        return Ranges((float(ends[0]), float(ends[1])), effects, scale, 1.0)

    @property
    def predicted(self) -> tuple[float, float]:
        """Return the least and the largest prediction: clipped to the target's bounds."""
        low, high = np.clip(fitted_range(self.effects), *self.target)
        return float(low), float(high)

    @property
    def fitted(self) -> float:
        """Return how far a prediction can be from the target's centre."""
        return max(map(abs, self.predicted))

    @property
    def leverage(self) -> float:
        """Return a bound on the root mean square of predictions of rows that are not detected.

        Effects of several features are taken to have no common sign, on the whole.
        """
        return min(float(np.linalg.norm(np.abs(self.effects).max(axis=1))), self.fitted)


def fitted_range(effects: Array) -> tuple[float, float]:
    """Return the least and the largest fitted value."""
    low, high = effects.sum(axis=0)
    return float(low), float(high)


CELLS_PER_OCTAVE, FINE_OCTAVES, FAR_OCTAVES, FINE_SCALES = 4, 6, 16, 4.0
"""Up to 4 scales cells are a quarter of an octave wide, beyond an octave, up to the bound."""

SIZES_PART, ENDS_PART, SQUARES_PART = Fraction(11, 25), Fraction(7, 25), Fraction(3, 25)
"""Of the cost: for the histograms of residuals and of the target, and for either sum of squares.
The rest is for the target's mean."""

LEAST_SCALE, MOST_SCALES = 1 / 16, 1e100
"""That of residuals, in scales of the target; a bound so many scales away is as good as none."""

R2_GRID = np.linspace(-4.0, 1.0, 2001)


def magnitude_edges(scale: float, bound: float) -> Array:
    """Return the edges of cells for magnitudes up to a bound, in its unit."""
    fine = min(FINE_SCALES * scale, bound)
    near = fine * 2.0 ** (np.arange(-FINE_OCTAVES * CELLS_PER_OCTAVE, 1) / CELLS_PER_OCTAVE)
    far = bound * 2.0 ** -np.arange(FAR_OCTAVES, -1.0, -1.0)
    return np.concatenate(([0.0], near, far[far > fine]))


def release_quality(
    spending: Spending,
    design: ExactDesign,
    weights: Array,
    ranges: Ranges,
    *,
    cost: ZCDP,
    in_sample: bool,
) -> Quality:
    """Release histograms of the magnitudes of residuals and target, and sums of their squares.

    (docs/private-lasso.md, Lemmas 24 and 45)
    """
    unit, n_rows, count_noise = ranges.target_scale, spending.regime.n_rows, spending.count_noise
    point = design.at(weights, scale=max(unit, float(np.abs(weights).max(initial=0.0))))
    found = _release_squares(MeasuredRows(spending, ranges, cost), point, design.start(1.0))
    varies = bool(np.ptp(ranges.effects, axis=1).any())
    r2 = found.r_squared(count_noise) if varies else Measure.not_known(CONSTANT)
    return Quality(
        **r2.fields("r2", "r2"),
        **found.typical_error(n_rows, count_noise).fields("typical_error", "error", unit),
        in_sample=in_sample,
        sizes=tuple((found.sizes.edges[1:] * unit).tolist()),
        shares=tuple(found.sizes.shares(n_rows).tolist()),
    )


@dataclass(frozen=True)
class SquareSums:
    """Released sums of clipped squares, and histograms that bound what lies beyond the clips.

    All in units of the target's scale. `lean` is the size of the target's mean, over its clip.
    """

    ranges: Ranges

    left: NoisySum
    whole: NoisySum
    sizes: NoisyHistogram
    ends: NoisyHistogram
    clip: float
    target_clip: float
    lean: float

    def _beyond(self) -> tuple[tuple[NoisySum, NoisySum], ...]:
        """Return what rows beyond the clips add to Σr² and, part of that, to Σu², at most.

        Any rows; or those far out in the target, and beside them rows within its clip, if
        r² ≤ u² + f² on the whole (docs/private-lasso.md, Lemma 24).
        """
        led = self.sizes.squares_beyond(
            self.clip, math.hypot(self.target_clip, self.ranges.leverage)
        )
        out = self.ends.squares_beyond(self.target_clip)
        return (self.sizes.squares_beyond(self.clip), NoisySum(0.0)), (led, out)

    def typical_error(self, n_rows: int, count_noise: float) -> Measure:
        """Return the root mean squared residual, or why it is not known."""
        mean, noise = self.left.mean(n_rows, count_noise)
        tops = [
            (far.value + out.value) / n_rows
            + math.hypot(NORMAL_975 * noise, NORMAL_95 * math.hypot(far.noise, out.noise) / n_rows)
            for far, out in self._beyond()
        ]
        low = math.sqrt(max(mean - NORMAL_975 * noise, 0.0))
        high = math.sqrt(max(mean + min(tops), 0.0))
        if high > WIDEST_FACTOR * low or high == 0:
            return Measure.not_known(self._reason(count_noise))
        return Measure(math.sqrt(mean), low, high)

    def r_squared(self, count_noise: float) -> Measure:
        """Return R², or why it is not known."""
        low, high = self._lower_end(count_noise), self._upper_end(count_noise)
        if not high - low <= WIDEST_R2:
            return Measure.not_known(self._reason(count_noise))
        value = 1 - self.left.value / max(self.whole.value, 1e-300)
        return Measure(rules.clamp(value, low, high), low, high)

    def _reason(self, count_noise: float) -> str:
        """Return whether rows that are not detected add more than the noise of sums."""
        hidden = min(far.limit + out.limit for far, out in self._beyond())
        seen = self.left.deviation(count_noise) + self.whole.deviation(count_noise)
        return UNDETECTED if hidden > NORMAL_975 * seen else NOISE

    def _without_tails(self, count_noise: float) -> tuple[Array, Array]:
        """Return (1 − ρ)Σu² − Σr² of clipped values, for each ρ, and its noise.

        R² is above ρ if that is positive, as in Fieller's interval of a ratio.
        """
        rest = 1 - R2_GRID
        whole, left = (one.deviation(count_noise) for one in (self.whole, self.left))
        return rest * self.whole.value - self.left.value, np.hypot(rest * whole, left)

    def _lower_end(self, count_noise: float) -> float:
        """Return the largest ρ below R², whatever rows are not detected; the least there is."""
        value, noise = self._without_tails(count_noise)
        below = np.zeros(R2_GRID.shape, dtype=bool)
        for far, out in self._beyond():
            share = np.maximum(R2_GRID + (1 - R2_GRID) * self.lean, 0.0)
            hidden = NORMAL_95 * np.hypot(far.noise, share * out.noise)
            below |= value - far.value - share * out.value > np.hypot(NORMAL_975 * noise, hidden)
        return float(np.max(R2_GRID, where=below, initial=-math.inf))

    def _upper_end(self, count_noise: float) -> float:
        """Return the smallest ρ above R², whatever rows are not detected; 1 at most.

        A row whose target is t > c from the centre adds at most (1 − ρ)(t² − c²) less what its
        residual, at least t − |f|, takes off.
        """
        value, noise = self._without_tails(count_noise)
        rest, edges = (1 - R2_GRID)[:, None], self.ends.edges
        best = self.ranges.fitted / np.maximum(1 - rest, 1e-12)
        gains = [
            self._gain(np.clip(at, edges[:-1], edges[1:]), rest)
            for at in (best, self.ranges.fitted + self.clip, math.inf)
        ]
        weights = np.maximum(np.maximum.reduce(np.broadcast_arrays(*gains)), 0.0)
        tail = np.maximum(weights @ self.ends.counts, 0.0)
        tail_noise = self.ends.noise * np.linalg.norm(weights, axis=1)
        above = value + tail + np.hypot(NORMAL_975 * noise, NORMAL_95 * tail_noise) >= 0
        last = int(np.max(np.flatnonzero(above), initial=-1))
        return float(R2_GRID[min(last + 1, len(R2_GRID) - 1)])

    def _gain(self, at: Array, rest: Array) -> Array:
        far = np.maximum(at**2 - self.target_clip**2, 0.0)
        lost = np.maximum(np.maximum(at - self.ranges.fitted, 0.0) ** 2 - self.clip**2, 0.0)
        return np.asarray(np.where(far > 0, rest * (1 + self.lean) * far - lost, 0.0))


@dataclass(frozen=True)
class MeasuredRows:
    """What releases of residuals and target have in common."""

    spending: Spending
    ranges: Ranges
    cost: ZCDP

    def magnitudes(self, at: ExactPoint, edges: Array, part: Fraction, what: str) -> NoisyHistogram:
        """Release a histogram (docs/private-lasso.md, Lemma 24)."""
        places = edges * self.ranges.target_scale
        counts = at.fit_total(magnitude_counts, self.ranges.target, places)
        return _release_histogram(
            self.spending, counts, edges, self.cost * part, f"magnitudes of {what}"
        )

    def squares(self, at: ExactPoint, clip: float, what: str) -> tuple[NoisySum, int]:
        """Release Σψ² (docs/private-lasso.md, Lemmas 24 and 45); return Σψ in levels, private."""
        place, area = clip * self.ranges.target_scale, clip**2
        n_rows, total, square = at.fit_total(level_sums, self.ranges.target, place).tolist()
        part, purpose = self.cost * SQUARES_PART, f"squared {what}"
        found = _release_total(self.spending, square, n_rows, LEVELS**2, part, purpose)
        return NoisySum(found.value * area, found.noise * area, found.per_row * area), total


def _release_squares(rows: MeasuredRows, point: ExactPoint, target: ExactPoint) -> SquareSums:
    """Release both histograms, then sums clipped where these detect the last rows.

    (docs/private-lasso.md, Lemmas 24 and 45)
    """
    ranges, n_rows = rows.ranges.in_scales(), rows.spending.regime.n_rows
    (low, high), (least, most) = ranges.target, ranges.predicted
    edges = magnitude_edges(ranges.residual_scale, max(high - least, most - low))
    sizes = rows.magnitudes(point, edges, SIZES_PART, "residuals")
    far = rows.magnitudes(target, magnitude_edges(1.0, max(high, -low)), ENDS_PART, "the target")
    clip, out = (one.last_detected() or one.edges[-1] for one in (sizes, far))
    left, _ = rows.squares(point, clip, "residuals")
    whole, total = rows.squares(target, out, "target")
    rest = ZCDP(rows.cost.rho * (1 - SIZES_PART - ENDS_PART - 2 * SQUARES_PART))
    mean, noise = rows.spending.release_sum(
        total, most=LEVELS, bound=1.0, cost=rest, purpose="the target's sum"
    )
    lean = rules.clamp(mean / n_rows, -1.0, 1.0)
    shift, off = out * lean, out * noise
    # Σ(u − ū)² = Σu² − nū², and a noisy mean is on average further out than the mean.
    centred = max(whole.value - n_rows * shift**2 + off**2 / n_rows, 0.0)
    own = math.hypot(whole.noise, 2 * shift * off, off**2 / n_rows)
    whole = NoisySum(centred, own, whole.per_row + shift**2)
    return SquareSums(ranges, left, whole, sizes, far, clip, out, abs(lean))


# --- binary outcomes ------------------------------------------------------------------------------

_HALF = np.array([0.1, 0.2, 0.32, 0.46, 0.62, 0.8, 1.05, 1.4, 1.9, 2.6, 3.6])
EDGES = np.concatenate((-_HALF[::-1], [0.0], _HALF))
"""Between which log-odds rows are counted, from those of all rows together, in standard deviations:
close in the middle, because rows whose features are skewed lie close there."""

NARROWEST, WIDEST = 0.1, 2.0
"""The standard deviations of log-odds that cells are made for."""

TABLE_PART = Fraction(3, 4)
"""Of the cost, for the counts; the rest is for the deviance."""

LEAST_CLASS = 4.0
"""How many standard deviations of its noise the number of rows of a class must be."""

NO_BETTER = "By its {} the model is no better than a constant."


@dataclass(frozen=True)
class OutcomeQuality:
    """AUC and deviance of a model on the rows of the fit, each with a 95 % interval.

    AUC is the share of pairs of rows of both classes that the fitted probability orders rightly,
    ties counting half; the deviance is −2 log-likelihood over the number of rows. `null_deviance`
    is that of a model that knows the share of outcomes alone, which was released before. `edges`
    are probabilities between which fitted ones were counted; `no` and `yes` are noisy counts of
    rows of the two classes, from below the first edge to above the last: a reliability plot and an
    ROC curve can be drawn from them. A measure that is not known is NaN, and `auc_reason` or
    `deviance_reason` says why: "noise", "undetected rows" or "constant"; else that is None.
    """

    auc: float
    auc_low: float
    auc_high: float
    deviance: float
    deviance_low: float
    deviance_high: float
    null_deviance: float
    in_sample: bool
    edges: tuple[float, ...]
    no: tuple[float, ...]
    yes: tuple[float, ...]
    auc_reason: str | None = None
    deviance_reason: str | None = None

    def __str__(self) -> str:
        auc, deviance = (Measure.of(self, name, name) for name in ("auc", "deviance"))
        shown = deviance.shown("deviance")
        if deviance.reason is None:
            shown += f" a row, {self.null_deviance:.3f} without features"
        found = _sentence(
            (auc.shown("AUC"), auc.reason), (shown, deviance.reason), in_sample=self.in_sample
        )
        poor = ["AUC"] * (self.auc <= 0.5) + ["deviance"] * (self.deviance >= self.null_deviance)
        return f"{found} {NO_BETTER.format(' and '.join(poor))}" if poor else found


def release_outcome_quality(
    spending: Spending,
    design: ExactDesign,
    weights: Array,
    log_odds: float,
    fitted: tuple[float, float],
    *,
    spread: float,
    cost: ZCDP,
    in_sample: bool,
) -> OutcomeQuality:
    """Release how many rows of each class have log-odds in which cell, and the deviance.

    Log-odds lie within `fitted`, by released weights; features have a standard deviation of
    `spread`, so these determine how wide cells are (docs/yes-no.md, Lemma 34).
    """
    point = design.at(weights, scale=max(1.0, float(np.abs(weights).max(initial=0.0))))
    places = _places(weights[: spending.regime.n_features], log_odds, fitted, spread)
    counts = point.fit_total(log_odds_counts).reshape(2, N_LEVELS)
    table = _release_table(spending, counts, places, cost * TABLE_PART)
    rest = ZCDP(cost.rho * (1 - TABLE_PART))
    no, yes = table.counts.reshape(2, -1) * _possible(places, fitted)
    varies = fitted[0] < fitted[1]
    auc = _auc(no, yes, table.noise) if varies else Measure.not_known(CONSTANT)
    deviance = _release_deviance(spending, counts, table, places, fitted, rest)
    return OutcomeQuality(
        **auc.fields("auc", "auc"),
        **deviance.fields("deviance", "deviance"),
        null_deviance=2 * float(np.logaddexp(0, log_odds) - log_odds * expit(log_odds)),
        in_sample=in_sample,
        edges=tuple(expit(places).tolist()),
        no=tuple(no.tolist()),
        yes=tuple(yes.tolist()),
    )


def _places(features: Array, log_odds: float, fitted: tuple[float, float], spread: float) -> Array:
    """Return the log-odds between which rows are counted; in one cell, if there is no feature."""
    if not features.any():
        return np.asarray(fitted[0] + EDGES - EDGES[EDGES > 0][0] / 2)
    deviation = rules.clamp(spread * float(np.linalg.norm(features)), NARROWEST, WIDEST)
    return np.asarray(log_odds + deviation * EDGES)


def _possible(places: Array, fitted: tuple[float, float]) -> Mask:
    """Return in which cells a row can be at all, by released weights: others hold noise alone."""
    edges = np.concatenate(([-math.inf], places, [math.inf]))
    return np.asarray((edges[1:] >= fitted[0] - 0.01) & (edges[:-1] <= fitted[1] + 0.01))


def _levels(log_odds: Array) -> Any:
    inside = np.clip(log_odds, -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS)
    return np.rint((inside + LARGEST_LOG_ODDS) * PER_UNIT).astype(np.int64)


def _release_table(spending: Spending, counts: Any, places: Array, cost: ZCDP) -> NoisyHistogram:
    """Release how many rows of each class are in which cell (docs/yes-no.md, Lemma 34)."""
    below = np.concatenate((np.zeros((2, 1), dtype=np.int64), np.cumsum(counts, axis=1)), axis=1)
    cells = np.diff(below[:, np.concatenate(([0], _levels(places), [N_LEVELS]))], axis=1)
    return _release_histogram(spending, cells.ravel(), places, cost, "chances by outcome")


def _auc(no: Array, yes: Array, noise: float) -> Measure:
    """Return the AUC of counts by cell, in order, or why it is not known.

    Pairs within one cell count as wrong at the lower end, as right at the upper one, and as ties
    between; noise is carried through to first order, and the product of both classes' noise.
    """
    n_no, n_yes = float(no.sum()), float(yes.sum())
    if min(n_no, n_yes) < LEAST_CLASS * noise * math.sqrt(len(no)):
        return Measure.not_known(NOISE)
    ends = []
    for ties, side in ((0.5, 0.0), (0.0, -NORMAL_975), (1.0, NORMAL_975)):
        below, above = np.cumsum(no) - (1 - ties) * no, n_yes - np.cumsum(yes) + ties * yes
        area = float(below @ yes) / (n_no * n_yes)
        slopes = np.concatenate((below / n_no - area, above / n_yes - area))
        first = float(np.linalg.norm(slopes * np.repeat((1 / n_yes, 1 / n_no), len(no))))
        second = noise * len(no) / (math.sqrt(2) * n_no * n_yes)
        ends.append(rules.clamp(area + side * noise * math.hypot(first, second), 0.0, 1.0))
    if ends[2] - ends[1] > WIDEST_AUC:
        return Measure.not_known(NOISE)
    return Measure(rules.clamp(*ends), ends[1], ends[2])


def _release_deviance(
    spending: Spending,
    counts: Any,
    table: NoisyHistogram,
    places: Array,
    fitted: tuple[float, float],
    cost: ZCDP,
) -> Measure:
    """Release Σ ln(1 + e^∓η), clipped at what a row inside the outermost cells has at most.

    Only rows of the second class in the first cell, and of the first class in the last one, are
    clipped: their released counts bound what that may hide (docs/yes-no.md, Lemma 34).
    """
    levels = np.arange(N_LEVELS) / PER_UNIT - LARGEST_LOG_ODDS
    clip = float(np.logaddexp(0, max(places[-1], -places[0])))
    costs = np.stack((np.logaddexp(0, levels), np.logaddexp(0, -levels)))
    whole = np.rint(np.minimum(costs / clip, 1.0) * LEVELS).astype(np.int64)
    total, n_rows = whole_sum((counts * whole).ravel()), whole_sum(counts.ravel())
    found = _release_total(spending, total, n_rows, LEVELS, cost, "the deviance")
    mean, noise = found.mean(spending.regime.n_rows, spending.count_noise)
    far = np.zeros(table.counts.size)
    most = np.logaddexp(0, np.array([fitted[1], -fitted[0]]))
    far[[len(places), len(places) + 1]] = np.maximum(most - clip, 0.0) / clip
    hidden, rounding = table.weighted(far), 1 / (2 * PER_UNIT * clip) + 1 / (2 * LEVELS)
    seen, unseen = NORMAL_975 * noise, NORMAL_95 * hidden.noise / spending.regime.n_rows
    low = mean - rounding - seen
    high = mean + rounding + hidden.value / spending.regime.n_rows + math.hypot(seen, unseen)
    if not 0 < high <= WIDEST_FACTOR * low:
        return Measure.not_known(UNDETECTED if unseen > seen else NOISE)
    return Measure(2 * clip * mean, 2 * clip * low, 2 * clip * high)
