"""Models with names that try to break a page, and the pages about them."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd

from dpscreen import PrivateLasso
from dpscreen.models.page.charts import Expected
from dpscreen.planning.model_page import expected_of
from dpscreen.planning.setting import Setting

HOSTILE = (
    "age",
    "<script>alert('x')</script>",
    '"><img src=x onerror=alert(1)>',
    "طول المريض بالسنتيمتر",
    "🏥🚑 visits 💉",
    "a" * 5000,
    "$\\frac{a}{b}$ {{ 7*7 }} & more",
    "\u202egnirts\u202c name\r\nsecond\tline",
    "Z" + "\u0301" * 400,
    "</text></svg></style>",
)
SECTIONS = (
    *("reading", "guarantee", "power", "what-if"),
    *("assumptions", "not-protected", "budget", "made-with"),
)
LEDGER = {
    "dataset": "survey <b>2024</b>",
    "delta": 1e-6,
    "total": {"epsilon": 2, "rho": 0.0881527},
    "spent": {"epsilon": 1, "rho": 0.024356},
    "remaining": {"epsilon": 1.68, "rho": 0.0637966},
}
SCHEMA = {"fields": [], "dpscreen": {"target": "cost <i>of</i> stay"}}


def table(n_rows: int = 4000, names: tuple[str, ...] = HOSTILE) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(7)
    X = rng.normal(50, 10, size=(n_rows, len(names)))
    y = X @ np.linspace(3, 2, len(names)) + rng.normal(0, 8, n_rows)
    return pd.DataFrame(X, columns=list(names)), y


def fitted(n_rows: int = 12_000, **settings) -> PrivateLasso:
    """Return a model of all those features, with seeded noise."""
    X, y = table(n_rows)
    common = {"epsilon": 1, "delta": 1e-6, "feature_bounds": (0, 120), "target_bounds": (0, 3000)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return PrivateLasso(**common | {"random_state": 6} | settings).fit(X, y)


def quick(n_rows: int = 800, n_features: int = 10, **settings) -> Expected:
    """Return what to expect, from few simulations."""
    public = {"epsilon": 1.0, "delta": 1e-6} | settings
    return expected_of(Setting(n_rows, n_features, **public), repetitions=2)
