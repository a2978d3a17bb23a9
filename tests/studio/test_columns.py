"""Columns as they are typed in: kinds, bounds, levels, and tables that are very wide."""

import csv

import pytest

from dpscreen.studio import steps
from dpscreen.studio.draft import Draft, kind_of
from dpscreen.studio.views import StepRequest
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


@pytest.mark.parametrize(
    ("kind", "typed", "shown"),
    [
        ("number", ("0", "1e3", ""), ("0", "1000", "")),
        ("number", ("\u22125", " .5 ", ""), ("-5", "0.5", "")),
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
    (line,) = draft.lines([0])
    assert line.kind == kind_of(draft.entries[0]) == kind
    assert (line.low, line.high, line.levels) == shown
    assert line.problems == ()
    draft.put(0, line.kind, line.low, line.high, line.levels)
    assert draft.lines([0]) == [line]


@pytest.mark.parametrize(
    ("kind", "typed", "message"),
    [
        ("number", ("low", "3", ""), "the lowest value must be a number"),
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
    (line,) = draft.lines([0])
    assert message in " ".join(line.problems)
    assert (line.low, line.high) == typed[:2]
    assert draft.column_problems()


def test_fill_and_transform_are_typed_shown_and_taken_back(opened):
    session = opened("age;score;sex")
    typed = {"place": "1", "kind_1": "number", "low_1": "1", "high_1": "$100.000"}
    more = {"transform_1": "log", "fill_1": "2,5"}
    steps.table(session, posted(decimal=",", **typed, **more))
    line = session.draft.lines([1])[0]
    assert (line.high, line.transform, line.fill, line.problems) == ("100000", "log", "2,5", ())
    block = session.draft.block
    assert (block["transform"], block["fill"]) == ({"score": "log"}, {"score": 2.5})
    steps.table(session, posted(**typed, transform_1="none", fill_1="200000"))
    assert "within its bounds" in " ".join(session.draft.lines([1])[0].problems)
    steps.table(session, posted(**typed, transform_1="none", fill_1=""))
    assert (block["transform"], block["fill"]) == ({}, {})


def test_columns_that_identify_somebody_are_offered_as_units(tmp_path):
    draft = draft_of(tmp_path, "patient_id", "visits", "ward", "note", "y")
    for place, kind in enumerate(("integer", "integer", "category", "text")):
        draft.put(place, kind, "0", "9", "a, b")
    assert draft.possible_units() == ["patient_id", "note"]


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("$100,000", "100000"),
        ("-$5", "-5"),
        ("12.5 %", "12.5"),
        ("EUR 3", "3"),
        ("1e6", "1000000"),
        (".5", "0.5"),
        ("\u22123", "-3"),
        ("five", "five"),
        ("5 to 9", "5 to 9"),
    ],
)
def test_signs_around_a_bound_are_left_out(tmp_path, typed, shown):
    draft = draft_of(tmp_path, "age", "y")
    draft.put(0, "number", "-1000", typed, "")
    assert draft.lines([0])[0].high == shown


def test_a_table_that_changed_is_told_at_every_step(opened):
    session = opened("age", "score")
    assert "it changed since" not in page_of(session, steps.table(session, StepRequest()))
    session.table.write_text("age,score\n1,2\n")
    assert "it changed since" in page_of(session, steps.table(session, StepRequest()))
