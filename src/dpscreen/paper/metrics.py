"""The paper's yardsticks, as pure functions of coefficient vectors.

A coefficient vector enters a support metric only through its nonzero pattern, so every such
argument may be a vector of coefficients or a boolean mask. "Truth" is the generating support on
synthetic data and the support of the nonprivate LASSO on real data (paper, Sections 5.1, 5.2).

A rate with nothing to count (0/0) is nan: undefined, and never averaged in as a number by mistake.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from dpscreen._core.arrays import Array, Mask

LEVEL = 0.05

# --- supports -------------------------------------------------------------------------------


def true_positive_rate(estimate: npt.ArrayLike, truth: npt.ArrayLike) -> float:
    """Share of the true nonzeros that are nonzero in the estimate; nan without true nonzeros."""
    found, true = _supports(estimate, truth)
    return _ratio(_count(found & true), _count(true))


def false_positive_rate(estimate: npt.ArrayLike, truth: npt.ArrayLike) -> float:
    """Share of the true zeros that are nonzero in the estimate; nan without true zeros."""
    found, true = _supports(estimate, truth)
    return _ratio(_count(found & ~true), _count(~true))


def f1(estimate: npt.ArrayLike, truth: npt.ArrayLike) -> float:
    """Agreement of two supports: C / (C + (W + M)/2).

    C counts correct nonzeros, W wrong nonzeros, M missed nonzeros (paper, Section 5.1). Two equal
    supports score 1, and so do two empty ones, where the formula reads 0/0.
    """
    found, true = _supports(estimate, truth)
    correct, differing = _count(found & true), _count(found ^ true)
    if correct == differing == 0:
        return 1.0
    return _ratio(correct, correct + differing / 2)


def density(coef: npt.ArrayLike) -> float:
    """Fraction of NONZERO coefficients: what the paper's tables call "sparsity".

    nan for a vector without entries.
    """
    found = _support(coef)
    return _ratio(_count(found), found.size)


def _supports(estimate: npt.ArrayLike, truth: npt.ArrayLike) -> tuple[Mask, Mask]:
    found, true = _support(estimate), _support(truth)
    if found.shape != true.shape:
        raise ValueError(f"supports of unequal length: {found.size} and {true.size}")
    return found, true


def _support(coef: npt.ArrayLike) -> Mask:
    values = np.asarray(coef)
    if values.ndim != 1:
        raise ValueError(f"a coefficient vector has one axis, not {values.ndim}")
    if not np.all(np.isfinite(values)):
        raise ValueError("a coefficient is not finite")
    return np.asarray(values != 0)


def _count(mask: Mask) -> int:
    return int(np.count_nonzero(mask))


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else math.nan


# --- how much of the unchosen features the chosen ones explain --------------------------------


@dataclass(frozen=True, eq=False)
class Gram:
    """All second moments of the features: what a regression among them needs to know of X.

    The centred Gram matrix is kept as a factor R with RᵀR = (X - 1mᵀ)ᵀ(X - 1mᵀ), because forming
    the product would lose half the digits of nearly collinear features. The plain Gram matrix is
    then SᵀS with S = R above the row √n·mᵀ.
    """

    n_rows: int
    means: Array
    factor: Array

    @classmethod
    def of(cls, X: npt.ArrayLike) -> Self:
        """Reduce X once, in O(n·d²); later regressions among its columns cost O(d³)."""
        design = np.asarray(X, dtype=np.float64)
        # The rounded mean of a constant column may differ from the constant: take it exactly,
        # so that "constant" reads as a zero column of the factor.
        constant = np.ptp(design, axis=0) == 0
        means = np.where(constant, design[0], design.mean(axis=0))
        # numpy's type stubs do not know that mode "r" returns R alone, hence asarray.
        factor = np.asarray(np.linalg.qr(design - means, mode="r"))
        return cls(design.shape[0], means, factor)

    @property
    def plain_factor(self) -> Array:
        """S with SᵀS = XᵀX."""
        return np.vstack([self.factor, math.sqrt(self.n_rows) * self.means])


def explained_r2(
    gram: Gram, chosen: npt.ArrayLike, targets: npt.ArrayLike, *, intercept: bool
) -> float:
    """Mean over the target features of the R² of their regression on the chosen features.

    The paper's text (Section 5.2.2) takes as targets the features of the LASSO's support that were
    missed. What fits its printed values are ALL features not chosen: with an intercept in Table 2,
    without one in Table 4.

    Least squares without penalty; R² = 1 - RSS/TSS with TSS about the mean, intercept or not, and
    every target weighs the same (scikit-learn's `LinearRegression().score`, but features in small
    units count in full: with its default `tol` scikit-learn may drop them). By convention
    * no targets: nan;
    * nothing chosen: the fit is the mean (R² = 0), or zero without an intercept (R² ≤ 0);
    * a constant target (TSS = 0): 1 if it is fitted, 0 if not, as in scikit-learn, but decided
      up to rounding: with an intercept it is always fitted.
    """
    inputs, outputs = _supports(chosen, targets)
    if not outputs.any():
        return math.nan
    moments = gram.factor if intercept else gram.plain_factor
    basis = _orthonormal_basis(moments[:, inputs], n_rows=gram.n_rows)
    wanted = moments[:, outputs]
    rss = np.sum((wanted - basis @ (basis.T @ wanted)) ** 2, axis=0)
    tss = np.sum(gram.factor[:, outputs] ** 2, axis=0)
    fitted = rss <= 1e-20 * np.sum(wanted**2, axis=0)
    varying = tss > 0
    return float(np.mean(np.where(varying, 1 - rss / np.where(varying, tss, 1.0), fitted)))


def _orthonormal_basis(columns: Array, *, n_rows: int) -> Array:
    """Orthonormal columns that span the given ones, whatever units each is measured in."""
    norms = np.linalg.norm(columns, axis=0)
    unit = columns[:, norms > 0] / norms[norms > 0]
    if not unit.size:
        return np.empty((columns.shape[0], 0))
    left, singular, _ = np.linalg.svd(unit, full_matrices=False)
    cutoff = singular[0] * max(n_rows, unit.shape[1]) * np.finfo(np.float64).eps
    return left[:, singular > cutoff]


# --- the sign test --------------------------------------------------------------------------


class SignTest(NamedTuple):
    """Paired comparison of two methods by the signs of their differences; ties are dropped."""

    wins: int
    losses: int

    @property
    def p_two_sided(self) -> float:
        """Exact two-sided p-value of "a and b differ": twice the smaller tail, at most 1."""
        pairs = self.wins + self.losses
        tail = range(max(self.wins, self.losses), pairs + 1)
        return min(1.0, 2 * sum(math.comb(pairs, k) for k in tail) / (1 << pairs))

    @property
    def better(self) -> bool:
        """Whether the first method is significantly better (two-sided, 0.05)."""
        return self.wins > self.losses and self.p_two_sided < LEVEL


def sign_test(a: npt.ArrayLike, b: npt.ArrayLike) -> SignTest:
    """Compare paired trials; the paper names a nonparametric sign test without side or level."""
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    return SignTest(_count(first > second), _count(first < second))


# --- Theorem 2: nonzeros when updates and screenings fall uniformly -----------------------------


def expected_nonzeros(n_features: int, n_iter: int) -> float:
    """E[nonzeros] after `n_iter` rounds of "make one nonzero, then zero one", from a zero start.

    Both coordinates are uniform. A coordinate's probability p of being nonzero follows
    p ← q·(q·p + 1/d) with q = 1 - 1/d, so that E = d·(d-1)/(2d-1)·(1 - q^{2T}).
    """
    if n_features == 1:
        return 0.0
    settled = -math.expm1(2 * n_iter * math.log1p(-1 / n_features))
    return expected_nonzeros_many_iterations(n_features) * settled


def expected_nonzeros_many_iterations(n_features: int) -> float:
    """Limit of `expected_nonzeros` as T → ∞: d(d-1)/(2d-1), about d/2."""
    return n_features * (n_features - 1) / (2 * n_features - 1)


def expected_nonzeros_published(n_features: int, n_iter: int) -> float:
    """The paper's finite-T expression (Appendix D), kept as printed to be compared.

    It has (1/d)^{T-i} where "not updated after round i" has probability ((d-1)/d)^{T-i}.
    """
    d, q = n_features, (n_features - 1) / n_features
    never_screened = d * q**n_iter * (1 - q**n_iter)
    rounds_left = np.arange(n_iter, dtype=np.float64)
    screened = np.sum(q**rounds_left * (1 - (1 / d) ** rounds_left))
    return float(never_screened + screened)


def expected_nonzeros_many_iterations_published(n_features: int) -> float:
    """Printed limit as T → ∞: (d-1)²d/((d-1)d + 1), about d - 1; it follows from the misprint."""
    d = n_features
    return (d - 1) ** 2 * d / ((d - 1) * d + 1)
