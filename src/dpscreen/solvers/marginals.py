"""Marginals of the columns: centre, scale and clipping range of each, inside its declared bounds.

Declared bounds are often far too wide. Noisy histograms are released in a few rounds, each on a
window that the one before located; a histogram of distances from the centre, by octaves, then shows
point masses and heavy tails, and means and mean squares refine both where noise permits. The target
is a column like any other. Nothing here enters a sensitivity: features reach the lattice as
(x − centre)/(R·scale), R one ratio for all, and lie in [−1, 1] there (docs/theory/marginals.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, softmax

from dpscreen._core.arrays import Array, Integers, Mask, clamp
from dpscreen.families import GAUSSIAN, Family
from dpscreen.privacy.accountant import release_histograms, release_sums
from dpscreen.rows.lattice import UNITS, ExactDesign
from dpscreen.rows.source import PublicUnits, RowSource, as_column
from dpscreen.rows.sums import (
    LEVELS,
    ColumnMap,
    counts_by_octave,
    counts_on_grid,
    level_moments,
    whole_sum,
)
from dpscreen.solvers import rules
from dpscreen.solvers.base import Choices, Spending, Task

LARGEST = np.finfo(np.float64).max / 2**10
"""Bounds beyond this are as good as none, and 256 half-widths of them would overflow. Derived."""

FINEST = 2.0**-30
"""Estimates are rounded to this part of a half-width: exponentials differ in their last bits
between machines. Conventional."""

CELLS, ROUNDS = 12, 3
"""Cells of a histogram, tuned, and number of histograms. Each cell has the same noise, so narrow
ones lose what they show of a centre or scale to it."""

OCTAVE_PART, MOST_ROUNDS = 0.25, 6
"""Part of the share of marginals for distances from the centre; and most histograms of columns that
are narrower than half a cell of the last one. Conventional."""

HISTOGRAM, DISTANCES = "histogram", "distances from the centre"
"""What is released of columns, in the purposes of releases."""

MISFIT = 0.01
"""How much the share of a cell differs from that of a template, typically. Tuned."""

LOG_SCALE_ERROR = 0.15
"""Error of the logarithm of a scale, where a column is not normal. Conventional."""

POOLED, POOLING_ROUNDS = 3.0, 5
"""Columns that weigh as much as the prior of scales in what they have in common; and EM rounds for
that. Conventional."""

WINDOW = 2.5
"""Half-width of the next window, in standard deviations; end cells have rows beyond. Tuned."""

EXPONENTS = np.arange(-24, 2)
"""Octaves of distances that are counted apart. Conventional."""

OCTAVES: Array = np.exp2(EXPONENTS)
"""Lower ends of distances from a centre, in half-widths of the declared bounds. Conventional."""

DETECTED, NEIGHBOURS = 4.5, 4
"""Standard deviations of noise from which on counts are detected, alone or as sums of up to so many
neighbouring cells. Conventional."""

WINSOR, WINSOR_ROUNDS = 5.0, 40
"""Distances count up to so many scales, as in Huber's second proposal. Conventional."""

BESIDE_POINT = 0.1
"""Share of rows beside a point up to which these are winsorised by themselves: five scales of all
rows are less than 1.6 of theirs. Conventional."""

POINT_MASS = 0.45
"""There is a point mass if half of the rows lie within this part of the scale; of a normal column
they lie within 0.67, of a Laplace or exponential one within 0.48. Conventional."""

ONE_POINT = 0.7
"""Share of rows in one place from which on a column is constant as far as is detected. Tuned."""

AT_END, SMALL_TARGET = 0.02, 2.0**-9
"""How near to an end of the declared bounds a centre is at it, and the scale up to which a target
is one value, in half-widths. Conventional."""

LOG_ODDS = 2.0
"""Prior standard deviation of log-odds: 1/√(p(1 − p)) at p = ½. Conventional."""

SQUARED_NORM = 1.0
"""Least squared norm to which rows are clipped in a table, per column: its mean. Conventional."""

TABLE_RANGE = 256.0
"""Half-width of a feature's clipping range in a table, in scales; the lattice divides that by 2^14.
Conventional."""

NEITHER = "neither"
"""Where the centre of a constant column is that lies at no end of its declared bounds."""


def is_yes_no(bounds: Array) -> Mask:
    """Return which columns are declared with two values, however coded: 0 and 1, or 1 and 2."""
    low, high = bounds.T
    return np.asarray((high / 2 - low / 2 == 0.5) & (low == np.floor(low)))


def representable(bounds: Array) -> Array:
    """Return bounds whose differences, and multiples of these, are finite."""
    clipped = np.clip(bounds, -LARGEST, LARGEST)
    return np.where(clipped[..., :1] < clipped[..., 1:], clipped, bounds)


# --- normal approximations from noisy histograms --------------------------------------------------


class NormalFit(NamedTuple):
    """Posterior of normal columns, in half-widths of their declared bounds from the middle.

    Means and variances of centres and of log scales. The last histogram does not resolve scales
    below one cell, the logarithm of which is `log_cell`.
    """

    centre: Array
    centre_variance: Array
    log_scale: Array
    log_scale_variance: Array
    log_cell: Array

    def given(
        self, counts: Array, noise: float, n_rows: int, window: tuple[Array, Array]
    ) -> NormalFit:
        """Return the posterior given noisy histograms of the windows, a row for each column."""
        (middles, half_widths), (centres, scales, shares) = window, templates()
        squares = 0.5 * (shares**2).sum(axis=1)
        error = noise**2 + (MISFIT * n_rows) ** 2
        logs = (n_rows * (counts @ shares.T) - n_rows**2 * squares) / error
        centres = middles[:, None] + half_widths[:, None] * centres
        log_scales = np.log(half_widths)[:, None] + np.log(scales)
        # The logarithm of this density is flat below a cell.
        known = np.maximum(self.log_scale, self.log_cell)[:, None]
        wide = (np.maximum(log_scales, self.log_cell[:, None]) - known) ** 2
        off = (centres - self.centre[:, None]) ** 2 / self.centre_variance[:, None]
        before = -0.5 * (off + wide / self.log_scale_variance[:, None])
        weights = softmax(logs + before, axis=1)
        centre, log_scale = ((weights * one).sum(axis=1) for one in (centres, log_scales))
        off = (weights * (centres - centre[:, None]) ** 2).sum(axis=1)
        wide = (weights * (log_scales - log_scale[:, None]) ** 2).sum(axis=1)
        cell = 2 * half_widths / CELLS
        return NormalFit(
            centre, off + cell**2 / 48, log_scale, wide + LOG_SCALE_ERROR**2, np.log(cell)
        )


@cache
def templates() -> tuple[Array, Array, Array]:
    """Return columns in a window from −1 to 1: centres, scales, and the shares of the cells.

    Normal columns, and columns that have half of their rows in one point: without these, a column
    that is often zero would be taken for one that is constant.
    """
    edges = np.linspace(-1, 1, CELLS + 1)
    edges[0], edges[-1] = -np.inf, np.inf
    scales = np.exp(np.linspace(math.log(0.4 / CELLS), 0, 14))
    grid = np.meshgrid(np.linspace(-1, 1, 2 * CELLS + 1), scales, indexing="ij")
    centres, scales = (axis.ravel() for axis in grid)
    away = edges - centres[:, None]
    normal, point = (np.diff(ndtr(away / s), axis=1) for s in (scales[:, None], 0.2 / CELLS))
    wide = scales > 2 / CELLS
    return (
        np.append(centres, centres[wide]),
        np.append(scales, scales[wide] / math.sqrt(2)),
        np.concatenate((normal, (normal[wide] + point[wide]) / 2)),
    )


def _rounded(values: Array) -> Array:
    return np.rint(values / FINEST) * FINEST


# --- distances from the centre, by octaves --------------------------------------------------------

_ENDS = np.minimum(2 * OCTAVES, 2.0)
_OUTER_ENDS = np.concatenate((_ENDS[::-1], OCTAVES[:1], _ENDS))
_MEANS = np.concatenate((-(OCTAVES + _ENDS)[::-1], [0.0], OCTAVES + _ENDS)) / 2
_SQUARES = (OCTAVES**2 + OCTAVES * _ENDS + _ENDS**2) / 3
_SQUARES = np.concatenate((_SQUARES[::-1], [0.0], _SQUARES))


@dataclass(frozen=True, eq=False)
class Distances:
    """Noisy counts of distances from centres, by octaves on either side, a row for each column.

    `noise` is the standard deviation of the noise, in a row for each column, too.
    """

    counts: Array
    noise: Array
    n_rows: int

    @cached_property
    def detected(self) -> Array:
        """Return the counts of cells that are detected, and 0 of others, which are noise.

        They are detected alone or with up to three that follow outwards.
        """
        middle, found = self.counts.shape[1] // 2, []
        for side in (self.counts[:, middle::-1], self.counts[:, middle:]):
            clear = np.zeros(side.shape, dtype=bool)
            for size in range(1, NEIGHBOURS + 1):
                sums = np.lib.stride_tricks.sliding_window_view(side, size, axis=1).sum(axis=2)
                clear[:, : sums.shape[1]] |= sums >= DETECTED * math.sqrt(size) * self.noise
            found.append(clear)
        clear = np.concatenate((found[0][:, :0:-1], found[1]), axis=1)
        return np.where(clear, np.maximum(self.counts, 0.0), 0.0)

    def scales(self, rows: Array | None = None, n_rows: float | None = None) -> Array:
        """Return winsorised root mean squares of what is detected; 0 where nothing is.

        With all but 1/WINSOR² of the rows in one point the only solution would be zero
        (docs/theory/marginals.md, Lemma 68), so that few others are winsorised by themselves.
        """
        rows, n_rows = self.detected if rows is None else rows, n_rows or self.n_rows
        point = np.where(np.arange(rows.shape[1]) == rows.argmax(axis=1)[:, None], rows, 0.0)
        n_others = (rows - point).sum(axis=1)
        few = n_others < BESIDE_POINT * n_rows
        winsorised = np.where(few[:, None], rows - point, rows)
        n_winsorised = np.where(few, np.maximum(n_others, 1.0), n_rows)
        squares = winsorised @ _SQUARES / n_winsorised
        for _ in range(WINSOR_ROUNDS):
            most = np.minimum(_SQUARES, WINSOR**2 * squares[:, None])
            squares = (winsorised * most).sum(axis=1) / n_winsorised
        apart = (point @ _SQUARES + squares * n_others) / n_rows
        return _rounded(np.sqrt(np.where(few, apart, squares)))

    @property
    def constant(self) -> Mask:
        """Return which columns have all detected rows, and most of all, in one or two cells."""
        clear = self.counts >= DETECTED * self.noise
        first, last = clear.argmax(axis=1), clear.shape[1] - 1 - clear[:, ::-1].argmax(axis=1)
        inside = np.where(clear, self.counts, 0.0).sum(axis=1)
        return np.asarray((last - first <= 1) & (inside > ONE_POINT * self.n_rows))

    def mostly_near(self, distances: Array) -> Mask:
        """Return which columns have half of their rows within a distance, beyond doubt."""
        near = distances[:, None] >= _OUTER_ENDS
        doubt = 2 * self.noise[:, 0] * np.sqrt(near.sum(axis=1))
        return np.asarray((self.counts * near).sum(axis=1) >= self.n_rows / 2 + doubt)


# --- releases of histograms -----------------------------------------------------------------------


@dataclass(frozen=True)
class Columns:
    """Private columns, available through counts alone: some features, or the target."""

    total: Callable[..., Integers]
    bounds: Array
    chosen: Integers

    def histograms(self, middles: Array, half_widths: Array) -> Integers:
        """Return counts in equal cells of middle ± half; what lies beyond is in the end cells."""
        columns, width = ColumnMap.of_bounds(self.bounds, self.chosen), 2 * half_widths / CELLS
        start = middles - half_widths + width
        return self.total(counts_on_grid, columns, start, 1 / width, CELLS - 2)

    def by_octave(self, centres: Array) -> Integers:
        """Return how many rows are how far from centres, by octaves on either side."""
        columns = ColumnMap.of_bounds(self.bounds, self.chosen)
        found = columns.centres + columns.half_widths * centres
        # Rounding may take a centre at an end of narrow bounds out of them.
        inside = np.clip(found, columns.low, columns.high)
        return self.total(counts_by_octave, columns._replace(centres=inside), EXPONENTS)

    def locate(
        self, spending: Spending, share: float, what: str, *, about_zero: bool
    ) -> tuple[NormalFit, Distances, Array, Array]:
        """Release histograms in narrowing windows, and distances from the centres found.

        Return both, and the centres and scales that they show together, in half-widths. A row is
        in one cell of each column (docs/theory/marginals.md, Lemma 22).
        """
        n_rows, n_columns = spending.regime.n_rows, len(self.chosen)
        shares = (1 - OCTAVE_PART) * share / ROUNDS, OCTAVE_PART * share

        def released(counts: Integers, kind: str, share: float) -> tuple[Array, float]:
            """Release counts; the noise being the same, those of fewer columns cost less.

            No release takes more than a fifth of what is left.
            """
            wanted, most = spending.share(share * len(counts) / n_columns), spending.remaining / 5
            cost, purpose = min(wanted, most, key=float), f"{what}: {kind}"
            return release_histograms(spending.accountant, counts, cost=cost, purpose=purpose)

        # A prior about the middle of the bounds, with any scale up to theirs.
        centre_scale = rules.CENTRED if about_zero else rules.ANYWHERE
        ones = np.ones(n_columns)
        prior = NormalFit(0 * ones, centre_scale**2 * ones, -2.0 * ones, 4.0 * ones, -np.inf * ones)
        window = np.zeros(n_columns), np.ones(n_columns)
        counts, noise = released(self.histograms(*window), HISTOGRAM, shares[0])
        fit = prior.given(counts, noise, n_rows, window)

        # Bounds of one table are often too wide by about the same factor: log scales are pooled.
        for _ in range(POOLING_ROUNDS):
            mean, part = float(fit.log_scale.mean()), n_columns / (n_columns + POOLED)
            variance = float(((fit.log_scale - mean) ** 2 + fit.log_scale_variance).mean())
            pooled = prior._replace(
                log_scale=part * mean + (1 - part) * prior.log_scale,
                log_scale_variance=part * variance + (1 - part) * prior.log_scale_variance,
            )
            fit = pooled.given(counts, noise, n_rows, window)

        chosen = np.arange(n_columns)
        for k in range(1, MOST_ROUNDS):
            if k >= ROUNDS:  # bounds may be far wider than so many windows narrow them
                chosen = np.flatnonzero(fit.log_scale < fit.log_cell - math.log(2))
            if not chosen.size:
                break
            known = NormalFit(*(one[chosen] for one in fit))
            columns = replace(self, chosen=self.chosen[chosen])
            reach = WINDOW * np.sqrt(np.exp(2 * known.log_scale) + 2 * known.centre_variance)
            window = _rounded(known.centre), np.clip(_rounded(reach), FINEST, 1.2)
            counts, noise = released(columns.histograms(*window), HISTOGRAM, shares[0])
            found = known.given(counts, noise, n_rows, window)
            for old, new in zip(fit, found, strict=True):
                old[chosen] = new

        centres = _rounded(np.clip(fit.centre, -1, 1))
        counts, noise = released(self.by_octave(centres), DISTANCES, shares[1])
        distances = Distances(counts, np.full((n_columns, 1), noise), n_rows)
        # Again for point masses, at a share at which 5 % of the rows, in four octaves, are detected
        # beside them; but not where not even a quarter would be.
        points = np.flatnonzero(distances.constant)
        needed = len(points) * (2 * 20 * DETECTED / n_rows) ** 2 / (2 * spending.regime.rho)
        more = clamp(needed, 0.05, 0.12)
        if points.size and needed <= 25 * more:
            columns, more = replace(self, chosen=self.chosen[points]), more * n_columns
            again, noise = released(
                columns.by_octave(centres[points]), DISTANCES, more / len(points)
            )
            counts, noises = counts.copy(), distances.noise.copy()
            weight = noises[points] ** 2 / (noises[points] ** 2 + noise**2)
            counts[points] += weight * (again - counts[points])
            noises[points] = np.sqrt(weight) * noise
            distances = Distances(counts, noises, n_rows)

        # Octaves may show rows that a normal approximation leaves out, never that there are none:
        # rows that are not detected may be anywhere.
        scales = np.hypot(np.exp(fit.log_scale), np.sqrt(fit.centre_variance))
        scales = np.maximum(_rounded(scales), FINEST)
        means, found_scales = _rounded(distances.detected @ _MEANS / n_rows), distances.scales()
        wider = found_scales > scales
        centres = np.where(wider, np.clip(centres + means, -1, 1), centres)
        centred = np.sqrt(np.maximum(found_scales**2 - means**2, 0.0))
        scales = np.where(wider, np.maximum(_rounded(centred), scales), scales)
        hidden = np.sqrt(np.minimum(1.0, 3 * distances.noise[:, 0] / n_rows))
        scales = np.where(distances.constant, np.maximum(scales, hidden), scales)
        return fit, distances, centres, scales


# --- the target -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class TargetMarginal:
    """Centre and scale of the target, in the user's units.

    With a `point_mass` most rows share one value: `scale` is that of the others, about it, and
    `spread` that of all. `asymmetry` is the part of its squared distances from the centre that one
    side has more. `start` is where the constant of a model begins, from the centre. `residual` is
    the standard deviation of outcomes, where `scale` is that of predictors.
    """

    centre: float
    scale: float
    spread: float
    point_mass: bool = False
    asymmetry: float = 0.0
    start: float = 0.0
    residual: float | None = None


def release_target(
    spending: Spending,
    rows: RowSource,
    bounds: Array,
    *,
    family: Family = GAUSSIAN,
    even: bool = False,
) -> TargetMarginal:
    """Release centre and scale of the target, or the mean of outcomes whose link needs that.

    (docs/theory/marginals.md, Lemma 22; docs/theory/marginals.md, Lemma 31)

    `even` says that bounds which are even about zero declare a target about zero.
    """
    if family.in_parts:
        return _release_parts(spending, rows, float(bounds[1]), family)
    if not family.has_scale:
        mean = np.array(release_share(spending, rows))
        return TargetMarginal(0.0, LOG_ODDS, LOG_ODDS, start=float(family.link(mean)))
    low, high = clipped = representable(bounds)
    columns = Columns(partial(rows.target_total, as_column), clipped[None, :], np.arange(1))
    share, about_zero = rules.target_share(spending.regime), bool(even and low == -high)
    fit, distances, centres, scales = columns.locate(
        spending, share, "target", about_zero=about_zero
    )
    scale, centre = float(scales[0]), float(centres[0])
    spread = float(distances.scales()[0]) or scale
    within = np.array([POINT_MASS * spread])
    most = float(distances.counts.max()) > (1 - WINSOR**-2) * distances.n_rows
    at_end = most and bool(distances.constant[0]) and abs(float(fit.centre[0])) > 1 - AT_END
    point_mass = at_end or bool(distances.mostly_near(within)[0])
    if point_mass and not at_end:  # else no other row is detected
        centre = float(np.clip(_rounded(fit.centre), -1, 1)[0])
        beside = distances.detected * (within[:, None] < _OUTER_ENDS)
        n_beside = max(float(beside.sum()), 1.0)
        scale = float(distances.scales(beside, n_beside)[0]) or scale
    squares, n_octaves = distances.detected[0] * _SQUARES, len(OCTAVES)
    left, right = float(squares[:n_octaves].sum()), float(squares[n_octaves:].sum())
    middle, half = float(low / 2 + high / 2), float(high / 2 - low / 2)
    return TargetMarginal(
        float(np.clip(middle + half * centre, low, high)),  # rounding may lead out of the bounds
        half * min(scale, 1.0),
        half * min(max(spread, scale * (at_end or not point_mass)), 1.0),
        point_mass,
        abs(right - left) / max(right + left, 1e-300),
    )


def release_share(spending: Spending, rows: RowSource) -> float:
    """Release the share of rows with outcome 1; no rarer, either way, than the noise permits.

    (docs/theory/marginals.md, Lemma 31)
    """
    n_rows = spending.regime.n_rows
    noisy, noise = spending.release_sum(
        int(rows.target_total(count_of_ones)[0]),
        most=1,
        bound=1.0,
        cost=spending.share(rules.CLASS_SHARE),
        purpose="number of rows of the second class",
    )
    rarest = min(0.5, noise / n_rows)
    return clamp(noisy / n_rows, rarest, 1 - rarest)


def _release_parts(
    spending: Spending, rows: RowSource, high: float, family: Family
) -> TargetMarginal:
    """Release mean and scale of outcomes from 0 to `high`, as parts of that.

    A histogram of sizes by octave, and a sum up to the last octave in which rows are detected. What
    lies beyond a clip has outcomes on one side of the mean (docs/theory/marginals.md, Lemma 22;
    docs/theory/mechanisms.md, Lemma 13).
    """
    share, n_rows = rules.target_share(spending.regime) / 2, spending.regime.n_rows
    bounds = representable(np.array([[0.0, high]]))
    columns = Columns(partial(rows.target_total, as_column), bounds, np.arange(1))
    counts, noise = release_histograms(
        spending.accountant,
        columns.by_octave(np.array([-1.0])),
        cost=spending.share(share),
        purpose=f"target: {DISTANCES}",
    )
    sizes = Distances(counts, np.full((1, 1), noise), n_rows)
    found = sizes.detected[0]
    last = np.append(len(found) - 1, np.flatnonzero(found))[-1]  # the bound, if none is detected
    clip = float(_ENDS[max(int(last) - len(_ENDS) - 1, 0)]) / 2
    total = rows.target_total(clipped_total, high, clip)
    noisy, noise = spending.release_sum(
        int(total[0]),
        most=LEVELS,
        bound=1.0,
        cost=spending.share(share),
        purpose="target: mean",
    )
    mean = clip * max(noisy, noise, 1.0) / n_rows
    square = max(float(found @ _SQUARES) / n_rows / 4 - mean**2, mean**2 / 4)
    residual = min(_rounded(np.sqrt(np.array(square))).item() or FINEST, 1.0)
    spread = 2 * float(sizes.scales()[0])
    point_mass = bool(sizes.mostly_near(np.array([POINT_MASS * spread / 2]))[0])
    return TargetMarginal(
        0.0,
        LOG_ODDS,
        LOG_ODDS,
        point_mass,
        start=float(family.link(np.array(min(mean, 1.0)))),
        residual=residual,
    )


def clipped_total(y: Array, high: float, clip: float) -> Integers:
    """Return the sum of targets as parts of `high`, clipped, in whole numbers of clip/2^14."""
    parts = np.minimum(np.clip(y, 0.0, high) / high / clip, 1.0)
    return np.array([np.trunc(parts * LEVELS).astype(np.int64).sum()], dtype=np.int64)


def count_of_ones(y: Array) -> Integers:
    """Return how many outcomes are 1."""
    return np.array([np.count_nonzero(y == 1)], dtype=np.int64)


# --- the features ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Marginals:
    """Centres, scales and clipping ranges of the features, in the user's units.

    `two` are columns declared with two values, unless their mean square shows others; `constant`
    those that do not vary as far as is detected. `distances` are those of the `numeric` columns.
    One that is clipped to its declared bounds alone is `whole`.
    """

    declared: Array
    centres: Array
    scales: Array
    ranges: Array
    two: Mask
    constant: Mask
    numeric: Integers
    distances: Distances | None = None
    whole: int | None = None

    @classmethod
    def declared_only(cls, declared: Array, whole: int | None = None) -> Marginals:
        """Return what is public: the middles of the bounds, and half of their half-widths."""
        inside = ColumnMap.of_bounds(declared)
        scales, none = rules.UNKNOWN_SCALE * inside.half_widths, np.zeros(len(declared), dtype=bool)
        two, nothing = is_yes_no(declared), np.zeros(0, dtype=np.int64)
        columns = declared, inside.centres, scales, declared, two, none, nothing
        return cls(*columns, whole=whole)

    def within(self, reach: float) -> Array:
        """Return ranges of so many scales about the centres, inside the declared bounds.

        Of constant columns, that of an offset, and where the bounds are a few floats wide, these
        stay.
        """
        low, high = self.declared.T
        lower = np.maximum(low, self.centres - reach * self.scales)
        upper = np.minimum(high, self.centres + reach * self.scales)
        narrow = (lower < upper) & ~self.constant & (np.arange(len(low)) != self.whole)
        return np.where(narrow[:, None], np.stack((lower, upper), axis=1), self.declared)

    @property
    def at_ends(self) -> tuple[tuple[int, str], ...]:
        """Return features whose rows share one value, and the end of the bounds at which that is.

        Rows beyond an end are clipped to it. A rare level is no sign of careless bounds, nor is a
        number that is mostly 0 where its bounds begin; a level that all rows have is.
        """
        inside = ColumnMap.of_bounds(self.declared)
        off = (self.centres - inside.centres) / inside.half_widths
        at_end = np.abs(off) > 1 - AT_END
        noted = self.constant & np.where(is_yes_no(self.declared), at_end & (off > 0), True)
        if self.distances is not None:
            mass = self.distances.mostly_near(POINT_MASS * self.distances.scales())
            zero = (off < 0) & (self.declared[:, 0] == 0)
            noted[self.numeric] |= mass & (at_end & ~zero)[self.numeric]
        ends = np.where(~at_end, NEITHER, np.where(off > 0, "upper", "lower")).tolist()
        return tuple((j, ends[j]) for j in np.flatnonzero(noted).tolist())

    def kept(self, longest: float) -> Array:
        """Return the part of each scale that is left if rows are clipped to so many scales."""
        left = np.ones(len(self.declared))
        half_widths = ColumnMap.of_bounds(self.declared).half_widths
        left[self.two] = kept_of_level((self.scales / half_widths)[self.two] / 2, longest)
        if self.distances is not None:
            rows = self.distances.detected
            square = np.maximum(rows @ _SQUARES, 1e-300)
            most = longest**2 * square[:, None] / np.maximum(rows.sum(axis=1, keepdims=True), 1.0)
            cut = (rows * np.minimum(_SQUARES, most)).sum(axis=1)
            left[self.numeric] = np.where(square > 1e-300, np.sqrt(cut / square), 1.0)
        return np.where(self.constant & ~self.two, 1.0, left)


def kept_of_level(scale: Array, longest: float) -> Array:
    """Return which part of the scale of 0 and 1 is left if no distance is so many of it.

    Rows of a level that a share p has are √(1/p − 1) scales from the mean
    (docs/theory/tables.md, Lemma 36).
    """
    rare = np.maximum((1 - np.sqrt(np.maximum(1 - 4 * scale**2, 0.0))) / 2, 1e-12)
    cut = rare * np.minimum(1 / rare - 1, longest**2)
    return np.asarray(np.sqrt(cut + (1 - rare) * np.minimum(rare / (1 - rare), longest**2)))


def release_marginals(
    spending: Spending,
    rows: RowSource,
    declared: Array,
    choices: Choices,
    *,
    even: bool = False,
) -> Marginals | None:
    """Release centres, scales and clipping ranges of features; None: the bounds are all there is.

    `even` says that bounds which are even about zero declare columns about zero
    (docs/theory/marginals.md, Lemma 22).
    """
    auto = choices.standardize == "auto"
    if not choices.standardize or rows.keeps_zero or (auto and choices.row_norm is not None):
        return None
    declared = representable(declared)
    regime, found = spending.regime, Marginals.declared_only(declared, choices.offset)
    numeric, binary = np.flatnonzero(~found.two), np.flatnonzero(found.two)
    located = numeric.size > 0 and (not auto or regime.counts(len(numeric)) >= rules.LEAST_COUNTS)
    if not located and not binary.size:
        return None
    needed = 10 * len(binary) / (regime.n_rows**2 * regime.rho)
    share, measured = clamp(needed, 0.01, 0.1), binary
    centres, scales = found.centres.copy(), found.scales.copy()
    two, constant = found.two.copy(), found.constant.copy()
    if located:
        part = rules.marginals_share(regime, len(numeric))
        if regime.counts(len(numeric)) >= rules.MOMENT_COUNTS:
            share, measured = part / 3, np.concatenate((numeric, binary))
            part -= share
        columns = Columns(rows.feature_total, declared, numeric)
        about_zero = even and bool((declared[numeric, 0] == -declared[numeric, 1]).all())
        _, distances, at, sizes = columns.locate(spending, part, "features", about_zero=about_zero)
        inside = ColumnMap.of_bounds(declared, numeric)
        at = inside.centres + inside.half_widths * at
        centres[numeric] = np.clip(at, inside.low, inside.high)  # rounding may lead out of them
        scales[numeric] = inside.half_widths * sizes
        constant[numeric] = distances.constant
        found = replace(found, centres=centres, scales=scales, constant=constant)
        ranges = declared.copy()
        ranges[numeric] = found.within(clamp(regime.counts(len(numeric)) / 12, 2.0, 7.0))[numeric]
        found = replace(found, ranges=ranges, numeric=numeric, distances=distances)
    if not measured.size:
        return found

    # Means and mean squares inside the clipping ranges, where variances are detected. Of columns
    # declared with two values nothing else is known, so that these are used anyway.
    halved = found.two[measured]
    weights = np.where(halved, 1, 2)
    sums, change = centred_moments(rows, found.ranges, measured, weights)
    noisy, noise = release_sums(
        spending.accountant,
        sums,
        units_per_one=2 * LEVELS,
        change=change,
        cost=spending.share(share),
        purpose="features: means and mean squares",
    )
    means, variances, two[measured], detected = read_moments(noisy, noise, regime.n_rows, halved)
    inside, known = ColumnMap.of_bounds(found.ranges, measured), halved | detected
    at = np.clip(inside.centres + inside.half_widths * means, inside.low, inside.high)
    centres[measured[known]] = at[known]
    scales[measured[known]] = (inside.half_widths * np.sqrt(variances))[known]
    constant[measured] |= two[measured] & ~detected
    return replace(found, centres=centres, scales=scales, two=two, constant=constant)


def centred_moments(
    rows: RowSource, bounds: Array, chosen: Integers, weights: Integers
) -> tuple[Integers, float]:
    """Return Σv and Σ(v² − ½) of the chosen columns, and how far one row moves them in L2.

    v is the cell in units in which its clip bounds are −1 and 1. Sums are in 1/2^15: half of both
    if the weight is 1, and else it is 2 (docs/theory/marginals.md, Lemma 22).
    """
    first, second = rows.feature_total(level_moments, ColumnMap.of_bounds(bounds, chosen))
    n_halved = int((weights == 1).sum())
    change = math.sqrt(1.25 * (len(weights) - n_halved) + 0.3125 * n_halved)
    centred = second - LEVELS // 2 * rows.n_rows
    return np.concatenate((weights * first, weights * centred)), change


def read_moments(
    sums: Array, noise: float, n_rows: int, binary: Mask
) -> tuple[Array, Array, Mask, Mask]:
    """Return means and variances of columns in [−1, 1] from released `centred_moments`.

    Also return which of the columns declared `binary` have no other values, as far as is detected,
    and which variances are detected. The expected share of their noise is taken off the means. No
    variance is less than the noise of one at an end of the bounds.
    """
    halves, noises = np.where(binary, 2.0, 1.0), 2 * noise / n_rows / np.where(binary, 1, 2)
    first, second = (halves * one for one in np.split(sums / n_rows, 2))
    means = np.clip(first * (1 - (noises / np.maximum(np.abs(first), noises)) ** 2), -1, 1)
    squares = second + 0.5
    two = binary & (1 - squares < DETECTED * (noises * np.sqrt(1 + 4 * means**2)))
    variances = np.where(two, 1 - means**2, squares - means**2)
    least = np.clip(2 * noises, rules.LEAST_VARIANCE, 1)
    detected = variances > np.minimum(6 * noises, rules.RARE)
    return means, np.clip(variances, least, 1), two, detected


# --- rows on the lattice --------------------------------------------------------------------------


def standardise(
    spending: Spending,
    rows: RowSource,
    bounds: tuple[Array, Array],
    choices: Choices,
    *,
    family: Family = GAUSSIAN,
) -> tuple[Task, PublicUnits]:
    """Release marginals of target and features, and put the rows on the lattice.

    `bounds` are the declared ones of the features and of the target.
    """
    even = choices.standardize == "auto"
    target = release_target(spending, rows, bounds[1], family=family, even=even)
    found = release_marginals(spending, rows, bounds[0], choices, even=even)
    if found is None:
        declared = bounds[0], None
        task, units = _on_lattice(spending, rows, declared, bounds[1], target, choices, family)
        return replace(task, spread=_release_spread(spending, task.design)), units

    # Half-widths are R·scale, no less than ranges: R is the most scales from a centre to an end.
    low, high = found.ranges.T
    reach = np.maximum(high - found.centres, found.centres - low)
    varying = ~found.constant & (np.arange(len(reach)) != found.whole)
    largest = float((reach / found.scales)[varying].max(initial=1.0))
    ratio = clamp(largest, 1.0, rules.MOST_RATIO)
    features = found.ranges, np.stack((found.centres, np.maximum(ratio * found.scales, reach)), 1)
    task, units = _on_lattice(spending, rows, features, bounds[1], target, choices, family)
    narrowed = bool((found.ranges != bounds[0]).any())
    task = replace(task, spread=1 / ratio, at_ends=found.at_ends, narrowed=narrowed)
    return replace(task, marginals=found), units


def _on_lattice(
    spending: Spending,
    rows: RowSource,
    features: tuple[Array, Array | None],
    target_bounds: Array,
    target: TargetMarginal,
    choices: Choices,
    family: Family,
    *,
    nearest: bool = False,
) -> tuple[Task, PublicUnits]:
    """Return the task of rows on the lattice, and their units: `features` are ranges and places."""
    target_unit, predictor_at = family.target_units(float(target_bounds[1]))
    units = PublicUnits(
        features[0],
        representable(target_bounds),
        constant=choices.intercept,
        loss=family.loss,
        features_at=features[1],
        target_at=target.centre,
        nearest=nearest,
        target_unit=target_unit,
        predictor_at=predictor_at,
    )
    task = Task(
        spending,
        rows.lattice(units),
        target.scale,
        1.0,
        choices,
        point_mass=target.point_mass,
        asymmetry=target.asymmetry,
        family=family,
        start=target.start,
        residual=target.residual,
        offset_weight=(
            0.0 if choices.offset is None else float(units.feature_half_widths[choices.offset])
        ),
    )
    return task, units


def _release_spread(spending: Spending, design: ExactDesign) -> float:
    """Release the features' root mean square; Σ_j x_ij²/d is at most 1 in each row.

    (docs/theory/mechanisms.md, Lemma 13)
    """
    n_rows = spending.regime.n_rows
    if 40 / math.sqrt(2 * rules.SPREAD_SHARE * spending.regime.rho) > n_rows:
        return rules.UNKNOWN_SPREAD
    d = spending.regime.n_features
    noisy, _ = spending.release_sum(
        whole_sum(design.column_squares()[:d]),
        most=d * UNITS,
        bound=1.0,
        cost=spending.share(rules.SPREAD_SHARE),
        purpose="features: mean square of all",
    )
    return math.sqrt(clamp(noisy / n_rows, 0.01, 0.5))


def end_of_target(task: Task, units: PublicUnits) -> str | None:
    """Return at which end of its declared bounds most of the target lies, if at one.

    Rows beyond an end are clipped to it, so most must share one value there.
    """
    low, high = units.target_bounds
    half, off = high / 2 - low / 2, units.target_centre - low / 2 - high / 2
    point = task.point_mass or task.deviation < SMALL_TARGET * half
    if abs(off) <= (1 - AT_END) * half or not point or task.family.in_parts:
        return None
    return "upper" if off > 0 else "lower"


@dataclass(frozen=True, eq=False)
class WideTask:
    """Rows on the lattice for a table, with wide clipping ranges, and the scales of the features.

    A narrow range biases slopes, which a table must not. `left` is the part of a scale that is left
    where rows are norm-clipped; `constant` are features that do not vary as far as is detected.
    """

    task: Task
    units: PublicUnits
    scales: Array
    left: Array
    constant: Mask
    rows: RowSource

    @cached_property
    def single(self) -> ExactDesign:
        """Return one row of each unit on the lattice: all rows, if each counts."""
        whole = self.rows.owners is None
        return self.task.design if whole else self.rows.singles.lattice(self.units)


def standardise_widely(
    spending: Spending,
    rows: RowSource,
    bounds: tuple[Array, Array],
    choices: Choices,
    *,
    family: Family = GAUSSIAN,
    known: tuple[Marginals | None, TargetMarginal | None] = (None, None),
    n_columns: int | None = None,
) -> WideTask:
    """Release marginals, unless they are known, and put rows on the lattice for a table.

    The table has so many columns, or all features. Rows beside a point mass of the target may be
    all that determines a coefficient, detected or not, so its scale is that of all rows. Where
    units count, marginals are those of one row of each (docs/theory/mechanisms.md, Lemma 89).
    """
    found, target = known
    singles = rows.singles
    if target is None:
        target = release_target(spending, singles, bounds[1], family=family)
        target = replace(target, scale=target.spread)
    if found is None:
        found = release_marginals(spending, singles, bounds[0], choices)
    longest = math.sqrt(SQUARED_NORM * ((n_columns or len(bounds[0])) + choices.intercept))
    if found is None:
        found = Marginals.declared_only(representable(bounds[0]))
        ranges, left = found.declared, np.ones(len(bounds[0]))
    else:
        ranges, left = found.within(TABLE_RANGE), found.kept(longest)
    reach = np.maximum(ranges[:, 1] - found.centres, found.centres - ranges[:, 0])
    places = ranges, np.stack((found.centres, reach), axis=1)
    nearest = bool(choices.standardize) and not rows.keeps_zero
    task, units = _on_lattice(
        spending, rows, places, bounds[1], target, choices, family, nearest=nearest
    )
    task = replace(task, at_ends=found.at_ends)
    return WideTask(task, units, found.scales, left, found.constant, rows)
