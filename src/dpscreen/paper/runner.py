"""What to run: the trials that the items need, less those whose rows are already there."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import NamedTuple

from dpscreen._core.arrays import threads
from dpscreen.models.base import one_blas_thread
from dpscreen.paper.data import available, dataset, how_to_get
from dpscreen.paper.experiments import Experiment, fingerprint_of
from dpscreen.paper.results import (
    ResultStore,
    RowKey,
    Skipped,
    StudyError,
    StudyRun,
    TrialRow,
    read_rows,
)
from dpscreen.paper.suites import Item, all_experiments, find_items
from dpscreen.tables.declaration import DataError


@dataclass(frozen=True)
class Job:
    """One trial of one experiment: these methods on the same rows."""

    experiment: Experiment
    trial: int
    methods: tuple[str, ...]

    @property
    def label(self) -> str:
        """What a progress display shows."""
        return f"{self.experiment.suite}: {self.experiment.data}, trial {self.trial + 1}"

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
        for name in experiment.method_names:
            if any(item.needs(experiment, name) for item in items):
                for trial in experiment.trials(name, trials):
                    methods[trial].append(name)
        jobs += [Job(experiment, trial, tuple(names)) for trial, names in methods.items()]
    return jobs


class Progress(NamedTuple):
    """Trials done and planned, the one that ended last, and the time left, once one has ended."""

    done: int
    total: int
    label: str
    seconds_left: float | None


def run(
    items: Iterable[str] = (),
    *,
    store: ResultStore,
    trials: int = 20,
    jobs: int | None = None,
    on_progress: Callable[[Progress], None] = lambda _now: None,
    experiments: Sequence[Experiment] | None = None,
) -> StudyRun:
    """Compute the rows of these items (none: of all) that the store lacks; return all of them.

    Rows are in the store as soon as they are computed, so an interrupted run can be repeated and
    goes on where it was.
    """
    chosen, loaded, here = find_items(items), store.open(), available()
    wanted, skipped = [], {}
    for job in jobs_for(chosen, trials, experiments):
        name = job.experiment.real_data
        if name is None or name in here:
            wanted.append(job)
        elif name not in skipped:
            skipped[name] = Skipped(name, how_to_get(dataset(name)))
    have, problems = _current_rows(loaded, wanted)
    left = ((job, [name for name, key in job.keys.items() if key not in have]) for job in wanted)
    todo = [replace(job, methods=tuple(names)) for job, names in left if names]
    if todo:
        on_progress(Progress(0, len(todo), todo[0].label, None))
    started, whole, past = (
        time.perf_counter(),
        sum(job.experiment.rough_seconds for job in todo),
        0.0,
    )
    # Closed here and now, also when a row cannot be written: no worker outlives the run.
    with closing(compute(todo, jobs or threads())) as jobs_done:
        for done, (job, outcome) in enumerate(jobs_done, start=1):
            if isinstance(outcome, Skipped):
                skipped[outcome.data] = outcome
            else:
                for row in outcome:
                    store.append(row)
                    have[row.key] = row
            past += job.experiment.rough_seconds
            # Time left goes by the rough sizes of jobs.
            rest = max(0.0, whole - past) if done < len(todo) else 0.0
            seconds_left = (time.perf_counter() - started) / past * rest
            on_progress(Progress(done, len(todo), job.label, seconds_left))
    return StudyRun(_in_order(wanted, have), problems, tuple(skipped.values()))


def stored_rows(
    store: ResultStore,
    items: Iterable[str] = (),
    *,
    trials: int = 20,
    experiments: Sequence[Experiment] | None = None,
) -> StudyRun:
    """Return what the store has for these items without computing or writing anything."""
    wanted = jobs_for(find_items(items), trials, experiments)
    have, problems = _current_rows(read_rows(store.path), wanted)
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
    unused = "made with other settings or versions; they stay in the file but are not used."
    return have, (*loaded.problems, f"{foreign} row(s) were {unused}")


def _in_order(wanted: Iterable[Job], have: dict[RowKey, TrialRow]) -> tuple[TrialRow, ...]:
    return tuple(have[key] for job in wanted for key in job.keys.values() if key in have)


# --- worker processes ---------------------------------------------------------------------------

Outcome = list[TrialRow] | Skipped


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
                lost = "a worker process ended without a word, perhaps for want of memory; the rows"
                raise StudyError(f"{lost} computed so far are kept, run again to go on") from error
            except Exception as error:
                raise StudyError(f"{job.label} failed: {error}") from error
            yield job, outcome


def _run_job(job: Job) -> Outcome:
    try:
        with one_blas_thread():  # so that sums have one order only
            return list(job.experiment.run(job.trial, job.methods))
    except DataError as error:
        return Skipped(job.experiment.data, str(error))


@contextmanager
def _worker_pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    context = get_context("spawn")
    lifeline, held = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(
        workers, mp_context=context, initializer=_hang_on, initargs=(lifeline,)
    )
    try:
        yield pool
    except BaseException:
        held.close()  # the trials under way are lost, but nobody waits for them
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        held.close()
        lifeline.close()


def _hang_on(lifeline: Connection) -> None:
    """Run in each worker: ignore Ctrl-C, which is the parent's affair, and end when it is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, args=(lifeline,), daemon=True).start()


def _end_with_parent(lifeline: Connection) -> None:  # pragma: no cover - ends without a report
    try:
        lifeline.recv_bytes()
    except (EOFError, OSError):
        os._exit(1)
