"""A schema as a person writes it: TOML with one line a column, defaults and patterns.

    target = "cost"
    missing = ["", "NA"]
    ignore = ["rownames"]

    [patterns]
    "*_pct" = {bounds = [0, 100]}

    [columns]
    age = {bounds = [0, 120]}
    sex = {categories = ["female", "male"]}
    lunch_pct = {}

It is turned into the descriptor that a JSON schema is, so both mean the same everywhere.
docs/reference/schema.md says what each entry means.
"""

from __future__ import annotations

import datetime
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tomlkit
from tomlkit.items import Table

from dpscreen._core.messages import Message, message, unknown
from dpscreen._core.words import did_you_mean, plain
from dpscreen.tables.columns.date import day_number
from dpscreen.tables.columns.number import NO, YES
from dpscreen.tables.proposals import propose

Document = dict[str, Any]
"""A schema in TOML, as `tomllib` returns it."""

BLOCK = ("target", "unit", "rows_per_unit", "formula")
DIALECT = {"delimiter": "delimiter", "quote": "quoteChar", "sheet": "sheetName"}
FIELD = {
    "decimal": "decimalChar",
    "thousands": "groupChar",
    "bare": "bareNumber",
    "true": "trueValues",
    "false": "falseValues",
    "missing": "missingValues",
    "format": "format",
    "parts": "parts",
    "since": "since",
    "title": "title",
    "description": "description",
}
"""Settings of a column that a JSON schema calls otherwise, or the same."""
HOLDS = ("type", "bounds", "categories")
"""Settings that declare what a column holds."""
FITTING = (*HOLDS, "fill", "transform", "parts", "since")
"""Settings of one content only: a column that declares its content inherits none of them."""
SETTINGS = (*HOLDS, *FIELD, "fill", "transform")
TOP = (
    *BLOCK,
    *DIALECT,
    "missing",
    "encoding",
    "ignore",
    "defaults",
    "patterns",
    "columns",
    "title",
)


class NotToml(ValueError):
    """Why some text is no TOML. Repeats nothing of the text."""


def parsed_toml(content: bytes) -> Document:
    """Return what a file says, or raise `NotToml`."""
    try:
        return tomllib.loads(content.decode("utf-8-sig").replace("\r\n", "\n"))
    except UnicodeDecodeError:
        why = message("text.not-utf8")
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"line ([0-9]+), column ([0-9]+)", str(error))
        at = {"line": found[1], "place": found[2]} if found else {}
        why = message("text.syntax" if found else "text.breaks-off", **at)
    except (ValueError, RecursionError):
        why = message("text.too-large")
    raise NotToml(why)  # out here, because such errors hold the whole text


# --- to a descriptor ------------------------------------------------------------------------------


def descriptor_of(document: Document) -> tuple[dict[str, Any], tuple[Message, ...]]:
    """Return the descriptor that a JSON schema would be, and what could not be used of it."""
    faults = list(_faults(document))
    columns = {name: settings_of(document, name) for name in column_names(document)}
    fields = [_field(name, one, faults) for name, one in columns.items()]
    block: dict[str, Any] = {
        key: document[key] for key in BLOCK if document.get(key) not in (None, "")
    }
    for key in ("fill", "transform"):
        block[key] = {name: _plain(one[key]) for name, one in columns.items() if key in one}
    ignored = set(ignored_names(document))
    if ignored and "formula" not in block:
        apart = {*ignored, document.get("target"), document.get("unit")}
        block["features"] = [name for name in columns if name not in apart]
    found = {"fields": fields, "missingValues": document.get("missing", [""]), "dpscreen": block}
    dialect = {DIALECT[key]: document[key] for key in DIALECT if key in document}
    if type(dialect.get("sheetName")) is int:
        dialect["sheetNumber"] = dialect.pop("sheetName")
    others = {key: document[key] for key in ("encoding", "title") if key in document}
    return found | others | ({"dialect": dialect} if dialect else {}), tuple(faults)


def column_names(document: Document) -> list[str]:
    """Return the columns that are declared, or ignored by their names."""
    ignored = [one for one in _texts(document.get("ignore")) if "*" not in one]
    return list(dict.fromkeys([*_table(document, "columns"), *ignored]))


def ignored_names(document: Document) -> list[str]:
    """Return which of the columns are ignored."""
    forms = _texts(document.get("ignore"))
    return [name for name in column_names(document) if any(_fits(form, name) for form in forms)]


def settings_of(document: Document, name: str) -> dict[str, Any]:
    """Return a column's own settings, then those of the first pattern that fits, then defaults.

    A unit has its own only: neither bounds nor a fill make sense there.
    """
    own = _table(document, "columns").get(name)
    if name == document.get("unit"):
        return dict(own) if isinstance(own, Mapping) else {}
    patterns = _table(document, "patterns")
    fitting: Any = next((patterns[form] for form in patterns if _fits(form, name)), {})
    found: dict[str, Any] = {}
    for more in (own, fitting, document.get("defaults")):
        more = more if isinstance(more, Mapping) else {}
        declared = any(key in found for key in HOLDS)
        for key, value in more.items():
            if key not in found and not (declared and key in FITTING):
                found[key] = value
    return found


def _fits(form: str, name: str) -> bool:
    """Whether a name has a form in which * stands for any text."""
    return re.fullmatch(re.escape(form).replace(r"\*", ".*"), name, re.DOTALL) is not None


def _field(name: str, settings: Mapping[str, Any], faults: list[Message]) -> dict[str, Any]:
    bounds, levels = settings.get("bounds"), settings.get("categories")
    found: dict[str, Any] = {"name": name, "type": settings.get("type", _type(bounds, levels))}
    if found["type"] == "boolean":
        found |= {"trueValues": list(YES), "falseValues": list(NO)}
    found |= {FIELD[key]: _plain(settings[key]) for key in FIELD if key in settings}
    if bounds is not None and not (isinstance(bounds, list) and len(bounds) == 2):
        faults.append(message("toml.bounds", column=name))
    elif bounds is not None:
        found["constraints"] = dict(zip(("minimum", "maximum"), map(_plain, bounds), strict=True))
    if levels is not None:
        enum = _plain(levels)
        if found["type"] == "string" and isinstance(levels, list):
            # 1 may stand beside "x", and is then a text.
            enum = [str(one).lower() if isinstance(one, int | float) else one for one in levels]
        found["constraints"] = {"enum": enum}
    return found


def _type(bounds: Any, levels: Any) -> str:
    """Return the type that bounds or levels imply."""
    if levels is not None:
        sorts = {type(one) for one in levels} if isinstance(levels, list) else set()
        return "number" if sorts and sorts <= {int, float} else "string"
    if bounds is None:
        return "any"
    first = bounds[0] if isinstance(bounds, list) and bounds else None
    return "date" if day_number(_plain(first)) is not None else "number"


def _plain(value: Any) -> Any:
    """Return days as text, which JSON can hold."""
    if isinstance(value, list):
        return [_plain(one) for one in value]
    timed = isinstance(value, datetime.date | datetime.time)
    return value.isoformat() if timed else value


def _table(document: Document, key: str) -> Mapping[str, Any]:
    found = document.get(key)
    return found if isinstance(found, Mapping) else {}


def _texts(value: Any) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


# --- what is wrong with it ------------------------------------------------------------------------


def _faults(document: Document) -> Iterator[Message]:
    yield from (unknown("entry", key, TOP) for key in document if key not in TOP)
    ignored = document.get("ignore", [])
    if len(_texts(ignored)) != len(ignored if isinstance(ignored, list) else [None]):
        yield message("toml.ignore")
    for key in ("columns", "patterns"):
        if not isinstance(document.get(key, {}), Mapping):
            yield message("toml.section", section=key)
        for name, settings in _table(document, key).items():
            yield from _unknown(f"{key[:-1]} {name!r}", settings)
    yield from _unknown("[defaults]", document.get("defaults", {}))
    known = column_names(document)
    for form in (*_table(document, "patterns"), *_texts(ignored)):
        if not any(_fits(form, name) for name in known):
            yield message("toml.no-match", pattern=form, guess=did_you_mean(form, known))


def _unknown(here: str, settings: Any) -> Iterator[Message]:
    if not isinstance(settings, Mapping):
        yield message("toml.braces", place=here)
        return
    for key in settings:
        if key not in SETTINGS:
            reason = unknown("setting", key, SETTINGS)
            yield message("toml.setting", place=here, reason=reason)


# --- written out ----------------------------------------------------------------------------------

_COMMENTS_FROM = 32
INTRODUCTION = """\
# What {table} may hold.
# All of this is public: take it from what you know about the subject, never from the rows,
# where a minimum is one person's value.
"""
ABOUT = {
    "target": "the column to predict",
    "unit": "identifies the person; without it a row is the unit",
    "rows_per_unit": "maximum number of rows used of one unit",
    "missing": "cells that mean not known; they count as fill, or as the centre",
    "ignore": "columns that are not used; * stands for anything",
}
EMPTY = {"target": '""', "unit": '""', "rows_per_unit": "1"}
HEADS = {
    "defaults": "for columns without settings of their own or of a pattern",
    "patterns": "for columns whose name fits; the first match applies",
    "columns": 'bounds = [0, 9], categories = ["a", "(other)"], type = "boolean"',
}
EXAMPLES = {"defaults": "bounds = [0, 1]", "patterns": '"*_pct" = {bounds = [0, 100]}'}


def new_document(names: Sequence[str], *, proposed: bool = True, **given: Any) -> Document:
    """Return a schema with what is given: its target, its unit and others.

    If `proposed`, every column has what its name leaves no doubt about.
    """
    document = {key: one for key, one in given.items() if one is not None}
    document |= {"missing": ["", "NA"], "ignore": [], "columns": {name: {} for name in names}}
    if not proposed:
        return document
    if given.get("unit") is not None:
        document["rows_per_unit"] = 1
    for one in map(propose, names):
        if not one.is_feature and one.name not in (given.get("target"), given.get("unit")):
            document["ignore"].append(one.name)
            del document["columns"][one.name]
        elif one.sure:
            document["columns"][one.name] = one.settings
    return document


def toml_text(
    document: Document, *, table: str = "the table", notes: Mapping[str, str] | None = None
) -> str:
    """Return the file, with comments that say what is left to fill in, or other `notes`."""
    top = []
    for key in TOP:
        value = document.get(key)
        if key not in HEADS and (value is not None or key in EMPTY):
            text = f"# {key} = {EMPTY[key]}" if value is None else f"{key} = {toml_value(value)}"
            top.append(_commented(text, ABOUT.get(key, "")))
    sections = [top]
    for key, about in HEADS.items():
        lines = []
        for name, settings in document.get(key, {}).items():
            note = ""
            if key == "columns":
                note = _advice(document, name) if name not in (notes or {}) else (notes or {})[name]
            lines.append(
                _commented(f"{tomlkit.key(name).as_string()} = {toml_value(settings)}", note)
            )
        if key in EXAMPLES and not lines:
            lines = [f"# {EXAMPLES[key]}"]
            if key == "defaults" and document.get("delimiter") == ";":
                why = "? semicolons between cells: 1,5 or 1.5?"
                lines.append(_commented('# decimal = ","', why))
        sections.append([_commented(f"[{key}]", about), *lines])
    texts = ["\n".join(lines) + "\n" for lines in sections]
    return "\n".join([INTRODUCTION.format(table=plain(table)), *texts])


def _advice(document: Document, name: str) -> str:
    """Say why a column has what it has, or what may be filled in."""
    if name == document.get("unit"):
        return ""
    found, settings = propose(name), document["columns"][name]
    if settings or any(key in document.get("defaults", {}) for key in HOLDS):
        return found.why if settings == found.settings else ""
    if not found.is_feature:
        return f"? move it to ignore? {found.why}"
    perhaps = found.settings
    guess = f"perhaps {toml_value(perhaps)[1:-1]}? " if perhaps else ""
    return f"? {guess}{found.why}"


def _commented(text: str, comment: str) -> str:
    return f"{text.ljust(_COMMENTS_FROM)}  # {comment}" if comment else text


# --- an edited file -------------------------------------------------------------------------------


def edited_toml(before: str, document: Document, *, table: str = "the table") -> str:
    """Return a file with what is declared now: comments and order of a person stay as they are.

    A file that nobody changed is written anew. In others, only comments that `toml_text` wrote for
    what a column declared before are replaced.
    """
    was = parsed_toml(before.encode())
    if not before or before == toml_text(was, table=table):
        return toml_text(document, table=table)
    kept = tomlkit.parse(before)
    _edit(kept, document)
    lines: Any = kept.get("columns", {})
    for name, settings in _table(document, "columns").items():
        if _table(was, "columns").get(name, settings) != settings:
            trivia, (old, new) = lines[name].trivia, (_advice(one, name) for one in (was, document))
            if old and trivia.comment == f"# {old}":
                trivia.comment = f"# {new}" if new else ""
                trivia.comment_ws = trivia.comment_ws if new else ""
    return tomlkit.dumps(kept)


def _edit(kept: Any, now: Mapping[str, Any]) -> None:
    for key in [key for key in kept if key not in now]:
        del kept[key]
    for key, value in now.items():
        there = kept.get(key)
        if isinstance(value, Mapping) and isinstance(there, Table):
            _edit(there, value)
        elif key not in kept or toml_value(there.unwrap()) != toml_value(value):
            kept[key] = _item(value, inline=key not in ("columns", "patterns", "defaults"))


# --- keys and values ------------------------------------------------------------------------------


def toml_value(value: Any) -> str:
    """Write a text, number, boolean, day, list or table on one line."""
    return str(_item(value).as_string())


def _item(value: Any, *, inline: bool = True) -> Any:
    if not isinstance(value, Mapping):
        return tomlkit.item(list(value) if isinstance(value, tuple) else value)
    made: Any = tomlkit.inline_table() if inline else tomlkit.table()
    for key, one in value.items():
        made.append(key, _item(one))
    return made
