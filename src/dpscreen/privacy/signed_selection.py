"""Exact selection of a signed candidate ±g_j without an exponential for each of them.

The law is P(j, ±) ∝ exp(±g_j/β), exactly, for whole g and a fraction β. Features are sorted in
classes by |g_j|, of a width between β/4 and β/2, and a class has one bound H for all its members
(docs/scale.md, Lemma 20):

1. Each signed candidate gets the whole number H of its class, certainly at least
   2^B·exp((its score − E)/β), with E the upper edge of the highest class that is not empty.
2. A uniform whole number below ΣH falls to a class, a sign, a member and a place v in its share.
   The member is counted in the order of the features, so the same words choose the same candidate
   however the scores are stored.
3. The member is accepted if v + U < 2^B·exp((its score − E)/β), decided as in `selection`.

Only the number of members in the upper classes is needed, and the one member that was proposed:
scores that keep such counts up to date are never visited one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from types import ModuleType
from typing import NamedTuple, Protocol

import numpy as np

from dpscreen._core.arrays import Integers
from dpscreen.privacy.lazy import below_exponential
from dpscreen.privacy.noise import Noise
from dpscreen.privacy.selection import certain_weight, weight_bits, workable

MOST_SCORE = 2**62
"""Scores lie strictly between ± this, so that no edge of a class reaches 2^63."""
MOST_CLASSES = 512
"""No more classes than this are ever told apart below the top one."""
_MOST_SHIFT = 61
_HOPELESS = 62.0


@cache
def _kernels() -> ModuleType:
    """Return the compiled code, which is loaded when first needed."""
    from dpscreen.privacy import _kernels

    return _kernels


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


class ArrayScores:
    """Signed scores in an array: counted in one pass, and located in another."""

    def __init__(self, values: Integers) -> None:
        if not values.size:
            raise ValueError("there is nothing to choose from.")
        self._values = values
        self._shift = 0

    @property
    def size(self) -> int:
        """Return how many there are."""
        return self._values.size

    def classes(self, shift: int, depth: int) -> tuple[int, Integers]:
        """Return the highest class, and the counts of the classes from it down."""
        self._shift = shift
        top, counts = _kernels().count_classes(self._values, shift, depth, MOST_SCORE)
        if top < 0:
            raise OverflowError("signed scores must lie between -2^62 and 2^62.")
        return top, counts

    def member(self, lowest: int, highest: int, rank: int) -> int:
        """Return the index of the rank-th score in these classes."""
        return int(_kernels().member_of(self._values, self._shift, lowest, highest, rank))

    def score(self, index: int) -> int:
        """Return one score."""
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
        self.rate = _kernels().LOG2_E / workable(scale)
        self.shift = class_shift(scale)
        # Members of lower classes weigh less than 2^−61 of those at the top.
        hopeless = _HOPELESS / self.rate / 2.0**self.shift
        self.depth = int(min(hopeless + 2, MOST_CLASSES, 2 ** (63 - self.shift)))

    def bounds(self, n_features: int) -> ClassBounds:
        """Return the bounds for this many features, two candidates each."""
        n_bits = weight_bits(2 * n_features)
        if n_bits not in self._bounds:
            aligned, opposite = np.empty((2, self.depth), dtype=np.int64)
            _kernels().class_bounds(self.rate, n_bits, self.shift, aligned, opposite)
            self._bounds[n_bits] = ClassBounds(n_bits, aligned, opposite)
        return self._bounds[n_bits]

    def __call__(self, scores: SignedScores, noise: Noise) -> Signed:
        """Return one candidate."""
        bounds = self.bounds(scores.size)
        top, counts = scores.classes(self.shift, self.depth)
        shares = top, bounds.aligned, bounds.opposite
        total = _kernels().class_total(counts, scores.size, *shares)
        while True:
            number = noise.below(total)
            low, high, side, rank, place = _kernels().locate_class(counts, *shares, number)
            feature = scores.member(low, high, rank)
            score = scores.score(feature)
            if self._accepted(top, side * abs(score), place, bounds.n_bits, noise):
                return Signed(feature, side if score >= 0 else -side)

    def _accepted(self, top: int, score: int, place: int, n_bits: int, noise: Noise) -> bool:
        """Whether v + U < 2^B·exp((score − E)/β): by the candidate's own bound, or exactly."""
        edge = ((top + 1) << self.shift) - 1
        bound = _kernels().own_bound(edge, score, self.rate, n_bits)
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
