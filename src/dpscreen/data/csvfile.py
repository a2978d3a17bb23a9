"""Frames on disk: comma-separated text, optionally gzip-compressed."""

import csv
import gzip
import io
import warnings
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from dpscreen._core.files import replacing
from dpscreen.data.content import Frame
from dpscreen.data.errors import CorruptDataset, first_line

_UNREADABLE = (OSError, EOFError, ValueError, zlib.error)
_ROWS_PER_BLOCK = 2048


def read_csv(path: Path) -> Frame:
    """The numbers in a file with a header row; an empty field is a missing value."""
    try:
        with _opened(path) as stream:
            columns = _header(stream.readline())
            return parse_numbers(stream, columns)
    except _UNREADABLE as reason:
        raise CorruptDataset(
            f"{path} is damaged or is not a table of numbers: {first_line(reason)}"
        ) from reason


def parse_numbers(
    stream: io.BufferedIOBase,
    columns: Sequence[str],
    *,
    keep: Sequence[str] | None = None,
    missing: str = "",
) -> Frame:
    """Header-less comma-separated text as a frame; raises ValueError where it is not numeric."""
    import pandas as pd

    kept = list(columns if keep is None else keep)
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # rows that are too long
        try:
            table = pd.read_csv(
                stream,
                header=None,
                names=list(columns),
                usecols=None if keep is None else kept,
                index_col=False,
                dtype=dict.fromkeys(kept, np.float64),
                keep_default_na=False,
                na_values=[missing],
                **_exact_decimals(pd.__version__),
            )
        except pd.errors.ParserWarning as reason:
            raise ValueError("a row has more fields than there are columns") from reason
    return Frame(tuple(kept), table[kept].to_numpy(dtype=np.float64))


def write_csv(frame: Frame, path: Path) -> None:
    """Write the frame so that a reader sees the whole file or none of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as stream:
        if path.suffix != ".gz":
            _write(frame, stream)
            return
        # No name and a fixed time stamp: equal content, equal bytes.
        with gzip.GzipFile("", "wb", compresslevel=6, fileobj=stream, mtime=0) as compressed:
            _write(frame, compressed)


def _exact_decimals(pandas_version: str) -> dict[str, Any]:
    # Before 3.1 pandas is off by a last bit now and then unless told; since then it warns if told.
    major, minor = (int(part) for part in pandas_version.split(".")[:2])
    return {} if (major, minor) >= (3, 1) else {"float_precision": "round_trip"}


def _write(frame: Frame, stream: BinaryIO | gzip.GzipFile) -> None:
    stream.write(_lines([frame.columns]))
    for start in range(0, len(frame.values), _ROWS_PER_BLOCK):
        block = frame.values[start : start + _ROWS_PER_BLOCK]
        stream.write(_lines(np.where(np.isnan(block), "", block.astype(object)).tolist()))


def _lines(rows: Iterable[Iterable[str | float]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)  # floats as repr: nothing is lost
    return text.getvalue().encode()


def _opened(path: Path) -> io.BufferedIOBase:
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")


def _header(line: bytes) -> tuple[str, ...]:
    names = next(csv.reader([line.decode().strip()]), [])
    if not names:
        raise ValueError("it has no header row")
    return tuple(names)
