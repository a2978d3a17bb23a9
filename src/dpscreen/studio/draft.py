"""What the person has declared so far: a schema in the making, a question and a budget.

The schema is kept as the descriptor that the command line uses, so that what the studio does not
show (titles, words for missing cells) stays as it was. Everything here is public: it is
typed in, or proposed from the names of columns.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

from dpscreen._core.files import write_text
from dpscreen._core.messages import Message, message
from dpscreen._core.words import how_many, outcome
from dpscreen.families import family_of
from dpscreen.studio.questions import CHOICES
from dpscreen.tables.asking import level_written, levels_of
from dpscreen.tables.columns.base import NumberMarks
from dpscreen.tables.columns.number import NO, YES
from dpscreen.tables.declaration import USUAL, DataError
from dpscreen.tables.formula import FormulaProblem, name_in_formula, read_formula
from dpscreen.tables.proposals import propose
from dpscreen.tables.schema import (
    TableSchema,
    how_written,
    load_schema,
    public_header,
    schema_text,
)
from dpscreen.tables.toml import descriptor_of

T = TypeVar("T")
VOICE = "studio"
"""In which messages call settings as the page does."""
SKIP, TEXT, CATEGORY = "skip", "text", "category"
KIND_WORDS = {
    SKIP: "not used",
    "number": "number",
    "integer": "integer",
    "boolean": "binary (yes/no)",
    CATEGORY: "category",
    "date": "date",
    TEXT: "text, such as an id",
}
"""What a column can be said to hold."""

MOST_ROWS = 10**9
MARK, GROUPS, BARE = "decimalChar", "groupChar", "bareNumber"
TERMS = {
    "square": "I({0} ** 2)",
    "logarithm": "log({0})",
    "spline": "bs({0}, knots=[{1}])",
    "interaction": "{0}:{1}",
}
"""What can be added to a formula by clicking; the two in the middle replace the column itself."""
BETWEEN = {".": ",", ",": "."}
"""What stands between thousands, if anything does, by the sign of decimals."""


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
    transform: str
    fill: str
    why: str
    problems: tuple[str, ...]


def kind_of(entry: Mapping[str, Any]) -> str:
    """Return the kind that an entry of a schema declares."""
    word: str = entry.get("type", "any")
    if (entry.get("constraints") or {}).get("enum"):
        return CATEGORY
    return {"any": SKIP, "string": CATEGORY if "constraints" in entry else TEXT}.get(word, word)


def _typed(text: str, decimal: str) -> Any:
    """Return the number that a text spells, read as cells are; else the text, or None if empty."""
    import pyarrow as pa

    from dpscreen.tables.encode import numbers_in

    bare = text.strip().replace("\u2212", "-")
    marks = NumberMarks(decimal, BETWEEN[decimal], bare=False)
    value = float(numbers_in(pa.array([bare]), marks=marks)[0])
    if math.isnan(value):
        return bare or None
    return int(value) if value.is_integer() and abs(value) < 1e15 else value


def _numbers(text: str, decimal: str) -> list[float] | None:
    """Return the numbers of a list in increasing order; None if it is none."""
    apart = r"[;\s]+" if decimal == "," else r"[;,\s]+"
    parts = [one.strip(",") for one in re.split(apart, text) if one.strip(",")]
    found = [_typed(one, decimal) for one in parts]
    numbers = found and all(isinstance(one, int | float) for one in found)
    return sorted(set(found)) if numbers else None


def _shown(value: object, decimal: str) -> str:
    if isinstance(value, bool):
        return outcome(value)
    if isinstance(value, float):
        return f"{value:.12g}".replace(".", decimal)
    return "" if value is None else str(value)


# --- all of it ------------------------------------------------------------------------------------


def _once(method: Callable[[Draft], T]) -> Callable[[Draft], T]:
    """Read something off the descriptor once, until that changes: tables may be wide."""

    @wraps(method)
    def read(draft: Draft) -> T:
        if method.__name__ not in draft.cache:
            draft.cache[method.__name__] = method(draft)
        found: T = draft.cache[method.__name__]
        return found

    return read


@dataclass
class Draft:
    """A schema in the making, and what is asked of it."""

    descriptor: dict[str, Any]
    method: str = next(iter(CHOICES))
    intervals: bool = False
    terms: list[str] = field(default_factory=list)
    named: dict[str, set[str]] = field(
        default_factory=lambda: {"interest": set(), "required": set()}
    )
    rows: int | None = None
    rows_public: bool = False
    rate: float = 0.5
    epsilon: float = 1.0
    delta: float | None = None
    decimal: str = "."
    reviewed: set[str] = field(default_factory=set)
    cache: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, table: Path, saved: Path, **written: Any) -> Draft:
        """Go on with a schema that was saved and fits the table's names, or propose a new one.

        `written` says how the table is written, to a new schema.
        """
        if saved.exists():
            from dpscreen.tables.csv import matched_header

            schema = load_schema(saved)
            matched_header(table, schema)
            found = cls(schema.to_dict(), reviewed={column.name for column in schema.fields})
            found.method = family_of(found.classes).sparse.method
            found.decimal = next((one[MARK] for one in found.entries if MARK in one), ".")
            found._take_formula(schema)
            return found
        header = public_header(table, **written)
        document = how_written(header, written.get("dialect", USUAL))
        draft = cls(descriptor_of(document | {"columns": {one: {} for one in header.names}})[0])
        for place, one in enumerate(map(propose, header.names)):
            kind = {"id": TEXT, "unknown": SKIP}.get(one.kind, one.kind)
            low, high = (_shown(end, ".") for end in one.bounds or (None, None))
            draft.put(place, kind, low, high, ", ".join(map(str, one.levels or ())))
        # Programs write semicolons and decimal commas together.
        draft.write_decimals("," if header.delimiter == ";" else ".")
        return draft

    def _take_formula(self, schema: TableSchema) -> None:
        """Take a saved formula apart: into features, the transform of the target, and terms."""
        formula = schema.block.formula
        if self.block.pop("formula", None) is None:
            return
        if formula is None:
            schema.check()
        assert formula is not None
        names = {name_in_formula(one["name"]): one["name"] for one in self.entries}
        found = formula.term_texts
        self.terms = [one for one in found if one not in names]
        self.block["features"] = [names[one] for one in found if one in names]
        self.block["target"] = formula.target
        self.block["transform"] = dict(schema.block.transform)

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

    def put(self, place: int, kind: str, low: str = "", high: str = "", levels: str = "") -> None:
        """Take what was typed for a column; what cannot be used stays, to be reported and fixed."""
        if kind not in KIND_WORDS:
            return
        entry = self.entries[place]
        entry["type"] = {SKIP: "any", CATEGORY: "string", TEXT: "string"}.get(kind, kind)
        for key in ("constraints", "trueValues", "falseValues"):
            entry.pop(key, None)
        if kind == CATEGORY:
            typed = levels_of(",".join(levels.splitlines()))
            entry["constraints"] = {"enum": [one for one in typed if one]}
        elif kind in ("number", "integer", "date"):
            ends: list[Any] = [low.strip(), high.strip()]
            if kind != "date":
                ends = [_typed(end, self.decimal) for end in ends]
            given = zip(("minimum", "maximum"), ends, strict=True)
            entry["constraints"] = {name: end for name, end in given if end not in (None, "")}
        elif kind == "boolean":
            entry |= {"trueValues": list(YES), "falseValues": list(NO)}
        self._mark(entry)
        self.cache.clear()

    def put_more(self, place: int, transform: str, fill: str) -> None:
        """Take the transform of a column, and what a missing cell counts as; "" for neither."""
        entry, name = self.entries[place], self.entries[place]["name"]
        kind = kind_of(entry)
        value: Any = fill.strip() or None
        is_number = kind in ("number", "integer")
        if kind in (SKIP, TEXT):
            value = None
        elif value is not None and (is_number or entry["type"] == "integer"):
            value = _typed(value, self.decimal)
        elif value is not None and kind == "boolean":
            value = True if value in YES else False if value in NO else value
        wanted = transform if is_number and transform != "none" else None
        for key, given in (("transform", wanted), ("fill", value)):
            if given is not None:
                self.block[key] = {**(self.block.get(key) or {}), name: given}
            elif name in (self.block.get(key) or {}):
                del self.block[key][name]
        self.cache.clear()

    def write_decimals(self, sign: str) -> None:
        """Take the sign that stands before decimals, in all columns."""
        self.decimal = sign
        for entry in self.entries:
            self._mark(entry)
        self.cache.clear()

    def _mark(self, entry: dict[str, Any]) -> None:
        for one in (MARK, GROUPS, BARE):
            entry.pop(one, None)
        if entry["type"] in ("number", "integer"):
            entry |= {GROUPS: BETWEEN[self.decimal], BARE: False}
            entry |= {MARK: ","} if self.decimal == "," else {}

    @_once
    def schema(self) -> TableSchema:
        """Return what is declared so far."""
        return TableSchema.from_dict(self.descriptor)

    def line(self, place: int) -> ColumnLine:
        """Return a column as the page shows it."""
        entry = self.entries[place]
        constraints = entry.get("constraints") or {}
        kind, name = kind_of(entry), entry["name"]
        return ColumnLine(
            place,
            name,
            kind,
            low=_shown(constraints.get("minimum"), self.decimal),
            high=_shown(constraints.get("maximum"), self.decimal),
            levels=", ".join(level_written(str(one)) for one in constraints.get("enum") or ()),
            transform=(self.block.get("transform") or {}).get(name, "none"),
            fill=_shown((self.block.get("fill") or {}).get(name), self.decimal),
            why="" if name in self.reviewed else propose(name).why,
            problems=tuple(one.said(VOICE, located=False) for one in self._problems(place)),
        )

    def find(self, word: str) -> list[int]:
        """Return the places of columns whose name holds a word."""
        sought = word.strip().casefold()
        return [place for place, one in enumerate(self.entries) if sought in one["name"].casefold()]

    def usable(self) -> list[str]:
        """Return the columns that can be features or target, in the table's order."""
        return [one["name"] for one in self.entries if kind_of(one) not in (SKIP, TEXT)]

    def outcomes(self) -> set[str]:
        """Return the columns with two classes: booleans, or two levels."""
        return {one.name for one in self.schema().fields if one.classes is not None}

    def possible_units(self) -> list[str]:
        """Return the columns that could identify the privacy unit: by their kind, or their name."""
        chosen = self.block.get("unit")
        return [
            name
            for name, kind in ((one["name"], kind_of(one)) for one in self.entries)
            if kind == TEXT or name == chosen or (kind == "integer" and propose(name).kind == "id")
        ]

    @_once
    def column_problems(self) -> list[tuple[int, Message]]:
        """Return what keeps the columns that are used from being used, with their places."""
        places = range(len(self.entries))
        return [(place, problem) for place in places for problem in self._problems(place)]

    def _problems(self, place: int) -> list[Message]:
        """Return what keeps a column from being used, in the page's words."""
        if kind_of(self.entries[place]) in (SKIP, TEXT):
            return []
        column = self.schema().fields[place]
        found = [*column.faults, *column.needs(as_target=False), *column.problems()]
        fills = self.block.get("fill") or {}
        if column.name in fills and (must := column.fill_problem(fills[column.name])):
            found.append(message("column.fill", column=column.name, must=must))
        return [one.said(VOICE) for one in found]

    # --- question -------------------------------------------------------------------------------

    @property
    def target(self) -> str | None:
        """Return the column to be predicted, if it is chosen and still used."""
        name = self.block.get("target")
        return name if name in self.usable() else None

    @property
    def classes(self) -> tuple[Any, Any] | None:
        """Return the two classes of the target, if it is chosen and has them."""
        found = (one.classes for one in self.schema().fields if one.name == self.target)
        return next(found, None)

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
        self._choose(features)

    @property
    def formula(self) -> str:
        """Return the question as a formula; without a target its left-hand side is open."""
        terms = dict.fromkeys([*map(self._term_of, self.features), *self.terms])
        return f"{self._term_of(self.target) if self.target else '…'} ~ {' + '.join(terms) or '…'}"

    def _term_of(self, column: str) -> str:
        """Return a column as a term, with the transform that is declared."""
        name, word = name_in_formula(column), (self.block.get("transform") or {}).get(column)
        return name if word is None else f"{word}({name})"

    def numbers(self) -> list[str]:
        """Return the columns that a term of one column can be made of."""
        return [one["name"] for one in self.entries if kind_of(one) in ("number", "integer")]

    def add_term(self, kind: str, first: str, second: str, *, knots: str) -> str:
        """Add a term of a column, or of two; return why it cannot be used, or "".

        A logarithm and a spline stand in place of the column itself, other terms beside it.
        """
        needed = (first, second) if kind == "interaction" else (first,)
        if "" in needed or len(set(needed)) < len(needed):
            if kind == "interaction":
                return message("studio.term-columns")
            return message("studio.term-column")
        for name in needed:
            if name in (self.block.get("target"), self.block.get("unit")):
                return message("studio.term-of-target", name=name)
        names, given = [*map(name_in_formula, needed)], _numbers(knots, self.decimal)
        if kind == "spline":
            if given is None:
                return message("studio.term-knots")
            names.append(", ".join(f"{one:g}" for one in given))
        try:
            made = read_formula(f"_ ~ {TERMS[kind].format(*names)}")
            plain = TableSchema.from_dict(self.descriptor | {"dpscreen": {}})  # no transforms
            made.features({one.name: one for one in plain.fields})
        except FormulaProblem as problem:
            return str(problem)
        (text,) = made.term_texts
        if text in self.terms:
            return message("studio.term-twice", term=text)
        self.terms.append(text)
        replaced = kind in ("logarithm", "spline")
        kept = set(self.features).difference(needed) if replaced else {*self.features, *needed}
        self._choose(kept)
        return ""

    def remove_term(self, place: int) -> None:
        """Remove a term; the columns that it was made of are features again."""
        if place < len(self.terms):
            text = self.terms.pop(place)
            self._choose({*self.features, *read_formula(f"_ ~ {text}").names})

    def _choose(self, features: Iterable[str]) -> None:
        self.block["features"] = list(features)
        self.block["features"] = self.features
        self.cache.clear()

    @property
    def settings(self) -> dict[str, list[str]]:
        """Return the coefficients of interest of a table, and those that it never drops."""
        if not CHOICES[self.method].table:
            return {}
        schema = self.checked()
        parts = {one: list(schema.field(one).feature_names) for one in self.features}
        if schema.derived:
            written = {one: self._term_of(one) for one in self.features}
            written |= {one: one for one in self.terms}
            parts = {
                name: [one.name for one in schema.derived if one.term == text.replace("`", "")]
                for name, text in written.items()
            }
        chosen = {
            setting: [one for name, features in parts.items() if name in names for one in features]
            for setting, names in self.named.items()
        }
        return {setting: features for setting, features in chosen.items() if features}

    def problems(self) -> list[Message]:
        """Return what keeps the question from being asked, in the page's words."""
        schema, choice = self._completed(), CHOICES[self.method]
        found = self._schema_problems()
        messages = [one.said(VOICE) for one in found]
        several = (self.block.get("rows_per_unit") or 1) > 1
        if several and self.intervals and not choice.table:  # tables count units
            messages.append(message("studio.intervals-need-one-row"))
        if not found and not choice.family.fits(self.classes, float(schema.target_bounds[0])):
            unfit = message("studio.target-negative", model=choice.title)
            if choice.family.n_classes:
                unfit = message("studio.target-not-binary", model=choice.title)
            messages.append(unfit)
        return messages

    @property
    def has_intervals(self) -> bool:
        """Whether effects come with intervals: a table's always do."""
        return self.intervals or CHOICES[self.method].table

    @_once
    def _completed(self) -> TableSchema:
        """Return the schema with its features listed, as it is saved."""
        block = self.block | {"features": self.features}
        if self.terms and self.target:
            block = block | {"formula": self.formula}
            del block["features"]
            block.pop("transform", None)
        return TableSchema.from_dict(self.descriptor | {"dpscreen": block})

    @_once
    def _schema_problems(self) -> list[Message]:
        return self._completed().problems()

    # --- what comes of it -----------------------------------------------------------------------

    @_once
    def checked(self) -> TableSchema:
        """Return the schema, or raise a `DataError` that says what is missing."""
        self._completed().check()
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
        named = [sorted(one) for one in self.named.values()]
        text = json.dumps([*parts, named, self.epsilon, self.delta], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def rows_used(self) -> int | None:
        """Return the number of rows, if it is public: a fit may use it."""
        return self.rows if self.rows_public else None

    @property
    def in_words(self) -> str:
        """Say what would be fitted."""
        schema = self.checked()
        _first, second = map(outcome, schema.classes or ("", ""))
        words = CHOICES[self.method].family.words.asked
        what = words.format(target=schema.target, second=second)
        return f"{what} from {how_many(len(schema.feature_names), 'feature')}"


def whole(text: str) -> int | None:
    """Return a count that was typed; None if it is none."""
    digits = "".join(text.split()).replace(",", "").replace("\u202f", "")
    return int(digits) if digits.isdecimal() and 1 <= int(digits[:12]) <= MOST_ROWS else None
