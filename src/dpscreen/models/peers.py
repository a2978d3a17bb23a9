"""Private regressions of other authors, as baselines that PrivateLasso is compared with.

They share its bounds, its marginals, its exact sums and noise, and its accountant, so that only the
method differs. Each gives the stated (epsilon, delta) for adding or removing one row, and has one
public rule for every setting: docs/peers.md has rules and references, docs/theory/peers.md proofs.
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

    Σxxᵀ and Σxy get Gaussian noise, and (Ĝ + λI)w = b̂ is solved (Wang 2018). All features get a
    weight.
    """

    _method = staticmethod(solvers.solve_adassp)


class BoostedAdaSSP(Peer):
    """Least squares fitted to clipped residuals in rounds, with one noisy matrix: Boosted AdaSSP.

    Σxxᵀ gets Gaussian noise once. Every round adds the ridge solution for Σψ_c(r)x, which gets
    noise of its own; r are the residuals of all rounds before (Tang et al. 2023). What the clip,
    which limits the noise, holds back in one round comes in the next.
    """

    _method = staticmethod(solvers.solve_boosted)


class PrivateSIS(Peer):
    """Sure independence screening by noisy correlations, then least squares: DP-SIS and a refit.

    The features with the largest |Σψ_c(y)x_j| are taken one after the other, each by a noisy
    maximum (Fan and Lv 2008, Swope et al. 2024). On them alone the weights are those of `AdaSSP`.
    """

    _method = staticmethod(solvers.solve_sis)


class NoisyIHT(Peer):
    """Noisy gradient steps of which the largest weights are kept: iterative hard thresholding.

    Each step moves w by −ηΣψ_c(r)x/(nσ_x²) and keeps s weights. They are found by peeling, one
    noisy maximum after the other, and then released with Gaussian noise (Cai, Wang and Zhang 2021);
    or, where rows are so short that this is less noisy, the whole gradient gets the noise (Wang
    and Gu 2019). η fades, and is halved whenever the released gradient points back.
    """

    _method = staticmethod(solvers.solve_iht)


class PrivateGCD(Peer):
    """Greedy coordinate descent with a noisy choice and a noisy step: DP-GCD.

    Each step takes the feature with the largest |Σψ_c(r)x_j| by a noisy maximum, releases that sum
    with Gaussian noise, and moves the weight by −Σ/(nσ_x²) (Mangold et al. 2023). Where a feature's
    gradient comes back with the other sign and no smaller, its later steps are halved.
    """

    _method = staticmethod(solvers.solve_gcd)
