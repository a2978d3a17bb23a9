"""No release depends on the order in which rows come (Lemmas 75 and 76)."""

from __future__ import annotations

from collections import Counter
from functools import partial

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_oracle import features_of, number_field, target_of

from dpscreen import DPFrankWolfe, PrivateLasso, PrivateLogisticLasso, PrivateLogit, PrivateOLS
from dpscreen.models.file import encoded
from dpscreen.privacy.noise import SeededNoise
from dpscreen.tables.schema import TableSchema

pytestmark = pytest.mark.filterwarnings("ignore::dpscreen.SeededNoiseWarning")

N = 4000


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.normal(size=(N, 4)), columns=list("abcd"))
    X["y"] = X["a"] - X["b"] / 2 + rng.normal(size=N)
    X["sick"] = X["y"] > 0
    return X


BOUNDS = {"feature_bounds": (-4, 4), "epsilon": 2, "delta": 1e-6, "random_state": 5}
NUMBERS, OUTCOMES = {"target_bounds": (-6, 6)}, {"classes": [False, True]}
MODELS = {
    "lasso": (partial(PrivateLasso, **BOUNDS, **NUMBERS), "y"),
    "ols": (partial(PrivateOLS, **BOUNDS, **NUMBERS), "y"),
    "logistic": (partial(PrivateLogisticLasso, **BOUNDS, **OUTCOMES), "sick"),
    "logit": (partial(PrivateLogit, **BOUNDS, **OUTCOMES), "sick"),
    "frank-wolfe": (
        partial(DPFrankWolfe, **BOUNDS, **NUMBERS, radius=2, n_iter=10, calibration="proven"),
        "y",
    ),
}


def released(model, rows, target):
    """Return everything that a fit of a relation of DuckDB releases, as its file holds it."""
    source = duckdb.from_df(rows).project(f"a, b, c, d, {target}")
    return encoded(model.fit(source, target).released())


@pytest.mark.parametrize("name", MODELS)
def test_shuffled_scans_release_the_same(name, frame):
    model, target = MODELS[name]
    in_order = released(model(), frame, target)
    shuffled = frame.sample(frac=1, random_state=8)
    assert released(model(), shuffled, target) == in_order
    assert released(model(), shuffled.iloc[N // 2 :], target) != in_order


def test_a_split_is_the_same_once_coins_go_with_their_rows(frame, monkeypatch):
    model, target = MODELS["lasso"]
    in_order = released(model(inference="split"), frame, target)
    places = np.random.default_rng(8).permutation(N)
    plain = SeededNoise.coins
    assert released(model(inference="split"), frame.iloc[places], target) != in_order
    monkeypatch.setattr(SeededNoise, "coins", lambda self, n: plain(self, n)[places])
    assert released(model(inference="split"), frame.iloc[places], target) == in_order


SCHEMA = TableSchema.from_dict(
    {
        "fields": [
            {"name": "who", "type": "string"},
            number_field("x", 0, 9),
            number_field("y", 0, 9),
        ],
        "dpscreen": {"target": "y", "unit": "who", "rows_per_unit": 2},
    }
)
ROWS = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c", ""]), st.integers(0, 9), st.integers(0, 9)),
    min_size=1,
    max_size=30,
)


SOURCES = {
    "duckdb": duckdb.from_df,
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "arrow": pa.Table.from_pandas,
    "stream": lambda frame: pa.Table.from_pandas(frame).to_reader(max_chunksize=3),
}


def kept(rows, source):
    """Return the rows that count of a source in this order, as a multiset."""
    frame = pd.DataFrame(rows, columns=["who", "x", "y"]).astype({"x": float, "y": float})
    found = SCHEMA.encode(SOURCES[source](frame.astype({"who": str})))
    return Counter(zip(features_of(found)[:, 0].tolist(), target_of(found).tolist(), strict=True))


@pytest.mark.parametrize("source", SOURCES)
@given(ROWS, st.randoms(use_true_random=False))
@settings(max_examples=15, deadline=None)
def test_which_rows_of_a_unit_count_depends_on_its_rows_alone(source, rows, random):
    shuffled = random.sample(rows, len(rows))
    whole = kept(rows, "duckdb")
    assert kept(shuffled, source) == whole
    each = {
        who: kept([row for row in rows if row[0] == who] or [("", 0, 0)], source) for who in "abc"
    }
    assert sum(each.values(), Counter()) == whole
    for who, own in each.items():
        count = sum(row[0] == who for row in rows)
        assert own.total() == min(2, count)
        assert not own - Counter((float(x), float(y)) for one, x, y in rows if one == who)
