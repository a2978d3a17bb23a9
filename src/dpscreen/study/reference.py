"""The LASSO solution that the paper measures real data against, and the radius it gives.

The paper asks scikit-learn for about d/3 nonzeros and takes λ from the solution's L1 norm. Neither
K nor λ is printed; replication finds K, and every λ of an interval has that K. One rule serves all
sets: the middle of the longest interval of norms with K nonzeros. It looks at the data, so it is
outside every guarantee (erratum E8).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from dpscreen._core.arrays import Array, Mask

RULE = "the middle of the longest interval of LASSO norms with K nonzeros"
STEPS_PER_DECADE = (50, 100, 200, 400)
DECADES = 8


@dataclass(frozen=True, eq=False)
class Reference:
    """A LASSO solution with the wanted number of nonzeros, and the norms that share it."""

    coef: Array
    lowest_norm: float
    highest_norm: float

    @property
    def radius(self) -> float:
        """λ, the middle of the interval."""
        return (self.lowest_norm + self.highest_norm) / 2

    @property
    def support(self) -> Mask:
        """Which coefficients are not zero."""
        return np.asarray(self.coef != 0)


def lasso_reference(X: Array, y: Array, *, n_support: int, intercept: bool) -> Reference:
    """Find the LASSO solutions with `n_support` nonzeros and return the one in their middle."""
    rows, target = _fewer_rows(X, y, intercept=intercept)
    for per_decade in STEPS_PER_DECADE:
        alphas, path = _path_beyond(rows, target, n_support, per_decade)
        hits = np.count_nonzero(path, axis=0) == n_support
        if hits.any():
            return _closer(rows, target, alphas, path, _longest_run(hits))
    return _between_corners(rows, target, n_support)


def _closer(rows: Array, target: Array, alphas: Array, path: Array, run: slice) -> Reference:
    """Walk the stretch of the path around the run again, in small steps, to find its ends."""
    n_support = np.count_nonzero(path[:, run.start])
    before, after = max(run.start - 1, 0), min(run.stop, len(alphas) - 1)
    steps = np.geomspace(alphas[before], alphas[after], STEPS_PER_DECADE[0])
    fine = _path(rows, target, steps, start=path[:, before])
    hits = np.count_nonzero(fine, axis=0) == n_support
    return _middle(fine[:, _longest_run(hits)] if hits.any() else path[:, run])


def _between_corners(rows: Array, target: Array, n_support: int) -> Reference:
    """Find an interval that every grid steps over: the path is straight between its corners."""
    corners = _corners(rows, target)
    middles = (corners[:, :-1] + corners[:, 1:]) / 2
    norms = np.abs(corners).sum(axis=0)
    fits = np.count_nonzero(middles, axis=0) == n_support
    if not fits.any():
        raise ValueError(f"no LASSO solution with {n_support} nonzeros was found")
    longest = int(np.argmax(np.where(fits, np.diff(norms), -np.inf)))
    lowest, highest = float(norms[longest]), float(norms[longest + 1])
    return Reference(middles[:, longest].copy(), lowest, highest)


def _corners(rows: Array, target: Array) -> Array:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import lars_path

    with warnings.catch_warnings():
        # Where rounding stops the walk early, the corners found until then are right.
        warnings.simplefilter("ignore", ConvergenceWarning)
        _, _, coefs = lars_path(rows, target, method="lasso")
    return np.asarray(coefs, dtype=np.float64)


def _fewer_rows(X: Array, y: Array, *, intercept: bool) -> tuple[Array, Array]:
    """Return at most d + 1 rows with the same second moments: the same LASSO, in far less time."""
    table = np.column_stack([X, y])
    if intercept:
        table -= table.mean(axis=0)
    triangle = np.asarray(np.linalg.qr(table, mode="r"))
    return np.asfortranarray(triangle[:, :-1]), np.ascontiguousarray(triangle[:, -1])


def _path_beyond(
    rows: Array, target: Array, n_support: int, per_decade: int
) -> tuple[Array, Array]:
    """Walk down the path, decade by decade, until it is well past the wanted support."""
    highest = np.abs(rows.T @ target).max() / len(target)
    walked: list[Array] = []
    found: list[Array] = []
    start = None
    for decade in range(DECADES):
        walked.append(highest * np.geomspace(10.0**-decade, 10.0 ** -(decade + 1), per_decade))
        found.append(_path(rows, target, walked[-1], start=start))
        start = found[-1][:, -1]
        if np.count_nonzero(start) > 1.5 * n_support:
            break
    return np.concatenate(walked), np.concatenate(found, axis=1)


def _path(rows: Array, target: Array, alphas: Array, *, start: Array | None) -> Array:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import lasso_path

    with warnings.catch_warnings():
        # Far down the path of heavy-tailed data the iterations run out, as they do for whoever
        # leaves scikit-learn's limit as it is; norms and counts change by about one per cent.
        warnings.simplefilter("ignore", ConvergenceWarning)
        _, coefs, _ = lasso_path(
            rows, target, alphas=alphas, precompute=True, tol=1e-6, coef_init=start
        )
    return np.asarray(coefs, dtype=np.float64)


def _longest_run(hits: Mask) -> slice:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], hits, [False]]).astype(int)))
    starts, ends = edges[::2], edges[1::2]
    longest = int(np.argmax(ends - starts))
    return slice(int(starts[longest]), int(ends[longest]))


def _middle(solutions: Array) -> Reference:
    norms = np.abs(solutions).sum(axis=0)
    lowest, highest = float(norms.min()), float(norms.max())
    nearest = int(np.argmin(np.abs(norms - (lowest + highest) / 2)))
    return Reference(solutions[:, nearest].copy(), lowest, highest)
