"""What leaves carries the privacy statement; what does not hold leaves by force, and marked."""

from __future__ import annotations

import copy
import io
import pickle

import joblib
import pytest
from fitted_models import fitted
from raw_tables import metadata

from dpscreen import load
from dpscreen.models.page import render_model_page
from dpscreen.models.release import NotPrivate

BROKEN = ["seeded", "published"]
EXPORTS = {
    "sql": lambda model, **force: model.to_formula("sql", dialect="duckdb", **force),
    "r": lambda model, **force: model.to_formula("r", **force),
    "excel": lambda model, **force: model.to_formula("excel", **force),
    "onnx": lambda model, **force: metadata(model.to_onnx(**force))["privacy"],
    "pipeline": lambda model, **force: str(model.to_sklearn(**force)),
}
STATEMENTS = {
    "onnx": lambda model, **force: metadata(model.to_onnx(**force))["privacy_statement"],
    "pipeline": lambda model, **force: model.to_sklearn(**force).privacy_["statement"],
}


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize("export", EXPORTS.values(), ids=EXPORTS)
def test_what_does_not_hold_is_refused_unless_forced_and_then_marked(kind, export, tmp_path):
    fitted(kind).save(tmp_path / "model.json")
    for model in (fitted(kind), load(tmp_path / "model.json")):
        with pytest.raises(NotPrivate, match="NOT PRIVATE"):
            export(model)
        assert "NOT PRIVATE" in export(model, force=True)


@pytest.mark.parametrize("name", EXPORTS)
def test_what_holds_is_not_marked_and_its_promise_is_told(name):
    found = EXPORTS[name](fitted("lasso"))
    assert "NOT PRIVATE" not in found
    assert name == "pipeline" or "epsilon = 3, delta = 1e-06" in found


@pytest.mark.parametrize("export", STATEMENTS.values(), ids=STATEMENTS)
@pytest.mark.parametrize("kind", ["lasso", *BROKEN])
def test_the_whole_statement_travels(export, kind):
    model = fitted(kind)
    assert export(model, force=True) == model.privacy_.to_dict()


@pytest.mark.parametrize("kind", BROKEN)
def test_file_card_and_page_begin_with_the_mark(kind, tmp_path):
    model = fitted(kind)
    model.save(tmp_path / "model.json")
    assert load(tmp_path / "model.json").privacy_ == model.privacy_
    card = model.to_model_card()
    assert card.index("NOT PRIVATE") < card.index("## ")
    page = render_model_page(model)
    assert "Not private" in page


def _joblib(model):
    content = io.BytesIO()
    joblib.dump(model, content)
    content.seek(0)
    return joblib.load(content)


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize(
    "through",
    [lambda model: pickle.loads(pickle.dumps(model)), _joblib, copy.deepcopy],
    ids=["pickle", "joblib", "copy"],
)
def test_a_pickle_keeps_the_statement_and_shows_it(kind, through, tmp_path):
    fitted(kind).save(tmp_path / "model.json")
    for model in (fitted(kind), load(tmp_path / "model.json")):
        again = through(model)
        assert again.privacy_ == model.privacy_
        assert "NOT PRIVATE" in repr(again)
        with pytest.raises(NotPrivate):
            again.to_sklearn()


def test_a_model_that_holds_or_is_not_fitted_shows_its_parameters_alone():
    assert "PRIVATE" not in repr(fitted("lasso"))
    assert repr(type(fitted("seeded"))()).startswith("PrivateLasso(")
