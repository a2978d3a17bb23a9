"""The paper's synthetic data (Section 5.1)."""

import math
from dataclasses import dataclass

import numpy as np

from dpscreen._core.arrays import Array


@dataclass(frozen=True, eq=False)
class Simulated:
    """Rows `X` with entries in [-1, 1], targets `y`, and the coefficients behind them."""

    X: Array
    y: Array
    coef: Array


def synthetic(
    *,
    n_rows: int = 3000,
    n_features: int = 600,
    n_positive: int = 35,
    n_negative: int = 35,
    correlation: float = 0.0,
    noise: float = 0.0,
    rng: np.random.Generator,
) -> Simulated:
    """Gaussian rows scaled into [-1, 1], and y = X coef plus noise of that standard deviation.

    Neighbouring features correlate: Σ_ij = correlation^|i-j|. The whole of X is divided by its
    largest absolute entry. The first `n_positive` coefficients are +1, the next `n_negative` are
    -1, the others 0: the support is one block, as fits the paper's Table 1.
    """
    _check_sizes(n_rows, n_features, n_positive, n_negative)
    _check_scales(correlation, noise)
    rows = _correlated_rows(n_rows, n_features, correlation, rng)
    rows /= np.abs(rows).max()
    coef = np.zeros(n_features)
    coef[:n_positive] = 1.0
    coef[n_positive : n_positive + n_negative] = -1.0
    return Simulated(rows, rows @ coef + noise * rng.standard_normal(n_rows), coef)


def _correlated_rows(
    n_rows: int, n_features: int, correlation: float, rng: np.random.Generator
) -> Array:
    # x_j = ρ x_{j-1} + √(1-ρ²) z_j has exactly the covariance ρ^|i-j|, at linear cost.
    rows = rng.standard_normal((n_rows, n_features))
    if correlation == 0.0:
        return rows
    rows[:, 1:] *= math.sqrt(1.0 - correlation**2)
    for j in range(1, n_features):
        rows[:, j] += correlation * rows[:, j - 1]
    return rows


def _check_sizes(n_rows: int, n_features: int, n_positive: int, n_negative: int) -> None:
    if n_rows < 1 or n_features < 1:
        raise ValueError(f"need at least one row and one feature, not {n_rows} and {n_features}")
    if n_positive < 0 or n_negative < 0:
        raise ValueError("n_positive and n_negative must not be negative")
    if n_positive + n_negative > n_features:
        raise ValueError(
            f"{n_positive} + {n_negative} nonzero coefficients do not fit {n_features} features"
        )


def _check_scales(correlation: float, noise: float) -> None:
    if not -1.0 < correlation < 1.0:
        raise ValueError(f"correlation must lie strictly between -1 and 1, not {correlation}")
    if not 0.0 <= noise < math.inf:
        raise ValueError(f"noise must be finite and not negative, not {noise}")
