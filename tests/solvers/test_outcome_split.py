"""Intervals of outcomes by a split: the second half's table, its account, refusals, coverage."""

from __future__ import annotations

import math
import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import optimize
from scipy.special import expit

import dpscreen
from dpscreen import PrivateLogistic
from dpscreen.privacy import ZCDP, Accountant, Budget, SeededNoise
from dpscreen.rows.loss import LOGISTIC
from dpscreen.rows.source import ArrayRows, PublicUnits
from dpscreen.solvers import inference
from dpscreen.solvers.base import Choices, Spending
from dpscreen.solvers.least_squares import regress
from dpscreen.solvers.logistic import LOG_ODDS, OutcomeShare
from dpscreen.solvers.logit_table import log_odds_table
from dpscreen.solvers.rules import Regime

pytestmark = [
    pytest.mark.filterwarnings("ignore::dpscreen.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::dpscreen.WeakDeltaWarning"),
    pytest.mark.filterwarnings("ignore::dpscreen.BoundsWarning"),
]
SETTING = {"epsilon": 3.0, "delta": 1e-6, "feature_bounds": (-6, 6), "inference": "split"}
EFFECTS = (1.0, -0.7, 0.5, 0.3)


def drawn(seed, n_rows=8000, n_features=10):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features))
    return X, (rng.random(n_rows) < expit(X[:, :4] @ EFFECTS - 0.5)).astype(int)


@pytest.fixture(scope="module")
def model():
    return PrivateLogistic(**SETTING).fit(*drawn(1))


# --- the second half ------------------------------------------------------------------------------


def second_half(X, y, weights, noise, table):
    """Infer from these rows, whose first half chose by these weights."""
    d, loss = X.shape[1], LOGISTIC
    bounds, target = np.array([[-6.0, 6.0]] * d), np.array([0.0, 1.0])
    units = PublicUnits(bounds, target, constant=True, loss=loss, target_at=0.0)
    selected = inference.Selected(np.array(weights), units, deviation=LOG_ODDS, spread=0.2)
    spending = Spending(Accountant(noise, limit=ZCDP(1)), ZCDP(1), Regime(len(X), d, 1.0))
    names = [f"{weight:g}" for weight in weights]
    half = inference.SplitHalf(spending, ArrayRows(X, y.astype(float)))
    return inference.infer(half, selected, bounds, Choices(), names, inference.SecondTable(table))


def of_outcomes(wide, columns):
    return log_odds_table(OutcomeShare(0.4), wide, columns)


@pytest.mark.parametrize("table", [of_outcomes, regress])
def test_a_table_of_some_columns_is_that_of_rows_that_have_no_others(table):
    X, y = drawn(2)
    few = [1, 3, 7]
    weights = np.zeros(11)
    weights[[*few, -1]] = 0.5, -0.25, 0.125, 1.0
    among = second_half(X, y, weights, SeededNoise(5), table)
    alone = second_half(X[:, few], y, weights[[*few, -1]], SeededNoise(5), table)
    assert among.wording == alone.wording
    assert [one.feature for one in among.intervals] == few
    for one, other in zip(among.intervals, alone.intervals, strict=True):
        assert one.name == other.name
        for number in ("coefficient", "standard_error", "low", "high"):
            assert getattr(one, number) == pytest.approx(getattr(other, number), rel=1e-9)


def test_it_takes_no_matrix_of_all_features():
    """With 30 000 of them one would take 7 GB."""
    X, y = drawn(2, n_rows=400)
    weights = np.zeros(30_001)
    weights[[1, 3, -1]] = 0.5, -0.25, 1.0
    found = second_half(np.pad(X, ((0, 0), (0, 29_990))), y, weights, SeededNoise(5), regress)
    assert [one.feature for one in found.intervals] == [1, 3]


def test_where_the_constant_starts_matters_little():
    X, y = drawn(3)
    weights = [0.5, -0.4, 0.3, 0.2, *[0.0] * 6, 1.0]
    found = [
        second_half(X, y, weights, SeededNoise(6), partial(log_odds_table, OutcomeShare(share)))
        for share in (0.2, 0.4, 0.7)
    ]
    for one, middle, other in zip(*(each.intervals for each in found), strict=True):
        assert one.coefficient == pytest.approx(middle.coefficient, abs=middle.standard_error / 4)
        assert other.coefficient == pytest.approx(middle.coefficient, abs=middle.standard_error / 4)


# --- the result -----------------------------------------------------------------------------------


def test_intervals_are_of_log_odds_and_hold_released_values_only(model):
    X, y = drawn(1)
    found = model.inference_
    assert found.available
    assert "model of log-odds of the features with an interval alone, and a const" in found.wording
    by_feature = {row.feature: row for row in found.intervals}
    for feature, effect in enumerate(EFFECTS):
        row = by_feature[feature]
        assert row.coefficient == pytest.approx(effect, abs=6 * row.standard_error)
        assert row.standard_error < 0.15
    without = PrivateLogistic(**SETTING | {"inference": None}).fit(X, y)
    assert set(vars(model)) - set(vars(without)) == {"inference_"}
    assert X[:3, 0].tobytes() not in pickle.dumps(model)
    assert not model.quality_.in_sample
    assert without.quality_.in_sample


def test_the_statement_lists_both_halves_and_the_larger_rho(model):
    limit = float(ZCDP.within(Budget(SETTING["epsilon"], SETTING["delta"])))
    sums = {"first half": 0.0, "second half": 0.0, "the number of rows": 0.0}
    for record in model.privacy_.mechanisms:
        sums[record.purpose.split(":")[0]] += record.rho
    counted = sums.pop("the number of rows")
    assert model.privacy_.holds
    assert limit * (1 - 1e-9) <= model.privacy_.rho <= limit * (1 + 1e-12)
    for total in sums.values():
        assert counted + total == pytest.approx(limit, rel=1e-9)
    assert "secret coin" in " ".join(str(model.privacy_).split())
    classes = [one for one in model.privacy_.mechanisms if "of the second class" in one.purpose]
    assert [one.purpose.split(":")[0] for one in classes] == ["first half"]


def test_a_file_and_the_summary_tell_odds_ratios(model, tmp_path):
    model.save(tmp_path / "model.json")
    loaded = dpscreen.load(tmp_path / "model.json")
    assert loaded.inference_ == model.inference_
    assert str(loaded.summary()) == str(model.summary())
    row = next(one for one in model.summary().rows if one.feature == "x0")
    low, refit, high = row.odds_interval
    assert refit == pytest.approx(math.exp(row.refit * row.step))
    assert low < refit < high
    (line,) = (one for one in str(model.summary()).splitlines() if one.startswith("x0 "))
    assert [float(cell) for cell in line.split()[-3:]] == pytest.approx(
        [refit, low, high], rel=1e-3
    )
    told = " ".join(str(model.summary()).split())
    assert "is what the interval is for, both as odds ratios with the step" in told
    assert {"refit", "low", "high", "odds_ratio"} <= set(model.summary().frame)


def test_the_page_tells_them(model, tmp_path):
    path = dpscreen.write_model_page(model, tmp_path / "page.html", n_rows=300)
    text = path.read_text(encoding="utf-8")
    assert "refit with its 95 % interval" in text
    assert "the half that selects" in text
    heads = [part.split("<")[0] for part in text.split('<th scope="col">')[1:7]]
    assert heads == ["Feature", "Step", "Odds ratio", "Refit", "95 % interval", "Coefficient"]
    (line,) = (one for one in text.split("<tr>") if one.startswith('<th scope="row"><bdi>x0<'))
    assert line.count("<td") == 5


# --- refusals -------------------------------------------------------------------------------------


def test_too_few_rows_are_refused_and_not_split():
    X, y = drawn(4, n_rows=200)
    setting = SETTING | {"epsilon": 0.5}
    model = PrivateLogistic(**setting, random_state=2).fit(X, y)
    assert not model.inference_.available
    assert "too few rows for so many features" in model.inference_.wording
    without = PrivateLogistic(**setting | {"inference": None}, random_state=2).fit(X, y)
    np.testing.assert_array_equal(model.coef_, without.coef_)
    assert "first half" not in str(model.privacy_)
    assert "too few rows" in str(model.summary())


def test_where_nothing_is_asked_for_the_summary_says_what_to_ask():
    model = PrivateLogistic(**SETTING | {"inference": None}).fit(*drawn(1))
    told = " ".join(str(model.summary()).split())
    assert "the model was not fitted with inference='split'" in told


def test_several_rows_of_a_unit_are_refused():
    with pytest.raises(ValueError, match="needs rows_per_unit=1"):
        PrivateLogistic(**SETTING, rows_per_unit=2).fit(*drawn(1))


def test_why_odds_have_no_interval_is_told_by_name():
    """A level of which all rows say yes stays in the model, and the others are told beside it."""
    rng = np.random.default_rng(7)
    n = 20_000
    level = rng.random(n) < 0.2
    x = rng.normal(size=n)
    sure = (rng.random(n) < expit(x)) | level
    model = PrivateLogistic(
        **SETTING | {"feature_bounds": {"x": (-6, 6), "level": (0, 1)}}, random_state=1
    ).fit(pd.DataFrame({"x": x, "level": level.astype(float)}), sure.astype(int))
    found = model.inference_
    assert [one.name for one in found.intervals] == ["x"]
    assert "of log-odds of the features with an interval and of level, and a const" in found.wording
    assert "level: " in found.wording
    (only,) = found.intervals
    assert only.coefficient == pytest.approx(1, abs=4 * only.standard_error)


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (3, 40), (200, 2)])
@pytest.mark.parametrize("intercept", [True, False])
def test_odd_data_and_empty_halves_do_not_stop_a_fit(shape, intercept):
    rng = np.random.default_rng(36)
    heavy = rng.standard_cauchy(shape) * 1e3
    for X, y in ((np.full(shape, 3.0), np.zeros(shape[0])), (heavy * 1e150, heavy[:, 0] > 0)):
        for epsilon, bound in ((3.0, 1e50), (1.0, 2.0), (50.0, 1e-9)):
            model = PrivateLogistic(
                **SETTING | {"epsilon": epsilon, "feature_bounds": (-bound, bound)},
                n_rows=20_000,
                fit_intercept=intercept,
            ).fit(X, y.astype(int))
            assert np.isfinite(model.coef_).all()
            for row in model.inference_.intervals:
                assert np.isfinite([row.low, row.high]).all()
            assert model.privacy_.rho <= float(ZCDP.within(Budget(epsilon, 1e-6)))


# --- coverage -------------------------------------------------------------------------------------


def projection(features):
    """Return the coefficients of chosen features alone: others add to the log-odds' spread.

    Features are normal and independent, so one number tells by how much all are smaller.
    """
    effects = np.zeros(10)
    effects[:4] = EFFECTS
    kept = effects[list(features)]
    nodes, parts = np.polynomial.hermite_e.hermegauss(60)
    inside, outside = np.linalg.norm(kept), math.sqrt(float(effects @ effects - kept @ kept))
    line = inside * nodes[:, None] + outside * nodes[None, :] - 0.5
    chances = (expit(line) * parts).sum(axis=1) / parts.sum()

    def off(pair):
        residual = parts * (expit(pair[0] * inside * nodes + pair[1]) - chances)
        return residual.sum(), (residual * nodes).sum()

    return optimize.fsolve(off, (1.0, -0.5))[0] * kept


def test_coverage_in_a_small_setting():
    """30 fits, about 120 intervals: .85 is below .95 by five deviations of a mean of those."""
    held = []
    for seed in range(30):
        model = PrivateLogistic(**SETTING, quality=False, random_state=seed).fit(*drawn(seed + 100))
        found = model.inference_.intervals
        truth = projection([one.feature for one in found])
        held += [one.low <= true <= one.high for one, true in zip(found, truth, strict=True)]
    assert len(held) > 90
    assert np.mean(held) > 0.85
