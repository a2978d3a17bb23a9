"""What was expected of a fit from public numbers, beside what came: released numbers both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dpscreen._core.words import figure
from dpscreen.models.page.charts import Expected, ExpectedTable, OutcomeRow
from dpscreen.models.regression_table import RegressionTable
from dpscreen.models.release import Release
from dpscreen.solvers.outcome_quality import OutcomeQuality
from dpscreen.solvers.quality import Quality

EXPLAINABLE = 0.5
"""The share of the target's variance that simulated features explain."""


@dataclass(frozen=True)
class Outlook:
    """One thing that was expected, and what came of it."""

    what: str
    expected: str
    came: str


def outlook(release: Release, expected: Expected | ExpectedTable | None) -> list[Outlook]:
    """Return what can be compared; nothing where nothing was simulated."""
    match expected:
        case Expected():
            return list(_of_selection(release, expected))
        case ExpectedTable() if release.table is not None:
            return list(_of_table(release.table, expected))
    return []


def _of_selection(release: Release, expected: Expected) -> Iterator[Outlook]:
    counts = [row.power * expected.n_effects + row.false_positives for row in expected.rows]
    low, high = round(min(counts)), round(max(counts))
    of = f"of {release.n_features}, as effects are small or large"
    chosen = f"{low} {of}" if low == high else f"{low} to {high} {of}"
    yield Outlook("Features chosen", chosen, str(len(release.selected)))
    aucs = [row.auc for row in expected.rows if isinstance(row, OutcomeRow)]
    if aucs:
        reached = f"{min(aucs):.2f} to {max(aucs):.2f}, as effects are small or large"
        yield Outlook("AUC", reached, _auc_words(release.quality))
        return
    here = [row for row in expected.what_if if row.epsilon == release.statement.epsilon]
    if here:
        r2 = f"{EXPLAINABLE * here[0].captured:.2f} where features explain half of the variance"
        yield Outlook("R²", r2, _r2_words(release.quality))


def _r2_words(quality: object) -> str:
    if not isinstance(quality, Quality):
        return "not released"
    if not quality.tells_r2:
        return "cannot be told from noise"
    where = "on its own rows" if quality.in_sample else "on rows held out"
    return f"{quality.r2:.2f} ({quality.r2_low:.2f} to {quality.r2_high:.2f}) {where}"


def _auc_words(quality: object) -> str:
    if not isinstance(quality, OutcomeQuality):
        return "not released"
    if not quality.tells_auc:
        return "cannot be told from noise"
    return f"{quality.auc:.2f} ({quality.auc_low:.2f} to {quality.auc_high:.2f}) on its own rows"


def _of_table(table: RegressionTable, expected: ExpectedTable) -> Iterator[Outlook]:
    given = table.given[: table.n_features]
    told = "none" if expected.ratio is None else f"all {expected.n_features}"
    yield Outlook("Features with an interval", told, f"{int(given.sum())} of {len(given)}")
    if table.plain_errors is None or not given.any():
        return
    errors = np.sqrt(np.diag(table.covariance))[: len(given)][given]
    ratios = errors / np.maximum(table.plain_errors[: len(given)][given], 1e-300)
    low, high = figure(float(ratios.min()), digits=2), figure(float(ratios.max()), digits=2)
    came = f"{low} times" if low == high else f"{low} to {high} times"
    told = "–" if expected.ratio is None else f"about {figure(expected.ratio, digits=2)} times"
    yield Outlook("Width of intervals, over those without privacy", told, f"{came}, about")
