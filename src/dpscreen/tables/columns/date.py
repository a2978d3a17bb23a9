"""Columns of days: as days since a declared one, weekdays, months or years."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen._core.messages import Message, message, unknown
from dpscreen.tables.columns.base import Cells, Column, Entry, Picks, chosen

ISO = "%Y-%m-%d"
PARTS = ("days", "weekday", "month", "year")
LABELS = {
    "weekday": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "month": (
        *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
        *("October", "November", "December"),
    ),
}
"""The levels of the parts that have some; the first is the reference."""
_AS_ISO = ("default", "any")
_EPOCH = datetime.date(1970, 1, 1).toordinal()
_FORMAT = re.compile(r"%[Ymd][-./ ]?%[Ymd][-./ ]?%[Ymd]")


def day_number(value: object) -> float | None:
    """Return a day that is written as 2020-01-31 as days since 1970; None for anything else."""
    if not isinstance(value, str) or not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
        return None
    try:
        return float(datetime.date.fromisoformat(value).toordinal() - _EPOCH)
    except ValueError:
        return None


def is_format(form: object) -> bool:
    """Whether a text says where year, month and day stand, as in %d.%m.%Y."""
    known = isinstance(form, str) and _FORMAT.fullmatch(form) is not None
    return known and {"%Y", "%m", "%d"} == set(re.findall("%.", str(form)))


@dataclass(frozen=True)
class DateFeature:
    """One feature of a day: its name, its bounds, and how it is read off days since 1970.

    `part` names the number that is read: days, weekday, month or year; `level` is the one that the
    feature indicates, None if the feature is the number, from which `since` is subtracted. Monday
    and January are references: the others are compared with them, and no model has them.
    """

    name: str
    bounds: tuple[float, float]
    part: str
    level: int | None = None
    since: float = 0.0

    def read(self, days: Array) -> Array:
        """Return the feature; of a missing day NaN, or no level."""
        values = _READ[self.part](days)
        missing = np.isnan(days)
        if self.level is not None:
            return np.where(missing, 0.0, values == self.level)
        return np.where(missing, np.nan, np.clip(values - self.since, *self.bounds))


@dataclass(frozen=True)
class DateColumn(Column):
    """Days between two days, by declared parts; bounds are days since 1970."""

    form: str = ISO
    parts: tuple[str, ...] = ("days",)
    since: float | None = None

    must_have = "bounds"
    level_sort = None
    bound_sort = "bound-day"
    misfit = "not a date in the declared format"
    roles = frozenset({"days"})
    read_bound = staticmethod(day_number)

    # --- declaration ----------------------------------------------------------------------------

    @classmethod
    def own(cls, entry: Entry) -> dict[str, Any]:
        """Read how days are written, what is read off them, and from which one is counted."""
        form = entry.setting(
            "format", ISO, lambda one: one in _AS_ISO or is_format(one), "date-format"
        )
        parts = entry.setting(
            "parts", ["days"], lambda one: isinstance(one, list) and one != [], "parts"
        )
        for part in parts:
            if part not in PARTS:
                entry.fault("setting.name", reason=unknown("part of a day", part, PARTS))
        since = entry.setting(
            "since", None, lambda one: day_number(one) is not None, cls.bound_sort
        )
        return {
            "form": ISO if form in _AS_ISO else form,
            "parts": tuple(part for part in PARTS if part in parts),
            "since": day_number(since),
        }

    def problems(self) -> Iterator[Message]:
        if self.minimum is not None and self.maximum is not None and self.minimum >= self.maximum:
            yield message("column.order-days", column=self.name)

    def fill_problem(self, value: Any, /) -> Message | None:
        return None if day_number(value) is not None else message("must.bound-day")

    # --- features -------------------------------------------------------------------------------

    @cached_property
    def features(self) -> tuple[DateFeature, ...]:
        """The features, in the order of the parts, references included."""
        # Bounds of a column with problems are made up, so that it can be named.
        bounded = self.minimum is not None and self.maximum is not None
        low, high = self.declared_bounds if bounded else (0.0, 1.0)
        found: list[DateFeature] = []
        for part in self.parts:
            if part == "days":
                since = low if self.since is None else self.since
                found.append(DateFeature(self.name, (low - since, high - since), part, since=since))
            elif part == "year":
                first, last = map(float, _year(np.array([low, high])))
                # A year more, so that days of one year have bounds that differ.
                bounds = (first, max(last, first + 1))
                found.append(DateFeature(f"{self.name} {part}", bounds, part))
            else:
                names = enumerate((f"{self.name}={label}" for label in LABELS[part]), 1)
                found += [DateFeature(name, (0.0, 1.0), part, place) for place, name in names]
        return tuple(found)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The column's name for its days, and names with the weekday, month or part for others."""
        return tuple(one.name for one in self.features if one.level != 1)

    @property
    def every_feature(self) -> tuple[str, ...]:
        """The same with Monday and January."""
        return tuple(one.name for one in self.features)

    @property
    def feature_bounds(self) -> list[tuple[float, float]]:
        return [one.bounds for one in self.features if one.level != 1]

    def raw(self, cells: Cells) -> Array:
        return cells.days(form=self.form, missing=self.missing)

    def write(self, cells: Cells, picks: Picks, out: Array) -> None:
        """Write the picked features; those of a missing day are NaN, or of no level."""
        days = self.raw(cells)
        if self.fill is not None:
            days[np.isnan(days)] = day_number(self.fill)
        for place, k in picks:
            out[:, place] = self.features[k].read(days)

    # --- dummy cells ----------------------------------------------------------------------------

    def placed(self, within: Array) -> Any:
        """Return days from their places between the bounds."""
        if self.minimum is None or self.maximum is None:
            return super().placed(within)
        days = self.minimum + chosen(within, int(self.maximum - self.minimum) + 1)
        return days.astype("datetime64[D]")

    def spelled(self, cell: Any) -> str:
        return str(cell.strftime(self.form)) if isinstance(cell, datetime.date) else str(cell)


# --- parts of a day -------------------------------------------------------------------------------


def _dates(days: Array) -> Any:
    return np.where(np.isnan(days), 0, days).astype(np.int64).astype("datetime64[D]")


def _year(days: Array) -> Array:
    return np.asarray(_dates(days).astype("datetime64[Y]").astype(np.int64) + 1970.0)


_READ: dict[str, Callable[[Array], Array]] = {
    "days": lambda days: days,
    "weekday": lambda days: np.asarray(np.mod(days + 3, 7) + 1),  # 1970 began on a Thursday
    "month": lambda days: _dates(days).astype("datetime64[M]").astype(np.int64) % 12 + 1.0,
    "year": _year,
}
