"""Bounds that are released: where the target and each feature really lie, inside public bounds.

Public bounds are often far too wide, and noise is as large as the bounds. What is released here is
a new pair of bounds for the target and for each feature. Rows are clipped to them like to any
bounds, so everything after this module is stated in `PublicUnits`, whoever set the bounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpscreen.estimators import _private_lasso_rules as rules
from dpscreen.estimators._private_lasso_purse import Purse
from dpscreen.privacy import ZCDP
from dpscreen.privacy.quantiles import (
    MEDIAN,
    columns_change,
    excess_change,
    release_cell,
    release_search,
)
from dpscreen.regression.lattice import LEVELS

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

HIGH = Fraction(4, 5)
DEVIATIONS = {MEDIAN: 0.6745, Fraction(7, 10): 1.0364, HIGH: 1.2816}
"""Quantiles of |z|, z standard normal."""

CELLS_PER_OCTAVE = 4
CENTRE_LEVELS, SCALE_LEVELS, FIT_LEVELS = 12, 5, 6
SCALE_OCTAVES, FIT_OCTAVES = 12, 8

_BLOCK = 4096
_LARGEST = np.finfo(np.float64).max / 4


def bounds_around(centres: Array, reach: Array) -> Array:
    """Return pairs centre ± reach that stay finite and apart whatever the rounding."""
    reach = np.maximum(reach, 8 * np.spacing(np.abs(centres)))
    pairs = np.stack((centres - reach, centres + reach), axis=-1)
    return np.clip(pairs, -_LARGEST, _LARGEST)


# --- the target -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """Where the target lies: released bounds, and the deviation that they were made from."""

    bounds: Array
    deviation: float


@dataclass(frozen=True)
class Seat:
    """Where the target lies in units of its public bounds: a centre and a deviation."""

    centre: float
    deviation: float

    def place(self, bounds: Array) -> Place:
        """Return bounds, in the user's units, wide enough for all but stray values."""
        low, high = (float(bound) for bound in bounds)
        middle, half = low / 2 + high / 2, high / 2 - low / 2
        deviation = half * min(self.deviation, 1.0)
        centre = np.array(middle + half * self.centre)
        reach = np.array(min(rules.TARGET_REACH * deviation, _LARGEST))
        return Place(bounds_around(centre, reach), deviation)


def release_deviation(
    purse: Purse,
    magnitudes: Array,
    *,
    top: float,
    cost: ZCDP,
    purpose: str,
    quantile: Fraction = MEDIAN,
) -> float:
    """Release a quantile of |values|, as the deviation of a normal with that quantile."""
    exponents = np.arange(SCALE_OCTAVES * CELLS_PER_OCTAVE, 0, -1) / CELLS_PER_OCTAVE
    edges = np.concatenate(([0.0], top * 2.0**-exponents, [math.inf]))
    cell = release_cell(
        purse.accountant, magnitudes, edges, cost=cost, purpose=purpose, quantile=quantile
    )
    middle = float(edges[max(cell, 1)]) * 2 ** (0.5 / CELLS_PER_OCTAVE)
    return middle / DEVIATIONS[quantile]


def place_target(purse: Purse, y: Array, bounds: Array) -> Place:
    """Release where the target lies; where rows are few, only its scale if that seems to do."""
    low, high = bounds
    units = (np.clip(y, low, high) - (low / 2 + high / 2)) / (high / 2 - low / 2)
    return _seat(purse, units).place(bounds)


def _seat(purse: Purse, y: Array) -> Seat:
    regime = purse.regime
    if rules.centres_target(regime):
        return _centred_seat(purse, y)
    deviation = _target_deviation(purse, y, top=1.0, quantile=MEDIAN)
    if not rules.can_centre_target(regime):
        return Seat(0.0, deviation)
    if rules.target_bounds_fit(deviation) and _is_centred(purse, y, deviation):
        return Seat(0.0, deviation)
    return _centred_seat(purse, y)


def _is_centred(purse: Purse, y: Array, deviation: float) -> bool:
    """Release whether rows lie near the middle: a count, moved by one."""
    near = np.abs(y) <= deviation / rules.GAUSSIAN / 2
    noisy, _ = purse.release_sum(
        int(np.count_nonzero(near)),
        most=1,
        bound=1.0,
        cost=purse.share(rules.inner_share(purse.regime)),
        purpose="rows near the middle",
    )
    return rules.target_centred(noisy / purse.regime.n_rows)


def _centred_seat(purse: Purse, y: Array) -> Seat:
    centre = _target_median(purse, y)
    quantile = rules.target_quantile(purse.regime)
    deviation = _target_deviation(purse, y - centre, top=1 + abs(centre), quantile=quantile)
    mean = _clipped_mean(purse, y - centre, rules.MEAN_REACH * deviation)
    return Seat(centre + mean, deviation)


def _target_median(purse: Purse, y: Array) -> float:
    cells = rules.centre_cells(purse.regime)
    edges = np.append(2 * np.arange(cells) / cells - 1, math.inf)
    cell = release_cell(
        purse.accountant,
        y,
        edges,
        cost=purse.share(rules.centre_share(purse.regime)),
        purpose="the target's centre",
    )
    return float(edges[cell]) + 1 / cells


def _target_deviation(purse: Purse, distances: Array, *, top: float, quantile: Fraction) -> float:
    return release_deviation(
        purse,
        np.abs(distances),
        top=top,
        cost=purse.share(rules.target_share(purse.regime)),
        purpose="the target's scale",
        quantile=quantile,
    )


def _clipped_mean(purse: Purse, values: Array, clip: float) -> float:
    """Release Σ ψ_c(v)/n, each term rounded to c/2^14: one row moves the sum by at most c."""
    levels = np.rint(np.clip(values / clip, -1, 1) * LEVELS).astype(np.int64)
    noisy, noise = purse.release_sum(
        int(levels.sum()),
        most=LEVELS,
        bound=clip,
        cost=purse.share(rules.target_share(purse.regime)),
        purpose="the target's mean",
    )
    return rules.clamp(rules.shrunk(noisy, noise) / purse.regime.n_rows, -clip, clip)


# --- the features ---------------------------------------------------------------------------------


class Columns:
    """Private columns in units of their bounds, seen through counts below one threshold each.

    A count compares one cell at a time, so narrow floats change which cell falls where by a hair,
    and no sensitivity.
    """

    def __init__(self, X: Array, bounds: Array) -> None:
        low, high = bounds.T
        self.n_rows, self.n_features = X.shape
        self.middles, self.halves = low / 2 + high / 2, high / 2 - low / 2
        self._columns = np.empty(X.shape[::-1], dtype=np.float32)
        for first in range(0, self.n_rows, _BLOCK):
            rows = np.clip(X[first : first + _BLOCK], low, high)
            self._columns[:, first : first + _BLOCK] = ((rows - self.middles) / self.halves).T

    def below(self, thresholds: Array) -> Integers:
        """Return #{u < threshold} of every column, u in [−1, 1]."""
        edges = thresholds.astype(np.float32).tolist()
        pairs = zip(self._columns, edges, strict=True)
        return np.array([np.count_nonzero(column < edge) for column, edge in pairs])

    def within(self, centres: Array, reach: Array) -> Integers:
        """Return #{centre − reach ≤ u < centre + reach} of every column."""
        return self.below(centres + reach) - self.below(centres - reach)

    def bounds(self, centres: Array, reach: Array) -> Array:
        """Return bounds that are given in units of the public ones, in the user's units."""
        return bounds_around(self.middles + self.halves * centres, self.halves * reach)


def tightened(purse: Purse, X: Array, bounds: Array, *, always: bool) -> Array:
    """Return the features' bounds: the public ones where they fit, else released ones."""
    columns = Columns(X, bounds)
    if always:
        return place_features(purse, columns)
    if not rules.can_judge(purse.regime):
        return bounds
    fit = judge_bounds(purse, columns)
    if fit.good:
        return bounds
    if rules.can_place_features(purse.regime):
        return place_features(purse, columns)
    factor = fit.reach / rules.NARROW_REACH if fit.loose else 1.0
    return columns.bounds(np.zeros(len(bounds)), np.full(len(bounds), factor))


def judge_bounds(purse: Purse, columns: Columns) -> rules.Fit:
    """Release how the public bounds fit, from counts over all cells (Lemma 12)."""
    cost = purse.share(rules.judge_share(purse.regime))
    reach = _common_reach(purse, columns, cost)
    inner = _near_the_middle(columns, reach / 2)
    noisy, _ = purse.release_sum(
        inner, most=columns.n_features, bound=1.0, cost=cost, purpose="cells near the middle"
    )
    return rules.Fit(reach, noisy / purse.regime.n_rows)


def _common_reach(purse: Purse, columns: Columns, cost: ZCDP) -> float:
    part, whole = HIGH.as_integer_ratio()
    cells = columns.n_rows * columns.n_features

    def excess(exponents: Array) -> Integers:
        return np.array([whole * _near_the_middle(columns, 2 ** exponents[0]) - part * cells])

    exponent = release_search(
        purse.accountant,
        excess,
        np.array([-float(FIT_OCTAVES)]),
        np.zeros(1),
        change=float(columns.n_features * excess_change(HIGH)),
        levels=FIT_LEVELS,
        cost=cost,
        purpose="how far cells reach",
    )
    return float(2 ** exponent[0])


def _near_the_middle(columns: Columns, reach: float) -> int:
    """Return how many cells of all columns have −reach ≤ u < reach."""
    d = columns.n_features
    return int(columns.within(np.zeros(d), np.full(d, reach)).sum())


def place_features(purse: Purse, columns: Columns) -> Array:
    """Release new bounds of every feature: medians, then quantiles of the distance from them."""
    cost = purse.share(rules.feature_share(purse.regime) / 2)
    centres = _release_centres(purse, columns, cost)
    exponents = _release_exponents(purse, columns, centres, cost)
    noise = rules.search_noise(purse.regime, CENTRE_LEVELS)
    centres = shrunk_centres(centres, exponents, noise)
    room = float(np.min((1 + np.abs(centres)) / 2**exponents))
    return columns.bounds(centres, rules.feature_reach(purse.regime, room) * 2**exponents)


def _release_centres(purse: Purse, columns: Columns, cost: ZCDP) -> Array:
    def excess(middles: Array) -> Integers:
        return np.asarray(2 * columns.below(middles) - columns.n_rows)

    return release_search(
        purse.accountant,
        excess,
        np.full(columns.n_features, -1.0),
        np.full(columns.n_features, 1.0),
        change=columns_change(columns.n_features, MEDIAN),
        levels=CENTRE_LEVELS,
        cost=cost,
        purpose="the features' centres",
    )


def _release_exponents(purse: Purse, columns: Columns, centres: Array, cost: ZCDP) -> Array:
    """Release log2 of the 0.8 quantile of |u − centre|."""
    quantile = rules.scale_quantile(purse.regime, SCALE_LEVELS)
    part, whole = quantile.as_integer_ratio()

    def excess(exponents: Array) -> Integers:
        inside = columns.within(centres, 2**exponents)
        return np.asarray(whole * inside - part * columns.n_rows)

    exponents = release_search(
        purse.accountant,
        excess,
        np.full(columns.n_features, -float(SCALE_OCTAVES)),
        np.full(columns.n_features, 1.0),
        change=columns_change(columns.n_features, quantile),
        levels=SCALE_LEVELS,
        cost=cost,
        purpose="the features' scales",
    )
    noise = float(max(quantile, 1 - quantile)) * rules.search_noise(purse.regime, SCALE_LEVELS)
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
