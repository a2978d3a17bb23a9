"""Mutants of the privacy: small patches, each of which breaks one thing that a guarantee rests on.

They stand in `mutants.toml`. A patch replaces one piece of text, which must be there exactly once.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SOURCE = ROOT / "src"
PACKAGE = Path("dpscreen")

KINDS = (
    *("sensitivity", "scale", "clip", "share", "rounding", "steps", "coin", "booking", "unit"),
    *("data-free", "noise"),
)


class Stale(Exception):
    """The text that a mutant replaces is not there, or there more than once."""


@dataclass(frozen=True)
class Mutant:
    """A patch of one file, what it breaks, and the tests that should find it.

    `equivalent` says why nothing can find it, where that is so.
    """

    name: str
    kind: str
    file: str
    breaks: str
    edits: tuple[tuple[str, str], ...]
    killers: tuple[str, ...]
    equivalent: str = ""

    def applied(self, source: Path = SOURCE) -> str:
        """Return the file as the mutant has it."""
        place = source / PACKAGE / self.file
        text = place.read_text(encoding="utf-8") if place.exists() else ""
        for old, new in self.edits:
            if text.count(old) != 1:
                raise Stale(
                    f"stale mutant {self.name!r}: its text is {text.count(old)} times in "
                    f"{self.file}, not once."
                )
            text = text.replace(old, new)
        return text


def read_mutants(path: Path = HERE / "mutants.toml") -> list[Mutant]:
    """Return all mutants, in the order of the file."""
    found = tomllib.loads(path.read_text(encoding="utf-8"))
    return [_mutant(one, found["tests"]) for one in found["mutant"]]


def _mutant(told: Mapping[str, object], short: Mapping[str, str]) -> Mutant:
    given = dict(told)
    edits = ((given.pop("old"), given.pop("new")), *map(tuple, given.pop("also", [])))
    killers = tuple(_test(one, short) for one in given.pop("killers"))
    return Mutant(**given, edits=edits, killers=killers)


def _test(told: str, short: Mapping[str, str]) -> str:
    """Return the id of a test: as it stands, or by its short name and the case behind a slash."""
    name, _, case = told.partition("/")
    return short[name].format(case) if name in short else told
