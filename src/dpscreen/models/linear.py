"""What a fitted linear model can do: predict, report what it has released, be saved and loaded."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from dpscreen._core.arrays import Array, Objects
from dpscreen._core.messages import message, unknown
from dpscreen.families import GAUSSIAN, Family
from dpscreen.models.cards import model_card_of, registry_entry_of
from dpscreen.models.code import formula_of
from dpscreen.models.contrasts import Baseline, Combinations
from dpscreen.models.explain import explanation_of
from dpscreen.models.file import write
from dpscreen.models.intake import is_sparse, rows_alone, scored_rows, sparse_alone
from dpscreen.models.onnx_graph import onnx_of
from dpscreen.models.parameters import Rule
from dpscreen.models.pipelines import pipeline_of
from dpscreen.models.release import Release, checked_about, promise_of
from dpscreen.models.summary import Summary, summary_of
from dpscreen.privacy import PrivacyStatement
from dpscreen.rows.sparse import clipped_product
from dpscreen.tables.schema import TableSchema

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from sklearn.pipeline import Pipeline


class LinearModel(RegressorMixin, BaseEstimator):
    """A fitted line: coefficients and an intercept in the user's units."""

    family: ClassVar[Family] = GAUSSIAN
    _rules: ClassVar[Mapping[str, Rule]] = {}
    """Rules of parameters that this model has beside `RULES`, or in their place."""

    coef_: Array
    intercept_: Any
    n_iter_: int

    def predict(self, X: Any) -> Array:
        """Predict the target for each row of X: X @ coef_ + intercept_."""
        return self._line(X)

    def _line(self, X: Any) -> Array:
        check_is_fitted(self)
        sparse = is_sparse(X, getattr(self, "columns_", None))
        rows = sparse_alone(self, X) if sparse else rows_alone(self, X)
        return np.asarray(self._product(rows) + self.intercept_, dtype=np.float64)

    def _product(self, rows: Any) -> Any:
        bounds, coef = self._clips_to, np.ravel(self.coef_)
        if bounds is None:
            return rows @ coef
        if is_sparse(rows):
            return clipped_product(rows, bounds, coef)
        return np.clip(rows, *bounds.T) @ coef

    @property
    def feature_names_out_(self) -> Objects:
        """Return the names of the features, one for each coefficient: age, ward=B, or x0, x1, …"""
        check_is_fitted(self)
        columns = getattr(self, "columns_", None)
        if columns is not None:
            return np.array(columns.feature_names, dtype=np.object_)
        if hasattr(self, "feature_names_in_"):
            return np.array(self.feature_names_in_, dtype=np.object_)
        return np.array([f"x{j}" for j in range(self.n_features_in_)], dtype=np.object_)

    @property
    def table_schema(self) -> TableSchema | None:
        """Return the schema by which data frames are read; None if they hold the features."""
        found: TableSchema | None = getattr(self, "schema_", None)
        return found

    @property
    def _clips_to(self) -> Array | None:
        """Return the bounds to which the coefficients apply; None if they apply to all values."""
        return getattr(self, "feature_bounds_", None)


class PrivateLinearModel(LinearModel):
    """A linear model that carries a privacy statement."""

    privacy_: PrivacyStatement
    target_bounds_: Array
    fallback_: str | None
    schema_: TableSchema

    def predict(self, X: Any, *, interval: float | None = None) -> Array:
        """Predict the target for each row of X, with prediction intervals if asked for.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Rows as they were fitted, clipped to `feature_bounds_` where these were released.
        interval : float, default=None
            The share of new targets that an interval should cover, 0.9 for example. It is made from
            the released sizes of residuals (`quality_`), the same width for every row; those are
            in-sample unless the fit was split. Refused where they are not identifiable.

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, 3) with an interval
            Predictions; with an interval, the prediction and the interval's two ends. All are
            clipped to the declared bounds of the target, as the targets of the fit were.
        """
        found = np.clip(self.family.inverse_link(self._line(X)), *self._predicts_within)
        if interval is None:
            return self._in_table_units(found)
        quality = getattr(self, "quality_", None)
        if quality is None:
            raise ValueError(message("result.no-residual-size"))
        if not 0 < interval < 1:
            raise ValueError(message("result.interval"))
        ends = found[:, None] + quality.residual_size(interval) * np.array([-1, 1])
        clipped = np.clip(ends, *self._predicts_within)
        return self._in_table_units(np.column_stack((found, clipped)))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return R² of predictions for given rows. Of private rows it is no release: no noise.

        It is in the units of the table; of outcomes that are not negative, the part of the deviance
        that is explained.

        Parameters
        ----------
        X, sample_weight
            As in `predict`, and in scikit-learn.
        y : array-like of shape (n_samples,), default=None
            The targets; None takes them from the table, if the model has a `schema`. Rows without
            one are left out then.
        """
        from sklearn import metrics  # slow to import

        target, kept, weight = scored_rows(self, X, y, sample_weight)
        name, more = self.family.metric
        metric = getattr(metrics, name)
        return float(metric(target, self.predict(X)[kept], sample_weight=weight, **more))

    def _in_table_units(self, predicted: Array) -> Array:
        """Return predictions in the units of the table, where a schema declares a transform."""
        schema = self.table_schema
        return predicted if schema is None else schema.untransform_target(predicted)

    @property
    def _predicts_within(self) -> Array:
        """Return the declared bounds of the target, to which predictions are clipped."""
        return self.target_bounds_

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """Show the parameters and, of a fit that is not private, the mark; a pickle keeps it."""
        shown = str(super().__repr__(N_CHAR_MAX=N_CHAR_MAX))
        fitted = getattr(self, "privacy_", None)
        if fitted is None or fitted.holds:
            return shown
        return f"{shown}  # {promise_of(fitted)}"

    def summary(self) -> Summary:
        """Return the selected features in a table, largest effect first; or a regression table.

        Print it; `frame` is a pandas data frame. It holds coefficients in the user's units,
        and intervals where there are any.
        """
        return summary_of(self.released())

    def explain(self) -> str:
        """Return findings, how to read the numbers, privacy and its limits: a paragraph each.

        It begins with a warning if the privacy statement does not hold.
        """
        return explanation_of(self.released())

    def to_model_card(self) -> str:
        """Return a model card in Markdown, the whole privacy statement in it, all escaped."""
        return model_card_of(self.released())

    def to_registry_entry(self, *, tier: int = 3) -> dict[str, Any]:
        """Return an entry for the public registry of deployments of differential privacy.

        `tier` is its level of detail: the product (1), its promise (2), or how the promise is kept
        (3). What only the curator knows is left empty.
        """
        return registry_entry_of(self.released(), tier=tier)

    def partial_effect(
        self,
        variable: str,
        *,
        n_points: int = 101,
        at: Mapping[str, Any] | None = None,
        alpha: float = 0.05,
    ) -> pd.DataFrame:
        """Return the effect of one variable over its declared range, in all terms it is part of.

        Parameters
        ----------
        variable : str
            A column of numbers, as it was declared.
        n_points : int, default=101
            Number of equally spaced values from one declared bound to the other.
        at : mapping from column to value, default=None
            Where the others are: it matters with interactions. Those that are not named are in the
            middles of their declared bounds, or at the first level.
        alpha : float, default=0.05
            One minus the coverage of the interval at one value: a pointwise band.

        Returns
        -------
        DataFrame
            By value of the variable: `estimate`, the linear predictor less that at the declared
            middle, `lower` and `upper`, NaN for models that are no tables.
        """
        check_is_fitted(self)
        import pandas as pd

        baseline = Baseline.of(self)
        if variable not in baseline.bounds:
            raise ValueError(unknown("number", variable, tuple(baseline.bounds)))
        low, high = baseline.bounds[variable]
        values = np.linspace(low, high, n_points)
        design = self._features(self._moved(variable, [*values.tolist(), low / 2 + high / 2], at))
        weights, table = design[:-1] - design[-1], getattr(self, "table_", None)
        if table is None:
            estimate = weights @ np.ravel(self.coef_)
            ends = np.full((n_points, 2), np.nan)
        else:
            constants = np.zeros((n_points, len(table.names) - table.n_features))
            found = Combinations.of(table, np.hstack([weights, constants]))
            estimate, ends = found.effect, found.conf_int(alpha)
        columns = {"estimate": estimate, "lower": ends[:, 0], "upper": ends[:, 1]}
        return pd.DataFrame(columns, index=pd.Index(values, name=variable))

    def _moved(self, variable: str, values: Sequence[Any], at: Mapping[str, Any] | None) -> Any:
        """Return rows in which a variable moves, as the fit took rows; others are at `at`."""
        rows = Baseline.of(self).rows(variable, values, at or {})
        return rows if hasattr(self, "feature_names_in_") else rows.to_numpy()

    def _features(self, rows: Any) -> Array:
        """Return the features of rows, clipped as predictions clip them."""
        design = rows_alone(self, rows)
        return design if self._clips_to is None else np.clip(design, *self._clips_to.T)

    def to_formula(
        self,
        language: str,
        *,
        dialect: str | None = None,
        schema: Mapping[str, Any] | None = None,
        force: bool = False,
    ) -> str:
        """Return the model as a formula on the raw table, with its privacy statement.

        Parameters
        ----------
        language : {"sql", "r", "excel"}
            An expression over the columns of the table, under comments; for Excel, a cell of row 2
            with the columns in A2, B2 and so on.
        dialect : str, default=None
            Of SQL, the database: "snowflake", "bigquery", "duckdb", "sqlite" and so on (`pip
            install 'dpscreen[sql]'`). None: "postgres".
        schema : dict, default=None
            What describes the raw table, unless the model has it. Without one, columns are those of
            the fit: numbers, and the model's categories.
        force : bool, default=False
            Whether to write a model that is not private, which is then marked so.

        Returns
        -------
        str
            It reads cells, fills, transforms and clips as `dpscreen predict` does, and gives the
            target in the units of the table; of a model of outcomes, the probability of the second
            class.

        Raises
        ------
        NoFormula
            The language cannot say it.
        NotPrivate
            The guarantee does not hold, and `force` is False.
        """
        release = self.described(schema=schema)
        return formula_of(release, language, dialect=dialect, force=force)

    def to_sklearn(
        self, *, schema: Mapping[str, Any] | None = None, force: bool = False
    ) -> Pipeline:
        """Return a pipeline of scikit-learn's and pandas' own steps that predicts the same.

        It needs nothing of this package. It takes a data frame of the raw table, by the schema; of
        a model without one, the frame or array of the fit. `privacy_` is the privacy statement.
        `schema` and `force` are those of `to_formula`.
        """
        return pipeline_of(self.described(schema=schema), force=force)

    def to_onnx(self, *, schema: Mapping[str, Any] | None = None, force: bool = False) -> bytes:
        """Return the model in ONNX (`pip install 'dpscreen[onnx]'`), with its privacy statement.

        It has one input of shape (n, 1) for each column that it uses: doubles for numbers, NaN if
        missing; strings for texts, yes and no, true and false; for dates doubles, the days since
        1970-01-01. Without names of columns the one input is `features`. The output is
        `prediction`; of a model of outcomes `label` and `probabilities`, a column for each class.

        `schema` and `force` are those of `to_formula`.
        """
        return onnx_of(self.described(schema=schema), force=force)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw what a typical step of each feature does, with intervals, into axes or a figure."""
        from dpscreen.models.page.effects import plot_release

        return plot_release(self.released(), ax)

    def _html_repr(self) -> str:
        """Show the summary in a notebook once the model is fitted; before, scikit-learn's box."""
        fitted = hasattr(self, "privacy_")
        return self.summary()._repr_html_() if fitted else super()._html_repr()

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        schema: Mapping[str, Any] | None = None,
        about: Mapping[str, str] | None = None,
        force: bool = False,
    ) -> None:
        """Write the model to a JSON file, which `dpscreen.load` reads (docs/model-file.md).

        Parameters
        ----------
        path : path-like
            Where to. The file is written whole or not at all.
        schema : dict, default=None
            What describes the data set, kept in the file as it is. It must be public.
        about : dict, default=None
            What to say of the model: "target", "author", "date", "purpose", each optional. It is
            kept in the file, and shown by everything that shows the model.
        force : bool, default=False
            Whether a file that exists may be replaced.

        Raises
        ------
        ModelFileProblem
            The file exists, or cannot be written.
        """
        write(self.described(schema=schema, about=about), path, force=force)

    def described(
        self, *, schema: Mapping[str, Any] | None = None, about: Mapping[str, str] | None = None
    ) -> Release:
        """Return all that the model has released, with what is said of its data and of itself."""
        release = self.released()
        told = {**release.about, **checked_about(about or {})}
        return replace(release, schema=schema or release.schema, about=told)

    @abstractmethod
    def released(self) -> Release:
        """Return all that the model has released."""
