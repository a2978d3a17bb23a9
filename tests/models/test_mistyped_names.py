"""A name that is none of the public ones gets a guess, by one function wherever it is asked."""

import pytest

from dpscreen.tables.declaration import TableProblem, match_names
from dpscreen.tables.schema import TableSchema

NAMES = ("age", "income", "ward")
COMMON = {"epsilon": 5, "delta": 1e-6, "target_bounds": (0, 10)}


def schema():
    fields = [
        {"name": name, "type": "number", "constraints": {"minimum": 0, "maximum": 9}}
        for name in ("age", "income", "cost")
    ]
    return TableSchema.from_dict({"fields": fields, "dpscreen": {"target": "cost"}})


def test_columns_of_a_table_that_does_not_fit_its_schema():
    told = r"it lacks 'income' and .* column 2\. Is column 2 'income'\?"
    with pytest.raises(TableProblem, match=told):
        match_names("t.csv", ["age", "incom", "cost"], schema())


def test_a_first_line_that_may_be_a_row_is_not_repeated():
    with pytest.raises(TableProblem) as raised:
        match_names("t.csv", ["Agatha", "4711", "incomer"], schema())
    assert "Agatha" not in str(raised.value)
    assert "4711" not in str(raised.value)
    assert "incomer" not in str(raised.value)
