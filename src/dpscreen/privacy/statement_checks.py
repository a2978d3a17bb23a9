"""What a statement that comes from a file must satisfy before anybody relies on it.

A file can be edited. What follows from other numbers in it is computed again: whether the promise
holds, whether ε and δ follow from ρ, and whether the mechanisms add up to ρ. What is said in words
must be said as `PrivacyStatement` says it, wherever a reader would rely on it. Which fields there
are, and of which kind and size, the JSON Schema of a model file says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import Field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from dpscreen.privacy.budget import ZCDP
from dpscreen.privacy.mechanisms import DiscreteGaussian, NoisyMax
from dpscreen.privacy.unit import neighbours_of, worded

if TYPE_CHECKING:
    from dpscreen.privacy.statement import MechanismRecord, PrivacyStatement

CLOSE = 1e-6
PER_SQUARE = {NoisyMax.name: (1 / 2, 1 / 8), DiscreteGaussian.name: (1 / 2,)}
"""ρ in units of (Δ/scale)². A selection costs a quarter where scores have the range Δ (Lemma 2)."""

HALVES = ("first half: ", "second half: ")


def values_of(found: Mapping[str, Any], fields: Iterable[Field[Any]]) -> dict[str, Any]:
    """Return the values of a dataclass from what a model file's JSON Schema found to be right."""
    return {field.name: _value(field.name, found[field.name], str(field.type)) for field in fields}


def _value(name: str, value: Any, kind: str) -> Any:
    match kind:
        case "float" | "float | None":
            return None if value is None else float(value)
        case "int":
            return int(value)
        case "str":
            return _printable(name, value)
        case "tuple[str, ...]":
            return tuple(_printable(name, one) for one in value)
    return value


def _printable(name: str, text: str) -> str:
    if not text.isprintable():
        raise ValueError(f"the statement's {name} holds what cannot be printed.")
    return text


def contradiction(statement: PrivacyStatement, *, holds: bool) -> str | None:
    """Return in which way a statement contradicts itself; None if it does not."""
    seeded = "seeded" in statement.noise.casefold()
    if holds != statement.holds or (statement.secure_noise and seeded):
        return (
            "the statement contradicts itself about whether its promise holds: that needs proven "
            "mechanisms and noise that is not seeded."
        )
    problem = _wrong_words(statement)
    if problem is not None:
        return problem
    if statement.calibration == "published":
        known = (statement.rho, *(record.rho for record in statement.mechanisms))
        claimed = any(rho is not None for rho in known)
        return "the published calibration has no cost to state." if claimed else None
    return _unpaid(statement)


def _wrong_words(statement: PrivacyStatement) -> str | None:
    """Return which words do not fit the values beside them."""
    from dpscreen.privacy.statement import DISCLOSED

    said = any(DISCLOSED in text for text in statement.public)
    if said and not statement.rows_disclosed:
        return "the statement contradicts itself about whether the number of rows is disclosed."
    if not _unit_fits(statement):
        return "the statement's unit does not fit its rows_per_unit."
    expected = neighbours_of(statement.unit, rows_disclosed=statement.rows_disclosed)
    if statement.neighbours != expected:
        return "the statement's neighbours do not fit its unit and what is disclosed."
    return None


def _unit_fits(statement: PrivacyStatement) -> bool:
    """Whether a unit that is a row has one, and one that says how many says the same number."""
    if statement.of_rows:
        return statement.rows_per_unit == 1
    return worded(statement.unit)[1] in (None, str(statement.rows_per_unit))


def _unpaid(statement: PrivacyStatement) -> str | None:
    """Return what is wrong with the account of a proven statement."""
    from dpscreen.privacy.statement import IN_HALVES

    rho = statement.rho
    if not rho or any(not record.rho for record in statement.mechanisms):
        return "a proven statement must state what each mechanism costs."
    if not all(record.name in PER_SQUARE for record in statement.mechanisms):
        return "a proven statement has a mechanism for which there is no proof here."
    if statement.composition != IN_HALVES and _has_halves(statement):
        return "costs add up, unless the composition says that coins split the rows into halves."
    if not all(_cost_follows(record) for record in statement.mechanisms):
        return "a mechanism's rho does not follow from its sensitivity and noise scale."
    if abs(_largest_sum(statement) - rho) > CLOSE * rho:
        return "the mechanisms' costs do not add up to the statement's rho."
    with np.errstate(all="ignore"):
        follows = ZCDP(Fraction(rho)).delta(statement.epsilon) <= statement.delta * (1 + CLOSE)
    return None if follows else "the statement's epsilon and delta do not follow from its rho."


def _cost_follows(record: MechanismRecord) -> bool:
    """Whether ρ is what the lemma of the mechanism says, times the count."""
    if not (record.scale > 0 and record.sensitivity > 0):
        return False
    try:
        ratio = (record.rho or 0.0) / record.count / (record.sensitivity / record.scale) ** 2
    except ArithmeticError:
        return False
    return any(abs(ratio - known) <= CLOSE * known for known in PER_SQUARE[record.name])


def _has_halves(statement: PrivacyStatement) -> bool:
    return any(record.purpose.startswith(HALVES) for record in statement.mechanisms)


def _largest_sum(statement: PrivacyStatement) -> float:
    """Return ρ: costs add up, within each half where a coin split the rows (Lemma 16)."""
    sums = dict.fromkeys((*HALVES, ""), 0.0)
    for record in statement.mechanisms:
        half = next(half for half in sums if record.purpose.startswith(half))
        sums[half] += record.rho or 0.0
    return sums.pop("") + max(sums.values())
