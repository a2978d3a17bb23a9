"""Dask rows without a cluster: the same coefficients, with or without `distributed`."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import traceback

import numpy as np
import pandas as pd
import pytest
from fitted_rows import (
    LASSO,
    SECRET,
    SPOILED,
    assert_not_quoted,
    released,
    some_rows,
)

from dpscreen import PrivacyLedger, PrivateLasso, RNMScreen
from dpscreen.models import peers
from dpscreen.rows import cluster
from dpscreen.rows.cluster import ClusterFailed

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

pytestmark = pytest.mark.filterwarnings("ignore::dpscreen.SeededNoiseWarning")

NAMES = list("abcdef")
MODELS = [
    PrivateLasso(**LASSO),
    PrivateLasso(**LASSO, inference="split"),
    RNMScreen(**LASSO, radius=5, n_iter=6),
    *(getattr(peers, name)(**LASSO) for name in peers.__all__),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: str(model)[:16])
def test_arrays_give_the_same_model_to_the_last_bit(model):
    X, y = some_rows(1100)
    expected = model.fit(X, y)
    statement, weights = str(expected.privacy_), released(expected)
    for chunk in (1100, 311, 90):
        model.fit(da.from_array(X, chunks=(chunk, 4)), da.from_array(y, chunks=chunk))
        np.testing.assert_array_equal(released(model), weights)
        assert str(model.privacy_) == statement


@pytest.mark.parametrize("scheduler", ["threads", "synchronous"])
def test_frames_keep_their_names_and_may_have_an_empty_partition(scheduler):
    X, y = some_rows(1100)
    frame = pd.DataFrame(X, columns=NAMES).assign(y=y)
    table = dd.from_pandas(frame, npartitions=3)
    table = dd.concat([table, table[table["a"] > 1e9]])
    model = PrivateLasso(**LASSO)
    expected = released(model.fit(frame[NAMES], y))
    with dask.config.set(scheduler=scheduler):
        model.fit(table[NAMES], table["y"])
    np.testing.assert_array_equal(released(model), expected)
    assert model.feature_names_in_.tolist() == NAMES


def test_rows_are_computed_once():
    """What tasks draw or read anew must not change between the questions of one fit."""
    X, y = some_rows(200)
    computed = []
    part = dask.delayed(lambda: computed.append(1) or X)()
    rows = da.from_delayed(part, shape=X.shape, dtype=float)
    PrivateLasso(**LASSO).fit(rows, da.from_array(y))
    assert computed == [1]


WITHOUT = """
    import sys, warnings
    warnings.simplefilter("ignore")

    class Missing:
        def find_spec(self, name, path=None, target=None):
            if name.split(".")[0] == "distributed":
                raise ImportError(name)

    sys.meta_path.insert(0, Missing())
    import dask.array as da
    import numpy as np
    from dpscreen import PrivateLasso

    X = np.random.default_rng(0).normal(size=(300, 3))
    model = PrivateLasso(
        epsilon=2, delta=1e-4, feature_bounds=(-4, 4), target_bounds=(-4, 4), random_state=1
    )
    expected = model.fit(X, X[:, 0]).coef_
    rows = da.from_array(X, chunks=(100, 3))
    assert (model.fit(rows, rows[:, 0]).coef_ == expected).all()
    assert "distributed" not in sys.modules
"""


def test_distributed_need_not_be_installed():
    code = textwrap.dedent(WITHOUT)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def quoting(_block):
    raise KeyError(SECRET)


@pytest.mark.parametrize(
    ("spoil", "kind", "words"),
    [
        *((spoil, ValueError, words) for spoil, words in SPOILED),
        (quoting, ClusterFailed, r"could not compute the rows \(KeyError\)"),
    ],
)
def test_a_bad_partition_is_refused_and_not_quoted(spoil, kind, words, capfd, tmp_path):
    X, y = some_rows(400)
    ledger = PrivacyLedger.create(tmp_path / "b.db", dataset="d", epsilon=5, delta=1e-3)
    bad = da.from_delayed(dask.delayed(spoil)(X[200:]), shape=(200, 6), dtype=float)
    rows = da.concatenate([da.from_array(X[:200]), bad])
    model = PrivateLasso(**LASSO)
    with pytest.raises(kind, match=words) as caught:
        model.fit(rows, da.from_array(y, chunks=200), ledger=ledger)
    chain = "".join(traceback.format_exception(caught.value))
    assert_not_quoted(X, "".join(capfd.readouterr()) + chain)
    assert ledger.spent.rho == 0
    assert not hasattr(model, "coef_")


def test_partitions_that_do_not_match_are_refused():
    X, y = some_rows(300)
    with pytest.raises(ValueError, match="partitioned alike"):
        PrivateLasso(**LASSO).fit(da.from_array(X, chunks=(100, 6)), da.from_array(y, chunks=150))
    with pytest.raises(ValueError, match="2D array"):
        cluster.cluster_rows(da.from_array(X, chunks=(100, 6))[:, 0], da.from_array(y, chunks=100))
    with pytest.raises(TypeError, match="both be Dask"):
        PrivateLasso(**LASSO).fit(da.from_array(X), y)
    with pytest.raises(ValueError, match="0 sample"):
        PrivateLasso(**LASSO).fit(da.from_array(X[:0]), da.from_array(y[:0]))
