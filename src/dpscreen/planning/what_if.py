"""What another ε would have detected: simulated, for a model's page.

Only public numbers enter: rows, features and budget. All ε see the same rows, and power is that of
one size of effect, at the false-selection rate of `dpscreen.planning.power`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from dpscreen.models.page.charts import EXPLAINABLE, OutcomeRow, PowerRow, WhatIf
from dpscreen.planning import power as simulation
from dpscreen.planning.power import Setting
from dpscreen.planning.regression_plan import around
from dpscreen.privacy import ZCDP, Budget

SECONDS = 0.3
"""How long each of the two simulations of a page takes on an idle core, about."""

Row = TypeVar("Row", PowerRow, OutcomeRow)


def first_detected(rows: Sequence[Row], power: float) -> Row:
    """Return the smallest effect that has the power, or the largest of all."""
    return next((row for row in rows if row.power >= power), rows[-1])


def what_if(
    setting: Setting,
    here: PowerRow,
    *,
    rows_per_unit: int = 1,
    seed: int | str = 0,
    progress: simulation.Progress | None = None,
) -> tuple[WhatIf, ...]:
    """Simulate other ε, from a tenth of the setting's to ten times, on the rows of `here`.

    ε is for one unit, of at most so many rows. One too small to be divided up is left out.
    """
    tried = {one: for_rows(setting, one, rows_per_unit) for one in around(setting.epsilon)}
    others = {one: at for one, at in tried.items() if at is not None and one != setting.epsilon}
    tick = simulation.ticks(progress, here.repetitions * len(others))
    found = {
        epsilon: simulation.simulated_power(
            one, [here.effect], repetitions=here.repetitions, seed=seed, tick=tick
        )[0]
        for epsilon, one in others.items()
    }
    return nested(setting.epsilon, here, found)


def nested(
    epsilon: float, here: PowerRow | OutcomeRow, others: Mapping[float, PowerRow | OutcomeRow]
) -> tuple[WhatIf, ...]:
    """Return the power at each ε, which never falls: whoever may spend more may spend less.

    The power at this ε is that of `here`; at larger ones it is a running maximum, at smaller ones a
    running minimum.
    """
    rows = dict(sorted({epsilon: here, **others}.items()))
    powers, at = np.array([row.power for row in rows.values()]), list(rows).index(epsilon)
    powers[: at + 1] = np.minimum.accumulate(powers[at::-1])[::-1]
    powers[at:] = np.maximum.accumulate(powers[at:])
    return tuple(
        WhatIf(one, float(power), row.power_se)
        for (one, row), power in zip(rows.items(), powers, strict=True)
    )


def epsilon_of_one_row(epsilon: float, delta: float, rows_per_unit: int) -> float:
    """Return the ε whose noise, for one row, is that of ε for a unit of several: ρ/k²."""
    if rows_per_unit == 1:
        return epsilon
    rho = ZCDP.within(Budget(epsilon, delta)).rho / rows_per_unit**2
    return ZCDP(rho).epsilon(delta)


class TriedBudgets:
    """What contests share: budgets for a unit of privacy, which is of several rows at most."""

    setting: Setting
    epsilons: tuple[float, ...]
    rows_per_unit: int

    def check(self) -> None:
        """Raise a ValueError where an ε is too small to be divided up."""
        for epsilon in self.epsilons:
            _ = self.for_one_row(epsilon).rho

    def for_one_row(self, epsilon: float) -> Setting:
        """Return the setting at another ε for a unit, in terms of one row."""
        one_row = epsilon_of_one_row(epsilon, self.setting.delta, self.rows_per_unit)
        return replace(self.setting, epsilon=one_row)

    @property
    def promise(self) -> str:
        """Say δ, and what a unit is if it is more than a row."""
        unit = "" if self.rows_per_unit == 1 else f", {self.rows_per_unit} rows a unit"
        return f"delta {self.setting.delta:g}{unit}"


def usual_effect(setting: Setting) -> float:
    """Return the coefficient at which the features explain half of the variance together."""
    return math.sqrt(EXPLAINABLE / setting.explained(1.0))


def for_rows(setting: Setting, epsilon: float, rows_per_unit: int) -> Setting | None:
    """Return the setting at another ε; None where that is too small."""
    try:
        one_row = epsilon_of_one_row(epsilon, setting.delta, rows_per_unit)
        found = replace(setting, epsilon=one_row)
        return found if found.rho > 0 else None
    except ValueError:
        return None
