"""`dpscreen predict`."""

from __future__ import annotations

import os
from functools import partial

import numpy as np
import pandas as pd
import pytest

import dpscreen
from dpscreen.tables.schema import TableSchema
from tools.command import failed, here, invoke, succeeded

DESCRIPTOR = {
    "fields": [
        {"name": "age", "type": "number", "constraints": {"minimum": 0, "maximum": 100}},
        {"name": "sex", "type": "string", "constraints": {"enum": ["f", "m"]}},
        {"name": "cost", "type": "number", "constraints": {"minimum": 1, "maximum": 1000}},
    ],
    "dpscreen": {"target": "cost", "transform": {"cost": "log"}},
}
TABLE = "age,sex\n40,f\n50,m\n-20,m\n"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("models")
    schema = TableSchema.from_dict(DESCRIPTOR)
    rng = np.random.default_rng(0)
    names = list(schema.feature_names)
    low, high = schema.feature_bounds.T
    X = pd.DataFrame(rng.uniform(low, high, (3000, len(names))), columns=names)
    y = 0.05 * X["age"] + rng.normal(0, 0.1, 3000)
    model = dpscreen.PrivateLasso(
        epsilon=2,
        delta=1e-6,
        feature_bounds=schema.feature_bounds.tolist(),
        target_bounds=schema.target_bounds,
    ).fit(X, y)
    model.save(home / "model.json", schema=DESCRIPTOR)
    model.save(home / "bare.json")
    model.save(home / "other.json", schema=DESCRIPTOR | {"fields": DESCRIPTOR["fields"][::2]})
    model.save(home / "nonsense.json", schema={"fields": 7})
    (home / "new.csv").write_text(TABLE, encoding="utf-8")
    (home / "wrong.csv").write_text("age,years\n1,2\n", encoding="utf-8")
    return home


@pytest.fixture(autouse=True)
def _at_home(home, monkeypatch):
    monkeypatch.chdir(home)


predict = partial(invoke, "predict")


def expected():
    model = dpscreen.load("model.json")
    rows = np.clip([[40, 0], [50, 1], [0, 1]], *model.feature_bounds_.T)
    found = np.exp(np.clip(rows @ model.coef_ + model.intercept_, 0, np.log(1000)))
    np.testing.assert_allclose(model.predict(pd.read_csv("new.csv")), found, rtol=1e-12)
    return found


def read(text):
    head, *rest = text.splitlines()
    assert head == "prediction"
    return np.array([float(line) for line in rest])


def test_predictions_on_the_shell():
    done = succeeded(here("predict", "model.json", "new.csv"), stderr="")
    np.testing.assert_allclose(read(done.stdout), expected(), rtol=1e-12)


def test_predictions_in_a_file(tmp_path):
    done = succeeded(predict("model.json", "new.csv", "-o", tmp_path / "out.csv"), stdout="")
    assert "3 predictions written to" in done.stderr
    np.testing.assert_allclose(read((tmp_path / "out.csv").read_text()), expected(), rtol=1e-12)
    failed(predict("model.json", "new.csv", "-o", tmp_path / "out.csv"), 1, "exists already")
    assert predict("model.json", "new.csv", "-o", tmp_path / "out.csv", "--force").exit_code == 0
    assert [one.name for one in tmp_path.iterdir()] == ["out.csv"]


def test_a_planted_link_is_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / f".out.csv.{os.getpid()}.tmp").symlink_to(victim)
    (tmp_path / "out.csv").symlink_to(victim)
    assert predict("model.json", "new.csv", "-o", tmp_path / "out.csv", "--force").exit_code == 0
    assert victim.read_text() == "mine"
    assert not (tmp_path / "out.csv").is_symlink()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("bare.json", "new.csv"), 1, "without a schema"),
        (("other.json", "new.csv"), 1, "does not describe its features"),
        (("nonsense.json", "new.csv"), 1, "Table Schema"),
        (("model.json", "wrong.csv"), 1, "sex"),
        (("model.json", "missing.csv"), 1, "The table missing.csv cannot be read"),
        (("new.csv", "model.json"), 1, "not JSON"),
        (("model.json", "new.csv", "-o", "nowhere/out.csv"), 1, "no directory nowhere"),
        (("model.json",), 2, "DATA"),
    ],
)
def test_failures_in_one_sentence(arguments, code, message):
    failed(predict(*arguments), code, message, stdout="")


def test_a_model_that_has_a_feature_for_every_level_predicts_by_them(home):
    names = ["age", "sex=f", "sex=m"]
    X = np.random.default_rng(1).uniform(0, [100, 1, 1], (2000, 3))
    y = 3 * X[:, 1] + X[:, 2]
    model = dpscreen.PrivateLasso(
        epsilon=20, delta=1e-6, feature_bounds=[(0, 100), (0, 1), (0, 1)], target_bounds=(0, 7)
    ).fit(pd.DataFrame(X, columns=names), y)
    model.save(home / "old.json", schema=DESCRIPTOR, force=True)
    done = predict("old.json", "new.csv")
    rows = pd.DataFrame([[40, 1, 0], [50, 0, 1], [0, 0, 1]], columns=names, dtype=float)
    np.testing.assert_allclose(np.log(read(done.stdout)), np.clip(model.predict(rows), 0, 6.9))


def test_a_table_without_rows_is_refused_in_one_sentence(home):
    (home / "empty.csv").write_text("age,sex\n", encoding="utf-8")
    done = predict("model.json", "empty.csv")
    failed(done, 1, "empty.csv has no rows to predict for.", stdout="")


def test_columns_with_cells_that_could_not_be_read_are_named_and_not_counted(home):
    (home / "odd.csv").write_text("age,sex\n40,f\nforty,m\n,\n50,d\nx,f\n", encoding="utf-8")
    done = predict("model.json", "odd.csv")
    assert len(read(done.stdout)) == 5
    assert done.stderr.startswith("Note: cells of column 'age' and 'sex' are missing or cannot be")
    assert not any(sign.isdigit() for sign in done.stderr)


def test_a_cell_is_never_repeated(home):
    (home / "secret.csv").write_text("age,sex\n40,SECRETCELL\nSECRETCELL,f\n", encoding="utf-8")
    done = predict("model.json", "secret.csv")
    assert "SECRETCELL" not in done.stdout + done.stderr + str(done.exception)
