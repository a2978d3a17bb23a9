"""Where columns lie, from noisy histograms: centres and scales by normal templates, then a zoom.

Everything here is made from released counts (Lemma 7); no function sees a row.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
from scipy.special import ndtr

from dpscreen._core.arrays import Array, Mask
from dpscreen.solvers import rules

Look = Callable[[Array, Array], tuple[Array, float]]
"""Middles and half-widths of windows to noisy histograms, a row each, and their noise."""

MISFIT = 0.01
"""By how much columns differ from templates, as a share of the rows."""

LOG_SCALE_ERROR = 0.15
"""Of a template that fits."""

FINEST = 2.0**-20


@dataclass(frozen=True, eq=False)
class Belief:
    """What is known of every column: mean and variance of its centre and of its log-scale."""

    centre: Array
    centre_variance: Array
    log_scale: Array
    log_scale_variance: Array

    def log_density(self, centres: Array, log_scales: Array) -> Array:
        """Return the logarithm of a normal density, up to a constant."""
        off = (centres - self.centre[:, None]) ** 2 / self.centre_variance[:, None]
        wide = (log_scales - self.log_scale[:, None]) ** 2 / self.log_scale_variance[:, None]
        return np.asarray(-0.5 * (off + wide))

    @property
    def close(self) -> bool:
        """Whether centres are known well enough."""
        shares = np.minimum(self.centre_variance / np.exp(2 * self.log_scale), 1)
        return float(np.mean(shares)) < rules.CLOSE

    @property
    def as_declared(self) -> Sighting:
        """Return all columns in the middle of their bounds, with one scale: there they fit."""
        squares = np.exp(2 * self.log_scale) + self.centre_variance + self.centre**2
        scale = np.clip(_rounded(np.sqrt(np.mean(squares))), FINEST, 1)
        nothing = np.zeros(len(squares))
        resolved = np.ones(len(squares), dtype=bool)
        return Sighting(nothing, nothing + scale, resolved, nothing, 0.0, as_declared=True)

    def sighting(self, resolved: Mask, outside: Array, noise: float) -> Sighting:
        """Return every column where it seems to be."""
        scales = np.sqrt(np.exp(2 * self.log_scale) + self.centre_variance)
        centres = _rounded(np.clip(self.centre, -1, 1))
        return Sighting(centres, np.maximum(_rounded(scales), FINEST), resolved, outside, noise)

    @property
    def window(self) -> tuple[Array, Array]:
        """Return where to look next."""
        reach = 4 * np.sqrt(np.exp(2 * self.log_scale) + 2 * self.centre_variance)
        return _rounded(self.centre), np.clip(_rounded(reach), FINEST, 1.2)


@dataclass(frozen=True, eq=False)
class Sighting:
    """Centres and scales of columns, in units in which their bounds are −1 and 1.

    `as_declared` says that all of them fit their bounds, which should stay. Where nearly all rows
    of a column seem to lie in one cell of the last look, its scale was not `resolved`; so many rows
    as `outside` seem to lie in other cells than the fullest, give or take the `noise`.
    """

    centres: Array
    scales: Array
    resolved: Mask
    outside: Array
    noise: float
    as_declared: bool = False


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
def points() -> Array:
    """Return the shares of the cells where most rows lie in one of them."""
    cells = rules.HISTOGRAM_CELLS
    found = [
        share * np.eye(cells) + (1 - share) / cells * np.ones((cells, cells))
        for share in rules.POINT_SHARES
    ]
    return np.concatenate(found)


def sighted(look: Look, n_columns: int, *, n_rows: int, n_looks: int) -> Sighting:
    """Return where columns lie, after as many looks as it takes, `n_looks` at most.

    If it is likelier than not after the first that they fit their bounds, there is nothing to find.
    """
    middles, half_widths = np.zeros(n_columns), np.ones(n_columns)
    belief: Belief | None = None
    for _ in range(n_looks):
        counts, noise = look(middles, half_widths)
        fits = _log_fits(counts, noise, n_rows, templates().shares)
        if belief is None and _habit_chances(fits)[FITTING].sum() > 0.5:
            return _updated(fits, middles, half_widths, None)[0].as_declared
        belief, evidence = _updated(fits, middles, half_widths, belief)
        resolved = evidence > _log_evidence_of_points(counts, noise, n_rows)
        resolved &= np.exp(belief.log_scale) > 2 * rules.POINT * half_widths / rules.HISTOGRAM_CELLS
        if belief.close and resolved.all():
            break
        middles, half_widths = belief.window
    assert belief is not None
    return belief.sighting(resolved, n_rows - counts.max(axis=1), noise)


def _rounded(values: Array) -> Array:
    """Return multiples of 2^−20: exponentials differ in their last bits between machines."""
    return np.rint(values / FINEST) * FINEST


def _log_fits(counts: Array, noise: float, n_rows: int, shares: Array) -> Array:
    """Return the log-likelihood of shares of the cells for every column, up to a constant."""
    squares = 0.5 * (shares**2).sum(axis=1)
    error = noise**2 + (MISFIT * n_rows) ** 2
    return np.asarray((n_rows * (counts @ shares.T) - n_rows**2 * squares) / error)


def _log_sum(logs: Array) -> Array:
    """Return log Σ e^x of every row, as a column."""
    top = logs.max(axis=1, keepdims=True)
    return np.asarray(top + np.log(np.exp(logs - top).sum(axis=1, keepdims=True)))


def _updated(
    fits: Array, middles: Array, half_widths: Array, before: Belief | None
) -> tuple[Belief, Array]:
    """Return the posterior of a look at windows, and how likely that look was, as a logarithm.

    The first look finds its own prior. What is likely leaves out templates as narrow as a point.
    """
    known = templates()
    centres = middles[:, None] + half_widths[:, None] * known.centres
    log_scales = np.log(half_widths)[:, None] + np.log(known.scales)
    if before is None:
        prior = np.log(np.exp(_priors()) @ _habit_chances(fits) + 1e-300)[None, :]
    else:
        prior = before.log_density(centres, log_scales)
    prior = prior - _log_sum(prior)
    fits = fits + prior
    wide = known.scales > 2 * rules.POINT / rules.HISTOGRAM_CELLS
    evidence = _log_sum(fits[:, wide]) - _log_sum(prior[:, wide])
    chances = np.exp(fits - _log_sum(fits))
    centre, log_scale = (chances * centres).sum(axis=1), (chances * log_scales).sum(axis=1)
    off = (chances * (centres - centre[:, None]) ** 2).sum(axis=1)
    unsure = (chances * (log_scales - log_scale[:, None]) ** 2).sum(axis=1)
    rounding = (half_widths / rules.HISTOGRAM_CELLS) ** 2 / 12
    belief = Belief(centre, off + rounding, log_scale, unsure + LOG_SCALE_ERROR**2)
    return belief, evidence[:, 0]


def _log_evidence_of_points(counts: Array, noise: float, n_rows: int) -> Array:
    """Return how likely a look was where most rows lie in one cell, as likely one as another."""
    fits = _log_fits(counts, noise, n_rows, points())
    return np.asarray((_log_sum(fits) - math.log(len(points())))[:, 0])


HABITS = tuple(product((0.02, 0.05, 0.1, 0.2, 0.35), (0.2, 0.5, 1.2), (0.03, 0.15, 0.5)))
"""How wide columns may be, how alike in that, and how near to the middle of their bounds."""

FITTING = np.array([width >= 0.2 and centred <= 0.15 for width, _, centred in HABITS])
"""Habits for which bounds are as wide as they should be, and columns in their middle."""


def _habit_chances(fits: Array) -> Array:
    """Return how likely every habit is, which all columns share, after their fits."""
    top = fits.max(axis=1, keepdims=True)
    evidence = np.log(np.exp(fits - top) @ np.exp(_priors()) + 1e-300).sum(axis=0)
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
