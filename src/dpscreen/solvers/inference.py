"""Intervals for PrivateLasso: one half of the rows selects, the other estimates.

A secret coin sends each row to one half, so one row touches one half only and each half may spend
the whole budget (docs/private-lasso.md, Lemma 16). The second half takes one step of least squares
from the first half's weights, on sums with Gaussian noise (Lemma 17), and counts that noise in its
standard errors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dpscreen._core.arrays import Array, Integers
from dpscreen.privacy import ZCDP, Accountant, MechanismRecord, PrivacyStatement
from dpscreen.privacy.accountant import release_sums, release_triangle
from dpscreen.rows.lattice import UNITS, ExactDesign
from dpscreen.rows.source import PublicUnits, RowSource
from dpscreen.rows.sums import ShortRows
from dpscreen.solvers import rules
from dpscreen.solvers.base import Spending, release_residual_deviation
from dpscreen.solvers.refit import constant_level

LEAST_SIGNAL = 80
"""The M below which no intervals are given."""

MOST_FEATURES = 20
ROWS_PER_FEATURE = 20
NOISE_PER_FEATURE = 50
"""How large (n/2)√(2ρ) has to be for each feature."""

SCALE_SHARE, GRAM_SHARE, MIDDLE_SHARE = Fraction(4, 100), Fraction(28, 100), Fraction(15, 100)
MOMENT_SHARE = 1 - SCALE_SHARE - GRAM_SHARE - MIDDLE_SHARE

CLIPS = (3.0, 10.0)
"""Where residuals are clipped, in deviations: at least, at most."""

PRIVATE_PART = 0.25
"""Between the two, the variance of privacy noise in Σψx over that of sampling."""

NORMAL_975 = 1.959963984540054

MEANING = (
    "95 % per coefficient, not simultaneous, for the best linear predictor on the listed features "
    "{constant}, each clipped to its feature_bounds_ and the target to target_bounds_; counting "
    "sampling, privacy noise and selection; not a causal effect."
)

PARALLEL = (
    "that a secret coin of its own sent each row to one of two halves; one row touches one half "
    "only, so costs add within a half, and rho has the larger of the two sums, not their total "
    "(docs/private-lasso.md, Lemma 16)"
)


@dataclass(frozen=True)
class FeatureInterval:
    """One coefficient in the user's units, with its standard error and 95 % interval."""

    feature: int
    name: str
    coefficient: float
    standard_error: float
    low: float
    high: float


@dataclass(frozen=True)
class Inference:
    """Intervals with what they mean, or the reason why there are none. Released values only."""

    available: bool
    wording: str
    intervals: tuple[FeatureInterval, ...] = ()

    def __str__(self) -> str:
        lines = (
            f"{row.name}: {row.coefficient:.6g} (s.e. {row.standard_error:.3g}), "
            f"{row.low:.6g} to {row.high:.6g}"
            for row in self.intervals
        )
        return "\n".join((*lines, self.wording))


def not_available(reason: str) -> Inference:
    """Return the refusal, in plain words."""
    return Inference(False, f"Intervals are not available: {reason}")


# --- the split ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SplitHalf:
    """Some of the rows, and the spending that pays for what is released about them."""

    spending: Spending
    rows: RowSource

    def reserving(self, share: float) -> SplitHalf:
        """Return the same half with a share of its limit kept for later."""
        limit = self.spending.limit * (1 - Fraction(share))
        return replace(self, spending=replace(self.spending, limit=limit))


def n_listed(regime: rules.Regime) -> int:
    """Return q, how many features get intervals at most, from the regime of all rows."""
    half = regime.n_rows // 2
    by_noise = half * math.sqrt(2 * regime.rho) / NOISE_PER_FEATURE
    return int(min(MOST_FEATURES, by_noise, half / ROWS_PER_FEATURE))


def clip_factor(regime: rules.Regime, *, spread: float, row_norm: float) -> float:
    """Return the clip in deviations, from the regime of one half.

    Clipping biases where residuals are skewed and their spread follows the features, so it is as
    loose as can be while privacy noise is a small part of all: c²ν²/(2ρ_b) against nσ_x².
    """
    room = 2 * float(MOMENT_SHARE) * regime.rho * regime.n_rows * (spread / row_norm) ** 2
    return rules.clamp(math.sqrt(PRIVATE_PART * room), *CLIPS)


def refusal(regime: rules.Regime) -> str | None:
    """Return why there can be no intervals, from public numbers; None if there can be."""
    instead = "The model was fitted on all rows, without a split."
    if regime.signal < LEAST_SIGNAL:
        return (
            f"M = n√(2ρ)/ln(2d) is {regime.signal:.0f} and has to be at least {LEAST_SIGNAL}: there"
            f" are too few rows for this budget. {instead}"
        )
    if n_listed(regime) < 1:
        return f"half of the rows cannot carry one coefficient at this budget. {instead}"
    return None


def split(spending: Spending, rows: RowSource) -> tuple[SplitHalf, SplitHalf]:
    """Return two halves by secret coins, each with all that is left and the nominal n/2."""
    noise, unit = spending.accountant.noise, spending.accountant.unit
    limit = spending.remaining
    heads = noise.coins(rows.n_rows)
    regime = replace(spending.regime, n_rows=max(1, spending.regime.n_rows // 2))
    first, second = (
        SplitHalf(
            Spending(Accountant(noise, limit=limit, unit=unit), limit, regime), rows.where(side)
        )
        for side in (heads, ~heads)
    )
    return first, second


def parallel_cost(whole: Spending, first: Spending, second: Spending) -> ZCDP:
    """Return what all rows were asked, and the larger cost of the two halves (Lemma 16)."""
    halves = (first.accountant.spent.rho, second.accountant.spent.rho)
    return ZCDP(whole.accountant.spent.rho + max(halves))


def parallel_statement(
    rho: float, whole: PrivacyStatement, first: PrivacyStatement, second: PrivacyStatement
) -> PrivacyStatement:
    """Return one statement, at `rho`, for what all rows and then two halves were asked."""
    halves = (*_named("first half", first), *_named("second half", second))
    return replace(
        first,
        rho=rho,
        mechanisms=(*whole.mechanisms, *halves),
        public=(*first.public, PARALLEL),
    )


def _named(half: str, statement: PrivacyStatement) -> list[MechanismRecord]:
    return [replace(record, purpose=f"{half}: {record.purpose}") for record in statement.mechanisms]


# --- the second half ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Selected:
    """What the first half released: the model, and the numbers that scale the second half."""

    weights: Array
    units: PublicUnits
    deviation: float
    spread: float

    def columns(self, most: int) -> Integers:
        """Return the features with the largest weights, then the constant if there is one."""
        d = len(self.units.feature_bounds)
        order = np.argsort(-np.abs(self.weights[:d]), kind="stable")[:most]
        chosen = np.sort(order[self.weights[order] != 0])
        return np.append(chosen, d) if self.units.constant and chosen.size else chosen

    def row_norm(self, n_columns: int) -> float:
        """Return ν: few rows of normal features of that spread are longer."""
        q = n_columns - self.units.constant
        square = self.spread**2 * (self.units.constant + q + 3 * math.sqrt(2 * q))
        return math.sqrt(min(square, n_columns))

    def short_rows(self, chosen: Integers) -> ShortRows:
        """Return the rows of these columns; a constant among them is as large as features are."""
        level = constant_level(self.spread) if self.units.constant else 0
        return ShortRows(chosen, self.row_norm(len(chosen)), level)


def infer(half: SplitHalf, selected: Selected, names: Sequence[str]) -> Inference:
    """Release intervals for the features that the first half weighs most."""
    spending, units = half.spending, selected.units
    everything = replace(spending.regime, n_rows=2 * spending.regime.n_rows)
    chosen = selected.columns(n_listed(everything))
    if not chosen.size:
        return not_available("the first half selected no feature.")
    start = np.zeros_like(selected.weights)
    start[chosen] = selected.weights[chosen]
    design = half.rows.lattice(units)
    moments = _release_moments(spending, design, selected, start, chosen)
    if not moments.clear:
        return not_available(
            "the listed features are too collinear, or vary too little, for the privacy noise."
        )
    return _intervals(moments, start[chosen], units, chosen, names)


@dataclass(frozen=True)
class Moments:
    """Noisy sums of the second half, and the deviations of the noise.

    Residuals are fit − y, in units of the clip; so are the correction and its covariance.
    """

    gram: Array
    moment: Array
    middle: Array
    gram_noise: float
    moment_noise: float
    clip: float

    @property
    def clear(self) -> bool:
        """Whether the Gram matrix stands out of its noise in every direction."""
        least = float(np.linalg.eigvalsh(self.gram)[0])
        return least >= self.gram_noise * math.sqrt(len(self.moment))

    @property
    def correction(self) -> Array:
        """Return θ, the step of least squares away from the first half's weights."""
        return np.asarray(-np.linalg.solve(self.gram, self.moment))

    @property
    def covariance(self) -> Array:
        """Return G⁻¹(M₊ + P)G⁻¹, P the covariance of the privacy noise in b + Gθ."""
        theta = self.correction
        size = float(theta @ theta)
        crossed = np.outer(theta, theta)
        np.fill_diagonal(crossed, size)
        private = self.moment_noise**2 * np.eye(theta.size) + self.gram_noise**2 * crossed
        values, vectors = np.linalg.eigh(self.middle)
        sampling = (vectors * np.maximum(values, 0)) @ vectors.T
        inverse = np.linalg.inv(self.gram)
        return np.asarray(inverse @ (sampling + private) @ inverse)


def _release_moments(
    spending: Spending, design: ExactDesign, selected: Selected, start: Array, chosen: Integers
) -> Moments:
    """Release the residuals' scale, then the three sums; together the whole limit.

    (docs/private-lasso.md, Lemmas 11, 13 and 17)
    """
    point = design.at(start, scale=max(selected.deviation, float(np.abs(start).max())))
    short = selected.short_rows(chosen)
    norm = short.row_norm
    clip = clip_factor(spending.regime, spread=selected.spread, row_norm=norm)
    clip *= release_residual_deviation(
        spending, point, top=2 * selected.deviation, cost=spending.limit * SCALE_SHARE
    )

    def release(matrix: Integers, share: Fraction, purpose: str) -> tuple[Array, float]:
        cost = spending.limit * share
        return release_triangle(
            spending.accountant,
            matrix,
            units_per_one=UNITS,
            row_norm=norm,
            cost=cost,
            purpose=purpose,
        )

    gram, gram_noise = release(design.short_gram(short), GRAM_SHARE, "features squared")
    moment, moment_noise = release_sums(
        spending.accountant,
        point.short_products(clip, short),
        units_per_one=UNITS,
        change=norm,
        cost=spending.limit * MOMENT_SHARE,
        purpose="residuals times features, in units of the clip",
    )
    middle, _ = release(point.short_middle(clip, short), MIDDLE_SHARE, "the same squared")
    return Moments(gram, moment, middle, gram_noise, moment_noise, clip)


def _intervals(
    moments: Moments, start: Array, units: PublicUnits, chosen: Integers, names: Sequence[str]
) -> Inference:
    estimates = start + moments.clip * moments.correction
    errors = moments.clip * np.sqrt(np.diag(moments.covariance))
    half_widths = units.feature_half_widths
    features = chosen[: len(chosen) - units.constant]
    constant = "and a constant" if units.constant else "without a constant"
    return Inference(
        True,
        MEANING.format(constant=constant),
        tuple(
            _interval(j, names[j], float(estimate / half_widths[j]), float(error / half_widths[j]))
            for j, estimate, error in zip(features.tolist(), estimates, errors, strict=False)
        ),
    )


def _interval(feature: int, name: str, coefficient: float, error: float) -> FeatureInterval:
    half_width = NORMAL_975 * error
    return FeatureInterval(
        feature, name, coefficient, error, coefficient - half_width, coefficient + half_width
    )
