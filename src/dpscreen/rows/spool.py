"""Rows that are read once, kept for the passes of a fit: in memory or in a scratch file.

A stream may end with its first reading, a database may return its rows in another order the next
time, a file may change, and text takes long to read. The scratch file has no name: it is removed
from its folder (`TMPDIR`) as soon as it is made, and its space is free when the rows are let go of.
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Generator, Iterable, Iterator, Sequence
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
        self._rows = np.empty((0, n_features))
        self._ends = [0]
        self._file: Any = None
        targets = [np.empty(0)]
        for X, y in parts:
            self._append(np.ascontiguousarray(X, dtype=np.float64), in_memory)
            targets.append(np.array(y, dtype=np.float64))
        self._resize(self._ends[-1] if self.fits_memory else 0)
        self._target = np.concatenate(targets)
        self._kept: Mask | None = None
        self._in_memory = in_memory
        self.keys: Words | None = None
        """Two words that identify the unit of each row, where units have several."""

    def _append(self, X: Array, in_memory: int) -> None:
        first, end = self._ends[-1], self._ends[-1] + len(X)
        self._ends.append(end)
        if self._file is None and 8 * self.n_features * end > in_memory:
            self._file = tempfile.TemporaryFile(prefix="dpscreen-", buffering=0)  # noqa: SIM115
            weakref.finalize(self, self._file.close)
            self._rows[:first].tofile(self._file)
            self._resize(0)
        if self._file is not None:
            X.tofile(self._file)
            return
        if end > len(self._rows):
            self._resize(end + end // 8)
        self._rows[first:end] = X

    def _resize(self, n_rows: int) -> None:
        # In place: the system moves pages, not rows. Nobody holds a view here by now.
        self._rows.resize((n_rows, self.n_features), refcheck=False)

    def keep(self, chosen: Mask) -> None:
        """Leave out all rows but the chosen, one flag for each."""
        self._target = self._target[chosen]
        if not self.fits_memory:
            self._kept = chosen
            return
        ends = [0]
        for rows in self._parts():
            kept = self._rows[rows][chosen[rows]]
            ends.append(ends[-1] + len(kept))
            self._rows[ends[-2] : ends[-1]] = kept
        self._ends = ends
        self._resize(ends[-1])

    def _parts(self) -> Iterator[slice]:
        return map(slice, self._ends, self._ends[1:])

    @property
    def fits_memory(self) -> bool:
        """Whether no row had to go to the scratch file."""
        return self._file is None

    def arrays(self) -> tuple[Array, Array]:
        """Return the features and the target of rows that fit in memory, and keep none."""
        rows, self._rows = self._rows, np.empty((0, self.n_features))
        return rows, self._target

    def chunks(self, features: Sequence[int] | None) -> Generator[Array, None, None]:
        for rows in self._parts():
            block = self._rows[rows] if self.fits_memory else np.array(self._mapped()[rows])
            if self._kept is not None:
                block = block[self._kept[rows]]
            yield block if features is None else np.ascontiguousarray(block[:, list(features)])

    def grouped(self) -> tuple[Spool, Owners]:
        """Return the rows with those of each unit together, in parts of whole units."""
        assert self.keys is not None, "nobody said whose the rows are"
        digests, start = [np.empty((0, 2), dtype=np.uint64)], 0
        for block in self.chunks(None):
            digests.append(row_digests(block, self._target[start : start + len(block)]))
            start += len(block)
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
        return np.asarray((self._rows if self.fits_memory else self._mapped())[places])

    def _mapped(self) -> Array:
        """Return the scratch file as an array, of which parts are copied into memory."""
        return np.memmap(self._file, np.float64, "r", shape=(self._ends[-1], self.n_features))

    def target(self) -> Array:
        return self._target
