"""Intervals of coefficients, as a model holds and prints them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from dpscreen._core.arrays import Array
from dpscreen._core.words import how_many, number, some
from dpscreen.solvers.gram import Unidentified
from dpscreen.solvers.split import SplitTable

NOTED_BIAS = 0.5
"""Conventional: the part of a standard error from which the bias of clipping is reported."""

MEANING = (
    "Intervals are 95 % for each coefficient, not simultaneous. They are for the linear model "
    "{model}, on rows clipped {bounds}. Standard errors include sampling error {sampling} and all "
    "privacy noise. Coefficients are not causal effects."
)
CLUSTERED = "(robust to correlation within units)"


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
    counted: str = "rows",
) -> Iterator[str]:
    """Yield how the non-private estimate on the same rows may differ, and what may be hidden.

    For each coefficient: the bias of clipping, how far a group of rows that is not detectable
    could move it, and its standard error.
    """
    clip_bias, shifts, errors = per_coefficient
    if shortened >= 1:
        yield (
            f"About {shortened:.0f} {counted} have high leverage and are down-weighted; where the "
            f"truth is no line, plain {estimator}, which follows them, may differ."
        )
    if (clip_bias > NOTED_BIAS * errors).any():
        yield (
            f"Large residuals are clipped, mostly on one side: plain {estimator} may differ by "
            "half a standard error or more, and intervals may cover too seldom."
        )
    shift = float((shifts / errors).max(initial=0.0))
    if shift > 1:
        yield (
            f"A group of fewer than {undetected:.0f} {counted} is not detectable at this budget "
            f"and could move a coefficient by up to {number(shift, digits=2)} standard errors."
        )


TRIED = (
    "Intervals were sought for {}, those with the largest coefficients in the first half; other "
    "coefficients serve the predictions."
)


def of_split(table: SplitTable | str, all_names: Sequence[str], n_used: int = 0) -> Inference:
    """Return the intervals of a split's table, or why there is none; and why features lack one.

    `n_used` features have a coefficient in the first half.
    """
    if isinstance(table, str):
        return Inference.not_available(table)
    found, family, features = table.release, table.release.family, table.features
    names = [all_names[j] for j in features]
    without = {one.feature: why_unidentified(one, names) for one in found.unidentified}
    reasons = []
    for why in dict.fromkeys(without[k] for k in sorted(without)):  # one reason for several
        reasons.append(f"{some([names[k] for k in sorted(without) if without[k] == why])}: {why}")
    given = [k for k in range(len(names)) if k not in without]
    if not given:
        return Inference.not_available(" ".join(reasons))
    errors = np.sqrt(np.diag(found.covariance))
    coefficients = table.units.in_users_units(found.weights)[0][features]
    numbers = (coefficients, errors, stdtrit(found.freedom, 0.975) * errors)
    beside = [names[one.feature] for one in found.unidentified if not one.dropped]
    others = f"and of {some(beside)}" if beside else "alone"
    linear_in = f"of {family.words.predictor} " if family.words.predictor else ""
    constant = "and a constant" if table.units.constant else "without a constant"
    meaning = MEANING.format(
        model=f"{linear_in}of the features with an interval {others}, {constant}",
        bounds="to the declared bounds",
        sampling=family.words.sampling,
    )
    moved = found.bias[given], found.shift[given], errors[given]
    notes = [*caveats(found.long_rows, found.undetected, moved, family.words.plain)]
    if len(features) < n_used:
        notes.append(TRIED.format(how_many(len(features), "feature")))
    return Inference(
        True,
        " ".join((meaning, *reasons, *notes)),
        tuple(
            FeatureInterval.of(int(features[k]), names[k], *(float(one[k]) for one in numbers))
            for k in given
        ),
    )


def why_unidentified(one: Unidentified, names: Sequence[str]) -> str:
    """Say why there is no interval of a feature."""
    after = "dropped"
    if one.nuisance:
        return "adjusted for and not estimated: the budget went to the coefficients of interest."
    if not one.converged:
        return (
            "the Newton rounds did not converge, as where outcomes are nearly certain; it stays in "
            "the model as far as they came."
        )
    if not one.detected:
        why = "its variance is not detected above the privacy noise"
    elif one.dropped:
        partners = [names[j] for j in one.partners if j < len(names)]
        why = f"not separable from {some(partners) or 'a combination of other features'}"
    else:
        why = "privacy noise hides its coefficient"
        after = "it stays in the model at its posterior mean"
    return f"not identifiable at this budget: {why}; {after}."
