"""Cells to numbers. A cell that does not fit its declared type is missing: NaN, or MISSING.

Nothing here fails because of what a cell holds, and the result depends on that cell alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpscreen._core.arrays import Array, Integers, Objects
from dpscreen.data.schema_fields import Field

UNKNOWN, MISSING = -1, -2
NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_WHOLE = r"^(?:\+|(-))?0*([0-9]+)(?:\.0*)?$"
_BLANKS = " \t\r\n\v\f"
_EXACT = {pa.float16(): 2.0**11, pa.float32(): 2.0**24, pa.float64(): 2.0**53}
"""Below this size a float holds one whole number only; above it may stand for several."""


def readable(kind: pa.DataType) -> bool:
    """Whether a column stored so can hold what a schema declares: numbers, truths or text."""
    if pa.types.is_dictionary(kind):
        return readable(kind.value_type)
    return _is_text(kind) or _is_number(kind) or pa.types.is_null(kind)


def numbers(cells: Any, *, decimal: str = ".", missing: Sequence[str] = ()) -> Array:
    """Return finite numbers; NaN for what is no number, not finite, or declared as missing."""
    cells = _plain(cells)
    if _is_text(cells.type):
        parsed = _parsed(cells, decimal, missing)
    else:
        parsed = pc.cast(cells, pa.float64(), safe=False)
    values = np.array(parsed.to_numpy(zero_copy_only=False), dtype=np.float64)
    values[~np.isfinite(values)] = np.nan
    for code in _declared(missing, {decimal} if _is_text(cells.type) else {decimal, "."}):
        values[values == code] = np.nan
    return values


def truths(cells: Any, field: Field, missing: Sequence[str] = ()) -> Array:
    """Return 1 for true, 0 for false, NaN for anything else."""
    cells = _plain(cells)
    if _is_text(cells.type):
        words = (*field.true_values, *field.false_values)
        codes = _index(_missing_texts(cells, missing), words)
        values = np.where(codes < len(field.true_values), 1.0, 0.0)
        values[codes < 0] = np.nan  # UNKNOWN or MISSING
        return values
    values = numbers(cells, missing=missing)
    values[(values != 0) & (values != 1)] = np.nan
    return values


def level_codes(cells: Any, field: Field, missing: Sequence[str] = ()) -> Integers:
    """Return the place of each cell's level among the declared ones; UNKNOWN for another text."""
    levels = field.levels or ()
    if field.is_numeric:
        values = numbers(cells, decimal=field.decimal, missing=missing)
        codes = np.where(np.isnan(values), MISSING, UNKNOWN)
        for place, level in enumerate(levels):
            codes[values == level] = place
        return codes
    return _index(_missing_texts(as_text(cells), missing), [str(level) for level in levels])


def unit_ids(cells: Any, field: Field, missing: Sequence[str] = ()) -> Objects:
    """Return ids as text: blanks off, whole numbers in one spelling; "" where there is none."""
    ids = pc.ascii_trim_whitespace(_missing_texts(as_text(_exact(_plain(cells))), missing))
    if field.type == "integer":
        ids = _missing_texts(_whole(ids), _whole(pa.array(missing, pa.string())).to_pylist())
    texts: Objects = pc.fill_null(ids, "").to_numpy(zero_copy_only=False)
    return texts


def _whole(ids: Any) -> Any:
    """Return whole numbers in one spelling; "" for what is none."""
    fits = pc.match_substring_regex(ids, _WHOLE)
    spelled = pc.replace_substring_regex(ids, _WHOLE, r"\1\2")
    spelled = pc.if_else(pc.equal(spelled, "-0"), "0", spelled)
    return pc.if_else(fits, spelled, "")


def _exact(cells: Any) -> Any:
    """Return whole numbers that are stored as floats, as pandas does beside a missing one, as text.

    Floats so large that several whole numbers share one are null: they may be several people's.
    """
    if not pa.types.is_floating(cells.type):
        return cells
    values = pc.cast(cells, pa.float64())
    values = pc.if_else(pc.less(pc.abs(values), _EXACT[cells.type]), values, None)  # nor NaN
    whole = pc.equal(pc.floor(values), values)
    digits = pc.cast(pc.cast(pc.if_else(whole, values, None), pa.int64()), pa.string())
    return pc.if_else(whole, digits, pc.cast(values, pa.string()))


def as_text(cells: Any) -> Any:
    """Return cells as text, numbers in their shortest spelling."""
    cells = _plain(cells)
    if pa.types.is_floating(cells.type):
        cells = pc.if_else(pc.is_nan(cells), None, cells)
    return cells if _is_text(cells.type) else pc.cast(cells, pa.string())


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
    words = sorted({text.strip(_BLANKS) for text in missing})
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
    """Return what is spelled like a number, without blanks; null for the rest."""
    trimmed = pc.ascii_trim_whitespace(cells)
    return pc.if_else(pc.match_substring_regex(trimmed, NUMBER), trimmed, None)


def _declared(missing: Sequence[str], decimals: set[str]) -> set[float]:
    """Return the numbers among the missing values, by the rules for cells."""
    words = pa.array(missing, pa.string())
    spelled = (_likely(_pointed(words, decimal)).to_pylist() for decimal in decimals)
    return {float(text) for texts in spelled for text in texts if text is not None}


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
