"""Rows that say whose they are: the promise is kept for their unit, and stated for no other.

Violations are computed, not estimated: a fit of one step releases one selection of known law.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dpscreen import DPFrankWolfe, PrivacyLedger, PrivateLasso, WeakDeltaWarning, scan
from dpscreen.models import peers
from dpscreen.privacy import ZCDP, Accountant, Budget
from dpscreen.privacy.budget import Unit
from dpscreen.tables.reading import read_rows
from dpscreen.tables.schema import TableSchema

EPSILON, DELTA = 1.0, 0.01
BOUNDS = {"feature_bounds": (-1, 1), "target_bounds": (-1, 1)}
PEERS = [getattr(peers, name) for name in peers.__all__]


def schema_of(k, *, unit="who"):
    wide = {"minimum": -1, "maximum": 1}
    named = {} if unit is None else {"unit": unit, "rows_per_unit": k}
    return TableSchema.from_dict(
        {
            "fields": [
                {"name": "x", "type": "number", "constraints": wide},
                {"name": "y", "type": "number", "constraints": wide},
                {"name": "who", "type": "string"},
            ],
            "dpscreen": {"target": "y", "features": ["x"], **named},
        }
    )


def table(*people):
    """Return rows with x = 1, one for each (name, target)."""
    return pd.DataFrame([(1.0, y, who) for who, y in people], columns=["x", "y", "who"])


def some_people(n_people=400, rows_each=5):
    rng = np.random.default_rng(3)
    n = n_people * rows_each
    x = rng.uniform(-1, 1, n)
    who = [f"p{number}" for number in rng.permutation(np.arange(n) % n_people)]
    return pd.DataFrame({"x": x, "y": x / 2, "who": who})


def ways(frame, schema, folder):
    """Return the rows in each way in which they can be had, by the way's name."""
    frame.to_csv(folder / "rows.csv", index=False)
    return {
        "scan": scan(folder / "rows.csv", schema),
        "read_rows": read_rows(folder / "rows.csv", schema),
        "encode": schema.encode(frame),
    }


# --- what is promised, computed -------------------------------------------------------------------


@pytest.fixture
def chosen_from(monkeypatch):
    """Return a function that fits one step, and returns the law of its choice and its statement."""
    honest, given = Accountant.release, []

    def release(self, mechanism, values, *, purpose):
        given.append((mechanism, np.array(values)))
        return honest(self, mechanism, values, purpose=purpose)

    monkeypatch.setattr(Accountant, "release", release)

    def law(frame, schema):
        given.clear()
        model = DPFrankWolfe(
            radius=1, n_iter=1, clip=1, fit_intercept=False, epsilon=EPSILON, delta=DELTA, **BOUNDS
        ).fit(schema.encode(frame))
        ((mechanism, sums),) = given
        scores = np.concatenate((sums, -sums)) / float(mechanism.scale_in_units)
        weights = np.exp(scores - scores.max())
        return weights / weights.sum(), model.privacy_

    return law


def exact_delta(p, q):
    """Return the least δ for which both laws keep ε."""
    return max(np.maximum(0, one - np.exp(EPSILON) * two).sum() for one, two in ((p, q), (q, p)))


BACKGROUNDS = [[(f"p{i}", sign) for i in range(m)] for m in range(1, 13) for sign in (1, -1)]


def worst(chosen_from, schema, before, after):
    """Return the largest exact δ over what other people may hold."""
    laws = (
        [chosen_from(table(*some, *others), schema)[0] for some in (before, after)]
        for others in BACKGROUNDS
    )
    return max(exact_delta(*pair) for pair in laws)


def test_a_person_with_three_rows_is_promised_what_is_stated(chosen_from):
    schema, person = schema_of(3), [("ann", 1.0)] * 3
    assert worst(chosen_from, schema, person, []) <= DELTA
    _, statement = chosen_from(table(*person), schema)
    assert (statement.epsilon, statement.delta) == (EPSILON, DELTA)
    assert statement.unit == "one value of the column 'who' (at most 3 rows)"
    # The noise of a row's promise would not do: this is what the fit did when it was told nothing.
    assert worst(chosen_from, schema_of(1, unit=None), person, []) > 10 * DELTA


def test_capping_breaks_a_promise_for_a_row_so_it_is_made_for_the_unit(chosen_from):
    # A row that is added in front displaces another of the same person, of the opposite sign.
    schema, before, after = schema_of(1), [("ann", 1.0)], [("ann", -1.0), ("ann", 1.0)]
    for_a_row = worst(chosen_from, schema, before, after)
    assert for_a_row == pytest.approx(0.1207, abs=1e-4)
    assert for_a_row > DELTA
    for one in (before, after):
        assert worst(chosen_from, schema, one, []) <= DELTA
    _, statement = chosen_from(table(*before), schema)
    assert not statement.of_rows
    assert statement.unit == "one value of the column 'who' (at most 1 row)"
    assert statement.neighbours == f"adding or removing {statement.unit}"
    assert "rows, not people" not in str(statement)


# --- every way from a table to a fit --------------------------------------------------------------


LASSO = {"epsilon": 2.0, "delta": 1e-6, "n_rows": 1000, **BOUNDS}


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("way", ["scan", "read_rows", "encode"])
def test_rows_bring_their_unit_to_the_fit(way, k, tmp_path):
    schema = schema_of(k)
    rows = ways(some_people(), schema, tmp_path)[way]
    model = PrivateLasso(**LASSO, random_state=1).fit(rows, check=False)
    statement = model.privacy_
    assert statement.unit == str(Unit(k, column="who"))
    assert statement.rows_per_unit == k
    assert "rows without one left out" in statement.preprocessing
    assert statement.surplus_left_out
    assert list(model.feature_names_in_) == ["x"]
    told = PrivateLasso(**LASSO, random_state=1, rows_per_unit=k)
    kept = schema.encode(some_people())
    by_hand = told.fit(pd.DataFrame(kept.named_arrays()[0], columns=["x"]), kept.named_arrays()[1])
    np.testing.assert_array_equal(model.coef_, by_hand.coef_)
    assert model.intercept_ == by_hand.intercept_
    assert told.fit(rows, check=False).privacy_ == statement


@pytest.mark.parametrize("way", ["scan", "read_rows", "encode"])
def test_rows_of_a_schema_without_a_unit_may_be_told_one(way, tmp_path):
    rows = ways(some_people(40), schema_of(1, unit=None), tmp_path)[way]
    assert PrivateLasso(**LASSO).fit(rows).privacy_.of_rows
    assert PrivateLasso(**LASSO, rows_per_unit=5).fit(rows).privacy_.unit == (
        "one unit (at most 5 rows)"
    )


@pytest.mark.parametrize("way", ["scan", "read_rows", "encode"])
@pytest.mark.parametrize("make", [PrivateLasso, DPFrankWolfe])
def test_a_fit_that_is_told_another_number_refuses_and_spends_nothing(make, way, tmp_path):
    rows = ways(some_people(40), schema_of(3), tmp_path)[way]
    ledger = PrivacyLedger.create(tmp_path / "b.db", dataset="d", epsilon=9, delta=1e-3)
    more = {"radius": 1, "n_iter": 2} if make is DPFrankWolfe else {}
    model = make(epsilon=1, delta=1e-6, **BOUNDS, **more)
    for told in (1, 2, 4):
        with pytest.raises(ValueError, match=rf"rows_per_unit={told}.*at most 3 rows"):
            model.set_params(rows_per_unit=told).fit(rows, ledger=ledger)
    assert not ledger.spent.rho
    assert not hasattr(model, "privacy_")
    model.set_params(rows_per_unit=None).fit(rows, ledger=ledger, check=False)
    assert [entry.unit for entry in ledger.entries()] == [model.privacy_.unit]


def test_rows_bring_their_target_along():
    rows = schema_of(2).encode(some_people(40))
    with pytest.raises(ValueError, match="y must be None"):
        PrivateLasso(**LASSO).fit(rows, rows.named_arrays()[1])


# --- the other estimators -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", PEERS)
def test_a_peer_charges_for_the_unit_of_its_rows(kind, monkeypatch, tmp_path):
    schema, setting = schema_of(3), {"epsilon": 4.0, "delta": 1e-6, "n_rows": 2000, **BOUNDS}
    rows, limit = schema.encode(some_people()), ZCDP.within(Budget(4.0, 1e-6))
    ledger = PrivacyLedger.create(tmp_path / "b.db", dataset="d", epsilon=9, delta=1e-3)
    model = kind(**setting, random_state=2).fit(rows, ledger=ledger)
    assert model.privacy_.unit == "one value of the column 'who' (at most 3 rows)"
    assert float(limit) * (1 - 1e-9) <= model.privacy_.rho <= float(limit)
    assert ledger.entries()[0].unit == model.privacy_.unit
    assert ledger.spent.rho == limit.rho
    monkeypatch.setattr(ZCDP, "within", classmethod(lambda *_: limit / 9))
    row = kind(**setting, random_state=2).fit(
        pd.DataFrame(rows.named_arrays()[0], columns=["x"]), rows.named_arrays()[1]
    )
    np.testing.assert_array_equal(model.coef_, row.coef_)
    scales = [[record.scale for record in one.privacy_.mechanisms] for one in (model, row)]
    assert scales[0] == scales[1]


def test_intervals_are_refused_for_units_of_several_rows_and_named_for_one():
    frame = some_people(2000, 1)
    model = PrivateLasso(**LASSO | {"epsilon": 9.0, "n_rows": 2000}, inference="split")
    with pytest.raises(ValueError, match="not independent"):
        model.fit(schema_of(2).encode(frame))
    statement = model.fit(schema_of(1).encode(frame)).privacy_
    assert model.inference_.available
    assert statement.unit == "one value of the column 'who' (at most 1 row)"
    assert statement.surplus_left_out


# --- a number of rows that is public --------------------------------------------------------------


def warns(kind, n, **more):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 2))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        kind(epsilon=2.0, delta=1e-3, **BOUNDS, **more).fit(X, X[:, 0])
    return any(issubclass(one.category, WeakDeltaWarning) for one in seen)


@pytest.mark.parametrize("kind", [PrivateLasso, *PEERS])
def test_a_warning_looks_at_the_public_number_of_rows_alone(kind):
    for n in (999, 1000, 1001):
        assert not warns(kind, n, n_rows=999)
        assert warns(kind, n, n_rows=1000)
    assert [warns(kind, n) for n in (400, 1600)] == [False, True]  # a noisy count, ± 23 rows


@pytest.mark.parametrize("kind", [PrivateLasso, *PEERS])
def test_a_statement_with_a_public_number_says_nothing_of_the_true_one(kind):
    X = np.random.default_rng(0).uniform(-1, 1, (400, 2))
    model = kind(**LASSO)
    fits = [model.fit(X[:n], X[:n, 0]).privacy_ for n in (400, 399, 250)]
    # All but what follows from released numbers.
    said = [replace(one, mechanisms=(), rho=0.0) for one in fits]
    assert said[0] == said[1] == said[2]
    numbers = {number for text in said[0].public for number in re.findall(r"\d+", text)}
    assert numbers == {"2", "1000"}
