"""matplotlib's SVG made fit for an HTML page: no prologue, own ids, the page's colours."""

from __future__ import annotations

import re
from collections.abc import Mapping

COORDINATES = re.compile(r'\s(?:d|x|y|transform)="[^"]*"')
LONG_NUMBER = re.compile(r"-?\d+\.\d{2,}")
FAMILY = re.compile(r"font-family: [^;\"]*")


def inline(text: str, *, prefix: str, colours: Mapping[str, str]) -> str:
    """Return the `<svg>` element alone.

    Ids get a prefix, as several pictures share a page. Colours become what `colours` says, so that
    the page's theme can change them. The size is left to the page.
    """
    body = text[text.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>\s*", "", body, flags=re.DOTALL)
    body = re.sub(r"<style.*?</style>\s*", "", body, flags=re.DOTALL)
    body = re.sub(r"<!--.*?-->\s*", "", body, flags=re.DOTALL)
    body = re.sub(r'\s(?:xmlns(?::xlink)?|version|width|height)="[^"]*"', "", body, count=5)
    body = _own_ids(body, prefix).replace("xlink:href", "href")
    for colour, stand_in in colours.items():
        body = body.replace(colour, stand_in)
    body = FAMILY.sub("font-family: system-ui, sans-serif", body)
    body = COORDINATES.sub(lambda found: LONG_NUMBER.sub(_shorter, found[0]), body)
    return re.sub(r"\s*\n\s*", "\n", body).strip()


def _shorter(found: re.Match[str]) -> str:
    return f"{float(found[0]):.1f}"


def _own_ids(body: str, prefix: str) -> str:
    body = re.sub(r'\bid="', f'id="{prefix}-', body)
    body = re.sub(r"url\(#", f"url(#{prefix}-", body)
    return re.sub(r'href="#', f'href="#{prefix}-', body)
