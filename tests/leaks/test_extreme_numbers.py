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
    "lasso, long rows": (PrivateLasso, BASE | {"row_norm": 1e60}),
    "lasso, as many rows as atoms": (PrivateLasso, BASE | {"n_rows": 10**80}),
    "lasso, more rows than noise can be for": (PrivateLasso, BASE | {"n_rows": 10**15}),
    "a table of too many rows": (PrivateOLS, BASE | {"n_rows": 10**16}),
    "lasso, huge clip": (PrivateLasso, BASE | {"clip": 1e30}),
}
PUBLISHED = {
    "coefficients overflow": (DPFrankWolfe, STEPS | {"feature_bounds": NARROW}),
    "a huge radius, screened": (RNMScreen, STEPS | {"radius": 1e200}),
}


def rows(fill=None):
    if fill is not None:
        return np.full((6, 2), fill), np.full(6, fill)
    rng = np.random.default_rng(3)
    return rng.uniform(-1, 1, size=(50, 3)), rng.choice([-1e308, 1e308], size=50)


def refusal(model, *given, **more):
    """Fit with warnings shown, as users do; return what was refused, None if it was fitted."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.fit(*given, **more)
        except ValueError as problem:
            assert model.random_state.used == 0
            return str(problem)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.intercept_)
    return None


@pytest.mark.parametrize("name", PROVEN)
def test_extreme_parameters_fit_or_are_refused_before_noise_and_booking(name, tmp_path):
    """With the same end for all rows."""
    kind, params = PROVEN[name]
    ends = set()
    for fill in (None, 0.0, -1e308):
        ledger = PrivacyLedger.create(tmp_path / f"{fill}.db", dataset="d", epsilon=2, delta=1e-6)
        end = refusal(kind(**params, random_state=CountingNoise(1)), *rows(fill), ledger=ledger)
        assert len(ledger.entries()) == (end is None)
        ends.add(end)
    assert len(ends) == 1


@pytest.mark.parametrize("name", PUBLISHED)
def test_extreme_published_parameters_fit_or_are_refused_before_noise(name):
    kind, params = PUBLISHED[name]
    refusal(kind(**params, calibration="published", random_state=CountingNoise(1)), *rows())


@pytest.mark.parametrize("size", [1e200, 1e260])
def test_no_size_switches_the_published_noise_off(size):
    params = STEPS | {"radius": size, "target_bounds": (-size, size), "n_iter": 1}
    chosen = set()
    for seed in range(30):
        model = DPFrankWolfe(
            **params, calibration="published", start="zero", random_state=CountingNoise(seed)
        )
        if refusal(model, *rows()) is None:
            chosen.add((*np.sign(model.coef_).tolist(),))
    assert len(chosen) != 1
