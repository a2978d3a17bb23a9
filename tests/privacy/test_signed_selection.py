"""The bounds of selection by classes on ±g (docs/theory/sparse.md, Lemma 20).

They are checked against 60 digits, and scores that count their classes in another way must choose
the same, word for word. The law is tested in test_selection_law.py.
"""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpscreen.privacy import ZCDP, NoisyMax, SeededNoise, SignedNoisyMax, sampling
from dpscreen.privacy.sampling import (
    MOST_SCORE,
    ArrayScores,
    SignedSampler,
    certain_weight,
    class_shift,
    weight_bits,
)
from tools.laws import true_weight
from tools.noise import Script


class Listed:
    """Signed scores that count their classes by plain Python."""

    def __init__(self, values):
        self.values = [int(value) for value in values]
        self.size = len(self.values)

    def classes(self, shift, depth):
        self.numbers = [abs(value) >> shift for value in self.values]
        top, counted = max(self.numbers), Counter(self.numbers)
        return top, np.array([counted[top - i] for i in range(min(depth, top + 1))])

    def member(self, lowest, highest, rank):
        inside = [j for j, number in enumerate(self.numbers) if lowest <= number <= highest]
        return inside[rank]

    def score(self, index):
        return self.values[index]


def as_array(values):
    return ArrayScores(np.asarray(values, dtype=np.int64))


# --- one answer, however the scores are stored -----------------------------------------------

values_of = st.lists(st.integers(-(2**61), 2**61), min_size=1, max_size=60)
small_values = st.lists(st.integers(-300, 300), min_size=1, max_size=60)
scales = st.builds(Fraction, st.integers(1, 2**66), st.integers(1, 2**30))
small_scales = st.builds(Fraction, st.integers(1, 900), st.integers(1, 9))


@given(values_of | small_values, scales | small_scales, st.integers(0, 2**32))
@example([2**62 - 1, -(2**62) + 1], Fraction(10**300), 0)
@example([2**62 - 1, 0], Fraction(1, 10**300), 0)
def test_every_representation_chooses_the_same_from_the_same_words(values, scale, seed):
    sampler, ours, theirs = SignedSampler(scale), SeededNoise(seed), SeededNoise(seed)
    for _ in range(5):
        chosen = sampler(as_array(values), ours)
        assert chosen == sampler(Listed(values), theirs)
        assert ours.word() == theirs.word()


# --- the bounds of the proof -----------------------------------------------------------------


def class_bound(sampler, bounds, *, top, value, side):
    number = abs(value) >> sampler.shift
    table, place = (bounds.aligned, top - number) if side > 0 else (bounds.opposite, top + number)
    return int(table[place]) if place < len(table) else 1


@given(values_of | small_values, scales | small_scales)
@example([2**62 - 1, -(2**61)], Fraction(10**300))
@example([2**62 - 1, 1, 0], Fraction(2**63))
@example([1, 0], Fraction(1, 10**300))
def test_the_bound_of_a_class_is_at_least_the_weight_of_its_members(values, scale):
    sampler = SignedSampler(scale)
    bounds = sampler.bounds(len(values))
    top = max(abs(value) for value in values) >> sampler.shift
    edge = (top + 1 << sampler.shift) - 1
    for value in values:
        for side in (1, -1):
            score = side * abs(value)
            bound = class_bound(sampler, bounds, top=top, value=value, side=side)
            own = sampling.kernels.own_bound(edge, score, sampler.rate, bounds.n_bits)
            weight = true_weight(edge - score, scale, bounds.n_bits)
            assert score <= edge < 2**63
            assert bound >= weight
            assert own >= weight
            assert certain_weight(own) <= weight


@given(scales | small_scales)
def test_classes_are_between_a_quarter_and_half_of_the_scale_wide(scale):
    width = 2 ** class_shift(scale)
    assert width == 1 or 4 * width > scale or width == 2**61
    assert width == 1 or 2 * width <= scale


@given(scales | small_scales)
def test_most_proposals_are_accepted(scale):
    # The lowest member of a class has at least e^−½ of the weight that its class bounds.
    sampler = SignedSampler(scale)
    assert (2**sampler.shift - 1) / scale <= Fraction(1, 2)
    bounds = sampler.bounds(100)
    lowest = true_weight(2**sampler.shift - 1, scale, bounds.n_bits)
    assert lowest / int(bounds.aligned[0]) > 0.606


def test_the_total_stays_below_2_to_63():
    for exponent in range(0, 39, 3):
        size = 2**exponent
        bounds = SignedSampler(Fraction(10)).bounds(size)
        assert bounds.n_bits == weight_bits(2 * size)
        assert 2 * size * max(bounds.aligned.max(), bounds.opposite.max()) < 2**63


def test_words_next_to_the_true_weight_are_decided_by_the_next_word():
    values, scale = [1], Fraction(1)
    sampler = SignedSampler(scale)
    bounds = sampler.bounds(1)
    aligned, opposite = int(bounds.aligned[0]), int(bounds.opposite[2])
    total = aligned + opposite
    edge, next_word = divmod(int(true_weight(2, scale, bounds.n_bits + 64)), 2**64)
    assert certain_weight(opposite) < edge < opposite

    def drawn(place, *words):
        number = (aligned + place) << 64 - total.bit_length()
        script = Script([number, *words, 0])  # a last proposal falls to +g and is accepted
        return sampler(as_array(values), script).sign, len(script.left)

    assert drawn(edge - 1) == (-1, 1)
    assert drawn(edge + 1) == (1, 0)
    assert drawn(edge, next_word - 1) == (-1, 1)
    assert drawn(edge, next_word + 1) == (1, 0)
    assert drawn(opposite - 1) == (1, 0)


# --- the mechanism ---------------------------------------------------------------------------


def test_it_costs_what_noisy_max_on_both_signs_costs():
    ours = SignedNoisyMax.of_cost(ZCDP(0.3), sensitivity=2.0, unit=0.5)
    theirs = NoisyMax.of_cost(ZCDP(0.3), sensitivity=2.0, unit=0.5)
    assert ours.cost == theirs.cost <= ZCDP(0.3)
    assert ours.scale == theirs.scale
    assert ours.sampler.scale == theirs.scale_in_units


@pytest.mark.parametrize("value", [MOST_SCORE, -MOST_SCORE, -(2**63), 2**63 - 1])
def test_scores_that_would_overflow_are_refused(value):
    with pytest.raises(OverflowError, match="2\\^62"):
        SignedNoisyMax(1.0, 3.0)(np.array([0, value]), SeededNoise(0))


@pytest.mark.parametrize(
    ("scores", "kind", "why"),
    [(np.empty(0, np.int64), ValueError, "nothing to choose"), (np.ones(1), TypeError, "whole")],
)
def test_scores_that_are_not_there_or_not_whole_are_refused(scores, kind, why):
    with pytest.raises(kind, match=why):
        SignedNoisyMax(1.0, 3.0)(scores, SeededNoise(0))


def test_an_unworkable_scale_is_refused_before_anything_is_booked():
    for scale in (Fraction(-1), Fraction(1, 10**301), Fraction(10**301)):
        with pytest.raises(ValueError, match="scale"):
            SignedSampler(scale)
    with pytest.raises(ValueError, match="scale"):
        SignedNoisyMax(1.0, 1e200, 1e-200)
