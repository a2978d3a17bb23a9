"""How good a model is, by its own account: noisy mean squares and a noisy histogram of residuals.

Paid for with a small share of the budget (docs/private-lasso.md, Lemmas 24 and 45).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpscreen._core.arrays import Array, Integers
from dpscreen._core.words import number
from dpscreen.privacy import ZCDP
from dpscreen.privacy.accountant import release_histograms
from dpscreen.rows.lattice import ExactDesign, ExactPoint
from dpscreen.rows.sums import LEVELS, whole_sum
from dpscreen.solvers import rules
from dpscreen.solvers.base import Spending
from dpscreen.solvers.zoom import stand_out

SIZES_CLIP = 16.0
"""Up to where sizes of residuals are told apart, in deviations of the target."""

WIDEST = 0.5
"""A wider interval tells nothing about R²."""

MOST_FAR = 0.1
"""If as many residuals may be larger than all sizes, their scale was noise, or that of a heap."""

MOST_MOVED = 0.5
"""If noise may move as many residuals from their sizes, there is nothing to tell of these."""

SIZES_PART, MEAN_PART = Fraction(1, 4), Fraction(1, 5)
"""Of the cost, for the sizes of residuals; of what the target's variation costs, for its mean."""

LEAST_INNER = 1 / 16
"""The least clip of residuals, in that of the target: a smaller one would lower no noise."""

MOST_UNEXPLAINED = 100.0
"""What is put for a share that has no upper end."""

CUT = "The intervals are for privacy noise alone."
LOST = "cannot be told from noise with these rows at this budget"

CELLS_PER_OCTAVE, OCTAVES = 4, 11
NORMAL_95, NORMAL_975 = 1.6448536269514722, 1.959963984540054


@dataclass(frozen=True)
class Quality:
    """R² and the typical error of a model, each with the interval of its privacy noise.

    The typical error is the root mean square of residuals that count as at most `clip`: 2.5
    deviations of the target, or further out with much signal or where sizes of residuals are still
    seen. So does the target for R². At most the share `beyond` is larger; where some are seen to
    be, the typical error has no upper end, `error_high` is infinite. All are NaN where noise hides
    R². `sizes` and `shares` tell which share of residuals is at most that size, or nothing: all 0.
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
    clip: float = math.nan
    beyond: float = math.nan

    @property
    def tells_r2(self) -> bool:
        """Whether the noise leaves anything to tell of R²."""
        return self.r2_high - self.r2_low <= WIDEST

    def without_noise(self) -> Quality:
        """Return the same with NaN in place of what is noise."""
        if self.tells_r2:
            return self
        names = ("r2", "r2_low", "r2_high", "typical_error", "error_low", "error_high")
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
        if not self.tells_r2:
            return f"R² and typical error {LOST}."
        where = "in-sample: on the rows of the fit" if self.in_sample else "on rows held out"
        r2 = f"R² {self.r2:.3f} ({self.r2_low:.3f} to {self.r2_high:.3f})"
        told = (self.typical_error, self.error_low, self.error_high)
        mid, low, high = (number(one, digits=4) for one in told)
        open_end = math.isinf(self.error_high)
        error = f"at least {low}" if open_end else f"{mid} ({low} to {high})"
        return f"{r2}, typical error {error}; {where}. {self._cut()}{CUT}"

    def _cut(self) -> str:
        if math.isnan(self.clip):
            return ""
        share = number(100 * self.beyond, digits=2)
        end = number(self.clip, digits=3)
        return (
            f"Both are of values cut at ±{end}, beyond which at most {share} % of residuals lie: "
            "with these as they are the typical error may be larger. "
        )


@dataclass(frozen=True)
class Deviations:
    """Of the residuals and of the target: where both are clipped alike follows from them."""

    residuals: float
    target: float


def release_quality(
    spending: Spending,
    design: ExactDesign,
    weights: Array,
    deviations: Deviations,
    *,
    cost: ZCDP,
    in_sample: bool,
) -> Quality:
    """Release mean squares of residuals and target, and a histogram of the residuals' sizes.

    (docs/private-lasso.md, Lemmas 24 and 45)
    """
    largest = float(np.abs(weights).max(initial=0.0))
    point = design.at(weights, scale=max(deviations.target, largest))
    sizes, noisy, noise = _release_sizes(spending, point, deviations, cost * SIZES_PART)
    factor = rules.quality_clip(spending.regime, float(cost))
    clips = Clips.of(sizes, noisy, noise, deviations, factor)
    costs = clips.costs(ZCDP(cost.rho - (cost * SIZES_PART).rho))
    left = _release_residuals(spending, point, clips, costs)
    whole = _release_variation(spending, design.start(1.0), clips.outer, costs.target)
    n_rows, count_noise = spending.regime.n_rows, spending.count_noise
    if noisy[-1] + NORMAL_95 * noise > MOST_FAR * n_rows:
        whole = replace(whole, value=0.0)
    shares = _shares(noisy, noise, n_rows)
    error = _error(*left, n_rows, count_noise)
    outer = noisy[np.append(sizes[:-1] > clips.outer, True)]  # the last cell has no end
    whole_cells = noisy[1:][sizes[:-1] >= clips.outer]
    beyond, off = max(float(outer.sum()), 0.0), NORMAL_95 * noise * math.sqrt(outer.size)
    seen = clips.outer >= sizes[-1] or float(whole_cells.sum()) > off
    return Quality(
        *_r2(*left, whole, count_noise),
        *(*error[:2], math.inf if seen else error[2]),
        in_sample,
        tuple(sizes.tolist()),
        tuple(shares.tolist()),
        clip=clips.outer,
        beyond=min((beyond + off) / n_rows, (error[2] / clips.outer) ** 2, 1.0),
    ).without_noise()


@dataclass(frozen=True)
class NoisySum:
    """A released sum, its own noise, and what it would be more if one row more had been counted."""

    value: float
    noise: float
    per_row: float

    def __add__(self, other: NoisySum) -> NoisySum:
        noise = math.hypot(self.noise, other.noise)
        return NoisySum(self.value + other.value, noise, self.per_row + other.per_row)

    def deviation(self, count_noise: float) -> float:
        """Return that of all noise."""
        return math.hypot(self.noise, self.per_row * count_noise)

    def mean(self, n_rows: int, count_noise: float) -> tuple[float, float]:
        """Return the sum over the number of rows, and its noise."""
        mean = self.value / n_rows
        return mean, math.hypot(self.noise, (self.per_row - mean) * count_noise) / n_rows


@dataclass(frozen=True)
class QualityCosts:
    """What the squares of residuals cost, inside their own clip and beyond, and the target's."""

    inner: ZCDP
    tail: ZCDP
    target: ZCDP


@dataclass(frozen=True)
class Clips:
    """Where residuals and target are clipped: alike, so that R² compares like with like.

    Few residuals lie beyond the `level`, in whole numbers of outer/2^14; these are summed apart.
    """

    outer: float
    level: int

    @classmethod
    def of(
        cls, sizes: Array, noisy: Array, noise: float, deviations: Deviations, factor: float
    ) -> Clips:
        """Return clips of so many deviations, of the target's and of the residuals'.

        Further out where sizes of residuals still stand out of their noise, as a deviation is a
        median's and says nothing of few large ones.
        """
        seen = float(sizes[stand_out(noisy[None, :], noise, rules.CLEAR)[0]].max(initial=0.0))
        inner = max(factor * deviations.residuals, seen)
        outer = max(factor * deviations.target, inner)
        return cls(outer, math.ceil(LEVELS * max(inner / outer, LEAST_INNER)))

    @property
    def part(self) -> Fraction:
        """Return which part of the largest square lies inside the level."""
        return Fraction(self.level, LEVELS) ** 2

    def costs(self, cost: ZCDP) -> QualityCosts:
        """Divide a cost as the noises enter R²: by what one row may change each sum.

        Where few residuals turn out to be large, the target's matters more than it seemed to.
        """
        target = max(self.part, Fraction(1, 2))
        inner, tail = (cost * (part / (1 + target)) for part in (self.part, 1 - self.part))
        return QualityCosts(inner, tail, ZCDP(cost.rho - inner.rho - tail.rho))


def _release_residuals(
    spending: Spending, point: ExactPoint, clips: Clips, costs: QualityCosts
) -> tuple[NoisySum, NoisySum]:
    """Release Σψ_s(r)² and Σ(ψ_c(r)² − ψ_s(r)²), for the smaller clip s and the larger one c.

    (docs/private-lasso.md, Lemma 45)
    """
    counts, squares = point.residual_counts(clips.outer), _squares()
    unit = (clips.outer / LEVELS) ** 2
    inner = np.minimum(squares, clips.level**2)
    small = _release_total(spending, counts, inner, unit, costs.inner, "squared residuals")
    if clips.level == LEVELS:
        return small, NoisySum(0.0, 0.0, 0.0)
    far = _release_total(spending, counts, squares - inner, unit, costs.tail, "far residuals")
    return small, far


def _squares() -> Integers:
    return np.arange(LEVELS + 1, dtype=np.int64) ** 2


def _release_total(
    spending: Spending, counts: Integers, values: Integers, unit: float, cost: ZCDP, purpose: str
) -> NoisySum:
    """Release the sum of a value for each row, none below 0, by the counts of rows of each value.

    A row's value less up to a half of the largest is smaller than the value; what that takes off in
    all is known as the number of rows is (docs/private-lasso.md, Lemma 45).
    """
    largest = int(values[-1])
    noise = 1 / math.sqrt(2 * float(cost))
    middle = math.floor(largest * min(0.5, noise**2 / (noise**2 + spending.count_noise**2)))
    most = largest - middle
    noisy, own = spending.release_sum(
        whole_sum(counts * (values - middle)),
        most=most,
        bound=most * unit,
        cost=cost,
        purpose=purpose,
    )
    per_row = middle * unit
    return NoisySum(noisy + per_row * spending.regime.n_rows, own, per_row)


def _release_variation(spending: Spending, point: ExactPoint, clip: float, cost: ZCDP) -> NoisySum:
    """Release Σψ_c(y)² − (Σψ_c(y))²/n: for most of the cost the first sum.

    The target is taken from a released centre, from which its mean may be far
    (docs/private-lasso.md, Lemmas 24 and 45).
    """
    part, n_rows = cost * MEAN_PART, spending.regime.n_rows
    counts, unit, rest = point.residual_counts(clip), (clip / LEVELS) ** 2, cost.rho - part.rho
    square = _release_total(spending, counts, _squares(), unit, ZCDP(rest), "squared target")
    total, noise = spending.release_sum(
        point.residual_total(clip),
        most=LEVELS,
        bound=clip,
        cost=part,
        purpose="the target's sum",
    )
    mean = rules.clamp(rules.shrunk(total, noise) / n_rows, -clip, clip)
    left = max(square.value - mean**2 * n_rows, 0.0)
    return NoisySum(left, math.hypot(square.noise, 2 * mean * noise), square.per_row + mean**2)


def _release_sizes(
    spending: Spending, point: ExactPoint, deviations: Deviations, cost: ZCDP
) -> tuple[Array, Array, float]:
    """Release how many residuals are of which size: one row is in one cell. Return the noise too.

    (docs/private-lasso.md, Lemmas 22 and 24)
    """
    top = SIZES_CLIP * max(deviations.residuals, deviations.target)
    steps = np.arange(OCTAVES * CELLS_PER_OCTAVE, -1, -1) / CELLS_PER_OCTAVE
    levels = np.floor(LEVELS * 2.0**-steps).astype(np.int64)
    below = np.cumsum(point.residual_counts(top))
    at_most = np.concatenate((below[levels[:-1]], below[-1:]))
    counts = np.diff(at_most, prepend=0)[None, :]
    noisy, noise = release_histograms(
        spending.accountant, counts, cost=cost, purpose="sizes of residuals"
    )
    # They add up to the number of rows, which is known better.
    spare = (float(noisy.sum()) - spending.regime.n_rows) / noisy.size
    return top * levels / LEVELS, noisy[0] - spare, noise


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


def _r2(small: NoisySum, far: NoisySum, whole: NoisySum, count_noise: float) -> Told:
    """Return R²: far residuals only add, so they cannot lower what the others are seen to be."""
    ends = [_ratio_interval(top, whole, count_noise) for top in (small, small + far)]
    least, most = (max(pair) for pair in zip(*ends, strict=True))
    share = _seen(small, far, count_noise) / max(whole.value, whole.deviation(count_noise))
    return 1 - rules.clamp(share, least, most), 1 - most, 1 - least


def _error(small: NoisySum, far: NoisySum, n_rows: int, count_noise: float) -> Told:
    """Return the typical error."""
    means = [top.mean(n_rows, count_noise) for top in (small, small + far)]
    low = max(mean - NORMAL_975 * noise for mean, noise in means)
    high = max(mean + NORMAL_975 * noise for mean, noise in means)
    mid = _seen(small, far, count_noise) / n_rows
    return math.sqrt(mid), math.sqrt(max(min(low, mid), 0.0)), math.sqrt(max(high, mid))


def _seen(small: NoisySum, far: NoisySum, count_noise: float) -> float:
    """Return the sum of all squared residuals: no less than its noise, which tells nothing."""
    added = max(rules.shrunk(far.value, far.deviation(count_noise)), 0.0)
    return max(small.value + added, small.deviation(count_noise))


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
