"""Methods side by side: the same rows for all, and the order that theory expects."""

from dataclasses import replace

import pytest

from dpscreen.cli import _fit_options as fit_options
from dpscreen.cli import compare
from dpscreen.planning.compare import compete
from dpscreen.planning.methods import (
    FAMILY_METHODS,
    ON_OFFER,
    ON_REQUEST,
    OTHER_QUESTIONS,
)
from dpscreen.planning.power import Contest, Setting

SMALL = Setting(n_rows=3000, n_features=15, epsilon=1.0, delta=1e-6, n_effects=3)
NOT_PRIVATE = "lasso"


def contest(*methods, setting=SMALL, epsilons=(1,)):
    return Contest(setting, methods, epsilons, (setting.usual_effect,))


@pytest.fixture(scope="module")
def outcomes():
    found = compete(contest(*ON_OFFER, NOT_PRIVATE, epsilons=(0.1, 5)), repetitions=4)
    return {(one.method, one.epsilon): one for one in found}


def test_more_budget_is_better_and_none_is_best(outcomes):
    private = {(method, epsilon) for method in ON_OFFER for epsilon in (0.1, 5)}
    assert set(outcomes) == private | {(NOT_PRIVATE, None)}
    best = outcomes[NOT_PRIVATE, None]
    assert best.quality > 0.9 * best.best_quality
    for method in ON_OFFER:
        small, large = outcomes[method, 0.1], outcomes[method, 5]
        assert small.quality < large.quality < best.best_quality
    assert outcomes["private-lasso", 0.1].quality > outcomes["rnm-screen", 0.1].quality


def test_a_peer_can_compete():
    (found,) = compete(contest("adassp", epsilons=(5,)), repetitions=2)
    assert 0.5 * found.best_quality < found.quality < found.best_quality


def test_an_epsilon_too_small_to_divide_up_is_refused():
    with pytest.raises(ValueError, match="too small"):
        contest("dp-fw", setting=replace(SMALL, delta=1e-300)).at(1e-300)


# --- methods on offer -----------------------------------------------------------------------------


def test_the_command_line_offers_the_register():
    for name, methods in FAMILY_METHODS.items():
        *private, not_private = compare.NAMES[name]
        assert not_private == methods.not_private
        assert set(private) <= set(methods.contested)
    assert {*ON_OFFER, *ON_REQUEST, *OTHER_QUESTIONS} == set(fit_options.METHODS)
