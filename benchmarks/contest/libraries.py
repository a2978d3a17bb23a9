"""Rivals that are packages of others, as they are: diffprivlib and DP-EBM of interpret.

Both are optional; without the package the method does not play. Their noise is in floats.
"""

from __future__ import annotations

import importlib
import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = Any


class NotInstalled(Exception):
    """A package of the contest is missing."""


def package(name: str) -> Any:
    """Return a package or a module of one."""
    try:
        return importlib.import_module(name)
    except ImportError as problem:
        raise NotInstalled(f"{name}: {problem}") from problem


def _models_of_diffprivlib() -> Any:
    """Return its models; for its trees it imports names that newer scikit-learn does not have."""
    tree = importlib.import_module("sklearn.tree._tree")
    for name in ("DOUBLE", "DTYPE", "NODE_DTYPE"):
        if not hasattr(tree, name):
            setattr(tree, name, np.float64)
    return package("diffprivlib.models")


def linear_by_diffprivlib(
    X: Array, y: Array, bounds: Array, target: tuple[float, float], epsilon: float, seed: int
) -> Any:
    """Fit its linear regression (functional mechanism), pure ε."""
    models = _models_of_diffprivlib()
    model = models.LinearRegression(
        epsilon=epsilon, bounds_X=tuple(bounds.T), bounds_y=target, random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


@dataclass(frozen=True, eq=False)
class Logistic:
    """Log-odds that are linear in features mapped to [−1, 1]; the constant is the last weight."""

    weights: Array
    bounds: Array

    def decision_function(self, X: Array) -> Array:
        return within(X, self.bounds) @ self.weights[:-1] + self.weights[-1]

    def predict_proba(self, X: Array) -> Array:
        p = 1 / (1 + np.exp(-np.clip(self.decision_function(X), -500, 500)))
        return np.column_stack((1 - p, p))


def within(X: Array, bounds: Array) -> Array:
    """Return features mapped from their bounds to [−1, 1], and clipped."""
    return np.clip((X - bounds.mean(axis=1)) / (np.ptp(bounds, axis=1) / 2), -1, 1)


def logistic_by_diffprivlib(X: Array, y: Array, bounds: Array, epsilon: float, seed: int) -> Any:
    """Fit its logistic regression to features mapped by their bounds to [−1, 1]."""
    weights = weights_by_diffprivlib(within(X, bounds), y, math.sqrt(X.shape[1]), epsilon, seed)
    return Logistic(weights, bounds)


def weights_by_diffprivlib(X: Array, y: Array, norm: float, epsilon: float, seed: int) -> Array:
    """Return weights and constant of its logistic regression, with its default C of 1.

    It is objective perturbation at pure ε. The estimator's constructor does not run with
    scikit-learn 1.8 or newer; what it calls does.
    """
    _models_of_diffprivlib()
    path = package("diffprivlib.models.logistic_regression")._logistic_regression_path
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, _, _ = path(
            X,
            y,
            epsilon=epsilon,
            data_norm=norm,
            pos_class=1.0,
            Cs=[1.0],
            random_state=seed,
            check_input=False,
        )
    return found[0]


def boosted_by_interpret(
    X: Any,
    y: Array,
    bounds: Any,
    target: tuple[float, float] | None,
    epsilon: float,
    delta: float,
    seed: int,
    kinds: list[str] | None = None,
) -> Any:
    """Fit DP-EBM with its defaults; without target bounds it is a classifier."""
    privacy = package("interpret.privacy")
    kind, given = privacy.DPExplainableBoostingClassifier, {}
    if target is not None:
        kind = privacy.DPExplainableBoostingRegressor
        given = {"privacy_target_min": target[0], "privacy_target_max": target[1]}
    model = kind(
        epsilon=epsilon,
        delta=delta,
        feature_types=kinds or ["continuous"] * X.shape[1],
        privacy_bounds=bounds,
        random_state=seed,
        n_jobs=1,
        **given,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y if target is not None else y.astype(int))
