"""Where a text file stops being a table: found in a second look, told by line and never by cell."""

from __future__ import annotations

import csv
import gzip
import io
import secrets
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dpscreen._core.words import how_many
from dpscreen.data.tables_header import Header, open_text

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
