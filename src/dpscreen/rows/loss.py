"""What a row's residual is: the one place that knows which loss is fitted.

A loss is a value that holds one loop over rows, from fits and targets to residuals on the lattice.
The loop is plain Python, compiled by numba when it is first needed (so coverage counts no line of
it). Steps, sums and bounds are the same for every loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Context, Decimal
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
    (docs/theory/exactness.md, Lemma 8). A module must hold it under its name, so that its compiled
    form can be kept on disk and workers can find it.

    `bound` is the largest |residual| whatever the fitted value; without one it takes a clip.
    `curvature` is the largest second derivative in the fitted value, which is the same everywhere
    where the loss is `quadratic`; `ExactPoint.curved_gram` and `curved_total` know what it is.
    """

    name: str
    loop: Callable[[Indices | None, Integers, Array, float, float, float, Narrow], None]
    bound: float = math.inf
    curvature: float = 1.0
    quadratic: bool = False

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


def squared_residuals(rows, fit, target, scale, levels_per_unit, most, out):  # pragma: no cover
    """Set out[a] to the residual scale·fit[i] − target[i] in levels, i = rows[a]."""
    for a in range(out.size):
        i = a if rows is None else rows[a]
        level = np.rint((scale * np.float64(fit[i]) - target[i]) * levels_per_unit)
        out[a] = np.int16(min(max(-most, level), most))  # in this order a NaN is clipped too


SQUARED = Loss("squared", squared_residuals, quadratic=True)
"""Least squares."""


# --- binary outcomes ------------------------------------------------------------------------------

SATURATED = 16
"""Log-odds beyond which a probability stays as it is: it is within 2^−23 of 0 or 1 there."""

CELLS_PER_UNIT = 64
EXACT = Context(prec=60)
"""Decimals, so that every machine has the same tables: a library's exponential may differ."""


def _powers(last: int) -> Iterator[Decimal]:
    """Yield e^0, e^(−1/64), …, e^−last."""
    decay, power = EXACT.exp(EXACT.divide(Decimal(-1), CELLS_PER_UNIT)), Decimal(1)
    for _ in range(last * CELLS_PER_UNIT + 1):
        yield power
        power = EXACT.multiply(power, decay)


PROBABILITIES = 2.0**-52 * np.array(
    [round(EXACT.divide(2**52, EXACT.add(1, power))) for power in _powers(SATURATED)]
)
"""σ(0), σ(1/64), …, σ(16), each rounded to 2^−52."""
RISES = np.append(np.diff(PROBABILITIES), 0.0)


def logistic_residuals(rows, fit, target, scale, levels_per_unit, most, out):  # pragma: no cover
    """Set out[a] to σ(scale·fit[i]) − target[i] in levels, i = rows[a]; σ by lines in a table.

    (docs/theory/exactness.md, Lemma 30)
    """
    for a in range(out.size):
        i = a if rows is None else rows[a]
        log_odds = scale * np.float64(fit[i])
        place = min(max(0.0, abs(log_odds)), SATURATED) * CELLS_PER_UNIT
        cell = np.int64(place)
        probability = PROBABILITIES[cell] + (place - np.float64(cell)) * RISES[cell]
        if log_odds < 0:
            probability = 1.0 - probability
        level = np.rint((probability - target[i]) * levels_per_unit)
        out[a] = np.int16(min(max(-most, level), most))


LOGISTIC = Loss("logistic", logistic_residuals, bound=1.0, curvature=0.25)
"""Outcomes of 0 and 1, whose log-odds are fitted. A residual is a probability less the outcome."""


# --- non-negative outcomes ------------------------------------------------------------------------

FADED = 32
"""Means stay as they are below e^−32 of the largest one."""

POWERS = 2.0**-52 * np.array([int(EXACT.multiply(2**52, power)) for power in _powers(FADED)])
"""e^0, e^(−1/64), …, e^(−32), each rounded to 2^−52."""
FALLS = np.append(np.diff(POWERS), 0.0)


def exponential_residuals(rows, fit, target, scale, levels_per_unit, most, out):  # pragma: no cover
    """Set out[a] to e^min(scale·fit[i], 0) − target[i] in levels, i = rows[a]; by lines in a table.

    (docs/theory/exactness.md, Lemma 90)
    """
    for a in range(out.size):
        i = a if rows is None else rows[a]
        place = min(max(0.0, -(scale * np.float64(fit[i]))), FADED) * CELLS_PER_UNIT
        cell = np.int64(place)
        mean = POWERS[cell] + (place - np.float64(cell)) * FALLS[cell]
        level = np.rint((mean - target[i]) * levels_per_unit)
        out[a] = np.int16(min(max(-most, level), most))


EXPONENTIAL = Loss("exponential", exponential_residuals, bound=1.0)
"""Outcomes from 0 to 1, their declared upper bound, the logarithm of whose mean is fitted.

A residual is the mean less the outcome; the curvature is the mean, and its root the mean at half of
the fitted value.
"""
