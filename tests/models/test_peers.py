"""The peers: their contract, what they book and release, and how far one row moves each release."""

from __future__ import annotations

import pickle
import traceback
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import dpscreen
from dpscreen.models import peers
from dpscreen.privacy import (
    ZCDP,
    Accountant,
    Budget,
    BudgetRefused,
    NoisyMax,
    PrivacyLedger,
    SeededNoise,
    WeakDeltaWarning,
)
from dpscreen.privacy.accountant import release_sums, release_triangle
from dpscreen.rows.lattice import UNITS
from dpscreen.solvers import base
from dpscreen.solvers import peers as peer_solvers
from dpscreen.solvers.base import Spending
from dpscreen.solvers.peers import Ridge, overshot, peel, turned_back
from dpscreen.solvers.rules import Regime

pytestmark = [
    pytest.mark.filterwarnings("ignore::dpscreen.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::dpscreen.WeakDeltaWarning"),
]
KINDS = [getattr(peers, name) for name in peers.__all__]
SETTING = {"epsilon": 2.0, "delta": 1e-6, "feature_bounds": (-1, 1), "target_bounds": (-4, 4)}
WIDE = SETTING | {"feature_bounds": (-10, 10), "target_bounds": (-100, 100)}


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def kind(request):
    return request.param


# --- the contract ---------------------------------------------------------------------------------


@parametrize_with_checks(
    [
        *(kind(**WIDE) for kind in KINDS),
        peers.NoisyIHT(**WIDE, row_norm=1.0, fit_intercept=False, n_rows=100),
    ]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore::dpscreen.BoundsWarning")  # scikit-learn's rows sit at ends
def test_scikit_learn_check(estimator, check):
    check(estimator)


def test_frames_bounds_by_name_and_clones(kind, rows):
    X, y = rows
    names = list("abcdef")
    by_name = WIDE | {"feature_bounds": dict.fromkeys(names, (-10, 10)), "random_state": 3}
    named = kind(**by_name).fit(pd.DataFrame(X, columns=names), y)
    plain = kind(**WIDE, random_state=3).fit(X, y)
    np.testing.assert_array_equal(named.coef_, plain.coef_)
    assert list(named.feature_names_in_) == names
    assert clone(named).get_params()["feature_bounds"] == by_name["feature_bounds"]


def test_they_are_not_offered_beside_the_estimators():
    assert not set(peers.__all__) & set(dir(dpscreen))
    with pytest.raises(TypeError, match="positional"):
        peers.AdaSSP(1.0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epsilon", None),
        ("epsilon", -1),
        ("delta", 1.5),
        ("row_norm", -2),
        ("n_rows", 0),
        ("standardize", "yes"),
        ("fit_intercept", 1),
        ("feature_bounds", None),
        ("target_bounds", (1, 0)),
        ("random_state", -1),
    ],
)
def test_bad_parameters_are_named(kind, rows, name, value):
    model = kind(**SETTING | {name: value})
    with pytest.raises((ValueError, TypeError), match=name):
        model.fit(*rows)
    assert not hasattr(model, "coef_")


SECRET = 0.8675309


@pytest.mark.parametrize("case", ["nan", "text", "lengths", "no rows", "one dimension"])
def test_bad_rows_are_refused_without_being_quoted(kind, case):
    X, y = np.full((30, 6), SECRET), np.full(30, SECRET)
    bad = {
        "nan": (np.where(np.eye(30, 6) > 0, np.nan, X), y),
        "text": (X.astype(str), y),
        "lengths": (X, y[:-1]),
        "no rows": (X[:0], y[:0]),
        "one dimension": (X[:, 0], y),
    }[case]
    model = kind(**SETTING)
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - whatever the message, no cell is in it
        model.fit(*bad)
    assert "8675309" not in "".join(traceback.format_exception_only(caught.value))
    assert not hasattr(model, "coef_")


def test_weak_delta_warns(kind, rows):
    with pytest.warns(WeakDeltaWarning, match="delta"):
        kind(**SETTING | {"delta": 1 / 40}).fit(*rows)


# --- the account ----------------------------------------------------------------------------------


@settings(max_examples=30)
@given(
    kind=st.sampled_from(KINDS),
    n_rows=st.integers(1, 300),
    n_features=st.integers(1, 30),
    epsilon=st.floats(1e-3, 1e3),
    delta=st.floats(1e-12, 0.1),
    standardize=st.sampled_from(["auto", True, False]),
    intercept=st.booleans(),
    row_norm=st.sampled_from([None, 1.0]),
    told=st.sampled_from([None, 1, 10_000]),
)
def test_the_account_adds_up_to_the_budget(
    kind, n_rows, n_features, epsilon, delta, standardize, intercept, row_norm, told
):
    rng = np.random.default_rng(n_rows)
    X, y = rng.normal(size=(n_rows, n_features)), rng.normal(size=n_rows)
    model = kind(
        **SETTING | {"epsilon": epsilon, "delta": delta},
        standardize=standardize,
        fit_intercept=intercept,
        row_norm=row_norm,
        n_rows=told,
        random_state=0,
    ).fit(X, y)
    limit = float(ZCDP.within(Budget(epsilon, delta)))
    assert limit * (1 - 1e-9) <= model.privacy_.rho <= limit
    booked = sum(record.rho for record in model.privacy_.mechanisms)
    assert booked == pytest.approx(model.privacy_.rho, rel=1e-9)
    assert np.isfinite(model.predict(X)).all()


def test_a_ledger_is_booked_before_anything_is_released(kind, rows, tmp_path):
    cost = ZCDP.within(Budget(SETTING["epsilon"], SETTING["delta"]))
    ledger = PrivacyLedger.create(
        tmp_path / "budget.db", dataset="survey", epsilon=2.5, delta=SETTING["delta"]
    )
    with pytest.raises(ValueError, match="inconsistent"):
        kind(**SETTING).fit(rows[0], rows[1][:-1], ledger=ledger)
    assert ledger.spent.rho == 0
    model = kind(**SETTING).fit(*rows, ledger=ledger)
    assert ledger.spent.rho == cost.rho
    with pytest.raises(BudgetRefused):
        model.fit(*rows, ledger=ledger)
    assert not hasattr(model, "coef_")


def test_the_statement_holds_and_n_is_not_disclosed(kind, rows):
    model = kind(**SETTING).fit(*rows)
    assert model.privacy_.holds
    assert not model.privacy_.rows_disclosed
    purposes = {record.purpose for record in model.privacy_.mechanisms}
    assert {"the number of rows", "the target's scale"} <= purposes
    told = kind(**SETTING, n_rows=500).fit(*rows)
    assert "disclosed" not in str(told.privacy_)
    assert told.n_rows_ == 500


def test_the_fitted_object_holds_released_values_only(kind, rows):
    model = kind(**SETTING).fit(*rows)
    fitted = {"coef_", "intercept_", "feature_bounds_", "target_bounds_", "scale_", "n_iter_"}
    fitted |= {"n_rows_", "privacy_", "n_features_in_", "bounds_notes_", "fallback_"}
    assert set(vars(model)) - set(model.get_params()) == fitted
    pickled = pickle.dumps(model)
    for column in (rows[0][:, 0], rows[1]):
        assert column[:3].tobytes() not in pickled


# --- one row under one transcript -----------------------------------------------------------------


class Recording(Accountant):
    """Keeps what each mechanism was given, and what it released."""

    def __init__(self, noise, *, limit):
        super().__init__(noise, limit=limit)
        self.given, self.released = [], []

    def release(self, mechanism, values, *, purpose):
        self.given.append((mechanism, values.copy(), purpose))
        self.released.append(self.answer(mechanism, values, purpose))
        return self.released[-1]

    def answer(self, mechanism, values, purpose):
        return super().release(mechanism, values, purpose=purpose)


class Replaying(Recording):
    """Books every release, and answers what another run released."""

    def __init__(self, noise, *, limit, script):
        super().__init__(noise, limit=limit)
        self.script = iter(script)

    def answer(self, mechanism, values, purpose):
        super().answer(mechanism, values, purpose)
        return next(self.script)


def given_to_mechanisms(monkeypatch, kind, setting, X, y, script=None):
    made = []

    def accountant(noise, *, limit, unit):
        assert unit.is_row
        made.append(
            Recording(noise, limit=limit)
            if script is None
            else Replaying(noise, limit=limit, script=script)
        )
        return made[0]

    monkeypatch.setattr(base, "Accountant", accountant)
    kind(**SETTING | setting, n_rows=60, random_state=7).fit(X, y)
    return made[0]


def move_of(mechanism, move):
    """Return how far the input moved, as a share of what the mechanism books."""
    if isinstance(mechanism, NoisyMax):
        alone = np.abs(move).max() / mechanism.sensitivity
        return max(alone, np.ptp(move) / mechanism.score_range) * mechanism.unit
    return np.linalg.norm(move.astype(float)) * mechanism.unit / mechanism.sensitivity


BOOSTED = {"features squared", "features times residuals, in units of the clip"}
ATTACKS = [
    (
        peers.AdaSSP,
        {"standardize": True},
        {"features squared", "features times target, in units of the clip"},
    ),
    (peers.BoostedAdaSSP, {}, BOOSTED),
    (peers.BoostedAdaSSP, {"row_norm": 1.5, "fit_intercept": False}, BOOSTED),
    (peers.PrivateSIS, {"epsilon": 5.0}, {"correlation with the target", "features squared"}),
    (peers.NoisyIHT, {"epsilon": 1.0}, {"largest weights", "noisy gradient, in units of the clip"}),
    (peers.NoisyIHT, {"epsilon": 9.0, "row_norm": 1.5}, {"noisy gradient, in units of the clip"}),
    (peers.PrivateGCD, {"epsilon": 9.0}, {"greedy coordinate", "its gradient"}),
]


def closest_moves(monkeypatch, kind, setting, *, trials=12):
    """Return how near a move came to what was booked, for every purpose, over neighbours."""
    rng = np.random.default_rng(41)
    closest: dict[str, float] = {}
    for trial in range(trials):
        X = rng.uniform(-1, 1, size=(1 + trial % 7 * 8, 12))
        y = np.clip(X[:, 0] * 2 + rng.normal(size=len(X)), -4, 4)
        corner = rng.choice([-1.0, 0.0, 1.0], size=12, p=[0.4, 0.2, 0.4])
        if trial % 3 == 0:
            corner = np.eye(12)[trial % 12]
        place = int(rng.integers(len(X) + 1))
        more = np.insert(X, place, corner, axis=0), np.insert(y, place, (-4.0, 4.0)[trial % 2])
        one = given_to_mechanisms(monkeypatch, kind, setting, X, y)
        two = given_to_mechanisms(monkeypatch, kind, setting, *more, script=one.released)
        assert one.spent == two.spent
        for (mechanism, before, purpose), (same, after, _) in zip(
            one.given, two.given, strict=True
        ):
            assert mechanism == same
            assert before.dtype == after.dtype == np.int64
            share = move_of(mechanism, after - before)
            closest[purpose] = max(closest.get(purpose, 0.0), share)
    return closest


@pytest.mark.parametrize(("kind", "setting", "purposes"), ATTACKS)
def test_no_release_moves_further_than_is_booked(monkeypatch, kind, setting, purposes):
    """Neighbouring tables under one transcript, whole fits; extreme rows come near the bounds."""
    closest = closest_moves(monkeypatch, kind, setting)
    assert purposes <= set(closest)
    assert max(closest.values()) <= 1
    assert min(closest[purpose] for purpose in purposes) > 0.6


def half_of(name):
    """Return what halves a sensitivity that a solver states."""
    if name == "change":
        return "release_sums", lambda *a, change, **k: release_sums(*a, change=change / 2, **k)
    if name == "row_norm":  # its square is what the triangle moves by
        return "release_triangle", lambda *a, row_norm, **k: release_triangle(
            *a, row_norm=row_norm / 2**0.5, **k
        )
    honest = NoisyMax.of_cost
    careless = lambda cost, *, sensitivity, unit: honest(  # noqa: E731
        cost, sensitivity=sensitivity / 2, unit=unit
    )
    return "NoisyMax", SimpleNamespace(of_cost=careless)


@pytest.mark.parametrize(
    ("kind", "setting", "wrong"),
    [
        (peers.AdaSSP, {}, "change"),
        (peers.BoostedAdaSSP, {}, "change"),
        (peers.BoostedAdaSSP, {}, "row_norm"),
        (peers.PrivateSIS, {"epsilon": 5.0}, "sensitivity"),
        (peers.NoisyIHT, {"epsilon": 1.0}, "sensitivity"),
        (peers.NoisyIHT, {"epsilon": 9.0, "row_norm": 1.5}, "change"),
        (peers.PrivateGCD, {"epsilon": 9.0}, "sensitivity"),
    ],
)
def test_the_attack_would_find_half_a_sensitivity(monkeypatch, kind, setting, wrong):
    monkeypatch.setattr(peer_solvers, *half_of(wrong))
    assert max(closest_moves(monkeypatch, kind, setting, trials=6).values()) > 1


def test_sizes_of_sums_move_by_one_at_most():
    """Lemma P1 by brute force: the bound is attained, in both directions, and never passed."""
    levels = range(-3, 4)
    moves = {
        abs(shift + total + move) - abs(shift + total)
        for shift in levels
        for total in levels
        for move in (-1, 0, 1)
    }
    assert moves == {-1, 0, 1}


def test_peeling_follows_the_law_of_successive_maxima():
    """Chi-square over ordered pairs; false alarm 1e-6; a scale off by 1.3 is rejected."""
    sums = np.array([3, -2, 1, 0], dtype=np.int64) * UNITS
    cost, runs, noise = ZCDP(1), 4000, SeededNoise("peeling")
    seen = np.zeros((4, 4))
    for _ in range(runs):
        spending = Spending(Accountant(noise, limit=cost), cost, Regime(10, 4, 1.0))
        first, second = peel(spending, sums, 2, cost=cost, purpose="test")
        seen[first, second] += 1
        assert spending.accountant.spent.rho <= 1

    def p_value(scale):
        chances = np.exp(np.abs(sums) / UNITS / scale)
        law = np.outer(chances, chances) / chances.sum() / (chances.sum() - chances)[:, None]
        pairs = ~np.eye(4, dtype=bool)
        return stats.chisquare(seen[pairs], runs * law[pairs]).pvalue

    assert p_value(1.0) > 1e-6  # β = Δ/√(2ρ) with half of ρ = 1 for each
    assert p_value(1.3) < 1e-6


# --- the methods ----------------------------------------------------------------------------------


def test_the_ridge_lifts_the_least_eigenvalue_and_no_more():
    gram, moment = np.diag([100.0, 1.0]), np.array([1.0, 1.0])
    np.testing.assert_allclose(Ridge(gram, 1e-9)(moment), [0.01, 1.0], rtol=1e-6)
    np.testing.assert_allclose(Ridge(gram, 20.0)(moment), [1 / 119, 1 / 20])
    assert np.isfinite(Ridge(-gram, 10.0)(moment)).all()


def test_rounds_make_up_for_what_a_clip_holds_back(monkeypatch):
    """Nearly without noise: one round stops short, and all rounds come to least squares."""
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, size=(3000, 4))
    y = X @ [2.0, -1.0, 0.5, 0.0] + 0.7 + 0.3 * rng.normal(size=3000)
    model = peers.BoostedAdaSSP(**SETTING | {"epsilon": 1e4}, standardize=False, random_state=1)
    truth = np.linalg.lstsq(np.c_[X, np.ones(3000)], y)[0]

    def error():
        model.fit(X, y)
        return np.abs(np.append(model.coef_, model.intercept_) - truth).max()

    assert error() < 0.02
    monkeypatch.setattr(peer_solvers, "ROUNDS", 1)
    assert error() > 0.5


def test_steps_are_braked_by_what_was_released():
    assert overshot(-3.0, 2.0)
    assert not overshot(-1.0, 2.0)
    assert not overshot(3.0, 2.0)
    assert not overshot(3.0, 0.0)
    way = np.array([1.0, 2.0])
    assert turned_back(-way, way)
    assert not turned_back(way, way)
    assert not turned_back(way, np.zeros(2))


def test_only_so_many_features_are_kept():
    rng = np.random.default_rng(42)
    X = rng.uniform(-1, 1, size=(300, 40))
    y = X[:, 0] + rng.normal(size=300)
    for kind, rule in ((peers.PrivateSIS, "n_selected"), (peers.NoisyIHT, "n_kept")):
        for epsilon in (1.0, 3.0):
            model = kind(**SETTING | {"epsilon": epsilon}, n_rows=300).fit(X, y)
            rho = float(ZCDP.within(Budget(epsilon, SETTING["delta"])))
            most = getattr(peer_solvers, rule)(Regime(300, 40, rho))
            assert 1 <= np.count_nonzero(model.coef_) <= most < 40


def test_every_peer_learns(kind, rows):
    """Measured: .96 and more."""
    scores = [
        kind(**SETTING | {"epsilon": 20.0}, random_state=seed).fit(*rows).score(*rows)
        for seed in range(3)
    ]
    assert np.mean(scores) > 0.85


def test_target_units_do_not_matter(kind, rows):
    X, y = rows
    plain = kind(**SETTING, random_state=4).fit(X, y)
    scaled = SETTING | {"target_bounds": (-32, 32)}
    moved = kind(**scaled, random_state=4).fit(X, 8 * y)
    np.testing.assert_allclose(moved.coef_, 8 * plain.coef_, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::dpscreen.BoundsWarning")
@pytest.mark.parametrize("shape", [(1, 1), (2, 40), (30, 100), (200, 2)])
def test_odd_data_gives_a_finite_model(kind, shape):
    rng = np.random.default_rng(43)
    heavy = rng.standard_cauchy(shape) * 1e3
    tables = [
        (1.0, 2.0, np.full(shape, 3.0), rng.normal(size=shape[0])),
        (1e4, 1e-9, np.repeat(heavy[:, :1], shape[1], axis=1), heavy[:, 0]),
        (5.0, 2.0, rng.normal(size=shape), np.zeros(shape[0])),
        (1e-6, 1e50, heavy * 1e150, heavy[:, 0] * 1e150),
    ]
    for epsilon, bound, X, y in tables:
        bounds = {"feature_bounds": (-bound, bound), "target_bounds": (0, bound)}
        model = kind(epsilon=epsilon, delta=1e-6, **bounds).fit(X, y)
        assert np.isfinite(model.coef_).all()
        assert np.isfinite(model.predict(X)).all()
