"""Rows of a text file, block by block, every cell as text.

Types are never guessed: what a cell means is decided later, by the schema.
"""

from __future__ import annotations

import secrets
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

from dpscreen._core.files import one_ahead
from dpscreen.data.schema import TableSchema
from dpscreen.data.tables_faults import explain, unclosed_quote
from dpscreen.data.tables_header import Header, open_text
from dpscreen.data.tables_problem import TableProblem, quietly

BYTES_PER_BLOCK = 1 << 20
BYTES_PER_CELL = 1000
"""A block has room for a row with cells of this length: no row may be longer than a block."""


class TextBlocks:
    """The rows of a file after its header, as Arrow batches of text."""

    n_rows: int | None = None  # not known before the end

    def __init__(
        self, path: Path, header: Header, schema: TableSchema, wanted: Sequence[str]
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
