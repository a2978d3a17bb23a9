"""What could be expected of a fit, as pictures with the same in words, and beside what came."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpscreen._core.pictures import COLOURS, INK, canvas, plain_axes, themed_svg
from dpscreen._core.words import figure, whole_percent
from dpscreen.models.page.effects import WIDTH, Picture
from dpscreen.models.regression_table import RegressionTable
from dpscreen.models.release import Release
from dpscreen.solvers.quality import Quality

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EXPLAINABLE = 0.5
"""The share of the target's variance that simulated features explain where nobody says another."""


@dataclass(frozen=True)
class PowerRow:
    """What to expect of features of one size; each `_se` is a Monte-Carlo standard error.

    `power` is the share of true features found, `false_positives` the number of others found.
    `best_r2` is what the true coefficients would explain.
    """

    effect: float
    power: float
    power_se: float
    false_positives: float
    false_positives_se: float
    r2: float
    r2_se: float
    best_r2: float
    repetitions: int

    @property
    def missed(self) -> float:
        """Return the share of what could be explained that is not."""
        return max(0.0, 1 - self.r2 / self.best_r2)

    @property
    def missed_se(self) -> float:
        """Return the standard error of that share."""
        return self.r2_se / self.best_r2


@dataclass(frozen=True)
class OutcomeRow:
    """What to expect of a method for one size of effect; ε is None where there is no privacy."""

    method: str
    epsilon: float | None
    effect: float
    power: float
    power_se: float
    false_positives: float
    false_positives_se: float
    auc: float
    auc_se: float
    best_auc: float
    repetitions: int

    @property
    def missed(self) -> float:
        """Return the share that is missing of what AUC could be above a coin's."""
        return max(0.0, 1 - (self.auc - 0.5) / (self.best_auc - 0.5))

    @property
    def missed_se(self) -> float:
        """Return the standard error of that share."""
        return self.auc_se / (self.best_auc - 0.5)


@dataclass(frozen=True)
class WhatIf:
    """What to expect at one ε. Errors are shares of what could be explained."""

    epsilon: float
    power: float
    power_se: float
    privacy_error: float
    sampling_error: float
    error_se: float

    @property
    def captured(self) -> float:
        """Return the share of what could be explained that the model captures, at least 0."""
        return max(0.0, 1 - self.privacy_error - self.sampling_error)


@dataclass(frozen=True)
class Expected:
    """What could be expected of a fit, from public numbers alone.

    `finding` and `advice` say it in words; `useful` is whether anything can be found. `rows` are
    sizes of effect, `what_if` other ε. `split` tells that one half of the rows selects, which is
    then what was simulated. Of outcomes, `rate` is the share of yes that was supposed.
    """

    n_rows: int
    n_features: int
    n_effects: int
    finding: str
    advice: str
    useful: bool
    power_wanted: float
    rows: tuple[PowerRow, ...] | tuple[OutcomeRow, ...]
    what_if: tuple[WhatIf, ...]
    split: bool = False
    rate: float | None = None


@dataclass(frozen=True)
class TableWidth:
    """How wide intervals are at one ε, over those without privacy; None where there are none."""

    epsilon: float
    ratio: float | None


@dataclass(frozen=True)
class ExpectedTable:
    """What could be expected of a regression table, from public numbers alone.

    `rows_needed` is with how many rows there is a table at all, `finding` says it in words, and
    `widths` are for several ε, that of the fit, `epsilon`, among them; `given` is how many features
    have an interval, in words. Of odds ratios, `rate` is the share of yes that was supposed.
    """

    n_rows: int
    n_features: int
    epsilon: float
    rows_needed: int
    finding: str
    widths: tuple[TableWidth, ...]
    rate: float | None = None
    given: str = ""

    @property
    def ratio(self) -> float | None:
        """Return how many times as wide intervals are as those without privacy."""
        return next((one.ratio for one in self.widths if one.epsilon == self.epsilon), None)


PRIVACY, SAMPLING, CAPTURED = COLOURS[1], COLOURS[5], COLOURS[2]


# --- expected power -------------------------------------------------------------------------------


def power_chart(expected: Expected) -> Picture:
    """Draw which share of true and of other features would be found, by size of effect."""
    figure = canvas(WIDTH, 2.7)
    axes = figure.subplots()
    sizes = [row.effect for row in expected.rows]
    powers = [row.power for row in expected.rows]
    axes.errorbar(
        sizes,
        powers,
        within_one(expected.rows),
        color=CAPTURED,
        marker="o",
        markersize=4,
        linewidth=1.6,
    )
    others = expected.n_features - expected.n_effects
    if others:
        chance = [row.false_positives / others for row in expected.rows]
        axes.plot(sizes, chance, color=PRIVACY, marker="s", markersize=4, linestyle=(0, (4, 2)))
    axes.axhline(expected.power_wanted, color=INK, linewidth=0.8, linestyle=(0, (1, 2)))
    axes.set_xscale("log")
    axes.set_xticks(sizes, [f"{size:g}" for size in sizes])
    axes.minorticks_off()
    axes.set_ylim(-0.03, 1.06)
    unit = "standardised coefficient" if expected.rate is None else "log-odds for one deviation"
    axes.set_xlabel(f"size of effect ({unit})", fontsize=9, color=INK)
    axes.set_ylabel("share found", fontsize=9, color=INK)
    plain_axes(axes)
    _thin_labels(axes)
    return Picture(themed_svg(figure, prefix="power"), _power_in_words(expected))


def within_one(rows: Sequence[PowerRow | OutcomeRow]) -> tuple[list[float], list[float]]:
    """Return error bars of two standard errors, down and up, that end at 0 and at 1."""
    down = [min(2 * row.power_se, row.power) for row in rows]
    return down, [min(2 * row.power_se, 1 - row.power) for row in rows]


def _thin_labels(axes: Axes) -> None:
    """Leave out every second label where they would touch."""
    labels = axes.get_xticklabels()
    if len(labels) > 8:
        for label in labels[1::2]:
            label.set_visible(False)


def _power_in_words(expected: Expected) -> str:
    low, high = expected.rows[0], expected.rows[-1]
    return (
        f"The share of true features found rises from {whole_percent(low.power)} for effects of "
        f"{low.effect:g} to {whole_percent(high.power)} for effects of {high.effect:g}."
    )


# --- what if --------------------------------------------------------------------------------------


def what_if_chart(rows: Sequence[WhatIf], chosen: float) -> Picture:
    """Draw for each ε how much is captured, lost to privacy and lost to sampling."""
    figure = canvas(WIDTH, 0.75 + 0.3 * len(rows))
    axes = figure.subplots()
    for place, row in enumerate(rows):
        _draw_bar(axes, place, row)
    labels = [("this: " if row.epsilon == chosen else "") + f"ε = {row.epsilon:g}" for row in rows]
    axes.set_yticks(range(len(rows)), labels)
    for label, row in zip(axes.get_yticklabels(), rows, strict=True):
        label.set_fontweight("bold" if row.epsilon == chosen else "normal")
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(0, 100)
    axes.set_xlabel("% of what could be explained", fontsize=9, color=INK)
    plain_axes(axes)
    return Picture(themed_svg(figure, prefix="whatif"), _what_if_in_words(rows))


def _draw_bar(axes: Axes, place: int, row: WhatIf) -> None:
    """Stack three parts to 100 %: what is lost beyond all shows as nothing captured."""
    sampling = min(1.0, row.sampling_error)
    privacy = min(1 - sampling, row.privacy_error)
    start = 0.0
    for share, colour in (
        (1 - sampling - privacy, CAPTURED),
        (privacy, PRIVACY),
        (sampling, SAMPLING),
    ):
        axes.barh(place, 100 * share, left=100 * start, color=colour, height=0.62, linewidth=0)
        start += share


def _what_if_in_words(rows: Sequence[WhatIf]) -> str:
    parts = (
        f"at ε {row.epsilon:g}, {whole_percent(row.captured)} captured, "
        f"{whole_percent(row.privacy_error)} lost to privacy and "
        f"{whole_percent(row.sampling_error)} to sampling"
        for row in rows
    )
    told = "; ".join(parts)
    return f"{told[:1].upper()}{told[1:]}."


# --- what came of it ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outlook:
    """One thing that was expected, and what came of it."""

    what: str
    expected: str
    came: str


def outlook(release: Release, expected: Expected | ExpectedTable | None) -> list[Outlook]:
    """Return what can be compared; nothing where nothing was simulated."""
    match expected:
        case Expected():
            return list(_of_selection(release, expected))
        case ExpectedTable() if release.table is not None:
            return list(_of_table(release.table, expected))
    return []


def _of_selection(release: Release, expected: Expected) -> Iterator[Outlook]:
    counts = [row.power * expected.n_effects + row.false_positives for row in expected.rows]
    low, high = round(min(counts)), round(max(counts))
    of = f"of {release.n_features}, as effects are small or large"
    chosen = f"{low} {of}" if low == high else f"{low} to {high} {of}"
    yield Outlook("Features chosen", chosen, str(len(release.chosen)))
    aucs = [row.auc for row in expected.rows if isinstance(row, OutcomeRow)]
    if aucs:
        reached = f"{min(aucs):.2f} to {max(aucs):.2f}, as effects are small or large"
        yield Outlook("AUC", reached, _came(release))
        return
    here = [row for row in expected.what_if if row.epsilon == release.statement.epsilon]
    if here:
        r2 = f"{EXPLAINABLE * here[0].captured:.2f} where features explain half of the variance"
        yield Outlook("R²", r2, _came(release))


def _came(release: Release) -> str:
    quality, name = release.quality, "r2" if release.classes is None else "auc"
    if quality is None:
        return "not released"
    where = "on its own rows" if quality.in_sample else "on rows held out"
    if isinstance(quality, Quality) and quality.tells_cut_r2 and not quality.tells_r2:
        name, where = "cut_r2", f"{where}, {quality.where_cut}"
    told, low, high = (getattr(quality, name + end) for end in ("", "_low", "_high"))
    return f"{told:.2f} ({low:.2f} to {high:.2f}) {where}" if low <= high else "cannot be told"


def _of_table(table: RegressionTable, expected: ExpectedTable) -> Iterator[Outlook]:
    given = table.given[: table.n_features]
    told = "none" if expected.ratio is None else expected.given
    yield Outlook("Features with an interval", told, f"{int(given.sum())} of {len(given)}")
    if not given.any():
        return
    errors = np.sqrt(np.diag(table.covariance))[: len(given)][given]
    ratios = errors / np.maximum(table.plain_errors[: len(given)][given], 1e-300)
    low, high = figure(float(ratios.min()), digits=2), figure(float(ratios.max()), digits=2)
    came = f"{low} times" if low == high else f"{low} to {high} times"
    told = "–" if expected.ratio is None else f"about {figure(expected.ratio, digits=2)} times"
    yield Outlook("Width of intervals, over those without privacy", told, f"{came}, about")
