"""The four open problems of the paper's Appendix F: `python -m benchmarks open-problems [n]`.

n data sets for the synthetic tasks, n fits for the real ones (10 by default). DP-FW and RNM-Screen
have the proven calibration, start at zero and share radius, clip and number of steps. Rows are
scaled to [−1, 1] as in the paper; scaling, radius and target bound are read off the data, as the
paper does, so these runs show what the mechanisms can do. FreeScreen is given bounds of ±1 and ±5
and finds the rest within its budget. `python -m benchmarks free-screen` has the fresh settings.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.free_screen import mean_and_error, speed
from benchmarks.private_lasso import real
from benchmarks.timing import repeats
from dpscreen import FreeScreen
from dpscreen.paper.data import synthetic
from dpscreen.paper.methods import iterations
from dpscreen.paper.metrics import density, f1
from dpscreen.paper.problem import lasso_reference
from dpscreen.privacy import ZCDP, Accountant, Budget, SeededNoise
from dpscreen.rows.lattice import ExactPoint, LatticeDesign
from dpscreen.solvers.screening import FrankWolfeSettings, Screening, optimise, proven_steps

Array = NDArray[np.float64]
EPSILON = 5.0
CLIP = 1.0
STEPS = 200
SHARES = (0.0, 0.005, 0.02, 0.1, 0.3, 0.5)
LOW = ("abalone", "housing", "bodyfat")
LOW_STEPS = (20, 200)


@dataclass(frozen=True, eq=False)
class Task:
    """Rows in [−1, 1], a target about zero, the support to find, and the radius."""

    X: Array
    y: Array
    coef: Array
    radius: float


def simulation(correlation: float, trial: int) -> Task:
    """Return the paper's synthetic data."""
    drawn = synthetic(correlation=correlation, rng=np.random.default_rng(trial))
    return Task(drawn.X, drawn.y, drawn.coef, 50.0)


def real_task(name: str) -> Task:
    """Return a real set in standard units; the support is that of a LASSO with d/3 coefficients."""
    problem = real(name)
    n_support = max(1, problem.X.shape[1] // 3)
    found = lasso_reference(problem.X, problem.y, n_support=n_support, intercept=False)
    return Task(problem.X, problem.y, found.coef, found.radius)


@dataclass(frozen=True, eq=False)
class Run:
    """Weights of a fit, and the features that it set to zero, with their weights before."""

    weights: Array
    zeroed: list[tuple[int, bool]]
    seconds: float


def frank_wolfe(
    task: Task, seed: str, *, share: float = 0.0, uniform: bool = False, n_iter: int = STEPS
) -> Run:
    """Run DP-FW, or RNM-Screen if `share` is positive; `uniform` replaces the screened feature."""
    every = Screening(share, 0.25, lambda T: iterations(1, T), one_at_a_time=True)
    settings = FrankWolfeSettings(
        radius=task.radius,
        n_iter=n_iter,
        intercept=False,
        published=False,
        start="zero",
        clip=CLIP,
        screening=every if share else None,
    )
    design, noise = LatticeDesign.from_rows(task.X, task.y), SeededNoise(seed)
    cost = ZCDP.within(Budget(EPSILON, 1 / len(task.y)))
    bound = float(np.abs(task.y).max())
    began = time.perf_counter()
    accountant = Accountant(noise, limit=cost)
    choose, screen = proven_steps(settings, accountant, design, cost, target_bound=bound)
    zeroed: list[tuple[int, bool]] = []
    control = np.random.default_rng(list(f"control {seed}".encode()))

    def watched(point: ExactPoint, t: int) -> Iterable[int]:
        for feature in screen(point, t) if screen else ():
            chosen = int(control.integers(len(task.coef))) if uniform else feature
            zeroed.append((chosen, bool(point.weights[chosen] != 0)))
            yield chosen

    weights = optimise(settings, design, (choose, watched), noise).weights
    return Run(weights, zeroed, time.perf_counter() - began)


def free_screen(task: Task, seed: str) -> Any:
    """Fit FreeScreen to the target in standard deviations."""
    return FreeScreen(
        epsilon=EPSILON,
        delta=1 / len(task.y),
        feature_bounds=(-1, 1),
        target_bounds=(-5, 5),
        random_state=seed,
        quality=False,
    ).fit(task.X, task.y / task.y.std())


def numbers(task: Task, weights: Array, predicted: Array) -> tuple[float, float, float]:
    """Return F1, density and the mean squared error over the target's mean square."""
    error = float(np.mean((predicted - task.y) ** 2) / np.mean(task.y**2))
    return f1(weights, task.coef), density(weights), error


def row(label: str, values: Iterable[Iterable[float]]) -> None:
    """Print means and standard errors."""
    cells = " | ".join(map(mean_and_error, np.array(list(values)).T))
    print(f"| {label} | {cells} |", flush=True)


def frank_wolfe_row(label: str, tasks: list[Task], **how: Any) -> list[Run]:
    """Run Frank-Wolfe on every task, print a row, and return the runs."""
    runs = [frank_wolfe(task, f"{t}", **how) for t, task in enumerate(tasks)]
    both = zip(tasks, runs, strict=True)
    row(label, (numbers(task, run.weights, task.X @ run.weights) for task, run in both))
    return runs


def free_screen_row(tasks: list[Task]) -> None:
    """Fit FreeScreen to every task, and print a row and how often it screened."""
    fits = [free_screen(task, f"{t}") for t, task in enumerate(tasks)]
    both = zip(tasks, fits, strict=True)
    row("FreeScreen", (numbers(t, m.selected_, m.predict(t.X) * t.y.std()) for t, m in both))
    print(f"FreeScreen screened in {sum(m.screened_.any() for m in fits)} of {len(fits)} fits")


def synthetic_tasks(n: int, problem: str, columns: str) -> Iterator[list[Task]]:
    """Yield the data sets of both synthetic settings, each under its title."""
    for name, correlation in (("uncorrelated", 0.0), ("correlated", 0.5)):
        print(f"\n{problem}, {name}: {n} data sets, {STEPS} steps, clip {CLIP:g}")
        print(f"| {columns} | F1 | density | error |\n|---|---|---|---|")
        yield [simulation(correlation, trial) for trial in range(n)]


def selection(n: int) -> None:
    """(a) Does private screening find out which features do not matter?"""
    for tasks in synthetic_tasks(n, "(a) synthetic", "method"):
        kinds: dict[str, dict[str, Any]] = {"DP-FW": {}, "RNM-Screen": {"share": 0.02}}
        kinds["RNM-Screen, feature drawn uniformly"] = {"share": 0.02, "uniform": True}
        hits = {}
        for label, how in kinds.items():
            runs = frank_wolfe_row(label, tasks, **how)
            zeroed = [
                (bool(t.coef[feature]), nonzero)
                for t, r in zip(tasks, runs, strict=True)
                for feature, nonzero in r.zeroed
            ]
            if zeroed:
                hits[label] = (len(zeroed) / n, *np.mean(zeroed, axis=0))
        free_screen_row(tasks)
        for label, (count, true, nonzero) in hits.items():
            print(
                f"{label}: {count:.1f} features zeroed a fit; {true:.3f} of them true (share of "
                f"true features: {np.mean(tasks[0].coef != 0):.3f}), {nonzero:.3f} nonzero before"
            )


def computation(n: int) -> None:
    """(b) Does screening save computation?"""
    tasks = [simulation(0.0, trial) for trial in range(n)]
    plain, screened = (
        np.array([frank_wolfe(task, f"{t}", share=share).seconds for t, task in enumerate(tasks)])
        for share in (0.0, 0.02)
    )
    print(f"\n(b) seconds of RNM-Screen over those of DP-FW, {n} data sets: ", end="")
    print(f"{mean_and_error(screened / plain)}; FreeScreen over the path without screening:")
    speed()


def split(n: int) -> None:
    """(c) Which share of the budget should screening get?"""
    title = "(c) RNM-Screen, synthetic"
    for tasks in synthetic_tasks(n, title, "share of ρ for screening"):
        for share in SHARES:
            frank_wolfe_row(f"{share:g}", tasks, share=share)


def low_dimension(n: int) -> None:
    """(d) Does screening remove too much where there are few features?"""
    for name in LOW:
        task = real_task(name)
        shape = f"{len(task.y)} × {task.X.shape[1]}"
        print(f"\n(d) {name}, {shape}: {n} fits, clip {CLIP:g}, radius {task.radius:.2f}")
        print("| method | F1 | density | error |\n|---|---|---|---|")
        for n_iter in LOW_STEPS:
            for label, share in (("DP-FW", 0.0), ("RNM-Screen", 0.02)):
                frank_wolfe_row(f"{label}, {n_iter} steps", [task] * n, n_iter=n_iter, share=share)
        free_screen_row([task] * n)


def main() -> None:
    n = repeats(10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        selection(n)
        computation(n)
        split(n)
        low_dimension(n)
