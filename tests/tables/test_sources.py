"""Sources that export Arrow, and databases: the rows of the same table in memory, read once."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest
from table_oracle import features_of, number_field, target_of

import dpscreen
from dpscreen import PrivateLasso, PrivateOLS, scan
from dpscreen.rows import spool
from dpscreen.tables.arrow import frames_of
from dpscreen.tables.databases import DatabaseTable
from dpscreen.tables.declaration import TableProblem
from dpscreen.tables.reading import spooled_rows
from dpscreen.tables.schema import TableSchema
from tools.command import invoke

pytestmark = pytest.mark.filterwarnings("ignore::dpscreen.SeededNoiseWarning")

DESCRIPTOR = {
    "fields": [
        {"name": "person", "type": "string"},
        number_field("age", 0, 120),
        {"name": "arm", "type": "string", "constraints": {"enum": ["a", "b", "c"]}},
        number_field("score", -50, 150),
    ],
    "dpscreen": {"target": "score", "unit": "person", "rows_per_unit": 2},
}
SCHEMA = TableSchema.from_dict(DESCRIPTOR)
BOUNDS = {"feature_bounds": SCHEMA.feature_bounds, "target_bounds": SCHEMA.target_bounds}
BUDGET = {"epsilon": 3, "delta": 1e-6, "random_state": 1}


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    n = 70_000  # more than one batch
    table = pd.DataFrame(
        {
            "visit": np.arange(n),
            "person": [f"p{k}" for k in rng.integers(0, 30_000, size=n)],
            "age": rng.normal(50, 15, size=n).round(1),
            "arm": rng.choice(["a", "b", "c", "other"], size=n),
        }
    )
    table["score"] = table["age"] / 2 + 5.0 * (table["arm"] == "b") + rng.normal(size=n)
    return table


@pytest.fixture(scope="module")
def database(frame, tmp_path_factory):
    place = tmp_path_factory.mktemp("databases") / "clinic.db"
    with duckdb.connect(str(place)) as connection:
        connection.register("given", frame)
        connection.execute("CREATE TABLE visits AS SELECT * FROM given")
    return f"duckdb:{place}"


class Cursor:
    """What is asked of a cursor of ADBC."""

    def __init__(self, frame):
        self.fetch_record_batch = pa.Table.from_pandas(frame).to_reader


SOURCES = {
    "relation": lambda frame: duckdb.from_df(frame),
    "lazy": lambda frame: pl.from_pandas(frame).lazy(),
    "dataset": lambda frame: pyarrow.dataset.dataset(pa.Table.from_pandas(frame)),
    "scanner": lambda frame: pyarrow.dataset.dataset(pa.Table.from_pandas(frame)).scanner(),
    "reader": lambda frame: pa.Table.from_pandas(frame).to_reader(),
    "cursor": Cursor,
}


@pytest.mark.parametrize("kind", SOURCES)
def test_sources_give_the_rows_and_the_bits_of_a_frame(kind, frame):
    frame = frame.groupby("person").head(2)  # which are left out of more is another question
    want = SCHEMA.encode(frame[[one["name"] for one in DESCRIPTOR["fields"]]])
    rows = SCHEMA.encode(SOURCES[kind](frame))
    np.testing.assert_array_equal(features_of(rows), features_of(want))
    np.testing.assert_array_equal(target_of(rows), target_of(want))
    here = PrivateLasso(**BUDGET, **BOUNDS).fit(want)
    there = PrivateLasso(**BUDGET, **BOUNDS).fit(scan(SOURCES[kind](frame), SCHEMA), check=False)
    np.testing.assert_array_equal(there.coef_, here.coef_)
    assert str(there.privacy_.unit) == str(here.privacy_.unit)


def test_columns_of_a_source_are_fitted_without_a_schema(frame, database, monkeypatch):
    numbers, levels = frame[["age", "arm"]], {"arm": ["a", "b", "c"]}
    given = {"feature_bounds": {"age": (0, 120)}, "target_bounds": (-50, 150)}
    model = partial(PrivateOLS, **BUDGET, **given, categories=levels)
    here = model().fit(numbers, frame["score"])
    source = DatabaseTable(database, query="SELECT age, arm, score FROM visits")
    for memory in (1 << 40, 1 << 20):  # in memory, in a scratch file
        monkeypatch.setattr("dpscreen.models.intake.available_memory", lambda most=memory: most)
        there = model().fit(source, "score")
        np.testing.assert_array_equal(there.coef_, here.coef_)
        np.testing.assert_array_equal(there.bse, here.bse)
    every = DatabaseTable(database, "visits")  # other columns are not read
    with pytest.warns(UserWarning, match="none of the model's levels"):
        np.testing.assert_array_equal(there.predict(every), here.predict(numbers))
    with pytest.raises(ValueError, match="name of the target's column"):
        model().fit(source, frame["score"])
    with pytest.raises(TableProblem, match="lacks column 'arm'"):
        there.predict(DatabaseTable(database, query="SELECT age FROM visits"))


def test_a_scratch_file_has_no_name_and_holds_the_rows(frame, tmp_path, monkeypatch):
    monkeypatch.setattr(spool.tempfile, "tempdir", str(tmp_path))
    want = SCHEMA.encode(duckdb.from_df(frame))
    for most in (0, 1_000_000, 1 << 40):
        kept = spooled_rows(duckdb.from_df(frame), SCHEMA, in_memory=most)
        assert kept.fits_memory == (most == 1 << 40)
        assert not list(tmp_path.iterdir())
        for features in (None, [2, 0]):
            found = np.concatenate(list(kept.chunks(features)))
            X = features_of(want) if features is None else features_of(want)[:, features]
            np.testing.assert_array_equal(found, X)
        np.testing.assert_array_equal(kept.target(), target_of(want))


@pytest.mark.parametrize("kind", [pl.String, pl.Categorical, pl.Enum(["a", "b"])], ids=str)
def test_levels_of_a_stream_are_those_declared(kind):
    """What its first batch has in a dictionary depends on the rows."""
    table = pl.DataFrame({"c": ["a", "b"] * 200, "y": [0.0, 1.0] * 200})
    rows = table.with_columns(pl.col("c").cast(kind)).lazy()
    setting = {"epsilon": 1, "delta": 1e-6, "target_bounds": (0, 1)}
    with pytest.raises(ValueError, match="must hold numbers"):
        PrivateLasso(**setting, feature_bounds={}).fit(rows, "y")
    model = PrivateLasso(**setting, categories={"c": ["b", "a"]}).fit(rows, "y")
    assert list(model.feature_names_out_) == ["c=a"]


def test_refusals_quote_neither_cells_nor_addresses(frame, database):
    odd = frame.assign(age="secret-cell")
    source = duckdb.from_df(odd).project("person, CAST(age AS DOUBLE) AS age, arm, score")
    with pytest.raises(TableProblem) as caught:
        SCHEMA.encode(source)
    assert "secret" not in str(caught.value)
    for given in ({"table": "secret"}, {"query": "SELECT secret"}):
        for address in (database, "postgresql://me:secret@localhost:1/x", "mssql://secret@h/x"):
            with pytest.raises(TableProblem) as caught:
                SCHEMA.encode(DatabaseTable(address, **given))
            shown = str(caught.value) + repr(DatabaseTable(address, **given))
            assert "me:" not in shown
            assert "clinic.db" not in shown
            assert "secret@" not in shown
    with pytest.raises(TableProblem, match="name of a table, or a query"):
        DatabaseTable(database)


def fit_and_predict(address, home, *given, into):
    """Run both commands on a database, and return what was written back."""
    (home / "schema.json").write_text(dpscreen.tables.schema.schema_text(DESCRIPTOR))
    model = home / "model.json"
    budget = ("--epsilon", 3, "--delta", 1e-6, "--schema", home / "schema.json")
    done = invoke("fit", address, *given, *budget, "-o", model, "--no-check")
    assert done.exit_code == 0, done.stderr
    done = invoke("predict", model, address, *given, "--id", "visit", "--into", into)
    assert done.exit_code == 0, done.stderr
    found = pd.concat(frames_of(DatabaseTable(address, into))).sort_values("visit")
    assert list(found.columns) == ["visit", "prediction"]
    return found["prediction"].to_numpy()


def predicted(home, frame):
    model = dpscreen.load(home / "model.json")
    columns = [one["name"] for one in DESCRIPTOR["fields"]]
    return model.predict(frame[columns])


def test_commands_read_a_database_and_write_back_with_ids(database, frame, tmp_path):
    given = ("--table", "visits")
    found = fit_and_predict(database, tmp_path, *given, into="predicted")
    np.testing.assert_allclose(found, predicted(tmp_path, frame), rtol=1e-14)
    again = ("predict", tmp_path / "model.json", database, *given, "--id", "visit")
    done = invoke(*again, "--into", "predicted")
    assert done.exit_code == 1
    assert invoke(*again, "--into", "predicted", "--force").exit_code == 0
    done = invoke(*again, "-o", tmp_path / "out.csv")
    written = pd.read_csv(tmp_path / "out.csv")
    np.testing.assert_allclose(written.sort_values("visit")["prediction"], found, rtol=1e-14)
    assert invoke("fit", database, "--schema", tmp_path / "schema.json").exit_code == 2


def test_any_address_of_sqlalchemy(frame, tmp_path):
    import sqlalchemy as sql

    address, frame = f"sqlite:///{tmp_path / 'clinic.sqlite'}", frame.head(9000)
    engine = sql.create_engine(address)
    frame.to_sql("visits", engine, index=False)
    engine.dispose()
    found = fit_and_predict(address, tmp_path, "--query", "SELECT * FROM visits", into="predicted")
    np.testing.assert_allclose(found, predicted(tmp_path, frame), rtol=1e-14)


@pytest.fixture
def postgres():
    """Start a server of Debian's package, which is reached through a socket in a folder."""
    homes = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))
    if not homes or shutil.which("runuser") is None:
        pytest.skip("PostgreSQL is not installed")
    tools, place = homes[-1].parent, Path(tempfile.mkdtemp())
    shutil.chown(place, "postgres")
    place.chmod(0o755)
    as_user = ("runuser", "-u", "postgres", "--")
    run = partial(subprocess.run, check=True, capture_output=True, cwd=place)
    run([*as_user, tools / "initdb", "-D", place / "data", "-A", "trust", "--no-sync"])
    options = f"-c listen_addresses='' -k {place} -c fsync=off"
    start = ("-D", place / "data", "-o", options, "-w", "-l", place / "log")
    run([*as_user, tools / "pg_ctl", *start, "start"])
    yield f"postgresql:///postgres?host={place}&user=postgres"
    run([*as_user, tools / "pg_ctl", "-D", place / "data", "-m", "immediate", "stop"])
    shutil.rmtree(place)


def test_postgresql(postgres, frame, tmp_path):
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(postgres) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("visits", pa.Table.from_pandas(frame, preserve_index=False))
        connection.commit()
        cursor.execute("SELECT * FROM visits")
        rows = SCHEMA.encode(cursor)  # a cursor of ADBC
    want = SCHEMA.encode(duckdb.from_df(frame))
    assert np.array_equal(np.sort(target_of(rows)), np.sort(target_of(want)))
    found = fit_and_predict(postgres, tmp_path, "--table", "visits", into="predicted")
    np.testing.assert_allclose(found, predicted(tmp_path, frame), rtol=1e-14)
