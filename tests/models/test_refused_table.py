"""A table that is impossible at its budget: refused after the count, which alone is charged.

And one whose coefficients turn out not to be identifiable says which, and claims no absence.
"""

from __future__ import annotations

import pickle
import re
from contextlib import suppress
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest

import dpscreen
from dpscreen import (
    BudgetRefused,
    PrivacyLedger,
    PrivateLasso,
    PrivateLogisticLasso,
    PrivateLogit,
    PrivateOLS,
    TableRefused,
)
from dpscreen.families import BINOMIAL, GAUSSIAN
from dpscreen.models.page import render_model_page
from dpscreen.models.refusal import RequestedTable, table_needs
from dpscreen.privacy import ZCDP, Accountant, Budget
from dpscreen.privacy.replay import record, replay
from dpscreen.solvers import rules
from dpscreen.solvers.table import TableRule

PUBLIC = {"epsilon": 1.0, "delta": 1e-6, "feature_bounds": (-6, 6)}
ABSENCE = re.compile(r"stands? out|found no|no feature (has|was)|has no effect\b(?!:)", re.I)
KINDS = {
    "ols": (PrivateOLS, PUBLIC | {"target_bounds": (-9, 9)}),
    "logit": (PrivateLogit, PUBLIC),
}


def table(kind, n, d, rate=0.5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    line = X @ np.full(d, 0.5 / np.sqrt(d))
    if kind == "ols":
        return X, line + rng.normal(size=n)
    return X, (rng.random(n) < 1 / (1 + np.exp(-line - np.log(rate / (1 - rate))))).astype(float)


def refused_fit(kind, n, d, *, rate=0.5, seed=0, ledger=None, **more):
    estimator, public = KINDS[kind]
    model = estimator(**public | {"random_state": 1} | more)
    with pytest.raises(TableRefused) as caught:
        model.fit(*table(kind, n, d, rate, seed), ledger=ledger)
    assert not [name for name in vars(model) if name.endswith("_")]
    return caught.value


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger.create(
        tmp_path / "budget.db", dataset="survey", epsilon=3.0, delta=PUBLIC["delta"]
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_refused_table_charges_its_count_and_says_what_it_takes(kind, ledger):
    refusal = refused_fit(kind, 500, 20, ledger=ledger)
    limit = ZCDP.within(Budget(1.0, 1e-6))
    assert refusal.charged == ledger.spent
    assert ledger.spent == limit * Fraction(rules.COUNT_SHARE)
    (count,) = refusal.privacy.mechanisms
    assert count.purpose == "the number of rows"
    assert refusal.privacy.rho <= float(ledger.spent)
    assert refusal.privacy.epsilon == refusal.charged.epsilon(1e-6) < 0.1
    assert abs(refusal.n_rows - 500) < 5 * count.scale
    assert refusal.n_features == 20
    needed, instead = (
        refusal.rows_needed,
        "PrivateLasso" if kind == "ols" else "PrivateLogisticLasso",
    )
    assert needed > 1200
    assert 0 < refusal.features_possible < 20
    for told in (instead, "epsilon of about", f"at most {refusal.features_possible} features"):
        assert told in str(refusal)
    assert "Even then some coefficients may have no interval" in str(refusal)
    assert "works with fewer rows" not in str(refusal)
    assert "Only the number of rows was released" in str(refusal)
    assert vars(pickle.loads(pickle.dumps(refusal))) == vars(refusal)


def test_a_refusal_has_a_statement_at_any_delta():
    """At δ = ½ the count costs an ε of 0, which is no budget."""
    refusal = refused_fit("ols", 50, 30, delta=0.5)
    assert refusal.charged.epsilon(0.5) == 0
    assert 0 < refusal.privacy.epsilon < 1e-6
    assert "ten rows for each coefficient" in str(refusal)
    assert refusal.epsilon_needed is None


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_refusal_asks_for_is_enough(kind):
    refusal = refused_fit(kind, 400, 8)
    rule = KINDS[kind][0].table_rule
    for rows, features, epsilon in (
        (refusal.rows_needed, 8, 1.0),
        (refusal.n_rows, refusal.features_possible, 1.0),
        (refusal.n_rows, 8, refusal.epsilon_needed),
    ):
        assert table_needs(rule, RequestedTable(rows, features, Budget(epsilon, 1e-6))) is None
    more = RequestedTable(refusal.n_rows, refusal.features_possible + 1, Budget(1.0, 1e-6))
    assert table_needs(rule, more) is not None


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_that_is_fitted_books_its_whole_budget(kind, ledger):
    estimator, public = KINDS[kind]
    estimator(**public, random_state=1).fit(*table(kind, 4000, 3), ledger=ledger.path)
    assert ledger.spent == ZCDP.within(Budget(1.0, 1e-6))
    assert {one.purpose for one in ledger.entries()} == {estimator.__name__}


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_booked_where_the_ledger_does_not_cover_the_table(kind, tmp_path):
    small = PrivacyLedger.create(tmp_path / "b.db", dataset="d", epsilon=0.5, delta=1e-6)
    estimator, public = KINDS[kind]
    with pytest.raises(BudgetRefused, match="does not fit") as caught:
        estimator(**public, random_state=1).fit(*table(kind, 500, 20), ledger=small)
    assert small.entries() == ()
    assert caught.value.remaining == small.total


@pytest.mark.parametrize("kind", KINDS)
def test_a_declared_number_of_rows_is_refused_free_of_charge(kind, ledger):
    refusal = refused_fit(kind, 500, 20, ledger=ledger, n_rows=500)
    assert ledger.entries() == ()
    assert refusal.privacy is None
    assert refusal.charged == ZCDP.free()
    assert "500 rows (declared)" in str(refusal)


@pytest.mark.parametrize("kind", KINDS)
def test_a_refusal_depends_on_the_released_count_alone(kind):
    """Other rows, and ten times as many, under the same count: the same words, no other release."""
    estimator, public = KINDS[kind]
    with record() as transcript, pytest.raises(TableRefused) as caught:
        estimator(**public).fit(*table(kind, 500, 20))
    assert len(transcript.passages) == 1
    for n, seed in ((500, 1), (5000, 2)):
        with replay(transcript), pytest.raises(TableRefused) as again:
            estimator(**public).fit(*table(kind, n, 20, rate=0.9, seed=seed))
        assert str(again.value) == str(caught.value)
        assert again.value.privacy == caught.value.privacy


BOOKED = {
    "ols": ("ols", 4000, 3, 1.0),
    "ols refused": ("ols", 500, 20, 1.0),
    "logit": ("logit", 4000, 3, 1.0),
    "logit refused": ("logit", 500, 20, 1.0),
    "logit counted twice": ("logit", 340, 1, 1.0),
}


@pytest.mark.parametrize("case", BOOKED)
def test_every_release_of_a_table_was_booked_before(case):
    """At no moment is more spent than booked, and in the end no more booked than the limit."""
    kind, n, d, epsilon = BOOKED[case]
    booked, counts, overspent = [], [], []

    class Book:
        def reserve(self, cost, *, purpose):
            booked.append(cost.rho)

    honest = Accountant.release

    def release(self, *given, **told):
        found = honest(self, *given, **told)
        overspent.append(self.spent.rho > sum(booked))  # a fit would catch an assertion here
        counts.append(told["purpose"] == "the number of rows")
        return found

    estimator, public = KINDS[kind]
    model = estimator(**public | {"epsilon": epsilon, "random_state": 1})
    with mock.patch.object(Accountant, "release", release), suppress(TableRefused):
        model.fit(*table(kind, n, d), ledger=Book())
    assert not any(overspent)
    assert counts[0]
    assert sum(counts) == 1 + case.endswith("twice")
    assert sum(booked) <= ZCDP.within(Budget(epsilon, 1e-6)).rho


def test_the_share_of_outcomes_refuses_too_and_is_charged_with_the_count(ledger):
    """4 000 rows do for 8 features if outcomes are even, and not if one in fifty is a yes."""
    refusal = refused_fit("logit", 4000, 8, rate=0.02, ledger=ledger)
    assert [one.purpose for one in refusal.privacy.mechanisms] == [
        "the number of rows",
        "number of rows of the second class",
    ]
    assert refusal.charged == ledger.spent
    assert refusal.privacy.rho <= float(refusal.charged)
    assert float(refusal.charged) < 0.05 * float(ZCDP.within(Budget(1.0, 1e-6)))
    model = PrivateLogit(**PUBLIC, random_state=1).fit(*table("logit", 4000, 8))
    assert model.table_.given[:8].all()


def test_a_count_without_a_ledger_is_tallied_with_later_fits():
    from dpscreen.models import base

    X, y = table("ols", 500, 20)
    counting = mock.patch.object(base, "count_fit", autospec=True)
    with counting as counted, pytest.raises(TableRefused) as caught:
        PrivateOLS(**KINDS["ols"][1]).fit(X, y)
    ((_, cost, _), _) = counted.call_args
    assert cost == caught.value.charged


def test_where_some_coefficients_are_identifiable_a_partial_table_is_given():
    """1 338 rows and 8 features at ε = 1, refused whole before: most have an interval, that holds.

    Of 96 intervals at 95 % ten and more miss with a chance of 2 %, by the binomial law.
    """
    truth, given, missed = np.full(8, 0.5 / np.sqrt(8)), [], 0
    for seed in range(12):
        model = PrivateOLS(**KINDS["ols"][1], random_state=seed).fit(
            *table("ols", 1338, 8, seed=seed)
        )
        low, high = model.conf_int().to_numpy()[:-1].T
        given.append(model.table_.given[:8].sum())
        missed += int(((low > truth) | (high < truth)).sum())
    assert min(given) >= 3
    assert np.mean(given) > 5
    assert missed < 10


# --- the rule -------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [9, 31])
def test_lemma_60_the_rule_is_where_a_noisy_matrix_stays_positive(k):
    """Eigenvalues are those of clipped rows but for noise: at the rule's n half are positive."""
    rho, rng, rule = 0.02, np.random.default_rng(k), TableRule.of(GAUSSIAN)
    noise = k / np.sqrt(2 * rule.matrix_share * rho)
    n = rule.rows_needed(k, rho)
    squares = (rng.normal(size=(10_000, k)) ** 2).sum(axis=1)
    kept = np.minimum(squares, k).mean() / k

    def least(rows):
        E = rng.normal(size=(200, k, k)) * noise / np.sqrt(2)
        E = (E + E.transpose(0, 2, 1)) / np.sqrt(2)
        return np.linalg.eigvalsh(rows * kept * np.eye(k) + E)[:, 0]

    assert np.mean(least(n) > 0) > 0.4
    assert np.mean(least(n / 2) > 0) < 0.25
    assert np.median(least(1.5 * n)) > 0


def test_the_rule_is_monotone():
    rules = TableRule.of(GAUSSIAN), TableRule.of(BINOMIAL), TableRule.of(BINOMIAL, 0.05)
    for rule in rules:
        needed = [rule.rows_needed(k, 0.02) for k in range(1, 40)]
        assert needed == sorted(needed)
        assert rule.rows_needed(10, 0.04) <= rule.rows_needed(10, 0.02)
    rare, usual, line = rules[2], rules[1], rules[0]
    assert rare.rows_needed(10, 0.02) > usual.rows_needed(10, 0.02) > line.rows_needed(10, 0.02)


# --- sentences ------------------------------------------------------------------------------------


def everything_said(model, tmp_path):
    path = tmp_path / "model.json"
    model.save(path, force=True)
    loaded = dpscreen.load(path)
    for one in (model, loaded):
        assert one.explain() == model.explain()
        assert str(one.summary()) == str(model.summary())
    texts = (
        str(model.summary()),
        model.explain(),
        model.to_model_card(),
        re.sub("<[^>]*>", " ", render_model_page(model)),
    )
    return [" ".join(one.replace("\\", "").split()) for one in texts]


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_of_columns_that_do_not_vary_says_so_and_claims_no_absence(kind, tmp_path):
    X, y = table(kind, 20_000, 3)
    estimator, public = KINDS[kind]
    model = estimator(**public | {"random_state": 1}).fit(0 * X + 1, y)
    assert np.abs(model.coef_).max() < 0.1
    low, high = model.conf_int().to_numpy()[-1]
    assert low < np.mean(y if kind == "ols" else 0) < high or kind == "logit"
    for text in everything_said(model, tmp_path):
        assert not ABSENCE.search(text), ABSENCE.search(text)
    explained = everything_said(model, tmp_path)[1]
    assert "nothing was tested and nothing follows about any feature" in explained
    assert "Intervals are not available: not identifiable at this budget" in explained


def test_collinear_columns_are_named_wherever_the_table_is_explained(tmp_path):
    X, y = table("ols", 20_000, 3)
    X[:, 2] = X[:, 0]
    model = PrivateOLS(**KINDS["ols"][1], random_state=1).fit(X, y)
    assert list(model.table_.reasons) == [2]
    for text in everything_said(model, tmp_path):
        assert re.search("not separable from x0", text)
        assert not ABSENCE.search(text)


@pytest.mark.parametrize("estimator", [PrivateLasso, PrivateLogisticLasso])
def test_a_selection_that_finds_nothing_claims_no_absence(estimator, tmp_path):
    kind = "ols" if estimator is PrivateLasso else "logit"
    X, y = table(kind, 60, 6)
    model = estimator(**KINDS[kind][1] | {"epsilon": 0.3, "random_state": 1}).fit(X, y)
    model.coef_ = 0 * model.coef_
    for text in everything_said(model, tmp_path):
        assert not ABSENCE.search(text), ABSENCE.search(text)
    assert "effects below the noise level of this budget are not detected" in model.explain()
