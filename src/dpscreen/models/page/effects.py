"""The picture of a model: what a typical step of each feature does, with intervals."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen._core.pictures import COLOURS, INK, canvas, plain_axes, themed_svg
from dpscreen._core.words import LINEAR, PER_CENT, EffectScale, figure, nice_step, shortened
from dpscreen.models.release import Release
from dpscreen.models.summary import Summary, summary_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_DRAWN = 12
NAME_CELLS = 20
WIDTH = 4.1
MODEL, ESTIMATE, PLAIN = COLOURS[1], COLOURS[0], COLOURS[5]
LARGEST_EXPONENT = 700.0
FEW_RATIOS = (0.01, 0.1, 0.2, 0.5, 1, 2, 5, 10, 100)
MANY_RATIOS = (0.3, 0.5, 0.7, 1, 1.4, 2, 3)
"""Ticks of an axis of ratios that is long, or short. Conventional."""
DOMINANT = 8.0
"""Conventional: how many times as large as the median an effect is drawn on a linear axis."""


@dataclass(frozen=True)
class Picture:
    """An SVG element, and what it shows in words."""

    svg: str
    words: str


def labelled(axes: Axes, across: str, up: str = "") -> None:
    """Finish axes with their labels."""
    axes.set_xlabel(across, fontsize=9, color=INK)
    axes.set_ylabel(up, fontsize=9, color=INK)
    plain_axes(axes)


@dataclass(frozen=True)
class EffectLine:
    """One feature as it is drawn: the effect, and low end, estimate and high end of its interval.

    `predicts` is whether the effect is drawn beside the estimate, as what predicts. `plain` is how
    far an interval without privacy would reach either way, about.
    """

    name: str
    effect: float
    predicts: bool
    interval: tuple[float, float, float] | None
    plain: float | None

    @property
    def drawn(self) -> tuple[float, ...]:
        """Return all effects that are drawn."""
        ends = () if self.interval is None else (self.interval[0], self.interval[2])
        return (self.effect, *ends)


@dataclass(frozen=True)
class EffectPicture:
    """All that a picture of effects shows; `changed` is what they are effects on, if named.

    They are `standardised` where standard deviations are released: else they are of the step.
    """

    lines: tuple[EffectLine, ...]
    scale: EffectScale
    changed: str | None
    standardised: bool

    @property
    def has_plain(self) -> bool:
        """Whether intervals without privacy are known, about."""
        return any(one.interval and one.plain is not None for one in self.lines)

    @property
    def change(self) -> str:
        """Return of what change in the feature effects are."""
        return "one SD" if self.standardised else "the step"

    @property
    def dominated(self) -> bool:
        """Whether the largest effect would flatten most others on a linear axis."""
        sizes = sorted(abs(self.drawn_at(line.effect)) for line in self.lines[:MOST_DRAWN])
        if self.scale.ratio or not sizes:
            return False
        return sizes[-1] > DOMINANT * sizes[len(sizes) // 2] > 0

    @property
    def label(self) -> str:
        """Return what the axis shows."""
        if self.scale.ratio:
            return f"{self.scale.heading} of {self.change}"
        on = "" if self.changed is None else f" on {shortened(self.changed, 20)}"
        unit = ", in per cent" if self.scale == PER_CENT else ""
        axis = "\n(square-root axis)" if self.dominated else ""
        return f"effect of {self.change}{on}{unit}{axis}"

    def drawn_at(self, effect: float) -> float:
        """Return where an effect is drawn; ratios that would overflow at the edge."""
        if self.scale != LINEAR:
            effect = max(-LARGEST_EXPONENT, min(effect, LARGEST_EXPONENT))
        return self.scale.shown(effect)


def effects_of(release: Release, summary: Summary | None = None) -> EffectPicture:
    """Return what there is to draw of a model, the largest effect first."""
    rows = (summary or summary_of(release)).rows
    half = None if release.table is None else release.table.plain_half_widths()
    lines = []
    for j, row in zip(release.selected, rows, strict=True):
        size = float(release.typical[j])
        plain = None if half is None or not half[j] > 0 else float(half[j]) * size
        ends = row.interval(size)
        predicts = release.table is None
        effect = row.coefficient * size if ends is None or predicts else ends[1]
        if predicts or ends is not None:
            name = shortened(row.feature, NAME_CELLS)
            lines.append(EffectLine(name, effect, predicts, ends, plain))
    scale = release.scale_of_effects
    changed = release.changed if scale == PER_CENT else release.target
    return EffectPicture(tuple(lines), scale, changed, release.table is not None)


def draw_effects(axes: Axes, shown: EffectPicture) -> list[str]:
    """Draw the largest effects into axes, and return their names, which are not on it yet."""
    lines = shown.lines[:MOST_DRAWN]
    scale = shown.drawn_at
    for place, line in enumerate(lines):
        _draw_line(axes, place, line, scale)
    axes.axvline(scale(0.0), color=INK, linewidth=0.8)
    axes.set_ylim(len(lines) - 0.4, -0.6)
    if shown.scale.ratio:
        _ratio_axis(axes, [scale(one) for line in lines for one in line.drawn])
    elif shown.dominated:
        _root_axis(axes, [scale(one) for line in lines for one in line.drawn])
    else:
        axes.locator_params(axis="x", nbins=5)
    labelled(axes, shown.label)
    return [line.name for line in lines]


def _ratio_axis(axes: Axes, values: Sequence[float]) -> None:
    """Write ratios as people do, on a logarithmic scale."""
    axes.set_xscale("log")
    low, high = min([*values, 0.8]) / 1.3, max([*values, 1.25]) * 1.3
    axes.set_xlim(low, high)
    wanted = FEW_RATIOS if high > 4 * low else MANY_RATIOS
    ticks = [ratio for ratio in wanted if low <= ratio <= high]
    axes.set_xticks(ticks, [figure(tick) for tick in ticks])
    axes.minorticks_off()


def _root_axis(axes: Axes, values: Sequence[float]) -> None:
    """Draw signed square roots, so that effects of very different sizes can be distinguished."""
    axes.set_xscale("function", functions=(_root, lambda x: np.sign(x) * np.square(x)))
    largest = max(map(abs, values))
    sizes = [nice_step(share * largest) for share in (0.04, 0.25, 0.8)]
    low, high = min(*values, 0.0), max(*values, 0.0)
    ticks = [one for one in (*(-size for size in sizes), 0.0, *sizes) if low <= one <= high]
    axes.set_xticks(ticks, [figure(tick) for tick in ticks])


def _root(x: Array) -> Array:
    return np.asarray(np.sign(x) * np.sqrt(np.abs(x)))


def _draw_line(axes: Axes, place: int, line: EffectLine, scale: Callable[[float], float]) -> None:
    below = float(place)
    if line.interval is not None:
        low, middle, high = line.interval
        above = place - (0.15 if line.predicts else 0.0)
        ends = [scale(low), scale(high)]
        axes.plot(ends, [above] * 2, color=ESTIMATE, linewidth=2.4, solid_capstyle="butt")
        if line.plain is not None:
            thin = [scale(middle - line.plain), scale(middle + line.plain)]
            axes.plot(thin, [above + 0.27] * 2, color=PLAIN, linewidth=1.0)
        axes.plot([scale(middle)], [above], "o", color=ESTIMATE, markersize=5)
        below += 0.18  # beside the interval, not on it
    if line.predicts:
        look: dict[str, Any] = {"markersize": 4, "fillstyle": "none", "markeredgewidth": 1.2}
        axes.plot([scale(line.effect)], [below], "D", color=MODEL, **look)


# --- on a page ------------------------------------------------------------------------------------


def effects_chart(shown: EffectPicture) -> Picture | None:
    """Draw the largest effects for a page; None where nothing was selected."""
    if not shown.lines:
        return None
    drawn = min(len(shown.lines), MOST_DRAWN)
    sheet = canvas(WIDTH, 0.62 + 0.27 * drawn)
    axes = sheet.subplots()
    names = draw_effects(axes, shown)
    # Stand-ins are measured and drawn in place of names, as no font has every sign. Each name is
    # isolated (U+2068 … U+2069), so that none can turn the direction of another.
    padding = "n" * max(0, max(map(len, names)) - len("name000"))
    axes.set_yticks(range(drawn), [f"name{place:03d}{padding}" for place in range(drawn)])
    svg = re.sub(
        r"name(\d{3})n*",
        lambda found: f"\u2068{escape(names[int(found[1])])}\u2069",
        themed_svg(sheet, prefix="effects"),
    )
    first = shown.lines[0]
    scale = shown.scale
    told = f"{first.name} has the largest {scale.heading}, {scale.figure(first.effect)}"
    if first.interval is not None:
        low, _, high = first.interval
        told += f" (interval {scale.figure(low)} to {scale.figure(high)})"
    many = "feature" if drawn == 1 else "features"
    words = f"Effects of {drawn} {many}, largest first. {told}. The table holds all numbers."
    return Picture(svg, words)


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
    told = names if shown.standardised else told
    axes.set_yticks(range(len(names)), [one.replace("$", r"\$") for one in told])
    axes.set_title(f"{release.estimator}{' of ' + release.target if release.target else ''}")
    return axes
