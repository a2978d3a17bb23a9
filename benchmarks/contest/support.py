"""Recovery of the support: which features are selected, on simulated designs where it is known."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.contest.rivals import BestSubset
from dpscreen.planning.methods import FitRequest, estimator
from dpscreen.privacy import Budget, SeededNoise, named_seed

Array = Any
SELECTORS = ("private-lasso", "noisy-iht", "dp-sis", "dp-gcd", "free-screen")
GIVEN_SIZE = ("noisy-iht", "dp-sis", "dp-gcd", "best-subset")
"""Made for prediction or a known size: they get the true size, and their largest weights count.
Ours do not get it."""

BOUNDS = 8.0


def _design(n_rows: int, n_features: int, size: int, rho: float, effect: float) -> Any:
    def draw(rng: Any) -> tuple[Array, Array, Array]:
        X = rng.normal(size=(n_rows, n_features))
        for j in range(1, n_features):
            X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
        support = rng.choice(n_features, size, replace=False)
        signs = rng.choice([-1.0, 1.0], size)
        y = X[:, support] @ (effect * signs) + rng.normal(size=n_rows)
        return np.clip(X, -BOUNDS, BOUNDS), y, support

    return draw


DESIGNS = {
    "20 features, 4 true, n = 2 000": _design(2000, 20, 4, 0.0, 0.5),
    "20 features, 4 true, correlated, n = 5 000": _design(5000, 20, 4, 0.7, 0.5),
    "20 features, 4 weak, n = 20 000": _design(20_000, 20, 4, 0.3, 0.1),
    "100 features, 4 true, n = 5 000": _design(5000, 100, 4, 0.3, 0.5),
}
MOST_SUBSETS = 20
"""Features up to which all subsets are scored; beyond, best-subset does not play and is refused."""


def plays(
    epsilons: tuple[float, ...], delta: float, trials: int, seed: str
) -> Iterator[dict[str, Any]]:
    """Yield the F1 of every method on every draw."""
    for name, design in DESIGNS.items():
        for trial in range(trials):
            X, y, support = design(np.random.default_rng(named_seed(f"{seed}/{name}/{trial}")))
            wide = 1.5 * float(np.abs(y).max())
            for method in (*SELECTORS, "best-subset"):
                for epsilon in epsilons:
                    noise = SeededNoise(f"{seed}/{name}/{trial}/{method}/{epsilon!r}")
                    began = time.process_time()
                    found = _selected(method, X, y, wide, Budget(epsilon, delta), noise, support)
                    yield {
                        "division": "support",
                        "table": name,
                        "method": method,
                        "epsilon": epsilon,
                        "trial": trial,
                        "score": 0.0 if found is None else f1(found, support),
                        "refused": found is None,
                        "seconds": time.process_time() - began,
                    }


def f1(found: Array, support: Array) -> float:
    """Return the harmonic mean of precision and recall."""
    hits = len(np.intersect1d(found, support))
    return 2 * hits / (len(found) + len(support))


def _selected(
    method: str, X: Array, y: Array, wide: float, budget: Budget, noise: Any, support: Array
) -> Array | None:
    bounds = np.array([(-BOUNDS, BOUNDS)] * X.shape[1])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if method == "best-subset":
                if X.shape[1] > MOST_SUBSETS:
                    return None
                model = BestSubset(
                    size=len(support),
                    epsilon=budget.epsilon,
                    delta=budget.delta,
                    feature_bounds=bounds,
                    target_bounds=(-wide, wide),
                    n_rows=len(y),
                    random_state=noise,
                ).fit(X, y)
            else:
                request = FitRequest(
                    budget, bounds, (-wide, wide), n_rows=len(y), random_state=noise
                )
                model = estimator(method, request).fit(X, y)
    except ValueError:
        return None
    if method in GIVEN_SIZE:
        sizes = np.abs(np.asarray(model.coef_))
        largest = np.argsort(-sizes, kind="stable")[: len(support)]
        return largest[sizes[largest] > 0]
    return np.flatnonzero(np.asarray(model.selected_))
