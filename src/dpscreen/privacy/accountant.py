"""The only door through which a private number becomes a released one.

Every release is booked before its noise exists, and one that the limit does not cover is refused.
What happened (uses) is kept apart from what it costs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, TypeVar

from dpscreen.privacy.budget import ZCDP
from dpscreen.privacy.mechanisms import Mechanism
from dpscreen.privacy.noise import Noise
from dpscreen.privacy.unit import ROW, Unit

Released = TypeVar("Released")


class BudgetExceeded(RuntimeError):
    """A release was asked for that the budget does not cover. Nothing was released."""


@dataclass(frozen=True)
class Use:
    """A mechanism, what it was used for, and how often."""

    purpose: str
    mechanism: Mechanism[object]
    count: int


class Accountant:
    """Books and makes releases under one zCDP limit (Lemma 4: costs add, adaptively).

    `limit=None` is the published calibration: uses are listed, but no cost is claimed, because the
    sensitivities they rest on are wrong.

    The limit is for one unit. Mechanisms state what one row costs; the k rows of a unit move
    whatever they are given k times as far, so a unit costs k² as much (Lemma 18).
    """

    def __init__(self, noise: Noise, *, limit: ZCDP | None, unit: Unit = ROW) -> None:
        self.noise = noise
        self.limit = limit
        self.unit = unit
        self.spent = ZCDP.free()
        self._counts: Counter[tuple[str, Mechanism[object]]] = Counter()

    def release(self, mechanism: Mechanism[Released], values: Any, *, purpose: str) -> Released:
        """Book one call of the mechanism, then make it."""
        if self.limit is not None:
            self._charge(mechanism.cost * self.rows_per_unit**2)
        self._counts[purpose, mechanism] += 1
        return mechanism(values, self.noise)

    @property
    def rows_per_unit(self) -> int:
        """Return k, the most rows that one unit has."""
        return self.unit.rows_per_unit

    @property
    def uses(self) -> tuple[Use, ...]:
        """List what has been released so far, in order of first use."""
        return tuple(Use(purpose, of, count) for (purpose, of), count in self._counts.items())

    def _charge(self, cost: ZCDP) -> None:
        total = self.spent + cost
        if self.limit is not None and total > self.limit:
            raise BudgetExceeded(
                f"a release of rho={float(cost):.6g} does not fit: "
                f"{float(self.spent):.6g} of {float(self.limit):.6g} is spent."
            )
        self.spent = total
