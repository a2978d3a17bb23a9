"""How a ledger is shown: figures rounded to the safe side, JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR
from fractions import Fraction
from typing import Any

from dpscreen._core.words import rounded
from dpscreen.privacy.budget import ZCDP, Budget
from dpscreen.privacy.ledger.records import FORMAT, Account, Reservation, exact

DIGITS = 6
COLUMNS = (
    *("number", "at", "who", "purpose", "rho", "rho_exact", "epsilon"),
    *("unit", "detail", "library"),
)
Document = dict[str, Any]


def at_most(number: Fraction | float) -> float:
    """Round down to six digits: what is said to remain is there."""
    return rounded(number, digits=DIGITS, direction=ROUND_FLOOR)


def at_least(number: Fraction | float) -> float:
    """Round up to six digits: what is said to be spent covers what was.

    What was granted is rounded the same way, so as not to look overspent.
    """
    return rounded(number, digits=DIGITS, direction=ROUND_CEILING)


def affordable_epsilon(remaining: ZCDP, delta: float) -> float:
    """Return the ε, to six digits, of one more release at this δ that still fits; 0 if none.

    The conversions from ρ to ε and back are each rounded to the safe side, by about 1e-9, so that
    the first figure to try is a hair above the one way, and it counts if it fits the other way.
    """
    near = remaining.epsilon(delta)
    figures = (at_most(near * (1 + slack)) for slack in (1e-8, 0.0, -1e-6, -1e-5))
    return next((epsilon for epsilon in figures if _fits(epsilon, delta, remaining)), 0.0)


def document(account: Account, entries: Sequence[Reservation], head: str) -> Document:
    """Return a whole ledger as values that JSON can hold."""
    delta = account.budget.delta
    spent = sum((entry.cost for entry in entries), ZCDP.free())
    remaining = ZCDP(account.total.rho - spent.rho)
    return {
        "format": f"dpscreen ledger {FORMAT}",
        "dataset": account.dataset,
        "declared": dict(account.declared),
        "fingerprint": account.fingerprint,
        "note": account.note,
        "created": {"at": account.at, "who": account.who, "library": account.library},
        "delta": delta,
        "total": _amount(account.total, at_least(account.total.rho), account.budget.epsilon),
        "spent": _amount(spent, at_least(spent.rho), at_least(spent.epsilon(delta))),
        "remaining": _amount(
            remaining, at_most(remaining.rho), affordable_epsilon(remaining, delta)
        ),
        "head": head,
        "reservations": [_line(entry, delta) for entry in entries],
    }


def as_json(ledger: Document) -> str:
    """Write a ledger as JSON."""
    return json.dumps(ledger, indent=2, ensure_ascii=False) + "\n"


def as_csv(ledger: Document) -> str:
    """Write the reservations as CSV, one line each."""
    text = io.StringIO()
    lines = csv.DictWriter(text, (*COLUMNS, "hash"), lineterminator="\n")
    lines.writeheader()
    lines.writerows(ledger["reservations"])
    return text.getvalue()


def _amount(cost: ZCDP, rho: float, epsilon: float) -> Document:
    return {"rho": rho, "rho_exact": exact(cost), "epsilon": epsilon}


def _fits(epsilon: float, delta: float, remaining: ZCDP) -> bool:
    try:
        return ZCDP.within(Budget(epsilon, delta)) <= remaining
    except ValueError:  # no ε, or one so small that no ρ belongs to it
        return False


def _line(entry: Reservation, delta: float) -> Document:
    amount = _amount(entry.cost, at_least(entry.cost.rho), at_least(entry.cost.epsilon(delta)))
    known = {name: getattr(entry, name) for name in (*COLUMNS, "hash") if name not in amount}
    return {name: (amount | known)[name] for name in (*COLUMNS, "hash")}
