"""A fit that has booked its budget ends with a model, whatever its numbers do.

What is released is held at once, as a whole model in the user's units: at first a constant from the
declared bounds, then one at the released centre, then the path, then all coefficients. Where what
follows fails numerically, the last of these stays, and says so. All code that computes on released
numbers runs in `PrivateEstimator._deliver`, and nowhere else is such a failure caught
(docs/theory/mechanisms.md, Lemma 7: whether it fails is a function of released numbers).
"""

from __future__ import annotations

from dataclasses import dataclass

from dpscreen._core.messages import message
from dpscreen._core.words import plain
from dpscreen.models.refusal import TableRefused
from dpscreen.privacy import BudgetRefused, LedgerProblem
from dpscreen.privacy.replay import Diverged
from dpscreen.rows.source import RowsLost
from dpscreen.tables.declaration import DataError

START, CENTRE, PATH, MODEL = "start", "centre", "path", "model"

PASSED_ON = (
    *(RowsLost, DataError, OSError, MemoryError, LedgerProblem, BudgetRefused, Diverged),
    TableRefused,
)
"""Failures of files, clusters, ledgers and memory: no function of released numbers. A
refused table is raised before the rest is booked."""


@dataclass(frozen=True)
class BoundsNote:
    """A column, or the target if None, most of whose rows seem to share one value.

    It is the lower or upper `end` of the declared bounds; if None, no variation was detected.
    """

    column: str | None
    low: float
    high: float
    end: str | None

    @property
    def name(self) -> str:
        """Return what the column is called in sentences."""
        return "the target" if self.column is None else plain(self.column)

    def __str__(self) -> str:
        at_end = f"released centre at the {self.end} end"
        found = "no variation detected" if self.end is None else at_end
        return f"{self.name}: declared ({self.low:g}, {self.high:g}); {found}"


class FallbackWarning(UserWarning):
    """A fit failed numerically after its budget was charged: the model is what it held before."""


def fallback_words(stage: str) -> str:
    """Say what became of a fit that failed numerically."""
    return message("fit.fallback", kept=message(f"fallback.{stage}"))
