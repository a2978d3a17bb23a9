"""Public transforms of a column: applied after clipping, so their range is known beforehand.

What a cell becomes must not depend on other cells, not even in its last bit. NumPy may work in
vector lanes, and then a value at the end of an array may be rounded otherwise than one in its
middle. Arrow calls the C library's function for one cell after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpscreen._core.arrays import Array


@dataclass(frozen=True)
class Transform:
    """An increasing function with its inverse, and what a lower bound must be for it."""

    apply: Callable[[Array], Array]
    invert: Callable[[Array], Array]
    allows: Callable[[float], bool]
    needs: str


def _same(values: Array) -> Array:
    return values


def _each(function: str) -> Callable[[Array], Array]:
    """Return one of Arrow's functions of a number, for arrays of any layout."""

    def apply(values: Array) -> Array:
        import pyarrow as pa
        import pyarrow.compute as pc

        done = pc.call_function(function, [pa.array(values, type=pa.float64())])
        return np.array(done.to_numpy(zero_copy_only=False), dtype=np.float64)

    return apply


TRANSFORMS = {
    "none": Transform(_same, _same, lambda _: True, ""),
    "log": Transform(_each("ln"), np.exp, lambda low: low > 0, "above 0"),
    "log1p": Transform(_each("log1p"), np.expm1, lambda low: low > -1, "above -1"),
    "sqrt": Transform(_each("sqrt"), np.square, lambda low: low >= 0, "0 or above"),
}
