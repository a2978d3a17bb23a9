"""What to expect of a regression table, before any budget is spent: how wide its intervals are.

Simulated are normal features, some of them levels, and outcomes whose linear predictors vary as the
family supposes (`SimulatedFamily.spreads`). Rows beyond what a simulation of seconds can hold are
fewer at a larger ρ, so that nρ, which the widths depend on, stays the same
(docs/guide/plan-a-fit.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from scipy.special import ndtri

from dpscreen._core.arrays import Array, Mask
from dpscreen._core.messages import message
from dpscreen._core.words import number
from dpscreen.models import TableRefused
from dpscreen.models.page.charts import ExpectedTable, TableWidth
from dpscreen.models.refusal import RequestedTable, TableNeeds, table_needs
from dpscreen.planning.methods import FitRequest, estimator
from dpscreen.planning.power import (
    FEATURE_BOUND,
    TARGET_BOUND,
    Progress,
    RoughNoise,
    Tick,
    fit_quietly,
    no_tick,
    ticks,
)
from dpscreen.planning.setting import Setting, around
from dpscreen.privacy import ZCDP, Budget, named_seed
from dpscreen.privacy.budget import MOST_EPSILON
from dpscreen.solvers.table import TableRule

MOST_ROWS, TABLES = 10_000, 3
"""Most rows of a simulated table, and the number of tables. Conventional."""

MOST_FREQUENT, RAREST = 0.5, 0.03
"""The shares of rows that the most frequent level is supposed to have, and the rarest.
Conventional."""


def _rule(setting: Setting) -> TableRule:
    variance = math.inf
    if setting.rate is not None:
        variance = setting.kind.variance(np.array(setting.rate)).item()
    return TableRule.of(setting.kind, variance)


def rows_needed(setting: Setting) -> int:
    """Return with how many rows there is a table at least."""
    return _rule(setting).rows_needed(setting.n_features + 1, setting.rho)


def needs(setting: Setting) -> TableNeeds | None:
    """Return what it takes if a fit would be refused, by the rule of the fit; None if not."""
    budget = Budget(setting.one_row, setting.delta)
    asked = RequestedTable(setting.n_rows, setting.n_features, budget)
    return table_needs(_rule(setting), asked)


def width_ratio(setting: Setting, tables: int, tick: Tick = no_tick) -> float | None:
    """Return how many times as wide intervals are as without privacy; None: there are none.

    The mean over simulated tables of the median over features.
    """
    if setting.n_rows < rows_needed(setting):
        return None
    found = [_simulated(setting, number, tick) for number in range(tables)]
    medians = [float(np.median(one)) for one in found if one.size]
    return float(np.mean(medians)) if len(medians) > tables / 2 else None


def rows_found(setting: Setting) -> int:
    """Return with about how many more rows there are intervals, by trying."""
    least = rows_needed(setting)
    more = (max(least, math.ceil(setting.n_rows * 2 ** (k / 2))) for k in range(21))
    ready = (rows for rows in more if width_ratio(replace(setting, n_rows=rows), TABLES))
    return next(ready, least)


def _simulated(
    setting: Setting, number: int, tick: Tick = no_tick, spread: float | None = None
) -> Array:
    """Return how many times as wide the intervals of a table are, of features that have one."""
    n_features, levels, family = setting.n_features, setting.levels, setting.kind
    rows, epsilon = min(setting.n_rows, max(MOST_ROWS, 2 * rows_needed(setting))), setting.one_row
    if rows < setting.n_rows:  # the ε at which so many rows have the nρ of all
        rho = ZCDP.within(Budget(epsilon, setting.delta)).rho * Fraction(setting.n_rows, rows)
        epsilon = min(ZCDP(rho).epsilon(setting.delta), MOST_EPSILON)
    rng = np.random.default_rng(named_seed(f"table/{number}"))
    X = rng.standard_normal((rows, n_features))
    X[:, :levels] = X[:, :levels] < ndtri(np.geomspace(MOST_FREQUENT, RAREST, levels))
    outcomes, errors = _outcomes(setting, X, rng, spread or family.simulation.spreads[0])
    bounds = np.tile((-FEATURE_BOUND, FEATURE_BOUND), (n_features, 1))
    bounds[:levels] = 0.0, 1.0
    request = FitRequest(
        Budget(epsilon, setting.delta),
        bounds,
        family.simulated_bounds(TARGET_BOUND, setting.rate),
        n_rows=rows,
        random_state=RoughNoise(f"table/{number}"),
        classes=(0, 1),
        settings={
            name: [f"x{place}" for place in getattr(setting, name)]
            for name in ("interest", "required")
        },
    )
    model = estimator(family.table.method, request)
    tick()
    try:
        fit_quietly(model, X, outcomes)
    except TableRefused:  # by the noisy mean of outcomes
        return np.zeros(0)
    found = model.bse.to_numpy()[:n_features] / errors
    return np.asarray(found[model.table_.given[:n_features]])


def _outcomes(
    setting: Setting, X: Array, rng: np.random.Generator, spread: float
) -> tuple[Array, Array]:
    """Return outcomes, and the standard errors of coefficients without privacy."""
    family, n_features = setting.kind, setting.n_features
    standardised = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
    predictors = spread * standardised.sum(axis=1) / math.sqrt(n_features)
    if setting.rate is not None:
        predictors += family.intercept_for(setting.rate, spread**2)
    variance = family.simulated_dispersion(spread**2)
    curvature = family.variance(family.inverse_link(predictors))
    columns = np.column_stack((X, np.ones(len(X))))
    covariance = variance * np.linalg.pinv(columns.T @ (columns * curvature[:, None]))
    noise = rng.standard_normal(len(X))
    outcomes = family.simulation.outcomes(predictors, noise, math.sqrt(variance))
    return outcomes, np.sqrt(np.diag(covariance))[:n_features]


def simulated_places(zero_one: Mask, places: Sequence[int]) -> tuple[int, ...]:
    """Return where features of a table are simulated: those of 0 and 1 come first."""
    order = np.argsort(~zero_one, kind="stable").tolist()
    return tuple(order.index(one) for one in places)


def expected_table(
    setting: Setting,
    *,
    tables: int = TABLES,
    others: bool = True,
    progress: Progress | None = None,
) -> ExpectedTable:
    """Simulate regression tables, with `others` at other ε, too: nothing is spent."""
    chosen = around(setting.epsilon) if others else (setting.epsilon,)
    tick = ticks(progress, tables * len(chosen))
    here = replace(setting, levels=0 if setting.kind.quadratic else setting.levels)
    widths, narrowest = list[TableWidth](), math.inf
    for one in chosen:  # in order: a larger ε never widens, whatever few simulations say
        ratio = width_ratio(replace(here, epsilon=one), tables, tick)
        narrowest = narrowest if ratio is None else max(1.0, min(narrowest, ratio))
        widths.append(TableWidth(one, None if ratio is None else narrowest))
    ratio = next(one.ratio for one in widths if one.epsilon == here.epsilon)
    by_rule = here.kind.quadratic or ratio is not None
    needed = rows_needed(here) if by_rule else rows_found(here)
    return ExpectedTable(
        **{name: getattr(here, name) for name in ("n_rows", "n_features", "epsilon", "rate")},
        rows_needed=needed,
        finding=_finding(here, ratio, needed),
        widths=tuple(widths),
        refused=needs(here) is not None,
    )


def _given(setting: Setting, every: int) -> tuple[int, int]:
    """Return how many features have an interval, at least and at most over the spreads."""
    spreads = setting.kind.simulation.spreads
    if len(spreads) == 1:
        return every, every
    counts = [_simulated(setting, 0, spread=spread).size for spread in spreads]
    return min(counts), max(counts)


def _finding(setting: Setting, ratio: float | None, needed: int) -> str:
    rows, refused, simulation = number(setting.n_rows), needs(setting), setting.kind.simulation
    public = {"rows": rows, "n_features": setting.n_features}
    if refused is not None:
        takes = replace(refused, rows=max(refused.rows, needed))
        words = takes.words(setting.kind.sparse.estimator)
        return message("plan.table-refused", needs=words, **public)
    if ratio is None:
        about = number(float(f"{needed:.2g}"))
        return message("plan.table-empty", needed=about, **public)
    width = len(setting.interest) or setting.n_features
    low, high = _given(setting, width)
    span = f"{high}" if low == high else f"{low} to {high}"
    count = f"all {width}" if low == width else f"{span} of {width}"
    what = f"{count} features"
    if setting.interest:
        what = f"{count if width > 1 else 'the'} coefficient{'s' * (width > 1)} of interest"
    fields = {"what": what, "ratio": ratio, "plain": setting.kind.words.plain}
    fields |= {"caution": simulation.caution, "rows": rows}
    if ratio < 1.15:
        return message("plan.table-as-plain", **fields)
    as_if = number(setting.n_rows / ratio**2, digits=2)
    return message("plan.table-wider", as_if=as_if, **fields)
