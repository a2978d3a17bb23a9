"""A budget refuses nonsense, adds by basic composition, and splits without loss."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpscreen.models.tukey import TukeyEM
from dpscreen.privacy import ZCDP, Budget
from dpscreen.privacy.budget import MOST_EPSILON

epsilons = st.floats(1e-9, MOST_EPSILON / 2)
deltas = st.floats(1e-300, 0.4)
budgets = st.builds(Budget, epsilons, deltas)
shares = st.floats(0.001, 0.999)


@pytest.mark.parametrize("epsilon", [0, -1.0, math.nan, math.inf, -math.inf])
def test_epsilon_must_be_positive_and_finite(epsilon):
    with pytest.raises(ValueError, match="epsilon"):
        Budget(epsilon, 0.1)


@pytest.mark.parametrize("epsilon", [math.nextafter(MOST_EPSILON, math.inf), 1e9, 1e308])
def test_an_epsilon_that_hides_nothing_is_refused(epsilon):
    with pytest.raises(ValueError, match="epsilon must be at most 10000"):
        Budget(epsilon, 0.1)
    with pytest.raises(ValueError, match="epsilon must be at most 10000"):
        TukeyEM(
            epsilon=epsilon,
            delta=1e-6,
            feature_bounds=[(0, 1)],
            target_bounds=(0, 1),
            n_rows=10,
        ).check_parameters()


@given(st.floats(1e-9, MOST_EPSILON), st.floats(5e-324, math.nextafter(1, 0)))
@example(MOST_EPSILON, 5e-324)
@example(MOST_EPSILON, math.nextafter(1, 0))
@example(1e-9, 5e-324)
def test_every_budget_is_divided_up_or_refused_and_not_searched_for_ever(epsilon, delta):
    try:
        cost = ZCDP.within(Budget(epsilon, delta))
    except ValueError:
        assert epsilon < 1
    else:
        assert cost.delta(epsilon) <= delta


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
