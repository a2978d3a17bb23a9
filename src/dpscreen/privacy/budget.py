"""What a data owner grants: a pair (ε, δ)."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Budget:
    """(ε, δ)-differential privacy for adding or removing one row.

    Adding two budgets is basic composition: ε and δ both add.
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.epsilon) and self.epsilon > 0):
            raise ValueError(f"epsilon must be a positive, finite number; got {self.epsilon!r}.")
        if not 0 < self.delta < 1:
            raise ValueError(f"delta must lie strictly between 0 and 1; got {self.delta!r}.")

    def __add__(self, other: Budget) -> Budget:
        return Budget(self.epsilon + other.epsilon, self.delta + other.delta)

    def split(self, *, share: float, delta_share: float) -> tuple[Budget, Budget]:
        """Return (the rest, the part): the part has `share` of ε and `delta_share` of δ."""
        part = Budget(self.epsilon * share, self.delta * delta_share)
        return Budget(self.epsilon * (1 - share), self.delta * (1 - delta_share)), part
