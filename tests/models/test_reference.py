"""The non-private reference against scikit-learn's LASSO."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Lasso

from dpscreen import FrankWolfeLasso
from dpscreen.paper.data import synthetic


@pytest.mark.parametrize("intercept", [True, False])
def test_it_reaches_the_optimum_of_the_constrained_lasso(intercept):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 10))
    y = 3 + X[:, 0] - 2 * X[:, 4] + rng.normal(size=300)
    lasso = Lasso(alpha=0.2, fit_intercept=intercept, tol=1e-12).fit(X, y)
    radius = np.abs(lasso.coef_).sum()
    model = FrankWolfeLasso(radius=radius, n_iter=20_000, fit_intercept=intercept).fit(X, y)
    loss = lambda m: np.mean((m.predict(X) - y) ** 2) / 2  # noqa: E731
    assert loss(lasso) <= loss(model) <= loss(lasso) + model.dual_gap_ + 1e-12
    assert model.dual_gap_ < 1e-3
    np.testing.assert_allclose(model.coef_, lasso.coef_, atol=0.02)
    assert model.intercept_ == pytest.approx(lasso.intercept_, abs=0.02)


def test_safe_screening_leaves_out_only_what_the_optimum_does_not_need():
    data = synthetic(
        n_rows=400, n_features=60, n_positive=3, n_negative=2, rng=np.random.default_rng(1)
    )
    setting = {"radius": 2.0, "n_iter": 20_000, "fit_intercept": False}
    plain = FrankWolfeLasso(**setting).fit(data.X, data.y)
    screened = FrankWolfeLasso(**setting, screening="safe").fit(data.X, data.y)
    assert 0 < screened.screened_.sum() <= 55
    assert not (screened.screened_ & (np.abs(plain.coef_) > 1e-3)).any()
    np.testing.assert_allclose(screened.coef_, plain.coef_, atol=1e-3)


def test_the_rule_as_printed_screens_the_true_support_at_a_large_radius():
    """Erratum E3: with radius 50 the printed rule removes features that the truth needs."""
    data = synthetic(rng=np.random.default_rng(2))
    setting = {"radius": 50.0, "n_iter": 1000, "fit_intercept": False}
    printed = FrankWolfeLasso(**setting, screening="published").fit(data.X, data.y)
    safe = FrankWolfeLasso(**setting, screening="safe").fit(data.X, data.y)
    assert printed.screened_[:70].any()
    assert not safe.screened_[:70].any()
