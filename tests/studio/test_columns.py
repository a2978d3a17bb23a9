"""Columns as they are typed in: kinds, bounds, levels, and tables that are very wide."""

import csv
import json
import shutil

import pandas as pd
import pytest

from dpscreen.families import BINOMIAL, GAUSSIAN
from dpscreen.studio import steps
from dpscreen.studio.app import _answer
from dpscreen.studio.draft import Draft, kind_of, whole
from dpscreen.studio.views import Go, StepRequest
from dpscreen.tables.declaration import Dialect
from tools.studio import page_of, posted, session_of


def draft_of(tmp_path, *names):
    table = tmp_path / "t.csv"
    with table.open("w") as file:
        csv.writer(file).writerow(names)
    return Draft.of(table, tmp_path / "schema.json")


@pytest.fixture
def opened(tmp_path):
    """Return what opens a session of a table with some names."""
    sessions = []

    def open_session(*names):
        (tmp_path / "t.csv").write_text(",".join(names) + "\n")
        sessions.append(session_of(tmp_path / "t.csv", tmp_path / "place"))
        return sessions[-1]

    yield open_session
    for one in sessions:
        one.close()


def test_names_propose_and_say_why(tmp_path):
    draft = draft_of(tmp_path, "age", "patient_id", "xq7", "sex")
    age, patient, unknown, sex = map(draft.line, range(4))
    assert (sex.kind, sex.levels) == ("category", "")  # its levels are asked for
    assert (age.kind, age.low, age.high) == ("number", "0", "120")
    assert age.why
    assert (patient.kind, unknown.kind) == ("text", "skip")


@pytest.mark.parametrize(
    ("kind", "typed", "shown"),
    [
        ("number", ("0", "1e3", ""), ("0", "1000", "")),
        ("number", ("\u22125", " .5 ", ""), ("-5", "0.5", "")),
        ("number", ("-$5", "$100,000", ""), ("-5", "100000", "")),
        ("number", ("EUR 3", "12.5 %", ""), ("3", "12.5", "")),
        ("integer", ("1", "9", ""), ("1", "9", "")),
        ("boolean", ("1", "2", "x"), ("", "", "")),
        ("category", ("", "", "a, b ,c"), ("", "", "a, b, c")),
        ("category", ("", "", '"x, y",z'), ("", "", '"x, y", z')),
        ("category", ("", "", "a\r\nb c\r\n\r\nd"), ("", "", "a, b c, d")),
        ("text", ("1", "", "a"), ("", "", "")),
        ("skip", ("1", "", "a"), ("", "", "")),
    ],
)
def test_what_is_typed_is_kept_and_shown(tmp_path, kind, typed, shown):
    draft = draft_of(tmp_path, "v", "w")
    draft.put(0, kind, *typed)
    line = draft.line(0)
    assert line.kind == kind_of(draft.entries[0]) == kind
    assert (line.low, line.high, line.levels) == shown
    assert line.problems == ()
    draft.put(0, line.kind, line.low, line.high, line.levels)
    assert draft.line(0) == line


@pytest.mark.parametrize(
    ("kind", "typed", "message"),
    [
        ("number", ("low", "3", ""), "the lowest value must be a number"),
        ("number", ("3", "5 to 9", ""), "the highest value must be a number"),
        ("number", ("", "", ""), "the lowest value"),
        ("number", ("5", "3", ""), "minimum"),
        ("number", ("nan", "inf", ""), "must be a number"),
        ("category", ("", "", ""), "levels"),
        ("category", ("", "", "a, a"), "each level once"),
    ],
)
def test_what_cannot_be_used_is_told_and_stays(tmp_path, kind, typed, message):
    draft = draft_of(tmp_path, "v", "w")
    draft.put(0, kind, *typed)
    line = draft.line(0)
    assert message in " ".join(line.problems)
    assert (line.low, line.high) == typed[:2]
    assert draft.column_problems()


def test_fill_and_transform_are_typed_shown_and_taken_back(opened):
    session = opened("age;score;sex")
    typed = {"place": "1", "kind_1": "number", "low_1": "1", "high_1": "$100.000"}
    more = {"transform_1": "log", "fill_1": "2,5"}
    steps.table(session, posted(decimal=",", **typed, **more))
    line = session.draft.line(1)
    assert (line.high, line.transform, line.fill, line.problems) == ("100000", "log", "2,5", ())
    block = session.draft.block
    assert (block["transform"], block["fill"]) == ({"score": "log"}, {"score": 2.5})
    steps.table(session, posted(**typed, transform_1="none", fill_1="200000"))
    assert "within its bounds" in " ".join(session.draft.line(1).problems)
    steps.table(session, posted(**typed, transform_1="none", fill_1=""))
    assert (block["transform"], block["fill"]) == ({}, {})


def test_columns_that_identify_somebody_are_offered_as_units(tmp_path):
    draft = draft_of(tmp_path, "patient_id", "visits", "ward", "note", "y")
    for place, kind in enumerate(("integer", "integer", "category", "text")):
        draft.put(place, kind, "0", "9", "a, b")
    assert draft.possible_units() == ["patient_id", "note"]


@pytest.mark.parametrize(
    ("text", "number"),
    [("12 000", 12000), ("1,000", 1000), ("", None), ("-3", None), ("9" * 99, None)],
)
def test_numbers_of_rows(text, number):
    assert whole(text) == number


def test_a_schema_that_was_made_elsewhere_keeps_what_the_studio_does_not_show(tmp_path):
    fields = [
        {
            "name": name,
            "type": "number",
            "title": "kept",
            "constraints": {"minimum": 1, "maximum": 9},
        }
        for name in ("a", "b", "y")
    ]
    block = {"target": "y", "transform": {"y": "log"}, "fill": {"a": 2}}
    made = {"fields": fields, "missingValues": ["", "NA"], "dpscreen": block}
    (tmp_path / "schema.json").write_text(json.dumps(made))
    draft = draft_of(tmp_path, "a", "b", "y")
    assert draft.problems() == []
    draft.save(tmp_path / "again.json")
    found = json.loads((tmp_path / "again.json").read_text())
    assert found["fields"] == fields
    assert found["missingValues"] == ["", "NA"]
    assert found["dpscreen"] == block | {"features": ["a", "b"]}


def test_how_a_table_is_written_is_told_once(tmp_path):
    (tmp_path / "t.csv").write_bytes("gr\xf6\xdfe;2019\n1;2\n".encode("cp1252"))
    written = {"dialect": Dialect(encoding="cp1252"), "numeric_names": True}
    draft = Draft.of(tmp_path / "t.csv", tmp_path / "schema.json", **written)
    assert [line.name for line in map(draft.line, range(2))] == ["größe", "2019"]
    draft.save(tmp_path / "schema.json")
    again = Draft.of(tmp_path / "t.csv", tmp_path / "schema.json")
    assert again.schema().dialect == draft.schema().dialect
    assert (draft.decimal, again.decimal) == (",", ".")  # no number is declared yet


def test_decimal_commas_are_proposed_beside_semicolons_and_hold_for_the_table(opened):
    session = opened("age;score;sex")
    assert session.draft.decimal == ","
    typed = {"place": "1", "kind_1": "number", "low_1": "-0,5", "high_1": "9"}
    steps.table(session, posted(decimal=",", **typed))
    assert session.draft.schema().fields[1].marks.decimal == ","
    assert session.draft.line(1).low == "-0,5"
    assert "decimalChar" not in session.draft.entries[2]
    assert Draft.of(session.table, session.shelf.schema_file).decimal == ","
    steps.table(session, posted(decimal="."))
    assert not any("decimalChar" in one for one in session.draft.entries)
    steps.table(session, posted(decimal=".", **typed))
    assert session.draft.line(1).problems  # a comma may stand between thousands


@pytest.mark.parametrize(("decimal", "cells"), [(".", "$1,250.5"), (",", "1.250,5 €")])
def test_signs_of_numbers_are_typed_and_read(tmp_path, decimal, cells):
    """In bounds and in the table alike; they would be missing there, and nothing would tell."""
    draft = draft_of(tmp_path, "age", "y")
    draft.write_decimals(decimal)
    other = "," if decimal == "." else "."
    for name in (0, 1):
        draft.put(name, "number", f"0{decimal}125", f"20{other}000", "")
        line = draft.line(name)
        assert (line.low, line.high) == (f"0{decimal}125", "20000")
        draft.put(name, "number", line.low, line.high, "")  # as the page sends it back
    draft.ask("y", ["age"], "", "")
    frame = pd.DataFrame({"age": [cells, f"2{decimal}5"], "y": [cells] * 2})
    rows = draft.checked().encode(frame)
    assert rows.X[:, 0].tolist() == [1250.5, 2.5]
    assert draft.schema().field("age").declared_bounds == (0.125, 20_000)


@pytest.mark.parametrize(
    ("kind", "levels", "family"),
    [("boolean", "", BINOMIAL), ("category", "a, b", BINOMIAL), ("number", "", GAUSSIAN)],
)
def test_what_is_saved_is_gone_on_with_by_the_model_of_its_target(tmp_path, kind, levels, family):
    draft = draft_of(tmp_path, "age", "y")
    draft.put(1, kind, "0", "9", levels)
    draft.ask("y", ["age"], "", "")
    draft.save(tmp_path / "schema.json")
    assert draft_of(tmp_path, "age", "y").method == family.sparse.method


def test_columns_that_are_not_declared_can_be_left_out_at_once(opened):
    session = opened("age", "sex", "income", "score", "xq7")
    message = steps.table(session, posted(action="next"))
    assert message.status == 422
    assert "Leave these 3 columns out" in page_of(session, message)
    typed = {"place": "3", "kind_3": "number", "low_3": "0", "high_3": "9"}
    assert steps.table(session, posted(action="drop", **typed)) == Go("question")
    assert session.draft.usable() == ["age", "score"]


def test_a_table_that_changed_is_told_at_every_step(opened):
    session = opened("age", "score")
    assert "it changed since" not in page_of(session, steps.table(session, StepRequest()))
    session.table.write_text("age,score\n1,2\n")
    assert "it changed since" in page_of(session, steps.table(session, StepRequest()))


def test_a_folder_that_takes_no_file_is_told_without_its_path(opened):
    session = opened("age", "score")
    shutil.rmtree(session.shelf.folder)
    answer = _answer(session, steps.table, posted(action="next"))
    assert answer.status_code == 409
    assert "cannot be read or written (No such file" in answer.body.decode()
    assert str(session.shelf.folder.parent) not in answer.body.decode()


def test_two_thousand_columns(opened):
    session = opened(*(f"x{k:04d}" for k in range(1999)), "<b>y & z</b>")

    def shown(answer):
        return page_of(session, answer)

    page = shown(steps.table(session, StepRequest()))
    assert page.count('name="place"') == 100
    assert "Page 1 of 20" in page
    every = {"action": "all", "all_kind": "number", "all_low": "0", "all_high": "9"}
    assert "2000 of 2000 columns are used" in shown(steps.table(session, posted(**every)))
    assert "&lt;b&gt;y &amp; z&lt;/b&gt;" in shown(steps.table(session, StepRequest({"find": "Y"})))
    assert steps.table(session, posted(action="next")) == Go("question")
    assert shown(steps.question(session, StepRequest())).count('name="feature"') == 2000
    features = [("feature", str(k)) for k in range(1500)]
    asked = posted(*features, target="1999", rows="")
    assert steps.question(session, asked) == Go("budget")
    saved = json.loads(session.shelf.schema_file.read_text())
    assert len(saved["dpscreen"]["features"]) == 1500
