"""All private methods side by side: `python -m benchmarks.peers [trials]`.

Held-out R² on the ten tasks of `benchmarks.private_lasso`, prepared alike, at the same (ε, 1/n).
Every method has one public rule for all tasks. A task's rank is by mean R², 1 the best; the whole
table is printed. BlogFeedback is large: one trial, and one of its five folds.
"""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.linear_model import LassoCV

from benchmarks.private_lasso import REAL, Problem, real, simulated
from dpscreen import DPFrankWolfe, PrivateLasso
from dpscreen.models.peers import AdaSSP, BoostedAdaSSP, NoisyIHT, PrivateGCD, PrivateSIS
from dpscreen.privacy import ZCDP, Budget

Array = NDArray[np.float64]
Fit = Callable[[Array, Array], object]
Maker = Callable[[Problem, int, float, str], object]
EPSILONS = (5.0, 1.0)


def by_its_own_rules(kind: type) -> Maker:
    def make(problem: Problem, n_rows: int, epsilon: float, seed: str) -> object:
        return kind(epsilon=epsilon, delta=1 / n_rows, random_state=seed, **problem.setting)

    return make


def frank_wolfe(problem: Problem, n_rows: int, epsilon: float, seed: str) -> DPFrankWolfe:
    """Return DP-FW with T = M/4 in [6, 200], clip 1 and radius min(1, M/20)√T.

    It has no rules of its own; that the target's deviation is 1 is known from the preparation.
    Fixed radii of 3, 5 and 8, T = M/2 and M/8, and a clip of .7 were tried: worse on average.
    """
    rho = float(ZCDP.within(Budget(epsilon, 1 / n_rows)))
    signal = n_rows * math.sqrt(2 * rho) / math.log(2 * problem.X.shape[1])
    n_iter = round(min(max(signal / 4, 6), 200))
    return DPFrankWolfe(
        epsilon=epsilon,
        delta=1 / n_rows,
        radius=min(1.0, signal / 20) * math.sqrt(n_iter),
        n_iter=n_iter,
        clip=1.0,
        feature_bounds=problem.setting["feature_bounds"],
        target_bounds=problem.setting["target_bounds"],
        random_state=seed,
    )


METHODS: dict[str, Maker] = {
    "PrivateLasso": by_its_own_rules(PrivateLasso),
    "DP-FW": frank_wolfe,
    "AdaSSP": by_its_own_rules(AdaSSP),
    "Boosted AdaSSP": by_its_own_rules(BoostedAdaSSP),
    "DP-SIS + refit": by_its_own_rules(PrivateSIS),
    "noisy IHT": by_its_own_rules(NoisyIHT),
    "DP-GCD": by_its_own_rules(PrivateGCD),
}


def held_out(problem: Problem, trial: int, folds: int, fit: Fit) -> float:
    """Return R² of the predictions for the first of five folds, drawn anew in every trial."""
    shuffled = np.random.default_rng(trial).permutation(len(problem.y))
    missed, total = 0.0, 0.0
    for fold in range(folds):
        out = np.zeros(len(shuffled), dtype=bool)
        out[shuffled[fold::5]] = True
        model = fit(problem.X[~out], problem.y[~out])
        predicted = model.predict(problem.X[out])  # type: ignore[attr-defined]
        missed += float(np.sum((problem.y[out] - predicted) ** 2))
        total += float(np.sum((problem.y[out] - problem.y.mean()) ** 2))
    return 1 - missed / total


def private_r2(make: Maker, problem: Problem, epsilon: float, trial: int, folds: int) -> float:
    def fit(X: Array, y: Array) -> object:
        seed = f"peers, {problem.name}, {trial}, {y[0]}"
        return make(problem, len(X), epsilon, seed).fit(X, y)  # type: ignore[attr-defined]

    return held_out(problem, trial, folds, fit)


def lasso_r2(problem: Problem, folds: int) -> float:
    return held_out(problem, 0, folds, LassoCV(cv=5, alphas=50, max_iter=5000).fit)


def tasks(trials: int) -> dict[str, tuple[list[Problem], int]]:
    """Return each task as one problem for every trial, and how many folds are held out."""
    found = {
        name: ([simulated(name, trial) for trial in range(trials)], 5)
        for name in ("synthetic", "correlated")
    }
    for name in REAL:
        large = name == "blogfeedback"
        found[name] = ([real(name)] * (1 if large else trials), 1 if large else 5)
    return found


def scores(problems: list[Problem], folds: int) -> Array:
    """Return mean R² of every method, a row for each ε."""
    return np.array(
        [
            [
                np.mean([private_r2(make, p, epsilon, t, folds) for t, p in enumerate(problems)])
                for make in METHODS.values()
            ]
            for epsilon in EPSILONS
        ]
    )


def table(found: dict[str, Array], lasso: dict[str, float], at: int) -> None:
    print(f"\n| held-out R², ε = {EPSILONS[at]:g} | {' | '.join(METHODS)} | LassoCV |")
    print("|---" * (len(METHODS) + 2) + "|")
    for name, by_epsilon in found.items():
        row, best = by_epsilon[at], by_epsilon[at].max()
        cells = " | ".join(f"**{r2:.3f}**" if r2 == best else f"{r2:.3f}" for r2 in row)
        print(f"| {name} | {cells} | {lasso[name]:.3f} |")
    rows = np.array([by_epsilon[at] for by_epsilon in found.values()])
    ranks = rankdata(-rows, axis=1).mean(axis=0)
    print(f"| mean | {' | '.join(f'{r2:.3f}' for r2 in rows.mean(axis=0))} | |")
    print(f"| mean rank | {' | '.join(f'{rank:.1f}' for rank in ranks)} | |")


def main(trials: int = 5) -> None:
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, lasso = {}, {}
        for name, (problems, folds) in tasks(trials).items():
            found[name] = scores(problems, folds)
            lasso[name] = lasso_r2(problems[0], folds)
    for at in range(len(EPSILONS)):
        table(found, lasso, at)
    print(f"\n{trials} trials, {time.process_time() - began:.0f} s of processor time")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
