"""What to expect of a regression table, before any budget is spent: how wide its intervals are.

Simulated are normal features, some of them levels, and outcomes whose linear predictors vary as the
family supposes (`SimulatedFamily.spreads`). Rows beyond what a simulation of seconds can hold are
fewer at a larger ρ, so that nρ, which the widths depend on, stays the same
(docs/guide/plan-a-fit.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.special import ndtri

from dpscreen._core.arrays import Array, Mask
from dpscreen._core.words import how_many, number
from dpscreen.families import GAUSSIAN, Family
from dpscreen.models import TableRefused
from dpscreen.models.page.charts import ExpectedTable, TableWidth
from dpscreen.models.refusal import RequestedTable, TableNeeds, table_needs
from dpscreen.planning.methods import FitRequest, estimator
from dpscreen.planning.power import (
    FEATURE_BOUND,
    TARGET_BOUND,
    Progress,
    RoughNoise,
    Setting,
    Tick,
    around,
    fit_quietly,
    no_tick,
    ticks,
)
from dpscreen.privacy import ZCDP, Budget, named_seed
from dpscreen.privacy.budget import MOST_EPSILON
from dpscreen.solvers.table import TableRule

MOST_ROWS, TABLES = 10_000, 3
"""Most rows of a simulated table, and the number of tables. Conventional."""

MOST_FREQUENT, RAREST = 0.5, 0.03
"""The shares of rows that the most frequent level is supposed to have, and the rarest.
Conventional."""


@dataclass(frozen=True)
class TableSetting(Setting):
    """What is public before a table is fitted.

    The first `levels` features are columns of 0 and 1. `interest` and `required` are the places of
    features, as estimators have them by name.
    """

    levels: int = 0
    interest: tuple[int, ...] = ()
    required: tuple[int, ...] = ()

    @property
    def rows_needed(self) -> int:
        """Return with how many rows there is a table at least."""
        return self._rule.rows_needed(self.n_features + 1, self.rho)

    @property
    def n_estimated(self) -> int:
        """Return how many features are estimated: all, or those of interest."""
        return len(self.interest) or self.n_features

    @property
    def needs(self) -> TableNeeds | None:
        """Return what it takes if a fit would be refused, by the rule of the fit; None if not."""
        budget = Budget(self.epsilon, self.delta)
        return table_needs(self._rule, RequestedTable(self.n_rows, self.n_features, budget))

    @property
    def _rule(self) -> TableRule:
        variance = math.inf
        if self.rate is not None:
            variance = self.kind.variance(np.array(self.rate)).item()
        return TableRule.of(self.kind, variance)

    def width_ratio(self, tables: int, tick: Tick = no_tick) -> float | None:
        """Return how many times as wide intervals are as without privacy; None: there are none.

        The mean over simulated tables of the median over features.
        """
        if self.n_rows < self.rows_needed:
            return None
        found = [self._simulated(number, tick) for number in range(tables)]
        medians = [float(np.median(one)) for one in found if one.size]
        return float(np.mean(medians)) if len(medians) > tables / 2 else None

    def given(self) -> tuple[int, int]:
        """Return how many features have an interval, at least and at most over the spreads."""
        spreads = self.kind.simulation.spreads
        if len(spreads) == 1:
            return self.n_estimated, self.n_estimated
        counts = [self._simulated(0, spread=spread).size for spread in spreads]
        return min(counts), max(counts)

    def rows_found(self) -> int:
        """Return with about how many more rows there are intervals, by trying."""
        more = (max(self.rows_needed, math.ceil(self.n_rows * 2 ** (k / 2))) for k in range(21))
        tried = (replace(self, n_rows=rows) for rows in more)
        ready = (one.n_rows for one in tried if one.width_ratio(TABLES) is not None)
        return next(ready, self.rows_needed)

    def _simulated(self, number: int, tick: Tick = no_tick, spread: float | None = None) -> Array:
        """Return how many times as wide the intervals of a table are, of features that have one."""
        rows, epsilon = min(self.n_rows, max(MOST_ROWS, 2 * self.rows_needed)), self.epsilon
        if rows < self.n_rows:  # the ε at which so many rows have the nρ of all
            rho = ZCDP.within(Budget(epsilon, self.delta)).rho * Fraction(self.n_rows, rows)
            epsilon = min(ZCDP(rho).epsilon(self.delta), MOST_EPSILON)
        rng = np.random.default_rng(named_seed(f"table/{number}"))
        X = rng.standard_normal((rows, self.n_features))
        shares = np.geomspace(MOST_FREQUENT, RAREST, self.levels)
        X[:, : self.levels] = X[:, : self.levels] < ndtri(shares)
        outcomes, errors = self._outcomes(X, rng, spread or self.kind.simulation.spreads[0])
        bounds = np.tile((-FEATURE_BOUND, FEATURE_BOUND), (self.n_features, 1))
        bounds[: self.levels] = 0.0, 1.0
        request = FitRequest(
            Budget(epsilon, self.delta),
            bounds,
            self.kind.simulated_bounds(TARGET_BOUND, self.rate),
            n_rows=rows,
            random_state=RoughNoise(f"table/{number}"),
            classes=(0, 1),
            settings={
                name: [f"x{place}" for place in getattr(self, name)]
                for name in ("interest", "required")
            },
        )
        model = estimator(self.kind.table.method, request)
        tick()
        try:
            fit_quietly(model, X, outcomes)
        except TableRefused:  # by the noisy mean of outcomes
            return np.zeros(0)
        given = model.table_.given[: self.n_features]
        found = model.bse.to_numpy()[: self.n_features] / errors
        return np.asarray(found[given])

    def _outcomes(self, X: Array, rng: np.random.Generator, spread: float) -> tuple[Array, Array]:
        """Return outcomes, and the standard errors of coefficients without privacy."""
        family = self.kind
        standardised = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
        predictors = spread * standardised.sum(axis=1) / math.sqrt(self.n_features)
        if self.rate is not None:
            predictors += family.intercept_for(self.rate, spread**2)
        variance = family.simulated_dispersion(spread**2)
        curvature = family.variance(family.inverse_link(predictors))
        columns = np.column_stack((X, np.ones(len(X))))
        covariance = variance * np.linalg.pinv(columns.T @ (columns * curvature[:, None]))
        noise = rng.standard_normal(len(X))
        outcomes = family.simulation.outcomes(predictors, noise, math.sqrt(variance))
        return outcomes, np.sqrt(np.diag(covariance))[: self.n_features]


def simulated_places(zero_one: Mask, places: Sequence[int]) -> tuple[int, ...]:
    """Return where features of a table are simulated: those of 0 and 1 come first."""
    order = np.argsort(~zero_one, kind="stable").tolist()
    return tuple(order.index(one) for one in places)


def expected_table(
    *,
    n_rows: int,
    n_features: int,
    epsilon: float,
    delta: float,
    tables: int = TABLES,
    others: bool = True,
    rate: float | None = None,
    levels: int = 0,
    interest: Sequence[int] = (),
    required: Sequence[int] = (),
    family: Family = GAUSSIAN,
    progress: Progress | None = None,
) -> ExpectedTable:
    """Simulate regression tables of a family, with `others` at other ε, too: nothing is spent.

    `rate` is the supposed mean of outcomes, and so many features are `levels`, columns of 0 and 1:
    the first ones. `interest` and `required` are places of features.
    """
    chosen = around(epsilon) if others else (epsilon,)
    tick = ticks(progress, tables * len(chosen))
    rate = family.simulation.rate if rate is None else rate
    levels = 0 if family.quadratic else levels
    numbers = n_rows, n_features, epsilon, delta
    named: Any = {"interest": tuple(interest), "required": tuple(required)}
    here = TableSetting(*numbers, rate=rate, levels=levels, family=family.name, **named)
    widths, narrowest = list[TableWidth](), math.inf
    for one in chosen:  # in order: a larger ε never widens, whatever few simulations say
        ratio = replace(here, epsilon=one).width_ratio(tables, tick)
        narrowest = narrowest if ratio is None else max(1.0, min(narrowest, ratio))
        widths.append(TableWidth(one, None if ratio is None else narrowest))
    ratio = next(one.ratio for one in widths if one.epsilon == epsilon)
    by_rule = family.quadratic or ratio is not None
    needed = here.rows_needed if by_rule else here.rows_found()
    finding, refused = _finding(here, ratio, needed), here.needs is not None
    return ExpectedTable(n_rows, n_features, epsilon, needed, finding, tuple(widths), rate, refused)


def _finding(setting: TableSetting, ratio: float | None, needed: int) -> str:
    rows, needs = number(setting.n_rows), setting.needs
    if needs is not None:
        instead = setting.kind.sparse.estimator
        return (
            f"The fit would be refused: a table of {how_many(setting.n_features, 'feature')} is "
            f"not possible with {rows} rows at this budget. "
            f"{replace(needs, rows=max(needs.rows, needed)).words(instead)}"
        )
    if ratio is None:
        about = number(float(f"{needed:.2g}"))
        return (
            f"Expect no intervals: {rows} rows are too few for {setting.n_features} "
            f"features at this budget. About {about} are needed, or fewer features, or a larger ε."
        )
    simulation = setting.kind.simulation
    (low, high), width = setting.given(), setting.n_estimated
    span = f"{high}" if low == high else f"{low} to {high}"
    count = f"all {width}" if low == width else f"{span} of {width}"
    what = f"{count} features"
    if setting.interest:
        what = f"{count if width > 1 else 'the'} coefficient{'s' * (width > 1)} of interest"
    wider = (
        f"Intervals of {what} will be about {ratio:.2g} times as wide as those of "
        f"{setting.kind.words.plain} without privacy"
    )
    if ratio < 1.15:
        return f"{wider}: privacy costs almost nothing here. {simulation.caution}"
    as_if = number(setting.n_rows / ratio**2, digits=2)
    return f"{wider}, as if there were {as_if} rows, not {rows}. {simulation.caution}"
