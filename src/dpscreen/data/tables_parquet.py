"""Rows of a Parquet file, batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

from dpscreen._core.files import one_ahead
from dpscreen.data.tables_problem import TableProblem, called, quietly

ROWS_PER_BATCH = 1 << 16
_BUFFER = 1 << 20


class ParquetBatches:
    """The wanted columns of a Parquet file, as Arrow batches."""

    def __init__(self, path: Path, wanted: Sequence[str]) -> None:
        self._path, self._wanted = path, list(wanted)
        self._file = quietly(self._open, self._told)
        self.n_rows: int | None = self._file.metadata.num_rows
        self._done = 0
        check_stored(path, self._wanted, lambda name: self._file.schema_arrow.field(name).type)

    def share(self) -> float:
        """Return how much of the file has been read, from 0 to 1."""
        return self._done / max(1, self.n_rows or 0)

    def __iter__(self) -> Iterator[Any]:
        return one_ahead(self._batches())

    def _batches(self) -> Generator[Any, None, None]:
        batches = self._file.iter_batches(ROWS_PER_BATCH, columns=self._wanted)
        while True:
            batch = quietly(lambda: next(batches, None), self._told)
            if batch is None:
                return
            self._done += len(batch)
            yield batch

    def _open(self) -> Any:
        import pyarrow.parquet as pq

        # Column by column through small buffers: a row group may be as large as the file.
        return pq.ParquetFile(self._path, buffer_size=_BUFFER, pre_buffer=False)

    def _told(self, _: Exception) -> str:
        return f"the table {self._path} is a damaged Parquet file, or one of an unknown kind."


def check_stored(place: Path | str, wanted: Sequence[str], kind: Callable[[str], Any]) -> None:
    """Refuse columns stored as something that is neither numbers, truths nor text."""
    from dpscreen.data.tables_cells import readable

    for name in wanted:
        if not readable(kind(name)):
            raise TableProblem(
                f"in {called(place)}, column {name!r} is stored neither as numbers nor as text "
                "(perhaps as dates, bytes or lists); store it as what the schema declares."
            )
