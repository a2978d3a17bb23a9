"""The points of a budget's curve, simulated: about half a second each, for every model on offer."""

from __future__ import annotations

import math

import numpy as np

from dpscreen.planning import power as simulation
from dpscreen.planning.curve import BudgetPoint
from dpscreen.planning.power import MOST_TABLES, QUICK_SECONDS, Scale
from dpscreen.planning.regression_plan import TABLES, rows_found, rows_needed, width_ratio
from dpscreen.planning.setting import Setting

MOST_CELLS_OF_A_TABLE = 5_000_000
"""Most cells of a simulated table, for the time that it takes. Conventional."""


def budget_point(setting: Setting, epsilon: float) -> BudgetPoint | None:
    """Simulate one point; None where ε is too small to be divided up."""
    try:
        here = setting.at(epsilon)
    except ValueError:
        return None
    return _table(here) if here.table else _selection(here)


def _selection(setting: Setting) -> BudgetPoint:
    """Simulate our selection with effects of the usual size."""
    selecting = setting.selecting
    times = simulation.affordable_repetitions(selecting, 1, seconds=QUICK_SECONDS)
    (row,) = simulation.simulated_power(
        selecting, [setting.usual_effect], repetitions=min(MOST_TABLES, times), seed="curve"
    )
    width = split_width(setting) if setting.split else None
    count, family = setting.n_effects, setting.kind
    measure, worst = family.measure.name, family.quality_type.no_information[0]
    values = {measure: max(worst, row.quality), "found": row.power * count}
    return BudgetPoint(
        setting.epsilon,
        values | ({} if width is None else {"width": width}),
        {measure: row.quality_se, "found": row.power_se * count},
        count,
        row.best_quality,
    )


def _table(setting: Setting) -> BudgetPoint:
    """Simulate a regression table (docs/guide/plan-a-fit.md)."""
    needed = rows_needed(setting)
    quick = needed * setting.n_features <= MOST_CELLS_OF_A_TABLE
    width = width_ratio(setting, TABLES) if quick else None
    if quick and not setting.kind.quadratic:  # found by trying
        needed = max(needed, setting.n_rows) if width else rows_found(setting)
    given = {} if width is None else {"width": max(1.0, width)}
    return BudgetPoint(setting.epsilon, {"needed": float(needed)} | given)


def split_width(setting: Setting) -> float | None:
    """Return how much wider intervals of a split are than those of all rows without privacy.

    A simulated table of fewer rows stands for all: its privacy noise is that of all rows, and of
    the error of sampling, which is known here, the part that fewer rows add is taken away.
    """
    scale, effect = Scale.of(setting.regime), setting.usual_effect
    found = []
    for number in range(TABLES):
        table = simulation.simulated_table(setting, scale, f"curve/{number}")
        fit = setting.method, setting, table.outcomes(effect), f"curve/{number}/split"
        model = table.model(*fit, inference="split", settings={"quality": False})
        variances = [one.standard_error**2 for one in model.inference_.intervals]
        unit = table.truth(effect)[2]
        found += [setting.n_rows * (one / unit - 2 / scale.n_rows) + 2 for one in variances]
    return math.sqrt(max(1.0, float(np.median(found)))) if found else None
