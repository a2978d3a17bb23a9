"""Whom a ledger counts for: one kind of unit, as costs for rows and for people do not add up.

A reservation may name its unit, at the end of its detail: "… [unit: one row]".
"""

from __future__ import annotations

from dpscreen.privacy.unit import NAMELESS, VALUE_OF, worded
from dpscreen.privacy.unit import ROW as ONE_ROW

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
        raise ValueError(f"detail must not hold {MARK!r}, which is where the unit stands.")
    if not unit.strip() or unit.startswith(FORMULAS):
        raise ValueError("unit must be text that does not begin with =, +, - or @.")
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
    return None if one.startswith(VALUE_OF) else new


def _kind(unit: str) -> str:
    kind, _ = worded(unit)
    return ROW if kind.casefold() in ROWS else kind
