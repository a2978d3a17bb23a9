"""Every export, executed on raw tables, gives what `dpscreen predict` gives for their cells."""

from __future__ import annotations

import pickle
import shutil

import numpy as np
import pandas as pd
import pytest
from raw_tables import (
    TABLES,
    by_duckdb,
    by_libreoffice,
    by_onnx,
    by_r,
    by_sqlite,
    odd_table,
    predicted,
    raw_model,
    raw_table,
    typed,
)
from sklearn.base import is_classifier

from dpscreen import load
from dpscreen.models.raw import NoFormula
from dpscreen.tables.asking import settings_meant
from dpscreen.tables.toml import descriptor_of

CLOSE = {"rtol": 1e-9, "atol": 0}
needs_r = pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed")
needs_office = pytest.mark.skipif(
    shutil.which("soffice") is None, reason="LibreOffice is not installed"
)


class Prepared:
    """A model with its tables, as texts, typed, and with odd cells; and what it predicts."""

    def __init__(self, which, home):
        self.which, self.home = which, home
        self.model = raw_model(which, home)
        self.texts, self.odd = raw_table(which), odd_table(which)
        self.expected, self.expected_odd = (
            predicted(self.model, table, home) for table in (self.texts, self.odd)
        )

    def tables(self):
        """Yield all texts at once, as formulas are long, and the typed table."""
        both = pd.concat([self.texts, self.odd], ignore_index=True)
        yield both, np.concatenate([self.expected, self.expected_odd])
        yield typed(self.texts, self.which), self.expected


@pytest.fixture(scope="module", params=list(TABLES))
def raw(request, tmp_path_factory):
    return Prepared(request.param, tmp_path_factory.mktemp(request.param))


def test_the_tables_try_something(raw):
    assert (raw.model.coef_ != 0).all()
    assert len(np.unique(raw.expected)) > 150
    assert (typed(raw.texts, raw.which).isna().mean() > 0.05).all()


@pytest.mark.parametrize(
    ("language", "run"),
    [
        ("sqlite", by_sqlite),
        ("duckdb", by_duckdb),
        pytest.param("r", by_r, marks=[needs_r, pytest.mark.other_software]),
    ],
)
def test_a_formula_predicts_from_raw_cells(raw, language, run, tmp_path):
    given = ("r",) if language == "r" else ("sql",)
    more, home = ({}, (tmp_path,)) if language == "r" else ({"dialect": language}, ())
    formula = raw.model.to_formula(*given, **more)
    for table, expected in raw.tables():
        np.testing.assert_allclose(run(formula, table, *home), expected, **CLOSE)


def test_a_pipeline_predicts_from_raw_cells_without_this_package(raw):
    content = pickle.dumps(raw.model.to_sklearn())
    assert b"dpscreen" not in content.replace(b"dpscreen 0", b"")  # but for the statement's words
    steps = pickle.loads(content)
    for table, expected in raw.tables():
        found = steps.predict_proba(table)[:, 1] if is_classifier(steps) else steps.predict(table)
        np.testing.assert_allclose(found, expected, **CLOSE)


def test_onnx_predicts_from_raw_cells_and_holds_no_constant_that_nothing_uses(raw):
    """ONNX Runtime warned of each, to whoever loaded the model."""
    onnx, _ = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    content, table = raw.model.to_onnx(), typed(raw.texts, raw.which)
    np.testing.assert_allclose(by_onnx(content, table), raw.expected, **CLOSE)
    graph = onnx.load_from_string(content).graph
    used = {name for node in graph.node for name in node.input}
    assert {one.name for one in graph.initializer} <= used


@needs_office
@pytest.mark.other_software
def test_a_sheet_predicts_from_raw_cells_and_refuses_texts_that_it_may_misread(raw, tmp_path):
    if raw.which == "interactions":
        pytest.skip("the model is too large for a cell")
    formula, table = raw.model.to_formula("excel"), typed(raw.texts, raw.which)
    both = pd.concat([table.astype(object), raw.odd.astype(object)])
    found = by_libreoffice(formula, both, tmp_path)
    np.testing.assert_allclose(found[: len(table)], raw.expected, **CLOSE)
    odd = found[len(table) :]
    assert np.isnan(odd).any()
    told = ~np.isnan(odd)
    np.testing.assert_allclose(odd[told], raw.expected_odd[told], **CLOSE)


def test_onnx_gives_nan_for_a_text_that_may_be_a_level_in_another_spelling(tmp_path):
    pytest.importorskip("onnxruntime")
    model = raw_model("marks", tmp_path)
    table = typed(raw_table("marks", 5), "marks")
    table["select"] = ["two", " two", "1.00", "stranger", "1.0"]
    found = by_onnx(model.to_onnx(), table)
    assert np.isnan(found).tolist() == [False, True, True, False, False]


def test_numbers_with_a_decimal_comma_are_read_where_they_can_be_told_from_plain_ones(tmp_path):
    fields = [
        one | ({"decimalChar": ","} if one["name"] == "visits" else {})
        for one in TABLES["marks"]["fields"]
    ]
    model = raw_model("marks", tmp_path)
    schema = model.schema | {"fields": fields}
    with pytest.raises(NoFormula, match="decimal comma"):
        model.to_formula("sql", schema=schema, dialect="sqlite")
    texts = raw_table("marks")
    steps = model.to_sklearn(schema=schema)
    expected = predicted(model, texts, tmp_path)
    np.testing.assert_allclose(steps.predict(typed(texts, "marks")), expected, **CLOSE)
    with pytest.raises(ValueError, match="numbers of column 'visits' are written with signs"):
        steps.predict(texts)


@pytest.mark.parametrize(("dialect", "run"), [("sqlite", by_sqlite), ("duckdb", by_duckdb)])
def test_bounds_answered_with_signs_are_exported_to_sql(dialect, run, tmp_path):
    """Such an answer declares signs around numbers: SQL reads the usual ones, and no others."""
    document = {"columns": {"visits": settings_meant("$0 to $1,400")}}
    (answered,) = descriptor_of(document)[0]["fields"]
    signs = {key: answered[key] for key in ("groupChar", "bareNumber")}
    fields = [one | (signs if one["name"] == "visits" else {}) for one in TABLES["marks"]["fields"]]
    model = raw_model("marks", tmp_path)
    texts = raw_table("marks")
    formula = model.to_formula("sql", schema=model.schema | {"fields": fields}, dialect=dialect)
    expected = predicted(model, texts, tmp_path)
    for table in (texts, typed(texts, "marks")):
        np.testing.assert_allclose(run(formula, table), expected, **CLOSE)
    read = ["$12", "1,200", "$ 1,200.5", "-$3", "7%", "1,200,300", ".5", "1e2", "none", "$"]
    odd = texts.head(len(read)).assign(visits=read)
    model.save(tmp_path / "signed.json", schema=model.schema | {"fields": fields})
    expected = predicted(load(tmp_path / "signed.json"), odd, tmp_path)
    np.testing.assert_allclose(run(formula, odd), expected, **CLOSE)
    unclear = ["1,20", "1$2", "12 EUR", "1234,567", "1.5,000", ",120"]
    assert np.isnan(run(formula, texts.head(6).assign(visits=unclear))).all()


def test_a_schema_that_cannot_be_used_is_refused(tmp_path):
    model = raw_model("marks", tmp_path)
    for schema, why in (({"fields": 7}, "cannot be used"), (TABLES["costs"], "does not describe")):
        for export in (lambda given: model.to_formula("r", schema=given),
                       lambda given: model.to_sklearn(schema=given),
                       lambda given: model.to_onnx(schema=given)):  # fmt: skip
            with pytest.raises(NoFormula, match=why):
                export(schema)
