"""`dpscreen simulate`, and the tables it draws."""

from __future__ import annotations

import json
import tracemalloc
from functools import partial

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpscreen.tables import dummy as dummies
from dpscreen.tables.dummy import csv_parts, simulate_table, write_parquet
from dpscreen.tables.reading import read_rows
from dpscreen.tables.schema import TableSchema, load_schema
from tools.command import failed, here, succeeded

SCHEMA = {
    "fields": [
        {"name": "age", "type": "integer", "constraints": {"minimum": 18, "maximum": 90}},
        {"name": "smoker", "type": "string", "constraints": {"enum": ["yes", 'it\'s; "no"']}},
        {"name": "grade", "type": "integer", "constraints": {"enum": [1, 2, 3]}},
        {
            "name": "income",
            "type": "number",
            "decimalChar": ",",
            "constraints": {"minimum": 1, "maximum": 1e5},
        },
        {"name": "member", "type": "boolean", "trueValues": ["ja"], "falseValues": ["nein"]},
        {"name": "cost", "type": "number", "constraints": {"minimum": 0, "maximum": 500}},
        {"name": "who", "type": "string"},
        {"name": "note", "type": "string"},
    ],
    "missingValues": ["NA"],
    "dialect": {"delimiter": ";", "quoteChar": "'"},
    "dpscreen": {
        "target": "cost",
        "features": ["age", "smoker", "grade", "income", "member"],
        "unit": "who",
        "rows_per_unit": 2,
        "transform": {"income": "log", "cost": "sqrt"},
        "fill": {"smoker": "yes"},
    },
}


dpscreen_simulate = partial(here, "simulate")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    return tmp_path


def same_rows(one, other):
    pairs = zip(one.named_arrays()[:2], other.named_arrays()[:2], strict=True)
    return all(np.array_equal(*pair, equal_nan=True) for pair in pairs)


def test_csv_and_parquet_hold_the_same_rows(folder):
    asked = ("--schema", "schema.json", "--rows", 500, "--seed", 3, "--missing", 0.05)
    for name in ("dummy.csv", "dummy.parquet"):
        done = succeeded(here("simulate", *asked, "-o", name, cwd=folder), stdout="")
        assert "500 rows" in done.stderr
        assert "true effect" in done.stderr
    schema = load_schema(folder / "schema.json")
    text, binary = (read_rows(folder / f"dummy.{form}", schema) for form in ("csv", "parquet"))
    assert same_rows(text, binary)
    table = pq.read_table(folder / "dummy.parquet")
    assert 250 < len(text) < 500 == table.num_rows
    assert 0 < table.column("cost").null_count < 100
    printed = dpscreen_simulate(*asked, cwd=folder)
    assert printed.stdout == (folder / "dummy.csv").read_text()


def test_a_target_of_truths_and_a_column_without_bounds():
    only = [SCHEMA["fields"][0], SCHEMA["fields"][4], {"name": "unused", "type": "number"}]
    block = {"target": "member", "features": ["age"]}
    schema = TableSchema.from_dict({"fields": only, "dpscreen": block})
    table = simulate_table(schema, 400, rng=np.random.default_rng(0))
    assert set(table["member"].to_pylist()) == {True, False}
    old = np.array(table["age"]) > 54
    assert np.mean(np.array(table["member"])[old]) > 0.7
    assert set(table["unused"].to_pylist()) == {"unused"}


def test_there_is_a_signal_to_be_found():
    schema = TableSchema.from_dict(SCHEMA)
    dummy = simulate_table(schema, 3000, rng=np.random.default_rng(1))
    rows = schema.encode(dummy)
    X, y, _ = rows.named_arrays()
    design = np.column_stack([np.ones(len(X)), X])
    _, _, _, _ = found = np.linalg.lstsq(design, y, rcond=None)
    explained = 1 - np.var(y - design @ found[0]) / np.var(y)
    assert 0.3 < explained < 0.95
    assert set(dummies.effects_of(schema)) <= set(schema.feature_names)


@given(st.integers(0, 2**32), st.integers(0, 40), st.floats(0, 1))
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_cell_lies_within_the_schema(tmp_path, seed, n_rows, missing):
    schema = TableSchema.from_dict(SCHEMA)
    dummy = simulate_table(schema, n_rows, rng=np.random.default_rng(seed), missing=missing)
    columns = dummy.to_pydict()
    assert all(cell is None or 18 <= cell <= 90 for cell in columns["age"])
    assert all(cell is None or 0 <= cell <= 500 for cell in columns["cost"])
    assert set(columns["grade"]) <= {1, 2, 3, None}
    assert None not in columns["who"]
    (tmp_path / "dummy.csv").write_bytes(b"".join(csv_parts([dummy], schema)))
    assert same_rows(read_rows(tmp_path / "dummy.csv", schema), schema.encode(dummy))


def test_a_table_is_drawn_and_written_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(dummies, "ROWS_TOGETHER", 7)
    given_ = json.loads(json.dumps(SCHEMA))
    given_["fields"][2] = {"name": "grade", "type": "number", "constraints": {"enum": [1, 2.5]}}
    schema = TableSchema.from_dict(given_)
    drawn = [
        dummies.simulate_parts(schema, 50, rng=np.random.default_rng(4), missing=0.2)
        for _ in range(2)
    ]
    whole = simulate_table(schema, 50, rng=np.random.default_rng(4), missing=0.2)
    (tmp_path / "dummy.csv").write_bytes(b"".join(csv_parts(drawn[0], schema)))
    write_parquet(drawn[1], tmp_path / "dummy.parquet")
    assert pq.read_table(tmp_path / "dummy.parquet").equals(whole)
    want = schema.encode(whole)
    for form in ("csv", "parquet"):
        assert same_rows(read_rows(tmp_path / f"dummy.{form}", schema), want)


def test_memory_does_not_grow_with_the_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(dummies, "ROWS_TOGETHER", 1000)
    schema = TableSchema.from_dict(SCHEMA)
    peaks = []
    for n_rows in (1000, 1000, 20_000):  # the first loads libraries
        tracemalloc.start()
        for _ in csv_parts(
            dummies.simulate_parts(schema, n_rows, rng=np.random.default_rng(1)), schema
        ):
            pass
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < 2 * peaks[1]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "--schema"),
        (("--schema", "schema.json", "--rows", 0), 2, "--rows"),
        (("--schema", "schema.json", "-o", "a.xlsx"), 2, ".csv or .parquet"),
        (("--schema", "schema.json", "--missing", 2), 2, "--missing"),
        (("--schema", "empty.json", "-o", "a.csv"), 1, "the target is not named"),
        (("--schema", "none.json", "-o", "a.csv"), 1, "cannot be read"),
        (("--schema", "schema.json", "-o", "there.csv"), 1, "--force"),
    ],
)
def test_what_is_wrong_is_told_and_leaves_no_file(folder, arguments, code, message):
    (folder / "empty.json").write_text(json.dumps(SCHEMA | {"dpscreen": {}}))
    (folder / "there.csv").write_text("mine")
    before = sorted(folder.iterdir())
    failed(dpscreen_simulate(*arguments, cwd=folder), code, message, stdout="")
    assert sorted(folder.iterdir()) == before
    assert (folder / "there.csv").read_text() == "mine"
