"""Several models beside each other: what they promise, say and cost together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpscreen._core.words import (
    LINEAR,
    PER_CENT,
    aligned,
    column_widths,
    number,
    plain,
    short_name,
    step_words,
)
from dpscreen.models.release import Release
from dpscreen.privacy import ZCDP

NONE = "–"


@dataclass(frozen=True)
class ComparedFeature:
    """One feature: the step that all effects are for, and effect and interval of each model.

    An effect is None where a model was not offered the feature or has no estimate of it, and 0
    where it did not choose it; where there is an interval, it is the estimate that this is of.
    `zero_one` says that the step is from 0 to 1.
    """

    feature: str
    step: float
    zero_one: bool
    effects: tuple[float | None, ...]
    intervals: tuple[tuple[float, float] | None, ...]


@dataclass(frozen=True)
class Comparison:
    """Facts and features of several models; `total` is what they cost together, in words."""

    names: tuple[str, ...]
    facts: tuple[tuple[str, tuple[str, ...]], ...]
    features: tuple[ComparedFeature, ...]
    total: str

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain values."""
        return {
            "models": list(self.names),
            "facts": {name: list(values) for name, values in self.facts},
            "features": [vars(one) for one in self.features],
            "together": self.total,
        }

    def __str__(self) -> str:
        facts = [["", "", *self.names], *([name, "", *values] for name, values in self.facts)]
        head = ["feature", "step", *["effect"] * len(self.names)]
        cells = [*facts, head, *map(_row, self.features)]
        widths, top = column_widths(cells), len(facts)
        lines = [aligned(row, widths) for row in cells]
        across = "-" * max(map(len, lines))
        body = (*lines[1:top], across, *lines[top:], across)
        return "\n".join([lines[0], across, *body, self.total])


def _row(one: ComparedFeature) -> list[str]:
    cells = [short_name(one.feature), step_words(one.step, one.zero_one)]
    for effect, interval in zip(one.effects, one.intervals, strict=True):
        span = " to ".join(number(end, digits=3) for end in interval or ())
        shown = NONE if effect is None else number(effect, digits=4)
        cells.append(shown + (f" [{span}]" if span else ""))
    return cells


def compared(releases: Sequence[Release], names: Sequence[str]) -> Comparison:
    """Put models beside each other; effects are for the first model's steps, so they compare."""
    steps: dict[str, tuple[float, bool]] = {}
    for release in releases:
        found = zip(release.steps.tolist(), release.zero_one.tolist(), strict=True)
        steps = dict(zip(release.names, found, strict=True)) | steps
    used = dict.fromkeys(one.names[j] for one in releases for j in one.selected)
    features = []
    for name in used:
        shown = (_effect(one, name, steps[name][0]) for one in releases)
        features.append(ComparedFeature(plain(name), *steps[name], *zip(*shown, strict=True)))
    features.sort(key=lambda one: max(abs(effect or 0.0) for effect in one.effects), reverse=True)
    told = tuple(map(plain, names))
    return Comparison(told, tuple(_facts(releases)), tuple(features), _together(releases))


def _effect(
    release: Release, name: str, step: float
) -> tuple[float | None, tuple[float, float] | None]:
    if name not in release.names:
        return None, None
    j = release.names.index(name)
    if release.table is not None and j in release.table.reasons:
        return None, None
    interval = release.intervals.get(j)
    if interval is None:
        return float(release.coefficients[j]) * step, None
    return interval.coefficient * step, (interval.low * step, interval.high * step)


def _facts(releases: Sequence[Release]) -> Iterator[tuple[str, tuple[str, ...]]]:
    yield "method", tuple(plain(one.estimator) for one in releases)
    yield "target", tuple(plain(one.target or NONE) for one in releases)
    if any(one.about.get("date") for one in releases):
        yield "date", tuple(one.about.get("date", NONE) for one in releases)
    yield "epsilon", tuple(f"{one.statement.epsilon:g}" for one in releases)
    yield "delta", tuple(f"{one.statement.delta:g}" for one in releases)
    yield "promise holds", tuple("yes" if one.statement.holds else "NO" for one in releases)
    yield "rows", tuple(one.n_rows_words or NONE for one in releases)
    yield "features used", tuple(f"{len(one.selected)} of {one.n_features}" for one in releases)
    if any(one.scale_of_effects != LINEAR for one in releases):
        # All are compared as they were fitted.
        yield "effects are", tuple(one.family.words.predictor or _changes(one) for one in releases)
    yield "how good, as released", tuple(" ".join(one.headline).strip() or NONE for one in releases)


def _changes(release: Release) -> str:
    of = f" of {plain(release.target or '')}" if release.scale_of_effects == PER_CENT else ""
    return f"changes{of}"


def _together(releases: Sequence[Release]) -> str:
    """Say what the models cost if they are of the same rows: zCDP adds up."""
    costs = [one.statement.rho for one in releases]
    known = [cost for cost in costs if cost is not None]
    if len(known) < len(costs):
        return "What they cost together is not known: not every one of them claims a cost in zCDP."
    delta = max(one.statement.delta for one in releases)
    epsilon = ZCDP(sum(map(Fraction, known), Fraction(0))).epsilon(delta)
    return (
        f"If all are of the same rows, they cost epsilon {epsilon:.4g} at delta {delta:g} together."
    )
