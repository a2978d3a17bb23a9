"""One fit of a table: requested, charged to the ledger, fitted, and reported without any data.

The command line and the studio both go through here, so that neither can book later, read earlier
or disclose more than the other.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dpscreen._core.messages import message
from dpscreen._core.words import rounded_up, shortened

if TYPE_CHECKING:
    from collections.abc import Mapping, Set

    from dpscreen.planning.methods import FitRequest
    from dpscreen.privacy.budget import ZCDP, Budget
    from dpscreen.privacy.ledger import PrivacyLedger
    from dpscreen.tables.schema import TableSchema


class FitFailed(Exception):
    """Why a fit gave nothing, in words that hold no data."""


class FitRefused(FitFailed):
    """A regression table that is impossible at its budget: little was charged, or nothing."""


@dataclass
class Booking:
    """A ledger that states the purpose of reservations, and records what was booked."""

    ledger: PrivacyLedger
    purpose: str
    unit: str
    mark: str = ""
    booked: ZCDP | None = field(default=None, init=False)

    @classmethod
    def of(
        cls, ledger: PrivacyLedger, schema: TableSchema, purpose: str, *, mark: str = ""
    ) -> Booking:
        """Return the booking of a fit; `mark` is kept with it, to find it again."""
        from dpscreen.privacy.budget import ROW

        return cls(ledger, purpose, str(schema.privacy_unit or ROW), mark)

    @property
    def row_key(self) -> bytes:
        """The secret under which marks of rows are made."""
        return self.ledger.row_key

    def reserve(self, cost: ZCDP, *, purpose: str, marks: Set[str] = frozenset()) -> object:
        """Book the cost for good, or raise `BudgetRefused`."""
        detail = f"{purpose} {self.mark}".rstrip()
        made = self.ledger.reserve(
            cost, purpose=self.purpose, detail=detail, unit=self.unit, marks=marks
        )
        self.booked = cost if self.booked is None else self.booked + cost
        return made

    def shortfall(self, budget: Budget) -> str | None:
        """Say what is left where the budget does not cover a fit; raise if the unit is wrong."""
        from dpscreen.privacy import ZCDP
        from dpscreen.privacy.ledger.export import affordable_epsilon

        self.ledger.check_unit(self.unit)
        remaining = self.ledger.remaining
        if ZCDP.within(budget) <= remaining:
            return None
        left = affordable_epsilon(remaining, budget.delta)
        asked = {"epsilon": budget.epsilon, "delta": budget.delta}
        return message("fitting.over-budget", left=left, **asked)


def usual_purpose(schema: TableSchema, method: str) -> str:
    """Return the purpose of a fit that a ledger records, unless another one is given."""
    return f"model of {shortened(schema.target, 60)} by {method}"


def request_for(
    schema: TableSchema,
    budget: Budget,
    *,
    n_rows: int | None = None,
    max_features: int | None = None,
    inference: str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> FitRequest:
    """Return the request of a fit to a table with this schema."""
    from dpscreen.planning.methods import FitRequest

    return FitRequest(
        budget,
        schema.feature_bounds,
        schema.target_bounds,
        n_rows=n_rows,
        rows_per_unit=schema.rows_per_unit,
        max_features=max_features,
        inference=inference,
        classes=schema.classes,
        settings=settings or {},
    )


def checked_rows(
    table: Any, schema: TableSchema, proceed: str, most_unreadable: float | None, **watching: Any
) -> Any:
    """Read the rows of a table; raise `FormatFault` if they do not fit its schema.

    That is before anything is booked. `proceed` is the option with which a person fits them
    nevertheless; without `most_unreadable` they are not checked. `watching` is for `rows_of`.
    """
    from dpscreen.tables.check import RowsCheck
    from dpscreen.tables.scan import rows_of

    counts = None if most_unreadable is None else RowsCheck(schema)
    rows = rows_of(table, schema, counts, **watching)
    if counts is not None and most_unreadable is not None:
        report = counts.report(most_unreadable)
        report.stop(message("fitting.proceed", option=proceed))
    return rows


def fit_rows(model: Any, rows: Any, booking: Booking | None) -> tuple[str, ...]:
    """Fit, and let nothing out of a failure but what is known to hold no data.

    Returns our own warnings, once each: other libraries' may hold values. What a ledger raises is
    passed on; all else becomes a `FitFailed`.
    """
    from dpscreen.models import FallbackWarning, TableRefused
    from dpscreen.privacy import BudgetExceeded, LedgerProblem, statement
    from dpscreen.rows.streamed import RowsChanged

    failure, kind, spent = None, FitFailed, ""
    with warnings.catch_warnings(record=True) as noticed:
        warnings.simplefilter("always")
        try:
            model.fit(rows, ledger=booking, check=False)  # `checked_rows` has
        except (BudgetExceeded, LedgerProblem):
            raise
        except TableRefused as refusal:
            failure, kind = str(refusal), FitRefused
        except (ValueError, TypeError, RowsChanged) as error:
            failure = str(error)  # in our own words, which repeat no cell
        except KeyboardInterrupt:
            failure, spent = message("fitting.stopped"), message("fitting.unspent")
        except Exception as error:
            failure = message("fitting.failed", kind=type(error).__name__)
    if failure is not None:  # raised out here so that the original is not even attached
        if kind is not FitRefused and booking is not None and booking.booked is not None:
            epsilon = booked_epsilon(booking.booked, model.delta)
            spent = message("fitting.booked", epsilon=epsilon, delta=model.delta)
        raise kind(f"{failure} {spent}".rstrip())
    kinds = (
        FallbackWarning,
        statement.PublishedCalibrationWarning,
        statement.SeededNoiseWarning,
        statement.WeakDeltaWarning,
    )
    ours = (str(one.message) for one in noticed if issubclass(one.category, kinds))
    return tuple(dict.fromkeys(ours))


def booked_epsilon(cost: ZCDP, delta: float) -> str:
    """Return the ε of what was booked, rounded up; what was booked for ε = 1 is 1, not a hair more.

    Both conversions, from ε and back, are rounded to the safe side.
    """
    return rounded_up(cost.epsilon(delta) * (1 - 1e-8), digits=3)
