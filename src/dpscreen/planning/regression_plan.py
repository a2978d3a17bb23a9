"""What to expect of a table by PrivateOLS or PrivateLogit, before any budget is spent.

Simulated: normal features that explain half of the target's variance, or whose log-odds have a
deviation of 1, and how many times as wide as without privacy the intervals come out. Odds ratios
of how many features have one is tried with a deviation of 3, too, and with levels. Rows beyond
what a simulation of seconds can hold are fewer at a larger ρ, so that nρ, which the ratio rests on,
stays as it is (docs/planning.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit, ndtri

from dpscreen._core.arrays import Array
from dpscreen._core.words import how_many, number
from dpscreen.models import PrivateLogit, PrivateOLS, TableRefused
from dpscreen.models.page.charts import EXPLAINABLE, ExpectedTable, TableWidth
from dpscreen.models.refusal import RequestedTable, TableNeeds, table_needs
from dpscreen.planning.power import (
    FEATURE_BOUND,
    TARGET_BOUND,
    Progress,
    RoughNoise,
    constant_for,
    fit_quietly,
    ticks,
)
from dpscreen.privacy import ZCDP, Budget, named_seed
from dpscreen.privacy.budget import MOST_EPSILON
from dpscreen.solvers.logit_table import odds_rule
from dpscreen.solvers.ols_rules import TableRule

UNLIMITED = MOST_EPSILON
"""An ε at which privacy noise is of no account."""

FACTORS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 10.0)
MOST_ROWS = 10_000
TABLES = 3

SURE = 3.0
"""The deviation of log-odds where outcomes are nearly sure: AUC is .92, with 1 it is .74."""

HALF, RAREST = 0.5, 0.03
"""The shares of rows that the most frequent level is supposed to have, and the rarest.

The first one is that of yes, too, where nothing is known of it.
"""

FEWER = " The surer outcomes are, and the rarer levels, the fewer have an interval."
WIDER = " Normal features are supposed: rare levels and heavy tails have wider ones, or none."


def around(epsilon: float) -> tuple[float, ...]:
    """Return ε from a tenth of this one to ten times, with two digits; this one as it is."""
    return tuple(
        epsilon if factor == 1 else float(f"{epsilon * factor:.2g}")
        for factor in FACTORS
        if factor == 1 or epsilon * factor < UNLIMITED
    )


@dataclass(frozen=True)
class TableSetting:
    """What is public before a table is fitted, and of odds ratios the supposed share of yes.

    `levels` is how many of the features are columns of 0 and 1.
    """

    n_rows: int
    n_features: int
    epsilon: float
    delta: float
    rate: float | None = None
    levels: int = 0

    @property
    def rho(self) -> ZCDP:
        """Return the budget in zCDP."""
        return ZCDP.within(Budget(self.epsilon, self.delta))

    @property
    def rows_needed(self) -> int:
        """Return with how many rows there is a table at least."""
        return self._rule.rows_needed(self.n_features + 1, float(self.rho))

    @property
    def needs(self) -> TableNeeds | None:
        """Return what it takes if a fit would be refused, by the rule of the fit; None if not."""
        budget = Budget(self.epsilon, self.delta)
        return table_needs(self._rule, RequestedTable(self.n_rows, self.n_features, budget))

    @property
    def _rule(self) -> TableRule:
        return (
            PrivateOLS.table_rule if self.rate is None else odds_rule(self.rate * (1 - self.rate))
        )

    def width_ratio(self, tables: int, tick: Any) -> float | None:
        """Return how many times as wide intervals are as without privacy; None: there are none.

        The mean over simulated tables of the median over features.
        """
        if self.n_rows < self.rows_needed:
            return None
        found = [self._simulated(place, tick) for place in range(tables)]
        told = [float(np.median(one)) for one in found if one.size]
        return float(np.mean(told)) if len(told) > tables / 2 else None

    def given(self) -> tuple[int, int]:
        """Return how many odds ratios have an interval if outcomes are nearly sure, and if not."""
        tried = (self._simulated(0, lambda: None, spread).size for spread in (SURE, 1.0))
        low, high = sorted(tried)
        return low, high

    def rows_found(self) -> int:
        """Return with about how many more rows there are intervals, by trying: odds need more."""
        more = (max(self.rows_needed, math.ceil(self.n_rows * 2 ** (k / 2))) for k in range(21))
        tried = (replace(self, n_rows=rows) for rows in more)
        ready = (one.n_rows for one in tried if one.width_ratio(TABLES, lambda: None) is not None)
        return next(ready, self.rows_needed)

    def _simulated(self, place: int, tick: Any, spread: float = 1.0) -> Array:
        """Return how many times as wide the intervals of a table are, of features that have one."""
        rows = min(self.n_rows, max(MOST_ROWS, 2 * self.rows_needed))
        thinned = ZCDP(self.rho.rho * Fraction(self.n_rows, rows)).epsilon(self.delta)
        thinned = min(thinned, MOST_EPSILON)
        rng = np.random.default_rng(named_seed(f"table/{place}"))
        X = rng.standard_normal((rows, self.n_features))
        shares = np.geomspace(HALF, RAREST, self.levels)
        X[:, : self.levels] = X[:, : self.levels] < ndtri(shares)
        y, errors = self._numbers(X, rng) if self.rate is None else self._outcomes(X, rng, spread)
        kind: Any = PrivateLogit
        if self.rate is None:
            kind = partial(PrivateOLS, target_bounds=(-TARGET_BOUND, TARGET_BOUND))
        model = kind(
            epsilon=self.epsilon if rows == self.n_rows else thinned,
            delta=self.delta,
            feature_bounds=[(0.0, 1.0)] * self.levels
            + [(-FEATURE_BOUND, FEATURE_BOUND)] * (self.n_features - self.levels),
            n_rows=rows,
            random_state=RoughNoise(f"table/{place}"),
        )
        tick()
        try:
            fit_quietly(model, X, y)
        except TableRefused:  # by the noisy share of outcomes
            return np.zeros(0)
        given = model.table_.given[: self.n_features]
        found = model.bse.to_numpy()[: self.n_features] / errors
        return np.asarray(found[given])

    def _numbers(self, X: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return targets, and the standard errors of coefficients without privacy."""
        slope = math.sqrt(EXPLAINABLE / self.n_features)
        noise = math.sqrt(1 - EXPLAINABLE) * rng.standard_normal(len(X))
        errors = np.full(self.n_features, math.sqrt((1 - EXPLAINABLE) / len(X)))
        return slope * X.sum(axis=1) + noise, errors

    def _outcomes(self, X: Array, rng: np.random.Generator, spread: float) -> tuple[Array, Array]:
        """Return outcomes, and the standard errors of log-odds without privacy."""
        alike = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
        line = spread * alike.sum(axis=1) / math.sqrt(self.n_features)
        line += constant_for(self.rate or HALF, spread)
        chances = expit(line)
        columns = np.column_stack((X, np.ones(len(X))))
        information = columns.T @ (columns * (chances * (1 - chances))[:, None])
        errors = np.sqrt(np.diag(np.linalg.pinv(information)))[: self.n_features]
        return (rng.random(len(X)) < chances).astype(np.float64), errors


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
    progress: Progress | None = None,
) -> ExpectedTable:
    """Simulate tables by PrivateOLS, with `others` at other ε, too: nothing is spent.

    With a `rate`, a supposed share of yes, they are tables of odds ratios by PrivateLogit; so many
    of their features are `levels`, columns of 0 and 1.
    """
    chosen = around(epsilon) if others else (epsilon,)
    tick = ticks(progress, tables * len(chosen))
    here = TableSetting(n_rows, n_features, epsilon, delta, rate, 0 if rate is None else levels)
    settings = [replace(here, epsilon=one) for one in chosen]
    widths, narrowest = list[TableWidth](), math.inf
    for one in settings:  # in order: a larger ε never widens, whatever few simulations say
        ratio = one.width_ratio(tables, tick)
        narrowest = narrowest if ratio is None else max(1.0, min(narrowest, ratio))
        widths.append(TableWidth(one.epsilon, None if ratio is None else narrowest))
    ratio = next(one.ratio for one in widths if one.epsilon == epsilon)
    by_trying = rate is not None and ratio is None
    needed = here.rows_found() if by_trying else here.rows_needed
    given = (n_features, n_features) if rate is None or ratio is None else here.given()
    words = _finding(here, ratio, needed, given)
    return ExpectedTable(
        n_rows,
        n_features,
        epsilon,
        needed,
        words,
        tuple(widths),
        rate,
        here.needs is not None,
    )


def of_how_many(given: tuple[int, int], n_features: int) -> str:
    """Say how many features will have an interval."""
    low, high = given
    if low == n_features:
        return f"all {n_features}"
    return f"{high} of {n_features}" if low == high else f"{low} to {high} of {n_features}"


def _finding(
    setting: TableSetting, ratio: float | None, needed: int, given: tuple[int, int]
) -> str:
    rows, needs = number(setting.n_rows), setting.needs
    if needs is not None:
        instead = "PrivateLasso" if setting.rate is None else "PrivateLogistic"
        return (
            f"The fit would be refused: a table of {how_many(setting.n_features, 'feature')} is "
            f"not possible with {rows} rows at this budget. "
            f"{replace(needs, rows=max(needs.rows, needed)).words(instead)}"
        )
    if ratio is None:
        about = number(float(f"{needed:.2g}"))
        return (
            f"No intervals are to be expected: {rows} rows are too few for {setting.n_features} "
            f"features at this budget. It takes about {about}, fewer features or a larger epsilon."
        )
    plain = "least squares" if setting.rate is None else "logistic regression"
    told = (
        f"Intervals of {of_how_many(given, setting.n_features)} features will be about {ratio:.2g} "
        f"times as wide as those of {plain} without privacy"
    )
    supposed = WIDER if setting.rate is None else FEWER
    if ratio < 1.15:
        return f"{told}: privacy costs next to nothing here.{supposed}"
    as_if = number(setting.n_rows / ratio**2, digits=2)
    return f"{told}, as if there were {as_if} rows, not {rows}.{supposed}"
