"""What each ε buys, as a curve that answers at once: simulated at a few ε, read off in between.

All points share rows and seeds, so that what changes from one to the next is the budget. Between
points the curve is monotone in log ε: a larger budget never looks worse. Public numbers only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen.models import PrivateLasso
from dpscreen.planning import power as simulation
from dpscreen.planning.plan import setting_of
from dpscreen.planning.power import FEATURE_BOUND, TARGET_BOUND, Scale, Setting
from dpscreen.planning.what_if import epsilon_of_one_row, usual_effect
from dpscreen.privacy import SeededNoise

EPSILONS = (1.0, 0.1, 10.0, 0.3, 3.0, 0.05, 20.0, 0.18, 0.55, 1.8, 5.5)
"""Where the curve is simulated, in the order in which it is best shown while it grows."""

SECONDS = 0.3
MOST_TABLES, TABLES_WITH_INTERVALS = 16, 3


@dataclass(frozen=True)
class BudgetCase:
    """What is public of a fit, but for its ε."""

    n_rows: int
    n_features: int
    delta: float
    rows_per_unit: int = 1
    intervals: bool = False

    def at(self, epsilon: float) -> Setting | None:
        """Return what to simulate at an ε for one unit; None where that is too small."""
        try:
            one_row = epsilon_of_one_row(epsilon, self.delta, self.rows_per_unit)
            setting = setting_of(self.n_rows, self.n_features, one_row, self.delta)
            return setting if setting.rho > 0 else None
        except ValueError:
            return None


@dataclass(frozen=True)
class BudgetPoint:
    """What to expect at one ε, where the features that matter explain half of the variance.

    `r2` is on new rows, `found` how many of the features that matter enter; `width` is that of an
    interval over the one that least squares has without privacy, None where there is none.
    """

    epsilon: float
    r2: float
    r2_se: float
    found: float
    found_se: float
    width: float | None = None


def budget_point(case: BudgetCase, epsilon: float) -> BudgetPoint | None:
    """Simulate one point, in about a second; None where ε is too small to be divided up."""
    setting = case.at(epsilon)
    if setting is None:
        return None
    selecting = _selecting(case, setting)
    times = simulation.affordable_repetitions(selecting, 1, seconds=SECONDS)
    (row,) = simulation.simulated_power(
        selecting, [usual_effect(setting)], repetitions=min(MOST_TABLES, times), seed="curve"
    )
    return BudgetPoint(
        epsilon,
        *(max(0.0, row.r2), row.r2_se),
        *(row.power * setting.n_effects, row.power_se * setting.n_effects),
        width_over_ols(setting) if case.intervals else None,
    )


def _selecting(case: BudgetCase, setting: Setting) -> Setting:
    """Return the rows that select: half of them where the other half gives intervals."""
    return replace(setting, n_rows=max(2, case.n_rows // 2)) if case.intervals else setting


def width_over_ols(setting: Setting) -> float | None:
    """Return how much wider intervals are than those of least squares on all rows, in the middle.

    A simulated table of fewer rows stands for all: its privacy noise is that of all rows, and of
    the error of sampling, which is known here, the part that fewer rows add is taken away.
    """
    scale = Scale.of(setting.regime)
    effect, found = usual_effect(setting), []
    for number in range(TABLES_WITH_INTERVALS):
        table = simulation.simulated_table(setting, scale, f"curve/{number}")
        model = PrivateLasso(
            epsilon=simulation.thinned_epsilon(setting, scale),
            delta=setting.delta,
            feature_bounds=(-FEATURE_BOUND, FEATURE_BOUND),
            target_bounds=(-TARGET_BOUND, TARGET_BOUND),
            n_rows=scale.n_rows,
            inference="split",
            quality=False,
            random_state=SeededNoise(f"curve/{number}/split"),
        )
        simulation.fit_quietly(model, table.X, table.target(effect))
        noise = table.unexplained(effect)
        errors = [one.standard_error for one in model.inference_.intervals]
        found += [setting.n_rows * (e * e / noise - 2 / scale.n_rows) + 2 for e in errors]
    return math.sqrt(max(1.0, float(np.median(found)))) if found else None


# --- the curve ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BudgetCurve:
    """The points that are simulated by now, and what lies between them."""

    case: BudgetCase
    points: tuple[BudgetPoint, ...] = ()

    def with_point(self, point: BudgetPoint) -> BudgetCurve:
        """Return the curve with one more point."""
        rest = (one for one in self.points if one.epsilon != point.epsilon)
        return replace(self, points=tuple(sorted((*rest, point), key=lambda one: one.epsilon)))

    def at(self, epsilon: float) -> BudgetPoint | None:
        """Read off the curve; beyond its ends it is level. None while there is no point."""
        if not self.points:
            return None
        near = min(self.points, key=lambda one: abs(math.log(one.epsilon / epsilon)))
        return BudgetPoint(
            epsilon,
            *(self._read("r2", epsilon) or 0.0, near.r2_se),
            *(self._read("found", epsilon) or 0.0, near.found_se),
            self._read("width", epsilon),
        )

    def _read(self, name: str, epsilon: float) -> float | None:
        read = self._curves.get(name)
        return None if read is None else read(epsilon)

    @cached_property
    def _curves(self) -> dict[str, Callable[[float], float | None]]:
        falling = self._curve("width", falls=True)
        return {"r2": self._curve("r2"), "found": self._curve("found"), "width": falling}

    def _curve(self, name: str, *, falls: bool = False) -> Callable[[float], float | None]:
        """Return what lies between the points; below the first that has a width, none has."""
        given = [(one.epsilon, getattr(one, name)) for one in self.points]
        known = [(place, value) for place, value in given if value is not None]
        if not known:
            return lambda _: None
        sign = -1.0 if falls else 1.0
        logs = np.log(np.array([place for place, _ in known]))
        curve = _monotone(logs, sign * np.array([value for _, value in known]))

        def read(epsilon: float) -> float | None:
            place = math.log(epsilon)
            if falls and place < logs[0] - 1e-9:
                return None
            return sign * curve(float(np.clip(place, logs[0], logs[-1])))

        return read


def _monotone(logs: Array, values: Array) -> Callable[[float], float]:
    """Return a smooth rising curve: the points made monotone, then joined without overshooting."""
    from scipy.interpolate import PchipInterpolator
    from sklearn.isotonic import IsotonicRegression

    if len(logs) == 1:
        return lambda _: float(values[0])
    rising = IsotonicRegression().fit_transform(logs, values)
    joined = PchipInterpolator(logs, rising)
    return lambda place: float(joined(place))


def simulated_curve(case: BudgetCase, epsilons: Sequence[float] = EPSILONS) -> BudgetCurve:
    """Simulate a whole curve."""
    curve = BudgetCurve(case)
    for epsilon in epsilons:
        point = budget_point(case, epsilon)
        curve = curve if point is None else curve.with_point(point)
    return curve
