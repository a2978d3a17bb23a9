"""Intervals of coefficients: PrivateOLS, BinAgg, noise-aware Bayes and the parametric bootstrap.

The last two start from one release, the noisy matrix Σwwᵀ of w = (x, 1, y) with features and target
in half-widths of their bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.contest.binned import NORMAL, fit_binagg
from dpscreen import PrivateOLS
from dpscreen.privacy import ZCDP, Accountant, Budget, Noise, SeededNoise
from dpscreen.privacy.accountant import release_triangle
from dpscreen.rows.lattice import LEVELS, UNITS

Array = Any
BURN_IN, DRAWS, REPLICATES = 500, 1000, 200
PRIOR_SCALE, PRIOR_ROWS = 10.0, 2.0
"""Weak priors: coefficients of ±10 between units of [−1, 1], and two rows for every variance."""


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows with known coefficients, and public bounds."""

    X: Array
    y: Array
    beta: Array
    bounds: Array
    target_bounds: tuple[float, float]


Fit = Callable[[Sample, Budget, Noise], Array]
"""Rows, budget and noise to 95 % intervals of the features' coefficients; NaN for none."""


# --- one noisy matrix -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class NoisyMatrix:
    """Σwwᵀ with noise, w = (x, 1, y), and the noise's standard deviation; n is public."""

    matrix: Array
    noise: float
    n_rows: int
    back: Array

    @classmethod
    def of(cls, sample: Sample, budget: Budget, noise: Noise) -> NoisyMatrix:
        centre, half = sample.bounds.mean(axis=1), np.ptp(sample.bounds, axis=1) / 2
        low, high = sample.target_bounds
        reach = (high - low) / 2
        unit = np.clip((sample.X - centre) / half, -1, 1)
        target = np.clip((sample.y - (low + high) / 2) / reach, -1, 1)
        w = np.column_stack((unit, np.ones(len(unit)), target))
        levels = np.trunc(w * LEVELS)
        # Products of whole numbers below 2^14 over fewer than 2^25 rows are exact in floats.
        exact = (levels.T @ levels).astype(np.int64)
        limit = ZCDP.within(budget)
        matrix, scale = release_triangle(
            Accountant(noise, limit=limit),
            exact,
            units_per_one=UNITS,
            row_norm=math.sqrt(w.shape[1]),
            cost=limit,
            purpose="Σww",
        )
        matrix[-2, -2] = len(unit)
        return cls(matrix, scale, len(unit), reach / half)

    @property
    def gram(self) -> Array:
        """Return Σxxᵀ with the constant, made positive definite."""
        return _positive(self.matrix[:-1, :-1], self.noise)

    def intervals(self, draws: Array) -> Array:
        """Return 95 % intervals in the user's units from draws of the features' weights."""
        ends = np.quantile(draws, (0.025, 0.975), axis=0)
        return (ends * self.back).T


def _positive(matrix: Array, floor: float) -> Array:
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.maximum(values, floor)) @ vectors.T


def bootstrap(sample: Sample, budget: Budget, noise: Noise) -> Array:
    """Simulate the noisy matrix from the fitted model, and refit: percentiles of the refits.

    C. Ferrando, S. Wang and D. Sheldon (2022). Parametric bootstrap for differentially private
    confidence intervals. AISTATS. (Features are held fixed, as in their hybrid.)
    """
    found = NoisyMatrix.of(sample, budget, noise)
    gram, moment, p = found.gram, found.matrix[:-1, -1], len(found.matrix) - 1
    beta = np.linalg.solve(gram, moment)
    left = found.matrix[-1, -1] - beta @ moment
    variance = max(float(left) / found.n_rows, found.noise / found.n_rows)
    rng = np.random.default_rng(noise.words(1))
    factor = np.linalg.cholesky(gram + 1e-9 * np.trace(gram) * np.eye(p))
    draws = []
    for _ in range(REPLICATES):
        upper = np.triu(rng.normal(size=(p, p)))
        shaken = found.noise * (upper + np.triu(upper, 1).T)
        shaken[-1, -1] = 0.0
        errors = math.sqrt(variance) * factor @ rng.normal(size=p)
        target = gram @ beta + errors + found.noise * rng.normal(size=p)
        refit = np.linalg.solve(_positive(gram + shaken, found.noise), target)
        draws.append(2 * beta[:-1] - refit[:-1])
    return found.intervals(np.array(draws))


def bayes(sample: Sample, budget: Budget, noise: Noise) -> Array:
    """Gibbs draws of the coefficients and of the true matrix, given the noisy one.

    G. Bernstein and D. Sheldon (2019). Differentially private Bayesian linear regression. NeurIPS.
    (Normal noise in place of their Laplace; features are taken for normal.)
    """
    found = NoisyMatrix.of(sample, budget, noise)
    rng = np.random.default_rng(noise.words(1))
    matrix, n, p = _positive(found.matrix, found.noise), found.n_rows, len(found.matrix) - 1
    matrix[-2, -2] = n
    free = [(i, j) for i in range(p + 1) for j in range(i, p + 1) if (i, j) != (p - 1, p - 1)]
    noisy = np.array([found.matrix[one] for one in free])
    draws = []
    for t in range(BURN_IN + DRAWS):
        beta, variance = _weights(matrix, n, rng)
        mean, covariance = _features(matrix, n, rng)
        m, C = _moments(mean, covariance, beta, variance, free)
        # The prior of the sums by the central limit theorem, times the noise.
        spread = n * C + 1e-9 * n * np.eye(len(free))
        gain = np.linalg.solve(spread + found.noise**2 * np.eye(len(free)), spread).T
        centre = n * m + gain @ (noisy - n * m)
        left = spread - gain @ spread
        sums = centre + _root((left + left.T) / 2) @ rng.normal(size=len(free))
        matrix = np.zeros_like(matrix)
        matrix[-2, -2] = n
        for value, (i, j) in zip(sums, free, strict=True):
            matrix[i, j] = matrix[j, i] = value
        matrix = _positive(matrix, 1e-6 * n)
        if t >= BURN_IN:
            draws.append(beta[:-1])
    return found.intervals(np.array(draws))


def _root(matrix: Array) -> Array:
    values, vectors = np.linalg.eigh(matrix)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def _weights(matrix: Array, n: int, rng: Any) -> tuple[Array, float]:
    """Draw coefficients and variance given the sums: normal and inverse gamma."""
    gram = matrix[:-1, :-1] + np.eye(len(matrix) - 1) / PRIOR_SCALE**2
    mean = np.linalg.solve(gram, matrix[:-1, -1])
    left = max(float(matrix[-1, -1] - mean @ gram @ mean), 1e-9)
    shape = (n + PRIOR_ROWS) / 2
    variance = (left / 2 + 1e-6) / rng.gamma(shape)
    root = np.linalg.cholesky(np.linalg.inv(gram) + 1e-15 * np.eye(len(gram)))
    return mean + math.sqrt(variance) * root @ rng.normal(size=len(mean)), float(variance)


def _features(matrix: Array, n: int, rng: Any) -> tuple[Array, Array]:
    """Draw mean and covariance of the features, taken for normal."""
    mean = matrix[:-2, -2] / n
    scatter = matrix[:-2, :-2] / n - np.outer(mean, mean)
    from scipy.stats import invwishart

    d = len(mean)
    covariance = np.atleast_2d(
        invwishart.rvs(n + d + 1, n * _positive(scatter, 1e-4), random_state=rng)
    )
    return mean + np.linalg.cholesky(covariance / n) @ rng.normal(size=len(mean)), covariance


def _moments(
    mean: Array, covariance: Array, beta: Array, variance: float, free: list[tuple[int, int]]
) -> tuple[Array, Array]:
    """Return mean and covariance of the products w_i w_j for normal w, the constant among them."""
    slopes, d = beta[:-1], len(mean)
    m = np.concatenate((mean, [1.0], [slopes @ mean + beta[-1]]))
    S = np.zeros((d + 2, d + 2))
    S[:d, :d] = covariance
    S[:d, -1] = S[-1, :d] = covariance @ slopes
    S[-1, -1] = slopes @ covariance @ slopes + variance
    i, j = np.array(free).T
    first = S[i, j] + m[i] * m[j]

    def cross(a: Array, b: Array) -> Array:
        return S[np.ix_(a, b)]

    second = (
        cross(i, i) * cross(j, j)
        + cross(i, j) * cross(j, i)
        + np.outer(m[i], m[i]) * cross(j, j)
        + np.outer(m[i], m[j]) * cross(j, i)
        + np.outer(m[j], m[i]) * cross(i, j)
        + np.outer(m[j], m[j]) * cross(i, i)
    )
    return first, second


# --- the others -----------------------------------------------------------------------------------


def binagg(sample: Sample, budget: Budget, noise: Noise) -> Array:
    """Return BinAgg's intervals, with a constant."""
    line = fit_binagg(sample.X, sample.y, sample.bounds, sample.target_bounds, budget, noise)
    return line.intervals()


def table(sample: Sample, budget: Budget, noise: Noise) -> Array:
    """Return those of PrivateOLS; a refused table has none."""
    model = PrivateOLS(
        epsilon=budget.epsilon,
        delta=budget.delta,
        feature_bounds=sample.bounds,
        target_bounds=sample.target_bounds,
        n_rows=len(sample.y),
        quality=False,
        random_state=noise,
    )
    try:
        return model.fit(sample.X, sample.y).conf_int().to_numpy()[: len(sample.beta)]
    except ValueError:
        return np.full((len(sample.beta), 2), np.nan)


METHODS: dict[str, Fit] = {
    "private-ols": table,
    "binagg": binagg,
    "noise-aware-bayes": bayes,
    "parametric-bootstrap": bootstrap,
}


# --- designs --------------------------------------------------------------------------------------


def _sample(X: Array, beta: Array, errors: Array, bounds: tuple[float, float]) -> Sample:
    y = X @ beta + errors
    wide = 1.25 * float(np.abs(y).max())
    return Sample(X, y, beta, np.array([bounds] * X.shape[1]), (-wide, wide))


def shifted(n_rows: int) -> Callable[[Any], Sample]:
    """Return the design of BinAgg's tutorial: three normal features around 1, within (−3, 5)."""

    def draw(rng: Any) -> Sample:
        X = np.clip(rng.normal(1, 1, (n_rows, 3)), -3, 5)
        return _sample(X, np.array([1.5, -2.0, 0.5]), rng.normal(0, 1, n_rows), (-3.0, 5.0))

    return draw


def correlated(n_rows: int, *, heavy: bool = False) -> Callable[[Any], Sample]:
    """Return five features that are correlated by 0.5 with the next; errors normal or t(3)."""

    def draw(rng: Any) -> Sample:
        X = rng.normal(size=(n_rows, 5))
        for j in range(1, 5):
            X[:, j] = 0.5 * X[:, j - 1] + math.sqrt(0.75) * X[:, j]
        errors = rng.standard_t(3, n_rows) if heavy else rng.normal(size=n_rows)
        beta = np.array([1.0, -0.5, 0.0, 0.5, 0.0])
        return _sample(np.clip(X, -5, 5), beta, errors, (-5.0, 5.0))

    return draw


def uniform(rng: Any) -> Sample:
    """Return four uniform features, with errors that grow with the first."""
    X = rng.uniform(0, 10, (10_000, 4))
    errors = rng.normal(size=10_000) * (0.5 + X[:, 0] / 5)
    return _sample(X, np.array([1.0, 0.0, -0.5, 0.2]), errors, (0.0, 10.0))


DESIGNS: dict[str, Callable[[Any], Sample]] = {
    "three normal, n = 2 000": shifted(2000),
    "three normal, n = 20 000": shifted(20_000),
    "five correlated, n = 5 000": correlated(5000),
    "five correlated, t(3) errors, n = 20 000": correlated(20_000, heavy=True),
    "four uniform, unequal variances, n = 10 000": uniform,
}
EXTRA = {"three normal, n = 2 000": (2.3, 4.9)}
"""Budgets at which BinAgg was looked at before; reported, and not ranked."""


def plays(
    epsilons: tuple[float, ...], delta: float, trials: int, seed: str
) -> Iterator[dict[str, Any]]:
    """Yield the intervals' score, coverage and width of every method on every draw."""
    import time

    from dpscreen.privacy import named_seed

    for name, design in DESIGNS.items():
        for trial in range(trials):
            sample = design(np.random.default_rng(named_seed(f"{seed}/{name}/{trial}")))
            unit = ols_width(sample)
            for method, fit in METHODS.items():
                for epsilon in (*epsilons, *EXTRA.get(name, ())):
                    noise = SeededNoise(f"{seed}/{name}/{trial}/{method}/{epsilon!r}")
                    began = time.process_time()
                    found = fit(sample, Budget(epsilon, delta), noise)
                    seconds = time.process_time() - began
                    yield {
                        "division": "intervals",
                        "table": name,
                        "method": method,
                        "epsilon": epsilon,
                        "trial": trial,
                        "seconds": seconds,
                        **judged(found, sample, unit),
                    }


def ols_width(sample: Sample) -> Array:
    """Return the widths of the intervals of least squares without privacy."""
    X = np.column_stack((sample.X, np.ones(len(sample.y))))
    bread = np.linalg.inv(X.T @ X)
    left = sample.y - X @ (bread @ X.T @ sample.y)
    meat = (X * left[:, None]).T @ (X * left[:, None])
    return 2 * NORMAL * np.sqrt(np.diag(bread @ meat @ bread))[:-1]


def judged(intervals: Array, sample: Sample, unit: Array) -> dict[str, Any]:
    """Return the mean interval score, coverage and width; a missing interval is the public one."""
    given = np.isfinite(intervals).all(axis=1)
    low, high = sample.target_bounds
    public = (high - low) / np.ptp(sample.bounds, axis=1)
    ends = np.where(given[:, None], intervals, np.stack((-public, public), axis=-1))
    lower, upper = ends.T
    below, above = np.maximum(lower - sample.beta, 0), np.maximum(sample.beta - upper, 0)
    score = (upper - lower + 40 * (below + above)) / unit
    inside = (below == 0) & (above == 0)
    return {
        "score": -float(score.mean()),
        "covered": int(inside[given].sum()),
        "given": int(given.sum()),
        "width": float(np.mean((upper - lower)[given])) if given.any() else math.nan,
        "relative_width": float(np.mean(((upper - lower) / unit)[given])) if given.any() else None,
        "refused": not given.any(),
    }
