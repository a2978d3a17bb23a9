"""Refusals of a table, and a way to call other libraries so that none of their words get out.

Readers and converters quote the cell they stumble over. `quietly` lets no such text escape: not
in a message, and not in the exception that a new one would otherwise be chained to.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar


class DataError(Exception):
    """Any failure to find, read or download a data set."""


def first_line(reason: BaseException) -> str:
    """What another library said, short enough to stand inside a sentence."""
    return (str(reason).strip() or type(reason).__name__).splitlines()[0]


T = TypeVar("T")


class TableProblem(DataError, ValueError):
    """A table cannot be read. The message names places and public names, never a cell."""


def called(place: Path | str) -> str:
    """Name a file, or what else a table comes from, within a sentence."""
    return f"the table {place}" if isinstance(place, Path) else place


def quietly(work: Callable[[], T], explain: Callable[[Exception], str]) -> T:
    """Do it, or raise a problem in our own words; `explain` may look at the error, not quote it."""
    try:
        return work()
    except (DataError, StopIteration):
        raise
    except Exception as error:
        message = _words(explain, error)
    # Raised out here so that the original is not even attached.
    raise TableProblem(message)


def _words(explain: Callable[[Exception], str], error: Exception) -> str:
    try:
        return explain(error)
    except Exception:  # the search for a reason stumbled too
        return f"the table cannot be read; {type(error).__name__} was raised."
