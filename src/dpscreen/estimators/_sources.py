"""What a user may hand to `fit`, made into private rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from dpscreen.estimators import _checks as check
from dpscreen.estimators._rows import ArrayRows, RowSource

Array = NDArray[np.float64]


def private_rows(estimator: BaseEstimator, X: Any, y: Any) -> RowSource:
    """Return X and y as private rows, or say what is wrong without quoting them."""
    return ArrayRows(*check.rows_and_target(estimator, X, y))


def in_memory(rows: RowSource) -> tuple[Array, Array]:
    """Return X and y of rows that are in memory."""
    if not isinstance(rows, ArrayRows):
        raise ValueError(
            "the published calibration sums floats and needs all rows in memory, as an array or a "
            "data frame."
        )
    return rows.X, rows.y
