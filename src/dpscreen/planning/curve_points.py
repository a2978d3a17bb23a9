"""The points of a budget's curve, simulated: about half a second each, for every model on offer."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dpscreen.families import family_of_method
from dpscreen.planning import power as simulation
from dpscreen.planning.curve import BudgetCase, BudgetPoint
from dpscreen.planning.plan import selecting_rows, selection_setting
from dpscreen.planning.power import MOST_TABLES, QUICK_SECONDS, Scale, Setting
from dpscreen.planning.regression_plan import TABLES, TableSetting

MOST_CELLS_OF_A_TABLE = 5_000_000
"""Most cells of a simulated table, for the time that it takes. Conventional."""


def budget_point(case: BudgetCase, epsilon: float) -> BudgetPoint | None:
    """Simulate one point; None where ε is too small to be divided up."""
    setting = setting_at(case, epsilon)
    if setting is None:
        return None
    is_table = case.method == setting.kind.table.method
    return _table(case, setting, epsilon) if is_table else _selection(case, setting, epsilon)


def setting_at(case: BudgetCase, epsilon: float) -> Setting | None:
    """Return what to simulate at an ε for one unit, in terms of one row; None: ε is too small."""
    family = family_of_method(case.method)
    rate = case.rate if family.n_classes else family.simulation.rate
    try:
        numbers = case.n_rows, case.n_features, epsilon, case.delta
        unit = case.rows_per_unit
        setting = selection_setting(*numbers, rows_per_unit=unit, rate=rate, family=family)
        return setting if setting.rho > 0 else None
    except ValueError:
        return None


def _selection(case: BudgetCase, setting: Setting, epsilon: float) -> BudgetPoint:
    """Simulate our selection with effects of the usual size."""
    selecting = replace(setting, n_rows=selecting_rows(case.n_rows, split=case.intervals))
    times = simulation.affordable_repetitions(selecting, 1, seconds=QUICK_SECONDS)
    (row,) = simulation.simulated_power(
        selecting, [setting.usual_effect], repetitions=min(MOST_TABLES, times), seed="curve"
    )
    width = split_width(setting) if case.intervals else None
    count, family = setting.n_effects, setting.kind
    measure, worst = family.measure.name, family.quality_type.no_information[0]
    values = {measure: max(worst, row.quality), "found": row.power * count}
    return BudgetPoint(
        epsilon,
        values | ({} if width is None else {"width": width}),
        {measure: row.quality_se, "found": row.power_se * count},
        count,
        row.best_quality,
    )


def _table(case: BudgetCase, setting: Setting, epsilon: float) -> BudgetPoint:
    """Simulate a regression table (docs/guide/plan-a-fit.md)."""
    table = TableSetting(**vars(setting), interest=tuple(range(case.n_interest)))
    quick = table.rows_needed * setting.n_features <= MOST_CELLS_OF_A_TABLE
    width = table.width_ratio(TABLES) if quick else None
    given = {} if width is None else {"width": max(1.0, width)}
    needed = table.rows_needed
    if quick and not table.kind.quadratic:  # found by trying
        needed = max(needed, setting.n_rows) if width else table.rows_found()
    return BudgetPoint(epsilon, {"needed": float(needed)} | given)


def split_width(setting: Setting) -> float | None:
    """Return how much wider intervals of a split are than those of all rows without privacy.

    A simulated table of fewer rows stands for all: its privacy noise is that of all rows, and of
    the error of sampling, which is known here, the part that fewer rows add is taken away.
    """
    scale, effect = Scale.of(setting.regime), setting.usual_effect
    found = []
    for number in range(TABLES):
        table = simulation.simulated_table(setting, scale, f"curve/{number}")
        fit = setting.kind.sparse.method, setting, table.outcomes(effect), f"curve/{number}/split"
        model = table.model(*fit, inference="split", settings={"quality": False})
        variances = [one.standard_error**2 for one in model.inference_.intervals]
        unit = table.truth(effect)[2]
        found += [setting.n_rows * (one / unit - 2 / scale.n_rows) + 2 for one in variances]
    return math.sqrt(max(1.0, float(np.median(found)))) if found else None
