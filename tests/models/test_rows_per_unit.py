"""A promise for units with several rows: k times the noise, and the same budget (Lemma 18)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from estimator_settings import PUBLIC
from hypothesis import given, settings
from hypothesis import strategies as st

from dpscreen import PrivacyLedger, PrivateLasso
from dpscreen.privacy import ZCDP, Accountant, Budget, NoisyMax, SecureNoise
from dpscreen.privacy.accountant import BudgetExceeded
from dpscreen.privacy.budget import Unit
from dpscreen.rows.source import ArrayRows, PublicUnits

LASSO = {"epsilon": 2.0, "delta": 1e-6, "feature_bounds": (-10, 10), "target_bounds": (-100, 100)}
LIMIT = ZCDP.within(Budget(2.0, 1e-6))


def sums(X, y, clip, weights):
    units = PublicUnits(np.array([[-1.0, 1.0]] * X.shape[1]), np.array([-2.0, 2.0]), constant=True)
    return ArrayRows(X, y).lattice(units).at(weights, scale=1.0).clipped_sums(clip)


@settings(max_examples=40)
@given(st.integers(1, 5), st.integers(0, 2**32), st.floats(0.1, 3))
def test_k_rows_move_sums_at_most_k_times_as_far(k, seed, clip):
    rng = np.random.default_rng(seed)
    X, y = rng.uniform(-1, 1, (12 + k, 3)), rng.uniform(-2, 2, 12 + k)
    weights = rng.uniform(-0.3, 0.3, 4)
    moved = sums(X, y, clip, weights) - sums(X[:12], y[:12], clip, weights)
    assert np.abs(moved).max() <= k * 2**28


def test_k_equal_rows_attain_it():
    X, y, weights = np.ones((7, 2)), np.full(7, -2.0), np.zeros(3)
    for k in (1, 2, 3):
        moved = sums(X, y, 1.0, weights) - sums(X[k:], y[k:], 1.0, weights)
        assert np.abs(moved).max() == k * 2**28


def law(scores, scale):
    weights = np.exp((scores - scores.max()) / scale)
    return weights / weights.sum()


@given(
    st.lists(st.lists(st.floats(-1, 1), min_size=3, max_size=3), min_size=1, max_size=4),
    st.floats(1.1, 30),
)
def test_a_selection_costs_a_unit_k_squared_times_as_much(rows, alpha):
    # Each row moves each score by at most 1: the divergence is within α k² times what a row costs.
    mechanism, start = NoisyMax(1.0, 2.0, 2.5), np.array([0.3, -1.0, 2.0])
    p, q = law(start, 2.5), law(start + np.sum(rows, axis=0), 2.5)
    bound = alpha * float(mechanism.cost * len(rows) ** 2)
    for one, other in ((p, q), (q, p)):
        divergence = np.log(np.sum(one**alpha * other ** (1 - alpha))) / (alpha - 1)
        assert divergence <= bound + 1e-12


@given(st.integers(1, 50), st.integers(1, 30), st.fractions(Fraction(1, 100), 10))
def test_an_accountant_spends_its_limit_exactly(k, count, rho):
    class Known:
        name, sensitivity, scale = "known", 1.0, 1.0
        cost = ZCDP(rho) / (k**2 * count)

        def __call__(self, values, noise):
            return None

    accountant = Accountant(SecureNoise(), limit=ZCDP(rho), unit=Unit(k))
    for _ in range(count):
        accountant.release(Known(), np.zeros(1), purpose="a step")
    assert accountant.spent == accountant.limit
    with pytest.raises(BudgetExceeded):
        accountant.release(Known(), np.zeros(1), purpose="one too many")


def test_a_unit_gets_k_times_the_noise_for_the_same_budget(private_class, rows):
    one = private_class(**PUBLIC).fit(*rows).privacy_
    many = private_class(**PUBLIC, rows_per_unit=3).fit(*rows).privacy_
    assert many.rho == pytest.approx(one.rho, rel=1e-12)
    assert many.rho <= float(ZCDP.within(Budget(PUBLIC["epsilon"], PUBLIC["delta"])))
    for row, unit in zip(one.mechanisms, many.mechanisms, strict=True):
        assert unit.scale == pytest.approx(3 * row.scale, rel=1e-12)
        assert unit.sensitivity == pytest.approx(3 * row.sensitivity, rel=1e-12)
        assert unit.rho == pytest.approx(row.rho, rel=1e-12)
        assert unit.count == row.count


@pytest.mark.parametrize("given", [{}, {"solver": "frank-wolfe"}])
def test_it_is_the_fit_that_a_row_would_get_with_a_budget_k_squared_times_smaller(
    rows, monkeypatch, given
):
    unit = PrivateLasso(**LASSO, **given, rows_per_unit=2, random_state=5).fit(*rows)
    monkeypatch.setattr(ZCDP, "within", classmethod(lambda *_: LIMIT / 4))
    row = PrivateLasso(**LASSO, **given, random_state=5).fit(*rows)
    np.testing.assert_array_equal(unit.coef_, row.coef_)
    assert unit.intercept_ == row.intercept_
    assert unit.n_iter_ == row.n_iter_
    assert unit.privacy_.rho == pytest.approx(4 * row.privacy_.rho, rel=1e-12)
    scales = [[record.scale for record in model.privacy_.mechanisms] for model in (unit, row)]
    assert scales[0] == scales[1]


@pytest.mark.parametrize("k", [1, 2, 7])
def test_private_lasso_spends_the_budget_of_the_unit(rows, k):
    statement = PrivateLasso(**LASSO, rows_per_unit=k).fit(*rows).privacy_
    assert float(LIMIT) * (1 - 1e-9) <= statement.rho <= float(LIMIT)
    booked = sum(record.rho for record in statement.mechanisms)
    assert booked == pytest.approx(statement.rho, rel=1e-9)
    assert statement.holds
    assert statement.rows_per_unit == k


@pytest.mark.parametrize("make", [lambda **more: PrivateLasso(**LASSO, **more), None])
def test_a_ledger_is_charged_the_budget_of_the_unit(make, private_class, rows, tmp_path):
    ledger = PrivacyLedger.create(tmp_path / "b.db", dataset="d", epsilon=3.0, delta=1e-6)
    model = (
        make(rows_per_unit=4)
        if make
        else private_class(**PUBLIC | LASSO).set_params(rows_per_unit=4)
    )
    model.fit(*rows, ledger=ledger)
    assert ledger.spent.rho == LIMIT.rho


def test_the_statement_names_the_unit(rows):
    statement = PrivateLasso(**LASSO, rows_per_unit=3, n_rows=500).fit(*rows).privacy_
    text = " ".join(str(statement).split())
    assert "for adding or removing one unit (at most 3 rows), all arguments" in text
    assert "rows, not people" not in text


def test_what_is_refused(private_class, rows):
    with pytest.raises(ValueError, match="published calibration guarantees nothing"):
        private_class(**PUBLIC, rows_per_unit=2, calibration="published").fit(*rows)
    with pytest.raises(ValueError, match="not independent"):
        PrivateLasso(**LASSO, rows_per_unit=2, inference="split").fit(*rows)
