"""Private regressions of other authors, as baselines that PrivateLasso is compared with.

They share its bounds, its paid estimates of scale, its exact sums and noise, and its accountant, so
that only the method differs. Each has one public rule for every setting (docs/peers.md).
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
    epsilon, delta : float
        The budget of the fit, all of which is spent. Choose delta far below 1/n.
    feature_bounds : pair, list of pairs, or mapping from column name to pair
        Public bounds (low, high), the same for all features or one pair each; they may be wide.
    target_bounds : pair
        Public bounds of the target; they too may be wide.
    categories : mapping from column name to list of levels, default=None
        The levels that may occur in columns of a data frame, the reference first, as in
        `PrivateLasso`.
    row_norm : float, default=None
        Public L2 bound of a row whose features are mapped onto [−1, 1]; longer rows are shortened.
        With it the features keep their public bounds.
    standardize : {"auto", True, False}, default="auto"
        Whether features get tighter bounds, found privately, as in `PrivateLasso`.
    fit_intercept : bool, default=True
        Estimate an intercept inside the same budget.
    n_rows : int, default=None
        A public number of rows for rules to use. None: a noisy count, for 1 to 4 % of the budget.
    random_state : None, int, str or numpy generator, default=None
        None draws noise from a cryptographic stream. Anything else is reproducible, not private,
        and warned about.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (n_features,), float
        The released model, in the user's units. It applies to features clipped to
        `feature_bounds_`, as `predict` does.
    feature_bounds_, target_bounds_ : ndarray of shape (n_features, 2), ndarray of shape (2,)
        The bounds that rows were clipped to: public, or released.
    scale_ : float
        The last released deviation of the residuals, or of the target.
    n_iter_ : int
        Steps taken: always as planned.
    n_rows_ : int
        The number of rows that rules used: public, or a noisy count.
    fallback_ : str or None
        None; or, where the fit failed numerically after the budget was charged, how far it had come
        ("start", "centre", "path", "model"): the model is what was released by then.
    bounds_notes_ : tuple of str
        Columns whose rows seem to lie at an end of the declared bounds.
    privacy_ : PrivacyStatement
        What is promised, and what it rests on. Print it.
    n_features_in_, feature_names_in_, feature_names_out_, columns_
        As in `PrivateLasso`.
    """

    _method: ClassVar[staticmethod[[Task], Solution]]

    epsilon: float | None = None
    delta: float | None = None
    feature_bounds: Any = None
    target_bounds: Any = None
    categories: Any = None
    row_norm: float | None = None
    standardize: bool | str = "auto"
    fit_intercept: bool = True
    n_rows: int | None = None
    random_state: Any = None

    def _solve(self, task: Task, _rows: RowSource) -> Solution:
        return self._method(task)


class AdaSSP(Peer):
    """Least squares from noisy second moments, with a ridge that adapts to the noise: AdaSSP.

    Σxxᵀ and Σxy get Gaussian noise, and (Ĝ + λI)w = b̂ is solved. All features get a weight.

    Guarantees  the stated (epsilon, delta) for adding or removing one row: one row of norm at most
                ν moves the triangle of Σxxᵀ by √((ν⁴ + min(ν², ν⁴))/2) and Σψx by ν, in units of
                the clip (docs/private-lasso.md, Lemma 17); the rest is booked as in PrivateLasso

    Rules       half of what is left for each of the two sums; the target clipped at 2 deviations;
                ν² = σ_x²(d + 3√(2d)) with the paid spread σ_x, which few rows exceed, or `row_norm`
                if that is smaller; λ lifts the least eigenvalue of Ĝ to (√d/4 + 1.5) noise
                deviations. Wang releases that eigenvalue of the exact matrix; the noisy one is free
                and needs no float eigenvalue of private rows. The intercept comes last, as in
                PrivateLasso: as one more column it would lengthen every row.

    Parameters and attributes are those of every `Peer`.

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

    Guarantees  the stated (epsilon, delta) for adding or removing one row: as in `AdaSSP`, and
                each round's Σψx moves by ν, in units of the clip (docs/private-lasso.md, Lemma
                17), with the weights of the rounds before released

    Rules       20 rounds with a clip of .7 deviations of the target; a fifth of what is left for
                the matrix, the rest for the rounds, alike; ν² as in `AdaSSP`, and 1 more for a
                column of ones, as the residuals of every round need an intercept; λ lifts the
                least eigenvalue of Ĝ to 2√d noise deviations: more than in `AdaSSP`, as later
                rounds make up for it, too

    Parameters and attributes are those of every `Peer`.

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

    Guarantees  the stated (epsilon, delta) for adding or removing one row: it moves each |Σψ_c(y)x|
                by at most c (docs/peers.md, Lemma P1); the refit as in `AdaSSP`

    Rules       M/10 features, between 1 and 40, M the signal of docs/private-lasso.md: with fewer
                rows or less budget only the strongest stand out, and a smaller refit is less noisy.
                A quarter of what is left selects. Where all features are kept nothing is selected,
                and this is `AdaSSP`.

    Parameters and attributes are those of every `Peer`.

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

    Guarantees  the stated (epsilon, delta) for adding or removing one row: it moves each moved
                weight's size by at most c, and the gradient over rows of norm at most ν by cν, in
                units of the sum (docs/peers.md, Lemma P1; docs/private-lasso.md, Lemma 17)

    Rules       s = M/5 between 1 and 40; M/2 steps between 3 and 100; η = 1.5/√s, which fades to
                half, and is halved whenever the released gradient points back: the fixed 1/2 of
                the paper diverges on collinear features, and what is safe for them hardly moves on
                others. Clip, residuals' scale and intercept as in PrivateLasso. Half of a peeled
                step selects.

    Parameters and attributes are those of every `Peer`.

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

    Guarantees  the stated (epsilon, delta) for adding or removing one row: it moves each sum, and
                the size of each, by at most c (docs/peers.md, Lemma P1)

    Rules       M/3 steps between 4 and 200; three quarters of a step's budget for the choice, which
                is among d sums, one for the step. All features have the same smoothness nσ_x²,
                with the paid spread; where the released gradient of a feature comes back with the
                other sign and no smaller, its later steps are halved, which is free. Clip,
                residuals' scale and intercept as in PrivateLasso.

    Parameters and attributes are those of every `Peer`.

    References
    ----------
    P. Mangold, A. Bellet, J. Salmon and M. Tommasi (2023). High-dimensional private empirical risk
    minimization by greedy coordinate descent. AISTATS.
    """

    _method = staticmethod(solvers.solve_gcd)
