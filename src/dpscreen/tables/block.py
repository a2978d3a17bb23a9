"""The `dpscreen` block of a schema: target, features, privacy unit, public fills and transforms.

It is read by itself, and then checked against the columns that are declared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dpscreen._core.messages import Message, SchemaKey, message, unknown
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
    formula: Formula | None = None
    faults: tuple[Message, ...] = ()

    def feature_columns(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return which of these columns features are made of."""
        if self.features is not None:
            return self.features
        return tuple(name for name in names if name not in (self.target, self.unit))


def _is_transform(word: Any) -> bool:
    return isinstance(word, str) and word in TRANSFORMS


_NAME = (lambda one: one is None or isinstance(one, str)), "column"
_BY_COLUMN = (lambda one: not one or isinstance(one, Mapping)), "by-column"
SETTINGS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "target": _NAME,
    "features": (lambda one: one is None or are_texts(one), "columns"),
    "unit": _NAME,
    "rows_per_unit": (
        lambda one: one is None or (type(one) is int and 1 <= one <= 1_000_000),
        "count",
    ),
    "fill": _BY_COLUMN,
    "transform": _BY_COLUMN,
    "formula": (lambda one: one is None or isinstance(one, str), "formula"),
}
"""What each setting must be, as a test and by the code of a message."""


def read_block(given: Any, names: Sequence[str] = ()) -> SchemaBlock:
    """Read the block of a table with columns of these names; anything but an object is a fault."""
    if not isinstance(given, Mapping):
        wrong = Entry({})
        wrong.must("dpscreen", "block")
        return SchemaBlock(faults=tuple(wrong.faults))
    entry, known = Entry(given, "dpscreen."), tuple(SETTINGS)
    for key in given:
        if key not in known:
            reason = unknown("setting", key, known)
            entry.fault("setting.in-block", setting=SchemaKey("dpscreen"), reason=reason)
    used = {key: entry.setting(key, None, fits, must) for key, (fits, must) in SETTINGS.items()}
    if used["features"] is not None:
        used["features"] = tuple(used["features"])
    if used["rows_per_unit"] is None and given.get("rows_per_unit") is not None:
        used["rows_per_unit"] = 1  # what was given is a fault already
    transform = (used["transform"] or {}).items()
    for column, word in transform:
        if not _is_transform(word):
            reason = unknown("transform", word, tuple(TRANSFORMS))
            entry.fault("schema.transform-unknown", name=column, reason=reason)
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
        where = SchemaKey("dpscreen.formula")
        entry.fault("setting.in-block", setting=where, reason=problem.args[0])
        left = text.partition("~")[0].strip(" `")
        return replace(block, target=left) if left in names else block
    if block.target not in (None, formula.target):
        entry.fault("schema.formula-target", target=formula.target)
    if block.features is not None:
        entry.fault("schema.formula-and-features")
    transforms = dict(block.transform)
    if formula.target_transform != UNCHANGED.name:
        transforms[formula.target] = formula.target_transform
    for name, word in transforms.items():
        if name != formula.target:
            entry.fault("schema.transform-in-formula", name=name, transform=word)
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


def problems(block: SchemaBlock, columns: Sequence[Column]) -> Iterator[Message]:
    """Yield what is wrong with a block and the columns together, in the order of fixing."""
    known = {column.name: column for column in columns}
    chosen = block.feature_columns(column.name for column in columns)
    for name, count in Counter(column.name for column in columns).items():
        if count > 1:
            yield message("column.repeated", name=name, count=count)
        if not name.strip():
            yield message("column.empty-name")
    if block.target is None:
        yield message("schema.no-target")
    else:
        yield from _unknown(SchemaKey("dpscreen.target"), block.target, known)
    yield from _features(block, known, chosen)
    yield from _unit(block, known)
    used = {*chosen, block.target}
    for column in columns:
        if column.name in used:
            yield from column.needs(as_target=column.name == block.target)
            yield from column.problems()
    yield from _by_column(block, known)
    sources = [known[name] for name in dict.fromkeys(chosen) if name in known]
    features = Counter(feature for column in sources for feature in column.every_feature)
    for name, count in features.items():
        if count > 1:
            yield message("schema.feature-name-repeated", count=count, name=name)


def _unknown(where: SchemaKey, name: str, known: Mapping[str, Column]) -> Iterator[Message]:
    if name not in known:
        reason = unknown("column", name, list(known))
        yield message("setting.in-block", setting=where, reason=reason)


def _features(
    block: SchemaBlock, known: Mapping[str, Column], chosen: Sequence[str]
) -> Iterator[Message]:
    if block.features is None:
        if block.target is not None and not chosen:
            yield message("schema.no-features")
        return
    if not chosen:
        yield message("schema.features-empty")
    where = SchemaKey("dpscreen.features" if block.formula is None else "dpscreen.formula")
    for name, count in Counter(chosen).items():
        yield from _unknown(where, name, known)
        if count > 1:
            yield message("schema.feature-repeated", setting=where, name=name, count=count)
        if name in (block.target, block.unit):
            yield message("schema.feature-is-target", setting=where, name=name)


def _unit(block: SchemaBlock, known: Mapping[str, Column]) -> Iterator[Message]:
    unit, most = block.unit, block.rows_per_unit
    if unit is None:
        if most is not None:
            yield message("schema.rows-without-unit")
        return
    yield from _unknown(SchemaKey("dpscreen.unit"), unit, known)
    if unit == block.target:
        yield message("schema.unit-is-target")
    if most is None:
        yield message("schema.unit-without-rows")
    if unit in known and "unit" not in known[unit].roles:
        yield message("schema.unit-type", name=unit)


def _by_column(block: SchemaBlock, known: Mapping[str, Column]) -> Iterator[Message]:
    """Yield what is wrong with fills and transforms."""
    for name, value in block.fill:
        yield from _unknown(SchemaKey("dpscreen.fill"), name, known)
        if name == block.unit:
            yield message("schema.unit-fill", name=name)
        elif name in known and (must := known[name].fill_problem(value)):
            yield message("column.fill", column=name, must=must)
    for name, word in block.transform:
        yield from _unknown(SchemaKey("dpscreen.transform"), name, known)
        roles = known[name].roles if name in known else {"untyped"}
        if word != UNCHANGED.name and not {"transformed", "untyped"} & roles:
            yield message("schema.transform-not-number", name=name)
