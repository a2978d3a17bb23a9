"""Days off cells: written by a declared format, or stored as days or times."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpscreen._core.arrays import Array

_TIME = "(?:[T ][0-9].*)?"
"""A time may follow: libraries write one for all rows as soon as one row has one."""
_FIRST, _LAST = (int(np.datetime64(day).astype(np.int64)) for day in ("0001-01-01", "9999-12-31"))
_PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


def is_digits(form: str) -> bool:
    """Whether days are written as digits alone, so that a library may take them for numbers."""
    return len(form) == len("%Y%m%d")


def is_days(kind: pa.DataType) -> bool:
    """Whether a column is stored as days or times of days."""
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def written_days(cells: Any, form: str) -> Array:
    """Return days since 1970 off a column of text; NaN for what is no day in this format."""
    found = pc.extract_regex(pc.ascii_trim_whitespace(cells), _expression(form))
    parts = (pc.fill_null(pc.struct_field(found, name), "0") for name in "Ymd")
    year, month, day = (np.array(pc.cast(digits, pa.int64())) for digits in parts)
    known = (month >= 1) & (month <= 12) & (day >= 1) & (year >= 1)
    months = ((year - 1970) * 12 + np.where(known, month, 1) - 1).astype("datetime64[M]")
    days = months.astype("datetime64[D]") + (day - 1)
    known &= days.astype("datetime64[M]") == months  # February has no 30th day
    return np.where(known, days.astype(np.int64), np.nan)


def stored_days(cells: Any) -> Array:
    """Return days since 1970 off a column of days or times; of a time, the day on its own clock.

    NaN beyond the years 1 to 9999: no text and no object of Python has such a day.
    """
    kind = cells.type
    if pa.types.is_date32(kind):
        ticks, per_day = pc.cast(cells, pa.int32()), 1
    elif pa.types.is_date64(kind):
        ticks, per_day = pc.cast(cells, pa.int64()), _PER_DAY["ms"]
    else:
        local = cells if kind.tz is None else pc.local_timestamp(cells)
        ticks, per_day = pc.cast(local, pa.int64()), _PER_DAY[kind.unit]
    missing = pc.is_null(ticks).to_numpy(zero_copy_only=False)
    whole = np.asarray(pc.fill_null(ticks, 0), dtype=np.int64) // per_day
    return np.where(missing | (whole < _FIRST) | (whole > _LAST), np.nan, whole)


def text_pattern(form: str) -> str:
    """Return the same expression as languages without names of groups have it."""
    return re.sub(r"\(\?(P<.>|:)", "(", _expression(form))


def _expression(form: str) -> str:
    two = "{2}" if is_digits(form) else "{1,2}"
    groups = {"%Y": "(?P<Y>[0-9]{4})", "%m": f"(?P<m>[0-9]{two})", "%d": f"(?P<d>[0-9]{two})"}
    parts = [groups.get(part, re.escape(part)) for part in re.findall("%.|.", form)]
    return f"^{''.join(parts)}{_TIME}$"
