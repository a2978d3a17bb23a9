"""The budget's pictures: places and words, which a template draws without styles of its own."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpscreen._core.words import DETECTED, number

if TYPE_CHECKING:
    from dpscreen.planning.curve import BudgetCurve, BudgetPoint
    from dpscreen.planning.setting import Setting

LEAST, MOST = 0.05, 20.0
"""The ε that the pictures show."""
TICKS = (0.05, 0.2, 1.0, 5.0, 20.0)
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 320, 190, 44, 12, 12, 34
SAMPLES = 41
NONE = "none"


@dataclass(frozen=True)
class BudgetPanel:
    """One picture: a value of the curve by its name, from where to where, and how it is said."""

    curve: BudgetCurve
    epsilon: float
    name: str
    title: str
    ends: tuple[float, float]
    say: Callable[[float], str]
    words: str

    @property
    def value(self) -> str:
        """Return the value at this ε."""
        found = self._at(self.epsilon)
        return NONE if found is None else self.say(found)

    @property
    def in_words(self) -> str:
        """Return the value with what to know about it; where there is none, why."""
        return self.words if self.value == NONE else f"{self.value}. {self.words}"

    def _at(self, epsilon: float) -> float | None:
        point = self.curve.at(epsilon)
        return None if point is None else point.values.get(self.name)

    # --- where things are drawn -----------------------------------------------------------------

    def x(self, epsilon: float) -> float:
        """Return how far to the right an ε is drawn."""
        share = math.log(min(max(epsilon, LEAST), MOST) / LEAST) / math.log(MOST / LEAST)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        """Return how far down a value is drawn."""
        low, high = self.ends
        share = (min(max(value, low), high) - low) / (high - low)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    @property
    def levels(self) -> list[tuple[float, str]]:
        """Return the heights of the grid, with their labels."""
        low, high = self.ends
        return [(self.y(value), self.say(value)) for value in (low, (low + high) / 2, high)]

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Return the places of some ε, with their labels."""
        return [(self.x(tick), f"{tick:g}") for tick in TICKS]

    @property
    def points(self) -> str:
        """Return the curve, as SVG has it."""
        samples = [LEAST * (MOST / LEAST) ** (k / (SAMPLES - 1)) for k in range(SAMPLES)]
        line = [(one, self._at(one)) for one in samples]
        return " ".join(f"{self.x(e):.1f},{self.y(v):.1f}" for e, v in line if v is not None)

    @property
    def mark(self) -> float | None:
        """Return the height of the value at this ε, if there is one."""
        found = self._at(self.epsilon)
        return None if found is None else self.y(found)


def panels(curve: BudgetCurve, epsilon: float) -> list[BudgetPanel]:
    """Draw what the model's budget buys, against ε; nothing while no point is there."""
    now = curve.at(epsilon)
    if now is None:
        return []
    shown, count = [], now.n_effects
    if count:
        family = curve.setting.kind
        (low, meaning), name = family.quality_type.no_information, family.measure.label
        high = low + 0.1 * math.ceil(round((now.best - low) / 0.1, 9))
        best = f"At most {now.best:.2f}, with the true coefficients."
        shown.append(
            (
                *(family.measure.name, f"{name} on new rows", (low, high)),
                *("{:.2f}".format, f"{best}{meaning}"),
            )
        )
        name = f"Features detected, of {count} that {'matters' if count == 1 else 'matter'}"
        shown.append(("found", name, (0.0, float(count)), "{:.1f}".format, DETECTED))
    if curve.setting.split or not shown:
        known = [one.values["width"] for one in curve.points if "width" in one.values]
        top = max(2.0, min(10.0, max(known, default=2.0)))
        name, words = (
            "Width of intervals relative to those without privacy",
            _width(curve.setting, now),
        )
        shown.append(("width", name, (1.0, top), "{:.1f} ×".format, words))
    return [BudgetPanel(curve, epsilon, *one) for one in shown]


def _width(setting: Setting, now: BudgetPoint) -> str:
    """Say what a width is worth, or why there is none."""
    n_rows, width, needed = setting.n_rows, now.values.get("width"), now.values.get("needed")

    if width is not None:
        worth = number(n_rows / width**2, digits=2)
        return f"As narrow as without privacy from {worth} of the {number(n_rows)} rows."
    if needed is None:
        return "At this budget the rows are too few for intervals."
    if needed <= n_rows:
        return "There will be intervals; simulating their width takes too long."
    about = number(float(f"{needed:.2g}"))
    lost = "The table would be empty" if setting.table else "No intervals"
    more = "increase epsilon, or use fewer features"
    return f"{lost} at this budget: about {about} rows are needed; {more}."
