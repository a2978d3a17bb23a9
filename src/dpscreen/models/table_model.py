"""What statisticians ask of a model with a regression table: tests, effects, mean predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dpscreen._core.messages import message
from dpscreen.models.contrasts import Baseline, ContrastResults, PredictionResults
from dpscreen.models.intervals import Inference
from dpscreen.models.linear import PrivateLinearModel
from dpscreen.models.regression_table import RegressionTable, TableReadings

if TYPE_CHECKING:
    import pandas as pd


class TableModel(TableReadings, PrivateLinearModel):
    """Results of a model with a regression table, fitted or from a file."""

    table_: RegressionTable
    quality_: Any
    n_rows_: Any

    @property
    def inference_(self) -> Inference:
        """Return the 95 % intervals, and what they mean; print it."""
        of_units = self.privacy_.rows_per_unit > 1
        return self._table.inference(self.family, clustered=of_units)

    @property
    def rsquared(self) -> float:
        """Return the released R²; NaN if it is not known (`quality_.r2_reason` says why)."""
        measures = tuple(one.name for one in self.family.quality_type.measures)
        if "r2" not in measures:
            raise AttributeError(message("result.no-r2", measures=measures))
        quality = getattr(self, "quality_", None)
        if quality is None:
            check_is_fitted(self)
            raise AttributeError(message("result.r2-not-released"))
        return float(quality.r2)

    @property
    def nobs(self) -> float:
        """Return the number of rows that rules used: the declared one, or a noisy count."""
        check_is_fitted(self)
        return float(self.n_rows_)

    @property
    def fittedvalues(self) -> NoReturn:
        """Refuse with an AttributeError: a number for each private row is not kept."""
        raise AttributeError(message("result.row-values"))

    resid = fittedvalues

    @property
    def _table(self) -> RegressionTable:
        check_is_fitted(self)
        return self.table_

    def get_prediction(self, rows: Any) -> PredictionResults:
        """Return the mean prediction of each row with its standard error and interval.

        `summary_frame()` has mean, mean_se, mean_ci_lower and mean_ci_upper; of outcomes they are
        probabilities. Intervals are of the mean: `predict(X, interval=0.9)` is about new outcomes.
        NaN where a coefficient that counts has no interval; `reasons` says which.
        """
        table = self._table
        if len(table.names) == table.n_features:
            raise ValueError(message("result.no-constant"))
        design = self._features(rows)
        weights = np.column_stack((design, np.ones(len(design))))
        index = getattr(rows, "index", None)
        return PredictionResults.of(table, weights, family=self.family, index=index)

    def effect(
        self, variable: str, start: Any, stop: Any, *, at: Mapping[str, Any] | None = None
    ) -> ContrastResults:
        """Return the effect of moving one variable, in all terms that it is part of.

        It is the change of the linear predictor; of ratios and per cent also on that scale.

        Parameters
        ----------
        variable, at
            As in `partial_effect`; a variable may be a category, too.
        start, stop : number, or level of a category
            From where to where it moves, within its declared bounds.
        """
        start_row, stop_row = self._features(self._moved(variable, (start, stop), at))
        weights = np.zeros((1, len(self._table.names)))
        weights[0, : self._table.n_features] = stop_row - start_row
        return ContrastResults.of(
            self._table,
            weights,
            title="Effect",
            names=(f"{variable}: {start} to {stop}",),
            values=np.zeros(1),
            scale=self.released().scale_of_effects,
        )

    def marginal_means(
        self, variable: str, values: Sequence[Any] = (), *, at: Mapping[str, Any] | None = None
    ) -> pd.DataFrame:
        """Return mean predictions at values of one variable, others as in `effect`.

        Without `values`, at all levels of a category. Columns are those of
        `get_prediction(rows).summary_frame()`.
        """
        check_is_fitted(self)
        values = list(values) or list(Baseline.of(self).levels.get(variable, (0, 1)))
        found = self.get_prediction(self._moved(variable, values, at)).summary_frame()
        return found.set_axis([f"{variable}={value}" for value in values])

    def _ratios(self, name: str, level: float) -> pd.DataFrame:
        """Return exponentials of the features' coefficients and of the ends of their intervals."""
        import pandas as pd

        found = pd.concat([self.params.rename(name), self.conf_int(level)], axis=1)
        return pd.DataFrame(np.exp(found.iloc[: self._table.n_features]))
