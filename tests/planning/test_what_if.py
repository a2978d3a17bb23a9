"""Another ε, simulated: errors of privacy and of sampling, and what they must obey."""

import math
from dataclasses import replace
from itertools import pairwise

import pytest

from dpscreen.planning.power import Setting
from dpscreen.planning.what_if import EXPLAINABLE, around, epsilon_of_one_row, usual_effect, what_if
from dpscreen.privacy import ZCDP, Budget

SMALL = Setting(n_rows=600, n_features=12, epsilon=1.0, delta=1e-6, n_effects=3)


@pytest.fixture(scope="module")
def rows():
    return what_if(SMALL, epsilons=(0.1, 1, 10, 2000), repetitions=8)


def test_privacy_costs_less_the_larger_epsilon_is(rows):
    errors = [row.privacy_error for row in rows]
    for one, next_one in pairwise(rows):
        off = 3 * math.hypot(one.error_se, next_one.error_se)
        assert next_one.privacy_error < one.privacy_error + off
    assert errors[0] > 0.5
    assert errors[-1] < 0.02  # next to no privacy noise


def test_sampling_costs_the_same_at_every_epsilon_and_less_with_more_rows(rows):
    assert len({row.sampling_error for row in rows}) == 1
    more = what_if(replace(SMALL, n_rows=6000), epsilons=(1,), repetitions=8)
    assert more[0].sampling_error < rows[0].sampling_error / 2


def test_the_parts_add_up_and_power_rises(rows):
    for row in rows:
        assert row.captured == pytest.approx(
            max(0, 1 - row.privacy_error - row.sampling_error), abs=1e-12
        )
        assert 0 <= row.captured <= 1
    assert rows[0].power < 0.8 < rows[-1].power


def test_the_same_question_has_the_same_answer():
    once, again = (what_if(SMALL, epsilons=(1,), repetitions=2) for _ in range(2))
    assert once == again


def test_the_features_explain_half_of_the_variance():
    for correlation in (0.0, 0.6):
        setting = replace(SMALL, correlation=correlation)
        assert setting.explained(usual_effect(setting)) == pytest.approx(EXPLAINABLE)


def test_epsilons_lie_around_the_one_in_question():
    found = around(0.7)
    assert found[0] == 0.07
    assert 0.7 in found
    assert found[-1] == 7
    # Nothing beyond what counts as no noise, but for the one in question.
    assert around(5000)[-1] == 5000
    assert around(5e5) == (5e5,)


def test_rows_of_a_unit_cost_as_zcdp_says():
    one_row = epsilon_of_one_row(1.0, 1e-6, 3)
    wanted = ZCDP.within(Budget(1.0, 1e-6)).rho / 9
    assert float(ZCDP.within(Budget(one_row, 1e-6)).rho) == pytest.approx(float(wanted), rel=1e-6)
    assert epsilon_of_one_row(1.0, 1e-6, 1) == 1.0


def test_rows_of_a_unit_make_privacy_dearer(rows):
    (several,) = what_if(SMALL, epsilons=(1,), rows_per_unit=4, repetitions=8)
    assert several.epsilon == 1
    assert several.privacy_error > rows[1].privacy_error


def test_what_cannot_be_divided_up_is_left_out():
    found = what_if(replace(SMALL, delta=1e-300), epsilons=(1e-300, 1), repetitions=2)
    assert [row.epsilon for row in found] == [1]
