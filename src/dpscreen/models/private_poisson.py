"""PrivatePoisson: a table of rate ratios of all features, under differential privacy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen._core.words import some
from dpscreen.models.base import FitStart, Promise, ScalingModel
from dpscreen.models.linear import LOADED, LoadedModel
from dpscreen.models.private_ols import TableEstimator
from dpscreen.models.regression_table import TableModel
from dpscreen.privacy import Noise, PrivacyStatement
from dpscreen.rows.source import PublicUnits, RowSource
from dpscreen.solvers.base import Choices
from dpscreen.solvers.family import POISSON, Family
from dpscreen.solvers.table import CURVED_CLIPPED, TableRule

if TYPE_CHECKING:
    import pandas as pd


class RateEstimator(ScalingModel):
    """What private models of non-negative outcomes share: link, bounds from 0 on, an offset."""

    family: ClassVar[Family] = POISSON
    offset: str | int | None

    def _prepare(
        self, settings: Choices, promise: Promise, noise: Noise, rows: RowSource
    ) -> Callable[[], PrivacyStatement]:
        return super()._prepare(
            replace(settings, offset=self._offset_place()), promise, noise, rows
        )

    def _offset_place(self) -> int | None:
        """Return which feature is the offset, if any."""
        if self.offset is None:
            return None
        names = list(map(str, self.feature_names_out_))
        places: dict[Any, int] = {name: place for place, name in enumerate(names)}
        places |= {place: place for place in range(len(names))}
        if self.offset not in places or isinstance(self.offset, bool) or len(names) < 2:
            raise ValueError(
                f"offset must be the name or the place of one of several features: {some(names)}."
            )
        return places[self.offset]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def _public_bounds(self) -> tuple[Array, Array]:
        features, target = super()._public_bounds()
        low, high = target.tolist()
        if not 0 <= low < high:
            raise ValueError(
                f"{type(self).__name__} needs outcomes that are not negative: target_bounds must "
                "begin at 0 or above, such as (0, 50)."
            )
        return features, target

    def _public_units(self, start: FitStart) -> PublicUnits:
        units = super()._public_units(start)
        unit, at = self.family.target_units(units.target_ends[1])
        return replace(units, target_at=0.0, target_unit=unit, predictor_at=at)


class RateTableModel(TableModel):
    """Results of a regression table of the logarithms of means."""

    def rate_ratios(self, level: float = 0.95) -> pd.DataFrame:
        """Return by what the mean is multiplied with a step of 1 of each feature.

        Parameters
        ----------
        level : float, default=0.95
            Coverage: how often such an interval covers its rate ratio; one at a time.

        Returns
        -------
        DataFrame
            One row for each feature, in their order, and columns rate_ratio, low and high, and
            per_cent, by how many per cent the mean is larger.
        """
        import pandas as pd

        ends = self.conf_int(level)
        params = self.params.iloc[: len(ends)].rename("rate_ratio")
        found = pd.DataFrame(np.exp(pd.concat([params, ends], axis=1)))
        return found.assign(per_cent=100 * (found["rate_ratio"] - 1))


class LoadedRateTable(RateTableModel, LoadedModel):
    """A table of log-means from a file that `save` wrote, with all results of `PrivatePoisson`."""


LOADED[POISSON.name] = LoadedModel, LoadedRateTable


@dataclass(kw_only=True, repr=False, eq=False)
class PrivatePoisson(RateTableModel, RateEstimator, TableEstimator):
    """Poisson regression under differential privacy with rate ratios, intervals and tests.

    The sibling of `PrivateOLS` for outcomes that are not negative: counts, costs, durations, rates.
    The logarithm of the mean is linear; of the distribution nothing else is assumed
    (quasi-Poisson), as standard errors are those of the sandwich. Newton rounds on influences that
    are clipped where a released histogram says lead to the estimate; curvature and meat are
    released there. Standard errors count sampling with any variance and every privacy noise
    (docs/explanation/what-an-interval-covers.md).

    Parameters
    ----------
    epsilon, delta, feature_bounds, categories, fit_intercept, n_rows, quality, rows_per_unit, \
random_state, schema
        As in `PrivateOLS`.
    target_bounds : pair
        Public bounds of the outcome, from 0 or above. Outcomes beyond are clipped, and no mean is
        larger than the upper bound. It may be wide; never take it from the data.
    offset : str or int, default=None
        The name or the place of a feature whose coefficient is 1: the logarithm of an exposure,
        such as years under observation, so that coefficients are those of a rate. It has bounds
        like other features, and is a column of the rows that `predict` takes.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (n_features,), float
        The released model of the logarithm of the mean for predictions, as in `PrivateOLS`.
    params, bse, tvalues, pvalues, table_, inference_, nobs
        As in `PrivateOLS`, of the logarithm of the mean. `rate_ratios` has their exponentials.
    feature_bounds_, target_bounds_, scale_, n_iter_, n_rows_, bounds_notes_, privacy_
        As in `PrivateOLS`.
    quality_ : RateQuality
        Deviance explained with a 95 % interval, or not known, and counts and sums by predicted
        mean. Print it.
    n_features_in_, feature_names_in_, feature_names_out_, columns_
        As in `PrivateLasso`.

    Notes
    -----
    Where features are not separable at this budget, the later one is dropped from the table. A
    feature that noise hides, or all where rounds did not settle, have no interval, and the table
    says so.

    Examples
    --------
    >>> import numpy as np
    >>> from dpscreen import PrivatePoisson
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(50, 10, size=(20000, 3))
    >>> y = rng.poisson(np.exp(0.03 * (X[:, 0] - X[:, 1])))
    >>> model = PrivatePoisson(epsilon=1, delta=1e-6, feature_bounds=(0, 100),
    ...                        target_bounds=(0, 50)).fit(X, y)
    >>> low, high = model.conf_int().loc["x0"]
    >>> bool(low < 0.035 and high > 0.025 and model.pvalues["x0"] < 0.001)
    True
    """

    offset: str | int | None = None
    quality: bool = True
    rows_per_unit: int | None = None  # type: ignore[misc]

    table_rule: ClassVar[TableRule] = TableRule.of(POISSON)
    _n_steps = len(CURVED_CLIPPED.search + CURVED_CLIPPED.last)
