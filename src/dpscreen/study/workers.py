"""Jobs on several processes.

Workers hold one data set each and one BLAS thread, so that rows do not depend on how many there
are. They hang on a pipe to the parent: when that closes, for whatever reason, they end.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection

from dpscreen.data import DataError
from dpscreen.study.planning import Job
from dpscreen.study.results import StudyError, TrialRow

THREAD_LIMITS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Skipped:
    """A data set that could not be used, and why or how to get it."""

    data: str
    message: str


@dataclass(frozen=True)
class Finished:
    """A job that has ended, with its rows."""

    job: Job
    outcome: list[TrialRow] | Skipped


def compute(todo: Sequence[Job], workers: int) -> Generator[Finished, None, None]:
    """Run the jobs and yield each as it ends. Close the generator to stop the workers at once."""
    if not todo:
        return
    with _worker_pool(min(workers, len(todo))) as pool:
        pending = {pool.submit(_run_job, job): job for job in todo}
        for future in as_completed(pending):
            job = pending.pop(future)
            yield Finished(job, _result(future, job))


def _result(future: Future[list[TrialRow] | Skipped], job: Job) -> list[TrialRow] | Skipped:
    try:
        return future.result()
    except BrokenProcessPool as error:
        raise StudyError(
            "a worker process ended without a word, perhaps for want of memory; the rows computed "
            "so far are kept, run again to go on"
        ) from error
    except Exception as error:
        raise StudyError(f"{job.label} failed: {error}") from error


@contextmanager
def _worker_pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    context = get_context("spawn")
    lifeline, held = context.Pipe(duplex=False)
    with _one_thread_each():
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


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Let processes started meanwhile use one BLAS thread: sums then have one order only."""
    before = {name: os.environ.get(name) for name in THREAD_LIMITS}
    os.environ.update(dict.fromkeys(THREAD_LIMITS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def _hang_on(lifeline: Connection) -> None:
    """Run in each worker: ignore Ctrl-C, which is the parent's affair, and end when it is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, args=(lifeline,), daemon=True).start()


def _end_with_parent(lifeline: Connection) -> None:
    try:
        lifeline.recv_bytes()
    except (EOFError, OSError):
        os._exit(1)


def _run_job(job: Job) -> list[TrialRow] | Skipped:
    try:
        return list(job.experiment.run(job.trial, job.methods))
    except DataError as error:
        return Skipped(job.experiment.data, str(error))


def usable_cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
