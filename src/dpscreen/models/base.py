"""The scikit-learn face that all estimators share."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from dpscreen._core.arrays import Array
from dpscreen.models import intake
from dpscreen.models.intake import rows_alone, sparse_alone
from dpscreen.models.parameters import declared_bounds
from dpscreen.privacy import (
    ZCDP,
    Accountant,
    Budget,
    Noise,
    PrivacyStatement,
    SecureNoise,
    SeededNoise,
    SeededNoiseWarning,
    WeakDeltaWarning,
)
from dpscreen.privacy.statement import COMPOSITION, DISCLOSED
from dpscreen.privacy.unit import ROW, Unit
from dpscreen.rows.lattice import UNITS, ExactDesign
from dpscreen.rows.source import PublicUnits, RowSource
from dpscreen.rows.sparse import clipped_product, is_sparse
from dpscreen.rows.sums import whole_sum
from dpscreen.solvers import placing as bounds
from dpscreen.solvers import rules
from dpscreen.solvers.base import Choices, Solution, Spending, Task

if TYPE_CHECKING:
    from dpscreen.models.release import Release
    from dpscreen.models.summary import Summary


class LinearModel(RegressorMixin, BaseEstimator):
    """A fitted line: coefficients and an intercept in the user's units."""

    coef_: Array
    intercept_: float
    n_iter_: int

    def predict(self, X: Any) -> Array:
        """Predict the target for each row of X.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Rows to predict for, in the units of the rows that were fitted.

        Returns
        -------
        ndarray of shape (n_samples,)
            X @ coef_ + intercept_.
        """
        check_is_fitted(self)
        rows = sparse_alone(self, X) if is_sparse(X) else rows_alone(self, X)
        return np.asarray(rows @ self.coef_ + self.intercept_, dtype=np.float64)


class PrivateLinearModel(LinearModel):
    """A linear model that carries a privacy statement."""

    privacy_: PrivacyStatement
    feature_bounds: Any
    target_bounds: Any

    def _public_bounds(self) -> tuple[Array, Array]:
        """Return the declared bounds of every feature and of the target."""
        return declared_bounds(
            self.feature_bounds,
            self.target_bounds,
            getattr(self, "feature_names_in_", None),
            self.n_features_in_,
        )

    def summary(self) -> Summary:
        """Return the selected features in a table, largest effect first.

        Returns
        -------
        Summary
            Print it; `frame` is a pandas data frame. It holds coefficients in the user's units,
            intervals where there are any, and noise p-values where there is a path.
        """
        from dpscreen.models.summary import summary_of

        return summary_of(self._released())

    def explain(self) -> str:
        """Return one paragraph for whoever has to decide: findings, privacy, and its limits.

        Returns
        -------
        str
            It begins with a warning if the privacy statement does not hold.
        """
        from dpscreen.models.explain import explanation_of

        return explanation_of(self._released())

    def to_model_card(self) -> str:
        """Return a model card in Markdown, the whole privacy statement in it.

        Returns
        -------
        str
            Names and wordings are escaped.
        """
        from dpscreen.models.cards import model_card_of

        return model_card_of(self._released())

    def to_registry_entry(self, *, tier: int = 3) -> dict[str, Any]:
        """Return an entry for the public registry of deployments of differential privacy.

        Parameters
        ----------
        tier : {1, 2, 3}, default=3
            How much to tell: the product, its promise, or how the promise is kept.

        Returns
        -------
        dict
            In plain values. What only the curator knows is left empty.
        """
        from dpscreen.models.cards import registry_entry_of

        return registry_entry_of(self._released(), tier=tier)

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        schema: Mapping[str, Any] | None = None,
        force: bool = False,
    ) -> None:
        """Write the model to a JSON file, which `dpscreen.load` reads (docs/model-file.md).

        Parameters
        ----------
        path : path-like
            Where to. The file is written whole or not at all.
        schema : dict, default=None
            What describes the data set, kept in the file as it is. It must be public.
        force : bool, default=False
            Whether a file that exists may be replaced.

        Raises
        ------
        ModelFileProblem
            The file exists, or cannot be written.
        """
        from dpscreen.models.file import write

        release = self._released()
        write(release if schema is None else replace(release, schema=schema), path, force=force)

    def _released(self) -> Release:
        """Return all that the model has released."""
        from dpscreen.models.release import release_of

        check_is_fitted(self)
        return release_of(self, self._public_bounds())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # at the ε of scikit-learn's checks, noise wins
        return tags


def noise_source(random_state: Any) -> Noise:
    """Return secure noise for None; anything else is reproducible, and warned about.

    Accepts a whole number, a name, a numpy generator or RandomState, or a `Noise` of the caller's.
    """
    noise = random_state if isinstance(random_state, Noise) else _noise_from(random_state)
    if not noise.secure:
        warnings.warn(
            "random_state makes the noise reproducible: whoever knows it can remove the noise, so "
            "this fit is not private. Leave it None for a release.",
            SeededNoiseWarning,
            stacklevel=3,
        )
    return noise


def _noise_from(random_state: Any) -> Noise:
    match random_state:
        case None:
            return SecureNoise()
        case str():
            return SeededNoise(random_state)
        case np.random.Generator():
            return SeededNoise(int(random_state.integers(2**63)))
        case np.random.RandomState():
            return SeededNoise(int(random_state.randint(2**31 - 1)))
        case int() | np.integer() if not isinstance(random_state, bool) and random_state >= 0:
            return SeededNoise(int(random_state))
    raise ValueError(
        "random_state must be None, a whole number that is not negative, a name, or a numpy "
        f"generator; got {type(random_state).__name__}."
    )


def warn_of_weak_delta(delta: float, n_rows: int) -> None:
    """Warn when δ would allow to publish one row in full at random."""
    if delta * n_rows >= 1:
        warnings.warn(
            "delta is at least 1/n: such a promise would even be kept by publishing one row chosen "
            "at random. Choose delta far below 1/n.",
            WeakDeltaWarning,
            stacklevel=3,
        )


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
        rows = np.clip(intake.rows_alone(self, X), low, high)
        return np.asarray(rows @ self.coef_ + self.intercept_, dtype=np.float64)

    def _release(self, solution: Solution, units: PublicUnits) -> None:
        self.coef_, self.intercept_ = units.in_users_units(solution.weights)
        self.feature_bounds_, self.target_bounds_ = units.feature_bounds, units.target_bounds
        self.scale_ = solution.deviation
        self.n_iter_ = solution.n_iter

    def _account(
        self,
        budget: Budget,
        spending: Spending,
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
            spending.accountant,
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


def spending_for(
    budget: Budget, noise: Noise, rows: RowSource, *, n_rows: int | None, unit: Unit = ROW
) -> Spending:
    """Return the whole budget for one unit; the rules see what of it one row may cost."""
    limit = ZCDP.within(budget)
    rho = float(limit / unit.rows_per_unit**2)
    regime = rules.Regime(n_rows or rows.n_rows, rows.n_features, rho)
    return Spending(Accountant(noise, limit=limit, unit=unit), limit, regime)


def paid_task(
    spending: Spending,
    rows: RowSource,
    public: tuple[Array, Array],
    choices: Choices,
    standardize: Standardize,
) -> tuple[Task, PublicUnits]:
    """Release bounds, deviation and spread, and put the rows on the lattice."""
    place = bounds.place_target(spending, rows, public[1])
    declared = choices.row_norm is not None and standardize == "auto"
    features = public[0]
    if standardize and not declared:
        features = bounds.tightened(spending, rows, features, always=standardize != "auto")
    units = PublicUnits(features, place.bounds, constant=choices.intercept)
    design = rows.lattice(units)
    return Task(
        spending, design, place.deviation, _release_spread(spending, design), choices
    ), units


def _release_spread(spending: Spending, design: ExactDesign) -> float:
    """Release the features' root mean square; Σ_j x_ij²/d is at most 1 in each row."""
    if not rules.finds_spread(spending.regime):
        return rules.UNKNOWN_SPREAD
    d = spending.regime.n_features
    noisy, _ = spending.release_sum(
        whole_sum(design.column_squares()[:d]),
        most=d * UNITS,
        bound=1.0,
        cost=spending.share(rules.SPREAD_SHARE),
        purpose="the features' mean square",
    )
    return rules.spread_of(noisy, spending.regime.n_rows)


@contextmanager
def refit(estimator: BaseEstimator) -> Iterator[None]:
    """Begin a fit with nothing left of an earlier one, and leave nothing of one that fails."""
    _forget(estimator)
    try:
        yield
    except BaseException:
        _forget(estimator)
        raise


def _forget(estimator: BaseEstimator) -> None:
    for name in [name for name in vars(estimator) if name.endswith("_") and name[0] != "_"]:
        delattr(estimator, name)


EXACT = (
    "exact: features are truncated to 2^-14 of their half-width and clipped residuals rounded to "
    "2^-14 of the clip, sums are of whole numbers, and noise is sampled without rounding"
)
