"""Methods side by side: the same rows for all, and the order that theory expects."""

from dataclasses import replace

import numpy as np
import pytest

from dpscreen.cli import _fit_options as fit_options
from dpscreen.cli import compare
from dpscreen.planning import power as simulation
from dpscreen.planning.compare import NOT_PRIVATE, Contest, compete
from dpscreen.planning.methods import (
    ON_OFFER,
    ON_REQUEST,
    OTHER_QUESTIONS,
    PEERS,
    FitRequest,
    estimator,
)
from dpscreen.planning.power import Setting
from dpscreen.privacy import Budget, SeededNoise
from dpscreen.solvers.rules import n_steps

SMALL = Setting(n_rows=3000, n_features=15, epsilon=1.0, delta=1e-6, n_effects=3)
BOUNDS = np.tile((-1.0, 1.0), (15, 1))


@pytest.fixture(scope="module")
def outcomes():
    found = compete(Contest(SMALL, (0.1, 5)), repetitions=4)
    return {(one.method, one.epsilon): one for one in found}


def test_every_method_meets_every_epsilon_and_lasso_none(outcomes):
    private = {(method, epsilon) for method in ON_OFFER for epsilon in (0.1, 5)}
    assert set(outcomes) == private | {(NOT_PRIVATE, None)}


def test_more_budget_is_better_and_none_is_best(outcomes):
    best = outcomes[NOT_PRIVATE, None]
    assert best.r2 > 0.9 * best.best_r2
    for method in ON_OFFER:
        small, large = outcomes[method, 0.1], outcomes[method, 5]
        assert small.r2 < large.r2 < best.best_r2
    assert outcomes["private-lasso", 0.1].r2 > outcomes["rnm-screen", 0.1].r2


def test_a_peer_can_compete():
    (found,) = compete(Contest(SMALL, (5,), methods=("adassp",)), repetitions=2)
    assert 0.5 * found.best_r2 < found.r2 < found.best_r2


def test_the_seed_decides():
    contest = Contest(SMALL, (1,), methods=("dp-fw",))
    once, again, other = (compete(contest, repetitions=2, seed=seed) for seed in (1, 1, 2))
    assert once == again != other


def test_thinned_tables_stand_for_large_ones(monkeypatch):
    """What all rows give, a sixth of them gives too, within the simulation's error."""
    contest = Contest(replace(SMALL, n_rows=12_000), (0.2,), methods=("dp-fw", NOT_PRIVATE))
    whole = compete(contest, repetitions=5)
    for name in ("MOST_CELLS", "MOST_CELLS_CLIPPED"):
        monkeypatch.setattr(simulation, name, 30_000)
    assert simulation.Scale.of(contest.setting.regime).thinning == 6
    for all_rows, thinned in zip(whole, compete(contest, repetitions=5), strict=True):
        error = (all_rows.r2_se**2 + thinned.r2_se**2) ** 0.5
        assert abs(all_rows.r2 - thinned.r2) < 4 * error + 0.005


def test_progress_is_told():
    heard = []
    contest = Contest(SMALL, (1,), methods=(NOT_PRIVATE,))
    compete(contest, repetitions=3, on_table=lambda done, total: heard.append((done, total)))
    assert heard == [(1, 3), (2, 3), (3, 3)]


def test_an_epsilon_too_small_to_divide_up_is_refused():
    with pytest.raises(ValueError, match="too small"):
        Contest(replace(SMALL, delta=1e-300), (1e-300,)).check()


# --- methods on offer -----------------------------------------------------------------------------


BALL = ("dp-fw", "rnm-screen", "adp-screen")


@pytest.mark.parametrize("method", BALL)
def test_the_papers_methods_get_the_same_clip_radius_and_steps(method):
    """Whoever is compared has the same settings: none is left without a clip."""
    order = FitRequest(Budget(1, 1e-6), BOUNDS, (100, 300), n_rows=3000, rows_per_unit=2)
    model = estimator(method, order)
    rng = np.random.default_rng(0)
    model.fit(rng.uniform(-1, 1, (400, 15)), rng.uniform(100, 300, 400))
    step = model.privacy_.mechanisms[0]
    assert step.sensitivity == pytest.approx(2 * 20)  # a tenth of the width, for units of two rows
    assert model.n_iter_ == n_steps(order.regime)
    largest = 2 * 100 * (model.n_iter_ + 1) / ((model.n_iter_ + 1) * (model.n_iter_ + 2))
    assert model.path_.steps.max() == pytest.approx(largest)


@pytest.mark.parametrize("method", BALL[:2])
def test_the_clip_is_worth_having(method):
    """n = 5000, d = 30, five true features, ε = 2: mean R² over ten fits, far apart."""
    rng = np.random.default_rng(4)
    X = rng.uniform(-1, 1, (5000, 30))
    y = X[:, :5] @ np.array([3.0, -3.0, 2.5, -2.5, 2.0]) + rng.normal(0, 1, 5000)
    order = FitRequest(Budget(2, 1e-6), np.tile((-1.0, 1.0), (30, 1)), (-20, 20), n_rows=5000)
    scores = {}
    for told, settings in (("clipped", {}), ("not clipped", {"clip": np.inf})):
        found = []
        for k in range(10):
            noise = SeededNoise(f"worth having, {method}, {told}, {k}")
            model = estimator(method, replace(order, random_state=noise, settings=settings))
            simulation.fit_quietly(model, X, y)
            found.append(model.score(X, y))
        scores[told] = np.mean(found)
    assert scores["clipped"] > scores["not clipped"] + 0.1


@pytest.mark.parametrize("method", BALL)
def test_what_a_method_lacks_is_refused(method):
    order = FitRequest(Budget(1, 1e-6), BOUNDS, (0, 1))
    assert estimator(method, order).n_iter is None  # a noisy count will set it
    for wish in ({"inference": "split"}, {"max_features": 3}):
        with pytest.raises(ValueError, match="belongs to private-lasso"):
            estimator(method, replace(order, n_rows=100, **wish))


def test_settings_of_a_method_are_passed_on_and_others_refused():
    order = FitRequest(Budget(1, 1e-6), BOUNDS, (0, 1), settings={"screen_at": 5, "n_iter": 40})
    model = estimator("rnm-screen", order)
    assert (model.screen_at, model.n_iter) == (5, 40)
    with pytest.raises(ValueError, match="screen_at belongs to rnm-screen and adp-screen"):
        estimator("dp-fw", order)


@pytest.mark.parametrize("method", PEERS)
def test_peers_set_themselves_and_protect_rows(method):
    order = FitRequest(Budget(1, 1e-6), BOUNDS, (0, 1), n_rows=100)
    assert estimator(method, order).n_rows == 100
    with pytest.raises(ValueError, match="rows_per_unit=1"):
        estimator(method, replace(order, rows_per_unit=2))


def test_the_command_line_offers_the_register():
    assert (*ON_OFFER, NOT_PRIVATE) == compare.NAMES
    assert {*ON_OFFER, *ON_REQUEST, *OTHER_QUESTIONS} == set(fit_options.METHODS)


def test_parameters_are_checked_before_there_are_rows():
    order = FitRequest(Budget(1, 1e-6), BOUNDS, (0, 1), rows_per_unit=2, inference="split")
    with pytest.raises(ValueError, match="rows_per_unit=1"):
        estimator("private-lasso", order)
