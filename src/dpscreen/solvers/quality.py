"""Release of R² and typical error, or AUC and deviance, of a model on its rows, with intervals.

Every sum is released with clipped terms, and a noisy histogram bounds what lies beyond the clip. An
interval counts the noise of the sum, the width of cells, and rows that are too few to be detected;
where that is too much, the measure is not known (docs/theory/quality.md, Lemmas 24 and 45;
docs/theory/quality.md, Lemma 34).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.special import expit

from dpscreen._core.arrays import Array, Integers
from dpscreen.privacy import ZCDP
from dpscreen.privacy.accountant import release_histograms, release_sums
from dpscreen.rows import fits
from dpscreen.rows.fits import LARGEST_LOG_ODDS, N_LEVELS, PER_UNIT
from dpscreen.rows.lattice import ExactDesign, ExactPoint
from dpscreen.rows.loss import FADED
from dpscreen.rows.source import PublicUnits
from dpscreen.rows.sums import LEVELS, whole_sum
from dpscreen.solvers.base import Spending
from dpscreen.solvers.family import Family
from dpscreen.solvers.results import (
    CONSTANT,
    NOISE,
    UNDETECTED,
    Measure,
    OutcomeQuality,
    Quality,
    RateQuality,
)
from dpscreen.solvers.rules import clamp

NORMAL_95, NORMAL_975 = 1.6448536269514722, 1.959963984540054
"""Normal quantiles: one-sided for what noise hides, two-sided for noisy sums, both at 95 %.
Derived."""

DETECTED, LEAST_CLASS = 3.0, 4.0
"""In standard deviations of their noise, conventional: what a count must be to be taken for rows,
and the number of rows of each class for an AUC."""

WIDEST_R2, WIDEST_AUC, WIDEST_FACTOR = 0.7, 0.4, 2.0
"""Conventional: a measure is not known if its interval is wider; of an error and a deviance, by
this factor."""


@dataclass(frozen=True)
class Ranges:
    """Where target and predictions can lie, from the target's centre, and their scales.

    `target` are the declared bounds; `effects` are what each feature, and the constant, can add to
    a fitted value, by released weights and the bounds of features. `scale` is the standard
    deviation of residuals or, for classes, of predictors about `null`, the predictor of a model
    without features. The target is in this `unit`. All are public or released.
    """

    target: tuple[float, float]
    effects: Array
    scale: float
    target_scale: float = 1.0
    null: float = 0.0
    unit: float = 1.0

    @classmethod
    def of(cls, units: PublicUnits, weights: Array, scale: float, **more: float) -> Ranges:
        """Return those of a fit; `more` are `target_scale` and `null`."""
        low, high = (end - units.target_centre for end in units.target_ends)
        more["unit"] = units.target_unit
        return cls((low, high), units.effect_ranges(weights), scale, **more)

    @property
    def fitted(self) -> tuple[float, float]:
        """Return the least and the largest fitted value."""
        low, high = self.effects.sum(axis=0)
        return float(low), float(high)


# --- noisy histograms and sums --------------------------------------------------------------------


@dataclass(frozen=True)
class NoisySum:
    """A released sum, its own noise, and what it would be more if one row more had been counted."""

    value: float
    noise: float = 0.0
    per_row: float = 0.0


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


@dataclass(frozen=True)
class QualityReleases:
    """The releases of one quality, each for a part of its cost."""

    spending: Spending
    cost: ZCDP

    def histogram(
        self, counts: Integers, edges: Array, part: Fraction, purpose: str
    ) -> NoisyHistogram:
        """Release counts of rows, each in one cell (docs/theory/quality.md, Lemma 24)."""
        cost, accountant = self.cost * part, self.spending.accountant
        noisy, noise = release_histograms(accountant, counts[None, :], cost=cost, purpose=purpose)
        return NoisyHistogram(edges, noisy[0], noise)

    def total(self, total: int, n_rows: int, most: int, part: Fraction, purpose: str) -> NoisySum:
        """Release a sum of whole numbers between 0 and `most`, in units of `most`.

        Up to a half of the most is subtracted from every term, which makes the largest smaller;
        what that is in all is known as well as the number of rows (docs/theory/quality.md,
        Lemma 45).
        """
        cost = self.cost * part
        noise = 1 / math.sqrt(2 * float(cost))
        middle = math.floor(most * min(0.5, noise**2 / (noise**2 + self.spending.count_noise**2)))
        largest, per_row = most - middle, middle / most
        noisy, own = self.spending.release_sum(
            total - middle * n_rows, most=largest, bound=largest / most, cost=cost, purpose=purpose
        )
        return NoisySum(noisy + per_row * self.spending.regime.n_rows, own, per_row)

    def mean(
        self, total: NoisySum, beyond: Sequence[NoisySum], widest: float, rounding: float = 0.0
    ) -> Measure:
        """Return the mean of clipped terms; each of `beyond` bounds what clips took off in all.

        It is not known if the upper end is more than `widest` times the lower one.
        """
        n_rows = self.spending.regime.n_rows
        mean = total.value / n_rows
        miscounted = (total.per_row - mean) * self.spending.count_noise
        noise = NORMAL_975 * math.hypot(total.noise, miscounted) / n_rows
        hidden = min(
            one.value / n_rows + math.hypot(noise, NORMAL_95 * one.noise / n_rows) for one in beyond
        )
        low, high = mean - rounding - noise, mean + rounding + hidden
        if not 0 < high <= widest * low:
            return Measure.not_known(_why_not(beyond, noise * n_rows))
        return Measure(mean, low, high)


def _why_not(beyond: Sequence[NoisySum], noise: float) -> str:
    """Return whether rows that are not detected may add more than the noise of sums."""
    hidden = min(one.value + NORMAL_95 * one.noise for one in beyond)
    return UNDETECTED if hidden > noise else NOISE


def release_quality(
    family: Family,
    spending: Spending,
    design: ExactDesign,
    weights: Array,
    ranges: Ranges,
    *,
    cost: ZCDP,
    in_sample: bool,
) -> Any:
    """Release the measures that this family has, as its `quality_type`, for a cost.

    (docs/theory/quality.md, Lemmas 24 and 45; docs/theory/quality.md, Lemma 34)
    """
    largest = float(np.abs(weights).max(initial=0.0))
    point = design.at(weights, scale=max(ranges.target_scale, largest))
    releases = QualityReleases(spending, cost)
    return _RELEASED[family.quality_type](releases, point, design.start(1.0), ranges, in_sample)


# --- from residuals: R² and typical error ---------------------------------------------------------

CELLS_PER_OCTAVE, FINE_OCTAVES, FAR_OCTAVES, FINE_SCALES = 4, 6, 16, 4.0
"""Up to 4 scales cells are a quarter of an octave wide, beyond an octave, up to the bound.
Conventional."""

SIZES_PART, ENDS_PART, SQUARES_PART = Fraction(11, 25), Fraction(7, 25), Fraction(3, 25)
"""Of the cost: for the histograms of residuals and of the target, and for either sum of squares.
The rest is for the target's mean. Tuned."""

LEAST_SCALE, MOST_SCALES = 1 / 16, 1e100
"""That of residuals, in scales of the target; a bound so many scales away is as good as none.
Conventional."""

R2_GRID = np.linspace(-4.0, 1.0, 2001)
"""Values of R² between which the ends of its interval lie. Conventional."""


def magnitude_edges(scale: float, bound: float) -> Array:
    """Return the edges of cells for magnitudes up to a bound, in its unit."""
    fine = min(FINE_SCALES * scale, bound)
    near = fine * 2.0 ** (np.arange(-FINE_OCTAVES * CELLS_PER_OCTAVE, 1) / CELLS_PER_OCTAVE)
    far = bound * 2.0 ** -np.arange(FAR_OCTAVES, -1.0, -1.0)
    return np.concatenate(([0.0], near, far[far > fine]))


def _residual_quality(
    releases: QualityReleases,
    point: ExactPoint,
    target: ExactPoint,
    ranges: Ranges,
    in_sample: bool,
) -> Quality:
    """Release histograms of the magnitudes of residuals and target, and sums of their squares.

    Sums are clipped where histograms detect the last rows (docs/theory/quality.md, Lemmas 24, 45).
    """
    unit, n_rows = ranges.target_scale, releases.spending.regime.n_rows
    with np.errstate(over="ignore"):
        low, high = np.clip(np.divide(ranges.target, unit), -MOST_SCALES, MOST_SCALES)
        effects = np.clip(ranges.effects / unit, -MOST_SCALES, MOST_SCALES)
    least, most = np.clip(effects.sum(axis=0), low, high)  # predictions are within the bounds

    def magnitudes(at: ExactPoint, edges: Array, part: Fraction, what: str) -> NoisyHistogram:
        counts = at.fit_total(fits.magnitude_counts, ranges.target, edges * unit)
        return releases.histogram(counts, edges, part, f"magnitudes of {what}")

    def squares(at: ExactPoint, clip: float, what: str) -> tuple[NoisySum, int]:
        rows, total, square = at.fit_total(fits.level_sums, ranges.target, clip * unit).tolist()
        found = releases.total(square, rows, LEVELS**2, SQUARES_PART, f"squared {what}")
        return NoisySum(*(clip**2 * one for one in vars(found).values())), total

    scale = max(ranges.scale / unit, LEAST_SCALE)
    edges = magnitude_edges(scale, float(max(high - least, most - low)))
    sizes = magnitudes(point, edges, SIZES_PART, "residuals")
    ends = magnitudes(target, magnitude_edges(1.0, float(max(high, -low))), ENDS_PART, "the target")
    clip, target_clip = (one.last_detected() or float(one.edges[-1]) for one in (sizes, ends))
    left, _ = squares(point, clip, "residuals")
    whole, total = squares(target, target_clip, "target")
    lean, whole = _centred(releases, whole, total, target_clip)
    leverage = float(np.linalg.norm(np.abs(effects).max(axis=1)))
    fitted = float(max(abs(least), abs(most)))
    found = SquareSums(left, whole, sizes, ends, clip, target_clip, lean, fitted, leverage)
    constant = not np.ptp(ranges.effects, axis=1).any()
    r2 = Measure.not_known(CONSTANT) if constant else found.r_squared(releases)
    return Quality(
        **Quality.fields(r2, found.typical_error(releases).times(unit)),
        in_sample=in_sample,
        sizes=tuple((edges[1:] * unit).tolist()),
        shares=tuple(sizes.shares(n_rows).tolist()),
    )


def _centred(
    releases: QualityReleases, squares: NoisySum, total: int, clip: float
) -> tuple[float, NoisySum]:
    """Release the target's mean; return its size over the clip, and Σ(u − ū)² = Σu² − nū²."""
    n_rows = releases.spending.regime.n_rows
    rest = releases.cost * (1 - SIZES_PART - ENDS_PART - 2 * SQUARES_PART)
    mean, noise = releases.spending.release_sum(
        total, most=LEVELS, bound=1.0, cost=rest, purpose="the target's sum"
    )
    lean = clamp(mean / n_rows, -1.0, 1.0)
    shift, off = clip * lean, clip * noise
    # A noisy mean is on average further out than the mean.
    centred = max(squares.value - n_rows * shift**2 + off**2 / n_rows, 0.0)
    own = math.hypot(squares.noise, 2 * shift * off, off**2 / n_rows)
    return abs(lean), NoisySum(centred, own, squares.per_row + shift**2)


@dataclass(frozen=True)
class SquareSums:
    """Released sums of clipped squares, and histograms that bound what lies beyond the clips.

    All in units of the target's scale. `lean` is the size of the target's mean, over its clip;
    `fitted` how far a prediction can be from the target's centre, and `leverage` the same if the
    effects of several features have no common sign.
    """

    left: NoisySum
    whole: NoisySum
    sizes: NoisyHistogram
    ends: NoisyHistogram
    clip: float
    target_clip: float
    lean: float
    fitted: float
    leverage: float

    def tails(self) -> tuple[tuple[NoisySum, NoisySum], ...]:
        """Return what rows beyond the clips add to Σr² and, part of that, to Σu², at most.

        Any rows; or those with large residuals, and beside them rows within its clip, if
        r² ≤ u² + f² on the whole (docs/theory/quality.md, Lemma 24).
        """
        most = math.hypot(self.target_clip, min(self.leverage, self.fitted))
        inside = self.sizes.squares_beyond(self.clip, most)
        out = self.ends.squares_beyond(self.target_clip)
        return (self.sizes.squares_beyond(self.clip), NoisySum(0.0)), (inside, out)

    def beyond(self) -> list[NoisySum]:
        """Return bounds on what rows beyond the clips add to Σr²."""
        return [
            NoisySum(far.value + out.value, math.hypot(far.noise, out.noise))
            for far, out in self.tails()
        ]

    def typical_error(self, releases: QualityReleases) -> Measure:
        """Return the root mean squared residual, or why it is not known."""
        found = releases.mean(self.left, self.beyond(), WIDEST_FACTOR**2)
        if found.reason is not None:
            return found
        return Measure(math.sqrt(found.value), math.sqrt(found.low), math.sqrt(found.high))

    def r_squared(self, releases: QualityReleases) -> Measure:
        """Return R², or why it is not known.

        R² is above ρ if (1 − ρ)Σu² − Σr² is positive, as in Fieller's interval of a ratio.
        """
        count_noise, rest = releases.spending.count_noise, 1 - R2_GRID
        left, whole = (
            NORMAL_975 * math.hypot(one.noise, one.per_row * count_noise)
            for one in (self.left, self.whole)
        )
        above, noise = rest * self.whole.value - self.left.value, np.hypot(rest * whole, left)
        low, high = self._lower_end(above, noise), self._upper_end(above, noise)
        if not high - low <= WIDEST_R2:
            return Measure.not_known(_why_not(self.beyond(), left + whole))
        value = 1 - self.left.value / max(self.whole.value, 1e-300)
        return Measure(clamp(value, low, high), low, high)

    def _lower_end(self, above: Array, noise: Array) -> float:
        """Return the largest ρ below R², whatever rows are not detected; −∞ if there is none."""
        below = np.zeros(R2_GRID.shape, dtype=bool)
        share = np.maximum(R2_GRID + (1 - R2_GRID) * self.lean, 0.0)
        for far, out in self.tails():
            hidden = NORMAL_95 * np.hypot(far.noise, share * out.noise)
            below |= above - far.value - share * out.value > np.hypot(noise, hidden)
        return float(np.max(R2_GRID, where=below, initial=-math.inf))

    def _upper_end(self, above: Array, noise: Array) -> float:
        """Return the smallest ρ above R², whatever rows are not detected; 1 at most.

        A row whose target is t > c from the centre adds at most (1 − ρ)(t² − c²) less what its
        residual, at least t − |f|, takes off. Within a cell that is largest at one of three points.
        """
        rest, edges = (1 - R2_GRID)[:, None], self.ends.edges
        best = self.fitted / np.maximum(1 - rest, 1e-12)
        gains = [
            self._gain(np.clip(at, edges[:-1], edges[1:]), rest)
            for at in (best, self.fitted + self.clip, math.inf)
        ]
        weights = np.maximum(np.maximum.reduce(np.broadcast_arrays(*gains)), 0.0)
        tail = np.maximum(weights @ self.ends.counts, 0.0)
        tail_noise = NORMAL_95 * self.ends.noise * np.linalg.norm(weights, axis=1)
        may_be = above + tail + np.hypot(noise, tail_noise) >= 0
        last = int(np.max(np.flatnonzero(may_be), initial=-1))
        return float(R2_GRID[min(last + 1, len(R2_GRID) - 1)])

    def _gain(self, at: Array, rest: Array) -> Array:
        far = np.maximum(at**2 - self.target_clip**2, 0.0)
        lost = np.maximum(np.maximum(at - self.fitted, 0.0) ** 2 - self.clip**2, 0.0)
        return np.asarray(np.where(far > 0, rest * (1 + self.lean) * far - lost, 0.0))


# --- by class: AUC and deviance -------------------------------------------------------------------

_HALF = np.array([0.1, 0.2, 0.32, 0.46, 0.62, 0.8, 1.05, 1.4, 1.9, 2.6, 3.6])
EDGES = np.concatenate((-_HALF[::-1], [0.0], _HALF))
"""Between which log-odds rows are counted, from those of all rows together, in standard deviations:
close in the middle, because rows whose features are skewed lie close there. Conventional."""

NARROWEST, WIDEST = 0.1, 2.0
"""Least and largest standard deviation of log-odds that cells are made for. Conventional."""

TABLE_PART = Fraction(3, 4)
"""Of the cost, for the counts; the rest is for the deviance. Tuned."""


def _class_quality(
    releases: QualityReleases,
    point: ExactPoint,
    _target: ExactPoint,
    ranges: Ranges,
    in_sample: bool,
) -> OutcomeQuality:
    """Release how many rows of each class have log-odds in which cell, and the deviance.

    (docs/theory/quality.md, Lemma 34)
    """
    (low, high), null = ranges.fitted, ranges.null
    places = null + clamp(ranges.scale, NARROWEST, WIDEST) * EDGES
    if not ranges.scale:
        places = low + EDGES - _HALF[0] / 2  # a constant, in the middle of one cell
    counts = point.fit_total(fits.log_odds_counts).reshape(2, N_LEVELS)
    table = _release_table(releases, counts, places)
    # By released weights some cells can hold no row: noise alone.
    edges = np.concatenate(([-math.inf], places, [math.inf]))
    possible = (edges[1:] >= low - 0.01) & (edges[:-1] <= high + 0.01)
    no, yes = table.counts.reshape(2, -1) * possible
    auc = _auc(no, yes, table.noise) if low < high else Measure.not_known(CONSTANT)
    return OutcomeQuality(
        **OutcomeQuality.fields(auc, _release_deviance(releases, counts, table, ranges.fitted)),
        null_deviance=2 * float(np.logaddexp(0, null) - null * expit(null)),
        in_sample=in_sample,
        edges=tuple(expit(places).tolist()),
        no=tuple(no.tolist()),
        yes=tuple(yes.tolist()),
    )


def _release_table(releases: QualityReleases, counts: Integers, places: Array) -> NoisyHistogram:
    """Release how many rows of each class are in which cell (docs/theory/quality.md, Lemma 34)."""
    inside = np.clip(places, -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS) + LARGEST_LOG_ODDS
    starts = np.rint(inside * PER_UNIT).astype(np.int64)
    below = np.cumsum(np.pad(counts, ((0, 0), (1, 0))), axis=1)
    cells = np.diff(below[:, np.concatenate(([0], starts, [N_LEVELS]))], axis=1)
    return releases.histogram(cells.ravel(), places, TABLE_PART, "probabilities by outcome")


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
        ends.append(clamp(area + side * noise * math.hypot(first, second), 0.0, 1.0))
    if ends[2] - ends[1] > WIDEST_AUC:
        return Measure.not_known(NOISE)
    return Measure(clamp(*ends), ends[1], ends[2])


def _release_deviance(
    releases: QualityReleases, counts: Integers, table: NoisyHistogram, fitted: tuple[float, float]
) -> Measure:
    """Release Σ ln(1 + e^∓η), clipped at what a row inside the outermost cells has at most.

    Only rows of the second class in the first cell, and of the first class in the last one, are
    clipped: their released counts bound what that may hide (docs/theory/quality.md, Lemma 34).
    """
    levels = np.arange(N_LEVELS) / PER_UNIT - LARGEST_LOG_ODDS
    clip = float(np.logaddexp(0, max(table.edges[-1], -table.edges[0])))
    losses = np.logaddexp(0, np.stack((levels, -levels)))
    whole = np.rint(np.minimum(losses / clip, 1.0) * LEVELS).astype(np.int64)
    total, n_rows = whole_sum((counts * whole).ravel()), whole_sum(counts.ravel())
    found = releases.total(total, n_rows, LEVELS, 1 - TABLE_PART, "the deviance")
    most, far = np.logaddexp(0, np.array([fitted[1], -fitted[0]])), np.zeros(table.counts.size)
    far[[len(table.edges), len(table.edges) + 1]] = np.maximum(most - clip, 0.0) / clip
    rounding = 1 / (2 * PER_UNIT * clip) + 1 / (2 * LEVELS)
    return releases.mean(found, [table.weighted(far)], WIDEST_FACTOR, rounding).times(2 * clip)


# --- of non-negative outcomes: deviance explained, and calibration --------------------------------

DECILES = np.array([-1.2816, -0.8416, -0.5244, -0.2533, 0.0, 0.2533, 0.5244, 0.8416, 1.2816])
"""Those of a normal predictor. Derived."""

DEVIANCE_PART = Fraction(7, 20)
"""Of the cost, for either deviance; the rest is for the calibration. Tuned."""

LEAST_CLIP, MOST_CLIP, CLIP_NOISE = 16.0, 64.0, 0.02
"""The most deviance that a row counts for, in dispersions, and up to which share of the mean its
noise leaves more. Conventional."""

CLIP_SCALES, WIDEST_EXPLAINED = 3.0, 0.5
"""Where outcomes are clipped for the calibration, in standard deviations beyond the largest decile;
and the widest interval of the deviance explained. Conventional."""

CALIBRATION = "counts and outcomes by predicted mean"
"""What the statement calls the table."""


def _rate_quality(
    releases: QualityReleases,
    point: ExactPoint,
    null: ExactPoint,
    ranges: Ranges,
    in_sample: bool,
) -> RateQuality:
    """Release sums of unit deviances of the model and of a constant, and rows by prediction.

    (docs/theory/quality.md, Lemma 92)
    """
    mean, unit = math.exp(ranges.null), ranges.unit
    n_rows = releases.spending.regime.n_rows
    free = CLIP_NOISE * n_rows * math.sqrt(2 * float(releases.cost * DEVIANCE_PART))
    most = clamp(free, LEAST_CLIP, MOST_CLIP) * ranges.target_scale**2 / mean
    most = min(most, fits.MOST_DEVIANCE)

    def deviance(at: ExactPoint, shift: float, what: str) -> Measure:
        counted, total = at.fit_total(fits.deviance_total, shift, most).tolist()
        found = releases.total(total, counted, LEVELS, DEVIANCE_PART, f"deviance {what}")
        return releases.mean(found, [NoisySum(0.0)], WIDEST_FACTOR, 1 / LEVELS)

    low, high = ranges.fitted
    found = deviance(point, 0.0, "of the model")
    whole = deviance(null, ranges.null, "of a constant")
    places = ranges.null - ranges.scale**2 / 2 + ranges.scale * DECILES
    edges = np.clip(places if ranges.scale else places[:1] - 1, -FADED, 0.0)
    clip = min(math.exp(float(edges[-1])) + CLIP_SCALES * ranges.target_scale, 1.0)
    sums, noise = release_sums(
        releases.spending.accountant,
        point.fit_total(fits.calibration_sums, edges, clip).ravel(),
        units_per_one=LEVELS,
        change=math.sqrt(2),
        cost=releases.cost * (1 - 2 * DEVIANCE_PART),
        purpose=CALIBRATION,
    )
    rows, outcomes = sums.reshape(2, -1)
    return RateQuality(
        **RateQuality.fields(_explained(found, whole, constant=low == high)),
        null_mean=mean * unit,
        most=most * unit,
        in_sample=in_sample,
        clip=clip * unit,
        noise=noise,
        edges=tuple((np.exp(edges) * unit).tolist()),
        rows=tuple(rows.tolist()),
        outcomes=tuple((clip * unit * outcomes).tolist()),
    )


def _explained(found: Measure, whole: Measure, *, constant: bool) -> Measure:
    """Return 1 − D/D₀: between its values at the ends of both, or why it is not known."""
    reason = CONSTANT if constant else found.reason or whole.reason
    if reason is not None:
        return Measure.not_known(reason)
    low, high = 1 - found.high / whole.low, 1 - found.low / whole.high
    if high - low > WIDEST_EXPLAINED:
        return Measure.not_known(NOISE)
    return Measure(clamp(1 - found.value / whole.value, low, high), low, high)


_RELEASED: dict[type, Callable[..., Quality | OutcomeQuality | RateQuality]] = {
    Quality: _residual_quality,
    OutcomeQuality: _class_quality,
    RateQuality: _rate_quality,
}
"""What releases the measures that a family has."""
