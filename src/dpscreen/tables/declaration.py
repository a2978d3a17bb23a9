"""What a table may hold, as a value that readers depend on; `TableSchema` can call them, too."""

from __future__ import annotations

import codecs
import json
import operator
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as described
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from dpscreen._core.arrays import Array
from dpscreen._core.files import one_ahead
from dpscreen._core.messages import Message, SchemaKey, message
from dpscreen._core.words import did_you_mean, meant, outcome
from dpscreen.tables.block import SchemaBlock, problems, read_block, with_formula_columns
from dpscreen.tables.columns import Column, read_column
from dpscreen.tables.columns.base import TRANSFORMS, UNCHANGED, Entry, are_texts
from dpscreen.tables.formula import DerivedColumn, FormulaProblem

if TYPE_CHECKING:
    from dpscreen.privacy.budget import Unit

DELIMITERS = (",", ";", "\t", "|")
QUOTES = ('"', "'")
UTF8 = "utf-8"
MOST_UNREADABLE = 0.05
"""Above this share of unreadable cells in a column a fit is stopped, unless another is given."""


# --- refusals -------------------------------------------------------------------------------------
#
# Readers and converters quote the cell they stumble over. `quietly` lets no such text escape: not
# in a message, and not in the exception that a new one would otherwise be chained to.

T = TypeVar("T")


class DataError(Exception):
    """Any failure to find, read or download a data set."""


class SchemaProblem(DataError, ValueError):
    """The schema cannot be used. `problems` lists why, each with how to fix it."""

    def __init__(self, reason: Message, problems: tuple[Message, ...] = ()) -> None:
        super().__init__(reason)
        self.message = reason
        self.problems = problems or (reason,)


class TableProblem(DataError, ValueError):
    """A table cannot be read. The message names places and public names, never a cell."""


def called(place: Path | str) -> str:
    """Name a file, or what else a table comes from, within a sentence."""
    return f"the table {place}" if isinstance(place, Path) else place


def quietly(
    work: Callable[[], T], why: str | Callable[[Exception], Message], **fields: object
) -> T:
    """Do it, or raise a problem in our own words: by its code, or as found out from the error.

    The field `kind` is the type of the error, which is all that may be repeated of it.
    """
    try:
        return work()
    except Exception as error:
        kind = type(error).__name__
        try:
            found = message(why, kind=kind, **fields) if isinstance(why, str) else why(error)
        except Exception:  # the search for a reason stumbled too
            found = message("table.unreadable", kind=kind)
    # Raised out here so that the original is not even attached.
    raise TableProblem(found)


def each_quietly(
    batches: Iterator[T], why: str | Callable[[Exception], Message], **fields: object
) -> Iterator[T]:
    """Yield what comes, read by `quietly`."""
    while (batch := quietly(lambda: next(batches, None), why, **fields)) is not None:
        yield batch


class Batches(ABC):
    """The wanted columns of a table, as Arrow batches; `share` of it (0 to 1) has been read."""

    share = 0.0

    def __iter__(self) -> Iterator[Any]:
        return one_ahead(self._batches())

    @abstractmethod
    def _batches(self) -> Generator[Any, None, None]: ...


# --- a table as declared --------------------------------------------------------------------------


@dataclass(frozen=True)
class Dialect:
    """How a file is written: its signs, its encoding, and which sheet of a workbook it is."""

    delimiter: str | None = None
    quote: str = '"'
    encoding: str = UTF8
    sheet: str | int | None = None


USUAL = Dialect()


@dataclass(frozen=True)
class Declaration:
    """A table as declared. Ask `problems()` before anything that needs it to be complete."""

    fields: tuple[Column, ...]
    block: SchemaBlock
    missing_values: tuple[str, ...] = ("",)
    dialect: Dialect = USUAL
    faults: tuple[Message, ...] = described(default=(), repr=False)
    text: str = described(default="", repr=False)
    from_toml: bool = described(default=False, repr=False, compare=False)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """Read a descriptor; refuse what is no Table Schema at all."""
        entries = _entries(given)
        faults: list[Message] = []
        whole = Entry(given, "", faults)
        missing = given.get("missingValues", [""])
        if isinstance(missing, list):
            missing = [one.get("value") if isinstance(one, Mapping) else one for one in missing]
        if not are_texts(missing):
            whole.must("missingValues", "missing-values")
            missing = [""]
        dialect = _dialect(whole)
        block = read_block(given.get("dpscreen") or {}, [one["name"] for one in entries])
        fills, transforms = dict(block.fill), dict(block.transform)
        columns = tuple(
            read_column(
                entry,
                missing=tuple(missing),
                fill=fills.get(entry["name"]),
                transform=TRANSFORMS[transforms.get(entry["name"], UNCHANGED.name)],
            )
            for entry in entries
        )
        block = with_formula_columns(block, columns)
        return cls(columns, block, tuple(missing), dialect, tuple(faults), _as_text(given))

    def to_dict(self) -> dict[str, Any]:
        """Return the descriptor, titles and descriptions included."""
        descriptor: dict[str, Any] = json.loads(self.text)
        return descriptor

    def problems(self) -> list[Message]:
        """List what keeps the schema from being used, each with how to fix it."""
        columns = [fault for column in self.fields for fault in column.faults]
        found = [*columns, *self.block.faults, *problems(self.block, self.fields)]
        if not found and self.block.formula is not None:
            try:
                _ = self.derived
            except FormulaProblem as problem:
                formula = SchemaKey("dpscreen.formula")
                found.append(message("setting.in-block", setting=formula, reason=problem.args[0]))
        found = [*self.faults, *found]
        return [one.said("toml") for one in found] if self.from_toml else found

    def check(self) -> None:
        """Refuse a schema that cannot be used."""
        found = tuple(self.problems())
        if found:
            lines = "".join(f"\n  - {problem}" for problem in found)
            raise SchemaProblem(message("schema.unusable", problems=lines), found)

    # --- columns --------------------------------------------------------------------------------

    @property
    def target(self) -> str:
        """The column to be predicted."""
        if self.block.target is None:
            raise SchemaProblem(message("schema.no-target"))
        return self.block.target

    @property
    def unit(self) -> str | None:
        """The column that identifies the person; None if the row is the unit."""
        return self.block.unit

    @property
    def rows_per_unit(self) -> int:
        """The most rows of one unit that are used."""
        return 1 if self.unit is None else self.block.rows_per_unit or 1

    @property
    def privacy_unit(self) -> Unit | None:
        """Whose coming or going a fit of these rows hides; None where the schema names nobody."""
        from dpscreen.privacy.budget import Unit

        return None if self.unit is None else Unit(self.rows_per_unit, self.unit)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table that the features are made of."""
        return self.block.feature_columns(column.name for column in self.fields)

    def field(self, name: str) -> Column:
        """Return the column of that name."""
        if name not in self._by_name:
            guess = did_you_mean(name, self._by_name)
            raise SchemaProblem(message("schema.no-column", name=name, guess=guess))
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> dict[str, Column]:
        return {column.name: column for column in self.fields}

    # --- features -------------------------------------------------------------------------------

    @cached_property
    def derived(self) -> tuple[DerivedColumn, ...]:
        """The features that the formula makes; none without a formula."""
        formula = self.block.formula
        return () if formula is None else formula.features(self._by_name)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The features of a model; a category has one for each level but the first."""
        if self.block.formula is not None:
            return tuple(one.name for one in self.derived)
        names = (self.field(name).feature_names for name in self.columns)
        return tuple(feature for group in names for feature in group)

    @property
    def feature_bounds(self) -> Array:
        """Lower and upper bound of each feature, after its transform."""
        if self.block.formula is not None:
            return np.array([one.bounds for one in self.derived], dtype=np.float64)
        groups = (self.field(name).feature_bounds for name in self.columns)
        return np.array([pair for group in groups for pair in group], dtype=np.float64)

    @property
    def target_bounds(self) -> tuple[float, float]:
        """The target's bounds, after its transform."""
        return self.field(self.target).bounds

    @property
    def classes(self) -> tuple[Any, Any] | None:
        """The two outcomes of a binary target, a boolean or two levels; None of a number."""
        return self.field(self.target).classes

    @property
    def class_names(self) -> tuple[str, ...]:
        """The two outcomes of a binary target in words; of a number, none."""
        return tuple(map(outcome, self.classes or ()))

    def untransform_target(self, values: ArrayLike) -> Array:
        """Return predictions in the user's units; a transformed target is clipped to its bounds."""
        given, target = np.asarray(values, dtype=np.float64), self.field(self.target)
        if target.transform is UNCHANGED:
            return given.copy()
        inverted = target.transform.invert(np.clip(given, *target.bounds))
        return np.asarray(np.clip(inverted, *target.declared_bounds))  # it may round beyond them


# --- names of columns -----------------------------------------------------------------------------


def check_names(path: Path | str, names: Sequence[object]) -> None:
    """Refuse names that are empty or there twice, by their places."""
    empty = [place for place, name in enumerate(names, 1) if name == ""]
    if empty:
        raise TableProblem(message("table.no-name", table=called(path), places=tuple(empty)))
    counts = Counter(names)
    same = [place for place, name in enumerate(names, 1) if counts[name] > 1]
    if same:
        raise TableProblem(message("table.names-twice", table=called(path), places=tuple(same)))


def match_names(
    path: Path | str, names: Sequence[object], schema: Declaration, optional: Sequence[str] = ()
) -> None:
    """Refuse columns that are missing, and columns that the schema does not know."""
    check_names(path, names)
    known = {column.name: None for column in schema.fields}  # in order, and quick to ask
    there = {*names, *optional}
    missing = tuple(name for name in known if name not in there)
    strange = {place: name for place, name in enumerate(names, 1) if name not in known}
    faults, hint = [], ""
    if missing:
        faults.append(message("table.lacks", names=tuple(map(repr, missing))))
    if len(missing) == len(known):
        hint = message("table.no-header")
    if strange:
        faults.append(message("table.strange", places=tuple(strange)))
        # Only names of the schema are repeated: a first line may be a row.
        place, name = next(iter(strange.items()))
        if close := meant(str(name), missing):
            hint = message("table.name-meant", place=place, name=close)
    if faults:
        found = message("table.names", table=called(path), faults=tuple(faults), hint=hint)
        raise TableProblem(found)


# --- entries --------------------------------------------------------------------------------------


def _entries(given: Any) -> list[Mapping[str, Any]]:
    fields = given.get("fields") if isinstance(given, Mapping) else None
    if not isinstance(fields, list) or not fields:
        raise SchemaProblem(message("schema.not-a-schema"))
    for place, entry in enumerate(fields, start=1):
        if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
            raise SchemaProblem(message("schema.entry-without-name", place=place))
    return fields


def _dialect(whole: Entry) -> Dialect:
    encoding = whole.setting("encoding", UTF8, is_encoding, "encoding")
    dialect = whole.given.get("dialect") or {}
    if not isinstance(dialect, Mapping):
        whole.must("dialect", "dialect")
        dialect = {}
    entry = Entry(dialect, "dialect.", whole.faults)
    only = {"header": True, "doubleQuote": True, "headerRows": [1], "commentRows": []}
    for key, usual in (only | dict.fromkeys(("escapeChar", "commentChar"))).items():
        entry.setting(key, usual, partial(operator.eq, usual), "only", value=json.dumps(usual))
    name = entry.setting("sheetName", None, lambda one: isinstance(one, str | None), "sheet")
    number = entry.setting(
        "sheetNumber",
        None,
        lambda one: one is None or (type(one) is int and one >= 1),
        "sheet-number",
    )
    signs = tuple(map(json.dumps, DELIMITERS))
    delimiter = entry.setting(
        "delimiter", None, lambda one: one in (None, *DELIMITERS), "delimiter", delimiters=signs
    )
    return Dialect(
        delimiter,
        entry.setting("quoteChar", '"', lambda one: one in QUOTES, "quote"),
        codecs.lookup(encoding).name,
        number if name is None else name,
    )


_SWITCHING = ("iso2022", "hz", "utf-7", "unicode-escape", "raw-unicode-escape", "punycode", "idna")


def is_encoding(name: Any) -> bool:
    """Whether Python knows an encoding of text by that name, in which a line stands for itself.

    Where signs switch how all that follows is read, one row could change others or take them away.
    """
    try:
        "a".encode(name)
    except (LookupError, TypeError, ValueError):
        return False
    return not codecs.lookup(name).name.startswith(_SWITCHING)


def _as_text(given: Mapping[str, Any]) -> str:
    """Write JSON, which other readers have, too."""
    try:
        return json.dumps(given)
    except (TypeError, ValueError, RecursionError):
        raise SchemaProblem(message("schema.not-json")) from None
