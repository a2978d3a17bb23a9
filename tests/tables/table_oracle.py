"""A slow, plain reader of tables to hold the fast one against, and schemas to try it on."""

from __future__ import annotations

import csv
import datetime
import decimal
import io
import math
import re
from hashlib import blake2b
from unicodedata import category

import numpy as np
import pandas as pd

from dpscreen.tables.columns import KINDS, CategoryColumn
from dpscreen.tables.columns.base import BLANKS, NumberMarks
from dpscreen.tables.schema import TableSchema

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)


def number_field(name, low, high) -> dict:
    return {"name": name, "type": "number", "constraints": {"minimum": low, "maximum": high}}


def schema_of_fields(*fields, missing=("", "NA", "-99"), target="y", **dpscreen) -> TableSchema:
    block = {"target": target, **dpscreen}
    return TableSchema.from_dict(
        {"fields": [*fields], "missingValues": [*missing], "dpscreen": block}
    )


def schema_of_ids(kind, missing=("", "NA", "-99"), rows_per_unit=1) -> TableSchema:
    """Return a schema of numbers x and y, and of people's ids of some kind."""
    fields = number_field("x", 0, 100), number_field("y", 0, 100), {"name": "who", "type": kind}
    return schema_of_fields(*fields, missing=missing, unit="who", rows_per_unit=rows_per_unit)


def described(**dpscreen) -> dict:
    """Return a schema with a column of each kind."""
    return {
        "fields": [
            number_field("age", 0, 100) | {"type": "integer"},
            {"name": "smoker", "type": "string", "constraints": {"enum": ["yes", "no", "once"]}},
            number_field("income", 1, 1e6),
            {"name": "grade", "type": "integer", "constraints": {"enum": [1, 2]}},
            {"name": "member", "type": "boolean"},
            number_field("cost", 0, 500),
            {"name": "who", "type": "string"},
        ],
        "missingValues": ["", "NA", "-99"],
        "dpscreen": {
            "target": "cost",
            "unit": "who",
            "rows_per_unit": 2,
            "fill": {"smoker": "no", "cost": 20},
            "transform": {"income": "log", "cost": "log1p"},
            **dpscreen,
        },
    }


def make_schema(**dpscreen) -> TableSchema:
    return TableSchema.from_dict(described(**dpscreen))


NAMES = ("age", "smoker", "income", "grade", "member", "cost", "who")
SCHEMA = make_schema()


def as_csv(rows, *, names=NAMES, delimiter=",", end="\n", quoting=csv.QUOTE_MINIMAL) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator=end, quoting=quoting)
    writer.writerow(names)
    writer.writerows(rows)
    return text.getvalue().encode()


def expected(rows) -> tuple[np.ndarray, np.ndarray]:
    """Encode rows of text by SCHEMA, one cell at a time."""
    features, target, owners, missing = [], [], [], SCHEMA.missing_values
    for row in rows:
        cells = dict(zip(NAMES, row, strict=True))
        name = cells["who"].strip(BLANKS)
        if name in missing:
            continue
        owners.append(name)
        if value(cells["smoker"]) in map(value, missing):
            cells["smoker"] = "no"
        read = {one: meaning(cells[one], SCHEMA.field(one), missing) for one in NAMES[:6]}
        read["income"] = [math.log(one) for one in read["income"]]
        (cost,) = read.pop("cost")
        features.append([one for group in read.values() for one in group])
        target.append(math.log1p(20 if math.isnan(cost) else cost))
    X, y = np.array(features).reshape(-1, 6), np.array(target)
    chosen = smallest_of_each(owners, np.column_stack((X, y)))
    return X[chosen], y[chosen]


def smallest_of_each(owners, rows, most=2) -> list[int]:
    """Return the places of the rows of each owner that have the smallest hashes."""
    hashes = [blake2b((row + 0.0).tobytes(), digest_size=16).digest() for row in rows]
    keys = [(*np.frombuffer(one, dtype=np.uint64).tolist(), k) for k, one in enumerate(hashes)]
    chosen: list[int] = []
    for owner in set(owners):
        own = sorted(key for key, whose in zip(keys, owners, strict=True) if whose == owner)
        chosen += [place for *_, place in own[:most]]
    return sorted(chosen)


def value(cell, point="."):
    """Return the number or the text that a cell of a frame is; None where it is missing."""
    if isinstance(cell, complex | np.complexfloating):
        cell = cell.real if cell.imag == 0 else None
    if isinstance(cell, str):
        text = cell.strip(" \t\r\n\v\f")
        if text.lower() in ("true", "false") and text in (text.lower(), text.upper(), text.title()):
            return float(text.lower() == "true")
        plain = NUMBER.fullmatch(text.replace(point, ".")) and (point == "." or "." not in text)
        number_ = float(text.replace(point, ".")) if plain else math.inf
        return number_ if math.isfinite(number_) else text
    if isinstance(cell, int | float | np.bool_ | np.integer | np.floating | decimal.Decimal):
        number_ = math.inf if isinstance(cell, int) and cell > 1e308 else float(cell)
        return number_ if math.isfinite(number_) else None
    return None


def ungrouped(cell, marks):
    """Return a text without signs between thousands, if that is what they are."""
    sign = {" ": "[ \u00a0\u202f]", "": "$"}.get(marks.thousands, re.escape(marks.thousands))
    form = rf"\s*[+-]?[0-9]{{1,3}}({sign}[0-9]{{3}})+([{marks.decimal}][0-9]*)?(e[+-]?[0-9]+)?\s*"
    grouped = isinstance(cell, str) and re.fullmatch(form, cell, re.IGNORECASE)
    return re.sub(sign, "", cell.strip()) if grouped else cell


DATES = {"%Y-%m-%d": "Ymd", "%d.%m.%Y": "dmY", "%d%m%Y": "dmY", "%Y-%d-%m": "Ydm"}


def day(cell, form):
    """Return the day that a cell of a frame is; None where it is none."""
    if isinstance(cell, np.datetime64):
        cell = cell.astype("datetime64[us]").item()
    if isinstance(cell, datetime.date):
        return None if cell is pd.NaT else datetime.date(cell.year, cell.month, cell.day)
    if form == "%d%m%Y" and isinstance(value(cell), float) and 0 <= value(cell) < 1e8:
        cell = f"{value(cell):08.0f}" if value(cell) % 1 == 0 else cell
    if not isinstance(cell, str):
        return None
    words = re.split("[T ](?=[0-9])", cell.strip(), maxsplit=1)[0]
    try:
        return datetime.datetime.strptime(words, form).date()
    except ValueError:
        return None


def day_features(cell, field, missing):
    """Return what the declared parts make of a day."""
    found = day(cell, field.form)
    found = None if found in [day(text, field.form) for text in missing] else found
    low, high = (
        datetime.date(1970, 1, 1) + datetime.timedelta(one) for one in field.declared_bounds
    )
    since = low if field.since is None else datetime.date(2020, 1, 1)
    if found is None:
        made = {"days": [math.nan], "year": [math.nan], "weekday": [0] * 6, "month": [0] * 11}
    else:
        made = {"days": [(min(max(found, low), high) - since).days]}
        made["weekday"] = [float(found.weekday() == one) for one in range(1, 7)]
        made["month"] = [float(found.month == one) for one in range(2, 13)]
        made["year"] = [min(max(found.year, low.year), high.year)]
    return [float(one) for part in field.parts for one in made[part]]


def without_signs(cell, marks):
    """Return a number without what may stand around it."""
    if marks.bare or not isinstance(cell, str):
        return cell

    def around(sign: str) -> bool:
        return sign.isspace() or sign.isalpha() or sign in "%‰" or category(sign) == "Sc"

    head, left = "", cell.strip(BLANKS)
    if left[:1] in ("+", "-"):
        head, left = left[0], left[1:]
    while left and around(left[0]):
        left = left[1:]
    while left and around(left[-1]):
        left = left[:-1]
    return head + left if left and left.lstrip("+-").lstrip(".,")[:1].isdecimal() else cell


def meaning(cell, field, missing):
    """Return the features of one cell of a frame."""
    if isinstance(field, KINDS["date"]):
        return day_features(cell, field, missing)
    marks = getattr(getattr(field, "of", field), "marks", NumberMarks())
    point = marks.decimal
    cell = ungrouped(without_signs(cell, marks), marks)
    read = value(cell, point)
    if isinstance(cell, str) and not cell.isascii() and not cell.isprintable():
        read = None  # half a character
    if read in [value(text, point) for text in missing]:
        read = None
    if isinstance(field, CategoryColumn):
        levels = [value(one) if isinstance(one, str) else one for one in field.levels]
        return [float(read == level) for level in levels[1:]]
    if isinstance(field, KINDS["boolean"]):
        words = {1.0: 1.0, 0.0: 0.0}
        words |= {value(word): 0.0 for word in field.false_values}
        words |= {value(word): 1.0 for word in field.true_values}
        return [words.get(read, math.nan)]
    low, high = field.declared_bounds
    return [min(max(read, low), high) if isinstance(read, float) else math.nan]


def features_of(rows):
    """Return the features of rows as they are, whatever their unit."""
    return rows.named_arrays()[0]


def target_of(rows):
    """Return the target of rows as it is."""
    return rows.named_arrays()[1]
