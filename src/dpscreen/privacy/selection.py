"""The exponential mechanism, sampled exactly: index j with probability proportional to exp(q_j/β).

The scores are whole numbers and β is a fraction, so nothing is rounded on the way in. Sampling is
by rejection, not by a race of noises (docs/exactness.md):

1. Each candidate gets a whole number H_j that is certainly at least 2^B · exp((q_j − max q)/β).
2. A uniform whole number below ΣH_j falls to a candidate j and to a place v in its share.
3. j is accepted if v + U < 2^B · exp((q_j − max q)/β), with U uniform on [0, 1). H_j is so tight
   that one integer comparison nearly always decides; otherwise the comparison is made exactly.

A proposal falls to j in proportion to H_j and is accepted in proportion to weight/H_j, so the law
is the exponential mechanism whatever the H_j are: their slack costs time, never exactness. It is
the law of adding Gumbel noise of scale β and taking the largest.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dpscreen._core.arrays import Integers
from dpscreen.privacy.lazy import below_exponential
from dpscreen.privacy.noise import Noise


def exponential_mechanism(scores: Integers, scale: Fraction, noise: Noise) -> int:
    """Return index j with probability exactly exp(scores[j]/scale) / Σ exp(scores/scale)."""
    from dpscreen.privacy import _kernels as kernels  # compiled code: loaded when first needed

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
    """Return the scale as a float, if scores divided by it can be told apart and stay finite."""
    try:
        number = float(scale)
    except OverflowError:
        number = math.inf
    if not 1e-300 <= number <= 1e300:
        raise ValueError("the scale must be positive, and between 1e-300 and 1e300 units.")
    return number


def weight_bits(count: int) -> int:
    """Return B: as fine as weights can be while their sum stays below 2^63."""
    return min(40, 61 - count.bit_length())


def certain_weight(bound: int) -> int:
    """Return a number that the true weight certainly reaches, given its upper bound H.

    H ≤ (1 + 2^−15.9)·weight + 2, unless the weight is below 2^−62, where the result is negative.
    """
    return bound - (bound >> 14) - 4
