"""Methods side by side: the same rows for all, and the order that theory expects."""

from dataclasses import replace

import numpy as np
import pytest

from dpscreen.cli import _fit_options as fit_options
from dpscreen.cli import compare
from dpscreen.planning.methods import (
    FAMILY_METHODS,
    METHODS,
    ON_REQUEST,
    OURS,
    PAPER,
    PEERS,
    FitRequest,
    estimator,
)
from dpscreen.planning.power import Contest, simulated
from dpscreen.planning.setting import Setting
from dpscreen.privacy import Budget
from dpscreen.solvers.rules import n_steps

SMALL = Setting(n_rows=3000, n_features=15, epsilon=1.0, delta=1e-6, n_effects=3)
BOUNDS = np.tile((-1.0, 1.0), (15, 1))
NOT_PRIVATE = "lasso"
COMPARED = ("private-lasso", *PAPER)


def contest(*methods, setting=SMALL, epsilons=(1,)):
    return Contest(setting, methods, epsilons, (setting.usual_effect,))


@pytest.fixture(scope="module")
def outcomes():
    found = simulated(contest(*COMPARED, NOT_PRIVATE, epsilons=(0.1, 5)), 4, "compare/0")
    return {(one.method, one.epsilon): one for one in found}


def test_more_budget_is_better_and_none_is_best(outcomes):
    private = {(method, epsilon) for method in COMPARED for epsilon in (0.1, 5)}
    assert set(outcomes) == private | {(NOT_PRIVATE, None)}
    best = outcomes[NOT_PRIVATE, None]
    assert best.quality > 0.9 * best.best_quality
    for method in COMPARED:
        small, large = outcomes[method, 0.1], outcomes[method, 5]
        assert small.quality < large.quality < best.best_quality
    assert outcomes["private-lasso", 0.1].quality > outcomes["rnm-screen", 0.1].quality


def test_a_peer_can_compete():
    (found,) = simulated(contest("adassp", epsilons=(5,)), 2, "compare/0")
    assert 0.5 * found.best_quality < found.quality < found.best_quality


def test_progress_is_told():
    heard = []
    simulated(contest(NOT_PRIVATE), 4, "compare/0", heard.append)
    assert heard == [0.25, 0.5, 0.75, 1.0]


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
    for name, methods in FAMILY_METHODS.items():
        *private, not_private = compare.COMPARED[name]
        assert not_private not in METHODS
        assert set(private) <= set(methods.contested)
    assert {*OURS, *PAPER, *ON_REQUEST} == set(fit_options.MODELS.values())


def test_parameters_are_checked_before_there_are_rows():
    order = FitRequest(Budget(1, 1e-6), BOUNDS, (0, 1), rows_per_unit=2, inference="split")
    with pytest.raises(ValueError, match="rows_per_unit=1"):
        estimator("private-lasso", order)
