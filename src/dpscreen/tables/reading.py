"""Tables of private rows: CSV, gzip CSV, Parquet or Excel in, numbers within public bounds out.

>>> rows = read_rows("data.csv", schema)           # for `fit(rows)`, which keeps their unit
>>> X = read_features(Path("new.csv"), schema)     # to predict: the target may be absent

What a cell becomes depends on the cell and the schema alone. No cell makes a table unreadable, and
no message repeats one; docs/reference/schema.md says which refusals depend on rows.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpscreen._core.arrays import Array, Mask, Objects, Words
from dpscreen._core.messages import message
from dpscreen.rows.owners import row_digests, unit_ranks
from dpscreen.tables.csv import TextBlocks, is_excel, is_parquet, matched_header
from dpscreen.tables.declaration import Batches, Declaration

if TYPE_CHECKING:
    from dpscreen.privacy.budget import Unit
    from dpscreen.rows.spool import Spool
    from dpscreen.tables.encode import Encoder

Pair = tuple[Array, Array]
Progress = Callable[[float], None]
ROWS_PER_CHUNK = 1 << 16
_CELLS_AT_ONCE = 1 << 26
_USUAL_MEMORY = 8 << 30

__all__ = ["EncodedRows", "read_features", "read_rows"]


@dataclass(frozen=True, eq=False, repr=False)
class EncodedRows:
    """Features and target of private rows, within the schema's bounds, and whose rows they are.

    To be passed to `fit` whole, as X and without y: it then knows their unit, which arrays do not
    carry. So `X` and `y` are there only where a unit has one row.
    """

    _X: Array
    _y: Array
    feature_names: tuple[str, ...] | None = None
    unit: Unit | None = None
    keys: Words | None = None
    """Two words that identify the unit of each row, where units have several."""

    def __len__(self) -> int:
        return len(self._y)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_features={self._X.shape[1]})"

    @property
    def X(self) -> Array:  # noqa: N802
        """The features, where a unit has one row."""
        self._refuse_unit()
        return self._X

    @property
    def y(self) -> Array:
        """The target, where a unit has one row."""
        self._refuse_unit()
        return self._y

    def _refuse_unit(self) -> None:
        if self.unit is not None and self.unit.rows_per_unit > 1:
            raise ValueError(message("rows.of-units", unit=self.unit))

    def named_arrays(self) -> tuple[Array, Array, tuple[str, ...] | None]:
        """Return features and target as they are, and the names of the features, for `fit`."""
        return self._X, self._y, self.feature_names


def read_rows(path: str | Path, schema: Declaration) -> EncodedRows:
    """Read all rows that count of a file: of each unit at most as many as the schema says."""
    return all_rows(Path(path), schema)


def all_rows(source: Any, schema: Declaration) -> EncodedRows:
    """Return the rows of a frame, a source or a file that count, without a second copy of them."""
    return in_memory(spooled_rows(source, schema, in_memory=sys.maxsize), schema)


def in_memory(spool: Spool, schema: Declaration) -> EncodedRows:
    """Return rows that fit in memory, and keep none of them."""
    return EncodedRows(*spool.arrays(), spool.feature_names, schema.privacy_unit, spool.keys)


def read_features(
    source: Any,
    schema: Declaration,
    *,
    features: Sequence[str] | None = None,
    incomplete: set[str] | None = None,
) -> Array:
    """Read the features of every row of a file or a frame; target and unit may be absent.

    `features` chooses some by their names, in that order; a model from a file lists which it has.
    `incomplete` collects the columns with cells that are missing or cannot be read. That is for
    rows that nothing protects.
    """
    batches = feature_batches(source, schema, features=features, incomplete=incomplete)
    nothing = np.empty((0, encoder_of(schema, features).width))
    return np.concatenate([nothing, *(X for _, X in batches)])


def feature_batches(
    source: Any,
    schema: Declaration,
    *,
    features: Sequence[str] | None = None,
    ids: Sequence[str] = (),
    incomplete: set[str] | None = None,
) -> Iterator[tuple[Any, Array]]:
    """Yield the columns `ids` as they are, and what `read_features` reads, some rows at a time."""
    encoder = encoder_of(schema, features)
    wanted = tuple(dict.fromkeys((*encoder.columns, *ids)))
    others = [one.name for one in schema.fields if one.name not in encoder.columns]
    for batch in _sliced(source_of(source, schema, wanted, others), encoder):
        X = np.empty((len(batch), encoder.width))
        encoder.features(batch, X)
        if incomplete is not None:
            incomplete |= encoder.incomplete(batch)
        yield batch.select(list(ids)), X


def frame_target(frame: Any, schema: Declaration) -> Array:
    """Return the target of every row of a frame, NaN where it is missing."""
    encoder = encoder_of(schema)
    others = [one.name for one in schema.fields if one.name != schema.target]
    source = source_of(frame, schema, (schema.target,), others)
    return np.concatenate([np.empty(0), *map(encoder.target, source)])


def spooled_rows(
    source: Any,
    schema: Declaration,
    *,
    in_memory: int | None = None,
    look: Callable[[Any], None] | None = None,
    progress: Progress | None = None,
) -> Spool:
    """Return the rows that count of a file, a frame or a source that exports Arrow, read once.

    At most a quarter of the memory is filled with them, or so many bytes. `look` is shown each
    batch, `progress` the share that has been read.
    """
    from dpscreen.rows.spool import Spool

    encoder = encoder_of(schema)
    batches = source_of(source, schema, encoder.columns_of_rows)
    choice = None if schema.unit is None else UnitChoice(schema.rows_per_unit)
    parts = _kept_rows(_watched(batches, look, progress), encoder, schema, choice)
    most = available_memory() // 4 if in_memory is None else in_memory
    spool = Spool(parts, encoder.width, encoder.feature_names, in_memory=most)
    if choice is not None:
        spool.keep(choice.chosen())
        spool.keys = choice.keys if schema.rows_per_unit > 1 else None
    return spool


def check_columns(source: Any, schema: Declaration) -> None:
    """Refuse a file or a source whose columns are not those of the schema; no row is read."""
    if isinstance(source, Path):
        matched_header(source, schema)
    else:
        source_of(source, schema, encoder_of(schema).columns_of_rows)


def available_memory() -> int:
    """Return the bytes that this process may use: the machine's, or what its container has."""
    with suppress(OSError, ValueError):  # no container, or one without a limit
        return int(Path("/sys/fs/cgroup/memory.max").read_text())
    with suppress(AttributeError, OSError, ValueError):  # as on Windows
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return _USUAL_MEMORY


# --- rows that count ------------------------------------------------------------------------------


def _watched(
    batches: Batches, look: Callable[[Any], None] | None, progress: Progress | None
) -> Iterator[Any]:
    for batch in batches:
        if look is not None:
            look(batch)
        yield batch
        if progress is not None:
            progress(batches.share)


def _kept_rows(
    batches: Iterable[Any], encoder: Encoder, schema: Declaration, choice: UnitChoice | None
) -> Iterator[Pair]:
    """Yield the features and the target of the rows that may count; the choice is shown them."""
    aim = schema.field(schema.target)
    for batch in _sliced(batches, encoder):
        target, keep = encoder.target(batch), None
        if aim.fill is None:
            keep = ~np.isnan(target)
        else:
            target[np.isnan(target)] = aim.fill_value
        if choice is not None:
            keep = choice.known(encoder.unit_ids(batch), keep)
        features = np.empty((len(batch), encoder.width))
        encoder.features(batch, features)
        if keep is not None and not keep.all():
            features, target = features[keep], target[keep]
        if choice is not None:
            choice.look(features, target)
        yield features, target


def _sliced(batches: Iterable[Any], encoder: Encoder) -> Iterator[Any]:
    """Yield batches of so few rows that their features fit into memory."""
    size = max(1, min(ROWS_PER_CHUNK, _CELLS_AT_ONCE // encoder.width))
    for batch in batches:
        yield from (batch.slice(first, size) for first in range(0, len(batch), size))


# --- files ----------------------------------------------------------------------------------------


def encoder_of(schema: Declaration, features: Sequence[str] | None = None) -> Encoder:
    """Check everything that is public before the first row is read."""
    from dpscreen.tables.encode import Encoder

    schema.check()
    return Encoder(schema, features)


def source_of(
    source: Any, schema: Declaration, wanted: Sequence[str], optional: Sequence[str] = ()
) -> Batches:
    """Return batches of the wanted columns, once the names are those of the schema.

    They are of a file, if the source is a path, or of a frame or of what exports Arrow.
    """
    from dpscreen.tables.arrow import FrameBatches, ParquetBatches, StreamBatches, is_stream
    from dpscreen.tables.excel import ExcelBatches

    if not isinstance(source, Path):
        kind = StreamBatches if is_stream(source) else FrameBatches
        return kind(source, schema, wanted, optional)
    header = matched_header(source, schema, optional)
    if is_parquet(source):
        return ParquetBatches(source, schema, wanted)
    if is_excel(source):
        return ExcelBatches(source, header.names, schema, wanted)
    return TextBlocks(source, header, schema, wanted)


# --- at most k rows of each unit ------------------------------------------------------------------


class UnitIds:
    """Two words for the id of each row. Two ids must never be taken for one another.

    They are compared by 128 bits of SipHash under two random keys: for ten million ids some two
    agree with probability below 2e-25.
    """

    def __init__(self) -> None:
        self._secrets = secrets.token_hex(8), secrets.token_hex(8)

    def words(self, ids: Objects) -> Words:
        """Return the words of the next rows."""
        from pandas.util import hash_array

        words = [hash_array(ids, hash_key=key, categorize=False) for key in self._secrets]
        return np.column_stack(words).astype(np.uint64, copy=False)


class UnitChoice:
    """Chooses k rows of each unit in any order of the rows: those whose hash is the smallest.

    The hash is of what a row holds, so rows that share it are the same row, and which is chosen
    does not matter. What is chosen of a unit depends on its own rows alone: that is what makes one
    unit change at most k rows of what is fitted (docs/theory/row-order.md, Lemma 76). Rows without
    an id may be anybody's, so they are left out: taken as one unit, the removal of one person's row
    would let another's in. The memory grows with the rows.
    """

    def __init__(self, most: int) -> None:
        self._most, self._ids = most, UnitIds()
        self._owners = [np.empty((0, 2), dtype=np.uint64)]
        self._digests = [np.empty((0, 2), dtype=np.uint64)]

    def known(self, ids: Objects, keep: Mask | None) -> Mask:
        """Return which of the next rows may be chosen: never one whose id is "", which is none."""
        found = np.asarray(ids != "", dtype=np.bool_)
        if keep is not None:
            found &= keep
        self._owners.append(self._ids.words(ids[found]))
        return found

    def look(self, X: Array, y: Array) -> None:
        """Remember a hash of each of the rows that may be chosen."""
        self._digests.append(row_digests(X, y))

    def chosen(self) -> Mask:
        """Return a flag for each row that was looked at, and keep the owners of the chosen."""
        owners = np.concatenate(self._owners)
        ranks = unit_ranks(np.column_stack((owners, np.concatenate(self._digests))))
        found = np.asarray(ranks < self._most)
        self._owners = [owners[found]]
        return found

    @property
    def keys(self) -> Words:
        """Return two words for each chosen row: they are the same for rows of one unit."""
        return self._owners[0]
