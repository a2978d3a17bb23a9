"""The range in which features enter predictions: what a row can change, and what is chosen."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpscreen import PrivateLasso, PrivateLogisticLasso
from dpscreen.rows.loss import LOGISTIC, SQUARED
from dpscreen.rows.source import ArrayRows, PublicUnits
from dpscreen.rows.sums import LEVELS
from dpscreen.solvers.prediction_range import RANGE_SHARE, RangedModel, range_share
from dpscreen.solvers.rules import Regime

DECLARED = np.array([[-100.0, 100.0], [0.0, 1.0]])
RELEASED = np.array([[-3.0, 5.0], [0.0, 1.0]])
PURPOSE = "range of the features in predictions"
PUBLIC = {"epsilon": 2, "delta": 1e-6, "feature_bounds": (-500, 500), "random_state": 3}
pytestmark = pytest.mark.filterwarnings("ignore:random_state makes the noise")


def ranged(X, y, loss=SQUARED, weights=(2.0, -1.0, 0.5)):
    units = PublicUnits(
        RELEASED,
        np.array([0.0, 1.0] if loss is LOGISTIC else [-50.0, 50.0]),
        constant=True,
        loss=loss,
        features_at=np.array([[1.0, 4.0], [0.5, 0.5]]),
        target_at=0.0,
    )
    rows = ArrayRows(X, y)
    return rows, RangedModel(units, np.array(weights), rows.lattice(units))


@given(st.integers(0, 2**32 - 1), st.sampled_from([SQUARED, LOGISTIC]), st.sampled_from([1.0, 7.5]))
def test_a_row_adds_at_most_one_to_every_loss_and_takes_nothing_off(seed, loss, cap):
    rng = np.random.default_rng(seed)
    X = rng.standard_cauchy((8, 2)) * 20
    y = rng.integers(0, 2, 8).astype(float) if loss is LOGISTIC else rng.standard_cauchy(8) * 30
    for factor in (1.0, 4.0, 16.0):
        losses = []
        for n in (7, 8):
            rows, model = ranged(X[:n], y[:n], loss)
            losses.append(model.widened(rows, DECLARED, factor).capped_loss(cap))
        assert 0 <= losses[1] - losses[0] <= LEVELS


def test_a_wider_range_keeps_the_coefficients_and_the_declared_bounds():
    rows, model = ranged(np.zeros((3, 2)), np.zeros(3))
    wide = model.widened(rows, DECLARED, 16.0)
    before, after = (one.units.in_users_units(one.weights) for one in (model, wide))
    assert after[0] == pytest.approx(before[0])
    assert after[1] == pytest.approx(before[1])
    assert wide.units.feature_bounds.tolist() == [[-63.0, 65.0], [0.0, 1.0]]


def table(effect, n=20_000):
    rng = np.random.default_rng(7)
    X = np.column_stack((rng.standard_t(2, n) * 2 + 5, rng.normal(size=n)))
    return X, effect(X[:, 0]) + X[:, 1] + rng.normal(size=n)


def fitted(effect, **parameters):
    X, y = table(effect)
    return PrivateLasso(**PUBLIC | {"target_bounds": (-1000, 1000)} | parameters).fit(X, y)


def test_linear_tails_are_used_more_often_than_flat_ones():
    def widths(effect):
        models = [fitted(effect, random_state=seed) for seed in range(5)]
        return [np.ptp(one.feature_bounds_[0]) for one in models]

    linear, flat = widths(lambda x: 3 * x), widths(lambda x: 3 * np.clip(x, 0, 10))
    assert np.median(linear) > 3 * np.median(flat)


def test_the_comparison_is_booked_at_its_share():
    model = fitted(lambda x: 3 * x)
    (use,) = [one for one in model.privacy_.mechanisms if one.purpose == PURPOSE]
    assert use.count == 1
    total = sum(one.rho for one in model.privacy_.mechanisms)
    assert use.rho == pytest.approx(RANGE_SHARE * total, rel=0.02)


def test_few_rows_and_declared_bounds_make_no_comparison():
    def share(n_rows, *, narrowed):
        return range_share(SimpleNamespace(regime=Regime(n_rows, 10, 0.02), narrowed=narrowed))

    assert share(30_000, narrowed=True) == RANGE_SHARE
    assert share(300, narrowed=True) == 0
    assert share(30_000, narrowed=False) == 0


def test_binary_outcomes_have_a_range_too():
    X, y = table(lambda x: x)
    model = PrivateLogisticLasso(**PUBLIC).fit(X, y > 5)
    assert PURPOSE in {one.purpose for one in model.privacy_.mechanisms}


@pytest.mark.parametrize("unit", [2.0**-40, 2.0**30])
def test_the_losses_are_the_same_in_all_units_of_the_target(unit):
    rng = np.random.default_rng(3)
    X, y = rng.standard_cauchy((50, 2)) * 20, rng.normal(size=50) * 30
    losses = []
    for one in (1.0, unit):
        rows, model = ranged(X, y)
        units = replace(model.units, target_bounds=one * model.units.target_bounds)
        rows = ArrayRows(X, one * y)
        model = RangedModel(units, one * model.weights, rows.lattice(units))
        wide = [model.widened(rows, DECLARED, factor) for factor in (1.0, 16.0)]
        losses.append([each.capped_loss(7.5 * one) for each in wide])
    assert losses[0] == losses[1]
    assert losses[0][0] != losses[0][1]


def test_a_target_of_large_numbers_has_a_range_and_a_quality():
    X, y = table(lambda x: 3 * x)
    model = PrivateLasso(**PUBLIC, target_bounds=(-1e12, 1e12)).fit(X, 1e9 * y)
    assert model.fallback_ is None
    assert hasattr(model, "quality_")
