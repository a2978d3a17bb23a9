"""The picture of the demonstration: each method's coefficients against the truth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen.study.demo import Outcome

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TRUTH, FOUND, FALSE = "#9aa5b1", "#0b6e4f", "#c1440e"


def draw(results: Sequence[Outcome], truth: Array, title: str, path: Path) -> None:
    """Write one panel a method, side by side, to `path` (the suffix says the format)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 6.4), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(2, 2, sharex=True, sharey=True).ravel()
    for axes, outcome in zip(panels, results, strict=True):
        _panel(axes, outcome, truth)
    panels[0].legend(loc="upper right", fontsize=8, frameon=False)
    for axes in panels[2:]:
        axes.set_xlabel("feature")
    for axes in panels[::2]:
        axes.set_ylabel("coefficient")
    figure.suptitle(title, fontsize=12)
    figure.savefig(path, dpi=130)


def _panel(axes: Axes, outcome: Outcome, truth: Array) -> None:
    feature = np.arange(truth.size)
    chosen, needed = outcome.coef != 0, truth != 0
    axes.step(feature, truth, where="mid", color=TRUTH, lw=1, label="truth")
    for mask, colour, label in ((needed, FOUND, "needed"), (~needed, FALSE, "not needed")):
        shown = chosen & mask
        axes.scatter(feature[shown], outcome.coef[shown], s=9, color=colour, label=label, lw=0)
    scores = outcome.metrics
    axes.set_title(
        f"{outcome.method}:  F1 {scores['F1']:.2f}, density {scores['density']:.2f}, "
        f"MSE {scores['MSE']:.2f}",
        fontsize=10,
        loc="left",
    )
    axes.set_ylim(-1.6, 1.6)
    axes.spines[["top", "right"]].set_visible(False)
