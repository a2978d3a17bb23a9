"""PrivateLogisticLasso: sparse private models of binary outcomes, within one budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dpscreen.models.base import ScalingModel
from dpscreen.models.linear import OutcomeModel
from dpscreen.models.private_lasso import SparseModel


@dataclass(kw_only=True, repr=False, eq=False)
class OutcomeEstimator(OutcomeModel, ScalingModel):  # type: ignore[misc]
    """What private models of binary outcomes share: classes that are declared, and no bounds."""

    classes: Any = (0, 1)
    target_bounds: ClassVar[Any] = (0.0, 1.0)  # type: ignore[misc]


@dataclass(kw_only=True, repr=False, eq=False)
class PrivateLogisticLasso(OutcomeEstimator, SparseModel):  # type: ignore[misc]
    """Sparse logistic regression under differential privacy that needs a budget and bounds only.

    `PrivateLasso` for binary outcomes: the same engine with residuals that are outcomes less
    probabilities, which lie in [−1, 1] whatever the coefficients (docs/theory/exactness.md, Lemma
    30, docs/theory/engine.md).

    Parameters
    ----------
    epsilon, delta, feature_bounds, categories, standardize, inference, n_rows, quality, \
rows_per_unit, random_state, schema
        As in `PrivateLasso`; intervals are of log-odds, by the table of `PrivateLogit`.
    classes : pair of labels, default=(0, 1)
        The two classes of the target, the reference first: probabilities and odds ratios are those
        of the second, in whatever order labels would sort. Numbers, truths or texts. Declared,
        never learnt from rows; a target that holds anything else is refused. With a `schema` they
        are its target's; rows that were read before have 0 and 1. scikit-learn's scorers of
        probabilities
        ("roc_auc", "neg_log_loss") take the label that sorts last for the second: where it is not,
        compare `predict_proba` with y yourself.
    n_iter : int, default=None
        Number of steps T of a path, which is then taken, as in `PrivateLasso`.
    max_features : int, default=None
        At most so many distinct features ever enter the model. Costs nothing.
    fit_intercept : bool, default=True
        Estimate an intercept inside the same budget. Without it, the probability is ½ where all
        features are at the centres that were released, or in the middle of their bounds where none
        were.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The declared classes, as declared.
    coef_, intercept_ : ndarray of shape (1, n_features), ndarray of shape (1,)
        The released model of the log-odds of the second class, in the user's units. It applies to
        features clipped to `feature_bounds_`, as `predict` does.
    path_ : Path or None
        The released path, as in `PrivateLasso`. None where no feature was chosen; setting `n_iter`
        or `max_features` asks for a path.
    selected_ : ndarray of shape (n_features,), bool
        The features that are detected above sampling and privacy noise among all that were offered;
        others may have a coefficient, for the predictions' sake.
    quality_ : OutcomeQuality
        AUC and deviance, each with a 95 % interval or not known, on the rows of the fit; with
        ``inference="split"`` on rows that did not choose the model. Print it.
    inference_ : Inference
        Only with ``inference="split"``, of log-odds: their exponentials are odds ratios. They are
        those of the model of these features alone. Print it.
    feature_bounds_, n_iter_, n_rows_, fallback_, bounds_notes_, privacy_, n_features_in_, \
feature_names_in_, feature_names_out_, columns_
        As in `PrivateLasso`.

    Notes
    -----
    Coefficients are shrunken, noisy and selected; no standard errors are valid, but those of
    ``inference="split"``. `PrivateLogit` has a table of all features with intervals, from all rows,
    where they are few enough for one. Where classes are perfectly separable, weights
    stay finite, as the steps are. Expect no useful model where M = n√(2ρ)/ln(2d) is below 20, or
    the rarer class has fewer than some hundred rows.

    Examples
    --------
    >>> import numpy as np
    >>> from dpscreen import PrivateLogisticLasso
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(50, 10, size=(5000, 20))
    >>> y = 0.2 * (X[:, 0] - X[:, 3]) + rng.logistic(size=5000) > 0
    >>> model = PrivateLogisticLasso(epsilon=1, delta=1e-6, feature_bounds=(0, 200)).fit(X, y)
    >>> bool(model.privacy_.holds and model.score(X, y) > 0.75)
    True
    """

    rows_per_unit: int | None = None  # type: ignore[misc]
