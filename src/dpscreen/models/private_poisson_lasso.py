"""PrivatePoissonLasso: sparse private models of non-negative outcomes, within one budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpscreen.families import POISSON, Family
from dpscreen.models.private_lasso import SparseModel


@dataclass(kw_only=True, repr=False, eq=False)
class PrivatePoissonLasso(SparseModel):
    """Sparse Poisson regression under differential privacy that needs a budget and bounds only.

    `PrivateLasso` for outcomes that are not negative: the same engine with a linear logarithm of
    the mean, and residuals that are means less outcomes (docs/theory/exactness.md, Lemma 90;
    docs/theory/engine.md).

    Parameters
    ----------
    epsilon, delta, feature_bounds, categories, fit_intercept, standardize, inference, n_rows, \
quality, rows_per_unit, random_state, schema
        As in `PrivateLasso`; intervals are of log-means, by the table of `PrivatePoisson`.
    target_bounds : pair
        Public bounds of the outcome, from 0 or above, as in `PrivatePoisson`.
    offset : str or int, default=None
        The name or the place of a feature whose coefficient is 1, as in `PrivatePoisson`; without
        ``inference="split"``.
    n_iter : int, default=None
        Number of steps T of a path, which is then taken, as in `PrivateLasso`.
    max_features : int, default=None
        At most so many distinct features ever enter the model. Costs nothing.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (n_features,), float
        The released model of the logarithm of the mean, in the user's units. It applies to
        features clipped to `feature_bounds_`, as `predict` does.
    quality_ : RateQuality
        Deviance explained with a 95 % interval, or not known, on the rows of the fit; with
        ``inference="split"`` on rows that did not choose the model. Print it.
    inference_ : Inference
        Only with ``inference="split"``, of log-means: their exponentials are rate ratios.
    path_, selected_, feature_bounds_, target_bounds_, scale_, n_iter_, n_rows_, fallback_, \
bounds_notes_, privacy_, n_features_in_, feature_names_in_, feature_names_out_, columns_
        As in `PrivateLasso`.

    Notes
    -----
    Coefficients are shrunken, noisy and selected; no standard errors are valid, but those of
    ``inference="split"``. `PrivatePoisson` has a table of all features with intervals, from all
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
    rows_per_unit: int | None = None  # type: ignore[misc]
