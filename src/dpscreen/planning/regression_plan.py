"""What to expect of a table by PrivateOLS or PrivateLogit, before any budget is spent.

Simulated: normal features that explain half of the target's variance, or whose log-odds have a
deviation of 1, and how many times as wide as without privacy the intervals come out. Rows beyond
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
from scipy.special import expit

from dpscreen._core.arrays import Array
from dpscreen._core.words import number
from dpscreen.models import PrivateLogit, PrivateOLS
from dpscreen.models.page.charts import EXPLAINABLE, ExpectedTable, TableWidth
from dpscreen.models.private_ols import PLACED
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
    """What is public before a table is fitted, and of odds ratios the supposed share of yes."""

    n_rows: int
    n_features: int
    epsilon: float
    delta: float
    rate: float | None = None

    @property
    def rho(self) -> ZCDP:
        """Return the budget in zCDP."""
        return ZCDP.within(Budget(self.epsilon, self.delta))

    @property
    def rows_needed(self) -> int:
        """Return with how many rows there is a table at least."""
        columns, rho = self.n_features + 1, PLACED * float(self.rho)
        return ols_rules.rows_needed(columns, rho)

    def width_ratio(self, tables: int, tick: Any) -> float | None:
        """Return how many times as wide intervals are as without privacy; None: there are none.

        The mean over simulated tables of the median over features.
        """
        if self.n_rows < self.rows_needed:
            return None
        found = [self._simulated(place, tick) for place in range(tables)]
        told = [one for one in found if one is not None]
        return float(np.mean(told)) if len(told) > tables / 2 else None

    def rows_found(self) -> int:
        """Return with about how many more rows there are intervals, by trying: odds need more."""
        more = (max(self.rows_needed, math.ceil(self.n_rows * 2 ** (k / 2))) for k in range(21))
        tried = (replace(self, n_rows=rows) for rows in more)
        ready = (one.n_rows for one in tried if one.width_ratio(TABLES, lambda: None) is not None)
        return next(ready, self.rows_needed)

    def _simulated(self, place: int, tick: Any) -> float | None:
        rows = min(self.n_rows, max(MOST_ROWS, 2 * self.rows_needed))
        thinned = ZCDP(self.rho.rho * Fraction(self.n_rows, rows)).epsilon(self.delta)
        rng = np.random.default_rng(named_seed(f"table/{place}"))
        X = rng.standard_normal((rows, self.n_features))
        y, errors = self._numbers(X, rng) if self.rate is None else self._outcomes(X, rng)
        kind: Any = PrivateLogit
        if self.rate is None:
            kind = partial(PrivateOLS, target_bounds=(-TARGET_BOUND, TARGET_BOUND))
        model = kind(
            epsilon=self.epsilon if rows == self.n_rows else thinned,
            delta=self.delta,
            feature_bounds=(-FEATURE_BOUND, FEATURE_BOUND),
            n_rows=rows,
            random_state=RoughNoise(f"table/{place}"),
        )
        fit_quietly(model, X, y)
        tick()
        given = model.table_.given[: self.n_features]
        found = model.bse.to_numpy()[: self.n_features] / errors
        return float(np.median(found[given])) if any(given) else None

    def _numbers(self, X: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return targets, and the standard errors of coefficients without privacy."""
        slope = math.sqrt(EXPLAINABLE / self.n_features)
        noise = math.sqrt(1 - EXPLAINABLE) * rng.standard_normal(len(X))
        errors = np.full(self.n_features, math.sqrt((1 - EXPLAINABLE) / len(X)))
        return slope * X.sum(axis=1) + noise, errors

    def _outcomes(self, X: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return outcomes, and the standard errors of log-odds without privacy."""
        line = constant_for(self.rate or 0.5, 1.0) + X.sum(axis=1) / math.sqrt(self.n_features)
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
    progress: Progress | None = None,
) -> ExpectedTable:
    """Simulate tables by PrivateOLS, with `others` at other ε, too: nothing is spent.

    With a `rate`, a supposed share of yes, they are tables of odds ratios by PrivateLogit.
    """
    chosen = around(epsilon) if others else (epsilon,)
    tick = ticks(progress, tables * len(chosen))
    settings = [TableSetting(n_rows, n_features, one, delta, rate) for one in chosen]
    widths, narrowest = list[TableWidth](), math.inf
    for one in settings:  # in order: a larger ε never widens, whatever few simulations say
        ratio = one.width_ratio(tables, tick)
        narrowest = narrowest if ratio is None else max(1.0, min(narrowest, ratio))
        widths.append(TableWidth(one.epsilon, None if ratio is None else narrowest))
    here = TableSetting(n_rows, n_features, epsilon, delta, rate)
    ratio = next(one.ratio for one in widths if one.epsilon == epsilon)
    by_trying = rate is not None and ratio is None
    needed = here.rows_found() if by_trying else here.rows_needed
    words = _finding(here, ratio, needed)
    return ExpectedTable(n_rows, n_features, epsilon, needed, words, tuple(widths), rate)


def _finding(setting: TableSetting, ratio: float | None, needed: int) -> str:
    rows = number(setting.n_rows)
    if ratio is None:
        about = number(float(f"{needed:.2g}"))
        return (
            f"No intervals are to be expected: {rows} rows are too few for {setting.n_features} "
            f"features at this budget. It takes about {about}, fewer features or a larger epsilon."
        )
    plain = "least squares" if setting.rate is None else "logistic regression"
    told = (
        f"Intervals of all {setting.n_features} features will be about {ratio:.2g} times as wide "
        f"as those of {plain} without privacy"
    )
    if ratio < 1.15:
        return f"{told}: privacy costs next to nothing here."
    return (
        f"{told}, as if there were {number(setting.n_rows / ratio**2, digits=2)} rows, not {rows}."
    )
