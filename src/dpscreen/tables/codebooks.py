"""Code books: a schema from what the documentation of a table declares. No row is read.

>>> book = read_codebook(Path("survey.sav"))
>>> book.columns["sex"].settings
{'categories': [1, 2], 'missing': ['', 'NA', '9']}
>>> print(codebook_toml(book, target="cost"))

Levels, formats, missing codes and bounds are proposed where a code book declares them. Of files
that hold rows too (SPSS, Stata, SAS, Parquet, Arrow) the metadata alone is read. Where a dictionary
lists means or counts, its least and greatest values are those of rows, and are left out.
"""

from __future__ import annotations

import csv
import datetime
import io
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from dpscreen._core.files import strict_json
from dpscreen._core.messages import Message, message
from dpscreen._core.words import plain, shortened
from dpscreen.tables.asking import settings_meant
from dpscreen.tables.columns.number import NO, YES
from dpscreen.tables.csv import is_excel, is_parquet, open_text, read_header
from dpscreen.tables.declaration import USUAL, UTF8, Dialect, TableProblem, check_names, quietly
from dpscreen.tables.toml import BLOCK, DIALECT, FIELD, HOLDS, Document, new_document, toml_text

USUAL_MISSING = ("", "NA")
MOST_LEVELS, MOST_CODES, LONGEST_NOTE = 1000, 100, 90
_UNKNOWN = "codebook.unknown"
STATISTICS = (".sav", ".zsav", ".por", ".dta", ".sas7bdat", ".xpt")


@dataclass(frozen=True)
class CodebookColumn:
    """A column as a code book declares it: settings of a schema in TOML, and what is noted of it.

    `codes` are its labelled codes, `missing` those that mean: not known.
    """

    name: str
    kind: str = ""
    bounds: tuple[Any, Any] | None = None
    codes: Mapping[Any, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    label: str = ""
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def levels(self) -> list[Any]:
        """Return the codes that are levels."""
        gone = {str(one) for one in self.missing}
        found = [one for one in self.codes if str(one) not in gone]
        return found if 2 <= len(found) <= MOST_LEVELS else []

    @property
    def settings(self) -> dict[str, Any]:
        """Return what the code book settles, and nothing else."""
        found: dict[str, Any] = {}
        if self.kind == "boolean":
            found["type"] = "boolean"
        elif self.kind in ("", "category") and self.levels:
            found["categories"] = self.levels
        elif self.bounds is not None and None not in self.bounds:
            found["bounds"] = list(self.bounds)
        gone = [one for one in self.missing if one not in USUAL_MISSING]
        return found | ({"missing": [*USUAL_MISSING, *gone]} if gone else {}) | dict(self.more)

    @property
    def note(self) -> str:
        """Return what stands in the comment: the label, the codes, and what is left to declare."""
        coded = ", ".join(f"{code} {text}" for code, text in self.codes.items() if text != code)
        parts = [self.label, coded]
        if self.bounds is not None and None in self.bounds:
            low, high = self.bounds
            parts.append(f"at least {low}" if high is None else f"at most {high}")
        if not any(key in self.settings for key in HOLDS):
            left = {
                "number": "a number: its bounds?",
                "date": "a day: the first and the last?",
                "text": "a text: its levels?",
            }
            parts.insert(0, f"? {left.get(self.kind, 'what may it hold?')}")
        said = "; ".join(one for one in parts if one)
        return shortened(plain(said), LONGEST_NOTE) if said else ""


@dataclass(frozen=True)
class Codebook:
    """The columns of a code book, and how it says that the table is written."""

    columns: Mapping[str, CodebookColumn]
    written: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def read_codebook(path: Path, *, dialect: Dialect = USUAL) -> Codebook:
    """Read a code book by its kind; `dialect` says how one in CSV or Excel is written."""
    kind = path.suffix.lower()
    if kind in STATISTICS:
        found = _of_statistics(path)
    elif kind in (".arrow", ".feather", ".ipc") or is_parquet(path):
        found = _of_arrow(path)
    elif kind == ".json":
        found = _of_json(path)
    else:
        found = _of_dictionary(path, dialect)
    if not found.columns:
        raise TableProblem(message(_UNKNOWN, path=path))
    check_names(path, list(found.columns))
    return found


def codebook_toml(
    book: Codebook,
    *,
    target: str | None = None,
    unit: str | None = None,
    labels: bool = False,
    table: str = "the table",
) -> str:
    """Return a schema in TOML; with `labels`, the table holds labels in place of codes.

    Where the code book settles nothing, what a name leaves no doubt about is proposed, as in a new
    schema.
    """
    columns = dict(book.columns)
    for name, one in book.columns.items():
        if labels and one.codes:
            gone = tuple(one.codes.get(_code(code), code) for code in one.missing)
            columns[name] = replace(
                one, codes={text: text for text in one.codes.values()}, missing=gone
            )
    for given in (target, unit):
        if given is not None and given not in columns:
            raise TableProblem(message("codebook.no-column", name=plain(given)))
    document: Document = new_document(list(columns), target=target, unit=unit)
    for name, one in columns.items():
        settled = any(key in one.settings for key in HOLDS)
        if settled and name in document["ignore"]:
            document["ignore"].remove(name)
        if name != unit and name not in document["ignore"]:
            proposed = document["columns"].get(name, {})
            kept = {} if settled or one.kind in ("text", "date") else proposed
            document["columns"][name] = kept | one.settings
    ordered = {name: document["columns"][name] for name in columns if name in document["columns"]}
    notes = {
        name: one.note if ordered[name] == one.settings else one.label
        for name, one in columns.items()
        if name in ordered
    }
    whole = {**document, **book.written, "columns": ordered}
    return toml_text(whole, table=table, notes=notes)


def _code(text: Any) -> Any:
    """Return a code as a whole number if it is one."""
    number = isinstance(text, int | float) or re.fullmatch(r"[+-]?[0-9]{1,15}(\.0*)?", str(text))
    if isinstance(text, bool) or not number or not math.isfinite(float(text)):
        return text
    return int(float(text)) if float(text).is_integer() else float(text)


# --- SPSS, Stata and SAS --------------------------------------------------------------------------


def _of_statistics(path: Path) -> Codebook:
    def read() -> Any:
        import pyreadstat

        known: dict[str, Callable[..., Any]] = {
            ".dta": pyreadstat.read_dta,
            ".por": pyreadstat.read_por,
            ".sas7bdat": pyreadstat.read_sas7bdat,
            ".xpt": pyreadstat.read_xport,
        }
        spss = partial(pyreadstat.read_sav, user_missing=True)
        return known.get(path.suffix.lower(), spss)(str(path), metadataonly=True)[1]

    def explain(error: Exception) -> Message:
        missing = isinstance(error, ImportError)
        code = "codebook.needs-pyreadstat" if missing else "codebook.unreadable"
        return message(code, path=path, kind=type(error).__name__)

    found = quietly(read, explain)
    return Codebook({name: _statistics_column(name, found) for name in found.column_names})


def _statistics_column(name: str, found: Any) -> CodebookColumn:
    codes = {_code(one): text for one, text in found.variable_value_labels.get(name, {}).items()}
    text = found.readstat_variable_types[name] == "string"
    written = str(found.original_variable_types.get(name)).upper()
    kind = "text" if text else "number"
    if re.match(r"%T[CD]|%D|[AESJ]?DATE|DATETIME|YYMMDD|MMDDYY|DDMMYY", written):
        kind = "date"
    scale = found.variable_measure.get(name) == "scale"
    if not text:  # Stata's .a is no cell of a table
        codes = {one: label for one, label in codes.items() if not isinstance(one, str)}
    missing = tuple(_missing_codes(found.missing_ranges.get(name, ()), codes))
    column = CodebookColumn(
        name,
        "" if codes and not scale else kind,
        codes=codes,
        missing=missing,
        label=found.column_names_to_labels.get(name) or "",
    )
    return column if column.levels or column.kind else replace(column, kind=kind)


def _missing_codes(ranges: Sequence[Mapping[str, Any]], codes: Mapping[Any, str]) -> Iterator[str]:
    """Yield the codes that are declared to be missing; of long ranges those with a label."""
    for one in ranges:
        low, high = one["lo"], one["hi"]
        if isinstance(low, str) or low == high:
            yield str(_code(low))
        elif high - low < MOST_CODES:
            yield from map(str, range(math.ceil(low), math.floor(high) + 1))
        else:
            yield from (str(code) for code in codes if low <= code <= high)


# --- Arrow ----------------------------------------------------------------------------------------


def _of_arrow(path: Path) -> Codebook:
    """Return the types that a file declares; a dictionary's levels are those of its rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import types

    def read() -> Any:
        if is_parquet(path):
            return pq.read_schema(path)
        with pa.OSFile(str(path)) as file:
            return pa.ipc.open_file(file).schema

    found: dict[str, CodebookColumn] = {}
    for one in quietly(read, "codebook.damaged", path=path):
        metadata = (one.metadata or {}).items()
        said = {key.decode(errors="replace").lower(): text for key, text in metadata}
        label = next((said[key] for key in ("label", "description", "comment") if key in said), b"")
        kind = "text"
        if types.is_boolean(one.type):
            kind = "boolean"
        elif types.is_date(one.type) or types.is_timestamp(one.type):
            kind = "date"
        elif any(
            fits(one.type) for fits in (types.is_integer, types.is_floating, types.is_decimal)
        ):
            kind = "number"
        found[one.name] = CodebookColumn(one.name, kind, label=label.decode(errors="replace"))
    return Codebook(found)


# --- JSON: CSVW and Table Schema ------------------------------------------------------------------


def _of_json(path: Path) -> Codebook:
    content = quietly(lambda: strict_json(path.read_bytes()), "codebook.no-json", path=path)
    if not isinstance(content, dict):
        raise TableProblem(message(_UNKNOWN, path=path))

    def read() -> Codebook:
        table = (content.get("tables") or content.get("resources") or [content])[0]
        whole = content | table
        is_csvw = "tableSchema" in whole
        schema = whole["tableSchema"] if is_csvw else whole | (whole.get("schema") or {})
        dialect = (whole if is_csvw else schema).get("dialect") or {}
        written = {key: dialect[one] for key, one in DIALECT.items() if one in dialect}
        encoding = (dialect if is_csvw else schema).get("encoding", UTF8)
        if str(encoding).lower() != UTF8:
            written["encoding"] = encoding
        if is_csvw:
            both = whole | schema
            usual = {key: both[key] for key in ("null", "datatype") if key in both}
            given = [usual | one for one in schema["columns"] if not one.get("virtual")]
            columns = [*map(_csvw_column, given)]
        else:
            missing = tuple(map(_value, schema.get("missingValues", [""])))
            columns = [_field_column(one, missing) for one in schema["fields"]]
            block = schema.get("dpscreen") or {}
            written |= {key: block[key] for key in BLOCK if block.get(key) not in (None, "")}
        return Codebook({one.name: one for one in columns}, written)

    return quietly(read, _UNKNOWN, path=path)


WHOLE = "integer int long short byte nonnegativeinteger positiveinteger unsignedint unsignedlong"
NUMERIC = {*WHOLE.split(), "number", "decimal", "double", "float", "year", "unsignedshort"}


def _csvw_column(one: Mapping[str, Any]) -> CodebookColumn:
    datatype = one.get("datatype", "string")
    what = {"base": datatype} if isinstance(datatype, str) else datatype
    base, form = str(what.get("base", "string")).lower(), what.get("format")
    low, high = (
        next((what[key] for key in (f"{end}imum", f"{end}Inclusive", f"{end}Exclusive")
              if key in what), None)
        for end in ("min", "max")
    )  # fmt: skip
    null = one.get("null", "")
    described = next((one[key] for key in ("dc:description", "description") if key in one), "")
    more: dict[str, Any] = {}
    codes: dict[Any, str] = {}
    if base in NUMERIC:
        kind, signs = "number", form if isinstance(form, dict) else {}
        names = {"decimal": "decimalChar", "thousands": "groupChar"}
        more = {key: signs[sign] for key, sign in names.items() if sign in signs}
    elif base == "boolean":
        kind = "boolean"
        if isinstance(form, str) and form.count("|") == 1:
            yes, no = form.split("|")
            more = {"true": [yes], "false": [no]}
    elif base.startswith("date"):
        kind = "date"
        if isinstance(form, str):
            more = {"format": re.sub("d+", "%d", re.sub("M+", "%m", re.sub("y+", "%Y", form)))}
    else:
        kind, codes = "text", {text: text for text in _alternatives(form)}
    return CodebookColumn(
        _title(one.get("titles")) or one["name"],
        "category" if codes else kind,
        bounds=_ends(kind, low, high),
        codes=codes,
        missing=tuple([null] if isinstance(null, str) else null),
        label=_title(described),
        more=more,
    )


def _title(titles: Any) -> str:
    """Return the first of titles, which may have languages."""
    while isinstance(titles, list | dict) and titles:
        titles = titles[0] if isinstance(titles, list) else next(iter(titles.values()))
    return titles if isinstance(titles, str) else ""


def _alternatives(form: Any) -> list[str]:
    """Return the words of a regular expression that is nothing but a choice of words."""
    words = re.sub(r"^\^?\(?(?:\?:)?|\)?\$?$", "", form).split("|") if isinstance(form, str) else []
    simple = len(words) > 1 and not any(re.search(r"[\\\[\](){}*+?^$]", one) for one in words)
    return [one for one in words if one] if simple else []


def _ends(kind: str, low: Any, high: Any) -> tuple[Any, Any] | None:
    """Return two bounds as the kind has them, None for one that is not declared."""
    found: list[Any] = []
    for one in (low, high):
        try:
            if kind == "date":
                found.append(datetime.date.fromisoformat(str(one)[:10]))
            else:
                found.append(_code(float(str(one).replace(",", ""))))
        except ValueError:
            found.append(None)
    return None if found == [None, None] else (found[0], found[1])


def _value(one: Any) -> Any:
    return one.get("value") if isinstance(one, Mapping) else one


def _field_column(one: Mapping[str, Any], missing: tuple[str, ...]) -> CodebookColumn:
    limits, kind = one.get("constraints") or {}, str(one.get("type", "any"))
    levels = one.get("categories") or limits.get("enum") or ()
    labels = {
        _value(one): str(one.get("label", one.get("value")) if isinstance(one, Mapping) else one)
        for one in levels
    }
    kind = {"integer": "number", "datetime": "date", "string": "text", "any": ""}.get(kind, kind)
    ends = _ends(kind, limits.get("minimum"), limits.get("maximum"))
    own = [key for key in FIELD if key not in ("title", "description", "missing")]
    more = {key: one[FIELD[key]] for key in own if FIELD[key] in one}
    if more.get("format") in ("default", "any"):
        del more["format"]
    return CodebookColumn(
        one["name"],
        "category" if labels else kind,
        bounds=ends,
        codes=labels,
        missing=tuple(map(_value, one.get("missingValues", missing))),
        label=one.get("title") or one.get("description") or "",
        more=more,
    )


# --- a data dictionary in CSV or Excel ------------------------------------------------------------

HEADINGS = {
    "name": "variable, variable name, name, field, field name, variable field name, column, "
    "column name, var",
    "type": "type, data type, datatype, field type, variable type, class, storage type",
    "levels": "levels, values, value, value labels, code, codes, categories, allowed values, "
    "permitted values, permissible values, valid values, choices, enum, coding, code list, "
    "choices calculations or slider labels, response options, range, valid range, bounds",
    "low": "min, minimum, lower, lower bound, lower limit, minimum value, min value, valid min, "
    "text validation min",
    "high": "max, maximum, upper, upper bound, upper limit, maximum value, max value, valid max, "
    "text validation max",
    "label": "label, description, field label, variable label, definition, title, question",
    "missing": "missing, missing values, missing codes, missing code, na values, null",
    "format": "format, date format, text validation type or show slider number",
}
COMPUTED = {
    *("mean", "average", "median", "sd", "std", "std dev", "standard deviation", "n", "count"),
    *("freq", "frequency", "percent", "n missing", "missing n", "n unique", "unique", "distinct"),
}
"""Headings of what is computed from rows: then least and greatest values are, too."""
KINDS = {
    "boolean": r"bool|yes ?no|true ?false|logical|binary",
    "date": r"date|time|day",
    "category": r"categ|factor|enum|radio|drop ?down|nominal|ordinal|coded|checkbox",
    "number": r"int|num|float|double|decimal|real|contin|count|calc|slider|percent",
    "text": r"str|text|char|note|\bid\b|identifier|file",
}


def _of_dictionary(path: Path, dialect: Dialect) -> Codebook:
    heads, lines = _excel_lines(path, dialect) if is_excel(path) else _text_lines(path, dialect)
    words = [" ".join(re.findall(r"[a-z%]+", one.lower())) for one in heads]
    known = {what: names.split(", ") for what, names in HEADINGS.items()}
    places = {what: words.index(one) for what, names in known.items() for one in reversed(names)
              if one in words}  # fmt: skip
    if "name" not in places or not {"type", "levels", "low", "high"} & {*places}:
        raise TableProblem(message(_UNKNOWN, path=path))
    notes: tuple[str, ...] = ()
    if {*words} & COMPUTED and {"low", "high"} & {*places}:
        places = {what: k for what, k in places.items() if what not in ("low", "high")}
        notes = (message("codebook.statistics"),)
    columns: dict[str, CodebookColumn] = {}
    for line in lines:
        one = {what: line[k].strip() for what, k in places.items() if k < len(line)}
        name = one.get("name") or (next(reversed(columns), "") if one.get("levels") else "")
        if name:
            for made in _dictionary_columns(name, one):
                before = columns.get(made.name)
                if before is not None:  # one more line of the column, with a code
                    kind = "" if before.kind == "text" else before.kind
                    made = replace(before, kind=kind, codes={**before.codes, **made.codes})
                columns[made.name] = made
    if not any(one.kind or one.settings for one in columns.values()):
        raise TableProblem(message(_UNKNOWN, path=path))
    return Codebook(columns, notes=notes)


def _text_lines(path: Path, dialect: Dialect) -> tuple[list[str], list[list[str]]]:
    header = read_header(path, dialect=dialect)

    def read() -> list[list[str]]:
        with open_text(path, dialect.encoding) as file:
            text = io.StringIO(file.read().decode("utf-8-sig"), newline="")
        return list(csv.reader(text, delimiter=header.delimiter, quotechar=dialect.quote))[1:]

    return list(header.names), quietly(read, _UNKNOWN, path=path)


def _excel_lines(path: Path, dialect: Dialect) -> tuple[list[str], list[list[str]]]:
    import pandas as pd

    sheet = dialect.sheet - 1 if isinstance(dialect.sheet, int) else dialect.sheet or 0
    read = partial(pd.read_excel, path, sheet_name=sheet, dtype=str, keep_default_na=False)
    frame: Any = quietly(read, "codebook.unreadable", path=path)
    return list(map(str, frame.columns)), frame.to_numpy().tolist()


def _dictionary_columns(name: str, one: Mapping[str, str]) -> Iterator[CodebookColumn]:
    word, given = one.get("type", "").lower(), one.get("levels", "")
    kind = next((kind for kind, form in KINDS.items() if re.search(form, word)), "")
    said = one.get("format", "").lower()
    if kind == "text" and (found := re.match("date|int|num", said)):
        kind = "date" if found[0] == "date" else "number"
    codes, ends, more = _meant(given, one.get("label", ""))
    if more.get("type") == "boolean":
        kind = "boolean"
    if word == "checkbox":  # a column for each box, as REDCap exports it
        for code, text in codes.items():
            yield CodebookColumn(f"{name}___{code}", "boolean", label=text)
        return
    if "%Y" in one.get("format", ""):
        more = {"format": one["format"]}
    low, high = (one.get(end) or found for end, found in zip(("low", "high"), ends, strict=True))
    if kind == "boolean" and {*map(str, codes)} <= {*YES, *NO}:
        codes = {}
    of_code = len(codes) == 1 and one.get("label") in codes.values()
    yield CodebookColumn(
        name,
        "" if len(codes) > 1 or (codes and not kind) else kind,
        bounds=_ends(kind, low, high),
        codes=codes,
        missing=tuple(re.split(r"\s*[;,|]\s*", one["missing"]) if one.get("missing") else ()),
        label="" if of_code else one.get("label", ""),
        more={key: text for key, text in more.items() if key not in HOLDS},
    )


def _meant(given: str, label: str) -> tuple[dict[Any, str], tuple[Any, Any], dict[str, Any]]:
    """Return codes, ends and other settings that a cell about values stands for."""
    parts = re.split(r"\s*[|\n;]\s*", given.strip(" |;\n"))
    if len(parts) == 1 and "=" in given:
        parts = re.split(r"\s*,\s*(?=[^=,]+=)", given)
    pairs = [re.fullmatch(r"([^=:,]+?)\s*[=:,]\s*(.+)", one) for one in parts]
    if given and all(pairs) and (len(pairs) > 1 or "=" in given):
        return {_code(one[1].strip()): one[2].strip() for one in pairs if one}, (None, None), {}
    if len(parts) > 1:
        return {_code(one): one for one in parts}, (None, None), {}
    settings = settings_meant(given) or {}
    if "categories" in settings:
        return {_code(one): str(one) for one in settings["categories"]}, (None, None), {}
    if "bounds" in settings:
        low, high = settings["bounds"]
        return {}, (low, high), {key: one for key, one in settings.items() if key != "bounds"}
    one_code = {_code(given): label or given} if given and not settings else {}
    return one_code, (None, None), settings
