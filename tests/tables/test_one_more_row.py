"""One more row changes the meaning of no other, whatever it does to the types of columns."""

from __future__ import annotations

import datetime
import decimal
import math

import numpy as np
import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from table_oracle import meaning, number_field, schema_of_fields, schema_of_ids

from dpscreen.tables.declaration import TableProblem
from dpscreen.tables.reading import read_rows

many = settings(max_examples=25, suppress_health_check=list(HealthCheck), deadline=None)

LARGE = number_field("x", -5, 2000)
DAYS_BOUND = {"minimum": "2019-01-01", "maximum": "2020-12-31"}
KINDS = {
    "number": number_field("x", -5, 200),
    "comma": number_field("x", -5, 200) | {"decimalChar": ","},
    "codes": {"type": "integer", "constraints": {"enum": [0, 1, 2]}},
    "half codes": {"type": "number", "constraints": {"enum": [0.5, 1]}},
    "spelled codes": {"type": "string", "constraints": {"enum": ["00", "1", "2.50", "x"]}},
    "spelled truths": {"type": "string", "constraints": {"enum": ["True", "False", "x"]}},
    "words": {"type": "string", "constraints": {"enum": ["a", "x"]}},
    "truth": {"type": "boolean"},
    "ja": {"type": "boolean", "trueValues": ["ja"], "falseValues": ["nein"]},
    "one or two": {"type": "boolean", "trueValues": ["1"], "falseValues": ["2"]},
    "grouped": LARGE | {"groupChar": ","},
    "grouped by blanks": LARGE | {"groupChar": " ", "decimalChar": ","},
    "with signs": LARGE | {"groupChar": ",", "bareNumber": False},
    "grouped codes": {"type": "integer", "groupChar": ",", "constraints": {"enum": [1, 1234]}},
    "days": {"type": "date", "since": "2020-01-01", "constraints": DAYS_BOUND},
    "parts": {
        "type": "date",
        "parts": ["days", "weekday", "month", "year"],
        "constraints": DAYS_BOUND,
    },
    "days by points": {"type": "date", "format": "%d.%m.%Y", "constraints": DAYS_BOUND},
    "days by digits": {"type": "date", "format": "%d%m%Y", "constraints": DAYS_BOUND},
    "days turned": {"type": "date", "format": "%Y-%d-%m", "constraints": DAYS_BOUND},
}
BY_MARKS = {"comma", "grouped by blanks"}
"""Columns whose numbers a library would write into a file in another way."""


def schema_of(kind):
    return schema_of_fields({"name": "x"} | KINDS[kind], {"name": "y", "type": "boolean"})


def encoded(schema, frame):
    return schema.encode(frame.assign(y=True)).X


def moved(schema, cells, one):
    """Return what one more row does to the others in a pandas frame; None for nothing."""
    few, more = pd.DataFrame({"x": cells}), pd.DataFrame({"x": [*cells, one]})
    before, after = encoded(schema, few), encoded(schema, more)[:-1]
    return (
        None if np.array_equal(before, after, equal_nan=True) else (before.tolist(), after.tolist())
    )


# --- what was once wrong --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "cells", "one"),
    [
        ("number", [True, False, True], None),
        ("codes", [True, False, True], None),
        ("ja", [True, False, True], None),
        ("spelled codes", [0, 1, 1], None),
        ("spelled codes", [0.0, 1.0, 2.5], "x"),
        ("spelled codes", pd.Categorical([0, 1, 1]).tolist(), None),
        ("spelled truths", [True, False, True], "x"),
        ("comma", [0.5, 1.5], "x"),
        ("truth", [0.0, 1.0], "x"),
        ("number", [0.5, 1.5], 1j),
        ("number", [0.5, 1.5], np.longdouble(1)),
    ],
)
def test_a_column_that_changes_its_type_keeps_its_meaning(kind, cells, one):
    assert moved(schema_of(kind), cells, one) is None
    assert encoded(schema_of(kind), pd.DataFrame({"x": cells})).any()


# --- any column -----------------------------------------------------------------------------------

PLAIN = st.sampled_from([0, 1, 2, -99, 7, 1000, 2**53 + 1, 29022020, 1022020])
FLOATS = st.sampled_from([0.0, -0.0, 0.5, 1.0, 2.5, -99.0, 1e300, math.nan, math.inf, -math.inf])
TRUTHS = st.booleans()
TEXTS = st.sampled_from(
    [
        *("a", "x", "", " ", "NA", "ja", "nein", "true", "FALSE", "True", "-99", "-99.0", "1_0"),
        *("1", "1.0", " 01 ", "0", "2.50", "2,5", "0,5", "1e0", "nan", "inf", "1e400", "\u0663"),
        *("1,234", "1 234", " -1,234.5e0", "1\u202f234,5", "1,23", "1,234,", ",123", "1,0000"),
        *("$1,234.5", "-$ 3", "12 %", "(12)", "EUR 7", "2x4", "$-1-2", "-99 kg", "+ 5"),
        *("2020-02-29", "2019-02-29", "2020-03-02 12:00", "29.2.2020", "29.02.2020", "31.04.2020"),
        *("29022020", "01022020", "1022020", "29022020.0"),
        *("0000-00-00", "2020-13-01", "30.12.1899"),
    ]
)
TIMES = st.sampled_from(
    [
        datetime.datetime(2020, 2, 29, 23, 59),
        datetime.datetime(1066, 10, 14),
        pd.Timestamp("2020-12-31"),
        np.datetime64("2019-06-30T12:00"),
    ]
)
DAYS = st.sampled_from([datetime.date(2020, 2, 29), datetime.date(2019, 3, 31), pd.NaT])
ZONED = st.sampled_from(
    [
        pd.Timestamp("2020-02-29 00:30", tz="Europe/Berlin"),
        pd.Timestamp("2020-02-29 23:30", tz="America/New_York"),
        pd.NaT,
    ]
)
DECIMALS = st.sampled_from(["0.1", "1.0", "2.50", "-99", "NaN", "1E+2"]).map(decimal.Decimal)
NUMPY = st.sampled_from(
    [np.bool_(True), np.int8(2), np.uint64(1), np.float32(0.1), np.float16(2.5), np.str_("x")]
)
ODD = st.sampled_from([b"1", (1,), 1j, 2 + 0j, pd.Timestamp(0), "\ud800", object(), pd.NA, 10**400])
SORTS = (PLAIN, FLOATS, TRUTHS, TEXTS, DECIMALS, NUMPY, TIMES, DAYS, ZONED)
COLUMNS = st.one_of([st.lists(sort | st.none(), min_size=1, max_size=6) for sort in SORTS])
ONE = st.one_of([*SORTS, st.none(), ODD])


def from_pandas(dtype=None, **convert):
    def make(cells):
        frame = pd.DataFrame({"x": pd.Series(cells, dtype=dtype)})
        return frame.convert_dtypes(**convert) if convert else frame

    return make


def grown(cells):
    """Put rows together one by one, as `concat` does."""
    return pd.concat([pd.DataFrame({"x": [cell]}) for cell in cells], ignore_index=True)


def plain(cells):
    """Return cells without numpy's types, which Arrow cuts down to integers beside one."""
    return [cell.item() if isinstance(cell, np.generic) else cell for cell in cells]


def polars_grown(cells):
    """Put rows together one by one; polars makes one type of all, text if need be."""
    return pl.concat([pl.DataFrame({"x": [cell]}) for cell in cells], how="vertical_relaxed")


WAYS = {
    "pandas": from_pandas(),
    "pandas objects": from_pandas(object),
    "pandas categories": from_pandas("category"),
    "pandas nullable": from_pandas(dtype_backend="numpy_nullable"),
    "pandas by Arrow": from_pandas(dtype_backend="pyarrow"),
    "pandas grown": grown,
    "polars": lambda cells: pl.DataFrame({"x": cells}),
    "polars grown": polars_grown,
    "polars objects": lambda cells: pl.DataFrame({"x": pl.Series(cells, dtype=pl.Object)}),
    "Arrow": lambda cells: pa.table({"x": plain(cells)}),
    "Arrow dictionary": lambda cells: pa.table({"x": pa.array(plain(cells)).dictionary_encode()}),
}


def built(way, cells):
    """Return a frame, or give the example up where the library itself cannot build one."""
    try:
        return WAYS[way](cells)
    except (Exception, pl.exceptions.PanicException):
        assume(False)


def turned(way, cells):
    """Whether a library makes other values of cells of these types beside one another."""
    times = [cell for cell in cells if isinstance(cell, datetime.date) and cell is not pd.NaT]
    zones = {getattr(cell, "tzinfo", None) for cell in times}
    numbers = any(
        isinstance(cell, int | float | np.generic | decimal.Decimal) and cell == cell
        for cell in cells
    )
    # Arrow takes 0 beside a time for the start of 1970; both move times of two zones to one clock.
    # polars makes truths of all that follows a numpy truth.
    truths = way.startswith("polars") and any(isinstance(cell, np.bool_) for cell in cells)
    clocks = len(zones) > 1 or (bool(times) and numbers)
    return truths or (not way.startswith("pandas") and clocks)


def with_target(frame):
    if isinstance(frame, pd.DataFrame):
        return frame.assign(y=True)
    if isinstance(frame, pl.DataFrame):
        return frame.with_columns(y=pl.lit(True))
    return frame.append_column("y", pa.array([True] * len(frame)))


def features(schema, frame):
    """Encode; Arrow and polars columns of dates or bytes are refused by their stored type."""
    try:
        return schema.encode(with_target(frame)).X
    except TableProblem as told:
        assume("stored neither" not in str(told))
        raise


@pytest.mark.parametrize("way", WAYS)
@given(st.sampled_from(sorted(KINDS)), COLUMNS, ONE, st.data())
@many
def test_one_more_row_moves_no_other(way, kind, cells, one, data):
    assume(not turned(way, [*cells, one]))
    assume(way != "polars grown" or kind not in BY_MARKS)  # it writes numbers beside a text as text
    place = data.draw(st.integers(0, len(cells)), label="place")
    few, more = built(way, cells), built(way, [*cells[:place], one, *cells[place:]])
    schema = schema_of(kind)
    before, after = features(schema, few), features(schema, more)
    np.testing.assert_array_equal(before, np.delete(after, place, axis=0))


@pytest.mark.parametrize("way", [way for way in WAYS if way.startswith("pandas")])
@given(st.sampled_from(sorted(KINDS)), st.lists(st.one_of(*SORTS, ODD), max_size=6))
@many
def test_the_fast_ways_give_what_one_cell_after_the_other_gives(way, kind, cells):
    schema = schema_of(kind)
    want = [meaning(cell, schema.field("x"), schema.missing_values) for cell in cells]
    found = features(schema, built(way, cells))
    np.testing.assert_array_equal(found, np.array(want).reshape(found.shape))


# --- files ----------------------------------------------------------------------------------------


def through_csv(frame, folder):
    frame.to_csv(folder / "data.csv", index=False)
    return folder / "data.csv"


def alike(written):
    """Whether one more row changed no other line.

    A complex number, or a truth beside 32 bits, makes pandas write all of its column otherwise.
    """
    return written[1].startswith(written[0])


def through_parquet(frame, folder):
    frame.to_parquet(folder / "data.parquet")
    return folder / "data.parquet"


def through_arrow(frame, folder):
    pq.write_table(
        pa.table({name: plain(frame[name].tolist()) for name in frame}), folder / "data.arrow"
    )
    return folder / "data.arrow"


def through_excel(frame, folder):
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet()
    for row in ([*frame], *zip(*(plain(frame[name].tolist()) for name in frame), strict=True)):
        sheet.append(row)
    book.save(folder / "data.xlsx")
    return folder / "data.xlsx"


def read_file(path, schema):
    try:
        return read_rows(path, schema).X
    except TableProblem as told:
        assume("stored neither" not in str(told))
        assume("damaged" not in str(told))  # half of a character, which openpyxl writes
        raise


def read_guessing_types(path, schema):
    return schema.encode(pd.read_csv(path)).X


FILES = [
    (write, read_file) for write in (through_csv, through_parquet, through_arrow, through_excel)
]
FILES += [(through_csv, read_guessing_types)]


@pytest.mark.parametrize(("write", "read"), FILES)
@example("number", [None, np.float32(0.1)], False)
@given(st.sampled_from(sorted(set(KINDS) - BY_MARKS)), COLUMNS, ONE)
@settings(parent=many, max_examples=20)
def test_one_more_row_of_a_file_moves_no_other(tmp_path, write, read, kind, cells, one):
    schema, found, written = schema_of(kind), [], []
    for column in (cells, [*cells, one]):
        frame = built("pandas", column).assign(y=True)
        try:
            path = write(frame, tmp_path)
        except Exception:
            assume(False)
        found.append(read(path, schema))
        written.append(path.read_bytes())
    assume(write is not through_csv or alike(written))
    np.testing.assert_array_equal(found[0], found[1][: len(cells)])


# --- ids ------------------------------------------------------------------------------------------


def who(way, ids):
    frame = built(way, ids)
    places = np.arange(len(ids), dtype=float)
    if isinstance(frame, pd.DataFrame):
        return frame.rename(columns={"x": "who"}).assign(x=places, y=1.0)
    if isinstance(frame, pl.DataFrame):
        return frame.rename({"x": "who"}).with_columns(x=places, y=pl.lit(1.0))
    return pa.table({"who": frame.column("x"), "x": places, "y": np.ones(len(ids))})


def kept(schema, frame):
    return schema.encode(frame).named_arrays()[0][:, 0].tolist()


LONG = [2**53 - 1, 2**53, 2**53 + 1, 1234567890123456788, 1234567890123456789]
IDS = st.one_of(
    st.lists(st.sampled_from([1, 2, 0, -99, *LONG]), min_size=1, max_size=8),
    st.lists(st.sampled_from([0.0, -0.0, 1.0, 2.5, math.nan, 2.0**53]), min_size=1, max_size=8),
    st.lists(st.sampled_from(["a", "1", "01", "1.0", "", "NA", str(LONG[-1])]), max_size=8),
    st.lists(st.booleans() | st.none(), min_size=1, max_size=8),
)
NOBODY_ELSE = st.sampled_from([None, math.nan, "new", "", 77, 77.5, 1j])


@pytest.mark.parametrize("way", WAYS)
@given(st.sampled_from(["string", "integer", "any"]), IDS, NOBODY_ELSE)
@many
def test_one_more_row_moves_no_unit(way, kind, ids, one):
    # Polars turns all cells of a mixed column into text: a long number, or NaN, is then an id.
    told_apart = kind == "integer" or not any(one != one or one in LONG for one in ids)
    assume(way != "polars grown" or told_apart or not isinstance(one, str))
    schema = schema_of_ids(kind)
    few, more = who(way, ids), who(way, [*ids, one])
    assert kept(schema, few) == [place for place in kept(schema, more) if place < len(ids)]


@pytest.mark.parametrize("kind", ["string", "integer", "any"])
def test_long_numbers_are_no_ids_however_they_are_stored(kind):
    schema = schema_of_ids(kind)
    for way in WAYS:
        assert kept(schema, who(way, LONG)) == [0]
    texts = [str(one) for one in LONG]
    want = [0] if kind == "integer" else [0, 1, 2, 3, 4]
    assert all(kept(schema, who(way, texts)) == want for way in WAYS)


@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_short_floats_are_refused_as_ids(kind):
    frame = who("pandas", [1.0, 2.0]).astype({"who": kind})
    with pytest.raises(TableProblem, match="column 'who' is stored as floats of fewer than 64"):
        schema_of_ids("integer").encode(frame)
