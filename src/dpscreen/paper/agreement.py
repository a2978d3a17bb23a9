"""Rows beside the paper: what it printed, what its method gives here, what the proven ones give.

A cell matches when our mean lies within two of its standard errors or within .05 of the printed
value (errors in Table 5, which live on another scale: within 10 %); one that owes it to its
standard error alone is told apart. A cell that differs is always explained, be it only by how far
off it is.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from dpscreen.paper import metrics
from dpscreen.paper.experiments import PROCESS
from dpscreen.paper.methods import proven_names
from dpscreen.paper.metrics import SignTest
from dpscreen.paper.published import (
    PublishedCell,
    known_inconsistencies,
    published_cells,
    published_data,
)
from dpscreen.paper.results import TrialRow
from dpscreen.paper.suites import BLOCKS, ENDS, FROM_ZERO, LONG, SYNTHETIC, ZERO_START

Verdict = Literal["matches", "differs", "not run"]

SUITE_OF_TABLE = {1: "synthetic", 2: "real", 3: "real", 4: "ablation", 5: "ablation"}
METRIC_IN_ROWS = {"r2": "r2_unchosen"}
"""R² as it fits the printed values, which is not as the text defines it: see `check_r2`."""

STANDARD_ERRORS = 2.0
TOLERANCE = 0.05
RELATIVE_TOLERANCE = 0.10
LEVEL = 0.05


# --- means over trials ------------------------------------------------------------------------


@dataclass(frozen=True)
class Estimate:
    """A mean over trials and its standard error, 0 where there is but one trial."""

    mean: float
    standard_error: float
    trials: int


class RowIndex:
    """Rows by suite, data and method, in the order of their trials."""

    def __init__(self, rows: Iterable[TrialRow]) -> None:
        self._rows: dict[tuple[str, str, str], list[TrialRow]] = defaultdict(list)
        for row in sorted(rows, key=lambda row: row.trial):
            self._rows[row.suite, row.data, row.method].append(row)

    def all_rows(self) -> list[TrialRow]:
        """Return every row."""
        return [row for rows in self._rows.values() for row in rows]

    def rows(self, suite: str, data: str, method: str) -> list[TrialRow]:
        """Return the trials of one method on one data set."""
        return self._rows.get((suite, data, method), [])

    def values(self, suite: str, data: str, method: str, metric: str) -> dict[int, float]:
        """Return one metric by trial, without the undefined ones."""
        found = {row.trial: row.metrics.get(metric) for row in self.rows(suite, data, method)}
        return {t: value for t, value in found.items() if value is not None and value == value}

    def estimate(self, suite: str, data: str, method: str, metric: str) -> Estimate | None:
        """Return the mean of one metric; None if no trial has it."""
        return mean_of(self.values(suite, data, method, metric).values())

    def data_sets(self, suite: str) -> list[str]:
        """Return the data sets of a suite, in the order of their first row."""
        return list(dict.fromkeys(data for found, data, _ in self._rows if found == suite))


def mean_of(values: Iterable[float]) -> Estimate | None:
    """Return mean and standard error; None without values."""
    sample = list(values)
    if not sample:
        return None
    mean = math.fsum(sample) / len(sample)
    if len(sample) == 1:
        return Estimate(mean, 0.0, 1)
    variance = math.fsum((value - mean) ** 2 for value in sample) / (len(sample) - 1)
    return Estimate(mean, math.sqrt(variance / len(sample)), len(sample))


# --- sign tests -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Significance:
    """A sign test over paired trials where the paper prints bold, or could have.

    `better` says that this method is significantly better than `against` (two-sided, .05).
    """

    against: str
    test: SignTest
    better: bool
    agrees_with_bold: bool


def rival_of(cell: PublishedCell) -> str | None:
    """Name the method that bold type in this cell is measured against."""
    if cell.table in (2, 4) and cell.metric in ("f1", "density"):
        return "dp-fw"
    rivals = {"rnm-screen": "oracle-k-fw", "oracle-k-fw": "rnm-screen"}
    return rivals.get(cell.method) if cell.table in (3, 5) else None


def better_by_sign_test(
    ours: Mapping[int, float], theirs: Mapping[int, float], metric: str
) -> tuple[SignTest, bool]:
    """Compare the trials that both have; more is better for F1, less for density and MSE."""
    both = sorted(set(ours) & set(theirs))
    test = metrics.sign_test([ours[t] for t in both], [theirs[t] for t in both])
    ahead = test.wins > test.losses if metric == "f1" else test.wins < test.losses
    return test, ahead and test.p_two_sided < LEVEL


def _significance(cell: PublishedCell, index: RowIndex) -> Significance | None:
    rival = rival_of(cell)
    if rival is None:
        return None
    suite = SUITE_OF_TABLE[cell.table]
    ours, theirs = (
        index.values(suite, cell.data, name, cell.metric) for name in (cell.method, rival)
    )
    if not set(ours) & set(theirs):
        return None
    test, better = better_by_sign_test(ours, theirs, cell.metric)
    return Significance(rival, test, better, better == cell.bold)


# --- cells ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CellCheck:
    """One printed number beside ours. `counted` cells are those that must match in nine of ten.

    A cell that differs has a `reason`, which others may share, and a `detail` of its own.
    """

    cell: PublishedCell
    ours: Estimate | None
    proven: Mapping[str, Estimate]
    verdict: Verdict
    reason: str
    detail: str
    counted: bool
    significance: Significance | None

    @property
    def by_spread(self) -> bool:
        """Whether it matches, but only as its standard error is wide."""
        if self.ours is None or self.verdict != "matches":
            return False
        return abs(self.ours.mean - self.cell.value) > fixed_tolerance(self.cell) + 1e-9


def check_cells(rows: Iterable[TrialRow], table: int | None = None) -> tuple[CellCheck, ...]:
    """Compare every printed cell, or those of one table, in the paper's reading order."""
    index = RowIndex(rows)
    return tuple(_compare(cell, index) for cell in published_cells(table))


def tolerance(cell: PublishedCell, ours: Estimate) -> float:
    """How far our mean may be from the printed value."""
    return max(STANDARD_ERRORS * ours.standard_error, fixed_tolerance(cell))


def fixed_tolerance(cell: PublishedCell) -> float:
    """How far it may be without spread."""
    on_another_scale = cell.table == 5 and cell.metric == "mse"
    return RELATIVE_TOLERANCE * abs(cell.value) if on_another_scale else TOLERANCE


def is_counted(cell: PublishedCell) -> bool:
    """Whether the cell is one of the hundred of the narrower count.

    F1, density and R² of RNM-Screen, its MSE, and F1 and MSE of Oracle-K. Tables 3 and 5 repeat
    the F1 of Tables 2 and 4, which is counted once.
    """
    if cell.method == "oracle-k-fw":
        return True
    if cell.method != "rnm-screen":
        return False
    return cell.metric == "mse" if cell.table in (3, 5) else cell.metric not in ("tpr", "fpr")


def _compare(cell: PublishedCell, index: RowIndex) -> CellCheck:
    suite, metric = SUITE_OF_TABLE[cell.table], METRIC_IN_ROWS.get(cell.metric, cell.metric)
    values = index.values(suite, cell.data, cell.method, metric).values()
    ours = mean_of(values)
    proven = {name: index.estimate(suite, cell.data, name, metric) for name in proven_names()}
    verdict = _verdict(cell, ours)
    differs = ours is not None and verdict == "differs"
    return CellCheck(
        cell=cell,
        ours=ours,
        proven={name: value for name, value in proven.items() if value is not None},
        verdict=verdict,
        reason=_reason(cell, index) if differs else "",
        detail=_detail(cell, sorted(values), index) if differs else "",
        counted=is_counted(cell),
        significance=_significance(cell, index),
    )


def _verdict(cell: PublishedCell, ours: Estimate | None) -> Verdict:
    if ours is None:
        return "not run"
    # Printed numbers are rounded to three decimals; sums of floats must not decide a tie.
    return "matches" if abs(ours.mean - cell.value) <= tolerance(cell, ours) + 1e-9 else "differs"


CHANCE = "Chance: five times as many trials come near enough to the printed mean of twenty."
UNEXPLAINED = "No reason is known."


def _reason(cell: PublishedCell, index: RowIndex) -> str:
    known, more = known_inconsistencies().get(cell.key), _more_trials(cell, index)
    if known:
        return known
    if more is None:
        return UNEXPLAINED
    # The printed mean is one of a block of trials, so its variance is as many times as large.
    error = more.standard_error * math.sqrt(1 + BLOCKS)
    allowed = max(STANDARD_ERRORS * error, fixed_tolerance(cell))
    return CHANCE if abs(more.mean - cell.value) <= allowed else UNEXPLAINED


def _more_trials(cell: PublishedCell, index: RowIndex) -> Estimate | None:
    """Return the mean of the trials that were run again to see what is chance."""
    suite, metric = SUITE_OF_TABLE[cell.table], METRIC_IN_ROWS.get(cell.metric, cell.metric)
    return index.estimate(LONG.get(suite, ""), cell.data, cell.method, metric)


def _detail(cell: PublishedCell, values: list[float], index: RowIndex) -> str:
    if len(values) == 1:
        return f"No noise: {values[0]:.3f} here, {cell.value:.3f} printed.{_ends(cell, index)}"
    text = (
        f"Single trials here run from {values[0]:.3g} to {values[-1]:.3g} (median "
        f"{values[len(values) // 2]:.3g})"
    )
    more = _more_trials(cell, index)
    if more is None:
        return f"{text}."
    return (
        f"{text}; {more.trials} further ones average {more.mean:.3f} ± {more.standard_error:.3f}."
    )


def _ends(cell: PublishedCell, index: RowIndex) -> str:
    """Say what NP-FW gives at both ends of the interval that λ is the middle of."""
    suite = SUITE_OF_TABLE[cell.table]
    found = [index.estimate(suite, cell.data, name, cell.metric) for name in ENDS]
    if cell.method != "np-fw" or None in found:
        return ""
    low, high = (f"{one.mean:.3f}" for one in found if one)
    return f" At the smallest and the largest λ that share K it is {low} and {high}."


@dataclass(frozen=True)
class CellTally:
    """How many of some cells were run, match, and match only as their standard error is wide."""

    run: int
    matching: int
    by_spread: int
    not_run: int

    @property
    def share(self) -> float:
        """Share of the cells that match; nan if none was run."""
        return self.matching / self.run if self.run else math.nan


def summarise(checks: Iterable[CellCheck], *, counted: bool = False) -> CellTally:
    """Count over all cells, or over those that are `counted` alone."""
    asked = [check for check in checks if check.counted or not counted]
    run = [check for check in asked if check.verdict != "not run"]
    matching = sum(check.verdict == "matches" for check in run)
    spread = sum(check.by_spread for check in run)
    return CellTally(len(run), matching, spread, len(asked) - len(run))


# --- two definitions of R² ----------------------------------------------------------------------


@dataclass(frozen=True)
class R2Check:
    """A printed R² beside both definitions: to all unchosen features, or to the missed ones.

    With both go the same of random subsets, each of as many features.
    """

    table: int
    data: str
    printed: float
    unchosen: Estimate
    missed: Estimate
    unchosen_at_random: Estimate | None = None
    missed_at_random: Estimate | None = None

    @property
    def fits(self) -> Literal["unchosen", "missed"]:
        """The definition whose value is nearer to the printed one."""
        nearer = abs(self.unchosen.mean - self.printed) <= abs(self.missed.mean - self.printed)
        return "unchosen" if nearer else "missed"


def check_r2(rows: Iterable[TrialRow]) -> tuple[R2Check, ...]:
    """Compare the R² of Tables 2 and 4 under both definitions."""
    index = RowIndex(rows)
    found = []
    for cell in published_cells():
        suite = SUITE_OF_TABLE[cell.table]
        unchosen, missed, *at_random = (
            index.estimate(suite, cell.data, cell.method, f"r2_{name}{which}")
            for which in ("", "_at_random")
            for name in ("unchosen", "missed")
        )
        if cell.metric == "r2" and unchosen and missed:
            found.append(R2Check(cell.table, cell.data, cell.value, unchosen, missed, *at_random))
    return tuple(found)


# --- RNM-Screen against zeroing at random -------------------------------------------------------


@dataclass(frozen=True)
class ControlCheck:
    """RNM-Screen beside uniform zeroing on the same rows, trial by trial (erratum E7)."""

    data: str
    metric: str
    screened: Estimate
    control: Estimate
    difference: Estimate

    @property
    def agrees(self) -> bool:
        """Whether the difference is within two of its standard errors."""
        return abs(self.difference.mean) <= STANDARD_ERRORS * self.difference.standard_error


def check_control(rows: Iterable[TrialRow]) -> tuple[ControlCheck, ...]:
    """Compare on both synthetic sets."""
    index = RowIndex(rows)
    pairs = ((data, metric) for data in SYNTHETIC for metric in ("f1", "tpr", "fpr", "density"))
    found = (_control(index, data, metric) for data, metric in pairs)
    return tuple(check for check in found if check)


def _control(index: RowIndex, data: str, metric: str) -> ControlCheck | None:
    ours = index.values("synthetic", data, "rnm-screen", metric)
    control = index.values("synthetic", data, "uniform-zeroing", metric)
    both = sorted(set(ours) & set(control))
    samples = ([ours[t], control[t], ours[t] - control[t]] for t in both)
    found = [mean_of(sample) for sample in zip(*samples, strict=True)]
    screened, zeroed, difference = found or (None, None, None)
    if difference is None or screened is None or zeroed is None:
        return None
    return ControlCheck(data, metric, screened, zeroed, difference)


# --- the starting vector ------------------------------------------------------------------------


@dataclass(frozen=True)
class ZeroStartCheck:
    """DP-FW and RNM-Screen from a zero start, paired by trial (erratum E9)."""

    data: str
    dp_fw: Estimate
    rnm: Estimate
    sparser: int
    trials: int
    f1: tuple[float, float]
    mse: tuple[float, float]

    @property
    def effect(self) -> str:
        """Say what screening changes: F1, density and error without it and with it."""
        return (
            f"F1 {self.f1[0]:.3f} → {self.f1[1]:.3f}, density {self.dp_fw.mean:.3f} → "
            f"{self.rnm.mean:.3f}, MSE {self.mse[0]:.2f} → {self.mse[1]:.2f}"
        )


def check_zero_start(index: RowIndex) -> tuple[ZeroStartCheck, ...]:
    """Compare on every set that was run, in the paper's order."""
    found = (_zero_start(index, data) for data in published_data())
    return tuple(one for one in found if one)


def _zero_start(index: RowIndex, data: str) -> ZeroStartCheck | None:
    dense, screened = (index.values(ZERO_START, data, name, "density") for name in FROM_ZERO)
    both = sorted(set(dense) & set(screened))
    without, with_ = mean_of(dense[t] for t in both), mean_of(screened[t] for t in both)
    if without is None or with_ is None:
        return None
    f1, mse = (
        [one.mean for name in FROM_ZERO if (one := index.estimate(ZERO_START, data, name, metric))]
        for metric in ("f1", "mse")
    )
    sparser = sum(screened[t] < dense[t] for t in both)
    pairs = (f1[0], f1[1]), (mse[0], mse[1])
    return ZeroStartCheck(data, without, with_, sparser, len(both), *pairs)


# --- Theorem 2 ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Theorem2Check:
    """Simulated nonzeros beside the corrected and the printed expression."""

    n_features: int
    n_iter: int
    simulated: Estimate
    corrected: float
    published: float
    corrected_limit: float
    published_limit: float

    @property
    def relative_error(self) -> float:
        """How far the simulation is from the corrected expression."""
        return self.simulated.mean / self.corrected - 1

    @property
    def relative_error_published(self) -> float:
        """How far the simulation is from the printed expression."""
        return self.simulated.mean / self.published - 1

    @property
    def settled(self) -> bool:
        """Whether T is large enough for the limit to be what it should show."""
        return self.corrected > 0.999 * self.corrected_limit


def check_theorem2(rows: Iterable[TrialRow]) -> tuple[Theorem2Check, ...]:
    """Compare every setting that was simulated."""
    index = RowIndex(rows)
    return tuple(_theorem2(index, data) for data in index.data_sets("theorem2"))


def _theorem2(index: RowIndex, data: str) -> Theorem2Check:
    row = index.rows("theorem2", data, PROCESS)[0]
    simulated = index.estimate("theorem2", data, PROCESS, "nonzeros")
    assert simulated is not None, "a row of the process has its nonzeros"
    names = ("corrected", "published", "corrected_limit", "published_limit")
    expected = {name: row.metrics[name] for name in names}
    return Theorem2Check(row.settings["n_features"], row.settings["n_iter"], simulated, **expected)
