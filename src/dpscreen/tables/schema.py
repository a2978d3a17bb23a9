"""What a table may hold, declared beforehand: types, bounds, levels, target and privacy unit.

>>> schema = load_schema("schema.json")     # Data Package v2 Table Schema and a `dpscreen` block
>>> schema.check()                          # every problem, each with how to fix it
>>> schema.feature_names, schema.feature_bounds, schema.target_bounds
>>> print(schema.check(frame))              # what does not fit: for the curator's eyes only
>>> PrivateLasso(schema=schema, epsilon=1, delta=1e-6).fit(frame)   # or the schema's path

Nothing here is ever read off the data: a schema is public. docs/reference/schema.md says what each
entry means.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, overload

from dpscreen._core.files import NotStrictJson, strict_json
from dpscreen._core.messages import message
from dpscreen._core.words import did_you_mean, plain
from dpscreen.tables.csv import Header, is_excel, is_parquet, looks_like_data, read_header
from dpscreen.tables.declaration import (
    MOST_UNREADABLE,
    USUAL,
    UTF8,
    Declaration,
    Dialect,
    SchemaProblem,
    TableProblem,
    check_names,
)
from dpscreen.tables.toml import (
    Document,
    NotToml,
    descriptor_of,
    new_document,
    parsed_toml,
    toml_text,
)

if TYPE_CHECKING:
    from dpscreen._core.arrays import Array
    from dpscreen.tables.check import RowsReport
    from dpscreen.tables.reading import EncodedRows

__all__ = ["SchemaProblem", "TableSchema", "load_schema", "new_schema"]

LARGEST_FILE = 50_000_000
PROFILE = "https://datapackage.org/profiles/2.0/tableschema.json"


@dataclass(frozen=True)
class TableSchema(Declaration):
    """A table as declared. Ask `problems()` before anything that needs it to be complete."""

    @overload
    def check(self) -> None: ...

    @overload
    def check(self, rows: Any, *, most_unreadable: float = ...) -> RowsReport: ...

    def check(
        self, rows: Any = None, *, most_unreadable: float = MOST_UNREADABLE
    ) -> RowsReport | None:
        """Refuse a schema that cannot be used, or report what of some rows does not fit it.

        Parameters
        ----------
        rows : frame or path of a table, default=None
            Without rows, the schema alone is checked.
        most_unreadable : float, default=0.05
            Above this share of cells of a column that cannot be read, `stop()` of the report
            raises. A public number: it must not be chosen by the rows.

        Returns
        -------
        RowsReport or None
            Exact counts of private rows: for the curator, and never to be released.
        """
        super().check()
        if rows is None:
            return None
        from dpscreen.tables.check import check_rows

        return check_rows(rows, self, most_unreadable=most_unreadable)

    def with_formula(self, formula: str) -> Self:
        """Return the same columns with a formula, whose left-hand side is the target."""
        descriptor = self.to_dict()
        block = descriptor.get("dpscreen") or {}
        kept = {key: one for key, one in block.items() if key not in ("target", "features")}
        made = type(self).from_dict(descriptor | {"dpscreen": kept | {"formula": formula}})
        return replace(made, faults=self.faults, from_toml=self.from_toml)

    def encode(self, frame: Any) -> EncodedRows:
        """Return the rows of a pandas, polars or Arrow table, as if read from a file."""
        from dpscreen.tables.reading import all_rows

        return all_rows(frame, self)

    def encode_features(self, frame: Any, features: Sequence[str] | None = None) -> Array:
        """Return the features of every row of a frame, to predict; the target may be absent.

        `features` chooses some by their names, in that order.
        """
        from dpscreen.tables.reading import read_features

        return read_features(frame, self, features=features)

    def encode_target(self, frame: Any) -> Array:
        """Return the target of every row of a frame in the table's units, to score; NaN if missing.

        Of a binary target 0 and 1.
        """
        from dpscreen.tables.reading import frame_target

        return self.untransform_target(frame_target(frame, self))


def load_schema(path: str | Path) -> TableSchema:
    """Read a schema from a file: TOML if its name ends in .toml, else JSON."""
    place = Path(path)
    if is_toml(place):
        return toml_schema(load_toml(place))
    try:
        descriptor: Any = strict_json(_content(place))
    except NotStrictJson as problem:  # the file may be private: nothing of it is repeated
        why = problem.args[0]
    else:
        return TableSchema.from_dict(descriptor)
    raise SchemaProblem(message("schema.not-in-form", path=place, form="JSON", reason=why))


def as_schema(given: TableSchema | Mapping[str, Any] | str | Path) -> TableSchema:
    """Return a schema that may be given as a descriptor, or as the path of a file."""
    if isinstance(given, TableSchema):
        return given
    return TableSchema.from_dict(dict(given)) if isinstance(given, Mapping) else load_schema(given)


def toml_schema(document: Document) -> TableSchema:
    """Return the schema that a document in TOML declares."""
    descriptor, faults = descriptor_of(document)
    if not descriptor["fields"]:
        raise SchemaProblem(message("schema.no-columns"))
    found = TableSchema.from_dict(descriptor)
    return replace(found, faults=(*faults, *found.faults), from_toml=True)


def load_toml(place: Path) -> Document:
    """Return what a schema file in TOML says, as it stands."""
    try:
        return parsed_toml(_content(place))
    except NotToml as problem:
        why = problem.args[0]
    raise SchemaProblem(message("schema.not-in-form", path=place, form="TOML", reason=why))


def is_toml(place: Path) -> bool:
    """Whether a schema file is TOML, by its name."""
    return place.suffix.lower() == ".toml"


def _content(place: Path) -> bytes:
    try:
        with place.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise SchemaProblem(message("schema.unreadable", path=place, reason=reason)) from None
    if len(data) > LARGEST_FILE:
        raise SchemaProblem(message("schema.too-large", path=place))
    return data


# --- a schema to fill in --------------------------------------------------------------------------


def schema_text(descriptor: dict[str, Any]) -> str:
    """Return a schema as JSON to read and to fill in: a line for each column."""
    columns = ",\n    ".join(json.dumps(one, ensure_ascii=False) for one in descriptor["fields"])
    frame = json.dumps(descriptor | {"fields": []}, indent=2, ensure_ascii=False)
    return frame.replace('"fields": []', f'"fields": [\n    {columns}\n  ]', 1) + "\n"


def new_schema(
    path: str | Path,
    *,
    target: str | None = None,
    unit: str | None = None,
    as_json: bool = False,
    numeric_names: bool = False,
    dialect: Dialect = USUAL,
) -> str:
    """Return a schema to fill in, in TOML or JSON; no row is parsed.

    What names leave no doubt about is proposed. Names that are numbers are refused, because then
    the first line may well be a row, unless `numeric_names` says that they are names.
    """
    header = public_header(Path(path), target, unit, numeric_names=numeric_names, dialect=dialect)
    written = how_written(header, dialect)
    made = new_document(header.names, target=target, unit=unit, **written)
    if as_json:
        return schema_text({"$schema": PROFILE} | descriptor_of(made)[0])
    return toml_text(made, table=Path(path).name)


def how_written(header: Header, dialect: Dialect) -> dict[str, Any]:
    """Return what a schema in TOML must say about how the table is written."""
    written = {
        "delimiter": None if header.delimiter == "," else header.delimiter,
        "encoding": None if dialect.encoding == UTF8 else dialect.encoding,
        "sheet": dialect.sheet,
    }
    return {key: value for key, value in written.items() if value is not None}


def public_header(
    place: Path, *named: str | None, numeric_names: bool = False, dialect: Dialect = USUAL
) -> Header:
    """Return names that may be copied into a schema, or refuse; `named` must be among them."""
    header = read_header(place, dialect=dialect)
    check_names(place, header.names)
    numbers = [] if numeric_names else looks_like_data(header.names)
    if numbers and not (is_parquet(place) or is_excel(place)):
        raise TableProblem(message("table.row-for-header", path=place, places=tuple(numbers)))
    for name in named:
        if name is not None and name not in header.names:
            guess = did_you_mean(name, header.names)
            found = message("table.no-column", path=place, name=plain(name), guess=guess)
            raise TableProblem(found)
    return header
