"""Fits of files that may be larger than memory: the models of fits in memory."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pandas as pd
import pytest
from table_oracle import features_of, number_field, target_of

from dpscreen import PrivateLasso, scan
from dpscreen.tables import reading
from dpscreen.tables.reading import read_rows
from dpscreen.tables.schema import TableSchema

pytestmark = pytest.mark.filterwarnings("ignore::dpscreen.SeededNoiseWarning")

DESCRIPTOR = {
    "fields": [
        {"name": "person", "type": "string"},
        number_field("age", 0, 120),
        number_field("dose", 1, 1000),
        {"name": "arm", "type": "string", "constraints": {"enum": ["a", "b", "c"]}},
        number_field("score", -50, 150),
    ],
    "dpscreen": {"target": "score", "unit": "person", "rows_per_unit": 2}
    | {"transform": {"dose": "log"}},
}


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    n = 3000
    table = pd.DataFrame(
        {
            "person": [f"p{k}" for k in rng.integers(0, 1300, size=n)],
            "age": rng.normal(50, 15, size=n).round(1),
            "dose": rng.lognormal(3, 1, size=n),
            "arm": rng.choice(["a", "b", "c", "other"], size=n),
        }
    )
    arm = table["arm"].map({"a": 0.0, "b": 5.0, "c": -5.0, "other": 0.0})
    table["score"] = table["age"] / 2 + 3 * np.log(table["dose"]) + arm + rng.normal(size=n)
    return table


@pytest.fixture(params=["csv", "csv.gz", "parquet"])
def path(request, frame, tmp_path):
    place = tmp_path / f"rows.{request.param}"
    if request.param == "parquet":
        frame.to_parquet(place, row_group_size=700)
    elif request.param == "csv.gz":
        with gzip.open(place, "wt", encoding="utf-8") as out:
            frame.to_csv(out, index=False)
    else:
        frame.to_csv(place, index=False)
    return place


def model(schema, **more):
    return PrivateLasso(
        epsilon=3,
        delta=1e-6,
        feature_bounds=schema.feature_bounds,
        target_bounds=schema.target_bounds,
        rows_per_unit=schema.rows_per_unit,
        random_state=1,
        **more,
    )


def test_a_scanned_file_gives_the_model_of_the_file_in_memory(path, monkeypatch):
    monkeypatch.setattr(reading, "available_memory", lambda: 0)
    schema = TableSchema.from_dict(DESCRIPTOR)
    rows = read_rows(path, schema)
    here = model(schema).fit(features_of(rows), target_of(rows))
    there = model(schema).fit(scan(path, DESCRIPTOR), check=False)
    np.testing.assert_array_equal(there.coef_, here.coef_)
    assert there.intercept_ == here.intercept_
    assert there.feature_names_in_.tolist() == list(schema.feature_names)
    assert there.n_rows_ == here.n_rows_ == pytest.approx(len(rows), abs=300)
    assert len(rows) < 3000  # surplus rows of a person are left out
    assert here.coef_.any()


def test_a_bar_shows_the_time_left_on_stderr(path, capfd):
    schema = TableSchema.from_dict(DESCRIPTOR)
    model(schema, n_iter=5).fit(scan(path, schema, progress=True), check=False)
    shown = capfd.readouterr()
    assert shown.out == ""
    assert "passes over the rows" in shown.err


def test_a_file_is_read_once(frame, tmp_path):
    (tmp_path / "schema.json").write_text(json.dumps(DESCRIPTOR))
    frame.to_csv(tmp_path / "rows.csv", index=False)
    rows = scan(tmp_path / "rows.csv", str(tmp_path / "schema.json"))
    (tmp_path / "rows.csv").unlink()
    schema = TableSchema.from_dict(DESCRIPTOR)
    fitted = model(schema).fit(rows, check=False)
    assert fitted.feature_names_in_.tolist() == list(schema.feature_names)
