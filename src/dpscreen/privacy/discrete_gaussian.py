"""The discrete Gaussian on the whole numbers, sampled exactly.

P(k) ∝ exp(−k²/(2σ²)), with σ² a fraction, after Canonne, Kamath and Steinke (2020), Algorithms 2
and 3: a discrete Laplace proposal, accepted by a Bernoulli(exp(−x)). Every such coin compares a
uniform with exp(−x): in float64 with a margin that outweighs all rounding, and exactly in the rare
case in which the margin leaves it open (`lazy`). So the law is exact, at the speed of arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import isqrt

import numpy as np

from dpscreen._core.arrays import Array, Integers, Mask
from dpscreen.privacy.lazy import below_exponential
from dpscreen.privacy.noise import Noise

# A proposal of 60 standard deviations, which never happens, would still fit 64 bits.
MOST_VARIANCE = 2**110
LEAST_VARIANCE = Fraction(1, 10**300)
_COIN_BITS = 52
# 2^52·exp(−x) is off by a few units where x comes from a float64 division (docs/exactness.md).
_MARGIN = 2.0**12


def discrete_gaussian(variance: Fraction, count: int, noise: Noise) -> Integers:
    """Return `count` independent draws with parameter σ² = `variance`."""
    if not LEAST_VARIANCE < variance < MOST_VARIANCE:
        raise ValueError("the standard deviation must lie between 1e-150 and 2^55 units.")
    draws = np.empty(count, dtype=np.int64)
    open_places = np.arange(count)
    while open_places.size:
        proposals, valid = _discrete_laplace(_laplace_scale(variance), open_places.size, noise)
        accepted = valid & _accept(proposals, variance, noise)
        draws[open_places[accepted]] = proposals[accepted]
        open_places = open_places[~accepted]
    return draws


def _laplace_scale(variance: Fraction) -> int:
    """Return t = ⌊σ⌋ + 1, with which about half of the proposals or more are accepted."""
    return isqrt(variance.numerator // variance.denominator) + 1


def _accept(proposals: Integers, variance: Fraction, noise: Noise) -> Mask:
    """Toss coins with probability exp(−(|k| − σ²/t)²/(2σ²))."""
    centre = variance / _laplace_scale(variance)
    distance = np.abs(proposals) - float(centre)

    def exactly(i: int) -> Fraction:
        return (abs(int(proposals[i])) - centre) ** 2 / (2 * variance)

    return _coins(distance * distance / (2 * float(variance)), exactly, noise)


def _discrete_laplace(t: int, count: int, noise: Noise) -> tuple[Integers, Mask]:
    """Propose discrete Laplace draws of scale t; the second array says which of them are valid."""
    remainders = _below(t, count, noise)
    valid = _coins(remainders / t, lambda i: Fraction(int(remainders[i]), t), noise)
    sizes = remainders + t * _geometric(count, noise)
    negative = noise.signs(count) < 0
    return np.where(negative, -sizes, sizes), valid & ~(negative & (sizes == 0))


def _geometric(count: int, noise: Noise) -> Integers:
    """Return how many coins of probability 1/e fall heads before the first tails."""
    heads = np.zeros(count, dtype=np.int64)
    going = np.arange(count)
    while going.size:
        going = going[_coins(np.ones(going.size), lambda _: Fraction(1), noise)]
        heads[going] += 1
    return heads


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
