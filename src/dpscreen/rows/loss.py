"""What a row's residual is: the one place that knows which loss is fitted.

A loss is a value that holds one loop over rows, from fits and targets to residuals on the lattice.
The loop is plain Python, compiled when it is first needed. Steps, sums and bounds are the same for
every loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from dpscreen._core.arrays import Array, Indices, Integers, Narrow, compiled

Rounding = tuple[float, float, float]
"""The scale of a fit, the levels in one unit of a residual, and how many there are at most."""


@dataclass(frozen=True)
class Loss:
    """What the residual of a row is, as a function of its fitted value and its target.

    `loop(rows, fit, target, *rounding, out)` sets out[a] to the residual of row rows[a] (a, where
    rows is None) in levels, rounded and clipped to ± the most. It looks at that row alone, by IEEE
    operations and tables only, in an order that does not depend on where the row stands
    (docs/exactness.md, Lemma 8). A module must hold it under its name, so that its compiled form
    can be kept on disk and workers can find it.

    `bound` is the largest |residual| whatever the fitted value; without one it takes a clip.
    """

    name: str
    loop: Callable[[Indices | None, Integers, Array, float, float, float, Narrow], None]
    bound: float = math.inf

    def levels(
        self,
        fit: Integers,
        target: Array,
        rounding: Rounding,
        out: Narrow,
        *,
        rows: Indices | None = None,
    ) -> None:
        """Fill `out` with the residuals in levels, of all rows or of some."""
        _compiled(self.loop)(rows, fit, target, *rounding, out)


@cache
def _compiled(loop: Callable[..., None]) -> Any:
    return compiled(loop)


def squared_residuals(  # pragma: no cover - compiled by numba, so no line of it is seen
    rows: Indices | None,
    fit: Integers,
    target: Array,
    scale: float,
    levels_per_unit: float,
    most: float,
    out: Narrow,
) -> None:
    """Set out[a] to the residual scale·fit[i] − target[i] in levels, i = rows[a]."""
    for a in range(out.size):
        i = a if rows is None else rows[a]
        level = np.rint((scale * np.float64(fit[i]) - target[i]) * levels_per_unit)
        out[a] = np.int16(min(max(-most, level), most))  # in this order a NaN is clipped too


SQUARED = Loss("squared", squared_residuals)
"""Least squares."""
