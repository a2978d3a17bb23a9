"""Rows in many parts: each part answers by itself, and whole-number answers add up.

A point is not a state that parts share but a list of moves from zero, which goes along with every
question. A part keeps the fit of its rows as far as it has followed the moves; a part that is new,
or was lost and read again, follows them from the start. So the answers are the same whatever
becomes of the parts on the way.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from dpscreen._core.arrays import Integers
from dpscreen.rows.lattice import (
    ExactDesign,
    ExactPoint,
    FitCount,
    LatticeDesign,
    LatticePoint,
    RelaxedRule,
)
from dpscreen.rows.loss import SQUARED, Loss
from dpscreen.rows.mixed import MixedRows, RowCount
from dpscreen.rows.sums import LEVELS, ShortRows

Move = tuple[int, int]


@dataclass(frozen=True)
class Walk:
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
    walk: Walk | None = None

    needs_columns = frozenset(
        {
            "clipped_sums",
            "relaxed_sums",
            "row_total",
            "short_gradient",
            "short_gram",
            "short_products",
            "column_squares",
            "curved_gram",
            "length_counts",
        }
    )

    @property
    def looks_at_columns(self) -> bool:
        """Whether the features have to be read, or residuals are enough."""
        return self.name in self.needs_columns


def asked(subject: Any, question: Question) -> Integers:
    """Return the answer of a design or of a point, as a new array."""
    return np.atleast_1d(np.array(getattr(subject, question.name)(*question.args)))


class RowPart:
    """Some of the rows, in memory, and how far they have followed the latest walk."""

    def __init__(self, design: LatticeDesign) -> None:
        self.design = design
        self._number: int | None = None
        self._done = 0

    def answer(self, question: Question) -> Integers:
        """Follow the walk of the question, then answer it."""
        walk = question.walk
        return asked(self.design if walk is None else self._followed(walk), question)

    def _followed(self, walk: Walk) -> LatticePoint:
        if walk.number != self._number or len(walk.moves) < self._done:
            self._point = LatticePoint(self.design, walk.scale, grain=walk.grain)
            self._number, self._done = walk.number, 0
        self._point.scale = walk.scale
        for feature, grains in walk.moves[self._done :]:
            self._point.move(feature, grains)
        self._done = len(walk.moves)
        return self._point


class PartedDesign(ExactDesign):
    """Rows on the lattice, in parts that only answer questions."""

    def __init__(self, n_features: int, loss: Loss = SQUARED) -> None:
        self.n_features, self.loss = n_features, loss
        self._numbers = count()

    @abstractmethod
    def total(self, question: Question) -> Integers:
        """Return the sum of the answers of all parts."""

    def _point(self, scale: float, grain: int) -> PartedPoint:
        return PartedPoint(self, scale, number=next(self._numbers), grain=grain)

    def column_squares(self) -> Integers:
        """Return Σ_i k_ij² for every feature."""
        return self.total(Question("column_squares", ()))

    def length_counts(self, n_features: int, edges: Integers) -> Integers:
        """Return how many rows have ‖k_i‖² in each cell between edges, over the first features."""
        return self.total(Question("length_counts", (n_features, edges)))

    def short_gram(self, short: ShortRows | MixedRows) -> Integers:
        """Return Σxxᵀ over short rows, in whole numbers of 1/2^28."""
        return self.total(Question("short_gram", (short,)))


class PartedPoint(ExactPoint):
    """Weights, and the moves that parts follow."""

    def __init__(self, design: PartedDesign, scale: float, *, number: int, grain: int = 1) -> None:
        super().__init__(design.n_features, scale, grain=grain)
        self.design = design
        self._number = number
        self._moves: list[Move] = []

    def _moved(self, feature: int, grains: int) -> None:
        self._moves.append((feature, grains))

    def _total(self, name: str, *args: Any) -> Integers:
        walk = Walk(self._number, tuple(self._moves), self.scale, self._grain)
        return self.design.total(Question(name, args, walk))

    def clipped_sums(self, clip: float, cell_clip: int = LEVELS) -> Integers:
        """Return Σ ψ_c(r_i) x_i for every feature."""
        return self._total("clipped_sums", clip, cell_clip)

    def residual_total(self, clip: float) -> int:
        """Return the sum of the residual levels."""
        return int(self._total("residual_total", clip)[0])

    def residual_counts(self, clip: float) -> Integers:
        """Return how many residual levels have size 0, 1, …, 2^14."""
        return self._total("residual_counts", clip)

    def fit_total(self, count: FitCount, *args: Any) -> Integers:
        """Return Σ count(fitted values, targets, *args) over parts of the rows."""
        return self._total("fit_total", count, *args)

    def relaxed_sums(self, rule: RelaxedRule) -> Integers:
        """Return Σψk for every feature, then Σφψ and Σφ², φ the fitted levels."""
        return self._total("relaxed_sums", rule)

    def short_gradient(self, clip: float, n_features: int, row_norm: float) -> Integers:
        """Return `clipped_sums` of the first features, of rows shortened to `row_norm`."""
        return self._total("short_gradient", clip, n_features, row_norm)

    def short_products(self, clip: float, short: ShortRows) -> Integers:
        """Return Σψx over short rows, each with its residual ψ shrunk alike, in 1/2^28."""
        return self._total("short_products", clip, short)

    def row_total(self, count: RowCount, clip: float, mixed: MixedRows, *args: Any) -> Integers:
        """Return Σ count(rows, ‖x‖², residuals, *args) over parts, residuals shrunk alike."""
        return self._total("row_total", count, clip, mixed, *args)

    def curved_gram(self, short: ShortRows | MixedRows) -> Integers:
        """Return Σ4p(1 − p)xxᵀ over short rows, in whole numbers of 1/2^28."""
        return self._total("curved_gram", short)
