"""The model file: an exact round trip, and one clear refusal of everything else."""

from __future__ import annotations

import copy
import json
import math
import os
import re
from dataclasses import replace

import jsonschema
import numpy as np
import pytest
from fitted_models import KINDS, fitted, table
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone, is_regressor
from sklearn.exceptions import NotFittedError

import dpscreen
from dpscreen import PrivateLogit
from dpscreen.models import file as model_file
from dpscreen.models.cards import model_card_of
from dpscreen.models.explain import explanation_of
from dpscreen.models.file import ModelFileProblem, decoded, encoded, json_schema, to_dict
from dpscreen.models.loaded import LoadedModel
from dpscreen.models.summary import summary_of

every = pytest.mark.parametrize("kind", KINDS)
SCHEMA = {"fields": [{"name": "age", "type": "number"}], "dpscreen": {"target": "y", "é": None}}


def content(kind="lasso"):
    return to_dict(fitted(kind).released())


def names_in(directory):
    return [one.name for one in directory.iterdir()]


def refused(found):
    raw = found if isinstance(found, bytes) else json.dumps(found).encode()
    with pytest.raises(ModelFileProblem) as told:
        decoded(raw)
    assert told.value.__cause__ is None
    assert len(str(told.value)) < 400
    assert "\n" not in str(told.value)
    return str(told.value)


# --- what is written comes back -------------------------------------------------------------------
SAID = {"summary": summary_of, "explain": explanation_of, "to_model_card": model_card_of}


@every
@pytest.mark.parametrize("named", [True, False])
def test_a_round_trip_is_exact(kind, named, tmp_path):
    model, X = fitted(kind, named=named), table()[0]
    model.save(tmp_path / "model.json", schema=SCHEMA)
    again = dpscreen.load(tmp_path / "model.json")
    rows = X if named else X.to_numpy()
    np.testing.assert_array_equal(again.predict(rows), model.predict(rows))
    np.testing.assert_array_equal(again.coef_, model.coef_)
    assert again.intercept_ == model.intercept_
    assert again.privacy_ == model.privacy_
    assert again.family is model.family
    assert again.schema == SCHEMA
    assert again.fitted_by_ == type(model).__name__
    if getattr(model, "path_", None) is not None:
        for there, here in zip(*(vars(one.path_).values() for one in (again, model)), strict=True):
            np.testing.assert_array_equal(there, here)
    told = replace(model.released(), schema=SCHEMA)
    for said, of in SAID.items():
        assert str(getattr(again, said)()) == str(of(told))
    again.save(tmp_path / "twice.json")
    assert (tmp_path / "twice.json").read_bytes() == (tmp_path / "model.json").read_bytes()


def test_a_loaded_model_is_a_regressor_that_cannot_be_fitted(tmp_path):
    fitted("lasso").save(tmp_path / "model.json")
    model, (X, y) = dpscreen.load(tmp_path / "model.json"), table()
    assert is_regressor(model)
    assert model.score(X, y) == fitted("lasso").score(X, y)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X.rename(columns={"age": "years"}))
    with pytest.raises(TypeError, match="cannot be fitted"):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        clone(model).predict(X)
    with pytest.raises(NotFittedError):
        LoadedModel().summary()


def test_what_is_not_known_of_quality_is_null_in_the_file_with_a_reason():
    release = fitted("lasso").released()
    missing = dict.fromkeys(("r2", "r2_low", "r2_high"), math.nan)
    hidden = replace(release.quality, **missing, r2_reason="undetected rows")
    missing = dict.fromkeys(("typical_error", "error_low", "error_high"), math.nan)
    neither = replace(hidden, **missing, error_reason="noise")
    for quality, name in ((hidden, "r2"), (neither, "error_high")):
        found = encoded(replace(release, quality=quality))
        assert json.loads(found)["model"]["quality"][name] is None
        assert json.loads(found)["model"]["quality"]["r2_reason"] == "undetected rows"
        assert str(decoded(found).quality) == str(quality)
        assert encoded(decoded(found)) == found


TABLE = ("params", "bse", "tvalues", "pvalues", "conf_int", "cov_params", "holm", "standardized")


@pytest.mark.parametrize("outcomes", [False, True])
def test_a_loaded_table_tells_what_the_fitted_one_does(outcomes, tmp_path):
    (X, y), place = table(), tmp_path / "model.json"
    model, vague = fitted("ols"), y > np.random.default_rng(0).normal(50, 40, len(y))
    if outcomes:
        model = PrivateLogit(epsilon=50, delta=1e-6, feature_bounds=(0, 200)).fit(X, vague)
    model.save(place)
    again = dpscreen.load(place)
    for name in (*TABLE, *(("odds_ratios",) if outcomes else ())):
        there, here = (getattr(one, name) for one in (again, model))
        there, here = (one() if callable(one) else one for one in (there, here))
        assert there.equals(here)
        assert here.notna().any(axis=None)
    assert again.nobs == model.nobs
    assert str(again.wald_test("age")) == str(model.wald_test("age"))
    assert again.conf_int().equals(model.conf_int())
    if outcomes:
        with pytest.raises(AttributeError, match="has no R²; quality_ has auc"):
            _ = again.rsquared
    else:
        np.testing.assert_equal(again.rsquared, model.rsquared)
    with pytest.raises(AttributeError, match="a number for each private row"):
        _ = again.resid
    assert not hasattr(dpscreen.load(saved("lasso", tmp_path)), "params")


def saved(kind, directory):
    place = directory / f"{kind}.json"
    fitted(kind).save(place)
    return place


def test_the_file_holds_released_values_only_and_its_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(json_schema())
    found = content("lasso")
    optional = {"quality", "bounds_notes", "declared_bounds", "above_noise"}  # of PrivateLasso
    assert set(found["model"]) - optional == set(json_schema()["properties"]["model"]["required"])
    assert set(found["statement"]) == set(json_schema()["properties"]["statement"]["properties"])
    X, y = table()
    cells = {repr(float(value)) for value in (*X.to_numpy().ravel(), *y)}
    text = encoded(fitted("lasso").released()).decode()
    assert not [cell for cell in cells if cell in text]


# --- writing --------------------------------------------------------------------------------------


def test_saving_never_replaces_a_file_unless_told_to(tmp_path):
    place = tmp_path / "model.json"
    place.write_text("mine")
    with pytest.raises(ModelFileProblem, match="exists already"):
        fitted("lasso").save(place)
    assert place.read_text() == "mine"
    fitted("lasso").save(place, force=True)
    assert dpscreen.load(place).n_features_in_ == 6
    assert names_in(tmp_path) == ["model.json"]


def test_nothing_is_left_of_a_failed_write(tmp_path, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ModelFileProblem, match="No space left"):
        fitted("lasso").save(tmp_path / "model.json")
    assert names_in(tmp_path) == []
    with pytest.raises(ModelFileProblem, match="cannot write"):
        fitted("lasso").save(tmp_path / "nowhere" / "model.json")


def deep(levels):
    found = {}
    for _ in range(levels):
        found = {"a": found}
    return found


@pytest.mark.parametrize(
    "schema",
    [{"a": float("nan")}, {"a": {1, 2}}, {"a": b"bytes"}, {"a": "\ud800"}, deep(60), deep(5000)],
)
def test_a_schema_that_cannot_be_read_back_is_not_written(schema, tmp_path):
    with pytest.raises(ModelFileProblem):
        fitted("lasso").save(tmp_path / "model.json", schema=schema)
    assert names_in(tmp_path) == []


# --- reading what is not a model ------------------------------------------------------------------


def test_what_is_not_there_or_not_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "missing.json", tmp_path, tmp_path / "pipe", "a\x00b", "/dev/zero"):
        with pytest.raises(ModelFileProblem):
            dpscreen.load(place)


def test_a_file_that_is_too_large_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(model_file, "MOST_BYTES", 1000)
    (tmp_path / "model.json").write_bytes(b" " * 1001)
    with pytest.raises(ModelFileProblem, match="larger than"):
        dpscreen.load(tmp_path / "model.json")


WRONG = {
    "empty": (b"", "not JSON"),
    "a list": (b"[]", "not a dpscreen model"),
    "UTF-16": ('{"format": "dpscreen-model"}'.encode("utf-16"), "UTF-8"),
    "a pickle": (b"\x80\x04\x95\x10\x00", "UTF-8"),
    "NaN": (b'{"format": NaN}', "NaN"),
    "1e400": (b'{"format": 1e400}', "too large"),
    "a long number": (b'{"format": ' + b"9" * 10**6 + b"}", "too long"),
    "a long fraction": (b'{"format": 0.' + b"9" * 10**6 + b"}", "not a dpscreen model"),
    "lists in lists": (b"[" * 10**6, "nested"),
    "twice": (b'{"format": "dpscreen-model", "format": "dpscreen-model"}', "twice"),
    "half a character": (b'{"format": "\\ud800"}', "not Unicode"),
    "no version": (b'{"format": "dpscreen-model"}', "version"),
    "version true": (b'{"format": "dpscreen-model", "version": true}', "version"),
    "newer": (b'{"format": "dpscreen-model", "version": 2, "x": 1}', "newer dpscreen"),
    "only a head": (b'{"format": "dpscreen-model", "version": 1}', "lacks"),
}


@pytest.mark.parametrize("name", WRONG)
def test_hostile_files(name):
    raw, told = WRONG[name]
    assert told in refused(raw)


def test_every_truncation_is_refused():
    raw = encoded(fitted("split").released())
    for end in range(0, len(raw) - 2, 97):
        refused(raw[:end])


# --- files edited by hand -------------------------------------------------------------------------


STEP = "statement mechanisms 0"
INTERVAL = "model inference intervals 0"
EDITS = [  # the kind of model, what is changed, to what, and what is told
    ("seeded", "statement holds", True, "promise holds"),
    ("published", "statement holds", True, "promise holds"),
    ("published", "statement calibration", "proven", "promise holds|cost"),
    ("published", "statement rho", 0.1, "no cost"),
    ("lasso", "statement epsilon", 0.5, "follow from its rho"),
    ("lasso", "statement delta", 1e-9, "follow from its rho"),
    ("lasso", "statement rho", 1e-3, "add up"),
    ("lasso", f"{STEP} scale", 1e9, "sensitivity and noise scale"),
    ("lasso", f"{STEP} scale", -1.0, "minimum"),
    ("lasso", "statement epsilon", 0.0, "exclusiveMinimum"),
    ("lasso", "statement rows_per_unit", 0, "minimum"),
    ("lasso", "statement extra", 1, "unknown field, extra"),
    ("lasso", "statement mechanisms", lambda found: found[1:], "add up"),
    ("lasso", "statement unit", "\x1b[2J", "unit"),
    (
        *("lasso", "model features", lambda found: found[:-3]),
        "declared bounds for each feature|that the model does not have|above the noise",
    ),
    ("lasso", "model path signs", [1, -1], "as many as n_iter"),
    ("lasso", "model path features 0", 6, "feature that the model does not have"),
    ("lasso", "model path n_candidates", 7, "offers more features"),
    ("lasso", "model features 0 bounds", [1, 0], "low < high"),
    ("lasso", "model target_bounds", [0, 1, 2], "target_bounds"),
    ("lasso", "model intercept", "1", "type number"),
    ("lasso", "model intercept", 1e305, "maximum"),
    ("lasso", "model code", "import os", "unknown field, code"),
    ("lasso", "model estimator", "os.system", "pattern"),
    ("lasso", "model features", [], "minItems"),
    ("lasso", "model features 4 coefficient", "1", "model/features/4/coefficient"),
    ("lasso", "model named", False, "x0, x1"),
    ("split", f"{INTERVAL} feature", 99, "does not have"),
    ("split", f"{INTERVAL} low", 1e9, "its own coefficient"),
    ("split", "model inference available", False, "and none otherwise"),
    ("split", "model inference intervals", lambda found: found[:1] * 2, "two intervals"),
    ("lasso", "schema", [], "schema"),
    (
        *("lasso", "model quality"),
        lambda found: found | {"r2": 0.9, "r2_low": 0.1, "r2_high": 0.5},
        "between the ends",
    ),
]


@pytest.mark.parametrize(("kind", "place", "to", "told"), EDITS)
def test_files_edited_by_hand(kind, place, to, told):
    found = copy.deepcopy(content(kind))
    *way, last = (int(key) if key.isdigit() else key for key in place.split())
    at = found
    for key in way:
        at = at[key]
    at[last] = to(at[last]) if callable(to) else to
    assert re.search(told, refused(found))


# --- fuzz -----------------------------------------------------------------------------------------

NUMBERS = (0, -1, 1, 2**63, 10**17, 1e308, -1e308, 5e-324, 1e-300)
TEXTS = ("", "x", "\x1b[0m", "NaN", "﷽" * 50)
OTHERS = (None, True, False, [], {}, [[]], [0.5, 1.5], {"name": 1}, [None] * 3, [1e300] * 2)
HOSTILE = st.sampled_from((*NUMBERS, *TEXTS, *OTHERS))


def places(found, at=()):
    yield at
    if isinstance(found, dict | list):
        children = found.items() if isinstance(found, dict) else enumerate(found)
        for key, child in children:
            yield from places(child, (*at, key))


def still_usable(release):
    model = LoadedModel()
    model._take(release)
    for said in (model.summary(), model.explain(), model.to_model_card(), model.privacy_):
        assert "\x1b" not in str(said)
    assert model.summary()._repr_html_()
    assert len(model.summary().frame) <= model.n_features_in_
    if model.privacy_.holds:
        json.dumps(model.to_registry_entry(), allow_nan=False)


def read_or_refused(raw):
    try:
        release = decoded(raw)
    except ModelFileProblem:
        return
    still_usable(release)


quick = settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])


@quick
@given(st.data())
def test_any_value_in_any_place_is_read_or_refused(data):
    found = copy.deepcopy(content(data.draw(st.sampled_from(["split", "units", "adp"]))))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.sampled_from([at for at in places(found) if at]))
        at = found
        for key in place[:-1]:
            at = at[key]
        if isinstance(at, dict | list) and data.draw(st.booleans()):
            at[place[-1]] = copy.deepcopy(data.draw(HOSTILE))  # other draws may share it
        else:
            del at[place[-1]]
    read_or_refused(json.dumps(found).encode())


@quick
@given(st.data())
def test_any_bytes_in_any_place_are_read_or_refused(data):
    raw = bytearray(encoded(fitted("split").released()))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(raw)))
        end = min(len(raw), start + data.draw(st.integers(0, 20)))
        raw[start:end] = data.draw(
            st.one_of(
                st.binary(max_size=4),
                st.sampled_from([b"1e999", b"[" * 2000, b'"', b"}", b"0", b"e9", b"-", b"9" * 30]),
            )
        )
    read_or_refused(bytes(raw))


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=6, max_size=6))
@settings(max_examples=50)
def test_every_name_comes_back(names):
    release = replace(fitted("lasso").released(), names=tuple(names))
    again = decoded(encoded(release))
    assert again.names == tuple(names)
    still_usable(again)


# --- the card and the registry --------------------------------------------------------------------


@every
def test_the_card_is_whole_and_escaped(kind):
    card, statement = fitted(kind).to_model_card(), fitted(kind).privacy_
    assert ("shrunken" in card) == (not kind.startswith("ols"))
    for heading in ("# Model card", "## Use", "## Features", "## Privacy stat", "## Mechanisms"):
        assert heading in card
    assert "<b>" not in card
    assert ("**NOT PRIVATE" in card) == (not statement.holds)
    rows = [line for line in card.splitlines() if line.startswith("|")]
    widths = [len(line.replace("\\|", "").split("|")) for line in rows]
    assert set(widths) <= {4, 7, 8}  # three tables, and no name breaks one


@every
def test_an_entry_for_the_registry(kind):
    model = fitted(kind)
    if not model.privacy_.holds:
        with pytest.raises(ValueError, match="does not hold"):
            model.to_registry_entry()
        return
    entry = model.to_registry_entry()
    json.dumps(entry, allow_nan=False)
    loss = entry["deployment"]["privacy_loss"]
    assert loss["privacy_parameters"]["rho"] == model.privacy_.rho
    assert loss["privacy_unit"] == ("Unit-level" if kind == "units" else "Row-level")
    assert "first half: " in entry["deployment"]["implementation"]["mechanisms"] or kind != "split"


def test_tiers_tell_more_and_more():
    first, second, third = (fitted("lasso").to_registry_entry(tier=tier) for tier in (1, 2, 3))
    assert set(first["deployment"]) == {"basic", "administrative"}
    assert "privacy_unit_details" not in second["deployment"]["privacy_loss"]
    assert "privacy_unit_details" in third["deployment"]["privacy_loss"]
    assert set(second["deployment"]) < set(third["deployment"])
    with pytest.raises(ValueError, match="tier"):
        fitted("lasso").to_registry_entry(tier=4)


# --- the short cut --------------------------------------------------------------------------------


@given(
    st.dictionaries(
        st.sampled_from(["name", "coefficient", "bounds", "more"]), HOSTILE, max_size=4
    ),
    st.booleans(),
)
def test_what_passes_the_quick_check_passes_the_schema(changed, whole):
    good = {"name": "age", "coefficient": 1.5, "bounds": [0, 1]}
    feature = good | changed if whole else changed
    item = json_schema()["properties"]["model"]["properties"]["features"]["items"]
    allowed = jsonschema.Draft202012Validator(item).is_valid(feature)
    assert model_file._is_feature(feature) == allowed


def test_many_features_are_read_in_time():
    release = fitted("lasso").released()
    many = replace(
        release,
        names=tuple(f"f{j}" for j in range(5000)),
        coefficients=np.arange(5000.0),
        feature_bounds=np.tile([0.0, 1.0], (5000, 1)),
        declared_bounds=np.tile([0.0, 2.0], (5000, 1)),
        above_noise=None,
    )
    np.testing.assert_array_equal(decoded(encoded(many)).coefficients, many.coefficients)
