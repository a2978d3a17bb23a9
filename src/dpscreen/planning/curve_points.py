"""The points of a budget's curve, simulated: about half a second each, for every model on offer."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dpscreen.models import PrivateLasso
from dpscreen.models.page.charts import EXPLAINABLE
from dpscreen.planning import power as simulation
from dpscreen.planning.curve import BudgetCase, BudgetPoint
from dpscreen.planning.outcome_plan import USUAL_EFFECT, OutcomeContest, expected_outcomes
from dpscreen.planning.plan import selecting_rows, setting_of
from dpscreen.planning.power import FEATURE_BOUND, TARGET_BOUND, Scale, Setting
from dpscreen.planning.regression_plan import TableSetting
from dpscreen.planning.what_if import epsilon_of_one_row, usual_effect
from dpscreen.solvers.inference import refusal

SECONDS = 0.3
MOST_CELLS_OF_A_TABLE = 5_000_000
MOST_TABLES, TABLES_WITH_INTERVALS, TABLES_OF_OUTCOMES = 16, 3, 6


def budget_point(case: BudgetCase, epsilon: float) -> BudgetPoint | None:
    """Simulate one point; None where ε is too small to be divided up."""
    setting = setting_at(case, epsilon)
    if setting is None:
        return None
    return POINTS.get(case.method, _selection)(case, setting, epsilon)


def setting_at(case: BudgetCase, epsilon: float) -> Setting | None:
    """Return what to simulate at an ε for one unit, in terms of one row; None: ε is too small."""
    try:
        one_row = epsilon_of_one_row(epsilon, case.delta, case.rows_per_unit)
        setting = setting_of(case.n_rows, case.n_features, one_row, case.delta)
        return setting if setting.rho > 0 else None
    except ValueError:
        return None


def _selection(case: BudgetCase, setting: Setting, epsilon: float) -> BudgetPoint:
    """Simulate PrivateLasso where the features that matter explain half of the variance."""
    selecting = _selecting(case, setting)
    times = simulation.affordable_repetitions(selecting, 1, seconds=SECONDS)
    (row,) = simulation.simulated_power(
        selecting, [usual_effect(setting)], repetitions=min(MOST_TABLES, times), seed="curve"
    )
    width = width_over_ols(setting) if case.intervals else None
    count = setting.n_effects
    values = {"r2": max(0.0, row.r2), "found": row.power * count}
    return BudgetPoint(
        epsilon,
        values | ({} if width is None else {"width": width}),
        {"r2": row.r2_se, "found": row.power_se * count},
        count,
        EXPLAINABLE,
    )


def _table(case: BudgetCase, setting: Setting, epsilon: float) -> BudgetPoint:
    """Simulate PrivateOLS or PrivateLogit (docs/planning.md)."""
    rate = case.rate if case.method == "private-logit" else None
    table = TableSetting(setting.n_rows, setting.n_features, setting.epsilon, setting.delta, rate)
    quick = table.rows_needed * setting.n_features <= MOST_CELLS_OF_A_TABLE
    width = table.width_ratio(TABLES_WITH_INTERVALS, lambda: None) if quick else None
    given = {} if width is None else {"width": max(1.0, width)}
    needed = table.rows_needed
    if quick and rate is not None:  # what odds need is found by trying; these rows do, or do not
        needed = max(needed, setting.n_rows) if width else table.rows_found()
    return BudgetPoint(epsilon, {"needed": float(needed)} | given)


def _outcomes(case: BudgetCase, setting: Setting, epsilon: float) -> BudgetPoint:
    """Simulate PrivateLogistic (docs/planning.md)."""
    contest = OutcomeContest(
        _selecting(case, setting),
        case.rate,
        epsilons=(epsilon,),
        effects=(USUAL_EFFECT,),
        rows_per_unit=case.rows_per_unit,
    )
    (row,) = expected_outcomes(contest, tables=TABLES_OF_OUTCOMES, seed="curve")
    count = setting.n_effects
    return BudgetPoint(
        epsilon,
        {"auc": max(0.5, row.auc), "found": row.power * count}
        | (_width_of_odds(case, setting) if case.intervals else {}),
        {"auc": row.auc_se, "found": row.power_se * count},
        count,
        row.best_auc,
    )


def _width_of_odds(case: BudgetCase, setting: Setting) -> dict[str, float]:
    """Return how much wider intervals are than without privacy on all rows, if there are any.

    They are a table of the features that matter, on half of the rows.
    """
    if refusal(setting.regime) is not None:
        return {}
    public = (setting.n_effects, setting.epsilon, setting.delta, case.rate)
    half = TableSetting(selecting_rows(case.n_rows, split=True), *public)
    width = half.width_ratio(TABLES_WITH_INTERVALS, lambda: None)
    return {} if width is None else {"width": math.sqrt(2) * max(1.0, width)}


POINTS = {
    "private-lasso": _selection,
    "private-ols": _table,
    "private-logistic": _outcomes,
    "private-logit": _table,
}
"""How a point of each model is simulated."""


def _selecting(case: BudgetCase, setting: Setting) -> Setting:
    """Return the rows that select: half of them where the other half gives intervals."""
    return replace(setting, n_rows=selecting_rows(case.n_rows, split=case.intervals))


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
            random_state=simulation.RoughNoise(f"curve/{number}/split"),
        )
        simulation.fit_quietly(model, table.X, table.target(effect))
        noise = table.unexplained(effect)
        errors = [one.standard_error for one in model.inference_.intervals]
        found += [setting.n_rows * (e * e / noise - 2 / scale.n_rows) + 2 for e in errors]
    return math.sqrt(max(1.0, float(np.median(found)))) if found else None
