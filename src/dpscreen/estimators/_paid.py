"""Fits that pay for their own bounds and scales: what PrivateLasso and its peers share."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dpscreen._core.arrays import Array
from dpscreen.estimators import _checks as check
from dpscreen.estimators import _private_lasso_bounds as bounds
from dpscreen.estimators import _private_lasso_rules as rules
from dpscreen.estimators._base import PrivateLinearModel
from dpscreen.estimators._private import EXACT
from dpscreen.estimators._private_lasso_purse import Purse
from dpscreen.estimators._private_lasso_task import Choices, Solution, Task
from dpscreen.estimators._rows import RowSource
from dpscreen.estimators._sparse_rows import clipped_product, is_sparse, sparse_alone
from dpscreen.estimators._units import PublicUnits
from dpscreen.privacy import ZCDP, Accountant, Budget, Noise, PrivacyStatement
from dpscreen.privacy.statement import COMPOSITION, DISCLOSED
from dpscreen.privacy.unit import ROW, Unit
from dpscreen.regression.lattice import UNITS, ExactDesign
from dpscreen.regression.moments import whole_sum

Standardize = bool | str


class PaidModel(PrivateLinearModel):
    """A linear model on features clipped to bounds that are public or were released."""

    feature_bounds_: Array
    target_bounds_: Array
    scale_: float
    n_rows_: int

    def predict(self, X: Any) -> Array:
        """Predict the target for each row of X.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Rows to predict for, in the units of the rows that were fitted. They are clipped to
            `feature_bounds_`, as those were.

        Returns
        -------
        ndarray of shape (n_samples,)
            The clipped rows @ coef_ + intercept_.
        """
        check_is_fitted(self)
        if is_sparse(X):
            rows = sparse_alone(self, X)
            return clipped_product(rows, self.feature_bounds_, self.coef_) + self.intercept_
        low, high = self.feature_bounds_.T
        rows = np.clip(check.rows_alone(self, X), low, high)
        return np.asarray(rows @ self.coef_ + self.intercept_, dtype=np.float64)

    def _release(self, solution: Solution, units: PublicUnits) -> None:
        self.coef_, self.intercept_ = units.in_users_units(solution.weights)
        self.feature_bounds_, self.target_bounds_ = units.feature_bounds, units.target_bounds
        self.scale_ = solution.deviation
        self.n_iter_ = solution.n_iter

    def _account(
        self,
        budget: Budget,
        purse: Purse,
        *,
        n_rows: int | None,
        disclosed: tuple[str, ...] = (),
        composition: str = COMPOSITION,
    ) -> PrivacyStatement:
        """Return the statement; `n_rows` is what the user gave."""
        rows = f"{self.n_rows_}, on which the rules rest"
        public = (
            "all parameters, the bounds of the features and the target among them",
            f"the columns and their number, {self.n_features_in_}",
            f"the number of rows, {rows}: {DISCLOSED}" if n_rows is None else f"n_rows, {rows}",
            *disclosed,
        )
        return PrivacyStatement.of(
            budget,
            purse.accountant,
            public=public,
            arithmetic=EXACT,
            composition=composition,
            rows_disclosed=n_rows is None,
        )


def standardize_for(rows: RowSource, standardize: Standardize) -> Standardize:
    """Return what these rows allow: what is sparse is not centred."""
    if not rows.keeps_zero:
        return standardize
    if standardize is True:
        raise ValueError(
            "standardize=True would centre the features, and sparse rows would be sparse no more; "
            "use standardize=False, and declare bounds that fit."
        )
    return False


def purse_for(
    budget: Budget, noise: Noise, rows: RowSource, *, n_rows: int | None, unit: Unit = ROW
) -> Purse:
    """Return the whole budget for one unit; the rules see what of it one row may cost."""
    limit = ZCDP.within(budget)
    rho = float(limit / unit.rows_per_unit**2)
    regime = rules.Regime(n_rows or rows.n_rows, rows.n_features, rho)
    return Purse(Accountant(noise, limit=limit, unit=unit), limit, regime)


def paid_task(
    purse: Purse,
    rows: RowSource,
    public: tuple[Array, Array],
    choices: Choices,
    standardize: Standardize,
) -> tuple[Task, PublicUnits]:
    """Release bounds, deviation and spread, and put the rows on the lattice."""
    place = bounds.place_target(purse, rows, public[1])
    declared = choices.row_norm is not None and standardize == "auto"
    features = public[0]
    if standardize and not declared:
        features = bounds.tightened(purse, rows, features, always=standardize != "auto")
    units = PublicUnits(features, place.bounds, constant=choices.intercept)
    design = rows.lattice(units)
    return Task(purse, design, place.deviation, _release_spread(purse, design), choices), units


def _release_spread(purse: Purse, design: ExactDesign) -> float:
    """Release the features' root mean square; Σ_j x_ij²/d is at most 1 in each row."""
    if not rules.finds_spread(purse.regime):
        return rules.UNKNOWN_SPREAD
    d = purse.regime.n_features
    noisy, _ = purse.release_sum(
        whole_sum(design.column_squares()[:d]),
        most=d * UNITS,
        bound=1.0,
        cost=purse.share(rules.SPREAD_SHARE),
        purpose="the features' mean square",
    )
    return rules.spread_of(noisy, purse.regime.n_rows)
