"""A secret planted in a table is looked for in all that reading it says, raises, logs or writes."""

from __future__ import annotations

import datetime
import decimal
import gzip
import json
import traceback

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from listening import DAY, NUMBER, OBJECTS, WORD, Hostile, assert_untold, betray, listening

from dpscreen.tables.declaration import DataError
from dpscreen.tables.reading import read_features, read_rows
from dpscreen.tables.schema import TableSchema, load_schema
from tools.command import dpscreen

NAMES = ("age", "smoker", "member", "grade", "cost", "who")
DESCRIBED = {
    "fields": [
        {"name": "age", "type": "number", "constraints": {"minimum": 0, "maximum": 100}},
        {"name": "smoker", "type": "string", "constraints": {"enum": ["yes", "no"]}},
        {"name": "member", "type": "boolean"},
        {"name": "grade", "type": "integer", "constraints": {"enum": [1, 2]}},
        {"name": "cost", "type": "number", "constraints": {"minimum": 0, "maximum": 9}},
        {"name": "who", "type": "string"},
    ],
    "dpscreen": {"target": "cost", "unit": "who", "rows_per_unit": 2},
}
SCHEMA = TableSchema.from_dict(DESCRIBED)
HEADER = ",".join(NAMES) + "\n"
PLAIN = ["34", "yes", "true", "1", "5", "w"]
LINE = ",".join(PLAIN) + "\n"


# --- listening ------------------------------------------------------------------------------------


def hearing():
    """Hear all that reading says; a refusal of the data ends here, any other error does not."""
    return listening(ending=DataError, shown=traceback.format_exception)


def read_every_way(path):
    """Read a table in each of the two ways; return what was told and how many came through."""
    told, n_read = [], 0
    for read in (read_rows, read_features):
        with hearing() as heard:
            found = read(path, SCHEMA)
            heard.append(repr(found) if not isinstance(found, np.ndarray) else "an array")
            n_read += 1
        told += heard
    return told, n_read


@pytest.fixture
def search(tmp_path, capfd):
    """Return a function that reads a file's bytes and searches all that comes of it."""

    def run(data: bytes):
        path = tmp_path / "data.csv"
        path.write_bytes(data)
        told, n_read = read_every_way(path)
        assert_untold([*told, *capfd.readouterr()])
        assert [one.name for one in tmp_path.iterdir()] == ["data.csv"]
        return n_read

    return run


# --- text -----------------------------------------------------------------------------------------

CELLS = {
    "word": WORD,
    "number": str(NUMBER),
    "long number": "8675309" * 60,
    "quoted": f'"{WORD}, with a comma"',
    "quoted line end": f'"{WORD}\n{NUMBER}"',
    "quotes inside": f'"{WORD} ""{NUMBER}"""',
    "almost a number": f"{NUMBER}x",
    "blanks": f"  {WORD}  ",
    "date": str(DAY),
    "other letters": f"Zebedee{chr(0x1F996)}",
    "a null byte": "Zebedee\0",
}


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("column", NAMES)
def test_no_cell_stops_the_reading_or_is_told(search, column, name):
    row = list(PLAIN)
    row[NAMES.index(column)] = CELLS[name]
    assert search((HEADER + LINE + ",".join(row) + "\n" + LINE).encode()) == 2


SECRET_LINE = f"{NUMBER},{WORD},{WORD},{NUMBER},{NUMBER},{WORD}\n"
BROKEN = {
    "too many cells": HEADER + LINE + f"{WORD}," + SECRET_LINE,
    "too few cells": HEADER + LINE + f"{WORD},{NUMBER}\n",
    "open quote": HEADER + f'{NUMBER},"{WORD},1,1,1,1\n' + SECRET_LINE,
    "open quote at the end": HEADER + SECRET_LINE + f'1,1,1,1,1,"{WORD}',
    "one long row": HEADER + f'{WORD},"' + f"{WORD}\n" * 200_000,
    "not utf-8": (HEADER + SECRET_LINE).encode() + b"1,Zebedee\xff,1,1,1,1\n",
    "no header": SECRET_LINE * 3,
    "no header, too many cells": f"{WORD},{NUMBER}," + SECRET_LINE,
    "same cells as header": f"{WORD},{WORD},a,b,c,d\n" + LINE,
    "empty cell as header": f"{WORD},,{NUMBER},b,c,d\n" + LINE,
    "open quote in the first line": f'"{WORD},{NUMBER}\n' + LINE,
    "one word": WORD,
    "utf-16": (HEADER + SECRET_LINE).encode("utf-16"),
    "cut gzip": gzip.compress((HEADER + SECRET_LINE * 500).encode(), mtime=0)[:-9],
    "gzip with a bad row": gzip.compress((HEADER + f"{WORD}\n").encode(), mtime=0),
    "gzip of nonsense": b"\x1f\x8b" + WORD.encode(),
    "parquet of nonsense": b"PAR1" + WORD.encode() * 9 + b"PAR1",
    "null bytes": f"{WORD}\0{NUMBER}\n".encode() * 3,
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_table_is_refused_and_not_told(search, name):
    data = BROKEN[name]
    assert search(data if isinstance(data, bytes) else data.encode()) == 0


# --- Parquet and frames ---------------------------------------------------------------------------

VALUES = {
    "text": pa.array([WORD, WORD]),
    "dictionary": pa.array([WORD, WORD]).dictionary_encode(),
    "numbers": pa.array([NUMBER, None]),
    "whole numbers": pa.array([8675309, 8675309]),
    "decimals": pa.array([decimal.Decimal("8675309.25")] * 2),
    "truths": pa.array([True, None]),
    "nothing": pa.nulls(2),
    "bytes": pa.array([WORD.encode()] * 2),
    "days": pa.array([DAY, DAY]),
    "durations": pa.array([datetime.timedelta(seconds=8675309)] * 2),
    "lists": pa.array([[NUMBER], [NUMBER]]),
    "structs": pa.array([{WORD: NUMBER}] * 2),
    "text that is no utf-8": pa.Array.from_buffers(
        pa.string(),
        2,
        [None, pa.array([0, 8, 16], pa.int32()).buffers()[1], pa.py_buffer(b"Zebedee\xff" * 2)],
    ),
}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("column", ["age", "smoker", "member", "cost", "who"])
def test_a_column_of_any_kind_is_never_told(tmp_path, capfd, column, name):
    columns = {one: pa.array([cell] * 2) for one, cell in zip(NAMES, PLAIN, strict=True)}
    table = pa.table(columns | {column: VALUES[name]})
    pq.write_table(table, tmp_path / "data.parquet", store_schema=name != "structs")
    told, _ = read_every_way(tmp_path / "data.parquet")
    with hearing() as heard:
        SCHEMA.encode(table)
    assert_untold([*told, *heard, *capfd.readouterr()])


class Telling(str):
    """Text that says more than it holds."""

    __slots__ = ()

    def __str__(self):
        raise RuntimeError(WORD)


class HostileFrame:
    columns = NAMES
    iloc = None
    __getitem__ = betray


CELLS_OF_FRAMES = OBJECTS | {"telling": Telling("yes")}


@pytest.mark.parametrize("name", CELLS_OF_FRAMES)
@pytest.mark.parametrize("column", NAMES)
def test_an_object_in_a_frame_is_missing_and_never_told(capfd, column, name):
    frame = pd.DataFrame([PLAIN] * 3, columns=list(NAMES), dtype=object)
    frame.iat[1, NAMES.index(column)] = CELLS_OF_FRAMES[name]
    with hearing() as told:
        told.append(repr(SCHEMA.encode(frame)))
        told.append("read")
    assert "read" in told
    assert_untold([*told, *capfd.readouterr()])


FRAMES = {
    "hostile": HostileFrame,
    "names": lambda: pd.DataFrame([PLAIN], columns=[*NAMES[:-1], WORD]),
    "other names": lambda: pd.DataFrame([PLAIN], columns=[*NAMES[:-1], (WORD, NUMBER)]),
    "index": lambda: pd.DataFrame([PLAIN], columns=list(NAMES), index=[WORD]),
    "dates": lambda: pd.DataFrame([PLAIN], columns=list(NAMES)).assign(age=DAY),
    "polars objects": lambda: pl.DataFrame(
        {name: [cell] for name, cell in zip(NAMES, PLAIN, strict=True)}
    ).with_columns(age=pl.Series([Hostile()], dtype=pl.Object)),
    "polars dates": lambda: pl.DataFrame(
        {name: [cell] for name, cell in zip(NAMES, PLAIN, strict=True)} | {"age": [DAY]}
    ),
    "mapping": lambda: {WORD: [NUMBER]},
    "ragged": lambda: {name: [WORD] * place for place, name in enumerate(NAMES)},
    "text": lambda: WORD,
}


@pytest.mark.parametrize("name", FRAMES)
def test_a_frame_is_never_told(capfd, name):
    with hearing() as told:
        SCHEMA.encode(FRAMES[name]())
    assert_untold([*told, *capfd.readouterr()])


# --- schemas and commands -------------------------------------------------------------------------


@pytest.mark.parametrize("data", [HEADER + SECRET_LINE, f'{{"a": "{WORD}"', f'["{WORD}"]'])
def test_a_table_given_as_a_schema_is_never_told(tmp_path, data):
    (tmp_path / "schema.json").write_text(data)
    with hearing() as told:
        load_schema(tmp_path / "schema.json")
    assert told
    assert_untold(told)


COMMANDS = [
    ("schema", "new", "data.csv", "-o", "out.json"),
    ("schema", "check", "schema.json", "--data", "data.csv"),
    ("schema", "check", "data.csv", "--json"),
    ("simulate", "--schema", "data.csv", "-o", "out.csv"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_tells_or_writes_a_cell(tmp_path, command):
    (tmp_path / "schema.json").write_text(json.dumps(DESCRIBED))
    (tmp_path / "data.csv").write_text(SECRET_LINE * 2)  # without a header
    done = dpscreen(*command, cwd=tmp_path)
    assert done.returncode == 1
    assert_untold([done.stdout, done.stderr])
    assert sorted(one.name for one in tmp_path.iterdir()) == ["data.csv", "schema.json"]


def test_a_new_schema_knows_no_cell(tmp_path):
    (tmp_path / "data.csv").write_text(HEADER + SECRET_LINE * 3)
    done = dpscreen("schema", "new", "data.csv", "-o", "out.json", cwd=tmp_path)
    assert done.returncode == 0
    assert_untold([done.stdout, done.stderr, (tmp_path / "out.json").read_text()])


# --- damage ---------------------------------------------------------------------------------------

WHOLE = (HEADER + (SECRET_LINE + LINE) * 20).encode()
IMAGES = {"text": WHOLE, "gzip": gzip.compress(WHOLE, mtime=0)}


@pytest.mark.parametrize("form", IMAGES)
@given(st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_file_is_read_or_refused_and_never_told(tmp_path, capfd, form, data):
    image = IMAGES[form]
    first, last = sorted(data.draw(st.tuples(*[st.integers(0, len(image))] * 2)))
    piece = data.draw(st.binary(max_size=8) | st.sampled_from([b'"', b"\n", b",", b'"\n"', b"\r"]))
    path = tmp_path / "data.csv"
    path.write_bytes(image[:first] + piece + image[last:])
    told, _ = read_every_way(path)
    assert_untold([*told, *capfd.readouterr()])
