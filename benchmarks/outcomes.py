"""Private models of outcomes on real tables: `python -m benchmarks outcomes`.

The tables lie in the folder `tables` of DPSCREEN_DATA, as for `tables-quality`; bounds are drawn as
a user guesses them. What is printed: AUC on held-out rows less that of logistic regression with an
L1 penalty chosen by cross-validation, calibration slopes, mean ranks among the peers, and which
features are selected where that is known.

Objective perturbation is in floats and only here: its proof is for real numbers and an exact
minimum. It is given the marginals of the features at no cost.

`DPSCREEN_TRIALS` sets the repetitions (3).
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.sparse import POWER_LAW, UNIFORM, Problem, plain_step, private_path, timed
from benchmarks.tables_quality import DELTA, Maker, harness, private
from benchmarks.timing import repeats, report
from dpscreen import PrivateLogisticLasso
from dpscreen.models import outcome_peers as peers
from dpscreen.rows.loss import LOGISTIC
from dpscreen.rows.sparse import SparseLatticeDesign

EPSILONS = (1.0, 5.0)
LEAST_TRIALS_OF_SIMULATION = 3


class ObjectivePerturbation:
    """A random linear term and a ridge in the objective (Kifer, Smith and Thakurta 2012).

    Rows are mapped to norm at most 1, the constant among them; half of ε is for the curvature.
    """

    def __init__(self, bounds: Any, epsilon: float, seed: int) -> None:
        self.bounds, self.epsilon, self.seed = np.asarray(bounds), epsilon, seed

    def _mapped(self, X: Any) -> Any:
        Z = (np.clip(X, *self.bounds.T) - self.centres) / self.scales
        Z = np.hstack((Z, np.ones((len(Z), 1)))) / self.norm
        return Z / np.maximum(1, np.linalg.norm(Z, axis=1))[:, None]

    def fit(self, X: Any, y: Any) -> ObjectivePerturbation:
        """Take the marginals by PrivateLogisticLasso's own rules, free of charge, and minimise."""
        first = PrivateLogisticLasso(
            epsilon=self.epsilon, delta=DELTA, feature_bounds=self.bounds, random_state=self.seed
        ).fit(X, y)
        self.bounds = first.feature_bounds_
        low, high = self.bounds.T
        inside = np.clip(X, low, high)
        self.centres, self.scales = inside.mean(0), np.maximum(inside.std(0), (high - low) / 50)
        self.norm = math.sqrt(X.shape[1] + 1)
        Z, rng = self._mapped(X), np.random.default_rng(self.seed)
        ridge = 2 * 0.25 / self.epsilon
        noise = math.sqrt(8 * math.log(2 / DELTA) + 4 * self.epsilon) / self.epsilon
        shift = rng.normal(0, noise, Z.shape[1])

        def objective(w: Any) -> tuple[float, Any]:
            line = Z @ w
            loss = np.logaddexp(0, line).sum() - y @ line + ridge / 2 * w @ w + shift @ w
            return float(loss), Z.T @ (expit(line) - y) + ridge * w + shift

        self.weights = minimize(objective, np.zeros(Z.shape[1]), jac=True, method="L-BFGS-B").x
        return self

    def decision_function(self, X: Any) -> Any:
        """Return log-odds."""
        return self._mapped(X) @ self.weights


def methods(epsilon: float) -> dict[str, Maker]:
    named = {"PrivateLogisticLasso": PrivateLogisticLasso}
    named |= {name: getattr(peers, name) for name in peers.__all__}
    found = {name: private(kind, epsilon) for name, kind in named.items()}
    return found | {
        "ObjectivePert": lambda bounds, _, seed: ObjectivePerturbation(bounds, epsilon, seed)
    }


def best(_bounds: Any, _target: Any, _seed: int) -> Any:
    model = LogisticRegressionCV(penalty="l1", solver="liblinear", Cs=8, cv=3)
    return make_pipeline(StandardScaler(), model)


def scores(tables: Any, task: Any, make: Any, trials: int) -> tuple[float, float]:
    """Return the mean AUC and the mean calibration slope on held-out rows."""
    aucs, slopes = [], []
    for seed in range(trials):
        split = train_test_split(task.X, task.y, test_size=0.2, random_state=seed, stratify=task.y)
        rows, held, target, truth = split
        bounds, _ = tables.loose_bounds(task, 4.0, np.random.default_rng(seed))
        line = make(bounds, None, seed).fit(rows, target).decision_function(held)
        aucs.append(roc_auc_score(truth, line))
        slopes.append(slope(line, truth))
    return float(np.mean(aucs)), float(np.mean(slopes))


def slope(line: Any, truth: Any) -> float:
    """Return the slope of outcomes on the log-odds that were predicted."""
    if np.ptp(line) == 0:
        return 0.0
    return float(LogisticRegression(C=1e6).fit(line[:, None], truth).coef_[0, 0])


def selection(n_rows: int = 20_000, d: int = 1000, k: int = 10, epsilon: float = 3.0) -> float:
    """Return the mean F1 of `selected_` where ten features of a thousand have effects of ±.5."""
    found = []
    for seed in range(LEAST_TRIALS_OF_SIMULATION):
        rng = np.random.default_rng(100 + seed)
        X, effects = rng.normal(size=(n_rows, d)), np.zeros(d)
        effects[:k] = 0.5 * rng.choice([-1, 1], k)
        y = rng.random(n_rows) < expit(X @ effects)
        chosen = private(PrivateLogisticLasso, epsilon)((-8, 8), None, seed).fit(X, y).selected_
        found.append(2 * chosen[:k].sum() / (chosen.sum() + k))
    return float(np.mean(found))


def sparse_steps(n_rows: int = 100_000, n_features: int = 1_000_000, per_row: int = 100) -> None:
    """Time a step on sparse rows against a plain one, which looks at all of them."""
    for name, power, at_least in (("uniform", UNIFORM, 500), ("power law", POWER_LAW, 15)):
        problem = Problem.simulated(n_rows, n_features, per_row, power)
        drawn = np.random.default_rng(1).random(n_rows) < expit(problem.y)
        yes = drawn.astype(np.float64)
        design = SparseLatticeDesign.from_rows(problem.X, yes, constant=True, loss=LOGISTIC)
        private_path(design, 20)
        plain = plain_step(problem.X, lambda line, yes=yes: expit(line) - yes)
        plain()
        taken, (ours, _) = timed(plain, 3), private_path(design, 1000)
        title = f"outcomes, {n_rows} x {n_features}, {per_row} a row, {name}"
        report(f"{title}: times faster a step", taken / ours, at_least=at_least)
        print(f"  (plain {taken * 1e3:.0f} ms, ours {ours * 1e6:.0f} µs a step)", flush=True)


def main() -> None:
    """Print AUC less the non-private one, ranks, slopes, and the F1 of a selection."""
    warnings.simplefilter("ignore")
    tables, trials = harness(), repeats(3)
    tasks = list(tables.tasks("classification"))
    top = {task.name: scores(tables, task, best, trials)[0] for task in tasks}
    for epsilon in EPSILONS:
        print(f"\nepsilon {epsilon:g}: AUC less that of L1 by cross-validation, {trials} trials")
        named = methods(epsilon)
        print(f"{'':26}{'rows':>7}{'L1':>8}", *(f"{name[:15]:>16}" for name in named), "  slope")
        table = []
        for task in tasks:
            found = [scores(tables, task, make, trials) for make in named.values()]
            table.append([auc for auc, _ in found])
            less = "".join(f"{auc - top[task.name]:16.3f}" for auc, _ in found)
            print(
                f"{task.name[:26]:26}{len(task.y):7d}{top[task.name]:8.3f} {less}"
                f"{found[0][1]:8.2f}",
                flush=True,
            )
        ranks = rankdata(-np.array(table), axis=1).mean(axis=0)
        print(f"{'mean rank':42}", *(f"{rank:15.2f}" for rank in ranks))
    sparse_steps()
    print(f"\nselection, 10 of 1000 features, 20 000 rows, epsilon 3: F1 {selection():.3f}")


if __name__ == "__main__":
    main()
