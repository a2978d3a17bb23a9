"""Rows in many parts: each part answers by itself, and whole-number answers add up.

A point is not a state that parts share but a list of moves from zero, which goes along with every
question. A part keeps the fit of its rows as far as it has followed the moves; a part that is new,
or was lost and read again, follows them from the start. So the answers are the same whatever
becomes of the parts on the way.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from dpscreen._core.arrays import Integers
from dpscreen.rows.lattice import ExactDesign, ExactPoint, LatticeDesign, LatticePoint
from dpscreen.rows.loss import SQUARED, Loss

Move = tuple[int, int]
"""A feature, and by how many grains its weight moves."""


def as_arrays(moves: Sequence[Move]) -> tuple[Integers, Integers]:
    """Return the features of moves, and their grains."""
    features, grains = np.array(moves, dtype=np.int64).reshape(-1, 2).T
    return features, grains


@dataclass(frozen=True)
class PointMoves:
    """Which point is meant: moves in grains from zero, and the scale of a whole weight."""

    number: int
    moves: Sequence[Move]
    scale: float
    grain: int


@dataclass(frozen=True)
class Question:
    """A method of a design, or of a point of it, by name, with its arguments."""

    name: str
    args: tuple[Any, ...]
    point: PointMoves | None = None


NEED_COLUMNS = {
    *("clipped_sums", "relaxed_sums", "row_total", "short_gradient", "short_gram"),
    *("short_products", "column_squares", "curved_gram", "curved_total"),
}
"""Questions for which the features have to be read; for others, residuals are enough."""


def asked(subject: Any, question: Question) -> Integers:
    """Return the answer of a design or of a point, as a new array."""
    return np.atleast_1d(np.array(getattr(subject, question.name)(*question.args)))


class RowPart:
    """Some of the rows, in memory, and how far they have followed the moves to the latest point."""

    def __init__(self, design: LatticeDesign) -> None:
        self.design = design
        self._number: int | None = None
        self._done = 0

    def answer(self, question: Question) -> Integers:
        """Follow the moves to the point of the question, then answer it."""
        point = question.point
        if point is None:
            return asked(self.design, question)
        if point.number != self._number or len(point.moves) < self._done:
            self._point = LatticePoint(self.design, point.scale, grain=point.grain)
            self._number, self._done = point.number, 0
        self._point.scale = point.scale
        self._point.move(*as_arrays(point.moves[self._done :]))
        self._done = len(point.moves)
        return asked(self._point, question)


def _of_all_parts(name: str) -> Callable[..., Any]:
    """Return a method that puts the question of that name to all parts, and adds up the answers."""

    def method(subject: PartedDesign | PartedPoint, *args: Any) -> Integers:
        return subject.ask(name, *args)

    return method


class PartedDesign(ExactDesign):
    """Rows on the lattice, in parts that only answer questions."""

    def __init__(self, n_features: int, loss: Loss = SQUARED) -> None:
        self.n_features, self.loss = n_features, loss
        self._numbers = count()

    @abstractmethod
    def total(self, question: Question) -> Integers:
        """Return the sum of the answers of all parts."""

    def start(self, scale: float, grain: int = 1) -> PartedPoint:
        return PartedPoint(self, scale, number=next(self._numbers), grain=grain)

    def ask(self, name: str, *args: Any) -> Integers:
        """Put a question about the rows to all parts."""
        return self.total(Question(name, args))

    column_squares = _of_all_parts("column_squares")
    short_gram = _of_all_parts("short_gram")


class PartedPoint(ExactPoint):
    """Weights, and the moves that parts follow."""

    def __init__(self, design: PartedDesign, scale: float, *, number: int, grain: int = 1) -> None:
        super().__init__(design.n_features, scale, grain=grain)
        self.design = design
        self._number = number
        self._moves: list[Move] = []

    def _moved(self, features: Integers, grains: Integers) -> None:
        self._moves.extend(zip(features.tolist(), grains.tolist(), strict=True))

    def ask(self, name: str, *args: Any) -> Integers:
        """Put a question about this point to all parts."""
        point = PointMoves(self._number, tuple(self._moves), self.scale, self._grain)
        return self.design.total(Question(name, args, point))

    def residual_total(self, clip: float) -> int:
        return int(self.ask("residual_total", clip)[0])

    clipped_sums = _of_all_parts("clipped_sums")
    residual_counts = _of_all_parts("residual_counts")
    fit_total = _of_all_parts("fit_total")
    relaxed_sums = _of_all_parts("relaxed_sums")
    short_gradient = _of_all_parts("short_gradient")
    short_products = _of_all_parts("short_products")
    row_total = _of_all_parts("row_total")
    curved_gram = _of_all_parts("curved_gram")
    curved_total = _of_all_parts("curved_total")
