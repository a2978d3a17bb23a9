"""Counts and other outcomes that are not negative: the linear predictor is the log of the mean.

The part of the deviance that is explained, and a calibration, are released.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtr

from dpscreen._core.arrays import Array, clamp
from dpscreen._core.words import EffectScale, exponential, number
from dpscreen.families.base import NUMBER, Family, FamilyModel, SimulatedFamily, Words
from dpscreen.families.quality import (
    CONSTANT,
    NOISE,
    WIDEST_FACTOR,
    Called,
    Measure,
    Measured,
    NoisySum,
    QualityReleases,
    Ranges,
)
from dpscreen.privacy.accountant import release_sums
from dpscreen.rows import fits
from dpscreen.rows.lattice import ExactPoint
from dpscreen.rows.loss import EXPONENTIAL, FADED
from dpscreen.rows.sums import LEVELS

# --- quality: deviance explained, and calibration -------------------------------------------------

DECILES = np.array([-1.2816, -0.8416, -0.5244, -0.2533, 0.0, 0.2533, 0.5244, 0.8416, 1.2816])
"""Those of a normal predictor. Derived."""

DEVIANCE_PART = Fraction(7, 20)
"""Of the cost, for either deviance; the rest is for the calibration. Tuned."""

LEAST_CLIP, MOST_CLIP, CLIP_NOISE = 16.0, 64.0, 0.02
"""The most deviance that a row counts for, in dispersions, and up to which share of the mean its
noise leaves more. Conventional."""

CLIP_SCALES, WIDEST_EXPLAINED = 3.0, 0.5
"""Where outcomes are clipped for the calibration, in standard deviations beyond the largest decile;
and the widest interval of the deviance explained. Conventional."""

CALIBRATION = "counts and outcomes by predicted mean"
"""What the statement calls the table."""


@dataclass(frozen=True)
class RateQuality(Measured):
    """Deviance explained by a model on the rows of the fit, with a 95 % interval.

    That is 1 − D/D₀ of the Poisson deviances D of the model and D₀ of the constant `null_mean`,
    which was released before. Outcomes are clipped to the declared bounds, and a row counts for
    `most` in either deviance at most. Rows were counted by predicted means between `edges`, about
    the deciles: `rows` are noisy counts, from below the first edge to above the last, and
    `outcomes` noisy sums of outcomes, `clip` a row at most. The noise of the counts, and of the
    sums over `clip`, has a standard deviation of `noise`. A measure that is not known is NaN, and
    `explained_reason` says why: "noise", "undetected rows" or "constant"; else that is None.
    """

    measures: ClassVar[tuple[Called, ...]] = (
        Called("deviance_explained", "explained", "deviance explained"),
    )
    columns = {"edges": 0, "rows": 1, "outcomes": 1}  # noqa: RUF012
    file_field = "rate_quality"
    charts = ("calibration",)

    deviance_explained: float
    explained_low: float
    explained_high: float
    null_mean: float
    most: float
    in_sample: bool
    clip: float
    noise: float
    edges: tuple[float, ...]
    rows: tuple[float, ...]
    outcomes: tuple[float, ...]
    explained_reason: str | None = None

    def _compared(self) -> str:
        """Return where the deviance of a row is clipped."""
        known = self.explained_reason is None
        return f", deviances of rows clipped at {number(self.most, digits=3)}" * known

    @classmethod
    def release_measures(
        cls,
        releases: QualityReleases,
        point: ExactPoint,
        null: ExactPoint,
        ranges: Ranges,
        *,
        in_sample: bool,
    ) -> RateQuality:
        """Release sums of unit deviances of the model and of a constant, and rows by prediction.

        (docs/theory/quality.md, Lemma 92)
        """
        mean, unit = math.exp(ranges.null), ranges.unit
        free = CLIP_NOISE * releases.n_rows * math.sqrt(2 * float(releases.cost * DEVIANCE_PART))
        most = clamp(free, LEAST_CLIP, MOST_CLIP) * ranges.target_scale**2 / mean
        most = min(most, fits.MOST_DEVIANCE)
        deviances = []
        for at, shift, what in ((point, 0.0, "the model"), (null, ranges.null, "a constant")):
            counted, total = at.fit_total(fits.deviance_total, shift, most).tolist()
            purpose = f"deviance of {what}"
            found = releases.total(total, counted, LEVELS, DEVIANCE_PART, purpose)
            deviances.append(releases.mean(found, [NoisySum(0.0)], WIDEST_FACTOR, 1 / LEVELS))
        places = ranges.null - ranges.scale**2 / 2 + ranges.scale * DECILES
        edges = np.clip(places if ranges.scale else places[:1] - 1, -FADED, 0.0)
        clip = min(math.exp(float(edges[-1])) + CLIP_SCALES * ranges.target_scale, 1.0)
        sums, noise = release_sums(
            releases.accountant,
            point.fit_total(fits.calibration_sums, edges, clip).ravel(),
            units_per_one=LEVELS,
            change=math.sqrt(2),
            cost=releases.cost * (1 - 2 * DEVIANCE_PART),
            purpose=CALIBRATION,
        )
        rows, outcomes = sums.reshape(2, -1)
        low, high = ranges.effects.sum(axis=0).tolist()
        return cls(
            **cls.fields(_explained(*deviances, constant=low == high)),
            null_mean=mean * unit,
            most=most * unit,
            in_sample=in_sample,
            clip=clip * unit,
            noise=noise,
            edges=tuple((np.exp(edges) * unit).tolist()),
            rows=tuple(rows.tolist()),
            outcomes=tuple((clip * unit * outcomes).tolist()),
        )


def _explained(found: Measure, whole: Measure, *, constant: bool) -> Measure:
    """Return 1 − D/D₀: between its values at the ends of both, or why it is not known."""
    reason = CONSTANT if constant else found.reason or whole.reason
    if reason is not None:
        return Measure(reason=reason)
    low, high = 1 - found.high / whole.low, 1 - found.low / whole.high
    if high - low > WIDEST_EXPLAINED:
        return Measure(reason=NOISE)
    return Measure(clamp(1 - found.value / whole.value, low, high), low, high)


# --- the family -----------------------------------------------------------------------------------

LEAST_MEAN = 1e-300
"""Means below this are taken for it: a mean of nothing has no logarithm. Conventional."""


def _exp(predictors: Array) -> Array:
    return np.exp(np.minimum(predictors, 700.0))


def poisson_deviance(outcomes: Array, means: Array) -> Array:
    """Return 2(y ln(y/μ) − y + μ) of every row."""
    from scipy.special import xlogy

    means = np.maximum(means, LEAST_MEAN)
    return np.asarray(2 * (xlogy(outcomes, outcomes / means) - outcomes + means))


def deviance_explained(predicted: Array, outcomes: Array) -> float:
    """Return the part of the deviance from the mean that predictors explain; −0.5 at least."""
    whole = float(poisson_deviance(outcomes, np.full(len(outcomes), outcomes.mean())).sum())
    left = float(poisson_deviance(outcomes, _exp(predicted)).sum())
    return max(-0.5, 1 - left / whole) if whole else 0.0


def _counts(predictors: Array, noise: Array, _: float) -> Array:
    from scipy.stats import poisson  # slow to import

    return np.asarray(poisson.ppf(ndtr(noise), _exp(predictors)), dtype=np.float64)


def _contested(expected: Array) -> tuple[Array, float, tuple[float, float]]:
    """Counts of three in the mean."""
    return 0.7 * (expected - expected.mean()) / expected.std() + 0.85, 1.0, (0.0, 100.0)


def _without_privacy(_error: float | None) -> Any:
    from sklearn.linear_model import PoissonRegressor

    return PoissonRegressor(alpha=1e-3, max_iter=500)


POISSON = Family(
    name="poisson",
    loss=EXPONENTIAL,
    link=lambda means: np.log(np.maximum(means, LEAST_MEAN)),
    inverse_link=_exp,
    variance=np.asarray,
    inverse="exp",
    target=NUMBER,
    has_scale=True,
    saturated=FADED,
    in_parts=True,
    quality_type=RateQuality,
    metric=("d2_tweedie_score", {"power": 1}),
    sparse=FamilyModel(
        "private-poisson-lasso",
        "PrivatePoissonLasso",
        "Count, cost or duration",
        "Predicts the mean of a number that is not negative, from the few features that matter.",
        ", counts with a mean of 1; one standard deviation of a feature that matters multiplies "
        "the mean by 1.2.",
    ),
    table=FamilyModel(
        "private-poisson",
        "PrivatePoisson",
        "Rate ratios of a count or cost",
        "A rate ratio with its interval for every feature: the target is a number from 0 on.",
        ", counts with a mean of 1; one standard deviation of all features together multiplies "
        "the mean by 1.6.",
    ),
    words=Words(
        regression="Poisson regression",
        plain="quasi-Poisson regression",
        effects=EffectScale("rate ratio", exponential, column="rate_ratio", ratio=True),
        effects_are="Rate ratio: of the mean, for the step.",
        multiplied="the mean",
        predictor="log-means",
        increment="log-mean",
        sampling="(robust to any variance)",
        predicted="mean of {target}",
        asked="the mean of {target}",
        constant=lambda mean: f"a mean of {number(mean, digits=4)}",
        unfit="the target may be negative by its declared bounds, and a Poisson model requires "
        "one that is not: declare a minimum of 0 or above.",
        default="The target {target!r} is not negative: if it is a count, a cost or a duration, "
        "--model poisson (or poisson-lasso) models the logarithm of its mean.",
    ),
    simulation=SimulatedFamily(
        outcomes=_counts,
        score=deviance_explained,
        worst=-0.5,
        spreads=(0.5, 1.0),
        contested=_contested,
        caution="Counts without overdispersion are assumed: with it, intervals are wider.",
        without_privacy=_without_privacy,
        division="counts",
        effects=(0.02, 0.05, 0.1, 0.2, 0.3, 0.5),
        usual_effect=0.2,
        rate=1.0,
        rate_words="a mean of {:.3g}",
        rate_caution=" That is with a mean of 1: of rarer counts less is found, as dpscreen plan "
        "--rate shows.",
    ),
)
"""Counts and other outcomes that are not negative: the linear predictor is the log of the mean."""
