"""Budget shares and schedules of proven screening: `python -m benchmarks paper-defaults 5`.

The evidence for the defaults of RNMScreen and ADPScreen (docs/paper-methods.md): four simulated
settings, the first that of the paper's Table 1 with a clip, a number of fits each (5).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.timing import autoregressive, repeats
from dpscreen import ADPScreen, DPFrankWolfe, RNMScreen
from dpscreen.paper.data import synthetic
from dpscreen.paper.metrics import f1

METHODS: dict[str, tuple[type[Any], dict[str, Any]]] = {
    "DP-FW": (DPFrankWolfe, {}),
    **{
        f"{name}, {share:g}, {when}": (kind, {"screening_share": share, "screen_at": when})
        for name, kind, shares, often in (
            ("RNM-Screen", RNMScreen, (0.001, 0.02, 0.1, 0.5), 10),
            ("ADP-Screen", ADPScreen, (0.001, 0.02, 0.5), 50),
        )
        for share in shares
        for when in ("all", often, "last")
    },
}
SIZES = ((5000, 30, 5, 0.0, 2.0), (10_000, 100, 10, 0.5, 1.0), (4000, 200, 8, 0.0, 3.0))
"""Rows, features, true features, correlation of neighbours and ε; half of the variance is noise."""

Setting = tuple[str, Any, Any, Any, dict[str, Any]]


def settings(rng: np.random.Generator) -> Iterator[Setting]:
    """Yield a name, rows, targets, coefficients and what is public."""
    drawn = synthetic(rng=rng)
    paper: dict[str, Any] = {"epsilon": 5, "radius": 50, "n_iter": 120, "clip": 1.0}
    paper |= {"target_bounds": (-50, 50), "fit_intercept": False}
    yield "Table 1, T = 120, clip 1", drawn.X, drawn.y, drawn.coef, paper
    for n, d, k, correlation, epsilon in SIZES:
        X = np.clip(autoregressive(rng, n, d, correlation) / 4, -1, 1)
        coef = np.zeros(d)
        coef[rng.choice(d, k, replace=False)] = rng.choice([-1, 1], k) * rng.uniform(2, 6, k)
        y = X @ coef
        y += rng.normal(0, y.std(), n)
        bound = 5 * y.std()
        public = {"epsilon": epsilon, "target_bounds": (-bound, bound)}
        yield f"n = {n}, d = {d}, ε = {epsilon:g}", X, y, coef, public


def main() -> None:
    """Print F1 and relative error of every method in every setting, as Markdown."""
    warnings.simplefilter("ignore")
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for seed in range(repeats(5)):
        for name, X, y, coef, public in settings(np.random.default_rng(100 + seed)):
            for method, (kind, more) in METHODS.items():
                noise = f"{seed}, {method}, {name}"
                given = {"delta": 1e-6, "feature_bounds": (-1, 1), "random_state": noise}
                model = kind(**given, **public, **more).fit(X, y)
                error = float(np.mean((model.predict(X) - y) ** 2) / np.var(y))
                found.setdefault((method, name), []).append((f1(model.coef_, coef), error))
    names = list(dict.fromkeys(name for _, name in found))
    print(f"| method, share, steps | {' | '.join(names)} |")
    print("|---" * (len(names) + 1) + "|")
    for method in METHODS:
        means = (np.mean(found[method, name], axis=0) for name in names)
        print(f"| {method} | {' | '.join(f'{a:.2f} / {b:.2f}' for a, b in means)} |")
