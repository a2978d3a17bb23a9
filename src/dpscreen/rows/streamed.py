"""Rows that are read anew for every question about their features: data larger than memory.

Kept in memory are three numbers a row: the target, the fit, and while it is needed the residual's
level. A step reads all features once; a question about residuals alone reads at most the features
that have moved since.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from dpscreen._core.arrays import Array, Integers, Mask, Narrow
from dpscreen._core.files import one_ahead
from dpscreen.rows.lattice import LatticeDesign, LatticePoint
from dpscreen.rows.loss import SQUARED, Loss
from dpscreen.rows.owners import Owners
from dpscreen.rows.parts import (
    NEED_COLUMNS,
    Move,
    PartedDesign,
    PointMoves,
    Question,
    as_arrays,
    asked,
)
from dpscreen.rows.source import Count, PublicUnits, RowsLost, RowSource
from dpscreen.rows.sums import LEVELS

Read = Callable[[Sequence[int] | None], Iterator[Narrow]]
"""Features, or None for all columns, to their lattice columns part by part, in a fixed order."""


class RowsChanged(RowsLost):
    """The rows are not those that the fit began with. What was booked stays booked."""

    def __init__(self) -> None:
        super().__init__(
            "the rows changed while they were being fitted. Nothing is released; a budget that was "
            "booked in a ledger stays booked."
        )


class StreamedDesign(PartedDesign):
    """Rows on the lattice that come part by part, whenever their features are needed.

    The last of `n_columns` columns is a constant one if `constant` is true.
    """

    def __init__(
        self,
        read: Read,
        target: Array,
        *,
        n_columns: int,
        constant: bool,
        loss: Loss = SQUARED,
        owners: Owners | None = None,
    ) -> None:
        super().__init__(n_columns, loss)
        self._owners = owners
        self._read = read
        self._target = target
        self._constant = n_columns - 1 if constant else None
        self._fit = np.zeros(len(target), dtype=np.int64)
        self._number: int | None = None
        self._done = 0

    def total(self, question: Question) -> Integers:
        """Answer from one pass over the rows, or from the residuals alone."""
        point, pending = question.point, self._pending(question.point)
        if question.name in NEED_COLUMNS:
            answers: Any = 0
            for where, columns in self._parts(None):
                owners = None if self._owners is None else self._owners.part(where)
                rows = LatticeDesign(columns, self._target[where], self.loss, owners)
                rows.move(self._fit[where], *as_arrays(pending))
                subject = rows if point is None else self._point_of(rows, where, point)
                answers = answers + asked(subject, question)
            return np.asarray(answers, dtype=np.int64)
        assert point is not None, "only points have residuals"
        moved = sorted({feature for feature, _ in pending})
        if moved:  # no other features are read
            places = {feature: k for k, feature in enumerate(moved)}
            for where, columns in self._parts(moved):
                moves = [(places[j], grains) for j, grains in pending]
                rows = LatticeDesign(columns, self._target[where])
                rows.move(self._fit[where], *as_arrays(moves))
        columns = np.empty((0, len(self._target)), dtype=np.int16)
        rows = LatticeDesign(columns, self._target, self.loss)
        return asked(self._point_of(rows, slice(None), point), question)

    def _pending(self, point: PointMoves | None) -> list[Move]:
        """Return the moves that the fit has still to follow; those of the constant it follows."""
        if point is None:
            return []
        if point.number != self._number or len(point.moves) < self._done:
            self._fit[:] = 0
            self._number, self._done = point.number, 0
        moves = point.moves[self._done :]
        self._done = len(point.moves)
        self._fit += LEVELS * sum(grains for j, grains in moves if j == self._constant)
        return [move for move in moves if move[0] != self._constant]

    def _point_of(self, rows: LatticeDesign, where: slice, to: PointMoves) -> LatticePoint:
        return LatticePoint(rows, to.scale, grain=to.grain, fit=self._fit[where])

    def _parts(self, features: Sequence[int] | None) -> Iterator[tuple[slice, Narrow]]:
        first = 0
        for columns in self._read(features):
            where = slice(first, first + columns.shape[1])
            if where.stop > len(self._target):
                raise RowsChanged
            yield where, columns
            first = where.stop
        if first != len(self._target):
            raise RowsChanged


ROWS_PER_CHUNK = 2**16
NOT_FINITE = (
    "Input X or y contains NaN or infinity. Fill it by a rule that does not look at the data."
)


class ChunkReader(ABC):
    """Rows on disk, in the user's units and all finite, always in the same chunks."""

    n_features: int
    feature_names: tuple[str, ...] | None

    @abstractmethod
    def chunks(self, features: Sequence[int] | None) -> Generator[Array, None, None]:
        """Yield the chosen features, or all, of some rows at a time."""

    @abstractmethod
    def target(self) -> Array:
        """Return the target of all rows."""


class StreamedRows(RowSource):
    """Rows that stay on disk.

    `watch(done, expected)` is called after every pass, and closed at the end if it can be.
    """

    def __init__(
        self,
        reader: ChunkReader,
        *,
        watch: Callable[[int, int], None] | None = None,
        owners: Owners | None = None,
    ) -> None:
        self.reader, self.owners = reader, owners
        self._watch = watch
        self._passes, self._expected = 0, 0
        self._y = reader.target()
        self.n_features, self.n_rows = reader.n_features, len(self._y)

    def grouped(self) -> StreamedRows:
        """Return the rows with those of each unit together."""
        raise ValueError("nobody said whose these rows are.")

    def announce(self, passes: int) -> None:
        self._expected = self._passes + passes

    def close(self) -> None:
        """Notify observers that it is over."""
        getattr(self._watch, "close", lambda: None)()

    def target_total(self, count: Count, *args: Any) -> Integers:
        return count(self._y, *args)

    def feature_total(self, count: Count, *args: Any) -> Integers:
        total: Any = 0
        for chunk in self._chunks(None):
            total = total + count(chunk, *args)
        return np.asarray(total, dtype=np.int64)

    def lattice(self, units: PublicUnits) -> StreamedDesign:
        """Return the rows on the lattice, made anew in every pass."""

        def read(features: Sequence[int] | None) -> Iterator[Narrow]:
            for chunk in self._chunks(features):
                yield units.lattice_columns(chunk, features)

        return StreamedDesign(
            read,
            units.centred_target(self._y),
            n_columns=units.n_candidates,
            constant=units.constant,
            loss=units.loss,
            owners=self.owners,
        )

    def where(self, chosen: Mask) -> StreamedRows:
        """Return the chosen rows; all are read, the others are left out."""
        return StreamedRows(ChosenRows(self.reader, chosen), watch=self._watch)

    def _chunks(self, features: Sequence[int] | None) -> Iterator[Array]:
        with closing(one_ahead(self.reader.chunks(features))) as chunks:
            yield from chunks
        if features is None:
            self._passes += 1
            if self._watch:
                self._watch(self._passes, self._expected)


class ChosenRows(ChunkReader):
    """Some of the rows of another reader."""

    def __init__(self, reader: ChunkReader, chosen: Mask) -> None:
        self.reader, self.chosen = reader, chosen
        self.n_features, self.feature_names = reader.n_features, reader.feature_names

    def chunks(self, features: Sequence[int] | None) -> Generator[Array, None, None]:
        first = 0
        for chunk in self.reader.chunks(features):
            flags = self.chosen[first : first + len(chunk)]
            if len(flags) != len(chunk):
                raise RowsChanged
            yield chunk[flags]
            first += len(chunk)

    def target(self) -> Array:
        return self.reader.target()[self.chosen]


class MappedArrays(ChunkReader):
    """Arrays that the operating system maps from disk."""

    def __init__(self, X: Array, y: Array, feature_names: tuple[str, ...] | None = None) -> None:
        self.X, self.y, self.feature_names = X, y, feature_names
        self.n_features = int(X.shape[1])

    def chunks(self, features: Sequence[int] | None) -> Generator[Array, None, None]:
        """Yield rows as float64 copies, so that no page of the map stays in use."""
        chosen = slice(None) if features is None else list(features)
        for first in range(0, len(self.X), ROWS_PER_CHUNK):
            chunk = np.array(self.X[first : first + ROWS_PER_CHUNK, chosen], dtype=np.float64)
            if not np.isfinite(chunk).all():  # in every pass: the file may change below the map
                raise RowsChanged
            yield chunk

    def target(self) -> Array:
        """Return the target, once every number has been looked over."""
        target = np.array(self.y, dtype=np.float64)
        finite = bool(np.isfinite(target).all())
        try:
            for _ in self.chunks(None):
                pass
        except RowsChanged:  # of the first pass, before anything is booked
            finite = False
        if not finite:
            raise ValueError(NOT_FINITE)
        return target
