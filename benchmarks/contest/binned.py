"""BinAgg: least squares on noisy sums of private bins, corrected for their noise, with intervals.

S. Lin, A. Slavković and D. R. Bhoomireddy (2026). Differentially private linear regression and
synthetic data generation with statistical guarantees. AISTATS; arXiv:2510.16974. Bins are those of
PrivTree: J. Zhang, X. Xiao and X. Xie (2016), SIGMOD.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpscreen.privacy import ZCDP, Accountant, Budget, Noise
from dpscreen.privacy.accountant import release_histograms, release_sums

Array = Any
SHARES = Fraction(1, 10), Fraction(3, 10), Fraction(3, 10), Fraction(3, 10)
"""Shares of ρ for bins, counts, Σx and Σy: the authors' 1 : 3 : 3 : 3."""

LEAST_COUNT = 2.0
DEEPEST = 40
FINE = 2**20
NORMAL = 1.959964


@dataclass(frozen=True)
class PrivTree:
    """Boxes of rows: halved along the widest feature where enough rows seem to be.

    Requires    one row is in one box at every depth
    Guarantees  ε-DP for Laplace noise of scale λ = 3/ε and decay λ·ln 2 (Zhang et al., Theorem 3.1,
                fan-out 2), so ε²/2-zCDP; the noise is in floats
    """

    epsilon: float
    low: tuple[float, ...]
    high: tuple[float, ...]
    sensitivity: float = 1.0
    name = "PrivTree"

    @property
    def scale(self) -> float:
        return 3 / self.epsilon

    @property
    def cost(self) -> ZCDP:
        return ZCDP(Fraction(self.epsilon) ** 2 / 2)

    def __call__(self, X: Array, noise: Noise) -> list[tuple[Array, Array]]:
        """Release the boxes, as their lower and upper corners."""
        decay = self.scale * math.log(2)
        leaves = []
        stack = [(np.array(self.low), np.array(self.high), np.arange(len(X)), 0)]
        while stack:
            low, high, inside, depth = stack.pop()
            score = max(len(inside) - depth * decay, -decay)
            if depth < DEEPEST and score + self.scale * float(noise.laplace(1)[0]) > 0:
                left, right = _halves(low, high)
                j = int(np.argmax(high - low))
                below = X[inside, j] < right[0][j]
                stack.append((*left, inside[below], depth + 1))
                stack.append((*right, inside[~below], depth + 1))
            else:
                leaves.append((low, high))
        while len(leaves) <= X.shape[1]:  # as many bins as weights; boxes alone say which
            leaves.sort(key=lambda box: float(np.prod(box[1] - box[0])))
            leaves.extend(_halves(*leaves.pop()))
        return leaves


def _halves(low: Array, high: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Return both halves of a box along its widest feature."""
    j, left, right = int(np.argmax(high - low)), high.copy(), low.copy()
    left[j] = right[j] = (low[j] + high[j]) / 2
    return (low, left), (right, high)


@dataclass(frozen=True, eq=False)
class Line:
    """Coefficients in the user's units, the constant last, and their standard errors."""

    coef: Array
    errors: Array
    n_bins: int

    def predict(self, X: Array) -> Array:
        return X @ self.coef[:-1] + self.coef[-1]

    def intervals(self) -> Array:
        """Return 95 % intervals of the features' coefficients."""
        wide = NORMAL * self.errors[:-1]
        return np.stack((self.coef[:-1] - wide, self.coef[:-1] + wide), axis=-1)


def fit_binagg(
    X: Array,
    y: Array,
    bounds: Array,
    target_bounds: tuple[float, float],
    budget: Budget,
    noise: Noise,
    *,
    constant: bool = True,
    shares: tuple[Fraction, ...] = SHARES,
) -> Line:
    """Fit by BinAgg; everything that is used of the rows is released by one accountant."""
    half = np.maximum(np.ptp(bounds, axis=1) / 2, 1e-300)
    # Without a constant the model is on the features as they are.
    centre = bounds.mean(axis=1) if constant else np.zeros(len(bounds))
    middle = sum(target_bounds) / 2 if constant else 0.0
    reach = max(target_bounds[1] - middle, middle - target_bounds[0])
    corners = (bounds - centre[:, None]) / half[:, None]
    unit_X = np.clip((X - centre) / half, *corners.T)
    unit_y = np.clip((y - middle) / reach, -1, 1)
    beta, covariance, n_bins = _unit_fit(unit_X, unit_y, corners, budget, noise, constant, shares)
    back = np.diag(np.append(reach / half, reach))
    back[-1, :-1] = -reach * centre / half
    coef = back @ beta
    coef[-1] += middle
    errors = np.sqrt(np.maximum(np.diag(back @ covariance @ back.T), 0.0))
    return Line(coef, errors, n_bins)


def _unit_fit(
    X: Array,
    y: Array,
    corners: Array,
    budget: Budget,
    noise: Noise,
    constant: bool,
    shares: tuple[Fraction, ...],
) -> tuple[Array, Array, int]:
    limit = ZCDP.within(budget)
    accountant = Accountant(noise, limit=limit)
    bins, count_share, x_share, y_share = shares
    epsilon = math.sqrt(2 * float((limit * bins).rho)) * (1 - 1e-12)
    tree = PrivTree(epsilon, *map(tuple, corners.T.tolist()))
    boxes = accountant.release(tree, X, purpose="bins")
    d, n_bins = X.shape[1], len(boxes)
    place = _bin_of(X, boxes, corners[:, 1])
    counts = np.bincount(place, minlength=n_bins).astype(np.int64)
    noisy, count_noise = release_histograms(
        accountant, counts, change=1.0, cost=limit * count_share, purpose="counts"
    )
    # The norm bound of a bin is that of the farthest corner of its box.
    longest = np.array([np.linalg.norm(np.maximum(abs(low), abs(high))) for low, high in boxes])
    levels = np.trunc(X / longest[place, None] * FINE).astype(np.int64)
    sums = np.zeros((n_bins, d), dtype=np.int64)
    np.add.at(sums, place, levels)
    found, sum_noise = release_sums(
        accountant, sums.ravel(), units_per_one=FINE, change=1.0, cost=limit * x_share, purpose="Σx"
    )
    totals = np.zeros(n_bins, dtype=np.int64)
    np.add.at(totals, place, np.trunc(y * FINE).astype(np.int64))
    t, _ = release_sums(
        accountant, totals, units_per_one=FINE, change=1.0, cost=limit * y_share, purpose="Σy"
    )
    S = found.reshape(n_bins, d) * longest[:, None]
    spread = np.outer(longest * sum_noise, np.ones(d))
    kept = noisy >= LEAST_COUNT
    noisy = noisy * len(X) / noisy[kept].sum() if kept.any() else noisy
    S, spread = np.column_stack((S, noisy)), np.column_stack((spread, np.full(n_bins, count_noise)))
    beta, covariance = weighted(S[kept], t[kept], spread[kept], noisy[kept], constant=constant)
    return beta, covariance, int(kept.sum())


def _bin_of(X: Array, boxes: list[tuple[Array, Array]], top: Array) -> Array:
    """Return the box of every row; the last half of a feature holds its upper end."""
    place = np.zeros(len(X), dtype=np.int64)
    for k, (low, high) in enumerate(boxes):
        inside = ((low <= X) & ((high > X) | (high == top))).all(axis=1)
        place[inside] = k
    return place


def weighted(
    S: Array, t: Array, spread: Array, counts: Array, *, constant: bool
) -> tuple[Array, Array]:
    """Return weighted least squares of t on S, corrected for the noise of S, and its covariance.

    The last column of S is the counts, that of the constant. `spread` holds the standard deviations
    of the noise. The covariance is the sandwich of the corrected scores.
    """
    p = S.shape[1]
    used = np.arange(p if constant else p - 1)
    S, variances = S[:, used], spread[:, used] ** 2
    beta, covariance = np.zeros(p), np.zeros((p, p))
    if len(S) == 0:
        return beta, np.diag(np.full(p, np.inf))
    w = 1 / counts
    corrected = (S * w[:, None]).T @ S - np.diag(w @ variances)
    solved = np.linalg.solve(corrected, (S * w[:, None]).T @ t)
    scores = (S * (t - S @ solved)[:, None] + variances * solved) * w[:, None]
    few = len(S) / max(len(S) - len(used), 1)
    meat = few * scores.T @ scores
    bread = np.linalg.inv(corrected)
    beta[used] = solved
    covariance[np.ix_(used, used)] = bread @ meat @ bread.T
    return beta, covariance
