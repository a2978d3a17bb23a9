"""Bounds that are released: where the target and each feature really lie, inside public bounds.

Public bounds are often far too wide, and noise is as large as the bounds. What is released here is
a new pair of bounds for the target and for each feature. Rows are clipped to them like to any
bounds, so everything after this module is stated in `PublicUnits`, whoever set the bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpscreen._core.arrays import Array, Integers
from dpscreen.privacy import ZCDP
from dpscreen.privacy.accountant import (
    MEDIAN,
    columns_change,
    excess_change,
    release_cell,
    release_search,
)
from dpscreen.rows.lattice import UNITS, ExactDesign
from dpscreen.rows.source import (
    PublicUnits,
    RowSource,
    clipped_levels,
    distance_counts,
    target_counts,
)
from dpscreen.rows.sums import LEVELS, counts_by_distance, counts_on_grid, pooled_counts, whole_sum
from dpscreen.solvers import rules
from dpscreen.solvers.base import (
    DEVIATIONS,
    FIT_OCTAVES,
    HIGH,
    SCALE_OCTAVES,
    Choices,
    Spending,
    Task,
    release_deviation,
)

Below = Callable[[Array, float, int], Integers]
CENTRE_LEVELS, SCALE_LEVELS, FIT_LEVELS = 12, 5, 6

_LARGEST = np.finfo(np.float64).max / 4


def bounds_around(centres: Array, half_widths: Array) -> Array:
    """Return pairs centre ± half-width that stay finite and apart whatever the rounding."""
    half_widths = np.maximum(half_widths, 8 * np.spacing(np.abs(centres)))
    pairs = np.stack((centres - half_widths, centres + half_widths), axis=-1)
    return np.clip(pairs, -_LARGEST, _LARGEST)


def place_rows(
    spending: Spending, rows: RowSource, bounds: tuple[Array, Array], choices: Choices
) -> tuple[Task, PublicUnits]:
    """Release bounds, deviation and spread, and put the rows on the lattice.

    `bounds` are the public ones of the features and of the target.
    """
    features, standardize = bounds[0], choices.standardize
    target = place_target(spending, rows, bounds[1])
    declared = choices.row_norm is not None and standardize == "auto"
    if standardize and not declared:
        features = tightened(spending, rows, features, always=standardize != "auto")
    units = PublicUnits(features, target.bounds, constant=choices.intercept)
    design = rows.lattice(units)
    spread = _release_spread(spending, design)
    return Task(spending, design, target.deviation, spread, choices), units


def _release_spread(spending: Spending, design: ExactDesign) -> float:
    """Release the features' root mean square; Σ_j x_ij²/d is at most 1 in each row.

    (docs/private-lasso.md, Lemma 13.)
    """
    if not rules.finds_spread(spending.regime):
        return rules.UNKNOWN_SPREAD
    d = spending.regime.n_features
    noisy, _ = spending.release_sum(
        whole_sum(design.column_squares()[:d]),
        most=d * UNITS,
        bound=1.0,
        cost=spending.share(rules.SPREAD_SHARE),
        purpose="the features' mean square",
    )
    return rules.spread_of(noisy, spending.regime.n_rows)


# --- the target -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class PlacedTarget:
    """Where the target lies: released bounds, and the deviation that they were made from."""

    bounds: Array
    deviation: float


@dataclass(frozen=True)
class UnitTarget:
    """Where the target lies in units of its public bounds: a centre and a deviation."""

    centre: float
    deviation: float

    def in_users_units(self, bounds: Array) -> PlacedTarget:
        """Return bounds, in the user's units, wide enough for all but stray values."""
        low, high = (float(bound) for bound in bounds)
        middle, half_width = low / 2 + high / 2, high / 2 - low / 2
        deviation = half_width * min(self.deviation, 1.0)
        centre = np.array(middle + half_width * self.centre)
        around = np.array(min(rules.TARGET_HALF_WIDTH * deviation, _LARGEST))
        return PlacedTarget(bounds_around(centre, around), deviation)


def place_target(spending: Spending, rows: RowSource, bounds: Array) -> PlacedTarget:
    """Release where the target lies; where rows are few, only its scale if that seems to do."""
    return _release_target(spending, TargetCounts(rows, bounds)).in_users_units(bounds)


@dataclass(frozen=True)
class TargetCounts:
    """A private target in units of its bounds, seen through counts and clipped sums."""

    rows: RowSource
    bounds: Array

    def counts(self, edges: Array) -> Integers:
        """Return how many rows lie in each cell."""
        return self.rows.target_total(target_counts, self.bounds, edges)

    def distance_counts(self, centre: float, edges: Array) -> Integers:
        """Return how many rows are so far from the centre."""
        return self.rows.target_total(distance_counts, self.bounds, centre, edges)

    def clipped_levels(self, centre: float, clip: float) -> int:
        """Return Σψ_c(y − centre), each term rounded to c/2^14."""
        return int(self.rows.target_total(clipped_levels, self.bounds, centre, clip)[0])


def _release_target(spending: Spending, target: TargetCounts) -> UnitTarget:
    """Release centre and deviation as far as rows allow (docs/private-lasso.md, Lemma 11)."""
    regime = spending.regime
    if rules.centres_target(regime):
        return _release_centred(spending, target)
    deviation = _target_deviation(spending, target, 0.0, quantile=MEDIAN)
    if not rules.can_centre_target(regime):
        return UnitTarget(0.0, deviation)
    if rules.target_bounds_fit(deviation) and _is_centred(spending, target, deviation):
        return UnitTarget(0.0, deviation)
    return _release_centred(spending, target)


def _is_centred(spending: Spending, target: TargetCounts, deviation: float) -> bool:
    """Release whether rows lie near the middle: a count, moved by one."""
    near = deviation / rules.GAUSSIAN / 2
    noisy, _ = spending.release_sum(
        int(target.distance_counts(0.0, np.array([0.0, near, math.inf]))[0]),
        most=1,
        bound=1.0,
        cost=spending.share(rules.inner_share(spending.regime)),
        purpose="rows near the middle",
    )
    return rules.target_centred(noisy / spending.regime.n_rows)


def _release_centred(spending: Spending, target: TargetCounts) -> UnitTarget:
    """Release median, deviation and clipped mean (docs/private-lasso.md, Lemmas 11 and 13)."""
    centre = _target_median(spending, target)
    quantile = rules.target_quantile(spending.regime)
    deviation = _target_deviation(spending, target, centre, quantile=quantile)
    mean = _clipped_mean(spending, target, centre, rules.MEAN_CLIP * deviation)
    return UnitTarget(centre + mean, deviation)


def _target_median(spending: Spending, target: TargetCounts) -> float:
    cells = rules.centre_cells(spending.regime)
    edges = np.append(2 * np.arange(cells) / cells - 1, math.inf)
    cell = release_cell(
        spending.accountant,
        target.counts(edges),
        cost=spending.share(rules.centre_share(spending.regime)),
        purpose="the target's centre",
    )
    return float(edges[cell]) + 1 / cells


def _target_deviation(
    spending: Spending, target: TargetCounts, centre: float, *, quantile: Fraction
) -> float:
    return release_deviation(
        spending,
        lambda edges: target.distance_counts(centre, edges),
        top=1 + abs(centre),
        cost=spending.share(rules.target_share(spending.regime)),
        purpose="the target's scale",
        quantile=quantile,
    )


def _clipped_mean(spending: Spending, target: TargetCounts, centre: float, clip: float) -> float:
    """Release Σψ_c(y − centre)/n: one row moves the sum by at most c."""
    noisy, noise = spending.release_sum(
        target.clipped_levels(centre, clip),
        most=LEVELS,
        bound=clip,
        cost=spending.share(rules.target_share(spending.regime)),
        purpose="the target's mean",
    )
    return rules.clamp(rules.shrunk(noisy, noise) / spending.regime.n_rows, -clip, clip)


# --- the features ---------------------------------------------------------------------------------


class FeatureCounts:
    """Private columns in units of their bounds, seen through counts of their cells."""

    def __init__(self, rows: RowSource, bounds: Array) -> None:
        low, high = bounds.T
        self._rows, self._bounds = rows, bounds
        self.n_features = rows.n_features
        self.middles, self.half_widths = low / 2 + high / 2, high / 2 - low / 2

    def below_grid(self, origin: Array, width: float, n_cells: int) -> Integers:
        """Return #{u < origin + k·width/n} of every column, k = 0, …, n, and the number of rows."""
        counts = self._rows.feature_total(
            counts_on_grid, self._bounds, origin, n_cells / width, n_cells
        )
        return np.cumsum(counts, axis=1)

    def within(self, centres: Array, distances: Array) -> Integers:
        """Return #{|u − centre| < distance} of every column, and the number of rows."""
        return self._rows.feature_total(counts_by_distance, self._bounds, centres, distances)

    def pooled(self) -> Integers:
        """Return #{|u| < k/2^12} over the cells of all columns, k = 1, …, 2^12."""
        return np.cumsum(self._rows.feature_total(pooled_counts, self._bounds))

    def bounds(self, centres: Array, half_widths: Array) -> Array:
        """Return bounds that are given in units of the public ones, in the user's units."""
        around = self.middles + self.half_widths * centres
        return bounds_around(around, self.half_widths * half_widths)


def tightened(spending: Spending, rows: RowSource, bounds: Array, *, always: bool) -> Array:
    """Return the features' bounds: the public ones where they fit, else released ones."""
    columns = FeatureCounts(rows, bounds)
    if always:
        return place_features(spending, columns)
    if not rules.can_judge(spending.regime):
        return bounds
    fit = judge_bounds(spending, columns)
    if fit.good:
        return bounds
    if rules.can_place_features(spending.regime):
        return place_features(spending, columns)
    factor = fit.size / rules.NARROWED_SIZE if fit.loose else 1.0
    return columns.bounds(np.zeros(len(bounds)), np.full(len(bounds), factor))


def judge_bounds(spending: Spending, columns: FeatureCounts) -> rules.BoundsFit:
    """Release how the public bounds fit, from counts over all cells (Lemma 12)."""
    cost = spending.share(rules.judge_share(spending.regime))
    pooled = columns.pooled()
    size = _release_cell_size(spending, pooled, columns.n_features, cost)
    noisy, _ = spending.release_sum(
        near_the_middle(pooled, size / 2),
        most=columns.n_features,
        bound=1.0,
        cost=cost,
        purpose="cells near the middle",
    )
    return rules.BoundsFit(size, noisy / spending.regime.n_rows)


def _release_cell_size(spending: Spending, pooled: Integers, n_features: int, cost: ZCDP) -> float:
    """Release the 0.8 quantile of |u| over all cells (docs/private-lasso.md, Lemma 12)."""
    part, whole = HIGH.as_integer_ratio()

    def excess(exponents: Array) -> Integers:
        inside = near_the_middle(pooled, float(2 ** exponents[0]))
        return np.array([whole * inside - part * int(pooled[-1])])

    exponent = release_search(
        spending.accountant,
        excess,
        np.array([-float(FIT_OCTAVES)]),
        np.zeros(1),
        change=float(n_features * excess_change(HIGH)),
        levels=FIT_LEVELS,
        cost=cost,
        purpose="how far cells reach",
    )
    return float(2 ** exponent[0])


def near_the_middle(pooled: Integers, distance: float) -> int:
    """Return how many cells of all columns have |u| < distance, rounded to 2^−12."""
    return int(pooled[min(max(round(distance * len(pooled)), 1), len(pooled)) - 1])


def place_features(spending: Spending, columns: FeatureCounts) -> Array:
    """Release new bounds of every feature: medians, then quantiles of the distance from them."""
    cost = spending.share(rules.feature_share(spending.regime) / 2)
    centres = _release_centres(spending, columns, cost)
    exponents = _release_exponents(spending, columns, centres, cost)
    noise = rules.search_noise(spending.regime, CENTRE_LEVELS)
    centres = shrunk_centres(centres, exponents, noise)
    room = float(np.min((1 + np.abs(centres)) / 2**exponents))
    return columns.bounds(centres, rules.feature_half_width(spending.regime, room) * 2**exponents)


class TabledSearch:
    """The counts of a noisy bisection, several levels from one look at the rows.

    `below(origin, width, n)` counts rows at n + 1 equally spaced thresholds from `origin` on, one
    origin for each column, and all rows last. A bisection of `width` around its middles asks for
    some of them in the next log2 n levels, whatever the noise.
    """

    def __init__(self, below: Below, quantile: Fraction, width: float, *, depth: int) -> None:
        self._below, self._quantile = below, quantile
        self._width, self._depth = width, depth
        self._level = 0

    def __call__(self, middles: Array) -> Integers:
        """Return r·#{below the middle} − p·n of every column, for the next level."""
        if self._level % self._depth == 0:
            width = self._width / 2**self._level
            self._origin, self._step = middles - width / 2, width / 2**self._depth
            self._table = self._below(self._origin, width, 2**self._depth)
        self._level += 1
        part, whole = self._quantile.as_integer_ratio()
        places = np.rint((middles - self._origin) / self._step).astype(np.int64)
        below = self._table[np.arange(len(middles)), places]
        return np.asarray(whole * below - part * self._table[:, -1])


def _release_centres(spending: Spending, columns: FeatureCounts, cost: ZCDP) -> Array:
    """Release the median of every column (docs/private-lasso.md, Lemma 12)."""
    return release_search(
        spending.accountant,
        TabledSearch(columns.below_grid, MEDIAN, 2.0, depth=CENTRE_LEVELS // 2),
        np.full(columns.n_features, -1.0),
        np.full(columns.n_features, 1.0),
        change=columns_change(columns.n_features, MEDIAN),
        levels=CENTRE_LEVELS,
        cost=cost,
        purpose="the features' centres",
    )


def _release_exponents(
    spending: Spending, columns: FeatureCounts, centres: Array, cost: ZCDP
) -> Array:
    """Release log2 of the 0.8 quantile of |u − centre| (docs/private-lasso.md, Lemma 12)."""
    quantile = rules.scale_quantile(spending.regime, SCALE_LEVELS)
    octaves = SCALE_OCTAVES + 1.0

    def below(origin: Array, width: float, n_cells: int) -> Integers:
        exponents = origin[0] + width * np.arange(n_cells + 1) / n_cells
        return columns.within(centres, 2**exponents)

    exponents = release_search(
        spending.accountant,
        TabledSearch(below, quantile, octaves, depth=SCALE_LEVELS),
        np.full(columns.n_features, -float(SCALE_OCTAVES)),
        np.full(columns.n_features, 1.0),
        change=columns_change(columns.n_features, quantile),
        levels=SCALE_LEVELS,
        cost=cost,
        purpose="the features' scales",
    )
    noise = float(max(quantile, 1 - quantile)) * rules.search_noise(spending.regime, SCALE_LEVELS)
    return shrunk_exponents(exponents, noise) + math.log2(DEVIATIONS[HIGH] / DEVIATIONS[quantile])


def shrunk_exponents(exponents: Array, noise: float) -> Array:
    """Pull noisy scales towards their median; those that stand out of the noise stay (Lemma 7).

    A normal's quantile moves by 0.31 with each octave; a step of the search is 0.12 octaves of
    standard deviation by itself.
    """
    typical = float(np.median(exponents))
    deviations = exponents - typical
    variance = (rules.SHRINKAGE * noise / 0.31) ** 2 + 0.12**2
    bulk = (rules.GAUSSIAN * float(np.median(np.abs(deviations)))) ** 2
    ordinary = np.abs(deviations) <= rules.OUTLIER * math.sqrt(variance)
    observed = np.maximum(np.where(ordinary, bulk, deviations**2), variance)
    return typical + deviations * (1 - variance / observed)


def shrunk_centres(centres: Array, exponents: Array, noise: float) -> Array:
    """Pull noisy centres towards the middle of the public bounds (Lemma 7).

    A normal's median is off by its count's error over 0.4, in deviations of the feature.
    """
    deviations = rules.SHRINKAGE * noise / 2 / 0.4 * 2**exponents / DEVIATIONS[HIGH]
    return centres * (1 - (deviations / np.maximum(np.abs(centres), deviations)) ** 2)
