"""Logistic regression: models of binary outcomes, sparse, as a table, or loaded from a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import expit, log_expit
from sklearn.base import ClassifierMixin

from dpscreen._core.arrays import AnyArray, Array
from dpscreen.families import BINOMIAL, Family
from dpscreen.models.intake import scored_rows
from dpscreen.models.loaded import LOADED, LoadedModel
from dpscreen.models.private_lasso import SparseModel
from dpscreen.models.private_ols import TableEstimator
from dpscreen.models.release import Release
from dpscreen.models.table_model import TableModel

if TYPE_CHECKING:
    import pandas as pd


class OutcomeModel(ClassifierMixin):
    """What a fitted model of outcomes can do beside what every linear model can."""

    family: ClassVar[Family] = BINOMIAL
    classes_: AnyArray

    def decision_function(self, X: Any) -> Array:
        """Return the log-odds of the second class: X @ coef_[0] + intercept_, X as in `predict`."""
        found: Array = self._line(X)
        return found

    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of both classes for each row of X, in their order."""
        log_odds = self.decision_function(X)
        return np.column_stack((expit(-log_odds), expit(log_odds)))

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithms of the probabilities."""
        log_odds = self.decision_function(X)
        return np.column_stack((log_expit(-log_odds), log_expit(log_odds)))

    def predict(self, X: Any) -> AnyArray:
        """Return the likelier class for each row of X."""
        likelier = (self.decision_function(X) > 0).astype(np.int64)
        return np.asarray(self.classes_[likelier])

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the share of rows whose class is predicted, as `PrivateLasso.score` does R²."""
        from sklearn.metrics import accuracy_score  # slow to import

        target, kept, weight = scored_rows(self, X, y, sample_weight)
        labels = target if y is not None else self.classes_[target.astype(np.int64)]
        return float(accuracy_score(labels, self.predict(X)[kept], sample_weight=weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True  # at the ε of scikit-learn's checks, noise wins
        tags.regressor_tags = None
        return tags


class OddsTableModel(TableModel):
    """Results of a regression table of log-odds."""

    def odds_ratios(self, level: float = 0.95) -> pd.DataFrame:
        """Return by what the odds are multiplied with a step of 1 of each feature.

        Columns are odds_ratio and, as in `conf_int(level)`, low and high.
        """
        return self._ratios("odds_ratio", level)


class LoadedClassifier(OutcomeModel, LoadedModel):  # type: ignore[misc]
    """A model of outcomes from a file: `LoadedModel` with `classes_` as `PrivateLogisticLasso`."""

    def _take(self, release: Release) -> None:
        super()._take(release)
        self.coef_, self.intercept_ = self.coef_[None, :], np.array([self.intercept_])
        self.classes_ = np.array(release.classes)


class LoadedOddsTable(OddsTableModel, LoadedClassifier):  # type: ignore[misc]
    """A table of log-odds from a file, with all results of `PrivateLogit`."""


LOADED[BINOMIAL.name] = LoadedClassifier, LoadedOddsTable


@dataclass(kw_only=True, repr=False, eq=False)
class OutcomeEstimator(OutcomeModel):
    """What private models of binary outcomes share: classes that are declared, and no bounds."""

    classes: Any = (0, 1)
    target_bounds: ClassVar[Any] = (0.0, 1.0)


@dataclass(kw_only=True, repr=False, eq=False)
class PrivateLogisticLasso(OutcomeEstimator, SparseModel):  # type: ignore[misc]
    """Sparse logistic regression under differential privacy that needs a budget and bounds only.

    `PrivateLasso` for binary outcomes: the same engine with residuals that are outcomes less
    probabilities, which lie in [−1, 1] whatever the coefficients (docs/theory/exactness.md, Lemma
    30, docs/theory/engine.md).

    Parameters
    ----------
    epsilon, delta, feature_bounds, categories, n_iter, max_features, standardize, inference, \
n_rows, quality, rows_per_unit, random_state, schema
        As in `PrivateLasso`; intervals are of log-odds, by the table of `PrivateLogit`.
    classes : pair of labels, default=(0, 1)
        The two classes of the target, the reference first: probabilities and odds ratios are those
        of the second, in whatever order labels would sort. Numbers, booleans or texts. Declared,
        never learnt from rows; a target that holds anything else is refused. With a `schema` they
        are its target's; rows that were read before have 0 and 1. scikit-learn's scorers of
        probabilities ("roc_auc", "neg_log_loss") take the label that sorts last for the second:
        where it is not, compare `predict_proba` with y yourself.
    fit_intercept : bool, default=True
        Estimate an intercept inside the same budget. Without it, the probability is ½ where all
        features are at the centres that were released, or in the middle of their bounds where none
        were.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The declared classes, as declared.
    coef_, intercept_ : ndarray of shape (1, n_features), ndarray of shape (1,)
        The released model of the log-odds of the second class, in the user's units.
    quality_ : OutcomeQuality
        AUC and deviance, on the rows that `PrivateLasso` measures R² on. Print it.
    inference_ : Inference
        Only with ``inference="split"``, of log-odds: their exponentials are odds ratios, those of
        the model of these features alone. Print it.
    path_, selected_, q_values_, feature_bounds_, n_iter_, n_rows_, fallback_, bounds_notes_, \
privacy_, n_features_in_, feature_names_in_, feature_names_out_, columns_
        As in `PrivateLasso`.

    Notes
    -----
    As of `PrivateLasso`. `PrivateLogit` has a table of all features with intervals, from all rows,
    where they are few enough for one. Where classes are perfectly separable, weights stay finite,
    as the steps are. Expect no useful model where the rarer class has fewer than some hundred rows.

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
    quality_ : OutcomeQuality
        AUC and deviance, each with a 95 % interval or not known. Print it.
    params, bse, tvalues, pvalues, table_, inference_, nobs, feature_bounds_, n_iter_, n_rows_, \
fallback_, bounds_notes_, privacy_, n_features_in_, feature_names_in_, feature_names_out_, columns_
        As in `PrivateOLS`, of log-odds. `odds_ratios` has their exponentials.

    Notes
    -----
    As of `PrivateOLS`. Where rounds did not settle no feature has an interval.

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
