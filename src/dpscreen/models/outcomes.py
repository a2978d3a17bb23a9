"""Binary outcomes: two declared classes, and targets as 0 and 1.

The classes are a declaration, never learnt from rows. A target that holds anything else is refused
before a budget is booked, in words that repeat no label.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dpscreen._core.arrays import AnyArray, Array, Integers
from dpscreen._core.messages import message

STRANGER = 2.0
"""What stands for a label that is neither class."""


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
        raise ValueError(message("classes.two"))
    return labels


def as_outcomes(y: Any, classes: AnyArray) -> Any:
    """Return 1 for the second class, 0 for the first and `STRANGER` for any other label.

    Lazily where the target is Dask's. Numbers that are not finite stay as they are, for anyone who
    checks the rows to say so.
    """
    if y is None:
        return None
    if hasattr(y, "map_blocks"):
        return y.map_blocks(_outcomes_of_part, classes=classes, dtype=np.float64)
    if hasattr(y, "map_partitions"):
        meta = ("outcome", np.float64)
        return y.map_partitions(_outcomes_of_part, classes=classes, meta=meta)
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
    listed = []
    for label in labels.ravel().tolist():
        try:
            listed.append(places.get(label, STRANGER))
        except TypeError:  # what cannot be looked up is no label
            listed.append(STRANGER)
    return np.array(listed, dtype=np.float64).reshape(labels.shape)


def _outcomes_of_part(part: Any, classes: AnyArray) -> Any:
    """Return the outcomes of a partition without raising: a worker's log would show the cells."""
    try:
        found = as_outcomes(part, classes)
    except Exception:
        found = np.full(np.shape(part), STRANGER)
    if not hasattr(part, "index"):
        return found
    import pandas as pd

    return pd.Series(found, index=part.index, name="outcome", dtype=np.float64)


def strangers(y: Array) -> Integers:
    """Return how many targets are neither 0 nor 1."""
    return np.array([np.count_nonzero((y != 0) & (y != 1))], dtype=np.int64)
