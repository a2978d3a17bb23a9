"""The bounds on which the proof of the selection rests (docs/theory/exactness.md, Lemma 9).

They are checked against 60-digit arithmetic, for drawn and for worst-case inputs. The law is
tested in test_selection_law.py.
"""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpscreen.privacy import SeededNoise, kernels
from dpscreen.privacy.sampling import certain_weight, exponential_mechanism, weight_bits
from tools.laws import true_weight
from tools.noise import Script


def bounds_of(scores, scale, n_bits=None):
    """Return H_j, the block sums, the total and B, as `exponential_mechanism` computes them."""
    scores = np.asarray(scores, dtype=np.int64)
    n_bits = weight_bits(scores.size) if n_bits is None else n_bits
    blocks = np.empty(-(-scores.size // kernels.BLOCK), dtype=np.int64)
    rate, top = kernels.LOG2_E / float(scale), int(scores.max())
    total = kernels.block_sums(scores, top, rate, n_bits, blocks)
    bounds = np.array([kernels.own_bound(top, score, rate, n_bits) for score in scores])
    assert bounds.sum() == total
    return bounds, blocks, int(total), n_bits


# --- more candidates than the finest weights allow -------------------------------------------


def test_weights_stay_below_2_to_63_for_every_number_of_candidates():
    for exponent in range(41):
        for count in (2**exponent, 2 ** (exponent + 1) - 1):
            n_bits = weight_bits(count)
            most = int(2**n_bits * (1 + Fraction(1, 2**16)) * (1 + Fraction(1, 2**27))) + 3
            assert count * most < 2**63
            assert n_bits >= 20
    assert [weight_bits(count) for count in (1, 2**20, 2**21 - 1, 2**21, 2**22)] == [
        40, 40, 40, 39, 38,
    ]  # fmt: skip


# --- the bounds of the proof -----------------------------------------------------------------

fractions = st.builds(Fraction, st.integers(1, 2**70), st.integers(1, 2**70))


def assert_bounds_hold(scores, scale, n_bits=None):
    bounds, blocks, total, n_bits = bounds_of(scores, scale, n_bits)
    top = max(int(score) for score in scores)
    for score, bound in zip(scores, bounds.tolist(), strict=True):
        weight = true_weight(top - int(score), scale, n_bits)
        assert bound >= weight
        assert certain_weight(bound) <= weight
        assert bound <= weight * (1 + mpmath.mpf(2) ** -15.9) + 2
    assert total == sum(bounds.tolist())
    assert blocks.tolist() == [
        sum(bounds[i : i + 512].tolist()) for i in range(0, len(scores), 512)
    ]


@given(st.lists(st.integers(-(2**62) + 1, 2**62), min_size=1, max_size=40), fractions)
@example([0, -43, -42], Fraction(1))
@example([2**62, -(2**62) + 1], Fraction(2**62))
@example([0, -1], Fraction(1, 10**300))
@example([0, -(2**62)], Fraction(10**300))
def test_weights_lie_within_their_bounds(scores, scale):
    assert_bounds_hold(scores, scale)


@given(st.lists(st.integers(-1000, 0), min_size=1, max_size=40), st.integers(1, 400), fractions)
def test_weights_of_moderate_size_lie_within_their_bounds(scores, spread, jitter):
    # scale ≈ 1000/spread, so exponents fill the range in which the weight matters
    scale = Fraction(1000, spread) * (1 + Fraction(1, 2**30) / (1 + jitter))
    assert_bounds_hold([0, *scores], scale)


@given(st.integers(0, 62), st.integers(-(2**30), 2**30), st.integers(1, 2**62), st.integers(21, 40))
def test_weights_next_to_powers_of_two_lie_within_their_bounds(power, offset, difference, n_bits):
    # difference·log2(e)/scale is within 2^−30 of a whole number: f is next to 0 or to 1
    with mpmath.workdps(60):
        exponent = mpmath.mpf(power) + mpmath.mpf(offset) / mpmath.mpf(2) ** 60
        if exponent <= 0:
            return
        quotient = difference / mpmath.log(2) / exponent
        scale = Fraction(int(mpmath.floor(quotient * 2**40)), 2**40)
    if scale > 0:
        assert_bounds_hold([0, -difference], scale, n_bits)


def test_the_polynomial_is_within_2_to_minus_28_of_2_to_the_f():
    # On a grid of step h a function with |e''| ≤ M is off its linear interpolant by ≤ h²M/8; M
    # itself is bounded by the grid and |e'''|, for which the coefficients give a crude bound.
    coefficients = [mpmath.mpf(getattr(kernels, f"_C{i}")) for i in range(7)]
    step = mpmath.mpf(2) ** -9
    with mpmath.workdps(50):
        log2 = mpmath.log(2)

        def derivative(f, k):
            terms = [mpmath.ff(i, k) * coefficients[i] * f ** (i - k) for i in range(k, 7)]
            return sum(terms) - log2**k * mpmath.mpf(2) ** f

        grid = [i * step for i in range(2**9 + 1)]
        third = derivative(mpmath.mpf(1), 3) + 2 * log2**3 * 2  # |p'''| + |(2^f)'''|, both rising
        second = max(abs(derivative(f, 2)) for f in grid) + step / 2 * third
        error = max(abs(derivative(f, 0)) for f in grid) + step**2 / 8 * second
    assert min(coefficients) > 0
    assert error <= mpmath.mpf(2) ** -28
    assert error >= mpmath.mpf(2) ** -29  # the bound is not far from the truth


def test_the_constant_log2_e_is_correctly_rounded():
    # It is computed by the platform's log2, and the analysis allows an error of one part in 2^52.
    with mpmath.workdps(40):
        assert abs(kernels.LOG2_E * mpmath.log(2) - 1) <= mpmath.mpf(2) ** -52


# --- every number falls to one candidate -----------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 511, 512, 513, 1023, 1024, 1025, 1537])
def test_numbers_at_the_edges_of_shares_and_blocks(size):
    scores, scale = np.random.default_rng(size).integers(-400, 400, size), Fraction(10)
    bounds, blocks, _, n_bits = bounds_of(scores, scale)
    ends = np.cumsum(bounds)
    fixed = scores, int(scores.max()), kernels.LOG2_E / float(scale), n_bits, blocks
    for index in {0, 1, 510, 511, 512, 513, 1023, 1024, size - 2, size - 1} & set(range(size)):
        first, last = int(ends[index] - bounds[index]), int(ends[index]) - 1
        assert kernels.locate(*fixed, first) == (index, 0, bounds[index])
        assert kernels.locate(*fixed, last) == (index, bounds[index] - 1, bounds[index])


# --- the rare exact path ---------------------------------------------------------------------


def test_words_that_land_next_to_the_true_weight_are_decided_by_the_next_word():
    scores, scale = np.array([0, -1]), Fraction(1)
    bounds, _, total, n_bits = bounds_of(scores, scale)
    edge, next_word = divmod(int(true_weight(1, scale, n_bits + 64)), 2**64)
    assert certain_weight(int(bounds[1])) < edge < bounds[1]

    def proposal(place):  # the word for which a uniform number below the total is this one
        return int(bounds[0]) + place << 64 - total.bit_length()

    def drawn(*words):
        script = Script([*words, 0])  # a last proposal falls to candidate 0 and is accepted
        return exponential_mechanism(scores, scale, script), len(script.left)

    assert drawn(proposal(0)) == (1, 1)
    assert drawn(proposal(edge - 1)) == (1, 1)  # exactly, without another word
    assert drawn(proposal(edge + 1)) == (0, 0)  # refused, without another word
    assert drawn(proposal(edge), next_word - 1) == (1, 1)
    assert drawn(proposal(edge), next_word + 1) == (0, 0)
    assert drawn(proposal(edge), next_word, 0) == (1, 1)  # and another one, where that is open
    assert drawn(proposal(edge), next_word, 2**64 - 1) == (0, 0)
    assert drawn(proposal(int(bounds[1]) - 1)) == (0, 0)


def test_the_top_candidate_is_accepted_exactly_below_its_weight():
    scores = np.array([7])
    bounds, _, total, n_bits = bounds_of(scores, Fraction(1))
    assert bounds[0] > 2**n_bits
    shift = 64 - total.bit_length()
    script = Script([2**n_bits << shift, int(bounds[0]) - 1 << shift, (2**n_bits - 1) << shift])
    assert exponential_mechanism(scores, Fraction(1), script) == 0
    assert script.left == []  # the first two were refused, the third accepted without more words


def test_hopeless_candidates_keep_their_chance_of_being_looked_at():
    # H = 1 where the weight is below 2^−62: proposed, then refused unless 64 more bits are zero.
    scores, scale = np.array([0, -(10**4)]), Fraction(1)
    bounds, _, total, _ = bounds_of(scores, scale)
    assert bounds[1] == 1
    word = int(bounds[0]) << 64 - total.bit_length()
    script = Script([word, 5, 0])
    assert exponential_mechanism(scores, scale, script) == 0
    assert script.left == []


# --- refusals --------------------------------------------------------------------------------


@pytest.mark.parametrize("scores", [np.empty(0, dtype=np.int64)])
def test_no_candidates_are_refused(scores):
    with pytest.raises(ValueError, match="zero-size"):
        exponential_mechanism(scores, Fraction(1), Script([]))


@pytest.mark.parametrize("scale", [Fraction(-1), Fraction(-1, 3)])
def test_a_negative_scale_is_refused(scale):
    with pytest.raises(ValueError, match="positive"):
        exponential_mechanism(np.array([3, 2, 1]), scale, SeededNoise("negative"))
