"""What another ε would have given: sampling error and privacy error apart, from simulated rows.

Only public numbers enter: rows, features and budget. A few features explain half of the target's
variance together. What PrivateLasso misses of that half with next to no privacy noise is the error
of sampling (and of its shrinkage); what it misses beyond that, at a given ε, is the error of
privacy. Both are shares of what could be explained, and they add up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from dpscreen.planning import power as simulation
from dpscreen.planning.power import Row, Setting
from dpscreen.privacy import ZCDP, Budget

EXPLAINABLE = 0.5
"""The share of the target's variance that the simulated features explain."""

UNLIMITED = 1e4
"""An ε at which privacy noise is of no account."""

FACTORS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 10.0)
SECONDS = 1.5


@dataclass(frozen=True)
class WhatIf:
    """What to expect at one ε. Errors are shares of the explainable variance."""

    epsilon: float
    power: float
    power_se: float
    privacy_error: float
    sampling_error: float
    error_se: float

    @property
    def captured(self) -> float:
        """Return the share of the explainable variance that the model captures, at least 0."""
        return max(0.0, 1 - self.privacy_error - self.sampling_error)


def what_if(
    setting: Setting,
    *,
    epsilons: Iterable[float] | None = None,
    rows_per_unit: int = 1,
    repetitions: int | None = None,
) -> tuple[WhatIf, ...]:
    """Simulate other ε, all on the same rows; None: from a tenth of the setting's to ten times.

    ε is for one unit, of at most so many rows. One too small to be divided up is left out.
    """
    chosen = around(setting.epsilon) if epsilons is None else tuple(sorted(set(epsilons)))
    settings = {epsilon: _for_rows(setting, epsilon, rows_per_unit) for epsilon in chosen}
    possible = {epsilon: one for epsilon, one in settings.items() if one is not None}
    effect = usual_effect(setting)
    times = repetitions or simulation.affordable_repetitions(
        setting, len(possible) + 1, seconds=SECONDS
    )

    def simulated(one: Setting) -> Row:
        (row,) = simulation.simulate(one, [effect], repetitions=max(2, times), seed="what-if")
        return row

    ideal = simulated(replace(setting, epsilon=UNLIMITED))
    rows = [simulated(one) for one in possible.values()]
    return _apart(tuple(possible), rows, ideal)


def epsilon_of_one_row(epsilon: float, delta: float, rows_per_unit: int) -> float:
    """Return the ε whose noise, for one row, is that of ε for a unit of several: ρ/k²."""
    if rows_per_unit == 1:
        return epsilon
    rho = ZCDP.within(Budget(epsilon, delta)).rho / rows_per_unit**2
    return ZCDP(rho).epsilon(delta)


def around(epsilon: float) -> tuple[float, ...]:
    """Return ε from a tenth of this one to ten times, with two digits; this one as it is."""
    return tuple(
        epsilon if factor == 1 else float(f"{epsilon * factor:.2g}")
        for factor in FACTORS
        if factor == 1 or epsilon * factor < UNLIMITED
    )


def usual_effect(setting: Setting) -> float:
    """Return the coefficient at which the features explain half of the variance together."""
    return math.sqrt(EXPLAINABLE / setting.explained(1.0))


def _for_rows(setting: Setting, epsilon: float, rows_per_unit: int) -> Setting | None:
    """Return the setting at another ε; None where that is too small."""
    try:
        one_row = epsilon_of_one_row(epsilon, setting.delta, rows_per_unit)
        found = replace(setting, epsilon=one_row)
        return found if found.rho > 0 else None
    except ValueError:
        return None


def _apart(epsilons: Sequence[float], rows: Sequence[Row], ideal: Row) -> tuple[WhatIf, ...]:
    sampling = _missed(ideal)
    return tuple(
        WhatIf(
            epsilon=epsilon,
            power=row.power,
            power_se=row.power_se,
            privacy_error=max(0.0, _missed(row) - sampling),
            sampling_error=sampling,
            error_se=row.r2_se / row.best_r2,
        )
        for epsilon, row in zip(epsilons, rows, strict=True)
    )


def _missed(row: Row) -> float:
    return max(0.0, 1 - row.r2 / row.best_r2)
