"""Questions and answers for a schema: proposals, the way back, taking up again, and no cell."""

from __future__ import annotations

import tomllib
from datetime import date as day
from functools import partial

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpscreen.tables import asking
from dpscreen.tables.asking import Interview, in_words, open_columns, settings_meant
from dpscreen.tables.schema import toml_schema
from dpscreen.tables.toml import new_document, toml_text

new_interview = partial(new_document, proposed=False)

LAST = day(2021, 12, 31)
NAMES = ["id", "age", "sex", "q1", "q2", "q3", "smoker", "cost"]


def answered(document, *answers, again=False):
    interview = Interview(document, again=again)
    wrong = [interview.answer(one) for one in answers]
    return interview, [one for one in wrong if one]


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("0 to 120", {"bounds": [0, 120]}),
        ("-5 5.5", {"bounds": [-5, 5.5]}),
        ("0..1e6", {"bounds": [0, 1e6]}),
        ("0-120", {"bounds": [0, 120]}),
        ("-10 – -2", {"bounds": [-10, -2]}),
        ("[0, 120]", {"bounds": [0, 120]}),
        ("(0, 120)", {"bounds": [0, 120]}),
        ("0, 120", {"bounds": [0, 120]}),
        ("[1,200]", {"bounds": [1, 200]}),
        ("0; 2.5", {"bounds": [0, 2.5]}),
        ("0 to 10,000,000", {"bounds": [0, 10_000_000], "thousands": ","}),
        ("-1,000.5 1,000.5", {"bounds": [-1000.5, 1000.5], "thousands": ","}),
        ("0 to 1.200", None),
        ("0 to 0.125", {"bounds": [0, 0.125]}),
        ("nothing to 5, or 6", None),
        ("1,200", None),
        ("[a, b]", None),
        ("0, 1", {"categories": [0, 1]}),
        ("'1', '5'", {"categories": [1, 5]}),
        ("a, b ,'c'", {"categories": ["a", "b", "c"]}),
        ("1, 0", {"categories": [1, 0]}),
        ("1, x", {"categories": ["1", "x"]}),
        ("Yes/No", {"type": "boolean"}),
        ("2020-01-01 to 2021-12-31", {"bounds": [day(2020, 1, 1), LAST]}),
        ("1.2.2020 to 31.12.2021", {"bounds": [day(2020, 2, 1), LAST], "format": "%d.%m.%Y"}),
        ("1/2/2020 to 31/12/2021", {"bounds": [day(2020, 2, 1), LAST], "format": "%d/%m/%Y"}),
        ("1/2/2020 - 12/31/2021", {"bounds": [day(2020, 1, 2), LAST], "format": "%m/%d/%Y"}),
        ('flat, O\'Brien\'s "villa", 5"', {"categories": ["flat", "O'Brien's \"villa\"", '5"']}),
        ("'t Hooft, none", {"categories": ["'t Hooft", "none"]}),
        ('"small, cheap", other', {"categories": ["small, cheap", "other"]}),
        ("'a', \"b\"", {"categories": ["a", "b"]}),
        ("1/2/2020 to 3/4/2021", None),
        ("31/1/2020 to 1/31/2021", None),
        ("2020-02-30 2021-01-01", None),
        ("30.02.2020, 01.01.2021", None),
        ("perhaps", None),
    ],
)
def test_answers_are_understood_or_not(text, settings):
    assert settings_meant(text) == settings
    if settings is not None:
        assert settings_meant(in_words(settings)) == settings


@pytest.mark.parametrize(
    ("text", "decimal", "settings"),
    [
        ("$0 to $10,000", ".", {"bounds": [0, 10_000], "thousands": ",", "bare": False}),
        ("0 % to 100 %", ".", {"bounds": [0, 100], "bare": False}),
        ("0 to 200.000", ",", {"bounds": [0, 200_000], "thousands": "."}),
        ("1,5 to 2,5 €", ",", {"bounds": [1.5, 2.5], "bare": False}),
        ("0 to 200,000", ",", None),
        ("0 to 1.5", ",", {"bounds": [0, 1.5]}),
        ("1, 2", ",", {"categories": [1, 2]}),
        ("18, 90", ",", {"bounds": [18, 90]}),
    ],
)
def test_numbers_are_answered_as_the_table_writes_them(text, decimal, settings):
    assert settings_meant(text, decimal=decimal) == settings


def test_what_stands_is_kept_by_an_empty_answer():
    document = new_interview(["pay", "y"], target="y", unit="")
    _, wrong = answered(document, "0 to 1.200", "$0 to $1,200", "0 to 1")
    assert wrong == ["Is 1.200 a large number or a small one? Write 1200, or 1.2."]
    told = dict(document["columns"])
    assert told["pay"] == {"bounds": [0, 1200], "thousands": ",", "bare": False}
    answered(document, *[""] * 4, again=True)
    assert document["columns"] == told


def test_a_whole_interview():
    interview, wrong = answered(
        new_interview(NAMES), "cost", "", "2", "", "f, m", "1 to 5", "yes/no", "0 to 1000"
    )
    assert wrong == []
    assert interview.finished
    assert interview.document["unit"] == "id"
    schema = toml_schema(interview.document)
    assert schema.problems() == []
    assert schema.rows_per_unit == 2
    assert schema.feature_names == ("age", "sex=m", "q1", "q2", "q3", "smoker")
    assert schema.field("q2").declared_bounds == (1, 5)
    assert schema.target_bounds == (0, 1000)


def test_what_is_wrong_is_told_and_asked_again():
    interview, wrong = answered(
        new_interview(["Rings", "x"]), "", "rings", "RINGS", "x y", "Rings", "Rings", "none"
    )
    assert [one.partition(".")[2] for one in wrong[1:3]] == [" Did you mean 'Rings'?"] * 2
    assert wrong[-1] == "Target and unit cannot be the same column."
    for text in ("skip", "a, b, c", "5 to 1", "perhaps"):
        assert interview.answer(text)
        assert interview.question.title == "Rings (the target)"
    assert interview.answer("0 to 30") is None
    assert open_columns(interview.document) == ["x"]


def test_one_can_go_back_and_change_ones_mind():
    interview, _ = answered(new_interview(["x", "age", "y"]), "y", "none", "skip", "18 to 90")
    assert interview.document["ignore"] == ["x"]
    assert interview.answer("back") is None
    assert interview.question.default == "18 to 90"
    assert interview.answer("<") is None
    assert interview.question.default == "skip"
    assert interview.answer("0 to 1") is None
    assert interview.document["ignore"] == []
    assert [interview.answer("back") for _ in range(4)][-1] == "This is the first question."
    assert interview.question.default == "y"


def test_it_is_taken_up_where_it_was_left():
    interview, _ = answered(new_interview(NAMES), "cost", "none", "", "", "f, m")
    kept = tomllib.loads(toml_text(interview.document))
    assert Interview(kept).question.title == "q1 … q3, 3 columns"
    assert Interview(kept, again=True).question.default == "cost"
    first = tomllib.loads(toml_text(answered(new_interview(NAMES), "cost")[0].document))
    assert "privacy unit" in Interview(first).question.title


def test_semicolons_hint_at_a_decimal_comma():
    document = new_interview(["price", "age"], target="price", delimiter=";")
    interview, wrong = answered(document, "none", "x", "", "0 to 9000", "")
    assert wrong == ["Type a comma or a point."]
    assert interview.finished
    schema = toml_schema(interview.document)
    frame = pd.DataFrame({"age": ["1,5"], "price": ["1.002,5"]})
    rows = schema.encode(frame)
    assert (rows.X.tolist(), rows.y.tolist()) == ([[1.5]], [1002.5])
    assert Interview(interview.document).finished
    assert "decimal" in toml_text(new_interview(["age"], delimiter=";"))


def test_columns_that_are_alike_are_asked_about_once_or_each():
    names = [f"x{number}" for number in range(5000)]
    interview, _ = answered(new_interview(names), "x7", "none")
    assert interview.left == 2
    interview.answer("each")
    assert interview.left == 5000
    interview, _ = answered(new_interview(names), "x7", "none", "0 to 1", "0 to 9")
    schema = toml_schema(interview.document)
    assert schema.problems() == []
    assert (schema.target_bounds, schema.field("x8").declared_bounds) == ((0, 9), (0, 1))


@given(
    st.lists(st.text(max_size=12) | st.sampled_from(["back", "", "skip", "0 1", "x"]), max_size=12)
)
def test_no_answer_breaks_it(answers):
    interview = Interview(new_interview(["x", "age", "x1", "x2", "x3"]))
    for text in answers:
        if not interview.finished:
            assert interview.question.title
            interview.answer(text)
        tomllib.loads(toml_text(interview.document))
    toml_schema(interview.document).problems()


def test_where_nothing_is_proposed_it_says_what_to_type():
    interview, _ = answered(new_interview(["sex", "when_date", "income", "q", "y"]), "y", "")
    for kind in ("category", "date", "number", "unknown"):
        assert interview.question.default == ""  # words of others would make every cell a stranger
        assert interview.question.hint == asking.HINTS[kind].format(thousands=",")
        assert interview.answer("") is None


def test_what_is_typical_fills_missing_cells_where_the_proposal_is_taken():
    document = new_interview(["weight_kg", "age", "cost"], target="cost")
    interview, wrong = answered(document, "", "", "18 to 90", "0 to 9")
    assert wrong == []
    assert interview.document["columns"] == {
        "weight_kg": {"bounds": [0, 300]},
        "age": {"bounds": [18, 90]},  # what was typed is not what was proposed
        "cost": {"bounds": [0, 9]},
    }
