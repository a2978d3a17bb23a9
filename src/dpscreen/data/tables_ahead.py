"""Read the next batch while the last one is worked on: Arrow leaves Python's lock alone."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TypeVar

T = TypeVar("T")


def one_ahead(batches: Generator[T, None, None]) -> Iterator[T]:
    """Yield what `batches` yields, with the next one fetched in the meantime by a thread."""
    with closing(batches), ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = reader.submit(next, batches, None)
            yield batch
