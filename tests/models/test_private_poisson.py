"""PrivatePoisson and its sparse sibling: coverage, offsets, contract, one answer for all rows."""

from __future__ import annotations

from itertools import product

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.metrics import d2_tweedie_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from dpscreen import PrivatePoisson, PrivatePoissonLasso, load
from dpscreen.families import POISSON
from dpscreen.families.poisson import poisson_deviance
from dpscreen.models.page import render_model_page
from dpscreen.models.regression_table import table_fields, table_of_fields
from dpscreen.rows import fits
from dpscreen.rows.lattice import LatticeDesign, on_lattice
from dpscreen.rows.loss import EXPONENTIAL, POWERS
from dpscreen.rows.mixed import MixedRows, capped_middle, capped_products, size_counts
from dpscreen.rows.sums import LEVELS

pytestmark = [
    pytest.mark.filterwarnings("ignore::dpscreen.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::dpscreen.WeakDeltaWarning"),
    pytest.mark.filterwarnings("ignore::dpscreen.BoundsWarning"),
]
BUDGET = {"epsilon": 2.0, "delta": 1e-6, "random_state": 5}
BOUNDS = {"feature_bounds": (-8, 8), "target_bounds": (0, 100)}
SLOPES = np.array([0.3, -0.2, 0.0, 0.1])


def counts(n_rows=6000, seed=0, mean=2.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, len(SLOPES)))
    return X, rng.poisson(mean * np.exp(X @ SLOPES)).astype(float)


@pytest.fixture(scope="module", params=[PrivatePoisson, PrivatePoissonLasso])
def fitted(request):
    return request.param(**BUDGET, **BOUNDS).fit(*counts())


# --- intervals ------------------------------------------------------------------------------------


@pytest.mark.parametrize("errors", ["poisson", "five times the mean", "lognormal"])
def test_intervals_cover_and_are_not_much_wider_than_without_privacy(errors):
    """Of 72 intervals that cover 95 times in 100, fewer than 62 cover once in 1 000 series."""
    covers, wider = [], []
    for seed in range(18):
        rng, (X, y) = np.random.default_rng([seed, 1]), counts(6000, seed)
        mean = 2 * np.exp(X @ SLOPES)
        if errors == "five times the mean":
            y = rng.poisson(rng.gamma(mean / 4, 4)).astype(float)
        if errors == "lognormal":
            y = mean * np.exp(0.7 * rng.normal(size=len(X)) - 0.245)
        settings = BUDGET | BOUNDS | {"epsilon": 5.0, "quality": False, "random_state": seed}
        table = PrivatePoisson(**settings).fit(X, y).table_
        half = table.half_widths(0.95)[:4]
        covers += (np.abs(table.coefficients[:4] - SLOPES) <= half).tolist()
        wider += (half / table.plain_half_widths()[:4]).tolist()
    assert sum(covers) >= 62
    assert np.median(wider) < 1.6


def test_rate_ratios_and_mean_predictions_have_intervals():
    X, y = counts()
    model = PrivatePoisson(**BUDGET, **BOUNDS).fit(pd.DataFrame(X, columns=list("abcd")), y)
    found = model.rate_ratios()
    np.testing.assert_allclose(found["rate_ratio"], np.exp(model.params.iloc[:4]))
    np.testing.assert_allclose(found["per_cent"], 100 * (found["rate_ratio"] - 1))
    assert (found["low"] < np.exp(SLOPES)).sum() >= 3 <= (found["high"] > np.exp(SLOPES)).sum()
    assert "rate ratio" in str(model.summary())
    mean = model.get_prediction(pd.DataFrame(np.zeros((1, 4)), columns=list("abcd")))
    row = mean.summary_frame().iloc[0]
    assert row["mean_ci_lower"] < 2.0 < row["mean_ci_upper"]


# --- predictions, files, pages --------------------------------------------------------------------


def test_predictions_are_means_and_the_score_is_the_deviance_explained(fitted):
    X, y = counts(seed=1)
    predicted = fitted.predict(X)
    np.testing.assert_allclose(predicted, np.exp(X @ fitted.coef_ + fitted.intercept_), rtol=1e-9)
    assert fitted.score(X, y) == pytest.approx(d2_tweedie_score(y, predicted, power=1))
    assert fitted.predict(1e9 * X).max() <= 100
    low, high = fitted.quality_.explained_low, fitted.quality_.explained_high
    assert low <= fitted.quality_.deviance_explained <= high
    assert high - low < 0.3
    assert "deviances of rows clipped at" in str(
        fitted.summary()
    )  # else it reads as that of all rows


@pytest.mark.parametrize("kind", ["costs", "many zeros"])
def test_predictions_of_few_rows_add_up_to_what_outcomes_do(kind):
    """Six fits at ε = 0.5, where residuals are clipped: within a factor of two, in the median."""
    ratios = []
    for seed in range(6):
        rng, n = np.random.default_rng(seed), 5000
        X = rng.normal(size=(n, 6))
        mean = np.exp(0.3 * X[:, 0]) * (100 if kind == "costs" else 1)
        size = mean * rng.lognormal(size=n) if kind == "costs" else rng.poisson(mean)
        y = np.where(rng.random(n) < 0.35, size, 0.0)
        options = BUDGET | {"epsilon": 0.5, "random_state": seed, "quality": False}
        high = float(2 * y.max())
        model = PrivatePoissonLasso(**options, feature_bounds=(-8, 8), target_bounds=(0, high))
        ratios.append(model.fit(X, y).predict(X).mean() / y.mean())
    assert 0.5 < np.median(ratios) < 2


def test_a_model_file_holds_all_of_it(fitted, tmp_path):
    fitted.save(tmp_path / "model.json")
    loaded, (X, _) = load(tmp_path / "model.json"), counts(50, 3)
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))
    assert loaded.family is POISSON
    assert loaded.quality_ == fitted.quality_
    assert str(loaded.summary()) == str(fitted.summary())
    np.testing.assert_allclose(fitted.to_sklearn(force=True).predict(X), fitted.predict(X))
    assert "EXP(" in fitted.to_formula("sql", force=True).upper()


def test_the_page_draws_the_calibration(fitted):
    page = render_model_page(fitted)
    assert "Calibration" in page
    assert "deviance explained" in page


# --- offsets --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [PrivatePoisson, PrivatePoissonLasso])
def test_an_offset_has_the_coefficient_one_and_makes_rates(kind):
    rng = np.random.default_rng(3)
    years = rng.uniform(0.2, 5, 8000)
    X = pd.DataFrame({"a": rng.normal(size=8000), "log_years": np.log(years)})
    y = rng.poisson(years * np.exp(0.4 * X["a"] - 0.5))
    bounds = {"feature_bounds": {"a": (-8, 8), "log_years": (-3, 3)}, "target_bounds": (0, 100)}
    model = kind(**BUDGET, **bounds, offset="log_years").fit(X, y)
    np.testing.assert_allclose(model.coef_, [0.4, 1.0], atol=0.05)
    assert model.coef_[1] == pytest.approx(1, abs=1e-5)
    assert model.intercept_ == pytest.approx(-0.5, abs=0.1)
    if kind is PrivatePoisson:
        assert model.params.isna().to_dict() == {"a": False, "log_years": True, "const": False}
        assert "offset" in model.table_.reasons[1]
        assert table_of_fields(table_fields(model.table_), model.table_.names, 2).offset == {1}
        assert model.get_prediction(X[:2]).summary_frame().notna().all(axis=None)
    with pytest.raises(ValueError, match="offset must be"):
        kind(**BUDGET, **bounds, offset="years").fit(X, y)


def test_an_offset_and_a_split_are_refused():
    with pytest.raises(ValueError, match="does not support an offset"):
        PrivatePoissonLasso(**BUDGET, **BOUNDS, offset=0, inference="split").fit(*counts())


# --- the contract ---------------------------------------------------------------------------------


class Unrefused(PrivatePoisson):
    """PrivatePoisson that tries tables as small as scikit-learn's own."""

    def _refuse(self, *_):
        """Refuse nothing."""


@parametrize_with_checks(
    [
        PrivatePoissonLasso(**{**BUDGET, **BOUNDS, "epsilon": 1000.0}),
        Unrefused(**BUDGET, **BOUNDS),
    ]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_check(estimator, check):
    check(estimator)


def test_one_answer_for_rows_of_every_kind():
    X, y = counts(1500)
    for kind in (PrivatePoisson, PrivatePoissonLasso):
        model = kind(**{**BUDGET, "epsilon": 20.0}, **BOUNDS)
        whole = model.fit(X, y)
        expected = np.append(whole.coef_, whole.intercept_)
        parted = model.fit(da.from_array(X, chunks=(400, 4)), da.from_array(y, chunks=400))
        np.testing.assert_array_equal(np.append(parted.coef_, parted.intercept_), expected)
    assert model.fit(sp.csr_array(X), y).privacy_.mechanisms


@pytest.mark.parametrize("bounds", [(-1, 5), (0, 0), (3, 2), (-3, -1)])
def test_bounds_that_no_mean_can_have_are_refused(bounds):
    with pytest.raises(ValueError, match="target_bounds"):
        PrivatePoisson(**BUDGET, feature_bounds=(-8, 8), target_bounds=bounds).fit(*counts(50))


# --- the sums -------------------------------------------------------------------------------------


def test_lemma_90_means_are_exponentials_within_the_bound():
    exact = np.exp(-np.arange(len(POWERS)) / 64)
    np.testing.assert_allclose(POWERS, exact, atol=2.0**-51)
    predictors = np.sort(np.random.default_rng(0).uniform(-32, 0, 20000))
    _, means = fits.means(predictors)
    off = means - np.exp(predictors)
    assert off.min() >= -(2.0**-51)
    assert (off <= 3.1e-5 * np.exp(predictors) + 2.0**-51).all()
    assert (np.diff(means) >= 0).all()
    levels, steps = np.empty(20000, dtype=np.int16), np.rint(predictors * 2**30).astype(np.int64)
    EXPONENTIAL.levels(steps, np.zeros(20000), (2.0**-30, LEVELS / 0.5, float(LEVELS)), levels)
    expected = np.minimum(np.rint(fits.means(steps * 2.0**-30)[1] * 2 * LEVELS), LEVELS)
    np.testing.assert_array_equal(levels, expected)


def test_lemma_92_unit_deviances_are_those_of_floats():
    rng = np.random.default_rng(1)
    y, predictors = rng.random(5000) * (rng.random(5000) < 0.8), rng.uniform(-10, 0, 5000)
    expected = poisson_deviance(y, np.exp(predictors))
    np.testing.assert_allclose(fits.unit_deviances(predictors, y), expected, atol=1e-4)


def point_of(X, y, move):
    """Return a point of rows with a log link, where weights are not zero."""
    design = LatticeDesign(np.ascontiguousarray(on_lattice(X).T), y, EXPONENTIAL)
    point = design.start(2.0**-10)
    for feature, amount in enumerate(move):
        point.add(feature, int(amount))
    return point


EDGES = np.array([0.0, -0.0, 1.0, -1.0, 2.0**-14, 0.3, -0.7, 1 - 2.0**-15])


@pytest.mark.parametrize("seed", range(30))
def test_lemmas_91_and_92_one_row_moves_every_sum_by_no_more_than_is_booked(seed):
    """Brute force over neighbours: a row of any cells and any outcome, at any place."""
    rng = np.random.default_rng(seed)
    X, y = rng.choice(EDGES, (12, 3)), rng.random(12) * (rng.random(12) < 0.7)
    added, outcome = rng.choice(EDGES, 3), rng.choice([0.0, 1.0, rng.random(), 1e-9])
    at, move = int(rng.integers(13)), rng.integers(-4000, 4000, 3)
    move[0] -= 3000
    rows = MixedRows.near(np.arange(3), rng.normal(size=(3, 3)) * rng.choice([0.3, 1.0, 8.0]))
    clip, cap = rng.choice([1.0, 0.2, 0.01]), rng.choice([1.0, 0.3])
    edges, most = np.sort(rng.uniform(-6, 0, 4)), rng.choice([0.05, 2.0])

    def asked(X, y):
        point = point_of(X, y, move)
        return [
            point.row_total(capped_products, clip, rows, cap) / UNITS_OF["score"],
            point.curved_total(capped_middle, clip, rows, cap) / UNITS_OF["gram"],
            point.curved_total(size_counts, clip, rows, cap, 20).astype(float),
            point.fit_total(fits.deviance_total, 0.1, most)[1:] / LEVELS,
            point.fit_total(fits.calibration_sums, edges, 0.3).ravel() / LEVELS,
        ]

    fewer, more = asked(X, y), asked(np.insert(X, at, added, 0), np.insert(y, at, outcome))
    score, gram, sizes, deviance, table = (b - a for a, b in zip(fewer, more, strict=True))
    weighted = np.where(np.eye(3, dtype=bool), 5.0, 7.0) * np.triu(gram)
    for change, booked in (
        *((score, cap), (weighted, 5.0), (sizes, 1.0)),
        *((deviance, 1.0), (table, np.sqrt(2))),
    ):
        assert np.linalg.norm(change) <= booked * (1 + 1e-9)


UNITS_OF = {"score": float(LEVELS**2), "gram": float(LEVELS**2)}
FAR = (5e-324, 1e-17, 1 / 64, 1.0, 31.999, 32.0, 700.0, 1.7e308, np.inf)


def test_no_predictor_or_outcome_leads_a_deviance_out_of_its_clip():
    """Nor does any make NumPy warn, which would depend on the rows."""
    fitted = np.array([0.0, *FAR, *(-one for one in FAR)])
    outcomes = np.array([0.0, 5e-324, 2.3e-308, 1e-17, 0.5, 1 - 2.0**-53, 1.0])
    for row in product(fitted, outcomes, (0.0, -1.0, -700.0), (1e-300, 1e-16, 1.0, 66.0)):
        one, outcome, shift, most = (np.array([number]) for number in row)
        count, total = fits.deviance_total(one, outcome, float(shift[0]), float(most[0]))
        assert count == 1
        assert 0 <= total <= LEVELS
        table = fits.calibration_sums(one, outcome, np.array([-3.0, -1.0]), float(most[0]))
        assert table[0].sum() == LEVELS
        assert 0 <= table[1].sum() <= LEVELS
