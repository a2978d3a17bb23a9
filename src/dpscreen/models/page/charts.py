"""What could be expected of a fit, as numbers and as a picture with the same in words."""

from __future__ import annotations

from dataclasses import dataclass

from dpscreen._core.pictures import COLOURS, INK, canvas, themed_svg
from dpscreen._core.words import FALSE_RATE, whole_percent
from dpscreen.families import Family
from dpscreen.models.page.effects import WIDTH, Picture, labelled


@dataclass(frozen=True)
class PowerRow:
    """What to expect of a method for features of one size; each `_se` is simulated.

    `power` is the share of features with the effect that are detected at `FALSE_RATE`,
    `false_positives` the number of features without effect that the model selects, detected or not.
    `quality` is the score on new rows, and `best_quality` that of the true coefficients. ε is None
    where there is no privacy.
    """

    method: str
    epsilon: float | None
    effect: float
    power: float
    power_se: float
    false_positives: float
    false_positives_se: float
    quality: float
    quality_se: float
    best_quality: float
    repetitions: int

    def to_dict(self, measure: str) -> dict[str, float]:
        """Return what does not say which fit it was; the quality has the name of its measure."""
        return {
            name.replace("quality", measure): value
            for name, value in vars(self).items()
            if name not in ("method", "epsilon")
        }


@dataclass(frozen=True)
class WhatIf:
    """The power at one ε."""

    epsilon: float
    power: float
    power_se: float


@dataclass(frozen=True)
class Expected:
    """What could be expected of a fit, from public numbers alone.

    `finding` and `advice` say it in words; `useful` is whether anything can be found. `rows` are
    sizes of effect, `what_if` other ε, for an effect of `what_if_effect`. `split` says that one
    half of the rows selects, which is then what was simulated. Of outcomes, `rate` is the share of
    yes that was supposed.
    """

    n_rows: int
    n_features: int
    n_effects: int
    finding: str
    advice: str
    useful: bool
    power_wanted: float
    rows: tuple[PowerRow, ...]
    what_if: tuple[WhatIf, ...]
    what_if_effect: float
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
    `widths` are for several ε, that of the fit, `epsilon`, among them. Of odds ratios, `rate` is
    the share of yes that was supposed. `refused` says that a fit would be refused before it
    releases more than a count.
    """

    n_rows: int
    n_features: int
    epsilon: float
    rows_needed: int
    finding: str
    widths: tuple[TableWidth, ...]
    rate: float | None = None
    refused: bool = False

    @property
    def ratio(self) -> float | None:
        """Return how many times as wide intervals are as those without privacy."""
        return next((one.ratio for one in self.widths if one.epsilon == self.epsilon), None)


PRIVACY, CAPTURED = COLOURS[1], COLOURS[2]


# --- expected power -------------------------------------------------------------------------------


def power_chart(expected: Expected, family: Family) -> Picture:
    """Draw which share of features with an effect would be detected, by its size."""
    figure = canvas(WIDTH, 2.7)
    axes = figure.subplots()
    sizes = [row.effect for row in expected.rows]
    powers = [row.power for row in expected.rows]
    # Error bars of two standard errors, that end at 0 and at 1.
    down = [min(2 * row.power_se, row.power) for row in expected.rows]
    up = [min(2 * row.power_se, 1 - row.power) for row in expected.rows]
    axes.errorbar(
        sizes, powers, (down, up), color=CAPTURED, marker="o", markersize=4, linewidth=1.6
    )
    axes.axhline(FALSE_RATE, color=PRIVACY, linewidth=0.8, linestyle=(0, (4, 2)))
    axes.axhline(expected.power_wanted, color=INK, linewidth=0.8, linestyle=(0, (1, 2)))
    axes.set_xscale("log")
    axes.set_xticks(sizes, [f"{size:g}" for size in sizes])
    axes.minorticks_off()
    axes.set_ylim(-0.03, 1.06)
    labelled(axes, f"size of effect ({family.words.effect_axis})", "power")
    labels = axes.get_xticklabels()
    if len(labels) > 8:  # every second label is left out where they would touch
        for label in labels[1::2]:
            label.set_visible(False)
    low, high = expected.rows[0], expected.rows[-1]
    words = (
        f"The power rises from {whole_percent(low.power)} for effects of {low.effect:g} to "
        f"{whole_percent(high.power)} for effects of {high.effect:g}."
    )
    return Picture(themed_svg(figure, prefix="power"), words)
