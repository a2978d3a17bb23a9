"""What a user may hand to `fit`, made into private rows."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from sklearn.base import BaseEstimator

from dpscreen._core.arrays import Array
from dpscreen.estimators import _checks as check
from dpscreen.estimators._rows import ArrayRows, RowSource
from dpscreen.estimators._sparse_rows import is_sparse, sparse_rows
from dpscreen.estimators._streamed import MappedArrays, StreamedRows
from dpscreen.privacy.unit import ROW, Unit
from dpscreen.regression.lattice import MOST_ROWS

STREAMED_BYTES = 2**28
"""From this size on, an array that is mapped from disk is left there."""


@runtime_checkable
class TableRows(Protocol):
    """Rows of a table, which bring their target along, as `read_rows` returns them."""

    def features_and_target(self) -> tuple[Any, Array]:
        """Return the features, in a frame if they have names, and the target."""


def unit_of_rows(X: Any, told: int | None) -> Unit:
    """Return the unit that a fit is for: what the rows say, or else what the user told, or a row.

    A number that contradicts the rows is refused. Looks at no row.
    """
    carried = getattr(X, "unit", None)  # of a frame, this may be a column
    if not isinstance(carried, Unit):
        return ROW if told is None else Unit(int(told))
    if told not in (None, carried.rows_per_unit):
        raise ValueError(
            f"rows_per_unit={told} is told, but these rows are for {carried}, as their schema "
            "says. Leave rows_per_unit out, or change the schema."
        )
    return carried


def private_rows(estimator: BaseEstimator, X: Any, y: Any) -> RowSource:
    """Return X and y as private rows, or say what is wrong without quoting them."""
    rows = _rows(estimator, X, y)
    if rows.n_rows > MOST_ROWS:
        raise ValueError(f"exact sums hold at most {MOST_ROWS} rows.")
    return rows


def _rows(estimator: BaseEstimator, X: Any, y: Any) -> RowSource:
    if isinstance(X, StreamedRows | TableRows) and y is not None:
        raise ValueError("rows from a file bring their target along; y must be None.")
    if isinstance(X, StreamedRows):
        return _named(estimator, X, X.reader.feature_names)
    if isinstance(X, TableRows):
        X, y = X.features_and_target()
    if is_sparse(X) and getattr(estimator, "_takes_sparse", False):
        return sparse_rows(estimator, X, y)
    if type(X).__module__.split(".")[0].startswith("dask"):
        from dpscreen.estimators._cluster import cluster_rows

        return _named(estimator, *cluster_rows(X, y))
    if _is_mapped(X, y):
        return _named(estimator, StreamedRows(MappedArrays(X, y)), None)
    return ArrayRows(*check.rows_and_target(estimator, X, y))


def in_memory(rows: RowSource) -> tuple[Array, Array]:
    """Return X and y of rows that are in memory."""
    if not isinstance(rows, ArrayRows):
        raise ValueError(
            "the published calibration sums floats and needs all rows in memory, as an array or a "
            "data frame."
        )
    return rows.X, rows.y


def _is_mapped(X: Any, y: Any) -> bool:
    """Whether X is a large table of numbers mapped from disk, with a target beside it."""
    return (
        isinstance(X, np.memmap)
        and X.ndim == 2
        and X.dtype.kind in "iuf"
        and X.nbytes >= STREAMED_BYTES
        and isinstance(y, np.ndarray)
        and y.dtype.kind in "biuf"
        and y.shape == (len(X),)
    )


def _named(estimator: BaseEstimator, rows: RowSource, names: tuple[str, ...] | None) -> RowSource:
    """Tell the estimator what columns there are, as scikit-learn's own check would."""
    estimator.n_features_in_ = rows.n_features
    if names is not None:
        estimator.feature_names_in_ = np.asarray(names, dtype=object)
    if not rows.n_rows:
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
    return rows
