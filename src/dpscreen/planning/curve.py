"""What each ε buys, as a curve that answers at once: simulated at a few ε, read off in between.

All points share rows and seeds, so that what changes from one to the next is the budget. Between
points the curve is monotone in log ε: a larger budget never looks worse. Public numbers only.

Nothing heavy is loaded here: `curve_points` simulates, in a process of its own if need be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen.planning.setting import Setting

EPSILONS = (1.0, 0.1, 10.0, 0.3, 3.0, 0.05, 20.0, 0.18, 0.55, 1.8, 5.5)
"""Where the curve is simulated, in the order in which it is best shown while it grows.
Conventional."""

DECREASING = ("width", "needed")
"""What a larger budget makes smaller."""


@dataclass(frozen=True)
class BudgetPoint:
    """What to expect at one ε, by name; a name is not there where there is no such thing.

    `r2` and `auc` are on new rows, `found` is how many of `n_effects` features that matter are
    detected at a false-selection rate of 5 %; `width` is that of an interval over the one that
    least squares has without privacy, `needed` how many rows it takes to have any. `errors` are
    those of the simulation. `best` is what r2 or auc would be if all were known.
    """

    epsilon: float
    values: Mapping[str, float]
    errors: Mapping[str, float] = field(default_factory=dict)
    n_effects: int = 0
    best: float = math.nan


@dataclass(frozen=True)
class BudgetCurve:
    """The points that are simulated by now, and what lies between them; the setting has any ε."""

    setting: Setting
    points: tuple[BudgetPoint, ...] = ()

    def at(self, epsilon: float) -> BudgetPoint | None:
        """Read off the curve; beyond its ends it is level. None while there is no point."""
        if not self.points:
            return None
        near = min(self.points, key=lambda one: abs(math.log(one.epsilon / epsilon)))
        read = ((name, curve(math.log(epsilon))) for name, curve in self._curves.items())
        return replace(
            near,
            epsilon=epsilon,
            values={name: value for name, value in read if value is not None},
        )

    @cached_property
    def _curves(self) -> dict[str, Callable[[float], float | None]]:
        names = dict.fromkeys(name for one in self.points for name in one.values)
        return {name: self._curve(name) for name in names}

    def _curve(self, name: str) -> Callable[[float], float | None]:
        """Interpolate monotonically; below the first point that has a width, there is none."""
        known = [one for one in self.points if name in one.values]
        known.sort(key=lambda one: one.epsilon)
        logs = np.log([one.epsilon for one in known])
        sign = -1.0 if name in DECREASING else 1.0
        curve = monotone_curve(logs, sign * np.array([one.values[name] for one in known]))

        def read(log_epsilon: float) -> float | None:
            if name == "width" and log_epsilon < logs[0] - 1e-9:
                return None
            return sign * curve(float(np.clip(log_epsilon, logs[0], logs[-1])))

        return read


def monotone_curve(x: Array, y: Array) -> Callable[[float], float]:
    """Interpolate the isotonic regression of the points by monotone cubics (PCHIP)."""
    from scipy.interpolate import PchipInterpolator  # slow to import
    from scipy.optimize import isotonic_regression

    values = isotonic_regression(y).x
    if len(x) == 1:
        return lambda _: float(values[0])
    cubics = PchipInterpolator(x, values)
    return lambda at: float(cubics(at))
