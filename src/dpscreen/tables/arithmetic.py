"""Expressions on declared columns: their value in each row, and an interval that encloses it.

`values` is a function of one row, with the same bits wherever the row stands: the four operations
and the square root are rounded correctly, and other functions are Arrow's. `enclosure` follows from
declared bounds alone, by interval arithmetic with outward rounding; where a variable occurs more
than once its range is subdivided, and the union of the parts' enclosures is returned.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

from dpscreen._core.arrays import Array, Mask
from dpscreen._core.messages import message
from dpscreen.tables.columns.base import FUNCTIONS

Interval = tuple[Array, Array]
"""Lower and upper ends: one interval for each box of the variables."""
N_BOXES = 4096
"""Most boxes into which the ranges of repeated variables are divided."""
_ROUNDING = 8 * np.finfo(np.float64).eps
"""Relative error of a function, several times what the libraries have."""


class OutsideDomain(ValueError):
    """A function is not defined for every value that the declared bounds allow."""


def _outward(low: Array, high: Array) -> Interval:
    return np.nextafter(low, -np.inf), np.nextafter(high, np.inf)


def _sum(a: Interval, b: Interval) -> Interval:
    """Add intervals; an end whose rounding error is 0, by the two-sum identity, stays."""
    ends = []
    for one, other, out in zip(a, b, (-np.inf, np.inf), strict=True):
        total = one + other
        part = total - one
        exact = (one - (total - part)) + (other - part) == 0
        ends.append(np.where(exact, total, np.nextafter(total, out)))
    return ends[0], ends[1]


def _product(a: Interval, b: Interval) -> Interval:
    """Multiply intervals; an end that is a product of 0, of ±1 or of small integers is exact."""
    low, high = [], []
    for one, other in product(a, b):
        found = one * other
        units = (np.abs(one) == 1) | (np.abs(other) == 1) | (one == 0) | (other == 0)
        whole = (one == np.floor(one)) & (other == np.floor(other)) & (np.abs(found) < 2.0**53)
        low.append(np.where(units | whole, found, np.nextafter(found, -np.inf)))
        high.append(np.where(units | whole, found, np.nextafter(found, np.inf)))
    return np.minimum.reduce(low), np.maximum.reduce(high)


class Expression(ABC):
    """A function of the features of one row."""

    @abstractmethod
    def values(self, given: Mapping[str, Array]) -> Array:
        """Return the value in each row."""

    @abstractmethod
    def over(self, boxes: Mapping[str, Interval]) -> Interval:
        """Return an enclosure of the values in each box; raise `OutsideDomain` if there is none."""

    def occurrences(self) -> Counter[str]:
        """Count how often the enclosure uses each variable."""
        parts = (one for one in vars(self).values() if isinstance(one, Expression))
        return sum((one.occurrences() for one in parts), Counter())

    def enclosure(self, bounds: Mapping[str, tuple[float, float]]) -> tuple[float, float]:
        """Return an interval that has every value, as computed, for variables within bounds."""
        counts = self.occurrences()
        repeated = [name for name, count in counts.items() if count > 1]
        n_parts = math.floor(N_BOXES ** (1 / max(len(repeated), 1)) + 1e-9)
        edges = [
            np.linspace(*bounds[name], (n_parts if name in repeated else 1) + 1) for name in counts
        ]
        lows, highs = (
            np.meshgrid(*(one[:-1] for one in edges)),
            np.meshgrid(*(one[1:] for one in edges)),
        )
        boxes = {
            name: (low.ravel(), high.ravel())
            for name, low, high in zip(counts, lows, highs, strict=True)
        }
        with np.errstate(all="ignore"):
            low, high = self.over(boxes)
        found = float(np.min(low)), float(np.max(high))
        if not all(map(math.isfinite, found)):
            raise OutsideDomain(message("domain.overflow"))
        return found


@dataclass(frozen=True)
class Constant(Expression):
    """A number of the formula."""

    value: float

    def values(self, _given: Mapping[str, Array]) -> Array:
        return np.array(self.value)

    def over(self, _boxes: Mapping[str, Interval]) -> Interval:
        return np.array(self.value), np.array(self.value)


@dataclass(frozen=True)
class Feature(Expression):
    """A declared column as a number, or one level of it as 0 or 1."""

    name: str

    def values(self, given: Mapping[str, Array]) -> Array:
        return given[self.name]

    def over(self, boxes: Mapping[str, Interval]) -> Interval:
        return boxes[self.name]

    def occurrences(self) -> Counter[str]:
        return Counter([self.name])


def _quotient(a: Interval, b: Interval) -> Interval:
    if np.any((b[0] <= 0) & (b[1] >= 0)):
        raise OutsideDomain(message("domain.denominator"))
    every = [one / other for one, other in product(a, b)]
    return _outward(np.minimum.reduce(every), np.maximum.reduce(every))


def _truth(certain: Mask, possible: Mask) -> Interval:
    return certain.astype(np.float64), possible.astype(np.float64)


def _compared(truth: Callable[..., Mask]) -> Callable[..., Array]:
    """Return a comparison that is missing where one side is."""
    return lambda a, b: np.where(np.isnan(a) | np.isnan(b), np.nan, truth(a, b))


_BINARY: dict[str, tuple[Callable[..., Array], Callable[[Interval, Interval], Interval]]] = {
    "+": (np.add, _sum),
    "-": (np.subtract, lambda a, b: _sum(a, (-b[1], -b[0]))),
    "*": (np.multiply, _product),
    "/": (np.divide, _quotient),
    "minimum": (np.minimum, lambda a, b: (np.minimum(a[0], b[0]), np.minimum(a[1], b[1]))),
    "maximum": (np.maximum, lambda a, b: (np.maximum(a[0], b[0]), np.maximum(a[1], b[1]))),
    "<": (_compared(np.less), lambda a, b: _truth(a[1] < b[0], a[0] < b[1])),
    "<=": (_compared(np.less_equal), lambda a, b: _truth(a[1] <= b[0], a[0] <= b[1])),
}


@dataclass(frozen=True)
class Operation(Expression):
    """Two expressions joined by one of `_BINARY`; a comparison is 0 or 1."""

    sign: str
    left: Expression
    right: Expression

    def values(self, given: Mapping[str, Array]) -> Array:
        found = _BINARY[self.sign][0](self.left.values(given), self.right.values(given))
        return np.asarray(found, dtype=np.float64)

    def over(self, boxes: Mapping[str, Interval]) -> Interval:
        return _BINARY[self.sign][1](self.left.over(boxes), self.right.over(boxes))


@dataclass(frozen=True)
class Function(Expression):
    """An increasing function of an expression."""

    name: str
    of: Expression

    def values(self, given: Mapping[str, Array]) -> Array:
        return FUNCTIONS[self.name].apply(np.atleast_1d(self.of.values(given)))

    def over(self, boxes: Mapping[str, Interval]) -> Interval:
        low, high = self.of.over(boxes)
        function = FUNCTIONS[self.name]
        if not function.allows(low):
            where = {"relation": function.relation, "lowest": function.lowest}
            raise OutsideDomain(message("domain.function", name=self.name, **where))
        ends = function.apply(np.atleast_1d(low)), function.apply(np.atleast_1d(high))
        slack = [_ROUNDING * np.abs(one) for one in ends]
        return _outward(ends[0] - slack[0], ends[1] + slack[1])


@dataclass(frozen=True)
class Power(Expression):
    """A whole, positive power, by repeated multiplication."""

    of: Expression
    exponent: int

    def values(self, given: Mapping[str, Array]) -> Array:
        found = base = self.of.values(given)
        for _ in range(self.exponent - 1):
            found = found * base
        return found

    def over(self, boxes: Mapping[str, Interval]) -> Interval:
        """Return the power of both ends; of an even one, 0 where the base may be 0."""
        low, high = self.of.over(boxes)
        first, last = self._end(low), self._end(high)
        if self.exponent % 2:
            return first[0], last[1]
        least = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(first[0], last[0]))
        return np.maximum(least, 0.0), np.maximum(first[1], last[1])

    def _end(self, base: Array) -> Interval:
        found = one = (base, base)
        for _ in range(self.exponent - 1):
            found = _product(found, one)
        return found


@dataclass(frozen=True)
class Pieces(Expression):
    """A piecewise polynomial, such as one column of a B-spline basis.

    From `breaks[k]` to `breaks[k + 1]` it is the polynomial in x - breaks[k] whose coefficients are
    `coefficients[k]`, the highest power first. Columns of a basis are between 0 and 1; rounding
    that leads beyond is clipped.
    """

    of: Expression
    breaks: tuple[float, ...]
    coefficients: tuple[tuple[float, ...], ...]

    def values(self, given: Mapping[str, Array]) -> Array:
        """Return the polynomial of each row's piece, by Horner's rule."""
        x = np.asarray(self.of.values(given))
        last = len(self.coefficients) - 1
        piece = np.clip(np.searchsorted(self.breaks, x, side="right") - 1, 0, last)
        table = np.array(self.coefficients)[piece]
        moved, found = x - np.array(self.breaks)[piece], np.zeros_like(x)
        for place in range(table.shape[-1]):
            found = found * moved + table[..., place]
        return np.clip(found, 0.0, 1.0)

    def over(self, boxes: Mapping[str, Interval]) -> Interval:
        """Return the union over the pieces that a box touches."""
        low, high = (np.atleast_1d(one) for one in self.of.over(boxes))
        least, most = np.full(low.shape, np.inf), np.full(low.shape, -np.inf)
        for k, coefficients in enumerate(self.coefficients):
            start = -np.inf if k == 0 else self.breaks[k]
            end = np.inf if k == len(self.coefficients) - 1 else self.breaks[k + 1]
            touched = (low <= end) & (high >= start)
            a, b = np.maximum(low, start), np.minimum(high, end)
            moved = _sum((a, b), (np.array(-self.breaks[k]),) * 2)
            found: Interval = np.zeros(low.shape), np.zeros(low.shape)
            for one in coefficients:
                found = _sum(_product(found, moved), (np.array(one),) * 2)
            least = np.where(touched, np.minimum(least, found[0]), least)
            most = np.where(touched, np.maximum(most, found[1]), most)
        return np.clip(least, 0.0, 1.0), np.clip(most, 0.0, 1.0)

    def occurrences(self) -> Counter[str]:
        """Count the variable twice: Horner's rule on intervals overestimates."""
        return super().occurrences() + super().occurrences()
