"""Methods and budgets side by side, as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dpscreen.report.canvas import COLOURS, INK, canvas, plain_axes
from dpscreen.study.side_by_side import Outcome

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKERS = ("o", "s", "D", "^")


def draw(outcomes: Sequence[Outcome], title: str, path: Path) -> None:
    """Write held-out R² and power against ε, one line a method; the suffix says the format."""
    figure = canvas(9, 4)
    left, right = figure.subplots(1, 2)
    methods = list(dict.fromkeys(one.method for one in outcomes))
    for place, method in enumerate(methods):
        mine = [one for one in outcomes if one.method == method]
        look = (COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)], method)
        _draw_line(left, mine, "r2", look)
        _draw_line(right, mine, "power", look)
    left.axhline(outcomes[0].best_r2, color=INK, linewidth=0.8, linestyle=":", label="best")
    left.set_ylabel("held-out R²", color=INK)
    right.set_ylabel("share of true features found", color=INK)
    right.set_ylim(-0.03, 1.06)
    epsilons = sorted({one.epsilon for one in outcomes if one.epsilon is not None})
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
        axes.minorticks_off()
        axes.set_xlabel("ε", color=INK)
        plain_axes(axes)
    left.legend(frameon=False, fontsize=8)
    figure.suptitle(title, fontsize=11, color=INK)
    figure.savefig(path, dpi=130)


def _draw_line(axes: Axes, mine: Sequence[Outcome], what: str, look: tuple[str, str, str]) -> None:
    colour, marker, label = look
    values = [getattr(one, what) for one in mine]
    if mine[0].epsilon is None:
        axes.axhline(values[0], color=colour, linestyle="--", label=f"{label} (not private)")
        return
    errors = [2 * getattr(one, f"{what}_se") for one in mine]
    epsilons = [one.epsilon for one in mine if one.epsilon is not None]
    axes.errorbar(epsilons, values, errors, color=colour, marker=marker, markersize=4, label=label)
