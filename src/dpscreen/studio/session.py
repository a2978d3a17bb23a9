"""One table, one person, one run of the studio: all that is kept, in memory, between requests."""

from __future__ import annotations

import secrets
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpscreen._core.files import file_state
from dpscreen.planning.setting import Setting
from dpscreen.studio.draft import Draft
from dpscreen.studio.questions import CHOICES
from dpscreen.studio.runs import ReleaseRun, Simulations
from dpscreen.studio.shelf import Shelf
from dpscreen.studio.work import CHANGED, FitOrder, ReleaseOrder
from dpscreen.tables.declaration import MOST_UNREADABLE, DataError

if TYPE_CHECKING:
    from dpscreen.privacy.ledger import PrivacyLedger

SPENT = (
    "What was booked stays booked: epsilon {epsilon} at delta {delta:g}. There is no model, "
    "and nothing was kept of the attempt."
)
NOT_SPENT = "Nothing was booked: the budget is unchanged, and nothing was kept of the attempt."
STALE = "The question or the budget has changed, perhaps in another tab: check them again."


class Problems(Exception):
    """What keeps a step from being taken, in words for the page."""

    def __init__(self, *messages: str) -> None:
        super().__init__(*messages)
        self.messages = messages


class Session:
    """The state behind the pages."""

    def __init__(self, table: Path, shelf: Shelf, **written: Any) -> None:
        self.table, self.shelf = table.absolute(), shelf
        self.state = file_state(self.table)
        self.most_unreadable: float | None = MOST_UNREADABLE
        self.draft = Draft.of(self.table, shelf.schema_file, **written)
        self.simulations = Simulations()
        self.run: ReleaseRun | None = None
        self.lock = threading.RLock()
        self._ticket: tuple[str, str] | None = None
        self._used: set[str] = set()

    @property
    def changed(self) -> bool:
        """Whether the table is no longer the file that was declared; no row is looked at."""
        return file_state(self.table) != self.state

    def close(self) -> None:
        """End what is under way; a release that is not finished is given up."""
        if self.run is not None:
            self.run.cancel()
            self._tidy()
        self.simulations.close()
        self.shelf.close()

    def said(self, problem: object) -> str:
        """Return a message as a sentence, without the paths of this machine."""
        text = str(problem)
        for path in (self.table, self.shelf.ledger, self.shelf.folder):
            text = text.replace(str(path), path.name).replace(repr(str(path)), path.name)
        return text[:1].upper() + text[1:]

    # --- the budget -----------------------------------------------------------------------------

    @property
    def ledger(self) -> PrivacyLedger | None:
        """Return the ledger, verified; None if none is granted yet."""
        if not self.shelf.ledger.exists():
            return None
        from dpscreen.privacy.ledger import LedgerProblem, PrivacyLedger

        try:
            return PrivacyLedger(self.shelf.ledger, timeout=5)
        except LedgerProblem as problem:
            raise Problems(self.said(problem)) from None

    @property
    def granted(self) -> PrivacyLedger:
        """Return the ledger; raise `Problems` if none is granted yet."""
        if (found := self.ledger) is None:
            raise Problems("There is no ledger yet: grant a budget first.")
        return found

    def grant(self, dataset: str, epsilon: float, delta: float) -> None:
        """Make the ledger: once, and for good."""
        from dpscreen.privacy.ledger import LedgerProblem, PrivacyLedger

        try:
            PrivacyLedger.create(
                self.shelf.ledger, dataset=dataset.strip(), epsilon=epsilon, delta=delta
            )
        except (LedgerProblem, ValueError) as problem:
            raise Problems(self.said(problem)) from None

    def delta(self, ledger: PrivacyLedger) -> float:
        """Return the δ of a release: the ledger's, unless another is typed."""
        return self.draft.delta or ledger.budget.delta

    # --- a release ------------------------------------------------------------------------------

    def order(self, ledger: PrivacyLedger) -> FitOrder:
        """Return the order of a fit; raise `Problems` where something is missing."""
        draft = self.draft
        try:
            schema = draft.checked()
        except DataError as problem:
            raise Problems(self.said(problem)) from None
        return FitOrder(
            schema.to_dict(),
            draft.method,
            draft.epsilon,
            self.delta(ledger),
            n_rows=draft.rows_used,
            inference="split" if draft.intervals else None,
            settings=draft.settings,
        )

    def obstacles(self, ledger: PrivacyLedger) -> list[str]:
        """Return why the ledger would refuse a release, or the table is no longer the same."""
        from dpscreen.planning.fitting import Booking, usual_purpose
        from dpscreen.privacy import Budget, BudgetExceeded, LedgerProblem

        try:
            schema = self.draft.checked()
            booking = Booking.of(ledger, schema, usual_purpose(schema, self.draft.method))
            refusal = booking.shortfall(Budget(self.draft.epsilon, self.delta(ledger)))
        except (DataError, LedgerProblem, BudgetExceeded, ValueError) as problem:
            refusal = self.said(problem)
        return [text for text in (CHANGED if self.changed else None, refusal) if text]

    def ticket(self) -> str:
        """Return the ticket of a release: one for all tabs, until it is used."""
        with self.lock:
            wanted = self.draft.fingerprint
            if self._ticket is None or self._ticket[1] != wanted or self._ticket[0] in self._used:
                self._ticket = secrets.token_hex(8), wanted
            return self._ticket[0]

    def release(self, ticket: str) -> bool:
        """Start the release that the ticket is for: once. False if it was started before."""
        with self.lock:
            if ticket in self._used:
                return False
            ledger = self.ledger
            if ledger is None or self._ticket != (ticket, self.draft.fingerprint):
                raise Problems(STALE)
            if self.run is not None and self.run.running:
                raise Problems("A release is running: wait for it, or cancel it.")
            if obstacles := self.obstacles(ledger):
                raise Problems(*obstacles)
            places = self.table, self.state, self.shelf.folder, self.shelf.ledger
            order = ReleaseOrder(self.order(ledger), *places, ticket, self.most_unreadable)
            self._used.add(ticket)
            self.run = ReleaseRun(order)
            return True

    def cancel(self) -> None:
        """Cancel what is under way."""
        with self.lock:
            if self.run is not None:
                self.run.cancel()
                self._tidy()

    def ended(self) -> str:
        """Say how the last release ended, and what it spent: by the ledger, not by the process."""
        run = self.run
        if run is None:
            return ""
        self._tidy()
        if run.outcome == "done" or self.shelf.find(run.ticket):
            return "The release is finished."
        words = "Cancelled." if run.outcome == "cancelled" else self.said(run.message)
        if run.unsaved is not None:
            return words
        from dpscreen.planning.fitting import booked_epsilon
        from dpscreen.privacy import ZCDP

        entries = () if self.ledger is None else self.ledger.entries()
        booked = sum((one.cost for one in entries if run.ticket in one.detail), ZCDP.free())
        if not booked.rho:
            return f"{words} {NOT_SPENT}"
        delta = run.order.fit.delta  # of a refused table no more than its count was booked
        return f"{words} {SPENT.format(epsilon=booked_epsilon(booked, delta), delta=delta)}"

    def _tidy(self) -> None:
        if self.run is not None and not self.run.running:
            self.shelf.clear()

    # --- what is simulated ----------------------------------------------------------------------

    def setting(self, delta: float) -> Setting | None:
        """Return what is public of the question, for the curve; None without a number of rows."""
        draft, width = self.draft, self.draft.n_features
        if draft.rows is None or width is None:
            return None
        choice = CHOICES[draft.method]
        return Setting(
            *(draft.rows, width, draft.epsilon, delta),
            family=choice.family.name,
            rate=draft.rate if choice.family.n_classes else None,
            rows_per_unit=draft.block.get("rows_per_unit") or 1,
            split=draft.intervals,
            table=choice.table,
            interest=tuple(range(len(draft.settings.get("interest", ())))),
        )
