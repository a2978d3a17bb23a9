"""What another ε would have given: simulated, for a model's page.

Only public numbers enter: rows, features and budget. A few features explain half of the target's
variance together. What PrivateLasso misses of that half with next to no privacy noise is the error
of sampling (and of its shrinkage); what it misses beyond that, at a given ε, is the error of
privacy. Both are shares of what could be explained, and they add up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from dpscreen.models.page.charts import EXPLAINABLE, OutcomeRow, PowerRow, WhatIf
from dpscreen.planning import power as simulation
from dpscreen.planning.power import Setting
from dpscreen.planning.regression_plan import UNLIMITED, around
from dpscreen.privacy import ZCDP, Budget

SECONDS = 0.3
"""How long each of the two simulations of a page takes on an idle core, about."""


def what_if(
    setting: Setting,
    *,
    epsilons: Iterable[float] | None = None,
    rows_per_unit: int = 1,
    repetitions: int | None = None,
    progress: simulation.Progress | None = None,
) -> tuple[WhatIf, ...]:
    """Simulate other ε, all on the same rows; None: from a tenth of the setting's to ten times.

    ε is for one unit, of at most so many rows. One too small to be divided up is left out.
    """
    chosen = around(setting.epsilon) if epsilons is None else tuple(sorted(set(epsilons)))
    settings = {epsilon: for_rows(setting, epsilon, rows_per_unit) for epsilon in chosen}
    possible = {epsilon: one for epsilon, one in settings.items() if one is not None}
    effect = usual_effect(setting)
    times = repetitions or simulation.affordable_repetitions(
        setting, len(possible) + 1, seconds=SECONDS
    )

    tick = simulation.ticks(progress, max(2, times) * (len(possible) + 1))

    def simulated(one: Setting) -> PowerRow:
        (row,) = simulation.simulated_power(
            one, [effect], repetitions=max(2, times), seed="what-if", tick=tick
        )
        return row

    ideal = simulated(replace(setting, epsilon=UNLIMITED))
    rows = [simulated(one) for one in possible.values()]
    return apart(tuple(possible), rows, ideal)


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


def apart(
    epsilons: Sequence[float],
    rows: Sequence[PowerRow | OutcomeRow],
    ideal: PowerRow | OutcomeRow,
) -> tuple[WhatIf, ...]:
    """Tell what privacy costs at each ε from what is missed with next to no privacy noise."""
    return tuple(
        WhatIf(
            epsilon=epsilon,
            power=row.power,
            power_se=row.power_se,
            privacy_error=max(0.0, row.missed - ideal.missed),
            sampling_error=ideal.missed,
            error_se=row.missed_se,
        )
        for epsilon, row in zip(epsilons, rows, strict=True)
    )
