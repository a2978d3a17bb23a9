"""A budget refuses nonsense, adds by basic composition, and splits without loss."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpscreen.privacy import Budget

epsilons = st.floats(1e-9, 1e9)
deltas = st.floats(1e-300, 0.4)
budgets = st.builds(Budget, epsilons, deltas)
shares = st.floats(0.001, 0.999)


@pytest.mark.parametrize("epsilon", [0, -1.0, math.nan, math.inf, -math.inf])
def test_epsilon_must_be_positive_and_finite(epsilon):
    with pytest.raises(ValueError, match="epsilon"):
        Budget(epsilon, 0.1)


@pytest.mark.parametrize("delta", [0, 1, -0.1, 1.1, math.nan, math.inf])
def test_delta_must_lie_strictly_between_0_and_1(delta):
    with pytest.raises(ValueError, match="delta"):
        Budget(1.0, delta)


@pytest.mark.parametrize("delta", [5e-324, math.nextafter(1, 0)])
def test_every_delta_in_between_is_allowed(delta):
    assert Budget(1.0, delta).delta == delta


def test_a_budget_cannot_be_raised_later():
    with pytest.raises(AttributeError):
        Budget(1.0, 0.1).epsilon = 2.0


@given(budgets, budgets)
def test_basic_composition_adds_both_parts(one, other):
    both = one + other
    assert both == other + one
    assert (both.epsilon, both.delta) == (one.epsilon + other.epsilon, one.delta + other.delta)


def test_deltas_that_add_up_to_1_are_no_budget():
    with pytest.raises(ValueError, match="delta"):
        Budget(1.0, 0.6) + Budget(1.0, 0.4)


@given(budgets, shares, shares)
def test_split_sums_back(budget, share, delta_share):
    rest, part = budget.split(share=share, delta_share=delta_share)
    together = rest + part
    assert together.epsilon == pytest.approx(budget.epsilon, rel=1e-15)
    assert together.delta == pytest.approx(budget.delta, rel=1e-15)
    assert part.epsilon == pytest.approx(share * budget.epsilon)
    assert part.delta == pytest.approx(delta_share * budget.delta)


@pytest.mark.parametrize(("share", "delta_share"), [(0, 0.5), (1, 0.5), (0.5, 0), (0.5, 1)])
def test_neither_part_of_a_split_may_be_empty(share, delta_share):
    with pytest.raises(ValueError, match=r"epsilon|delta"):
        Budget(1.0, 0.1).split(share=share, delta_share=delta_share)
