import gzip
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from dpscreen.paper.data.store import (
    CorruptDataset,
    Frame,
    _exact_decimals,
    content_hash,
    parse_numbers,
    read_csv,
    write_csv,
)

NUMBERS = st.floats(allow_infinity=False)
VALUES = arrays(np.float64, array_shapes(min_dims=2, max_dims=2, min_side=2), elements=NUMBERS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("csv")


@settings(max_examples=60)
@given(values=VALUES, suffix=st.sampled_from([".csv", ".csv.gz"]))
def test_what_is_written_is_read_back_to_the_last_bit(folder, values, suffix):
    frame = Frame(tuple(f'c "{j}", x' for j in range(values.shape[1])), values)
    path = folder / f"frame{suffix}"
    write_csv(frame, path)
    assert content_hash(read_csv(path)) == content_hash(frame)
    assert [file.name for file in folder.iterdir() if file.name.startswith(".")] == []


def test_equal_content_gives_equal_bytes(folder, tiny_frame):
    write_csv(tiny_frame, folder / "one.csv.gz")
    write_csv(tiny_frame, folder / "two.csv.gz")
    assert (folder / "one.csv.gz").read_bytes() == (folder / "two.csv.gz").read_bytes()


def test_how_a_number_is_printed_does_not_matter(folder):
    (folder / "short.csv").write_text("a,b\n1,.5\n-0,3e2\n")
    (folder / "long.csv").write_text("a,b\r\n1.000,0.50\r\n0.0,300\r\n")
    assert content_hash(read_csv(folder / "short.csv")) == content_hash(
        read_csv(folder / "long.csv")
    )


@pytest.mark.parametrize(
    "text",
    ["", "a,b\n1,x\n", "a,b\n1,2,3\n", "a,b\n1,NA\n", "a,a\n1,2\n", 'a,b\n"1,2\n'],
    ids=["empty", "word", "long row", "other NA", "same name", "open quote"],
)
def test_a_damaged_file_is_named(folder, text):
    path = folder / "damaged.csv"
    path.write_text(text)
    with pytest.raises(CorruptDataset, match=r"damaged\.csv is damaged"):
        read_csv(path)


def test_damaged_compression_is_named(folder):
    whole = gzip.compress(b"a,b\n" + b"1,2\n" * 5000)
    for number, bad in enumerate([whole[:-12], whole[:20], b"not gzip", whole[:-30] + b"x" * 30]):
        path = folder / f"damaged{number}.csv.gz"
        path.write_bytes(bad)
        with pytest.raises(CorruptDataset, match=path.name):
            read_csv(path)


def test_columns_can_be_left_out():
    text = io.BytesIO(b"Ann,1,?\nBob,?,4\n")
    frame = parse_numbers(text, ("who", "a", "b"), keep=("a", "b"), missing="?")
    np.testing.assert_array_equal(frame.values, [[1.0, np.nan], [np.nan, 4.0]])


def test_older_pandas_is_asked_for_exact_decimals():
    assert _exact_decimals("2.2.3") == {"float_precision": "round_trip"}
    assert _exact_decimals("3.1.0") == {}
