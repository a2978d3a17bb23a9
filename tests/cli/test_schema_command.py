"""`dpscreen schema`."""

from __future__ import annotations

import gzip
import json
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpscreen.tables.schema import load_schema, schema_text
from tools.command import failed, here, succeeded

DATA = "age;who;cost\n34;Zebedee;5\n"
FILLED = {
    "fields": [
        {"name": "age", "type": "number", "constraints": {"minimum": 0, "maximum": 120}},
        {"name": "who", "type": "string"},
        {"name": "cost", "type": "number", "constraints": {"minimum": 0, "maximum": 9}},
    ],
    "dpscreen": {"target": "cost", "unit": "who", "rows_per_unit": 3},
}


dpscreen_schema = partial(here, "schema")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "data.csv").write_text(DATA)
    (tmp_path / "filled.json").write_text(json.dumps(FILLED))
    return tmp_path


@pytest.mark.parametrize("name", ["wide.toml", "wide.json"])
def test_a_column_is_a_line(tmp_path, name):
    (tmp_path / "wide.csv").write_text(",".join(f"c{k}" for k in range(3000)) + "\n")
    succeeded(here("schema", "new", tmp_path / "wide.csv", "-o", tmp_path / name))
    assert len((tmp_path / name).read_text().splitlines()) < 3100
    assert len(load_schema(tmp_path / name).fields) == 3000


def test_odd_names_stay_what_they_are():
    odd = {"fields": [{"name": '"fields": []'}], "dpscreen": {"target": '"fields": []'}}
    assert json.loads(schema_text(odd)) == odd
    assert json.loads(schema_text({"fields": []})) == {"fields": []}


def test_a_new_schema_holds_names_and_nothing_else(folder):
    made = ("new", "data.csv", "-o", "schema.json", "--target", "cost", "--unit", "who")
    done = succeeded(here("schema", *made, cwd=folder), stdout="")
    assert "never by looking at the data" in " ".join(done.stderr.split())
    text = (folder / "schema.json").read_text()
    assert "Zebedee" not in text + done.stderr
    found = json.loads(text)
    assert [field["name"] for field in found["fields"]] == ["age", "who", "cost"]
    assert found["fields"][0]["constraints"] == {"minimum": 0, "maximum": 120}  # of any age
    assert found["dialect"] == {"delimiter": ";"}
    assert found["dpscreen"]["target"] == "cost"
    checked = dpscreen_schema("check", "schema.json", "--data", "data.csv", cwd=folder)
    assert checked.returncode == 1
    assert checked.stdout.count("- ") == 1
    assert "column 'cost' has no type" in checked.stdout


def test_names_come_from_any_table(folder):
    (folder / "data.gz").write_bytes(gzip.compress(DATA.encode("utf-8-sig")))
    pq.write_table(pa.table({"age": ["x"], "who": ["Zebedee"], "cost": [1]}), folder / "data.pq")
    for name in ("data.gz", "data.pq"):
        done = succeeded(dpscreen_schema("new", name, cwd=folder))
        assert [one["name"] for one in json.loads(done.stdout)["fields"]] == ["age", "who", "cost"]


@pytest.mark.parametrize(
    ("data", "arguments", "message"),
    [
        ("34;Zebedee;5\n", (), "may be a row, not a header"),
        ("a;a\n1;2\n", (), "names occur twice, in columns 1 and 2"),
        ("a;\n1;2\n", (), "column 2 without a name"),
        ("", (), "no column names"),
        ("a;b\n", ("--target", "c"), "has no column 'c'"),
        ("a;b\n", ("-o", "none/schema.json"), "no directory none"),
    ],
)
def test_what_is_no_table_is_told_and_leaves_no_file(folder, data, arguments, message):
    (folder / "data.csv").write_text(data)
    before = sorted(folder.iterdir())
    done = dpscreen_schema("new", "data.csv", *(arguments or ("-o", "new.json")), cwd=folder)
    failed(done, 1, message, stdout="")
    assert "Zebedee" not in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(folder.iterdir()) == before


def test_years_may_be_names(folder):
    (folder / "data.csv").write_text("2019,2020\n1,2\n")
    assert "--numeric-names" in dpscreen_schema("new", "data.csv", cwd=folder).stderr
    done = dpscreen_schema("new", "data.csv", "--numeric-names", cwd=folder)
    assert [one["name"] for one in json.loads(done.stdout)["fields"]] == ["2019", "2020"]


def test_a_schema_is_checked_in_a_sentence_and_as_json(folder):
    done = dpscreen_schema("check", "filled.json", "--data", "data.csv", cwd=folder)
    succeeded(done, "1 column and 1 feature;", "at most 3 rows of each", stderr="")
    output = json.loads(dpscreen_schema("check", "filled.json", "--json", cwd=folder).stdout)
    assert output["usable"] is True
    assert output["problems"] == []
    assert output["features"] == ["age"]
    (folder / "bad.json").write_text(json.dumps(FILLED | {"dpscreen": {"target": "costs"}}))
    done = dpscreen_schema("check", "bad.json", "--json", cwd=folder)
    assert (done.returncode, json.loads(done.stdout)["usable"]) == (1, False)
    assert any("did you mean 'cost'" in one for one in json.loads(done.stdout)["problems"])


def test_a_table_in_place_of_a_schema_is_not_repeated(folder):
    done = dpscreen_schema("check", "data.csv", cwd=folder)
    assert done.returncode == 1
    assert "not a schema in JSON" in done.stdout
    assert "Zebedee" not in done.stdout + done.stderr


def test_a_table_without_a_header_is_told_in_a_clean_sentence(folder):
    (folder / "data.csv").write_text("34;Zebedee;5\n")
    done = dpscreen_schema("check", "filled.json", "--data", "data.csv", cwd=folder)
    assert "Does its first line hold the names?\n" in done.stdout
