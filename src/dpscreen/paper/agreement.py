"""Rows beside the paper: what it printed, what its method gives here, what the proven ones give.

A cell matches when our mean lies within two of its standard errors or within 0.05 of the printed
value (errors in Table 5, which are on another scale: within 10 %). Cells that match only because of
their standard error are counted separately. A cell that differs is always explained, be it only by
how far off it is.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Literal, NamedTuple

from dpscreen.paper.experiments import PROCESS, UniformProcess
from dpscreen.paper.methods import METHODS, proven_names
from dpscreen.paper.metrics import SignTest
from dpscreen.paper.published import PublishedCell, known_inconsistencies, label, published_cells
from dpscreen.paper.results import TrialRow
from dpscreen.paper.suites import BLOCKS, ENDS, LONG, theorem2_processes

Verdict = Literal["matches", "differs", "not run"]
Place = tuple[str, str, str, str]
"""Suite, data set, method and metric."""

SUITE_OF_TABLE = {1: "synthetic", 2: "real", 3: "real", 4: "ablation", 5: "ablation"}
METRIC_IN_ROWS = {"r2": "r2_unchosen"}
"""R² as it fits the printed values, which is not as the text defines it: see `check_r2`."""

STANDARD_ERRORS = 2.0
TOLERANCE = 0.05
RELATIVE_TOLERANCE = 0.10


# --- means and comparisons over trials ----------------------------------------------------------


class Estimate(NamedTuple):
    """A mean over trials and its standard error, 0 for a single trial."""

    mean: float
    standard_error: float
    trials: int

    @property
    def is_zero(self) -> bool:
        """Whether the mean is within two standard errors of zero."""
        return abs(self.mean) <= STANDARD_ERRORS * self.standard_error

    @property
    def signed(self) -> str:
        """The mean with its sign, and the standard error."""
        return f"{self.mean:+.3f} ± {self.standard_error:.3f}"

    @property
    def is_positive(self) -> bool:
        """Whether the mean is more than two standard errors above zero."""
        return self.mean > STANDARD_ERRORS * self.standard_error


def mean_of(values: Iterable[float]) -> Estimate | None:
    """Return mean and standard error; None without values."""
    sample = list(values)
    if not sample:
        return None
    error = stdev(sample) / math.sqrt(len(sample)) if len(sample) > 1 else 0.0
    return Estimate(fmean(sample), error, len(sample))


class NotRunError(Exception):
    """The rows that a comparison needs are missing."""


class RowIndex:
    """Rows by suite, data and method, in the order of their trials."""

    def __init__(self, rows: Iterable[TrialRow]) -> None:
        self._rows: dict[tuple[str, str, str], list[TrialRow]] = defaultdict(list)
        for row in sorted(rows, key=lambda row: row.trial):
            self._rows[row.suite, row.data, row.method].append(row)

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

    def mean(self, suite: str, data: str, method: str, metric: str) -> float:
        """Return the mean of one metric; NotRunError if no trial has it."""
        found = self.estimate(suite, data, method, metric)
        if found is None:
            raise NotRunError(f"{METHODS[method].label} on {label(data)}")
        return found.mean

    def paired(self, one: Place, other: Place) -> list[tuple[float, float]]:
        """Return two metrics in the trials that have both."""
        first, second = self.values(*one), self.values(*other)
        return [(first[trial], second[trial]) for trial in first if trial in second]

    def difference(self, one: Place, other: Place) -> Estimate | None:
        """Return the mean difference over the trials that have both."""
        return mean_of(first - second for first, second in self.paired(one, other))

    def sign_test(
        self, suite: str, data: str, methods: tuple[str, str], metric: str
    ) -> SignTest | None:
        """Test whether the first method is better: in F1 if it has more, else if it has less."""
        one, other = ((suite, data, method, metric) for method in methods)
        pairs = self.paired(one, other)
        return compare(pairs, metric) if pairs else None


def compare(pairs: Iterable[tuple[float, float]], metric: str) -> SignTest:
    """Return the sign test of paired trials; more is better for F1, less for density and MSE."""
    more = [one > other for one, other in pairs if one != other]
    wins, losses = sum(more), len(more) - sum(more)
    return SignTest(wins, losses) if metric == "f1" else SignTest(losses, wins)


# --- cells ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CellCheck:
    """One printed number beside ours.

    A cell that differs has a `reason`, which others may share, and a `detail` of its own. `sign` is
    the test over paired trials where the paper prints bold, or could have.
    """

    cell: PublishedCell
    ours: Estimate | None
    proven: Mapping[str, Estimate]
    verdict: Verdict
    reason: str
    detail: str
    sign: SignTest | None

    @property
    def by_spread(self) -> bool:
        """Whether it matches, but only because its standard error is wide."""
        if self.ours is None or self.verdict != "matches":
            return False
        return abs(self.ours.mean - self.cell.value) > fixed_tolerance(self.cell) + 1e-9


def fixed_tolerance(cell: PublishedCell) -> float:
    """How far our mean may be from the printed value, whatever its standard error."""
    on_another_scale = cell.table == 5 and cell.metric == "mse"
    return RELATIVE_TOLERANCE * abs(cell.value) if on_another_scale else TOLERANCE


def _agrees(cell: PublishedCell, mean: float, standard_error: float) -> bool:
    # Printed numbers are rounded to three decimals; sums of floats must not decide a tie.
    allowed = max(STANDARD_ERRORS * standard_error, fixed_tolerance(cell))
    return abs(mean - cell.value) - 1e-9 <= allowed


def is_counted(cell: PublishedCell) -> bool:
    """Whether the cell is one of the hundred of the narrower count, nine of ten of which match.

    F1, density and R² of RNM-Screen, its MSE, and F1 and MSE of Oracle-K. Tables 3 and 5 repeat
    the F1 of Tables 2 and 4, which is counted once.
    """
    if cell.method == "oracle-k-fw":
        return True
    if cell.method != "rnm-screen":
        return False
    return cell.metric == "mse" if cell.table in (3, 5) else cell.metric not in ("tpr", "fpr")


def check_cells(index: RowIndex, table: int | None = None) -> tuple[CellCheck, ...]:
    """Compare every printed cell, or those of one table, in the paper's reading order."""
    return tuple(_check(cell, index) for cell in published_cells(table))


CHANCE = "Sampling error: five times as many trials come near enough to the printed mean of twenty."
UNEXPLAINED = "No reason is known."


def _check(cell: PublishedCell, index: RowIndex) -> CellCheck:
    suite, metric = SUITE_OF_TABLE[cell.table], METRIC_IN_ROWS.get(cell.metric, cell.metric)
    values = sorted(index.values(suite, cell.data, cell.method, metric).values())
    proven = {name: index.estimate(suite, cell.data, name, metric) for name in proven_names()}
    ours, reason, detail = mean_of(values), "", ""
    verdict: Verdict = "not run"
    if ours is not None:
        same = _agrees(cell, ours.mean, ours.standard_error)
        verdict = "matches" if same else "differs"
    if verdict == "differs":
        more = index.estimate(LONG.get(suite, ""), cell.data, cell.method, metric)
        reason = known_inconsistencies().get(cell.key, "")
        if not reason and more:
            # The printed mean is one of a block of trials: its variance is as many times as large.
            error = more.standard_error * math.sqrt(1 + BLOCKS)
            reason = CHANCE if _agrees(cell, more.mean, error) else ""
        reason, detail = reason or UNEXPLAINED, _detail(cell, values, more, index)
    # What bold type is measured against: F1 and density against DP-FW, then one of two rivals.
    rival = {"rnm-screen": "oracle-k-fw", "oracle-k-fw": "rnm-screen"}.get(cell.method)
    if cell.table not in (3, 5):
        rival = "dp-fw" if cell.table != 1 and cell.metric in ("f1", "density") else None
    return CellCheck(
        cell=cell,
        ours=ours,
        proven={name: value for name, value in proven.items() if value is not None},
        verdict=verdict,
        reason=reason,
        detail=detail,
        sign=index.sign_test(suite, cell.data, (cell.method, rival), cell.metric)
        if rival
        else None,
    )


def _detail(
    cell: PublishedCell, values: list[float], more: Estimate | None, index: RowIndex
) -> str:
    """Say how far off a cell is; `more` is the mean of the additional trials."""
    if len(values) == 1:
        text = f"No noise: {values[0]:.3f} here, {cell.value:.3f} printed."
        suite = SUITE_OF_TABLE[cell.table]
        low, high = (index.estimate(suite, cell.data, name, cell.metric) for name in ENDS)
        if cell.method != "np-fw" or low is None or high is None:
            return text
        ends = f"{low.mean:.3f} and {high.mean:.3f}"
        return f"{text} At the smallest and the largest λ that share K it is {ends}."
    median = values[len(values) // 2]
    text = f"Single trials here run from {values[0]:.3g} to {values[-1]:.3g} (median {median:.3g})"
    if more is None:
        return f"{text}."
    mean = f"{more.mean:.3f} ± {more.standard_error:.3f}"
    return f"{text}; {more.trials} further ones average {mean}."


class CellTally(NamedTuple):
    """How many cells were run, match, and match only because their standard error is wide."""

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
    wanted = [check for check in checks if is_counted(check.cell) or not counted]
    run = [check for check in wanted if check.verdict != "not run"]
    matching = sum(check.verdict == "matches" for check in run)
    spread = sum(check.by_spread for check in run)
    return CellTally(len(run), matching, spread, len(wanted) - len(run))


# --- two definitions of R², and Theorem 2 ---------------------------------------------------------


class R2Check(NamedTuple):
    """A printed R² beside both definitions: to all unchosen features, or to the missed ones.

    With both go the same of random subsets, each of as many features.
    """

    table: int
    data: str
    printed: float
    unchosen: Estimate
    missed: Estimate
    unchosen_at_random: Estimate | None
    missed_at_random: Estimate | None

    @property
    def fits(self) -> Literal["unchosen", "missed"]:
        """The definition whose value is nearer to the printed one."""
        nearer = abs(self.unchosen.mean - self.printed) <= abs(self.missed.mean - self.printed)
        return "unchosen" if nearer else "missed"


def check_r2(index: RowIndex) -> tuple[R2Check, ...]:
    """Compare the R² of Tables 2 and 4 under both definitions."""
    found = []
    for cell in (cell for cell in published_cells() if cell.metric == "r2"):
        place = SUITE_OF_TABLE[cell.table], cell.data, cell.method
        names = ("unchosen", "missed", "unchosen_at_random", "missed_at_random")
        unchosen, missed, *at_random = (index.estimate(*place, f"r2_{name}") for name in names)
        if unchosen and missed:
            found.append(R2Check(cell.table, cell.data, cell.value, unchosen, missed, *at_random))
    return tuple(found)


class Theorem2Check(NamedTuple):
    """Simulated nonzeros beside the corrected and the printed expression, and their limits."""

    process: UniformProcess
    simulated: Estimate
    corrected: float
    published: float
    corrected_limit: float
    published_limit: float

    @property
    def settled(self) -> bool:
        """Whether T is large enough for the limit to be what it should show."""
        return self.corrected > 0.999 * self.corrected_limit

    def off(self, expected: float) -> float:
        """Return how far the simulation is from an expression, as a share of it."""
        return self.simulated.mean / expected - 1


def check_theorem2(index: RowIndex) -> tuple[Theorem2Check, ...]:
    """Compare every setting that was simulated."""
    found = [
        (one, index.estimate(one.suite, one.data, PROCESS, "nonzeros"))
        for one in theorem2_processes()
    ]
    return tuple(Theorem2Check(one, mean, **one.expected()) for one, mean in found if mean)
