"""Tables as offices have them: other encodings, decimal commas, dates, and Excel workbooks."""

from __future__ import annotations

import codecs
import datetime
import gzip
import json
import subprocess
import sys
import warnings
from encodings import aliases

import numpy as np
import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpscreen.tables import csv
from dpscreen.tables.csv import read_header
from dpscreen.tables.declaration import Dialect, TableProblem, is_encoding
from dpscreen.tables.reading import read_features, read_rows
from dpscreen.tables.schema import load_schema, new_schema, toml_schema

COLUMNS = {
    "größe": {"bounds": [0, 5000], "decimal": ",", "thousands": "."},
    "Straße": {"categories": ["Nord", "Süd"]},
    "am": {
        "bounds": [datetime.date(2020, 1, 1), datetime.date(2020, 12, 31)],
        "format": "%d.%m.%Y",
        "parts": ["days", "year"],
    },
    "y": {"bounds": [0, 10], "fill": 5},
}
ROWS = [
    ("1.234,5", "Süd", "31.01.2020", "1"),
    ("12,5", "Nord", "29.2.2020", "2,5"),
    ("x", "?", "", ""),
]
WANT = [[1234.5, 1, 30, 2020], [12.5, 0, 59, 2020], [np.nan, 0, np.nan, np.nan]]


def schema(**more):
    return toml_schema({"target": "y", "columns": COLUMNS} | more)


def text(rows=ROWS, names=tuple(COLUMNS), sign=";", end="\r\n"):
    return "".join(sign.join(row) + end for row in (names, *rows))


# --- encodings ------------------------------------------------------------------------------------


ONES = [bytes([one]) for one in range(256) if one not in b"\r\n"]
STRAYS = [*ONES, *(b"\x1b" + one for one in ONES), *(b"\x81\x30" + one for one in ONES)]
STRAYS += [b"~{", b"\x1b$B", b"\x1b$)C\x0e", b"\\N{", b"+AG"]
KNOWN = {*aliases.aliases.values(), "unicode_escape", "raw_unicode_escape", "idna", "punycode"}
BY_BYTES = sorted(one for one in KNOWN if is_encoding(one) and not one.startswith("utf_"))


@pytest.mark.parametrize("encoding", ["utf_8", "utf_8_sig", *BY_BYTES])
def test_no_row_takes_those_after_it_away_by_a_stray_sign(encoding):
    """Half a character, or what begins to switch, ends with its line in all that can be declared.

    What has units of two bytes or four keeps to them.
    """
    rest = "\n3,4\n5,6\n"
    for stray in STRAYS:
        decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
        lines = b"".join(("1,2".encode(encoding), stray, "\n3,4\n5,6\n".encode(encoding)))
        assert decoder.decode(lines, final=True).replace("\ufeff", "").endswith(rest), stray


@pytest.mark.parametrize("encoding", ["iso2022_jp", "ISO-2022-KR", "hz", "utf-7", "unicode_escape"])
def test_an_encoding_that_switches_is_refused(encoding):
    assert any("encoding must be" in one for one in schema(encoding=encoding).problems())


@pytest.mark.parametrize(
    "encoding", ["latin-1", "cp1252", "utf-16", "utf-16-le", "utf-8", "mac-roman"]
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("packed", [False, True])
def test_text_is_read_in_the_declared_encoding(tmp_path, encoding, end, packed):
    data = text(end=end).encode(encoding)
    path = tmp_path / "data.csv"
    path.write_bytes(gzip.compress(data) if packed else data)
    declared = schema(encoding=encoding)
    assert declared.problems() == []
    np.testing.assert_array_equal(read_rows(path, declared).X, WANT)


def test_blocks_of_a_long_file_are_put_together(tmp_path, monkeypatch):
    monkeypatch.setattr(csv, "BYTES_PER_BLOCK", 1000)
    path = tmp_path / "data.csv"
    path.write_bytes(text(rows=ROWS * 500).encode("utf-16"))
    np.testing.assert_array_equal(read_rows(path, schema(encoding="utf-16")).X, WANT * 500)


def test_what_an_encoding_cannot_tell_is_missing_and_harms_no_other(tmp_path):
    path = tmp_path / "data.csv"
    lines = text().encode("cp1252").replace(b"S\xfcd", b"S\x81d")
    path.write_bytes(lines)
    found = read_rows(path, schema(encoding="cp1252")).X
    np.testing.assert_array_equal(found[:, [0, 2, 3]], np.array(WANT)[:, [0, 2, 3]])
    assert found[0, 1] == 0


def test_an_encoding_that_is_not_declared_is_told(tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes(text().encode("latin-1"))
    with pytest.raises(TableProblem, match='says so, as in encoding = "cp1252"'):
        new_schema(path)
    assert schema(encoding="klingon").problems()[0].startswith("encoding must be the name of")
    given = {"dialect": Dialect(encoding="latin-1")}
    made = json.loads(new_schema(path, as_json=True, **given))
    assert (made["encoding"], made["dialect"]) == ("latin-1", {"delimiter": ";"})
    assert 'encoding = "latin-1"' in new_schema(path, **given)


# --- days in every kind of table ------------------------------------------------------------------

DAYS = [datetime.date(2020, 1, 31), datetime.date(2020, 2, 29), None]
TIMES = [one and datetime.datetime.combine(one, datetime.time(23, 59)) for one in DAYS]


@pytest.mark.parametrize("days", [DAYS, TIMES], ids=["days", "times"])
def test_days_mean_the_same_however_they_are_stored(tmp_path, days):
    others = {"größe": [1234.5, 12.5, None], "Straße": ["Süd", "Nord", "?"], "y": [1, 2, 3]}
    columns = others | {"am": days}
    table = pa.table(columns)
    pq.write_table(table, tmp_path / "data.parquet")
    frames = (
        *(table, pl.DataFrame(columns), pd.DataFrame(columns), pd.DataFrame(columns, dtype=object)),
        pd.DataFrame(columns).astype({"am": "datetime64[s]"}),
        table.to_pandas(types_mapper=pd.ArrowDtype),
    )
    for frame in frames:
        np.testing.assert_array_equal(schema().encode(frame).X, WANT)
    np.testing.assert_array_equal(read_rows(tmp_path / "data.parquet", schema()).X, WANT)
    with pytest.raises(TableProblem, match="column 'größe' is stored neither"):
        schema().encode(pa.table(columns | {"größe": days}))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"format": "%d.%m"}, "format must contain %Y (four digits), %m and %d"),
        ({"format": 7}, "format must contain"),
        ({"parts": []}, "parts must be a list"),
        ({"parts": ["wekday"]}, "there is no part of a day 'wekday'; did you mean 'weekday'"),
        ({"since": "yesterday"}, "since must be a day"),
        ({"bounds": [datetime.date(2021, 1, 1), datetime.date(2020, 1, 1)]}, "must be before"),
        ({"type": "date", "bounds": [1, 2]}, "the lower of the bounds must be a day"),
        ({"type": "date", "bounds": ["2020-02-30", "2021-01-01"]}, "must be a day"),
        ({"fill": "soon"}, "fill of column 'am' must be a day"),
        ({"transform": "log"}, "only numbers with bounds have one"),
    ],
)
def test_problems_of_days_are_told(settings, told):
    columns = COLUMNS | {"am": COLUMNS["am"] | settings}
    problems = toml_schema({"target": "y", "columns": columns}).problems()
    assert any(told in one for one in problems)
    (found,) = toml_schema({"target": "am", "columns": COLUMNS}).problems()
    assert (found.code, found.fields) == ("column.not-a-target", {"column": "am"})


def test_a_missing_day_is_filled_by_the_declared_one():
    columns = COLUMNS | {"am": COLUMNS["am"] | {"fill": datetime.date(2020, 3, 1)}}
    declared = toml_schema({"target": "y", "columns": columns, "missing": ["", "31.01.2020"]})
    frame = pd.DataFrame(dict(zip(COLUMNS, zip(*ROWS, strict=True), strict=True)))
    assert declared.problems() == []
    assert declared.encode(frame).X[:, 2].tolist() == [60, 59, 60]


def test_days_beyond_their_bounds_count_as_the_bounds():
    rows = [("1", "Süd", day, "1") for day in ("31.12.1066", "01.06.2020", "01.01.9999")]
    frame = pd.DataFrame(dict(zip(COLUMNS, zip(*rows, strict=True), strict=True)))
    assert schema().encode(frame).X[:, 2].tolist() == [0, 152, 365]


@pytest.mark.parametrize("day", ["10000-01-01", "12345-06-07", "9999999-01-01", "-0500-01-01"])
def test_a_day_beyond_the_year_9999_is_missing_however_its_column_is_stored(day, tmp_path):
    """Or one row more, of which a column is made one of objects, would change how others are read.

    pandas keeps such days, but as an object such a day has the base of another one.
    """
    days = pd.Series(np.array(["2020-01-31", day], dtype="datetime64[s]"))
    others = {name: ["1"] * 2 for name in COLUMNS if name != "am"}
    stored = (days, days.astype("timestamp[s][pyarrow]"), days.dt.tz_localize("UTC"))
    mixed = (days.astype(object), days.astype("category"), pd.Series([*days.array, "x"]))
    for column in (*stored, *mixed):
        frame = pd.DataFrame({"am": column[:2], **others})
        np.testing.assert_array_equal(schema().encode(frame).X[:, 2], [30, np.nan])
    table = pa.table({"am": pa.array(days.to_numpy()), **others})
    pq.write_table(table, tmp_path / "data.parquet")
    found = read_rows(tmp_path / "data.parquet", schema()).X[:, 2]
    np.testing.assert_array_equal(found, [30, np.nan])


# --- Excel ----------------------------------------------------------------------------------------


@pytest.fixture
def workbook(tmp_path):
    book = openpyxl.Workbook()
    notes = book.active
    notes.title = "Notes"
    notes.append(["nothing"])
    sheet = book.create_sheet("2023")
    sheet.append([*COLUMNS, None, None])
    sheet.append([1234.5, "Süd", DAYS[0], 1, None, "right of the table"])
    sheet.append(["12,5", " Nord ", "29.02.2020", "2,5"])
    sheet.append([])
    sheet.append(["x", "?", None, None])
    sheet["A9"].number_format = "0.00"  # formatted, and empty
    book.save(tmp_path / "book.xlsx")
    return tmp_path / "book.xlsx"


@pytest.mark.parametrize("sheet", ["2023", 2])
def test_a_sheet_means_what_a_csv_file_means(workbook, sheet):
    declared = schema(sheet=sheet)
    rows = read_rows(workbook, declared)
    np.testing.assert_array_equal(rows.X, WANT)
    assert rows.y.tolist() == [1, 5, 5]  # 2,5 is no number there
    np.testing.assert_array_equal(read_features(workbook, declared), WANT)


def test_sheets_and_names_of_a_workbook_are_told(workbook, tmp_path):
    with pytest.raises(
        TableProblem, match="has no sheet '2024'; its sheets are 'Notes' and '2023'"
    ):
        read_rows(workbook, schema(sheet="2024"))
    with pytest.raises(TableProblem, match="does not fit the schema"):
        read_rows(workbook, schema())
    (tmp_path / "broken.xlsx").write_bytes(workbook.read_bytes()[:300])
    with pytest.raises(TableProblem, match="damaged Excel workbook") as told:
        read_rows(tmp_path / "broken.xlsx", schema())
    assert told.value.__context__ is None


def test_a_day_that_excel_cannot_have_is_missing_and_nothing_quotes_it(workbook):
    """openpyxl warns of such a cell, with its number; of the second row while it reads the first.

    Who reads names, as the studio's server does, must not hear of a row either.
    """
    book = openpyxl.load_workbook(workbook)
    for place in ("C2", "C3", "A5"):
        book["2023"][place] = 98765432.5
        book["2023"][place].number_format = "yyyy-mm-dd"
    book.save(workbook)
    declared = schema(sheet="2023")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert read_header(workbook, declared).names == tuple(COLUMNS)
        rows = read_rows(workbook, declared)
    assert told == []
    wanted = [[*one[:2], *WANT[2][2:]] for one in WANT]  # as a day that is missing
    np.testing.assert_array_equal(rows.X, wanted)


def test_without_openpyxl_it_is_said_what_to_install(workbook):
    code = (
        "import sys; sys.modules['openpyxl'] = None\n"
        "from dpscreen.tables.schema import new_schema, TableProblem\n"
        f"try: new_schema({str(workbook)!r})\n"
        "except TableProblem as told: print(told)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'dpscreen[excel]'" in done.stdout


def test_a_schema_of_a_workbook_can_be_made(workbook):
    text = new_schema(workbook, target="y", dialect=Dialect(sheet="2023"))
    assert 'sheet = "2023"' in text
    assert "Süd" not in text
    (workbook.parent / "schema.toml").write_text(text, encoding="utf-8")
    assert load_schema(workbook.parent / "schema.toml").dialect.sheet == "2023"
