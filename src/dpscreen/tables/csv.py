"""Rows of a text file, block by block, every cell as text.

Types are never guessed: what a cell means is decided later, by the schema.
"""

from __future__ import annotations

import csv
import gzip
import io
import secrets
import zlib
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

from dpscreen._core.files import one_ahead
from dpscreen._core.words import how_many
from dpscreen.tables.declaration import Declaration
from dpscreen.tables.header import Header, open_text
from dpscreen.tables.problem import TableProblem, quietly

BYTES_PER_BLOCK = 1 << 20
BYTES_PER_CELL = 1000
"""A block has room for a row with cells of this length: no row may be longer than a block."""


class TextBlocks:
    """The rows of a file after its header, as Arrow batches of text."""

    n_rows: int | None = None  # not known before the end

    def __init__(
        self, path: Path, header: Header, schema: Declaration, wanted: Sequence[str]
    ) -> None:
        self._path, self._header, self._schema = path, header, schema
        self._wanted = list(wanted)
        self._size = max(1, path.stat().st_size)
        self._stream: _WithLastRow | None = None

    def share(self) -> float:
        """Return how much of the file has been read, from 0 to 1."""
        return min(1.0, self._stream.position / self._size) if self._stream else 0.0

    def __iter__(self) -> Iterator[Any]:
        return one_ahead(self._rows())

    def _rows(self) -> Generator[Any, None, None]:
        # A row of our own stands last: if it does not come out, a quote was never closed.
        token = secrets.token_hex(16)
        with open_text(self._path) as file:
            file.read(self._header.n_bytes)
            last = (self._header.delimiter.join([token] * len(self._header.names))).encode()
            self._stream = _WithLastRow(file, last)
            batches = self._batches(self._stream)
            held = next(batches, None)
            for batch in batches:
                yield held
                held = batch
            if held is None or held.column(0)[len(held) - 1].as_py() != token:
                raise TableProblem(unclosed_quote(self._path, self._header, self._schema.quote))
            yield held.slice(0, len(held) - 1)

    def _batches(self, stream: Any) -> Iterator[Any]:
        def told(error: Exception) -> str:
            return explain(error, self._path, self._header, self._schema.quote)

        reader = quietly(lambda: self._open(stream), told)
        while True:
            batch = quietly(lambda: next(reader, None), told)
            if batch is None:
                return
            if len(batch):
                yield batch

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
                quote_char=self._schema.quote,
                newlines_in_values=True,
                ignore_empty_lines=len(names) > 1,
            ),
            csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                include_columns=self._wanted,
                strings_can_be_null=False,
            ),
        )


class _WithLastRow:
    """A file that is followed by one more row; `position` is in the file on disk."""

    closed = False
    position = 0

    def __init__(self, file: Any, row: bytes) -> None:
        self._file, self._row, self._end = file, row, b"\n"
        self._on_disk = getattr(file, "fileobj", None) or file  # what gzip unpacks, or itself

    def read(self, size: int) -> bytes:
        """Return some bytes; the last row when the file has none left."""
        data: bytes = self._file.read(size)
        self.position = self._on_disk.tell()
        if data:
            self._end = data[-1:]
            return data
        row, self._row = self._row, b""
        return row if self._end in b"\r\n" or not row else b"\n" + row

    def close(self) -> None:
        """Leave the file to whoever opened it."""


_DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile)


def explain(error: Exception, path: Path, header: Header, quote: str) -> str:
    """Say in one sentence why a file cannot be read, from the file and not from the error."""
    if isinstance(error, _DAMAGED):
        return f"the table {path} is a damaged gzip file, or cut short."
    if isinstance(error, OSError):
        return (
            f"the table {path} cannot be read: {(error.strerror or type(error).__name__).lower()}."
        )
    found = _structure(path, header, quote) or _encoding(path)
    return found or f"the file {path} cannot be read as a table; {type(error).__name__} was raised."


def unclosed_quote(path: Path, header: Header, quote: str) -> str:
    """Say where a quote opens that is never closed."""
    return (
        _structure(path, header, quote)
        or f"in the table {path}, a quote is opened and never closed."
    )


def _structure(path: Path, header: Header, quote: str) -> str | None:
    """Walk through the rows until one does not have as many cells as the first line."""
    with open_text(path) as file:
        file.read(header.n_bytes)
        with io.TextIOWrapper(file, "latin-1", newline="") as lines:
            found = _first_fault(lines, header, quote)
    return None if found is None else f"line {found[0]} of {path}{found[1]}."


def _first_fault(lines: Any, header: Header, quote: str) -> tuple[int, str] | None:
    token, expected = secrets.token_hex(16), len(header.names)
    rows = csv.reader(_with_last(lines, token), delimiter=header.delimiter, quotechar=quote)
    row, line, following = [""], header.n_lines, header.n_lines + 1
    try:
        for row in rows:
            line, following = following, header.n_lines + rows.line_num + 1
            swallowed = bool(row) and token in row[-1]
            if row and not swallowed and len(row) != expected:
                cells = how_many(len(row), "cell")
                return line, f" has {cells}, where the first line has {expected}"
    except csv.Error:
        return following, " is too long; perhaps a quote is opened there and never closed"
    return None if row == [token] else (line, ": a quote is opened in this row and never closed")


def _with_last(lines: Any, token: str) -> Iterator[str]:
    end = "\n"
    for line in lines:
        yield line
        end = line[-1:]
    if end not in "\r\n":
        # The line that was not ended is out already: the reader takes an empty one for its end.
        yield "\n"
    yield token


def _encoding(path: Path) -> str | None:
    with open_text(path) as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError:
                return f"line {number} of {path} is not text in UTF-8; save the table as UTF-8."
    return None
