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
from tiny_study import Disturbed, content, experiments

from dpscreen.paper import runner
from dpscreen.paper.results import ResultStore, StudyError
from dpscreen.paper.runner import jobs_for, run, stored_rows
from dpscreen.paper.suites import find_items

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


def test_every_planned_row_is_there_and_in_the_file(finished):
    store, done = finished
    jobs = jobs_for(find_items([]), 3, experiments())
    assert len(done.rows) == sum(len(job.methods) for job in jobs) == 81
    assert content(store.read().rows) == content(done.rows)
    assert (done.problems, done.skipped) == ((), {})


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
def test_of_a_damaged_file_only_the_bad_rows_are_recomputed(finished, tmp_path):
    store, done = finished
    damaged = store.path.read_bytes()[:-40].replace(b'"trial": ', b'"trial": 7', 1)
    copy = ResultStore(tmp_path)
    copy.path.write_bytes(damaged)
    again = run(store=copy, trials=3, jobs=1, experiments=experiments())
    assert content(again.rows) == content(done.rows)
    (problem,) = again.problems
    assert (problem.code, problem.fields["lines"]) == ("study.damaged", "2 lines")
    assert copy.path.read_bytes().startswith(damaged)
    assert content(copy.read().rows) == content(done.rows)


def test_rows_of_other_settings_or_versions_are_not_mixed_in(finished, monkeypatch):
    store, _ = finished
    source = tiny_study.simulation(n_iter=61)
    longer = tiny_study.Regression("synthetic", source, ("rnm-screen", "adp-screen"))
    found = stored_rows(store, ["figure1"], trials=3, experiments=(longer,))
    assert found.rows == ()
    (problem,) = found.problems
    assert (problem.code, problem.fields) == ("study.other-versions", {"count": 6})
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
    with pytest.raises(StudyError) as raised:
        run(store=ResultStore(tmp_path / blocked))
    assert raised.value.args[0].code == "study.not-written"


@pytest.mark.usefixtures("_in_this_process")
def test_data_that_cannot_be_used_after_all_are_skipped(tmp_path):
    lacking = Disturbed(2, 1, before="lack_data")
    done = run(store=ResultStore(tmp_path), trials=1, experiments=(lacking,))
    assert (done.rows, done.skipped) == ((), {lacking.data: "housing is damaged"})


@pytest.mark.parametrize(("before", "code"), [("fail", "failed"), ("vanish", "worker-lost")])
def test_a_failing_method_and_a_vanished_worker_are_reported(tmp_path, before, code):
    failing = (Disturbed(2, 1, before=before),)
    with pytest.raises(StudyError) as raised:
        run(store=ResultStore(tmp_path), trials=1, experiments=failing)
    assert raised.value.args[0].code == f"study.{code}"


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
    before = store.read().rows
    assert 2 <= len(before) < 8

    monkeypatch.setattr("dpscreen.paper.runner._worker_pool", ThreadPoolExecutor)
    tiny_study.run_slowly(store)
    rows = store.read().rows
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
