"""The `dpscreen` block of a schema: target, features, privacy unit, public fills and transforms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpscreen._core.words import listed, mistyped
from dpscreen.tables.schema.fields import TRANSFORMS

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


def read_settings(given: Any) -> SchemaBlock:
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
