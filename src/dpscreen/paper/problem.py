"""What a method is given: a prepared data set with its reference solution and its settings."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from dpscreen._core.arrays import Array, Mask
from dpscreen.paper.metrics import Gram
from dpscreen.privacy import Budget
from dpscreen.rows.design import DenseDesign, GramDesign, Position
from dpscreen.rows.lattice import LatticeDesign
from dpscreen.solvers.frank_wolfe import wolfe_gap


class PreparedRows:
    """A prepared data set, with everything that is computed from it once and shared by all runs."""

    def __init__(self, X: Array, y: Array) -> None:
        self.whole = DenseDesign(X, y)
        self.target_bound = float(np.abs(y).max())

    @cached_property
    def folded(self) -> GramDesign:
        """The rows folded into their Gram matrix."""
        return GramDesign.from_rows(self.whole.X, self.whole.y)

    @cached_property
    def lattice(self) -> LatticeDesign:
        """The rows on the lattice, for proven methods."""
        return LatticeDesign.from_rows(self.whole.X, self.whole.y)

    @cached_property
    def moments(self) -> Gram:
        """What regressions among the features need."""
        return Gram(self.whole.X)


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows, the coefficients they are measured against, and the settings of the run.

    `reference` is the generating vector on synthetic data, the LASSO's solution on real data;
    `norms` are the smallest and the largest λ with as many nonzeros in the LASSO. Screening gets
    the `shares` of ε and δ.
    """

    rows: PreparedRows
    reference: Array
    radius: float
    n_iter: int
    budget: Budget
    shares: tuple[float, float]
    norms: tuple[float, ...]
    notes: tuple[str, ...]

    @property
    def design(self) -> GramDesign:
        """The folded rows, on which all methods run that do not clip."""
        return self.rows.folded

    @property
    def parts(self) -> tuple[Budget, Budget]:
        """The budget for optimisation, (ε₁, δ₁), and for screening, (ε₂, δ₂)."""
        return self.budget.split(share=self.shares[0], delta_share=self.shares[1])

    @property
    def support(self) -> Mask:
        """Which coefficients of the reference are not zero."""
        return np.asarray(self.reference != 0)

    @property
    def n_support(self) -> int:
        """K, how many those are."""
        return int(np.count_nonzero(self.reference))

    def mean_squared_error(self, weights: Array) -> float:
        """Return ‖Xw − y‖²/n."""
        return self.design.at(weights).squared_error() / self.design.n_rows

    def facts(self) -> dict[str, Any]:
        """What a row records of the problem it was computed on."""
        return {
            "n_rows": self.design.n_rows,
            "n_features": self.design.n_features,
            "n_support": self.n_support,
            "radius": self.radius,
            "zero_error": self.mean_squared_error(np.zeros(self.design.n_features)),
            "n_iter": self.n_iter,
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "screening_shares": list(self.shares),
            "preparation": list(self.notes),
        }


MOST_POINTS = 200
"""At so many evenly spaced iterations a curve is recorded, both ends among them."""


class Recorder:
    """Watches a run and keeps the wanted curves.

    mse          ‖Xw − y‖²/n
    kept_true    fraction of the reference's nonzeros that are nonzero
    kept_false   fraction of the reference's zeros that are nonzero
    wolfe_gap    (wᵀS + λ‖S‖∞)/n
    """

    def __init__(self, problem: Problem, wanted: Sequence[str]) -> None:
        self._problem, self._wanted = problem, wanted
        self.series: dict[str, list[float]] = {}

    def watch_until(self, n_iter: int) -> Callable[[int, Position], None]:
        """Return the callback for a run of this many iterations."""
        spread = np.linspace(1, n_iter, min(n_iter, MOST_POINTS))
        kept = set(np.rint(spread).astype(int).tolist()) if self._wanted else set()

        def watch(t: int, point: Position) -> None:
            if t in kept:
                self.series.setdefault("iteration", []).append(t)
                for name in self._wanted:
                    value = float(f"{self._measured(name, point.weights):.6g}")
                    self.series.setdefault(name, []).append(value)

        return watch

    def _measured(self, name: str, weights: Array) -> float:
        problem, design = self._problem, self._problem.design
        match name:
            case "mse":
                return problem.mean_squared_error(weights)
            case "kept_true":
                return float(np.mean(weights[problem.support] != 0))
            case "kept_false":
                return float(np.mean(weights[~problem.support] != 0))
        gradient = design.at(weights).gradient()
        gap = wolfe_gap(float(weights @ gradient), gradient, radius=problem.radius)
        return gap / design.n_rows


# --- the LASSO that real data is measured against -------------------------------------------------

RULE = "the middle of the longest interval of LASSO norms with K nonzeros"
STEPS_PER_DECADE = (50, 100, 200, 400)
DECADES = 8


class Reference(NamedTuple):
    """A LASSO solution with the wanted number of nonzeros, and the norms that share it."""

    coef: Array
    lowest_norm: float
    highest_norm: float

    @property
    def radius(self) -> float:
        """λ, the middle of the interval."""
        return (self.lowest_norm + self.highest_norm) / 2


def lasso_reference(X: Array, y: Array, *, n_support: int, intercept: bool) -> Reference:
    """Find the LASSO solutions with `n_support` nonzeros and return the one in their middle."""
    # At most d + 1 rows with the same second moments: the same LASSO, in far less time.
    table = np.column_stack([X, y])
    if intercept:
        table -= table.mean(axis=0)
    triangle = np.asarray(np.linalg.qr(table, mode="r"))
    rows, target = np.asfortranarray(triangle[:, :-1]), np.ascontiguousarray(triangle[:, -1])
    for per_decade in STEPS_PER_DECADE:
        alphas, path = _path_beyond(rows, target, n_support, per_decade)
        hits = np.count_nonzero(path, axis=0) == n_support
        if hits.any():
            # Once more around the longest run, in small steps, to find its ends.
            run = _longest_run(hits)
            before, after = max(run.start - 1, 0), min(run.stop, len(alphas) - 1)
            steps = np.geomspace(alphas[before], alphas[after], STEPS_PER_DECADE[0])
            fine = _path(rows, target, steps, start=path[:, before])
            hits = np.count_nonzero(fine, axis=0) == n_support
            solutions = fine[:, _longest_run(hits)] if hits.any() else path[:, run]
            norms = np.abs(solutions).sum(axis=0)
            lowest, highest = float(norms.min()), float(norms.max())
            nearest = int(np.argmin(np.abs(norms - (lowest + highest) / 2)))
            return Reference(solutions[:, nearest].copy(), lowest, highest)
    return _between_corners(rows, target, n_support)


def _between_corners(rows: Array, target: Array, n_support: int) -> Reference:
    """Find an interval that every grid steps over: the path is straight between its corners."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import lars_path

    # The corners found until rounding stops it are right.
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        corners = np.asarray(lars_path(rows, target, method="lasso")[2], dtype=np.float64)
    middles = (corners[:, :-1] + corners[:, 1:]) / 2
    norms = np.abs(corners).sum(axis=0)
    fits = np.count_nonzero(middles, axis=0) == n_support
    if not fits.any():
        raise ValueError(f"no LASSO solution with {n_support} nonzeros was found")
    longest = int(np.argmax(np.where(fits, np.diff(norms), -np.inf)))
    lowest, highest = float(norms[longest]), float(norms[longest + 1])
    return Reference(middles[:, longest].copy(), lowest, highest)


def _path_beyond(
    rows: Array, target: Array, n_support: int, per_decade: int
) -> tuple[Array, Array]:
    """Follow the path, decade by decade, until it is well past the wanted support."""
    highest = np.abs(rows.T @ target).max() / len(target)
    alphas: list[Array] = []
    found: list[Array] = []
    start = None
    for decade in range(DECADES):
        alphas.append(highest * np.geomspace(10.0**-decade, 10.0 ** -(decade + 1), per_decade))
        found.append(_path(rows, target, alphas[-1], start=start))
        start = found[-1][:, -1]
        if np.count_nonzero(start) > 1.5 * n_support:
            break
    return np.concatenate(alphas), np.concatenate(found, axis=1)


def _path(rows: Array, target: Array, alphas: Array, *, start: Array | None) -> Array:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import lasso_path

    # Far down the path of heavy-tailed data the iterations run out, as they do with
    # scikit-learn's default limit; norms and counts change by about one per cent.
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        _, coefs, _ = lasso_path(
            rows, target, alphas=alphas, precompute=True, tol=1e-6, coef_init=start
        )
    return np.asarray(coefs, dtype=np.float64)


def _longest_run(hits: Mask) -> slice:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], hits, [False]]).astype(int)))
    starts, ends = edges[::2], edges[1::2]
    longest = int(np.argmax(ends - starts))
    return slice(int(starts[longest]), int(ends[longest]))
