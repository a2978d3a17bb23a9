"""Where columns lie, from noisy histograms: centres and scales by normal templates, then a zoom.

Everything here is made from released counts (Lemma 7); no function sees a row.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache
from itertools import product

import numpy as np
from scipy.special import ndtr

from dpscreen._core.arrays import Array, Integers, Mask
from dpscreen.solvers import rules

Look = Callable[[Integers, Array, Array], tuple[Array, float]]
"""Columns, middles and half-widths of windows to noisy histograms, a row each, and their noise."""

LogPrior = Callable[[Array, Array], Array]
"""Centres and log-scales to the logarithm of how likely they are, up to a constant."""

MISFIT = 0.01
"""By how much columns differ from templates, as a share of the rows."""

LOG_SCALE_ERROR = 0.15
"""Of a template that fits."""

FINEST = 2.0**-20

STANDS_OUT = 3.0
"""How many noises the count of a cell needs to be seen, alone or with its neighbours."""

NEIGHBOURS = 4
"""How many cells may stand out of the noise together."""

POINT = 0.8 / rules.HISTOGRAM_CELLS
"""The scale, in half-widths of a window, up to which a column looks like a point: 0.4 cells."""

POINT_SHARES = (0.8, 1.0)
"""Which share of the rows lies in one cell, where a column is a point for the most."""

SPLITS = (0.25, 0.5, 0.75)
"""Which part of a point may lie on this side of an edge."""

POINT_CHANCE = 0.5
"""That a column is one, before anything is seen of it."""


@dataclass(frozen=True, eq=False)
class Belief:
    """What is known of columns: mean and variance of their centres and of their log-scales.

    Of scales below one cell, the logarithm of which is `log_cell`, the last look told nothing.
    """

    centre: Array
    centre_variance: Array
    log_scale: Array
    log_scale_variance: Array
    log_cell: Array

    def part(self, chosen: Integers) -> Belief:
        """Return what is known of some columns."""
        return Belief(*(getattr(self, field.name)[chosen] for field in fields(self)))

    def log_density(self, centres: Array, log_scales: Array) -> Array:
        """Return the logarithm of a normal density, up to a constant."""
        return self._log_density(centres, log_scales, self.log_scale)

    def loose_log_density(self, centres: Array, log_scales: Array) -> Array:
        """Return the same, but flat below a cell: else every look makes scales too large."""
        known = np.maximum(self.log_scale, self.log_cell)
        return self._log_density(centres, np.maximum(log_scales, self.log_cell[:, None]), known)

    def _log_density(self, centres: Array, log_scales: Array, known: Array) -> Array:
        off = (centres - self.centre[:, None]) ** 2 / self.centre_variance[:, None]
        wide = (log_scales - known[:, None]) ** 2 / self.log_scale_variance[:, None]
        return np.asarray(-0.5 * (off + wide))

    @property
    def close(self) -> bool:
        """Whether centres are known well enough."""
        shares = np.minimum(self.centre_variance / np.exp(2 * self.log_scale), 1)
        return float(np.mean(shares)) < rules.CLOSE

    @property
    def common_scale(self) -> float:
        """Return one scale for all, from the middle of their bounds."""
        squares = np.exp(2 * self.log_scale) + self.centre_variance + self.centre**2
        return float(np.clip(_rounded(np.sqrt(np.mean(squares))), FINEST, 1))

    @property
    def window(self) -> tuple[Array, Array]:
        """Return where to look next."""
        reach = 4 * np.sqrt(np.exp(2 * self.log_scale) + 2 * self.centre_variance)
        return _rounded(self.centre), np.clip(_rounded(reach), FINEST, 1.2)


@dataclass(frozen=True, eq=False)
class Glimpse:
    """What the last look told of columns.

    A column is `resolved` unless most of its rows seem to lie in one cell, or at an edge of two.
    """

    belief: Belief
    resolved: Mask

    def part(self, chosen: Integers) -> Glimpse:
        """Return what is known of some columns."""
        return Glimpse(self.belief.part(chosen), self.resolved[chosen])

    @property
    def done(self) -> bool:
        """Whether nothing more can be found."""
        return self.resolved.size == 0 or (self.belief.close and bool(self.resolved.all()))


@dataclass(frozen=True, eq=False)
class Sighting:
    """Where columns seem to lie, in units in which their bounds are −1 and 1.

    Those `found` have a centre and a scale of their own, in the order of the `view`; all others fit
    their bounds, which should stay, and have one `common_scale`. `points` tells for every column
    whether it looked like one at the last look.
    """

    found: Integers
    view: Glimpse
    common_scale: float
    points: Mask

    @property
    def centres(self) -> Array:
        """Return the centres of those found."""
        return _rounded(np.clip(self.view.belief.centre, -1, 1))

    @property
    def scales(self) -> Array:
        """Return the scales of those found."""
        belief = self.view.belief
        scales = np.sqrt(np.exp(2 * belief.log_scale) + belief.centre_variance)
        return np.maximum(_rounded(scales), FINEST)


@dataclass(frozen=True, eq=False)
class Templates:
    """Normal columns in a window from −1 to 1: centres, scales, and the shares of the cells."""

    centres: Array
    scales: Array
    shares: Array


@cache
def templates() -> Templates:
    """Return all templates."""
    cells = rules.HISTOGRAM_CELLS
    edges = np.linspace(-1, 1, cells + 1)
    edges[0], edges[-1] = -np.inf, np.inf
    grid = np.meshgrid(
        np.linspace(-1, 1, 2 * cells + 1),
        np.exp(np.linspace(math.log(0.4 / cells), 0, 14)),
        indexing="ij",
    )
    centres, scales = (axis.ravel() for axis in grid)
    below = ndtr((edges - centres[:, None]) / scales[:, None])
    return Templates(centres, scales, np.diff(below, axis=1))


@cache
def point_shares(splits: tuple[float, ...] = ()) -> Array:
    """Return the shares of the cells where most rows lie in one of them, or at an edge of two.

    So do those of a column that is far narrower than a cell.
    """
    cells = rules.HISTOGRAM_CELLS
    one, next_one = np.eye(cells), np.eye(cells, k=1)[:-1]
    split = [part * one[:-1] + (1 - part) * next_one for part in splits]
    places = np.concatenate((one, *split))
    return np.concatenate([share * places + (1 - share) / cells for share in POINT_SHARES])


def sighted(look: Look, n_columns: int, *, n_rows: int, n_looks: int, patient: bool) -> Sighting:
    """Return where columns lie, after as many looks as it takes, `n_looks` at most.

    If it is likelier than not after the first that they fit their bounds, there is nothing to find
    but where those lie that look like points, or, with patience, narrower than a cell: a look does
    not tell by how much. With few rows what all columns have in common tells more.
    """
    splits = SPLITS if patient else ()
    found, windows = np.arange(n_columns), (np.zeros(n_columns), np.ones(n_columns))
    fits = _fits(*look(found, *windows), n_rows, splits)
    habits = _habit_chances(fits)
    view = _viewed(fits, windows, lambda *_: np.log(np.exp(_priors()) @ habits + 1e-300)[None, :])
    scale, points = view.belief.common_scale, ~view.resolved
    if habits[FITTING].sum() > 0.5:
        narrow = points | (view.belief.log_scale < view.belief.log_cell)
        found = np.flatnonzero(narrow if patient else points)
        view = view.part(found)
    for _ in range(n_looks - 1):
        if view.done:
            break
        known, windows = view.belief, view.belief.window
        fits = _fits(*look(found, *windows), n_rows, splits)
        view = _viewed(fits, windows, known.loose_log_density if patient else known.log_density)
    points[found] = ~view.resolved
    return Sighting(found, view, scale, points)


def _rounded(values: Array) -> Array:
    """Return multiples of 2^−20: exponentials differ in their last bits between machines."""
    return np.rint(values / FINEST) * FINEST


@dataclass(frozen=True, eq=False)
class Fits:
    """What a look says of every template, and of points: log-likelihoods up to a constant.

    A point is as likely in one cell as in another.
    """

    templates: Array
    point: Array


def _fits(counts: Array, noise: float, n_rows: int, splits: tuple[float, ...]) -> Fits:
    points = point_shares(splits)
    logs = _log_fits(counts, noise, n_rows, points)
    return Fits(
        _log_fits(counts, noise, n_rows, templates().shares),
        point=_log_sum(logs) - math.log(len(points)),
    )


def _log_fits(counts: Array, noise: float, n_rows: int, shares: Array) -> Array:
    """Return the log-likelihood of shares of the cells for every column, up to a constant."""
    squares = 0.5 * (shares**2).sum(axis=1)
    error = noise**2 + (MISFIT * n_rows) ** 2
    return np.asarray((n_rows * (counts @ shares.T) - n_rows**2 * squares) / error)


def _log_sum(logs: Array) -> Array:
    """Return log Σ e^x of every row, as a column."""
    top = logs.max(axis=1, keepdims=True)
    return np.asarray(top + np.log(np.exp(logs - top).sum(axis=1, keepdims=True)))


def _viewed(fits: Fits, windows: tuple[Array, Array], log_prior: LogPrior) -> Glimpse:
    """Return the posterior of a look at windows.

    A column is one point if that is likelier than all templates that are wider, or if the posterior
    is not wider than a point itself.
    """
    known, (middles, half_widths) = templates(), windows
    centres = middles[:, None] + half_widths[:, None] * known.centres
    log_scales = np.log(half_widths)[:, None] + np.log(known.scales)
    prior = log_prior(centres, log_scales)
    logs = fits.templates + prior
    wide = known.scales > POINT
    evidence = _log_sum(logs[:, wide]) - _log_sum(prior[:, wide])
    belief = _posterior(np.exp(logs - _log_sum(logs)), centres, log_scales, half_widths)
    resolved = (evidence > fits.point)[:, 0] & (belief.log_scale > np.log(POINT * half_widths))
    return Glimpse(belief, resolved)


def _posterior(chances: Array, centres: Array, log_scales: Array, half_widths: Array) -> Belief:
    centre, log_scale = (chances * centres).sum(axis=1), (chances * log_scales).sum(axis=1)
    off = (chances * (centres - centre[:, None]) ** 2).sum(axis=1)
    wide = (chances * (log_scales - log_scale[:, None]) ** 2).sum(axis=1)
    rounding = (half_widths / rules.HISTOGRAM_CELLS) ** 2 / 12
    log_cell = np.log(2 * half_widths / rules.HISTOGRAM_CELLS)
    return Belief(centre, off + rounding, log_scale, wide + LOG_SCALE_ERROR**2, log_cell)


HABITS = tuple(product((0.02, 0.05, 0.1, 0.2, 0.35), (0.2, 0.5, 1.2), (0.03, 0.15, 0.5)))
"""How wide columns may be, how alike in that, and how near to the middle of their bounds."""

FITTING = np.array([width >= 0.2 and centred <= 0.15 for width, _, centred in HABITS])
"""Habits for which bounds are as wide as they should be, and columns in their middle."""


def _habit_chances(fits: Fits) -> Array:
    """Return how likely every habit is, which all columns share; points have none."""
    top = np.maximum(fits.templates.max(axis=1, keepdims=True), fits.point)
    wide = templates().scales > POINT
    priors = np.exp(_priors()[wide])
    spread = np.exp(fits.templates[:, wide] - top) @ (priors / priors.sum(axis=0))
    likely = (1 - POINT_CHANCE) * spread + POINT_CHANCE * np.exp(fits.point - top)
    evidence = np.log(likely + 1e-300).sum(axis=0)
    chances = np.exp(evidence - evidence.max())
    return np.asarray(chances / chances.sum())


@cache
def _priors() -> Array:
    """Return the log-prior of every template, a column for each habit."""
    known = templates()
    found = [
        -0.5 * ((np.log(known.scales) - math.log(width)) / alike) ** 2
        - 0.5 * (known.centres / centred) ** 2
        for width, alike, centred in HABITS
    ]
    log_priors = np.stack(found, axis=1)
    return np.asarray(log_priors - np.log(np.exp(log_priors).sum(axis=0)))


EXPONENTS = np.arange(-20, 2)
OCTAVES: Array = np.exp2(EXPONENTS)
"""Distances from a centre that are told apart, in half-widths of the declared bounds."""

_ENDS = np.minimum(2 * OCTAVES, 2.0)


def pooled_scale(counts: Array, noise: float, n_rows: int) -> float:
    """Return the likely root mean square of cells about zero, from noisy counts by octaves.

    The first count is of what is nearer than the first octave. Normal laws and Laplace's are
    thought of; before anything is seen a third of the bounds is likely, by a factor of √2, but a
    thousandth is not out of the question: bounds may be far too wide.
    """
    octaves = np.tile(np.arange(-12, 0.25, 0.25), 2)
    edges = np.append(OCTAVES[:-1], np.inf) / np.exp2(octaves)[:, None]
    normal, laplace = np.split(edges, 2)
    within = np.concatenate((2 * ndtr(normal) - 1, -np.expm1(-math.sqrt(2) * laplace)))
    shares = np.diff(within, prepend=0.0, append=1.0, axis=1)
    away = octaves - math.log2(rules.UNKNOWN_SPREAD)
    likely = -4.5 * np.log1p(away**2 / 2)  # a t law with 8 degrees of freedom
    logs = likely + _log_fits(counts[None, :], noise, n_rows, shares)
    chances = np.exp(logs - _log_sum(logs))[0]
    return float(_rounded(np.exp2(chances @ octaves)))


@dataclass(frozen=True, eq=False)
class OffPoints:
    """Where rows lie that are elsewhere than at a column's point, if they are seen.

    The columns' means from there, their scales and how far bounds reach, in half-widths.
    """

    seen: Mask
    means: Array
    scales: Array
    reaches: Array

    @classmethod
    def of(cls, counts: Array, noise: float, n_rows: int, points: Belief) -> OffPoints:
        """Return what noisy counts by octaves tell, below the points and above.

        Bounds reach as far beyond the rows that are seen as beyond a tail. Farther out a slope that
        is measured where rows are would be drawn on for rows that count for little in it.
        """
        sides = counts[:, len(OCTAVES) - 1 :: -1], counts[:, len(OCTAVES) + 1 :]
        centres = _rounded(np.clip(points.centre, -1, 1))
        left, right = (
            _clear_rows(side, noise, room, points.log_cell)
            for side, room in zip(sides, (1 + centres, 1 - centres), strict=True)
        )
        means = _rounded((right - left) @ (OCTAVES + _ENDS) / 2 / n_rows)
        squares = (right + left) @ (OCTAVES**2 + OCTAVES * _ENDS + _ENDS**2) / 3 / n_rows
        scales = np.maximum(_rounded(np.sqrt(np.maximum(squares - means**2, 0.0))), FINEST)
        farthest = ((right + left > 0) * _ENDS).max(axis=1)
        return cls(farthest > 0, means, scales, rules.TAIL_REACH * farthest)


def _clear_rows(counts: Array, noise: float, room: Array, log_cell: Array) -> Array:
    """Return the counts of those neighbours on one side that are clearest, 0 for all others.

    All are 0 if these do not stand out of the noise. What is within a cell of the last look may be
    the point itself, and beyond the declared bounds there is `room` for nothing.
    """
    not_near = np.log(OCTAVES) > log_cell[:, None] - 1e-9  # the same whatever the last bits
    cells = np.where(not_near & (room[:, None] >= OCTAVES), counts, 0.0)
    clear = stand_out(cells, noise, rules.CLEAR) & onward(cells, noise)
    return np.where(clear, np.maximum(cells, 0.0), 0.0)


def stand_out(counts: Array, noise: float, noises: float = STANDS_OUT) -> Mask:
    """Return which cells are among a few neighbours whose sum is so many times its noise."""
    found = np.zeros(counts.shape, dtype=bool)
    for size in range(1, NEIGHBOURS + 1):
        sums = np.lib.stride_tricks.sliding_window_view(counts, size, axis=1).sum(axis=2)
        clear = sums >= noises * math.sqrt(size) * noise
        for place in range(size):
            found[:, place : place + clear.shape[1]] |= clear
    return found


def onward(counts: Array, noise: float, noises: float = STANDS_OUT) -> Mask:
    """Return which cells begin a few neighbours, later ones, whose sum stands out of its noise."""
    found = np.zeros(counts.shape, dtype=bool)
    for size in range(1, NEIGHBOURS + 1):
        sums = np.lib.stride_tricks.sliding_window_view(counts, size, axis=1).sum(axis=2)
        found[:, : sums.shape[1]] |= sums >= noises * math.sqrt(size) * noise
    return found


def last_seen(counts: Array, noise: float, noises: float | Array) -> int | None:
    """Return the last cell that stands out of its noise together with all beyond it, or None."""
    beyond = np.cumsum(counts[::-1])[::-1]
    clear = beyond >= noises * noise * np.sqrt(np.arange(len(counts), 0, -1))
    return int(np.flatnonzero(clear)[-1]) if clear.any() else None
