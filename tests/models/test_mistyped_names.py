"""A name that is none of the public ones gets a guess, by one function wherever it is asked."""

import numpy as np
import pandas as pd
import pytest

from dpscreen import PrivateOLS
from dpscreen.tables.declaration import SchemaProblem, TableProblem, match_names
from dpscreen.tables.schema import TableSchema

NAMES = ("age", "income", "ward")
COMMON = {"epsilon": 5, "delta": 1e-6, "target_bounds": (0, 10)}


def frame(n_rows=60):
    rng = np.random.default_rng(0)
    wards = np.array(["A", "B"])[rng.integers(2, size=n_rows)]
    return pd.DataFrame({"age": rng.random(n_rows), "income": rng.random(n_rows), "ward": wards})


def schema():
    fields = [
        {"name": name, "type": "number", "constraints": {"minimum": 0, "maximum": 9}}
        for name in ("age", "income", "cost")
    ]
    return TableSchema.from_dict({"fields": fields, "dpscreen": {"target": "cost"}})


def test_columns_of_a_table_that_does_not_fit_its_schema():
    told = r"it lacks 'income' and .* of column 2\. Is column 2 'income'\?"
    with pytest.raises(TableProblem, match=told):
        match_names("t.csv", ["age", "incom", "cost"], schema())


def test_a_first_line_that_may_be_a_row_is_not_repeated():
    with pytest.raises(TableProblem) as raised:
        match_names("t.csv", ["Agatha", "4711", "incomer"], schema())
    assert "Agatha" not in str(raised.value)
    assert "4711" not in str(raised.value)
    assert "incomer" not in str(raised.value)


@pytest.mark.parametrize(
    ("key", "value"), [("target", "cots"), ("unit", "agge"), ("features", ["incme"])]
)
def test_names_in_a_declaration(key, value):
    document = schema().to_dict()
    document["dpscreen"] |= {key: value}
    with pytest.raises(SchemaProblem, match=r"did you mean '(cost|age|income)'"):
        TableSchema.from_dict(document).check()


def test_features_of_a_table():
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.random((4000, 2)), columns=["age", "income"])
    model = PrivateOLS(**COMMON, feature_bounds=(0, 1)).fit(X, X["age"] + X["income"])
    with pytest.raises(ValueError, match=r"'incom'; did you mean 'income'\?"):
        model.wald_test(["incom"])
