"""What a column may hold, guessed from its name alone: a start for anyone who fills in a schema.

>>> found = propose("age_years")
>>> found.kind, found.bounds, found.measured_in, found.sure
('number', (0, 120), 'years', True)
>>> found.why
'An age.'
>>> found.settings
{'bounds': [0, 120]}
>>> propose("patient_id").kind, propose("rownames").kind, propose("xq7").kind
('id', 'skip', 'unknown')

A name is public and a proposal is a function of it, so it reveals nothing about rows. It is general
knowledge, not knowledge of this table: `sure` says that the name leaves little to ask. The rules
stand in `names.toml`.
"""

from __future__ import annotations

import datetime
import re
import tomllib
import unicodedata
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

__all__ = ["Proposal", "propose"]


@dataclass(frozen=True)
class Proposal:
    """What a name says about its column.

    name : the column
    kind : number, integer, boolean, category or date; id or skip, no feature; unknown
    bounds : for a number, whole number or date (as "2020-01-31"); None if the name implies none
    levels : for a category; None if the name implies none
    measured_in : the unit of measurement, such as "kg"; "" if the name implies none
    why : one sentence for anyone who decides
    sure : whether it can stand without being asked about; else it is a suggestion to confirm
    """

    name: str
    kind: str
    bounds: tuple[Any, Any] | None = None
    levels: tuple[str | int, ...] | None = None
    measured_in: str = ""
    why: str = ""
    sure: bool = False

    @property
    def is_feature(self) -> bool:
        """Whether the column would be used to predict, or be predicted."""
        return self.kind not in ("id", "skip")

    @property
    def settings(self) -> dict[str, Any]:
        """Return the settings of the column in a schema, without what the name does not imply."""
        if self.kind == "boolean":
            return {"type": "boolean"}
        if self.levels is not None:
            return {"categories": list(self.levels)}
        if self.bounds is None:
            return {}
        read = datetime.date.fromisoformat if self.kind == "date" else lambda one: one
        return {"bounds": [read(one) for one in self.bounds]}


@dataclass(frozen=True)
class NameRule:
    """A form of names, and what columns of such names hold, as `names.toml` explains it."""

    names: str
    spelled: bool
    holds: Proposal

    def fits(self, words: str, measure: str) -> bool:
        """Whether a name, as words joined by _ and the unit of measurement that ended it, fits."""
        allowed = (self.holds.measured_in,) if self.spelled else ("", self.holds.measured_in)
        return measure in allowed and self._form.search(words) is not None

    @cached_property
    def _form(self) -> re.Pattern[str]:
        forms = "|".join(self.names.split()).replace("*", ".*")
        return re.compile(f"(?:^|_)(?:{forms})$")


@cache
def _knowledge() -> dict[str, Any]:
    place = files("dpscreen.tables").joinpath("names.toml")
    return tomllib.loads(place.read_text(encoding="utf-8"))


@cache
def name_rules() -> tuple[NameRule, ...]:
    """Return what names mean; the first rule that fits decides."""
    return tuple(_rule(**one) for one in _knowledge()["rules"])


def _rule(names: str, *, spelled: bool = False, **holds: Any) -> NameRule:
    usual: dict[str, Any] = {"name": "", "kind": "number", "sure": True}
    lists = {key: tuple(one) for key, one in holds.items() if isinstance(one, list)}
    return NameRule(names, spelled, Proposal(**usual | holds | lists))


@cache
def _measures() -> dict[str, str]:
    """Return the words at the end of a name that say in what a column is measured."""
    spelled = _knowledge()["spellings"].items()
    return {word: unit for unit, words in spelled for word in words.split()}


def propose(name: str) -> Proposal:
    """Return what a column may hold, judged by its name and nothing else."""
    words, measure = _words(name)
    for rule in name_rules():
        if rule.fits(words, measure):
            measured_in = measure or rule.holds.measured_in
            return replace(rule.holds, name=name, measured_in=measured_in)
    if measure:
        why = f"A measurement in {measure}: the name does not imply a range."
        return Proposal(name, "number", measured_in=measure, why=why)
    return Proposal(name, "unknown", why="The name does not say what the column holds.")


# --- names as words -------------------------------------------------------------------------------


def _words(name: str) -> tuple[str, str]:
    """Return the name in small words joined by _, and the unit of measurement that ended it."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    spaced = re.sub(r"(?<=[a-z0-9]{2})(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", plain)
    words = "_".join(re.findall(r"[a-z0-9]+|%", spaced.lower()))
    for apart in _knowledge()["in_two_words"]:
        words = re.sub(rf"(?<![a-z]){apart}$", apart.replace("_", ""), words)
    head, _, last = words.rpartition("_")
    measure = _measures().get(last, "") if head else ""
    return (head, measure) if measure else (words, "")
