"""Predictions of every estimator lie within the declared bounds of the target."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from dpscreen import load
from dpscreen.models import frank_wolfe, peers, private_lasso, private_ols, tukey

BOUNDS = (0.0, 10.0)
TOLD = {"epsilon": 20.0, "delta": 1e-6, "feature_bounds": (-1, 1), "target_bounds": BOUNDS}
WALK = {"radius": 40.0, "n_iter": 8}
MADE = {
    "PrivateLasso": lambda: private_lasso.PrivateLasso(**TOLD),
    "PrivateOLS": lambda: private_ols.PrivateOLS(**TOLD),
    **{name: lambda name=name: getattr(peers, name)(**TOLD) for name in peers.__all__},
    **{
        f"{name} {calibration}": lambda name=name, calibration=calibration: getattr(
            frank_wolfe, name
        )(**TOLD, **WALK, calibration=calibration)
        for name in ("DPFrankWolfe", "RNMScreen", "ADPScreen")
        for calibration in ("proven", "published")
    },
}


def rows(n_rows=2000):
    rng = np.random.default_rng(8)
    X = rng.uniform(-1, 1, (n_rows, 3))
    return X, np.clip(5 + 20 * X[:, 0] + rng.normal(0, 1, n_rows), *BOUNDS)


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_predictions_are_clipped_to_the_bounds_of_the_target(make, tmp_path):
    X, y = rows()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make().fit(X, y)
    model.coef_, model.intercept_ = np.array([50.0, 0.0, 0.0]), 5.0  # steeper than the bounds allow
    model.save(tmp_path / "model.json")
    expected = np.clip(5 + 50 * np.clip(X[:, 0], *_clip(model)), *BOUNDS)
    assert len(np.unique(expected)) > 3
    for one in (model, load(tmp_path / "model.json")):
        np.testing.assert_allclose(one.predict(X), expected)
    if hasattr(model, "quality_"):
        ends = model.predict(X, interval=0.5)
        assert (ends[:, 1] <= ends[:, 0]).all()
        assert (ends[:, 0] <= ends[:, 2]).all()


def _clip(model):
    return getattr(model, "feature_bounds_", np.array([(-np.inf, np.inf)]))[0]


def test_the_one_of_pure_epsilon_clips_too():
    X, y = rows()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = tukey.TukeyEM(
            **TOLD | {"feature_bounds": [(-1, 1)] * 3}, n_rows=2000, random_state=1
        ).fit(X, y)
    model.coef_ = np.array([50.0, 0.0, 0.0])
    assert (model.predict(X).min(), model.predict(X).max()) == BOUNDS


def test_bounds_given_after_the_fit_change_nothing():
    X, y = rows()
    model = private_lasso.PrivateLasso(**TOLD).fit(X, y)
    before = model.predict(X)
    np.testing.assert_array_equal(model.set_params(target_bounds=(4, 5)).predict(X), before)
