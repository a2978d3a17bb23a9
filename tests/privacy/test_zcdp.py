"""zCDP as exact algebra, and its conversion to (ε, δ) against other evaluations of Lemma 4."""

import math
from fractions import Fraction
from functools import reduce

import dp_accounting
import mpmath
import numpy as np
import pytest
from dp_accounting.rdp import RdpAccountant
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from dpscreen.privacy import ZCDP, Budget

costs = st.builds(ZCDP, st.floats(0, 1e6))
counts = st.integers(0, 60)

EXTREMES = [
    Budget(epsilon, delta)
    for epsilon in (1e-6, 1e-3, 0.1, 1.0, 5.0, 50.0, 1e3)
    for delta in (1e-300, 1e-60, 1e-9, 1 / 3000, 0.1, 0.5, 0.999)
]
budgets = st.builds(
    Budget, st.floats(-6, 3).map(lambda e: 10**e), st.floats(-200, -0.01).map(lambda e: 10**e)
)


def exact_log_delta(rho: float | Fraction, epsilon: float) -> mpmath.mpf:
    """Minimise Lemma 4's bound over α in 50 digits: exp((α−1)(αρ−ε))/(α−1)·(1−1/α)^α."""
    with mpmath.workdps(50):
        fraction = Fraction(rho)
        rho, epsilon = mpmath.mpf(fraction.numerator) / fraction.denominator, mpmath.mpf(epsilon)

        def log_bound(x: mpmath.mpf) -> mpmath.mpf:
            less = mpmath.exp(x)  # α − 1
            alpha = 1 + less
            return (
                less * (alpha * rho - epsilon)
                - mpmath.log(less)
                + alpha * (mpmath.log(less) - mpmath.log(alpha))
            )

        coarse = np.linspace(-12, 30, 337)
        best = coarse[int(np.argmin([float(log_bound(mpmath.mpf(x))) for x in coarse]))]
        low, high = mpmath.mpf(best) - 0.125, mpmath.mpf(best) + 0.125
        golden = (mpmath.sqrt(5) - 1) / 2
        for _ in range(60):
            left, right = high - golden * (high - low), low + golden * (high - low)
            if log_bound(left) < log_bound(right):
                high = right
            else:
                low = left
        return log_bound((low + high) / 2)


# --- algebra --------------------------------------------------------------------------------


@given(costs, counts)
def test_paying_n_times_is_n_payments(cost, count):
    assert count * cost == reduce(ZCDP.__add__, [cost] * count, ZCDP.free())
    assert count * cost == cost * count


@pytest.mark.parametrize("rho", [-1e-300, math.nan, math.inf, -math.inf, "much"])
def test_rho_must_be_a_number_that_is_not_negative(rho):
    with pytest.raises(ValueError, match="rho"):
        ZCDP(rho)


@pytest.mark.parametrize("delta", [0, 1, -0.1, math.nan])
def test_epsilon_is_certified_at_a_delta_between_0_and_1(delta):
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        ZCDP(1).epsilon(delta)


@given(st.fractions(0, 10**6, max_denominator=10**12))
@example(Fraction(1, 10**400))
def test_as_a_float_it_is_rounded_up_by_less_than_one_place(rho):
    near = float(ZCDP(rho))
    assert Fraction(near) >= rho
    assert near > 0 or rho == 0
    assert near == 0 or Fraction(math.nextafter(near, 0)) < rho


def test_free_costs_nothing():
    assert ZCDP.free().epsilon(1e-9) == 0
    assert ZCDP.free().delta(1e-9) == 0


# --- conversion -----------------------------------------------------------------------------


@pytest.mark.parametrize("budget", EXTREMES, ids=str)
def test_within_is_certified_and_cannot_be_raised(budget):
    rho = ZCDP.within(budget).rho
    log_delta = mpmath.log(budget.delta)
    assert exact_log_delta(rho, budget.epsilon) <= log_delta
    assert exact_log_delta(rho * Fraction(1000001, 1000000), budget.epsilon) > log_delta


@given(budgets)
@settings(max_examples=60)
def test_delta_is_rounded_up_and_tight(budget):
    cost = ZCDP.within(budget)
    assert cost.delta(budget.epsilon) <= budget.delta
    assert (cost * Fraction(1001, 1000)).delta(budget.epsilon) > budget.delta
    exact = exact_log_delta(float(cost), budget.epsilon)
    ours = mpmath.log(cost.delta(budget.epsilon))
    assert exact <= ours <= exact + 1e-4


@pytest.mark.parametrize("rho", [1e-16, 1e-9, 1e-4, 0.1, 1.0, 30.0, 500.0])
@pytest.mark.parametrize("delta", [1e-300, 1e-9, 1 / 3000, 0.3, 0.9])
def test_epsilon_is_certified_and_tight(rho, delta):
    epsilon = ZCDP(rho).epsilon(delta)
    assert exact_log_delta(rho, epsilon) <= mpmath.log(delta)
    if epsilon > 0:
        assert exact_log_delta(rho, epsilon * (1 - 1e-4)) > mpmath.log(delta)


@pytest.mark.parametrize(
    ("rho", "epsilon"),
    [(1e-4, 0.05), (1e-4, 0.1), (0.0244, 1), (0.0244, 2), (0.77, 1), (0.77, 5), (10, 12), (10, 40)],
)
def test_dp_accounting_agrees(rho, epsilon):
    # Its bound is ours on a given grid of orders: a fine grid brings it close, but never below.
    accountant = RdpAccountant(orders=1 + np.logspace(-2, 5, 20_001))
    accountant.compose(dp_accounting.ZCDpEvent(rho=rho))
    theirs, ours = accountant.get_delta(epsilon), ZCDP(rho).delta(epsilon)
    assert ours == pytest.approx(theirs, rel=1e-4)
    assert ours <= theirs * (1 + 1e-9)


@pytest.mark.parametrize("rho", [1e-6, 1e-3, 0.1, 1.0, 20.0])
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 5.0, 30.0])
def test_never_below_what_the_gaussian_mechanism_really_needs(rho, epsilon):
    # N(0, 1) against N(μ, 1) with μ²/2 = ρ is ρ-zCDP, and its δ(ε) is known in closed form.
    mu = math.sqrt(2 * rho)
    left = norm.cdf(mu / 2 - epsilon / mu)
    right = math.exp(epsilon + norm.logcdf(-mu / 2 - epsilon / mu))
    assert left - right <= ZCDP(rho).delta(epsilon)
