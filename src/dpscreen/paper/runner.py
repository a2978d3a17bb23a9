"""What to run: the trials that the items need, less those whose rows are already there."""

from __future__ import annotations

import os
import signal
import threading
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from multiprocessing import active_children, get_context, parent_process

from dpscreen._core.arrays import threads
from dpscreen._core.messages import message
from dpscreen.models.base import blas_threads
from dpscreen.paper.data import available, dataset, how_to_get
from dpscreen.paper.experiments import Experiment, fingerprint_of
from dpscreen.paper.results import ResultStore, RowKey, StudyError, StudyRun, TrialRow
from dpscreen.paper.suites import Item, all_experiments, find_items
from dpscreen.tables.declaration import DataError


@dataclass(frozen=True)
class Job:
    """One trial of one experiment: these methods on the same rows."""

    experiment: Experiment
    trial: int
    methods: tuple[str, ...]

    @property
    def keys(self) -> dict[str, RowKey]:
        """The rows it makes, by method."""
        suite, data = self.experiment.suite, self.experiment.data
        return {name: (suite, data, name, self.trial) for name in self.methods}


def jobs_for(
    items: Iterable[Item], trials: int, experiments: Iterable[Experiment] | None = None
) -> list[Job]:
    """List the trials that the items need, grouped so that one job uses one set of rows."""
    items, jobs = list(items), []
    for experiment in all_experiments() if experiments is None else experiments:
        methods = defaultdict(list)
        for name in dict.fromkeys(name for item in items for name in item.needed(experiment)):
            for trial in experiment.trials(name, trials):
                methods[trial].append(name)
        jobs += [Job(experiment, trial, tuple(names)) for trial, names in methods.items()]
    return jobs


def run(
    items: Iterable[str] = (),
    *,
    store: ResultStore,
    trials: int = 20,
    jobs: int | None = None,
    on_progress: Callable[[int, int], None] = lambda _done, _planned: None,
    experiments: Sequence[Experiment] | None = None,
) -> StudyRun:
    """Compute the rows of these items (none: of all) that the store lacks; return all of them.

    Rows are in the store as soon as they are computed, so an interrupted run can be repeated and
    goes on where it was. `on_progress` gets the numbers of trials done and planned.
    """
    chosen, loaded = find_items(items), store.open()
    planned, here = jobs_for(chosen, trials, experiments), available()
    real = dict.fromkeys(job.experiment.real_data for job in planned)
    skipped = {name: how_to_get(dataset(name)) for name in real if name and name not in here}
    wanted = [job for job in planned if job.experiment.real_data not in skipped]
    have, problems = _current_rows(loaded, wanted)
    left = ((job, [name for name, key in job.keys.items() if key not in have]) for job in wanted)
    todo = [replace(job, methods=tuple(names)) for job, names in left if names]
    # Closed here and now, also when a row cannot be written: no worker outlives the run.
    with closing(compute(todo, jobs or threads())) as jobs_done:
        for done, (job, outcome) in enumerate(jobs_done, start=1):
            if isinstance(outcome, str):
                skipped[job.experiment.data] = outcome
            else:
                for row in outcome:
                    store.append(row)
                    have[row.key] = row
            on_progress(done, len(todo))
    return StudyRun(_in_order(wanted, have), problems, skipped)


def stored_rows(
    store: ResultStore,
    items: Iterable[str] = (),
    *,
    trials: int | None = None,
    experiments: Sequence[Experiment] | None = None,
) -> StudyRun:
    """Return what the store has for these items without computing or writing anything.

    `trials` None means as many as there are.
    """
    loaded = store.read()
    most = trials or max((row.trial + 1 for row in loaded.rows), default=1)
    wanted = jobs_for(find_items(items), most, experiments)
    have, problems = _current_rows(loaded, wanted)
    return StudyRun(_in_order(wanted, have), problems)


def _current_rows(
    loaded: StudyRun, wanted: Iterable[Job]
) -> tuple[dict[RowKey, TrialRow], tuple[str, ...]]:
    """Return the rows that were computed with today's settings and versions; count the others."""
    places = {key[:3]: job.experiment for job in wanted for key in job.keys.values()}
    expected = {place: fingerprint_of(one, place[2]) for place, one in places.items()}
    rows = [row for row in loaded.rows if row.key[:3] in expected]
    have = {row.key: row for row in rows if row.fingerprint == expected[row.key[:3]]}
    foreign = sum(row.fingerprint != expected[row.key[:3]] for row in rows)
    if not foreign:
        return have, loaded.problems
    return have, (*loaded.problems, message("study.other-versions", count=foreign))


def _in_order(wanted: Iterable[Job], have: dict[RowKey, TrialRow]) -> tuple[TrialRow, ...]:
    return tuple(have[key] for job in wanted for key in job.keys.values() if key in have)


# --- worker processes ---------------------------------------------------------------------------

Outcome = list[TrialRow] | str
"""Rows, or why the data cannot be used."""


def compute(todo: Sequence[Job], workers: int) -> Generator[tuple[Job, Outcome], None, None]:
    """Run the jobs and yield each as it ends, with its rows.

    Close the generator to stop the workers at once.
    """
    if not todo:
        return
    with _worker_pool(min(workers, len(todo))) as pool:
        pending = {pool.submit(_run_job, job): job for job in todo}
        for future in as_completed(pending):
            job = pending.pop(future)
            try:
                outcome = future.result()
            except BrokenProcessPool as error:
                raise StudyError(message("study.worker-lost")) from error
            except Exception as error:
                place = {"suite": job.experiment.suite, "data": job.experiment.data}
                found = message("study.failed", **place, trial=job.trial + 1, reason=str(error))
                raise StudyError(found) from error
            yield job, outcome


def _run_job(job: Job) -> Outcome:
    try:
        with blas_threads().limit(limits=1):  # so that sums have one order only
            return list(job.experiment.run(job.trial, job.methods))
    except DataError as error:
        return str(error)


@contextmanager
def _worker_pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    pool = ProcessPoolExecutor(
        workers, mp_context=get_context("spawn"), initializer=_end_with_parent
    )
    try:
        yield pool
    except BaseException:
        for worker in active_children():
            worker.kill()  # the trials under way are lost, but nobody waits for them
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _end_with_parent() -> None:
    """Make a worker ignore Ctrl-C, which is the parent's affair, and end when that is gone."""

    def watch() -> None:  # pragma: no cover - ends without a report
        parent = parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=watch, daemon=True).start()
