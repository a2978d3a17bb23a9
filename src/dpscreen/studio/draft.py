"""What the person has declared so far: a schema in the making, a question and a budget.

The schema is kept as the descriptor that the command line uses, so that what the studio does not
show (transforms, fills, words for missing cells) stays as it was. Everything here is public: it is
typed in, or proposed from the names of columns.
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from dpscreen._core.files import write_text
from dpscreen._core.words import how_many, outcome
from dpscreen.studio.questions import OUTCOMES, SELECTION, choice_of
from dpscreen.tables.declaration import DataError
from dpscreen.tables.proposals import propose
from dpscreen.tables.schema import TableSchema, load_schema, new_schema, schema_text

T = TypeVar("T")
SKIP, TEXT, CATEGORY = "skip", "text", "category"
KIND_WORDS = {
    SKIP: "not used",
    "number": "number",
    "integer": "whole number",
    "boolean": "yes or no",
    CATEGORY: "category",
    "date": "date",
    TEXT: "text, such as an id",
}
"""What a column can be said to hold."""

PLAIN_WORDS = {
    "the target is not named: set dpscreen.target to the column to be predicted": (
        "Choose a target: the column to be predicted"
    ),
    "dpscreen.features is empty: name a column, or leave the list out to take all": (
        "Choose at least one column to predict from"
    ),
    "an outcome: a boolean, or two levels": "an outcome: yes or no, or a category of two levels",
    " must be a finite number, without quotes": " must be a number",
    ", from what you know, not from the data": "",
    " from what you know, not from the data": "",
    ": list the texts that may occur in constraints.enum": "",
    "constraints.minimum": "the lowest value",
    "constraints.maximum": "the highest value",
    "constraints.enum": "the levels",
    "dpscreen.rows_per_unit": "the number of rows of one person or unit",
    "dpscreen.target": "the target",
    "dpscreen.features": "the features",
    "dpscreen.unit": "the unit",
    "set `type` to": "choose a kind, ",
}
MOST_ROWS = 10**9
LEAVE_OUT, MARK, GROUPS, BARE = "leave out", "decimalChar", "groupChar", "bareNumber"
BETWEEN = {".": ",", ",": "."}
"""What stands between thousands, if anything does, by the sign of decimals."""


def plain_words(problem: str) -> str:
    """Say a problem of the schema as the page names things."""
    for told, said in PLAIN_WORDS.items():
        problem = problem.replace(told, said)
    return problem


# --- one column -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class ColumnLine:
    """A column as the page shows it: what was typed, what its name suggests, what is wrong."""

    place: int
    name: str
    kind: str
    low: str
    high: str
    levels: str
    why: str
    problems: tuple[str, ...]


def kind_of(entry: Mapping[str, Any]) -> str:
    """Return the kind that an entry of a schema declares."""
    word: str = entry.get("type", "any")
    if (entry.get("constraints") or {}).get("enum"):
        return CATEGORY
    return {"any": SKIP, "string": CATEGORY if "constraints" in entry else TEXT}.get(word, word)


def _proposed(name: str) -> dict[str, Any]:
    """Return the entry of a column by its name; a category's levels are asked for."""
    found = propose(name)
    entry = found.entry()
    if found.kind == CATEGORY:
        entry.setdefault("constraints", {"enum": []})
    return entry


def set_column(entry: dict[str, Any], kind: str, low: str, high: str, levels: str) -> None:
    """Put what was typed into an entry; what cannot be used stays, to be told and mended."""
    if kind not in KIND_WORDS:
        return
    word = {SKIP: "any", CATEGORY: "string", TEXT: "string"}.get(kind, kind)
    if kind == CATEGORY and entry.get("type") == "integer" and _all_whole(levels):
        word = "integer"
    entry["type"] = word
    entry.pop("constraints", None)
    if kind == CATEGORY:
        read = [int(one) for one in _levels(levels)] if word == "integer" else _levels(levels)
        entry["constraints"] = {"enum": read}
    elif kind in ("number", "integer"):
        entry["constraints"] = {"minimum": _number(low), "maximum": _number(high)}
    elif kind == "date":
        entry["constraints"] = {"minimum": low.strip() or None, "maximum": high.strip() or None}
    if kind != "boolean":
        entry.pop("trueValues", None)
        entry.pop("falseValues", None)


def _pointed(text: str, decimal: str) -> str:
    """Return a number as typed with a decimal point, and nothing between thousands."""
    between = BETWEEN[decimal]
    grouped = rf"[+-]?[1-9]\d{{0,2}}([{between}]\d{{3}})+([{decimal}]\d*)?"
    plain = text.replace(between, "") if re.fullmatch(grouped, text.strip()) else text
    return plain.replace(decimal, ".")


def _number(text: str) -> Any:
    """Return the number that a text spells; the text itself if it spells none."""
    text = text.strip().replace("\u2212", "-")
    try:
        value = float(text)
        return int(value) if value.is_integer() and abs(value) < 1e15 else value
    except (ValueError, OverflowError):
        return text or None


def _levels(text: str) -> list[str]:
    """Split levels at commas and lines; one that holds a comma stands in double quotes."""
    rows = csv.reader([",".join(text.splitlines())], skipinitialspace=True)
    return [one.strip() for row in rows for one in row if one.strip()]


def _all_whole(text: str) -> bool:
    return all(one.lstrip("-").isdigit() for one in _levels(text))


def _joined(levels: Iterable[object]) -> str:
    return ", ".join(_quoted(str(level)) for level in levels)


def _quoted(level: str) -> str:
    if not set(level) & set(',"\n'):
        return level
    return '"' + level.replace('"', '""') + '"'


def _shown(value: object, decimal: str) -> str:
    if isinstance(value, float):
        return f"{value:.12g}".replace(".", decimal)
    return "" if value is None else str(value)


# --- all of it ------------------------------------------------------------------------------------


@dataclass
class Draft:
    """A schema in the making, and what is asked of it."""

    descriptor: dict[str, Any]
    method: str = SELECTION
    intervals: bool = False
    rows: int | None = None
    rows_public: bool = False
    rate: float = 0.5
    epsilon: float = 1.0
    delta: float | None = None
    decimal: str = "."
    seen: set[str] = field(default_factory=set)
    _read: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, table: Path, saved: Path, **written: Any) -> Draft:
        """Go on with a schema that was saved and fits the table's names, or propose a new one.

        `written` says how the table is written, to a new schema.
        """
        if saved.exists():
            from dpscreen.tables.csv import matched_header

            schema = load_schema(saved)
            matched_header(table, schema)
            found = cls(schema.to_dict(), seen={column.name for column in schema.fields})
            found.method = OUTCOMES if found.target in found.outcomes() else SELECTION
            found.decimal = next((one[MARK] for one in found.entries if MARK in one), ".")
            return found
        made = new_schema(table, **written)
        made["fields"] = [_proposed(entry["name"]) for entry in made["fields"]]
        made["dpscreen"]["missing_target"] = LEAVE_OUT
        draft = cls(made)
        semicolons = made.get("dialect", {}).get("delimiter") == ";"
        draft.write_decimals("," if semicolons else ".")  # programs write the two together
        return draft

    # --- columns --------------------------------------------------------------------------------

    @property
    def entries(self) -> list[dict[str, Any]]:
        """Return the entries of all columns, in the table's order."""
        found: list[dict[str, Any]] = self.descriptor["fields"]
        return found

    @property
    def block(self) -> dict[str, Any]:
        """Return target, unit and features."""
        found: dict[str, Any] = self.descriptor.setdefault("dpscreen", {})
        return found

    def put(self, place: int, kind: str, low: str, high: str, levels: str) -> None:
        """Take what was typed for a column."""
        entry, bounds = self.entries[place], (low, high)
        if kind in ("number", "integer"):
            bounds = _pointed(low, self.decimal), _pointed(high, self.decimal)
        set_column(entry, kind, *bounds, levels)
        self._mark(entry)
        self._read.clear()

    def write_decimals(self, sign: str) -> None:
        """Take the sign that stands before decimals, in all columns."""
        self.decimal = sign
        for entry in self.entries:
            self._mark(entry)
        self._read.clear()

    def _mark(self, entry: dict[str, Any]) -> None:
        for one in (MARK, GROUPS, BARE):
            entry.pop(one, None)
        if entry["type"] in ("number", "integer"):
            entry |= {GROUPS: BETWEEN[self.decimal], BARE: False}
            entry |= {MARK: ","} if self.decimal == "," else {}

    def schema(self) -> TableSchema:
        """Return what is declared so far."""
        return self._once("schema", lambda: TableSchema.from_dict(self.descriptor))

    def _once(self, name: str, read: Callable[[], T]) -> T:
        """Read something off the descriptor once, until that changes: tables may be wide."""
        if name not in self._read:
            self._read[name] = read()
        found: T = self._read[name]
        return found

    def lines(self, places: Iterable[int]) -> list[ColumnLine]:
        """Return some columns as the page shows them."""
        fields = self.schema().fields
        return [self._line(place, fields[place]) for place in places]

    def _line(self, place: int, column: Any) -> ColumnLine:
        entry = self.entries[place]
        constraints = entry.get("constraints") or {}
        kind, name = kind_of(entry), entry["name"]
        return ColumnLine(
            *(place, name, kind),
            _shown(constraints.get("minimum"), self.decimal),
            _shown(constraints.get("maximum"), self.decimal),
            _joined(constraints.get("enum") or ()),
            "" if name in self.seen else propose(name).why,
            tuple(
                one.removeprefix(f"column {name!r}").lstrip(": ")
                for one in ([] if kind in (SKIP, TEXT) else _column_problems(column))
            ),
        )

    def find(self, word: str) -> list[int]:
        """Return the places of columns whose name holds a word."""
        sought = word.strip().casefold()
        return [place for place, one in enumerate(self.entries) if sought in one["name"].casefold()]

    def usable(self) -> list[str]:
        """Return the columns that can be features or target, in the table's order."""
        return [one["name"] for one in self.entries if kind_of(one) not in (SKIP, TEXT)]

    def outcomes(self) -> set[str]:
        """Return the columns with two outcomes: a yes or no, or two levels."""
        return {one.name for one in self.schema().fields if one.classes is not None}

    def possible_units(self) -> list[str]:
        """Return the columns that could tell whose row it is."""
        allowed = (TEXT, "integer", CATEGORY)
        return [one["name"] for one in self.entries if kind_of(one) in allowed]

    def column_problems(self) -> list[tuple[int, str]]:
        """Return what keeps the columns that are used from being used, with their places."""

        def read() -> list[tuple[int, str]]:
            fields = self.schema().fields
            return [
                (place, problem)
                for place, entry in enumerate(self.entries)
                if kind_of(entry) not in (SKIP, TEXT)
                for problem in _column_problems(fields[place])
            ]

        return self._once("columns", read)

    # --- question -------------------------------------------------------------------------------

    @property
    def target(self) -> str | None:
        """Return the column to be predicted, if it is chosen and still used."""
        name = self.block.get("target")
        return name if name in self.usable() else None

    @property
    def features(self) -> list[str]:
        """Return the columns that features are made of."""
        usable = self.usable()
        given = self.block.get("features")
        chosen = set(usable if given is None else given)
        chosen -= {self.block.get("target"), self.block.get("unit")}
        return [name for name in usable if name in chosen]

    def ask(self, target: str, features: Iterable[str], unit: str, rows_per_unit: str) -> None:
        """Set target, features and unit; "" stands for none."""
        self.block["target"] = target or None
        self.block["unit"] = unit or None
        self.block["rows_per_unit"] = whole(rows_per_unit) if unit else None
        self.block["features"] = list(features)
        self.block["features"] = self.features
        self._read.clear()

    def problems(self) -> list[str]:
        """Return what keeps the question from being asked, in the page's words."""
        found = self._once("problems", lambda: self._completed().problems())
        told = [plain_words(one) for one in found]
        if (self.block.get("rows_per_unit") or 1) > 1 and self.has_intervals:
            told.append(
                "Intervals need one row of each person or unit: keep one, or choose a model that "
                "has no intervals."
            )
        choice = choice_of(self.method)
        if not found and choice.outcomes and self.target not in self.outcomes():
            told.append(
                f"{choice.title} needs a target with two outcomes: a column that is "
                "yes or no, or a category of two levels."
            )
        return told

    @property
    def has_intervals(self) -> bool:
        """Whether effects come with intervals: a table's always do."""
        return self.intervals or choice_of(self.method).table

    def _completed(self) -> TableSchema:
        """Return the schema with its features listed, as it is saved."""

        def read() -> TableSchema:
            block = self.block | {"features": self.features}
            return TableSchema.from_dict(self.descriptor | {"dpscreen": block})

        return self._once("completed", read)

    # --- what comes of it -----------------------------------------------------------------------

    def checked(self) -> TableSchema:
        """Return the schema, or raise a `DataError` that says what is missing."""
        self._once("checked", lambda: self._completed().check())
        return self._completed()

    @property
    def n_features(self) -> int | None:
        """Return how many features a model would have; None while that is not settled."""
        try:
            return len(self.checked().feature_names)
        except DataError:
            return None

    def save(self, path: Path) -> None:
        """Write the schema that the command line uses."""
        write_text(path, schema_text(self._completed().to_dict()))

    @property
    def fingerprint(self) -> str:
        """Return a short word that changes with everything that a release depends on."""
        parts = (self._completed().to_dict(), self.method, self.intervals, self.rows_used)
        text = json.dumps([*parts, self.epsilon, self.delta], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def rows_used(self) -> int | None:
        """Return the number of rows that a fit may be told."""
        return self.rows if self.rows_public else None

    @property
    def in_words(self) -> str:
        """Say what would be fitted."""
        schema = self.checked()
        what, count = schema.target, how_many(len(schema.feature_names), "feature")
        if choice_of(self.method).outcomes and schema.classes is not None:
            what = f"how likely {what} is {outcome(schema.classes[1])},"
        return f"{what} from {count}"


def whole(text: str, most: int = MOST_ROWS) -> int | None:
    """Return a count that was typed; None if it is none."""
    digits = "".join(text.split()).replace(",", "").replace("\u202f", "")
    return int(digits) if digits.isdecimal() and 1 <= int(digits[:12]) <= most else None


def _column_problems(column: Any) -> list[str]:
    found = (*column.faults, *column.needs(as_target=False), *column.problems())
    return [plain_words(one) for one in found]
