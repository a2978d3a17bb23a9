"""Other private models of outcomes, as baselines that PrivateLogisticLasso is compared with.

What `peers` says of regressions holds of them, too.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpscreen.models.logistic import OutcomeEstimator
from dpscreen.models.peers import Peer
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
    and the weights are that difference over the variance, as if features were independent. Nine
    tenths of what is left are for the means, the rest for three moves of the intercept.
    """

    _method = staticmethod(solvers.solve_class_means)


class NoisyDescent(OutcomePeer):
    """Gradient descent on the logistic loss, every gradient with Gaussian noise: DP-GD.

    M/5 steps between 5 and 50, alike in cost (Bassily, Smith and Thakurta 2014); the first is
    1.5/√d of the inverse curvature n/4·σ_x², which fades to half and is halved whenever the
    released gradient points back.
    """

    _method = staticmethod(solvers.solve_gradient_descent)


class OutcomeFrankWolfe(OutcomePeer):
    """Frank-Wolfe on the logistic loss in an L1 ball, every vertex by a noisy maximum: DP-FW.

    As many steps as PrivateLasso's path has; a radius of 2 log-odds for one standard deviation of a
    feature; residuals clipped at ½; the constant is one more candidate (Talwar, Thakurta and Zhang
    2015, Raff, Khanna and Lu 2023).
    """

    _method = staticmethod(solvers.solve_outcome_frank_wolfe)
