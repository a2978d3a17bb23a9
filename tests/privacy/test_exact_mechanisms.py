"""`NoisyMax` and `DiscreteGaussian`: exact costs, exact units, whole numbers only.

That their noise has the right law is tested where it is made (`test_selection`,
`test_discrete_gaussian`); here, that a mechanism uses it with the scale that its cost promises.
"""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from dpscreen.privacy import ZCDP, DiscreteGaussian, Noise, NoisyMax, SeededNoise, mechanisms
from dpscreen.privacy.sampling import LEAST_VARIANCE, MOST_VARIANCE
from tools.laws import chi_square

ALARM = 1e-6
positive = st.floats(1e-9, 1e9)
costs = st.floats(1e-9, 1e3).map(ZCDP)
EXACT = [NoisyMax(1.0, 2.0, 3.0, 0.5), DiscreteGaussian(1.0, 3.0, 0.5)]
exact_mechanisms = pytest.mark.parametrize("mechanism", EXACT, ids=lambda m: m.name)


class NoWords(Noise):
    """A source of which nothing may be asked."""

    secure = False
    description = "a stub"

    def words(self, count):
        raise AssertionError("noise was drawn")


# --- costs -----------------------------------------------------------------------------------


@given(positive, positive, positive, positive)
def test_the_cost_of_a_selection_is_exact(sensitivity, score_range, scale, unit):
    cost = NoisyMax(sensitivity, score_range, scale, unit).cost
    assert cost.rho == Fraction(score_range) ** 2 / (8 * Fraction(scale) ** 2)


@given(positive, positive, positive)
def test_the_cost_of_a_gaussian_release_is_exact(sensitivity, scale, unit):
    assume(LEAST_VARIANCE < (Fraction(scale) / Fraction(unit)) ** 2 < MOST_VARIANCE)
    cost = DiscreteGaussian(sensitivity, scale, unit).cost
    assert cost.rho == Fraction(sensitivity) ** 2 / (2 * Fraction(scale) ** 2)


@given(costs, positive, positive, st.none() | positive)
def test_a_selection_of_given_cost_never_costs_more_and_is_tight(cost, sensitivity, unit, span):
    chosen = NoisyMax.of_cost(cost, sensitivity=sensitivity, unit=unit, score_range=span)
    assert chosen.score_range == (2 * sensitivity if span is None else span)
    assert (chosen.sensitivity, chosen.unit) == (sensitivity, unit)
    assert cost * Fraction(1 - 1e-14) <= chosen.cost <= cost


@given(costs, positive, st.integers(-40, 0))
def test_a_gaussian_release_of_given_cost_never_costs_more_and_is_tight(cost, sensitivity, grain):
    unit = sensitivity * 2.0**grain
    assume(sensitivity / unit < 2**54 * math.sqrt(2 * float(cost)))  # else the noise would overflow
    chosen = DiscreteGaussian.of_cost(cost, sensitivity=sensitivity, unit=unit)
    assert (chosen.sensitivity, chosen.unit) == (sensitivity, unit)
    assert cost * Fraction(1 - 1e-14) <= chosen.cost <= cost


@given(costs, st.integers(1, 1000))
def test_many_steps_of_given_cost_stay_within_the_whole(cost, steps):
    each = NoisyMax.of_cost(cost / steps, sensitivity=1.0, unit=2.0**-28)
    assert each.cost * steps <= cost


# --- units -----------------------------------------------------------------------------------


@given(positive, positive)
def test_the_scale_in_units_is_exact(scale, unit):
    assert NoisyMax(1.0, 2.0, scale, unit).scale_in_units * Fraction(unit) == Fraction(scale)


@pytest.mark.parametrize("clip", [1.0, 0.1, 1 / 3, 1e-200, 12345.678, 1e200])
def test_the_clip_is_a_whole_number_of_units(clip):
    # c/2^28 is exact in binary, so the sensitivity in units is 2^28 and not a rounding of it.
    chosen = NoisyMax.of_cost(ZCDP(0.01), sensitivity=clip, unit=clip / 2**28)
    assert Fraction(chosen.sensitivity) / Fraction(chosen.unit) == 2**28
    in_units = Fraction(2**28) ** 2 / (2 * chosen.scale_in_units**2)
    assert in_units == chosen.cost.rho


@pytest.mark.parametrize("seen", ["scale", "unit"])
def test_a_selection_uses_the_quotient_of_scale_and_unit(monkeypatch, seen):
    asked = []
    monkeypatch.setattr(
        mechanisms, "exponential_mechanism", lambda scores, scale, noise: asked.append(scale)
    )
    given_scale, unit = (0.3, 0.1) if seen == "unit" else (7.0, 2.0**-28)
    NoisyMax(1.0, 2.0, given_scale, unit)(np.array([1, 2]), NoWords())
    assert asked == [Fraction(given_scale) / Fraction(unit)]


def test_a_gaussian_release_uses_the_square_of_the_quotient(monkeypatch):
    asked = []

    def spy(variance, count, noise):
        asked.append((variance, count))
        return np.array([5, -7])

    monkeypatch.setattr(mechanisms, "discrete_gaussian", spy)
    released = DiscreteGaussian(1.0, 0.3, 0.1)(np.array([10, 20]), NoWords())
    assert asked == [((Fraction(0.3) / Fraction(0.1)) ** 2, 2)]
    assert released.tolist() == [15 * 0.1, 13 * 0.1]


def test_a_release_lies_on_the_lattice_and_has_its_scale():
    unit, scale, count = 0.125, 3.0, 50_000
    values = np.arange(count) - count // 2
    released = DiscreteGaussian(1.0, scale, unit)(values, SeededNoise("on the lattice"))
    noise = released / unit - values
    assert (noise == np.rint(noise)).all()
    low, high = stats.chi2.interval(1 - ALARM, count)

    def accepts(sigma):
        return low < ((noise * unit) ** 2).sum() / sigma**2 < high

    assert accepts(scale)
    assert not accepts(1.05 * scale)
    assert not accepts(scale / 1.05)


def test_a_selection_has_its_scale():
    scores, scale, unit, draws = np.array([0, 40, 100]), 5.0, 0.1, 20_000
    select, noise = NoisyMax(1.0, 2.0, scale, unit), SeededNoise("its scale")
    counts = np.bincount([select(scores, noise) for _ in range(draws)], minlength=3)

    def fit(scale):
        weights = np.exp(scores * unit / scale)
        return chi_square(counts, weights / weights.sum())

    assert fit(scale) > ALARM
    assert fit(1.2 * scale) < ALARM
    assert fit(scale / 1.2) < ALARM


# --- whole numbers only ----------------------------------------------------------------------


@exact_mechanisms
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32, np.uint64, np.bool_, ">i8"])
def test_anything_but_int64_is_refused_before_noise_is_drawn(mechanism, dtype):
    with pytest.raises(TypeError, match="whole numbers"):
        mechanism(np.array([1, 0, 1]).astype(dtype), NoWords())


@exact_mechanisms
def test_a_mechanism_is_a_value_and_leaves_its_input_alone(mechanism):
    assert mechanism == replace(mechanism)
    with pytest.raises(AttributeError):
        mechanism.scale = 0.0
    values = np.arange(5)
    mechanism(values, SeededNoise(1))
    assert (values == np.arange(5)).all()


@exact_mechanisms
def test_a_seed_gives_the_same_release(mechanism):
    values = np.arange(-20, 20)
    first, second = (mechanism(values, SeededNoise("again")) for _ in range(2))
    assert np.array_equal(first, second)


def test_names_tell_the_exact_mechanisms_from_the_float_ones():
    names = {m.name for m in EXACT} | {"Laplace report-noisy-max", "Gaussian vector"}
    assert len(names) == 4


@pytest.mark.parametrize("wrong", [-3.0, 0.0, math.inf, math.nan])
@pytest.mark.parametrize("name", ["scale", "unit"])
def test_a_scale_or_unit_that_is_not_positive_is_refused(name, wrong):
    setting = dict(sensitivity=1.0, score_range=2.0, scale=3.0, unit=1.0) | {name: wrong}
    with pytest.raises(ValueError, match=name):
        NoisyMax(**setting)


def test_noise_that_would_overflow_is_refused_when_the_mechanism_is_made():
    with pytest.raises(ValueError, match="epsilon"):
        DiscreteGaussian.of_cost(ZCDP(1e-9), sensitivity=1.0, unit=2.0**-45)
