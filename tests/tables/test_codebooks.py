"""Code books: what they declare becomes a schema, and nothing of any row does."""

from __future__ import annotations

import datetime
import json

import pandas as pd
import pyreadstat
import pytest

from dpscreen.tables.codebooks import codebook_toml, read_codebook
from dpscreen.tables.declaration import TableProblem
from dpscreen.tables.schema import load_schema, toml_schema
from dpscreen.tables.toml import parsed_toml
from tools.command import invoke

DICTIONARY = """\
name,type,values,missing,description
id,string,,,person
sex,factor,"m=male; f=female",,sex
ward,categorical,"A, B, C",,
region,integer,"1=north, 2=south",,
age,integer,0-120,"-9;999",age
admitted,date,2015-01-01 to 2024-12-31,,
insured,boolean,yes/no,,
ill,boolean,"J=ja, N=nein",,
hours,numeric,,,
cost,numeric,"[0, 50000]",,euros
"""
REDCAP = """\
Variable / Field Name;Field Type;Field Label;Choices, Calculations, OR Slider Labels;\
Text Validation Type OR Show Slider Number;Text Validation Min;Text Validation Max
sex;radio;Sex;1, Male | 2, Female;;;
age;text;Age;;integer;18;110
drugs;checkbox;Drugs;1, Aspirin | 2, Other;;;
crp;text;CRP;;number;0;
"""
CODES = "variable,value,label\nsex,1,male\nsex,2,female\nregion,1,north\n,2,south\n"
CSVW = {
    "@context": "http://www.w3.org/ns/csvw",
    "dialect": {"delimiter": ";", "encoding": "windows-1252"},
    "tableSchema": {
        "null": ["", "NA"],
        "columns": [
            {
                "name": "a",
                "titles": "Age",
                "datatype": {"base": "integer", "minimum": 0, "maximum": 120},
                "null": ["-9"],
            },
            {"name": "sex", "datatype": {"base": "string", "format": "^(f|m)$"}},
            {"name": "code", "datatype": {"base": "string", "format": "[A-Z]|[0-9]+"}},
            {"name": "paid", "datatype": {"base": "decimal", "format": {"decimalChar": ","}}},
            {"name": "seen", "datatype": {"base": "date", "format": "dd.MM.yyyy"}},
            {"name": "ill", "datatype": {"base": "boolean", "format": "J|N"}},
            {"name": "x", "virtual": True},
        ],
    },
}


def columns(path, text, **given):
    path.write_text(text)
    document = parsed_toml(codebook_toml(read_codebook(path), **given).encode())
    return document, document["columns"]


def test_a_dictionary_declares_levels_bounds_formats_and_missing_codes(tmp_path):
    document, found = columns(tmp_path / "d.csv", DICTIONARY, target="cost", unit="id")
    assert document["target"] == "cost"
    assert found == {
        "id": {},
        "sex": {"categories": ["m", "f"]},
        "ward": {"categories": ["A", "B", "C"]},
        "region": {"categories": [1, 2]},
        "age": {"bounds": [0, 120], "missing": ["", "NA", "-9", "999"]},
        "admitted": {"bounds": [datetime.date(2015, 1, 1), datetime.date(2024, 12, 31)]},
        "insured": {"type": "boolean"},
        "ill": {"categories": ["J", "N"]},
        "hours": {},
        "cost": {"bounds": [0, 50000]},
    }
    frame = pd.read_csv(tmp_path / "d.csv")
    frame.to_excel(tmp_path / "d.xlsx", index=False)
    again = codebook_toml(read_codebook(tmp_path / "d.xlsx"), target="cost", unit="id")
    assert parsed_toml(again.encode())["columns"] == found
    _, found = columns(tmp_path / "d.csv", DICTIONARY, labels=True)
    assert found["sex"] == {"categories": ["male", "female"]}


def test_dictionaries_of_redcap_and_of_a_line_for_each_code(tmp_path):
    _, found = columns(tmp_path / "r.csv", REDCAP)
    assert found == {
        "sex": {"categories": [1, 2]},
        "age": {"bounds": [18, 110]},
        "drugs___1": {"type": "boolean"},
        "drugs___2": {"type": "boolean"},
        "crp": {},
    }
    _, found = columns(tmp_path / "c.csv", CODES)
    assert found == {"sex": {"categories": [1, 2]}, "region": {"categories": [1, 2]}}


def test_least_and_greatest_values_beside_means_are_those_of_rows(tmp_path):
    text = "variable,type,min,max\nhours,int,19,87\n"
    assert columns(tmp_path / "a.csv", text)[1]["hours"] == {"bounds": [19, 87]}
    computed = "variable,type,min,max,mean,n\nhours,int,19,87,44.2,312\n"
    assert columns(tmp_path / "b.csv", computed)[1]["hours"] == {}
    lone = "variable,type,min,mean\nhours,int,19,44.2\n"
    assert columns(tmp_path / "c.csv", lone)[1]["hours"] == {}
    done = invoke("schema", "import", tmp_path / "b.csv")
    assert "statistics of rows" in done.stderr


@pytest.mark.parametrize("text", ["name,age\nMary Secret,30\n", "age,cost\n1,2\n", "[1]", ""])
def test_a_table_of_rows_is_no_code_book_and_is_not_quoted(text, tmp_path):
    for name in ("t.csv", "t.json", "t.sav"):
        (tmp_path / name).write_text(text)
        with pytest.raises(TableProblem) as caught:
            read_codebook(tmp_path / name)
        assert "Secret" not in str(caught.value)


def test_csvw_and_table_schemas(tmp_path):
    document, found = columns(tmp_path / "v.json", json.dumps(CSVW))
    assert (document["delimiter"], document["encoding"]) == (";", "windows-1252")
    assert found == {
        "Age": {"bounds": [0, 120], "missing": ["", "NA", "-9"]},
        "sex": {"categories": ["f", "m"]},
        "code": {},
        "paid": {"decimal": ","},
        "seen": {"format": "%d.%m.%Y"},
        "ill": {"type": "boolean", "true": ["J"], "false": ["N"]},
    }
    fields = [
        {"name": "n", "type": "integer", "constraints": {"minimum": 0, "maximum": 9}},
        {"name": "c", "type": "integer", "categories": [{"value": 1, "label": "one"}, 2]},
        {"name": "d", "type": "date", "format": "%d/%m/%Y", "missingValues": ["-"]},
    ]
    package = {"resources": [{"schema": {"fields": fields}}]}
    assert columns(tmp_path / "datapackage.json", json.dumps(package))[1] == {
        "n": {"bounds": [0, 9]},
        "c": {"categories": [1, 2]},
        "d": {"missing": ["", "NA", "-"], "format": "%d/%m/%Y"},
    }


ROWS = pd.DataFrame(
    {
        "sex": [1.0, 2.0, 9.0],
        "age": [33.0, 44.0, 999.0],
        "ward": ["A", "B", "C"],
        "rare": ["Secret"] * 3,
        "seen": pd.to_datetime(["2020-03-01"] * 3),
    }
)


def test_labels_and_missing_codes_of_spss_and_stata_and_no_value_of_a_row(tmp_path):
    labels = {"sex": {1: "male", 2: "female", 9: "refused"}, "age": {999: "unknown"}}
    pyreadstat.write_sav(
        ROWS,
        tmp_path / "s.sav",
        column_labels={"sex": "Sex of patient"},
        variable_value_labels=labels | {"ward": {"A": "Surgery", "B": "ICU"}},
        missing_ranges={"sex": [9], "age": [{"lo": 998, "hi": 999}]},
        variable_measure={"age": "scale"},
    )
    text = codebook_toml(read_codebook(tmp_path / "s.sav"))
    found = parsed_toml(text.encode())["columns"]
    assert found["sex"] == {"categories": [1, 2], "missing": ["", "NA", "9"]}
    assert found["age"]["missing"] == ["", "NA", "998", "999"]
    assert found["ward"] == {"categories": ["A", "B"]}  # declared; C is in a row only
    assert found["rare"] == found["seen"] == {}
    assert "Sex of patient; 1 male, 2 female" in text
    pyreadstat.write_dta(ROWS, tmp_path / "s.dta", variable_value_labels={"sex": labels["sex"]})
    stata = read_codebook(tmp_path / "s.dta").columns
    assert stata["sex"].settings == {"categories": [1, 2, 9]}
    assert stata["seen"].kind == "date"
    ROWS.astype({"ward": "category"}).to_parquet(tmp_path / "s.parquet")
    arrow = codebook_toml(read_codebook(tmp_path / "s.parquet"))
    for said in (text, arrow, repr(stata)):
        assert not any(secret in said for secret in ("Secret", "33", "44", "2020"))


def test_the_command_writes_a_schema_that_reads_the_table(tmp_path):
    (tmp_path / "d.csv").write_text(DICTIONARY.replace("hours,numeric,", 'hours,numeric,"0 to 24"'))
    given = ("schema", "import", tmp_path / "d.csv", "--target", "cost", "--unit", "id")
    done = invoke(*given, "-o", tmp_path / "s.toml")
    assert done.exit_code == 0, done.stderr
    assert "10 columns, 0 to declare" in done.stderr
    schema = load_schema(tmp_path / "s.toml")
    row = {"id": "a", "sex": "f", "ward": "B", "region": 2, "age": -9, "admitted": "2020-01-01"}
    row |= {"insured": "no", "ill": "N", "hours": 3, "cost": 7}
    frame = pd.DataFrame([row, row | {"id": "b", "age": 50}])
    assert [one.words for one in schema.check(frame).findings if one.column == "age"] == [
        "1 of 2 cells (50 %) is missing"
    ]
    features = schema.encode_features(frame)[:, schema.feature_names.index("age")]
    assert features[1] == 50
    assert features[0] != features[0]
    assert invoke(*given, "-o", tmp_path / "s.toml").exit_code == 1
    assert invoke(*given[:-1], "nobody").exit_code == 1


def test_missing_codes_of_one_column_are_numbers_elsewhere():
    settings = {"bounds": [0, 2000], "missing": ["999"]}
    schema = toml_schema({"target": "y", "columns": {"x": settings, "y": {"bounds": [0, 2000]}}})
    rows = schema.encode(pd.DataFrame({"x": [999, 5], "y": [999, 5]}))
    assert rows.X[0, 0] != rows.X[0, 0]
    assert rows.y[0] == 999
