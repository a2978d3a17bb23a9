"""Contrasts, mean predictions, effects and exports of a table, against statsmodels' own."""

from __future__ import annotations

import copy
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import dpscreen
from dpscreen import PrivateLogit, PrivateOLS
from dpscreen.models.contrasts import linear_hypotheses

LEVELS = ["A", "B", "B2"]
SETTING = {
    "epsilon": 5.0,
    "delta": 1e-6,
    "feature_bounds": {"age": (20, 80), "dose": (0, 60)},
    "categories": {"ward": LEVELS},
}
SCHEMA = {
    "fields": [
        {"name": "y", "type": "number", "constraints": {"minimum": -500, "maximum": 500}},
        {"name": "age", "type": "number", "constraints": {"minimum": 20, "maximum": 80}},
        {"name": "dose", "type": "number", "constraints": {"minimum": 0, "maximum": 60}},
        {"name": "ward", "type": "string", "constraints": {"enum": LEVELS}},
    ],
    "dpscreen": {"target": "y"},
}


def frame(n=6000):
    rng = np.random.default_rng(5)
    table = pd.DataFrame(
        {
            "age": rng.uniform(20, 80, n),
            "dose": rng.exponential(5, n).clip(0, 60),
            "ward": rng.choice(LEVELS, n),
        }
    )
    y = 2 * table["age"] - table["dose"] + 30 * (table["ward"] == "B") + rng.normal(0, 10, n)
    return table, y.to_numpy()


def fitted(model, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(frame()[0], y)


@pytest.fixture(scope="module")
def linear():
    return fitted(PrivateOLS(target_bounds=(-500, 500), **SETTING), frame()[1])


def design(table):
    columns = {"age": table["age"], "dose": table["dose"]}
    columns |= {f"ward={one}": (table["ward"] == one).astype(float) for one in LEVELS[1:]}
    return pd.DataFrame(columns).assign(const=1.0)


def with_numbers_of(model, oracle, freedom):
    """Return the model with the coefficients and the covariance of statsmodels' results."""
    other = copy.copy(model)
    other.table_ = replace(
        model.table_,
        coefficients=oracle.params.to_numpy(),
        covariance=oracle.cov_params().to_numpy(),
        freedom=np.full(len(oracle.params), float(freedom)),
        reasons={},
    )
    return other


@pytest.fixture(scope="module")
def pair(linear):
    oracle = sm.OLS(frame()[1], design(frame()[0])).fit(cov_type="HC0", use_t=True)
    return with_numbers_of(linear, oracle, oracle.df_resid), oracle


def test_contrasts_are_those_of_statsmodels(pair):
    model, oracle = pair
    found = model.t_test("ward[B] - ward=B2 = 2, age = 2, `dose` + age/2 = const")
    matrix = np.array([[0, 0, 1, -1, 0], [1, 0, 0, 0, 0], [0.5, 1, 0, 0, -1]])
    known = oracle.t_test((matrix, np.array([2, 2, 0])))
    np.testing.assert_allclose(found.effect, known.effect)
    np.testing.assert_allclose(found.sd, known.sd)
    np.testing.assert_allclose(found.tvalue, known.tvalue)
    np.testing.assert_allclose(found.pvalue, known.pvalue, rtol=1e-6)
    np.testing.assert_allclose(found.conf_int(0.1), known.conf_int(0.1))
    np.testing.assert_allclose(model.t_test(matrix).tvalue, oracle.t_test(matrix).tvalue)
    frames = model.t_test(["age", "dose"]).summary_frame()
    np.testing.assert_allclose(frames["coef"], oracle.params[:2])
    assert "ward=B - ward=B2 = 2" in str(found)


def test_mean_predictions_are_those_of_statsmodels(pair):
    model, oracle = pair
    rows = frame()[0].head(7)
    known = oracle.get_prediction(design(rows)).summary_frame(alpha=0.1)
    found = model.get_prediction(rows).summary_frame(alpha=0.1)
    pd.testing.assert_frame_equal(found, known[found.columns])


def test_probabilities_have_intervals_through_the_link():
    table, y = frame()
    outcomes = (y > 100).astype(int)
    model = fitted(PrivateLogit(**SETTING), outcomes)
    oracle = sm.GLM(outcomes, design(table), family=sm.families.Binomial()).fit()
    model = with_numbers_of(model, oracle, 1e6)
    known = oracle.get_prediction(design(table.head(7))).summary_frame()
    found = model.get_prediction(table.head(7)).summary_frame()
    pd.testing.assert_frame_equal(found, known[found.columns], rtol=1e-4)
    ratio = model.effect("age", 30, 40).summary_frame()["odds_ratio"].item()
    assert ratio == pytest.approx(np.exp(10 * oracle.params["age"]))
    assert model.marginal_means("ward")["mean"].between(0, 1).all()


def test_effects_are_differences_of_predictions(linear):
    rows = pd.DataFrame({"age": [30, 40], "dose": 30.0, "ward": "A"})
    change = np.diff(linear.predict(rows)).item()
    found = linear.effect("age", 30, 40)
    assert found.effect.item() == pytest.approx(change) == pytest.approx(10 * linear.coef_[0])
    assert found.sd.item() == pytest.approx(10 * linear.bse["age"])
    levels = linear.effect("ward", "B2", "B")
    assert levels.effect.item() == pytest.approx(linear.coef_[2] - linear.coef_[3])
    means = linear.marginal_means("ward")
    base = pd.DataFrame({"age": 50.0, "dose": 30.0, "ward": LEVELS})
    np.testing.assert_allclose(means["mean"], linear.predict(base))
    assert list(means.index) == ["ward=A", "ward=B", "ward=B2"]


@pytest.mark.parametrize(
    "terms", ["age + I(age**2) + ward + dose", "age*dose", "bs(age, knots=[40]) + ward:dose"]
)
def test_effects_of_formulas_go_through_all_terms(terms, tmp_path):
    model = PrivateOLS.from_formula(f"y ~ {terms}", SCHEMA, epsilon=20, delta=1e-6, quality=False)
    table, y = frame()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(table.assign(y=y))
    model.save(tmp_path / "model.json", schema=model.schema.to_dict())
    for one in (model, dpscreen.load(tmp_path / "model.json")):
        moved = pd.DataFrame({"age": [30.0, 40.0], "dose": 10.0, "ward": "A"})
        found = one.effect("age", 30, 40, at={"dose": 10})
        if not found.reasons[0]:
            assert found.effect.item() == pytest.approx(np.diff(model.predict(moved)).item())
            assert 0 < found.sd.item() < np.inf


def test_without_an_interval_there_is_no_number(linear):
    hidden = copy.copy(linear)
    hidden.table_ = replace(linear.table_, reasons={1: "it is hidden by noise."})
    for found in (hidden.t_test("dose - age"), hidden.effect("dose", 1, 2)):
        numbers = (found.effect, found.sd, found.tvalue, found.pvalue, found.conf_int())
        assert all(np.isnan(one).all() for one in numbers)
        assert "no interval for dose" in found.reasons[0]
        assert "no interval for dose" in str(found)
    assert np.isfinite(hidden.effect("age", 30, 40).effect).all()
    rows = frame()[0].head(2).assign(dose=[0.0, 3.0])
    predicted = hidden.get_prediction(rows)
    assert np.isfinite(predicted.predicted_mean).tolist() == [True, False]
    assert predicted.reasons == ("", "no interval for dose")
    assert hidden.tidy().loc[1, "estimate":].isna().all()


def test_coefficients_that_are_adjusted_for_have_no_intervals_of_width_zero():
    table, y = frame()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bounds = {"target_bounds": (-500, 500), "interest": ["age"]}
        model = PrivateOLS(**bounds, **SETTING).fit(table, y)
    predicted = model.get_prediction(table.head(2))
    assert predicted.summary_frame().isna().all(axis=None)
    assert "no interval for dose" in predicted.reasons[0]
    assert "mean_ci_lower" in repr(predicted)
    assert "no interval for dose" in str(model.t_test("dose"))
    assert model.effect("age", 30, 40).sd > 0


def test_arrays_and_no_constant():
    rng = np.random.default_rng(0)
    X = rng.normal(50, 10, size=(5000, 2))
    setting = {"epsilon": 3, "delta": 1e-6, "feature_bounds": (0, 100), "target_bounds": (0, 200)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = PrivateOLS(**setting, fit_intercept=False).fit(X, X.sum(axis=1))
    assert model.effect("x1", 10, 20).effect == pytest.approx(10 * model.coef_[1])
    with pytest.raises(ValueError, match="fit_intercept=True"):
        model.get_prediction(X[:2])


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("wrd[B] = 0", "there is no coefficient 'wrd'"),
        ("age * dose = 0", "is not a linear hypothesis"),
        ("age +", "is not a linear hypothesis"),
        ([[1.0, 2.0]], "L must have 5 columns"),
        (("age", 30, 90), "declared from 20 to 80"),
        (("agee", 30, 40), "did you mean 'age'"),
        (("ward", "A", "Q"), "has no level 'Q'"),
    ],
)
def test_hypotheses_and_moves_that_cannot_be_tested(linear, wrong, told):
    with pytest.raises(ValueError, match=told):
        linear.effect(*wrong) if isinstance(wrong, tuple) else linear.t_test(wrong)


def test_names_with_operators_are_read_as_printed():
    names = ["age", "I((age - 54) ** 2)", "smoker:(bmi - 35)", "a, b", "age=60+", "const"]
    for j, name in enumerate(names):
        matrix, values, _ = linear_hypotheses(f"2*{name} = 3" if j != 3 else "2*`a, b` = 3", names)
        assert matrix.tolist() == [[2.0 * (i == j) for i in range(len(names))]]
        assert values.tolist() == [3]


def test_latex_and_tidy(linear):
    tidy = linear.tidy(0.9)
    assert tidy["term"].tolist() == [*linear.feature_names_out_, "const"]
    np.testing.assert_allclose(tidy["conf_low"], linear.conf_int(0.9)["low"])
    text = linear.summary().to_latex()
    body = text.split(r"\midrule")[1].split(r"\bottomrule")[0].strip().splitlines()
    assert len(body) == 5
    assert all(line.count(" & ") == text.split("\n")[4].count(" & ") for line in body)
    assert r"95 \% intervals" in text
