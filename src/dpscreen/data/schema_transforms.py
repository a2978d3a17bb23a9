"""Public transforms of a column: applied after clipping, so their range is known beforehand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Transform:
    """An increasing function with its inverse, and what a lower bound must be for it."""

    apply: Callable[[Array], Array]
    invert: Callable[[Array], Array]
    allows: Callable[[float], bool]
    needs: str


def _same(values: Array) -> Array:
    return values


TRANSFORMS = {
    "none": Transform(_same, _same, lambda _: True, ""),
    "log": Transform(np.log, np.exp, lambda low: low > 0, "above 0"),
    "log1p": Transform(np.log1p, np.expm1, lambda low: low > -1, "above -1"),
    "sqrt": Transform(np.sqrt, np.square, lambda low: low >= 0, "0 or above"),
}
