"""Another ε, simulated: the power of one effect, which a larger budget never lowers."""

from dataclasses import replace
from itertools import pairwise

import pytest

from dpscreen.models.page.charts import PowerRow
from dpscreen.planning import model_page as module
from dpscreen.planning.model_page import first_detected, nested, what_if
from dpscreen.planning.power import simulated_power
from dpscreen.planning.setting import Setting, around
from dpscreen.privacy import ZCDP, Budget

SMALL = Setting(n_rows=600, n_features=12, epsilon=1.0, delta=1e-6, n_effects=3)


def row(power, effect=0.2):
    return PowerRow("private-lasso", 1.0, effect, power, 0.01, 1.0, 0.1, 0.1, 0.01, 0.2, 8)


@pytest.fixture(scope="module")
def here():
    (found,) = simulated_power(SMALL, [0.25], repetitions=8, seed=0)
    return found


@pytest.fixture(scope="module")
def rows(here):
    return what_if(SMALL, here)


def test_power_rises_from_next_to_nothing_through_that_of_the_plan_to_next_to_all(rows, here):
    assert next(one for one in rows if one.epsilon == 1.0).power == here.power
    assert [one.epsilon for one in rows] == list(around(1.0))
    assert all(one.power <= two.power for one, two in pairwise(rows))
    assert rows[0].power < 0.3
    assert rows[-1].power > 0.8


def test_chance_dips_do_not_make_a_larger_budget_look_worse():
    dips = {0.1: row(0.5), 0.3: row(0.2), 3.0: row(0.3), 10.0: row(0.9), 30.0: row(0.8)}
    found = nested(1.0, row(0.4), dips)
    assert [one.epsilon for one in found] == [0.1, 0.3, 1.0, 3.0, 10.0, 30.0]
    assert [one.power for one in found] == [0.2, 0.2, 0.4, 0.4, 0.9, 0.9]


def test_the_effect_is_the_smallest_that_has_the_power_or_the_largest():
    sizes = [row(0.1, 0.1), row(0.85, 0.2), row(1.0, 0.4)]
    assert first_detected(sizes, 0.8).effect == 0.2
    assert first_detected(sizes[:1], 0.8).effect == 0.1


def test_the_features_explain_half_of_the_variance():
    for correlation in (0.0, 0.6):
        setting = replace(SMALL, correlation=correlation)
        assert setting.explained(setting.usual_effect) == pytest.approx(0.5)


def test_epsilons_lie_around_the_one_in_question():
    found = around(0.7)
    assert found[0] == 0.07
    assert 0.7 in found
    assert found[-1] == 7
    # Nothing beyond what counts as no noise, but for the one in question.
    assert around(5000)[-1] == 5000
    assert around(5e5) == (5e5,)


def test_rows_of_a_unit_cost_as_zcdp_says():
    one_row = replace(SMALL, rows_per_unit=3).one_row
    wanted = ZCDP.within(Budget(1.0, 1e-6)).rho / 9
    assert float(ZCDP.within(Budget(one_row, 1e-6)).rho) == pytest.approx(float(wanted), rel=1e-6)
    assert SMALL.one_row == 1.0


def test_what_cannot_be_divided_up_is_left_out(monkeypatch, here):
    monkeypatch.setattr(module, "around", lambda _: (1e-300, 1.0))
    found = what_if(replace(SMALL, delta=1e-300), here)
    assert [one.epsilon for one in found] == [1]
