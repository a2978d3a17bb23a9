"""Intervals of coefficients, as a model holds and prints them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dpscreen._core.arrays import Array
from dpscreen._core.words import number

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


def caveats(
    shortened: float,
    undetected: float,
    per_coefficient: tuple[Array, Array, Array],
    estimator: str,
) -> Iterator[str]:
    """Yield how the non-private estimate on the same rows may differ, and what may be hidden.

    For each coefficient: the bias of clipping, how far a group of rows that is not detectable
    could move it, and its standard error.
    """
    clip_bias, shifts, errors = per_coefficient
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
    shift = float((shifts / errors).max(initial=0.0))
    if shift > 1:
        yield (
            f"A group of fewer than {undetected:.0f} rows is not detectable at this budget and "
            f"could move a coefficient by up to {number(shift, digits=2)} standard errors."
        )
