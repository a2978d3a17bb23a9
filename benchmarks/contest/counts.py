"""Counts by least squares on their logarithms, and back to means by a private smearing factor.

N. Duan (1983). Smearing estimate: a nonparametric retransformation method. JASA 78, 605-610.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpscreen.planning.methods import FitRequest, estimator
from dpscreen.privacy import ZCDP, Accountant, Budget, Noise
from dpscreen.privacy.accountant import release_sums

Array = Any
SMEARING = Fraction(1, 20)
"""The share of ρ for the smearing factor."""

REACH = 3.0
"""Residuals above so many of their standard deviations count for that."""

FINE = 2**20


@dataclass(frozen=True, eq=False)
class Smeared:
    """Means of outcomes: s·exp(line) − 1, with the factor s of the residuals."""

    line: Any
    factor: float

    def predict(self, X: Array) -> Array:
        return np.maximum(self.factor * np.exp(self.line.predict(X)) - 1, 0.0)


def fit_smeared(
    method: str,
    X: Array,
    y: Array,
    bounds: Array,
    target_bounds: tuple[float, float],
    budget: Budget,
    noise: Noise,
) -> Smeared:
    """Fit ln(1 + y) by a method of the register; release the mean of exp(residual), clipped.

    Without a released scale of the residuals they count up to the declared bounds.
    """
    whole = ZCDP.within(budget)
    share = whole * (1 - SMEARING)
    part = Budget(share.epsilon(budget.delta) * (1 - 1e-9), budget.delta)
    low, high = (math.log1p(one) for one in target_bounds)
    request = FitRequest(part, bounds, (low, high), n_rows=len(y), random_state=noise)
    line = estimator(method, request).fit(X, np.log1p(y))
    residuals = np.clip(np.log1p(y), low, high) - line.predict(X)
    most = math.exp(REACH * min(float(line.scale_), (high - low) / REACH))
    levels = np.trunc(np.minimum(np.exp(residuals), most) / most * FINE).astype(np.int64)
    cost = whole * SMEARING
    found, _ = release_sums(
        Accountant(noise, limit=ZCDP(whole.rho - ZCDP.within(part).rho)),
        np.array([levels.sum()]),
        units_per_one=FINE,
        change=1.0,
        cost=cost,
        purpose="smearing factor",
    )
    factor = max(float(found[0]) * most / len(y), 1.0)  # Jensen: at least 1 for centred residuals
    return Smeared(line, factor)
