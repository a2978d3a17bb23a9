"""The names of a table's columns, found without looking at any row.

A file without a header has data where names should be. So a name that the schema does not know is
told by its place and never repeated.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dpscreen._core.words import some
from dpscreen.tables.declaration import DELIMITERS, Declaration
from dpscreen.tables.problem import TableProblem, called, quietly

if TYPE_CHECKING:
    from typing import BinaryIO

LONGEST_HEADER = 4_000_000
_BOM = b"\xef\xbb\xbf"
_GZIP, _PARQUET = b"\x1f\x8b", b"PAR1"


@dataclass(frozen=True)
class Header:
    """Column names; for text also the delimiter, and how many bytes and lines the names take."""

    names: tuple[str, ...]
    delimiter: str = ","
    n_bytes: int = 0
    n_lines: int = 0


def is_parquet(path: Path) -> bool:
    """Tell by the first bytes, whatever the file is called."""
    return _first_bytes(path) == _PARQUET


def is_packed(path: Path) -> bool:
    """Whether a file may be much smaller than what it holds: gzip or Parquet."""
    return _first_bytes(path)[:2] == _GZIP or is_parquet(path)


def open_text(path: Path) -> BinaryIO:
    """Open a file of text, unpacked if it is compressed by gzip."""
    if _first_bytes(path)[:2] == _GZIP:
        return gzip.open(path)  # type: ignore[return-value]
    return path.open("rb")


def read_header(path: Path, schema: Declaration | None = None) -> Header:
    """Return the column names of a file. Of a file of text, nothing after them is parsed."""
    if is_parquet(path):
        return Header(_parquet_names(path))
    known = frozenset(column.name for column in schema.fields) if schema else frozenset()
    quote = schema.quote if schema else '"'
    lines = _header_lines(path, quote)
    text = quietly(
        lambda: lines.decode("utf-8-sig"),
        lambda _: (
            f"the file {path} is not a table: neither text in UTF-8 (plain or gzip) nor Parquet."
        ),
    )
    if "\0" in text:
        raise TableProblem(f"the file {path} is not a table: its first line is not text.")
    wanted = (schema.delimiter,) if schema and schema.delimiter else DELIMITERS
    delimiter = max(wanted, key=lambda sign: _likeness(_split(text, sign, quote), known))
    names = tuple(name.strip() for name in _split(text, delimiter, quote))
    if not any(names):
        raise TableProblem(f"the file {path} is not a table: its first line holds no column names.")
    return Header(names, delimiter, len(lines), len(lines.splitlines()))


def check_names(path: Path | str, names: Sequence[object]) -> None:
    """Refuse names that are empty or there twice, by their places."""
    empty = [place for place, name in enumerate(names, 1) if name == ""]
    if empty:
        raise TableProblem(f"in {called(path)}, column {some(empty)} has no name.")
    counts = Counter(names)
    same = [place for place, name in enumerate(names, 1) if counts[name] > 1]
    if same:
        raise TableProblem(f"in {called(path)}, names stand twice, in columns {some(same)}.")


def match_names(
    path: Path | str, names: Sequence[object], schema: Declaration, optional: Sequence[str] = ()
) -> None:
    """Refuse columns that are missing, and columns that the schema does not know."""
    check_names(path, names)
    known = {column.name: None for column in schema.fields}  # in order, and quick to ask
    there = {*names, *optional}
    missing = [repr(name) for name in known if name not in there]
    strange = [place for place, name in enumerate(names, 1) if name not in known]
    told = []
    if missing:
        told.append(f"it lacks {some(missing)}")
    if strange:
        plural = "s" if len(strange) > 1 else ""
        told.append(f"the schema does not know the name{plural} of column{plural} {some(strange)}")
    if told:
        end = "." if len(missing) < len(known) else "; does its first line hold the names?"
        raise TableProblem(f"{called(path)} does not fit the schema: {', and '.join(told)}{end}")


def looks_like_data(names: Sequence[str]) -> list[int]:
    """Return the places of names that are numbers, as in a file without a header."""
    return [place for place, name in enumerate(names, 1) if _is_number(name)]


def _first_bytes(path: Path) -> bytes:
    if path.exists() and not path.is_file():
        raise TableProblem(f"the table {path} is not a file.")  # a pipe could be read only once

    def read() -> bytes:
        with path.open("rb") as file:
            return file.read(4)

    return quietly(read, lambda error: f"the table {path} cannot be read: {_why(error)}.")


def _why(error: Exception) -> str:
    reason = error.strerror if isinstance(error, OSError) else None
    return (reason or type(error).__name__).lower()


def _parquet_names(path: Path) -> tuple[str, ...]:
    def read() -> tuple[str, ...]:
        import pyarrow.parquet as pq

        return tuple(pq.read_schema(path).names)

    return quietly(read, lambda _: f"the table {path} is a damaged Parquet file.")


def _header_lines(path: Path, quote: str) -> bytes:
    """Read as many lines as the names take: a quoted name may hold line ends."""
    mark = quote.encode()

    def read() -> bytes:
        with open_text(path) as file:
            lines = _one_line(file)
            while lines.count(mark) % 2 and len(lines) < LONGEST_HEADER:
                more = _one_line(file)
                if not more:
                    break
                lines += more
            return lines

    lines = quietly(read, lambda _: f"the table {path} cannot be read: it is damaged or cut short.")
    if not lines.removeprefix(_BOM).strip():
        raise TableProblem(f"the file {path} is not a table: its first line holds no column names.")
    if len(lines) >= LONGEST_HEADER or lines.count(mark) % 2:
        raise TableProblem(f"the first line of {path} is too long, or a quote in it is not closed.")
    return lines


def _one_line(file: BinaryIO) -> bytes:
    """Read a line that ends in LF, CRLF or, as once on a Mac, in CR."""
    line = file.readline(LONGEST_HEADER)
    head, sign, rest = line.partition(b"\r")
    if sign and rest not in (b"", b"\n"):
        file.seek(-len(rest), io.SEEK_CUR)
        return head + sign
    return line


def _split(text: str, delimiter: str, quote: str) -> list[str]:
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quotechar=quote)
    return next(rows, [])


def _likeness(names: list[str], known: frozenset[str]) -> tuple[int, int]:
    return sum(name.strip() in known for name in names), len(names)


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True
