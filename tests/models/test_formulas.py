"""A model as SQL, R, Excel, scikit-learn's own steps and ONNX: the same numbers as `predict`."""

from __future__ import annotations

import math
import re
import sqlite3
import sys
from dataclasses import replace
from operator import eq

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier

from dpscreen import PrivateLasso, PrivateLogistic, load
from dpscreen._core.words import letters, plain
from dpscreen.models.formulas import NoFormula, comments_of, formula_of
from dpscreen.models.release import summary_of
from dpscreen.tables.schema import TableSchema

NAMES = ("age", 'the "income", in €', "a`b\\", "Robert'); DROP TABLE rows;--", "smoker")
LEVELS = ("A", 'it\'s "B"', "C\\")


def table(n_rows: int = 3000) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-2, 12, (n_rows, len(NAMES))), columns=list(NAMES))
    return X, X.to_numpy() @ np.array([1, -2, 3, 0.5, 4]) + rng.normal(0, 1, n_rows)


def quiet(model, X, y):
    with pytest.warns(match="not private"):
        return model.fit(X, y)


@pytest.fixture(scope="module")
def models():
    X, y = table()
    told = {"epsilon": 5, "delta": 1e-6, "feature_bounds": (0, 10), "random_state": 1}
    line = quiet(PrivateLasso(**told, target_bounds=(-50, 100)), X, y)
    chances = quiet(PrivateLogistic(**told), X, (y > np.median(y)).astype(int))
    return {"line": line, "chances": chances}


def test_comments_tell_what_stands_for_a_column(models):
    name, other = models["line"].released().names[:2]
    day = {"name": other, "type": "date", "constraints": {"minimum": "2020-01-31"}}
    schema = {"fields": [{"name": name, "type": "number"}, day]}
    schema["dpscreen"] = {"target": "y", "transform": {name: "log", "y": "sqrt"}}
    release = models["line"].described(schema=schema)
    told = [line.removeprefix("-- ") for line in comments_of(release, "sql")]
    assert f"{plain(name)} stands for log({plain(name)})." in told
    assert f"{plain(other)} stands for days since 2020-01-31." in told
    assert told[-1].startswith("Missing cells must be filled before")
    assert {told[-3], told[-2]} <= set(summary_of(release).notes)
    assert not any("stands" in line for line in comments_of(models["line"].released(), "sql"))


def wanted(model, X):
    return model.predict_proba(X)[:, 1] if is_classifier(model) else model.predict(X)


def by_sqlite(formula: str, X: pd.DataFrame) -> np.ndarray:
    with sqlite3.connect(":memory:") as base:
        base.create_function("EXP", 1, math.exp)  # not every build of SQLite has it
        X.to_sql("rows", base, index=False)
        return np.array([value for (value,) in base.execute(f"SELECT {formula} FROM rows")])


def by_r(formula: str, X: pd.DataFrame) -> np.ndarray:
    """Evaluate what R would, with numpy: names in backticks, pmin, pmax and plogis."""
    formula = formula.replace("%in%", "==").replace("is.na", "isna")
    columns: dict[str, object] = {
        "ifelse": np.where,
        "isna": pd.isna,
        "pmin": np.minimum,
        "pmax": np.maximum,
        "plogis": lambda z: 1 / (1 + np.exp(-z)),
    }

    def name(found: re.Match[str]) -> str:
        column = re.sub(r"\\(.)", r"\1", found[1])
        columns[f"column{len(columns)}"] = X[column].to_numpy()
        return f"column{len(columns) - 1}"

    python = re.sub(r"`((?:\\.|[^`\\])*)`", name, formula)
    return np.asarray(eval(python, {"__builtins__": {}}, columns), dtype=np.float64)


class Empty:
    """A cell with nothing in it: alike to an empty text, and no more than 0 in a sum."""

    __hash__ = None
    __eq__ = lambda self, other: other == ""  # noqa: E731
    __radd__ = lambda self, other: other  # noqa: E731


def in_excel(*values):
    """Return the largest of some cells: MAX passes over truths of cells, a sum does not."""
    return max(one for one in values if not isinstance(one, bool))


def by_excel(formula: str, X: pd.DataFrame) -> np.ndarray:
    """Evaluate what a sheet would, row by row."""
    assert formula.startswith("=")
    texts = re.sub(r'"((?:[^"]|"")*)"', lambda one: repr(one[1].replace('""', '"')), formula[1:])
    texts = texts.replace("='',", "=='',")
    run = compile(texts, "cell", "eval")
    known = {
        "MIN": min,
        "MAX": lambda a, b: max(0 if a == "" else a, b),
        "EXP": math.exp,
        "EXACT": eq,
        "__builtins__": {},
    }
    known["IF"] = lambda truth, yes, no: yes if truth else no
    cells = [f"{letters(j).upper()}2" for j in range(X.shape[1])]
    shown = X.astype(object).where(X.notna(), Empty())
    rows = (dict(zip(cells, row, strict=True)) for row in shown.to_numpy().tolist())
    return np.array([eval(run, known, row) for row in rows])


@pytest.mark.parametrize(
    ("language", "run"), [("sql", by_sqlite), ("r", by_r), ("excel", by_excel)]
)
@pytest.mark.parametrize("kind", ["line", "chances"])
def test_the_formula_gives_what_predict_gives_beyond_the_bounds_too(models, kind, language, run):
    model, X = models[kind], table(200)[0]
    assert ((X < 0) | (X > 10)).any(axis=None)
    np.testing.assert_allclose(run(model.to_formula(language), X), wanted(model, X), rtol=1e-12)


@pytest.mark.parametrize("kind", ["line", "chances"])
def test_scikit_learns_own_steps_predict_the_same(models, kind):
    model, X = models[kind], table(200)[0]
    pipeline = model.to_sklearn()
    assert {type(step).__module__.split(".")[0] for _, step in pipeline.steps} == {"sklearn"}
    np.testing.assert_allclose(wanted(pipeline, X), wanted(model, X), rtol=1e-9)


@pytest.mark.parametrize("levels", [["D", "A", "C", "B"], ["10", "9", "1", "2.5"]])
@pytest.mark.parametrize("outcomes", [False, True])
def test_scikit_learns_own_steps_take_the_frame_of_the_fit(levels, outcomes, tmp_path):
    rng = np.random.default_rng(2)
    ward = rng.choice(np.array(levels) if levels[0] == "D" else np.array(levels, float), 4000)
    X = pd.DataFrame({"sex": rng.random(4000) < 0.5, "ward": ward, "age": rng.uniform(0, 90, 4000)})
    y = 9 * (ward == ward[0]) - 4 * (ward == ward[1]) + X["age"] / 10 + rng.normal(size=4000)
    declared = {"feature_bounds": (0, 80), "categories": {"ward": levels}}
    budget = {"epsilon": 20, "delta": 1e-6, "random_state": 0}
    if outcomes:
        model = quiet(PrivateLogistic(**declared, **budget), X, y > 4)
    else:
        model = quiet(PrivateLasso(**declared, **budget, target_bounds=(-50, 50)), X, y)
    pipeline = model.to_sklearn()
    assert np.unique(model.coef_).size > 3
    np.testing.assert_allclose(wanted(pipeline, X), wanted(model, X), rtol=1e-9)
    model.save(tmp_path / "model.json")
    loaded = load(tmp_path / "model.json").to_sklearn()
    np.testing.assert_allclose(wanted(loaded, X), wanted(model, X), rtol=1e-9)


@pytest.mark.parametrize("kind", ["line", "chances"])
def test_the_onnx_model_predicts_the_same(models, kind):
    onnx, reference = pytest.importorskip("onnx"), pytest.importorskip("onnx.reference")
    model, X = models[kind], table(200)[0]
    run = reference.ReferenceEvaluator(onnx.load_from_string(model.to_onnx()))
    found = run.run(None, {"features": X.to_numpy()})[-1]
    np.testing.assert_allclose(found[:, -1], wanted(model, X), rtol=1e-9)


def test_without_the_converter_the_extra_is_named(models, monkeypatch):
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'dpscreen\[onnx\]'"):
        models["line"].to_onnx()


@pytest.mark.parametrize("declared", ["in the model", "in its schema"])
def test_levels_are_compared_with_texts(declared):
    rng = np.random.default_rng(1)
    wards = rng.choice(LEVELS, 4000)
    X = pd.DataFrame({"ward": wards, "age": rng.uniform(0, 90, 4000)})
    y = 10 * (wards == LEVELS[1]) - 5 * (wards == LEVELS[2]) + X["age"] / 10
    model = PrivateLasso(
        epsilon=5,
        delta=1e-6,
        feature_bounds={"age": (0, 100)},
        target_bounds=(-20, 40),
        categories={"ward": list(LEVELS)},
        random_state=2,
    )
    release = quiet(model, X, y).released()
    if declared == "in its schema":
        field = {"name": "ward", "constraints": {"enum": list(LEVELS)}}
        release = replace(release, categories={}, schema={"fields": [field, "age"]})
    for language, run in (("sql", by_sqlite), ("r", by_r), ("excel", by_excel)):
        found = run(formula_of(release, language), X[:100])
        np.testing.assert_allclose(found, model.predict(X[:100]), rtol=1e-12)
    assert "Cells: A2 ward, B2 age" in list(comments_of(release, "excel"))


def test_a_formula_fills_missing_cells_as_predict_does(tmp_path):
    levels = {"age": (0, 100), "ward": ["A", "B", "C"], "pay": (0, 5000), "y": (-20, 40)}
    limits = {
        name: dict(zip(("minimum", "maximum"), one, strict=False))
        if isinstance(one, tuple)
        else {"enum": one}
        for name, one in levels.items()
    }
    fields = [
        {"name": name, "type": "string" if "enum" in one else "number", "constraints": one}
        for name, one in limits.items()
    ]
    told = {"fields": fields, "dpscreen": {"target": "y", "fill": {"age": 30, "ward": "B"}}}
    schema = TableSchema.from_dict(told)
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"age": rng.uniform(-5, 110, 3000), "ward": rng.choice(["A", "B", "C"], 3000)})
    X["pay"] = rng.uniform(0, 60, 3000)
    rows = schema.encode(X.assign(y=X["age"] / 10 + 9 * (X["ward"] == "B") - X["pay"] / 9))
    bounds = {"feature_bounds": schema.feature_bounds, "target_bounds": schema.target_bounds}
    model = PrivateLasso(epsilon=5, delta=1e-6, **bounds, random_state=1)
    model = quiet(model, pd.DataFrame(rows.X, columns=schema.feature_names), rows.y)
    release = model.described(schema=schema.to_dict())
    assert (release.coefficients != 0).sum() >= 3
    assert release.feature_bounds[-1][1] < 2500  # the middle of the declared ones lies beyond
    holes = X[:60].mask(rng.random((60, 3)) < 0.4, None)
    expected = model.predict(
        pd.DataFrame(schema.encode_features(holes), columns=schema.feature_names)
    )
    for language, run in (("sql", by_sqlite), ("r", by_r), ("excel", by_excel)):
        np.testing.assert_allclose(run(formula_of(release, language), holes), expected, rtol=1e-12)
        assert any("count as they did" in line for line in comments_of(release, language))


def test_a_truth_in_a_sheet_counts_as_1(models):
    model, X = models["line"], table(20)[0]
    X["smoker"] = np.arange(20) % 2
    shown = X.astype({"smoker": bool})
    np.testing.assert_allclose(by_excel(model.to_formula("excel"), shown), model.predict(X))


def test_a_model_of_nothing_and_one_that_is_too_large(models):
    release = models["line"].released()
    empty = replace(release, coefficients=np.zeros(5))
    assert [formula_of(empty, one) for one in ("sql", "excel")] == [
        formula_of(empty, "r")[1:-1],
        f"={formula_of(empty, 'sql')}",
    ]
    many = tuple(f"x{j}" for j in range(400))
    large = replace(
        release,
        names=many,
        coefficients=np.full(400, 1 / 3),
        feature_bounds=np.array([(-1 / 3, 1 / 3)] * 400),
    )
    with pytest.raises(NoFormula, match="too large"):
        formula_of(large, "excel")


def test_columns_of_a_sheet_have_their_names():
    assert [letters(j).upper() for j in (0, 25, 26, 701, 702)] == ["A", "Z", "AA", "ZZ", "AAA"]
