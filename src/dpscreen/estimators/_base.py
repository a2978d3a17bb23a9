"""The scikit-learn face that all estimators share."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from dpscreen._core.arrays import Array
from dpscreen.estimators._checks import bounds, rows_alone
from dpscreen.estimators._sparse_rows import is_sparse, sparse_alone
from dpscreen.privacy import (
    Noise,
    PrivacyStatement,
    SecureNoise,
    SeededNoise,
    SeededNoiseWarning,
    WeakDeltaWarning,
)

if TYPE_CHECKING:
    from dpscreen.estimators._release import Release
    from dpscreen.estimators._summary import Summary


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
        return bounds(
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
        from dpscreen.estimators._summary import summary_of

        return summary_of(self._released())

    def explain(self) -> str:
        """Return one paragraph for whoever has to decide: findings, privacy, and its limits.

        Returns
        -------
        str
            It begins with a warning if the privacy statement does not hold.
        """
        from dpscreen.estimators._explain import explanation_of

        return explanation_of(self._released())

    def to_model_card(self) -> str:
        """Return a model card in Markdown, the whole privacy statement in it.

        Returns
        -------
        str
            Names and wordings are escaped.
        """
        from dpscreen.estimators._model_card import model_card_of

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
        from dpscreen.estimators._registry import registry_entry_of

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
        from dpscreen.estimators._model_file import write

        release = self._released()
        write(release if schema is None else replace(release, schema=schema), path, force=force)

    def _released(self) -> Release:
        """Return all that the model has released."""
        from dpscreen.estimators._release import release_of

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
