"""Fits that book their budget: before any release, or not at all."""

from __future__ import annotations

import dask.array
import numpy as np
import pandas as pd
import pytest
from estimator_settings import PUBLIC
from scipy import sparse

from dpscreen import BudgetRefused, PrivacyLedger, PrivateLasso
from dpscreen.privacy import ZCDP, Budget, WrongUnit
from dpscreen.privacy.ledger import OtherRows
from dpscreen.rows.cluster import cluster_rows
from dpscreen.rows.source import ArrayRows
from dpscreen.rows.sparse import SparseRows
from dpscreen.rows.spool import Spool
from dpscreen.rows.streamed import StreamedRows


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


def test_a_ledger_is_told_the_unit_and_refuses_another(private_class, rows, ledger, tmp_path):
    private_class(**PUBLIC).fit(*rows, ledger=ledger)
    assert [entry.unit for entry in ledger.entries()] == ["one row"]
    model = private_class(**PUBLIC, rows_per_unit=3)
    with pytest.raises(WrongUnit, match="at most 3 rows"):
        model.fit(*rows, ledger=ledger.path)
    assert len(ledger.entries()) == 1
    assert not hasattr(model, "coef_")
    other = PrivacyLedger.create(tmp_path / "units.db", dataset="d", epsilon=3.0, delta=1e-6)
    model.fit(*rows, ledger=other)
    assert [entry.unit for entry in other.entries()] == ["one unit (at most 3 rows)"]


def test_bad_input_costs_nothing(private_class, rows, ledger):
    X, y = rows
    with pytest.raises(ValueError, match="epsilon"):
        private_class(**PUBLIC | {"epsilon": -1}).fit(X, y, ledger=ledger)
    with pytest.raises(ValueError, match="inconsistent"):
        private_class(**PUBLIC).fit(X, y[:-1], ledger=ledger)
    with pytest.raises(ValueError, match="ledger"):
        private_class(**PUBLIC, calibration="published").fit(X, y, ledger=ledger)
    assert ledger.spent.rho == 0


# --- which rows a ledger is for -------------------------------------------------------------------

BOUNDS = {"feature_bounds": {"age": (0, 120), "income": (0, 9)}, "target_bounds": (0, 50)}


@pytest.fixture
def people():
    rng = np.random.default_rng(0)
    age, income = rng.uniform(20, 90, 500), rng.normal(4, 1, 500).round(3)
    return pd.DataFrame({"age": age, "income": income, "cost": age / 3 + rng.normal(0, 1, 500)})


def booked(ledger, table, **given):
    before = len(ledger.entries())
    model = PrivateLasso(epsilon=0.1, delta=1e-7, **BOUNDS | given)
    model.fit(table.drop(columns="cost"), table["cost"], ledger=ledger)
    return len(ledger.entries()) - before


def test_a_ledger_refuses_other_rows_and_knows_its_own_in_any_form(people, ledger):
    assert booked(ledger, people) == 1
    other_target = people.assign(cost=people["cost"] ** 2 / 50)
    fewer = people[["income", "cost"]]
    assert booked(ledger, people.sample(frac=1, random_state=0)) == 1
    assert booked(ledger, other_target) == 1
    assert booked(ledger, fewer, feature_bounds={"income": (0, 20)}) == 1
    longer = pd.concat([people, people[:1]])
    strangers = people + 0.5
    for rows in (longer, people[:-1], strangers):
        with pytest.raises(OtherRows, match="Nothing was booked"):
            booked(ledger, rows)
    assert len(ledger.entries()) == 4
    told = PrivacyLedger(ledger.path, other_rows=True)
    assert booked(told, longer) == booked(ledger, longer) == booked(ledger, people) == 1
    with pytest.raises(OtherRows):
        booked(ledger, strangers)
    (ledger.path / "rows.json").write_text("{}")
    with pytest.raises(RuntimeError, match=r"rows\.json is damaged"):
        booked(ledger, people)


def test_marks_are_of_the_rows_however_they_are_kept_and_of_no_column_of_few_values(people):
    X, y, key = people[["age", "income"]].to_numpy(), people["cost"].to_numpy(), b"key"
    want = ArrayRows(X, y).marks(key)
    assert len(want) == 4  # two columns, the rows and the target
    chunks = [(X[:70], y[:70]), (X[70:], y[70:])]
    streamed = StreamedRows(Spool(iter(chunks), 2, None, in_memory=0))
    cluster, _ = cluster_rows(
        dask.array.from_array(X, chunks=(100, 2)), dask.array.from_array(y, 100)
    )
    order = np.random.default_rng(1).permutation(500)
    for rows in (streamed, cluster, ArrayRows(X[order], y[order]), ArrayRows(X[:, ::-1], y)):
        assert rows.marks(key) == want
        rows.close()
    assert ArrayRows(X, y).marks(b"another").isdisjoint(want)
    few = np.arange(500.0)[:, None] % [2, 20, 30]
    assert ArrayRows(few[:, :2], few[:, 2]).marks(key) == set()
    matrix = sparse.csr_array(X * (X > 40))
    assert len(SparseRows(matrix, y).marks(key) & want) == 1  # the target
    moved = SparseRows(sparse.csr_array(matrix[:, ::-1]), few[:, 2])
    assert moved.marks(key) != SparseRows(matrix, few[:, 2]).marks(key) != set()


def test_marks_leave_the_ledgers_directory_in_no_export(people, ledger):
    booked(ledger, people)
    kept = (ledger.path / "rows.json").read_text()
    assert (ledger.path / "rows.json").stat().st_mode & 0o777 == 0o600
    for secret in kept.split('"')[3::2]:
        assert len(secret) < 8 or secret not in ledger.export("json") + ledger.export("csv")
