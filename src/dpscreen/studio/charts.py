"""The budget's pictures: drawn without styles of their own, as the pages' policy wants it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from dpscreen._core.words import DETECTED, number
from dpscreen.studio.questions import choice_of

if TYPE_CHECKING:
    from dpscreen.planning.curve import BudgetCase, BudgetCurve, BudgetPoint

LEAST, MOST = 0.05, 20.0
"""The ε that the pictures show."""
TICKS = (0.05, 0.2, 1.0, 5.0, 20.0)
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 320, 190, 44, 12, 12, 34
SAMPLES = 41
NONE = "none"


@dataclass(frozen=True)
class BudgetPanel:
    """One picture: what it shows, its value at this ε, and what to know about it."""

    title: str
    value: str
    words: str
    svg: Markup

    @property
    def in_words(self) -> str:
        """Return the value with what to know about it; where there is none, why."""
        return self.words if self.value == NONE else f"{self.value}. {self.words}"


@dataclass(frozen=True)
class Drawn:
    """A value of the curve that is drawn: its title, from where to where, and how it is said."""

    name: str
    title: str
    ends: tuple[float, float]
    say: Callable[[float], str]
    words: str = ""


def panels(curve: BudgetCurve, epsilon: float) -> list[BudgetPanel]:
    """Draw what the model's budget buys, against ε; nothing while no point is there."""
    now = curve.at(epsilon)
    if now is None:
        return []
    shown = [_quality(now), _found(now)] if now.n_effects else []
    if curve.case.intervals or not shown:
        shown.append(_width(curve, now))
    return [_panel(curve, epsilon, one) for one in shown]


def _quality(now: BudgetPoint) -> Drawn:
    best = f"At best {now.best:.2f}, if nothing were private and all were known."
    if "auc" in now.values:
        top = 0.5 + 0.1 * math.ceil((now.best - 0.5) / 0.1)
        return Drawn("auc", "AUC on new rows", (0.5, top), _two, f"{best} 0.5 is a coin's.")
    return Drawn("r2", "R² on new rows", (0.0, now.best), _two, best)


def _found(now: BudgetPoint) -> Drawn:
    count = now.n_effects
    title = f"Features detected, of {count} that {'matters' if count == 1 else 'matter'}"
    return Drawn("found", title, (0.0, float(count)), _one, DETECTED)


def _width(curve: BudgetCurve, now: BudgetPoint) -> Drawn:
    known = [one.values["width"] for one in curve.points if "width" in one.values]
    top = max(2.0, min(10.0, max(known, default=2.0)))
    title = "Width of intervals over those without privacy"
    return Drawn("width", title, (1.0, top), "{:.1f} ×".format, _width_words(curve.case, now))


def _width_words(case: BudgetCase, now: BudgetPoint) -> str:
    """Say what a width is worth, or why there is none."""
    n_rows, width, needed = case.n_rows, now.values.get("width"), now.values.get("needed")
    if width is not None:
        worth = number(n_rows / width**2, digits=2)
        return f"As exact as without privacy on {worth} rows, of {number(n_rows)}."
    if needed is None:
        return "At this budget the rows are too few for intervals."
    if needed <= n_rows:
        return "There will be intervals; how wide they are takes too long to simulate."
    about = number(float(f"{needed:.2g}"))
    lost = "The table would be empty" if choice_of(case.method).table else "No intervals"
    return f"{lost} at this budget: it takes about {about} rows. Spend more, or ask less."


def _panel(curve: BudgetCurve, epsilon: float, one: Drawn) -> BudgetPanel:
    samples = [LEAST * (MOST / LEAST) ** (k / (SAMPLES - 1)) for k in range(SAMPLES)]
    drawn = [(place, _value(curve, place, one.name)) for place in samples]
    line = [(place, value) for place, value in drawn if value is not None]
    now = _value(curve, epsilon, one.name)
    said = NONE if now is None else one.say(now)
    picture = _svg(one.title, line, (epsilon, now), one.ends, one.say)
    return BudgetPanel(one.title, said, one.words, picture)


def _value(curve: BudgetCurve, epsilon: float, name: str) -> float | None:
    point = curve.at(epsilon)
    return None if point is None else point.values.get(name)


def _svg(
    title: str,
    line: Sequence[tuple[float, float]],
    now: tuple[float, float | None],
    ends: tuple[float, float],
    say: Callable[[float], str],
) -> Markup:
    low, high = ends

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
        parts.append(_text(x(tick), HEIGHT - BOTTOM + 18, f"{tick:g}", "middle"))
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
