"""Selection by classes is the exponential mechanism on ±g (docs/theory/sparse.md, Lemma 20).

The law is compared with brute-force probabilities by chi-square: false-alarm rate 1e-6 for each
test, and a scale off by 1.1 is rejected. The bounds that the proof needs are checked against 60
digits, and scores that count their classes in another way must choose the same, word for word.
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
from tools.laws import chi_square, softmax, true_weight
from tools.noise import Script

ALARM = 1e-6
RNG = np.random.default_rng(20240715)

SHAPES = {
    "one": ([3], Fraction(7)),
    "one, negative": ([-40], Fraction(30)),
    "zeros": ([0, 0, 0], Fraction(1)),
    "all equal": ([9] * 7, Fraction(20)),
    "five": ([0, 10, 25, -30, 20], Fraction(17)),
    "a scale below one": ([2, -1, 1, 0], Fraction(2, 3)),
    "a scale that is a power of two": ([64, -32, 16, 8, 0], Fraction(32)),
    "near zero, many": (RNG.integers(-50, 50, 300), Fraction(400)),
    "wide": (RNG.integers(-(10**9), 10**9, 400), Fraction(10**9, 3)),
    "one far ahead": ([*[0] * 200, -7000], Fraction(1000)),
    "gaps": ([2**40, 0, -(2**40), 2**39], Fraction(2**40)),
    "huge": ([2**61, -(2**61) + 5, 2**60, 0], Fraction(2**60)),
    "huge and tied": ([2**61, -(2**61), 2**61 - 1, 3], Fraction(1)),
    "a huge scale": ([2**61, -(2**61), 0], Fraction(10**300)),
    "a tiny scale": ([2, -2, 1, 0], Fraction(1, 10**300)),
}
OFF_SCALE_SEEN = ("one, negative", "five", "a scale that is a power of two", "gaps", "huge")


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


def law(values, scale):
    """Return the probabilities of +g, then of −g."""
    return softmax([*map(int, values), *(-int(g) for g in values)], scale)


def accepts(counts, values, scale):
    return chi_square(counts, law(values, scale)) > ALARM


def counts_of(values, scale, *, draws, seed):
    noise, sampler, size = SeededNoise(seed), SignedSampler(scale), len(values)
    scores = as_array(values)
    chosen = [sampler(scores, noise) for _ in range(draws)]
    cells = [feature if sign > 0 else size + feature for feature, sign in chosen]
    return np.bincount(cells, minlength=2 * size)


# --- the law ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SHAPES)
def test_the_law_is_the_softmax_of_plus_and_minus(name):
    values, scale = SHAPES[name]
    counts = counts_of(values, scale, draws=30_000, seed=f"signed {name}")
    assert accepts(counts, values, scale)
    assert counts[law(values, scale) < 1e-30].sum() == 0
    if name in OFF_SCALE_SEEN:
        assert not accepts(counts, values, scale * Fraction(11, 10))
        assert not accepts(counts, values, scale / Fraction(11, 10))


def test_the_exact_path_alone_gives_the_same_law(monkeypatch):
    monkeypatch.setattr(sampling, "certain_weight", lambda _: -1)
    values, scale = SHAPES["five"]
    counts = counts_of(values, scale, draws=3_000, seed="exact")
    assert accepts(counts, values, scale)
    assert not accepts(counts, values, scale * Fraction(16, 10))


@pytest.mark.parametrize("n_bits", [0, 1, 3])
def test_loose_bounds_cost_time_and_not_exactness(monkeypatch, n_bits):
    monkeypatch.setattr(sampling, "weight_bits", lambda _: n_bits)
    values, scale = SHAPES["five"]
    counts = counts_of(values, scale, draws=3_000, seed=f"loose {n_bits}")
    assert accepts(counts, values, scale)
    assert not accepts(counts, values, scale * Fraction(16, 10))


def test_a_wrong_acceptance_would_be_seen(monkeypatch):
    # The power of the tests above: taking every proposal of a class is another law.
    monkeypatch.setattr(SignedSampler, "_accepted", lambda *_: True)
    values, scale = [24, 31, 16, -20, 3], Fraction(32)
    counts = counts_of(values, scale, draws=30_000, seed="wrong")
    assert not accepts(counts, values, scale)


def test_classes_too_deep_to_matter_keep_their_own_small_chance(monkeypatch):
    # Where weights are one unit at most and few classes are told apart, the deep have a share that
    # is seen: they are proposed, and refused in proportion.
    monkeypatch.setattr(sampling, "_HOPELESS", 0.5)
    monkeypatch.setattr(sampling, "weight_bits", lambda _: 0)
    values, scale = [40, 20, -10, 5, 0], Fraction(20)
    assert SignedSampler(scale).depth < 40 >> class_shift(scale)
    counts = counts_of(values, scale, draws=2_500, seed="deep")
    assert counts[[2, 7, 3, 8, 4, 9]].sum() > 500
    assert accepts(counts, values, scale)
    assert not accepts(counts, values, scale * Fraction(14, 10))


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
