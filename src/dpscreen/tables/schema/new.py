"""A schema to fill in: the names of a table's columns, and nothing that its rows say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dpscreen._core.words import some
from dpscreen.tables.header import check_names, is_parquet, looks_like_data, read_header
from dpscreen.tables.problem import TableProblem

PROFILE = "https://datapackage.org/profiles/2.0/tableschema.json"


def new_schema(
    path: str | Path,
    *,
    target: str | None = None,
    unit: str | None = None,
    numeric_names: bool = False,
) -> dict[str, Any]:
    """Return a descriptor with types, bounds and levels left empty; no row is parsed.

    Names that are numbers are refused, because then the first line may well be a row, unless
    `numeric_names` says that they are names.
    """
    place = Path(path)
    header = read_header(place)
    check_names(place, header.names)
    numbers = [] if numeric_names else looks_like_data(header.names)
    if numbers and not is_parquet(place):
        raise TableProblem(
            f"the first line of {place} may be a row and no header, for column {some(numbers)} "
            "is a number there; names of columns are public and would be copied."
        )
    for name in (target, unit):
        if name is not None and name not in header.names:
            raise TableProblem(f"the table {place} has no column {name!r}.")
    return _template(header.names, header.delimiter, target, unit)


def _template(
    names: tuple[str, ...], delimiter: str, target: str | None, unit: str | None
) -> dict[str, Any]:
    empty: dict[str, Any] = {"minimum": None, "maximum": None, "enum": []}
    fields = [
        {"name": name, "type": "any"} | ({} if name == unit else {"constraints": dict(empty)})
        for name in names
    ]
    return {
        "$schema": PROFILE,
        "fields": fields,
        "missingValues": [""],
        **({} if delimiter == "," else {"dialect": {"delimiter": delimiter}}),
        "dpscreen": {
            "target": target,
            "unit": unit,
            "rows_per_unit": None,
            "fill": {},
            "transform": {},
        },
    }
