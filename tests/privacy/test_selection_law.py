"""Both selections are exactly the exponential mechanism: of scores, and of ±g.

(docs/theory/exactness.md, Lemma 9; docs/theory/sparse.md, Lemma 20.) The law is compared with the
softmax and with OpenDP's selection by chi-square: false-alarm rate 1e-6 for each test, and a scale
off by 1.2, or 1.1 for signed scores, is rejected.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest
from scipy import stats

from dpscreen.privacy import NoisyMax, SeededNoise, sampling
from dpscreen.privacy.sampling import (
    ArrayScores,
    SignedSampler,
    class_shift,
    exponential_mechanism,
    weight_bits,
)
from tools.laws import chi_square, joined, softmax

ALARM = 1e-6
TOP = 2**63 - 1
RNG, RNG_OF_SIGNED = np.random.default_rng(20240611), np.random.default_rng(20240715)


def plain_counts(scores, scale, *, draws, seed):
    scores, noise = np.asarray(scores, dtype=np.int64), SeededNoise(seed)
    chosen = [exponential_mechanism(scores, scale, noise) for _ in range(draws)]
    return np.bincount(chosen, minlength=scores.size)


def signed_counts(values, scale, *, draws, seed):
    noise, sampler, size = SeededNoise(seed), SignedSampler(scale), len(values)
    scores = ArrayScores(np.asarray(values, dtype=np.int64))
    chosen = [sampler(scores, noise) for _ in range(draws)]
    cells = [feature if sign > 0 else size + feature for feature, sign in chosen]
    return np.bincount(cells, minlength=2 * size)


@dataclass(frozen=True)
class Selection:
    """One of the two samplers: of the scores as they are, or of +g and −g."""

    signed: bool

    def law(self, scores, scale):
        """Return the probabilities; of signed scores, those of +g and then of −g."""
        scores = [int(score) for score in scores]
        return softmax([*scores, *(-one for one in scores)] if self.signed else scores, scale)

    def counts(self, scores, scale, **options):
        """Return how often each candidate is chosen."""
        return (signed_counts if self.signed else plain_counts)(scores, scale, **options)

    def accepts(self, counts, scores, scale):
        return chi_square(counts, self.law(scores, scale)) > ALARM

    def __str__(self):
        return "signed" if self.signed else "plain"


PLAIN, SIGNED = Selection(signed=False), Selection(signed=True)
BELOW_ONE = "five, negative, a scale below one"
FIVE = [0, 10, 25, -30, 20]
SHAPES = {
    "one": ([-(2**63)], Fraction(1)),
    "two": ([5, 3], Fraction(2)),
    "two, tied": ([-7, -7], Fraction(1)),
    "five": (FIVE, Fraction(17)),
    BELOW_ONE: ([-9, -8, -8, -10, -11], Fraction(2, 3)),
    "a whole block": (RNG.integers(-50, 50, 512), Fraction(33)),
    "a block and one": ([*[0] * 512, 40], Fraction(8)),
    "513": (RNG.integers(-(10**9), 10**9, 513), Fraction(10**9, 3)),
    "1200": (RNG.normal(scale=3e8, size=1200).astype(np.int64), Fraction(2**28)),
    "1200, tied": ([4] * 1200, Fraction(1, 7)),
    "1025, one far ahead": ([*[0] * 1024, 700], Fraction(100)),
    "2^40 apart": ([2**40, 0, -(2**40), 2**39], Fraction(2**40)),
    "2^40 apart and tied": ([2**40, 0, 2**40, 2**40 - 1], Fraction(1)),
    "a huge scale": ([1, -1, 0], Fraction(10**300)),
    "a tiny scale": ([2, 1, 2, 1], Fraction(1, 10**300)),
    "the bottom of int64": ([-(2**63), -(2**63) + 2, -(2**63) + 1], Fraction(1)),
    "the top of int64": ([TOP, TOP - 2, TOP - 1], Fraction(1)),
    "the widest spread": ([2**62, 0, -(2**62) + 1], Fraction(2**62)),
}
SIGNED_SHAPES = {
    "one": ([3], Fraction(7)),
    "one, negative": ([-40], Fraction(30)),
    "zeros": ([0, 0, 0], Fraction(1)),
    "all equal": ([9] * 7, Fraction(20)),
    "five": (FIVE, Fraction(17)),
    "a scale below one": ([2, -1, 1, 0], Fraction(2, 3)),
    "a scale that is a power of two": ([64, -32, 16, 8, 0], Fraction(32)),
    "near zero, many": (RNG_OF_SIGNED.integers(-50, 50, 300), Fraction(400)),
    "wide": (RNG_OF_SIGNED.integers(-(10**9), 10**9, 400), Fraction(10**9, 3)),
    "one far ahead": ([*[0] * 200, -7000], Fraction(1000)),
    "gaps": ([2**40, 0, -(2**40), 2**39], Fraction(2**40)),
    "huge": ([2**61, -(2**61) + 5, 2**60, 0], Fraction(2**60)),
    "huge and tied": ([2**61, -(2**61), 2**61 - 1, 3], Fraction(1)),
    "a huge scale": ([2**61, -(2**61), 0], Fraction(10**300)),
    "a tiny scale": ([2, -2, 1, 0], Fraction(1, 10**300)),
}
OFF_SCALE_SEEN = {
    PLAIN: {
        *("two", "five", BELOW_ONE, "513", "1200", "2^40 apart"),
        *("the bottom of int64", "the top of int64", "the widest spread"),
    },
    SIGNED: {"one, negative", "five", "a scale that is a power of two", "gaps", "huge"},
}
EVERY_SHAPE = [(PLAIN, name, *shape) for name, shape in SHAPES.items()]
EVERY_SHAPE += [(SIGNED, name, *shape) for name, shape in SIGNED_SHAPES.items()]


@pytest.mark.parametrize(
    ("kind", "name", "scores", "scale"),
    EVERY_SHAPE,
    ids=[f"{kind} {name}" for kind, name, *_ in EVERY_SHAPE],
)
def test_the_law_is_the_softmax(kind, name, scores, scale):
    draws, seed, off = (
        (30_000, f"signed {name}", Fraction(11, 10))
        if kind.signed
        else (25_000, f"shape {name}", Fraction(6, 5))
    )
    counts = kind.counts(scores, scale, draws=draws, seed=seed)
    assert kind.accepts(counts, scores, scale)
    # what has no chance in any run one could do is not drawn
    assert counts[kind.law(scores, scale) < 1e-30].sum() == 0
    if name in OFF_SCALE_SEEN[kind]:
        assert not kind.accepts(counts, scores, scale * off)
        assert not kind.accepts(counts, scores, scale / off)


def test_scores_2_to_63_apart_are_refused_or_right():
    scores, scale = [TOP, -(2**63), 0], Fraction(2**62)
    try:
        counts = plain_counts(scores, scale, draws=5_000, seed="wrap")
    except (ValueError, OverflowError):
        return
    assert PLAIN.accepts(counts, scores, scale)


def test_more_than_2_million_candidates():
    # Three classes of candidates, so that a few draws suffice.
    n = 2**21 + 5
    members = np.array([n // 10, n // 3, n - n // 10 - n // 3])
    scores = np.repeat([20, 10, 0], members)
    scale, noise = Fraction(10), SeededNoise("two million")
    assert weight_bits(n) == 39
    chosen = [exponential_mechanism(scores, scale, noise) for _ in range(300)]
    counts = np.bincount(np.searchsorted(np.cumsum(members), chosen, side="right"), minlength=3)
    share = members * np.exp([2.0, 1.0, 0.0])
    assert chi_square(counts, share / share.sum()) > ALARM
    twice = members * np.exp([1.0, 0.5, 0.0])
    assert chi_square(counts, twice / twice.sum()) < ALARM
    # and any part of the whole is reached: the places within a class are uniform
    first = np.array(chosen)[np.array(chosen) < members[0]] / members[0]
    assert stats.kstest(first, "uniform").pvalue > ALARM


# --- against OpenDP -------------------------------------------------------------------------------


def opendp_counts(scores, scale, *, draws):
    dp.enable_features("contrib")
    measurement = dp.m.make_noisy_max(
        dp.vector_domain(dp.atom_domain(T="i64")),
        dp.linf_distance(T="i64"),
        dp.zero_concentrated_divergence(),
        scale=scale,
    )
    values = [int(score) for score in scores]
    chosen = [measurement(values) for _ in range(draws)]
    return np.bincount(chosen, minlength=len(values))


def two_samples(ours, theirs):
    group = joined((ours + theirs) / (ours + theirs).sum(), min(ours.sum(), theirs.sum()))
    table = [np.bincount(group, ours), np.bincount(group, theirs)]
    return stats.chi2_contingency(table, correction=False).pvalue


@pytest.mark.parametrize("name", ["five", BELOW_ONE, "2^40 apart"])
def test_the_law_is_that_of_opendp(name):
    # OpenDP cannot be seeded, so the first of these may alarm: once in a million runs. The power is
    # shown on seeded draws in place of OpenDP's, as many, which are the same in every run.
    scores, scale = SHAPES[name]
    ours = plain_counts(scores, scale, draws=25_000, seed=f"dp {name}")
    assert two_samples(ours, opendp_counts(scores, float(scale), draws=8_000)) > ALARM
    in_their_place = plain_counts(scores, scale, draws=8_000, seed=f"in place of dp {name}")
    wrong = plain_counts(scores, scale * Fraction(6, 5), draws=25_000, seed=f"dp {name}")
    assert two_samples(wrong, in_their_place) < ALARM


def test_the_cost_is_that_of_opendp():
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)
    theirs = dp.m.make_noisy_max(*space, dp.zero_concentrated_divergence(), scale=3.0).map(2.0)
    assert theirs == pytest.approx(float(NoisyMax(2.0, 4.0, 3.0, 1.0).cost), rel=1e-12)


# --- the rare exact path --------------------------------------------------------------------------


def loose(n_bits):
    """With B this small most proposals are refused, and none is accepted but on the exact path."""
    return {"weight_bits": lambda _: n_bits}


EXACT = {"certain_weight": lambda _: -1}
RARE = [
    (PLAIN, "five", "exact five", 6_000, EXACT),
    (
        PLAIN,
        "five, negative, a scale below one",
        "exact five, negative, a scale below one",
        6_000,
        EXACT,
    ),
    (SIGNED, "five", "exact", 3_000, EXACT),
    *((PLAIN, "five", f"loose {n}", 5_000, loose(n)) for n in (0, 1, 3)),
    *((SIGNED, "five", f"loose {n}", 3_000, loose(n)) for n in (0, 1, 3)),
]


@pytest.mark.parametrize(
    ("kind", "name", "seed", "draws", "patches"), RARE, ids=map("{0[0]} {0[2]}".format, RARE)
)
def test_the_exact_path_alone_gives_the_same_law(monkeypatch, kind, name, seed, draws, patches):
    for function, answer in patches.items():
        monkeypatch.setattr(sampling, function, answer)
    scores, scale = SHAPES[name]
    counts = kind.counts(scores, scale, draws=draws, seed=seed)
    assert kind.accepts(counts, scores, scale)
    assert not kind.accepts(counts, scores, scale * Fraction(16 if kind.signed else 14, 10))


def test_classes_too_deep_to_matter_keep_their_own_small_chance(monkeypatch):
    # Where weights are one unit at most and few classes are told apart, the deep have a share that
    # is seen: they are proposed, and refused in proportion.
    monkeypatch.setattr(sampling, "_HOPELESS", 0.5)
    monkeypatch.setattr(sampling, "weight_bits", lambda _: 0)
    values, scale = [40, 20, -10, 5, 0], Fraction(20)
    assert SignedSampler(scale).depth < 40 >> class_shift(scale)
    counts = signed_counts(values, scale, draws=2_500, seed="deep")
    assert counts[[2, 7, 3, 8, 4, 9]].sum() > 500
    assert SIGNED.accepts(counts, values, scale)
    assert not SIGNED.accepts(counts, values, scale * Fraction(14, 10))
