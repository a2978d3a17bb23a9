"""Poisson regression: models of outcomes that are not negative, sparse or as a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dpscreen.families import POISSON, Family
from dpscreen.models.loaded import LOADED, LoadedModel
from dpscreen.models.private_lasso import SparseModel
from dpscreen.models.private_ols import TableEstimator
from dpscreen.models.table_model import TableModel

if TYPE_CHECKING:
    import pandas as pd


class RateTableModel(TableModel):
    """Results of a regression table of the logarithms of means."""

    def rate_ratios(self, level: float = 0.95) -> pd.DataFrame:
        """Return by what the mean is multiplied with a step of 1 of each feature.

        Columns are rate_ratio, as in `conf_int(level)` low and high, and per_cent, by how many per
        cent the mean is larger.
        """
        found = self._ratios("rate_ratio", level)
        return found.assign(per_cent=100 * (found["rate_ratio"] - 1))


class LoadedRateTable(RateTableModel, LoadedModel):
    """A table of log-means from a file, with all results of `PrivatePoisson`."""


LOADED[POISSON.name] = LoadedModel, LoadedRateTable


@dataclass(kw_only=True, repr=False, eq=False)
class PrivatePoisson(RateTableModel, TableEstimator):
    """Poisson regression under differential privacy with rate ratios, intervals and tests.

    The sibling of `PrivateOLS` for outcomes that are not negative: counts, costs, durations, rates.
    The logarithm of the mean is linear; of the distribution nothing else is assumed
    (quasi-Poisson), as standard errors are those of the sandwich. Newton rounds on influences that
    are clipped where a released histogram says lead to the estimate; curvature and meat are
    released there. Standard errors include sampling error (robust to any variance) and all
    privacy noise (docs/explanation/what-an-interval-covers.md).

    Parameters
    ----------
    epsilon, delta, feature_bounds, categories, fit_intercept, n_rows, quality, interest, \
required, rows_per_unit, random_state, schema
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
    quality_ : RateQuality
        Deviance explained with a 95 % interval, or not known, and counts and sums by predicted
        mean. Print it.
    coef_, intercept_, params, bse, tvalues, pvalues, table_, inference_, nobs, feature_bounds_, \
target_bounds_, scale_, n_iter_, n_rows_, fallback_, bounds_notes_, privacy_, n_features_in_, \
feature_names_in_, feature_names_out_, columns_
        As in `PrivateOLS`, of the logarithm of the mean. `rate_ratios` has the exponentials.

    Notes
    -----
    As of `PrivateOLS`. Where rounds did not settle no feature has an interval.

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

    family: ClassVar[Family] = POISSON

    offset: str | int | None = None


@dataclass(kw_only=True, repr=False, eq=False)
class PrivatePoissonLasso(SparseModel):
    """Sparse Poisson regression under differential privacy that needs a budget and bounds only.

    `PrivateLasso` for outcomes that are not negative: the same engine with a linear logarithm of
    the mean, and residuals that are means less outcomes (docs/theory/exactness.md, Lemma 90;
    docs/theory/engine.md).

    Parameters
    ----------
    epsilon, delta, feature_bounds, categories, n_iter, max_features, fit_intercept, standardize, \
inference, n_rows, quality, rows_per_unit, random_state, schema
        As in `PrivateLasso`; intervals are of log-means, by the table of `PrivatePoisson`.
    target_bounds : pair
        Public bounds of the outcome, from 0 or above, as in `PrivatePoisson`.
    offset : str or int, default=None
        The name or the place of a feature whose coefficient is 1, as in `PrivatePoisson`; without
        ``inference="split"``.

    Attributes
    ----------
    quality_ : RateQuality
        Deviance explained, on the rows that `PrivateLasso` measures R² on. Print it.
    coef_, intercept_, path_, selected_, q_values_, feature_bounds_, target_bounds_, scale_, \
n_iter_, n_rows_, inference_, fallback_, bounds_notes_, privacy_, n_features_in_, \
feature_names_in_, feature_names_out_, columns_
        As in `PrivateLasso`, of the logarithm of the mean: exponentials are rate ratios.

    Notes
    -----
    As of `PrivateLasso`. `PrivatePoisson` has a table of all features with intervals, from all
    rows, where they are few enough for one.

    Examples
    --------
    >>> import numpy as np
    >>> from dpscreen import PrivatePoissonLasso
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(50, 10, size=(5000, 20))
    >>> y = rng.poisson(np.exp(0.05 * (X[:, 0] - X[:, 3])))
    >>> model = PrivatePoissonLasso(epsilon=1, delta=1e-6, feature_bounds=(0, 200),
    ...                             target_bounds=(0, 100)).fit(X, y)
    >>> bool(model.privacy_.holds and model.score(X, y) > 0.4)
    True
    """

    family: ClassVar[Family] = POISSON

    offset: str | int | None = None
