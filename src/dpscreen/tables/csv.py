"""Files of text: the names of their columns, and their rows block by block, every cell as text.

Names are found without looking at any row. A file without a header has data where names should be,
so a name that the schema does not know is given by its place and never repeated. Types are never
guessed: what a cell means is decided later, by the schema.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import secrets
import zlib
from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpscreen._core.messages import Message, message
from dpscreen.tables.declaration import (
    DELIMITERS,
    USUAL,
    UTF8,
    Batches,
    Declaration,
    Dialect,
    TableProblem,
    each_quietly,
    match_names,
    quietly,
)

if TYPE_CHECKING:
    from typing import BinaryIO

BYTES_PER_BLOCK = 1 << 20
BYTES_PER_CELL = 1000
"""A block has room for a row with cells of this length: no row may be longer than a block."""
LONGEST_HEADER = 4_000_000
_BOM, _BYTES = b"\xef\xbb\xbf", "latin-1"
_GZIP, _PARQUET, _ZIP = b"\x1f\x8b", b"PAR1", b"PK\x03\x04"


@dataclass(frozen=True)
class Header:
    """Column names; for text also the delimiter, and how many bytes and lines the names take."""

    names: tuple[str, ...]
    delimiter: str = ","
    n_bytes: int = 0
    n_lines: int = 0


def is_parquet(path: Path) -> bool:
    """Whether it is, by the first bytes, whatever the file is called."""
    return _first_bytes(path) == _PARQUET


def is_excel(path: Path) -> bool:
    """Whether it is a workbook, by its first bytes, whatever it is called."""
    return _first_bytes(path) == _ZIP


def open_text(path: Path, encoding: str = UTF8) -> BinaryIO:
    """Open a file of text as UTF-8, unpacked if it is compressed by gzip."""
    opener: Any = gzip.open if _first_bytes(path)[:2] == _GZIP else partial(open, mode="rb")
    file = opener(path)
    return file if encoding == UTF8 else io.BufferedReader(_Recoded(file, encoding))


def open_lines(path: Path, dialect: Dialect) -> io.TextIOWrapper:
    """Open the same as lines that end in LF, CRLF or, as once on a Mac, in CR: a sign a byte."""
    return io.TextIOWrapper(open_text(path, dialect.encoding), _BYTES, newline="")


def read_header(
    path: Path, schema: Declaration | None = None, *, dialect: Dialect = USUAL
) -> Header:
    """Return the column names of a file. Of a file of text, nothing after them is parsed."""
    dialect = schema.dialect if schema else dialect
    if is_parquet(path):
        import pyarrow.parquet as pq

        names = quietly(lambda: pq.read_schema(path).names, "table.parquet-damaged", path=path)
        return Header(tuple(names))
    if is_excel(path):
        from dpscreen.tables.excel import excel_names

        return Header(excel_names(path, dialect))
    known = {column.name for column in schema.fields} if schema else set()
    lines = _header_lines(path, dialect)
    text = quietly(lambda: lines.decode("utf-8-sig"), "table.unknown-kind", path=path)
    if "\0" in text:
        raise TableProblem(message("table.not-text", path=path))
    wanted = (dialect.delimiter,) if dialect.delimiter else DELIMITERS
    ways: dict[str, list[str]] = {}
    for sign in wanted:
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=sign, quotechar=dialect.quote)
        ways[sign] = [name.strip() for name in next(rows, [])]
    # Names that the schema knows decide, then how many there are.
    delimiter = max(ways, key=lambda sign: (len(known & {*ways[sign]}), len(ways[sign])))
    if not any(ways[delimiter]):
        raise TableProblem(message("table.nameless", path=path))
    return Header(tuple(ways[delimiter]), delimiter, len(lines), len(lines.splitlines()))


def matched_header(path: Path, schema: Declaration, optional: Sequence[str] = ()) -> Header:
    """Return the header of a file whose columns are those of the schema; refuse others."""
    header = read_header(path, schema)
    match_names(path, header.names, schema, optional)
    return header


def looks_like_data(names: Sequence[str]) -> list[int]:
    """Return the places of names that are numbers, as in a file without a header."""
    found = []
    for place, name in enumerate(names, 1):
        with suppress(ValueError):
            float(name.replace(",", "."))
            found.append(place)
    return found


def _first_bytes(path: Path) -> bytes:
    if path.exists() and not path.is_file():
        raise TableProblem(message("table.no-file", path=path))  # a pipe could be read only once

    def read() -> bytes:
        with path.open("rb") as file:
            return file.read(4)

    return quietly(read, partial(_unreadable, path))


def _unreadable(path: Path, error: Exception) -> Message:
    reason = getattr(error, "strerror", None) or type(error).__name__
    return message("table.io", path=path, reason=reason.lower())


def _header_lines(path: Path, dialect: Dialect) -> bytes:
    """Read as many lines as the names take: a quoted name may hold line ends."""

    def read() -> str:
        with open_lines(path, dialect) as file:
            lines = more = file.readline(LONGEST_HEADER)
            while more and lines.count(dialect.quote) % 2 and len(lines) < LONGEST_HEADER:
                lines += (more := file.readline(LONGEST_HEADER))
            return lines

    lines = quietly(read, "table.cut-short", path=path)
    found = lines.encode(_BYTES)
    if not found.removeprefix(_BOM).strip():
        raise TableProblem(message("table.nameless", path=path))
    if len(found) >= LONGEST_HEADER or lines.count(dialect.quote) % 2:
        raise TableProblem(message("table.long-header", path=path))
    return found


class _Recoded(io.RawIOBase):
    """A file of text in another encoding, read as UTF-8; what it cannot read becomes U+FFFD."""

    def __init__(self, file: Any, encoding: str) -> None:
        self._text = io.TextIOWrapper(file, encoding, errors="replace", newline="")
        self._left = b""

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._text.fileno()

    def readinto(self, into: Any) -> int:
        self._left = self._left or self._text.read(BYTES_PER_BLOCK).encode(errors="replace")
        taken, self._left = self._left[: len(into)], self._left[len(into) :]
        into[: len(taken)] = taken
        return len(taken)

    def close(self) -> None:
        self._text.close()
        super().close()


# --- rows -----------------------------------------------------------------------------------------


class TextBlocks(Batches):
    """The rows of a file after its header, as Arrow batches of text."""

    def __init__(
        self, path: Path, header: Header, schema: Declaration, wanted: Sequence[str]
    ) -> None:
        self._path, self._header, self._schema = path, header, schema
        self._wanted = list(wanted)
        self._size = max(1, path.stat().st_size)

    def _batches(self) -> Generator[Any, None, None]:
        # A row of our own stands last: if it does not come out, a quote was never closed.
        token = secrets.token_hex(16)
        with open_text(self._path, self._schema.dialect.encoding) as file:
            file.read(self._header.n_bytes)
            last = (self._header.delimiter.join([token] * len(self._header.names))).encode()
            stream = _WithLastRow(file, last)
            reader = quietly(lambda: self._open(stream), self._explained)
            held = None
            for batch in each_quietly(reader, self._explained):
                self.share = min(1.0, stream.position / self._size)
                if len(batch):
                    if held is not None:
                        yield held
                    held = batch
            if held is None or held.column(0)[len(held) - 1].as_py() != token:
                never_closed = message("table.open-quote", path=self._path)
                raise TableProblem(self._fault() or never_closed)
            yield held.slice(0, len(held) - 1)

    def _open(self, stream: Any) -> Any:
        import pyarrow as pa
        from pyarrow import csv

        names = list(self._header.names)
        size = max(BYTES_PER_BLOCK, BYTES_PER_CELL * len(names))
        return csv.open_csv(
            pa.PythonFile(stream, mode="r"),
            csv.ReadOptions(column_names=names, block_size=size, use_threads=False),
            csv.ParseOptions(
                delimiter=self._header.delimiter,
                quote_char=self._schema.dialect.quote,
                newlines_in_values=True,
                ignore_empty_lines=len(names) > 1,
            ),
            csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                include_columns=self._wanted,
                strings_can_be_null=False,
            ),
        )

    def _explained(self, error: Exception) -> Message:
        """Say in one sentence why the file cannot be read, from the file and not from the error."""
        if isinstance(error, EOFError | zlib.error | gzip.BadGzipFile):
            return message("table.gzip-damaged", path=self._path)
        if isinstance(error, OSError):
            return _unreadable(self._path, error)
        other = message("table.not-a-table", path=self._path, kind=type(error).__name__)
        utf8 = self._schema.dialect.encoding == UTF8
        return self._fault() or (_wrong_encoding(self._path) if utf8 else None) or other

    def _fault(self) -> Message | None:
        """Read rows until one does not have as many cells as the first line."""
        with open_lines(self._path, self._schema.dialect) as lines:
            lines.read(self._header.n_bytes)
            return self._first_fault(lines)

    def _first_fault(self, lines: Any) -> Message | None:
        names, token = self._header.names, secrets.token_hex(16)
        # The last line may not be ended; an empty one does no harm.
        rows = csv.reader(
            chain(lines, ("\n", token)),
            delimiter=self._header.delimiter,
            quotechar=self._schema.dialect.quote,
        )
        row, line, following = [""], self._header.n_lines, self._header.n_lines + 1
        try:
            for row in rows:
                line, following = following, self._header.n_lines + rows.line_num + 1
                swallowed = bool(row) and token in row[-1]
                if row and not swallowed and len(row) != len(names):
                    n, wanted = len(row), len(names)
                    return message("line.cells", path=self._path, line=line, n=n, wanted=wanted)
        except csv.Error:
            return message("line.too-long", path=self._path, line=following)
        return None if row == [token] else message("line.open-quote", path=self._path, line=line)


class _WithLastRow:
    """A file that is followed by one more row; `position` is in the file on disk."""

    closed = False
    position = 0

    def __init__(self, file: Any, row: bytes) -> None:
        self._file, self._row, self._end = file, row, b"\n"

    def read(self, size: int) -> bytes:  # pragma: no cover - in a thread of Arrow
        """Return some bytes; the last row when the file has none left."""
        data: bytes = self._file.read(size)
        self.position = os.lseek(self._file.fileno(), 0, os.SEEK_CUR)
        if data:
            self._end = data[-1:]
            return data
        row, self._row = self._row, b""
        return row if self._end in b"\r\n" or not row else b"\n" + row

    def close(self) -> None:
        """Leave the file to whoever opened it."""


def _wrong_encoding(path: Path) -> Message | None:
    with open_text(path) as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError:
                return message("line.not-utf8", path=path, line=number)
    return None
