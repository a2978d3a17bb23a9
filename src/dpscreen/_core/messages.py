"""Messages to people: a code and fields. The text of every code is in `messages.toml`.

Logic compares codes and fields, and never the text. A text may name settings as
`{set[constraints.minimum]}`: what these are called depends on the `voice`, such as a schema in
TOML or the studio, which can also have a text of its own for a code.

>>> found = message("column.order", column="age")
>>> found, found.code, found.fields
("column 'age': the minimum must be below the maximum.", 'column.order', {'column': 'age'})
"""

from __future__ import annotations

import string
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Self

from dpscreen._core.words import how_many, listed, meant, some

CATALOGUE = Path(__file__).with_name("messages.toml")
COLUMN = "column {!r}"


@dataclass(frozen=True)
class SchemaKey:
    """The name of a setting in a JSON schema; other voices call it otherwise."""

    key: str


class Message(str):
    """The text of a code with its fields, in a voice, with or without the column's name."""

    __slots__ = ("code", "fields", "located", "voice")
    code: str
    fields: Mapping[str, Any]
    voice: str
    located: bool

    def __new__(
        cls, code: str, fields: Mapping[str, Any], voice: str = "", located: bool = True
    ) -> Self:
        """Write the text."""
        shown = {name: _shown(value, voice) for name, value in fields.items()}
        here = COLUMN.format(fields["column"]) if located and "column" in fields else ""
        shown |= {"at": here and f"{here}: ", "it": here or "it", "set": _Names(voice)}
        made = super().__new__(cls, _Formatter().vformat(_text_of(code, voice), (), shown))
        made.code, made.fields, made.voice, made.located = code, fields, voice, located
        return made

    def __getnewargs__(self) -> Any:
        """Return what a copy is made of."""
        return self.code, self.fields, self.voice, self.located

    def said(self, voice: str, *, located: bool = True) -> Message:
        """Return the message in another voice; not `located`, without the column it is about."""
        return Message(self.code, self.fields, voice, located)


def message(code: str, **fields: Any) -> Message:
    """Return a message of a code that the catalogue has."""
    return Message(code, fields)


def unknown(kind: str, given: object, known: Sequence[str]) -> Message:
    """Return that a name is not known, with the one that may have been meant, or all of them."""
    name, close = str(given)[:40], meant(str(given), known)
    if close is None:
        return message("name.unknown", kind=kind, given=name, known=tuple(known))
    return message("name.mistyped", kind=kind, given=name, close=close)


@cache
def catalogue() -> Mapping[str, Mapping[str, str]]:
    """Return texts by voice and code; those of no voice in particular are under ""."""
    given = tomllib.loads(CATALOGUE.read_text(encoding="utf-8"))
    voices = given.pop("voices")
    return {"": _flat(given)} | {voice: _flat(texts) for voice, texts in voices.items()}


def _text_of(code: str, voice: str) -> str:
    """Return the text of a code, that of the voice if it has one."""
    texts = catalogue()
    return texts[voice].get(code) or texts[""][code]


def _flat(tables: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    return {f"{name}.{key}": one for name, texts in tables.items() for key, one in texts.items()}


def _shown(value: Any, voice: str) -> Any:
    match value:
        case SchemaKey():
            return _Names(voice)[value.key]
        case Message():
            return value.said(voice, located=False)
        case tuple():
            return tuple(_shown(one, voice) for one in value)
    return value


class _Names:
    """What settings are called by a voice."""

    def __init__(self, voice: str) -> None:
        self._names = catalogue()[voice]

    def __getitem__(self, key: str) -> str:
        return self._names.get(f"set.{key}", key)


class _Formatter(string.Formatter):
    """Fields that are lists: `{names:and}`, `{names:or}`, `{names:some}`, `{names:quoted}`.

    A count with its noun is `{n:# row}`, a list with its noun `{places:some column}`.
    """

    def format_field(self, value: Any, format_spec: str) -> Any:
        if format_spec in ("and", "or"):
            return listed(value, format_spec)
        if format_spec == "some":
            return some(value)
        if format_spec.startswith("some "):
            return f"{format_spec[5:]}{'s' * (len(value) > 1)} {some(value)}"
        if format_spec == "quoted":
            return listed(map(repr, value))
        if format_spec.startswith("# "):
            return how_many(value, format_spec[2:])
        return super().format_field(value, format_spec)
