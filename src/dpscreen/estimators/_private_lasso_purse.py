"""How PrivateLasso pays: shares of one budget, and single numbers bought with them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpscreen.estimators._private_lasso_rules import Regime
from dpscreen.privacy import ZCDP, Accountant, DiscreteGaussian

FINE = 2**10
"""Into how many units one row's largest change of a sum is divided before noise is added."""


@dataclass(frozen=True)
class Purse:
    """One accountant, its limit, and the public numbers that say how far it reaches.

    The limit is for one unit. What is handed out are costs for one row, of which a unit with k rows
    pays k² times as much (Lemma 18).
    """

    accountant: Accountant
    limit: ZCDP
    regime: Regime

    @property
    def remaining(self) -> ZCDP:
        """Return what has not been spent, for one row."""
        left = ZCDP(self.limit.rho - self.accountant.spent.rho)
        return left / self.accountant.rows_per_unit**2

    def share(self, share: float) -> ZCDP:
        """Return a share of the whole budget, for one row."""
        return self.limit * Fraction(share) / self.accountant.rows_per_unit**2

    def release_sum(
        self, total: int, *, most: int, bound: float, cost: ZCDP, purpose: str
    ) -> tuple[float, float]:
        """Release a sum of whole numbers, each at most `most` in size, and its noise's deviation.

        Both are returned in units in which `most` is `bound`. The sum is first floored to whole
        numbers of most/2^10, which one row still moves by at most 2^10 (Lemma 13).
        """
        mechanism = DiscreteGaussian.of_cost(cost, sensitivity=bound, unit=bound / FINE)
        coarse = np.array([FINE * total // most], dtype=np.int64)
        noisy = self.accountant.release(mechanism, coarse, purpose=purpose)
        return float(noisy[0]), mechanism.scale
