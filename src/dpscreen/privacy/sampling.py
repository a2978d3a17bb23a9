"""Comparing a uniform number with exp(−x) exactly, by revealing only the digits that are needed.

Both sides are enclosed: the uniform by the binary digits drawn so far, the exponential by decimal
arithmetic of growing precision. Digits are added until the enclosures part, which happens with
probability one; there is no cap after which a guess would be made.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from math import isqrt
from typing import NamedTuple, Protocol

import numpy as np

from dpscreen._core.arrays import Array, Integers, Loops, Mask
from dpscreen._core.messages import message
from dpscreen.privacy.noise import Noise

kernels = Loops("dpscreen.privacy.kernels")


def below_exponential(digits: int, n_digits: int, x: Fraction, noise: Noise) -> bool:
    """Whether U < exp(−x), for a uniform U that begins with the given binary digits.

    `digits` / 2^`n_digits` ≤ U < (`digits` + 1) / 2^`n_digits` is what is known of U so far; more
    is drawn from the noise if that does not decide. `digits` may exceed 2^`n_digits`: U is then
    uniform on a longer interval.
    """
    precision = 25
    while True:
        if x >= n_digits > 0:
            # Then exp(−x) < 2^−n_digits, and a huge exponential need not be written out.
            if digits:
                return False
            digits, n_digits = noise.word(), n_digits + 64
            continue
        low, high = exponential_enclosure(x, precision)
        if digits + 1 <= low * 2**n_digits:
            return True
        if digits >= high * 2**n_digits:
            return False
        digits, n_digits = digits << 64 | noise.word(), n_digits + 64
        precision *= 2


def exponential_enclosure(x: Fraction, precision: int) -> tuple[Fraction, Fraction]:
    """Return numbers on either side of exp(−x), about `precision` decimal digits apart.

    `Decimal.exp` is correctly rounded, so one unit in the last place, on top of the rounding of x,
    encloses the truth.
    """
    if x == 0:
        return Fraction(1), Fraction(1)
    context = Context(prec=precision, Emin=-(10**15), Emax=10**15)
    quotient = context.divide(Decimal(-x.numerator), Decimal(x.denominator))
    below = context.next_minus(context.exp(context.next_minus(quotient)))
    above = context.next_plus(context.exp(context.next_plus(quotient)))
    return Fraction(below), Fraction(above)


def exponential_mechanism(scores: Integers, scale: Fraction, noise: Noise) -> int:
    """Return index j with probability exactly exp(scores[j]/scale) / Σ exp(scores/scale)."""
    top, n_bits = int(scores.max()), weight_bits(scores.size)
    rate = kernels.LOG2_E / workable(scale)
    blocks = np.empty(-(-scores.size // kernels.BLOCK), dtype=np.int64)
    total = int(kernels.block_sums(scores, top, rate, n_bits, blocks))
    while True:
        number = noise.below(total)
        index, place, bound = kernels.locate(scores, top, rate, n_bits, blocks, number)
        if place < certain_weight(int(bound)):
            return int(index)
        x = Fraction(top - int(scores[index])) / scale
        if below_exponential(int(place), n_bits, x, noise):
            return int(index)


def workable(scale: Fraction) -> float:
    """Return the scale as a float, if scores divided by it stay distinct and finite."""
    try:
        number = float(scale)
    except OverflowError:
        number = math.inf
    if not 1e-300 <= number <= 1e300:
        raise ValueError(message("mechanism.scale"))
    return number


def weight_bits(count: int) -> int:
    """Return B: as fine as weights can be while their sum stays below 2^63."""
    return min(40, 61 - count.bit_length())


def certain_weight(bound: int) -> int:
    """Return a number that the true weight certainly reaches, given its upper bound H.

    H ≤ (1 + 2^−15.9)·weight + 2, unless the weight is below 2^−62, where the result is negative.
    """
    return bound - (bound >> 14) - 4


MOST_SCORE = 2**62
"""Scores lie strictly between ± this, so that no edge of a class reaches 2^63."""
MOST_CLASSES = 512
"""No more classes than this are ever distinguished below the top one."""
_MOST_SHIFT = 61
_HOPELESS = 62.0


class Signed(NamedTuple):
    """The candidate sign · g_feature."""

    feature: int
    sign: int


class SignedScores(Protocol):
    """Whole numbers g_0, g_1, … that can be counted by class |g| >> shift."""

    @property
    def size(self) -> int:
        """Return how many there are."""

    def classes(self, shift: int, depth: int) -> tuple[int, Integers]:
        """Return the highest class that is not empty, and the counts of the classes from it down.

        There are `depth` counts, or as many as there are classes down to 0.
        """

    def member(self, lowest: int, highest: int, rank: int) -> int:
        """Return the index of the rank-th score, by index, in these classes (ends included)."""

    def score(self, index: int) -> int:
        """Return g_index."""


class ArrayScores(SignedScores):
    """Signed scores in an array: counted in one pass, and located in another."""

    def __init__(self, values: Integers) -> None:
        if not values.size:
            raise ValueError("there is nothing to choose from.")
        self._values = values
        self._shift = 0

    @property
    def size(self) -> int:
        return self._values.size

    def classes(self, shift: int, depth: int) -> tuple[int, Integers]:
        self._shift = shift
        top, counts = kernels.count_classes(self._values, shift, depth, MOST_SCORE)
        if top < 0:
            raise OverflowError("signed scores must lie between -2^62 and 2^62.")
        return top, counts

    def member(self, lowest: int, highest: int, rank: int) -> int:
        return int(kernels.member_of(self._values, self._shift, lowest, highest, rank))

    def score(self, index: int) -> int:
        return int(self._values[index])


@dataclass(frozen=True, eq=False)
class ClassBounds:
    """The bounds H by class, for weights in whole numbers of 2^−B; beyond them H = 1."""

    n_bits: int
    aligned: Integers
    opposite: Integers


class SignedSampler:
    """Draws from P(j, ±) ∝ exp(±g_j/scale). Classes and bounds depend on the scale alone."""

    def __init__(self, scale: Fraction) -> None:
        self._bounds: dict[int, ClassBounds] = {}
        self.scale = scale
        self.rate = kernels.LOG2_E / workable(scale)
        self.shift = class_shift(scale)
        # Members of lower classes weigh less than 2^−61 of those at the top.
        hopeless = _HOPELESS / self.rate / 2.0**self.shift
        self.depth = int(min(hopeless + 2, MOST_CLASSES, 2 ** (63 - self.shift)))

    def bounds(self, n_features: int) -> ClassBounds:
        """Return the bounds for this many features, two candidates each."""
        n_bits = weight_bits(2 * n_features)
        if n_bits not in self._bounds:
            aligned, opposite = np.empty((2, self.depth), dtype=np.int64)
            kernels.class_bounds(self.rate, n_bits, self.shift, aligned, opposite)
            self._bounds[n_bits] = ClassBounds(n_bits, aligned, opposite)
        return self._bounds[n_bits]

    def __call__(self, scores: SignedScores, noise: Noise) -> Signed:
        """Return one candidate."""
        bounds = self.bounds(scores.size)
        top, counts = scores.classes(self.shift, self.depth)
        shares = top, bounds.aligned, bounds.opposite
        total = kernels.class_total(counts, scores.size, *shares)
        while True:
            number = noise.below(total)
            low, high, side, rank, place = kernels.locate_class(counts, *shares, number)
            feature = scores.member(low, high, rank)
            score = scores.score(feature)
            if self._accepted(top, side * abs(score), place, bounds.n_bits, noise):
                return Signed(feature, side if score >= 0 else -side)

    def _accepted(self, top: int, score: int, place: int, n_bits: int, noise: Noise) -> bool:
        """Whether v + U < 2^B·exp((score − E)/β): by the candidate's own bound, or exactly."""
        edge = ((top + 1) << self.shift) - 1
        bound = kernels.own_bound(edge, score, self.rate, n_bits)
        if place < certain_weight(bound):
            return True
        if place >= bound:
            return False
        return below_exponential(place, n_bits, (edge - score) / self.scale, noise)


def class_shift(scale: Fraction) -> int:
    """Return s: classes are 2^s wide, more than β/4 and at most β/2, or 1 if β is below 2."""
    doublings = scale.numerator.bit_length() - scale.denominator.bit_length()
    if scale < Fraction(2) ** doublings:
        doublings -= 1
    return min(max(doublings - 1, 0), _MOST_SHIFT)


# At most e^−256 is the probability of a proposal beyond 64 bits (docs/theory/exactness.md).
MOST_VARIANCE = 2**110
LEAST_VARIANCE = Fraction(1, 10**300)
_COIN_BITS = 52
# 2^52·exp(−x) is off by a few units where x comes from a float64 division
# (docs/theory/exactness.md).
_MARGIN = 2.0**12


def discrete_gaussian(variance: Fraction, count: int, noise: Noise) -> Integers:
    """Return `count` independent draws with parameter σ² = `variance`."""
    if not LEAST_VARIANCE < variance < MOST_VARIANCE:
        raise ValueError("the standard deviation must lie between 1e-150 and 2^55 units.")
    # With this scale t = ⌊σ⌋ + 1 about half of the proposals or more are accepted.
    t = isqrt(variance.numerator // variance.denominator) + 1
    draws = np.empty(count, dtype=np.int64)
    open_places = np.arange(count)
    while open_places.size:
        proposals, valid = _discrete_laplace(t, open_places.size, noise)
        accepted = valid & _accept(proposals, t, variance, noise)
        draws[open_places[accepted]] = proposals[accepted]
        open_places = open_places[~accepted]
    return draws


def _accept(proposals: Integers, t: int, variance: Fraction, noise: Noise) -> Mask:
    """Toss coins with probability exp(−(|k| − σ²/t)²/(2σ²))."""
    centre = variance / t
    distance = np.abs(proposals) - float(centre)

    def exactly(i: int) -> Fraction:
        return (abs(int(proposals[i])) - centre) ** 2 / (2 * variance)

    return _coins(distance * distance / (2 * float(variance)), exactly, noise)


def _discrete_laplace(t: int, count: int, noise: Noise) -> tuple[Integers, Mask]:
    """Propose discrete Laplace draws of scale t; the second array says which of them are valid."""
    remainders = _below(t, count, noise)
    valid = _coins(remainders / t, lambda i: Fraction(int(remainders[i]), t), noise)
    # How many coins of probability 1/e fall heads before the first tails.
    heads, going = np.zeros(count, dtype=np.int64), np.arange(count)
    while going.size:
        going = going[_coins(np.ones(going.size), lambda _: Fraction(1), noise)]
        heads[going] += 1
    sizes = remainders + t * heads
    negative = noise.signs(count) < 0
    return np.where(negative, -sizes, sizes), valid & ~(negative & (sizes == 0))


def _below(limit: int, count: int, noise: Noise) -> Integers:
    """Return uniform whole numbers below `limit` < 2^62."""
    shift = np.uint64(64 - limit.bit_length())
    numbers = noise.words(count) >> shift
    while (over := numbers >= limit).any():
        numbers = np.where(over, noise.words(count) >> shift, numbers)
    return numbers.astype(np.int64)


def _coins(x: Array, exactly: Callable[[int], Fraction], noise: Noise) -> Mask:
    """Toss one coin of probability exp(−x) for each x; `exactly(i)` is x[i] without rounding."""
    digits = (noise.words(x.size) >> np.uint64(64 - _COIN_BITS)).astype(np.int64)
    threshold = np.exp(-x) * 2.0**_COIN_BITS
    heads: Mask = digits < threshold
    # At a distance of one margin neither rounding nor the digits still hidden can matter.
    for i in np.flatnonzero(np.abs(digits - threshold) <= _MARGIN):
        heads[i] = below_exponential(int(digits[i]), _COIN_BITS, exactly(int(i)), noise)
    return heads
