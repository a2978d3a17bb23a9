"""Models from files that `save` wrote."""

from __future__ import annotations

import os
from typing import Any, NoReturn

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dpscreen._core.arrays import Array
from dpscreen._core.messages import message
from dpscreen.families import Family
from dpscreen.models.file import read
from dpscreen.models.linear import PrivateLinearModel
from dpscreen.models.raw import NoFormula, described_features
from dpscreen.models.release import Release
from dpscreen.models.table_model import TableModel
from dpscreen.tables.schema import SchemaProblem, TableSchema


class LoadedModel(PrivateLinearModel):
    """A model from a file that `save` wrote. Make one with :func:`dpscreen.load`.

    Attributes
    ----------
    coef_, intercept_, privacy_, feature_bounds_, target_bounds_, n_iter_, n_rows_, path_, scale_, \
solver_, inference_, quality_, table_, n_features_in_, feature_names_in_, feature_names_out_, \
columns_
        As in the estimator that was fitted; None, or not there, if that had none.
    fitted_by_ : str
        The name of that estimator.
    schema : dict or None
        What was saved beside the model to describe its data, as it was in the file.
    """

    schema: dict[str, Any] | None = None

    @property
    def family(self) -> Family:  # type: ignore[override]
        """Return the kind of outcome that the model is of."""
        return self.released().family

    @property
    def table_schema(self) -> TableSchema | None:
        """Return the schema in the file, if it describes the features of the model."""
        try:
            schema = TableSchema.from_dict(self.schema or {})
            named = list(map(str, self.released().names))
            described_features(schema, named, named=hasattr(self, "feature_names_in_"))
        except (SchemaProblem, NoFormula):
            return None
        return schema

    def fit(self, _X: Any, _y: Any = None) -> NoReturn:
        """Refuse with a TypeError: a loaded model is as it is."""
        raise TypeError(message("result.loaded-fit"))

    @property
    def _clips_to(self) -> Array | None:
        return self.feature_bounds_ if self._from_file.clips_features else None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.regressor_tags.poor_score = True
        return tags

    def released(self) -> Release:
        """Return all that the file holds."""
        check_is_fitted(self)
        return self._from_file

    def _take(self, release: Release) -> None:
        self._from_file = release
        self.privacy_, self.fitted_by_ = release.statement, release.estimator
        self.coef_, self.intercept_ = release.coefficients.copy(), release.intercept
        self.feature_bounds_ = release.feature_bounds.copy()
        self.target_bounds_ = release.target_bounds.copy()
        for name in ("n_iter", "n_rows", "path", "scale", "solver", "fallback"):
            setattr(self, f"{name}_", getattr(release, name))
        if release.schema is not None or release.missing_as is not None:
            self.missing_as_ = release.centres.copy()
        self.schema = None if release.schema is None else dict(release.schema)
        names = release.names
        if release.categories:
            self.columns_ = release.columns
            names = self.columns_.names
        self.n_features_in_ = len(names)
        if release.named:
            self.feature_names_in_ = np.array(names, dtype=object)
        computed = () if release.table is None else ("inference",)
        for name in ("inference", "quality", "table"):
            if getattr(release, name) is not None and name not in computed:
                setattr(self, f"{name}_", getattr(release, name))


class LoadedTable(TableModel, LoadedModel):
    """A regression table from a file that `save` wrote: `params`, `conf_int()`, as `PrivateOLS`."""


LOADED: dict[str, tuple[type[LoadedModel], type[LoadedModel]]] = {}
"""What a file of a family becomes, without and with a regression table, if classes of its own."""


def load(path: str | os.PathLike[str]) -> LoadedModel:
    """Read a model file that `save` wrote. It is validated, and nothing in it can run.

    The model predicts, with `coef_`, `privacy_`, `summary()`, `explain()` and `schema`; a
    regression table has `params`, `conf_int()` and the rest, as where it was fitted.

    Raises
    ------
    ModelFileProblem
        The file cannot be read, is not a model, is newer than this library, or contradicts itself.
    """
    release = read(path)
    sparse, table = LOADED.get(release.family.name, (LoadedModel, LoadedTable))
    model: LoadedModel = sparse() if release.table is None else table()
    model._take(release)
    return model
