"""Rows to figures: the mean over trials of each series, with a band of two standard errors."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpscreen._core.pictures import COLOURS, INK, canvas, plain_axes, save, themed_svg
from dpscreen._core.words import decimals
from dpscreen.paper.agreement import STANDARD_ERRORS, RowIndex
from dpscreen.paper.methods import METHODS, proven_names
from dpscreen.paper.published import label, published_data, published_figures
from dpscreen.paper.results import TrialRow
from dpscreen.paper.suites import FIGURE_3, GAPS, KEPT, all_items

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SERIES_LABELS = {"kept_true": "true nonzero", "kept_false": "true zero"}
NUMBERS = (1, 2, 3, 4)
DASHES: tuple[tuple[float, ...], ...] = ((1, 0), (5, 2), (1.5, 1.5), (6, 1.5, 1.5, 1.5))
ACROSS = 2
"""Panels beside each other: as many as a page has room for."""
LOGARITHMIC = {4}
UPRIGHT = {1: "fraction nonzero", 2: "mean squared error", 3: "fraction nonzero", 4: "Wolfe gap"}
"""What stands along the y-axis, short enough for a small panel."""


class Curve(NamedTuple):
    """A mean over trials; `low` and `high` are two standard errors below and above.

    `colour` and `dash` are indices into `COLOURS` and `DASHES`.
    """

    label: str
    colour: int
    dash: int
    x: list[float]
    mean: list[float]
    low: list[float]
    high: list[float]


class Panel(NamedTuple):
    """One plot of a figure."""

    label: str
    curves: tuple[Curve, ...]

    @property
    def words(self) -> str:
        """Say where each curve starts and ends, for those who cannot see it."""
        parts = [
            f"{curve.label} goes from {decimals(curve.mean[0])} at iteration {curve.x[0]:.0f} to "
            f"{decimals(curve.mean[-1])} at iteration {curve.x[-1]:.0f}"
            for curve in self.curves
        ]
        return f"{self.label}: {'; '.join(parts)}."


def figure_panels(index: RowIndex, number: int) -> list[Panel]:
    """Return the panels of one figure, in the paper's order, as far as there are rows for them."""
    names, uncorrelated = published_figures()[number].panels, ("adp", "uncorrelated")
    # Of every panel: its name, suite and data set, and methods.
    plots: list[tuple[str, tuple[str, str], tuple[str, ...]]]
    match number:
        case 1:
            both = ("rnm-screen", "adp-screen")
            plots = [(data, ("synthetic", data), both) for data in names]
        case 2:
            plots = [(data, ("real", data), ("rnm-screen", *proven_names())) for data in names]
        case 3:
            often = zip(names, FIGURE_3, strict=True)
            plots = [(name, uncorrelated, (method,)) for name, method in often]
        case _:
            plots = [(name, uncorrelated, GAPS) for name in names]
    series, panels = {2: ("mse",), 4: ("wolfe_gap",)}.get(number, KEPT), []
    for name, place, methods in plots:
        curves = []
        for (m, method), (s, wanted) in product(enumerate(methods), enumerate(series)):
            rows = [row for row in index.rows(*place, method) if wanted in row.series]
            # Colour goes by method and dashes by series; where there is one, by the other.
            words = [METHODS[method].label] if len(methods) > 1 else []
            words += [SERIES_LABELS[wanted]] if len(series) > 1 else []
            colour, dash = (m if len(methods) > 1 else s), (s if len(series) > 1 else m)
            if rows:
                curves.append(Curve(", ".join(words), colour, dash, *_mean_and_band(rows, wanted)))
        title = label(name) if name in published_data() else name
        panels.append(Panel(title, tuple(curves)))
    return [panel for panel in panels if panel.curves]


def _mean_and_band(rows: list[TrialRow], series: str) -> tuple[list[float], ...]:
    """Return iterations, the mean of a series, and two standard errors below and above it."""
    values = np.array([row.series[series] for row in rows])
    mean = values.mean(axis=0)
    scale = values.std(axis=0, ddof=1) if len(rows) > 1 else np.zeros_like(mean)
    band = STANDARD_ERRORS * scale / np.sqrt(len(rows))
    return rows[0].series["iteration"], *(one.tolist() for one in (mean, mean - band, mean + band))


def drawn(number: int, panels: list[Panel]) -> Figure:
    """Draw a figure: its panels, and one legend for all of them."""
    down, across = -(-len(panels) // ACROSS), min(ACROSS, len(panels))
    figure = canvas(4.2 * across if across > 1 else 6.4, 2.7 * down + 0.5)
    places, lines = figure.subplots(down, across, squeeze=False).ravel(), {}
    for axes, panel in zip(places, panels, strict=False):
        for curve in panel.curves:
            colour = COLOURS[curve.colour]
            axes.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=0.18, linewidth=0)
            (lines[curve.label],) = axes.plot(
                curve.x, curve.mean, color=colour, linewidth=1.6, linestyle=(0, DASHES[curve.dash])
            )
        if number in LOGARITHMIC:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        axes.set_xlim(left=0)
        plain_axes(axes)
        axes.set_title(panel.label, loc="left", fontsize=10, color=INK)
    for axes in places[len(panels) :]:
        axes.set_visible(False)
    figure.supxlabel(published_figures()[number].x_axis, fontsize=9, color=INK)
    figure.supylabel(UPRIGHT[number], fontsize=9, color=INK)
    figure.legend(
        lines.values(),
        lines,
        loc="outside upper left",
        ncols=2,
        frameon=False,
        fontsize=9,
        labelcolor=INK,
    )
    return figure


def figure_view(number: int, index: RowIndex) -> dict[str, Any]:
    """Return one figure to stand in a page; no picture if there are no rows."""
    published, panels = published_figures()[number], figure_panels(index, number)
    return {
        "title": f"Figure {number}. {all_items()[f'figure{number}'].title}",
        "note": f"{published.y_axis.capitalize()} against {published.x_axis}. {published.note}",
        "svg": themed_svg(drawn(number, panels), prefix=f"f{number}") if panels else "",
        "words": " ".join(panel.words for panel in panels),
    }


def write_figure(number: int, index: RowIndex, directory: Path) -> None:
    """Write the figure as PNG and SVG; nothing if there are no rows for it."""
    if panels := figure_panels(index, number):
        for suffix in ("png", "svg"):
            save(drawn(number, panels), directory / f"figure{number}.{suffix}")
