"""Other private models of outcomes, as baselines that PrivateLogistic is compared with.

They share its bounds, its placing, its exact sums and noise, and its accountant, so that only the
method differs. Each has one public rule for every setting (docs/yes-no.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dpscreen.models.private_logistic import OutcomeEstimator
from dpscreen.rows.source import RowSource
from dpscreen.solvers import peers as solvers
from dpscreen.solvers.base import Solution, Task
from dpscreen.solvers.logistic import OutcomeTask

__all__ = ["ClassMeans", "NoisyDescent", "OutcomeFrankWolfe"]


@dataclass(kw_only=True, repr=False, eq=False)
class OutcomePeer(OutcomeEstimator):
    """What the peers share: their parameters. Each has a method of its own.

    Parameters and attributes are those of `PrivateLogistic`, as far as they are listed here.
    """

    _method: ClassVar[staticmethod[[OutcomeTask], Solution]]

    epsilon: float | None = None
    delta: float | None = None
    feature_bounds: Any = None
    classes: Any = (0, 1)
    categories: Any = None
    row_norm: float | None = None
    standardize: bool | str = "auto"
    fit_intercept: bool = True
    n_rows: int | None = None
    random_state: Any = None

    def _solve(self, task: Task, _rows: RowSource) -> Solution:
        assert isinstance(task, OutcomeTask), "as it was placed"
        return self._method(task)


class ClassMeans(OutcomePeer):
    """Weights from the means of the two classes: what one noisy vector can tell.

    Σ(p̂ − y)x gets Gaussian noise once; it is −np(1 − p) times the difference of the class means,
    and the weights are that difference over the variance, as if features were independent.

    Guarantees  the stated (epsilon, delta) for adding or removing one row: one row of norm at most
                ν moves the sum by ν (docs/yes-no.md, Lemma 32)

    Rules       nine tenths of what is left for the means, the rest for three moves of the
                intercept; ν as in `AdaSSP`
    """

    _method = staticmethod(solvers.solve_class_means)


class NoisyDescent(OutcomePeer):
    """Gradient descent on the logistic loss, every gradient with Gaussian noise: DP-GD.

    Guarantees  the stated (epsilon, delta) for adding or removing one row: one row of norm at most
                ν moves the gradient by ν (docs/yes-no.md, Lemma 32)

    Rules       M/5 steps between 5 and 50, alike in cost; the first step 1.5/√d of the inverse
                curvature n/4·σ_x², which fades to half and is halved whenever the released gradient
                points back; ν as in `AdaSSP`

    References
    ----------
    R. Bassily, A. Smith and A. Thakurta (2014). Private empirical risk minimization: efficient
    algorithms and tight error bounds. FOCS.
    """

    _method = staticmethod(solvers.solve_gradient_descent)


class OutcomeFrankWolfe(OutcomePeer):
    """Frank-Wolfe on the logistic loss in an L1 ball, every vertex by a noisy maximum: DP-FW.

    Guarantees  the stated (epsilon, delta) for adding or removing one row: one row moves each sum
                by at most the clip (docs/yes-no.md, Lemma 33)

    Rules       as many steps as PrivateLasso's path has; a radius of 2 log-odds for one deviation
                of a feature; residuals clipped at ½; the constant is one more candidate

    References
    ----------
    K. Talwar, A. Thakurta and L. Zhang (2015). Nearly optimal private LASSO. NeurIPS.

    E. Raff, A. Khanna and F. Lu (2023). Scaling up differentially private LASSO regularized
    logistic regression via faster Frank-Wolfe iterations. NeurIPS.
    """

    _method = staticmethod(solvers.solve_outcome_frank_wolfe)
