"""What to expect of a regression table by PrivateOLS, before any budget is spent.

Simulated: normal features that explain half of the target's variance, and how many times as wide
as least squares' own the intervals come out. Rows beyond what a simulation of seconds can hold are
fewer at a larger ρ, so that nρ, which the ratio rests on, stays as it is (docs/planning.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpscreen._core.words import number
from dpscreen.models import PrivateOLS
from dpscreen.models.page.charts import EXPLAINABLE, ExpectedTable, TableWidth
from dpscreen.models.private_ols import PLACED
from dpscreen.planning.power import FEATURE_BOUND, TARGET_BOUND, Progress, fit_quietly, ticks
from dpscreen.privacy import ZCDP, Budget, SeededNoise, named_seed
from dpscreen.solvers import ols_rules

UNLIMITED = 1e4
"""An ε at which privacy noise is of no account."""

FACTORS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 10.0)
MOST_ROWS = 10_000
TABLES = 3


def around(epsilon: float) -> tuple[float, ...]:
    """Return ε from a tenth of this one to ten times, with two digits; this one as it is."""
    return tuple(
        epsilon if factor == 1 else float(f"{epsilon * factor:.2g}")
        for factor in FACTORS
        if factor == 1 or epsilon * factor < UNLIMITED
    )


@dataclass(frozen=True)
class TableSetting:
    """What is public before a regression table is fitted."""

    n_rows: int
    n_features: int
    epsilon: float
    delta: float

    @property
    def rho(self) -> ZCDP:
        """Return the budget in zCDP."""
        return ZCDP.within(Budget(self.epsilon, self.delta))

    @property
    def rows_needed(self) -> int:
        """Return with how many rows there is a table."""
        columns, rho = self.n_features + 1, PLACED * float(self.rho)
        return ols_rules.rows_needed(columns, rho)

    def width_ratio(self, tables: int, tick: Any) -> float | None:
        """Return how many times as wide intervals are as least squares' own; None: there are none.

        The mean over simulated tables of the median over features.
        """
        if self.n_rows < self.rows_needed:
            return None
        found = [self._simulated(place, tick) for place in range(tables)]
        told = [one for one in found if one is not None]
        return float(np.mean(told)) if len(told) > tables / 2 else None

    def _simulated(self, place: int, tick: Any) -> float | None:
        rows = min(self.n_rows, max(MOST_ROWS, 2 * self.rows_needed))
        thinned = ZCDP(self.rho.rho * Fraction(self.n_rows, rows)).epsilon(self.delta)
        rng = np.random.default_rng(named_seed(f"table/{place}"))
        X = rng.standard_normal((rows, self.n_features))
        slope = math.sqrt(EXPLAINABLE / self.n_features)
        y = slope * X.sum(axis=1) + math.sqrt(1 - EXPLAINABLE) * rng.standard_normal(rows)
        model = PrivateOLS(
            epsilon=self.epsilon if rows == self.n_rows else thinned,
            delta=self.delta,
            feature_bounds=(-FEATURE_BOUND, FEATURE_BOUND),
            target_bounds=(-TARGET_BOUND, TARGET_BOUND),
            n_rows=rows,
            random_state=SeededNoise(f"table/{place}"),
        )
        fit_quietly(model, X, y)
        tick()
        given = model.table_.given[: self.n_features]
        truth = math.sqrt((1 - EXPLAINABLE) / rows)
        return (
            float(np.median(model.bse.to_numpy()[: len(given)][given])) / truth
            if any(given)
            else None
        )


def expected_table(
    *,
    n_rows: int,
    n_features: int,
    epsilon: float,
    delta: float,
    tables: int = TABLES,
    others: bool = True,
    progress: Progress | None = None,
) -> ExpectedTable:
    """Simulate tables by PrivateOLS, with `others` at other ε, too: nothing is spent."""
    chosen = around(epsilon) if others else (epsilon,)
    tick = ticks(progress, tables * len(chosen))
    settings = [TableSetting(n_rows, n_features, one, delta) for one in chosen]
    widths, narrowest = list[TableWidth](), math.inf
    for one in settings:  # in order: a larger ε never widens, whatever few simulations say
        ratio = one.width_ratio(tables, tick)
        narrowest = narrowest if ratio is None else max(1.0, min(narrowest, ratio))
        widths.append(TableWidth(one.epsilon, None if ratio is None else narrowest))
    here = TableSetting(n_rows, n_features, epsilon, delta)
    ratio = next(one.ratio for one in widths if one.epsilon == epsilon)
    return ExpectedTable(
        n_rows, n_features, epsilon, here.rows_needed, _finding(here, ratio), tuple(widths)
    )


def _finding(setting: TableSetting, ratio: float | None) -> str:
    rows = number(setting.n_rows)
    needed = number(float(f"{setting.rows_needed:.2g}"))
    if ratio is None:
        return (
            f"No intervals are to be expected: {rows} rows are too few for {setting.n_features} "
            f"features at this budget. It takes about {needed}, fewer features or a larger epsilon."
        )
    told = (
        f"Intervals of all {setting.n_features} features will be about {ratio:.2g} times as wide "
        "as those of least squares without privacy"
    )
    if ratio < 1.15:
        return f"{told}: privacy costs next to nothing here."
    return (
        f"{told}, as if there were {number(setting.n_rows / ratio**2, digits=2)} rows, not {rows}."
    )
