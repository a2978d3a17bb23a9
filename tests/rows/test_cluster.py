"""A real cluster: the same coefficients, also when a worker dies; rows never travel."""

from __future__ import annotations

import os
import signal
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from fitted_rows import (
    LASSO,
    SPOILED,
    assert_halves_have_every_row_once,
    assert_not_quoted,
    numbered_rows,
    released,
    some_rows,
)

from dpscreen import LearntLevelsWarning, PrivacyLedger, PrivateLasso
from dpscreen.rows import cluster as cluster_rows
from dpscreen.rows import worker
from dpscreen.rows.cluster import ClusterDesign, ClusterFailed
from dpscreen.rows.worker import _kept

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.filterwarnings("ignore::dpscreen.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning:distributed"),
]


def n_kept():
    """Return what is kept where this runs; a global would travel there with its contents."""
    from dpscreen.rows import worker

    return len(worker._parts) + len(worker._rows)


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as one,
    ):
        yield one


@pytest.mark.parametrize(
    ("setting", "chunks"),
    [({}, (611,)), ({"inference": "split"}, (611,))],
    ids=["stagewise", "split"],
)
def test_a_cluster_gives_the_same_model_to_the_last_bit(client, setting, chunks):
    X, y = some_rows(2000)
    model = PrivateLasso(**LASSO, n_iter=7, **setting)
    expected = released(model.fit(X, y))
    for chunk in chunks:
        rows = da.from_array(X, chunks=(chunk, 4)), da.from_array(y, chunks=chunk)
        np.testing.assert_array_equal(released(model.fit(*rows)), expected)
    kept = client.run(n_kept)
    assert set(kept.values()) == {0}


def test_halves_have_every_row_once(client):
    rows, coins = numbered_rows(
        lambda X, y: cluster_rows.cluster_rows(da.from_array(X, (16, 1)), da.from_array(y, 16))[0]
    )
    assert_halves_have_every_row_once(rows, coins)
    rows.close()


def table_of_wards(n_rows=900):
    rng = np.random.default_rng(3)
    wards = pd.CategoricalDtype(["B", "A", "C"])
    frame = pd.DataFrame(
        {
            "age": rng.uniform(-5, 5, n_rows),
            "ward": pd.Series(rng.choice(["A", "B", "C"], n_rows)).astype(wards),
            "smoker": rng.random(n_rows) < 0.3,
        }
    )
    return frame, frame["age"] + 4 * (frame["ward"] == "A") - 3.0 * frame["smoker"]


def test_categories_and_truths_are_encoded_where_they_are(client):
    frame, y = table_of_wards()
    model = PrivateLasso(**LASSO, n_iter=5, categories={"ward": ["B", "A", "C"]})
    expected = released(model.fit(frame, y))
    texts = frame.astype({"ward": "string"})
    for one in (frame, texts, texts.astype({"ward": "category"})):
        rows = dd.from_pandas(one, npartitions=3), dd.from_pandas(y, npartitions=3)
        np.testing.assert_array_equal(released(model.fit(*rows)), expected)
        assert model.feature_names_out_.tolist() == ["age", "ward=A", "ward=C", "smoker"]
        assert model.feature_names_in_.tolist() == list(frame)
        assert model.n_features_in_ == 3
        np.testing.assert_array_equal(model.predict(rows[0]), model.predict(frame))


def test_known_categories_declare_their_levels_and_unknown_ones_do_not(client):
    frame, y = table_of_wards()
    rows, target = (dd.from_pandas(one, npartitions=2) for one in (frame, y))
    model = PrivateLasso(**LASSO, n_iter=5)
    with pytest.warns(LearntLevelsWarning, match="'ward'"):
        model.fit(rows, target)
    assert model.feature_names_out_.tolist() == ["age", "ward=A", "ward=C", "smoker"]
    unknown = rows.assign(ward=rows["ward"].astype(str).astype("category"))
    for bad in (unknown, rows.astype({"ward": str})):
        with pytest.raises(ValueError, match="column ward, must hold numbers"):
            model.fit(bad, target)


def test_a_partition_that_cannot_be_encoded_is_refused_without_a_cell(client):
    frame, y = table_of_wards(40)
    secret = "Zebedee-8675309"

    def spoil(part, partition_info=None):
        return part.assign(age=secret) if partition_info["number"] else part

    rows = dd.from_pandas(frame, npartitions=2).map_partitions(spoil, meta=frame.iloc[:0])
    model = PrivateLasso(**LASSO, categories={"ward": ["B", "A", "C"]})
    with pytest.raises(ValueError, match="does not have the 4 columns") as caught:
        model.fit(rows, dd.from_pandas(y, npartitions=2))
    assert secret not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_a_worker_lost_in_the_middle_costs_time_only(client, monkeypatch):
    X, y = some_rows()
    model = PrivateLasso(**LASSO, n_iter=12)
    expected = released(model.fit(X, y))
    asked = 0
    total = ClusterDesign.total

    def losing(self, question):
        nonlocal asked
        asked += 1
        if asked == 6:
            os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
        return total(self, question)

    monkeypatch.setattr(ClusterDesign, "total", losing)
    rows = da.from_array(X, chunks=(200, 6)), da.from_array(y, chunks=200)
    np.testing.assert_array_equal(released(model.fit(*rows)), expected)
    assert asked > 6


@pytest.mark.parametrize(("spoil", "words"), SPOILED)
def test_a_bad_partition_is_refused_and_not_quoted(client, spoil, words, capfd):
    X, y = some_rows(400)
    bad = da.from_delayed(dask.delayed(spoil)(X[200:]), shape=(200, 6), dtype=float)
    rows = da.concatenate([da.from_array(X[:200]), bad])
    with pytest.raises(ValueError, match=words) as caught:
        PrivateLasso(**LASSO).fit(rows, da.from_array(y, chunks=200))
    time.sleep(0.2)
    assert_not_quoted(X, "".join(capfd.readouterr()) + repr(caught.value))


# --- what happens rarely, without a cluster -------------------------------------------------------


def test_a_worker_without_memory_says_so_and_the_first_failure_is_the_answer():
    def full():
        raise MemoryError

    failed = worker._safely(full)
    assert failed.reason == "a worker ran out of memory."
    answers = {"a": 1, "b": failed, "c": 2}
    assert worker.summed(["a", "c"], answers.get, ()) == 3
    assert worker.summed(["a", "b", "c"], answers.get, ()) is failed


def test_a_connection_that_breaks_is_reported_and_not_quoted():
    def broken(jobs):
        raise OSError("rows 4711")

    with pytest.raises(ClusterFailed, match=r"lost the rows or the connection \(OSError\)\.$"):
        cluster_rows.Crew(SimpleNamespace(gather=broken)).ask(None, [])


def test_a_cluster_without_workers_is_given_up_and_the_booking_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster_rows, "PATIENCE", 1.0)
    X, y = some_rows(100)
    path = tmp_path / "budget.db"
    PrivacyLedger.create(path, dataset="d", epsilon=5, delta=1e-3)
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        rows = da.from_array(X), da.from_array(y)
        total = ClusterDesign.total

        def alone(self, question):
            if client.scheduler_info(n_workers=-1)["workers"]:
                cluster.scale(0)
                client.sync(lambda: cluster)
                while client.scheduler_info(n_workers=-1)["workers"]:
                    time.sleep(0.05)
            return total(self, question)

        monkeypatch.setattr(ClusterDesign, "total", alone)
        with pytest.raises(ClusterFailed, match=r"no worker|lost the rows"):
            PrivateLasso(**LASSO).fit(*rows, ledger=path)
    assert PrivacyLedger(path).spent.rho > 0
    assert n_kept() == 0


def test_threads_of_a_worker_share_a_small_cache(monkeypatch):
    monkeypatch.setattr(worker, "_KEPT", 3)
    cache = OrderedDict()

    def ask(k):
        key = ("run", str(k % 7))
        return _kept(cache, key, lambda: k % 7) == k % 7

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(ask, range(20_000)))
    assert len(cache) <= 3


def test_what_comes_in_after_a_fit_has_ended_is_not_kept():
    """A task that the scheduler gave to two workers may be done when all others have forgotten."""
    X, y = some_rows(10)
    worker.forget("a fit")
    given = [(X, y, None, ("a fit", "its first part"))]
    assert worker.part_length(given, X.shape[1]) == 10
    assert n_kept() == 0
    assert worker.part_length([(X, y, None, ("another", "part"))], X.shape[1]) == 10
    assert n_kept() == 1
    worker.forget("another")
