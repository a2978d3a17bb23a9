"""Costs are exact, laws are what the lemmas assume, and the published shortcuts are exceeded.

Probabilities of a selection are exact here (softmax, or numerical integration), so privacy losses
are computed, not estimated; that the mechanisms follow them is tested by chi-square, with a
false-alarm rate of 1e-6 each and power against a scale 20 % off. That exact noise has its law is
tested where it is made (`test_selection`, `test_discrete_gaussian`); here, that `NoisyMax` and
`DiscreteGaussian` use it with the scale that their cost promises, on whole numbers only.
"""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import log_softmax, logsumexp, softmax

from dpscreen.privacy import (
    ZCDP,
    DiscreteGaussian,
    GaussianVector,
    LaplaceNoisyMax,
    Noise,
    NoisyMax,
    SeededNoise,
    ThresholdedNoisyMin,
)
from dpscreen.privacy.sampling import LEAST_VARIANCE, MOST_VARIANCE
from tools.laws import chi_square

ALARM = 1e-6
ORDERS = 1 + np.logspace(-3, 2, 60)

positive = st.floats(1e-6, 1e6)
any_size = st.floats(1e-9, 1e9)
costs = st.floats(1e-9, 1e3).map(ZCDP)
EXACT = [NoisyMax(1.0, 2.0, 3.0, 0.5), DiscreteGaussian(1.0, 3.0, 0.5)]
by_name = {"ids": lambda mechanism: mechanism.name}
exact_mechanisms = pytest.mark.parametrize("mechanism", EXACT, **by_name)


class NoWords(Noise):
    """A source of which nothing may be asked."""

    secure = False
    description = "a stub"

    def words(self, count):
        raise AssertionError("noise was drawn")


class FixedDraws(NoWords):
    """A source whose every draw is what the test says."""

    def __init__(self, draws):
        self._draws = np.asarray(draws, dtype=np.float64)

    def _fixed(self, count):
        assert count == self._draws.size
        return self._draws

    laplace = normal = _fixed


def counts_of(mechanism, scores, *, draws, seed):
    noise = SeededNoise(seed)
    chosen = [mechanism(scores, noise) for _ in range(draws)]
    return np.bincount(chosen, minlength=scores.size)


def assert_scale(noise, scale):
    """Σ z²/σ² is chi-square, and a scale 5 % off is rejected."""
    low, high = stats.chi2.interval(1 - ALARM, noise.size)
    seen = [
        low < (noise**2).sum() / sigma**2 < high for sigma in (scale, 1.05 * scale, scale / 1.05)
    ]
    assert seen == [True, False, False]


def assert_law(counts, law, scale):
    """The counts follow the law, and a scale 20 % off is rejected."""
    fits = [chi_square(counts, law(one)) > ALARM for one in (scale, 1.2 * scale, scale / 1.2)]
    assert fits == [True, False, False]


def laplace_max_probabilities(scores, scale):
    """Integrate P(score j wins) piece by piece between the kinks of the densities."""
    scores = np.asarray(scores, dtype=np.float64) / scale
    ends = np.unique([scores.min() - 40, *scores, *(scores.max() + np.array([5, 15, 60]))])
    nodes, weights = np.polynomial.legendre.leggauss(200)
    won = np.zeros(scores.size)
    for low, high in pairwise(ends):
        x = (low + high) / 2 + (high - low) / 2 * nodes
        log_below = stats.laplace.logcdf(x[:, None] - scores)
        others = log_below.sum(axis=1, keepdims=True) - log_below
        density = np.exp(stats.laplace.logpdf(x[:, None] - scores) + others)
        won += (high - low) / 2 * weights @ density
    return won


def renyi(log_p, log_q, order):
    return logsumexp(order * log_p + (1 - order) * log_q) / (order - 1)


# --- Gumbel: the exponential mechanism (Lemma 2) ---------------------------------------------


def test_gumbel_cost_covers_every_order_for_every_shift():
    rng = np.random.default_rng(1)
    for _ in range(1500):
        size = rng.integers(2, 7)
        scores, scale = rng.normal(size=size) * 10 ** rng.uniform(-2, 1.5), rng.uniform(0.2, 3)
        shift = rng.choice([-1.0, 1.0], size) if rng.random() < 0.5 else rng.uniform(-1, 1, size)
        mechanism = NoisyMax(1.0, float(max(np.ptp(shift), 1e-9)), scale)
        log_p, log_q = log_softmax(scores / scale), log_softmax((scores + shift) / scale)
        losses = np.array([renyi(log_p, log_q, order) for order in ORDERS[::6]])
        assert (losses <= ORDERS[::6] * float(mechanism.cost) * (1 + 1e-9) + 1e-12).all()


@pytest.mark.parametrize("scale", [5.0, 20.0])
def test_gumbel_cost_is_attained(scale):
    # Two even candidates that move apart: at small ε the bound of Lemma 2 is all but reached.
    mechanism = NoisyMax(1.0, 2.0, scale)
    even, apart = log_softmax(np.zeros(2)), log_softmax(np.array([1.0, -1.0]) / scale)
    for order in (1.01, 2.0):
        loss = renyi(even, apart, order)
        assert 0.97 * order * float(mechanism.cost) <= loss <= order * float(mechanism.cost)


# --- Laplace report-noisy-max (E4) -----------------------------------------------------------


@given(positive, positive)
def test_the_published_laplace_calibration_guarantees_twice_its_epsilon(epsilon, sensitivity):
    published = LaplaceNoisyMax.as_published(epsilon, sensitivity=sensitivity)
    assert published.scale == pytest.approx(sensitivity / epsilon, rel=1e-15)
    assert published.epsilon == pytest.approx(2 * epsilon, rel=1e-15)


def test_laplace_noisy_max_follows_its_law_and_a_scale_20_percent_off_is_seen():
    scores, scale = np.array([0.0, 1.0, 2.5, -3.0, 2.0]), 1.2
    counts = counts_of(LaplaceNoisyMax(1, scale), scores, draws=40_000, seed="laplace max")
    assert_law(counts, lambda one: laplace_max_probabilities(scores, one), scale)


def test_laplace_with_the_factor_2_holds_on_every_shift():
    rng = np.random.default_rng(2)
    for _ in range(150):
        size = rng.integers(2, 6)
        scores, scale = rng.normal(size=size) * rng.uniform(0, 6), rng.uniform(0.5, 4)
        shift = rng.choice([-1.0, 1.0], size)
        mechanism = LaplaceNoisyMax(1.0, scale)
        p = laplace_max_probabilities(scores, scale)
        q = laplace_max_probabilities(scores + shift, scale)
        assert np.abs(np.log(p / q)).max() <= mechanism.epsilon * (1 + 1e-9)
        # and zCDP's ε²/2 holds at every order
        losses = np.array([renyi(np.log(p), np.log(q), order) for order in ORDERS[::12]])
        assert (losses <= ORDERS[::12] * float(mechanism.cost) * (1 + 1e-9) + 1e-9).all()


def test_the_published_epsilon_is_exceeded():
    # E4: the trailing candidate catches up by 2Δ. Its chance grows by nearly e^{2Δ/b}, not e^{Δ/b}.
    claimed = 1.0
    mechanism = LaplaceNoisyMax.as_published(claimed, sensitivity=1.0)
    before = laplace_max_probabilities([20.0, 0.0], mechanism.scale)
    after = laplace_max_probabilities([19.0, 1.0], mechanism.scale)
    loss = math.log(after[1] / before[1])
    assert loss > 1.85 * claimed
    assert loss <= mechanism.epsilon
    # in closed form: P(a difference of two Laplace draws > g) = (2 + g)e^{−g}/4
    assert loss == pytest.approx(2 + math.log((2 + 18) / (2 + 20)), rel=1e-6)


# --- the published threshold (E5) ------------------------------------------------------------


def test_thresholded_min_takes_the_smallest_if_it_is_negative():
    mechanism, scores = ThresholdedNoisyMin(1.0, 2.0), np.array([1.0, 2.0, 3.0])
    assert mechanism(scores, FixedDraws([0, 0, 0])) is None
    assert mechanism(scores, FixedDraws([0, 0, -1.6])) == 2
    assert mechanism(scores, FixedDraws([-0.7, -1.1, -1.55])) == 0
    assert mechanism(scores, FixedDraws([-0.5, 0, 0])) is None  # exactly 0 is not negative


def test_a_threshold_without_noise_loses_more_than_report_noisy_max_does():
    # E5: "nothing" is released when all d noisy scores are positive, so its loss grows with d.
    scale, d = 2.0, 50
    stay = stats.laplace.logsf(0, loc=0.0, scale=scale) * d
    moved = stats.laplace.logsf(0, loc=-1.0, scale=scale) * d
    assert stay - moved > 10 * LaplaceNoisyMax(1.0, scale).epsilon


# --- Gaussian vector (Lemma 3) ---------------------------------------------------------------


def test_gaussian_vector_has_its_variance_and_a_scale_5_percent_off_is_seen():
    count, scale, values = 100_000, 3.0, np.linspace(-50, 50, 100_000)
    noise = GaussianVector(1.0, scale)(values, SeededNoise("gaussian")) - values
    assert_scale(noise, scale)
    assert abs(noise.mean()) < stats.norm.isf(ALARM / 2) * scale / math.sqrt(count)


# --- exact mechanisms: costs -----------------------------------------------------------------


@given(any_size, any_size, any_size, any_size)
def test_costs_are_exact(sensitivity, score_range, scale, unit):
    """What the lemmas say, as fractions, in whatever unit."""
    ratio = Fraction(sensitivity) / Fraction(scale)
    assert NoisyMax(sensitivity, score_range, scale, unit).cost.rho == (
        Fraction(score_range) ** 2 / (8 * Fraction(scale) ** 2)
    )
    laplace = LaplaceNoisyMax(sensitivity, scale)
    assert laplace.epsilon == pytest.approx(2 * sensitivity / scale, rel=1e-15)
    assert laplace.cost.rho == (2 * ratio) ** 2 / 2
    assume(LEAST_VARIANCE < (Fraction(scale) / Fraction(unit)) ** 2 < MOST_VARIANCE)
    assert DiscreteGaussian(sensitivity, scale, unit).cost.rho == ratio**2 / 2


@given(costs, any_size, any_size, st.none() | any_size, st.integers(-40, 0))
def test_noise_of_given_cost_never_costs_more_and_is_tight(cost, sensitivity, unit, span, grain):
    chosen = NoisyMax.of_cost(cost, sensitivity=sensitivity, unit=unit, score_range=span)
    assert chosen.score_range == (2 * sensitivity if span is None else span)
    made = [chosen, GaussianVector.of_cost(cost, sensitivity=sensitivity)]
    if 2.0**-grain < 2**54 * math.sqrt(2 * float(cost)):  # else the noise would overflow
        fine = sensitivity * 2.0**grain
        made.append(DiscreteGaussian.of_cost(cost, sensitivity=sensitivity, unit=fine))
        assert made[-1].unit == fine
    for one in made:
        assert one.sensitivity == sensitivity
        assert cost * Fraction(1 - 1e-14) <= one.cost <= cost


# --- exact mechanisms: units -----------------------------------------------------------------


@pytest.mark.parametrize("clip", [1.0, 0.1, 1 / 3, 1e-200, 12345.678, 1e200])
def test_the_clip_is_a_whole_number_of_units(clip):
    # c/2^28 is exact in binary, so the sensitivity in units is 2^28 and not a rounding of it.
    chosen = NoisyMax.of_cost(ZCDP(0.01), sensitivity=clip, unit=clip / 2**28)
    assert Fraction(chosen.sensitivity) / Fraction(chosen.unit) == 2**28
    in_units = Fraction(2**28) ** 2 / (2 * chosen.scale_in_units**2)
    assert in_units == chosen.cost.rho


def test_a_release_lies_on_the_lattice_and_has_its_scale():
    unit, scale, count = 0.125, 3.0, 50_000
    values = np.arange(count) - count // 2
    released = DiscreteGaussian(1.0, scale, unit)(values, SeededNoise("on the lattice"))
    noise = released / unit - values
    assert (noise == np.rint(noise)).all()
    assert_scale(noise * unit, scale)


def test_a_selection_has_its_scale():
    scores, unit = np.array([0, 40, 100]), 0.1
    counts = counts_of(NoisyMax(1.0, 2.0, 5.0, unit), scores, draws=20_000, seed="its scale")
    assert_law(counts, lambda scale: softmax(scores * unit / scale), 5.0)


# --- exact mechanisms: whole numbers only ----------------------------------------------------


@exact_mechanisms
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32, np.uint64, np.bool_, ">i8"])
def test_anything_but_int64_is_refused_before_noise_is_drawn(mechanism, dtype):
    with pytest.raises(TypeError, match="whole numbers"):
        mechanism(np.array([1, 0, 1]).astype(dtype), NoWords())


@pytest.mark.parametrize("wrong", [-3.0, 0.0, math.inf, math.nan])
@pytest.mark.parametrize("name", ["scale", "unit"])
def test_a_scale_or_unit_that_is_not_any_size_is_refused(name, wrong):
    setting = dict(sensitivity=1.0, score_range=2.0, scale=3.0, unit=1.0) | {name: wrong}
    with pytest.raises(ValueError, match=name):
        NoisyMax(**setting)


def test_noise_that_would_overflow_is_refused_when_the_mechanism_is_made():
    with pytest.raises(ValueError, match="epsilon"):
        DiscreteGaussian.of_cost(ZCDP(1e-9), sensitivity=1.0, unit=2.0**-45)


@pytest.mark.parametrize("kind", [NoisyMax, GaussianVector])
def test_noise_cannot_be_had_for_nothing(kind):
    with pytest.raises(ValueError, match="cannot cost nothing"):
        kind.of_cost(ZCDP.free(), sensitivity=1.0)
