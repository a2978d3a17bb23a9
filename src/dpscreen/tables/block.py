"""The `dpscreen` block of a schema: target, features, privacy unit, public fills and transforms.

It is read by itself, and then checked against the columns that are declared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dpscreen._core.words import mistyped
from dpscreen.tables.columns.base import TRANSFORMS, UNCHANGED, Column, Entry, are_texts
from dpscreen.tables.formula import Formula, FormulaProblem, read_formula

Pairs = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class SchemaBlock:
    """The block as declared; what cannot be used is left out and stands in `faults`."""

    target: str | None = None
    features: tuple[str, ...] | None = None
    unit: str | None = None
    rows_per_unit: int | None = None
    fill: Pairs = ()
    transform: Pairs = ()
    missing_target: str | None = None
    formula: Formula | None = None
    faults: tuple[str, ...] = ()

    def feature_columns(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return which of these columns features are made of."""
        if self.features is not None:
            return self.features
        return tuple(name for name in names if name not in (self.target, self.unit))


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 1_000_000


def _is_transform(word: Any) -> bool:
    return isinstance(word, str) and word in TRANSFORMS


_NAME = (lambda one: one is None or isinstance(one, str)), "the name of a column"
_BY_COLUMN = (
    lambda one: not one or isinstance(one, Mapping),
    "an object with one entry for a column",
)
SETTINGS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "target": _NAME,
    "features": (lambda one: one is None or are_texts(one), "a list of names of columns"),
    "unit": _NAME,
    "rows_per_unit": (
        lambda one: one is None or _is_count(one),
        "a whole number from 1 to 1000000",
    ),
    "fill": _BY_COLUMN,
    "transform": _BY_COLUMN,
    "formula": (lambda one: one is None or isinstance(one, str), "a text such as y ~ age + bmi"),
    "missing_target": (lambda one: one in ("fill", "leave out"), '"fill" or "leave out"'),
}
"""What each setting must be, as a test and in words."""


def read_block(given: Any, names: Sequence[str] = ()) -> SchemaBlock:
    """Read the block of a table with columns of these names; anything but an object is a fault."""
    if not isinstance(given, Mapping):
        return SchemaBlock(faults=("dpscreen must be an object with at least a target.",))
    entry, known = Entry(given, "dpscreen."), tuple(SETTINGS)
    entry.faults += [
        f"dpscreen: {mistyped('setting', key, known)}" for key in given if key not in known
    ]
    used = {
        key: entry.setting(key, None, fits, f"be {what}") for key, (fits, what) in SETTINGS.items()
    }
    if used["features"] is not None:
        used["features"] = tuple(used["features"])
    if used["rows_per_unit"] is None and given.get("rows_per_unit") is not None:
        used["rows_per_unit"] = 1  # what was given is a fault already
    transform = (used["transform"] or {}).items()
    for column, word in transform:
        if not _is_transform(word):
            entry.fault(
                f"transform of column {column!r}: {mistyped('transform', word, tuple(TRANSFORMS))}"
            )
    used["transform"] = tuple(one for one in transform if _is_transform(one[1]))
    used["fill"] = tuple((used["fill"] or {}).items())
    block = SchemaBlock(**used | {"formula": None})
    if used["formula"] is not None:
        block = _with_formula(block, used["formula"], names, entry)
    return replace(block, faults=tuple(entry.faults))


def _with_formula(block: SchemaBlock, text: str, names: Sequence[str], entry: Entry) -> SchemaBlock:
    """Return the block with the target and the columns that its formula names."""
    try:
        formula = read_formula(text, [one for one in names if one != block.unit])
    except FormulaProblem as problem:
        entry.fault(f"formula: {problem}")
        left = text.partition("~")[0].strip(" `")
        return replace(block, target=left) if left in names else block
    if block.target not in (None, formula.target):
        entry.fault(f"formula: its target is {formula.target!r}, and dpscreen.target differs.")
    if block.features is not None:
        entry.fault("features and formula are both given: leave one out.")
    transforms = dict(block.transform)
    if formula.target_transform != UNCHANGED.name:
        transforms[formula.target] = formula.target_transform
    for name in transforms:
        if name != formula.target:
            entry.fault(f"transform of column {name!r}: write {transforms[name]} in the formula.")
    return replace(
        block, target=formula.target, formula=formula, transform=tuple(transforms.items())
    )


def with_formula_columns(block: SchemaBlock, columns: Sequence[Column]) -> SchemaBlock:
    """Return the block with the columns that its formula needs; unknown names stay, as faults."""
    if block.formula is None:
        return block
    known = {column.name for column in columns}
    parts = {part: column.name for column in columns for part in column.every_feature}
    used = (one if one in known else parts.get(one, one) for one in block.formula.names)
    return replace(block, features=tuple(dict.fromkeys(used)))


# --- against the columns --------------------------------------------------------------------------


def problems(block: SchemaBlock, columns: Sequence[Column]) -> Iterator[str]:
    """Yield what is wrong with a block and the columns together, in the order of fixing."""
    known = {column.name: column for column in columns}
    chosen = block.feature_columns(column.name for column in columns)
    yield from _repeated(columns)
    if block.target is None:
        yield "the target is not named: set dpscreen.target to the column to be predicted."
    else:
        yield from _unknown("dpscreen.target", block.target, known)
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


def _features(
    block: SchemaBlock, known: Mapping[str, Column], chosen: Sequence[str]
) -> Iterator[str]:
    if block.features is None:
        if block.target is not None and not chosen:
            yield "there is no feature: declare at least one column beside the target."
        return
    if not chosen:
        yield "dpscreen.features is empty: name a column, or leave the list out to take all."
    where = "dpscreen.features" if block.formula is None else "dpscreen.formula"
    for name, count in Counter(chosen).items():
        yield from _unknown(where, name, known)
        if count > 1:
            yield f"{where} names column {name!r} {count} times: name it once."
        if name in (block.target, block.unit):
            yield f"{where} names the target or the unit, {name!r}: leave it out."


def _unit(block: SchemaBlock, known: Mapping[str, Column]) -> Iterator[str]:
    unit, most = block.unit, block.rows_per_unit
    if unit is None:
        if most is not None:
            yield (
                "dpscreen.rows_per_unit needs dpscreen.unit, the column that identifies the "
                "person; leave both out if a row is the unit."
            )
        return
    yield from _unknown("dpscreen.unit", unit, known)
    if unit == block.target:
        yield "dpscreen.unit and dpscreen.target name the same column."
    if most is None:
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
        elif name in known and (problem := known[name].fill_problem(value)):
            yield f"{here} {problem}"


def _transformed(block: SchemaBlock, known: Mapping[str, Column]) -> Iterator[str]:
    for name, word in block.transform:
        yield from _unknown("dpscreen.transform", name, known)
        if word == UNCHANGED.name or name not in known:
            continue
        if not {"transformed", "untyped"} & known[name].roles:
            yield f"dpscreen.transform of column {name!r}: only numbers with bounds have one."


def _feature_names(columns: Iterable[Column]) -> Iterator[str]:
    counts = Counter(name for column in columns for name in column.every_feature)
    for name, count in counts.items():
        if count > 1:
            yield f"{count} features would be called {name!r}: rename a column or a level."
