"""The table and the picture of a plan, or of methods and budgets side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpscreen._core.pictures import COLOURS, INK, canvas, plain_axes
from dpscreen._core.words import FALSE_RATE, aligned, column_widths, whole_percent
from dpscreen.models.page.charts import PowerRow

MARKERS = ("o", "s", "D", "^")


def power_lines(rows: Sequence[PowerRow], measure: str, *fields: str) -> list[str]:
    """Return a table of what each row detects; `fields` are those in which rows differ."""
    head = [*fields, "power", "false positives", f"held-out {measure}", f"best {measure}"]
    body = [
        [
            *(_shown(getattr(row, field)) for field in fields),
            f"{row.power:.2f} ± {row.power_se:.2f}",
            f"{row.false_positives:.1f} ± {row.false_positives_se:.1f}",
            f"{row.quality:.3f} ± {row.quality_se:.3f}",
            f"{row.best_quality:.3f}",
        ]
        for row in rows
    ]
    widths = column_widths([head, *body])
    return [aligned(row, widths) for row in (head, *body)]


def _shown(value: str | float | None) -> str:
    return value if isinstance(value, str) else "none" if value is None else f"{value:g}"


def draw(
    rows: Sequence[PowerRow],
    measure: str,
    title: str,
    path: Path,
    *,
    against: tuple[str, str] = ("epsilon", "ε"),
    marks: tuple[float | None, float | None] = (None, None),
) -> None:
    """Write the score and power, one line a method; the suffix says the format.

    `against` is a field of the rows, with its label; `marks` are the wanted power, and where it is
    reached.
    """
    field, axis_label = against
    figure = canvas(9, 4)
    left, right = figure.subplots(1, 2)
    for index, method in enumerate(dict.fromkeys(one.method for one in rows)):
        mine = [one for one in rows if one.method == method]
        colour, marker = COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)]
        for axes, what in ((left, "quality"), (right, "power")):
            values = np.array([getattr(one, what) for one in mine])
            if mine[0].epsilon is None:
                label = f"{method} (not private)"
                axes.axhline(values[0], color=colour, linestyle="--", label=label)
                continue
            down = np.array([2 * getattr(one, f"{what}_se") for one in mine])
            up = np.minimum(down, np.maximum(1 - values, 0))  # nothing shown is above 1
            style: Any = {"color": colour, "marker": marker, "markersize": 4, "label": method}
            axes.errorbar([getattr(one, field) for one in mine], values, (down, up), **style)
    best = {getattr(one, field): one.best_quality for one in rows if one.epsilon is not None}
    dotted: Any = {"color": INK, "linewidth": 0.8, "linestyle": ":"}
    left.plot(list(best), list(best.values()), label="best", **dotted)
    left.set_ylabel(f"held-out {measure}", color=INK)
    right.set_ylabel(f"power ({whole_percent(FALSE_RATE)} false selections)", color=INK)
    right.set_ylim(-0.03, 1.06)
    for line, mark in ((right.axhline, marks[0]), (right.axvline, marks[1])):
        if mark is not None:
            line(mark, **dotted)
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_xticks(list(best), [f"{one:g}" for one in best], rotation=45 * (len(best) > 6))
        axes.minorticks_off()
        axes.set_xlabel(axis_label, color=INK)
        plain_axes(axes)
    left.legend(frameon=False, fontsize=8)
    figure.suptitle(title, fontsize=11, color=INK)
    figure.savefig(path, dpi=130)
