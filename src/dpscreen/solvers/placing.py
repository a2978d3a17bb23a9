"""Where features lie, inside public bounds: centres, scales and clip bounds.

Public bounds are often far too wide. What is released here are, for each feature, a centre and the
scale in which it competes, and bounds inside the public ones to which it is clipped. The three have
different roles: bounds bias, scales compare, and neither enters a sensitivity, because features
reach the lattice as (x − centre)/(R·scale), R one ratio for all, and lie in [−1, 1] there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dpscreen._core.arrays import Array, Integers, Mask
from dpscreen.privacy import ZCDP
from dpscreen.privacy.accountant import (
    columns_change,
    release_counts,
    release_histograms,
    release_search,
    release_sums,
)
from dpscreen.rows.lattice import UNITS, ExactDesign
from dpscreen.rows.loss import SQUARED, Loss
from dpscreen.rows.source import PublicUnits, RowSource
from dpscreen.rows.sums import (
    LEVELS,
    ColumnMap,
    counts_by_distance,
    counts_by_octave,
    counts_on_grid,
    level_moments,
    whole_sum,
)
from dpscreen.solvers import rules
from dpscreen.solvers.base import Choices, Spending, Task
from dpscreen.solvers.target import LARGEST, PlacedTarget, place_target, unevenness
from dpscreen.solvers.zoom import EXPONENTS, OffPoints, Sighting, pooled_scale, sighted

Below = Callable[[Array, float, int], Integers]

RARE = 0.36
"""The variance, in half-widths, of a level that a tenth of the rows has: no rarer one is sure."""

NO_END = "neither"
"""Where a feature lies that does not seem to vary inside its bounds."""

BEYOND = 4.0
"""A reach from any centre that is beyond the declared bounds, in their half-widths."""


def place_rows(
    spending: Spending,
    rows: RowSource,
    bounds: tuple[Array, Array],
    choices: Choices,
    *,
    target: PlacedTarget | None = None,
    loss: Loss = SQUARED,
) -> tuple[Task, PublicUnits]:
    """Release where target and features lie, and put the rows on the lattice.

    `bounds` are the public ones of the features and of the target, whose place may be known.
    """
    trusting = choices.standardize == "auto"
    if target is None:
        target = place_target(spending, rows, bounds[1], trusting=trusting)
    places = release_places(spending, rows, bounds[0], choices, trusting=trusting)
    units = PublicUnits(
        bounds[0] if places is None else places.bounds,
        np.clip(bounds[1], -LARGEST, LARGEST),
        constant=choices.intercept,
        loss=loss,
        features_at=None if places is None else places.features_at,
        target_at=target.centre,
    )
    task = Task(spending, rows.lattice(units), target.deviation, 1.0, choices)
    task = replace(
        task,
        heaped=target.heaped,
        doubt=target.doubt,
        narrowed=bool((units.feature_bounds != bounds[0]).any()),
    )
    if places is None:
        return replace(task, spread=_release_spread(spending, task.design)), units
    task = replace(task, moving=places.moving, at_ends=tuple(places.at_ends))
    doubtful = places.doubtful & ~places.varying
    if loss.curvature == 1:  # a number keeps what a line finds: its declared bounds hold it
        doubtful &= is_yes_no(places.declared)
    return replace(task, doubtful=doubtful, spread=1 / places.ratio), units


def _release_spread(spending: Spending, design: ExactDesign) -> float:
    """Release the features' root mean square; Σ_j x_ij²/d is at most 1 in each row.

    (docs/private-lasso.md, Lemma 13)
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


# --- the features ---------------------------------------------------------------------------------


def is_binary(bounds: Array) -> Mask:
    """Return which columns are declared 0/1, 1 being that a row has the level."""
    return np.asarray((bounds[:, 0] == 0) & (bounds[:, 1] == 1))


def is_yes_no(bounds: Array) -> Mask:
    """Return which columns are declared as yes or no, however coded: 0 and 1, or 1 and 2."""
    low, high = bounds.T
    return np.asarray((high - low == 1) & (low == np.floor(low)))


@dataclass(frozen=True, eq=False)
class FeatureKinds:
    """Which columns hold numbers, and which are declared yes or no."""

    numeric: Integers
    binary: Integers

    @property
    def both(self) -> Integers:
        """Return all of them, numbers first."""
        return np.concatenate((self.numeric, self.binary))


@dataclass(frozen=True, eq=False)
class Places:
    """Where features lie: clip bounds inside the declared ones, centres and scales.

    A feature that is not seen to vary (`still`) is not offered to the choice. Whether it varies is
    `doubtful` where it looks like a point, unless rows are seen off that (`varying`). What is
    declared yes or no has `two` values, unless its mean square says that it has not.
    """

    declared: Array
    bounds: Array
    centres: Array
    scales: Array
    still: Mask
    doubtful: Mask
    varying: Mask
    two: Mask

    @classmethod
    def unplaced(cls, declared: Array) -> Places:
        """Return what is public: the middles, and half of the half-widths."""
        places = ColumnMap.of_bounds(declared)
        scales, none = rules.UNPLACED * places.half_widths, np.zeros(len(declared), dtype=bool)
        two = is_yes_no(declared)
        return cls(declared, declared, places.centres, scales, none, none, none, two)

    def evenly(self, chosen: Integers, scale: float) -> Places:
        """Return chosen features with one scale, in half-widths of their bounds."""
        scales = self.scales.copy()
        scales[chosen] = scale * ColumnMap.of_bounds(self.declared, chosen).half_widths
        return replace(self, scales=scales)

    def moved(self, chosen: Integers, *, centres: Array, reaches: Array, scales: Array) -> Places:
        """Return chosen features elsewhere: clipped to centre ± reach, inside the declared bounds.

        All in units of the declared bounds.
        """
        declared = ColumnMap.of_bounds(self.declared, chosen)
        low, high = self.declared[chosen].T
        middle, half = declared.centres, declared.half_widths
        lower = np.maximum(low, middle + half * (centres - reaches))
        upper = np.minimum(high, middle + half * (centres + reaches))
        apart = lower < upper  # unless the declared bounds are a few floats wide
        bounds = np.stack((np.where(apart, lower, low), np.where(apart, upper, high)), axis=1)
        return self._with(chosen, bounds, middle + half * centres, half * scales)

    def rescaled(self, chosen: Integers, means: Array, variances: Array) -> Places:
        """Return chosen features with mean and variance in units of their clip bounds."""
        inside = ColumnMap.of_bounds(self.bounds, chosen)
        centres = inside.centres + inside.half_widths * means
        return self._with(
            chosen, self.bounds[chosen], centres, inside.half_widths * np.sqrt(variances)
        )

    def _with(self, chosen: Integers, bounds: Array, centres: Array, scales: Array) -> Places:
        pairs, middles, widths = self.bounds.copy(), self.centres.copy(), self.scales.copy()
        pairs[chosen], widths[chosen] = bounds, scales
        middles[chosen] = np.clip(centres, *bounds.T)
        return replace(self, bounds=pairs, centres=middles, scales=widths)

    def told(self, chosen: Integers, *, doubtful: Mask, varying: Mask, still: Mask) -> Places:
        """Return places that tell of chosen features whether they are seen to vary."""
        told = np.zeros((3, len(self.declared)), dtype=bool)
        told[:, chosen] = still, doubtful, varying
        return replace(self, still=told[0], doubtful=told[1], varying=told[2])

    @property
    def moving(self) -> Integers:
        """Return the features that are seen to vary."""
        return np.flatnonzero(~self.still)

    @property
    def ratio(self) -> float:
        """Return R: how many scales bounds reach from a centre, at most."""
        most = float(np.max((self._reach / self.scales)[self.moving], initial=1.0))
        return rules.clamp(most, 1.0, rules.MOST_RATIO)

    @property
    def features_at(self) -> Array:
        """Return centre and half-width R·scale of every feature, no less than bounds reach."""
        half_widths = np.maximum(self.ratio * self.scales, self._reach)
        return np.stack((self.centres, half_widths), axis=1)

    @property
    def at_ends(self) -> Iterator[tuple[int, str]]:
        """Yield features that seem to lie at an end of their declared bounds, and at which.

        Rows beyond an end are clipped to it, so most must be one point there; rows that vary close
        to an end lie inside the bounds. A rare 0/1 level is no sign of careless bounds, nor is a
        number that is mostly 0 where its bounds begin, if rows are detected elsewhere; a level that
        all rows have is, and so is a number that does not seem to vary.
        """
        inside, binary = ColumnMap.of_bounds(self.declared), is_yes_no(self.declared)
        places = (self.centres - inside.centres) / inside.half_widths
        point = self.still | self.doubtful
        mostly_zero = point & (places < 0) & (self.declared[:, 0] == 0) & ~self.still
        told = np.where(binary, self.still, point & ~mostly_zero)
        at_end = np.abs(places) > 1 - rules.AT_END
        for j in np.flatnonzero(told & (at_end | (self.still & ~binary))):
            yield int(j), NO_END if not at_end[j] else "upper" if places[j] > 0 else "lower"

    @property
    def _reach(self) -> Array:
        low, high = self.bounds.T
        return np.asarray(np.maximum(high - self.centres, self.centres - low))


def release_places(
    spending: Spending,
    rows: RowSource,
    declared: Array,
    choices: Choices,
    *,
    trusting: bool = False,
) -> Places | None:
    """Release where features lie; None where the public map is all there is.

    With trust, one pair of bounds for all, even about zero, declares columns that were
    standardised (docs/private-lasso.md, Lemma 22).
    """
    auto = choices.standardize == "auto"
    if not choices.standardize or (auto and choices.row_norm is not None):
        return None
    binary = is_yes_no(declared)
    kinds = FeatureKinds(np.flatnonzero(~binary), np.flatnonzero(binary))
    n_numeric = len(kinds.numeric)
    seen = n_numeric > 0 and (not auto or rules.can_place(spending.regime, n_numeric))
    if not seen and not kinds.binary.size:
        return None
    places = Places.unplaced(declared)
    if seen and trusting and not rows.keeps_zero and is_even(declared[kinds.numeric]):
        scale = _common_scale(spending, rows, declared, kinds.numeric)
        seen, places = scale is None, places.evenly(kinds.numeric, scale or rules.UNPLACED)
    return place_features(spending, rows, places, kinds, seen=seen)


def is_even(bounds: Array) -> bool:
    """Whether one pair of bounds, even about zero, declares columns that were standardised.

    These lie within a few deviations: wider pairs are guesses for columns as they came.
    """
    low, high = bounds[0]
    return bool((bounds == bounds[0]).all() and low == -high and high * rules.WIDEST <= 1)


def _common_scale(
    spending: Spending, rows: RowSource, declared: Array, numeric: Integers
) -> float | None:
    """Release one scale for all numeric columns, in half-widths, if they lie about zero; else None.

    Counts of how far cells are from zero, of all columns together, and how uneven the sides of each
    are, added up: a row moves either by at most d in L2 (docs/private-lasso.md, Lemma 54).
    """
    regime, d, near = spending.regime, len(numeric), len(EXPONENTS)
    if rules.is_rich(regime, d):
        return None
    counts = counts_by_side(rows, ColumnMap.of_bounds(declared, numeric))
    below, above = counts[:, near - 1 :: -1], counts[:, near + 1 :]
    uneven = unevenness(below.sum(axis=1), counts[:, near], above.sum(axis=1)).sum()
    sizes = np.append(counts[:, near].sum(), (below + above).sum(axis=0))
    noisy, noise = release_counts(
        spending.accountant,
        np.append(sizes, uneven),
        change=math.sqrt(2) * d,
        cost=spending.share(rules.pooled_share(regime)),
        purpose="all features about zero",
    )
    scale = pooled_scale(noisy[:-1] / d, noise / d, regime.n_rows)
    even = noisy[-1] < rules.MOST_UNEVEN_CELLS * d * regime.n_rows
    return scale if even and scale > rules.WIDEST else None


def place_features(
    spending: Spending, rows: RowSource, places: Places, kinds: FeatureKinds, *, seen: bool
) -> Places:
    """Release where numeric columns lie if they are to be `seen`, and means of yes-no columns."""
    n_numeric = len(kinds.numeric)
    rich = seen and rules.is_rich(spending.regime, n_numeric)
    share = rules.binary_share(spending.regime, len(kinds.binary))
    if seen:
        part = rules.place_share(spending.regime, n_numeric) / (3 if rich else 1)
        columns = NumericColumns(rows, ColumnMap.of_bounds(places.declared, kinds.numeric))
        places = _placed(spending, columns, places, part, rich=rich)
        share = part if rich else share
    measured = kinds.both[~places.doubtful[kinds.both]] if rich else kinds.binary
    if not measured.size:
        return places
    return _with_moments(spending, rows, places, measured, spending.share(share))


def _placed(
    spending: Spending, columns: NumericColumns, places: Places, share: float, *, rich: bool
) -> Places:
    """Return the places of numeric columns.

    Those that are one point for the most keep their declared bounds, unless rows are seen
    elsewhere.
    """
    seen, chosen = columns.sighting(spending, share, rich=rich), columns.columns.chosen
    centres, reaches = np.zeros(len(chosen)), np.full(len(chosen), BEYOND)
    scales, found = centres + seen.common_scale, seen.found
    still, varying = np.zeros((2, len(chosen)), dtype=bool)
    if found.size:
        reaches[found] = _reaches(spending, columns, seen, share, rich=rich)
        centres[found], scales[found] = seen.centres, seen.scales
    points = found[~seen.view.resolved]
    reaches[points], scales[points] = BEYOND, rules.UNPLACED
    if points.size and rules.finds_points(spending.regime, len(points)):
        off = columns.part(points).off_points(spending, seen)
        varying[points], still[points] = off.seen, ~off.seen
        centres[varying] += off.means[off.seen]
        reaches[varying], scales[varying] = off.reaches[off.seen], off.scales[off.seen]
    moved = places.moved(chosen, centres=centres, reaches=reaches, scales=scales)
    return moved.told(chosen, doubtful=seen.points, varying=varying, still=still)


@dataclass(frozen=True)
class NumericColumns:
    """Private numeric columns in units of their declared bounds, seen through counts."""

    rows: RowSource
    columns: ColumnMap

    def part(self, found: Integers) -> NumericColumns:
        """Return some of the columns."""
        bounds, chosen = self.columns.bounds[found], self.columns.chosen[found]
        return replace(self, columns=replace(ColumnMap.of_bounds(bounds), chosen=chosen))

    def sighting(self, spending: Spending, share: float, *, rich: bool) -> Sighting:
        """Release histograms in narrowing windows, and what they tell of centres and scales.

        The noise being the same, a look at fewer columns costs less.
        """
        regime, n_columns = spending.regime, len(self.columns.chosen)
        shares = list(rules.look_shares(regime, share, rich=rich))

        def look(found: Integers, middles: Array, half_widths: Array) -> tuple[Array, float]:
            return release_histograms(
                spending.accountant,
                self.part(found).histograms(middles, half_widths),
                cost=spending.share(shares.pop(0) * (len(found) / n_columns)),
                purpose="the features' histograms",
            )

        n_looks = len(shares)
        return sighted(look, n_columns, n_rows=regime.n_rows, n_looks=n_looks, patient=rich)

    def histograms(self, middles: Array, half_widths: Array) -> Integers:
        """Return counts in equal cells of middle ± half; what lies beyond is in the end cells."""
        cells = rules.HISTOGRAM_CELLS
        width = 2 * half_widths / cells
        return self.rows.feature_total(
            counts_on_grid, self.columns, middles - half_widths + width, 1 / width, cells - 2
        )

    def off_points(self, spending: Spending, seen: Sighting) -> OffPoints:
        """Release how far rows are from the points, by octaves on either side.

        (docs/private-lasso.md, Lemma 46)
        """
        places = np.flatnonzero(~seen.view.resolved)
        centres = self.columns.centres + self.columns.half_widths * seen.centres[places]
        counts = counts_by_side(self.rows, replace(self.columns, centres=centres))
        noisy, noise = release_histograms(
            spending.accountant,
            counts,
            cost=spending.share(rules.point_share(spending.regime, len(places))),
            purpose="the features' distances from points",
        )
        return OffPoints.of(noisy, noise, spending.regime.n_rows, seen.view.belief.part(places))

    def within(self, centres: Array, reaches: Array) -> Integers:
        """Return #{|u − centre| < reach} of every column, and the number of rows."""
        return self.rows.feature_total(counts_by_distance, self.columns, centres, reaches)


def counts_by_side(rows: RowSource, columns: ColumnMap) -> Integers:
    """Return how many rows are how far below centres, from the farthest octave on, and above.

    A row is in one cell, also of rows that change while they are read. A centre at an end of narrow
    bounds is put back inside, which rounding may have taken it out of.
    """
    centres = np.clip(columns.centres, *columns.bounds.T)
    return rows.feature_total(counts_by_octave, replace(columns, centres=centres), EXPONENTS)


def _reaches(
    spending: Spending, columns: NumericColumns, seen: Sighting, share: float, *, rich: bool
) -> Array:
    """Return how far bounds reach from centres; of points it says nothing."""
    d, regime = len(columns.columns.chosen), spending.regime
    reaches = rules.feature_reach(regime, d) * seen.scales
    resolved = np.flatnonzero(seen.view.resolved)
    if not rich or not resolved.size:
        return reaches
    quantile = rules.tail_quantile(regime, rules.tail_noise(regime, d, share))
    part = share * (len(resolved) / d)
    octaves = rules.tail_octaves(seen.scales[resolved])
    found = columns.part(seen.found[resolved])
    exponents = _release_tails(spending, found, seen.centres[resolved], octaves, quantile, part)
    reaches[resolved] = np.maximum(reaches[resolved], rules.TAIL_REACH * 2**exponents)
    return reaches


def _release_tails(
    spending: Spending,
    columns: NumericColumns,
    centres: Array,
    octaves: float,
    quantile: Fraction,
    share: float,
) -> Array:
    """Release log2 of a high quantile of |u − centre|, as high as the noise allows.

    (docs/private-lasso.md, Lemma 12)
    """
    d = len(centres)
    low, high = -octaves, 1.0

    def below(origin: Array, width: float, n_cells: int) -> Integers:
        exponents = origin[0] + width * np.arange(n_cells + 1) / n_cells
        return columns.within(centres, 2**exponents)

    return release_search(
        spending.accountant,
        TabledSearch(below, quantile, high - low, depth=rules.TAIL_LEVELS),
        np.full(d, low),
        np.full(d, high),
        change=columns_change(d, quantile),
        levels=rules.TAIL_LEVELS,
        cost=spending.share(share),
        purpose="the features' tails",
    )


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


# --- means and mean squares inside the clip bounds ------------------------------------------------


def moments_change(n_whole: int, n_halved: int) -> float:
    """Return how far one row moves `centred_moments` in L2 (Lemma 22)."""
    return math.sqrt(1.25 * n_whole + 0.3125 * n_halved)


def centred_moments(
    rows: RowSource, bounds: Array, chosen: Integers, weights: Integers
) -> Integers:
    """Return Σv and Σ(v² − ½) of the chosen columns, in 1/2^15; half of both if the weight is 1.

    v is the cell in units in which its clip bounds are −1 and 1. The other weight is 2.
    """
    first, second = rows.feature_total(level_moments, ColumnMap.of_bounds(bounds, chosen))
    return np.concatenate((weights * first, weights * (second - LEVELS // 2 * rows.n_rows)))


def _with_moments(
    spending: Spending, rows: RowSource, places: Places, chosen: Integers, cost: ZCDP
) -> Places:
    """Release means and mean squares inside the clip bounds, and tell what is still.

    A column declared yes or no may be a rare level, and is offered unless it is 1 of 0 and 1 in all
    rows: a refit tells whether it varies. A share between 0 and 1 competes in its own scale.
    """
    binary = is_yes_no(places.declared)[chosen]
    all_have = is_binary(places.declared)[chosen]
    weights = np.where(binary, 1, 2)
    noisy, noise = release_sums(
        spending.accountant,
        centred_moments(rows, places.bounds, chosen, weights),
        units_per_one=2 * LEVELS,
        change=moments_change(int((~binary).sum()), int(binary.sum())),
        cost=cost,
        purpose="the features' means and mean squares",
    )
    moments = NoisyMoments.of(noisy, noise, spending.regime.n_rows, weights)
    still, two = places.still.copy(), places.two.copy()
    below, two[chosen] = np.minimum(6 * moments.noise, rules.STILL), moments.two(binary)
    still[chosen] |= all_have & (moments.means > 0) & (moments.most_variances < below)
    doubtful = places.doubtful.copy()
    doubtful[chosen] |= binary & (moments.seen(binary) < np.minimum(6 * moments.noise, RARE))
    found = places.rescaled(chosen, moments.means, moments.variances(binary))
    return replace(found, still=still, doubtful=doubtful, two=two)


@dataclass(frozen=True, eq=False)
class NoisyMoments:
    """Noisy mean and mean square of columns in [−1, 1], and the noise of each."""

    raw_means: Array
    squares: Array
    noise: Array

    @classmethod
    def of(cls, sums: Array, noise: float, n_rows: int, weights: Integers) -> NoisyMoments:
        """Return them from released `centred_moments`."""
        means, squares = np.split(sums / n_rows, 2)
        return cls(2 * means / weights, 2 * squares / weights + 0.5, 2 * noise / n_rows / weights)

    @property
    def means(self) -> Array:
        """Return the means, with the expected share of their noise taken off."""
        sizes = np.maximum(np.abs(self.raw_means), self.noise)
        return np.clip(self.raw_means * (1 - (self.noise / sizes) ** 2), -1, 1)

    @property
    def raw_variances(self) -> Array:
        """Return the variances as they come."""
        return np.asarray(self.squares - self.means**2)

    @property
    def most_variances(self) -> Array:
        """Return the variances that columns of −1 and 1 have, with these means."""
        return np.asarray(1 - self.means**2)

    def variances(self, binary: Mask) -> Array:
        """Return the variances, no less than the noise of a variance at an end of the bounds."""
        least = np.clip(2 * self.noise, rules.LEAST_VARIANCE, 1)
        return np.clip(self.seen(binary), least, 1)

    def seen(self, binary: Mask) -> Array:
        """Return the variances as they are seen.

        Those of columns declared yes or no are as of two values, unless the mean square says that
        they are not: of two values the mean tells it better.
        """
        return np.where(self.two(binary), self.most_variances, self.raw_variances)

    def two(self, binary: Mask) -> Mask:
        """Return which of these columns have no values between their ends, for all that is seen."""
        noise = self.noise * np.sqrt(1 + 4 * self.means**2)
        inside = self.most_variances - self.raw_variances
        return np.asarray(binary & (inside < rules.SEEN * noise))
