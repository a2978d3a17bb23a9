"""Private regressions of other authors, as baselines that PrivateLasso is compared with.

They share its bounds, its marginals, its exact sums and noise, and its accountant, so that only the
method differs. Each gives the stated (epsilon, delta) for adding or removing one row, and has one
public rule for every setting (docs/peers.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dpscreen.models.base import ScalingModel
from dpscreen.rows.source import RowSource
from dpscreen.solvers import peers as solvers
from dpscreen.solvers.base import Solution, Task

__all__ = ["AdaSSP", "BoostedAdaSSP", "NoisyIHT", "PrivateGCD", "PrivateSIS"]


@dataclass(kw_only=True, repr=False, eq=False)
class Peer(ScalingModel):
    """What the peers share: their parameters. Each has a method of its own.

    Parameters
    ----------
    epsilon, delta, feature_bounds, target_bounds, categories, row_norm, standardize, \
fit_intercept, n_rows, random_state
        As in `PrivateLasso`.

    Attributes
    ----------
    coef_, intercept_, feature_bounds_, target_bounds_, n_iter_, n_rows_, fallback_, \
bounds_notes_, privacy_, n_features_in_, feature_names_in_, feature_names_out_, columns_
        As in `PrivateLasso`.
    scale_ : float
        The last released standard deviation of the residuals, or of the target.
    """

    _method: ClassVar[staticmethod[[Any], Solution]]

    row_norm: float | None = None
    standardize: bool | str = "auto"

    def _solve(self, task: Task, _rows: RowSource) -> Solution:
        return self._method(task)


class AdaSSP(Peer):
    """Least squares from noisy second moments, with a ridge that adapts to the noise: AdaSSP.

    Σxxᵀ and Σxy get Gaussian noise, and (Ĝ + λI)w = b̂ is solved. All features get a weight.

    One row of norm at most ν moves the triangle of Σxxᵀ by √((ν⁴ + min(ν², ν⁴))/2) and Σψx by ν, in
    units of the clip (docs/theory/mechanisms.md, Lemma 17). Wang releases the least eigenvalue of
    the exact matrix; that of the noisy one is free and needs no float eigenvalue of private rows.

    References
    ----------
    Y.-X. Wang (2018). Revisiting differentially private linear regression: optimal and adaptive
    prediction and estimation in unbounded domain. UAI.
    """

    _method = staticmethod(solvers.solve_adassp)


class BoostedAdaSSP(Peer):
    """Least squares fitted to clipped residuals in rounds, with one noisy matrix: Boosted AdaSSP.

    Σxxᵀ gets Gaussian noise once. Every round adds the ridge solution for Σψ_c(r)x, which gets
    noise of its own; r are the residuals of all rounds before. The clip, which limits the noise,
    then costs no bias: what it holds back in one round comes in the next.

    Sensitivities are those of `AdaSSP`; each round's Σψx moves by ν, in units of the clip, with the
    weights of the rounds before released (docs/theory/mechanisms.md, Lemma 17).

    References
    ----------
    S. Tang, S. Aydore, M. Kearns, S. Rho, A. Roth, Y. Wang, Y.-X. Wang and Z. S. Wu (2023).
    Improved differentially private regression via gradient boosting. arXiv:2303.03451.
    """

    _method = staticmethod(solvers.solve_boosted)


class PrivateSIS(Peer):
    """Sure independence screening by noisy correlations, then least squares: DP-SIS and a refit.

    The features with the largest |Σψ_c(y)x_j| are taken one after the other, each by a noisy
    maximum. On them alone the weights are found as in `AdaSSP`.

    One row moves each |Σψ_c(y)x| by at most c (docs/peers.md, Lemma P1). Where all features are
    kept nothing is selected, and this is `AdaSSP`.

    References
    ----------
    J. Fan and J. Lv (2008). Sure independence screening for ultrahigh dimensional feature space.
    Journal of the Royal Statistical Society B 70, 849-911.

    R. Swope, A. Khanna, P. Doldo, S. Roy and E. Raff (2024). Feature selection from differentially
    private correlations. arXiv:2408.10862.
    """

    _method = staticmethod(solvers.solve_sis)


class NoisyIHT(Peer):
    """Noisy gradient steps of which the largest weights are kept: iterative hard thresholding.

    Each step moves w by −ηΣψ_c(r)x/(nσ_x²) and keeps s weights. They are found by peeling, one
    noisy maximum after the other, and then released with Gaussian noise; or, where rows are so
    short that this is less noisy (ν² ≤ 2s), the whole gradient gets the noise.

    One row moves each moved weight's size by at most c, and the gradient over rows of norm at most
    ν by cν, in units of the sum (docs/peers.md, Lemma P1; docs/theory/mechanisms.md, Lemma 17). η
    fades, and is halved whenever the released gradient points back: the fixed 1/2 of the paper
    diverges on collinear features.

    References
    ----------
    T. T. Cai, Y. Wang and L. Zhang (2021). The cost of privacy: optimal rates of convergence for
    parameter estimation with differential privacy. Annals of Statistics 49, 2825-2850.

    L. Wang and Q. Gu (2019). Differentially private iterative gradient hard thresholding for sparse
    learning. IJCAI. (Noise on the whole gradient.)
    """

    _method = staticmethod(solvers.solve_iht)


class PrivateGCD(Peer):
    """Greedy coordinate descent with a noisy choice and a noisy step: DP-GCD.

    Each step takes the feature with the largest |Σψ_c(r)x_j| by a noisy maximum, releases that sum
    with Gaussian noise, and moves the weight by −Σ/(nσ_x²). PrivateLasso's steps have a planned
    length instead, and release the choice alone.

    One row moves each sum, and the size of each, by at most c (docs/peers.md, Lemma P1). Where the
    released gradient of a feature comes back with the other sign and no smaller, its later steps
    are halved, which is free.

    References
    ----------
    P. Mangold, A. Bellet, J. Salmon and M. Tommasi (2023). High-dimensional private empirical risk
    minimization by greedy coordinate descent. AISTATS.
    """

    _method = staticmethod(solvers.solve_gcd)
