"""Runs what is missing and writes each row as it arrives; an interrupted run can go on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass

from dpscreen.data import MissingDataset, available, load
from dpscreen.study.experiments import Experiment
from dpscreen.study.planning import Job, current_rows, keys, missing, plan
from dpscreen.study.results import (
    ResultsProblem,
    ResultStore,
    RowKey,
    StudyError,
    TrialRow,
    read_rows,
)
from dpscreen.study.suites import Item, all_experiments, find_items
from dpscreen.study.workers import Skipped, compute, usable_cores

__all__ = ["Progress", "Skipped", "StudyRun", "run", "stored_rows"]


@dataclass(frozen=True)
class Progress:
    """How far a run has come: trials done and planned, and the one that ended last.

    `seconds_left` is None before the first has ended.
    """

    done: int
    total: int
    label: str
    seconds_left: float | None


@dataclass(frozen=True)
class StudyRun:
    """The rows that the items need, and what was not as it should be."""

    items: tuple[Item, ...]
    rows: tuple[TrialRow, ...]
    problems: tuple[ResultsProblem, ...]
    skipped: tuple[Skipped, ...]
    seconds: float


Report = Callable[[Progress], None]


def run(
    items: Iterable[str] = (),
    *,
    store: ResultStore,
    trials: int = 20,
    jobs: int | None = None,
    on_progress: Report | None = None,
    experiments: Sequence[Experiment] | None = None,
) -> StudyRun:
    """Compute the rows of these items (none: of all) that the store lacks; return all of them.

    Rows are in the store as soon as they are computed, so an interrupted run can be repeated and
    goes on where it was.
    """
    began = time.perf_counter()
    _require_at_least_one(trials=trials, jobs=jobs)
    chosen = find_items(items)
    loaded = store.open()
    wanted = plan(chosen, trials, all_experiments() if experiments is None else experiments)
    wanted, skipped = _without_missing_data(wanted)
    have, problems = current_rows(loaded.rows, wanted)
    todo = missing(wanted, have)
    reporter = _Reporter(todo, on_progress)
    # Closed here and now, also when a row cannot be written: no worker outlives the run.
    with closing(compute(todo, jobs or usable_cores())) as jobs_done:
        for finished in jobs_done:
            if isinstance(finished.outcome, Skipped):
                skipped[finished.outcome.data] = finished.outcome
            else:
                _keep(finished.outcome, store, have)
            reporter.finished(finished.job)
    return StudyRun(
        items=chosen,
        rows=tuple(have[key] for key in keys(wanted) if key in have),
        problems=(*loaded.problems, *problems),
        skipped=tuple(skipped.values()),
        seconds=time.perf_counter() - began,
    )


def _keep(rows: Iterable[TrialRow], store: ResultStore, have: dict[RowKey, TrialRow]) -> None:
    for row in rows:
        store.append(row)
        have[row.key] = row


def _require_at_least_one(**counts: int | None) -> None:
    for name, count in counts.items():
        if count is not None and count < 1:
            raise StudyError(f"{name} must be at least 1, not {count}")


def stored_rows(
    store: ResultStore,
    items: Iterable[str] = (),
    *,
    trials: int = 20,
    experiments: Sequence[Experiment] | None = None,
) -> StudyRun:
    """Return what the store has for these items without computing or writing anything."""
    chosen = find_items(items)
    wanted = plan(chosen, trials, all_experiments() if experiments is None else experiments)
    loaded = read_rows(store.path)
    have, problems = current_rows(loaded.rows, wanted)
    rows = tuple(have[key] for key in keys(wanted) if key in have)
    return StudyRun(chosen, rows, (*loaded.problems, *problems), (), 0.0)


def _without_missing_data(wanted: Iterable[Job]) -> tuple[list[Job], dict[str, Skipped]]:
    here = available()
    kept, skipped = [], {}
    for job in wanted:
        name = job.experiment.real_data
        if name is None or name in here:
            kept.append(job)
        elif name not in skipped:
            skipped[name] = Skipped(name, _how_to_get(name))
    return kept, skipped


def _how_to_get(name: str) -> str:
    try:
        load(name)
    except MissingDataset as error:
        return str(error)
    return f"{name} could not be found"


class _Reporter:
    """Turns finished jobs into progress. Time left goes by the jobs' rough sizes."""

    def __init__(self, todo: Sequence[Job], report: Report | None) -> None:
        self._todo = todo
        self._report = report
        self._done = 0
        self._work_done = 0.0
        self._work = sum(job.experiment.rough_seconds for job in todo)
        self._began = time.perf_counter()
        if report is not None and todo:
            report(Progress(0, len(todo), todo[0].label, None))

    def finished(self, job: Job) -> None:
        """Count one more."""
        self._done += 1
        self._work_done += job.experiment.rough_seconds
        if self._report is not None:
            pace = (time.perf_counter() - self._began) / self._work_done
            left = pace * max(0.0, self._work - self._work_done)
            self._report(Progress(self._done, len(self._todo), job.label, left))
