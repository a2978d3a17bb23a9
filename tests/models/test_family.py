"""A further family of outcomes is one object: all that shows or exports a model asks it."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fitted_models import fitted, table

import dpscreen
from dpscreen._core.words import EffectScale, exponential, number
from dpscreen.families import BINOMIAL, FAMILIES, GAUSSIAN, family_of_fields
from dpscreen.models.code import formula_of
from dpscreen.models.loaded import LoadedModel
from dpscreen.models.onnx_graph import onnx_of
from dpscreen.models.pipelines import pipeline_of

COUNTS = replace(
    GAUSSIAN,
    name="counts",
    link=np.log,
    inverse_link=np.exp,
    inverse="exp",
    words=replace(
        GAUSSIAN.words,
        regression="Poisson regression",
        effects=EffectScale("rate ratio", exponential, column="rate_ratio", ratio=True),
        effects_are="A rate ratio is what the rate is multiplied by with the step beside it.",
        multiplied="the rate",
        predictor="log-rate",
        predicted="rate of {target}",
        constant=lambda mean: f"a rate of {number(mean)}",
    ),
)


@pytest.fixture
def counts():
    found = fitted("walk").released()
    small = found.coefficients / 100
    bounds = np.array([1e-9, 1e9])
    return replace(found, coefficients=small, intercept=0.1, target_bounds=bounds, family=COUNTS)


def test_exports_apply_the_inverse_link(counts):
    model = LoadedModel()
    model._take(counts)
    X, _ = table()
    inside = X.clip(*counts.feature_bounds.T)
    expected = np.exp(inside @ counts.coefficients + counts.intercept)
    np.testing.assert_allclose(model.predict(X), expected)
    np.testing.assert_allclose(pipeline_of(counts).predict(X), expected)
    assert "EXP(" in formula_of(counts, "excel")
    assert "exp(pmin(" in formula_of(counts, "r")
    assert onnx_of(counts)


@pytest.mark.parametrize("family", [GAUSSIAN, BINOMIAL], ids=lambda one: one.name)
def test_a_family_is_one_object_wherever_it_goes(family):
    assert pickle.loads(pickle.dumps(family)) is family is FAMILIES[family.name]
    assert family_of_fields(family.file_fields) is family
    means = np.array([0.2, 0.5, 0.9])
    np.testing.assert_allclose(family.inverse_link(family.link(means)), means)


def test_a_family_is_named_in_few_files():
    """Others ask `Family`: beside its loss, this is where a new one has to be named."""
    own = re.compile(r"poisson|rate_?(quality|ratio)|exposure|log.?link", re.IGNORECASE)
    source = Path(dpscreen.__file__).parent
    texts = [*source.rglob("*.py"), *source.rglob("*.json"), *source.rglob("*.html")]
    named = {
        path.relative_to(source).as_posix() for path in texts if own.search(path.read_text("utf-8"))
    }
    assert named - {"families/poisson.py", "models/poisson.py"} == {
        *("families/__init__.py", "__init__.py", "models/__init__.py"),
        *("models/model.schema.json", "audit/cases.py", "cli/_fit_options.py"),
    }
