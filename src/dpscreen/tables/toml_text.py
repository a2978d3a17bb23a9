"""Schemas in TOML written out: one line a column, each with a comment for whoever fills it in."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dpscreen._core.words import plain
from dpscreen.tables.proposals import Proposal, propose
from dpscreen.tables.toml import HOLDS, TOP, Document

_COMMENTS_FROM = 32
INTRODUCTION = """\
# What {table} may hold.
# All of this is public: take it from what you know about the subject, never from the rows,
# where a minimum is one person's value.
"""
ABOUT = {
    "target": "the column to be predicted",
    "unit": "tells whose row it is; without it a row is the unit",
    "rows_per_unit": "the most rows of one unit that are used",
    "missing": "cells that mean: not known; counted as fill, or as the middle",
    "ignore": "columns that are not used; * stands for anything",
}
EMPTY = {"target": '""', "unit": '""', "rows_per_unit": "1"}
HEADS = {
    "defaults": "for whatever neither a column nor a pattern tells",
    "patterns": "for columns whose name fits; the first that fits counts",
    "columns": 'bounds = [0, 9], categories = ["a", "b"] or type = "boolean"',
}
EXAMPLES = {"defaults": "bounds = [0, 1]", "patterns": '"*_pct" = {bounds = [0, 100]}'}


def new_document(
    names: Sequence[str], *, target: str | None = None, unit: str | None = None, **more: Any
) -> Document:
    """Return a schema in which every column has what its name leaves no doubt about."""
    kept = (target, unit)
    found = {name: propose(name) for name in names}
    ignored = [name for name, one in found.items() if not one.is_feature and name not in kept]
    settings = {
        name: settings_proposed(one) if one.sure and one.is_complete else {}
        for name, one in found.items()
        if name not in ignored
    }
    named = {"target": target, "unit": unit, "rows_per_unit": 1 if unit else None}
    given = {key: one for key, one in (named | more).items() if one is not None}
    return given | {"missing": ["", "NA"], "ignore": ignored, "columns": settings}


def settings_proposed(found: Proposal) -> dict[str, Any]:
    """Return what a proposal would be as a column's settings; without what it does not tell."""
    if found.kind == "boolean":
        return {"type": "boolean"}
    if found.levels is not None:
        return {"categories": list(found.levels)}
    if found.bounds is None:
        return {}
    if found.kind == "date":
        return {"bounds": [datetime.date.fromisoformat(day) for day in found.bounds]}
    return {"bounds": list(found.bounds)}


def toml_text(document: Document, *, table: str = "the table") -> str:
    """Return the file, with comments that say what is left to fill in."""
    parts = [INTRODUCTION.format(table=plain(table)), *_top(document)]
    for key in ("defaults", "patterns"):
        given = document.get(key, {}).items()
        lines = [f"{toml_key(name)} = {toml_value(one)}" for name, one in given]
        parts.append(_section(key, lines or _examples(key, document)))
    inherits = any(key in document.get("defaults", {}) for key in HOLDS)
    columns = document.get("columns", {})
    parts.append(_section("columns", [_line(document, name, inherits) for name in columns]))
    return "\n".join(parts)


def _examples(key: str, document: Document) -> list[str]:
    lines = [f"# {EXAMPLES[key]}"]
    if key == "defaults" and document.get("delimiter") == ";":
        lines.append(_commented('# decimal = ","', "? semicolons between cells: 1,5 or 1.5?"))
    return lines


def _top(document: Document) -> Iterator[str]:
    lines = []
    for key in TOP:
        value = document.get(key)
        if key in EXAMPLES or key == "columns" or (value is None and key not in EMPTY):
            continue
        text = f"# {key} = {EMPTY[key]}" if value is None else f"{key} = {toml_value(value)}"
        lines.append(_commented(text, ABOUT.get(key, "")))
    yield "\n".join(lines) + "\n"


def _section(key: str, lines: Sequence[str]) -> str:
    return "\n".join([_commented(f"[{key}]", HEADS[key]), *lines]) + "\n"


def _line(document: Document, name: str, inherits: bool) -> str:
    settings = document["columns"][name]
    comment = "" if name == document.get("unit") else _advice(propose(name), settings, inherits)
    return _commented(f"{toml_key(name)} = {toml_value(settings)}", comment)


def _advice(found: Proposal, settings: Mapping[str, Any], inherits: bool) -> str:
    """Say why a column has what it has, or what may be filled in."""
    if settings or inherits:
        return found.why if settings == settings_proposed(found) else ""
    if not found.is_feature:
        return f"? perhaps put it into ignore? {found.why}"
    perhaps = settings_proposed(found)
    guess = f"perhaps {_inside(perhaps)}? " if perhaps else ""
    return f"? {guess}{found.why}"


def _commented(text: str, comment: str) -> str:
    return f"{text.ljust(_COMMENTS_FROM)}  # {comment}" if comment else text


# --- keys and values ------------------------------------------------------------------------------


def toml_key(name: str) -> str:
    """Write a name as a key, in quotes if it needs them."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_value(name)


def toml_value(value: Any) -> str:
    """Write a text, number, truth, day, list or table on one line."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return f"{{{_inside(value)}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    return repr(value)


def _inside(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{toml_key(key)} = {toml_value(one)}" for key, one in settings.items())
