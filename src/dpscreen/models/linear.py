"""What every fitted linear model can do: predict, tell what it has released, and be saved."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from dpscreen._core.arrays import Array
from dpscreen.models.intake import is_sparse, rows_alone, sparse_alone
from dpscreen.privacy import PrivacyStatement
from dpscreen.rows.sparse import clipped_product

if TYPE_CHECKING:
    from dpscreen.models.release import Release, Summary


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
            Rows to predict for, in the units of the rows that were fitted. Where the fit released
            `feature_bounds_`, they are clipped to those, as the fitted rows were.

        Returns
        -------
        ndarray of shape (n_samples,)
            X @ coef_ + intercept_.
        """
        check_is_fitted(self)
        rows = sparse_alone(self, X) if is_sparse(X) else rows_alone(self, X)
        return np.asarray(self._product(rows) + self.intercept_, dtype=np.float64)

    def _product(self, rows: Any) -> Any:
        bounds = self._clips_to
        if bounds is None:
            return rows @ self.coef_
        if is_sparse(rows):
            return clipped_product(rows, bounds, self.coef_)
        return np.clip(rows, *bounds.T) @ self.coef_

    @property
    def _clips_to(self) -> Array | None:
        """Return the bounds to which the coefficients apply; None if they apply to all values."""
        return getattr(self, "feature_bounds_", None)


class PrivateLinearModel(LinearModel):
    """A linear model that carries a privacy statement."""

    privacy_: PrivacyStatement

    def predict(self, X: Any, *, interval: float | None = None) -> Array:
        """Predict the target for each row of X, with prediction intervals if asked for.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Rows to predict for, in the units of the rows that were fitted. Where the fit released
            `feature_bounds_`, they are clipped to those, as the fitted rows were.
        interval : float, default=None
            The share of new targets that an interval should hold, 0.9 for example. It is made from
            the released sizes of residuals (`quality_`), the same width for every row; those are
            in-sample unless the fit was split.

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, 3) with an interval
            Predictions; with an interval, the prediction and the interval's two ends.
        """
        found = super().predict(X)
        if interval is None:
            return found
        quality = getattr(self, "quality_", None)
        if quality is None:
            raise ValueError("prediction intervals need quality_, which this model does not have.")
        if not 0 < interval < 1:
            raise ValueError("interval must lie between 0 and 1.")
        return np.asarray(found[:, None] + quality.residual_size(interval) * np.array([0, -1, 1]))

    def summary(self) -> Summary:
        """Return the selected features in a table, largest effect first.

        Returns
        -------
        Summary
            Print it; `frame` is a pandas data frame. It holds coefficients in the user's units,
            and intervals where there are any.
        """
        from dpscreen.models.release import summary_of

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

    @abstractmethod
    def _released(self) -> Release:
        """Return all that the model has released."""
