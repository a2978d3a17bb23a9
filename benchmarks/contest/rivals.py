"""Rivals on standardised rows, each from its paper, with the exact sums and noise of the package.

They are peers like those of `dpscreen.models.peers`: the marginals, the lattice and the accountant
are those of PrivateLasso, and what is left of the budget is theirs. Guarantees are in README.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from dpscreen._core.arrays import clamp
from dpscreen.families import POISSON, Family
from dpscreen.models.outcome_peers import OutcomePeer
from dpscreen.models.peers import Peer
from dpscreen.privacy import ZCDP, GaussianVector, NoisyMax
from dpscreen.privacy.accountant import release_sums
from dpscreen.rows.lattice import LEVELS, UNITS
from dpscreen.solvers import rules
from dpscreen.solvers.base import Solution, Task
from dpscreen.solvers.engine import norm_clipped
from dpscreen.solvers.peers import StepLength, row_norm

Array = Any


@dataclass(frozen=True, eq=False)
class Rows:
    """Standardised rows of a task: short ones, and exact noisy sums over them."""

    task: Task
    short: Any

    @classmethod
    def of(cls, task: Task) -> Rows:
        columns = task.design.n_features
        return cls(task, norm_clipped(task, np.arange(columns), row_norm(task, columns)))

    @property
    def norm(self) -> float:
        """Return the bound ν of the rows' norm."""
        return float(self.short.row_norm)

    def matrix(self) -> Array:
        """Return the short rows, divided by their bound: private."""
        rows, _ = self.task.design.made_short(self.short)
        return rows.T.astype(np.float64) / (LEVELS * self.norm)

    def gradient(self, weights: Array, clip: float, cost: ZCDP) -> Array:
        """Release Σψ_c(r)x over short rows, in the units of `matrix` times the clip.

        One row moves it by ν in units of the clip (docs/theory/mechanisms.md, Lemmas 13 and 17).
        """
        deviation = self.task.deviation
        most = rules.LARGEST_WEIGHT * deviation
        inside = np.clip(weights * self.short.in_weights() / self.norm, -most, most)
        point = self.task.design.at(inside, scale=deviation)
        noisy, _ = release_sums(
            self.task.spending.accountant,
            point.short_products(clip, self.short),
            units_per_one=UNITS,
            change=self.norm,
            cost=cost,
            purpose="gradient",
        )
        return noisy / self.norm

    def solution(self, weights: Array, n_iter: int) -> Solution:
        """Return weights for whole cells from those for the rows of `matrix`."""
        most = rules.LARGEST_WEIGHT * self.task.deviation
        inside = np.clip(weights * self.short.in_weights() / self.norm, -most, most)
        return Solution(inside, n_iter, None, self.task.deviation)


# --- gradient descent -----------------------------------------------------------------------------


class GradientDescent(Peer):
    """Full-batch DP-SGD on the clipped squared loss; the mean of the second half is released.

    References
    ----------
    R. Bassily, A. Smith and A. Thakurta (2014). Private empirical risk minimization. FOCS.
    """

    _clip: ClassVar[float] = 1.0
    """Where residuals are clipped, in their standard deviations."""

    def _solve(self, task: Task, _rows: Any) -> Solution:
        rows, loss = Rows.of(task), task.design.loss
        n_iter = round(clamp(task.regime.signal / 5, 5, 50))
        cost = task.spending.remaining / n_iter
        clip = min(self._clip * task.residual_scale, loss.bound)
        start = task.start_point(task.deviation / 2**20).weights
        weights, kept = start * rows.norm / rows.short.in_weights(), []
        # The loss's second derivative where all features are at their centres: released.
        slope = float(task.family.variance(task.family.inverse_link(np.array([task.start])))[0])
        curvature = task.regime.n_rows * task.spread**2 / rows.norm**2 * slope
        length = StepLength(task.design.n_features, n_iter)
        for t in range(n_iter):
            way = -clip * rows.gradient(weights, clip, cost) / curvature
            length.follow(way)
            weights = weights + length.at(t) * way
            if t >= n_iter // 2:
                kept.append(weights)
        return rows.solution(np.mean(kept, axis=0), n_iter)


class PoissonDescent(GradientDescent):
    """The same on the Poisson loss, from the released mean."""

    family: ClassVar[Family] = POISSON
    _clip: ClassVar[float] = 4.0


# --- iterative Hessian mixing ---------------------------------------------------------------------

ROUNDS, SKETCH = 3, 6
FAILURE = 0.1
"""Share of δ for a noisy eigenvalue that is too large; it is also ϱ/δ of the paper."""


def sketch_divergence(alpha: Array, gamma: float, size: int) -> Array:
    """Return the Rényi divergence of order α of k rows N(0, 1) and k rows N(0, 1 − 1/γ).

    The larger of both directions; infinite for α ≥ γ (README.md, proof for ihm).
    """
    ratio = 1 - 1 / gamma
    with np.errstate(invalid="ignore", divide="ignore"):
        mixed = np.where(1 - alpha * (1 - ratio) > 0, 1 - alpha * (1 - ratio), np.nan)
        down = 0.5 * np.log(ratio) + np.log(ratio / mixed) / (2 * (alpha - 1))
        up = -0.5 * np.log(ratio) - np.log((1 - alpha) * ratio + alpha) / (2 * (alpha - 1))
    return size * np.maximum(np.where(np.isnan(down), np.inf, down), up)


def converted_delta(divergence: Array, alpha: Array, epsilon: float) -> float:
    """Return the least δ at ε over orders, by the bound that `ZCDP.delta` uses."""
    exponent = (alpha - 1) * (divergence - epsilon + np.log1p(-1 / alpha)) - np.log(alpha)
    return float(np.exp(min(0.0, np.min(exponent))))


def least_gamma(rho: float, epsilon: float, delta: float, size: int) -> float:
    """Return the least eigenvalue floor γ at which all of it is (ε, δ)-DP."""
    alpha = 1 + np.logspace(-2, 4, 1500)

    def enough(gamma: float) -> bool:
        eigenvalue = size / (2 * gamma**2)
        whole = (rho + eigenvalue) * alpha + ROUNDS * sketch_divergence(alpha, gamma, size)
        return converted_delta(whole, alpha, epsilon) <= delta

    low, high = 1.0 + 1e-6, 1e9
    for _ in range(80):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


class HessianMixing(Peer):
    """Newton steps with noisy gradients and Hessians from noisy Gaussian sketches: IHM.

    References
    ----------
    O. Lev, M. Shenfeld, V. Srinivasan, K. Ligett and A. C. Wilson (2026). Near-optimal private
    linear regression via iterative Hessian mixing. arXiv:2601.07545.
    """

    def _solve(self, task: Task, _rows: Any) -> Solution:
        rows, accountant = Rows.of(task), task.spending.accountant
        X, p = rows.matrix(), task.design.n_features
        failure = FAILURE * self.delta
        size = math.ceil(SKETCH * max(p, math.log(4 * ROUNDS / failure)))
        whole = task.spending.remaining
        cost = whole / (2 * ROUNDS)
        rho = float(accountant.spent + cost * ROUNDS)
        gamma = least_gamma(rho, self.epsilon, self.delta - failure, size)
        noise = GaussianVector(sensitivity=1.0, scale=gamma / math.sqrt(size))
        least = self._eigenvalue(X, accountant, noise, failure, whole / 2)
        added = math.sqrt(max(0.0, gamma - least))
        weights, clip = np.zeros(p), 2 * task.deviation
        for _ in range(ROUNDS):
            mixing = accountant.noise.normal(size * len(X)).reshape(size, len(X))
            sketch = mixing @ X + added * accountant.noise.normal(size * p).reshape(size, p)
            gradient = clip * rows.gradient(weights, clip, cost)
            weights = weights - np.linalg.solve(sketch.T @ sketch / size, gradient)
        return rows.solution(weights, ROUNDS)

    def _eigenvalue(
        self, X: Array, accountant: Any, noise: GaussianVector, failure: float, most: ZCDP
    ) -> float:
        """Return a lower bound of the least eigenvalue that holds but for a probability."""
        from scipy.stats import norm

        if noise.cost > most:  # cannot be: γ was chosen so that all of it fits
            return 0.0
        least = np.linalg.eigvalsh(X.T @ X)[:1]
        noisy = accountant.release(noise, least, purpose="least eigenvalue")
        return max(0.0, float(noisy[0]) - noise.scale * float(norm.isf(failure)))


# --- objective perturbation -----------------------------------------------------------------------


class ObjectivePerturbation(OutcomePeer):
    """Logistic regression with a random linear term and a ridge in the objective.

    References
    ----------
    D. Kifer, A. Smith and A. Thakurta (2012). Private convex empirical risk minimization and
    high-dimensional regression. COLT. (Theorem for (ε, δ), with a Gaussian term.)
    """

    def _solve(self, task: Task, _rows: Any) -> Solution:
        rows, accountant = Rows.of(task), task.spending.accountant
        X, y = rows.matrix() * rows.norm, task.design.target
        epsilon = self.epsilon - accountant.spent.epsilon(self.delta / 2)
        if epsilon <= 0:
            raise ValueError("nothing is left for the objective.")
        variance = rows.norm**2 * (8 * math.log(4 / self.delta) + 4 * epsilon) / epsilon**2
        linear = math.sqrt(variance) * accountant.noise.normal(X.shape[1])
        weights = minimiser(X, y, linear, ridge=rows.norm**2 / (2 * epsilon))
        return rows.solution(weights * rows.norm, 1)


def minimiser(X: Array, y: Array, linear: Array, *, ridge: float) -> Array:
    """Return the minimum of the logistic loss plus bᵀθ + Δ‖θ‖²/2, by damped Newton steps."""
    weights = np.zeros(X.shape[1])

    def value(at: Array) -> float:
        line = X @ at
        return float(np.logaddexp(0, line).sum() - y @ line + linear @ at + ridge * at @ at / 2)

    for _ in range(100):
        p = 1 / (1 + np.exp(-np.clip(X @ weights, -500, 500)))
        gradient = X.T @ (p - y) + linear + ridge * weights
        if np.linalg.norm(gradient) < 1e-9 * len(X):
            break
        hessian = (X * (p * (1 - p))[:, None]).T @ X + ridge * np.eye(X.shape[1])
        way, here, length = np.linalg.solve(hessian, gradient), value(weights), 1.0
        while value(weights - length * way) > here and length > 1e-8:
            length /= 2
        weights = weights - length * way
    return weights


# --- best subset ----------------------------------------------------------------------------------

REACH, CELLS, BALL = 2.5, 2.5, 1.0
"""Where target and cells are clipped, and the ball, all in standard deviations."""


@dataclass(kw_only=True, repr=False, eq=False)
class BestSubset(Peer):
    """The exponential mechanism over all subsets of a size, scored by least squares over a ball.

    References
    ----------
    S. Roy and A. Tewari (2023). On the computational complexity of private high-dimensional model
    selection. arXiv:2310.07852. (Here without Markov chains: all subsets are scored.)
    """

    size: int = 4

    def _solve(self, task: Task, _rows: Any) -> Solution:
        d = task.n_features
        columns = task.design.dense_columns(np.arange(d)).T / (LEVELS * task.spread)
        columns = np.clip(columns, -CELLS, CELLS)
        y = np.clip(task.design.target / task.deviation, -REACH, REACH)
        subsets = np.array(list(combinations(range(d), self.size)))
        gram, moment = columns.T @ columns, columns.T @ y
        errors = float(y @ y) + subset_errors(gram, moment, subsets, BALL)
        most = (REACH + BALL * CELLS * math.sqrt(self.size)) ** 2
        unit = most / 2**20
        scores = -np.floor(errors / unit).astype(np.int64)
        mechanism = NoisyMax.of_cost(
            task.spending.remaining,
            sensitivity=most + 2 * unit,
            score_range=most + 2 * unit,
            unit=unit,
        )
        best = task.spending.accountant.release(mechanism, scores, purpose="best subset")
        weights = np.zeros(task.design.n_features)
        weights[subsets[best]] = task.deviation / 100
        return Solution(weights, 1, None, task.deviation)


def subset_errors(gram: Array, moment: Array, subsets: Array, radius: float) -> Array:
    """Return min ‖y − Xβ‖² − ‖y‖² over ‖β‖ ≤ radius, for the features of every subset."""
    grams = gram[subsets[:, :, None], subsets[:, None, :]]
    values, vectors = np.linalg.eigh(grams)
    values = np.maximum(values, 0.0)
    turned = np.einsum("kij,ki->kj", vectors, moment[subsets])

    def beta(ridge: Array) -> Array:
        return turned / (values + ridge[:, None] + 1e-12)

    low, high = np.zeros(len(subsets)), np.full(len(subsets), float(np.abs(moment).sum()) / radius)
    for _ in range(60):
        middle = (low + high) / 2
        long = np.linalg.norm(beta(middle), axis=1) > radius
        low, high = np.where(long, middle, low), np.where(long, high, middle)
    found = beta(np.where(np.linalg.norm(beta(np.zeros(len(subsets))), axis=1) > radius, high, 0.0))
    return np.asarray((values * found**2 - 2 * turned * found).sum(axis=1))
