"""Exports of models without a schema, the dialects of SQL, and what a formula says in comments."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import sqlglot
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from raw_tables import by_duckdb, by_libreoffice, by_onnx, by_r, by_sqlite, raw_model
from sklearn.base import is_classifier
from sqlglot import exp

from dpscreen import DPFrankWolfe, PrivateLasso, PrivateLogisticLasso, load
from dpscreen.models.code import dialects, formula_of
from dpscreen.models.raw import NoFormula
from dpscreen.tables.columns.base import BLANKS, value_of

NAMES = ("age", 'the "income", in €', "a`b\\", "Robert'); DROP TABLE rows;--", "smoker")
LEVELS = ("A", 'it\'s "B"', "C\\")
CLOSE = {"rtol": 1e-9, "atol": 1e-15}  # 1 less a probability next to 1 has no more digits


def table(n_rows: int = 3000) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-2, 12, (n_rows, len(NAMES))), columns=list(NAMES))
    return X, X.to_numpy() @ np.array([1, -2, 3, 0.5, 4]) + rng.normal(0, 1, n_rows)


TOLD = {"epsilon": 5, "delta": 1e-6, "feature_bounds": (0, 10)}


@pytest.fixture(scope="module")
def models():
    X, y = table()
    bounds = {"target_bounds": (0, 60)}  # narrower than the predictions
    classes = (y > np.median(y)).astype(int)
    return {
        "line": PrivateLasso(**TOLD, **bounds).fit(X, y),
        "chances": PrivateLogisticLasso(**TOLD).fit(X, classes),
        "frank-wolfe": DPFrankWolfe(**TOLD, **bounds, radius=90, n_iter=20, clip=30).fit(X, y),
    }


def wanted(model, X):
    return model.predict_proba(X)[:, 1] if is_classifier(model) else model.predict(X)


def exported(model, X, home, *, office=False):
    """Yield what each export gives that can be run here; a sheet takes long."""
    yield by_sqlite(model.to_formula("sql", dialect="sqlite"), X)
    yield by_duckdb(model.to_formula("sql", dialect="duckdb"), X)
    yield wanted(model.to_sklearn(), X)
    yield by_onnx(model.to_onnx(), X)
    if shutil.which("Rscript"):
        yield by_r(model.to_formula("r"), X, home)
    if office and shutil.which("soffice"):
        yield by_libreoffice(model.to_formula("excel"), X, home)


@pytest.mark.other_software
@pytest.mark.parametrize("kind", ["line", "chances", "frank-wolfe"])
def test_exports_give_what_predict_gives_beyond_the_bounds_too(models, kind, tmp_path):
    model, X = models[kind], table(200)[0]
    assert ((X < 0) | (X > 10)).any(axis=None)
    for found in exported(model, X, tmp_path, office=kind == "frank-wolfe"):
        np.testing.assert_allclose(found, wanted(model, X), **CLOSE)


@pytest.mark.other_software
@pytest.mark.parametrize(
    "levels", [[*LEVELS, "B"], ["10", "9", "1", "2.5"], ["x", "true", "0"], ["no", "yes"]]
)
@pytest.mark.parametrize("outcomes", [False, True])
def test_exports_take_the_frame_of_the_fit(levels, outcomes, tmp_path):
    rng = np.random.default_rng(2)
    ward = rng.choice(levels, 4000)
    X = pd.DataFrame({"sex": rng.random(4000) < 0.5, "ward": ward, "age": rng.uniform(0, 90, 4000)})
    y = 9 * (ward == levels[0]) - 4 * (ward == levels[1]) + X["age"] / 10 + rng.normal(size=4000)
    declared = {"feature_bounds": (0, 80), "categories": {"ward": levels}}
    budget = {"epsilon": 20, "delta": 1e-6}
    if outcomes:
        model = PrivateLogisticLasso(**declared, **budget).fit(X, y > 4)
    else:
        model = PrivateLasso(**declared, **budget, target_bounds=(1, 9)).fit(X, y)
    assert np.unique(model.coef_).size >= min(4, len(levels) + 1)
    model.save(tmp_path / "model.json")
    few = X[:150]
    loaded = load(tmp_path / "model.json").to_sklearn()
    np.testing.assert_allclose(wanted(loaded, few), wanted(model, few), **CLOSE)
    for found in exported(model, few, tmp_path, office=levels[0] == "x" and not outcomes):
        np.testing.assert_allclose(found, wanted(model, few), **CLOSE)
    if levels[0] == "10":  # stored as numbers
        stored = few.assign(ward=few["ward"].astype(float))
        for found in (
            by_sqlite(model.to_formula("sql", dialect="sqlite"), stored),
            by_duckdb(model.to_formula("sql", dialect="duckdb"), stored),
            wanted(model.to_sklearn(), stored),
        ):
            np.testing.assert_allclose(found, wanted(model, few), **CLOSE)
    if levels[0] == "no":  # a database made booleans of them
        found = by_duckdb(model.to_formula("sql"), few.assign(ward=few["ward"] == "yes"))
        np.testing.assert_allclose(found, wanted(model, few), **CLOSE)


def test_columns_without_names_are_one_array():
    X, y = table(500)
    model = PrivateLasso(**TOLD, target_bounds=(0, 60)).fit(X.to_numpy(), y)
    found = model.to_sklearn().predict(X.to_numpy())
    np.testing.assert_allclose(found, model.predict(X.to_numpy()), **CLOSE)
    np.testing.assert_allclose(by_onnx(model.to_onnx(), X), found, **CLOSE)


def test_a_missing_number_has_no_prediction_without_a_schema(models):
    X = table(3)[0]
    X.loc[1, "age"] = None
    for dialect, run in (("sqlite", by_sqlite), ("duckdb", by_duckdb)):
        found = run(models["line"].to_formula("sql", dialect=dialect), X)
        assert np.isnan(found).tolist() == [False, True, False]


@pytest.mark.parametrize("library", ["onnx", "sqlglot"])
def test_without_its_library_the_extra_is_named(models, library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    extra = {"onnx": "onnx", "sqlglot": "sql"}[library]
    with pytest.raises(ImportError, match=rf"pip install 'dpscreen\[{extra}\]'"):
        models["line"].to_onnx() if extra == "onnx" else models["line"].to_formula("sql")


# --- dialects of SQL ------------------------------------------------------------------------------

MARKS = (
    *("'", '"', "\\", "`", "\n", "\r", "\t", "--", "/*", "*/", ";", "[", "]", "$$", "{", "}", "%"),
    *("#", "\x1f", "\u2028", "N'", "q'[", "' OR 1=1 --", "\\' OR 1=1 --", "'); DROP TABLE t;--"),
)
names = st.lists(
    st.one_of(st.sampled_from(MARKS), st.characters(codec="utf-8", exclude_characters="\0")),
    min_size=1,
    max_size=5,
).map("".join)


@pytest.mark.parametrize("dialect", dialects())
@settings(max_examples=12, deadline=None)
@given(column=names, level=names)
@example(column="ward", level="\\' OR 1=1 --")
@example(column="\\", level="\\")
@example(column='a"b`c]d', level="'; DROP TABLE rows; --")
def test_no_name_ends_a_literal_in_any_dialect(models, dialect, column, level):
    level = level.strip(BLANKS)
    assume(level and isinstance(value_of(level), str))
    release = replace(
        models["line"].released(),
        names=(f"{column}={level}",),
        coefficients=np.array([2.0]),
        feature_bounds=np.array([(0.0, 1.0)]),
        categories={column: ("", level)},
    )
    formula = formula_of(release, "sql", dialect=dialect)
    statements = sqlglot.parse(f"SELECT {formula} AS p FROM t", read=dialect)
    assert len(statements) == 1
    assert len(statements[0].expressions) == 1
    texts = [one.this for one in statements[0].find_all(exp.Literal) if one.is_string]
    assert texts == [level]
    assert {one.name for one in statements[0].find_all(exp.Column)} == {column}


@pytest.mark.parametrize(
    ("which", "some"),
    [("marks", slice(0, None, 2)), ("costs", slice(1, None, 4)), ("outcomes", slice(3, None, 4))],
)
def test_every_dialect_writes_a_model(which, some, tmp_path):
    model = raw_model(which, tmp_path)
    for dialect in dialects()[some]:
        formula = model.to_formula("sql", dialect=dialect)
        assert len(sqlglot.parse(f"SELECT {formula} AS p FROM t", read=dialect)) == 1


def test_a_dialect_must_be_known_and_be_named_where_a_backslash_is(models):
    model = models["line"]
    with pytest.raises(NoFormula, match=r"Did you mean.*snowflake"):
        model.to_formula("sql", dialect="snowflak")
    with pytest.raises(NoFormula, match="choose the dialect"):
        model.to_formula("sql")  # a column is called a`b\
    with pytest.raises(ValueError, match="SQL alone"):
        model.to_formula("r", dialect="duckdb")
    with pytest.raises(NoFormula, match="zero byte"):
        formula_of(replace(model.released(), names=("\0", *NAMES[1:])), "r")
    tame = replace(model.released(), names=tuple("abcde"))
    assert formula_of(tame, "sql") == formula_of(tame, "sql", dialect="postgres")


# --- what a formula says --------------------------------------------------------------------------


def test_a_model_of_nothing_and_one_that_is_too_large(models, tmp_path):
    release, X = models["line"].released(), table(4)[0]
    empty = replace(release, coefficients=np.zeros(5), intercept=7.5)
    assert by_sqlite(formula_of(empty, "sql", dialect="sqlite"), X).tolist() == [7.5] * 4
    from dpscreen.models.onnx_graph import onnx_of
    from dpscreen.models.pipelines import pipeline_of

    assert pipeline_of(empty).predict(X).tolist() == [7.5] * 4
    assert by_onnx(onnx_of(empty), X).tolist() == [7.5] * 4
    many = tuple(f"x{j}" for j in range(1100))
    large = replace(
        release,
        names=many,
        named=False,
        coefficients=np.full(1100, 1 / 3),
        feature_bounds=np.array([(-1 / 3, 1 / 3)] * 1100),
    )
    with pytest.raises(NoFormula, match="too large"):
        formula_of(large, "excel")
    wide = pd.DataFrame(np.full((2, 1100), 0.01), columns=list(many))
    found = by_sqlite(formula_of(large, "sql", dialect="sqlite"), wide)  # deep sums are refused
    np.testing.assert_allclose(found, np.clip(release.intercept + 11 / 3, 0, 60))
