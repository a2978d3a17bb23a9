"""Private regressions on mixed real tables: `python -m benchmarks tables-quality`.

The tables lie in the folder `tables` of DPSCREEN_DATA, with a harness, `tables.py`, that draws
bounds as a user guesses them: several times too wide and off-centre. What is printed: R² on
held-out rows less LassoCV's, mean ranks, and how much R² depends on how wide the bounds are.

`DPSCREEN_TRIALS` sets the repetitions (3), `DPSCREEN_TABLES` the tables, by a part of their name.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.linear_model import LassoCV
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.timing import repeats
from dpscreen import PrivateLasso
from dpscreen.models import peers

Array = NDArray[np.float64]
Maker = Callable[[Any, Any, int], Any]

DELTA = 1e-6
EPSILONS = (1.0, 5.0, 1000.0)
LOOSENESS = (1.0, 2.0, 3.0, 4.0, 8.0, 16.0)
LARGE = 500
"""Rows from which a table is held to the limits of single tables."""
FLOOR = -0.5


def private(kind: type, epsilon: float) -> Maker:
    """Return a maker of models with default settings; binary outcomes have no target bounds."""

    def make(features: Any, target: Any, seed: int) -> Any:
        given = {"epsilon": epsilon, "delta": DELTA, "feature_bounds": features}
        if target is not None:
            given["target_bounds"] = target
        return kind(**given, random_state=f"tables {seed}")

    return make


def lasso(_features: Any, _target: Any, _seed: int) -> Any:
    """Return what everything is measured against."""
    return make_pipeline(StandardScaler(), LassoCV(cv=5))


def harness() -> Any:
    """Return the module that comes with the tables."""
    folder = Path(os.environ.get("DPSCREEN_DATA", "")) / "tables"
    if not (folder / "tables.py").exists():
        sys.exit("DPSCREEN_DATA must name a folder that holds tables/tables.py")
    sys.path.insert(0, str(folder))
    return import_module("tables")


def chosen(tables: Any) -> list[Any]:
    part = os.environ.get("DPSCREEN_TABLES", "")
    return [task for task in tables.tasks("regression") if part in task.name]


def centred_bounds(task: Any, looseness: float) -> tuple[Array, tuple[float, float]]:
    """Return bounds so many times as wide as the range of each column, around its middle."""

    def widen(low: Any, high: Any) -> Array:
        extra = (looseness - 1) * np.maximum(high - low, 1e-9) / 2
        return np.stack((low - extra, high + extra), axis=-1)

    features = widen(task.X.min(0), task.X.max(0))
    features[task.binary] = 0.0, 1.0
    low, high = widen(task.y.min(), task.y.max())
    return features, (float(low), float(high))


def r2(task: Any, make: Maker, bounds: Callable[[int], Any], trials: int) -> float:
    """Return the mean R² on held-out rows, as the harness's `score` does for its own bounds."""
    found = []
    for seed in range(trials):
        split = train_test_split(task.X, task.y, test_size=0.2, random_state=seed)
        rows, held, target, truth = split
        model = make(*bounds(seed), seed).fit(rows, target)
        found.append(max(FLOOR, r2_score(truth, model.predict(held))))
    return float(np.mean(found))


def main() -> None:
    """Print gaps to LassoCV, ranks among the peers, and spreads over looseness."""
    warnings.simplefilter("ignore")
    tables, trials = harness(), repeats(3)
    tasks = chosen(tables)
    best = {task.name: tables.score(task, lasso, trials=trials) for task in tasks}
    gaps(tables, tasks, best, trials)
    looseness(tables, tasks, trials)


def methods() -> Iterator[tuple[str, type]]:
    yield "PrivateLasso", PrivateLasso
    yield from ((name, getattr(peers, name)) for name in peers.__all__ if name != "Peer")


def gaps(tables: Any, tasks: list[Any], best: dict[str, float], trials: int) -> None:
    """Print every method's R² less LassoCV's, and mean ranks where budgets are real ones."""
    for epsilon in EPSILONS:
        named = list(methods()) if epsilon < max(EPSILONS) else list(methods())[:1]
        found = np.array([
            [tables.score(task, private(kind, epsilon), trials=trials) for _, kind in named]
            for task in tasks
        ])  # fmt: skip
        print(f"\nepsilon {epsilon:g}: R² less LassoCV's, {trials} trials")
        print(
            f"{'':28}{'rows':>7}{'LassoCV':>9}", *(f"{name[:12]:>13}" for name, _ in named), sep=""
        )
        for task, line in zip(tasks, found, strict=True):
            less = "".join(f"{value - best[task.name]:13.3f}" for value in line)
            print(f"{task.name[:28]:28}{len(task.y):7d}{best[task.name]:9.3f}{less}", flush=True)
        summary(tasks, found - np.array([[best[task.name]] for task in tasks]))
        if len(named) > 1:
            ranks = rankdata(-found, axis=1).mean(axis=0)
            print(f"{'mean rank':44}", *(f"{rank:13.2f}" for rank in ranks), sep="")


def summary(tasks: list[Any], less: Array) -> None:
    large = np.array([len(task.y) >= LARGE for task in tasks])
    print(f"{'mean':44}", *(f"{mean:13.4f}" for mean in less.mean(axis=0)), sep="")
    if large.any():
        worst = less[large].min(axis=0)
        print(f"{f'worst with {LARGE} rows or more':44}", *(f"{w:13.3f}" for w in worst), sep="")


def looseness(tables: Any, tasks: list[Any], trials: int, epsilon: float = 5.0) -> None:
    """Print how far a table's mean R² depends on how wide, and how far off-centre, bounds are."""
    print(f"\nepsilon {epsilon:g}: R² of PrivateLasso by looseness, centred and off-centre")
    make = private(PrivateLasso, epsilon)
    for task in tasks:
        if len(task.y) >= LARGE:
            found = [r2(task, make, guess, trials) for guess in guesses(tables, task)]
            shown = " ".join(f"{one:6.3f}" for one in found)
            print(f"{task.name[:28]:28} {shown} spread {max(found) - min(found):.3f}", flush=True)


def guesses(tables: Any, task: Any) -> Iterator[Callable[[int], Any]]:
    """Yield bounds of every looseness, centred first, then off-centre, as functions of a seed."""
    yield from (lambda _, wide=wide: centred_bounds(task, wide) for wide in LOOSENESS)
    yield from (
        lambda seed, wide=wide: tables.loose_bounds(task, wide, np.random.default_rng(seed))
        for wide in LOOSENESS[1:]
    )
