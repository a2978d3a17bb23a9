"""The model file: an exact round trip, and one clear refusal of everything else."""

from __future__ import annotations

import copy
import json
import math
import os
import re
import sys
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from fitted_models import KINDS, fitted, table
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone, is_regressor
from sklearn.exceptions import NotFittedError

import dpscreen
from dpscreen import PrivateLogit
from dpscreen.models import file as model_file
from dpscreen.models.cards import model_card_of
from dpscreen.models.explain import explanation_of
from dpscreen.models.file import ModelFileProblem, decoded, encoded, json_schema, to_dict
from dpscreen.models.linear import LoadedModel, shown_summary

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
SAID = {"summary": shown_summary, "explain": explanation_of, "to_model_card": model_card_of}


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
    assert again.schema == SCHEMA
    assert again.fitted_by_ == type(model).__name__
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
    np.testing.assert_array_equal(model.noise_p_values(), fitted("lasso").noise_p_values())
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


def test_files_of_earlier_versions_are_read_without_what_held_for_cut_values():
    content = json.loads(encoded(fitted("lasso").released()))
    quality = content["model"]["quality"]
    del quality["r2_reason"], quality["error_reason"]
    quality |= {"cut_r2": 0.5, "cut_r2_low": 0.4, "cut_r2_high": 0.6, "cut_error": 7.0}
    quality |= {"r2": None, "r2_low": None, "r2_high": None}
    quality |= {"typical_error": None, "error_low": 3.0, "error_high": None}
    found = decoded(json.dumps(content).encode()).quality
    assert math.isnan(found.r2)
    assert math.isnan(found.error_low)
    assert found.r2_reason == found.error_reason == "noise"


def test_a_measure_outside_its_interval_is_refused():
    content = json.loads(encoded(fitted("lasso").released()))
    content["model"]["quality"] |= {"r2": 0.9, "r2_low": 0.1, "r2_high": 0.5, "r2_reason": None}
    with pytest.raises(ModelFileProblem):
        decoded(json.dumps(content).encode())


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
    assert again.conf_int(constant=True).equals(model.conf_int(constant=True))
    if outcomes:
        with pytest.raises(AttributeError, match="chances have no R²"):
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


@pytest.mark.parametrize("kind", ["lasso", "dp-fw"])
def test_sparse_rows_get_the_same_predictions(kind, tmp_path):
    fitted(kind, named=False).save(tmp_path / "model.json")
    rows = sparse.random_array((20, 6), density=0.5, rng=np.random.default_rng(1), format="csr")
    model = dpscreen.load(tmp_path / "model.json")
    rows *= 300.0
    np.testing.assert_allclose(model.predict(rows), model.predict(rows.toarray()), rtol=1e-12)


def test_no_noise_p_values_without_a_path(tmp_path):
    fitted("ols").save(tmp_path / "model.json")
    with pytest.raises(ValueError, match="need a path"):
        dpscreen.load(tmp_path / "model.json").noise_p_values()


def test_the_steps_of_frank_wolfe_are_in_the_file(tmp_path):
    model = fitted("dp-fw")
    model.save(tmp_path / "model.json")
    path = dpscreen.load(tmp_path / "model.json").path_
    np.testing.assert_array_equal(path.features, model.path_.features)
    np.testing.assert_array_equal(path.steps, model.path_.steps)


def test_the_file_holds_released_values_only():
    found = content("lasso")
    optional = {"quality", "bounds_notes", "declared_bounds"}  # of PrivateLasso
    assert set(found["model"]) - optional == set(json_schema()["properties"]["model"]["required"])
    assert set(found["statement"]) == set(json_schema()["properties"]["statement"]["properties"])
    X, y = table()
    cells = {repr(float(value)) for value in (*X.to_numpy().ravel(), *y)}
    text = encoded(fitted("lasso").released()).decode()
    assert not [cell for cell in cells if cell in text]


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(json_schema())


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


def test_a_file_that_appears_in_the_meantime_is_kept(tmp_path, monkeypatch):
    place = tmp_path / "model.json"
    monkeypatch.setattr(model_file, "decoded", lambda _: None)
    monkeypatch.setattr(Path, "exists", lambda *_: False)
    place.write_text("quicker")
    with pytest.raises(ModelFileProblem, match="exists already"):
        fitted("lasso").save(place)
    assert place.read_text() == "quicker"


def test_nothing_is_left_of_a_failed_write(tmp_path, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ModelFileProblem, match="No space left"):
        fitted("lasso").save(tmp_path / "model.json")
    assert names_in(tmp_path) == []
    with pytest.raises(ModelFileProblem, match="cannot write"):
        fitted("lasso").save(tmp_path / "nowhere" / "model.json")


def test_a_disk_without_hard_links(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    fitted("lasso").save(tmp_path / "model.json")
    assert names_in(tmp_path) == ["model.json"]


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


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read(tmp_path):
    fitted("lasso").save(tmp_path / "model.json")
    (tmp_path / "model.json").chmod(0)
    with pytest.raises(ModelFileProblem, match="Permission denied"):
        dpscreen.load(tmp_path / "model.json")


def test_a_file_that_is_too_large_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(model_file, "MOST_BYTES", 1000)
    (tmp_path / "model.json").write_bytes(b" " * 1001)
    with pytest.raises(ModelFileProblem, match="larger than"):
        dpscreen.load(tmp_path / "model.json")


WRONG = {
    "empty": (b"", "not JSON"),
    "a list": (b"[]", "not a dpscreen model"),
    "null": (b"null", "not a dpscreen model"),
    "something else": (b'{"format": "onnx"}', "not a dpscreen model"),
    "UTF-16": ('{"format": "dpscreen-model"}'.encode("utf-16"), "UTF-8"),
    "Latin-1": (b'{"format": "\xe9"}', "UTF-8"),
    "a pickle": (b"\x80\x04\x95\x10\x00", "UTF-8"),
    "NaN": (b'{"format": NaN}', "NaN"),
    "Infinity": (b'{"format": -Infinity}', "-Infinity"),
    "1e400": (b'{"format": 1e400}', "too large"),
    "a long number": (b'{"format": ' + b"9" * 10**6 + b"}", "too long"),
    "a long fraction": (b'{"format": 0.' + b"9" * 10**6 + b"}", "not a dpscreen model"),
    "lists in lists": (b"[" * 10**6, "nested"),
    "closed lists": (b"[" * 10**5 + b"]" * 10**5, "nested"),
    "objects in objects": (b'{"a":' * 10**5, "nested"),
    "a few too many": (b'{"format": ' + b"[" * 60 + b"]" * 60 + b"}", "nested"),
    "twice": (b'{"format": "dpscreen-model", "format": "dpscreen-model"}', "twice"),
    "half a character": (b'{"format": "\\ud800"}', "not Unicode"),
    "half a character in a key": (b'{"\\udfff": 1}', "not Unicode"),
    "no version": (b'{"format": "dpscreen-model"}', "version"),
    "version true": (b'{"format": "dpscreen-model", "version": true}', "version"),
    "newer": (b'{"format": "dpscreen-model", "version": 2, "x": 1}', "newer dpscreen"),
    "only a head": (b'{"format": "dpscreen-model", "version": 1}', "lacks"),
}


@pytest.mark.parametrize("name", WRONG)
def test_hostile_files(name):
    raw, told = WRONG[name]
    assert told in refused(raw)


def test_a_byte_order_mark_is_forgiven():
    assert decoded(b"\xef\xbb\xbf" + encoded(fitted("lasso").released())).n_features == 6


def test_near_the_recursion_limit_it_is_still_one_clear_error():
    def at_depth(levels):
        return at_depth(levels - 1) if levels else refused(b"[" * 900 + b"]" * 900)

    assert "nested" in at_depth(sys.getrecursionlimit() // 4)


def test_every_truncation_is_refused():
    raw = encoded(fitted("split").released())
    for end in range(0, len(raw) - 2, 97):
        refused(raw[:end])


# --- files edited by hand -------------------------------------------------------------------------


def edit(kind, *place, to):
    found = copy.deepcopy(content(kind))
    at = found
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = to
    return found


STEP = ("statement", "mechanisms", 0)
EDITS = {
    "seeded, said to hold": (
        lambda: edit("seeded", "statement", "holds", to=True),
        "promise holds",
    ),
    "seeded, said to be secure": (
        lambda: edit("seeded", "statement", "secure_noise", to=True),
        "promise holds",
    ),
    "published, said to hold": (
        lambda: edit("published", "statement", "holds", to=True),
        "promise holds",
    ),
    "published, said to be proven": (
        lambda: edit("published", "statement", "calibration", to="proven"),
        "promise holds|cost",
    ),
    "published with a cost": (lambda: edit("published", "statement", "rho", to=0.1), "no cost"),
    "a smaller epsilon": (
        lambda: edit("lasso", "statement", "epsilon", to=0.5),
        "follow from its rho",
    ),
    "a smaller delta": (
        lambda: edit("lasso", "statement", "delta", to=1e-9),
        "follow from its rho",
    ),
    "a smaller rho": (lambda: edit("lasso", "statement", "rho", to=1e-3), "add up"),
    "no rho": (lambda: edit("lasso", "statement", "rho", to=None), "must state"),
    "more noise": (lambda: edit("lasso", *STEP, "scale", to=1e9), "sensitivity and noise scale"),
    "no noise": (lambda: edit("lasso", *STEP, "scale", to=0), "sensitivity and noise scale"),
    "negative noise": (lambda: edit("lasso", *STEP, "scale", to=-1.0), "minimum"),
    "a negative sensitivity": (lambda: edit("lasso", *STEP, "sensitivity", to=-1.5), "minimum"),
    "more than is believed": (lambda: edit("lasso", *STEP, "scale", to=1e201), "maximum"),
    "no epsilon": (lambda: edit("lasso", "statement", "epsilon", to=0.0), "exclusiveMinimum"),
    "a calibration": (lambda: edit("lasso", "statement", "calibration", to="hoped"), "enum"),
    "no rows in a unit": (lambda: edit("lasso", "statement", "rows_per_unit", to=0), "minimum"),
    "another term": (lambda: edit("lasso", "statement", "extra", to=1), "not known, extra"),
    "a mechanism left out": (
        lambda: edit(
            "lasso", "statement", "mechanisms", to=content()["statement"]["mechanisms"][1:]
        ),
        "add up",
    ),
    "no mechanism": (lambda: edit("lasso", "statement", "mechanisms", to=[]), "add up"),
    "a terminal code": (lambda: edit("lasso", "statement", "unit", to="\x1b[2J"), "unit"),
    "one coefficient less": (
        lambda: edit("lasso", "model", "features", to=content()["model"]["features"][:-3]),
        "declared bounds for each feature|a feature that the model does not have",
    ),
    "a shorter path": (
        lambda: edit("lasso", "model", "path", "signs", to=[1, -1]),
        "as many as n_iter",
    ),
    "a step elsewhere": (
        lambda: edit("lasso", "model", "path", "features", 0, to=6),
        "feature that the model does not have",
    ),
    "more candidates than features": (
        lambda: edit("lasso", "model", "path", "n_candidates", to=7),
        "offers more features",
    ),
    "a sign": (lambda: edit("lasso", "model", "path", "signs", 0, to=2), "enum"),
    "bounds turned round": (
        lambda: edit("lasso", "model", "features", 0, "bounds", to=[1, 0]),
        "low < high",
    ),
    "three bounds": (
        lambda: edit("lasso", "model", "target_bounds", to=[0, 1, 2]),
        "target_bounds",
    ),
    "text for a number": (lambda: edit("lasso", "model", "intercept", to="1"), "type number"),
    "a truth for a number": (lambda: edit("lasso", "model", "intercept", to=True), "type number"),
    "a huge number": (lambda: edit("lasso", "model", "intercept", to=1e305), "maximum"),
    "a field too many": (lambda: edit("lasso", "model", "code", to="import os"), "not known, code"),
    "a field too few": (
        lambda: {k: v for k, v in content().items() if k != "schema"},
        "lacks schema",
    ),
    "a class to import": (lambda: edit("lasso", "model", "estimator", to="os.system"), "pattern"),
    "no features": (lambda: edit("lasso", "model", "features", to=[]), "minItems"),
    "names that are not": (lambda: edit("lasso", "model", "named", to=False), "x0, x1"),
    "an interval elsewhere": (
        lambda: edit("split", "model", "inference", "intervals", 0, "feature", to=99),
        "does not have",
    ),
    "an interval that misses": (
        lambda: edit("split", "model", "inference", "intervals", 0, "low", to=1e9),
        "its own coefficient",
    ),
    "intervals, not available": (
        lambda: edit("split", "model", "inference", "available", to=False),
        "exactly if",
    ),
    "a list for a schema": (lambda: edit("lasso", "schema", to=[]), "schema"),
}


@pytest.mark.parametrize("name", EDITS)
def test_files_edited_by_hand(name):
    make, told = EDITS[name]
    assert re.search(told, refused(make()))


def test_twice_the_same_interval():
    one = content("split")["model"]["inference"]["intervals"][0]
    refused(edit("split", "model", "inference", "intervals", to=[one, one]))


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


@quick
@given(st.binary(max_size=200))
def test_any_bytes_at_all(raw):
    read_or_refused(raw)


@given(
    st.lists(st.floats(allow_nan=False, min_value=-1e200, max_value=1e200), min_size=6, max_size=6)
)
@settings(max_examples=50)
def test_every_float_comes_back(numbers):
    release = replace(fitted("adp").released(), coefficients=np.array(numbers))
    np.testing.assert_array_equal(decoded(encoded(release)).coefficients, numbers)


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
    card = fitted(kind).to_model_card()
    statement = fitted(kind).privacy_
    for heading in (
        "# Model card",
        "## Use",
        "## Features",
        "## Privacy statement",
        "## Mechanisms",
    ):
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


@every
def test_card_and_entry_call_the_model_what_it_is(kind):
    """They called every model a sparse linear regression, of coefficients that were selected."""
    model = fitted(kind)
    named = type(model).__name__
    assert ("shrunken" in model.to_model_card()) == (named not in ("PrivateOLS", "PrivateLogit"))
    if model.privacy_.holds:
        told = model.to_registry_entry()["deployment"]["basic"]["description"]
        assert ("logistic" in told) == (named in ("PrivateLogistic", "PrivateLogit"))
        assert ("sparse" in told) == (named not in ("PrivateOLS", "PrivateLogit"))


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


def test_a_wrong_feature_is_told_by_its_place():
    assert "model/features/4/coefficient" in refused(
        edit("lasso", "model", "features", 4, "coefficient", to="1")
    )


def test_many_features_are_read_in_time():
    release = fitted("lasso").released()
    many = replace(
        release,
        names=tuple(f"f{j}" for j in range(5000)),
        coefficients=np.arange(5000.0),
        feature_bounds=np.tile([0.0, 1.0], (5000, 1)),
        declared_bounds=np.tile([0.0, 2.0], (5000, 1)),
    )
    np.testing.assert_array_equal(decoded(encoded(many)).coefficients, many.coefficients)
