"""The refit and the quality of a fit: what one row can change, and what they are good for."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from dpscreen import BoundsWarning, PrivateLasso
from dpscreen.privacy import ZCDP, NoisyMax
from dpscreen.rows.lattice import LatticeDesign
from dpscreen.solvers.base import Choices, Spending, Task
from dpscreen.solvers.quality import Quality, Ranges, release_quality
from dpscreen.solvers.refit import refit
from dpscreen.solvers.rules import Regime
from tools.noise import ScriptedAccountant

pytestmark = [
    pytest.mark.filterwarnings("ignore::dpscreen.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::dpscreen.WeakDeltaWarning"),
]


class Scripted(ScriptedAccountant):
    def answer(self, mechanism, values, purpose):
        assert not isinstance(mechanism, NoisyMax)
        if purpose.startswith("magnitudes of"):  # all of them small
            return 400.0 * np.eye(1, values.size)[0]
        return self.rng.normal(0, 30, size=values.size)


def given_to_mechanisms(X, y, seed, *, intercept):
    columns = np.column_stack((X, np.ones(len(X)))) if intercept else X
    design = LatticeDesign.from_rows(columns, y)
    limit = ZCDP(Fraction(1, 2))
    doubt = (0.0, 2.0, 1000.0)[seed % 3]  # sums are taken from their middle, in part, or not
    paid = Spending(Scripted(seed), limit, Regime(400, X.shape[1], 0.5), count_noise=doubt)
    task = Task(paid, design, 0.8, 0.3, Choices(intercept=intercept, refit=True))
    point = design.start(0.001)
    point.add(0, 400)
    refit(task, point, np.array([0, 2]), 0.7, limit / 2)
    here = Ranges((-3.0, 3.0), np.array([[-0.5, 0.5]]), 0.4, 0.8)
    release_quality(paid, design, point.weights, here, cost=limit / 2, in_sample=True)
    return paid.accountant.given


@pytest.mark.parametrize("intercept", [True, False])
def test_lemmas_23_24_and_45_no_release_moves_further_than_is_booked(intercept):
    """Neighbouring rows under one transcript; extreme rows come close to the bounds."""
    rng = np.random.default_rng(34)
    corners = list(itertools.product((-1.0, 0.0, 1.0), repeat=3))
    closest: dict[str, float] = {}
    for trial, corner in enumerate(itertools.chain(corners, corners)):
        n = trial % 5
        X, y = rng.uniform(-1, 1, size=(n, 3)), rng.uniform(-2, 2, size=n)
        place = int(rng.integers(n + 1))
        more = np.insert(X, place, corner, axis=0), np.insert(y, place, (-3.0, 3.0)[trial % 2])
        before = given_to_mechanisms(X, y, trial, intercept=intercept)
        after = given_to_mechanisms(*more, trial, intercept=intercept)
        for (mechanism, old, purpose), (same, new, _) in zip(before, after, strict=True):
            assert mechanism == same
            size = float(np.linalg.norm((new - old).astype(float)))
            share = size * mechanism.unit / mechanism.sensitivity
            closest[purpose] = max(closest.get(purpose, 0.0), share)
    assert len(closest) == 7
    assert max(closest.values()) <= 1
    assert min(closest.values()) > 0.2


LEVELS = {
    "epsilon": 1.0,
    "delta": 1e-6,
    "feature_bounds": [(0, 1)] * 4 + [(-50, 300)] * 2,
    "target_bounds": (-10_000, 20_000),
}


def levels_table(seed, n_rows=20_000):
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [rng.random(n_rows) < share for share in (0.03, 0.1, 0.3, 0.0)]
        + [rng.normal(40, 12, n_rows), rng.exponential(20, n_rows)]
    )
    effects = np.array([500.0, -500.0, 500.0, 0.0, 8.0, 0.0])
    return X, 3000 + X @ effects + rng.normal(0, 400, n_rows), effects


@pytest.mark.parametrize("seed", range(3))
def test_effects_of_levels_are_found_and_a_level_never_seen_has_none(seed):
    """Measured: rms error .05 of 500 at 3 % of rows, so .25 is five deviations."""
    X, y, effects = levels_table(seed)
    model = PrivateLasso(**LEVELS, random_state=seed).fit(X, y)
    np.testing.assert_allclose(model.coef_[:3], effects[:3], rtol=0.25)
    assert abs(model.coef_[3]) <= 0.2 * y.std()
    np.testing.assert_array_equal(model.feature_bounds_[:4], [[0, 1]] * 4)


def test_with_a_large_budget_the_answer_is_least_squares():
    X, y, _ = levels_table(7)
    model = PrivateLasso(**LEVELS | {"epsilon": 1000.0}, random_state=0).fit(X, y)
    A = np.column_stack((X[:, [0, 1, 2, 4, 5]], np.ones(len(X))))
    best, *_ = np.linalg.lstsq(A, y, rcond=None)
    assert np.mean((model.predict(X) - y) ** 2) < 1.002 * np.mean((A @ best - y) ** 2)


def test_quality_is_what_it_says_and_intervals_hold_new_targets():
    X, y, _ = levels_table(8)
    model = PrivateLasso(**LEVELS, random_state=1).fit(X, y)
    found = model.quality_
    assert isinstance(found, Quality)
    assert found.in_sample
    assert found.r2_low <= model.score(X, y) <= found.r2_high
    assert found.error_reason == "undetected rows"  # bounds are 50 standard deviations wide
    new_X, new_y, _ = levels_table(9)
    for level in (0.5, 0.9):
        _, low, high = model.predict(new_X, interval=level).T
        assert level - 0.03 <= np.mean((low <= new_y) & (new_y <= high)) <= level + 0.12
    bare = PrivateLasso(**LEVELS, quality=False, random_state=1).fit(X, y)
    assert not hasattr(bare, "quality_")
    with pytest.raises(ValueError, match="quality_"):
        bare.predict(new_X, interval=0.9)
    with pytest.raises(ValueError, match="between 0 and 1"):
        model.predict(new_X, interval=1.0)


def test_with_few_rows_prediction_intervals_are_refused():
    X, y, _ = levels_table(8)
    few = LEVELS | {"epsilon": 1.0}
    model = PrivateLasso(**few, random_state=1).fit(X[:150], y[:150])
    with pytest.raises(ValueError, match="not known"):
        model.predict(X[:150], interval=0.9)


def test_the_number_of_rows_is_noisy_and_told_nowhere():
    X, y, _ = levels_table(10)
    models = [PrivateLasso(**LEVELS, random_state=seed).fit(X, y) for seed in range(4)]
    counts = {model.n_rows_ for model in models}
    assert len(counts) > 1
    assert all(abs(count - 20_000) < 6 * 46 for count in counts)
    for model in models:
        told = str(model.privacy_) + str(model.summary()) + model.explain()
        assert "20000" not in told.replace(",", "")
        assert not model.privacy_.rows_disclosed
        assert model.privacy_.neighbours == "adding or removing one row"


def test_bounds_in_the_wrong_units_are_warned_about():
    X, y, _ = levels_table(11)
    X[:, 4] *= 100  # all of it beyond the upper end
    with pytest.warns(BoundsWarning, match=r"x4: declared \(-50, 300\); released centre at the up"):
        model = PrivateLasso(**LEVELS, random_state=0).fit(X, y)
    assert "x4: declared (-50, 300)" in str(model.summary())


def test_a_model_of_few_rows_claims_no_fit_that_it_does_not_have():
    """A constant in 60 rows of noise: whatever the noise made of their scale, no R² is claimed."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(0, 1, (60, 3)), rng.normal(0, 10, 60)
    for seed in range(20):
        told = PrivateLasso(
            epsilon=0.5,
            delta=1e-6,
            feature_bounds=(-4, 9),
            target_bounds=(-100, 100),
            random_state=seed,
        ).fit(X, y)
        assert told.quality_.r2_reason in ("noise", "undetected rows", "constant")
