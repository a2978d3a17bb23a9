"""The fit that all private estimators share: in which order things happen, and what is left."""

import pickle
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone, is_classifier

from dpscreen import ADPScreen, DPFrankWolfe, PrivateLasso, PrivateLogisticLasso, RNMScreen
from dpscreen.models import peers
from dpscreen.models.base import ScalingModel
from dpscreen.privacy import ZCDP, Budget, SecureNoise
from dpscreen.solvers.base import Solution, intercept_move

BUDGET = {"epsilon": 1.0, "delta": 1e-6, "feature_bounds": (-1, 1)}
PUBLIC = BUDGET | {"target_bounds": (-4, 4)}
BALL = PUBLIC | {"radius": 2.0, "n_iter": 5}
SOLVERS = ("auto", "stagewise", "frank-wolfe")
PEERS = [getattr(peers, name) for name in peers.__all__]
SCALING = [*(partial(PrivateLasso, solver=solver) for solver in SOLVERS), *PEERS]
"""Estimators of numbers that find their scales, with defaults."""

ESTIMATORS = [
    PrivateLasso(**PUBLIC),
    PrivateLasso(**PUBLIC, inference="split"),
    PrivateLogisticLasso(**BUDGET),
    *(kind(**PUBLIC) for kind in PEERS),
    DPFrankWolfe(**BALL),
    RNMScreen(**BALL),
    ADPScreen(**BALL, start="random"),
]
each_scaling = pytest.mark.parametrize(
    "make", SCALING, ids=lambda one: getattr(one, "__name__", None) or one.keywords["solver"]
)


class Middle(ScalingModel):
    """An intercept alone: all that a new estimator has to say."""

    row_norm = None
    standardize = False

    def _solve(self, task, _rows):
        weights, cost = np.zeros(task.design.n_features), task.spending.remaining
        clip = 3 * task.deviation
        weights[-1] = intercept_move(task, task.design.start(1.0), clip, cost)
        return Solution(weights, 1, None, task.deviation)


class Events(SecureNoise):
    """Notes when noise is drawn, and when a ledger books; one that refuses says so."""

    def __init__(self, *, refuse=False):
        super().__init__()
        self.noted = []
        self.refuse = refuse

    def words(self, *args, **kwargs):
        self.noted.append("noise")
        return super().words(*args, **kwargs)

    def reserve(self, _cost, *, purpose):
        self.noted.append(f"booked for {purpose}")
        if self.refuse:
            raise RuntimeError("refused")


def fit(model, rows, **more):
    X, y = rows
    return model.fit(X, y > 0 if is_classifier(model) else y, **more)


@pytest.mark.parametrize("model", [*ESTIMATORS, Middle(**PUBLIC)])
def test_the_budget_is_booked_once_and_before_any_noise(model, rows):
    events = Events()
    fit(clone(model).set_params(random_state=events), rows, ledger=events)
    booked = f"booked for {type(model).__name__}"
    assert events.noted[0] == booked
    assert events.noted.count(booked) == 1
    assert set(events.noted) == {booked, "noise"}


@pytest.mark.parametrize("model", [*ESTIMATORS, Middle(**PUBLIC)])
def test_a_refused_booking_draws_no_noise_and_leaves_nothing_of_an_earlier_fit(model, rows):
    model = fit(clone(model), rows)
    events = Events(refuse=True)
    with pytest.raises(RuntimeError, match="refused"):
        fit(model.set_params(random_state=events), rows, ledger=events)
    assert events.noted == [f"booked for {type(model).__name__}"]
    assert not [name for name in vars(model) if name.endswith("_")]


@pytest.mark.parametrize("bounds", [(1, -1), [(-1, 1)]])
@pytest.mark.parametrize("model", ESTIMATORS)
def test_what_parameters_make_fail_fails_before_the_booking(model, bounds, rows):
    events = Events()
    model = clone(model).set_params(feature_bounds=bounds, random_state=events)
    with pytest.raises(ValueError, match="feature_bounds"):
        fit(model, rows, ledger=events)
    assert events.noted == []


EVERY = {"coef_", "intercept_", "n_iter_", "n_features_in_", "privacy_", "fallback_"}
PATH = {"path_", "selected_", "q_values_", "quality_"}
SCALES = {"feature_bounds_", "n_rows_", "bounds_notes_"}
STEPS = {"path_", "screened_", "density_", "solver_"}


@pytest.mark.parametrize("model", ESTIMATORS)
def test_the_fitted_object_holds_released_values_only(model, rows):
    fitted, more = fit(clone(model), rows), STEPS
    if isinstance(model, ScalingModel):
        more = SCALES | ({"classes_"} if is_classifier(model) else {"target_bounds_", "scale_"})
    if isinstance(model, PrivateLasso | PrivateLogisticLasso):
        more |= PATH | ({"solver_"} if isinstance(model, PrivateLasso) else set())
        more |= {"inference_"} if model.inference else set()
    assert set(vars(fitted)) - set(fitted.get_params()) == EVERY | more
    pickled = pickle.dumps(fitted)
    for column in (rows[0][:, 0], rows[1]):
        assert column[:3].tobytes() not in pickled


@settings(max_examples=80)
@given(
    make=st.sampled_from(SCALING),
    n_rows=st.integers(1, 400),
    n_features=st.integers(1, 30),
    epsilon=st.floats(1e-3, 1e3),
    delta=st.floats(1e-12, 0.1),
    standardize=st.sampled_from(["auto", True, False]),
    intercept=st.booleans(),
    path=st.fixed_dictionaries(
        {"n_iter": st.sampled_from([None, 1, 2, 37]), "clip": st.sampled_from([None, 0.5])}
    ),
    row_norm=st.sampled_from([None, 1.0]),
    declared=st.sampled_from([None, 1, 10_000]),
)
def test_the_account_adds_up_to_the_budget(
    make, n_rows, n_features, epsilon, delta, standardize, intercept, path, row_norm, declared
):
    rng = np.random.default_rng(n_rows)
    X, y = rng.normal(size=(n_rows, n_features)), rng.normal(size=n_rows)
    model = make(
        **PUBLIC | {"epsilon": epsilon, "delta": delta},
        **(path if isinstance(make, partial) else {}),
        standardize=standardize,
        fit_intercept=intercept,
        row_norm=row_norm,
        n_rows=declared,
        random_state=0,
    ).fit(X, y)
    limit = float(ZCDP.within(Budget(epsilon, delta)))
    assert limit * (1 - 1e-9) <= model.privacy_.rho <= limit
    booked = sum(record.rho for record in model.privacy_.mechanisms)
    assert booked == pytest.approx(model.privacy_.rho, rel=1e-9)
    assert np.isfinite(model.predict(X)).all()


@each_scaling
def test_every_estimator_learns_and_target_units_do_not_matter(make, rows):
    X, y = rows
    rich = PUBLIC | {"epsilon": 20.0}
    scores = [make(**rich, random_state=seed).fit(X, y).score(X, y) for seed in range(3)]
    assert np.mean(scores) > 0.5
    plain = make(**PUBLIC, random_state=4).fit(X, y)
    moved = make(**PUBLIC | {"target_bounds": (-32, 32)}, random_state=4).fit(X, 8 * y)
    np.testing.assert_allclose(moved.coef_, 8 * plain.coef_, rtol=1e-9)


@each_scaling
@pytest.mark.parametrize("shape", [(1, 1), (2, 40), (30, 121), (200, 2)])
def test_odd_data_gives_a_finite_model(make, shape):
    rng = np.random.default_rng(11)
    heavy = rng.standard_cauchy(shape) * 1e3
    tables = [
        (np.full(shape, 3.0), rng.normal(size=shape[0])),
        (np.repeat(heavy[:, :1], shape[1], axis=1), heavy[:, 0]),
        (heavy, rng.standard_cauchy(shape[0]) * 1e9),
        (rng.normal(size=shape), np.zeros(shape[0])),
        (heavy * 1e150, heavy[:, 0] * 1e150),
    ]
    public = ((1e-6, 1e50, None), (1.0, 2.0, 1e-30), (1e4, 1e-9, 1e9))
    for k, (X, y) in enumerate(tables):  # over the shapes every table meets every setting
        epsilon, bound, radius = public[(k + sum(shape)) % 3]
        more = {"radius": radius} if isinstance(make, partial) else {}
        bounds = {"feature_bounds": (-bound, bound), "target_bounds": (0, bound)}
        model = make(epsilon=epsilon, delta=1e-6, **bounds, **more).fit(X, y)
        assert np.isfinite(model.coef_).all()
        assert np.isfinite(model.predict(X)).all()


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
        clone(model).set_params(epsilon=-1).check_parameters()
    with pytest.raises(TypeError, match="fit_intercept"):
        clone(model).set_params(fit_intercept="yes").check_parameters()
