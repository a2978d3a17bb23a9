"""Files that are there whole or not at all, strict JSON, and reading ahead."""

from __future__ import annotations

import json
import math
import os
import secrets
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from dpscreen._core.messages import message

T = TypeVar("T")

DEEPEST = 40
LARGEST_INTEGER = 10**18
"""Whole numbers are smaller: all that have a meaning here."""


# --- writing --------------------------------------------------------------------------------------


@contextmanager
def replacing(path: Path, *, force: bool = True) -> Iterator[BinaryIO]:
    """Open a file beside `path` that takes its name, in one step, only if the block succeeds.

    What was there is replaced if `force`, and kept with a `FileExistsError` if not.
    """
    target = path.absolute()
    beside = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        with beside.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if force:
            beside.replace(target)
        else:
            _name_new(beside, target)
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)


def _name_new(beside: Path, target: Path) -> None:
    """Give the file its name unless that is taken, even by someone who is quicker."""
    try:
        target.hardlink_to(beside)
    except FileExistsError:
        raise
    except OSError:  # a disk without hard links: then looking just before has to do
        if target.exists():
            raise FileExistsError(target) from None
        beside.replace(target)


def write_bytes(path: Path, content: bytes, *, force: bool = True) -> None:
    """Write a file so that no reader finds half of it."""
    with replacing(path, force=force) as stream:
        stream.write(content)


def write_text(path: Path, text: str) -> None:
    """Write text in UTF-8, its line ends as they are, so that no reader finds half of it."""
    write_bytes(path, text.encode())


# --- JSON -----------------------------------------------------------------------------------------


class NotStrictJson(ValueError):
    """Why some text is not JSON, or is JSON that means nothing. Repeats nothing of the text."""


def strict_json(content: bytes | str) -> Any:
    """Return what JSON says, or raise `NotStrictJson`.

    No field may be named twice, every number is finite and of a length that fits, all text is
    Unicode, and nothing lies deeper than people and programs go.
    """
    try:
        found = json.loads(
            content.decode("utf-8-sig") if isinstance(content, bytes) else content,
            object_pairs_hook=_without_duplicates,
        )
        _check_values(found)
    except NotStrictJson as fault:
        problem = fault
    except UnicodeDecodeError:
        problem = NotStrictJson(message("text.not-utf8"))
    except json.JSONDecodeError as error:
        problem = NotStrictJson(message("text.no-json", line=error.lineno, place=error.colno))
    except (RecursionError, MemoryError, ValueError):
        problem = NotStrictJson(message("text.too-large"))
    else:
        return found
    # Raised out here, because a JSON error holds the whole text.
    raise problem


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise NotStrictJson(message("text.field-twice"))
    return found


def _check_values(found: Any) -> None:
    """Refuse deep nesting, broken Unicode and numbers out of range, without recursion."""
    left = [(found, 1)]
    while left:
        value, depth = left.pop()
        if depth > DEEPEST:
            raise NotStrictJson(message("text.too-large"))
        match value:
            case dict():
                left += ((one, depth + 1) for one in (*value, *value.values()))
            case list():
                left += ((one, depth + 1) for one in value)
            case str() if not value.isascii() and any("\ud800" <= one <= "\udfff" for one in value):
                raise NotStrictJson(message("text.not-unicode"))
            case float() if not math.isfinite(value):
                raise NotStrictJson(message("text.large-number"))
            case int() if abs(value) >= LARGEST_INTEGER:
                raise NotStrictJson(message("text.large-number"))


# --- reading --------------------------------------------------------------------------------------


def file_state(path: Path) -> tuple[int, ...]:
    """Return a file's size, time and place, by which a change is noticed without reading it."""
    with suppress(OSError):
        found = path.stat()
        return (found.st_size, found.st_mtime_ns, found.st_ino)
    return ()


def one_ahead(batches: Generator[T, None, None]) -> Generator[T, None, None]:
    """Yield what `batches` yields, with the next one fetched in the meantime by a thread.

    Worth it where what reads leaves Python's lock alone, as Arrow and the system do.
    """
    with closing(batches), ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = reader.submit(next, batches, None)
            yield batch
