"""The paper's yardsticks, as pure functions of coefficient vectors.

A coefficient vector enters a support metric only through its nonzero pattern, so every such
argument may be a vector of coefficients or a boolean mask. "Truth" is the generating support on
synthetic data and the support of the nonprivate LASSO on real data (paper, Sections 5.1, 5.2).

A rate with nothing to count (0/0) is nan: undefined, and never averaged in as a number by mistake.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpscreen._core.arrays import Mask

LEVEL = 0.05

# --- supports -------------------------------------------------------------------------------


def true_positive_rate(estimate: npt.ArrayLike, truth: npt.ArrayLike) -> float:
    """Share of the true nonzeros that are nonzero in the estimate; nan without true nonzeros."""
    found, true = _supports(estimate, truth)
    return _share(found[true])


def false_positive_rate(estimate: npt.ArrayLike, truth: npt.ArrayLike) -> float:
    """Share of the true zeros that are nonzero in the estimate; nan without true zeros."""
    found, true = _supports(estimate, truth)
    return _share(found[~true])


def f1(estimate: npt.ArrayLike, truth: npt.ArrayLike) -> float:
    """Agreement of two supports: C / (C + (W + M)/2).

    C counts correct nonzeros, W wrong nonzeros, M missed nonzeros (paper, Section 5.1). Two equal
    supports score 1, and so do two empty ones, where the formula reads 0/0.
    """
    found, true = _supports(estimate, truth)
    correct, differing = np.count_nonzero(found & true), np.count_nonzero(found ^ true)
    return correct / (correct + differing / 2) if correct or differing else 1.0


def density(coef: npt.ArrayLike) -> float:
    """Fraction of NONZERO coefficients: what the paper's tables call "sparsity".

    nan for a vector without entries.
    """
    return _share(_supports(coef)[0])


def _supports(*vectors: npt.ArrayLike) -> list[Mask]:
    values = [np.asarray(vector) for vector in vectors]
    if any(one.ndim != 1 or one.shape != values[0].shape for one in values):
        raise ValueError("coefficient vectors have one axis and the same length")
    if not all(np.isfinite(one).all() for one in values):
        raise ValueError("a coefficient is not finite")
    return [np.asarray(one != 0) for one in values]


def _share(mask: Mask) -> float:
    return np.count_nonzero(mask) / mask.size if mask.size else math.nan


# --- how much of the unchosen features the chosen ones explain --------------------------------


class Gram:
    """All second moments of the features: what a regression among them needs to know of X.

    The centred Gram matrix is kept as a `factor` R with RᵀR = (X - 1mᵀ)ᵀ(X - 1mᵀ), because forming
    the product would lose half the digits of nearly collinear features. The plain Gram matrix is
    then SᵀS with the `plain_factor` S = R above the row √n·mᵀ. X is reduced once, in O(n·d²);
    regressions among its columns then cost O(d³).
    """

    def __init__(self, X: npt.ArrayLike) -> None:
        design = np.asarray(X, dtype=np.float64)
        self.n_rows = len(design)
        # The rounded mean of a constant column may differ from the constant: take it exactly,
        # so that "constant" reads as a zero column of the factor.
        constant = np.ptp(design, axis=0) == 0
        means = np.where(constant, design[0], design.mean(axis=0))
        # numpy's type stubs do not know that mode "r" returns R alone, hence asarray.
        self.factor = np.asarray(np.linalg.qr(design - means, mode="r"))
        self.plain_factor = np.vstack([self.factor, math.sqrt(self.n_rows) * means])


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
    wanted = moments[:, outputs]
    columns = moments[:, inputs]
    norms = np.linalg.norm(columns, axis=0)
    unit = columns / np.where(norms > 0, norms, 1.0)  # whatever units each is measured in
    smallest = max(gram.n_rows, unit.shape[1]) * np.finfo(np.float64).eps
    rss = np.sum((wanted - unit @ np.linalg.lstsq(unit, wanted, rcond=smallest)[0]) ** 2, axis=0)
    tss = np.sum(gram.factor[:, outputs] ** 2, axis=0)
    fitted = rss <= 1e-20 * np.sum(wanted**2, axis=0)
    varying = tss > 0
    return float(np.mean(np.where(varying, 1 - rss / np.where(varying, tss, 1.0), fitted)))


# --- the sign test --------------------------------------------------------------------------


class SignTest(NamedTuple):
    """Paired comparison of two methods by the signs of their differences; ties are dropped.

    The paper names a nonparametric sign test without side or level.
    """

    wins: int
    losses: int

    @property
    def p_two_sided(self) -> float:
        """Exact two-sided p-value of "a and b differ"."""
        from scipy.stats import binomtest  # slow to import

        pairs = self.wins + self.losses
        return float(binomtest(self.wins, pairs).pvalue) if pairs else 1.0

    @property
    def better(self) -> bool:
        """Whether the first method is significantly better (two-sided, 0.05)."""
        return self.wins > self.losses and self.p_two_sided < LEVEL


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
