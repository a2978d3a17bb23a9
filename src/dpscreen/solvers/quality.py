"""How good a model is, by its own account: noisy mean squares and a noisy histogram of residuals.

Paid for with a small share of the budget (docs/private-lasso.md, Lemma 24).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen.privacy import ZCDP
from dpscreen.privacy.accountant import release_histograms
from dpscreen.rows.lattice import UNITS, ExactDesign, ExactPoint
from dpscreen.rows.sums import LEVELS, whole_sum
from dpscreen.solvers import rules
from dpscreen.solvers.base import Spending
from dpscreen.solvers.zoom import stand_out

SIZES_CLIP = 16.0
"""Up to where sizes of residuals are told apart, in deviations of the target."""

SURE = 4.5
"""How many noises far residuals need to be believed: one chance cell would cost all precision."""

WIDEST = 0.8
"""A wider interval tells nothing about R²."""

MOST_BEYOND = 0.5
"""If as many residuals may lie beyond their clip, their scale, a median's, was noise."""

MOST_UNEXPLAINED = 100.0
"""What is put for a share that has no upper end."""

CELLS_PER_OCTAVE, OCTAVES = 4, 11
NORMAL_95, NORMAL_975 = 1.6448536269514722, 1.959963984540054


@dataclass(frozen=True)
class Quality:
    """R² and the typical error of a model, each with the interval of its privacy noise.

    The typical error is the root mean square of residuals, clipped at 2.5 deviations of the target
    or where sizes of residuals are still seen; so is the target for R². `sizes` and `shares` tell
    which share of residuals is at most that size.
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

    @property
    def tells_r2(self) -> bool:
        """Whether the noise leaves anything to tell of R²."""
        return self.r2_high - self.r2_low <= WIDEST

    def residual_size(self, level: float) -> float:
        """Return the size that this share of residuals does not exceed, as far as can be told.

        Beyond what the noise can tell, the largest size that is told apart.
        """
        pairs = zip(self.sizes, self.shares, strict=True)
        return next((size for size, share in pairs if share >= level), self.sizes[-1])

    def __str__(self) -> str:
        where = "in-sample: on the rows of the fit" if self.in_sample else "on rows held out"
        r2 = f"R² {self.r2:.3f} ({self.r2_low:.3f} to {self.r2_high:.3f})"
        ends = f"{self.error_low:.4g} to {self.error_high:.4g}"
        error = f"typical error {self.typical_error:.4g} ({ends})"
        lost = "cannot be told from noise with so few rows at this budget"
        if self.r2_low <= 1 - MOST_UNEXPLAINED:
            return f"R² and typical error {lost}."
        if not self.tells_r2:
            return f"R² {lost}, {error}; {where}."
        return f"{r2}, {error}; {where}. The intervals are for privacy noise alone."


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

    (docs/private-lasso.md, Lemma 24)
    """
    part = cost * Fraction(1, 3)
    largest = float(np.abs(weights).max(initial=0.0))
    point = design.at(weights, scale=max(deviations.target, largest))
    sizes, noisy, noise = _release_sizes(spending, point, deviations, part)
    clip = _clip(sizes, noisy, noise, deviations)
    left = _release_square(spending, point, clip, part, "squared residuals")
    rest = ZCDP(cost.rho - 2 * part.rho)
    whole = _release_variation(spending, design.start(1.0), clip, rest)
    outer = noisy[1:][sizes[:-1] >= clip]  # cells that lie beyond the clip as a whole
    beyond = float(outer.sum()) + NORMAL_95 * noise * math.sqrt(outer.size)
    n_rows = spending.regime.n_rows
    if beyond > MOST_BEYOND * n_rows:
        whole = (0.0, whole[1])
    shares = np.clip(np.maximum.accumulate(np.cumsum(noisy)) / n_rows, 0, 1)
    return _quality(left, whole, n_rows, in_sample, sizes, shares)


def _clip(sizes: Array, noisy: Array, noise: float, deviations: Deviations) -> float:
    """Return where residuals and target are clipped: alike, so that R² compares like with like.

    At so many deviations of whichever is larger; further out where sizes of residuals still stand
    out of their noise, as a deviation is a median's and says nothing of few large ones.
    """
    usual = rules.QUALITY_CLIP * max(deviations.residuals, deviations.target)
    return float(max(usual, sizes[stand_out(noisy[None, :], noise, SURE)[0]].max(initial=0.0)))


def _release_square(
    spending: Spending, point: ExactPoint, clip: float, cost: ZCDP, purpose: str
) -> tuple[float, float]:
    """Release Σψ_c(r)², which one row moves by at most c², and the noise's deviation.

    (docs/private-lasso.md, Lemmas 13 and 24)
    """
    counts = point.residual_counts(clip)
    total = whole_sum(counts * np.arange(len(counts), dtype=np.int64) ** 2)
    return spending.release_sum(total, most=UNITS, bound=clip**2, cost=cost, purpose=purpose)


def _release_variation(
    spending: Spending, point: ExactPoint, clip: float, cost: ZCDP
) -> tuple[float, float]:
    """Release Σψ_c(y)² − (Σψ_c(y))²/n, each for half, and the noise's deviation.

    The target is taken from a released centre, from which its mean may be far
    (docs/private-lasso.md, Lemma 24).
    """
    square, noise = _release_square(spending, point, clip, cost / 2, "squared target")
    total, total_noise = spending.release_sum(
        point.residual_total(clip),
        most=LEVELS,
        bound=clip,
        cost=cost / 2,
        purpose="the target's sum",
    )
    mean = rules.shrunk(total, total_noise) / spending.regime.n_rows
    mean = rules.clamp(mean, -clip, clip)
    left = square - mean**2 * spending.regime.n_rows
    return max(left, 0.0), math.hypot(noise, 2 * mean * total_noise)


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
    return top * levels / LEVELS, noisy[0], noise


def _quality(
    left: tuple[float, float],
    whole: tuple[float, float],
    n_rows: int,
    in_sample: bool,
    sizes: Array,
    shares: Array,
) -> Quality:
    """Put released numbers together."""
    (rss, rss_noise), (tss, tss_noise) = left, whole
    least, most = _ratio_interval(left, whole)
    seen = max(rss, rss_noise)  # less than its noise tells nothing: no error is told to be 0
    r2 = 1 - rules.clamp(seen / max(tss, tss_noise), least, most)
    low, mid, high = (
        math.sqrt(max(total, 0.0) / n_rows)
        for total in (rss - NORMAL_975 * rss_noise, seen, rss + NORMAL_975 * rss_noise)
    )
    high = max(mid, high)
    told = (r2, 1 - most, 1 - least, mid, low, high, in_sample)
    return Quality(*told, tuple(sizes.tolist()), tuple(shares.tolist()))


def _ratio_interval(top: tuple[float, float], bottom: tuple[float, float]) -> tuple[float, float]:
    """Return the 95 % interval of a ratio of two noisy numbers, both at least 0 (Fieller's).

    It is right however large the noise is: where the lower number could be 0, there is no end.
    """
    unit = 2.0 ** (math.frexp(max(*top, *bottom))[1] - 1)  # so that no square overflows
    a, a_noise, b, b_noise = (value / unit for value in (*top, *bottom))
    square = b**2 - (NORMAL_975 * b_noise) ** 2
    if b <= 0 or square <= 0:
        return 0.0, MOST_UNEXPLAINED
    rest = max(a, 0.0) ** 2 - (NORMAL_975 * a_noise) ** 2
    centre = max(a, 0.0) * b
    off = math.sqrt(max(centre**2 - square * rest, 0.0))
    ends = (centre - off) / square, (centre + off) / square
    return max(ends[0], 0.0), min(ends[1], MOST_UNEXPLAINED)
