"""Tables in, numbers out: the fast reader against a plain one, on files of every sort."""

from __future__ import annotations

import csv
import errno
import gc
import gzip
import math
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from table_oracle import (
    NAMES,
    SCHEMA,
    as_csv,
    described,
    expected,
    features_of,
    make_schema,
    number_field,
    schema_of_fields,
    target_of,
)

from dpscreen.tables import csv as csv_files
from dpscreen.tables.columns.base import TRANSFORMS
from dpscreen.tables.declaration import TableProblem, quietly
from dpscreen.tables.reading import feature_batches, read_features, read_rows
from dpscreen.tables.schema import SchemaProblem, TableSchema

ROWS = [
    ("34", "yes", "1200.5", "1", "true", "10", "a"),
    ("NA", "no", "", "2", "FALSE", "20.25", "b"),
    ("250", "never", "0.01", "3", "0", "-5", "a"),
    ("thirty", " once ", "1e400", "2.0", "maybe", "nan", "a"),
    ("-99", "", "inf", "x", "", "1e3", ""),
    (" 7 ", "NA", "+5", "", "1", "Infinity", "NA"),
    ("1_0", "YES", "0x1", "1e0", "True", "12,5", " b "),
    ("5", "yes", "3\n4", "1", "1", "7", "c,d"),
]
ROW_IS_UNIT = {"unit": None, "rows_per_unit": None, "features": list(NAMES[:5])}


def same(rows, want):
    assert features_of(rows).shape == want[0].shape
    for found, wanted in zip((features_of(rows), target_of(rows)), want, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-14)


def identical(found, wanted):
    return np.array_equal(found, wanted, equal_nan=True)


@pytest.fixture
def write(tmp_path):
    """Return a function that writes bytes into a new file."""

    def make(data: bytes, name: str = "data.csv"):
        path = tmp_path / name
        path.write_bytes(data)
        return path

    return make


# --- values ---------------------------------------------------------------------------------------


def test_every_cell_becomes_what_the_schema_says(write):
    rows = read_rows(write(as_csv(ROWS)), SCHEMA)
    same(rows, expected(ROWS))
    X, (low, high) = features_of(rows), SCHEMA.feature_bounds.T
    assert (np.isnan(X) | (low <= X) & (high >= X)).all()
    assert X.dtype == target_of(rows).dtype == np.float64
    assert "34" not in repr(rows)


WORDS = st.sampled_from(
    [
        *("1", "0", "-3.5", "1e5", "1e999", "nan", "inf", "2", "2.0", "+7", ".5", "5.", "1,5"),
        *("-0", "NA", "yes", "no", "once", "true", "False", "٣", "1_0", "x", "-99", "-99.0"),
        *("0x1A", "a", "b"),
    ]
)
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)
CELLS = WORDS | st.just("") | TEXTS | WORDS.map(" {} ".format) | st.floats(-2, 600).map(repr)


@given(st.lists(st.tuples(*[CELLS] * 7), max_size=30), st.sampled_from([",", ";", "\t", "|"]))
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_is_read_as_the_plain_reader_reads_it(write, rows, delimiter):
    path = write(as_csv(rows, delimiter=delimiter, quoting=csv.QUOTE_ALL))
    want = expected(rows)
    same(read_rows(path, SCHEMA), want)
    same(SCHEMA.encode(pd.DataFrame(rows, columns=list(NAMES), dtype=object)), want)


def test_small_blocks_give_the_same(write, monkeypatch):
    rows = ROWS * 200
    path = write(as_csv(rows))
    whole = read_rows(path, SCHEMA)
    monkeypatch.setattr(csv_files, "BYTES_PER_BLOCK", 200)
    monkeypatch.setattr(csv_files, "BYTES_PER_CELL", 1)
    cut = read_rows(path, SCHEMA)
    assert identical(features_of(whole), features_of(cut))
    assert identical(target_of(whole), target_of(cut))
    same(cut, expected(rows))


def test_rows_of_a_missing_target_are_left_out_unless_it_has_a_fill(write):
    """In the middle of wide bounds they turned the effects of columns around that tell them."""
    filled = read_rows(write(as_csv(ROWS)), make_schema(**ROW_IS_UNIT))
    fills = {"fill": {"smoker": "no"}}
    rows = read_rows(write(as_csv(ROWS)), make_schema(**ROW_IS_UNIT, **fills))
    assert identical(features_of(filled)[[0, 1, 2, 4, 7]], features_of(rows))
    assert target_of(filled)[3] == np.log1p(20)


@pytest.mark.parametrize(
    "declared",
    [
        {"type": "boolean", "trueValues": ["yes"], "falseValues": ["no"]},
        {"type": "string", "constraints": {"enum": ["no", "yes"]}},
    ],
)
def test_rows_of_neither_outcome_are_left_out_unless_filled(write, declared):
    fields = number_field("x", 0, 9), {"name": "y", **declared}
    path = write(b"x,y\n1,yes\n2,Ja\n3,no\n4,\n5,0.5\n")
    rows = read_rows(path, schema_of_fields(*fields))
    assert features_of(rows)[:, 0].tolist() == [1, 3]
    assert target_of(rows).tolist() == [1, 0]
    filled = True if declared["type"] == "boolean" else "yes"
    schema = schema_of_fields(*fields, fill={"y": filled})
    assert target_of(read_rows(path, schema)).tolist() == [1, 1, 0, 1, 1]


def test_missing_numbers_are_filled_as_declared_and_then_transformed(write):
    schema = make_schema(fill={"age": 40, "income": 100.0})
    rows = read_rows(write(as_csv([("NA", "yes", "", "1", "true", "10", "a")])), schema)
    np.testing.assert_allclose(features_of(rows)[0, [0, 3]], [40, np.log(100)])


def with_incomes(missing=("", "NA", "-99"), **settings):
    """Return a schema of which incomes are written otherwise."""
    given_ = described(**ROW_IS_UNIT, transform={}) | {"missingValues": [*missing]}
    given_["fields"][2] |= settings
    return TableSchema.from_dict(given_)


def incomes(write, schema, cells):
    """Return what cells of the income are read as; None for missing."""
    rows = [(*ROWS[0][:2], cell, *ROWS[0][3:]) for cell in cells]
    path = write(as_csv(rows, delimiter=";"))
    return without_fills(schema, features_of(read_rows(path, schema)))


def without_fills(schema, found):
    place = schema.feature_names.index("income")
    return [None if np.isnan(one) else one for one in found[:, place].tolist()]


AROUND = {"$1,200.50": 1200.5, "$ 12": 12, "12 %": 12, "1.5e2 EUR": 150, "US$ 0.5e1": 5, "-$3": 1}
NOT_AROUND = dict.fromkeys(("(12)", "2x4", "$", "$-1-2", "n/a"))  # (12) is an accountant's minus
BARE = {"77": 77, "true": 1}


def test_signs_around_numbers_are_declared(write):
    cells = AROUND | NOT_AROUND | BARE  # -$3 is clipped
    signs = with_incomes(groupChar=",", bareNumber=False)
    assert incomes(write, signs, cells) == [*cells.values()]
    bare = with_incomes(groupChar=",", bareNumber=True)
    assert incomes(write, bare, cells) == [BARE.get(cell) for cell in cells]
    assert "bareNumber must be true or false" in str(with_incomes(bareNumber="no").problems())


COMMAS = [
    *(("12,5", 12.5), ("9,99", None), (" 9,99 ", None), ("9,990", None), ("9.99", None)),
    *(("8,5", 8.5), ("10", 10), ("-99", None), ("1.234,5", None), ("x", None)),
]


@pytest.mark.parametrize("n_last", range(1, len(COMMAS) + 1))  # other cells decide how to parse
def test_missing_values_are_compared_as_declared(write, n_last):
    schema = with_incomes(["", "9,99", "1_0", "8.5", "-99", "\u0667"], decimalChar=",")
    cells, want = zip(*COMMAS[:n_last], strict=True)
    assert incomes(write, schema, cells) == [*want]


def test_stored_numbers_are_compared_as_declared():
    schema = with_incomes(["9,99", "8.5", "1_0", "\u0667"], decimalChar=",")
    frame = pd.DataFrame([ROWS[0]] * 5, columns=list(NAMES)).assign(income=[9.99, 8.5, 10, 7, 2])
    for income in (frame.income, frame.income.astype(object)):
        found = features_of(schema.encode(frame.assign(income=income)))
        assert without_fills(schema, found) == [None, 8.5, 10, 7, 2]


@pytest.mark.parametrize(
    ("word", "scalar"), [("log", math.log), ("log1p", math.log1p), ("sqrt", math.sqrt)]
)
def test_a_transform_looks_at_one_cell_alone_to_the_last_bit(word, scalar):
    apply = TRANSFORMS[word].apply
    rng = np.random.default_rng(5)
    values = np.concatenate([rng.uniform(1e-3, 3, 3000), np.exp(rng.uniform(-700, 700, 3000))])
    want = np.array([scalar(value) for value in values])
    assert [apply(values[i : i + 1])[0] for i in range(0, 6000, 40)] == want[::40].tolist()
    for start in range(9):
        for stride in (1, 2, 3, -1):
            assert np.array_equal(apply(values[start::stride]), want[start::stride])
            assert np.array_equal(apply(values[start:77][::stride]), want[start:77][::stride])
    assert np.isnan(apply(np.array([np.nan, 1.0]))[0])


@given(st.lists(st.tuples(*[CELLS] * 7), min_size=1, max_size=12), st.data())
@settings(max_examples=60)
def test_a_row_does_not_depend_on_the_others_to_the_last_bit(rows, data):
    schema = make_schema(**ROW_IS_UNIT)
    place = data.draw(st.integers(0, len(rows) - 1))
    frame = pd.DataFrame(rows, columns=list(NAMES), dtype=object)
    whole, alone = schema.encode(frame), schema.encode(frame.iloc[[place]])
    assert features_of(whole)[place].tobytes() == features_of(alone)[0].tobytes()
    assert target_of(whole)[place] == target_of(alone)[0]


def test_a_choice_of_columns(write):
    path = write(as_csv(ROWS))
    whole = read_features(path, SCHEMA)
    found = read_features(path, SCHEMA, features=["smoker=no", "age", "grade"])
    places = [SCHEMA.feature_names.index(n) for n in ("smoker=no", "age", "grade=2")]
    assert identical(found, whole[:, places])
    found = read_features(path, SCHEMA, features=["smoker=yes"])  # the reference, by its name
    assert found[:, 0].tolist() == [1, 0, 0, 0, 0, 0, 0, 1]
    with pytest.raises(TableProblem, match="no feature 'smoker=maybe'"):
        read_features(path, SCHEMA, features=["smoker=maybe"])


def wide_table(path, n_rows, form):
    """Write numbers with no surprise in them and return their schema."""
    names = [f"x{place}" for place in range(10)]
    cells = np.random.default_rng(2).random((n_rows, 10)).round(4)
    table = pa.table({name: cells[:, place] for place, name in enumerate(names)})
    pq.write_table(table, path) if form == "parquet" else pyarrow.csv.write_csv(table, path)
    return schema_of_fields(*(number_field(name, 0, 1) for name in names), target="x0")


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_rows_are_never_in_memory_twice(tmp_path, form):
    path = tmp_path / "data"
    schema = wide_table(path, 150_000, form)
    read_rows(path, schema)  # what libraries load once does not count
    tracemalloc.start()
    try:
        rows = read_rows(path, schema)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    needed = features_of(rows).nbytes + target_of(rows).nbytes
    assert features_of(rows).shape == (150_000, 9)
    assert peak < 1.2 * needed + 6e6


def test_a_reader_that_is_left_early_closes_its_file(tmp_path):
    schema = wide_table(tmp_path / "data", 50_000, "csv")
    batches = feature_batches(tmp_path / "data", schema)
    assert len(next(batches)[1])
    batches.close()  # warnings about files left open are errors here
    del batches
    gc.collect()


# --- forms of a file ------------------------------------------------------------------------------

FORMS = {
    "crlf": lambda: as_csv(ROWS, end="\r\n"),
    "cr": lambda: as_csv(ROWS[:7], end="\r"),
    "bom": lambda: b"\xef\xbb\xbf" + as_csv(ROWS),
    "no last line end": lambda: as_csv(ROWS).rstrip(b"\n"),
    "empty lines": lambda: as_csv(ROWS).replace(b"\n34,", b"\n\n34,") + b"\n\n",
    "gzip": lambda: gzip.compress(as_csv(ROWS)),
    "two gzips": lambda: gzip.compress(as_csv(ROWS)[:100]) + gzip.compress(as_csv(ROWS)[100:]),
    "tabs": lambda: as_csv(ROWS, delimiter="\t"),
    "all quoted names": lambda: as_csv(ROWS).replace(b"age,smoker", b'"age","smoker"', 1),
    "blanks around names": lambda: as_csv(ROWS).replace(b"age,smoker", b" age , smoker", 1),
}


@pytest.mark.parametrize("form", FORMS)
def test_files_of_the_real_world_are_read(write, form):
    rows = ROWS[:7] if form == "cr" else ROWS
    same(read_rows(write(FORMS[form](), "any.name"), SCHEMA), expected(rows))


def test_columns_may_stand_in_any_order_and_names_hold_line_ends(write):
    given_ = described()
    given_["fields"][0]["name"] = "age\nin years"
    schema = TableSchema.from_dict(given_)
    order = [6, 2, 0, 1, 3, 5, 4]
    names = ["age\nin years", *NAMES[1:]]
    data = as_csv([[row[i] for i in order] for row in ROWS], names=[names[i] for i in order])
    same(read_rows(write(data), schema), expected(ROWS))


def test_a_header_alone_is_a_table_of_no_rows(write):
    for data in (as_csv([]), as_csv([]).rstrip(b"\n")):
        rows = read_rows(write(data), SCHEMA)
        assert features_of(rows).shape == (0, 6)


def test_the_declared_delimiter_wins(write):
    given_ = described() | {"dialect": {"delimiter": ";", "quoteChar": "'"}}
    schema = TableSchema.from_dict(given_)
    data = as_csv(ROWS, delimiter=";").replace(b'"', b"'")
    same(read_rows(write(data), schema), expected(ROWS))


def test_features_alone(write):
    full = read_features(write(as_csv(ROWS)), SCHEMA)
    assert full.shape == (8, 6)  # every row, also those beyond a unit's second
    short = as_csv([row[:5] for row in ROWS], names=NAMES[:5])
    assert identical(read_features(write(short), SCHEMA), full)
    with pytest.raises(TableProblem, match="it lacks 'age'"):
        read_features(write(as_csv([row[1:] for row in ROWS], names=NAMES[1:])), SCHEMA)


def test_one_column_keeps_its_empty_lines(write):
    schema = schema_of_fields(number_field("a", 0, 2), {"name": "y", "type": "boolean"})
    found = read_features(write(b"a\n0\n\n2\n"), schema)
    np.testing.assert_array_equal(found, [[0], [np.nan], [2]])


# --- Parquet and frames ---------------------------------------------------------------------------

TYPED = {
    "age": [34, None, 250, 5],
    "smoker": ["yes", None, "never", "once"],
    "income": [1200.5, float("nan"), 0.01, float("inf")],
    "grade": [1, 2, 3, None],
    "member": [True, False, None, True],
    "cost": [10.0, 20.25, -5.0, -99.0],
    "who": ["a", "b", "c", None],
}
TEXT = [
    ("34", "yes", "1200.5", "1", "true", "10", "a"),
    ("", "", "", "2", "false", "20.25", "b"),
    ("250", "never", "0.01", "3", "", "-5", "c"),
    ("5", "once", "", "", "true", "", ""),
]


def stored_as(**types):
    plain = pa.table(TYPED)
    kinds = [(one.name, types.get(one.name, one.type)) for one in plain.schema]
    return plain.cast(pa.schema(kinds))


STORED = {
    "plain": {},
    "dictionary": {"smoker": pa.dictionary(pa.int8(), pa.string())},
    "small": {"age": pa.uint8(), "grade": pa.float32(), "cost": pa.float32()},
    "large text": {"smoker": pa.large_string(), "who": pa.large_string()},
    "numbers as text": {"age": pa.string(), "cost": pa.string(), "grade": pa.string()},
    "decimals": {"cost": pa.decimal128(12, 3)},
    "truths as numbers": {"member": pa.int8()},
}


@pytest.mark.parametrize("name", STORED)
def test_parquet_gives_what_the_text_gives(tmp_path, name):
    table = stored_as(**STORED[name])
    pq.write_table(table, tmp_path / "data.bin", row_group_size=3)
    same(read_rows(tmp_path / "data.bin", SCHEMA), expected(TEXT))
    same(SCHEMA.encode(table), expected(TEXT))
    assert read_features(tmp_path / "data.bin", SCHEMA).shape == (4, 6)


def test_frames_give_what_files_give():
    table = pa.table(TYPED)
    frame = pd.DataFrame(TYPED)
    for one in (
        frame,
        frame.convert_dtypes(),
        frame.astype({"smoker": "category", "member": object}),
        frame.iloc[[3, 2, 1, 0]].iloc[::-1],
        pl.DataFrame(TYPED),
        pl.DataFrame(TYPED).with_columns(pl.col("smoker").cast(pl.Categorical)),
        table,
        table.to_batches()[0],
    ):
        same(SCHEMA.encode(one), expected(TEXT))


def test_features_of_a_frame_need_no_target(write):
    frame = pd.DataFrame(ROWS, columns=list(NAMES))
    want = read_features(write(as_csv(ROWS)), SCHEMA)
    for one in (frame, frame[list(NAMES[:5])]):
        assert identical(SCHEMA.encode_features(one), want)
    with pytest.raises(TableProblem, match="lacks 'age'"):
        SCHEMA.encode_features(frame.drop(columns="age"))


NO_FRAMES = [(one, "pandas or polars") for one in (None, 5, "text", [[1, 2]], np.zeros((2, 2)))]
NO_FRAMES += [(pd.DataFrame(TYPED).assign(extra=1), "column 8")]
NO_FRAMES += [(pd.DataFrame(TYPED).drop(columns="who"), "lacks 'who'")]


@pytest.mark.parametrize(("frame", "told"), NO_FRAMES)
def test_what_is_no_frame_of_the_schema_is_refused(frame, told):
    with pytest.raises(TableProblem, match=told):
        SCHEMA.encode(frame)


# --- refusals -------------------------------------------------------------------------------------

GOOD = as_csv(ROWS[:3])
REFUSED = {
    "row too long": (GOOD + b"1,2,3,4,5,6,7,8\n", r"line 5 of \S+ has 8 cells, where .* has 7"),
    "row too short": (
        GOOD.replace(b"\nNA,", b"\nNA\n"),
        r"line 3 of \S+ has 1 cell, where .* has 7",
    ),
    "short after line ends": (GOOD + b'5,"a\nb",3,1,1,7,x\n1,2\n', r"line 7 of \S+ has 2 cells"),
    "open quote at the end": (GOOD + b'5,"yes,3,1,1,7,x\n', r"line 5 of \S+ a quote is opened"),
    "open quote in the middle": (
        as_csv(ROWS[:1]) + b'5,yes,3,1,1,7,"x\n' + as_csv(ROWS[1:3])[len(as_csv([])) :],
        r"line 3 of \S+ a quote is opened in this row and never closed",
    ),
    "not utf-8": (
        GOOD + "5,\xff,3,1,1,7,x\n".encode("latin-1"),
        r'line 5 of \S+ is not text in UTF-8; put encoding = "cp1252" into the schema',
    ),
    "utf-16": (GOOD.decode().encode("utf-16"), "not a table"),
    "empty": (b"", "holds no column names"),
    "blank first line": (b"\n" + GOOD, "holds no column names"),
    "nothing but delimiters": (b",,,\n" + GOOD, "holds no column names"),
    "zeros in the header": (GOOD.replace(b"age", b"a\0ge", 1), "first line is not text"),
    "zip": (b"PK\x03\x04\x14\0\0\0\x08\0\xff\xfe" * 30, "not a table"),
    "damaged parquet": (b"PAR1" + b"x" * 100, "damaged Parquet"),
    "cut gzip": (gzip.compress(as_csv(ROWS * 50), mtime=0)[:-20], "damaged|cut short"),
    "empty name": (GOOD.replace(b"age,", b",", 1), "column 1 without a name"),
    "same name": (GOOD.replace(b"age,", b"cost,", 1), "occur twice, in columns 1 and 6"),
    "column missing": (as_csv([row[1:] for row in ROWS], names=NAMES[1:]), "lacks 'age'"),
    "column extra": (
        as_csv([(*row, "1") for row in ROWS], names=(*NAMES, "more")),
        "does not declare column 8",
    ),
    "no header": (GOOD[len(as_csv([])) :], r"Does its first line hold the names\?$"),
    "open quote in the header": (GOOD.replace(b"age", b'"age', 1), "first line .* quote"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_table_is_refused_in_one_sentence(write, name):
    data, told = REFUSED[name]
    with pytest.raises(TableProblem, match=told) as caught:
        read_rows(write(data), SCHEMA)
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_a_row_of_any_length_is_told_not_swallowed(write, monkeypatch):
    monkeypatch.setattr(csv_files, "BYTES_PER_BLOCK", 4096)
    monkeypatch.setattr(csv_files, "BYTES_PER_CELL", 1)
    open_quote = GOOD + b'5,"yes,3,1,1,7,x\n' + as_csv(ROWS[:3] * 100)
    with pytest.raises(TableProblem, match=r"line 5 of \S+ a quote is opened"):
        read_rows(write(open_quote), SCHEMA)
    with pytest.raises(TableProblem, match=r"line 5 of \S+ is too long"):
        read_rows(write(GOOD + b'5,"' + b"y" * 200_000 + b'",3,1,1,7,x\n'), SCHEMA)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(errno.EIO, "Input/output error"), r"cannot be read: input/output error\.$"),
        (RuntimeError("cell 34"), r"cannot be read as a table; RuntimeError was raised\.$"),
    ],
)
def test_what_stops_the_reader_is_told_without_its_words(write, monkeypatch, error, told):
    def broken(*_given):
        raise error

    monkeypatch.setattr(csv_files.TextBlocks, "_open", broken)
    with pytest.raises(TableProblem, match=told):
        read_rows(write(GOOD), SCHEMA)


def test_a_parquet_file_with_damaged_pages_is_refused(write, tmp_path):
    pq.write_table(pa.table(TYPED), tmp_path / "whole.parquet")
    image = (tmp_path / "whole.parquet").read_bytes()
    with pytest.raises(TableProblem, match="damaged Parquet file, or one of an unknown kind"):
        read_rows(write(image[:4] + b"\xff" * 40 + image[44:]), SCHEMA)


def test_a_reason_that_cannot_be_found_is_not_told():
    def stumble(_error=None):
        raise ValueError("cell 34")

    with pytest.raises(TableProblem, match=r"^the table cannot be read; ValueError was raised\.$"):
        quietly(stumble, stumble)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(TableProblem, match="cannot be read: no such file"):
        read_rows(tmp_path / "none.csv", SCHEMA)
    with pytest.raises(TableProblem, match="is not a file"):
        read_rows(tmp_path, SCHEMA)


def test_an_unfilled_schema_is_refused_before_the_file_is_opened(tmp_path):
    schema = make_schema(target=None)
    for read in (read_rows, read_features):
        with pytest.raises(SchemaProblem, match="target is not named"):
            read(tmp_path / "none.csv", schema)
