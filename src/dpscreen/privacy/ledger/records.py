"""What a ledger holds: an account, and reservations that form a chain of hashes.

It counts for one kind of unit, as costs for rows and for people do not add up. A reservation may
name its unit, at the end of its detail: "… [unit: one row]".
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from math import ceil
from typing import Any, Self

from dpscreen import __version__
from dpscreen._core.messages import message
from dpscreen.privacy.budget import NAMELESS, ZCDP, Budget, Unit, worded
from dpscreen.privacy.budget import ROW as ONE_ROW

UNKNOWN = ""
MARK = "[unit: "
FORMULAS = ("=", "+", "-", "@")  # what a spreadsheet would compute
ROW = str(ONE_ROW)
ROWS = {ROW, "row", "rows", "a row", "each row", "single row"}


def with_unit(detail: str, unit: str) -> str:
    """Return the detail of a reservation with its unit at the end."""
    if unit == UNKNOWN:
        return detail
    if MARK in detail:
        raise ValueError(message("ledger.unit-in-detail", mark=MARK))
    if not unit.strip() or unit.startswith(FORMULAS):
        raise ValueError(message("ledger.unit"))
    return f"{detail} {MARK}{unit}]".strip()


def unit_in(detail: str) -> str:
    """Return the unit that a detail names; nothing if it names none."""
    unit = detail.partition(MARK)[2]
    whole = unit.endswith("]") and not unit.startswith(FORMULAS)
    return unit.removesuffix("]") if whole else UNKNOWN


def agreed(known: str, new: str) -> str | None:
    """Return what is known of the unit when both speak of it; None if they contradict each other.

    How many rows a unit has at most is not compared: the cost is the unit's in any case. A unit
    without a name may be any but a row. What the owner of a ledger declared in words of their own
    may be a column's values.
    """
    one, other = _kind(known), _kind(new)
    if UNKNOWN in (one, other) or one == other:
        return known or new
    if ROW in (one, other):
        return None
    if NAMELESS in (one, other):
        return new if one == NAMELESS else known
    is_column = Unit.of_words(f"{one} ({ONE_ROW.most})") is not None
    return None if is_column else new


def _kind(unit: str) -> str:
    kind, _ = worded(unit)
    return ROW if kind.casefold() in ROWS else kind


FORMAT = 1  # of seals and exports
LONGEST_TEXT = 2000
LONGEST_SUM = 4096  # bits of a denominator
FINEST_UNIT = 2**256
EXACT = re.compile(r"([0-9]{1,2000})/([0-9]{1,2000})")


class Damaged(ValueError):
    """What a file holds is not what a ledger would have written."""

    def __init__(self, code: str, **fields: object) -> None:
        super().__init__(message(f"damage.{code}", **fields))


@dataclass(frozen=True)
class Account:
    """What the owner of a data set declares and grants. Never computed from the data."""

    dataset: str
    declared: tuple[tuple[str, str], ...]
    budget: Budget
    total: ZCDP
    note: str
    who: str
    at: str
    library: str
    nonce: str

    @classmethod
    def open(
        cls, budget: Budget, *, dataset: str, declared: Mapping[str, str], note: str, who: str
    ) -> Self:
        """Return a new account of the largest ρ that is certified to stay within the budget."""
        pairs = (
            (one_line("declared", name), one_line("declared", text, empty=True))
            for name, text in declared.items()
        )
        return cls(
            dataset=one_line("dataset", dataset),
            declared=tuple(sorted(pairs)),
            budget=budget,
            total=ZCDP.within(budget),
            note=one_line("note", note, empty=True),
            who=one_line("who", who),
            at=now(),
            library=__version__,
            nonce=fresh(),
        )

    @classmethod
    def parse(cls, row: Sequence[object]) -> Self:
        """Read an account from its row, trusting nothing."""
        dataset, declared, epsilon, delta, rho, note, who, at, library, nonce, _ = _texts(row)
        budget = Budget(float(epsilon), float(delta))
        pairs = tuple((str(name), str(text)) for name, text in json.loads(declared))
        found = cls(dataset, pairs, budget, parse_rho(rho), note, who, at, library, nonce)
        if found.row() != tuple(row):
            raise Damaged("account-seal")
        _check_lines(dataset, note, who, library, nonce, *(text for pair in pairs for text in pair))
        _check_time(at)
        # The certificate again, with room for the last digits of another machine's logarithms.
        if not 0 < found.total.delta(budget.epsilon) <= budget.delta * (1 + 1e-6):
            raise Damaged("account-rho")
        return found

    @property
    def fingerprint(self) -> str:
        """Return a hash of the data set's name and of what was declared about it."""
        return digest(self.dataset, self.declared)

    @property
    def unit(self) -> str:
        """Return the unit that the owner declared; nothing if none was."""
        return dict(self.declared).get("unit", UNKNOWN)

    @property
    def seal(self) -> str:
        """Return the hash with which the chain begins."""
        return digest(f"dpscreen ledger {FORMAT}", *self._cells())

    def row(self) -> tuple[str, ...]:
        """Return the cells to store."""
        return (*self._cells(), self.seal)

    def _cells(self) -> tuple[str, ...]:
        return (
            self.dataset,
            canonical(self.declared),
            repr(self.budget.epsilon),
            repr(self.budget.delta),
            exact(self.total),
            self.note,
            self.who,
            self.at,
            self.library,
            self.nonce,
        )


@dataclass(frozen=True)
class Reservation:
    """A cost that is booked for good, for what and by whom.

    `hash` seals this reservation and all before it: kept elsewhere, it is a receipt. `nonce` is
    random, so that no two reservations or ledgers are equal and none can stand in for another.
    """

    number: int
    cost: ZCDP
    purpose: str
    who: str
    at: str
    library: str
    detail: str
    nonce: str
    hash: str = ""

    @classmethod
    def ask(cls, cost: ZCDP, *, purpose: str, who: str, detail: str, unit: str = UNKNOWN) -> Self:
        """Check what was asked for, before any file is opened."""
        if not isinstance(cost, ZCDP):
            raise TypeError(message("ledger.cost-type", kind=type(cost).__name__))
        if cost == ZCDP.free():
            raise ValueError(message("ledger.cost-free"))
        return cls(
            number=0,
            cost=cost,
            purpose=one_line("purpose", purpose),
            who=one_line("who", who),
            at=now(),
            library=__version__,
            detail=one_line("detail", with_unit(detail, unit), empty=True),
            nonce=fresh(),
        )

    @classmethod
    def parse(cls, row: Sequence[Any]) -> Self:
        """Read a reservation from its row, trusting nothing but that SQLite numbers rows."""
        number, *cells = row
        rho, *rest = _texts(cells)
        found = cls(number, parse_rho(rho), *rest)
        if found.row() != tuple(row):
            raise Damaged("form", number=number)
        _check_lines(*rest)
        _check_time(found.at)
        return found

    @property
    def unit(self) -> str:
        """Return whom the cost is for, as `detail` says; nothing if it does not."""
        return unit_in(self.detail)

    def row(self) -> tuple[int | str, ...]:
        """Return the cells to store: the fields, in order."""
        return tuple((vars(self) | {"cost": exact(self.cost)}).values())

    def seal(self, previous: str) -> str:
        """Return the hash that this reservation must carry after `previous`."""
        return digest(previous, *self.row()[:-1])


@dataclass(frozen=True)
class Chain:
    """The reservations verified so far: how many, their last seal, their exact sum and unit."""

    number: int
    hash: str
    spent: ZCDP = field(default_factory=ZCDP.free)
    unit: str = UNKNOWN

    @classmethod
    def of(cls, account: Account) -> Self:
        """Return the chain that holds nothing but the account."""
        return cls(0, account.seal, unit=account.unit)

    def then(self, entry: Reservation) -> Chain:
        """Return the chain with one more link, or say that it does not fit."""
        if entry.number != self.number + 1:
            raise Damaged("missing", number=self.number + 1)
        if entry.hash != entry.seal(self.hash):
            raise Damaged("seal", number=entry.number)
        unit = agreed(self.unit, entry.unit)
        if unit is None:
            raise Damaged("unit", number=entry.number)
        return Chain(entry.number, entry.hash, self.spent + entry.cost, unit)

    def sealed(self, asked: Reservation) -> Reservation:
        """Return what was asked for as the next link."""
        cost = bookable(self.spent, asked.cost)
        entry = replace(asked, number=self.number + 1, cost=cost, at=now())
        return replace(entry, hash=entry.seal(self.hash))


def bookable(spent: ZCDP, cost: ZCDP) -> ZCDP:
    """Return the cost, or the next multiple of 2⁻²⁵⁶ where the exact sum would grow too long.

    Each new odd factor in a denominator lengthens every later sum. After some dozens of costs that
    have nothing in common, the ledger books up to 2⁻²⁵⁶ too much each time: never too little.
    """
    if (spent + cost).rho.denominator.bit_length() <= LONGEST_SUM:
        return cost
    return ZCDP(Fraction(ceil(cost.rho * FINEST_UNIT), FINEST_UNIT))


def one_line(name: str, text: str, *, empty: bool = False) -> str:
    """Return a text on one line, fit for terminals and spreadsheets.

    Escape codes could forge what `show` prints, and a leading sign could make a spreadsheet compute
    what `export` wrote.
    """
    if not isinstance(text, str):
        raise TypeError(message("ledger.text", name=name, kind=type(text).__name__))
    line = " ".join(text.split())
    if not line and not empty:
        raise ValueError(message("ledger.text-empty", name=name))
    if len(line) > LONGEST_TEXT:
        raise ValueError(message("ledger.text-long", name=name, most=LONGEST_TEXT))
    if not line.isprintable() or line.startswith(FORMULAS):
        raise ValueError(message("ledger.text-unprintable", name=name))
    return line


def os_user() -> str:
    """Return whom the operating system takes this process to be; not what its environment says."""
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_name
    except (ImportError, KeyError):
        return os.environ.get("USERNAME") or "unknown"


def fresh() -> str:
    """Return 128 random bits from the operating system."""
    return secrets.token_hex(16)


def now() -> str:
    """Return the time in UTC, as ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def exact(cost: ZCDP) -> str:
    """Write ρ as "numerator/denominator"."""
    return f"{cost.rho.numerator}/{cost.rho.denominator}"


def parse_rho(text: str) -> ZCDP:
    """Read ρ as `exact` wrote it."""
    parts = EXACT.fullmatch(text)
    if parts is None or int(parts[2]) == 0 or int(parts[1]) == 0:
        raise Damaged("cost")
    return ZCDP(Fraction(int(parts[1]), int(parts[2])))


def canonical(value: object) -> str:
    """Write a value as JSON, the same bytes everywhere."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))


def digest(*parts: object) -> str:
    """Hash values with their boundaries: ("ab", "c") is not ("a", "bc")."""
    return hashlib.sha256(canonical(parts).encode("ascii")).hexdigest()


def _texts(cells: Sequence[object]) -> list[str]:
    texts = [cell for cell in cells if isinstance(cell, str)]
    if len(texts) != len(cells):
        raise Damaged("cell-type")
    return texts


def _check_lines(*texts: str) -> None:
    for text in texts:
        if one_line("a cell", text, empty=True) != text:
            raise Damaged("cell-line")


def _check_time(text: str) -> None:
    if datetime.fromisoformat(text).utcoffset() != timedelta(0):
        raise Damaged("time")
