"""Measures of quality, as a model and its file hold and print them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

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
    def of(cls, quality: Any, called: Called) -> Measure:
        """Return a measure from the fields of a quality."""
        names = (called.name, *(f"{called.stem}_{end}" for end in ("low", "high", "reason")))
        return cls(*(getattr(quality, name) for name in names))

    def mapped(self, function: Callable[[float], float]) -> Measure:
        """Return the measure by an increasing function of it."""
        if self.reason is not None:
            return self
        return Measure(function(self.value), function(self.low), function(self.high))


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
        return f"{self._shown()}{self._compared()}; {where}."

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
