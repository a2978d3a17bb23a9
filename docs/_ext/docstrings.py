"""Docstrings are plain text: names such as coef_ and sizes such as |x| are no markup."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

_CODE = re.compile(r"(``.+?``|`.+?`)")
_FIELD = re.compile(r"\s*:[^:`]+:(?!`)")
_MARKUP = re.compile(r"(?<!\\)(\||(?<=\w)_(?=\W|$))")
AFTER_NAPOLEON = 900


def escaped(line: str) -> str:
    """Return a line whose text outside backticks holds no references or substitutions."""
    if line.lstrip().startswith((">>>", "..")):
        return line
    field = _FIELD.match(line)
    start = field.end() if field else 0
    parts = _CODE.split(line[start:])
    texts = (part if n % 2 else _MARKUP.sub(r"\\\1", part) for n, part in enumerate(parts))
    return line[:start] + "".join(texts)


def _escape(_app: Sphinx, _what: str, _name: str, _obj: Any, _opts: Any, lines: list[str]) -> None:
    lines[:] = [escaped(line) for line in lines]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the clean-up, after the sections of docstrings have been read."""
    app.connect("autodoc-process-docstring", _escape, priority=AFTER_NAPOLEON)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
