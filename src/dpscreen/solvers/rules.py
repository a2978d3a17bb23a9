"""Every choice that PrivateLasso makes by itself, as a function of public and released numbers.

No function here sees a row. The measurement behind each constant is in docs/private-lasso.md. Three
public numbers carry the rules:

    M = n√(2ρ)/ln(2d)    how much signal a selection can carry: n against its noise (`signal`)
    Q = n√(ρ/d)          how far a count of all rows stands out, in a vector of d counts (`counts`)
    100/(n²ρ)            the share of ρ that finds a quantile of n numbers (`need`)
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

GAUSSIAN = 1.4826
"""A normal's standard deviation, in median absolute deviations."""


def clamp(value: float, low: float, high: float) -> float:
    """Return the value, or the end of the interval that it is beyond."""
    return min(max(value, low), high)


def shrunk(value: float, noise: float) -> float:
    """Return a noisy number with the expected share of its noise taken off (James and Stein)."""
    return value * max(0.0, 1 - (noise / value) ** 2) if value else 0.0


@dataclass(frozen=True)
class Regime:
    """What is public before anything is released: the rows' number, the features', and ρ."""

    n_rows: int
    n_features: int
    rho: float

    @property
    def signal(self) -> float:
        """Return M."""
        return self.n_rows * math.sqrt(2 * self.rho) / math.log(2 * self.n_features)

    @property
    def counts(self) -> float:
        """Return Q."""
        return self.n_rows * math.sqrt(self.rho / self.n_features)

    @property
    def need(self) -> float:
        """Return the share of ρ at which an empty cell beyond all rows is 14 noise scales away."""
        return 100 / (self.n_rows**2 * self.rho)


# --- the target's bounds --------------------------------------------------------------------------

TARGET_HALF_WIDTH = 6.4
"""Half-width of the released bounds, in deviations: only stray values are clipped."""

MEAN_CLIP = 2.5
"""Where values are clipped for the target's mean, in deviations."""


def centres_target(regime: Regime) -> bool:
    """Whether the target's centre is always looked for, because it costs next to nothing."""
    return regime.need <= 0.005


def can_centre_target(regime: Regime) -> bool:
    """Whether there are rows enough to look for the centre at all."""
    return regime.need <= 0.1


def target_bounds_fit(ratio: float) -> bool:
    """Whether the deviation from the middle, over half the bounds' width, speaks for the bounds.

    Too small: the bounds are loose. Too large: the target sits at one side of them.
    """
    return 0.12 <= ratio <= 0.4


def inner_share(regime: Regime) -> float:
    """Return the share of ρ that asks whether the target is centred."""
    return clamp(regime.need, 0.004, 0.05)


def target_centred(inner: float) -> bool:
    """Whether enough rows lie within half the median distance from the middle: normal, 0.26."""
    return inner >= 0.13


def centre_share(regime: Regime) -> float:
    """Return the share of ρ that the target's median takes."""
    return clamp(2 * regime.need, 0.004, 0.06)


def centre_cells(regime: Regime) -> int:
    """Return among how many cells the median is looked for: as many as the noise can tell apart."""
    depth = math.sqrt(2 * centre_share(regime) * regime.rho) * regime.n_rows
    return int(2 ** round(clamp((depth - 9) / math.log(2), 4, 11)))


def target_share(regime: Regime) -> float:
    """Return the share of ρ that the target's scale takes, and its mean."""
    return clamp(1.5 * regime.need, 0.004, 0.05)


def target_quantile(regime: Regime) -> Fraction:
    """Return the quantile of |y − centre| that gives the scale."""
    noise = math.sqrt(1 / (2 * target_share(regime) * regime.rho)) / regime.n_rows
    return clear_quantile(10 * noise)


def clear_quantile(noise: float) -> Fraction:
    """Return the highest quantile q with rows enough beyond it: (1 − q)/q is at least the noise.

    With fewer, empty cells far out would often be taken for it.
    """
    for quantile in (Fraction(4, 5), Fraction(7, 10)):
        if (1 - quantile) / quantile >= noise:
            return quantile
    return Fraction(1, 2)


# --- the features' bounds -------------------------------------------------------------------------


def feature_half_width(regime: Regime, room: float) -> float:
    """Return half the width of a feature's released bounds, in 0.8 quantiles of |x − centre|.

    With more signal there is less to gain from clipping, and more to lose where tails matter. But
    `room` is where the widest feature ends; all get the same, to compete on equal terms.
    """
    return clamp(min(2 * math.sqrt(regime.signal / 300), room), 2.0, 8.0)


NARROWED_SIZE = 0.6
"""What the common size of cells becomes when all bounds are narrowed together."""

SHRINKAGE = 1.5
"""By how much the noise of a search, a bit more than its last level's, is overstated."""

OUTLIER = 3.0
"""From how many noise deviations on a feature's scale is its own."""


@dataclass(frozen=True)
class BoundsFit:
    """How the public bounds fit all cells together: two released numbers.

    `size` is the 0.8 quantile of |u| over all cells, u in [−1, 1]; `inner` is the share of cells
    with |u| at most half of that. Centred normal features have inner = 0.48; features off the
    middle of their bounds have few cells there.
    """

    size: float
    inner: float

    @property
    def good(self) -> bool:
        """Whether the bounds will do as they are."""
        return not self.loose and self.size <= 0.75 and self.inner >= 0.3

    @property
    def loose(self) -> bool:
        """Whether all cells lie in an inner part of the bounds."""
        return self.size < 0.27


def can_judge(regime: Regime) -> bool:
    """Whether there are rows enough to ask how the bounds fit."""
    return regime.need <= 0.1


def judge_share(regime: Regime) -> float:
    """Return the share of ρ of each of the two numbers that judge the bounds."""
    return clamp(4 * regime.need, 0.005, 0.02)


def can_place_features(regime: Regime) -> bool:
    """Whether counts stand out of their noise enough to centre and scale each feature."""
    return regime.counts >= 10


def feature_share(regime: Regime) -> float:
    """Return the share of ρ that centring and scaling the features takes."""
    return clamp(200 / regime.counts**2, 0.1, 0.4)


def search_noise(regime: Regime, levels: int) -> float:
    """Return the noise of one count in a search of that many levels, as a share of the rows.

    For a count whose change is 1 in each feature, at half of `feature_share`.
    """
    return math.sqrt(levels / feature_share(regime)) / regime.counts


def scale_quantile(regime: Regime, levels: int) -> Fraction:
    """Return the quantile of |x − centre| that gives a feature's scale."""
    return clear_quantile(3 * search_noise(regime, levels))


# --- the residuals' scale and the features' spread ------------------------------------------------

SPREAD_SHARE = 0.01
UNKNOWN_SPREAD = 1 / 3


def rescale_share(regime: Regime) -> float:
    """Return the share of ρ of one new estimate of the residuals' scale."""
    return clamp(regime.need, 0.0025, 0.02)


def rescale_times(regime: Regime) -> tuple[float, ...]:
    """Return when the residuals' scale is estimated anew, as fractions of the path."""
    if regime.need <= 0.01:
        return (0.125, 0.25, 0.5, 0.75)
    return (0.3, 0.6) if regime.need <= 0.04 else ()


def finds_spread(regime: Regime) -> bool:
    """Whether the features' mean square can be found to within n/40."""
    return math.sqrt(1 / (2 * SPREAD_SHARE * regime.rho)) <= regime.n_rows / 40


def spread_of(noisy_square: float, n_rows: int) -> float:
    """Return σ_x, the features' root mean square, from its noisy sum over rows."""
    return math.sqrt(clamp(noisy_square / n_rows, 0.01, 0.5))


# --- stagewise ------------------------------------------------------------------------------------

INTERCEPT_SHARE = 0.025


def n_steps(regime: Regime) -> int:
    """Return T: in proportion to M, and more than that below M = 100."""
    return round(clamp(max(regime.signal / 4, 2.5 * math.sqrt(regime.signal)), 6, 200))


def first_step(regime: Regime, *, deviation: float, spread: float, n_iter: int) -> float:
    """Return η₀, in units of the target: the steps add up to about 0.4√T or 0.5√T deviations."""
    length = min(regime.signal / 25, clamp(math.sqrt(regime.signal / 250), 0.8, 1.0))
    return length * deviation / (spread * math.sqrt(n_iter))


def clip_factor(regime: Regime) -> float:
    """Return the clip, in median absolute deviations of the residuals."""
    return clamp(regime.signal / 600, 0.6, 3.0)


def cell_clip(regime: Regime, *, spread: float) -> float:
    """Return where cells are clipped when a feature is chosen, in half-widths of the bounds.

    Noise is as large as the largest cell. A cell of one root mean square tells nearly as much as
    one of three, at a third of the noise; with more signal there is less to gain.
    """
    return (1 + regime.signal / 200) * spread


def smallest_weight(regime: Regime, *, deviation: float, spread: float) -> float:
    """Return the size below which a final weight is dropped: less where there are few steps."""
    level = min(0.05, 2.5 / math.sqrt(regime.n_rows), regime.signal / 2000)
    return level * deviation / spread


def intercept_clip(clip: float, deviation: float) -> float:
    """Return where residuals are clipped for the intercept: not far inside their scale."""
    return max(clip, deviation)


def intercept_times(regime: Regime) -> tuple[float, ...]:
    """Return when the intercept moves, as fractions of the path; 1 is after its end."""
    return (0.5, 1.0) if regime.signal < 40 else (0.0, 0.125, 0.25, 0.5, 0.75, 1.0)


def at_steps(times: Iterable[float], n_iter: int) -> frozenset[int]:
    """Return the steps before which something happens, from fractions of the path."""
    return frozenset(max(1, round(time * n_iter)) for time in times)


# --- noisy gradients ------------------------------------------------------------------------------

MOST_GRADIENTS = 10
LINE_SHARE = 0.01
ROWS_SHARE = 0.01
LENGTHS = tuple(2.0**-k for k in range(7))
LOSS_CAP = 3.0
"""Where the loss of the line search is capped, in median absolute deviations."""

LARGEST_WEIGHT = 100.0
"""Where weights after a noisy gradient are cut off, in deviations of the target."""

FULL_LENGTH = 0.8
"""A row is long if its norm reaches this part of `row_norm`."""


def gradient_ratio(regime: Regime, row_norm: float) -> float:
    """Return ν²/(n√(2ρ)): how noisy a whole gradient is."""
    return row_norm**2 / (regime.n_rows * math.sqrt(2 * regime.rho))


def gradients_may_pay(regime: Regime, row_norm: float) -> bool:
    """Whether noisy gradients can beat selections, if the rows are as long as declared."""
    return regime.n_features >= 50 and 0.004 <= gradient_ratio(regime, row_norm) <= 0.045


def gradients_pay(long_rows: float, n_rows: int) -> bool:
    """Whether rows are as long as declared, from a noisy count: nine in ten should be."""
    return long_rows >= 0.9 * n_rows


def n_gradients(regime: Regime, row_norm: float) -> int:
    """Return how many noisy gradients are taken."""
    return MOST_GRADIENTS if gradient_ratio(regime, row_norm) <= 0.02 else 6


def threshold(n_features: int) -> float:
    """Return the threshold, in noise deviations."""
    return 0.8 * math.sqrt(2 * math.log(max(2, n_features)))
