"""Sentences that several checks of a schema share."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


def listed(names: Iterable[object], joint: str = "and") -> str:
    """Join words as one writes them: a, b and c."""
    *first, last = [str(name) for name in names] or [""]
    return f"{', '.join(first)} {joint} {last}" if first else last


def mistyped(what: str, given: object, known: Sequence[str]) -> str:
    """Say that a word is not known, and which one may have been meant."""
    close = difflib.get_close_matches(str(given), known, n=1)
    guess = f"did you mean {close[0]!r}?" if close else f"known are {some(known)}."
    return f"there is no {what} {str(given)[:40]!r}; {guess}"


def some(names: Sequence[object], most: int = 8) -> str:
    """Join words, and count those for which there is no room."""
    if len(names) <= most:
        return listed(names)
    return f"{', '.join(str(name) for name in names[:most])} and {len(names) - most} more"
