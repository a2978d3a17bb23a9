"""Measures of quality, and what they share: noisy sums and histograms of rows, and their intervals.

Every sum is released with clipped terms, and a noisy histogram bounds what lies beyond the clip. An
interval counts the noise of the sum, the width of cells, and rows that are too few to be detected;
where that is too much, the measure is not known (docs/theory/quality.md, Lemmas 24, 34, 45 and 92).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dpscreen._core.arrays import Array, Integers
from dpscreen._core.words import number
from dpscreen.privacy import ZCDP, Accountant
from dpscreen.privacy.accountant import release_histograms

NORMAL_95, NORMAL_975 = 1.6448536269514722, 1.959963984540054
"""Normal quantiles: one-sided for what noise hides, two-sided for noisy sums, both at 95 %.
Derived."""

DETECTED = 3.0
"""What a count must be to be taken for rows, in standard deviations of its noise. Conventional."""

WIDEST_FACTOR = 2.0
"""An error or a deviance whose interval is wider than this factor is not known. Conventional."""


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


class Measure(NamedTuple):
    """A number and the ends of its interval; NaN where it is not known, and the reason why."""

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    reason: str | None = None

    @classmethod
    def of(cls, quality: Any, called: Called) -> Measure:
        """Return a measure from the fields of a quality."""
        names = (called.name, *(f"{called.stem}_{end}" for end in ("low", "high", "reason")))
        return cls(*(getattr(quality, name) for name in names))


class Measured:
    """What the qualities of all families share: their measures, as fields and in a sentence."""

    measures: ClassVar[tuple[Called, ...]]
    columns: ClassVar[dict[str, int]]
    """The fields that hold cells; those with 0 are edges, of which others have so many more."""
    file_field: ClassVar[str]
    """The field of model files that holds the quality."""
    charts: ClassVar[tuple[str, ...]] = ()
    """The pictures that a page draws of it."""
    no_information: ClassVar[tuple[float, str]] = (0.0, "")
    """The first measure of a model without information, and what is said of that."""
    release_measures: ClassVar[Callable[..., Any]]
    """Releases a quality; arguments are those of `Family.release_quality`."""
    in_sample: bool

    @classmethod
    def fields(cls, *found: Measure) -> dict[str, Any]:
        """Return the fields that hold these measures."""
        fields: dict[str, Any] = {}
        for (name, stem, *_), one in zip(cls.measures, found, strict=True):
            ends = {"low": one.low, "high": one.high, "reason": one.reason}
            fields |= {name: one.value} | {f"{stem}_{end}": value for end, value in ends.items()}
        return fields

    def __str__(self) -> str:
        """Return what is known of each measure, why others are not, and on which rows."""
        shown = self._shown()
        reasons = dict.fromkeys(Measure.of(self, called).reason for called in self.measures)
        why = "; ".join(REASONS[one] for one in reasons if one is not None)
        if None not in reasons:
            return f"{shown}: {why}."
        where = "in-sample: on the rows of the fit" if self.in_sample else "on rows held out"
        return f"{shown}{self._compared()}{f' ({why})' * bool(why)}; {where}. {COVERAGE}"

    @property
    def line(self) -> str:
        """Return the measures in one line, and on which rows they are."""
        where = "in-sample" if self.in_sample else "on rows held out"
        shown = self._shown()
        return f"{shown[:1].upper()}{shown[1:]}{self._compared()}; {where}."

    @property
    def mean_outcome(self) -> float | None:
        """Return the released mean of outcomes, where it is measured and above the noise."""
        return None

    def _shown(self) -> str:
        """Return each measure as `R² value (low to high)`, or that it is not known."""
        shown = []
        for called in self.measures:
            found = Measure.of(self, called)
            value, low, high = (
                number(one, digits=called.significant) if called.significant else f"{one:.3f}"
                for one in (found.value, found.low, found.high)
            )
            text = "not known" if found.reason is not None else f"{value} ({low} to {high})"
            shown.append(f"{called.label} {text}")
        return ", ".join(shown)

    def _compared(self) -> str:
        """Return what the last measure is compared with."""
        return ""


# --- releases -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ranges:
    """Where target and predictions can lie, from the target's centre, and their scales.

    `target` are the declared bounds; `effects` are what each feature, and the constant, can add to
    a fitted value, by released weights and the bounds of features. `scale` is the standard
    deviation of residuals or, for classes, of predictors about `null`, the predictor of a model
    without features. The target is in this `unit`. All are public or released.
    """

    target: tuple[float, float]
    effects: Array
    scale: float
    target_scale: float = 1.0
    null: float = 0.0
    unit: float = 1.0


@dataclass(frozen=True)
class NoisySum:
    """A released sum, its own noise, and what it would be more if one row more had been counted."""

    value: float
    noise: float = 0.0
    per_row: float = 0.0


@dataclass(frozen=True)
class NoisyHistogram:
    """Noisy counts of rows by cell, each row in one, and the standard deviation of their noise."""

    edges: Array
    counts: Array
    noise: float

    def weighted(self, weights: Array) -> NoisySum:
        """Return Σ weight·count, if no weight is negative."""
        value = max(float(weights @ self.counts), 0.0)
        return NoisySum(value, self.noise * float(np.linalg.norm(weights)))

    def last_detected(self) -> float:
        """Return the end of the last octave in which rows are detected; 0 if there is none."""
        starts, ends = self.edges[:-1], self.edges[1:]
        first = np.arange(len(starts))
        last = np.maximum(np.searchsorted(ends, 2.001 * starts), first + 1)
        sums = np.append(0.0, np.cumsum(self.counts))
        clear = sums[last] - sums[first] >= DETECTED * self.noise * np.sqrt(last - first)
        return float(np.max(ends[last - 1], where=clear, initial=0.0))

    def shares(self, n_rows: int) -> Array:
        """Return the share of rows up to each cell's end; zeros if noise may move half of them.

        Of the counts nearest to the noisy ones that are not negative and add up to the rows: sums
        of the noisy ones wander, and would reach a share too soon where rows are few.
        """
        if NORMAL_95 * self.noise * math.sqrt(self.counts.size) > n_rows:
            return np.zeros(self.counts.size)
        most = np.cumsum(np.sort(self.counts)[::-1])
        spare = float(((most - n_rows) / np.arange(1, most.size + 1)).max())
        return np.asarray(np.minimum(np.cumsum(np.maximum(self.counts - spare, 0)) / n_rows, 1))


@dataclass(frozen=True)
class QualityReleases:
    """The releases of one quality, each for a part of its cost.

    `release_sum` is that of a `Spending` with the accountant; the rows are `n_rows`, to
    `count_noise`.
    """

    accountant: Accountant
    release_sum: Callable[..., tuple[float, float]]
    n_rows: int
    count_noise: float
    cost: ZCDP

    def histogram(
        self, counts: Integers, edges: Array, part: Fraction, purpose: str
    ) -> NoisyHistogram:
        """Release counts of rows, each in one cell (docs/theory/quality.md, Lemma 24)."""
        noisy, noise = release_histograms(
            self.accountant, counts[None, :], cost=self.cost * part, purpose=purpose
        )
        return NoisyHistogram(edges, noisy[0], noise)

    def total(self, total: int, n_rows: int, most: int, part: Fraction, purpose: str) -> NoisySum:
        """Release a sum of whole numbers between 0 and `most`, in units of `most`.

        Up to a half of the most is subtracted from every term, which makes the largest smaller;
        what that is in all is known as well as the number of rows (docs/theory/quality.md,
        Lemma 45).
        """
        cost = self.cost * part
        noise = 1 / math.sqrt(2 * float(cost))
        middle = math.floor(most * min(0.5, noise**2 / (noise**2 + self.count_noise**2)))
        largest, per_row = most - middle, middle / most
        noisy, own = self.release_sum(
            total - middle * n_rows, most=largest, bound=largest / most, cost=cost, purpose=purpose
        )
        return NoisySum(noisy + per_row * self.n_rows, own, per_row)

    def mean(
        self, total: NoisySum, beyond: Sequence[NoisySum], widest: float, rounding: float = 0.0
    ) -> Measure:
        """Return the mean of clipped terms; each of `beyond` bounds what clips took off in all.

        It is not known if the upper end is more than `widest` times the lower one.
        """
        mean = total.value / self.n_rows
        miscounted = (total.per_row - mean) * self.count_noise
        noise = NORMAL_975 * math.hypot(total.noise, miscounted) / self.n_rows
        hidden = min(
            one.value / self.n_rows + math.hypot(noise, NORMAL_95 * one.noise / self.n_rows)
            for one in beyond
        )
        low, high = mean - rounding - noise, mean + rounding + hidden
        if not 0 < high <= widest * low:
            most = min(one.value + NORMAL_95 * one.noise for one in beyond)
            return Measure(reason=UNDETECTED if most > noise * self.n_rows else NOISE)
        return Measure(mean, low, high)
