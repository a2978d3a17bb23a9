"""Schemas in TOML: that they mean what JSON means, in few lines, for names of every kind."""

from __future__ import annotations

import datetime
import json
import re
import tomllib

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpscreen.tables.proposals import propose
from dpscreen.tables.schema import SchemaProblem, TableSchema, load_schema, new_schema
from dpscreen.tables.toml import descriptor_of, edited_toml, new_document, toml_text

WHOLE = """
target = "cost"
unit = "who"
rows_per_unit = 2
missing = ["", "NA"]
ignore = ["note", "raw_*"]
delimiter = ";"

[defaults]
bounds = [-1, 1]
fill = 0

[patterns]
"*_pct" = {bounds = [0, 100], fill = 50}
"z_*" = {categories = [1, 2]}

[columns]
cost = {bounds = [0, 500], transform = "log1p"}
who = {type = "string"}
lunch_pct = {}
z_pct = {fill = 7}
z_code = {fill = 1}
sex = {categories = ["f", "m"], fill = "f"}
mixed = {categories = ["x", 3, true], fill = "x"}
smoker = {type = "boolean", fill = true}
other = {}
raw_1 = {}
"""


@pytest.fixture
def written(tmp_path):
    """Return a function that writes a schema and reads it back."""

    def write(text):
        (tmp_path / "schema.toml").write_text(text, encoding="utf-8")
        return load_schema(tmp_path / "schema.toml")

    return write


def test_it_means_what_a_json_schema_means(written):
    schema = written(WHOLE)
    assert schema.problems() == []
    assert schema.dialect.delimiter == ";"
    assert schema.rows_per_unit == 2
    assert schema.feature_names == (
        *("lunch_pct", "z_pct", "z_code=2", "sex=m"),
        *("mixed=3", "mixed=true", "smoker", "other"),
    )
    assert schema.field("lunch_pct").declared_bounds == (0, 100)
    fills = [schema.field(name).fill for name in ("lunch_pct", "z_pct", "z_code", "other")]
    assert fills == [50, 7, 1, 0]
    again = TableSchema.from_dict(json.loads(json.dumps(schema.to_dict())))
    assert again == schema
    rows = schema.encode_features(
        pd.DataFrame({name: ["yes" if name == "smoker" else 9] for name in schema.columns})
    )
    assert rows[0].tolist() == [9, 9, 0, 0, 0, 0, 1, 1]


@pytest.mark.parametrize("day", [datetime.date(2020, 1, 31), "2020-01-31"])
def test_days_are_written_as_toml_has_them_or_quoted(day):
    found, _ = descriptor_of({"columns": {"d": {"bounds": [day, day], "since": day}}})
    assert found["fields"][0] == {
        "name": "d",
        "type": "date",
        "since": "2020-01-31",
        "constraints": {"minimum": "2020-01-31", "maximum": "2020-01-31"},
    }


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[columns]\nx = {bounds = [0]}", "column 'x': bounds must be two"),
        ('[columns]\nx = {bounds = ["0", 1]}', "the lower of the bounds must be a finite number"),
        (
            '[columns]\nx = {bounds = ["1.2.2020", 1]}',
            "or a day such as 2020-01-31, without quotes",
        ),
        ("[columns]\nx = {bounds = [1, nan]}", "the upper of the bounds must be a finite number"),
        ("[columns]\nx = {bound = [0, 1]}", "column 'x': there is no setting 'bound'; did you"),
        ("[columns]\nx = 3", "column 'x' must be in braces"),
        ("[columns]\nx = {categories = [[1]]}", "categories must be a list of texts"),
        ("[columns]\nx = {categories = 3}", "categories must be a list of texts"),
        ("[columns]\nx = {}", "column 'x' is not declared yet: give it bounds = [low, high]"),
        ("targets = 'x'\n[columns]\nx = {}", "there is no entry 'targets'; did you mean 'target'"),
        ("target = 'X'\n[columns]\nx = {}", "target: there is no column 'X'; did you mean 'x'?"),
        ("[columns]\nx = {}", "the target is not named: set target to"),
        ("ignore = 'x'\n[columns]\nx = {}", "ignore must be a list of names"),
        ("ignore = ['q*']\n[columns]\nx = {}", "no column matches 'q*'"),
        ("columns = 3\nignore = ['x']", "[columns] must be a table"),
        ("[patterns]\n'*' = 1\n[columns]\nx = {}", "pattern '*' must be in braces"),
        ("defaults = 1\n[columns]\nx = {}", "[defaults] must be in braces"),
        ("missing = 'NA'\n[columns]\nx = {}", "missing must be a list of texts"),
        ("delimiter = '~'\n[columns]\nx = {}", "delimiter must be"),
        ("unit = 'x'\n[columns]\nx = {}", "unit requires rows_per_unit"),
    ],
)
def test_problems_are_told_in_the_words_of_the_file(written, text, told):
    found = "\n".join(written(text).problems())
    assert told in found
    for word in ("dpscreen.", "constraints", "missingValues", "dialect"):
        assert word not in found


@pytest.mark.parametrize(
    "text", ["Zebedee\n1,2", "x = [" * 3000, "x = " + "9" * 5000, "x = 1\nx = 2", "a\0b"]
)
def test_a_file_that_is_no_schema_is_not_repeated(written, text):
    with pytest.raises(SchemaProblem, match="not a schema in TOML") as told:
        written(text)
    assert told.value.__cause__ is None
    assert told.value.__context__ is None
    assert "Zebedee" not in str(told.value)


def test_a_schema_without_columns_is_none(written):
    with pytest.raises(SchemaProblem, match=r"needs \[columns\]"):
        written("target = 'x'")


# --- written by us --------------------------------------------------------------------------------

TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
NAMES = st.lists(TEXTS | st.sampled_from(["age", "pct"]), min_size=1, max_size=8, unique=True)
ANY_TEXT = st.text(st.characters(codec="utf-8"))
NUMBERS = st.integers(-(2**60), 2**60) | st.floats(allow_nan=False)
VALUES = ANY_TEXT | NUMBERS | st.booleans() | st.dates() | st.lists(ANY_TEXT, max_size=3)


@given(NAMES, st.data())
def test_what_is_written_is_read_back(names, data):
    document = new_document(names, target=data.draw(st.sampled_from(names)))
    document["columns"] |= {one: {"fill": data.draw(VALUES)} for one in document["columns"]}
    document["patterns"] = {data.draw(st.sampled_from(names)): {"fill": data.draw(VALUES)}}
    back = tomllib.loads(toml_text(document, table="a\nb.csv"))
    assert back == document | {"defaults": {}}


def test_five_thousand_columns_take_a_line_each(tmp_path):
    names = [f"x{number}" for number in range(4990)] + [f"s{number}_pct" for number in range(10)]
    (tmp_path / "wide.csv").write_text(",".join(names) + "\n", encoding="utf-8")
    text = new_schema(tmp_path / "wide.csv", target="x0")
    assert text.count("\n") < 5050
    assert max(map(len, text.splitlines())) <= 100
    filled = text.replace("# bounds = [0, 1]", "bounds = [-9, 9]")
    (tmp_path / "schema.toml").write_text(filled, encoding="utf-8")
    schema = load_schema(tmp_path / "schema.toml")
    assert schema.problems() == []
    assert schema.field("x7").declared_bounds == (-9, 9)
    assert schema.field("s7_pct").declared_bounds == (0, 100)


def test_telling_names_need_no_filling_in(tmp_path):
    names = "rownames,age,bmi,is_smoker,share_of_fat,lunch_pct,weight_kg,patient_id,hour"
    (tmp_path / "data.csv").write_text(names + "\nZebedee" + "," * 8, encoding="utf-8")
    text = new_schema(tmp_path / "data.csv", target="bmi")
    (tmp_path / "schema.toml").write_text(text, encoding="utf-8")
    schema = load_schema(tmp_path / "schema.toml")
    assert schema.problems() == []
    assert schema.columns == ("age", "is_smoker", "share_of_fat", "lunch_pct", "weight_kg", "hour")
    assert "Zebedee" not in text
    assert f"# {propose('age').why}" in text


WRITTEN = """\
# Survey of 2019, see the codebook.
target = "cost"        # in euros
# the privacy unit
unit = "who"
rows_per_unit = 2
ignore = ["id",  # a number
          "note"]

[columns]  # as agreed
# demography
sex = {categories = ["f", "m"]}  # self-reported
age = {bounds = [0, 120]}   # at admission
who = {}

# money
cost = {bounds = [0, 9e4], fill = 7}  # capped

[defaults]  # last
decimal = "."
"""
EDITS = st.sampled_from(
    [
        (("columns", "age"), {"bounds": [18, 90]}),
        (("columns", "sex"), {"categories": ["female", "male", "(other)"]}),
        (("columns", "cost"), {"bounds": [0, 5], "fill": 1.5}),
        (("columns", "height"), {"bounds": [0.5, 2.5]}),
        (("rows_per_unit",), 3),
        (("target",), "age"),
        (("encoding",), "cp1252"),
        (("defaults", "thousands"), ","),
        (("patterns",), {"*_pct": {"bounds": [0, 100]}}),
    ]
)


@given(st.lists(EDITS, min_size=1, max_size=4))
def test_an_edit_by_program_keeps_every_comment_and_the_order(edits):
    document = tomllib.loads(WRITTEN)
    text = WRITTEN
    for path, value in edits:
        place = document
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        text = edited_toml(text, document)
        assert tomllib.loads(text) == document
    assert re.findall("#.*", text) == re.findall("#.*", WRITTEN)
    written = [line for line in WRITTEN.splitlines() if line]
    kept = [line for line in text.splitlines() if line in written]
    assert kept == [line for line in written if line in kept]
    assert len(written) - len(kept) <= len(edits)  # each edit changes a line at most


def test_an_answer_replaces_the_advice_but_no_comment_of_a_person(tmp_path):
    (tmp_path / "data.csv").write_text("tenure,income,age\n", encoding="utf-8")
    text = new_schema(tmp_path / "data.csv", target="income")
    assert re.search(r"tenure = \{\} +# \? perhaps bounds = \[0, 60\]\? Years, if not", text)
    text = text.replace("[columns]", "# by Ann\n[columns]")
    document = tomllib.loads(text)
    document["columns"]["tenure"] = {"bounds": [0, 40]}
    edited = edited_toml(text, document)
    assert tomllib.loads(edited) == document
    assert "perhaps bounds = [0, 60]" not in edited
    assert "# by Ann\n[columns]" in edited
