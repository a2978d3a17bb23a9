"""A budget refuses nonsense, adds by basic composition and splits; so do the paper's formulas.

These are transcribed again here, with what zCDP makes of them. A unit of privacy says its own
sentence, and reads it.
"""

import math
from math import exp, log, sqrt

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpscreen.models.tukey import TukeyEM
from dpscreen.privacy import ZCDP, Budget
from dpscreen.privacy.budget import (
    MOST_EPSILON,
    ROW,
    Unit,
    advanced_share,
    advanced_share_approximate,
    gaussian_sigma,
    worded,
)

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
            epsilon=epsilon, delta=1e-6, feature_bounds=[(0, 1)], target_bounds=(0, 1), n_rows=10
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


@given(budgets, shares, shares)
def test_split_sums_back(budget, share, delta_share):
    rest, part = budget.split(share=share, delta_share=delta_share)
    together = rest + part
    assert together.epsilon == pytest.approx(budget.epsilon, rel=1e-15)
    assert together.delta == pytest.approx(budget.delta, rel=1e-15)
    assert part.epsilon == pytest.approx(share * budget.epsilon)
    assert part.delta == pytest.approx(delta_share * budget.delta)


# --- the paper's composition ----------------------------------------------------------------------

usual_budgets = st.builds(Budget, st.floats(1e-3, 50), st.floats(1e-12, 0.5))
counts = st.integers(1, 10_000)


@given(usual_budgets, counts)
def test_algorithm_2_line_2_and_algorithm_1_lines_3_and_4(budget, count):
    share = budget.epsilon / sqrt(8 * count * log(1 / budget.delta))
    assert advanced_share(budget, count=count) == pytest.approx(share, rel=1e-12)
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


# --- units ----------------------------------------------------------------------------------------


@given(st.integers(1, 2**20), st.none() | st.text(min_size=1))
def test_a_unit_reads_what_it_says(rows, column):
    unit = Unit(rows, column=column)
    assert Unit.of_words(str(unit)) == unit


@given(st.text())
def test_only_its_own_sentences_are_read(text):
    named = f"one value of the column {text}"
    for words in (text, f"{text} (at most 3 rows)", f"{named} (at most 3 rows)"):
        read = Unit.of_words(words)
        assert read is None or str(read) == words


def test_the_sentences():
    assert str(Unit()) == "one row"
    assert Unit() == ROW
    assert str(Unit(3)) == "one unit (at most 3 rows)"
    assert str(Unit(3, column="id")) == "one value of the column 'id' (at most 3 rows)"
    assert str(Unit(1, column="id")) == "one value of the column 'id' (at most 1 row)"


@pytest.mark.parametrize(
    "words",
    [
        "",
        "one rows",
        "one unit (at most 1 row)",
        "one unit (at most 3 row)",
        "one unit (at most 03 rows)",
        f"one unit (at most {'9' * 5000} rows)",
        "one value of the column 'id'",
        "one value of the column id (at most 3 rows)",
        "one value of the column b'x' (at most 3 rows)",
        "one value of the column '\\d' (at most 3 rows)",
        "one value of the column '\\U00ffffff' (at most 3 rows)",
        "one value of the column 'a' + 'b' (at most 3 rows)",
    ],
)
def test_other_words_are_none_of_its_own(words):
    assert Unit.of_words(words) is None


def test_words_of_others_may_tell_a_number_of_rows():
    assert worded("one household (at most 12 rows)") == ("one household", "12")
    assert worded("one household") == ("one household", None)


@pytest.mark.parametrize("rows", [0, -1])
def test_a_unit_has_at_least_one_row(rows):
    with pytest.raises(ValueError, match="rows_per_unit"):
        Unit(rows)
