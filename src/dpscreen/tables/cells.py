"""Cells to numbers. A cell that does not fit its declared type is missing: NaN, or MISSING.

Nothing here fails because of what a cell holds, and the result depends on that cell alone: on its
value, not on how its column is stored. 1, 1.0, true and their texts are one value, since libraries
turn one into another for the sake of a single row; so every number is read as a 64-bit float.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpscreen._core.arrays import Array, Integers, Objects
from dpscreen.tables.values import BLANKS, NUMBER, TRUTHS, Level, value_of

S = TypeVar("S", bound=np.generic)
UNKNOWN, MISSING = -1, -2
_WHOLE = r"^(?:\+|(-))?0*([0-9]+)(?:\.0*)?$"
_MIXED = pa.struct([("number", pa.float64()), ("text", pa.large_string())])
EXACT = 2.0**53
"""Below this size a float holds one whole number only; above it may stand for several."""


def readable(kind: pa.DataType) -> bool:
    """Whether a column stored so can hold what a schema declares: numbers, truths or text."""
    if pa.types.is_dictionary(kind):
        return readable(kind.value_type)
    return _is_text(kind) or _is_number(kind) or pa.types.is_null(kind) or kind == _MIXED


def mixed(values: Sequence[float | str | None]) -> Any:
    """Return an Arrow column of cells that are numbers here and texts there."""
    parts = [
        pa.array([one if isinstance(one, sort) else None for one in values], child.type)
        for sort, child in zip((float, str), _MIXED, strict=True)
    ]
    return pa.StructArray.from_arrays(parts, fields=list(_MIXED))


def each(read: Callable[[Any], NDArray[S]], cells: Any) -> NDArray[S]:
    """Read a column, which may be a mixed one."""
    if not pa.types.is_struct(cells.type):
        return read(cells)
    number, text = (pc.struct_field(cells, name) for name in ("number", "text"))
    is_text = pc.is_valid(text).to_numpy(zero_copy_only=False)
    return np.where(is_text, read(text), read(number))


def numbers(cells: Any, *, decimal: str = ".", missing: Sequence[str] = ()) -> Array:
    """Return finite numbers; NaN for what is no number, not finite, or declared as missing."""
    cells = _plain(cells)
    parsed = _parsed(cells, decimal, missing) if _is_text(cells.type) else _stored(cells)
    values = np.array(parsed.to_numpy(zero_copy_only=False), dtype=np.float64)
    values[~np.isfinite(values)] = np.nan
    for code in _declared(missing, decimal):
        values[values == code] = np.nan
    return values


def unit_ids(cells: Any, *, whole: bool, missing: Sequence[str] = ()) -> Objects:
    """Return ids as text, blanks off; "" where there is none.

    With `whole`, only whole numbers are ids, each in one spelling.
    """
    cells = _plain(cells)
    spelled = cells if _is_text(cells.type) else _spelled(numbers(cells))
    ids = pc.ascii_trim_whitespace(_missing_texts(spelled, missing))
    if whole:
        ids = _missing_texts(_whole(ids), _whole(pa.array(missing, pa.string())).to_pylist())
    texts: Objects = pc.fill_null(ids, "").to_numpy(zero_copy_only=False)
    return texts


def tells_ids_apart(kind: pa.DataType) -> bool:
    """Whether a column stored so holds whole numbers below EXACT, if any, as they were."""
    return not (pa.types.is_float16(kind) or pa.types.is_float32(kind))


def _whole(ids: Any) -> Any:
    """Return whole numbers in one spelling; "" for what is none, or too long."""
    ids = _likely(ids)
    fits = pc.match_substring_regex(ids, _WHOLE)
    spelled = pc.replace_substring_regex(ids, _WHOLE, r"\1\2")
    spelled = pc.if_else(pc.equal(spelled, "-0"), "0", spelled)
    exact = np.abs(numbers(pc.if_else(fits, spelled, None))) < EXACT
    return pc.fill_null(pc.if_else(pc.and_(fits, pa.array(exact)), spelled, ""), "")


def _spelled(values: Array) -> Any:
    """Return numbers as text; null for NaN, and for those that may be several whole numbers."""
    cells = pa.array(np.where(np.abs(values) < EXACT, values, np.nan), from_pandas=True)
    whole = pc.equal(pc.floor(cells), cells)
    digits = pc.cast(pc.cast(pc.if_else(whole, cells, None), pa.int64()), pa.string())
    return pc.if_else(whole, digits, pc.cast(cells, pa.string()))


def word_places(cells: Any, words: Sequence[str], missing: Sequence[str]) -> Integers:
    """Return the place of the first word of each cell's value; MISSING comes before all words."""
    cells, every = _plain(cells), [value_of(word) for word in (*missing, *words)]
    if _is_text(cells.type):
        codes = _text_places(cells, (*missing, *words), every)
    else:
        codes = number_places(numbers(cells), every)
    codes = np.array([*map(every.index, every), MISSING, UNKNOWN])[codes]
    named = codes >= 0
    codes[named] -= len(missing)
    codes[named & (codes < 0)] = MISSING
    return codes


def _text_places(cells: Any, words: Sequence[str], every: Sequence[Level]) -> Integers:
    """Look for the words as they are spelled, then for their numbers in what is left."""
    codes = _index(cells, [word.strip(BLANKS) for word in words])
    left = codes == UNKNOWN
    if left.any() and any(isinstance(value, float) for value in every):
        codes[left] = number_places(numbers(cells.filter(pa.array(left))), every, otherwise=UNKNOWN)
    return codes


def number_places(values: Array, levels: Sequence[Level], otherwise: int = MISSING) -> Integers:
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


def _index(cells: Any, words: Sequence[str]) -> Integers:
    trimmed = pc.ascii_trim_whitespace(cells)
    places = pc.index_in(trimmed, value_set=pa.array(words, type=trimmed.type))
    places = pc.if_else(pc.is_null(trimmed), MISSING, pc.fill_null(places, UNKNOWN))
    return np.array(places.to_numpy(zero_copy_only=False), dtype=np.int64)


def _parsed(cells: Any, decimal: str, missing: Sequence[str]) -> Any:
    """Return numbers, null where there is none: the quick ways first, which most columns allow."""
    ways: tuple[Callable[[], Any], ...] = (
        lambda: _pointed(cells, decimal),
        lambda: _pointed(_missing_texts(cells, missing), decimal),
        lambda: _likely(_pointed(cells, decimal)),
    )
    for prepared in ways:
        try:
            return pc.cast(prepared(), pa.float64())
        except pa.ArrowInvalid:  # some cell is no number
            continue
    # An older Arrow and a leading plus, or a number beyond float64.
    likely = _likely(_pointed(cells, decimal)).to_pylist()
    return pa.array([None if text is None else float(text) for text in likely], type=pa.float64())


def _pointed(cells: Any, decimal: str) -> Any:
    """Return cells with a decimal point."""
    if decimal == ".":
        return cells
    # A point would be a sign between thousands there, and 1.234 is not to become 1234 or 1.234.
    cells = pc.if_else(pc.match_substring(cells, "."), None, cells)
    return pc.replace_substring(cells, decimal, ".", max_replacements=1)


def _likely(cells: Any) -> Any:
    """Return numbers as spelled, without blanks, and 1 or 0 for truths; null for the rest."""
    trimmed = pc.ascii_trim_whitespace(cells)
    truths = pc.index_in(trimmed, value_set=pa.array(list(TRUTHS), type=trimmed.type))
    digits = pc.take(pa.array(list(TRUTHS.values()), type=trimmed.type), truths)
    spelled = pc.match_substring_regex(trimmed, f"^{NUMBER}$")
    return pc.coalesce(pc.if_else(spelled, trimmed, None), digits)


def _stored(cells: Any) -> Any:
    """Return numbers that are stored as such; decimals by their digits, to be rounded once."""
    if pa.types.is_decimal(cells.type):
        return _parsed(pc.cast(cells, pa.string()), ".", ())
    return pc.cast(cells, pa.float64(), safe=False)


def _declared(missing: Sequence[str], decimal: str) -> set[float]:
    """Return the numbers among the missing values, by the rules for cells."""
    words = _likely(_pointed(pa.array(missing, pa.string()), decimal)).to_pylist()
    return {float(text) for text in words if text is not None}


def _is_text(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_decimal(kind)
    )
