"""Rows to study methods on: real sets as the paper prepared them, and its synthetic data.

No preparation is private (erratum E8): the Yeo-Johnson parameters, the column ranges, the means and
the maxima are read off the data, and the guarantee of whatever is fitted afterwards does not cover
them. Each `Prepared` says so in its notes, which belong into every result file.
"""

import math
from typing import NamedTuple

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen.paper.data.store import DatasetTable

NOT_PRIVATE = (
    "This preparation is not private (erratum E8): its parameters are computed from the data and "
    "lie outside any privacy guarantee stated for the fit."
)


class Prepared(NamedTuple):
    """A table ready to be fitted. The notes say what was done and that it is not private."""

    X: Array
    y: Array
    notes: tuple[str, ...]


def prepare(table: DatasetTable, *, transform: bool = True) -> Prepared:
    """Prepare a table as the paper did: for Tables 2 and 3, or without the transform for 4 and 5.

    1. A missing cell becomes 0.
    2. Of the sets that the paper took from LIBSVM, each column is mapped to [-1, 1], constant
       columns to 0, as in LIBSVM's `_scale` files.
    3. With the Yeo-Johnson transform, features and target are made more Gaussian and standardised;
       without, the target is divided by its largest absolute value.
    4. X is divided by its largest absolute entry.
    """
    if not (table.X.size and np.isfinite(table.y).all()) or np.isinf(table.X).any():
        raise ValueError("features must be finite or missing, and the target finite")
    notes, absent = [NOT_PRIVATE], np.isnan(table.X)
    X = np.where(absent, 0.0, table.X)
    if absent.any():
        notes.append(f"{int(absent.sum())} missing values were set to zero.")
    if table.from_libsvm:
        X = libsvm_scale(X)
        notes.append("Each column was mapped to [-1, 1] as in LIBSVM's scaled files.")
    if transform:
        X = yeo_johnson(X, table.feature_names)
        notes.append("Each feature was Yeo-Johnson transformed and standardised.")
        y = _gaussianised(table.y, "target")
        of_target = "The target was Yeo-Johnson transformed and standardised."
    else:
        y = max_abs_scale(table.y)
        of_target = "The target was divided by its largest absolute value."
    notes += ["X was divided by its largest absolute value (global).", of_target]
    return Prepared(max_abs_scale(X), y, tuple(notes))


def libsvm_scale(features: Array) -> Array:
    """Map each column linearly onto [-1, 1]; a constant column becomes zero."""
    # Halves, because the difference of two huge numbers may overflow.
    low, high = features.min(axis=0) / 2, features.max(axis=0) / 2
    width = np.where(high > low, high - low, 1.0)
    return np.where(high > low, 2 * ((features / 2 - low) / width) - 1, 0.0)


def yeo_johnson(features: Array, names: tuple[str, ...]) -> Array:
    """The Yeo-Johnson transform of each column, standardised, as scikit-learn fits it."""
    columns = zip(features.T, names, strict=True)
    return np.column_stack([_gaussianised(column, name) for column, name in columns])


def max_abs_scale(values: Array) -> Array:
    """Divide by the largest absolute entry; where all entries are zero, leave them."""
    largest = np.abs(values).max()
    return values / largest if largest > 0 else values.copy()


def _gaussianised(column: Array, name: str) -> Array:
    # Constant: it varies by no more than the rounding of its own mean.
    scaled = max_abs_scale(column)
    rounding = len(column) * np.finfo(np.float64).eps * abs(scaled.mean())
    if np.ptp(column / 2) == 0 or scaled.std() <= rounding:
        return np.zeros_like(column)
    upper = column == column.max()
    if np.all(upper | (column == column.min())):
        # Any increasing map of two values is affine, so standardising forgets it: no fit needed.
        share = upper.mean()
        return np.where(upper, math.sqrt((1 - share) / share), -math.sqrt(share / (1 - share)))
    from sklearn.preprocessing import PowerTransformer

    # Overflow on the way is judged by its result, which is what matters.
    with np.errstate(over="ignore", invalid="ignore"):
        transformed: Array = PowerTransformer().fit_transform(column[:, None])[:, 0]
        failed = not abs(transformed.std() - 1) < 1e-3
    if failed:
        raise ValueError(
            f"the Yeo-Johnson transform of column {name!r} overflows or collapses; "
            "scale the column first, or switch the transform off"
        )
    return transformed


# --- the paper's synthetic data (Section 5.1) ---------------------------------------------------

CORRELATION = {"uncorrelated": 0.0, "correlated": 0.5}
"""Of neighbouring features, by the name of the data set."""


class Simulated(NamedTuple):
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
    scattered: bool = False,
    rng: np.random.Generator,
) -> Simulated:
    """Gaussian rows scaled into [-1, 1], and y = X coef.

    Neighbouring features correlate: Σ_ij = correlation^|i-j|. The whole of X is divided by its
    largest absolute entry. The first `n_positive` coefficients are +1, the next `n_negative` are
    -1, the others 0: the support is one block, as fits the paper's Table 1. With `scattered` the
    same coefficients stand anywhere.
    """
    from dpscreen.planning.setting import normal_rows  # slow to import

    rows = normal_rows(n_rows, n_features, correlation, rng)
    rows /= np.abs(rows).max()
    coef = np.zeros(n_features)
    coef[:n_positive] = 1.0
    coef[n_positive : n_positive + n_negative] = -1.0
    if scattered:
        rng.shuffle(coef)
    return Simulated(rows, rows @ coef, coef)
