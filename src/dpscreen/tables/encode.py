"""Cells to features and target, as the schema declares: clipped, filled, transformed, one-hot.

A cell that does not fit its declared type is missing: NaN, or MISSING. Nothing here fails because
of what a cell holds, and the result depends on that cell alone: on its value, not on how its column
is stored. 1, 1.0, true and their texts are one value, since libraries turn one into another for the
sake of a single row; so every number is read as a 64-bit float.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpscreen._core.arrays import Array, Integers, Mask, Objects
from dpscreen._core.messages import message
from dpscreen.tables.columns.base import (
    BLANKS,
    MISSING,
    NUMBER,
    PLAIN_MARKS,
    TRUTHS,
    UNKNOWN,
    Cells,
    Level,
    NumberMarks,
    value_of,
)
from dpscreen.tables.days import is_days, is_digits, stored_days, written_days
from dpscreen.tables.declaration import Declaration, TableProblem, quietly
from dpscreen.tables.formula import DerivedColumn

T = TypeVar("T")
S = TypeVar("S", bound=np.generic)
_WHOLE = r"^(?:\+|(-))?0*([0-9]+)(?:\.0*)?$"
_MIXED = pa.struct([("number", pa.float64()), ("text", pa.large_string()), ("day", pa.date32())])
LOOK_ALIKE = {" ": " \u00a0\u2009\u202f", "'": "'’"}
"""Signs between thousands that are read as one."""
_AROUND = r"[\p{Sc}\p{L}%‰\s\x{A0}\x{202F}]*"
_WITHIN = rf"^\s*([+-]?){_AROUND}([+-]?[.,]?[0-9](?:.*[0-9.,])?){_AROUND}$"
"""A number with signs or words around it; in brackets it may be negative, so these are none."""
EXACT = 2.0**53
"""Below this size a float holds one whole number only; above it may stand for several."""


class Encoder:
    """Turns batches into numbers, each row by itself.

    `features` chooses some, by their names or by the column they are made of, in that order; what
    is chosen by name may be a reference level, if a model was fitted to all of them.
    """

    def __init__(self, schema: Declaration, features: Sequence[str] | None = None) -> None:
        self._schema = schema
        self._derived = _derived(schema, features)
        inputs = dict.fromkeys(name for one in self._derived for name in one.of.occurrences())
        self._inputs = tuple(inputs)
        chosen = _chosen(schema, self._inputs if self._derived else features)
        self._picks: dict[str, list[tuple[int, int]]] = {}  # by the column they are made of
        for place, (name, level) in enumerate(chosen):
            self._picks.setdefault(name, []).append((place, level))
        every = {name: schema.field(name).every_feature for name in self._picks}
        names = [every[name][k] for name, k in chosen]
        self.feature_names = tuple([one.name for one in self._derived] or names)
        self.width = len(self.feature_names)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table that are needed for the features."""
        return tuple(self._picks)

    @property
    def columns_of_rows(self) -> tuple[str, ...]:
        """The same, and those of target and unit."""
        others = (self._schema.target, self._schema.unit)
        return tuple(dict.fromkeys((*self.columns, *(name for name in others if name is not None))))

    def features(self, batch: Any, out: Array) -> None:
        """Write the features of a batch into as many rows, which may be part of a larger array."""
        if not self._derived:
            self._write(batch, out)
            return
        inputs = np.empty((len(out), len(self._inputs)), order="F")
        self._write(batch, inputs)
        given = dict(zip(self._inputs, inputs.T, strict=True))
        for place, one in enumerate(self._derived):
            np.clip(one.of.values(given), *one.bounds, out=out[:, place])

    def _write(self, batch: Any, out: Array) -> None:
        for name, picks in self._picks.items():
            read_cells(name, batch, partial(self._schema.field(name).write, picks=picks, out=out))

    def incomplete(self, batch: Any) -> set[str]:
        """Return the columns with cells that are not read: not for private rows."""
        raw = {name: read_cells(name, batch, self._schema.field(name).raw) for name in self._picks}
        return {name for name, found in raw.items() if np.isnan(found).any()}

    def target(self, batch: Any) -> Array:
        """Return the target, NaN where it is missing."""
        target = self._schema.target
        return read_cells(target, batch, self._schema.field(target).values)

    def unit_ids(self, batch: Any) -> Objects:
        """Return the id of the unit of each row; "" where it is missing."""
        name = str(self._schema.unit)
        kind = batch.column(name).type
        if pa.types.is_float16(kind) or pa.types.is_float32(kind):
            raise TableProblem(message("table.short-ids", column=name))
        column = self._schema.field(name)
        whole, missing = "whole" in column.roles, column.missing
        return read_cells(name, batch, lambda one: one.unit_ids(whole=whole, missing=missing))


def read_cells(name: str, batch: Any, read: Callable[[Cells], T]) -> T:
    """Read a column of a batch, without a word of what another library says about its cells."""
    return quietly(lambda: read(_StoredCells(batch.column(name))), "table.cells", column=name)


def _derived(schema: Declaration, features: Sequence[str] | None) -> list[DerivedColumn]:
    """Return the chosen features of a formula; none without a formula."""
    known = {one.name: one for one in schema.derived}
    if not known or features is None:
        return list(known.values())
    for wanted in features:
        if wanted not in known:
            raise TableProblem(message("table.no-feature", name=wanted))
    return [known[wanted] for wanted in features]


def _chosen(schema: Declaration, features: Sequence[str] | None) -> list[tuple[str, int]]:
    every = {
        feature: (name, level)
        for name in schema.columns
        for level, feature in enumerate(schema.field(name).every_feature)
    }
    chosen: list[tuple[str, int]] = []
    for wanted in schema.feature_names if features is None else features:
        if wanted in every:
            chosen.append(every[wanted])
        elif wanted in schema.columns:
            chosen += [every[name] for name in schema.field(wanted).feature_names]
        else:
            raise TableProblem(message("table.no-feature", name=wanted))
    return chosen


# --- cells ----------------------------------------------------------------------------------------


def readable(kind: pa.DataType, *, days: bool = False) -> bool:
    """Whether a column stored so can hold what a schema declares: numbers, booleans, text, days."""
    types = pa.types
    if types.is_dictionary(kind):
        return readable(kind.value_type, days=days)
    if days and is_days(kind):
        return True
    known = (
        *(types.is_string, types.is_large_string, types.is_string_view, types.is_null),
        *(types.is_integer, types.is_floating, types.is_boolean, types.is_decimal),
    )
    return kind == _MIXED or any(fits(kind) for fits in known)


def mixed(values: Sequence[float | str | datetime.date | None]) -> Any:
    """Return an Arrow column of cells that are numbers here, and texts or days there."""
    parts = [
        pa.array([one if isinstance(one, sort) else None for one in values], child.type)
        for sort, child in zip((float, str, datetime.date), _MIXED, strict=True)
    ]
    return pa.StructArray.from_arrays(parts, fields=list(_MIXED))


def unmixed(cells: Any) -> Any:
    """Return a mixed column as one of numbers if all its cells are, or else of texts."""
    if cells.type != _MIXED:
        return cells
    whole = cells.combine_chunks() if isinstance(cells, pa.ChunkedArray) else cells
    number, text, day = (pc.struct_field(whole, child.name) for child in _MIXED)
    if text.null_count == len(text) and day.null_count == len(day):
        with suppress(pa.ArrowInvalid):
            return pc.cast(number, pa.int64())
        return number
    spelled = _spelled(number.to_numpy(zero_copy_only=False))
    return pc.coalesce(text, *(pc.cast(one, pa.large_string()) for one in (day, spelled)))


def only_days(cells: Any) -> Any:
    """Return the same for cells that are all days or times, or missing."""
    days = pc.cast(pa.array(stored_days(cells), from_pandas=True), pa.int32())
    parts = [pa.nulls(len(days), child.type) for child in _MIXED]
    return pa.StructArray.from_arrays([*parts[:2], pc.cast(days, pa.date32())], fields=list(_MIXED))


class _StoredCells:
    """Cells of an Arrow column; if it is a mixed one, they are texts here and numbers there."""

    def __init__(self, column: Any) -> None:
        self._column = column

    def numbers(self, *, marks: NumberMarks, missing: Sequence[str]) -> Array:
        return self._each(partial(numbers_in, marks=marks, missing=missing))

    def number_places(
        self, levels: Sequence[Level], *, marks: NumberMarks, missing: Sequence[str]
    ) -> Integers:
        return _number_places(self.numbers(marks=marks, missing=missing), levels)

    def days(self, *, form: str, missing: Sequence[str]) -> Array:
        days = self._each(partial(_days, form=form))
        if pa.types.is_struct(self._column.type):
            stored = stored_days(pc.struct_field(self._column, "day"))
            days = np.where(np.isnan(stored), days, stored)
        days[np.isin(days, _days(pa.array(missing, pa.string()), form=form))] = np.nan
        return days

    def word_places(self, words: Sequence[str], *, missing: Sequence[str]) -> Integers:
        return self._each(partial(_word_places, words=words, missing=missing))

    def missing(self, words: Sequence[str]) -> Mask:
        if is_days(self._column.type):
            return np.asarray(self._column.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_)
        found: Mask = self.word_places((), missing=words) == MISSING
        if pa.types.is_struct(self._column.type):
            found &= pc.struct_field(self._column, "day").is_null().to_numpy(zero_copy_only=False)
        return found

    def unit_ids(self, *, whole: bool, missing: Sequence[str]) -> Objects:
        return self._each(partial(_unit_ids, whole=whole, missing=missing))

    def _each(self, read: Callable[[Any], NDArray[S]]) -> NDArray[S]:
        if not pa.types.is_struct(self._column.type):
            return read(_plain(self._column))
        number, text = (pc.struct_field(self._column, name) for name in ("number", "text"))
        is_text = pc.is_valid(text).to_numpy(zero_copy_only=False)
        return np.where(is_text, read(text), read(number))


def _days(cells: Any, *, form: str) -> Array:
    """Return days since 1970; of digits alone, also where a library took them for a number."""
    if is_days(cells.type):
        return stored_days(cells)
    written = written_days(cells, form) if _is_text(cells.type) else np.full(len(cells), np.nan)
    if not is_digits(form):
        return written
    values = numbers_in(cells)
    whole = np.where((values >= 0) & (values < 1e8) & (values % 1 == 0), values, 0.0)
    digits = pc.utf8_lpad(pc.cast(pa.array(whole.astype(np.int64)), pa.string()), 8, "0")
    return np.where(np.isnan(written), written_days(digits, form), written)


def numbers_in(
    cells: Any, *, marks: NumberMarks = PLAIN_MARKS, missing: Sequence[str] = ()
) -> Array:
    """Return the numbers of Arrow cells; NaN for what is none, or is missing."""
    if _is_text(cells.type):
        parsed = _parsed(cells, marks, missing)
    elif pa.types.is_decimal(cells.type):  # by their digits, to be rounded once
        parsed = _parsed(pc.cast(cells, pa.string()), PLAIN_MARKS, ())
    else:
        parsed = pc.cast(cells, pa.float64(), safe=False)
    values = np.array(parsed.to_numpy(zero_copy_only=False), dtype=np.float64)
    values[~np.isfinite(values)] = np.nan
    for code in missing_numbers(missing, marks):
        values[values == code] = np.nan
    return values


def _unit_ids(cells: Any, *, whole: bool, missing: Sequence[str] = ()) -> Objects:
    spelled = cells if _is_text(cells.type) else _spelled(numbers_in(cells))
    ids = pc.ascii_trim_whitespace(_missing_texts(spelled, missing))
    if whole:
        ids = _missing_texts(_whole(ids), _whole(pa.array(missing, pa.string())).to_pylist())
    texts: Objects = pc.fill_null(ids, "").to_numpy(zero_copy_only=False)
    return texts


def _whole(ids: Any) -> Any:
    """Return whole numbers in one spelling; "" for what is none, or too long."""
    ids = _likely(ids)
    fits = pc.match_substring_regex(ids, _WHOLE)
    spelled = pc.replace_substring_regex(ids, _WHOLE, r"\1\2")
    spelled = pc.if_else(pc.equal(spelled, "-0"), "0", spelled)
    exact = np.abs(numbers_in(pc.if_else(fits, spelled, None))) < EXACT
    return pc.fill_null(pc.if_else(pc.and_(fits, pa.array(exact)), spelled, ""), "")


def _spelled(values: Array) -> Any:
    """Return numbers as text; null for NaN, and for those that may be several whole numbers."""
    cells = pa.array(np.where(np.abs(values) < EXACT, values, np.nan), from_pandas=True)
    whole = pc.equal(pc.floor(cells), cells)
    digits = pc.cast(pc.cast(pc.if_else(whole, cells, None), pa.int64()), pa.string())
    return pc.if_else(whole, digits, pc.cast(cells, pa.string()))


def _word_places(cells: Any, words: Sequence[str], missing: Sequence[str]) -> Integers:
    every = [value_of(word) for word in (*missing, *words)]
    if _is_text(cells.type):
        # Look for the words as they are spelled, then for their numbers in what is left.
        spelled = [word.strip(BLANKS) for word in (*missing, *words)]
        trimmed = pc.ascii_trim_whitespace(cells)
        places = pc.index_in(trimmed, value_set=pa.array(spelled, type=trimmed.type))
        places = pc.if_else(pc.is_null(trimmed), MISSING, pc.fill_null(places, UNKNOWN))
        codes = np.array(places.to_numpy(zero_copy_only=False), dtype=np.int64)
        left = codes == UNKNOWN
        if left.any() and any(isinstance(value, float) for value in every):
            numbers = numbers_in(cells.filter(pa.array(left)))
            codes[left] = _number_places(numbers, every, otherwise=UNKNOWN)
    else:
        codes = _number_places(numbers_in(cells), every)
    first = {value: place for place, value in reversed([*enumerate(every)])}
    codes = np.array([*map(first.__getitem__, every), MISSING, UNKNOWN])[codes]
    named = codes >= 0
    codes[named] -= len(missing)
    codes[named & (codes < 0)] = MISSING
    return codes


def _number_places(values: Array, levels: Sequence[Level], otherwise: int = MISSING) -> Integers:
    """Return the place of each number among the levels; `otherwise` where there is no number."""
    # Minus nought is nought; None keeps the places of levels that are texts.
    known = pa.array([level + 0.0 if isinstance(level, float) else None for level in levels])
    places = pc.index_in(pa.array(values + 0.0), value_set=known.cast(pa.float64()))
    codes = np.array(pc.fill_null(places, UNKNOWN), dtype=np.int64)
    return np.where(np.isnan(values), otherwise, codes)


def _plain(cells: Any) -> Any:
    if pa.types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    if pa.types.is_null(cells.type) or pa.types.is_string_view(cells.type):
        return pc.cast(cells, pa.large_string())
    return cells


def _missing_texts(cells: Any, missing: Sequence[str]) -> Any:
    """Return cells with null where one is declared as missing, blanks around it or not."""
    if not missing:
        return cells
    words = sorted({text.strip(BLANKS) for text in missing})
    found = pc.is_in(pc.ascii_trim_whitespace(cells), value_set=pa.array(words, type=cells.type))
    return pc.if_else(found, None, cells) if pc.any(found).as_py() else cells


def _parsed(cells: Any, marks: NumberMarks, missing: Sequence[str]) -> Any:
    """Return numbers, null where there is none: the quick ways first, which most columns allow."""
    ways: tuple[Callable[[], Any], ...] = (
        lambda: _pointed(cells, marks),
        lambda: _pointed(_missing_texts(cells, missing), marks),
        lambda: _likely(_pointed(cells, marks)),
    )
    for prepared in ways:
        try:
            return pc.cast(prepared(), pa.float64())
        except pa.ArrowInvalid:  # some cell is no number
            continue
    else:  # pragma: no cover - an older Arrow, and a leading plus or a number beyond float64
        likely = _likely(_pointed(cells, marks)).to_pylist()
        return pa.array([None if text is None else float(text) for text in likely], pa.float64())


def _pointed(cells: Any, marks: NumberMarks) -> Any:
    """Return cells with a decimal point, and nothing between thousands or around."""
    if not marks.bare:
        cells = pc.replace_substring_regex(cells, _WITHIN, r"\1\2")
    if marks.thousands:  # signs between thousands stand before three digits
        trimmed = pc.ascii_trim_whitespace(cells)
        sign = f"[{LOOK_ALIKE.get(marks.thousands, marks.thousands)}]"
        rest = rf"(?:[{marks.decimal}][0-9]*)?(?:[eE][+-]?[0-9]+)?$"
        whole = pc.match_substring_regex(trimmed, rf"^[+-]?[0-9]{{1,3}}(?:{sign}[0-9]{{3}})+{rest}")
        cells = pc.if_else(whole, pc.replace_substring_regex(trimmed, sign, ""), cells)
    if marks.decimal == ".":
        return cells
    # A point would be a sign between thousands there, and 1.234 is not to become 1234 or 1.234.
    cells = pc.if_else(pc.match_substring(cells, "."), None, cells)
    return pc.replace_substring(cells, marks.decimal, ".", max_replacements=1)


def _likely(cells: Any) -> Any:
    """Return numbers as spelled, without blanks, and 1 or 0 for booleans; null for the rest."""
    trimmed = pc.ascii_trim_whitespace(cells)
    words = pc.index_in(trimmed, value_set=pa.array(list(TRUTHS), type=trimmed.type))
    digits = pc.take(pa.array(list(TRUTHS.values()), type=trimmed.type), words)
    spelled = pc.match_substring_regex(trimmed, f"^{NUMBER}$")
    return pc.coalesce(pc.if_else(spelled, trimmed, None), digits)


def missing_numbers(missing: Sequence[str], marks: NumberMarks) -> set[float]:
    """Return the numbers among the missing values, by the rules for cells."""
    words = _likely(_pointed(pa.array(missing, pa.string()), marks)).to_pylist()
    return {float(text) for text in words if text is not None}


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
