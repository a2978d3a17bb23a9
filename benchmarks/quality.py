"""Coverage of every printed quality number: `python -m benchmarks quality`.

R², typical error, AUC and deviance of the four private models are compared with what they are on
the rows of the fit, for predictions clipped to the declared target bounds. The tables are those of
DPSCREEN_DATA (see `tables-quality`) and simulated ones with light and heavy tails; bounds are drawn
1, 2 and 4 times as wide as a column's range, in turn. What is printed is a Markdown table: for each
table, budget and measure the number of intervals that cover, of how many that were printed, of how
many fits.

`DPSCREEN_TRIALS` sets the repetitions (6), `DPSCREEN_TABLES` the tables, by a part of their name.
"""

from __future__ import annotations

import math
import os
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import log_loss, roc_auc_score

from benchmarks.tables_quality import DELTA, harness
from benchmarks.timing import repeats
from dpscreen import PrivateLasso, PrivateLogisticLasso, PrivateLogit, PrivateOLS

EPSILONS = (0.5, 1.0, 3.0)
LOOSENESS = (1.0, 2.0, 4.0)
MODELS = {
    "regression": (PrivateLasso, PrivateOLS),
    "classification": (PrivateLogisticLasso, PrivateLogit),
}
MEASURES = {
    "regression": (("R²", "r2", "r2"), ("typical error", "typical_error", "error")),
    "classification": (("AUC", "auc", "auc"), ("deviance", "deviance", "deviance")),
}
HEAVY = 10.0
"""A target has heavy tails if it lies further from its mean, in standard deviations."""

Key = tuple[str, float, str]


@dataclass(frozen=True)
class Simulated:
    """A table like those of the harness."""

    name: str
    X: Any
    y: Any
    kind: str = "regression"

    @property
    def binary(self) -> Any:
        """Return which columns are 0 and 1."""
        return np.zeros(self.X.shape[1], dtype=bool)


def simulated() -> Iterator[Simulated]:
    """Yield tables of six features, three of which matter."""
    rng = np.random.default_rng(27)
    effects = np.array([1.0, -0.7, 0.5, 0.0, 0.0, 0.0])
    for n in (2_000, 5_000, 20_000):
        X = rng.normal(size=(n, 6))
        yield Simulated(f"normal, {n}", X, X @ effects + rng.normal(0, 1.3, n))
    n = 10_000
    X = rng.normal(size=(n, 6))
    line = X @ effects
    rare = rng.random(n)
    yield Simulated(
        "uniform features", u := rng.uniform(0, 9, (n, 6)), u @ effects + rng.normal(0, 3, n)
    )
    yield Simulated("t with 3 degrees", X, line + rng.standard_t(3, n))
    yield Simulated("lognormal errors", X, line + np.exp(rng.normal(0, 1.2, n)))
    yield Simulated("lognormal target", X, np.exp(0.5 * line + rng.normal(0, 0.8, n)))
    yield Simulated(
        "zero-inflated", X, np.where(rare < 0.7, 0, np.exp(0.5 * line + rng.normal(size=n)))
    )
    wide = rng.normal(0, 13, n)
    yield Simulated("1 % outliers", X, line + np.where(rare < 0.01, wide, rng.normal(0, 1.3, n)))
    yield Simulated("0.5 % shifted", X, line + np.where(rare < 0.005, 25, rng.normal(0, 1.3, n)))
    heavy = np.exp(rng.normal(size=(n, 6)))
    yield Simulated("lognormal features", heavy, heavy @ effects + rng.normal(0, 2, n))
    heavy = rng.standard_t(2.5, (n, 6))
    yield Simulated("saturated effects", heavy, np.tanh(heavy) @ effects + rng.normal(size=n))
    for name, shift in (("half", 0.0), ("rare", -3.0)):
        y = (line + shift + rng.logistic(size=n) > 0).astype(float)
        yield Simulated(f"logistic, {name}", X, y, "classification")
    y = (0.5 * heavy @ effects + rng.logistic(size=n) > 0).astype(float)
    yield Simulated("logistic, heavy features", heavy, y, "classification")


def truths(model: Any, task: Any, ends: tuple[float, float]) -> dict[str, float]:
    """Return the measures on the rows of the fit."""
    if task.kind.endswith("classification"):
        probability = model.predict_proba(task.X)[:, 1]
        return {
            "auc": roc_auc_score(task.y, probability),
            "deviance": 2 * log_loss(task.y, probability),
        }
    left = np.mean((task.y - np.clip(model.predict(task.X), *ends)) ** 2)
    return {"r2": 1 - left / np.var(task.y), "typical_error": math.sqrt(left)}


def measured(tables: Any, task: Any, trials: int, found: Counter[tuple[Key, str]]) -> None:
    """Fit all models of a task, and count fits, printed intervals and those that cover."""
    kind = task.kind.removeprefix("fresh_").replace("fresh", "regression")
    for trial, epsilon in ((trial, epsilon) for trial in range(trials) for epsilon in EPSILONS):
        rng = np.random.default_rng(trial)
        features, ends = tables.loose_bounds(task, LOOSENESS[trial % len(LOOSENESS)], rng)
        for make in MODELS[kind]:
            target = {"target_bounds": ends} if kind == "regression" else {}
            seed = f"quality {task.name} {epsilon} {trial}"
            model = make(
                epsilon=epsilon,
                delta=DELTA,
                feature_bounds=features,
                random_state=seed,
                **target,
            ).fit(task.X, task.y)
            true = truths(model, task, ends)
            for name, field, stem in MEASURES[kind]:
                low, high = (getattr(model.quality_, f"{stem}_{end}") for end in ("low", "high"))
                key = task.name, epsilon, name
                found[key, "fits"] += 1
                found[key, "printed"] += not math.isnan(low)
                found[key, "covered"] += bool(low <= true[field] <= high)


def all_tasks(tables: Any) -> Iterator[Any]:
    for kind in ("regression", "classification", "fresh", "fresh_classification"):
        yield from tables.tasks(kind)
    yield from simulated()


def main() -> None:
    """Print the table, and the sums over tables."""
    warnings.simplefilter("ignore")
    tables, trials = harness(), repeats(6)
    part = os.environ.get("DPSCREEN_TABLES", "")
    found: Counter[tuple[Key, str]] = Counter()
    light: dict[str, bool] = {}
    budgets = " | ".join(f"ε = {epsilon:g}" for epsilon in EPSILONS)
    print(f"| table | rows | measure | {budgets} |\n|---|---|---|{'---|' * len(EPSILONS)}")
    for task in all_tasks(tables):
        if part not in task.name:
            continue
        measured(tables, task, trials, found)
        far = np.abs(task.y - np.mean(task.y)).max() / np.std(task.y)
        light[task.name] = bool(len(task.y) >= 5_000 and far < HEAVY)
        for name in dict.fromkeys(key[2] for key, _ in found if key[0] == task.name):
            cells = (_cell(found, [(task.name, epsilon, name)]) for epsilon in EPSILONS)
            print(f"| {task.name} | {len(task.y)} | {name} | {' | '.join(cells)} |", flush=True)
    keys = dict.fromkeys(key for key, _ in found)
    for name in dict.fromkeys(key[2] for key in keys):
        for title, chosen in (
            ("all tables", [key for key in keys if key[2] == name]),
            ("≥ 5 000, light tails", [k for k in keys if k[2] == name and light[k[0]]]),
        ):
            by = ([key for key in chosen if key[1] == epsilon] for epsilon in EPSILONS)
            cells = " | ".join(_cell(found, some) for some in by)
            print(f"| **{title}** | | {name} | {cells} |")
            covered, printed, fits = _counts(found, chosen)
            shares = f"{covered / max(printed, 1):.3f}, printed {printed / max(fits, 1):.2f}"
            print(f"{title}, {name}: coverage {shares}")


def _counts(found: Counter[tuple[Key, str]], keys: list[Key]) -> list[int]:
    return [sum(found[key, what] for key in keys) for what in ("covered", "printed", "fits")]


def _cell(found: Counter[tuple[Key, str]], keys: list[Key]) -> str:
    return " of ".join(map(str, _counts(found, keys)))
