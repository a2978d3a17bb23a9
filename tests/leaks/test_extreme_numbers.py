"""Parameters with which float64 cannot compute are refused for their own sake.

Such a refusal must not depend on the rows, must come before any noise is drawn, and must not cost
anything in a ledger.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from fuzz_rows import IGNORED, CountingNoise

from dpscreen import (
    ADPScreen,
    DPFrankWolfe,
    PrivacyLedger,
    PrivateLasso,
    PrivateOLS,
    RNMScreen,
)

pytestmark = [pytest.mark.filterwarnings(one) for one in IGNORED]

BASE = {"epsilon": 1.0, "delta": 1e-6, "feature_bounds": (-1, 1), "target_bounds": (-1, 1)}
STEPS = BASE | {"radius": 1.0, "n_iter": 3}
WIDEST = (-1.7e308, 1.7e308)
NARROW = (0.0, 1e-320)

PROVEN = {
    "coefficients overflow": (DPFrankWolfe, STEPS | {"feature_bounds": NARROW}),
    "a narrow feature": (RNMScreen, STEPS | {"feature_bounds": (0, 1e-300), "radius": 1e20}),
    "a wide target": (DPFrankWolfe, STEPS | {"target_bounds": WIDEST}),
    "a narrow target": (DPFrankWolfe, STEPS | {"target_bounds": NARROW, "radius": 1e-310}),
    "a tiny clip": (DPFrankWolfe, STEPS | {"clip": 1e-300}),
    "a huge radius": (RNMScreen, STEPS | {"radius": 1e200}),
    "a huge radius, all scores": (ADPScreen, STEPS | {"radius": 1e200}),
    "a tiny radius": (RNMScreen, STEPS | {"radius": 1e-230, "target_bounds": (-1e200, 1e200)}),
    "a tiny budget": (RNMScreen, STEPS | {"epsilon": 1e-9, "delta": 1e-12}),
    "a tiny budget, all scores": (ADPScreen, STEPS | {"epsilon": 1e-6, "delta": 1e-12}),
    "lasso, narrow target": (PrivateLasso, BASE | {"target_bounds": (0, 1e-304)}),
    "lasso, wide target": (PrivateLasso, BASE | {"target_bounds": WIDEST}),
    "lasso, narrow feature": (
        PrivateLasso,
        BASE | {"feature_bounds": (0, 1e-300), "target_bounds": (-1e20, 1e20)},
    ),
    "lasso, long rows": (PrivateLasso, BASE | {"row_norm": 1e60, "solver": "noisy-gradient"}),
    "lasso, as many rows as atoms": (PrivateLasso, BASE | {"n_rows": 10**80}),
    "lasso, more rows than noise can be for": (PrivateLasso, BASE | {"n_rows": 10**15}),
    "a table of too many rows": (PrivateOLS, BASE | {"n_rows": 10**16}),
    "lasso, huge clip": (PrivateLasso, BASE | {"clip": 1e30, "solver": "noisy-gradient"}),
}
PUBLISHED = {
    "coefficients overflow": (DPFrankWolfe, STEPS | {"feature_bounds": NARROW}),
    "a huge radius, screened": (RNMScreen, STEPS | {"radius": 1e200}),
}


def rows():
    rng = np.random.default_rng(3)
    return rng.uniform(-1, 1, size=(50, 3)), rng.choice([-1e308, 1e308], size=50)


def refused_or_fitted(model, ledger=None):
    """Fit with warnings shown, as users do; return the noise used if refused, None if fitted."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.fit(*rows(), **({} if ledger is None else {"ledger": ledger}))
        except ValueError:
            return model.random_state.used
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.intercept_)
    return None


@pytest.mark.parametrize("name", PROVEN)
def test_extreme_parameters_fit_or_are_refused_before_noise_and_booking(name, tmp_path):
    kind, params = PROVEN[name]
    ledger = PrivacyLedger.create(tmp_path / "b.db", dataset="d", epsilon=2, delta=1e-6)
    used = refused_or_fitted(kind(**params, random_state=CountingNoise(1)), ledger)
    assert used in (None, 0)
    assert len(ledger.entries()) == (used is None)


@pytest.mark.parametrize("name", PUBLISHED)
def test_extreme_published_parameters_fit_or_are_refused_before_noise(name):
    kind, params = PUBLISHED[name]
    model = kind(**params, calibration="published", random_state=CountingNoise(1))
    assert refused_or_fitted(model) in (None, 0)


@pytest.mark.parametrize("size", [1e200, 1e260])
def test_no_size_switches_the_published_noise_off(size):
    params = STEPS | {"radius": size, "target_bounds": (-size, size), "n_iter": 1}
    chosen = set()
    for seed in range(30):
        model = DPFrankWolfe(
            **params, calibration="published", start="zero", random_state=CountingNoise(seed)
        )
        if refused_or_fitted(model) is None:
            chosen.add((*np.sign(model.coef_).tolist(),))
    assert len(chosen) != 1


@pytest.mark.parametrize("name", PROVEN)
def test_extreme_parameters_meet_the_same_end_whatever_the_rows(name):
    kind, params = PROVEN[name]
    ends = set()
    for fill in (0.0, -1e308):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = kind(**params, random_state=CountingNoise(1))
            try:
                model.fit(np.full((6, 2), fill), np.full(6, fill))
                ends.add("fitted")
            except Exception as problem:
                ends.add(f"{type(problem).__name__}: {problem}")
    assert len(ends) == 1


def test_noisy_gradients_never_run_out_of_budget():
    rng = np.random.default_rng(0)
    for seed in range(100):
        X, y = rng.normal(size=(30, 8)), rng.normal(size=30)
        params = BASE | {"epsilon": 14.31, "solver": "noisy-gradient"}
        PrivateLasso(**params, random_state=seed).fit(X, y)
