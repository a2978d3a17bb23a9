"""The regression table as a user meets it: frames, categories, tests of several, files, parts."""

from __future__ import annotations

import copy
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import dpscreen
from dpscreen import PrivateOLS
from dpscreen.models.explain import explanation_of
from dpscreen.models.regression_table import WaldTest

LEVELS = {"ward": ["A", "B", "C"]}
SETTING = {
    "epsilon": 2.0,
    "delta": 1e-6,
    "feature_bounds": {"age": (0, 120), "dose": (0, 60)},
    "target_bounds": (-300, 600),
    "categories": LEVELS,
    "random_state": 4,
}


def frame(n=8000, seed=2):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.normal(50, 10, n),
            "dose": rng.exponential(3, n),
            "ward": rng.choice(["A", "B", "C"], n),
        }
    )
    y = 2 * table["age"] - table["dose"] + 3 * (table["ward"] == "B") + rng.normal(0, 10, n)
    return table, y.to_numpy()


@pytest.fixture(scope="module")
def fitted():
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return PrivateOLS(**SETTING | {"random_state": None}).fit(*frame())


def test_the_table_has_the_habits_of_statsmodels(fitted):
    features = ["age", "dose", "ward=B", "ward=C"]
    assert list(fitted.params.index) == [*features, "const"]
    np.testing.assert_array_equal(fitted.params.to_numpy()[:4], fitted.coef_)
    assert fitted.params["const"] == fitted.intercept_
    ends = fitted.conf_int()
    assert list(ends.index) == [*features, "const"]
    assert list(ends.columns) == ["low", "high"]
    assert (ends["low"] < fitted.params).all()
    wide, narrow = fitted.conf_int(0.99), fitted.conf_int(level=0.5)
    assert (wide["low"] < ends["low"]).all()
    assert (narrow["low"] > ends["low"]).all()
    np.testing.assert_allclose(np.sqrt(np.diag(fitted.cov_params())), fitted.bse)
    np.testing.assert_allclose(fitted.tvalues, fitted.params / fitted.bse)
    assert fitted.pvalues["age"] < 1e-6
    with pytest.raises(ValueError, match="level"):
        fitted.conf_int(95)
    pd.testing.assert_frame_equal(fitted.conf_int(alpha=0.01), wide)
    for alpha in ({"level": 0.05}, {"alpha": 0.95}):
        with pytest.raises(ValueError, match="where other software has alpha"):
            fitted.conf_int(**alpha)
    assert fitted.nobs == fitted.n_rows_
    np.testing.assert_equal(fitted.rsquared, fitted.quality_.r2)  # NaN where it is not told


def test_r_squared_is_told_only_if_it_was_paid_for_and_noise_leaves_it(fitted):
    other = copy.copy(fitted)
    other.quality_ = replace(fitted.quality_, r2=math.nan, r2_reason="noise")
    assert math.isnan(other.rsquared)
    del other.quality_
    with pytest.raises(AttributeError, match="quality=True"):
        _ = other.rsquared
    with pytest.raises(NotFittedError):
        _ = PrivateOLS().rsquared


def test_a_category_is_tested_as_a_whole(fitted):
    whole = fitted.wald_test("ward")
    assert whole.names == ("ward=B", "ward=C")
    assert whole.df_num == 2
    single = fitted.wald_test(["age"])
    assert single.statistic == pytest.approx(fitted.tvalues["age"] ** 2)
    assert single.pvalue == pytest.approx(fitted.pvalues["age"], abs=1e-12)
    assert "together zero" in str(whole)
    names = "ward[B] = 0, ward[C] = 0"
    for spelled in (names, names.split(", "), np.eye(5)[2:4]):
        told = fitted.wald_test(spelled)
        assert (told.statistic, told.pvalue) == (whole.statistic, whole.pvalue)
    assert "ward=B = 0 and ward=C = 0 together: F(2" in str(fitted.wald_test(names))
    moved = fitted.wald_test("age = 2")
    assert moved.statistic == pytest.approx(fitted.t_test("age = 2").tvalue[0] ** 2)
    with pytest.raises(ValueError, match="follow from each other"):
        fitted.wald_test("age = 0, 2 * age = 0")
    with pytest.raises(ValueError, match="there is no coefficient"):
        fitted.wald_test("nobody")


def test_holm_and_standardized(fitted):
    raw, adjusted = fitted.pvalues.iloc[:4], fitted.holm()
    assert list(adjusted.index) == list(raw.index)
    assert (adjusted >= raw).all()
    assert adjusted.min() == pytest.approx(min(1, 4 * raw.min()))
    assert fitted.standardized()["age"] == pytest.approx(0.9, abs=0.6)  # unseeded noise


def test_a_share_that_is_left_out_for_its_bounds_is_told_what_to_declare():
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"rate": rng.normal(0.006, 0.001, 4000), "dose": rng.normal(3, 1, 4000)})
    y = 10000 * table["rate"] + rng.normal(0, 10, 4000)
    bounds = {"rate": (0, 1), "dose": (0, 60)}
    setting = SETTING | {"feature_bounds": bounds, "categories": None}
    model = PrivateOLS(**setting).fit(table, y)
    assert (set(model.table_.reasons), model.table_.binary_bounds) == ({0}, {0})
    assert "if this is a number" in model.explain()
    setting["feature_bounds"] = bounds | {"rate": (0, 0.5)}
    low, high = PrivateOLS(**setting).fit(table, y).conf_int().loc["rate"]
    assert 9000 < low < high < 11000


def test_levels_are_compared_with_those_left_out_too(fitted):
    release = fitted.released()
    place = list(release.table.names).index("ward=C")
    coefficients = np.where(np.arange(len(release.table.names)) == place, 0.0, 1.0)
    why = {place: "not told apart; left out."}
    without = replace(release.table, reasons=why, coefficients=coefficients)
    text = explanation_of(replace(release, table=without))
    assert "with the first declared one and those left out: ward with A or C." in text
    assert "with the first declared one: ward with A." in fitted.explain()


def test_it_predicts_with_intervals(fitted):
    table, y = frame(seed=9)
    found = fitted.predict(table, interval=0.9)
    assert found.shape == (len(y), 3)
    inside = (found[:, 1] <= y) & (y <= found[:, 2])
    assert 0.85 < inside.mean() < 0.98  # sizes are a quarter octave apart


@pytest.mark.parametrize("low", [1, -1, 2**20])
def test_yes_and_no_may_be_coded_as_any_whole_numbers_next_to_each_other(low):
    """Coded 1 and 2, one row in 25 having a 2, errors were 25 times those of 0 and 1."""
    rng = np.random.default_rng(0)
    X, setting = rng.normal(50, 10, (5000, 2)), SETTING | {"categories": None, "epsilon": 1.0}
    X[:, 1] = rng.random(len(X)) < 0.04
    y = X @ (0.5, 6.0) + rng.normal(0, 8, len(X))
    told = []
    for code in (0, low):
        setting["feature_bounds"] = [(0, 150), (code, code + 1)]
        told.append(PrivateOLS(**setting).fit(X + np.array([0, code]), y))
    np.testing.assert_allclose(told[1].coef_, told[0].coef_, rtol=1e-6)
    np.testing.assert_allclose(told[1].bse.iloc[:2], told[0].bse.iloc[:2], rtol=1e-6)


def test_a_number_that_is_seen_to_lie_between_neighbouring_bounds_has_its_own_scale():
    """A longitude, declared to the degree: taken for yes and no to the end, it was left out."""
    rng = np.random.default_rng(1)
    X = np.stack((rng.normal(-93.27, 0.02, 8000), rng.normal(50, 10, 8000)), axis=1)
    y = 500 * X[:, 0] + X[:, 1] + rng.normal(0, 10, len(X))
    bounds = {"feature_bounds": [(-94, -93), (0, 150)], "target_bounds": (-50_000, 0)}
    model = PrivateOLS(**SETTING | bounds | {"categories": None}).fit(X, y)
    assert model.bse["x0"] < 15
    assert abs(model.coef_[0] - 500) < 4 * model.bse["x0"]


def test_a_feature_called_const_is_not_the_constant(tmp_path):
    rng = np.random.default_rng(2)
    table = pd.DataFrame(rng.normal(50, 10, (5000, 2)), columns=["const", "age"])
    y = 2 * table["const"] - table["age"] + rng.normal(0, 5, 5000)
    setting = SETTING | {"categories": None, "feature_bounds": (0, 150)}
    model = PrivateOLS(**setting).fit(table, y)
    model.save(tmp_path / "model.json")
    for told in (model, dpscreen.load(tmp_path / "model.json")):
        assert list(told.params.index) == ["const", "age", "(const)"]
        assert abs(told.params["const"] - 2) < 0.1
    assert model.wald_test(["const"]).pvalue < 0.001


def test_holm_counts_all_declared_features_with_a_p_value_or_not(fitted):
    """Which features have a p-value depends on the data; their number must not shrink with it."""
    table = replace(fitted.table_, reasons={1: "not identifiable.", 2: "not identifiable."})
    raw, adjusted = table.pvalues.iloc[:4], table.holm()
    assert adjusted.isna().tolist() == [False, True, True, False]
    order = raw.dropna().sort_values()
    least = [min(1.0, 4 * order.iloc[0]), min(1.0, max(4 * order.iloc[0], 3 * order.iloc[1]))]
    np.testing.assert_allclose(adjusted[order.index], least)


def test_a_p_value_is_never_shown_as_zero():
    assert str(WaldTest(("a",), 2054.0, 2, 1664.0, 0.0)).endswith("F(2, 1664) = 2054, p < 0.0001")
    assert str(WaldTest(("a",), 2.0, 2, 1664.0, 0.1357)).endswith("p = 0.1357")


def test_a_test_of_several_tells_what_is_in_the_model_without_an_interval(fitted):
    """A level that is in the model was said to be left out of it."""
    zero = fitted.table_.coefficients.copy()
    zero[3] = 0.0
    table = replace(fitted.table_, coefficients=zero, reasons={2: "held.", 3: "dropped."})
    found = table.wald_test(["age", "ward"])
    assert found.untested == ("ward=B", "ward=C")
    assert found.left_out == ("ward=C",)
    assert "not tested: ward=B, without an interval; not tested: ward=C, not in the model" in str(
        found
    )
    assert "left out" not in str(found)
