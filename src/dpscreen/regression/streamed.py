"""Rows that are read anew for every question about their features: data larger than memory.

Kept in memory are three numbers a row: the target, the fit, and while it is needed the residual's
level. A step reads all features once; a question about residuals alone reads at most the features
that have moved since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from dpscreen._core.arrays import Array, Integers, Narrow
from dpscreen.regression.lattice import LEVELS, LatticeDesign, LatticePoint
from dpscreen.regression.parts import Move, PartedDesign, Question, Walk, asked

Read = Callable[[Sequence[int] | None], Iterator[Narrow]]
"""Features, or None for all columns, to their lattice columns part by part, in a fixed order."""


class RowsChanged(RuntimeError):
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

    def __init__(self, read: Read, target: Array, *, n_columns: int, constant: bool) -> None:
        super().__init__(n_columns)
        self._read = read
        self._target = target
        self._constant = n_columns - 1 if constant else None
        self._fit = np.zeros(len(target), dtype=np.int64)
        self._number: int | None = None
        self._done = 0

    def total(self, question: Question) -> Integers:
        """Answer from one pass over the rows, or from the residuals alone."""
        pending = self._pending(question.walk)
        if question.looks_at_columns:
            return self._scanned(question, pending)
        self._follow(pending)
        rows = LatticeDesign(np.empty((0, len(self._target)), dtype=np.int16), self._target)
        return asked(self._point(rows, slice(None), question.walk), question)

    def _pending(self, walk: Walk | None) -> list[Move]:
        """Return the moves that the fit has still to follow; those of the constant it follows."""
        if walk is None:
            return []
        if walk.number != self._number or len(walk.moves) < self._done:
            self._fit[:] = 0
            self._number, self._done = walk.number, 0
        moves = walk.moves[self._done :]
        self._done = len(walk.moves)
        self._fit += LEVELS * sum(grains for j, grains in moves if j == self._constant)
        return [move for move in moves if move[0] != self._constant]

    def _follow(self, pending: list[Move]) -> None:
        """Bring the fit up to date, reading the moved features only."""
        moved = sorted({feature for feature, _ in pending})
        if not moved:
            return
        places = {feature: k for k, feature in enumerate(moved)}
        for where, columns in self._parts(moved):
            _move(self._fit[where], columns, [(places[j], grains) for j, grains in pending])

    def _scanned(self, question: Question, pending: list[Move]) -> Integers:
        answers: Any = 0
        for where, columns in self._parts(None):
            _move(self._fit[where], columns, pending)
            rows = LatticeDesign(columns, self._target[where])
            subject = rows if question.walk is None else self._point(rows, where, question.walk)
            answers = answers + asked(subject, question)
        return np.asarray(answers, dtype=np.int64)

    def _point(self, rows: LatticeDesign, where: slice, walk: Walk | None) -> LatticePoint:
        assert walk is not None, "only points have residuals"
        return LatticePoint(rows, walk.scale, grain=walk.grain, fit=self._fit[where])

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


def _move(fit: Integers, columns: Narrow, moves: list[Move]) -> None:
    from dpscreen.regression import _kernels as kernels

    for place, grains in moves:
        kernels.add_column(fit, columns[place], grains)
