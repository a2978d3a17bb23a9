"""Other private models of outcomes, as baselines that PrivateLogisticLasso is compared with.

They share its bounds, its marginals, its exact sums and noise, and its accountant, so that only the
method differs. Each gives the stated (epsilon, delta) for adding or removing one row, and has one
public rule for every setting (docs/peers.md).
"""

from __future__ import annotations

from dataclasses import dataclass

from dpscreen.models.peers import Peer
from dpscreen.models.private_logistic_lasso import OutcomeEstimator
from dpscreen.solvers import peers as solvers

__all__ = ["ClassMeans", "NoisyDescent", "OutcomeFrankWolfe"]


@dataclass(kw_only=True, repr=False, eq=False)
class OutcomePeer(OutcomeEstimator, Peer):  # type: ignore[misc]
    """What the peers share: their parameters. Each has a method of its own.

    Parameters and attributes are those of `PrivateLogisticLasso`, as far as they are listed here.
    """


class ClassMeans(OutcomePeer):
    """Weights from the means of the two classes: one noisy vector.

    Σ(p̂ − y)x gets Gaussian noise once; it is −np(1 − p) times the difference of the class means,
    and the weights are that difference over the variance, as if features were independent.

    One row of norm at most ν moves the sum by ν (docs/theory/tables.md, Lemma 32). Nine tenths of
    what is left are for the means, the rest for three moves of the intercept; ν as in `AdaSSP`.
    """

    _method = staticmethod(solvers.solve_class_means)


class NoisyDescent(OutcomePeer):
    """Gradient descent on the logistic loss, every gradient with Gaussian noise: DP-GD.

    One row of norm at most ν moves the gradient by ν (docs/theory/tables.md, Lemma 32); ν as in
    `AdaSSP`. M/5 steps between 5 and 50, alike in cost; the first is 1.5/√d of the inverse
    curvature n/4·σ_x², which fades to half and is halved whenever the released gradient points
    back.

    References
    ----------
    R. Bassily, A. Smith and A. Thakurta (2014). Private empirical risk minimization: efficient
    algorithms and tight error bounds. FOCS.
    """

    _method = staticmethod(solvers.solve_gradient_descent)


class OutcomeFrankWolfe(OutcomePeer):
    """Frank-Wolfe on the logistic loss in an L1 ball, every vertex by a noisy maximum: DP-FW.

    One row moves each sum by at most the clip (docs/theory/selection.md, Lemma 33). As many steps
    as PrivateLasso's path has; a radius of 2 log-odds for one standard deviation of a feature;
    residuals clipped at ½; the constant is one more candidate.

    References
    ----------
    K. Talwar, A. Thakurta and L. Zhang (2015). Nearly optimal private LASSO. NeurIPS.

    E. Raff, A. Khanna and F. Lu (2023). Scaling up differentially private LASSO regularized
    logistic regression via faster Frank-Wolfe iterations. NeurIPS.
    """

    _method = staticmethod(solvers.solve_outcome_frank_wolfe)
