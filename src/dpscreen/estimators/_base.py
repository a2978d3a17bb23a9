"""The scikit-learn face that all estimators share."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from dpscreen.estimators._checks import bounds, rows_alone
from dpscreen.privacy import (
    Noise,
    PrivacyStatement,
    SecureNoise,
    SeededNoise,
    SeededNoiseWarning,
    WeakDeltaWarning,
)

Array = NDArray[np.float64]


class LinearModel(RegressorMixin, BaseEstimator):
    """A fitted line: coefficients and an intercept in the user's units."""

    coef_: Array
    intercept_: float
    n_iter_: int

    def predict(self, X: Any) -> Array:
        """Predict the target for each row of X.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows to predict for, in the units of the rows that were fitted.

        Returns
        -------
        ndarray of shape (n_samples,)
            X @ coef_ + intercept_.
        """
        check_is_fitted(self)
        return np.asarray(rows_alone(self, X) @ self.coef_ + self.intercept_, dtype=np.float64)


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
