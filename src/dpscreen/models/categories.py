"""What the columns of a frame hold: numbers, booleans, or categories whose levels are declared.

A category is one feature of 0 and 1 for each level but the first, its reference. Levels come from
`categories=` or from a type that lists them, never from rows; which feature is 1 depends on the
cell alone, by the rules of tables (docs/guide/declare-your-data.md).
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from types import FrameType
from typing import Any

import numpy as np
from scipy import sparse

from dpscreen._core.arrays import Array, Integers, Mask
from dpscreen._core.messages import Message, message
from dpscreen._core.words import did_you_mean, plain, some
from dpscreen.families import BINOMIAL

Levels = Mapping[str, tuple[str, ...]]
MISSING_CELLS = (
    "A cell that is missing or cannot be read counts as the fill that the schema declares; without "
    "one, a number and a boolean count as their released centre, and a category as its first "
    "level."
)
LEFT_OUT = "Rows without a target are left out."
FILLED = "A missing target counts as its fill or as the middle of its bounds."
_OPEN = "__UNKNOWN_CATEGORIES__"  # what Dask writes for levels that it would have to look for
_MOST_TOLD = 20


class LearntLevelsWarning(UserWarning):
    """Levels come from a pandas type, which may have been made from rows; then they disclose."""


@dataclass(frozen=True)
class FrameColumns:
    """The columns of a frame: which are boolean, by position, and which are categories.

    All others hold numbers. Of the levels of a category, as texts, the first is the reference.
    """

    names: tuple[str, ...]
    truths: tuple[int, ...] = ()
    levels: Levels = field(default_factory=dict)

    @classmethod
    def of_features(cls, features: tuple[str, ...], levels: Levels) -> FrameColumns | None:
        """Return the columns that features were made of; None if they were made of no such."""
        made = {one: name for name in levels for one in _level_names(name, levels[name])}
        columns = cls(tuple(dict.fromkeys(made.get(one, one) for one in features)), levels=levels)
        there = columns.feature_names == features and set(levels) <= set(columns.names)
        return columns if there else None

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Return what the features are called: a column's name, or with a level as in ward=B."""
        return tuple(one for group in self._groups() for one in group)

    @property
    def zero_one(self) -> Mask:
        """Return for each feature whether it is 0 or 1 by its kind: a truth, or a level."""
        truths = np.isin(np.arange(len(self.names)), self.truths)
        return self._of_levels | np.repeat(truths, self._widths)

    @property
    def public(self) -> tuple[str, ...]:
        """Return what is public about the columns, for the statement."""
        truths = [plain(self.names[place]) for place in self.truths]
        told = (f"that these columns are boolean: {some(truths, _MOST_TOLD)}",) if truths else ()
        return (*told, *(_told(name, levels) for name, levels in self.levels.items()))

    def of_numbers(self, frame: Any) -> Any:
        """Return the columns of a frame that are no categories."""
        if not is_frame(frame):
            raise ValueError(message("categories.no-frame"))
        return frame[[name for name in self.names if name not in self.levels]]

    def encoded(self, frame: Any, numbers: Array) -> Array:
        """Return all features in their order; `numbers` holds the columns that are no categories.

        A cell that is none of the levels, or missing, is 0 in all features, as the reference is.
        """
        out = np.empty((len(numbers), len(self._of_levels)))
        out[:, ~self._of_levels] = numbers
        levels = [found[:, None] == np.arange(1, width) for found, width in self._found(frame)]
        out[:, self._of_levels] = np.hstack(levels)
        return out

    def encoded_sparse(self, frame: Any, numbers: Any) -> Any:
        """Return the same as a scipy matrix, the numbers being one."""
        levels = (_indicators(found, n_levels - 1) for found, n_levels in self._found(frame))
        order = np.argsort(self._of_levels, kind="stable")  # as they stand in the next line
        return sparse.hstack((numbers, *levels)).tocsc()[:, np.argsort(order)]

    def read_part(self, part: Any) -> Array:
        """Return the features of a partition of a Dask frame."""
        return self.encoded(part, self.of_numbers(part).to_numpy(np.float64, na_value=np.nan))

    def warn_of_strangers(self, frame: Any) -> None:
        """Say how many cells are none of the levels: of rows to predict for, never of private ones.

        (docs/explanation/what-is-protected.md)
        """
        names = (name for name in self.names if name in self.levels)
        for name, (found, _) in zip(names, self._found(frame), strict=True):
            strange = int(np.count_nonzero(found < 0))
            if strange:
                counts = {"strange": strange, "cells": len(found)}
                first = self.levels[name][0]
                told = message("categories.strangers", column=name, first=first, **counts)
                warnings.warn(told, UserWarning, stacklevel=_calls_within() + 1)

    def _groups(self) -> list[tuple[str, ...]]:
        levels = self.levels
        return [_level_names(one, levels[one]) if one in levels else (one,) for one in self.names]

    @property
    def _widths(self) -> list[int]:
        return [len(group) for group in self._groups()]

    @property
    def _of_levels(self) -> Mask:
        """Return for each feature whether it is made of a category."""
        return np.repeat([name in self.levels for name in self.names], self._widths)

    def _found(self, frame: Any) -> Iterator[tuple[Integers, int]]:
        """Yield, for each category, the cells' levels, below 0 without one, and their number."""
        from dpscreen.tables.arrow import frame_levels

        for name in self.names:
            if name in self.levels:
                column, levels = _with_plain_levels(frame[[name]], name), self.levels[name]
                yield frame_levels(column, name, levels), len(levels)


def _level_names(name: str, levels: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{name}={level}" for level in levels[1:])


def _told(name: str, levels: tuple[str, ...]) -> str:
    others = some([plain(level) for level in levels[1:]], _MOST_TOLD)
    return f"the levels of {plain(name)}: {plain(levels[0])}, the reference, and {others}"


# --- what a frame declares ------------------------------------------------------------------------


def is_frame(X: Any) -> bool:
    """Whether X has columns with types, as frames of pandas, polars and Dask have."""
    return hasattr(X, "columns") and hasattr(X, "dtypes")


def frame_columns(X: Any, categories: Any) -> FrameColumns | None:
    """Return what the columns of a frame hold, by their types and the declared levels alone.

    None if all are numbers, or if X is no frame. No row is looked at.
    """
    declared = {} if categories is None else declared_levels(categories)
    if not is_frame(X):
        if declared:
            raise ValueError(message("categories.need-a-frame"))
        return None
    names = list(X.columns)
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(message("categories.column-twice", names=tuple(map(repr, twice))))
    strange = [name for name in declared if name not in names]
    if strange:
        guess = did_you_mean(str(strange[0]), map(str, names))
        absent = tuple(map(repr, strange))
        raise ValueError(message("categories.no-column", names=absent, guess=guess))
    return _sorted(names, list(X.dtypes), declared)


def _sorted(names: list[Any], kinds: list[Any], declared: Levels) -> FrameColumns | None:
    own = {
        name: _levels(f"the type of column {name!r}", kind.categories)
        for name, kind in zip(names, kinds, strict=True)
        if name not in declared and _lists_levels(kind)
    }
    levels = {name: one for name in names if (one := declared.get(name) or own.get(name))}
    rest = [place for place, name in enumerate(names) if name not in levels]
    others = [str(names[place]) for place in rest if not is_number(kinds[place])]
    days = ("date", "timestamp")  # of numpy, pandas, Arrow or polars
    dates = [str(names[j]) for j in rest if str(kinds[j]).lower().startswith(days)]
    if dates:
        raise ValueError(message("categories.dates", names=", ".join(dates)))
    if others:
        raise ValueError(not_numbers(f"X, column {', '.join(others)},"))
    truths = tuple(place for place in rest if is_truth(kinds[place]))
    if not levels and not truths:
        return None
    texts = all(isinstance(name, str) for name in names)
    numbered = [f"x{place}" for place in range(len(names))]  # as where columns have no names
    found = FrameColumns(tuple(names if texts else numbered), truths, levels)
    if levels and (not texts or len(set(found.feature_names)) < len(found.feature_names)):
        raise ValueError(message("categories.names"))
    learnt = tuple(repr(name) for name in own if not _is_enum(kinds[names.index(name)]))
    if learnt:
        told = message("categories.learnt", names=learnt)
        warnings.warn(told, LearntLevelsWarning, stacklevel=_calls_within() + 1)
    return found


def not_numbers(where: str, *, target: bool = False) -> Message:
    """Return that something holds no numbers; of a target, which model takes two labels."""
    found = message("input.not-numbers", where=where)
    model = BINOMIAL.sparse.estimator
    return message("input.two-labels", found=found, model=model) if target else found


def _calls_within() -> int:
    """Return how many calls up the first line outside the package is, from the caller's place.

    A warning is for the caller of `fit`; how many of our own calls lie between differs by model.
    """
    frame: FrameType | None = sys._getframe(1)
    depth = 0
    while frame is not None and frame.f_globals.get("__name__", "").startswith("dpscreen."):
        frame, depth = frame.f_back, depth + 1
    return depth


def declared_levels(categories: Any) -> dict[str, tuple[str, ...]]:
    """Return the levels that `categories` declares, as texts; refuse what declares none."""
    if not isinstance(categories, Mapping) or not all(isinstance(one, str) for one in categories):
        raise ValueError(message("categories.mapping"))
    return {name: _levels(f"categories[{name!r}]", categories[name]) for name in categories}


def _levels(where: str, given: Any) -> tuple[str, ...]:
    """Return levels as texts. They may have been learnt from rows: no message repeats one."""
    from dpscreen.tables.columns.base import value_of

    ordered = isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping | Set)
    found = [_text(one) for one in given] if ordered else []
    texts = [text for text in found if text is not None]
    if len(texts) < max(2, len(found)) or len({value_of(text) for text in texts}) < len(texts):
        raise ValueError(message("categories.levels", where=where))
    return tuple(texts)


def _text(level: Any) -> str | None:
    """Return a level as it stands in a feature's name; None for what cannot be one."""
    from dpscreen.tables.columns.base import finite, level_text, plain_text

    level = level.item() if isinstance(level, np.generic) else level
    if isinstance(level, bool) or _is_interval(level):
        return str(level)
    number = finite(level)
    text = plain_text(level) if number is None else level_text(number)
    return text if text is None or text.isprintable() else None


def _is_interval(value: Any) -> bool:
    """Whether a value is an interval of pandas, as `cut` makes them of declared edges."""
    return type(value).__name__ == "Interval"


# --- what a model says of its cells ---------------------------------------------------------------


def declared_in(schema: Any, levels: Levels) -> dict[str, list[str]]:
    """Return the levels of columns, as texts: of a model's categories, and of its schema."""
    declared = {name: list(some_levels) for name, some_levels in levels.items()}
    for one in declared_fields(schema):
        limits = one.get("constraints")
        enum = limits.get("enum") if isinstance(limits, Mapping) else None
        if isinstance(enum, list) and isinstance(one.get("name"), str):
            declared[one["name"]] = list(map(str, enum))
    return declared


def declared_numbers(schema: Any, kind: str = "number") -> set[str]:
    """Return the columns that a schema declares as numbers, or integers: not booleans or levels."""
    numbers = {str(one.get("name")) for one in declared_fields(schema) if one.get("type") == kind}
    return numbers - set(declared_in(schema, {}))


def declared_block(schema: Any) -> Mapping[str, Any]:
    """Return what a schema that came with a model says for this library alone."""
    block = schema.get("dpscreen") if isinstance(schema, Mapping) else None
    return block if isinstance(block, Mapping) else {}


def declared_fields(schema: Any) -> list[Mapping[str, Any]]:
    """Return the columns of a schema that came with a model; what is no schema has none."""
    fields = schema.get("fields") if isinstance(schema, Mapping) else None
    listed = fields if isinstance(fields, list) else []
    return [one for one in listed if isinstance(one, Mapping)]


FIRST_DAYS = (("Monday", "Tuesday"), ("January", "February"))
"""What weekdays and months are compared with, and the next one."""


def about_levels(
    features: Collection[str], schema: Any, levels: Levels, gone: Collection[str] = ()
) -> Iterator[str]:
    """Say what features stand for and levels are compared with, by the declarations of a model.

    Rows of a level that is `gone`, left out of the model, have no other level, as those of the
    first: the others are compared with both.
    """
    yield from about_columns(features, schema)
    there = set(features) - set(gone)
    days = (one["name"] for one in declared_fields(schema) if one.get("type") == "date")
    parts = [(name, of) for name in days for of in FIRST_DAYS]
    against = [
        (name, [of[0], *(one for one in of[1:] if f"{name}={one}" in gone)])
        for name, of in (*declared_in(schema, levels).items(), *parts)
        if f"{name}={of[0]}" not in there and there & {f"{name}={one}" for one in of[1:]}
    ]
    if against:
        also = " and those left out" if any(of[1:] for _, of in against) else ""
        told = [f"{plain(name)} with {' or '.join(map(plain, of))}" for name, of in against]
        yield f"Levels are compared with the first declared one{also}: {some(told, _MOST_TOLD)}."


def about_columns(features: Collection[str], schema: Any) -> Iterator[str]:
    """Say what stands for a column of a table, where it is not what its cells hold."""
    told = declared_block(schema).get("transform")
    transforms: Mapping[str, Any] = told if isinstance(told, Mapping) else {}
    for name in features:
        if transforms.get(name, "none") != "none":
            yield f"{plain(name)} stands for {transforms[name]}({plain(name)})."
    for one in declared_fields(schema):
        if one.get("type") == "date" and one.get("name") in features:
            limits = one.get("constraints")
            first = limits.get("minimum") if isinstance(limits, Mapping) else "the first"
            yield f"{plain(one['name'])} stands for days since {one.get('since', first)}."


def about_missing(schema: Any, levels: Levels) -> Iterator[str]:
    """Say what a cell counts as where it is missing; by the declarations alone, of no cell."""
    if isinstance(schema, Mapping):
        block = declared_block(schema)
        fills = block.get("fill")
        filled = isinstance(fills, Mapping) and block.get("target") in fills
        yield f"{MISSING_CELLS} {FILLED if filled else LEFT_OUT}"
    elif levels:
        yield "A cell that is missing, or none of the levels, counts as the first level."


# --- types ----------------------------------------------------------------------------------------


def is_number(kind: Any) -> bool:
    """Whether a numpy, pandas or polars type holds numbers; booleans are 0 and 1."""
    polars = getattr(kind, "is_numeric", lambda: False)
    return getattr(kind, "kind", None) in ("i", "u", "f") or is_truth(kind) or bool(polars())


def is_truth(kind: Any) -> bool:
    """Whether a type holds true and false alone."""
    return getattr(kind, "kind", None) == "b" or str(kind) == "Boolean"


def _is_enum(kind: Any) -> bool:
    """Whether a type is polars' Enum, which can only be declared."""
    return str(kind).startswith("Enum(")


def _lists_levels(kind: Any) -> bool:
    """Whether a type lists its levels: pandas' categories and polars' Enum; not its Categorical."""
    if str(kind) == "category":
        return kind.categories is not None and _OPEN not in kind.categories
    return _is_enum(kind)


# --- cells ----------------------------------------------------------------------------------------


def read_lazily(frame: Any, read: Callable[[Any], Array], names: Sequence[str]) -> Any:
    """Return a Dask frame of the numbers that a function reads where the partitions are."""
    import pandas as pd

    meta = pd.DataFrame(columns=list(names), dtype=np.float64)
    part = partial(_read_part, read=read, names=list(names))
    return frame.map_partitions(part, meta=meta, enforce_metadata=False)


def _read_part(part: Any, read: Callable[[Any], Array], names: list[str]) -> Any:
    """Return a partition of numbers; without any column if that fails, and without raising.

    The log of a worker would show what it raises, and the cells with it.
    """
    import pandas as pd

    try:
        found = read(part)
        index = part.index if len(found) == len(part) else None
        return pd.DataFrame(found, columns=names, index=index)
    except Exception:
        return pd.DataFrame(index=part.index)


def _with_plain_levels(frame: Any, name: str) -> Any:
    """Return a column with the texts of its intervals, if it is of such."""
    kind = frame.dtypes[0] if isinstance(frame.dtypes, list) else frame.dtypes[name]
    if str(kind) != "category" or not any(map(_is_interval, kind.categories)):
        return frame
    return frame.assign(**{name: frame[name].cat.rename_categories(str)})


def _indicators(found: Integers, width: int) -> Any:
    """Return a sparse matrix that is 1 where a row has the level after the reference."""
    rows = np.flatnonzero(found > 0)
    ones = np.ones(len(rows))
    return sparse.coo_array((ones, (rows, found[rows] - 1)), shape=(len(found), width))
