"""Fitted models of every kind, made once for all tests that look at what a model releases."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pandas as pd

from dpscreen import ADPScreen, DPFrankWolfe, FreeScreen, PrivateLasso, PrivateOLS, RNMScreen

NAMES = ["age", "dose", "a|b", "<b>", "x_y", "plain"]
BOUNDS = {"feature_bounds": (0, 200), "target_bounds": (-500, 500)}
LASSO = {"epsilon": 3.0, "delta": 1e-6, **BOUNDS}
WALK = {"radius": 100.0, "n_iter": 6, "epsilon": 2.0, "delta": 1e-6, **BOUNDS}

KINDS = {
    "lasso": lambda: PrivateLasso(**LASSO, solver="stagewise"),
    "free-screen": lambda: FreeScreen(**LASSO),
    "walk": lambda: PrivateLasso(**LASSO),
    "split": lambda: PrivateLasso(**LASSO | {"epsilon": 9.0}, inference="split"),
    "split refused": lambda: PrivateLasso(**LASSO | {"epsilon": 0.1}, inference="split"),
    "frank-wolfe": lambda: PrivateLasso(**LASSO, solver="frank-wolfe", max_features=2),
    "units": lambda: PrivateLasso(**LASSO, rows_per_unit=3, n_rows=2000),
    "ols": lambda: PrivateOLS(**LASSO),
    "ols without": lambda: PrivateOLS(**LASSO | {"epsilon": 0.05}, n_rows=10**6),
    "seeded": lambda: PrivateLasso(**LASSO, random_state=1),
    "dp-fw": lambda: DPFrankWolfe(**WALK, clip=20.0),
    "rnm": lambda: RNMScreen(**WALK),
    "adp": lambda: ADPScreen(**WALK, fit_intercept=False),
    "published": lambda: RNMScreen(**WALK, calibration="published"),
}


@cache
def table():
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.normal(50, 10, size=(2000, 6)), columns=NAMES)
    return X, (2 * X["age"] - X["<b>"] + rng.normal(0, 5, 2000)).to_numpy()


@cache
def fitted(kind, *, named=True):
    X, y = table()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return KINDS[kind]().fit(X if named else X.to_numpy(), y)
