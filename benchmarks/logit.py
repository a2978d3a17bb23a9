"""How often intervals of PrivateLogit, or of a split, cover: `python -m benchmarks logit`.

Simulated tables with four numbers and a category of three levels, and real columns: those of the
classification tables of DPSCREEN_DATA, if it is set, with rows drawn again and outcomes drawn from
a logistic regression of the real ones, whose coefficients are the truth. Beside it stands how often
the intervals of logistic regression without privacy cover the same: all features of a table
share their draws, so an unlucky series shows in both. Where few features have an interval, fits go
on until there are enough: of 23 intervals that cover 95 times in 100, three or more miss in one
series of ten.

Then PrivateLogisticLasso(inference="split") on 30 numbers and a category, of which six features
matter: the truth is the logistic model of those that have an interval.

`DPSCREEN_TRIALS` sets the repetitions (100).
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from benchmarks.tables_quality import harness
from benchmarks.timing import autoregressive, repeats, report
from dpscreen import PrivateLogisticLasso, PrivateLogit

N_ROWS, EPSILONS = (5_000, 20_000), (1.0, 5.0)
MANY_ROWS = 50_000
ENOUGH, MOST_SERIES = 300, 20
"""How many intervals estimate coverage to ± 0.025, and for how many series fits go on for them."""

KINDS = ("plain", "correlated", "rare", "strong", "skewed", "rare level")
BOUNDS = np.array([(-10, 10), (0, 120), (-20, 40), (-10, 10), (0, 1), (0, 1)], dtype=np.float64)


@dataclass(frozen=True)
class Design:
    """Rows and outcomes by seed, what is declared of them, and the coefficients behind them."""

    name: str
    bounds: Any
    truth: Any
    constant: float
    rows: Callable[[int], Any]
    population: Any = None

    def asked(self, epsilon: float) -> dict[str, Any]:
        """Return budget and bounds of a model."""
        bounds = {"feature_bounds": self.bounds, "quality": False}
        return {"epsilon": epsilon, "delta": 1e-6, **bounds}

    def drawn(self, seed: int) -> tuple[Any, Any]:
        """Return rows and outcomes."""
        X = self.rows(seed)
        probabilities = expit(X @ self.truth + self.constant)
        return X, (np.random.default_rng([7, seed]).random(len(X)) < probabilities).astype(np.int64)


def simulated() -> Iterator[Design]:
    """Yield every kind with every number of rows."""
    for n_rows in N_ROWS:
        for kind in KINDS:
            truth = np.array([0.5, 0.03, -0.2, 0, 0.6, 1.5 if kind == "rare level" else -0.8])
            constant = {"rare": -5.2, "strong": -5.0}.get(kind, -1.8)
            if kind == "strong":
                truth = 3 * truth

            def rows(seed: int, kind: str = kind, n_rows: int = n_rows) -> Any:
                return simulated_rows(kind, n_rows, seed)

            many = simulated_rows(kind, MANY_ROWS, MANY_ROWS)
            yield Design(f"{kind}, {n_rows} rows", BOUNDS, truth, constant, rows, many)


def simulated_rows(kind: str, n_rows: int, seed: int) -> Any:
    """Return four numbers and a category of three levels."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(n_rows, 4)) * [1, 10, 3, 1] + [0, 50, 1, 0]
    shares = [0.6, 0.38, 0.02] if kind == "rare level" else [0.6, 0.3, 0.1]
    level = rng.choice(3, size=n_rows, p=shares)
    X = np.column_stack((numbers, level == 1, level == 2)).astype(np.float64)
    if kind == "correlated":
        X[:, 3] = 0.7 * X[:, 0] + 0.7 * X[:, 3]
    if kind == "skewed":
        X[:, 2] = np.exp(rng.normal(size=n_rows))
    return X


def resampled(n_rows: int = 20_000) -> Iterator[Design]:
    """Yield real columns, drawn again, with what a ridge finds of their outcomes as the truth."""
    tables = harness()
    for task in tables.tasks("classification"):
        scaler = StandardScaler().fit(task.X)
        model = LogisticRegression(C=1.0, max_iter=1000).fit(scaler.transform(task.X), task.y)
        truth = model.coef_[0] / scaler.scale_
        constant = float(model.intercept_[0] - scaler.mean_ @ truth)
        bounds, _ = tables.loose_bounds(task, 2.0, np.random.default_rng(0))

        def rows(seed: int, X: Any = task.X) -> Any:
            return X[np.random.default_rng(seed).integers(len(X), size=n_rows)]

        yield Design(f"{task.name}, {n_rows} rows", bounds, truth, constant, rows, task.X)


def truth_without(design: Design, left_out: Any) -> Any:
    """Return the coefficients of the model without some features, of all rows that there are."""
    if design.population is None or left_out.all() or not left_out.any():
        return design.truth
    X = design.population[:, ~left_out]
    probabilities = expit(design.population @ design.truth + design.constant)
    scaler, found = StandardScaler().fit(X), np.zeros(len(design.truth))
    twice = np.vstack((scaler.transform(X),) * 2)
    model = LogisticRegression(C=1e6, max_iter=2000)
    outcomes = np.repeat([1, 0], len(X))
    model.fit(twice, outcomes, sample_weight=np.append(probabilities, 1 - probabilities))
    found[~left_out] = model.coef_[0] / scaler.scale_
    return found


def non_private(X: Any, y: Any) -> tuple[Any, Any]:
    """Return coefficients and half-widths of logistic regression without privacy."""
    scaler = StandardScaler().fit(X)
    Z = np.column_stack((scaler.transform(X), np.ones(len(X))))
    model = LogisticRegression(C=1e6, max_iter=2000, fit_intercept=False).fit(Z, y)
    probabilities = model.predict_proba(Z)[:, 1]
    inverse = np.linalg.pinv((Z * (probabilities * (1 - probabilities))[:, None]).T @ Z)
    errors = np.sqrt(np.diag(inverse))[:-1]
    return model.coef_[0, :-1] / scaler.scale_, 1.96 * errors / scaler.scale_


@dataclass
class Tally:
    """What was counted over the fits of a design."""

    covers: list[bool] = field(default_factory=list)
    plain_covers: list[bool] = field(default_factory=list)
    wider: list[float] = field(default_factory=list)
    given: list[float] = field(default_factory=list)

    def add_plain(self, X: Any, y: Any, truth: Any, kept: Any, listed: Any) -> None:
        """Count how often intervals without privacy cover, for the features that have one."""
        if np.any(listed):
            plain, half = non_private(X[:, kept], y)
            self.plain_covers += (np.abs(plain - truth[kept]) <= half)[listed[kept]].tolist()


def study(design: Design, epsilon: float, trials: int) -> None:
    """Print how often intervals cover the truth, their widths, and how many there are."""
    tally = Tally()
    for seed in range(MOST_SERIES * trials):
        if seed >= trials and (not tally.covers or len(tally.covers) >= ENOUGH):
            break
        X, y = design.drawn(seed)
        model = PrivateLogit(**design.asked(epsilon), random_state=f"logit {seed}").fit(X, y)
        table, d = model.table_, X.shape[1]
        listed, kept = table.given[:d], model.coef_[0] != 0
        truth, half = truth_without(design, ~kept), table.half_widths(0.95)[:d]
        tally.given.append(float(listed.mean()))
        tally.covers += (np.abs(model.coef_[0] - truth) <= half)[listed].tolist()
        tally.wider += (half / table.plain_half_widths()[:d])[listed].tolist()
        tally.add_plain(X, y, truth, kept, listed)
    title = f"logit, {design.name}, epsilon {epsilon:g}"
    if tally.covers:
        report(f"{title}: coverage", float(np.mean(tally.covers)), at_least=0.93)
        width = f"of {len(tally.covers)} in {len(tally.given)} fits; without privacy "
        width += f"{np.mean(tally.plain_covers):.3f}; {np.median(tally.wider):.2f} times as wide "
        width += "as those of sampling alone; "
    else:
        print(title, end=" ")
        width = ""
    print(f"  ({width}{np.mean(tally.given):.0%} of features have one)", flush=True)


# --- a split --------------------------------------------------------------------------------------

SPLIT_KINDS = {"plain": -0.5, "correlated": -0.5, "rare": -3.6}
N_NUMBERS, SPLIT_ROWS, SPLIT_EPSILONS = 30, 20_000, (1.0, 3.0, 5.0)


def selecting() -> Iterator[Design]:
    """Yield tables of many features of which few matter, and the constants of their log-odds."""
    truth = np.zeros(N_NUMBERS + 3)
    truth[[0, 1, 2, 3, -3, -1]] = 1, -0.7, 0.5, 0.25, 0.5, -1
    bounds = [(-6, 6)] * N_NUMBERS + [(0, 1)] * 3
    for kind, constant in SPLIT_KINDS.items():

        def rows(seed: int, kind: str = kind, n_rows: int = SPLIT_ROWS) -> Any:
            rng = np.random.default_rng([seed, n_rows])
            X = autoregressive(rng, n_rows, N_NUMBERS, 0.5 if kind == "correlated" else 0.0)
            level = rng.choice(4, size=n_rows, p=[0.5, 0.3, 0.15, 0.05])
            return np.column_stack((X, *(level == one for one in (1, 2, 3)))).astype(np.float64)

        name, many = f"split, {kind}, {SPLIT_ROWS} rows", rows(0, n_rows=MANY_ROWS)
        yield Design(name, bounds, truth, constant, rows, many)


def study_split(design: Design, epsilon: float, trials: int) -> None:
    """Print how often intervals of a split cover the coefficients of the model of those alone."""
    truths, tally = dict[bytes, Any](), Tally()
    features = np.arange(len(design.truth))
    for seed in range(trials):
        X, y = design.drawn(seed)
        asked = design.asked(epsilon) | {"inference": "split", "random_state": f"split {seed}"}
        model = PrivateLogisticLasso(**asked).fit(X, y)
        found = model.inference_.intervals
        tally.given.append(len(found))
        listed = np.isin(features, [one.feature for one in found])
        beside = re.findall(r"x(\d+)", model.inference_.wording.partition(", and a constant")[0])
        kept = listed | np.isin(features, [int(one) for one in beside])
        key = kept.tobytes()
        truth = truths[key] = truths[key] if key in truths else truth_without(design, ~kept)
        tally.covers += [one.low <= truth[one.feature] <= one.high for one in found]
        tally.add_plain(X, y, truth, kept, listed)
    title = f"logit, {design.name}, epsilon {epsilon:g}"
    report(f"{title}: coverage", float(np.mean(tally.covers)), at_least=0.93)
    plain = f"of {len(tally.covers)}; without privacy, on all rows, "
    plain += f"{np.mean(tally.plain_covers):.3f}; "
    print(f"  ({plain}{np.mean(tally.given):.1f} a fit)", flush=True)


def main() -> None:
    """Print coverage of the features' intervals."""
    warnings.simplefilter("ignore")
    trials = repeats(100)
    designs = [*simulated(), *(resampled() if "DPSCREEN_DATA" in os.environ else ())]
    for design in designs:
        for epsilon in EPSILONS:
            study(design, epsilon, trials)
    for design in selecting():
        for epsilon in SPLIT_EPSILONS:
            study_split(design, epsilon, trials)


if __name__ == "__main__":
    main()
