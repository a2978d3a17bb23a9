"""Fit a file, or what a database returns, that is larger than memory: it is read once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dpscreen.privacy.budget import Unit
from dpscreen.rows.spool import Spool
from dpscreen.rows.streamed import StreamedRows
from dpscreen.tables.check import RowsCheck, RowsReport
from dpscreen.tables.declaration import MOST_UNREADABLE
from dpscreen.tables.reading import EncodedRows, Progress, in_memory, spooled_rows
from dpscreen.tables.schema import TableSchema, as_schema

Watch = Callable[[int, int], None]


def scan(
    path: Any,
    schema: TableSchema | Mapping[str, Any] | str | Path,
    *,
    progress: bool | Watch = False,
) -> ScannedRows:
    """Return the rows of a file, or of a source that exports Arrow, for `fit`.

    They are read once, as a file may change and a source may return its rows in another order the
    next time: what exceeds a quarter of the memory goes to a scratch file without a name. The
    coefficients are those of a fit in memory, to the last bit.

    Parameters
    ----------
    path : str, Path or source
        A CSV, gzip CSV, Parquet or Excel file. Or what exports Arrow (`__arrow_c_stream__`): a
        relation of DuckDB, a lazy frame of polars, a table of Ibis, a cursor of ADBC, a dataset or
        a reader of pyarrow, a `DatabaseTable`. Of its columns those of the schema are read.
    schema : TableSchema, mapping, or path of a schema file
        Types, bounds, levels and target: public knowledge, never taken from the data.
    progress : bool or callable, default=False
        True shows a bar with the time left on stderr. A callable gets (passes done, passes
        expected) after each pass over the rows; 0 are expected while the number is not known.

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
    counts = RowsCheck(declared)
    spool = spooled_rows(Path(path) if isinstance(path, str) else path, declared, look=counts.add)
    return ScannedRows(spool, declared.privacy_unit, watch=watch, counts=counts)


def rows_of(
    source: Any,
    schema: TableSchema,
    counts: RowsCheck | None = None,
    *,
    progress: Progress | None = None,
    watch: Watch | None = None,
) -> EncodedRows | ScannedRows:
    """Return the rows of a file or a source: in memory where they fit there.

    With `counts`, what does not fit the schema is counted on the way. `progress` receives the share
    that is read, `watch` the passes over rows that do not fit in memory.
    """
    look = None if counts is None else counts.add
    spool = spooled_rows(source, schema, look=look, progress=progress)
    if spool.fits_memory:
        return in_memory(spool, schema)
    return ScannedRows(spool, schema.privacy_unit, watch=watch)


class ScannedRows(StreamedRows):
    """Rows of a file or a source, which know whose they are."""

    def __init__(
        self,
        reader: Spool,
        unit: Unit | None,
        *,
        watch: Watch | None = None,
        counts: RowsCheck | None = None,
    ) -> None:
        super().__init__(reader, watch=watch)
        self.reader: Spool = reader
        self.unit, self._counts = unit, counts

    def check(self, most_unreadable: float = MOST_UNREADABLE) -> RowsReport | None:
        """Return what does not fit the schema, if it was counted as the rows were read."""
        return None if self._counts is None else self._counts.report(most_unreadable)

    def grouped(self) -> StreamedRows:
        """Return the rows with those of each unit together."""
        made, owners = self.reader.grouped()
        return StreamedRows(made, watch=self._watch, owners=owners)


class Bar:
    """A bar with the time left, on stderr, from the first pass until the rows are let go of."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.progress import TimeRemainingColumn as TimeLeft

        console = Console(stderr=True)
        texts = TextColumn("passes over the rows"), BarColumn(), MofNCompleteColumn(), TimeLeft()
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
