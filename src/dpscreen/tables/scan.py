"""Fit a file, or what a database returns, without loading it: rows are read part by part."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen._core.files import file_state
from dpscreen.privacy.budget import Unit
from dpscreen.rows.streamed import ChunkReader, RowsChanged, StreamedRows
from dpscreen.tables.check import RowsCheck, RowsReport, check_rows
from dpscreen.tables.declaration import MOST_UNREADABLE
from dpscreen.tables.reading import EncodedRows, chosen_rows, spooled_rows, stream_rows
from dpscreen.tables.schema import TableSchema, as_schema

Watch = Callable[[int, int], None]


def scan(
    path: Any,
    schema: TableSchema | Mapping[str, Any] | str | Path,
    *,
    progress: bool | Watch = False,
) -> ScannedRows:
    """Return the rows of a file, or of a source that exports Arrow, for `fit`.

    Of a file three numbers a row are kept in memory; the features are read again for every step. A
    source is read once, as it may return its rows in another order the next time: what exceeds a
    quarter of the memory goes to a scratch file without a name. The coefficients are those of a fit
    in memory, to the last bit.

    Parameters
    ----------
    path : str, Path or source
        A CSV, gzip CSV or Parquet file, which must not change while it is being fitted. Or what
        exports Arrow (`__arrow_c_stream__`): a relation of DuckDB, a lazy frame of polars, a table
        of Ibis, a cursor of ADBC, a dataset or a reader of pyarrow, a `DatabaseTable`. Of its
        columns those of the schema are read.
    schema : TableSchema, mapping, or path of a schema file
        Types, bounds, levels and target: public knowledge, never taken from the data.
    progress : bool or callable, default=False
        True shows a bar with the time left on stderr. A callable gets (passes done, passes
        expected) after each pass over the file; 0 are expected while the number is not known.

    Returns
    -------
    ScannedRows
        To be passed to ``fit`` as X, without y. They carry the schema's privacy unit. Use
        ``feature_bounds=schema.feature_bounds`` and ``target_bounds=schema.target_bounds``.

    Examples
    --------
    >>> rows = dpscreen.scan("claims.parquet", "schema.json", progress=True)   # doctest: +SKIP
    >>> PrivateLasso(epsilon=1, delta=1e-8, ...).fit(rows)                     # doctest: +SKIP
    """
    watch = Bar() if progress is True else progress or None
    declared = as_schema(schema)
    if isinstance(path, str | Path):
        made = FileRows(Path(path), declared)
        return ScannedRows(made, declared.privacy_unit, watch=watch)
    counts = RowsCheck(declared)
    spool = spooled_rows(path, declared, look=counts.add)
    return ScannedRows(spool, declared.privacy_unit, watch=watch, counts=counts)


def rows_of(
    source: Any, schema: TableSchema, counts: RowsCheck | None = None
) -> EncodedRows | ScannedRows:
    """Return the rows of a source that exports Arrow: in memory where they fit there.

    With `counts`, what does not fit the schema is counted on the way.
    """
    spool = spooled_rows(source, schema, look=None if counts is None else counts.add)
    if not spool.fits_memory:
        return ScannedRows(spool, schema.privacy_unit)
    return EncodedRows(*spool.arrays(), spool.feature_names, schema.privacy_unit, spool.keys)


class FileRows(ChunkReader):
    """The rows of one file, which of them count, and what the file looked like at first."""

    def __init__(self, path: Path, schema: TableSchema) -> None:
        schema.check()
        self.path, self.schema = path, schema
        self.feature_names = self._names = tuple(schema.feature_names)
        self.n_features = len(self._names)
        self._state, self._chosen = file_state(path), chosen_rows(path, schema)

    def chunks(self, features: Sequence[int] | None) -> Generator[Array, None, None]:
        names = None if features is None else [self._names[j] for j in features]
        read = stream_rows(self.path, self.schema, columns=names, chosen=self._chosen)
        return (rows.named_arrays()[0] for rows in read)

    def target(self) -> Array:
        """Return the target of all rows that count, reading one feature beside it."""
        names = self._names[:1]
        read = stream_rows(self.path, self.schema, columns=names, chosen=self._chosen)
        parts = [rows.named_arrays()[1] for rows in read]
        return np.concatenate(parts) if parts else np.empty(0)

    def unchanged(self) -> bool:
        """Whether the file has the size, the time and the place that it had at first."""
        return file_state(self.path) == self._state


class ScannedRows(StreamedRows):
    """Rows of a file or a source, which know whose they are."""

    def __init__(
        self,
        reader: ChunkReader,
        unit: Unit | None,
        *,
        watch: Watch | None = None,
        counts: RowsCheck | None = None,
    ) -> None:
        super().__init__(reader, watch=watch)
        self.unit, self._counts = unit, counts

    def check(self, most_unreadable: float = MOST_UNREADABLE) -> RowsReport | None:
        """Return what does not fit the schema, if it can be known; a file is read for that."""
        if isinstance(self.reader, FileRows):
            file, schema = self.reader.path, self.reader.schema
            return check_rows(file, schema, most_unreadable=most_unreadable)
        return None if self._counts is None else self._counts.report(most_unreadable)

    def grouped(self) -> StreamedRows:
        """Return the rows with those of each unit together; a file is read once more for that."""
        spool: Any = self.reader
        if isinstance(spool, FileRows):
            spool = spooled_rows(spool.path, spool.schema)
            if not self.reader.unchanged():
                raise RowsChanged
        made, owners = spool.grouped()
        return StreamedRows(made, watch=self._watch, owners=owners)


class Bar:
    """A bar with the time left, on stderr, from the first pass until the rows are let go of."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.progress import TimeRemainingColumn as TimeLeft

        console = Console(stderr=True)
        texts = TextColumn("passes over the file"), BarColumn(), MofNCompleteColumn(), TimeLeft()
        self._bar = Progress(*texts, console=console)
        self._task = self._bar.add_task("", total=None)

    def __call__(self, done: int, expected: int) -> None:
        """Show so many passes; how many there will be is known once the fit is set up."""
        self._bar.start()
        total = max(done, expected) if expected else None
        self._bar.update(self._task, completed=done, total=total, refresh=True)

    def close(self) -> None:
        """Take the bar down."""
        self._bar.stop()
