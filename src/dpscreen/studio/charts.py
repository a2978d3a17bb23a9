"""The budget's pictures: drawn without styles of their own, as the pages' policy wants it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from dpscreen._core.words import figure

if TYPE_CHECKING:
    from dpscreen.planning.curve import BudgetCurve, BudgetPoint

LEAST, MOST = 0.05, 20.0
"""The ε that the pictures show."""
TICKS = (0.05, 0.2, 1.0, 5.0, 20.0)
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 320, 190, 44, 12, 12, 34
SAMPLES = 41


@dataclass(frozen=True)
class BudgetPanel:
    """One picture, with the same in words."""

    title: str
    value: str
    words: str
    svg: Markup | None


def panels(curve: BudgetCurve, epsilon: float, n_effects: int) -> list[BudgetPanel]:
    """Draw R², features found and width of intervals against ε."""
    now = curve.at(epsilon)
    if now is None:
        return []
    found = [
        _panel("R² on new rows", curve, epsilon, lambda p: p.r2, (0.0, 0.5), _two),
        _panel(
            f"Features found, of {n_effects} that matter",
            *(curve, epsilon, lambda p: p.found, (0.0, float(n_effects)), _one),
        ),
    ]
    if curve.case.intervals:
        found.append(_widths(curve, epsilon))
    return found


def _widths(curve: BudgetCurve, epsilon: float) -> BudgetPanel:
    title = "Width of intervals over least squares'"
    known = [one.width for one in curve.points if one.width is not None]
    if not known:
        return BudgetPanel(title, "none", "At no budget shown here can intervals be given.", None)
    top = max(2.0, min(10.0, max(known)))
    panel = _panel(title, curve, epsilon, lambda p: p.width, (1.0, top), _times)
    if panel.value == "none":
        told = "At this budget the rows are too few for intervals."
        return BudgetPanel(title, "none", told, panel.svg)
    return panel


Read = Callable[["BudgetPoint"], "float | None"]


def _panel(
    title: str,
    curve: BudgetCurve,
    epsilon: float,
    read: Read,
    reach: tuple[float, float],
    say: Callable[[float], str],
) -> BudgetPanel:
    samples = [LEAST * (MOST / LEAST) ** (k / (SAMPLES - 1)) for k in range(SAMPLES)]
    drawn = [(one, _value(curve, one, read)) for one in samples]
    line = [(place, value) for place, value in drawn if value is not None]
    now = _value(curve, epsilon, read)
    if now is None:
        value, words = "none", ""
    else:
        value, words = say(now), f"{title}: {say(now)} at an epsilon of {figure(epsilon)}."
    return BudgetPanel(title, value, words, _svg(title, line, (epsilon, now), reach, say))


def _value(curve: BudgetCurve, epsilon: float, read: Read) -> float | None:
    point = curve.at(epsilon)
    return None if point is None else read(point)


def _svg(
    title: str,
    line: Sequence[tuple[float, float]],
    now: tuple[float, float | None],
    reach: tuple[float, float],
    say: Callable[[float], str],
) -> Markup:
    low, high = reach

    def x(epsilon: float) -> float:
        share = math.log(min(max(epsilon, LEAST), MOST) / LEAST) / math.log(MOST / LEAST)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        share = (min(max(value, low), high) - low) / (high - low)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    parts = [
        Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">').format(WIDTH, HEIGHT, title)
    ]
    for value in (low, (low + high) / 2, high):
        parts.append(_line(LEFT, y(value), WIDTH - RIGHT, y(value), "grid"))
        parts.append(_text(LEFT - 6, y(value) + 4, say(value), "end"))
    for tick in TICKS:
        parts.append(_text(x(tick), HEIGHT - BOTTOM + 16, f"{tick:g}", "middle"))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 3, "epsilon", "middle"))
    points = " ".join(f"{x(place):.1f},{y(value):.1f}" for place, value in line)
    parts.append(Markup('<polyline class="curve" points="{}"/>').format(points))
    parts.append(_line(x(now[0]), TOP, x(now[0]), HEIGHT - BOTTOM, "now"))
    if now[1] is not None:
        mark = Markup('<circle class="mark-now" cx="{:.1f}" cy="{:.1f}" r="5"/>')
        parts.append(mark.format(x(now[0]), y(now[1])))
    return Markup("").join([*parts, Markup("</svg>")])


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    line = Markup('<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" class="{}"/>')
    return line.format(x1, y1, x2, y2, kind)


def _text(x: float, y: float, text: str, anchor: str) -> Markup:
    return Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>').format(
        x, y, anchor, text
    )


def _one(value: float) -> str:
    return f"{value:.1f}"


def _two(value: float) -> str:
    return f"{value:.2f}"


def _times(value: float) -> str:
    return f"{value:.1f} ×"
