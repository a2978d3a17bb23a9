"""PrivateLasso: what it books, what it releases, the law it follows, and how good it is."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import enumerated_laws
import numpy as np
import pandas as pd
import pytest
from enumerated_laws import p_value
from hypothesis import given
from hypothesis import strategies as st

from dpscreen import BoundsWarning, PrivacyLedger, PrivateLasso, PrivateLogisticLasso, PrivateOLS
from dpscreen.models.intake import aligned
from dpscreen.paper.data import synthetic
from dpscreen.privacy import ZCDP, Accountant, Budget, SeededNoise
from dpscreen.rows.lattice import UNITS, LatticeDesign, LatticePoint
from dpscreen.rows.sums import LEVELS
from dpscreen.solvers.base import Choices, Spending, Task
from dpscreen.solvers.engine import solve
from dpscreen.solvers.rules import Regime, cell_clip
from dpscreen.solvers.selection import (
    PathRun,
    Selector,
    decaying_grains,
    grain_size,
)

SOLVERS = ("auto", "stagewise", "frank-wolfe")
SETTING = {"epsilon": 2.0, "delta": 1e-6, "feature_bounds": (-1, 1), "target_bounds": (-4, 4)}


# --- the account ----------------------------------------------------------------------------------


def test_the_statement_lists_every_mechanism_and_n_is_not_disclosed(rows):
    asked = {"epsilon": 10.0, "solver": "stagewise", "standardize": True}
    model = PrivateLasso(**SETTING | asked).fit(*rows)
    assert model.privacy_.holds
    purposes = {record.purpose for record in model.privacy_.mechanisms}
    assert {"target: histogram", "target: distances from the centre"} <= purposes
    assert {"the number of rows", "features: histogram"} <= purposes
    assert {"scale of the residuals", "the intercept", "stagewise step"} <= purposes
    assert {"Gram matrix", "score", "squared residuals", "magnitudes of residuals"} <= purposes
    steps = [r.count for r in model.privacy_.mechanisms if r.purpose == "stagewise step"]
    assert sum(steps) == model.n_iter_
    assert "disclosed" not in str(model.privacy_)
    assert not model.privacy_.rows_disclosed
    told = PrivateLasso(**SETTING, n_rows=500).fit(*rows)
    assert "disclosed" not in str(told.privacy_)
    X, y = rows
    fewer = PrivateLasso(**SETTING, n_rows=500).fit(X[:-1], y[:-1])
    # All else follows from released numbers, and may have any digits.
    said = [replace(one.privacy_, mechanisms=(), rho=0.0) for one in (told, fewer)]
    assert said[0] == said[1]
    assert told.n_rows_ == 500


@pytest.fixture(scope="module")
def plain_rows():
    """Return rows enough for steps along all features."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(3000, 5))
    return X, X @ [1.0, -0.5, 0.0, 0.0, 0.3] + rng.normal(size=3000)


DENSE = {"epsilon": 1.0, "delta": 1e-6, "feature_bounds": (-5, 5), "target_bounds": (-20, 20)}


@pytest.mark.parametrize("quality", [True, False])
def test_a_dense_fit_spends_the_budget_and_no_more(plain_rows, quality):
    model = PrivateLasso(**DENSE, quality=quality).fit(*plain_rows)
    assert (model.solver_, model.n_iter_, model.path_) == ("dense", 12, None)
    limit = float(ZCDP.within(Budget(1.0, 1e-6)))
    assert limit * (1 - 1e-9) <= model.privacy_.rho <= limit
    counts = {one.purpose: one.count for one in model.privacy_.mechanisms}
    assert (counts["Gram matrix"], counts["score"]) == (1, 12)
    assert model.score(*plain_rows) > 0.5
    assert set(np.flatnonzero(model.selected_)) >= {0, 1, 4}


# --- what is released -----------------------------------------------------------------------------


def test_the_path_is_the_model(rows):
    setting = SETTING | {"feature_bounds": (-1.25, 1.25), "standardize": False, "radius": 2.0}
    model = PrivateLasso(**setting, random_state=1, fit_intercept=False).fit(*rows)
    halves = np.diff(model.feature_bounds_, axis=1)[:, 0] / 2
    weights = model.path_.weights(6)
    kept = model.coef_ != 0
    np.testing.assert_allclose((weights / halves)[kept], model.coef_[kept], rtol=1e-9)
    assert len(model.path_) == model.n_iter_
    assert set(model.path_.signs) <= {-1, 1}


# --- max_features ---------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("limit", [1, 2, 50])
def test_no_more_features_than_asked_for_ever_enter(rows, solver, limit):
    model = PrivateLasso(**SETTING, solver=solver, max_features=limit).fit(*rows)
    assert np.count_nonzero(model.coef_) <= limit
    if model.path_ is not None:
        assert len(set(model.path_.features) - {6}) <= limit


def correlated_rows(n_rows, n_features, n_effects=8, seed=5):
    """Return rows of correlated features, some of which have effects of different sizes."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(n_rows, 3)) @ rng.normal(size=(3, n_features)) / np.sqrt(3)
    X = np.sqrt(0.6) * common + np.sqrt(0.4) * rng.normal(size=(n_rows, n_features))
    coef = np.zeros(n_features)
    coef[rng.choice(n_features, n_effects, replace=False)] = rng.uniform(0.3, 1.5, n_effects)
    line = X @ coef
    return X, line + 0.5 * line.std() * rng.normal(size=n_rows)


def limited(X, y, limit, epsilon=10.0, seeds=range(3), **more):
    """Return the mean R² of models with at most so many features."""
    setting = {"delta": 1e-6, "feature_bounds": (-6, 6), "target_bounds": (-40, 40)}
    models = [
        PrivateLasso(
            **setting, epsilon=epsilon, max_features=limit, quality=False, random_state=seed, **more
        ).fit(X, y)
        for seed in seeds
    ]
    assert all(np.count_nonzero(model.coef_) <= limit for model in models)
    return float(np.mean([model.score(X, y) for model in models])), models[0]


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 10])
def test_steps_scale_with_the_number_of_features_that_may_enter(limit):
    X, y = correlated_rows(1500, 120)
    _, model = limited(X, y, limit, seeds=[0], solver="stagewise")
    assert model.solver_ == "stagewise"
    assert model.n_iter_ == 2 * limit == len(model.path_)
    kept = PrivateLasso(
        epsilon=10, delta=1e-6, feature_bounds=(-6, 6), target_bounds=(-40, 40), n_iter=40,
        max_features=limit, random_state=0,
    ).fit(X, y)  # fmt: skip
    assert kept.n_iter_ == 40


@pytest.mark.parametrize(("n_features", "limit"), [(20, 1), (20, 10), (120, 3)])
def test_more_budget_does_not_hurt_a_model_of_few_features(n_features, limit):
    X, y = correlated_rows(2500, n_features)
    scores = [limited(X, y, limit, epsilon)[0] for epsilon in (1.0, 3.0, 10.0)]
    assert scores[1] > scores[0] - 0.04
    assert scores[2] > scores[1] - 0.04


# --- the guarantee, exactly, on data small enough to enumerate ------------------------------------

STEPS, CLIP, ROOM, SPREAD = 2, 0.5, Fraction(1, 8), 0.3
CELL_CLIP = int(cell_clip(Regime(3, 2, float(ROOM)), spread=SPREAD) * LEVELS)
SCALE = CLIP * CELL_CLIP / LEVELS / np.sqrt(2 * float(ROOM) / STEPS)


def tiny_task(X, y, noise):
    limit = ZCDP(ROOM)
    regime = Regime(3, X.shape[1], float(limit))
    spending = Spending(Accountant(noise, limit=limit), limit, regime)
    choices = Choices(radius=1.0, n_iter=STEPS, clip=CLIP, intercept=False)
    return Task(spending, LatticeDesign.from_rows(X, y), 0.1, SPREAD, choices)


def law_of_paths(X, y, *, scale):
    """Return the probability of every sequence of signed features of two stagewise steps."""
    design, d, grains = LatticeDesign.from_rows(X, y), X.shape[1], list(decaying_grains(STEPS))
    grain = grain_size(first_step=2 / (STEPS + 1), n_iter=STEPS)

    def scores(point):
        sums = point.clipped_sums(CLIP, CELL_CLIP) * (CLIP / UNITS / scale)
        return np.concatenate((-sums, sums))

    def move(point, t, position):
        point.add(position % d, int(grains[t]) * (1 if position < d else -1))

    return enumerated_laws.law_of_paths(2 * d, lambda: LatticePoint(design, grain), scores, move)


def test_the_path_costs_no_more_rényi_divergence_than_is_booked():
    """Over neighbouring data sets, exactly: D_α ≤ αρ for every order, and the bound is not idle."""
    pairs = enumerated_laws.neighbours(45)
    laws = ([law_of_paths(*data, scale=SCALE) for data in pair] for pair in pairs)
    worst = max(enumerated_laws.divergence(*pair) for pair in laws) / float(ROOM)
    assert 0.3 < worst <= 1


def test_the_solver_follows_the_law_that_was_analysed():
    """Chi-square over released models; false alarm 1e-6; a scale off by 1.3 is rejected."""
    X = np.array([[1.0, 0.5], [-0.5, 1.0], [0.25, -1.0]])
    y = np.array([1.0, -1.0, 0.5])
    noise, runs = SeededNoise("law of the stagewise path"), 4000
    paths = (solve(tiny_task(X, y, noise), PathRun).path for _ in range(runs))
    seen = enumerated_laws.counted(path.weights(2) for path in paths)
    assert p_value(seen, law_of_paths(X, y, scale=SCALE)) > 1e-6
    assert p_value(seen, law_of_paths(X, y, scale=SCALE / 1.3)) < 1e-6


@given(
    cells=st.lists(st.floats(-1, 1), min_size=3, max_size=3),
    target=st.floats(-3, 3),
    cells_at=st.floats(0, 2),
    clip=st.floats(1e-6, 1e6),
)
def test_one_row_moves_a_score_by_no_more_than_is_booked(cells, target, cells_at, clip):
    """A score of one row alone, exactly, against the sensitivity that the mechanism is given."""
    design = LatticeDesign.from_rows(np.array([cells]), np.array([target]))
    limit, given_to = ZCDP(ROOM), []
    accountant = Accountant(SeededNoise(0), limit=limit)

    def release(mechanism, scores, purpose):
        given_to.append((mechanism, scores))
        return 0, 1

    accountant.release = release
    spending = Spending(accountant, limit, Regime(1, 3, float(limit)))
    selector = Selector(spending, np.arange(3), limit, purpose="", cell_clip=cells_at)
    selector.clip_at(clip)
    selector.choose(LatticePoint(design, 1.0))
    mechanism, scores = given_to[0]
    largest = Fraction(clip) / UNITS * int(np.abs(scores).max())
    assert largest <= Fraction(mechanism.sensitivity)
    assert Fraction(mechanism.unit) * UNITS == Fraction(clip)


# --- quality: floors well below what was measured, so that only a real loss trips them ------------


def mean_score(X, y, test, *, trials=3, **setting):
    models = (PrivateLasso(**setting, random_state=seed).fit(X, y) for seed in range(trials))
    return np.mean([model.score(*test) for model in models])


@pytest.mark.parametrize(("width", "side"), [(1, 0.0), (16, 0.0), (16, 0.5)])
def test_loose_bounds_cost_little(width, side):
    rng = np.random.default_rng(8)
    centre, scale = rng.uniform(-50, 50, 15), rng.uniform(0.1, 10, 15)
    Z = rng.normal(size=(2500, 15))
    y = 40 + Z[:, 0] * 3 - 2 * Z[:, 4] + Z[:, 9] + rng.normal(0, 1.5, size=2500)
    X = centre + scale * Z
    half = 3 * scale * width
    features = np.column_stack((centre - half * (1 - side), centre + half * (1 + side)))
    target = (40 - 20 * width * (1 - side), 40 + 20 * width * (1 + side))
    setting = {"epsilon": 1.0, "delta": 1e-4, "feature_bounds": features, "target_bounds": target}
    assert mean_score(X[:2000], y[:2000], (X[2000:], y[2000:]), **setting) > 0.78


def test_a_sparse_truth_without_noise_is_recovered():
    drawn = synthetic(rng=np.random.default_rng(9))
    half = float(5 * drawn.y.std())
    setting = SETTING | {"epsilon": 5.0, "delta": 1 / 3000, "target_bounds": (-half, half)}
    model = PrivateLasso(**setting, random_state=0).fit(drawn.X, drawn.y)
    assert model.score(drawn.X, drawn.y) > 0.98
    assert np.mean((model.coef_ != 0) == (drawn.coef != 0)) > 0.99


# --- odd data -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [PrivateOLS, PrivateLasso])
def test_a_target_beyond_its_bounds_is_told_and_one_inside_loose_bounds_is_not(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(50, 10, (3000, 3))
    y = 2 * X[:, 0] + rng.normal(0, 5, len(X))
    model = kind(epsilon=1, delta=1e-6, feature_bounds=(0, 100), random_state=1)
    for bounds, end in (((0, 10), "upper"), ((1000, 2000), "lower")):
        with pytest.warns(BoundsWarning, match=f"the target: declared .* at the {end} end"):
            model.set_params(target_bounds=bounds).fit(X, y)
    assert model.set_params(target_bounds=(0, 3000)).fit(X, y).bounds_notes_ == ()


# --- what is refused in words ---------------------------------------------------------------------


def test_a_target_that_cannot_be_fitted_is_refused_with_what_to_do():
    X, y = pd.DataFrame({"a": [1.0, 2.0, 3.0]}), pd.Series([1.0, 2.0, 3.0])
    model = PrivateLasso(epsilon=1, delta=1e-6, feature_bounds=(0, 9), target_bounds=(0, 9))
    with pytest.raises(ValueError, match="left out for its own target"):
        model.fit(X, y.where(y > 1))
    for words in (["yes", "no", "no"], np.array(["yes", "no", "no"])):
        with pytest.raises(ValueError, match="PrivateLogisticLasso"):
            model.fit(X, pd.Series(words) if isinstance(words, list) else words)


@pytest.mark.parametrize("kind", [PrivateLasso, PrivateLogisticLasso])
def test_rows_are_not_paired_with_the_targets_of_others(kind, tmp_path):
    """They were, by place, where one of the two was sorted or drawn anew."""
    X, y = pd.DataFrame({"a": [1.0, 2.0, 3.0]}), pd.Series([1, 0, 1])
    ledger = PrivacyLedger.create(tmp_path / "b.db", dataset="d", epsilon=10, delta=1e-4)
    more = {"target_bounds": (0, 1)} if kind is PrivateLasso else {}
    model = kind(epsilon=1, delta=1e-6, feature_bounds=(0, 9), **more)
    with pytest.raises(ValueError, match="different indices"):
        model.fit(X.sample(frac=1, random_state=0), y, ledger=ledger)
    assert not ledger.entries()
    assert aligned(y, X[:2]) is not None  # whose lengths are refused elsewhere
    assert aligned(y.to_numpy(), X.sample(frac=1, random_state=0)) is not None
    assert aligned(y.set_axis([7, 8, 9]), X.set_index(pd.Index([7, 8, 9]))) is not None
