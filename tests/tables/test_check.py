"""The check before a fit: planted faults stop it before booking, and no release changes by it."""

from __future__ import annotations

import pickle
import warnings
from contextlib import chdir
from dataclasses import replace

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dpscreen import PrivacyLedger, PrivateLasso, load, scan
from dpscreen.models.raw import raw_model_of
from dpscreen.privacy.replay import record, replay
from dpscreen.tables.check import NOT_PRIVATE, FormatFault
from dpscreen.tables.schema import load_schema
from tools.command import here, invoke

SCHEMA = """\
target = "cost"
unit = "person"
rows_per_unit = 2
missing = ["", "NA"]

[columns]
person = {type = "string"}
age = {bounds = [0, 120]}
smokes = {bounds = [0, 1]}
ward = {categories = ["a", "b", "c"]}
visit = {bounds = [2020-01-01, 2024-12-31]}
cost = {bounds = [0, 2000]}
"""


def table(n=400, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "person": [f"p{k // 2}" for k in range(n)],
            "age": rng.integers(18, 90, n),
            "smokes": rng.integers(0, 2, n),
            "ward": rng.choice(["a", "b", "c"], n),
            "visit": pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
            "cost": rng.uniform(100, 1500, n).round(2),
        }
    )


def in_us_format(frame):
    return frame.assign(visit=frame.visit.dt.strftime("%m/%d/%Y"))


def in_words(frame):
    return frame.assign(smokes=frame.smokes.map({0: "no", 1: "yes"}))


def a_quarter_elsewhere(frame):
    return frame.assign(ward=frame.ward.mask(np.arange(len(frame)) % 4 == 0, "d"))


FAULTS = {
    "dates in US format": ("visit", in_us_format),
    "yes and no as a number": ("smokes", in_words),
    "target in another unit": ("cost", lambda one: one.assign(cost=one.cost * 100)),
    "undeclared level": ("ward", a_quarter_elsewhere),
    "units over the limit": ("person", lambda one: one.assign(person=one.person.str[:2])),
}


@pytest.fixture
def place(tmp_path):
    (tmp_path / "schema.toml").write_text(SCHEMA)
    PrivacyLedger.create(tmp_path / "l.ledger", dataset="d", epsilon=9, delta=1e-5)
    return tmp_path


DECLARED = ("--schema", "schema.toml")
BUDGET = (*DECLARED, "--epsilon", 1, "--delta", "1e-6")
FIT = ("fit", "t.csv", *BUDGET)
BOOKED = ("--ledger", "l.ledger", "-o", "model.json")


@pytest.mark.parametrize(("column", "plant"), FAULTS.values(), ids=FAULTS)
def test_a_planted_fault_stops_before_booking_and_names_its_column(place, column, plant):
    planted = plant(table())
    planted.to_csv(place / "t.csv", index=False)
    with duckdb.connect(str(place / "c.db")) as connection:
        connection.register("planted", planted)
        connection.execute("CREATE TABLE visits AS SELECT * FROM planted")
    for rows in (("t.csv",), ("duckdb:c.db", "--table", "visits")):
        with chdir(place):
            checked = invoke("check", *rows, *DECLARED, "--examples")
            stopped = invoke("fit", *rows, *BUDGET, *BOOKED)
        assert checked.exit_code == stopped.exit_code == 1
        assert checked.stdout.startswith("NOT PRIVATE")
        assert f"\n* {column}: " in checked.stdout
        assert f"column {column!r}" in stopped.stderr
        numbers = stopped.stderr.replace("5%", "").replace("2 rows", "")
        assert not any(one.isdigit() for one in numbers)
    ledger = PrivacyLedger(place / "l.ledger")
    model = PrivateLasso(schema=place / "schema.toml", epsilon=1, delta=1e-6)
    relation, schema = duckdb.from_df(planted), place / "schema.toml"
    in_python = [
        *(planted, pl.from_pandas(planted), pl.from_pandas(planted).lazy(), relation),
        pa.Table.from_pandas(planted).to_reader(),
    ]
    for rows in in_python:
        with pytest.raises(FormatFault, match=f"column {column!r}"):
            model.fit(rows, ledger=ledger)
    bounds = {"feature_bounds": (-1, 1), "target_bounds": (0, 2000)}
    for rows in (scan(place / "t.csv", schema), scan(relation, schema)):
        with pytest.raises(FormatFault, match=f"column {column!r}"):
            PrivateLasso(epsilon=1, delta=1e-6, **bounds).fit(rows, ledger=ledger)
    assert ledger.entries() == ()
    assert not (place / "model.json").exists()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nonsense is fitted, as told
        model.fit(planted, ledger=ledger, check=False)
        model.fit(relation, ledger=ledger, check=False)
    assert len(ledger.entries()) == 2


@pytest.mark.parametrize("proceed", ["--force", "--no-check"])
def test_a_person_or_a_pipeline_may_proceed(place, proceed):
    in_us_format(table()).to_csv(place / "t.csv", index=False)
    done = here(*FIT, *BOOKED, proceed, cwd=place)
    assert done.returncode == 0, done.stderr
    assert len(PrivacyLedger(place / "l.ledger").entries()) == 1


def test_another_share_of_unreadable_cells_may_be_allowed(place):
    a_quarter_elsewhere(table()).to_csv(place / "t.csv", index=False)
    schema = load_schema(place / "schema.toml")
    for share, stops in ((0.2, ["ward"]), (0.25, [])):
        report = schema.check(place / "t.csv", most_unreadable=share)
        assert [one.column for one in report.stops] == stops
        option = ("--most-unreadable", f"{share:.0%}")
        with chdir(place):
            checked = invoke("check", "t.csv", *DECLARED, *option)
            fitted = invoke(*FIT, "-o", "model.json", *option)
        source = pl.scan_csv(place / "t.csv", try_parse_dates=True)
        model = PrivateLasso(schema=schema, epsilon=1, delta=1e-6)
        with pytest.raises(FormatFault, match="20%") if stops else warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(source, check=share)
        assert checked.exit_code == fitted.exit_code == len(stops), fitted.stderr
        assert ("more than 20% of its cells" in fitted.stderr) == bool(stops)
    for wrong in ("five", "120%", "5%5", "-1"):
        assert invoke(*FIT, "-o", "model.json", "--most-unreadable", wrong).exit_code == 2


def test_no_release_changes_by_the_check(place):
    """Every input of a mechanism and every release is the same, checked or not."""
    table().to_csv(place / "t.csv", index=False)
    a_quarter_elsewhere(in_us_format(table(seed=1))).to_csv(place / "other.csv", index=False)
    schema = load_schema(place / "schema.toml")
    bounds = {"feature_bounds": schema.feature_bounds, "target_bounds": schema.target_bounds}

    def fitted(name, *, check):
        if check:
            schema.check(place / name)
        model = PrivateLasso(epsilon=1, delta=1e-6, **bounds)
        return model.fit(scan(place / name, schema), check=check and name == "t.csv")

    with pytest.warns(UserWarning, match="not private"), record() as plain:
        fitted("t.csv", check=False)
    for name in ("t.csv", "other.csv"):
        with pytest.warns(UserWarning, match="not private"), replay(plain) as again:
            fitted(name, check=True)
        assert [one.booked for one in again.passages] == [one.booked for one in plain.passages]


def test_counts_are_exact_but_for_bounds_which_are_coarse(place):
    frame = table().astype({"age": object})
    frame.loc[:2, "age"] = "old"
    frame.loc[10:16, "age"] = "NA"
    frame.loc[20:79, "cost"] += 5000
    frame["smokes"] = 1
    frame.loc[399, "person"] = ""
    frame.loc[100:102, "person"] = "p1"
    report = load_schema(place / "schema.toml").check(frame)
    lines = report.text(examples=True).splitlines()
    assert lines[:2] == NOT_PRIVATE.splitlines()
    assert lines[3:-3] == [
        "- age: 3 of 400 cells (1 %) are not a number as declared (rows 1, 2, 3)",
        "- age: 7 of 400 cells (2 %) are missing (rows 11, 12, 13, 14, 15, …)",
        "- smokes: constant: all cells that can be read are the same",
        "- cost: more than a tenth of its values are outside the declared bounds",
        "* person: 1 unit has more than 2 rows, as declared (rows 101)",
        "- person: 1 row without an id, left out of a fit (rows 400)",
    ]
    with pytest.raises(FormatFault, match="person"):
        report.stop()
    with pytest.raises(TypeError):
        pickle.dumps(report)


def test_a_table_that_fits_gives_no_finding_however_it_is_stored(place):
    frame, schema = table(), load_schema(place / "schema.toml")
    frame.to_parquet(place / "t.parquet")
    frame.to_csv(place / "t.csv", index=False)
    for rows in (frame, place / "t.parquet", place / "t.csv", frame.astype(object)):
        assert schema.check(rows).findings == ()
    emptied = frame.assign(visit=None, age=np.nan, ward=None)
    words = [one.words for one in schema.check(emptied).findings]
    assert words == ["400 of 400 cells (100 %) are missing"] * 3


def test_a_missing_number_counts_as_its_released_centre_in_fit_and_prediction(tmp_path):
    """2 % of the incomes missing in bounds of 0 to 1 000 000 do not bend the slope."""
    rng, n = np.random.default_rng(0), 20_000
    income = rng.normal(30_000, 8_000, n)
    cost = 0.0002 * income + rng.normal(0, 1, n)
    income[::50] = np.nan
    rows = pd.DataFrame({"income": income, "cost": cost})
    (tmp_path / "s.toml").write_text(
        'target = "cost"\n[columns]\nincome = {bounds = [0, 1000000]}\ncost = {bounds = [0, 100]}\n'
    )
    schema = load_schema(tmp_path / "s.toml")
    bounds = {"feature_bounds": schema.feature_bounds, "target_bounds": schema.target_bounds}
    model = PrivateLasso(epsilon=2, delta=1e-7, **bounds).fit(schema.encode(rows))
    assert model.coef_[0] == pytest.approx(0.0002, rel=0.1)
    assert model.missing_as_[0] == pytest.approx(30_000, rel=0.1)
    model.save(tmp_path / "m.json", schema=schema.to_dict())
    both = schema.encode_features(pd.DataFrame({"income": [np.nan, model.missing_as_[0]]}))
    assert np.isnan(both[0, 0])
    named = pd.DataFrame(both, columns=["income"])
    for one in (model, load(tmp_path / "m.json")):
        assert np.ptp(one.predict(named)) == 0
    line = raw_model_of(model.described(schema=schema.to_dict())).terms[0]
    assert line.missing == line.of_number(model.missing_as_[0])


def test_undeclared_levels_are_of_the_level_other_where_it_is_declared(place):
    written = SCHEMA.replace('["a", "b", "c"]', '["a", "b", "c", "(other)"]')
    (place / "schema.toml").write_text(written)
    schema, frame = load_schema(place / "schema.toml"), a_quarter_elsewhere(table())
    frame.loc[0, "ward"] = "NA"
    assert [one.words for one in schema.check(frame).findings] == [
        "1 of 400 cells (< 1 %) is missing"
    ]
    column = schema.encode(frame).named_arrays()[0][:, schema.feature_names.index("ward=(other)")]
    assert np.array_equal(column, frame.ward == "d")
    bounds = {"feature_bounds": schema.feature_bounds, "target_bounds": schema.target_bounds}
    release = PrivateLasso(epsilon=9, delta=1e-6, **bounds).fit(schema.encode(frame)).released()
    release = replace(
        release, schema=schema.to_dict(), coefficients=np.arange(1.0, release.n_features + 1)
    )
    (term,) = [one for one in raw_model_of(release).terms if one.cell.column == "ward"]
    assert term.otherwise == term.values["(other)"] != term.missing
