"""Words and names made safe for where they are shown.

Column names come from files, and so do whole models: none of their characters may move a cursor,
open a tag or break a table.
"""

from __future__ import annotations

import math
import re

_LONGEST = 200
_MARKDOWN = re.compile(r"([\\`*_\[\]#|~$])")


def plain(text: str) -> str:
    """Return text on one line, with what cannot be printed written as an escape."""
    shown = "".join(one if one.isprintable() else _escape(one) for one in text)
    return shown if len(shown) <= _LONGEST else shown[: _LONGEST - 1] + "…"


def prose(text: str) -> str:
    """Return a paragraph on one line, of any length, with nothing that cannot be printed."""
    return "".join(one if one.isprintable() else _escape(one) for one in " ".join(text.split()))


def _escape(one: str) -> str:
    return one.encode("unicode_escape").decode("ascii")


def markdown(text: str) -> str:
    """Return text that Markdown shows as it is: no emphasis, cell, heading or tag comes of it."""
    shown = _MARKDOWN.sub(r"\\\1", prose(text))
    return shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def number(value: float, *, digits: int = 6) -> str:
    """Return a number as tables show it."""
    return f"{value:.{digits}g}"


def percent(share: float) -> str:
    """Return a probability in percent, with as many digits as tell it from 0 and from 1."""
    rest = 100 * min(share, 1 - share)
    if rest < 1e-6:
        return "more than 99.9999 %" if share > 0.5 else "less than 0.0001 %"
    digits = 0 if rest >= 10 else math.ceil(-math.log10(rest)) + 1
    shown = f"{100 * share:.{digits}f}"
    return (shown.rstrip("0").rstrip(".") if "." in shown else shown) + " %"
