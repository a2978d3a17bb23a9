"""Tables of databases by their address: rows to be read, and predictions to be written.

>>> rows = dpscreen.scan(DatabaseTable("duckdb:clinic.db", table="visits"), schema)

`duckdb:` addresses need duckdb, `postgresql:` ones the ADBC driver, and all others SQLAlchemy with
the driver of the database (`pip install "dpscreen[databases]"`). An address may hold a password, so
no message repeats one, nor what a database says, which may quote a cell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpscreen._core.messages import Message, message
from dpscreen._core.words import plain
from dpscreen.tables.arrow import ROWS_PER_BATCH, mixed_cells
from dpscreen.tables.declaration import TableProblem, quietly

_ADDRESS = re.compile(r"([a-z][a-z0-9]+)(?:\+[a-z0-9_]+)?:")


def is_address(text: str) -> bool:
    """Whether a text is the address of a database and not a file: it begins with duckdb: or so."""
    return _ADDRESS.match(text) is not None and not Path(text).exists()


@dataclass(frozen=True, repr=False)
class DatabaseTable:
    """A table of a database, or what a query returns; it exports Arrow as other sources do."""

    address: str
    table: str | None = None
    query: str | None = None

    def __post_init__(self) -> None:
        if not is_address(self.address):
            raise TableProblem(message("database.address"))
        if (self.table is None) == (self.query is None):
            raise TableProblem(message("database.table-or-query"))

    @property
    def name(self) -> str:
        """Return what may be shown of it: never the address."""
        return "the query" if self.table is None else plain(self.table)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._kind}, {self.name})"

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Read the rows, some at a time."""
        batches = self._batches()
        first = self._quietly(partial(next, batches), "database.read", self.name)
        reader = pa.RecordBatchReader.from_batches(first.schema, chain([first], batches))
        return reader.__arrow_c_stream__(requested_schema)

    def write(self, rows: pa.Table, into: str, *, replace: bool = False) -> None:
        """Write a new table into the same database; one of that name is kept by default."""

        def work() -> None:
            if self._kind == "duckdb":
                create = "CREATE OR REPLACE TABLE" if replace else "CREATE TABLE"
                with self._duckdb(read_only=False) as connection:
                    connection.register("dpscreen_predictions", rows)
                    select = "SELECT * FROM dpscreen_predictions"
                    connection.execute(f"{create} {_quoted(into)} AS {select}")
            elif self._kind == "postgresql":
                with self._adbc() as connection, connection.cursor() as cursor:
                    cursor.adbc_ingest(into, rows, mode="replace" if replace else "create")
                    connection.commit()
            else:
                kept = "replace" if replace else "fail"
                with self._sqlalchemy() as engine:
                    rows.to_pandas().to_sql(into, engine, index=False, if_exists=kept)

        self._quietly(work, "database.write", plain(into))

    # --- each kind of database --------------------------------------------------------------------

    @property
    def _kind(self) -> str:
        found = _ADDRESS.match(self.address)
        assert found is not None  # checked at first
        return "postgresql" if found[1] == "postgres" else found[1]

    def _batches(self) -> Iterator[pa.RecordBatch]:
        """Yield batches, the first even without rows, as its schema is that of all."""
        select = self.query or f"SELECT * FROM {_quoted(self.table or '')}"
        if self._kind == "duckdb":
            with self._duckdb(read_only=True) as connection:
                yield from _with_schema(connection.sql(select).to_arrow_reader(ROWS_PER_BATCH))
        elif self._kind == "postgresql":
            with self._adbc() as connection, connection.cursor() as cursor:
                cursor.execute(select)
                yield from _with_schema(cursor.fetch_record_batch())
        else:
            import sqlalchemy as sql

            with self._sqlalchemy() as engine, engine.connect() as connection:
                streaming = connection.execution_options(stream_results=True)
                found = streaming.execute(sql.text(select))
                names = list(found.keys())
                yield _mixed_batch(names, [])
                for part in found.partitions(ROWS_PER_BATCH):
                    yield _mixed_batch(names, part)

    def _duckdb(self, *, read_only: bool) -> Any:
        import duckdb

        # DuckDB would keep all blocks of a table that it reads; a query may need more to sort.
        limit: dict[str, Any] = {} if self.table is None else {"memory_limit": "512MB"}
        place = self.address.partition(":")[2]
        return closing(duckdb.connect(place, read_only=read_only, config=limit))

    def _adbc(self) -> Any:
        from adbc_driver_postgresql import dbapi

        return closing(dbapi.connect(self.address))

    @contextmanager
    def _sqlalchemy(self) -> Iterator[Any]:
        import sqlalchemy as sql

        engine = sql.create_engine(self.address)
        try:
            yield engine
        finally:
            engine.dispose()

    def _quietly(self, work: Any, code: str, name: str) -> Any:
        def explain(error: Exception) -> Message:
            found = "database.driver" if isinstance(error, ImportError) else code
            return message(found, database=self._kind, name=name, kind=type(error).__name__)

        return quietly(work, explain)


def _with_schema(reader: Any) -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_pylist([], schema=reader.schema)
    yield from reader


def _mixed_batch(names: Sequence[str], rows: Sequence[Any]) -> pa.RecordBatch:
    """Return rows of Python objects, each cell read by itself: types may change on the way."""
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    return pa.RecordBatch.from_arrays([mixed_cells(cells) for cells in columns], names)


def _quoted(name: str) -> str:
    """Return the name of a table, perhaps after that of its schema, as SQL writes it."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in name.split("."))
