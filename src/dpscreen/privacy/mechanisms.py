"""Mechanisms as values that carry their guarantee.

Each one says what it requires of the numbers it is given and what it then guarantees. It keeps no
state: the noise is an argument. Only an `Accountant` should call one on private data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol, TypeVar

import numpy as np

from dpscreen._core.arrays import Array, Integers
from dpscreen._core.messages import message
from dpscreen.privacy.budget import ZCDP
from dpscreen.privacy.noise import Noise
from dpscreen.privacy.sampling import (
    LEAST_VARIANCE,
    MOST_VARIANCE,
    ArrayScores,
    Signed,
    SignedSampler,
    SignedScores,
    discrete_gaussian,
    exponential_mechanism,
    workable,
)

Released = TypeVar("Released", covariant=True)


class Mechanism(Protocol[Released]):
    """A noisy function of private numbers."""

    @property
    def name(self) -> str:
        """Name it for the privacy statement."""

    @property
    def sensitivity(self) -> float:
        """Say what it requires: how far one row may move its input."""

    @property
    def scale(self) -> float:
        """Say how much noise it adds."""

    @property
    def cost(self) -> ZCDP:
        """Say what one call costs if the requirement holds."""

    def __call__(self, values: Any, noise: Noise, /) -> Released:
        """Release a noisy answer."""


@dataclass(frozen=True)
class NoisyMax:
    """Index of the largest score after Gumbel noise: the exponential mechanism, sampled exactly.

    Requires    scores are whole numbers of `unit`; one row changes each score by at most
                `sensitivity`, and the changes of any two scores differ by at most `score_range`
                (twice the sensitivity, if nothing better has been proved)
    Guarantees  range²/(8β²)-zCDP, β the scale
                (docs/theory/mechanisms.md, Lemma 2)
    """

    sensitivity: float
    score_range: float
    scale: float
    unit: float = 1.0
    name = "noisy max (exponential mechanism)"

    def __post_init__(self) -> None:
        _check_numbers(self.sensitivity, self.score_range, self.scale, self.unit)

    @classmethod
    def of_cost(
        cls, cost: ZCDP, *, sensitivity: float, unit: float = 1.0, score_range: float | None = None
    ) -> NoisyMax:
        """Return the selection with the least noise that costs no more than `cost`."""
        span = 2 * sensitivity if score_range is None else score_range
        return cls(sensitivity, span, _least_scale(cost, span, 8), unit)

    @cached_property
    def cost(self) -> ZCDP:
        """Return range²/(8β²), exactly."""
        return ZCDP(Fraction(self.score_range) ** 2 / (8 * Fraction(self.scale) ** 2))

    @cached_property
    def scale_in_units(self) -> Fraction:
        """Return β in units of the scores, exactly."""
        return Fraction(self.scale) / Fraction(self.unit)

    def __call__(self, scores: Integers, noise: Noise) -> int:
        """Release the index of the noisy maximum."""
        return exponential_mechanism(_whole(scores), self.scale_in_units, noise)


@dataclass(frozen=True)
class HalfSquare:
    """What mechanisms share that cost Δ²/(2·scale²) (docs/theory/mechanisms.md, Lemmas 2 and 3)."""

    sensitivity: float
    scale: float

    @cached_property
    def cost(self) -> ZCDP:
        """Return Δ²/(2·scale²), exactly."""
        return ZCDP(Fraction(self.sensitivity) ** 2 / (2 * Fraction(self.scale) ** 2))


@dataclass(frozen=True)
class SignedNoisyMax(HalfSquare):
    """Which of the numbers ±g_j is largest after Gumbel noise: index and sign, sampled exactly.

    Requires    g holds whole numbers of `unit`; one row changes each by at most `sensitivity`
    Guarantees  Δ²/(2β²)-zCDP, β the scale, as ±g_j and ±g_k can move apart by twice Δ
                (docs/theory/mechanisms.md, Lemma 2)

    The law is that of `NoisyMax` on the scores g and −g. It is drawn by classes
    (docs/theory/sparse.md, Lemma 20), so `g` may be an array or anything that keeps count of its
    classes.
    """

    unit: float = 1.0
    name = "noisy max (exponential mechanism)"

    def __post_init__(self) -> None:
        _check_numbers(self.sensitivity, self.scale, self.unit)
        workable(self.scale_in_units)

    @classmethod
    def of_cost(cls, cost: ZCDP, *, sensitivity: float, unit: float = 1.0) -> SignedNoisyMax:
        """Return the selection with the least noise that costs no more than `cost`."""
        return cls(sensitivity, _least_scale(cost, 2 * sensitivity, 8), unit)

    @cached_property
    def scale_in_units(self) -> Fraction:
        """Return β in units of the scores, exactly."""
        return Fraction(self.scale) / Fraction(self.unit)

    @cached_property
    def sampler(self) -> SignedSampler:
        """Return what draws: its classes and bounds follow from the scale alone."""
        return SignedSampler(self.scale_in_units)

    def __call__(self, scores: Integers | SignedScores, noise: Noise) -> Signed:
        """Release the index and the sign of the noisy maximum."""
        if isinstance(scores, np.ndarray):
            scores = ArrayScores(_whole(scores))
        return self.sampler(scores, noise)


@dataclass(frozen=True)
class DiscreteGaussian(HalfSquare):
    """A vector of whole numbers of `unit`, with discrete Gaussian noise on the same lattice.

    Requires    values are whole numbers of `unit`; one row moves them by ≤ `sensitivity` in L2
    Guarantees  Δ₂²/(2σ²)-zCDP, σ the scale
                (docs/theory/mechanisms.md, Lemma 3)
    """

    unit: float
    name = "discrete Gaussian vector"

    def __post_init__(self) -> None:
        _check_numbers(self.sensitivity, self.scale, self.unit)
        if not LEAST_VARIANCE < self.variance_in_units < MOST_VARIANCE:
            raise ValueError(message("mechanism.overflow"))

    @classmethod
    def of_cost(cls, cost: ZCDP, *, sensitivity: float, unit: float) -> DiscreteGaussian:
        """Return the release with the least noise that costs no more than `cost`."""
        return cls(sensitivity, _least_scale(cost, sensitivity, 2), unit)

    @cached_property
    def variance_in_units(self) -> Fraction:
        """Return σ² in squared units, exactly."""
        return (Fraction(self.scale) / Fraction(self.unit)) ** 2

    def __call__(self, values: Integers, noise: Noise) -> Array:
        """Release the noisy vector, in the units of the sensitivity."""
        noisy = _whole(values) + discrete_gaussian(self.variance_in_units, values.size, noise)
        return np.asarray(noisy * self.unit, dtype=np.float64)


def _least_scale(cost: ZCDP, change: float, factor: int) -> float:
    """Return the least scale at which change²/(factor·scale²) is at most `cost`."""
    if not cost.rho:
        raise ValueError("a noisy release cannot cost nothing.")
    scale = change / math.sqrt(factor * float(cost))
    _check_numbers(change, scale)
    while Fraction(change) ** 2 / (factor * Fraction(scale) ** 2) > cost.rho:
        scale = math.nextafter(scale, math.inf)
    return scale


def _check_numbers(*numbers: float) -> None:
    if not all(math.isfinite(number) and number > 0 for number in numbers):
        raise ValueError(message("mechanism.numbers"))


def _whole(values: Integers) -> Integers:
    if values.dtype != np.int64:
        raise TypeError("an exact mechanism takes whole numbers (int64) of its unit.")
    return values


@dataclass(frozen=True)
class LaplaceNoisyMax:
    """Index of the largest score after Laplace noise: report-noisy-max.

    Requires    one row changes each score by at most `sensitivity`
    Guarantees  (2Δ/b)-DP, b the scale: with scores that move in both directions the factor 2 stays.
                The paper states Δ/b (docs/errata.md, E4).
    """

    sensitivity: float
    scale: float
    name = "Laplace report-noisy-max"

    @classmethod
    def as_published(cls, epsilon: float, *, sensitivity: float) -> LaplaceNoisyMax:
        """Return the paper's calibration, b = Δ/ε, which guarantees 2ε."""
        return cls(sensitivity, sensitivity / epsilon)

    @property
    def epsilon(self) -> float:
        """Return the pure ε of one call: 2Δ/b."""
        return 2 * self.sensitivity / self.scale

    @cached_property
    def cost(self) -> ZCDP:
        """Return ε²/2: noise that is not Gumbel has no bounded-range discount (Lemma 2)."""
        return ZCDP((2 * Fraction(self.sensitivity) / Fraction(self.scale)) ** 2 / 2)

    def __call__(self, scores: Array, noise: Noise) -> int:
        """Release the index of the noisy maximum."""
        return int(np.argmax(scores + self.scale * noise.laplace(scores.size)))


@dataclass(frozen=True)
class ThresholdedNoisyMin:
    """Index of the smallest noisy score when that is negative, else None (Algorithm 2, 11-15).

    The comparison with 0 looks at the noisy value, which the analysis of report-noisy-max does not
    release. So there is no cost to state (docs/errata.md, E5); it serves the published calibration
    only.
    """

    sensitivity: float
    scale: float
    name = "Laplace report-noisy-min with a threshold"

    @property
    def cost(self) -> ZCDP:
        """Refuse: no cost has been proved."""
        raise NotImplementedError("report-noisy-min with an un-noised threshold: erratum E5")

    def __call__(self, scores: Array, noise: Noise) -> int | None:
        """Release the index of the noisy minimum if the minimum is negative."""
        noisy = scores + self.scale * noise.laplace(scores.size)
        index = int(np.argmin(noisy))
        return index if noisy[index] < 0 else None


@dataclass(frozen=True)
class GaussianVector(HalfSquare):
    """A whole vector with Gaussian noise.

    Requires    one row moves the vector by at most `sensitivity` in L2
    Guarantees  Δ₂²/(2σ²)-zCDP, σ the scale
                (docs/theory/mechanisms.md, Lemma 3)
    """

    name = "Gaussian vector"

    @classmethod
    def of_cost(cls, cost: ZCDP, *, sensitivity: float) -> GaussianVector:
        """Return the release with the least noise that costs no more than `cost`."""
        return cls(sensitivity, _least_scale(cost, sensitivity, 2))

    def __call__(self, values: Array, noise: Noise) -> Array:
        """Release the noisy vector."""
        return np.asarray(values + self.scale * noise.normal(values.size), dtype=np.float64)
