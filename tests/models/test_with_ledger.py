"""Fits that book their budget: before any release, or not at all."""

from __future__ import annotations

import pytest
from estimator_settings import PUBLIC

from dpscreen import BudgetRefused, PrivacyLedger
from dpscreen.privacy import ZCDP, Budget, WrongUnit


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger.create(
        tmp_path / "budget.db", dataset="survey", epsilon=3.0, delta=PUBLIC["delta"]
    )


def test_a_fit_books_its_cost_and_one_too_many_is_refused(private_class, rows, ledger):
    cost = ZCDP.within(Budget(PUBLIC["epsilon"], PUBLIC["delta"]))
    model = private_class(**PUBLIC).fit(*rows, ledger=ledger)
    assert ledger.spent.rho == cost.rho
    assert model.privacy_.rho <= float(ledger.spent)
    for _ in range(int(ledger.total.rho / cost.rho) - 1):
        model.fit(*rows, ledger=ledger.path)
    with pytest.raises(BudgetRefused):
        model.fit(*rows, ledger=ledger.path)
    assert not hasattr(model, "coef_")


def test_a_ledger_is_told_the_unit_and_refuses_another(private_class, rows, ledger):
    private_class(**PUBLIC).fit(*rows, ledger=ledger)
    assert [entry.unit for entry in ledger.entries()] == ["one row"]
    model = private_class(**PUBLIC, rows_per_unit=3)
    with pytest.raises(WrongUnit, match="at most 3 rows"):
        model.fit(*rows, ledger=ledger.path)
    assert len(ledger.entries()) == 1
    assert not hasattr(model, "coef_")


def test_bad_input_costs_nothing(private_class, rows, ledger):
    X, y = rows
    with pytest.raises(ValueError, match="epsilon"):
        private_class(**PUBLIC | {"epsilon": -1}).fit(X, y, ledger=ledger)
    with pytest.raises(ValueError, match="inconsistent"):
        private_class(**PUBLIC).fit(X, y[:-1], ledger=ledger)
    with pytest.raises(ValueError, match="ledger"):
        private_class(**PUBLIC, calibration="published").fit(X, y, ledger=ledger)
    assert ledger.spent.rho == 0
