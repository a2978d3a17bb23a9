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


def kept(noise: float) -> float:
    """Return the part of a noisy number to keep, the variance of its noise being over its own.

    That is the mean of what it is, once it was seen.
    """
    return 1 / (1 + noise)


@dataclass(frozen=True)
class Regime:
    """What rules rest on: the number of rows, public or released, the features', and ρ.

    In simulations each row may stand for many, at a ρ that leaves n²ρ as it is: `thinning` says for
    how many. Where errors of sampling matter, there are `drawn` rows.
    """

    n_rows: int
    n_features: int
    rho: float
    thinning: float = 1.0

    @property
    def drawn(self) -> float:
        """Return of how many rows errors of sampling are."""
        return self.n_rows * self.thinning

    @property
    def signal(self) -> float:
        """Return M."""
        return self.n_rows * math.sqrt(2 * self.rho) / math.log(2 * self.n_features)

    def depth(self, rho: float) -> float:
        """Return how many noise scales an empty cell beyond all rows is away from the median."""
        return self.n_rows * math.sqrt(2 * rho)

    def counts(self, n_columns: int) -> float:
        """Return Q for so many columns."""
        return self.n_rows * math.sqrt(self.rho / n_columns)

    @property
    def need(self) -> float:
        """Return the share of ρ at which an empty cell beyond all rows is 14 noise scales away."""
        return 100 / (self.n_rows**2 * self.rho)


# --- the number of rows ---------------------------------------------------------------------------

COUNT_SHARE = 0.01
LEAST_ROWS = 10
ROUND = 0.01
"""By which part a declared number of rows may be off: it may be a round one."""


def recount_share(regime: Regime) -> float:
    """Return the share of ρ of a second count: what takes the noise to a tenth of the rows."""
    return clamp(regime.need / 2 - COUNT_SHARE, 0.0, 0.03)


def usable_count(noisy: float) -> int:
    """Return the number of rows that rules use, from its noisy count."""
    return max(LEAST_ROWS, round(noisy))


# --- bounds that are even about zero --------------------------------------------------------------

MOST_UNEVEN, MOST_UNEVEN_CELLS = 0.5, 0.75
"""How uneven the sides of zero may be if it is the centre of a target, and of cells of all columns
on average: a quarter and an eighth on the emptier side. Of two values one may be rare."""

SKEWED = 0.31
"""How far mean and median of an exponential law are apart, in deviations: few are more skewed."""

WIDEST = 1 / 8
"""The least scale of standardised columns, in half-widths of bounds: these are within (−8, 8)."""


def side_share(regime: Regime) -> float:
    """Return the share of ρ that tells whether rows lie on both sides of zero: 6 noises for all."""
    return clamp(0.2 * regime.need, 0.002, 0.1)


def pooled_share(regime: Regime) -> float:
    """Return the share of ρ that tells the same, and a scale, of all columns together."""
    return clamp(1.5 * regime.need, 0.005, 0.05)


# --- the target -----------------------------------------------------------------------------------

MEAN_CLIP = 2.5
"""Where values are clipped for the target's mean, in deviations."""


HEAPED = 0.45
"""Half of a heaped target's rows are within this part of its spread; a normal's are within 0.67, an
exponential's and a Laplace law's within 0.48."""


MOST_AT_POINT = 0.6
"""If more of the rows are in one octave of distances, they are at one point: a normal has .31."""


def heap_share(regime: Regime) -> float:
    """Return the share of ρ of the histogram that tells whether most of the target is in a heap."""
    return clamp(regime.need, 0.01, 0.03)


def point_target_share(regime: Regime) -> float:
    """Return the share of ρ of a second look at a target that seems to be one point.

    What shows four rows in a hundred beside it, and a tenth at most.
    """
    return clamp(150 * regime.need, 0.02, 0.1)


def has_few_targets(regime: Regime) -> bool:
    """Whether rows are so few that the target's centre and scale may be noise."""
    return regime.need > 0.2


def few_centre_share(regime: Regime) -> float:
    """Return the share of ρ for the median of few rows: what makes them 11 noise scales deep.

    That leaves 9 where their noisy count is a fifth too high.
    """
    return min(0.6 * regime.need, 0.4)


def few_cells(depth: float) -> int:
    """Return among how many cells the median of few rows is looked for.

    K cells are 2/K wide, and noise takes one far away with a chance of about K·e^−depth: the mean
    square of both errors is least at K³ = 2e^depth.
    """
    return int(2 ** round(clamp((depth / math.log(2) + 1) / 3, 2, 11)))


def few_scale_share(regime: Regime) -> float:
    """Return the share of ρ for the scale of few rows: about 7 noise scales deep."""
    return min(0.25 * regime.need, 0.2)


def centre_share(regime: Regime) -> float:
    """Return the share of ρ that the target's median takes."""
    return clamp(2 * regime.need, 0.004, 0.06)


def centre_cells(regime: Regime) -> int:
    """Return among how many cells the median is looked for: as many as the noise can tell apart."""
    depth = regime.depth(centre_share(regime) * regime.rho)
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


# --- the features' places -------------------------------------------------------------------------

LEAST_COUNTS = 7.0
"""The Q from which on numeric columns are placed."""

RICH_COUNTS = 120.0
"""The Q from which on tails are looked for, and means and mean squares are released."""

HISTOGRAM_CELLS = 24
CLOSE = 0.05
"""Zooming ends when centres are known to √CLOSE of a scale, in the mean square."""

AT_END, ONE_POINT = 0.02, 2.0**-9
"""In half-widths of the declared bounds: how near to an end the centre of rows must be that are
one point, and the scale up to which a target is one. Rows beyond an end are clipped to it."""

UNPLACED = 0.5
"""The scale of a numeric column that is not placed, in half-widths of its bounds."""

TAIL_OCTAVES, TAIL_LEVELS = 12, 6
TAIL_REACH = 2.0
"""How far bounds reach beyond the tail's quantile."""

CLEAR = 4.5
"""How many noises the count of a cell needs to be sure, alone or with its neighbours."""

STILL = 0.1
"""The variance, bounds being −1 and 1, from which on a column varies whatever the noise."""

LEAST_VARIANCE = 1e-3
"""The least variance of a column, its bounds being −1 and 1."""

MOST_RATIO = 64.0
"""How many scales bounds reach from a centre at most: the lattice divides that by 2^14."""


def can_place(regime: Regime, n_numeric: int) -> bool:
    """Whether counts stand out of their noise enough to place so many columns."""
    return regime.counts(n_numeric) >= LEAST_COUNTS


def place_share(regime: Regime, n_numeric: int) -> float:
    """Return the share of ρ that placing the numeric columns takes."""
    q = regime.counts(n_numeric)
    return clamp(min(clamp(100 / q**2, 0.06, 0.4), q**2 / 1000), 0.001, 0.4)


def is_rich(regime: Regime, n_numeric: int) -> bool:
    """Whether tails and moments can be bought, for a third of the share each."""
    return n_numeric > 0 and regime.counts(n_numeric) >= RICH_COUNTS


def look_shares(regime: Regime, share: float, *, rich: bool) -> tuple[float, ...]:
    """Return the shares of ρ of the histograms that are looked at, one after the other, at most.

    The first is a glance, from which all columns together tell whether they fit their bounds.
    """
    n_looks = 4 if rich else 2
    each = share / n_looks
    return min(3 * regime.need, each), *(n_looks * (each,))


def feature_reach(regime: Regime, n_numeric: int) -> float:
    """Return how far a column's bounds reach from its centre, in its scales, at least."""
    return clamp(regime.counts(n_numeric) / 12, 2.0, 7.0)


def tail_noise(regime: Regime, n_numeric: int, share: float) -> float:
    """Return the noise of a count in the search for tails, as a share of the rows."""
    return math.sqrt(n_numeric * TAIL_LEVELS / (2 * share * regime.rho)) / regime.n_rows


def tail_quantile(regime: Regime, noise: float) -> Fraction:
    """Return the quantile of |x − centre| that tells the tail: as high as the noise allows."""
    part = clamp(1 - 3 * noise, 0.8, 1 - 2 / regime.n_rows)
    return Fraction(math.floor(2**20 * part), 2**20)


def point_share(regime: Regime, n_points: int) -> float:
    """Return the share of ρ at which a tenth of the rows stand out off so many points."""
    return clamp(n_points * (10 * CLEAR / regime.n_rows) ** 2 / (2 * regime.rho), 0.05, 0.12)


def finds_points(regime: Regime, n_points: int) -> bool:
    """Whether a quarter of the rows, in four octaves, would stand out off so many points."""
    noise = math.sqrt(n_points / (2 * point_share(regime, n_points) * regime.rho))
    return 2 * CLEAR * noise <= regime.n_rows / 4


def tail_octaves(scales: Iterable[float]) -> float:
    """Return how far below the declared bounds tails are looked for: no less than scales lie."""
    return float(max([TAIL_OCTAVES, *(math.ceil(-math.log2(scale)) for scale in scales)]))


def binary_share(regime: Regime, n_binary: int) -> float:
    """Return the share of ρ for the means of 0/1 columns, where they are released alone."""
    return clamp(10 * n_binary / (regime.n_rows**2 * regime.rho), 0.01, 0.1)


# --- the residuals' scale and the features' spread ------------------------------------------------

SPREAD_SHARE = 0.01
UNKNOWN_SPREAD = 1 / 3


RESIDUAL_CLIP = 2.0
"""Where residuals are clipped for their mean square, in deviations: these are only lowered."""


def rescale_share(regime: Regime) -> float:
    """Return the share of ρ of one new estimate of the residuals' scale."""
    return clamp(regime.need, 0.0025, 0.02)


def has_few_residuals(regime: Regime) -> bool:
    """Whether rows are so few that a quantile of residuals tells more than their mean square."""
    return regime.need > 0.01


def rescale_times(regime: Regime) -> tuple[float, ...]:
    """Return when the residuals' scale is estimated anew, as fractions of the path."""
    if not has_few_residuals(regime):
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
MEAN_SHARE = 0.015
"""The share of ρ for how far out residuals lie, and again for their mean up to there."""


STEPS_PER_FEATURE = 2
"""Steps of a path for each of `max_features`: one that selects it, and one that may repeat another.

Small steps admit features that are correlated with the first ones (docs/private-lasso.md)."""


def n_steps(regime: Regime) -> int:
    """Return T: M/4, but no more than 200, or 2.5√M where that is more."""
    slow = 2.5 * math.sqrt(regime.signal)
    return round(clamp(regime.signal / 4, max(6, slow), max(200, slow)))


def path_steps(regime: Regime, max_features: int | None) -> int:
    """Return T of a path that a refit follows: no more than it takes to select the features."""
    steps = n_steps(regime)
    return steps if max_features is None else min(steps, STEPS_PER_FEATURE * max_features)


def first_step(regime: Regime, *, deviation: float, spread: float, n_iter: int) -> float:
    """Return η₀, in units of the target: the steps add up to about 0.4√T or 0.5√T deviations."""
    length = min(regime.signal / 25, clamp(math.sqrt(regime.signal / 250), 0.8, 1.0))
    return length * deviation / (spread * math.sqrt(n_iter))


def clip_factor(regime: Regime) -> float:
    """Return the clip, in median absolute deviations of the residuals."""
    return clamp(regime.signal / 600, 0.6, 3.0)


def cell_clip(regime: Regime, *, spread: float) -> float:
    """Return where cells are clipped when a feature is chosen, on the lattice.

    Noise is as large as the largest cell. A cell of one root mean square tells nearly as much as
    one of three, at a third of the noise; with more signal there is less to gain.
    """
    return (1 + regime.signal / 400) * spread


def smallest_weight(regime: Regime, *, deviation: float, spread: float) -> float:
    """Return the size below which a final weight is dropped: less where there are few steps."""
    level = min(0.05, 2.5 / math.sqrt(regime.drawn), regime.signal / 2000)
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


# --- screening from released selections ----------------------------------------------------------

MOST_NEW = Fraction(2, 3)
"""Largest share of the steps so far that may have selected a new feature, for screening.

Tuned on settings that the evidence does not use (docs/decisions/2026-11-free-screening.md)."""


def screening_step(n_iter: int) -> int:
    """Return the number of steps after which a path is screened: half of them."""
    return n_iter // 2


def screens(n_selected: int, n_steps: int) -> bool:
    """Whether a path that selected so many distinct features in its first steps is screened."""
    return 0 < n_selected <= MOST_NEW * n_steps


# --- the refit ------------------------------------------------------------------------------------

NEWTON_STEPS = 3
GRAM_PART = 0.3
"""The part of the refit's budget that pays for the Gram matrix."""

PRIVATE_PART = 0.25
"""The variance of privacy noise over that of sampling, up to which clips are loosened."""

RIDGE = 0.3
SEEN = 4.0
"""By how many noise deviations the variance of a column that may be one point must stand out."""

ALL_NOISE, ALL_ROWS = 100.0, 20.0
"""How large n√(2ρ) and n must be for each feature, for all of them to be refitted."""

ROWS_PER_REFIT = 10
MOST_REFITTED = 500


def refit_share(regime: Regime) -> float:
    """Return the part of what is left that the refit takes from the path."""
    return clamp(regime.signal / 100, 0.25, 0.5)


def refits_all(regime: Regime) -> bool:
    """Whether all features are refitted, not only those that were chosen."""
    noise = regime.depth(regime.rho) / regime.n_features
    return noise >= ALL_NOISE and regime.drawn / regime.n_features >= ALL_ROWS


def most_refitted(regime: Regime) -> int:
    """Return how many features are refitted at most."""
    return max(1, min(int(regime.drawn) // ROWS_PER_REFIT, MOST_REFITTED))


def newton_parts() -> tuple[Fraction, ...]:
    """Return how the Newton steps divide what the Gram matrix leaves: later ones get more."""
    return tuple(Fraction(2**k, 2**NEWTON_STEPS - 1) for k in range(NEWTON_STEPS))


def refit_clips(regime: Regime, n_columns: int, rho: float) -> tuple[float, float]:
    """Return where residuals are clipped, in deviations, and rows, in √q scales, for q columns.

    Their product is what makes noise in the last step, which costs `rho`.
    """
    room = math.sqrt(PRIVATE_PART * 2 * rho * regime.n_rows / regime.thinning / n_columns)
    return max(1.0, room ** (2 / 3)), max(1.0, room ** (1 / 3))


# --- steps along all features ---------------------------------------------------------------------

WALK_STEPS, WALK_GROWTH = 8, Fraction(13, 10)
WALK_GRAM_PART = 0.25
"""The part of the walk's budget that pays for the Gram matrix."""


def sees_matrix(regime: Regime, least: float) -> bool:
    """Whether noise lets the Gram matrix of all features be seen: n√(2ρ) is so many d^1.5.

    It moves eigenvalues, in units of their mean, by about 2.6√d over n√(2ρ)/d. And there must be
    rows enough for a matrix.
    """
    few = regime.n_features <= most_refitted(regime)
    return few and regime.depth(regime.rho) >= least * math.pow(regime.n_features, 1.5)


def walk_parts() -> tuple[Fraction, ...]:
    """Return how the steps divide what the matrix leaves: later ones get more."""
    sizes = [WALK_GROWTH**k for k in range(WALK_STEPS)]
    return tuple(size / sum(sizes) for size in sizes)


def walk_rescale_share(regime: Regime) -> float:
    """Return the share of ρ of one new estimate of the residuals' scale: four of a path in all."""
    return 4 * rescale_share(regime) / (WALK_STEPS - 1)


# --- how good it is -------------------------------------------------------------------------------

QUALITY_SHARE = 0.03


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
