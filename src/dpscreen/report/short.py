"""Names that may be hostile, cut to a width: long, in another direction, or full of emoji."""

from __future__ import annotations

import unicodedata

ELLIPSIS = "…"
MOST_ACCENTS = 3


def shortened(text: str, cells: int) -> str:
    """Return the text on one line, without control signs, and at most `cells` wide.

    Wide signs count two.
    """
    clean = "".join(" " if _is_space(sign) else sign for sign in text if not _is_control(sign))
    clean = without_towers(" ".join(clean.split())) or "(no name)"
    if sum(map(_width, clean)) <= cells:
        return clean
    kept, used = "", 1
    for sign in clean:
        used += _width(sign)
        if used > cells:
            break
        kept += sign
    return kept.rstrip() + ELLIPSIS


def without_towers(text: str) -> str:
    """Return the text with at most three accents on a letter: more would cover its neighbours."""
    kept, accents = [], 0
    for sign in text:
        accents = accents + 1 if unicodedata.category(sign) in ("Mn", "Me") else 0
        if accents <= MOST_ACCENTS:
            kept.append(sign)
    return "".join(kept)


def _is_space(sign: str) -> bool:
    return sign.isspace() or unicodedata.category(sign) in ("Zs", "Zl", "Zp")


def _is_control(sign: str) -> bool:
    """Whether a sign is not shown: control signs, marks of direction, lone surrogates."""
    return unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Co", "Cn") and not sign.isspace()


def _width(sign: str) -> int:
    return 2 if unicodedata.east_asian_width(sign) in ("W", "F") else 1
