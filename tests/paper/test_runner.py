"""Real runs in real processes: the same rows however they are computed, and none lost."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import tiny_study
from tiny_study import content, experiments, experiments_with

from dpscreen.paper import runner
from dpscreen.paper.experiments import UniformProcess
from dpscreen.paper.results import ResultStore, StudyError, read_rows
from dpscreen.paper.runner import jobs_for, run, stored_rows
from dpscreen.paper.suites import all_experiments, find_items
from dpscreen.tables.declaration import DataError

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The tiny study, run once with two workers."""
    store = ResultStore(tmp_path_factory.mktemp("two"))
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MKL_NUM_THREADS", raising=False)
        patch.setenv("OMP_NUM_THREADS", "3")
        done = run(store=store, trials=3, jobs=2, experiments=experiments())
        assert "MKL_NUM_THREADS" not in os.environ, "the environment is left as it was"
        assert os.environ["OMP_NUM_THREADS"] == "3"
    return store, done


@pytest.fixture
def _in_this_process(monkeypatch):
    """Put a thread in the place of worker processes, for what does not depend on them."""
    monkeypatch.setattr("dpscreen.paper.runner._worker_pool", ThreadPoolExecutor)


def test_every_planned_row_is_there_and_in_the_file(finished):
    store, done = finished
    jobs = jobs_for(find_items([]), 3, experiments())
    assert len(done.rows) == sum(len(job.methods) for job in jobs) == 81
    assert content(read_rows(store.path).rows) == content(done.rows)
    assert done.problems == done.skipped == ()


@pytest.mark.usefixtures("_in_this_process")
def test_rows_do_not_depend_on_workers_or_order(finished, tmp_path):
    reversed_order = tuple(reversed(experiments()))
    alone = run(store=ResultStore(tmp_path), trials=3, jobs=1, experiments=reversed_order)
    assert content(alone.rows) == content(finished[1].rows)


def test_nothing_is_computed_twice(finished, monkeypatch):
    store, done = finished
    monkeypatch.setattr(runner, "_worker_pool", None)  # any attempt to compute would fail
    again = run(store=store, trials=3, experiments=experiments())
    assert content(again.rows) == content(done.rows)
    stored = stored_rows(store, trials=3, experiments=experiments())
    assert content(stored.rows) == content(done.rows)


@pytest.mark.usefixtures("_in_this_process")
def test_a_damaged_file_is_set_aside_and_only_its_bad_rows_recomputed(finished, tmp_path):
    store, done = finished
    damaged = store.path.read_bytes()[:-40].replace(b'"trial": ', b'"trial": 7', 1)
    copy = ResultStore(tmp_path)
    copy.path.write_bytes(damaged)
    again = run(store=copy, trials=3, jobs=1, experiments=experiments())
    assert content(again.rows) == content(done.rows)
    (problem,) = again.problems
    assert "2 damaged lines" in problem
    assert (tmp_path / "results.jsonl.corrupt").read_bytes() == damaged
    kept = read_rows(copy.path)
    assert kept.problems == ()
    assert len(kept.rows) == len(done.rows)


def test_rows_of_other_settings_or_versions_are_not_mixed_in(finished, monkeypatch):
    store, _ = finished
    methods = tiny_study.methods("rnm-screen", "adp-screen")
    longer = tiny_study.Regression("synthetic", tiny_study.simulation(n_iter=61), methods)
    found = stored_rows(store, ["figure1"], trials=3, experiments=(longer,))
    assert found.rows == ()
    (problem,) = found.problems
    assert problem.startswith("6 row(s) were made with other settings")
    monkeypatch.setattr("dpscreen.paper.results.REVISION", -1)
    found = stored_rows(store, ["theorem2"], trials=3, experiments=experiments())
    assert found.rows == ()
    assert len(found.problems) == 1


def test_noise_free_methods_run_once_on_fixed_rows():
    names = {"np-fw", "np-fw-safe", "np-fw-published-rule", "preselect-k-fw", "lasso"}
    jobs = jobs_for(find_items(["table3"]), 20)
    repeated = {name for job in jobs if job.trial for name in job.methods}
    first = {name for job in jobs if not job.trial for name in job.methods}
    assert names <= first
    assert not names & repeated


# --- what can go wrong ------------------------------------------------------------------------


@pytest.mark.parametrize("blocked", ["file/below", "."])
def test_an_unwritable_place_is_told_before_anything_is_computed(tmp_path, monkeypatch, blocked):
    (tmp_path / "file").touch()
    (tmp_path / "results.jsonl").mkdir()
    monkeypatch.setattr(runner, "jobs_for", None)
    with pytest.raises(StudyError, match=r"cannot write results to .*results\.jsonl"):
        run(store=ResultStore(tmp_path / blocked))


def test_missing_data_are_skipped_and_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "available", dict)
    monkeypatch.setattr(runner, "how_to_get", lambda entry: f"fetch {entry.name} first")
    some = [e for e in all_experiments() if e.data in ("housing", "abalone")]
    done = run(["table2"], store=ResultStore(tmp_path), trials=1, experiments=some)
    assert done.rows == ()
    assert {skip.data: skip.message for skip in done.skipped} == {
        "abalone": "fetch abalone first",
        "housing": "fetch housing first",
    }


def test_data_that_cannot_be_used_after_all_are_skipped(tmp_path, monkeypatch):
    def damaged(self, trial, methods):
        raise DataError("housing is damaged")

    def at_once(todo, workers):
        return ((job, runner._run_job(job)) for job in todo)

    monkeypatch.setattr(UniformProcess, "run", damaged)
    monkeypatch.setattr(runner, "compute", at_once)
    only = [one for one in experiments() if isinstance(one, UniformProcess)]
    done = run(store=ResultStore(tmp_path), trials=1, experiments=only)
    assert done.rows == ()
    assert [skip.message for skip in done.skipped] == ["housing is damaged"]


@pytest.mark.parametrize(
    ("fit", "message"),
    [
        (tiny_study.fail, "synthetic: uncorrelated, trial 1 failed: the method"),
        (tiny_study.vanish, "ended without a word"),
    ],
)
def test_a_failing_method_and_a_vanished_worker_are_reported(tmp_path, fit, message):
    failing = experiments_with(fit)
    with pytest.raises(StudyError, match=message):
        run(["figure1"], store=ResultStore(tmp_path), trials=1, experiments=failing)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_an_interrupted_run_leaves_no_workers_and_goes_on(tmp_path, monkeypatch, how):
    dawdlers = tmp_path / "dawdlers"
    dawdlers.mkdir()
    monkeypatch.setenv("DAWDLERS", str(dawdlers))
    store = ResultStore(tmp_path / "out")
    study = subprocess.Popen(
        [sys.executable, str(HERE / "tiny_study.py"), str(store.directory)],
        stderr=subprocess.DEVNULL,
    )
    _wait_for(lambda: store.path.exists() and store.path.read_bytes().count(b"\n") >= 2)
    study.send_signal(how)
    assert study.wait(timeout=120) != 0
    workers = [int(trace.name) for trace in dawdlers.iterdir()]
    assert workers
    _wait_for(lambda: not any(_alive(worker) for worker in workers))
    before = read_rows(store.path).rows
    assert 2 <= len(before) < 8

    monkeypatch.setattr("dpscreen.paper.runner._worker_pool", ThreadPoolExecutor)
    tiny_study.run_slowly(store)
    rows = read_rows(store.path).rows
    assert rows[: len(before)] == before
    assert sorted(row.trial for row in rows) == list(range(8))


def _wait_for(condition, seconds=120.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def _alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False
