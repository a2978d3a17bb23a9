"""A schema asked for column by column, from the names alone: questions, answers and the way back.

>>> from dpscreen.tables.toml import new_document
>>> interview = Interview(new_document(["age", "sex", "cost"], proposed=False))
>>> interview.question.title
'Which column is to be predicted?'
>>> interview.answer("costs")
"There is no column 'costs'. Did you mean 'cost'?"
>>> interview.answer("cost"), interview.answer(""), interview.question.default
(None, None, '0 to 120')

What is typed where, and kept how, is the caller's: `answer` returns what is wrong, or None, and
`document` is the schema as it stands after each answer.
"""

from __future__ import annotations

import datetime
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpscreen._core.messages import Message, message
from dpscreen._core.words import did_you_mean, plain, shortened, some
from dpscreen.tables.proposals import propose
from dpscreen.tables.toml import (
    Document,
    column_names,
    ignored_names,
    settings_of,
)

ANSWERS = """\
0 to 120          the lowest and the highest possible value, written as in the
                  table: after 1,500 or $5 or 5 % such signs are read there, too
a, b, c           the words or codes that can occur, spelled as in the table;
                  put a common one first: the others are compared with it, and
                  words that are not listed count as it, or as (other) if you
                  list that: a, b, (other); "a, b" is one word
0, 1              two codes; but 0, 120 and other pairs are bounds
yes/no            yes, y, true, t or 1, and no, n, false, f or 0; type
                  other words as in nein, ja
2020-01-01 to 2024-12-31    the first and the last possible day;
                  31.12.2024, 31/12/2024 or 12/31/2024 if the table has them so
skip              do not use the column
back              return to the previous question
quit              stop here; your answers are kept
(Enter)           accept the proposal in brackets; without one, answer later
"""
HINTS = {
    "number": (
        "Type the lowest and the highest possible value, as in 0 to 500, or $0 to "
        "$1{thousands}500 for amounts of money."
    ),
    "category": "Type the words or codes, as in a, b, (other); the first is the reference level.",
    "date": "For example 2020-01-01 to 2024-12-31.",
    "unknown": (
        "For numbers type 0 to 100 or 0 to 1{thousands}500, as the table writes them; for words or "
        "codes a, b, (other); for dates 2020-01-01 to 2024-12-31; otherwise yes/no, or skip."
    ),
}
"""What to type where nothing can be proposed, by the kind that a name suggests."""
BACK, SKIP, EACH = ("back", "b", "<"), ("skip", "ignore", "s", "-"), ("each",)
YES_NO = ("yes/no", "yes or no", "y/n", "yn", "boolean", "bool", "true/false")
GROUPED_FROM = 3
"""From so many columns on, names that differ in their numbers only are asked about once."""
DAYS_WRITTEN = ("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d")
"""How days may be answered; the column is taken to have them so, too."""
_SIGNS = re.compile("[$€£¥%]")
"""May stand around numbers that are answered; then they may in the column."""
_PLAIN = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_NUMBER = rf"(?:[+-]?[1-9][0-9]{{0,2}}(?:,[0-9]{{3}})+(?:\.[0-9]*)?|{_PLAIN})"
_TO = r"(?:\s+to\s+|\s*(?:\.\.|…|–|—)\s*|\s+-\s+|\s+|(?<=[0-9.])-)"
_RANGE = re.compile(rf"({_NUMBER}){_TO}({_NUMBER})")
_PAIR = re.compile(rf"({_PLAIN})\s*[,;]\s*({_PLAIN})")
_AMBIGUOUS = r"(?<![0-9.,])[1-9][0-9]{{0,2}}[{}][0-9]{{3}}(?![0-9.,])"
_DAY = r"[0-9]{4}[-/][0-9]{2}[-/][0-9]{2}|[0-9]{1,2}[./][0-9]{1,2}[./][0-9]{4}"
_DAYS = re.compile(rf"({_DAY})(?:{_TO}|\s*,\s*)({_DAY})")
_LEVEL = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|([^,]*))\s*,""")


@dataclass(frozen=True)
class SchemaQuestion:
    """What is asked, why it is proposed so, what an empty answer stands for, and what to type."""

    title: str
    why: str = ""
    default: str = ""
    hint: str = ""


# --- answers as settings --------------------------------------------------------------------------


def settings_meant(text: str, *, decimal: str = ".") -> dict[str, Any] | None:
    """Return the settings of a column that an answer stands for; None if it is not understood.

    Numbers and days are taken to be written in the table as they are answered.
    """
    given = text.strip()
    inside = re.fullmatch(r"\[(.*)\]|\((.*)\)", given)
    if inside:
        return _bounds_meant((inside[1] or inside[2] or "").strip(), decimal, certain=True)
    if given.casefold() in YES_NO:
        return {"type": "boolean"}
    if bounds := _bounds_meant(given, decimal, certain=False):
        return bounds
    if _DAYS.fullmatch(given) or re.fullmatch(_NUMBER, given) or " to " in given:
        return None  # days that do not exist, or 1,200: one number, or two?
    if "," in given:
        levels = levels_of(given)
        numbers = all(re.fullmatch(_PLAIN, one) for one in levels)
        return {"categories": [_number(one) for one in levels] if numbers else levels}
    return None


def levels_of(given: str) -> list[str]:
    """Return the levels between commas; a pair of quotes around one may hold commas."""
    return [(one[1] or one[2] or one[3] or "").strip() for one in _LEVEL.finditer(f"{given},")]


def level_written(level: str) -> str:
    """Return a level as one would answer it, in quotes where it needs them."""
    forms = (f"{mark}{level}{mark}" for mark in ("", '"', "'"))
    return next((one for one in forms if levels_of(one) == [level]), level)


def _bounds_meant(given: str, decimal: str, *, certain: bool) -> dict[str, Any] | None:
    """Return two bounds. If not `certain`, neighbouring whole numbers with a comma are codes."""
    if found := _DAYS.fullmatch(given):
        return _days_meant(*found.groups())
    if _is_ambiguous(given, decimal):
        return None
    bare = _SIGNS.sub("", given).strip()
    more: dict[str, Any] = {} if bare == given else {"bare": False}
    swapped = "" if ", " in bare or decimal == "." else bare.translate(_SWAPPED)  # 1, 2 are two
    if found := _RANGE.fullmatch(swapped):
        return _range_meant(found, ".") | more
    if found := _RANGE.fullmatch(bare):
        return _range_meant(found, ",") | more
    grouped = re.fullmatch(_NUMBER, bare)
    if (found := _PAIR.fullmatch(bare)) and (certain or not grouped):
        pair = [_number(one) for one in found.groups()]
        return {"bounds": pair} | more if certain or not _are_codes(pair) else None
    return None


def _is_ambiguous(given: str, decimal: str) -> bool:
    """Whether a number may have thousands or decimals: 1.200 where 1.2 is one and a fifth."""
    return re.search(_AMBIGUOUS.format(decimal), given) is not None


_SWAPPED = str.maketrans(".,", ",.")


def _range_meant(found: re.Match[str], thousands: str) -> dict[str, Any]:
    grouped = any("," in one for one in found.groups())
    bounds = {"bounds": [_number(one) for one in found.groups()]}
    return bounds | ({"thousands": thousands} if grouped else {})


def _days_meant(*given: str) -> dict[str, Any] | None:
    """Return two days, in the one form that both have; 1/2/2020 alone may have two."""
    read = [(form, [_day(one, form) for one in given]) for form in DAYS_WRITTEN]
    ways = [(form, days) for form, days in read if None not in days]
    if len({tuple(days) for _, days in ways}) != 1:
        return None
    form, days = ways[0]
    return {"bounds": days} | ({} if form == DAYS_WRITTEN[0] else {"format": form})


def _are_codes(levels: Sequence[Any]) -> bool:
    """Whether two numbers with a comma between are codes, as 0, 1 or 2, 1; others are bounds."""
    return all(type(one) is int for one in levels) and abs(levels[1] - levels[0]) == 1


def in_words(settings: Mapping[str, Any]) -> str:
    """Return the answer that would mean these settings; "" if there is none."""
    if "categories" in settings:
        levels = settings["categories"]
        numbers = all(isinstance(one, int | float) for one in levels)
        bare = not numbers or len(levels) != 2 or _are_codes(levels)
        return ", ".join(level_written(str(one)) if bare else f"'{one}'" for one in levels)
    if "bounds" in settings:
        return " to ".join(_spelled(one, settings) for one in settings["bounds"])
    return YES_NO[0] if settings.get("type") == "boolean" else ""


def _spelled(bound: Any, settings: Mapping[str, Any]) -> str:
    if isinstance(bound, datetime.date):
        return bound.strftime(settings.get("format", DAYS_WRITTEN[0]))
    if "thousands" not in settings:
        return str(bound)
    grouped = f"{bound:,}"
    return grouped.translate(_SWAPPED) if settings["thousands"] == "." else grouped


def _number(text: str) -> int | float:
    plain_text = text.replace(",", "")
    whole = re.fullmatch(r"[+-]?[0-9]{1,18}", plain_text)
    return int(plain_text) if whole else float(plain_text)


def _day(text: str, form: str) -> datetime.date | None:
    try:
        return datetime.datetime.strptime(text, form).date()
    except ValueError:
        return None


# --- questions ------------------------------------------------------------------------------------


class _Step(ABC):
    """One question; `take` puts its answer into the schema, or returns what is wrong with it."""

    def applies(self, _document: Document) -> bool:
        return True

    @abstractmethod
    def question(self, document: Document) -> SchemaQuestion: ...

    @abstractmethod
    def take(self, document: Document, text: str) -> Message | None: ...


@dataclass(frozen=True)
class _NameStep(_Step):
    """Which column is the target, or the unit."""

    key: str
    title: str
    why: str = ""
    proposed: str = ""

    def question(self, document: Document) -> SchemaQuestion:
        columns = some([shortened(one, 30) for one in column_names(document)], 40)
        default = document.get(self.key) or self.proposed
        return SchemaQuestion(self.title, self.why or f"Columns: {columns}.", default)

    def take(self, document: Document, text: str) -> Message | None:
        names = column_names(document)
        name = text or str(self.question(document).default)
        if name not in names and name.casefold() in ("", "none", "no"):
            if self.key == "target":
                return message("answer.no-target")
            document["unit"] = ""
            document.pop("rows_per_unit", None)
            return None
        if name not in names:
            guess = did_you_mean(name, names)
            return message("answer.no-column", name=plain(name), guess=guess)
        if name == document.get({"target": "unit", "unit": "target"}[self.key]):
            return message("answer.same-column")
        document[self.key] = name
        _use(document, name)
        return None


class _MostRowsStep(_Step):
    """How many rows of one unit are used."""

    def applies(self, document: Document) -> bool:
        return bool(document.get("unit"))

    def question(self, document: Document) -> SchemaQuestion:
        return SchemaQuestion(
            f"At most how many rows of one {shortened(document['unit'], 40)} are used?",
            "Noise grows with their number, except in regression tables, which count units.",
            str(document.get("rows_per_unit", 1)),
        )

    def take(self, document: Document, text: str) -> Message | None:
        given = text or self.question(document).default
        if not re.fullmatch(r"[0-9]{1,7}", given) or not 1 <= int(given) <= 1_000_000:
            return message("answer.whole-number")
        document["rows_per_unit"] = int(given)
        return None


class _DecimalStep(_Step):
    """Which sign stands before decimals; asked where semicolons hint at a comma."""

    def question(self, document: Document) -> SchemaQuestion:
        why = "A comma as in 1.234,5 or a point as in 1.5? Other forms count as missing."
        default = document.get("defaults", {}).get("decimal", ",")
        return SchemaQuestion("Which decimal separator does the table use?", why, default)

    def take(self, document: Document, text: str) -> Message | None:
        words = {"comma": ",", "point": "."}
        given = words.get(text.casefold(), text) or self.question(document).default
        if given not in words.values():
            return message("answer.comma-or-point")
        marks = {"decimal": ",", "thousands": "."} if given == "," else {"decimal": "."}
        document["defaults"] = document.get("defaults", {}) | marks
        return None


@dataclass(frozen=True)
class _ColumnStep(_Step):
    """What a column holds, or several whose names differ in their numbers only."""

    names: tuple[str, ...]

    def applies(self, document: Document) -> bool:
        return self.names != (document.get("unit"),)

    def question(self, document: Document) -> SchemaQuestion:
        found, first = propose(self.names[0]), self.names[0]
        title = shortened(first, 60)
        if len(self.names) > 1:
            title += f" … {shortened(self.names[-1], 40)}, {len(self.names)} columns"
        target = " (the target)" if document.get("target") in self.names else ""
        default = in_words(settings_of(document, first))
        if first in ignored_names(document):
            default = SKIP[0]
        elif not default:
            skipped = not found.is_feature and not target
            default = SKIP[0] if skipped else in_words(found.settings)
        hint = "" if default else HINTS.get(found.kind, "")
        comma = settings_of(document, first).get("decimal") == ","
        unit = f" Unit: {found.measured_in}." if found.measured_in else ""
        hint = hint.format(thousands="." if comma else ",")
        return SchemaQuestion(title + target, f"{found.why}{unit}", default, hint)

    def take(self, document: Document, text: str) -> Message | None:
        given = text or self.question(document).default
        if not given:
            return None
        if given.casefold() in SKIP:
            return self._skip(document)
        decimal = settings_of(document, self.names[0]).get("decimal", ".")
        standing = document["columns"].get(self.names[0], {})
        offered = () if text else (standing, propose(self.names[0]).settings)
        kept = next((one for one in offered if in_words(one) == given), None)
        settings = kept or settings_meant(given, decimal=decimal)
        if settings is None and _is_ambiguous(given, decimal):
            return message("answer.ambiguous", decimal=decimal)
        if settings is None:
            return message("answer.not-understood")
        wrong = self._wrong(document, {"decimal": decimal} | settings)
        if wrong is None:
            if "thousands" in settings:  # a table is written in one way
                marks = {"thousands": settings["thousands"]}
                document["defaults"] = document.get("defaults", {}) | marks
            for name in self.names:
                _use(document, name)
                document["columns"][name] = dict(settings)
        return wrong

    def _skip(self, document: Document) -> Message | None:
        if document.get("target") in self.names:
            return message("answer.target-needed")
        for name in self.names:
            document["columns"].pop(name, None)
            if name not in document["ignore"]:
                document["ignore"].append(name)
        return None

    def _wrong(self, document: Document, settings: Mapping[str, Any]) -> Message | None:
        from dpscreen.tables.schema import toml_schema

        name = self.names[0]
        column = toml_schema({"columns": {name: settings}}).field(name)
        needs = column.needs(as_target=document.get("target") in self.names)
        problems = [*column.faults, *needs, *column.problems()]
        return problems[0].said("toml", located=False) if problems else None


def _use(document: Document, name: str) -> None:
    """Take a column out of those that are ignored."""
    if name in document["ignore"]:
        document["ignore"].remove(name)
    document["columns"].setdefault(name, {})


# --- one after the other --------------------------------------------------------------------------


class Interview:
    """The questions that are open, in order."""

    def __init__(self, document: Document, *, again: bool = False) -> None:
        self.document = document
        document.setdefault("ignore", [])
        document.setdefault("columns", {})
        self._asked = column_names(document) if again else open_columns(document)
        self._steps: list[_Step] = list(_steps(document, self._asked, again))
        self._place = -1
        self._go(1)

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to ask."""
        return self._place >= len(self._steps)

    @property
    def question(self) -> SchemaQuestion:
        """What is asked now."""
        return self._steps[self._place].question(self.document)

    @property
    def left(self) -> int:
        """How many questions there are from here on."""
        return sum(step.applies(self.document) for step in self._steps[self._place :])

    def answer(self, text: str) -> Message | None:
        """Take an answer and go on, or return what is wrong with it."""
        given = text.strip()
        step = self._steps[self._place]
        if given.casefold() in BACK:
            return None if self._go(-1) else message("answer.first-question")
        if given.casefold() in EACH and isinstance(step, _ColumnStep):
            self._steps[self._place : self._place + 1] = [_ColumnStep((one,)) for one in step.names]
            return None
        wrong = step.take(self.document, given)
        if wrong is None:
            if isinstance(step, _NameStep):  # a target or unit that is named is asked about apart
                before = [one for one in self._steps if not isinstance(one, _ColumnStep)]
                self._steps = [*before, *map(_ColumnStep, _groups(self._asked, self.document))]
            self._go(1)
        return wrong

    def _go(self, way: int) -> bool:
        """Go to the next or last question that applies; stay where there is none before."""
        place = self._place + way
        while 0 <= place < len(self._steps) and not self._steps[place].applies(self.document):
            place += way
        if place < 0:
            return False
        self._place = place
        return True


def open_columns(document: Document) -> list[str]:
    """Return the columns whose content is not declared yet."""
    done = {*ignored_names(document), document.get("unit")}
    names = [name for name in column_names(document) if name not in done]
    return [name for name in names if not in_words(settings_of(document, name))]


def _steps(document: Document, asked: Sequence[str], again: bool) -> Iterator[_Step]:
    if again or not document.get("target"):
        yield _NameStep("target", "Which column is to be predicted?")
    if again or "unit" not in document:
        found = map(propose, column_names(document))
        ids = [one.name for one in found if one.kind == "id" and one.sure]
        yield _NameStep(
            "unit",
            "Which column identifies the person (the privacy unit)?",
            "If people have several rows. Answer none if every row is a different person.",
            ids[0] if ids else "none",
        )
    if again or "rows_per_unit" not in document:
        yield _MostRowsStep()
    if document.get("delimiter") == ";" and (
        again or "decimal" not in document.get("defaults", {})
    ):
        yield _DecimalStep()
    yield from map(_ColumnStep, _groups(asked, document))


def _groups(names: Sequence[str], document: Document) -> list[tuple[str, ...]]:
    """Return columns that can be asked about together."""
    found: dict[str, list[str]] = {}
    alone = (document.get("target"), document.get("unit"))
    for name in names:
        form = name if name in alone else re.sub("[0-9]+", "#", name)
        found.setdefault(form, []).append(name)
    groups: list[tuple[str, ...]] = []
    for group in found.values():
        groups += [tuple(group)] if len(group) >= GROUPED_FROM else [(name,) for name in group]
    return groups


def columns_left(document: Document) -> str:
    """Return which columns are open, in a sentence."""
    names = tuple(shortened(name, 30) for name in open_columns(document))
    return message("answer.open", n=len(names), names=names)
