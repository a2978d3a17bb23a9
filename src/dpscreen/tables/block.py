"""The `dpscreen` block of a schema: target, features, privacy unit, public fills and transforms.

It is read by itself, and then checked against the columns that are declared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpscreen._core.words import listed, mistyped
from dpscreen.tables.columns.base import Column
from dpscreen.tables.values import TRANSFORMS, UNCHANGED

KEYS = ("target", "features", "unit", "rows_per_unit", "fill", "transform", "missing_target")
MISSING_TARGET = ("fill", "leave out")
Pairs = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class SchemaBlock:
    """The block as declared; what cannot be used is left out and told in `faults`."""

    target: str | None = None
    features: tuple[str, ...] | None = None
    unit: str | None = None
    rows_per_unit: int | None = None
    fill: Pairs = ()
    transform: Pairs = ()
    missing_target: str = "fill"
    faults: tuple[str, ...] = ()

    def feature_columns(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return which of these columns features are made of."""
        if self.features is not None:
            return self.features
        return tuple(name for name in names if name not in (self.target, self.unit))


def read_block(given: Any) -> SchemaBlock:
    """Read the block; anything but an object is told as a fault."""
    if not isinstance(given, Mapping):
        return SchemaBlock(faults=("dpscreen must be an object with at least a target.",))
    faults = [f"dpscreen: {mistyped('setting', key, KEYS)}" for key in given if key not in KEYS]
    return SchemaBlock(
        _name(given, "target", faults),
        _names(given, faults),
        _name(given, "unit", faults),
        _count(given, faults),
        _by_column(given, "fill", faults),
        _transforms(given, faults),
        _choice(given, faults),
        tuple(faults),
    )


def _name(given: Mapping[str, Any], key: str, faults: list[str]) -> str | None:
    value = given.get(key)
    if value is None or isinstance(value, str):
        return value
    faults.append(f"dpscreen.{key} must be the name of a column.")
    return None


def _names(given: Mapping[str, Any], faults: list[str]) -> tuple[str, ...] | None:
    value = given.get("features")
    if value is None:
        return None
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return tuple(value)
    faults.append("dpscreen.features must be a list of names of columns.")
    return None


def _count(given: Mapping[str, Any], faults: list[str]) -> int | None:
    value = given.get("rows_per_unit")
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 1_000_000:
        return value
    faults.append("dpscreen.rows_per_unit must be a whole number from 1 to 1000000.")
    return None


def _by_column(given: Mapping[str, Any], key: str, faults: list[str]) -> Pairs:
    value = given.get(key) or {}
    if isinstance(value, Mapping):
        return tuple(value.items())
    faults.append(f"dpscreen.{key} must be an object with one entry for a column.")
    return ()


def _transforms(given: Mapping[str, Any], faults: list[str]) -> Pairs:
    pairs = _by_column(given, "transform", faults)
    for column, word in pairs:
        if not isinstance(word, str) or word not in TRANSFORMS:
            told = mistyped("transform", word, tuple(TRANSFORMS))
            faults.append(f"dpscreen.transform of column {column!r}: {told}")
    return tuple(pair for pair in pairs if isinstance(pair[1], str) and pair[1] in TRANSFORMS)


def _choice(given: Mapping[str, Any], faults: list[str]) -> str:
    value = given.get("missing_target", "fill")
    if value in MISSING_TARGET:
        return str(value)
    known = listed((f'"{word}"' for word in MISSING_TARGET), "or")
    faults.append(f"dpscreen.missing_target must be {known}.")
    return "fill"


# --- against the columns --------------------------------------------------------------------------


def problems(block: SchemaBlock, columns: Sequence[Column]) -> Iterator[str]:
    """Yield what is wrong with a block and the columns together, in the order of mending."""
    known = {column.name: column for column in columns}
    chosen = block.feature_columns(column.name for column in columns)
    yield from _repeated(columns)
    yield from _target(block, known)
    yield from _features(block, known, chosen)
    yield from _unit(block, known)
    used = {*chosen, block.target}
    for column in columns:
        if column.name in used:
            yield from column.needs(as_target=column.name == block.target)
            yield from column.problems()
    yield from _fills(block, known)
    yield from _transformed(block, known)
    yield from _feature_names([known[name] for name in dict.fromkeys(chosen) if name in known])


def _repeated(columns: Sequence[Column]) -> Iterator[str]:
    for name, count in Counter(column.name for column in columns).items():
        if count > 1:
            yield f"column {name!r} is declared {count} times: keep one."
        if not name.strip():
            yield "a column has an empty name: give it one, in the table and here."


def _unknown(where: str, name: str, known: Mapping[str, Column]) -> Iterator[str]:
    if name not in known:
        yield f"{where}: {mistyped('column', name, list(known))}"


def _target(block: SchemaBlock, known: Mapping[str, Column]) -> Iterator[str]:
    if block.target is None:
        yield "the target is not named: set dpscreen.target to the column to be predicted."
    else:
        yield from _unknown("dpscreen.target", block.target, known)


def _features(
    block: SchemaBlock, known: Mapping[str, Column], chosen: Sequence[str]
) -> Iterator[str]:
    if block.features is None:
        if block.target is not None and not chosen:
            yield "there is no feature: declare at least one column beside the target."
        return
    if not chosen:
        yield "dpscreen.features is empty: name a column, or leave the list out to take all."
    for name, count in Counter(chosen).items():
        yield from _unknown("dpscreen.features", name, known)
        if count > 1:
            yield f"dpscreen.features names column {name!r} {count} times: name it once."
        if name in (block.target, block.unit):
            yield f"dpscreen.features names the target or the unit, {name!r}: leave it out."


def _unit(block: SchemaBlock, known: Mapping[str, Column]) -> Iterator[str]:
    unit, most = block.unit, block.rows_per_unit
    if unit is None:
        if most is not None:
            yield (
                "dpscreen.rows_per_unit needs dpscreen.unit, the column that tells whose row it "
                "is; leave both out if a row is the unit."
            )
        return
    yield from _unknown("dpscreen.unit", unit, known)
    if unit == block.target:
        yield "dpscreen.unit and dpscreen.target name the same column."
    if most is None and not any("rows_per_unit" in told for told in block.faults):
        yield (
            "dpscreen.unit needs dpscreen.rows_per_unit, the most rows of one unit that are used: "
            "choose it from what you know; noise grows with it."
        )
    if unit in known and "unit" not in known[unit].roles:
        yield f"column {unit!r} is the unit: set its type to string or integer."


def _fills(block: SchemaBlock, known: Mapping[str, Column]) -> Iterator[str]:
    for name, value in block.fill:
        yield from _unknown("dpscreen.fill", name, known)
        here = f"dpscreen.fill of column {name!r}"
        if name == block.unit:
            yield f"{here}: rows without a unit count as one unit."
        elif name in known and (told := known[name].fill_problem(value)):
            yield f"{here} {told}"


def _transformed(block: SchemaBlock, known: Mapping[str, Column]) -> Iterator[str]:
    for name, word in block.transform:
        yield from _unknown("dpscreen.transform", name, known)
        if word == UNCHANGED.name or name not in known:
            continue
        if not {"transformed", "untyped"} & known[name].roles:
            yield f"dpscreen.transform of column {name!r}: only numbers with bounds have one."


def _feature_names(columns: Iterable[Column]) -> Iterator[str]:
    counts = Counter(name for column in columns for name in column.feature_names)
    for name, count in counts.items():
        if count > 1:
            yield f"{count} features would be called {name!r}: rename a column or a level."
