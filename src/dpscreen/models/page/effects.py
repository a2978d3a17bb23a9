"""The picture of a model: what a typical step of each feature does, with intervals."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from dpscreen._core.pictures import COLOURS, INK, canvas, plain_axes, themed_svg
from dpscreen._core.words import ODDS, PER_CENT, EffectScale, figure, shortened
from dpscreen.models.release import Release, Summary, SummaryRow, about_effects, summary_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_DRAWN = 30
NAME_CELLS = 20
WIDTH = 4.6
MODEL, ESTIMATE, PLAIN = COLOURS[1], COLOURS[0], COLOURS[5]
MOST_ODDS = 700.0


@dataclass(frozen=True)
class Picture:
    """An SVG element, and what it shows in words."""

    svg: str
    words: str


@dataclass(frozen=True)
class Interval:
    """Low end, estimate and high end of an effect; `plain` is how far either way without noise."""

    low: float
    estimate: float
    high: float
    plain: float | None = None


@dataclass(frozen=True)
class EffectLine:
    """One feature as it is drawn; `predicts` is None where the estimate itself predicts."""

    name: str
    predicts: float | None
    interval: Interval | None

    @property
    def size(self) -> float:
        """Return the effect that is told in words."""
        if self.predicts is not None:
            return self.predicts
        return 0.0 if self.interval is None else self.interval.estimate

    @property
    def drawn(self) -> tuple[float, ...]:
        """Return all effects that are drawn."""
        found = self.interval
        return (self.size,) if found is None else (found.low, self.size, found.high)


@dataclass(frozen=True)
class EffectPicture:
    """All that a picture of effects shows; `changed` is what they are effects on, if named."""

    lines: tuple[EffectLine, ...]
    scale: EffectScale
    changed: str | None
    caption: str

    @property
    def has_plain(self) -> bool:
        """Whether intervals without privacy are known, about."""
        return any(one.interval and one.interval.plain is not None for one in self.lines)

    @property
    def label(self) -> str:
        """Return what the axis shows."""
        if self.scale == ODDS:
            return "odds ratio with the step"
        if self.changed is None:
            return "effect of the step, in the target's units"
        unit = ", in per cent" if self.scale == PER_CENT else ""
        return f"effect of the step on {shortened(self.changed, 30)}{unit}"

    def drawn_at(self, effect: float) -> float:
        """Return where an effect is drawn; ratios beyond all reason at the edge."""
        return self.scale.shown(max(-MOST_ODDS, min(effect, MOST_ODDS)))


def effects_of(release: Release, summary: Summary | None = None) -> EffectPicture:
    """Return what there is to draw of a model, the largest effect first."""
    rows = (summary or summary_of(release)).rows
    half = None if release.table is None else release.table.plain_half_widths()
    lines = []
    for j, row in zip(release.selected, rows, strict=True):
        plain = None if half is None or not half[j] > 0 else float(half[j]) * row.step
        lines.append(_line(row, plain, own=release.table is not None))
    scale = release.scale_of_effects
    changed = release.changed if scale == PER_CENT else release.target
    return EffectPicture(tuple(lines), scale, changed, about_effects(release))


def _line(row: SummaryRow, plain: float | None, *, own: bool) -> EffectLine:
    name = shortened(row.feature, NAME_CELLS)
    ends = row.effect_interval
    found = None if ends is None else Interval(*ends, plain)
    return EffectLine(name, None if own and found is not None else row.effect, found)


def draw_effects(axes: Axes, shown: EffectPicture) -> list[str]:
    """Draw the largest effects into axes, and return their names, which are not on it yet."""
    lines = shown.lines[:MOST_DRAWN]
    scale = shown.drawn_at
    for place, line in enumerate(lines):
        _draw_line(axes, place, line, scale)
    axes.axvline(scale(0.0), color=INK, linewidth=0.8)
    axes.set_ylim(len(lines) - 0.4, -0.6)
    if shown.scale == ODDS:
        _odds_axis(axes, [scale(one) for line in lines for one in line.drawn])
    else:
        axes.locator_params(axis="x", nbins=5)
    axes.set_xlabel(shown.label, fontsize=9, color=INK)
    plain_axes(axes)
    return [line.name for line in lines]


def _odds_axis(axes: Axes, values: Sequence[float]) -> None:
    """Write odds ratios as people do, on a scale of ratios."""
    axes.set_xscale("log")
    low, high = min(*values, 0.8), max(*values, 1.25)
    axes.set_xlim(low / 1.3, high * 1.3)
    wanted = [ratio for ratio in (0.01, 0.1, 0.2, 0.5, 1, 2, 5, 10, 100) if low / 1.3 <= ratio]
    ticks = [ratio for ratio in wanted if ratio <= high * 1.3]
    axes.set_xticks(ticks, [figure(tick) for tick in ticks])
    axes.minorticks_off()


def _draw_line(axes: Axes, place: int, line: EffectLine, scale: Callable[[float], float]) -> None:
    found, below = line.interval, float(place)
    if found is not None:
        above = place - (0.15 if line.predicts is not None else 0.0)
        ends = [scale(found.low), scale(found.high)]
        axes.plot(ends, [above] * 2, color=ESTIMATE, linewidth=2.4, solid_capstyle="butt")
        if found.plain is not None:
            middle, under = found.estimate, above + 0.27
            thin = [scale(middle - found.plain), scale(middle + found.plain)]
            axes.plot(thin, [under] * 2, color=PLAIN, linewidth=1.0)
        axes.plot([scale(found.estimate)], [above], "o", color=ESTIMATE, markersize=5)
        below += 0.18  # beside the interval, not on it
    if line.predicts is not None:
        look: dict[str, Any] = {"markersize": 4, "fillstyle": "none", "markeredgewidth": 1.2}
        axes.plot([scale(line.predicts)], [below], "D", color=MODEL, **look)


# --- on a page ------------------------------------------------------------------------------------


def effects_chart(shown: EffectPicture) -> Picture | None:
    """Draw the largest effects for a page; None where nothing was selected."""
    if not shown.lines:
        return None
    drawn = min(len(shown.lines), MOST_DRAWN)
    sheet = canvas(WIDTH, 0.62 + 0.27 * drawn)
    axes = sheet.subplots()
    names = draw_effects(axes, shown)
    axes.set_yticks(range(len(names)), _stand_ins(names))
    svg = themed_svg(sheet, prefix="effects")
    return Picture(_with_names(svg, names), _in_words(shown, drawn))


def _stand_ins(names: Sequence[str]) -> list[str]:
    """Return what matplotlib measures and draws in place of names: no font has every sign."""
    padding = "n" * max(0, max(map(len, names)) - len("name000"))
    return [f"name{place:03d}{padding}" for place in range(len(names))]


def _with_names(svg: str, names: Sequence[str]) -> str:
    """Put the names, escaped, where their stand-ins are."""

    def name_at(found: re.Match[str]) -> str:
        # Each name is isolated (U+2068 … U+2069), so that none can turn the direction of another.
        return f"\u2068{escape(names[int(found[1])])}\u2069"

    return re.sub(r"name(\d{3})n*", name_at, svg)


def _in_words(shown: EffectPicture, drawn: int) -> str:
    first = shown.lines[0]
    scale = shown.scale
    told = f"{first.name} has the largest {scale.heading}, {scale.figure(first.size)}"
    if first.interval is not None:
        low, high = first.interval.low, first.interval.high
        told += f" (interval {scale.figure(low)} to {scale.figure(high)})"
    many = "feature" if drawn == 1 else "features"
    return f"Effects of {drawn} {many}, largest first. {told}. The table holds all numbers."


# --- model.plot() ---------------------------------------------------------------------------------


def plot_release(release: Release, axes: Axes | None = None) -> Axes:
    """Draw a model's effects for a notebook, into axes if there are any."""
    shown = effects_of(release)
    if axes is None:
        import matplotlib.pyplot as plt

        height = 1.0 + 0.3 * max(1, min(len(shown.lines), MOST_DRAWN))
        axes = plt.subplots(figsize=(7, height), layout="constrained")[1]
    names = draw_effects(axes, shown)
    steps = [row.step_words for row in summary_of(release).rows]
    told = [f"{name}, {step}" for name, step in zip(names, steps, strict=False)]
    axes.set_yticks(range(len(names)), [one.replace("$", r"\$") for one in told])
    axes.set_title(f"{release.estimator}{' of ' + release.target if release.target else ''}")
    return axes
