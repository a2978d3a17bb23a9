"""A slow, plain reader of tables to hold the fast one against, and schemas to try it on."""

from __future__ import annotations

import csv
import decimal
import io
import math
import re

import numpy as np

from dpscreen.tables.columns import KINDS, CategoryColumn
from dpscreen.tables.schema import TableSchema

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)


def described(**dpscreen) -> dict:
    """Return a schema with a column of each kind."""
    return {
        "fields": [
            {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 100}},
            {"name": "smoker", "type": "string", "constraints": {"enum": ["yes", "no", "once"]}},
            {"name": "income", "type": "number", "constraints": {"minimum": 1, "maximum": 1e6}},
            {"name": "grade", "type": "integer", "constraints": {"enum": [1, 2]}},
            {"name": "member", "type": "boolean"},
            {"name": "cost", "type": "number", "constraints": {"minimum": 0, "maximum": 500}},
            {"name": "who", "type": "string"},
        ],
        "missingValues": ["", "NA", "-99"],
        "dpscreen": {
            "target": "cost",
            "unit": "who",
            "rows_per_unit": 2,
            "fill": {"smoker": "no"},
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
    features, target, seen = [], [], {}
    for age, smoker, income, grade, member, cost, who in rows:
        name = who.strip(" \t\r\n\v\f")
        seen[name] = seen.get(name, 0) + 1
        if seen[name] > 2 or name in SCHEMA.missing_values:
            continue
        level = smoker.strip(" \t\r\n\v\f")
        level = "no" if value(level) in map(value, SCHEMA.missing_values) else level
        features.append(
            [
                number(age, 0, 100, 50.0),
                *(float(level == one) for one in ("yes", "no", "once")),
                number(income, 1, 1e6, math.log(1e6) / 2, math.log),
                *(float(number(grade, -1e9, 1e9, math.nan) == one) for one in (1, 2)),
                truth(member),
            ]
        )
        target.append(number(cost, 0, 500, math.log1p(500) / 2, math.log1p))
    return np.array(features).reshape(-1, 8), np.array(target)


def number(text, low, high, fill, transform=float):
    read = value(text)
    if not isinstance(read, float) or read == -99:
        return fill
    return transform(min(max(read, low), high))


def truth(text):
    return {1.0: 1.0, 0.0: 0.0}.get(value(text), 0.5)


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


def meaning(cell, field, missing):
    """Return the features of one cell of a frame."""
    point = getattr(getattr(field, "of", field), "decimal", ".")
    read = value(cell, point)
    if isinstance(cell, str) and not cell.isascii() and not cell.isprintable():
        read = None  # half a character
    if read in [value(text, point) for text in missing]:
        read = None
    if isinstance(field, CategoryColumn):
        levels = [value(one) if isinstance(one, str) else one for one in field.levels]
        return [float(read == level) for level in levels]
    if isinstance(field, KINDS["boolean"]):
        words = {1.0: 1.0, 0.0: 0.0}
        words |= {value(word): 0.0 for word in field.false_values}
        words |= {value(word): 1.0 for word in field.true_values}
        return [words.get(read, 0.5)]
    low, high = field.declared_bounds
    return [min(max(read, low), high) if isinstance(read, float) else (low + high) / 2]
