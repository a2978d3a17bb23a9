"""The non-private reference: Frank-Wolfe over the L1 ball, with and without screening."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen.models import base, intake
from dpscreen.models import parameters as check
from dpscreen.models.linear import LinearModel
from dpscreen.rows.design import Design, choose_design
from dpscreen.solvers.frank_wolfe import frank_wolfe, steepest_vertex, wolfe_gap, zero_start
from dpscreen.solvers.screening import Elimination, published_scores, safe_scores

_RULES = {"published": published_scores, "safe": safe_scores}


@dataclass(kw_only=True, repr=False, eq=False)
class FrankWolfeLasso(LinearModel):
    """LASSO in its constrained form, min ‖y − Xw − b‖² subject to ‖w‖₁ ≤ radius. NOT private.

    The reference that private methods are measured against. It uses the data as it is given.

    Parameters
    ----------
    radius : float
        The L1 radius.
    n_iter : int, default=1000
        Number of Frank-Wolfe steps.
    screening : {None, "published", "safe"}, default=None
        Screening after every step; what is screened is left out for good. "published" is Eq. 1 of
        the paper as printed, which for radius > 1 can screen features that the optimum needs
        (erratum E3). "safe" is the rule with the radius put right: it never does.
    fit_intercept : bool, default=True
        Whether to fit an intercept, outside the ball, by centring.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (n_features,), float
        The model.
    n_iter_ : int
        Steps taken.
    dual_gap_ : float
        The Wolfe gap of ‖y − Xw − b‖²/(2n): the model's loss is at most this above the optimum.
    screened_ : ndarray of bool of shape (n_features,)
        The features that the rule left out.
    """

    radius: float | None = None
    n_iter: int = 1000
    screening: str | None = None
    fit_intercept: bool = True

    def fit(self, X: Any, y: Any) -> FrankWolfeLasso:
        """Fit the model. Nothing about it is private."""
        with base.refit(self):
            radius = check.positive("radius", self.radius)
            n_iter = check.whole("n_iter", self.n_iter)
            check.choice("screening", self.screening, (None, *_RULES))
            centre = check.flag("fit_intercept", self.fit_intercept)
            X, y = intake.rows_and_target(self, X, y)
            means = (X.mean(axis=0), y.mean()) if centre else (np.zeros(X.shape[1]), 0.0)
            design = choose_design(X - means[0], y - means[1], n_iter=n_iter)
            weights, self.screened_ = self._optimise(design, radius, n_iter)
            self._describe(design, weights, means, radius)
        return self

    def _optimise(self, design: Design, radius: float, n_iter: int) -> tuple[Array, Any]:
        told: Any = {"radius": radius, "n_iter": n_iter}
        start = zero_start(design.n_features)
        if self.screening is None:
            weights = frank_wolfe(design, start, **told, choose=steepest_vertex)
            return weights, np.zeros(design.n_features, dtype=bool)
        rule = Elimination(design, _RULES[self.screening], radius=radius)
        weights = frank_wolfe(design, start, **told, choose=rule.choose, screen=rule.screen)
        return weights, ~rule.active

    def _describe(
        self, design: Design, weights: Array, means: tuple[Array, float], radius: float
    ) -> None:
        gradient = design.at(weights).gradient()
        gap = wolfe_gap(float(weights @ gradient), gradient, radius=radius)
        self.dual_gap_ = gap / design.n_rows
        self.n_iter_ = self.n_iter
        self.coef_ = weights
        self.intercept_ = float(means[1] - means[0] @ weights)
