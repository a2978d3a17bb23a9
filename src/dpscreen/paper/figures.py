"""Rows to curves: the mean over trials of each series, with a band of two standard errors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpscreen._core.pictures import COLOURS, INK, canvas, plain_axes, save, themed_svg
from dpscreen._core.words import decimals
from dpscreen.paper.agreement import STANDARD_ERRORS, RowIndex
from dpscreen.paper.methods import of_rows, proven_names
from dpscreen.paper.published import label, published_data, published_figures
from dpscreen.paper.results import TrialRow
from dpscreen.paper.suites import FIGURE_3, GAPS, all_items

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SERIES_LABELS = {"kept_true": "true nonzero", "kept_false": "true zero"}


class Curve(NamedTuple):
    """A mean over trials; `low` and `high` are two standard errors below and above."""

    label: str
    method: str
    series: str
    x: tuple[float, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


class Panel(NamedTuple):
    """One plot of a figure."""

    label: str
    curves: tuple[Curve, ...]


def figure_panels(rows: Iterable[TrialRow], number: int) -> tuple[Panel, ...]:
    """Return the panels of one figure, in the paper's order, as far as there are rows for them."""
    index, names = RowIndex(rows), published_figures()[number].panels
    kept, uncorrelated = tuple(SERIES_LABELS), ("adp", "uncorrelated")
    # Of every panel: its name, suite and data set, methods and series.
    plots: list[tuple[str, tuple[str, str], tuple[str, ...], tuple[str, ...]]]
    match number:
        case 1:
            both = ("rnm-screen", "adp-screen")
            plots = [(data, ("synthetic", data), both, kept) for data in names]
        case 2:
            compared = ("rnm-screen", *proven_names())
            plots = [(data, ("real", data), compared, ("mse",)) for data in names]
        case 3:
            often = zip(names, FIGURE_3, strict=True)
            plots = [(name, uncorrelated, (method,), kept) for name, method in often]
        case _:
            plots = [(name, uncorrelated, GAPS, ("wolfe_gap",)) for name in names]
    panels = []
    for name, place, methods, wanted in plots:
        drawn = product(methods, wanted)
        curves = [_curve(index.rows(*place, method), series) for method, series in drawn]
        words = label(name) if name in published_data() else name
        panels.append(Panel(words, tuple(filter(None, curves))))
    return tuple(panel for panel in panels if panel.curves)


def _curve(rows: list[TrialRow], series: str) -> Curve | None:
    rows = [row for row in rows if series in row.series]
    if not rows:
        return None
    values = np.array([row.series[series] for row in rows])
    mean = values.mean(axis=0)
    scale = values.std(axis=0, ddof=1) if len(rows) > 1 else np.zeros_like(mean)
    band = STANDARD_ERRORS * scale / np.sqrt(len(rows))
    method = rows[0].method
    name = ", ".join(filter(None, (of_rows(method).label, SERIES_LABELS.get(series))))
    lines = (rows[0].series["iteration"], mean, mean - band, mean + band)
    return Curve(name, method, series, *(tuple(map(float, line)) for line in lines))


NUMBERS = (1, 2, 3, 4)
DASHES: tuple[tuple[float, ...], ...] = ((), (5, 2), (1.5, 1.5), (6, 1.5, 1.5, 1.5))
PANELS_A_ROW = {1: 2, 2: 4, 3: 3, 4: 1}
PANEL_WIDTH = {1: 4.2, 2: 3.3, 3: 3.3, 4: 6.4}
LOGARITHMIC = {4}
UPRIGHT = {1: "fraction nonzero", 2: "mean squared error", 3: "fraction nonzero", 4: "Wolfe gap"}
"""What stands along the y-axis, short enough for a small panel."""


class Look(NamedTuple):
    """How one curve is drawn: indices into `COLOURS` and `DASHES`."""

    label: str
    colour: int
    dash: int


def figure_view(number: int, rows: Iterable[TrialRow]) -> dict[str, Any]:
    """Return one figure, panel by panel, to stand in a page; no pictures if there are no rows."""
    published, panels, pictures = published_figures()[number], figure_panels(rows, number), []
    for place, panel in enumerate(panels):
        figure = canvas(4.2, 2.7)
        axes = figure.subplots()
        _draw(axes, panel, number)
        axes.set_xlabel(published.x_axis, fontsize=9, color=INK)
        axes.set_ylabel(UPRIGHT[number], fontsize=9, color=INK)
        svg = themed_svg(figure, prefix=f"f{number}p{place}")
        pictures.append({"title": panel.label, "svg": svg, "words": in_words(panel)})
    return {
        "title": f"Figure {number}. {all_items()[f'figure{number}'].title}",
        "note": f"{published.y_axis.capitalize()} against {published.x_axis}. {published.note}",
        "pictures": pictures,
        "legend": _legend(panels),
    }


def write_figure(number: int, rows: Iterable[TrialRow], directory: Path) -> list[Path]:
    """Write the figure as PNG and SVG; nothing if there are no rows for it."""
    panels = figure_panels(rows, number)
    if not panels:
        return []
    across = min(PANELS_A_ROW[number], len(panels))
    down = -(-len(panels) // across)
    figure = canvas(PANEL_WIDTH[number] * across, 2.7 * down + 0.5)
    places = figure.subplots(down, across, squeeze=False).ravel()
    for axes, panel in zip(places, panels, strict=False):
        _draw(axes, panel, number)
        axes.set_title(panel.label, loc="left", fontsize=10, color=INK, parse_math=False)
    for axes in places[len(panels) :]:
        axes.set_visible(False)
    figure.supxlabel(published_figures()[number].x_axis, fontsize=9, color=INK)
    figure.supylabel(UPRIGHT[number], fontsize=9, color=INK)
    _draw_legend(figure, _legend(panels))
    paths = [directory / f"figure{number}.{suffix}" for suffix in ("png", "svg")]
    for path in paths:
        save(figure, path)
    return paths


def _draw(axes: Axes, panel: Panel, number: int) -> None:
    for curve, look in zip(panel.curves, looks(panel.curves), strict=True):
        colour, dashes = COLOURS[look.colour], DASHES[look.dash]
        style = (0, dashes) if dashes else "solid"
        axes.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=0.18, linewidth=0)
        axes.plot(curve.x, curve.mean, color=colour, linewidth=1.6, linestyle=style)
    if number in LOGARITHMIC:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    plain_axes(axes)


def _draw_legend(figure: Figure, legend: Sequence[Look]) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=COLOURS[look.colour], linestyle=(0, DASHES[look.dash] or (1, 0)))
        for look in legend
    ]
    names = [look.label for look in legend]
    across = 2 if len(names) > 3 else 3
    drawn = figure.legend(
        handles, names, loc="outside upper left", ncols=across, frameon=False, fontsize=9
    )
    for text in drawn.get_texts():
        text.set_parse_math(False)
        text.set_color(INK)


def looks(curves: Sequence[Curve]) -> list[Look]:
    """Return how the curves of one panel are drawn.

    Colour goes by method and dashes by series; where there is one of either, both go by the other.
    """
    methods = list(dict.fromkeys(curve.method for curve in curves))
    series = list(dict.fromkeys(curve.series for curve in curves))
    found = []
    for curve in curves:
        by_method, by_series = methods.index(curve.method), series.index(curve.series)
        colour = by_method if len(methods) > 1 else by_series
        dash = by_series if len(series) > 1 else by_method
        found.append(Look(curve.label, colour % len(COLOURS), dash % len(DASHES)))
    return found


def _legend(panels: Sequence[Panel]) -> tuple[Look, ...]:
    """Return the looks of all panels once; labels that look alike share what they end with."""
    named: dict[tuple[int, int], dict[str, str]] = {}
    for panel in panels:
        for look in looks(panel.curves):
            ending = look.label.rsplit(", ", 1)[-1]
            named.setdefault((look.colour, look.dash), {})[look.label] = ending
    legend = []
    for place, endings in named.items():
        shared = len(endings) > 1 and len(set(endings.values())) == 1
        names = set(endings.values()) if shared else endings
        legend.append(Look(" / ".join(names), *place))
    return tuple(legend)


def in_words(panel: Panel) -> str:
    """Say where each curve starts and ends, for those who cannot see it."""
    parts = [
        f"{curve.label} goes from {decimals(curve.mean[0])} at iteration {curve.x[0]:.0f} to "
        f"{decimals(curve.mean[-1])} at iteration {curve.x[-1]:.0f}"
        for curve in panel.curves
    ]
    return f"{panel.label}: {'; '.join(parts)}."
