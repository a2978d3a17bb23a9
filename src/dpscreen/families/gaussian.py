"""Continuous outcomes: the linear predictor is the mean. R² and typical error are released."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from dpscreen._core.arrays import Array, clamp
from dpscreen._core.words import LINEAR, number
from dpscreen.families.base import NUMBER, Family, FamilyModel, SimulatedFamily, Words
from dpscreen.families.quality import (
    CONSTANT,
    NOISE,
    NORMAL_95,
    NORMAL_975,
    REASONS,
    UNDETECTED,
    WIDEST_FACTOR,
    Called,
    Measure,
    Measured,
    NoisyHistogram,
    NoisySum,
    QualityReleases,
    Ranges,
)
from dpscreen.rows import fits
from dpscreen.rows.lattice import ExactPoint
from dpscreen.rows.loss import SQUARED
from dpscreen.rows.sums import LEVELS

# --- quality: R² and typical error, from residuals ------------------------------------------------

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

WIDEST_R2 = 0.7
"""R² is not known if its interval is wider. Conventional."""


@dataclass(frozen=True)
class Quality(Measured):
    """R² and typical error of a model on the rows of the fit, each with a 95 % interval.

    R² is 1 − Σ(y − ŷ)²/Σ(y − ȳ)², and the typical error √(Σ(y − ŷ)²/n), the root mean squared
    error; y and predictions ŷ are clipped to the declared target bounds. A measure that is not
    known is NaN, and `r2_reason` or `error_reason` says why: "noise", "undetected rows" or
    "constant"; else that is None. `sizes` and `shares` give which share of residuals is at most
    that size; all shares are 0 if noise hides them.
    """

    measures: ClassVar[tuple[Called, ...]] = (
        Called("r2", "r2", "R²"),
        Called("typical_error", "error", "RMSE", 4),
    )
    columns = {"sizes": 0, "shares": 0}  # noqa: RUF012
    file_field = "quality"

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

    @classmethod
    def release_measures(
        cls,
        releases: QualityReleases,
        point: ExactPoint,
        target: ExactPoint,
        ranges: Ranges,
        *,
        in_sample: bool,
    ) -> Quality:
        """Release histograms of the magnitudes of residuals and target, and sums of their squares.

        Sums are clipped where histograms detect the last rows (docs/theory/quality.md, Lemmas 24
        and 45).
        """
        unit, n_rows = ranges.target_scale, releases.n_rows
        with np.errstate(over="ignore"):
            low, high = np.clip(np.divide(ranges.target, unit), -MOST_SCALES, MOST_SCALES)
            effects = np.clip(ranges.effects / unit, -MOST_SCALES, MOST_SCALES)
        least, most = np.clip(effects.sum(axis=0), low, high)  # predictions are within the bounds
        # Magnitudes: of residuals, then of the target.
        scale = max(ranges.scale / unit, LEAST_SCALE)
        histograms = []
        for at, size, bound, part, what in (
            (point, scale, max(high - least, most - low), SIZES_PART, "residuals"),
            (target, 1.0, max(high, -low), ENDS_PART, "the target"),
        ):
            edges = magnitude_edges(size, float(bound))
            counts = at.fit_total(fits.magnitude_counts, ranges.target, edges * unit)
            histograms.append(releases.histogram(counts, edges, part, f"magnitudes of {what}"))
        clips = [one.last_detected() or float(one.edges[-1]) for one in histograms]
        # Sums of squares, of either up to its clip.
        squares, total = list[NoisySum](), 0
        for at, clip, what in zip((point, target), clips, ("residuals", "target"), strict=True):
            levels = at.fit_total(fits.level_sums, ranges.target, clip * unit)
            rows, total, square = levels.tolist()
            found = releases.total(square, rows, LEVELS**2, SQUARES_PART, f"squared {what}")
            squares.append(NoisySum(*(clip**2 * one for one in vars(found).values())))
        # The target's mean over its clip: Σ(u − ū)² = Σu² − nū².
        left, whole = squares
        mean, noise = releases.release_sum(
            total,
            most=LEVELS,
            bound=1.0,
            cost=releases.cost * (1 - SIZES_PART - ENDS_PART - 2 * SQUARES_PART),
            purpose="the target's sum",
        )
        lean = clamp(mean / n_rows, -1.0, 1.0)
        shift, off = clips[1] * lean, clips[1] * noise
        # A noisy mean is on average further out than the mean.
        centred = max(whole.value - n_rows * shift**2 + off**2 / n_rows, 0.0)
        own = math.hypot(whole.noise, 2 * shift * off, off**2 / n_rows)
        whole = NoisySum(centred, own, whole.per_row + shift**2)
        fitted, sizes = float(max(abs(least), abs(most))), histograms[0]
        r2, square = _from_sums(
            releases, (left, whole), histograms, clips, abs(lean), effects, fitted
        )
        value, low, high = (unit * math.sqrt(one) for one in square[:3])
        error = square if square.reason else Measure(value, low, high)
        return cls(
            **cls.fields(r2, error),
            in_sample=in_sample,
            sizes=tuple((sizes.edges[1:] * unit).tolist()),
            shares=tuple(sizes.shares(n_rows).tolist()),
        )


def magnitude_edges(scale: float, bound: float) -> Array:
    """Return the edges of cells for magnitudes up to a bound, in its unit."""
    fine = min(FINE_SCALES * scale, bound)
    near = fine * 2.0 ** (np.arange(-FINE_OCTAVES * CELLS_PER_OCTAVE, 1) / CELLS_PER_OCTAVE)
    far = bound * 2.0 ** -np.arange(FAR_OCTAVES, -1.0, -1.0)
    return np.concatenate(([0.0], near, far[far > fine]))


def _from_sums(
    releases: QualityReleases,
    sums: tuple[NoisySum, NoisySum],
    histograms: Sequence[NoisyHistogram],
    clips: Sequence[float],
    lean: float,
    effects: Array,
    fitted: float,
) -> tuple[Measure, Measure]:
    """Return R² and the mean squared residual, or why they are not known.

    R² is above ρ if (1 − ρ)Σu² − Σr² is positive, as in Fieller's interval of a ratio. Sums of
    clipped squares, of residuals and then of the target, and histograms that bound what lies beyond
    the clips are in units of the target's scale. `lean` is the size of the target's mean, over its
    clip, and `fitted` that of the largest prediction (docs/theory/quality.md, Lemma 24).
    """
    (sizes, targets), (clip, target_clip) = histograms, clips
    # What rows beyond the clips add to Σr² at most: apart from Σu², to Σu², in all. Any rows;
    # or those with large residuals, and beside them rows within its clip, if r² ≤ u² + f² on
    # the whole, where effects of several features have no common sign.
    leverage = float(np.linalg.norm(np.abs(effects).max(axis=1)))
    most = math.hypot(target_clip, min(leverage, fitted))
    edges, residuals = targets.edges, sizes.edges[1:]
    far, inside = (
        sizes.weighted(np.maximum(ends**2 - clip**2, 0.0))
        for ends in (residuals, np.minimum(residuals, most))
    )
    out = targets.weighted(np.maximum(edges[1:] ** 2 - target_clip**2, 0.0))
    tails = [(far, NoisySum(0.0)), (inside, out)]
    both = [NoisySum(a.value + b.value, math.hypot(a.noise, b.noise)) for a, b in tails]
    error = releases.mean(sums[0], both, WIDEST_FACTOR**2)
    if not np.ptp(effects, axis=1).any():
        return Measure(reason=CONSTANT), error

    rest = 1 - R2_GRID
    left, whole = (
        NORMAL_975 * math.hypot(one.noise, one.per_row * releases.count_noise) for one in sums
    )
    above, noise = rest * sums[1].value - sums[0].value, np.hypot(rest * whole, left)
    # The lower end: the largest ρ below R², whatever rows are not detected.
    below = np.zeros(R2_GRID.shape, dtype=bool)
    share = np.maximum(R2_GRID + rest * lean, 0.0)
    for far, out in tails:
        unseen = NORMAL_95 * np.hypot(far.noise, share * out.noise)
        below |= above - far.value - share * out.value > np.hypot(noise, unseen)
    low = float(np.max(R2_GRID, where=below, initial=-math.inf))
    # The upper end: a row whose target is t > c from the centre adds at most (1 − ρ)(t² − c²)
    # less what its residual, at least t − |f|, takes off. Within a cell that is largest at one
    # of three points.
    column = rest[:, None]
    weights = np.zeros((len(R2_GRID), len(edges) - 1))
    best = fitted / np.maximum(1 - column, 1e-12)
    for place in (best, fitted + clip, math.inf):
        at = np.clip(place, edges[:-1], edges[1:])
        more = np.maximum(at**2 - target_clip**2, 0.0)
        lost = np.maximum(np.maximum(at - fitted, 0.0) ** 2 - clip**2, 0.0)
        gain = np.where(more > 0, column * (1 + lean) * more - lost, 0.0)
        weights = np.maximum(weights, gain)
    tail = np.maximum(weights @ targets.counts, 0.0)
    tail_noise = NORMAL_95 * targets.noise * np.linalg.norm(weights, axis=1)
    may_be = above + tail + np.hypot(noise, tail_noise) >= 0
    last = int(np.max(np.flatnonzero(may_be), initial=-1))
    high = float(R2_GRID[min(last + 1, len(R2_GRID) - 1)])
    if not high - low <= WIDEST_R2:
        hidden = min(one.value + NORMAL_95 * one.noise for one in both)
        return Measure(reason=UNDETECTED if hidden > left + whole else NOISE), error
    value = 1 - sums[0].value / max(sums[1].value, 1e-300)
    return Measure(clamp(value, low, high), low, high), error


# --- the family -----------------------------------------------------------------------------------


def _r2(predicted: Array, outcomes: Array) -> float:
    error = float(np.mean((outcomes - predicted) ** 2))
    return max(-0.5, 1 - error / float(np.var(outcomes)))


def _contested(expected: Array) -> tuple[Array, float, tuple[float, float]]:
    """As much noise as signal."""
    deviation = float(expected.std())
    most = 8 * math.sqrt(2) * deviation
    return expected, deviation, (-most, most)


def _without_privacy(error: float | None) -> Any:
    """Return LASSO, with a penalty by cross-validation if none: rows may be in order of time."""
    from sklearn.linear_model import Lasso, LassoCV
    from sklearn.model_selection import KFold

    if error is not None:
        return Lasso(alpha=error)
    return LassoCV(cv=KFold(5, shuffle=True, random_state=0))


GAUSSIAN = Family(
    name="gaussian",
    loss=SQUARED,
    link=np.asarray,
    inverse_link=np.asarray,
    variance=np.ones_like,
    inverse="",
    target=NUMBER,
    has_scale=True,
    quality_type=Quality,
    sparse=FamilyModel(
        "private-lasso",
        "PrivateLasso",
        "Sparse linear model",
        "Selects the few features that matter among many, and predicts a number from them.",
        "; those that matter together explain half of the target's variance.",
    ),
    table=FamilyModel(
        "private-ols",
        "PrivateOLS",
        "Regression table",
        "A coefficient with its interval for every feature: nothing is selected.",
        "; the features together explain half of the target's variance.",
    ),
    words=Words(
        regression="linear regression",
        plain="least squares",
        effects=LINEAR,
        effects_are="Effect: of the step, in {units}.",
        multiplied="the prediction",
        predictor="",
        sampling="(robust to unequal variances)",
        predicted="prediction of {target}",
        asked="{target}",
        constant=lambda mean: number(mean, digits=4),
    ),
    simulation=SimulatedFamily(
        outcomes=lambda predictors, noise, deviation: predictors + deviation * noise,
        score=_r2,
        worst=-0.5,
        spreads=(math.sqrt(0.5),),
        contested=_contested,
        caution="Normal features are assumed: rare levels and heavy tails have wider ones, or "
        "none.",
        without_privacy=_without_privacy,
        division="numbers",
    ),
)
"""Continuous outcomes: the linear predictor is the mean."""
