"""The peers: their contract, what they book and release, and how far one row moves each release."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from sklearn.utils.estimator_checks import parametrize_with_checks
from transcripts import moves

from dpscreen.models import peers
from dpscreen.privacy import (
    ZCDP,
    Accountant,
    Budget,
    NoisyMax,
    SeededNoise,
)
from dpscreen.privacy.accountant import release_sums, release_triangle
from dpscreen.rows.lattice import UNITS
from dpscreen.solvers import peers as peer_solvers
from dpscreen.solvers.base import Spending
from dpscreen.solvers.peers import Ridge, peel
from dpscreen.solvers.rules import Regime

KINDS = [getattr(peers, name) for name in peers.__all__]
SETTING = {"epsilon": 2.0, "delta": 1e-6, "feature_bounds": (-1, 1), "target_bounds": (-4, 4)}
WIDE = SETTING | {"feature_bounds": (-10, 10), "target_bounds": (-100, 100)}


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def kind(request):
    return request.param


# --- the contract ---------------------------------------------------------------------------------


@parametrize_with_checks([kind(**WIDE) for kind in KINDS])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_check(estimator, check):
    check(estimator)


# --- one row under one transcript -----------------------------------------------------------------


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


def closest_moves(kind, setting, *, trials=12):
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
        make = partial(kind, **SETTING | setting, n_rows=60, random_state=7)
        for purpose, share in moves(make, (X, y), more):
            closest[purpose] = max(closest.get(purpose, 0.0), share)
    return closest


@pytest.mark.parametrize(("kind", "setting", "purposes"), ATTACKS)
def test_no_release_moves_further_than_is_booked(kind, setting, purposes):
    """Neighbouring tables under one transcript, whole fits; extreme rows come near the bounds."""
    closest = closest_moves(kind, setting)
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
    assert max(closest_moves(kind, setting, trials=6).values()) > 1


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


def test_only_so_many_features_are_kept():
    rng = np.random.default_rng(42)
    X = rng.uniform(-1, 1, size=(300, 40))
    y = X[:, 0] + rng.normal(size=300)
    for kind, part in ((peers.PrivateSIS, 1 / 10), (peers.NoisyIHT, 1 / 5)):
        for epsilon in (1.0, 3.0):
            model = kind(**SETTING | {"epsilon": epsilon}, n_rows=300).fit(X, y)
            rho = float(ZCDP.within(Budget(epsilon, SETTING["delta"])))
            most = max(1, round(part * Regime(300, 40, rho).signal))
            assert 1 <= np.count_nonzero(model.coef_) <= most < 40
