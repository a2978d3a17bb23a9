"""Binary outcomes: two declared classes, probabilities, and scikit-learn's contract.

The classes are a declaration, never learnt from rows. A target that holds anything else is refused
before a budget is booked, in words that repeat no label.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, log_expit
from sklearn.base import ClassifierMixin

from dpscreen._core.arrays import AnyArray, Array, Integers
from dpscreen.models.intake import scored_rows
from dpscreen.rows.source import RowSource
from dpscreen.solvers.family import BINOMIAL, Family

STRANGER = 2.0
"""What stands for a label that is neither class."""

NOT_DECLARED = (
    "Unknown label type: y must hold the two declared classes and nothing else, and holds others, "
    "or nothing, in some row. Only binary classification is supported. Declare the labels in "
    "classes=; 0 and 1 are what is declared by default, and what a schema makes of a target."
)


def declared_classes(given: Any) -> AnyArray:
    """Return two different labels in the order that was declared; refuse anything else."""
    try:
        pair = list(given)
        labels = np.asarray(pair)
    except (TypeError, ValueError):
        pair, labels = [], np.array([])
    alike = len({isinstance(label, str) for label in pair}) == 1 and not isinstance(given, str)
    finite = labels.dtype.kind != "f" or bool(np.isfinite(labels).all())
    known = labels.dtype.kind in "biufU" and labels.shape == (2,) and labels[0] != labels[1]
    if not (alike and finite and known):
        raise ValueError("classes must be two different labels: texts, numbers or truths.")
    return labels


def as_outcomes(y: Any, classes: AnyArray) -> Any:
    """Return 1 for the second class, 0 for the first and `STRANGER` for any other label.

    Lazily where the target is Dask's. Numbers that are not finite stay as they are, for anyone who
    checks the rows to say so.
    """
    if y is None:
        return None
    work = partial(_outcomes_of_part, classes=classes)
    if hasattr(y, "map_blocks"):
        return y.map_blocks(work, dtype=np.float64)
    if hasattr(y, "map_partitions"):
        return y.map_partitions(partial(_series_part, work=work), meta=("outcome", np.float64))
    return _outcomes(y, classes)


def _outcomes_of_part(part: Any, classes: AnyArray) -> Array:
    """Return the outcomes of a partition without raising: a worker's log would show the cells."""
    try:
        return _outcomes(part, classes)
    except Exception:
        return np.full(np.shape(part), STRANGER)


def _series_part(part: Any, work: Callable[[Any], Array]) -> Any:
    import pandas as pd

    return pd.Series(work(part), index=part.index, name="outcome", dtype=np.float64)


def _outcomes(y: Any, classes: AnyArray) -> Array:
    labels = np.asarray(y)
    numeric = classes.dtype.kind in "biuf"
    if labels.dtype.kind in "biuf":
        found = np.full(labels.shape, STRANGER)
        if labels.dtype.kind == "f":
            found = np.where(np.isfinite(labels), found, labels)
        for place, label in enumerate(classes if numeric else ()):
            found[labels == label] = place
        return found
    places = {label: float(place) for place, label in enumerate(classes.tolist())}
    listed = [_place(label, places) for label in labels.ravel().tolist()]
    return np.array(listed, dtype=np.float64).reshape(labels.shape)


def _place(label: Any, places: dict[Any, float]) -> float:
    try:
        return places.get(label, STRANGER)
    except TypeError:  # what cannot be looked up is no label
        return STRANGER


def strangers(y: Array) -> Integers:
    """Return how many targets are neither 0 nor 1."""
    return np.array([np.count_nonzero((y != 0) & (y != 1))], dtype=np.int64)


def refuse_strangers(rows: RowSource) -> RowSource:
    """Return the rows, or refuse targets that are neither class; nothing is booked yet."""
    if rows.target_total(strangers)[0]:
        rows.close()  # nobody else will: a cluster would keep them
        raise ValueError(NOT_DECLARED)
    return rows


class OutcomeModel(ClassifierMixin):
    """What a fitted model of outcomes can do beside what every linear model can."""

    family: ClassVar[Family] = BINOMIAL
    classes_: AnyArray

    def _line_state(self, coef: Array, intercept: float) -> dict[str, Any]:
        return {"coef_": coef[None, :], "intercept_": np.array([intercept])}

    def decision_function(self, X: Any) -> Array:
        """Return the log-odds of the second class for each row of X.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Rows to predict for, in the units of the rows that were fitted. They are clipped to
            `feature_bounds_`, as the fitted rows were.

        Returns
        -------
        ndarray of shape (n_samples,)
            X @ coef_[0] + intercept_.
        """
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
        """Return the share of rows whose class is predicted. Of private rows it is no release.

        Parameters
        ----------
        X, y, sample_weight
            As in `PrivateLasso.score`.

        Returns
        -------
        float
            The accuracy, from 0 to 1.
        """
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
