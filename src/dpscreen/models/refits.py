"""Fits of one data object in one process: each spends its budget again, which is said once.

Counted are fits, never rows: by the object that was given, and by the estimator whose clones are
fitted, as a search over settings hands each of them other rows of the same table. Nothing here is
part of the guarantee; a ledger is what keeps count for good.
"""

from __future__ import annotations

import warnings
import weakref
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from dpscreen.privacy import ZCDP


class RefitWarning(UserWarning):
    """The same data were fitted again without a ledger: what they cost adds up."""


@dataclass
class Tally:
    """How often data were fitted, and what that costs together."""

    fits: int = 0
    spent: ZCDP = field(default_factory=lambda: ZCDP(Fraction(0)))
    told: bool = False

    def add(self, cost: ZCDP) -> None:
        """Count one more fit."""
        self.fits, self.spent = self.fits + 1, self.spent + cost

    def tell(self, delta: float) -> None:
        """Warn of the second fit, and of no other."""
        if self.fits < 2 or self.told:
            return
        self.told = True
        warnings.warn(
            f"this data object, or parts of it, was fitted {self.fits} times in this process, and "
            "every fit spends its budget again: together epsilon "
            f"{self.spent.epsilon(delta):.4g} at delta {delta:g} so far. Each further fit, those "
            "of a search over settings among them, adds to it; a ledger keeps count for good.",
            RefitWarning,
            stacklevel=4,
        )


_BY_OBJECT: dict[int, Tally] = {}
_BY_FAMILY: weakref.WeakKeyDictionary[Any, Tally] = weakref.WeakKeyDictionary()


def count_fit(estimator: Any, data: Any, cost: ZCDP, delta: float) -> None:
    """Count a fit that has spent its budget, and warn if it is the second of its data."""
    tally = _BY_OBJECT.get(id(data)) or _BY_FAMILY.get(estimator) or Tally()
    _remember(data, tally)
    tally.add(cost)
    tally.tell(delta)


def join_family(clone: Any, original: Any) -> None:
    """Count fits of a clone with those of its original's other clones."""
    _BY_FAMILY[clone] = _BY_FAMILY.setdefault(original, Tally())


def _remember(data: Any, tally: Tally) -> None:
    """Know the object again as long as it lives; what cannot be watched is not remembered."""
    key = id(data)
    if key in _BY_OBJECT:
        return
    try:
        weakref.finalize(data, _BY_OBJECT.pop, key, None)
    except TypeError:
        return
    _BY_OBJECT[key] = tally
