"""Rows that can be read only once, kept for the passes of a fit: in memory or in a scratch file.

A stream may end with its first reading, and a database may return its rows in another order the
next time, so a source of either kind is read once. The scratch file has no name: it is removed from
its folder (`TMPDIR`) as soon as it is made, and its space is free when the rows are let go of.
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Generator, Iterable, Sequence
from typing import Any

import numpy as np

from dpscreen._core.arrays import Array, Integers, Mask, Words
from dpscreen.rows.owners import Owners, row_digests
from dpscreen.rows.streamed import ChunkReader

ROWS_PER_PART = 2**16


class Spool(ChunkReader):
    """Rows that came in parts; beyond `in_memory` bytes they are in a file."""

    def __init__(
        self,
        parts: Iterable[tuple[Array, Array]],
        n_features: int,
        names: tuple[str, ...] | None,
        *,
        in_memory: int,
    ) -> None:
        self.n_features, self.feature_names = n_features, names
        self._blocks: list[Array] = []
        self._lengths: list[int] = []
        self._file: Any = None
        targets, held = [np.empty(0)], 0
        for X, y in parts:
            self._blocks.append(np.array(X, dtype=np.float64, order="C"))
            self._lengths.append(len(y))
            targets.append(np.array(y, dtype=np.float64))
            held += self._blocks[-1].nbytes
            if held > in_memory or self._file is not None:
                self._spill()
        self._target = np.concatenate(targets)
        self._kept: Mask | None = None
        self._in_memory = in_memory
        self.keys: Words | None = None
        """Two words that identify the unit of each row, where units have several."""

    def keep(self, chosen: Mask) -> None:
        """Leave out all rows but the chosen, one flag for each."""
        self._kept, self._target = chosen, self._target[chosen]

    @property
    def fits_memory(self) -> bool:
        """Whether no row had to go to the scratch file."""
        return self._file is None

    def arrays(self) -> tuple[Array, Array]:
        """Return the features and the target of rows that fit in memory, and keep none."""
        blocks, self._blocks = self._blocks, []
        rows = np.concatenate([np.empty((0, self.n_features)), *blocks])
        return rows if self._kept is None else rows[self._kept], self._target

    def chunks(self, features: Sequence[int] | None) -> Generator[Array, None, None]:
        place = 0
        for k, length in enumerate(self._lengths):
            rows = slice(place, place + length)
            block = self._blocks[k] if self.fits_memory else np.array(self._mapped()[rows])
            if self._kept is not None:
                block = block[self._kept[rows]]
            place += length
            yield block if features is None else np.ascontiguousarray(block[:, list(features)])

    def grouped(self) -> tuple[Spool, Owners]:
        """Return the rows with those of each unit together, in parts of whole units."""
        assert self.keys is not None, "nobody said whose the rows are"
        ends = np.cumsum([0, *(len(block) for block in self.chunks([0]))])
        digests = [
            row_digests(block, self._target[start:end])
            for block, start, end in zip(self.chunks(None), ends, ends[1:], strict=False)
        ]
        order, owners = Owners.of(np.column_stack((self.keys, np.concatenate(digests))))
        places = order if self._kept is None else np.flatnonzero(self._kept)[order]
        parts = (
            (self._at(places[part]), self._target[order[part]])
            for part in owners.parts(ROWS_PER_PART)
        )
        made = Spool(parts, self.n_features, self.feature_names, in_memory=self._in_memory)
        return made, owners

    def _at(self, places: Integers) -> Array:
        """Return the rows at these places, in the order of arrival and before any choice."""
        if self.fits_memory:
            self._blocks = [np.concatenate(self._blocks)]  # parts are asked for one by one
            self._lengths = [len(self._blocks[0])]
            return self._blocks[0][places]
        return np.asarray(self._mapped()[places])

    def _mapped(self) -> Array:
        """Return the scratch file as an array, of which parts are copied into memory."""
        shape = sum(self._lengths), self.n_features
        return np.memmap(self._file, np.float64, "r", shape=shape)

    def target(self) -> Array:
        return self._target

    def _spill(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="dpscreen-", buffering=0)  # noqa: SIM115
            weakref.finalize(self, self._file.close)
        for block in self._blocks:
            block.tofile(self._file)
        self._blocks = []
