"""Intervals of selected features by a split: one half of the rows selects, the other estimates.

A secret coin sends each row to one half, so one row touches one half only and each half may spend
the whole budget (docs/theory/mechanisms.md, Lemma 16). The second half is a regression table on the
features that the first half chose (docs/theory/tables.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpscreen._core.arrays import Array, Integers
from dpscreen.families import GAUSSIAN
from dpscreen.privacy import ZCDP, Accountant, PrivacyStatement
from dpscreen.rows.source import PublicUnits, RowSource
from dpscreen.solvers.base import Spending, Task
from dpscreen.solvers.marginals import TargetMarginal, standardise_widely
from dpscreen.solvers.rules import Regime
from dpscreen.solvers.table import TableRelease, TableRule, release_table

LEAST_SIGNAL, NOISE_PER_FEATURE, RESOLVABLE = 80, 50, 0.5
"""Tuned: the signal M of `Regime` below which there are no intervals; how large (n/2)√(2ρ) must be
for each feature; and the part of its rows with which the second half's table is just possible."""

MOST_FEATURES, ROWS_PER_FEATURE = 20, 20
"""Conventional: at most so many features get intervals, and so many rows of a half for each."""

PARALLEL = (
    "that a secret coin of its own sent each row to one of two halves; one row touches one half "
    "only, so costs add within a half, and rho has the larger of the two sums, not their total, "
    "beside what all rows were asked before "
    "(docs/theory/mechanisms.md, Lemma 16)"
)


@dataclass(frozen=True)
class SplitHalf:
    """Some of the rows, and the spending for what is released about them."""

    spending: Spending
    rows: RowSource


def n_listed(regime: Regime, information: float = 1.0) -> int:
    """Return q, how many features get intervals at most, from the regime of all rows.

    `information` is that of a row's outcome, 1 at most.
    """
    half = regime.n_rows // 2
    by_noise = information * half * math.sqrt(2 * regime.rho) / NOISE_PER_FEATURE
    listed = int(min(MOST_FEATURES, by_noise, information * half / ROWS_PER_FEATURE))
    rule = TableRule.of(GAUSSIAN)
    while listed:
        needed = rule.rho_needed(listed + 1, half)
        if needed is not None and needed <= RESOLVABLE**2 * regime.rho:
            break
        listed -= 1
    return listed


def refusal(regime: Regime) -> str | None:
    """Return why there can be no intervals, from public numbers; None if there can be."""
    if regime.signal < LEAST_SIGNAL:
        return "there are too few rows for so many features at this budget."
    if n_listed(regime) < 1:
        return "half of the rows cannot carry one coefficient at this budget."
    return None


def split(spending: Spending, rows: RowSource) -> tuple[SplitHalf, SplitHalf]:
    """Return two halves by secret coins, each with all that is left and the nominal n/2."""
    noise, unit = spending.accountant.noise, spending.accountant.unit
    limit = spending.remaining
    heads = noise.coins(rows.n_rows)
    n_rows = spending.regime.n_rows
    regime = replace(spending.regime, n_rows=max(1, n_rows // 2))
    doubt = math.hypot(spending.count_noise, math.sqrt(n_rows)) / 2  # coins are noise too
    first, second = (
        SplitHalf(
            Spending(Accountant(noise, limit=limit, unit=unit), limit, regime, count_noise=doubt),
            rows.where(side),
        )
        for side in (heads, ~heads)
    )
    return first, second


def parallel_cost(whole: Spending, first: Spending, second: Spending) -> ZCDP:
    """Return what all rows were asked, and the larger cost of the two halves (Lemma 16)."""
    halves = (first.accountant.spent.rho, second.accountant.spent.rho)
    return ZCDP(whole.accountant.spent.rho + max(halves))


def parallel_statement(
    rho: float, whole: PrivacyStatement, first: PrivacyStatement, second: PrivacyStatement
) -> PrivacyStatement:
    """Return one statement, at `rho`, for what all rows and then two halves were asked."""
    halves = (
        replace(record, purpose=f"{half}: {record.purpose}")
        for half, statement in (("first half", first), ("second half", second))
        for record in statement.mechanisms
    )
    public = (*first.public, PARALLEL)
    return replace(first, rho=rho, mechanisms=(*whole.mechanisms, *halves), public=public)


# --- the second half ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SplitTable:
    """What the second half released: a table of some features, in units of its lattice."""

    features: Integers
    units: PublicUnits
    release: TableRelease


def infer(
    half: SplitHalf, task: Task, units: PublicUnits, weights: Array, declared: Array
) -> SplitTable | str:
    """Release a table of the features with the largest weights, or return why there is none.

    Task, units and weights are those of the first half; a feature that it did not select has weight
    zero. `declared` are the public bounds of the features, which are clipped to nothing narrower.
    """
    regime, family = half.spending.regime, task.family
    most = n_listed(replace(regime, n_rows=2 * regime.n_rows), family.information(task.start))
    if not most:
        return "too few rows have the rarer outcome for one coefficient."
    d = len(units.feature_bounds)
    order = np.argsort(-np.abs(weights[:d]), kind="stable")[:most]
    features = np.sort(order[weights[order] != 0])
    if not features.size:
        return "the first half selected no feature at this budget."
    scale = task.deviation
    wide = standardise_widely(
        half.spending,
        half.rows,
        (declared, units.target_bounds),
        replace(task.choices, standardize=task.marginals is not None),
        family=family,
        known=(
            task.marginals,
            TargetMarginal(units.target_centre, scale, scale, residual=task.residual),
        ),
        n_columns=len(features),
    )
    chosen = np.append(features, d) if units.constant else features
    release = release_table(wide, chosen, family=family, constant=task.start)
    return SplitTable(features, wide.units, release)
