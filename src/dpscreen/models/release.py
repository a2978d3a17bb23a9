"""What a fitted private model has released, in one place.

The summary, the explanation, the model card, the registry's entry and the model file are all made
from this, so none of them can hold anything else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen.privacy import PrivacyStatement
from dpscreen.solvers.base import Path
from dpscreen.solvers.inference import FeatureInterval, Inference, noise_p_values

OFFERS_INTERVALS = "PrivateLasso"


@dataclass(frozen=True, eq=False)
class Release:
    """A fitted model: released and public values only.

    `named` tells whether the columns had names; else they are x0, x1, … `clips_features` tells
    whether predictions clip features to their bounds. `schema` describes the data set, and is none
    of this module's business.
    """

    estimator: str
    names: tuple[str, ...]
    named: bool
    coefficients: Array
    intercept: float
    feature_bounds: Array
    target_bounds: Array
    clips_features: bool
    fit_intercept: bool
    n_iter: int
    statement: PrivacyStatement
    n_rows: int | None = None
    solver: str | None = None
    scale: float | None = None
    path: Path | None = None
    max_features: int | None = None
    inference: Inference | None = None
    schema: Mapping[str, Any] | None = None

    @property
    def n_features(self) -> int:
        """Return how many features were offered."""
        return len(self.names)

    @property
    def effects(self) -> Array:
        """Return coefficients times half the width of the features' bounds: comparable sizes."""
        low, high = self.feature_bounds.T
        return np.asarray(self.coefficients * (high / 2 - low / 2))

    @property
    def selected(self) -> list[int]:
        """Return the features that the model uses, the largest effect first."""
        order = np.argsort(-np.abs(self.effects), kind="stable")
        return [int(j) for j in order if self.coefficients[j] != 0]

    @property
    def intervals(self) -> dict[int, FeatureInterval]:
        """Return the intervals by feature."""
        found = () if self.inference is None else self.inference.intervals
        return {interval.feature: interval for interval in found}

    @property
    def noise_p_values(self) -> Array | None:
        """Return the noise p-values; None where there is no path to compute them from."""
        if self.path is None:
            return None
        constants = int(self.solver == "frank-wolfe" and self.fit_intercept)
        return noise_p_values(
            self.path,
            n_features=self.n_features,
            n_constants=constants,
            limit=self.max_features,
        )

    @property
    def why_no_intervals(self) -> str | None:
        """Return why there are no intervals, in one sentence; None if there are."""
        if self.inference is not None:
            return None if self.inference.available else self.inference.wording
        if self.estimator != OFFERS_INTERVALS:
            return (
                f"There are no intervals: {self.estimator} has none; PrivateLasso with "
                "inference='split' gives them."
            )
        return (
            "There are no intervals: the model was not fitted with inference='split', and for "
            "coefficients that are shrunken, noisy and selected the usual ones would be wrong."
        )


def release_of(model: Any, public_bounds: tuple[Array, Array]) -> Release:
    """Return what a fitted estimator holds; bounds that it did not release are the public ones."""
    names = getattr(model, "feature_names_in_", None)
    d = int(model.n_features_in_)
    return Release(
        estimator=type(model).__name__,
        names=tuple(f"x{j}" for j in range(d)) if names is None else tuple(map(str, names)),
        named=names is not None,
        coefficients=np.array(model.coef_, dtype=np.float64),
        intercept=float(model.intercept_),
        feature_bounds=np.array(getattr(model, "feature_bounds_", public_bounds[0])),
        target_bounds=np.array(getattr(model, "target_bounds_", public_bounds[1])),
        clips_features=hasattr(model, "feature_bounds_"),
        fit_intercept=bool(model.fit_intercept),
        n_iter=int(model.n_iter_),
        statement=model.privacy_,
        n_rows=getattr(model, "n_rows_", None),
        solver=getattr(model, "solver_", None),
        scale=getattr(model, "scale_", None),
        path=getattr(model, "path_", None),
        max_features=getattr(model, "max_features", None),
        inference=getattr(model, "inference_", None),
    )
