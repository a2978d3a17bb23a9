"""What a fitted model does in a notebook: it draws itself, shows itself, and counts its fits."""

from __future__ import annotations

import html
import warnings
from dataclasses import replace

import numpy as np
import pytest
from fitted_models import fitted
from matplotlib.figure import Figure
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
)

from dpscreen import PrivateLasso, PrivateLogisticLasso, PrivateOLS
from dpscreen._core.words import LINEAR, number
from dpscreen.models import refits
from dpscreen.models.cards import model_card_of
from dpscreen.models.comparison import compared
from dpscreen.models.page.effects import MOST_DRAWN, EffectLine, EffectPicture, draw_effects
from dpscreen.models.refits import RefitWarning
from dpscreen.models.steps import LearntStep
from dpscreen.privacy import ZCDP, Budget
from dpscreen.privacy.ledger import PrivacyLedger

SETTING = {"epsilon": 1, "delta": 1e-6, "feature_bounds": (0, 1), "target_bounds": (0, 2)}


def rows(n_rows: int = 6000, n_features: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (n_rows, n_features))
    return X, X[:, 0] + rng.normal(0, 0.2, n_rows)


# --- pictures and boxes ---------------------------------------------------------------------------


def test_a_dominant_effect_leaves_room_for_the_others():
    line = EffectLine("a", 1.0, True, None, None)
    lines = (replace(line, effect=-200.0), *[replace(line, effect=1.0)] * 3)
    for largest, scale in ((lines, "function"), (lines[1:], "linear")):
        axes = Figure().subplots()
        shown = EffectPicture(largest, LINEAR, None, True)
        draw_effects(axes, shown)
        assert axes.get_xscale() == scale
        assert ("square-root" in shown.label) == (scale == "function")


@pytest.mark.parametrize("kind", ["lasso", "split", "frank-wolfe"])
def test_a_plot_has_one_line_for_each_feature_and_the_estimate_on_its_interval(kind):
    model = fitted(kind)
    axes = model.plot(Figure().subplots())
    drawn = min(len(model.summary().rows), MOST_DRAWN)
    assert len(axes.get_yticklabels()) == drawn
    dots = [line for line in axes.lines if line.get_marker() == "o"]
    assert len(dots) == sum(row.refit is not None for row in model.summary().rows)
    for dot in dots:
        same = [line for line in axes.lines if line.get_ydata()[0] == dot.get_ydata()[0]]
        ends = next(line.get_xdata() for line in same if len(line.get_xdata()) == 2)
        assert ends[0] < dot.get_xdata()[0] < ends[1]


def test_a_regression_table_is_drawn_beside_least_squares_own_intervals():
    X, y = rows(20_000)
    model = PrivateOLS(**SETTING).fit(X, y)
    shown = model.plot(Figure().subplots())
    wide = [line.get_xdata() for line in shown.lines if line.get_linewidth() == 2.4]
    thin = [line.get_xdata() for line in shown.lines if line.get_linewidth() == 1.0]
    assert len(wide) == len(thin) == 3
    # Without privacy, of one standard deviation: 0.2/√n. Found to within a fifth.
    own = 2 * 1.96 * 0.2 / np.sqrt(20_000)
    np.testing.assert_allclose([high - low for low, high in thin], own, rtol=0.2)
    assert all(a[1] - a[0] > b[1] - b[0] for a, b in zip(wide, thin, strict=True))
    assert model.summary().frame["effect"].iloc[0] == model.params.iloc[0]  # the step is 0→1


def test_a_model_without_effects_has_an_empty_plot():
    axes = fitted("ols without").plot(Figure().subplots())
    assert not axes.get_yticklabels()


def test_outcomes_are_drawn_as_odds_ratios():
    X, y = rows()
    model = PrivateLogisticLasso(epsilon=1, delta=1e-6, feature_bounds=(0, 1)).fit(X, y > 0.5)
    axes = model.plot(Figure().subplots())
    summary = model.summary()
    (first, *_) = summary.rows
    shown = summary.scale.shown(first.effect)
    assert shown == pytest.approx(np.exp(first.coefficient * first.step))
    assert axes.get_xscale() == "log"
    diamonds = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "D"]
    assert diamonds[0] == pytest.approx(shown)


def test_a_notebook_shows_a_box_before_the_fit_and_the_summary_after():
    assert "sk-" in PrivateLasso(**SETTING)._repr_html_()
    model = fitted("lasso")
    assert model._repr_html_() == model.summary()._repr_html_()
    assert model._repr_mimebundle_()["text/html"] == model.summary()._repr_html_()
    promise = model.privacy_._repr_html_()
    assert promise.startswith("<details><summary>(epsilon = ")
    assert html.escape(str(model.privacy_)) in promise


# --- fits that add up -----------------------------------------------------------------------------


def heard(work) -> list[str]:
    with warnings.catch_warnings(record=True) as noticed:
        warnings.simplefilter("always")
        work()
    return [str(one.message) for one in noticed if issubclass(one.category, RefitWarning)]


@pytest.fixture(autouse=True)
def _as_in_a_new_process():
    refits._TALLIES.clear()


def together(fits, epsilon=1):
    cost = ZCDP(ZCDP.within(Budget(epsilon, 1e-6)).rho * fits)
    return f"fitted {fits} times in this process", f"epsilon {cost.epsilon(1e-6):.4g} at delta"


def test_the_second_fit_of_the_same_rows_says_what_both_cost():
    X, y = rows(500)
    assert heard(lambda: PrivateLasso(**SETTING).fit(X, y)) == []
    (told,) = heard(lambda: PrivateOLS(**SETTING | {"epsilon": 2}).fit(X.copy(), y))
    both = ZCDP.within(Budget(1, 1e-6)) + ZCDP.within(Budget(2, 1e-6))
    assert f"together epsilon {both.epsilon(1e-6):.4g} at delta 1e-06" in told
    assert heard(lambda: PrivateLasso(**SETTING).fit(X + 1e-3, y + 1e-3)) == []  # other rows
    (told,) = heard(lambda: PrivateLasso(**SETTING).fit(X[:50, :2] * 1, y[:50] + 1e-3))
    assert "fitted 4 times" in told  # features of the one, the target of the other


def test_a_search_and_a_pipeline_count_all_their_fits():
    X, y = rows(500)
    search = GridSearchCV(PrivateLasso(**SETTING), {"max_features": [1, 2, 3]}, cv=5)
    last = heard(lambda: search.fit(X, y))[-1]
    assert all(words in last for words in together(16))
    pipe = make_pipeline(FunctionTransformer(np.copy), PrivateLasso(**SETTING))
    last = heard(lambda: pipe.fit(X, y))[-1]
    assert all(words in last for words in together(17))
    last = heard(lambda: clone(pipe).fit(X, y))[-1]
    assert all(words in last for words in together(18))


def test_rows_that_nothing_tells_apart_count_with_every_other_fit():
    X, y = rows(500)
    binary = {**SETTING, "feature_bounds": (0, 1), "target_bounds": (0, 1)}
    PrivateLasso(**SETTING).fit(X, y)
    (told,) = heard(lambda: PrivateLasso(**binary).fit((X > 0) * 1.0, (y > 0) * 1.0))
    assert "fitted 2 times" in told
    shifted = sparse.csr_array(X + 1e-3)
    assert "fitted 3 times" in heard(lambda: PrivateLasso(**SETTING).fit(shifted, y + 1e-3))[0]


LEARNT = {
    "StandardScaler": StandardScaler(),
    "PCA": PCA(2),
    "SimpleImputer": SimpleImputer(),
    "OneHotEncoder": ColumnTransformer([("a", OneHotEncoder(sparse_output=False), [0])]),
    "SelectKBest": FeatureUnion([("a", SelectKBest(f_regression, k=2))]),
    "MinMaxScaler": make_pipeline(FunctionTransformer(), MinMaxScaler()),
}


@pytest.mark.parametrize("name", LEARNT)
def test_steps_that_learn_from_private_rows_are_refused(name, tmp_path):
    X, y = rows(300)
    PrivacyLedger.create(tmp_path / "budget", dataset="d", epsilon=5, delta=1e-6)
    pipe = make_pipeline(LEARNT[name], PrivateLasso(**SETTING))
    with pytest.raises(LearntStep, match=f"{name} learnt from the rows"):
        pipe.fit(X, y, privatelasso__ledger=tmp_path / "budget")
    assert PrivacyLedger(tmp_path / "budget").spent == ZCDP.free()
    with pytest.raises(LearntStep, match="StandardScaler"):
        TransformedTargetRegressor(PrivateLasso(**SETTING), transformer=StandardScaler()).fit(X, y)


def test_steps_that_hold_public_numbers_are_taken():
    X, y = rows(300)
    public = StandardScaler().fit(np.eye(X.shape[1]))
    levels = OneHotEncoder(categories=[[0, 1]], handle_unknown="ignore", sparse_output=False)
    first = ColumnTransformer([("a", levels, [0])], remainder="passthrough")
    constant = SimpleImputer(strategy="constant", fill_value=0)
    for steps in (
        (FunctionTransformer(np.clip, kw_args={"a_min": -1, "a_max": 1}), Normalizer()),
        (PolynomialFeatures(2), constant),
        (FrozenEstimator(public),),
        (first,),
    ):
        make_pipeline(*steps, PrivateLasso(**SETTING)).fit(X, y)


def test_what_a_ledger_counts_and_what_is_not_private_are_left_alone(tmp_path):
    X, y = rows(500)
    PrivacyLedger.create(tmp_path / "budget.db", dataset="d", epsilon=5, delta=1e-6)
    model = PrivateLasso(**SETTING)
    assert heard(lambda: [model.fit(X, y, ledger=tmp_path / "budget.db") for _ in range(2)]) == []
    seeded = PrivateLasso(**SETTING, random_state=1)
    assert heard(lambda: [seeded.fit(X, y) for _ in range(3)]) == []
    assert clone(model).get_params() == model.get_params()


# --- two models -----------------------------------------------------------------------------------


def test_models_are_compared_over_the_same_steps():
    one = replace(fitted("split").released(), inference=None)
    wider = one.public_bounds * 1000
    other = replace(one, coefficients=one.coefficients * 2, declared_bounds=wider)
    assert (other.steps != one.steps).any()
    told = compared([one, other], ["a", "b\n"])
    for line in told.features:
        assert line.effects[1] == 2 * line.effects[0]
        assert line.step in one.steps
    sizes = [abs(line.effects[1]) for line in told.features]
    assert sizes == sorted(sizes, reverse=True)
    both = ZCDP.within(Budget(one.statement.epsilon, one.statement.delta))
    rho = ZCDP(both.rho * 2).epsilon(one.statement.delta)
    assert "they cost epsilon" in told.total
    assert float(told.total.split("epsilon ")[1].split()[0]) == pytest.approx(rho, rel=0.01)
    assert "\\n" in str(told).splitlines()[0]


def test_an_interval_stands_beside_the_estimate_that_it_is_of():
    """Half of the coefficients that predict lay outside the intervals that stood beside them."""
    one = fitted("split").released()
    told = compared([one, one], ["a", "b"])
    with_ends = [line for line in told.features if line.intervals[0] is not None]
    assert with_ends
    for line in with_ends:
        assert line.intervals[0][0] < line.effects[0] < line.intervals[0][1]
    found = next(iter(one.intervals.values()))
    assert f"(refit {number(found.coefficient, digits=4)})" in model_card_of(one)


def test_a_card_marks_the_features_that_its_footnotes_are_about():
    marks, release = fitted("ols").summary().marks, fitted("ols").released()
    assert any(marks.values())
    table = fitted("ols").to_model_card().split("## Features")[1].split("(intercept)")[0]
    notes = [line.rsplit(" | ", 1)[1].rstrip(" |") for line in table.strip().splitlines()[2:-1]]
    assert notes == [marks.get(j, "") for j in release.selected]
