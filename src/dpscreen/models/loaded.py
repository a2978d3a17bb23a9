"""A model that was read from a file: it predicts and explains itself, and cannot be fitted."""

from __future__ import annotations

import os
from typing import Any, NoReturn

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dpscreen._core.arrays import Array
from dpscreen.models.file import read
from dpscreen.models.linear import PrivateLinearModel
from dpscreen.models.release import Release
from dpscreen.solvers.base import Path
from dpscreen.solvers.inference import Inference
from dpscreen.solvers.quality import Quality


class LoadedModel(PrivateLinearModel):
    """A model from a file that `save` wrote. Make one with :func:`dpscreen.load`.

    Attributes
    ----------
    coef_, intercept_, privacy_, feature_bounds_, target_bounds_, n_iter_, n_rows_, path_, scale_, \
solver_, inference_, quality_, n_features_in_, feature_names_in_
        As in the estimator that was fitted; None, or not there, if that had none.
    fitted_by_ : str
        The name of that estimator.
    schema : dict or None
        What was saved beside the model to describe its data, as it was in the file.
    """

    feature_bounds_: Array
    target_bounds_: Array
    path_: Path | None
    scale_: float | None
    solver_: str | None
    n_rows_: int | None
    inference_: Inference
    quality_: Quality
    fitted_by_: str
    schema: dict[str, Any] | None = None

    def fit(self, _X: Any, _y: Any = None) -> NoReturn:
        """Refuse: a loaded model is as it is.

        Raises
        ------
        TypeError
            Always. Fit one of the estimators instead.
        """
        raise TypeError("a loaded model cannot be fitted again; use PrivateLasso, for example.")

    @property
    def _clips_to(self) -> Array | None:
        return self.feature_bounds_ if self._from_file.clips_features else None

    def noise_p_values(self) -> Array:
        """Return for each feature a p-value of "only privacy noise ever chose it".

        Returns
        -------
        ndarray of shape (n_features,)
            As in :meth:`PrivateLasso.noise_p_values`.
        """
        check_is_fitted(self)
        found = self._from_file.noise_p_values
        if found is None:
            raise ValueError("noise p-values need a path, which this model does not have.")
        return found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.regressor_tags.poor_score = True
        return tags

    def _released(self) -> Release:
        check_is_fitted(self)
        return self._from_file

    def _take(self, release: Release) -> None:
        self._from_file = release
        self.coef_, self.intercept_ = release.coefficients.copy(), release.intercept
        self.feature_bounds_ = release.feature_bounds.copy()
        self.target_bounds_ = release.target_bounds.copy()
        self.n_features_in_, self.n_iter_ = release.n_features, release.n_iter
        self.n_rows_, self.path_ = release.n_rows, release.path
        self.scale_, self.solver_ = release.scale, release.solver
        self.privacy_, self.fitted_by_ = release.statement, release.estimator
        self.schema = None if release.schema is None else dict(release.schema)
        if release.named:
            self.feature_names_in_ = np.array(release.names, dtype=object)
        if release.inference is not None:
            self.inference_ = release.inference
        if release.quality is not None:
            self.quality_ = release.quality


def load(path: str | os.PathLike[str]) -> LoadedModel:
    """Read a model file. It is validated, and nothing in it can run.

    Parameters
    ----------
    path : path-like
        A file that `save` wrote.

    Returns
    -------
    LoadedModel
        A regressor that predicts, with `coef_`, `privacy_`, `summary()`, `explain()` and `schema`.

    Raises
    ------
    ModelFileProblem
        The file cannot be read, is not a model, is newer than this library, or contradicts itself.
    """
    model = LoadedModel()
    model._take(read(path))
    return model
