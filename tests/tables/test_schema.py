"""Schemas: what they say about features and bounds, and every problem told at once."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from table_oracle import SCHEMA, described, make_schema

from dpscreen.tables import schema as schemas
from dpscreen.tables.declaration import DataError
from dpscreen.tables.schema import SchemaProblem, TableSchema, load_schema


def test_features_bounds_and_target():
    assert SCHEMA.problems() == []
    assert SCHEMA.target == "cost"
    assert (SCHEMA.unit, SCHEMA.rows_per_unit) == ("who", 2)
    assert SCHEMA.feature_names == (
        *("age", "smoker=no", "smoker=once", "income", "grade=2", "member"),
    )
    top = np.log(1e6)
    want = [(0, 100), (0, 1), (0, 1), (0, top), (0, 1), (0, 1)]
    np.testing.assert_allclose(SCHEMA.feature_bounds, want)
    np.testing.assert_allclose(SCHEMA.target_bounds, (0, np.log1p(500)))
    alone = make_schema(unit=None, rows_per_unit=None, features=["age"])  # a row is the unit
    assert alone.problems() == []
    assert (alone.unit, alone.rows_per_unit, alone.feature_names) == (None, 1, ("age",))


@pytest.mark.parametrize("word", ["none", "log1p", "sqrt"])
def test_predictions_come_back_in_the_users_units(word):
    schema = make_schema(transform={"cost": word})
    assert schema.problems() == []
    values = np.array([0.0, 1.0, 250.0, 500.0])
    forward = {"none": lambda v: v, "log1p": np.log1p, "sqrt": np.sqrt}[word]
    np.testing.assert_allclose(schema.untransform_target(forward(values)), values)
    if word != "none":
        far = schema.untransform_target([-1e9, 1e9])
        np.testing.assert_allclose(far, [0, 500], atol=1e-9)


def test_a_descriptor_survives_the_round_trip():
    given_ = described() | {"title": "A survey", "custom": {"kept": [1, None]}}
    given_["fields"][0] |= {"title": "Age", "description": "in years"}
    schema = TableSchema.from_dict(given_)
    assert schema.to_dict() == given_
    assert TableSchema.from_dict(schema.to_dict()) == schema
    assert hash(schema) == hash(TableSchema.from_dict(copy.deepcopy(given_)))
    given_["fields"][0]["name"] = "changed"
    assert schema.field("age").name == "age"
    schema.to_dict()["fields"].clear()
    assert schema.to_dict()["fields"]


# --- problems -------------------------------------------------------------------------------------


def change(path, value):
    """Return a schema with one entry changed; a path such as fields.0.type."""
    given_ = described()
    *parents, last = path.split(".")
    place = given_
    for part in parents:
        place = place[int(part) if part.isdigit() else part]
    if value is DROP:
        del place[last]
    else:
        place[int(last) if last.isdigit() else last] = value
    return TableSchema.from_dict(given_)


DROP = object()
WRONG = [
    ("fields.0.type", DROP, "column 'age' has no type: set `type` to"),
    ("fields.0.type", "int", "there is no type 'int'; did you mean"),
    ("fields.0.constraints", DROP, "column 'age' has no minimum or maximum: set constraints."),
    ("fields.0.constraints", "x", "constraints must be an object"),
    ("fields.0.constraints.minimum", DROP, "column 'age' has no minimum: set constraints.minimum"),
    ("fields.0.constraints.minimum", "0", "must be a finite number, without quotes"),
    ("fields.0.constraints.minimum", "2020-01-31", 'bounds that are days need the type "date"'),
    ("fields.0.constraints.maximum", 10**400, "must be a finite number"),
    ("fields.0.constraints.maximum", float("nan"), "must be a finite number"),
    ("fields.0.constraints.maximum", 0, "minimum must be below the maximum"),
    ("fields.0.constraints.maximum", 1e61, "apart"),
    ("fields.0.constraints.maximun", 5, "did you mean 'maximum'?"),
    ("fields.0.constraints.exclusiveMinimum", 5, "exclusiveMinimum is not supported: use minimum"),
    ("fields.0.groupChar", "x", "groupChar must be"),
    ("fields.0.missingValues", "x", "must be a list of texts"),
    ("fields.0.decimalChar", "x", "decimalChar must be"),
    ("fields.1.type", DROP, "column 'smoker' has no type"),
    ("fields.1.constraints", {}, "column 'smoker' has no levels: list the texts"),
    ("fields.1.constraints.enum", [], "column 'smoker' has no levels"),
    ("fields.1.constraints.enum", "yes", "must be a list of texts"),
    ("fields.1.constraints.enum", ["yes", "no", "no "], "each level once"),
    ("fields.1.constraints.enum", [1, 2], "must be a list of texts"),
    ("fields.1.constraints.enum", ["7", "07"], "one number or boolean in two spellings"),
    ("fields.1.constraints.enum", ["no", "-99.0"], "is a level and one of missingValues"),
    ("fields.1.constraints.enum", ["no", "NA"], "is a level and one of missingValues"),
    ("fields.3.constraints.enum", ["1"], "must be a list of numbers"),
    ("fields.3.constraints.enum", [1, -99], "is a level and one of missingValues"),
    ("fields.4.constraints", {"enum": [True]}, "a boolean has no constraints.enum"),
    ("fields.4.trueValues", "yes", "trueValues must be a list of texts"),
    ("fields.6.type", "number", "set its type to string or integer"),
    ("fields.6.name", "age", "column 'age' is declared 2 times"),
    ("fields.6.name", " ", "a column has an empty name"),
    ("fields.6.name", "smoker=yes", "2 features would be called 'smoker=yes'"),
    ("missingValues", "NA", "missingValues must be a list of texts"),
    ("dialect", {"delimiter": ":"}, "dialect.delimiter must be"),
    ("dialect", {"header": False}, "dialect.header must be true"),
    ("dialect", {"escapeChar": "\\"}, "dialect.escapeChar must be null"),
    ("dialect", "csv", "dialect must be an object"),
    ("dpscreen", DROP, "the target is not named: set dpscreen.target"),
    ("dpscreen", ["cost"], "dpscreen must be an object"),
    ("dpscreen.target", None, "the target is not named"),
    ("dpscreen.target", 5, "dpscreen.target must be the name of a column"),
    ("dpscreen.target", "costs", "did you mean 'cost'?"),
    ("dpscreen.target", "smoker", "is the target, so it must be a number"),
    ("dpscreen.features", [], "dpscreen.features is empty"),
    ("dpscreen.features", "age", "must be a list of names"),
    ("dpscreen.features", ["age", "age"], "names column 'age' 2 times"),
    ("dpscreen.features", ["age", "cost"], "names the target or the unit, 'cost'"),
    ("dpscreen.features", ["agee"], "did you mean 'age'?"),
    ("dpscreen.unit", "whom", "dpscreen.unit: there is no column 'whom'"),
    ("dpscreen.unit", "cost", "name the same column"),
    ("dpscreen.unit", None, "rows_per_unit requires dpscreen.unit"),
    ("dpscreen.rows_per_unit", None, "dpscreen.unit requires dpscreen.rows_per_unit"),
    ("dpscreen.rows_per_unit", 0, "must be an integer from 1"),
    ("dpscreen.rows_per_unit", True, "must be an integer from 1"),
    ("dpscreen.fill", {"smoker": "never"}, "must be one of its levels"),
    ("dpscreen.fill", {"age": 101}, "must be a number within its bounds"),
    ("dpscreen.fill", {"age": "5"}, "must be a number within its bounds"),
    ("dpscreen.fill", {"member": 1}, "must be true or false"),
    ("dpscreen.fill", {"who": "a"}, "rows without an id are left out"),
    ("dpscreen.fill", {"agee": 1}, "did you mean 'age'?"),
    ("dpscreen.fill", [1], "dpscreen.fill must be an object"),
    ("dpscreen.transform", {"age": "log"}, "requires a minimum above 0: raise the minimum or drop"),
    ("dpscreen.transform", {"age": "ln"}, "there is no transform 'ln'"),
    ("dpscreen.transform", {"smoker": "sqrt"}, "only numbers with bounds have one"),
    ("dpscreen.tarlet", "x", "did you mean 'target'?"),
]


@pytest.mark.parametrize(("path", "value", "told"), WRONG)
def test_every_problem_is_told_with_its_remedy(path, value, told):
    schema = change(path, value)
    found = schema.problems()
    assert any(told in problem for problem in found), found
    assert len(found) <= 4
    with pytest.raises(SchemaProblem) as caught:
        schema.check()
    assert caught.value.problems == tuple(found)
    assert all(problem in str(caught.value) for problem in found)


def test_all_problems_are_told_at_once():
    given_ = described(target=None, rows_per_unit=0)
    for field in given_["fields"]:
        field.pop("constraints", None)
    found = TableSchema.from_dict(given_).problems()
    assert len(found) == 7
    assert all(problem.endswith((".", "?")) for problem in found)
    alone = {"fields": [described()["fields"][5]], "dpscreen": {"target": "cost"}}
    (found,) = TableSchema.from_dict(alone).problems()
    assert found.code == "schema.no-features"


def test_a_fill_is_not_judged_before_there_are_bounds():
    given_ = described(fill={"age": 40})
    del given_["fields"][0]["constraints"]
    (found,) = TableSchema.from_dict(given_).problems()
    assert found.code == "column.no-bounds"
    assert found.fields["missing"] == ("minimum", "maximum")


def test_what_a_schema_does_not_have_is_not_made_up():
    with pytest.raises(SchemaProblem, match="target is not named"):
        _ = make_schema(target=None).target
    with pytest.raises(SchemaProblem, match="no column 'agee'"):
        SCHEMA.field("agee")
    ids = SCHEMA.field("who")
    with pytest.raises(ValueError, match="column 'who' has no bounds"):
        _ = ids.declared_bounds
    with pytest.raises(NotImplementedError, match="does not hold numbers"):
        ids.values(None)


def test_a_schema_is_something_that_json_can_hold():
    with pytest.raises(SchemaProblem, match="JSON cannot represent"):
        TableSchema.from_dict(described() | {"custom": {1, 2}})


@pytest.mark.parametrize(
    "given_", [None, [], 5, {}, {"fields": {}}, {"fields": []}, {"fields": [5]}, {"fields": [{}]}]
)
def test_what_is_no_schema_is_refused(given_):
    with pytest.raises(SchemaProblem, match=r"Table Schema|needs a name"):
        TableSchema.from_dict(given_)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
PLACES = [path for path, _, _ in WRONG if not path.startswith("fields.6.name")]


@given(st.sampled_from(PLACES), JSON)
def test_no_entry_breaks_the_check(path, value):
    schema = change(path, value)
    if not schema.problems():
        bounds = schema.feature_bounds
        assert bounds.shape == (len(schema.feature_names), 2)
        assert np.isfinite(bounds).all()
        assert (bounds[:, 0] < bounds[:, 1]).all()
        assert TableSchema.from_dict(schema.to_dict()) == schema


# --- files ----------------------------------------------------------------------------------------


def test_a_schema_is_loaded(tmp_path):
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(described()), encoding="utf-8-sig")
    assert load_schema(path) == load_schema(str(path)) == SCHEMA


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", r"not a schema in JSON \(.* in line 1, column 1\)"),
        (b"a,b\n1,2\n", "not a schema in JSON"),
        (b"\xff\xfe", "not a schema in JSON"),
        (b"[" * 100_000, "not a schema in JSON"),
        (b'{"fields": NaN}', "not a schema in JSON"),
        (b'{"fields": [], "fields": []}', "not a schema in JSON"),
        (b'{"fields": ' + b"9" * 5000 + b"}", r"not a schema in JSON|Table Schema"),
        (b"[1, 2]", "not a Table Schema"),
    ],
)
def test_a_file_that_is_no_schema(tmp_path, data, told):
    path = tmp_path / "schema.json"
    path.write_bytes(data)
    with pytest.raises(SchemaProblem, match=told) as caught:
        load_schema(path)
    assert isinstance(caught.value, DataError)
    assert caught.value.__context__ is None


def test_files_that_are_too_large_or_not_there(tmp_path, monkeypatch):
    monkeypatch.setattr(schemas, "LARGEST_FILE", 10)
    (tmp_path / "schema.json").write_text(json.dumps(described()))
    for name, told in (("schema", "too large for a schema"), ("none", "No such file")):
        with pytest.raises(SchemaProblem, match=told):
            load_schema(tmp_path / f"{name}.json")
