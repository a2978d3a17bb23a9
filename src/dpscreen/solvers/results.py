"""What a fit reports, as a model and its file hold and print it: measures of quality, intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from dpscreen._core.arrays import Array
from dpscreen._core.words import number

NOISE, UNDETECTED, CONSTANT = "noise", "undetected rows", "constant"
REASONS = {
    NOISE: "privacy noise is too large for so few rows",
    UNDETECTED: "rows too few to be detected could decide it; narrower bounds would help",
    CONSTANT: "the model is a constant",
}
"""Why a measure is not known."""

COVERAGE = "The 95 % intervals account for privacy noise and for rows that it may hide."


class Called(NamedTuple):
    """How a measure is called: its attribute, the stem of those of its interval, and in print."""

    name: str
    stem: str
    label: str
    significant: int | None = None  # digits; None: three decimals


@dataclass(frozen=True)
class Measure:
    """A number and the ends of its interval; NaN where it is not known, and the reason why."""

    value: float
    low: float
    high: float
    reason: str | None = None

    @classmethod
    def not_known(cls, reason: str) -> Measure:
        """Return a measure without a number."""
        return cls(math.nan, math.nan, math.nan, reason)

    @classmethod
    def of(cls, quality: Any, name: str, stem: str) -> Measure:
        """Return a measure from the fields of a quality."""
        return cls(*(getattr(quality, field) for field in _names(name, stem)))

    def times(self, unit: float) -> Measure:
        """Return the measure in another unit."""
        if self.reason is not None:
            return self
        return Measure(unit * self.value, unit * self.low, unit * self.high, self.reason)

    def shown(self, called: Called) -> str:
        """Return `value (low to high)`, or that it is not known."""
        if self.reason is not None:
            return f"{called.label} not known"
        value, low, high = (
            number(one, digits=called.significant) if called.significant else f"{one:.3f}"
            for one in (self.value, self.low, self.high)
        )
        return f"{called.label} {value} ({low} to {high})"


class Measured:
    """What the qualities of all families share: their measures, as fields and in a sentence."""

    measures: ClassVar[tuple[Called, ...]]
    columns: ClassVar[dict[str, int]]
    """The fields that hold cells; those with 0 are edges, of which others have so many more."""
    in_sample: bool

    @classmethod
    def fields(cls, *found: Measure) -> dict[str, Any]:
        """Return the fields that hold these measures."""
        return {
            field: value
            for called, one in zip(cls.measures, found, strict=True)
            for field, value in zip(_names(*called[:2]), vars(one).values(), strict=True)
        }

    def __str__(self) -> str:
        """Return what is known of each measure, why others are not, and on which rows."""
        found = [Measure.of(self, *one[:2]) for one in self.measures]
        shown = [one.shown(called) for one, called in zip(found, self.measures, strict=True)]
        reasons = dict.fromkeys(one.reason for one in found)
        why = "; ".join(REASONS[one] for one in reasons if one is not None)
        if None not in reasons:
            return f"{', '.join(shown)}: {why}."
        where = "in-sample: on the rows of the fit" if self.in_sample else "on rows held out"
        text = ", ".join(shown) + self._compared() + f" ({why})" * bool(why)
        return f"{text}; {where}. {COVERAGE}"

    @property
    def line(self) -> str:
        """Return the measures in one line, and on which rows they are."""
        shown = ", ".join(Measure.of(self, *one[:2]).shown(one) for one in self.measures)
        return f"{shown}; {'in-sample' if self.in_sample else 'on rows held out'}."

    @property
    def mean_outcome(self) -> float | None:
        """Return the released mean of outcomes, where it is measured and above the noise."""
        return None

    def _compared(self) -> str:
        """Return what the last measure is compared with."""
        return ""


def _names(name: str, stem: str) -> tuple[str, ...]:
    return name, *(f"{stem}_{end}" for end in ("low", "high", "reason"))


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


@dataclass(frozen=True)
class OutcomeQuality(Measured):
    """AUC and deviance of a model on the rows of the fit, each with a 95 % interval.

    AUC is the share of pairs of rows of both classes that the fitted probability orders correctly,
    ties counting half; the deviance is −2 log-likelihood over the number of rows. `null_deviance`
    is that of a model that knows the share of outcomes alone, which was released before. `edges`
    are probabilities between which fitted ones were counted; `no` and `yes` are noisy counts of
    rows of the two classes, from below the first edge to above the last: a reliability plot and an
    ROC curve can be drawn from them. A measure that is not known is NaN, and `auc_reason` or
    `deviance_reason` says why: "noise", "undetected rows" or "constant"; else that is None.
    """

    measures: ClassVar[tuple[Called, ...]] = (
        Called("auc", "auc", "AUC"),
        Called("deviance", "deviance", "deviance"),
    )
    columns = {"edges": 0, "no": 1, "yes": 1}  # noqa: RUF012

    auc: float
    auc_low: float
    auc_high: float
    deviance: float
    deviance_low: float
    deviance_high: float
    null_deviance: float
    in_sample: bool
    edges: tuple[float, ...]
    no: tuple[float, ...]
    yes: tuple[float, ...]
    auc_reason: str | None = None
    deviance_reason: str | None = None

    @property
    def _poor(self) -> list[str]:
        return ["AUC"] * (self.auc <= 0.5) + ["deviance"] * (self.deviance >= self.null_deviance)

    @property
    def line(self) -> str:
        """Return the measures in one line, after a warning if a constant is as good."""
        worse = f"No better than a constant by its {' and '.join(self._poor)}: "
        return worse * bool(self._poor) + super().line

    def __str__(self) -> str:
        worse = f" By its {' and '.join(self._poor)} the model is no better than a constant."
        return super().__str__() + worse * bool(self._poor)

    @property
    def mean_outcome(self) -> float | None:
        """Return the released share of the second class, where it is above the noise."""
        if self.auc_reason is not None:
            return None
        no, yes = (sum(max(0.0, one) for one in counts) for counts in (self.no, self.yes))
        return yes / (no + yes)

    def _compared(self) -> str:
        known = self.deviance_reason is None
        return f" a row, {self.null_deviance:.3f} without features" * known


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
        """Return what a row counts for at most."""
        known = self.explained_reason is None
        return f", a row counting for {number(self.most, digits=3)} at most" * known


# --- intervals of coefficients --------------------------------------------------------------------

NOTED_BIAS = 0.5
"""Conventional: the part of a standard error from which the bias of clipping is reported."""

MEANING = (
    "95 % per coefficient, not simultaneous, for the linear model {model}, on rows clipped "
    "{bounds}; counting sampling {sampling}, and every privacy noise; not a causal "
    "effect."
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

    @classmethod
    def of(
        cls, feature: int, name: str, coefficient: float, error: float, half_width: float
    ) -> FeatureInterval:
        """Return the interval that is so wide to either side."""
        ends = coefficient - half_width, coefficient + half_width
        return cls(feature, name, coefficient, error, *ends)


@dataclass(frozen=True)
class Inference:
    """Intervals with what they mean, or the reason why there are none. Released values only."""

    available: bool
    wording: str
    intervals: tuple[FeatureInterval, ...] = ()

    @classmethod
    def not_available(cls, reason: str) -> Inference:
        """Return the refusal, in plain words."""
        return cls(False, f"Intervals are not available: {reason}")

    def __str__(self) -> str:
        lines = (
            f"{row.name}: {row.coefficient:.6g} (s.e. {row.standard_error:.3g}), "
            f"{row.low:.6g} to {row.high:.6g}"
            for row in self.intervals
        )
        return "\n".join((*lines, self.wording))


def differences(
    shortened: float, clip_bias: Array, errors: Array, estimator: str = "least squares"
) -> Iterator[str]:
    """Yield in which ways the non-private estimate, on the same rows, may differ."""
    if shortened >= 1:
        yield (
            f"About {shortened:.0f} rows have high leverage and are down-weighted; where the truth "
            f"is no line, plain {estimator}, which follows them, may differ."
        )
    if (clip_bias > NOTED_BIAS * errors).any():
        yield (
            f"Large residuals are clipped, mostly on one side: plain {estimator} may differ by "
            "half a standard error or more. The standard errors include that."
        )


def undetected_group(undetected: float, shifts: Array, errors: Array) -> Iterator[str]:
    """Yield how large a group of rows was not detectable, if it could move a coefficient much."""
    shift = float((shifts / errors).max(initial=0.0))
    if shift > 1:
        yield (
            f"A group of fewer than {undetected:.0f} rows is not detectable at this budget and "
            f"could move a coefficient by up to {number(shift, digits=2)} standard errors."
        )
