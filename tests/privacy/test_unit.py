"""The unit of privacy says its own sentence, and reads it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpscreen.privacy.budget import ROW, Unit, worded


@given(st.integers(1, 2**20), st.none() | st.text(min_size=1))
def test_a_unit_reads_what_it_says(rows, column):
    unit = Unit(rows, column=column)
    assert Unit.of_words(str(unit)) == unit


@given(st.text())
def test_only_its_own_sentences_are_read(text):
    named = f"one value of the column {text}"
    for words in (text, f"{text} (at most 3 rows)", f"{named} (at most 3 rows)"):
        read = Unit.of_words(words)
        assert read is None or str(read) == words


def test_the_sentences():
    assert str(Unit()) == "one row"
    assert Unit() == ROW
    assert str(Unit(3)) == "one unit (at most 3 rows)"
    assert str(Unit(3, column="id")) == "one value of the column 'id' (at most 3 rows)"
    assert str(Unit(1, column="id")) == "one value of the column 'id' (at most 1 row)"


@pytest.mark.parametrize(
    "words",
    [
        "",
        "one rows",
        "one unit (at most 1 row)",
        "one unit (at most 3 row)",
        "one unit (at most 03 rows)",
        f"one unit (at most {'9' * 5000} rows)",
        "one value of the column 'id'",
        "one value of the column id (at most 3 rows)",
        "one value of the column b'x' (at most 3 rows)",
        "one value of the column '\\d' (at most 3 rows)",
        "one value of the column '\\U00ffffff' (at most 3 rows)",
        "one value of the column 'a' + 'b' (at most 3 rows)",
    ],
)
def test_other_words_are_none_of_its_own(words):
    assert Unit.of_words(words) is None


def test_a_row_is_a_row_only_if_nobody_owns_it():
    assert Unit().is_row
    assert not Unit(1, column="id").is_row
    assert not Unit(2).is_row


def test_words_of_others_may_tell_a_number_of_rows():
    assert worded("one household (at most 12 rows)") == ("one household", "12")
    assert worded("one household") == ("one household", None)


@pytest.mark.parametrize("rows", [0, -1])
def test_a_unit_has_at_least_one_row(rows):
    with pytest.raises(ValueError, match="rows_per_unit"):
        Unit(rows)
