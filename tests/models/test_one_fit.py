"""The fit that all private estimators share: in which order things happen, and what is left."""

import numpy as np
import pytest
from sklearn.base import clone

from dpscreen import ADPScreen, DPFrankWolfe, PrivateLasso, RNMScreen
from dpscreen.models import peers
from dpscreen.models.base import ScalingModel
from dpscreen.privacy import SecureNoise
from dpscreen.solvers.base import Solution, intercept_move

PUBLIC = {"epsilon": 1.0, "delta": 1e-6, "feature_bounds": (-1, 1), "target_bounds": (-4, 4)}
BALL = PUBLIC | {"radius": 2.0, "n_iter": 5}
ESTIMATORS = [
    PrivateLasso(**PUBLIC),
    PrivateLasso(**PUBLIC, inference="split"),
    peers.AdaSSP(**PUBLIC),
    peers.PrivateGCD(**PUBLIC),
    DPFrankWolfe(**BALL),
    RNMScreen(**BALL),
    ADPScreen(**BALL, start="random"),
]


class Middle(ScalingModel):
    """An intercept alone: all that a new estimator has to say."""

    row_norm = None
    standardize = False

    def __init__(
        self,
        *,
        epsilon=None,
        delta=None,
        feature_bounds=None,
        target_bounds=None,
        fit_intercept=True,
        random_state=None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.feature_bounds = feature_bounds
        self.target_bounds = target_bounds
        self.fit_intercept = fit_intercept
        self.random_state = random_state

    def _solve(self, task, _rows):
        weights, cost = np.zeros(task.design.n_features), task.spending.remaining
        clip = 3 * task.deviation
        weights[-1] = intercept_move(task, task.design.start(1.0), clip, cost)
        return Solution(weights, 1, None, task.deviation)


class Events(SecureNoise):
    """Notes when noise is drawn, and when a ledger books; one that refuses says so."""

    def __init__(self, *, refuse=False):
        super().__init__()
        self.seen = []
        self.refuse = refuse

    def words(self, *args, **kwargs):
        self.seen.append("noise")
        return super().words(*args, **kwargs)

    def reserve(self, _cost, *, purpose):
        self.seen.append(f"booked for {purpose}")
        if self.refuse:
            raise RuntimeError("refused")


@pytest.mark.parametrize("model", [*ESTIMATORS, Middle(**PUBLIC)])
def test_the_budget_is_booked_once_and_before_any_noise(model, rows):
    events = Events()
    clone(model).set_params(random_state=events).fit(*rows, ledger=events)
    booked = f"booked for {type(model).__name__}"
    assert events.seen[0] == booked
    assert events.seen.count(booked) == 1
    assert set(events.seen) == {booked, "noise"}


@pytest.mark.parametrize("model", [*ESTIMATORS, Middle(**PUBLIC)])
def test_a_refused_booking_draws_no_noise_and_leaves_nothing_of_an_earlier_fit(model, rows):
    model = clone(model).fit(*rows)
    events = Events(refuse=True)
    with pytest.raises(RuntimeError, match="refused"):
        model.set_params(random_state=events).fit(*rows, ledger=events)
    assert events.seen == [f"booked for {type(model).__name__}"]
    assert not [name for name in vars(model) if name.endswith("_")]


@pytest.mark.parametrize("bounds", [(1, -1), [(-1, 1)]])
@pytest.mark.parametrize("model", ESTIMATORS)
def test_what_parameters_make_fail_fails_before_the_booking(model, bounds, rows):
    events = Events()
    model = type(model)(**model.get_params() | {"feature_bounds": bounds, "random_state": events})
    with pytest.raises(ValueError, match="feature_bounds"):
        model.fit(*rows, ledger=events)
    assert events.seen == []


def test_a_new_estimator_has_bounds_a_statement_and_predictions(rows):
    model = Middle(**PUBLIC).fit(*rows)
    assert model.privacy_.holds
    assert not model.privacy_.rows_disclosed
    assert (model.predict(rows[0]) == model.intercept_).all()
    assert model.summary().title.startswith("Middle: 0 of 6")


@pytest.mark.parametrize("model", ESTIMATORS)
def test_parameters_can_be_checked_without_rows(model):
    assert model.check_parameters() is None
    with pytest.raises(ValueError, match="epsilon"):
        type(model)(**model.get_params() | {"epsilon": -1}).check_parameters()
    with pytest.raises(TypeError, match="fit_intercept"):
        type(model)(**model.get_params() | {"fit_intercept": "yes"}).check_parameters()


def test_units_of_many_rows_are_refused_without_rows_where_nothing_holds_for_them():
    with pytest.raises(ValueError, match="rows_per_unit"):
        PrivateLasso(**PUBLIC, inference="split", rows_per_unit=2).check_parameters()
    with pytest.raises(ValueError, match="rows_per_unit"):
        DPFrankWolfe(**BALL, calibration="published", rows_per_unit=2).check_parameters()
