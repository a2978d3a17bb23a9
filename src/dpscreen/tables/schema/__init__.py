"""What a table may hold, declared beforehand: types, bounds, levels, target and privacy unit.

>>> schema = load_schema("schema.json")     # Data Package v2 Table Schema and a `dpscreen` block
>>> schema.check()                          # every problem, each with how to mend it
>>> schema.feature_names, schema.feature_bounds, schema.target_bounds

Nothing here is ever read off the data: a schema is public. docs/schema.md says what each entry
means.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as described
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dpscreen._core.arrays import Array
from dpscreen._core.files import NotStrictJson, strict_json
from dpscreen._core.words import listed
from dpscreen.tables.problem import DataError
from dpscreen.tables.schema import checks
from dpscreen.tables.schema.fields import TRANSFORMS, Field, read_field
from dpscreen.tables.schema.settings import SchemaBlock, read_settings

if TYPE_CHECKING:
    from dpscreen.privacy.unit import Unit
    from dpscreen.tables.reading import EncodedRows

LARGEST_FILE = 50_000_000
DELIMITERS = (",", ";", "\t", "|")


class SchemaProblem(DataError, ValueError):
    """The schema cannot be used. `problems` lists why, each with how to mend it."""

    def __init__(self, message: str, problems: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.problems = problems or (message,)


@dataclass(frozen=True)
class TableSchema:
    """A table as declared. Ask `problems()` before anything that needs it to be complete."""

    fields: tuple[Field, ...]
    settings: SchemaBlock
    missing_values: tuple[str, ...] = ("",)
    delimiter: str | None = None
    quote: str = '"'
    faults: tuple[str, ...] = described(default=(), repr=False)
    text: str = described(default="", repr=False)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> TableSchema:
        """Read a descriptor; refuse what is no Table Schema at all."""
        fields = _field_entries(given)
        faults: list[str] = []
        missing = _missing_values(given, faults)
        delimiter, quote = _dialect(given, faults)
        return cls(
            tuple(read_field(entry) for entry in fields),
            read_settings(given.get("dpscreen") or {}),
            missing,
            delimiter,
            quote,
            tuple(faults),
            _as_text(given),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the descriptor, titles and descriptions included, empty constraints left out."""
        descriptor: dict[str, Any] = json.loads(self.text)
        return descriptor

    def problems(self) -> list[str]:
        """List what keeps the schema from being used, each with how to mend it."""
        return list(checks.problems(self))

    def check(self) -> None:
        """Refuse a schema that cannot be used."""
        found = tuple(self.problems())
        if found:
            lines = "".join(f"\n  - {problem}" for problem in found)
            raise SchemaProblem(f"the schema cannot be used yet:{lines}", found)

    # --- columns --------------------------------------------------------------------------------

    @property
    def target(self) -> str:
        """The column to be predicted."""
        if self.settings.target is None:
            raise SchemaProblem("the schema names no target: set dpscreen.target.")
        return self.settings.target

    @property
    def unit(self) -> str | None:
        """The column that tells whose row it is; None if the row is the unit."""
        return self.settings.unit

    @property
    def rows_per_unit(self) -> int:
        """The most rows of one unit that are used."""
        return 1 if self.unit is None else self.settings.rows_per_unit or 1

    @property
    def privacy_unit(self) -> Unit | None:
        """Whose coming or going a fit of these rows hides; None where the schema names nobody."""
        from dpscreen.privacy.unit import Unit

        return None if self.unit is None else Unit(self.rows_per_unit, self.unit)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table that the features are made of."""
        if self.settings.features is not None:
            return self.settings.features
        others = (self.settings.target, self.settings.unit)
        return tuple(field.name for field in self.fields if field.name not in others)

    def field(self, name: str) -> Field:
        """Return the column of that name."""
        if name not in self._by_name:
            raise SchemaProblem(f"the schema has no column {name!r}.")
        return self._by_name[name]

    def has_field(self, name: str) -> bool:
        """Whether a column of that name is declared."""
        return name in self._by_name

    @cached_property
    def _by_name(self) -> dict[str, Field]:
        return {field.name: field for field in self.fields}

    def transform_of(self, name: str) -> str:
        """Return the public transform of a column, "none" where none is declared."""
        return str(dict(self.settings.transform).get(name, "none"))

    # --- features -------------------------------------------------------------------------------

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The features of a model: a column of numbers is one, a category one for each level."""
        names = (self.field(name).feature_names for name in self.columns)
        return tuple(feature for group in names for feature in group)

    @property
    def feature_bounds(self) -> Array:
        """Lower and upper bound of each feature, after its transform."""
        groups = (
            [(0.0, 1.0)] * len(field.feature_names)
            if field.is_categorical
            else [self.bounds_of(field.name)]
            for field in map(self.field, self.columns)
        )
        return np.array([pair for group in groups for pair in group], dtype=np.float64)

    @property
    def target_bounds(self) -> tuple[float, float]:
        """The target's bounds, after its transform."""
        return self.bounds_of(self.target)

    def bounds_of(self, name: str) -> tuple[float, float]:
        """Return the bounds of a column of numbers, after its transform."""
        transform = TRANSFORMS[self.transform_of(name)]
        low, high = transform.apply(np.array(self.field(name).declared_bounds))
        return float(low), float(high)

    def fill_of(self, name: str) -> float:
        """Return what a missing number becomes, after the transform: a public value."""
        low, high = self.bounds_of(name)
        declared = dict(self.settings.fill).get(name)
        if declared is None:
            return low / 2 + high / 2
        transform = TRANSFORMS[self.transform_of(name)]
        return float(transform.apply(np.array([declared], dtype=np.float64))[0])

    def untransform_target(self, values: ArrayLike) -> Array:
        """Return predictions in the user's units; a transformed target is held to its bounds."""
        given = np.asarray(values, dtype=np.float64)
        word = self.transform_of(self.target)
        if word == "none":
            return given.copy()
        return np.asarray(TRANSFORMS[word].invert(np.clip(given, *self.target_bounds)))

    def encode(self, frame: Any) -> EncodedRows:
        """Return the rows of a pandas, polars or Arrow table, as if read from a file."""
        from dpscreen.tables.arrow import encode_frame

        return encode_frame(frame, self)

    def encode_features(self, frame: Any) -> Array:
        """Return the features of every row of a frame, to predict; the target may be absent."""
        from dpscreen.tables.arrow import frame_features

        return frame_features(frame, self)


# --- files ----------------------------------------------------------------------------------------


def load_schema(path: str | Path) -> TableSchema:
    """Read a schema from a JSON file."""
    place = Path(path)
    try:
        with place.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise SchemaProblem(f"the schema {place} cannot be read: {reason}.") from None
    if len(data) > LARGEST_FILE:
        raise SchemaProblem(f"the file {place} is too large for a schema.")
    return TableSchema.from_dict(_parsed(data, place))


def _parsed(data: bytes, place: Path) -> Any:
    """Parse strictly. A file that is no schema may be private: nothing of it is repeated."""
    try:
        return strict_json(data)
    except NotStrictJson as problem:
        why = problem.where or str(problem)
    raise SchemaProblem(
        f"the file {place} is not a schema in JSON ({why}); `dpscreen schema new` makes one to "
        "fill in."
    )


# --- entries --------------------------------------------------------------------------------------


def _field_entries(given: Any) -> list[Mapping[str, Any]]:
    fields = given.get("fields") if isinstance(given, Mapping) else None
    if not isinstance(fields, list) or not fields:
        raise SchemaProblem(
            "this is no Table Schema: it needs `fields`, a list with one entry for each column."
        )
    for place, entry in enumerate(fields, start=1):
        if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
            raise SchemaProblem(f"entry {place} of `fields` needs a name in quotes.")
    return fields


def _missing_values(given: Mapping[str, Any], faults: list[str]) -> tuple[str, ...]:
    values = given.get("missingValues", [""])
    if isinstance(values, list):
        texts = [one.get("value") if isinstance(one, Mapping) else one for one in values]
        if all(isinstance(text, str) for text in texts):
            return tuple(map(str, texts))
    faults.append('missingValues must be a list of texts, such as ["", "NA"].')
    return ("",)


def _dialect(given: Mapping[str, Any], faults: list[str]) -> tuple[str | None, str]:
    dialect = given.get("dialect") or {}
    if not isinstance(dialect, Mapping):
        faults.append('dialect must be an object, such as {"delimiter": ";"}.')
        return None, '"'
    for key, usual in {"header": True, "doubleQuote": True, "headerRows": [1]}.items():
        if dialect.get(key, usual) != usual:
            faults.append(f"dialect.{key} must be {json.dumps(usual)}: other tables are not read.")
    for key in ("escapeChar", "commentChar", "commentRows"):
        if dialect.get(key):
            faults.append(f"dialect.{key} is not read: leave it out, and write the table without.")
    delimiter, quote = dialect.get("delimiter"), dialect.get("quoteChar", '"')
    if delimiter is not None and delimiter not in DELIMITERS:
        faults.append(f"dialect.delimiter must be {listed(map(json.dumps, DELIMITERS), 'or')}.")
        delimiter = None
    if quote not in ('"', "'"):
        faults.append("dialect.quoteChar must be a double or a single quote.")
        quote = '"'
    return delimiter, quote


def _as_text(given: Mapping[str, Any]) -> str:
    try:
        return json.dumps(_pruned(given))
    except (TypeError, ValueError, RecursionError):
        raise SchemaProblem("the schema holds something that JSON cannot hold.") from None


def _pruned(given: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what a new schema left empty, which other readers of Table Schemas would refuse."""
    fields = []
    for entry in given["fields"]:
        kept = {name: value for name, value in entry.items() if name != "constraints"}
        constraints = entry.get("constraints") or {}
        if isinstance(constraints, Mapping):
            constraints = {k: v for k, v in constraints.items() if v not in (None, [])}
        fields.append(kept | ({"constraints": constraints} if constraints else {}))
    return {**given, "fields": fields}
