"""A budget that many people and processes share, and that cannot be overspent.

A ledger is a directory: the (ε, δ) that the owner of a data set grants, as ρ of zCDP, and every
reservation made from it. A reservation is on the disk before the noise it is charged for exists, so
that a crash, a kill or a full disk at any moment may lose budget and never gives it back. For the
same reason there is no way to return a reservation: that nothing was learnt from a failed run
cannot be shown to the ledger.

What it does not do:

- The seals show damage and careless edits. Who may write the directory may also write it anew,
  seals and all, and `who` is what the process says it is. Let only those write it who may be
  trusted to.
- A ledger that was put back to an older copy of itself looks like that older ledger. A running
  process notices; a new one cannot, from the ledger alone. Keep the last hash (`head`) elsewhere
  and pass it as `since`. Never restore a ledger from a backup.
- Locks and syncing are those of the file system. Put the directory on a local disk: NFS and other
  network shares, and folders that a cloud service copies, may not keep them.
- It covers releases that reserve from it, not those of other tools, and it trusts that whoever
  reserves uses no more.
- It refuses to count for two kinds of unit, but it trusts what it is given about them.
- It can be read by all who may use it: purposes and names are readable, so keep private values out.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Set
from pathlib import Path
from typing import Protocol, Self

from dpscreen._core.messages import message
from dpscreen.privacy.accountant import BudgetExceeded
from dpscreen.privacy.budget import ROW, ZCDP, Budget, Unit
from dpscreen.privacy.ledger.export import (
    Document,
    affordable_epsilon,
    as_csv,
    as_json,
    at_least,
    at_most,
    document,
)
from dpscreen.privacy.ledger.file import Content, LedgerFile, LedgerProblem
from dpscreen.privacy.ledger.marks import KnownRows, OtherRows
from dpscreen.privacy.ledger.records import (
    UNKNOWN,
    Account,
    Chain,
    Damaged,
    Reservation,
    agreed,
    os_user,
)

__all__ = ["BudgetRefused", "LedgerProblem", "OtherRows", "PrivacyLedger", "WrongUnit", "reserve"]

FilePath = str | os.PathLike[str]
NOTHING = ZCDP.free()


class BudgetRefused(BudgetExceeded):
    """A reservation does not fit into what remains. Nothing was booked."""

    def __init__(self, message: str, *, remaining: ZCDP = NOTHING, epsilon: float = 0.0) -> None:
        super().__init__(message)  # the defaults are for unpickling, which then sets the rest
        self.remaining = remaining
        self.epsilon = epsilon


class WrongUnit(LedgerProblem):
    """A cost is for another kind of unit than the ledger counts. Nothing was booked."""


class Reservable(Protocol):
    """Whatever a cost can be reserved from before it is spent."""

    def reserve(self, cost: ZCDP, *, purpose: str) -> object:
        """Book the cost for good, or raise `BudgetExceeded`."""


def reserve(
    ledger: Reservable | FilePath | None,
    cost: ZCDP,
    *,
    purpose: str,
    unit: Unit = ROW,
    marks: Set[str] = frozenset(),
) -> None:
    """Reserve from a ledger, from the ledger at a path, or, with None, from nothing.

    Call it when all parameters are checked and before any noise is drawn; spend at most `cost`, and
    only if it returns. A `PrivacyLedger` is given the unit; who puts another in front of one, as a
    `Reservable`, passes the unit on. `marks` are of the rows, under the ledger's `row_key`.
    """
    if ledger is None:
        return
    if isinstance(ledger, str | os.PathLike):
        ledger = PrivacyLedger(ledger)
    if isinstance(ledger, PrivacyLedger):
        ledger.reserve(cost, purpose=purpose, unit=str(unit), marks=marks)
    elif marks:
        ledger.reserve(cost, purpose=purpose, marks=marks)  # type: ignore[call-arg]
    else:
        ledger.reserve(cost, purpose=purpose)


class PrivacyLedger:
    """The budget of one data set, in a directory that analysts and processes share.

    Requires    every release of the data set reserves its cost here first
    Guarantees  the releases together cost at most `total` in zCDP, and so keep the granted (ε, δ)

    Opening verifies all that the ledger holds. The object keeps no connection: it can be copied,
    pickled, used from threads and carried through a fork.

    Parameters
    ----------
    path : path-like
        A ledger that `PrivacyLedger.create` or `dpscreen ledger create` made.
    since : str, default=None
        The hash of a reservation, or an earlier `head`. The ledger is refused if it does not hold
        it: it has been put back to an older copy, or is another one.
    timeout : float, default=30
        Seconds to wait while other processes hold the ledger.
    other_rows : bool, default=False
        Whether to book rows that are not those booked before, and to remember them, too. Rows are
        recognised if one column is the same in every cell, in any order.

    Raises
    ------
    LedgerProblem
        The ledger is missing, damaged, altered, not whole or not to be written, or one of its files
        has a second name. `LedgerBusy`, a kind of it, may be tried again.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from dpscreen.privacy.ledger import PrivacyLedger
    >>> from dpscreen.privacy import ZCDP, Budget
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = PrivacyLedger.create(
    ...     Path(folder.name) / "survey.ledger", dataset="survey 2024", epsilon=2, delta=1e-6
    ... )
    >>> booked = ledger.reserve(ZCDP.within(Budget(0.5, 1e-6)), purpose="income model")
    >>> [entry.purpose for entry in ledger.entries()]
    ['income model']
    >>> folder.cleanup()
    """

    def __init__(
        self,
        path: FilePath,
        *,
        since: str | None = None,
        timeout: float = 30.0,
        other_rows: bool = False,
    ) -> None:
        self._file = _file(path, timeout)
        self._other_rows = other_rows
        with self._file.reading() as content:
            content.check_pages()
            self._account = content.account()
            self._chain = Chain.of(self._account)
            self._chain, entries = self._catch_up(content)
        if since is not None and since not in {self._account.seal, *(e.hash for e in entries)}:
            raise LedgerProblem(message("ledger.since", path=str(self.path), since=since))

    @classmethod
    def create(
        cls,
        path: FilePath,
        *,
        dataset: str,
        epsilon: float,
        delta: float,
        note: str = "",
        declared: Mapping[str, str] | None = None,
        who: str | None = None,
        timeout: float = 30.0,
    ) -> Self:
        """Make a new ledger; what exists is never overwritten.

        Parameters
        ----------
        path : path-like
            The directory to make, on a local disk. Only this user may enter it, unless you change
            that.
        dataset : str
            The name of the data set.
        epsilon, delta : float
            The budget of all releases together. It cannot be raised later.
        note : str, default=""
            Anything worth knowing.
        declared : mapping from str to str, default=None
            What identifies this data set: source, version, period, unit of privacy. Name and
            declaration make the `fingerprint`. Declare it from knowledge: a hash of the rows would
            be a release of them without noise. "unit" is compared with what is booked: "one row",
            or anything else for people, households and so on.
        who : str, default=None
            The owner; None for the user that the operating system knows.
        timeout : float, default=30
            As in the class.
        """
        account = Account.open(
            Budget(float(epsilon), float(delta)),
            dataset=dataset,
            declared=declared or {},
            note=note,
            who=os_user() if who is None else who,
        )
        _file(path, timeout).create(account)
        return cls(path, timeout=timeout)

    def reserve(
        self,
        cost: ZCDP,
        *,
        purpose: str,
        who: str | None = None,
        detail: str = "",
        unit: str = UNKNOWN,
        marks: Set[str] = frozenset(),
    ) -> Reservation:
        """Book a cost for good. When this returns, and only then, as much may be spent.

        Parameters
        ----------
        cost : ZCDP
            What the release costs at most, exactly.
        purpose : str
            What it is for: one line, read by all who use the ledger.
        who : str, default=None
            On whose behalf; None for the user that the operating system knows.
        detail : str, default=""
            More on the release, such as a summary of its method and parameters.
        unit : str, default=""
            Whom the cost is for, as a privacy statement's `unit` says it; it is kept at the end of
            `detail`. All that is booked must be for one kind of unit.
        marks : set of str, default=()
            Marks of the rows, under `row_key`.

        Returns
        -------
        Reservation
            What was booked, with its number and hash.

        Raises
        ------
        BudgetRefused
            The cost does not fit. The message and the exception say what remains.
        WrongUnit
            The cost is for another kind of unit than what was declared or booked before.
        OtherRows
            The rows are not those that were booked before.
        LedgerProblem
            The ledger cannot be used, or another process holds it (`LedgerBusy`).
        """
        who = os_user() if who is None else who
        asked = Reservation.ask(cost, purpose=purpose, who=who, detail=detail, unit=unit)
        with self._file.writing() as content:
            chain, _ = self._catch_up(content)
            self._check_unit(chain, asked.unit)
            entry = chain.sealed(asked)
            if chain.spent + entry.cost > self.total:
                raise self.refused(entry.cost, ZCDP(self.total.rho - chain.spent.rho))
            if marks:
                KnownRows.of(self.path).admit(marks, self.path, others=self._other_rows)
            content.append(entry)
        self._chain = chain.then(entry)
        return entry

    def check_unit(self, unit: str) -> None:
        """Raise `WrongUnit` if a cost for this unit could not be booked."""
        self._check_unit(self._current(), unit)

    def entries(self) -> tuple[Reservation, ...]:
        """Read all reservations, in the order in which they were made."""
        return self._history()[1]

    def export(self, form: str) -> str:
        """Return the ledger as text: "json" for all of it, "csv" for the reservations."""
        forms = {"csv": as_csv, "json": as_json}
        if form not in forms:
            raise ValueError(message("ledger.form", given=form))
        return forms[form](self.document())

    def document(self) -> Document:
        """Return the whole ledger, of one moment, as values that JSON can hold."""
        chain, entries = self._history()
        return document(self._account, entries, chain.hash)

    @property
    def row_key(self) -> bytes:
        """The secret under which marks of rows are made; drawn when it is first needed."""
        with self._file.reading():
            return KnownRows.of(self.path).key

    @property
    def path(self) -> Path:
        """Where the ledger lies."""
        return self._file.path

    @property
    def dataset(self) -> str:
        """The name of the data set."""
        return self._account.dataset

    @property
    def declared(self) -> dict[str, str]:
        """What its owner declared about the data set."""
        return dict(self._account.declared)

    @property
    def unit(self) -> str:
        """Whom it counts for, as declared or first booked; nothing if that is not known."""
        return self._current().unit

    @property
    def fingerprint(self) -> str:
        """A hash of the name and the declaration; the data has no part in it."""
        return self._account.fingerprint

    @property
    def note(self) -> str:
        """The owner's note."""
        return self._account.note

    @property
    def budget(self) -> Budget:
        """What the owner granted."""
        return self._account.budget

    @property
    def total(self) -> ZCDP:
        """What was granted, in zCDP."""
        return self._account.total

    @property
    def spent(self) -> ZCDP:
        """What is booked by now, exactly; read from the disk each time."""
        return self._current().spent

    @property
    def remaining(self) -> ZCDP:
        """What could still be reserved at the moment of reading."""
        return ZCDP(self.total.rho - self.spent.rho)

    @property
    def head(self) -> str:
        """The last hash of the chain: keep it elsewhere and give it back as `since`."""
        return self._current().hash

    def __repr__(self) -> str:
        return f"PrivacyLedger({str(self.path)!r})"

    def _current(self) -> Chain:
        with self._file.reading() as content:
            self._chain, _ = self._catch_up(content)
        return self._chain

    def _history(self) -> tuple[Chain, tuple[Reservation, ...]]:
        with self._file.reading() as content:
            self._catch_up(content)
            return _verified(content, Chain.of(self._account))

    def _catch_up(self, content: Content) -> tuple[Chain, tuple[Reservation, ...]]:
        """Verify what was added since this object last looked, and that nothing was taken away."""
        if content.account() != self._account or content.seal(self._chain.number) != (
            self._chain.hash
        ):
            raise Damaged("older")
        chain, entries = _verified(content, self._chain)
        if content.last_number() != chain.number:
            raise Damaged("end")
        if content.count() != chain.number:
            raise Damaged("extra")
        if chain.spent > self.total:
            raise Damaged("overspent")
        return chain, entries

    def _check_unit(self, chain: Chain, unit: str) -> None:
        if agreed(chain.unit, unit) is None:
            named = {"path": str(self.path), "known": chain.unit, "unit": unit}
            raise WrongUnit(message("ledger.other-unit", **named))

    def refused(self, cost: ZCDP, remaining: ZCDP) -> BudgetRefused:
        """Return the error of a reservation that exceeds what remains."""
        delta = self.budget.delta
        epsilon = affordable_epsilon(remaining, delta)
        reason = message(
            "ledger.refused",
            dataset=self.dataset,
            granted=self.budget.epsilon,
            delta=delta,
            **{"epsilon": at_least(cost.epsilon(delta)), "rho": at_least(cost.rho)},
            **{"left": epsilon, "rho_left": at_most(remaining.rho)},
        )
        return BudgetRefused(reason, remaining=remaining, epsilon=epsilon)


def _verified(content: Content, chain: Chain) -> tuple[Chain, tuple[Reservation, ...]]:
    entries = tuple(content.reservations(after=chain.number))
    for entry in entries:
        chain = chain.then(entry)
    return chain, entries


def _file(path: FilePath, timeout: float) -> LedgerFile:
    if not 0 <= timeout <= 86400:
        raise ValueError(message("ledger.timeout", given=timeout))
    return LedgerFile(Path(path).absolute(), timeout)
