"""How often intervals of PrivateOLS and PrivateLogit cover: `python -m benchmarks.coverage`.

Simulated designs, and the columns of public tables where DPSCREEN_DATA is set, with outcomes drawn
from a known model. The truth is the best model of the features that have a coefficient, from a
large population. Widths are over those of robust least squares, or of logistic regression, on the
same rows. `DPSCREEN_TRIALS` sets the repetitions (20); arguments name designs, all by default, and
`--save FILE` keeps what was measured, so that `--against FILE` can compare two versions of the
code, whose marginals then have the same noise.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.metrics import r2_score, roc_auc_score

from benchmarks.tables_quality import harness
from benchmarks.timing import autoregressive
from dpscreen import PrivateLogit, PrivateOLS
from dpscreen.models.refusal import TableRefused

POPULATION = 100_000
EPSILONS = (1.0, 5.0)
LEAST, MOST, WORST = 0.93, 0.985, 0.90
"""The pooled coverage that is accepted, and the least of a design with 200 intervals."""


@dataclass(frozen=True)
class Design:
    """Features by (generator, rows); their linear predictor; noise by (generator, X), if any."""

    name: str
    rows: Callable[[Any, int], Any]
    predictor: Callable[[Any], Any]
    bounds: Any
    noise: Callable[[Any, Any], Any] | None = None
    target_bounds: tuple[float, float] = (-1000.0, 1000.0)
    n_rows: int = 20_000

    def outcomes(self, rng: Any, X: Any) -> Any:
        """Draw targets, or binary outcomes where there is no noise."""
        predictor = self.predictor(X)
        if self.noise is None:
            return (rng.random(len(X)) < expit(predictor)).astype(np.int64)
        return predictor + self.noise(rng, X)


def normal(rng: Any, X: Any) -> Any:
    return rng.normal(size=len(X))


def correlated(d: int, correlation: float) -> Callable[[Any, int], Any]:
    """Return standard normal features, each correlated with the one before."""
    return lambda rng, n: autoregressive(rng, n, d, correlation)


def age_powers(rng: Any, n: int) -> Any:
    age = rng.uniform(18, 65, n).round()
    return np.column_stack((age, age**2, age**3, rng.normal(size=n), rng.random(n) < 0.4))


def levels(rng: Any, n: int) -> Any:
    """Return age, income and a category of 30 levels whose shares fall."""
    shares = 0.85 ** np.arange(30)
    level = rng.choice(30, size=n, p=shares / shares.sum())
    numbers = np.column_stack((rng.normal(45, 12, n), np.exp(rng.normal(10, 0.5, n)) / 1000))
    return np.hstack((numbers, level[:, None] == np.arange(1, 30)))


def two_places(rng: Any, n: int) -> Any:
    """Return features of which 1 % of the rows lie twenty deviations away."""
    X = rng.normal(size=(n, 5))
    X[:, :2] += 20 * (rng.random(n) < 0.01)[:, None]
    return X


def lognormal(rng: Any, n: int) -> Any:
    return np.exp(rng.normal(size=(n, 6)))


def mixed(rng: Any, n: int) -> Any:
    """Return four numbers and a category of three levels, the last one of 2 %."""
    numbers = rng.normal(size=(n, 4)) * [1, 10, 3, 1] + [0, 50, 1, 0]
    level = rng.choice(3, size=n, p=[0.6, 0.38, 0.02])
    return np.column_stack((numbers, level == 1, level == 2)).astype(np.float64)


def mostly_zero(rng: Any, n: int) -> Any:
    X = rng.normal(size=(n, 5))
    X[:, 0] = np.where(rng.random(n) < 0.9, 0.0, np.exp(rng.normal(size=n)))
    return X


def linear(*slopes: float, constant: float = 0.0) -> Callable[[Any], Any]:
    return lambda X: X @ np.resize(slopes, X.shape[1]) + constant


def zero_inflated(rng: Any, X: Any) -> Any:
    """Return what makes nine targets of ten zero."""
    paid = np.maximum(X @ np.resize((2.0, -1.0, 0.0), X.shape[1]) + 8 + rng.normal(size=len(X)), 0)
    return np.where(rng.random(len(X)) < 0.1, paid, 0.0)


def simulated() -> Iterator[Design]:
    """Yield the simulated designs, continuous outcomes first."""
    eight, slopes = correlated(8, 0.5), linear(1.0, -0.5, 0.0)
    wide = (-30.0, 30.0)
    yield Design("normal", eight, slopes, wide, normal)
    yield Design("skewed", eight, slopes, wide, lambda rng, X: 2 * rng.gamma(0.5, 2, len(X)) - 2)
    yield Design("heavy tails", eight, slopes, wide, lambda rng, X: rng.standard_t(3, len(X)))
    yield Design("90 % zeros", eight, linear(0.0), wide, zero_inflated)
    yield Design("mostly-zero column", mostly_zero, slopes, wide, normal)

    def uneven(rng: Any, X: Any) -> Any:
        return np.exp(X[:, 0] / 2) * rng.normal(size=len(X))

    yield Design("heteroscedastic", eight, slopes, wide, uneven)
    yield Design("collinear", correlated(6, 0.99), slopes, wide, normal)
    ages = np.array([(0, 120), (0, 120**2), (0, 120**3), wide, (0, 1)], dtype=np.float64)

    def wage(X: Any) -> Any:
        return X @ (0.4, -0.004, 0.00001, 0.5, 1.0)

    yield Design("powers of age", age_powers, wage, ages, normal)
    many = np.array([(0, 120), (0, 10_000), *[(0, 1)] * 29], dtype=np.float64)

    def effects(X: Any) -> Any:
        return X @ np.append((0.05, 0.02), np.resize((1, -1, 0), 29))

    yield Design("30 levels", levels, effects, many, normal)
    yield Design("second place", two_places, slopes, (-100.0, 100.0), normal)
    yield Design("lognormal features", lognormal, slopes, (0.0, 1000.0), normal)
    yield Design("1000 rows", correlated(10, 0.3), slopes, wide, normal, n_rows=1000)
    yield Design("1500 rows", correlated(10, 0.3), slopes, (-8.0, 8.0), normal, n_rows=1500)
    binary = np.array([(-10, 10), (0, 120), (-20, 40), (-10, 10), (0, 1), (0, 1)], dtype=float)
    odds = (0.5, 0.03, -0.2, 0.0, 0.6, 1.5)
    yield Design("binary", mixed, linear(*odds, constant=-1.8), binary)
    yield Design("binary, rare", mixed, linear(*odds, constant=-5.2), binary)
    strong = linear(*(3 * np.array(odds)), constant=-5.0)
    yield Design("binary, strong", mixed, strong, binary)
    yield Design("binary, correlated", eight, linear(0.7, -0.4, 0.0, constant=-0.5), wide)
    small = linear(0.2, -0.1, 0.0, constant=-1.0)
    yield Design("binary, lognormal", lognormal, small, (0.0, 1000.0))

    def lifetime(X: Any) -> Any:
        return wage(X) - 9

    yield Design("binary, powers of age", age_powers, lifetime, ages)
    yield Design("binary, 30 levels", levels, lambda X: effects(X) - 3, many)
    yield Design("binary, 5000 rows", mixed, linear(*odds, constant=-1.8), binary, n_rows=5000)


def real() -> Iterator[Design]:
    """Yield the columns of public tables, drawn again, with outcomes from a fitted model."""
    tables = harness()
    rng = np.random.default_rng(0)
    for kind in ("regression", "fresh", "classification", "fresh_classification"):
        for task in tables.tasks(kind):
            if len(task.X) < 1000 or task.X.shape[1] > 40:
                continue
            features, target = tables.loose_bounds(task, 2.0, rng)
            yield _of_table(task, features, target)


def _of_table(task: Any, features: Any, target: tuple[float, float]) -> Design:
    binary = task.kind.endswith("classification")
    slopes, residuals = _fitted(task, binary)

    def rows(rng: Any, n: int) -> Any:
        return task.X[rng.integers(len(task.X), size=n)]

    def drawn(rng: Any, X: Any) -> Any:
        return rng.choice(residuals, len(X))

    return Design(
        task.name,
        rows,
        lambda X: X @ slopes[:-1] + slopes[-1],
        features,
        None if binary else drawn,
        target,
        n_rows=len(task.X),
    )


def _fitted(task: Any, binary: bool) -> tuple[Any, Any]:
    """Return slopes and constant of a mildly shrunken fit, and its residuals."""
    centre, scale = task.X.mean(0), task.X.std(0)
    Z = np.column_stack(((task.X - centre) / scale, np.ones(len(task.X))))
    if binary:
        found, _ = _logistic(Z, task.y, ridge=1.0)
    else:
        found = np.linalg.lstsq(Z, task.y, rcond=1e-6)[0]
    slopes = found[:-1] / scale
    return np.append(slopes, found[-1] - centre @ slopes), task.y - Z @ found


def _logistic(Z: Any, y: Any, ridge: float = 1e-6) -> tuple[Any, Any]:
    """Return logistic regression and its covariance; outcomes may be probabilities."""
    weights = np.zeros(Z.shape[1])
    for _ in range(25):
        p = expit(Z @ weights)
        curvature = (Z * (p * (1 - p))[:, None]).T @ Z + ridge * np.eye(Z.shape[1])
        move = np.linalg.solve(curvature, Z.T @ (y - p) - ridge * weights)
        weights = weights + move * min(1.0, 5 / (np.abs(Z @ move).max() + 1e-9))
    return weights, np.linalg.inv(curvature)


def usual(X: Any, y: Any, binary: bool) -> tuple[Any, Any]:
    """Return slopes and robust standard errors without privacy."""
    centre, scale = X.mean(0), X.std(0) + 1e-12
    Z = np.column_stack(((X - centre) / scale, np.ones(len(X))))
    if binary:
        found, covariance = _logistic(Z, y)
    else:
        inverse = np.linalg.pinv(Z.T @ Z, rcond=1e-12)
        found = inverse @ (Z.T @ y)
        meat = (Z * ((y - Z @ found) ** 2)[:, None]).T @ Z
        covariance = inverse @ meat @ inverse
    return found[:-1] / scale, np.sqrt(np.diag(covariance))[:-1] / scale


class Truths:
    """The best coefficients of some features of a design, from its population."""

    def __init__(self, design: Design) -> None:
        rng = np.random.default_rng(12345)
        self.binary = design.noise is None
        self.X = design.rows(rng, POPULATION)
        self.y = design.outcomes(rng, self.X)
        if self.binary:
            self.mean = expit(design.predictor(self.X))
        elif design.name == "90 % zeros":
            self.mean = self.y
        else:
            self.mean = design.predictor(self.X)
        self._known = dict[bytes, Any]()

    def of(self, kept: Any) -> Any:
        """Return coefficients, zero for features that are not kept."""
        if kept.tobytes() not in self._known:
            found = np.zeros(len(kept))
            if kept.any():
                found[kept] = usual(self.X[:, kept], self.mean, self.binary)[0]
            self._known[kept.tobytes()] = found
        return self._known[kept.tobytes()]

    def score(self, model: Any) -> float:
        """Return R², or the area under the curve, on the population."""
        if self.binary:
            return float(roc_auc_score(self.y, model.predict_proba(self.X)[:, 1]))
        return float(r2_score(self.y, model.predict(self.X)))


def study(design: Design, epsilon: float, trials: int) -> dict[str, Any]:
    """Return what intervals of some fits do."""
    truths, found = Truths(design), []
    kind = PrivateLogit if truths.binary else PrivateOLS
    settings = {} if truths.binary else {"target_bounds": design.target_bounds}
    began = time.perf_counter()
    for seed in range(trials):
        rng = np.random.default_rng([seed, 99])
        X = design.rows(rng, design.n_rows)
        y = design.outcomes(rng, X)
        model = kind(
            epsilon=epsilon,
            delta=1e-6,
            feature_bounds=design.bounds,
            quality=False,
            random_state=f"coverage {seed}",
            **settings,
        )
        try:
            model.fit(X, y)
        except TableRefused:
            found.append({"given": [False] * X.shape[1], "refused": True})
            continue
        table, d = model.table_, X.shape[1]
        coef = table.coefficients[:d]
        given = table.given[:d]
        plain, errors = usual(X, y, truths.binary)
        truth, half = truths.of(coef != 0), table.half_widths(0.95)[:d]
        found.append(
            {
                "given": given.tolist(),
                "covers": (np.abs(coef - truth) <= half)[given].tolist(),
                "z": ((coef - truth) / half * 1.96)[given].tolist(),
                "wide": (half / (1.96 * errors))[given].tolist(),
                "plain": (np.abs(plain - truths.of(np.ones(d, bool))) <= 1.96 * errors).tolist(),
                "score": truths.score(model),
                "releases": len(model.privacy_.mechanisms),
            }
        )
    seconds = (time.perf_counter() - began) / trials
    return {"design": design.name, "epsilon": epsilon, "seconds": seconds, "fits": found}


def summary(result: dict[str, Any]) -> dict[str, float]:
    """Return coverage, its worst feature, widths and the share of coefficients with intervals."""
    fits = [one for one in result["fits"] if "covers" in one]
    covers = [c for one in fits for c in one["covers"]]
    d = len(result["fits"][0]["given"])
    by_feature = [[] for _ in range(d)]
    for one in fits:
        for j, c in zip(np.flatnonzero(one["given"]), one["covers"], strict=True):
            by_feature[j].append(c)
    worst = min((np.mean(c) for c in by_feature if len(c) >= 10), default=np.nan)
    return {
        "n": len(covers),
        "coverage": float(np.mean(covers)) if covers else np.nan,
        "worst": float(worst),
        "width": float(np.median([w for one in fits for w in one["wide"]])) if covers else np.nan,
        "given": float(np.mean([one["given"] for one in result["fits"]])),
        "plain": float(np.mean([c for one in fits for c in one["plain"]])) if fits else np.nan,
        "score": float(np.mean([one["score"] for one in fits])) if fits else np.nan,
        "releases": max((one["releases"] for one in fits), default=0),
        "seconds": result["seconds"],
    }


HEAD = f"{'':34} {'n':>5} cover worst width given plain score rel   s"


def line(result: dict[str, Any]) -> str:
    """Return one line of the report."""
    s = summary(result)
    numbers = (
        f"{s['n']:5d} {s['coverage']:.3f}  {s['worst']:.2f}  {s['width']:4.2f}  {s['given']:.2f}"
    )
    tail = f"  {s['plain']:.3f} {s['score']:5.2f} {s['releases']:3d} {s['seconds']:.2f}"
    return f"{result['design'][:27]:28}{result['epsilon']:5g} {numbers}{tail}"


def pooled(results: list[dict[str, Any]]) -> str:
    """Return pooled coverage, and designs that are below what is accepted."""
    parts = [summary(one) for one in results]
    parts = [(r, s) for r, s in zip(results, parts, strict=True) if s["n"]]
    n = sum(s["n"] for _, s in parts)
    cover = sum(s["n"] * s["coverage"] for _, s in parts) / max(n, 1)
    low = [
        f"{r['design']} ({r['epsilon']:g}) {s['coverage']:.3f}"
        for r, s in parts
        if s["n"] >= 200 and s["coverage"] < WORST
    ]
    width = np.median([s["width"] for _, s in parts])
    given = np.mean([summary(one)["given"] for one in results])
    whole = f"pooled coverage {cover:.4f} of {n}, median width {width:.3f}, given {given:.3f}"
    return f"{whole}; below {WORST}: {', '.join(low) or 'none'}"


def main() -> None:
    """Measure designs, print them, and save or compare them if asked to."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--save", type=Path)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--epsilon", type=float, nargs="*", default=EPSILONS)
    parser.add_argument("--no-real", action="store_true")
    asked = parser.parse_args()
    trials = int(os.environ.get("DPSCREEN_TRIALS", "20"))
    designs = [*simulated()]
    if "DPSCREEN_DATA" in os.environ and not asked.no_real:
        designs += real()
    if asked.names:
        designs = [one for one in designs if any(name in one.name for name in asked.names)]
    results = list[dict[str, Any]]()
    before = {}
    if asked.against:
        kept = json.loads(asked.against.read_text())
        before = {(one["design"], one["epsilon"]): one for one in kept}
    print(HEAD, flush=True)
    for design in designs:
        for epsilon in asked.epsilon:
            results.append(study(design, epsilon, trials))
            old = before.get((design.name, epsilon))
            if old:
                print("-", line({**old, "fits": old["fits"][:trials]}))
            print("+" if old else " ", line(results[-1]), flush=True)
            if asked.save:
                asked.save.write_text(json.dumps(results))
    print(pooled(results))
    if before:
        pairs = [before[k] for r in results if (k := (r["design"], r["epsilon"])) in before]
        print("before:", pooled([{**one, "fits": one["fits"][:trials]} for one in pairs]))


if __name__ == "__main__":
    main()
