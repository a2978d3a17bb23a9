"""What to expect of models of outcomes: the simulated tables are as supposed, and it reads well."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from dpscreen.planning import outcome_plan
from dpscreen.planning.outcome_plan import (
    METHODS,
    TOO_FEW,
    OutcomeContest,
    SimulatedOutcomes,
    auc,
    expected_of_outcomes,
    expected_outcomes,
    finding,
)
from dpscreen.planning.plan import setting_of


def contest(n_rows=1500, d=8, epsilon=2.0, rate=0.3, **more):
    return OutcomeContest(setting_of(n_rows, d, epsilon, 1e-6), rate, **more)


@pytest.mark.parametrize(("rate", "effect"), [(0.05, 0.2), (0.5, 2.0), (0.9, 1.0)])
def test_outcomes_are_as_common_as_supposed(rate, effect):
    """5 deviations of a share: one false alarm in 10^6."""
    table = SimulatedOutcomes.of(contest(40_000, 8, rate=rate), effect, "share")
    assert abs(table.y.mean() - rate) < 5 * np.sqrt(rate * (1 - rate) / 40_000)


def test_auc_is_the_usual_one():
    rng = np.random.default_rng(0)
    y, line = rng.random(300) < 0.3, rng.integers(0, 9, 300).astype(float)
    assert auc(line, y.astype(float)) == pytest.approx(roc_auc_score(y, line))
    assert auc(line, np.ones(300)) == 0.5


def test_more_budget_and_larger_effects_find_more():
    found = expected_outcomes(contest(epsilons=(0.2, 5.0), effects=(0.02, 1.0)), tables=3)
    small, large = found[:2], found[2:]
    assert [one.epsilon for one in found] == [0.2, 0.2, 5.0, 5.0]
    assert large[1].power == 1.0
    assert large[1].power > small[0].power
    assert large[1].auc > small[1].auc
    assert all(one.auc < one.best_auc + 0.01 for one in found)
    assert "Effects of 1 log-odds" in finding(large)
    assert "None of these" in finding(small[:1])


def test_fewer_rows_at_a_larger_budget_stand_for_more(monkeypatch):
    """What noise does is the same: 24 000 rows at ε = ½ and 3000 rows that stand for them."""
    whole = expected_outcomes(contest(24_000, 8, 0.3, effects=(0.4,)), tables=3)
    monkeypatch.setattr(outcome_plan, "MOST_CELLS", 24_000)
    thinned = expected_outcomes(contest(24_000, 8, 0.3, effects=(0.4,)), tables=3)
    assert abs(whole[0].auc - thinned[0].auc) < 0.03
    assert contest(24_000, 8).n_rows == 3000
    assert contest(10**6, 10**6).n_features == 500


def test_all_methods_are_fitted_to_the_same_tables():
    found = expected_outcomes(contest(800, 5, methods=METHODS, effects=(0.8,)), tables=2)
    assert [one.method for one in found] == list(METHODS)
    assert len({one.best_auc for one in found}) == 1
    assert found[-1].epsilon is None


def test_a_page_is_told_sizes_and_other_budgets():
    shares = []
    told = {"n_rows": 3000, "n_features": 6, "epsilon": 1.0, "delta": 1e-6}
    found = expected_of_outcomes(**told, rate=0.3, tables=2, progress=shares.append)
    assert found.rate == 0.3
    assert [row.effect for row in found.rows] == list(outcome_plan.EFFECTS)
    assert [row.epsilon for row in found.what_if] == [0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 10.0]
    powers = [row.power for row in found.what_if]
    assert powers == sorted(powers)
    assert powers[0] < powers[-1]
    here = next(row for row in found.rows if row.effect == found.what_if_effect)
    assert here.power in powers
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert found.useful
    assert found.advice == ""


def test_a_page_says_where_nothing_can_be_found():
    found = expected_of_outcomes(n_rows=40, n_features=30, epsilon=0.1, delta=1e-6, tables=2)
    assert not found.useful
    assert found.advice == TOO_FEW
