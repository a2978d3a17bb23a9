"""A release is booked before its noise exists, and refused when the limit does not cover it."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpscreen.privacy import (
    ZCDP,
    Accountant,
    BudgetExceeded,
    DiscreteGaussian,
    GaussianVector,
    NoisyMax,
    SeededNoise,
    ThresholdedNoisyMin,
    Use,
)
from dpscreen.privacy.accountant import release_histograms, release_sums
from tools.noise import CountingNoise

SCORES = np.zeros(3, dtype=np.int64)


@dataclass(frozen=True)
class Priced:
    """A mechanism that costs what it is told to."""

    cost: ZCDP
    name: str = "a stub"
    sensitivity: float = 1.0
    scale: float = 1.0

    def __call__(self, values, noise):
        return "released"


@dataclass(frozen=True)
class Failing(Priced):
    def __call__(self, values, noise):
        raise RuntimeError("after the noise was drawn")


def book(accountant, mechanism, times=1, purpose="test"):
    return [accountant.release(mechanism, SCORES, purpose=purpose) for _ in range(times)]


@given(st.fractions("1/1000000", 100, max_denominator=10**9), st.integers(1, 200))
def test_t_shares_of_the_limit_fit_exactly_and_no_more(rho, count):
    accountant = Accountant(SeededNoise(0), limit=ZCDP(rho))
    share = Priced(ZCDP(rho) / count)
    assert book(accountant, share, count) == ["released"] * count
    assert accountant.spent == accountant.limit
    with pytest.raises(BudgetExceeded):
        book(accountant, Priced(ZCDP(Fraction(1, 10**30))))
    book(accountant, Priced(ZCDP.free()))  # what is free still fits


def test_a_limit_is_kept_to_the_last_fraction():
    """A limit that is below a cost by less than float64 tells is too small for it."""
    mechanism = DiscreteGaussian.of_cost(ZCDP(Fraction(1, 3)), sensitivity=1.0, unit=2.0**-10)
    less = ZCDP(mechanism.cost.rho * (1 - Fraction(1, 10**30)))
    assert float(less) == float(mechanism.cost)
    accountant = Accountant(SeededNoise(1), limit=less)
    with pytest.raises(BudgetExceeded):
        accountant.release(mechanism, np.zeros(1, dtype=np.int64), purpose="a sum")


def test_costs_of_different_mechanisms_add():
    selection, vector = NoisyMax(1, 2, 10.0), GaussianVector(1.0, 7.0)
    accountant = Accountant(SeededNoise(0), limit=ZCDP(1))
    book(accountant, selection, 3)
    book(accountant, vector, 2)
    assert accountant.spent == 3 * selection.cost + 2 * vector.cost


def test_a_release_over_the_limit_draws_no_noise_and_is_not_booked():
    noise = CountingNoise("counted")
    selection = NoisyMax(1, 2, 1.0)
    accountant = Accountant(noise, limit=selection.cost * Fraction(5, 2))
    book(accountant, selection, 2)
    used = noise.used
    assert used > 0
    with pytest.raises(BudgetExceeded, match=r"0\.5 .* 1 of 1\.25"):
        book(accountant, selection)
    assert noise.used == used
    assert accountant.spent == 2 * selection.cost
    assert [use.count for use in accountant.uses] == [2]


def test_a_mechanism_that_raises_has_still_been_paid_for():
    accountant = Accountant(SeededNoise(0), limit=ZCDP(1))
    failing = Failing(ZCDP(Fraction(3, 4)))
    with pytest.raises(RuntimeError, match="after the noise"):
        book(accountant, failing)
    assert accountant.spent == failing.cost
    assert accountant.uses == (Use("test", failing, 1),)
    with pytest.raises(BudgetExceeded):
        book(accountant, failing)


def test_uses_are_grouped_by_purpose_and_value_in_order_of_first_use():
    accountant = Accountant(SeededNoise(0), limit=ZCDP(100))
    for _ in range(3):
        book(accountant, NoisyMax(1, 2, 3.0), purpose="step")
        book(accountant, NoisyMax(1, 2, 3.0), purpose="screening")
    book(accountant, NoisyMax(1, 2, 4.0), 2, purpose="step")
    assert accountant.uses == (
        Use("step", NoisyMax(1, 2, 3.0), 3),
        Use("screening", NoisyMax(1, 2, 3.0), 3),
        Use("step", NoisyMax(1, 2, 4.0), 2),
    )
    total = sum((use.count * use.mechanism.cost for use in accountant.uses), ZCDP.free())
    assert total == accountant.spent


def test_a_mechanism_without_a_proved_cost_has_no_place_under_a_limit():
    noise = CountingNoise("counted")
    accountant = Accountant(noise, limit=ZCDP(10**9))
    with pytest.raises(NotImplementedError, match="E5"):
        book(accountant, ThresholdedNoisyMin(1.0, 1.0))
    assert noise.used == 0
    assert accountant.uses == ()


class Given(Accountant):
    """Keeps what the last mechanism was given, and releases it."""

    def release(self, mechanism, values, *, purpose):
        self.seen = mechanism, values
        return values * mechanism.unit


def test_a_row_moves_floored_sums_by_no_more_than_is_booked():
    """Of 64 sums each just below the next whole number of the coarser unit (Lemma 13)."""
    d, units, change = 64, 2**28, 0.9999
    accountant = Given(SeededNoise(0), limit=None)
    move = np.full(d, math.floor(change * units / math.sqrt(d)))
    coarse = math.floor(change * units / 2**13)
    inputs = []
    for sums in (np.full(d, 5 * coarse - 1), np.full(d, 5 * coarse - 1) + move):
        release_sums(
            *(accountant, sums), units_per_one=units, change=change, cost=ZCDP(1), purpose="sums"
        )
        mechanism, values = accountant.seen
        inputs.append(values.astype(np.float64))
    moved = np.linalg.norm(inputs[1] - inputs[0]) * mechanism.unit
    assert np.linalg.norm(move) / units <= change < moved <= mechanism.sensitivity


def test_the_change_of_histograms_is_never_rounded_below_the_root():
    """Compared exactly: the booked sensitivity squared is at least the number of columns."""
    for d in (1, 2, 3, 5, 73, 77, 273, 1051):
        accountant = Accountant(SeededNoise("root"), limit=ZCDP(1))
        release_histograms(accountant, np.zeros((d, 2), int), cost=ZCDP(1), purpose="d")
        (use,) = accountant.uses
        assert Fraction(use.mechanism.sensitivity) ** 2 >= d
