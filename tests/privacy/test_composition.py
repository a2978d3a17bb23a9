"""The paper's composition formulas, transcribed again, and what Lemma 5 says they are worth."""

from math import exp, log, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpscreen.privacy import ZCDP, Budget, NoisyMax
from dpscreen.privacy.budget import advanced_share, advanced_share_approximate, gaussian_sigma

budgets = st.builds(Budget, st.floats(1e-3, 50), st.floats(1e-12, 0.5))
counts = st.integers(1, 10_000)


@given(budgets, counts)
def test_algorithm_2_line_2(budget, count):
    share = budget.epsilon / sqrt(8 * count * log(1 / budget.delta))
    assert advanced_share(budget, count=count) == pytest.approx(share, rel=1e-12)


@given(budgets, counts)
def test_algorithm_1_lines_3_and_4(budget, count):
    step = advanced_share_approximate(budget, count=count)
    delta = budget.delta / (count + 1)
    assert step.delta == pytest.approx(delta, rel=1e-12)
    epsilon = budget.epsilon / (2 * sqrt(2 * count * log(1 / delta)))
    assert step.epsilon == pytest.approx(epsilon, rel=1e-12)


def appendix_b(step, *, count, slack):
    """Return what steps cost together by the theorem that the paper cites, δ' being the slack.

    ε' = ε √(2k ln(1/δ')) + k ε (e^ε − 1) and kδ + δ'.
    """
    root = sqrt(2 * count * log(1 / slack))
    epsilon = step.epsilon * root + count * step.epsilon * (exp(step.epsilon) - 1)
    return Budget(epsilon, count * step.delta + slack)


@given(st.floats(0.1, 5), st.floats(1e-9, 1e-3), st.integers(1, 1000))
def test_algorithm_1_spends_no_more_than_it_has(epsilon, delta, count):
    # The shares of lines 3 and 4 are enough for the theorem of Appendix B at these ε.
    budget = Budget(epsilon, delta)
    step = advanced_share_approximate(budget, count=count)
    total = appendix_b(step, count=count, slack=step.delta)
    assert total.delta == pytest.approx(delta, rel=1e-9)
    assert total.epsilon <= epsilon


def test_algorithm_1_line_5():
    step = Budget(0.3, 1e-5)
    sigma = gaussian_sigma(step, sensitivity=7.0)
    assert sigma**2 == pytest.approx(2 * 7.0**2 * log(1.25 / 1e-5) / 0.3**2)


def test_what_zcdp_buys_over_the_papers_formula():
    # Lemma 5: T = 1000 steps at (4.9, 1/4000). ε₀ of a selection is its range over its scale, 2Δ/β.
    budget, count = Budget(4.9, 1 / 4000), 1000
    published = advanced_share(budget, count=count)
    selection = NoisyMax.of_cost(ZCDP.within(budget) / count, sensitivity=1.0)
    assert published == pytest.approx(0.0190, abs=5e-5)
    assert 2 / selection.scale == pytest.approx(0.0760, abs=5e-5)
