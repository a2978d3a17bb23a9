"""PrivateLogit: a table of odds ratios of all features, under differential privacy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpscreen.models.private_logistic_lasso import OutcomeEstimator
from dpscreen.models.private_ols import TableEstimator
from dpscreen.models.regression_table import OddsTableModel


@dataclass(kw_only=True, repr=False, eq=False)
class PrivateLogit(OddsTableModel, OutcomeEstimator, TableEstimator):  # type: ignore[misc]
    """Logistic regression under differential privacy with odds ratios, intervals and tests.

    The sibling of `PrivateOLS` for binary outcomes: all features, all rows, no selection. Noisy
    scores of whitened features lead near the estimate, where the curvature is released, and Newton
    rounds follow. Standard errors are those of the curvature where they end, and count every
    privacy noise (docs/explanation/what-an-interval-covers.md).

    Parameters
    ----------
    epsilon, delta, feature_bounds, categories, fit_intercept, n_rows, quality, interest, \
required, rows_per_unit, random_state, schema
        As in `PrivateOLS`.
    classes : pair of labels, default=(0, 1)
        The two classes of the target, the reference first, as in `PrivateLogisticLasso`: a
        declaration, never learnt.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The declared classes, as declared.
    coef_, intercept_ : ndarray of shape (1, n_features), ndarray of shape (1,)
        The released model of the log-odds of the second class for predictions, as in `PrivateOLS`.
    params, bse, tvalues, pvalues, table_, inference_, nobs
        As in `PrivateOLS`, of log-odds.
    feature_bounds_, n_iter_, n_rows_, bounds_notes_, privacy_
        As in `PrivateOLS`.
    quality_ : OutcomeQuality
        AUC and deviance, each with a 95 % interval or not known. Print it.
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
    >>> from dpscreen import PrivateLogit
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(50, 10, size=(20000, 3))
    >>> y = 0.05 * (X[:, 0] - X[:, 1]) + rng.logistic(size=20000) > 0
    >>> model = PrivateLogit(epsilon=1, delta=1e-6, feature_bounds=(0, 100)).fit(X, y)
    >>> low, high = model.conf_int().loc["x0"]
    >>> bool(low < 0.06 and high > 0.04 and model.pvalues["x0"] < 0.001)
    True
    """

    quality: bool = True
    interest: Any = None
    required: Any = None
    rows_per_unit: int | None = None  # type: ignore[misc]
