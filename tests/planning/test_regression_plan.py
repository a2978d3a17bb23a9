"""What to expect of a regression table: how wide, and where there is none."""

import re

import numpy as np
import pytest

from dpscreen import PrivateLogit, PrivateOLS, TableRefused
from dpscreen._core.words import number
from dpscreen.families import FAMILIES
from dpscreen.planning import regression_plan
from dpscreen.planning.regression_plan import width_ratio
from dpscreen.planning.setting import Setting, around


def expected_table(*, tables=3, others=True, progress=None, **public):
    more = {"tables": tables, "others": others, "progress": progress}
    return regression_plan.expected_table(Setting(table=True, **public), **more)


def test_too_few_rows_have_no_table_and_the_fit_says_the_same():
    expected = expected_table(n_rows=500, n_features=10, epsilon=1, delta=1e-6, tables=2)
    assert expected.ratio is None
    assert expected.refused
    assert "The fit would be refused: a table of 10 features" in expected.finding
    model = PrivateOLS(
        epsilon=1, delta=1e-6, feature_bounds=(0, 1), target_bounds=(0, 1), n_rows=500
    )
    with pytest.raises(TableRefused) as caught:
        model.fit(np.ones((500, 10)), np.ones(500))
    takes = expected.finding.partition("A table needs ")[2]
    assert takes in str(caught.value)
    assert caught.value.rows_needed == pytest.approx(expected.rows_needed, rel=0.06)


def test_a_larger_epsilon_never_widens_and_ends_at_least_squares_own():
    expected = expected_table(n_rows=4000, n_features=3, epsilon=1, delta=1e-6, tables=2)
    assert [one.epsilon for one in expected.widths] == list(around(1))
    ratios = [one.ratio for one in expected.widths if one.ratio is not None]
    assert ratios == sorted(ratios, reverse=True)
    assert 1 <= ratios[-1] < 1.2
    assert ratios[0] > 2
    assert "times as wide" in expected.finding
    assert "rare levels and heavy tails have wider ones, or none" in expected.finding


def test_fewer_rows_at_a_larger_budget_stand_for_many(monkeypatch):
    """The ratio rests on nρ: 5000 rows for 20 000 come within a seventh, and 1000 would not."""
    setting = Setting(20_000, 4, 0.5, 1e-6)
    monkeypatch.setattr(regression_plan, "MOST_ROWS", 20_000)
    whole = width_ratio(setting, 3)
    monkeypatch.setattr(regression_plan, "MOST_ROWS", 5000)
    assert width_ratio(setting, 3) == pytest.approx(whole, rel=0.15)


def test_odds_ratios_are_as_wide_as_a_fit_gives_them():
    expected = expected_table(
        n_rows=4000, n_features=3, epsilon=2, delta=1e-6, rate=0.3, family="binomial"
    )
    rng = np.random.default_rng(8)
    X = rng.normal(size=(4000, 3))
    y = rng.random(4000) < 1 / (1 + np.exp(1 - X.sum(axis=1) / np.sqrt(3)))
    given = {"epsilon": 2, "delta": 1e-6, "feature_bounds": (-3, 3), "n_rows": 4000}
    table = PrivateLogit(**given).fit(X, y).table_
    widths = (table.bse.to_numpy() / table.plain_errors)[:3]
    assert expected.rate == 0.3
    assert expected.ratio == pytest.approx(float(np.median(widths)), rel=0.4)
    assert "logistic regression without privacy" in expected.finding


def test_of_how_many_odds_ratios_agrees_with_fits_of_levels():
    """13 to 18 are promised; 14 or 15 come."""
    settings = {"epsilon": 1, "delta": 1e-6, "n_rows": 8000}
    expected = expected_table(
        n_features=18, rate=0.5, family="binomial", levels=16, others=False, **settings
    )
    low, high = map(
        int, re.search("Intervals of ([0-9]+) to ([0-9]+) of 18", expected.finding).groups()
    )
    rng = np.random.default_rng(3)
    X = rng.normal(size=(8000, 18))
    X[:, :16] = rng.random((8000, 16)) < np.geomspace(0.6, 0.02, 16)
    y = rng.random(8000) < 1 / (1 + np.exp(-2 * X[:, :4].sum(axis=1) + 3))
    bounds = [(0, 1)] * 16 + [(-3, 3)] * 2
    tables = [PrivateLogit(feature_bounds=bounds, **settings).fit(X, y).table_ for _ in range(4)]
    came = np.mean([table.given[:18].sum() for table in tables])
    assert low - 2 <= came <= high
    assert low < 18
    assert "the rarer levels, the fewer have an interval" in expected.finding


def test_rows_that_odds_ratios_need_are_found_by_trying():
    given = {"n_features": 6, "epsilon": 1.0, "delta": 1e-6, "others": False, "family": "binomial"}
    few = expected_table(n_rows=300, **given)
    assert few.ratio is None
    assert few.refused
    assert f"A table needs about {number(few.rows_needed)} rows" in few.finding
    assert expected_table(n_rows=few.rows_needed, **given).ratio is not None
    assert expected_table(n_rows=few.rows_needed // 2, **given).ratio is None


@pytest.mark.parametrize("family", FAMILIES)
def test_a_budget_for_one_coefficient_narrows_its_interval(family):
    given = {"n_rows": 20_000, "n_features": 8, "epsilon": 1, "delta": 1e-6, "others": False}
    given |= {"family": family}
    every, one = expected_table(**given), expected_table(**given, interest=(0,), required=(4,))
    assert one.ratio < (every.ratio or np.inf)
    assert "Intervals of the coefficient of interest will be" in one.finding
