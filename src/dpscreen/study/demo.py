"""The demonstration: published, proven and non-private methods on data whose truth is known."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen.data import Simulated, synthetic
from dpscreen.estimators import DPFrankWolfe, FrankWolfeLasso, RNMScreen
from dpscreen.privacy import PrivacyStatement, PublishedCalibrationWarning, WeakDeltaWarning
from dpscreen.study import metrics

# The paper's setting for its two synthetic data sets (Table 1).
RADIUS = 50.0
EPSILON = 5.0
DELTA = 1 / 3000
CORRELATION = {"uncorrelated": 0.0, "correlated": 0.5}
METRICS = ("TPR", "FPR", "F1", "density", "MSE")


@dataclass(frozen=True)
class Outcome:
    """A method's coefficients, how good they are, and what is promised about them."""

    method: str
    coef: Array
    metrics: dict[str, float]
    statement: PrivacyStatement | None


def paper_data(kind: str, rng: np.random.Generator) -> Simulated:
    """Return one of the paper's synthetic data sets."""
    return synthetic(correlation=CORRELATION[kind], rng=rng)


def contestants() -> dict[str, Callable[[], Any]]:
    """Return the methods of the demonstration, by the name they are shown under."""
    private: dict[str, Any] = {
        "radius": RADIUS,
        "epsilon": EPSILON,
        "delta": DELTA,
        "feature_bounds": (-1, 1),
        "target_bounds": (-RADIUS, RADIUS),
        "fit_intercept": False,
    }
    return {
        "RNM-Screen, published": lambda: RNMScreen(
            n_iter=1000, calibration="published", start="random", **private
        ),
        "RNM-Screen, proven": lambda: RNMScreen(n_iter=150, **private),
        "DP-FW, proven": lambda: DPFrankWolfe(n_iter=150, clip=1.0, **private),
        "optimum, not private": lambda: FrankWolfeLasso(
            radius=RADIUS, n_iter=3000, fit_intercept=False
        ),
    }


def outcomes(data: Simulated) -> Iterator[Outcome]:
    """Fit each method in turn, with fresh noise."""
    for name, make in contestants().items():
        with warnings.catch_warnings():
            # The demonstration prints each statement in full, so the short notices are not needed.
            warnings.simplefilter("ignore", PublishedCalibrationWarning)
            warnings.simplefilter("ignore", WeakDeltaWarning)
            model = make().fit(data.X, data.y)
        yield Outcome(
            name, model.coef_, _measure(data, model.coef_), getattr(model, "privacy_", None)
        )


def _measure(data: Simulated, coef: Array) -> dict[str, float]:
    values = (
        metrics.true_positive_rate(coef, data.coef),
        metrics.false_positive_rate(coef, data.coef),
        metrics.f1(coef, data.coef),
        metrics.density(coef),
        metrics.mean_squared_error(data.X, data.y, coef),
    )
    return dict(zip(METRICS, values, strict=True))
