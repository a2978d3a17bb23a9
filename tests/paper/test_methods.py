"""The registry, and each method against the estimator or the definition it stands for."""

import pickle
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from tiny_study import simulation

from dpscreen import ADPScreen, DPFrankWolfe, RNMScreen
from dpscreen.paper import methods
from dpscreen.paper.methods import METHODS, keep_largest
from dpscreen.paper.problem import Recorder
from dpscreen.privacy import ZCDP, SeededNoise
from dpscreen.solvers.screening import published_scores

estimators = pytest.mark.filterwarnings(
    "ignore::dpscreen.PublishedCalibrationWarning",
    "ignore::dpscreen.SeededNoiseWarning",
    "ignore::dpscreen.WeakDeltaWarning",
)


@pytest.fixture(scope="module")
def problem():
    return simulation(n_rows=200).problem(0)


def fit(name, problem, seed="noise"):
    return METHODS[name].fit(problem, SeededNoise(seed), Recorder(problem, ()))


def fitted(estimator, problem, **settings):
    rows = problem.rows.whole
    model = estimator(
        radius=problem.radius,
        epsilon=problem.budget.epsilon,
        delta=problem.budget.delta,
        feature_bounds=(-1, 1),
        target_bounds=(-problem.rows.target_bound, problem.rows.target_bound),
        fit_intercept=False,
        random_state=SeededNoise("noise"),
        **settings,
    )
    return model.fit(rows.X, rows.y).coef_


# --- the registry -----------------------------------------------------------------------------


def test_every_method_runs_and_travels_and_only_random_ones_touch_the_noise(problem):
    for name, method in METHODS.items():
        copy = pickle.loads(pickle.dumps(method))
        one, other = (
            copy.fit(problem, SeededNoise(seed), Recorder(problem, ())).weights
            for seed in ("one", "other")
        )
        assert one.shape == (problem.design.n_features,)
        assert np.all(np.isfinite(one))
        assert method.random or np.array_equal(one, other), name


# --- the same bits as the estimators ----------------------------------------------------------


PAPER = {"n_iter": 60, "calibration": "published"}
ADP = PAPER | {"screening_share": 0.02, "screening_delta_share": 0.25}


@estimators
@pytest.mark.parametrize(
    ("name", "estimator", "settings"),
    [
        ("rnm-screen", RNMScreen, PAPER),
        ("dp-fw", DPFrankWolfe, PAPER),
        ("adp-screen", ADPScreen, ADP | {"screen_at": "all"}),
        ("adp-screen-50th", ADPScreen, ADP | {"screen_at": 50}),
        ("adp-screen-last", ADPScreen, ADP | {"screen_at": "last"}),
        ("proven-dp-fw", DPFrankWolfe, {}),
        ("proven-rnm-screen", RNMScreen, {"screening_share": methods.SCREENING_SHARE}),
    ],
)
def test_a_method_is_the_estimator(problem, name, estimator, settings):
    found = fit(name, problem)
    chosen = {key: found.settings[key] for key in ("n_iter", "clip") if key in found.settings}
    assert np.array_equal(found.weights, fitted(estimator, problem, **chosen, **settings))


# --- what each method is ----------------------------------------------------------------------


def test_oracle_k_keeps_the_largest_of_dp_fw(problem):
    assert keep_largest(np.array([1.0, -2.0, 2.0, 2.0]), 2).tolist() == [0.0, -2.0, 2.0, 0.0]
    dense, sparse = fit("dp-fw", problem).weights, fit("oracle-k-fw", problem).weights
    kept = sparse != 0
    assert kept.sum() == problem.n_support == 3
    assert np.array_equal(sparse[kept], dense[kept])
    assert np.abs(dense[kept]).min() >= np.abs(dense[~kept]).max()


def test_preselect_k_uses_the_features_of_largest_l1_norm(problem):
    used = np.flatnonzero(fit("preselect-k-fw", problem).weights)
    largest = np.argsort(-np.abs(problem.rows.whole.X).sum(axis=0))[:3]
    assert set(used) <= set(largest)


def test_safe_screening_does_not_change_frank_wolfe(problem):
    assert np.array_equal(fit("np-fw-safe", problem).weights, fit("np-fw", problem).weights)


def test_the_printed_rule_rejects_what_the_optimum_needs(problem):
    """Erratum E3: for a radius above 1 Eq. 1 is not safe; the corrected rule is."""
    near = replace(problem, radius=2.0, n_iter=2000)
    needed = fit("np-fw", near).weights[problem.support]
    assert np.all(np.abs(needed) > 0.5)
    assert np.any(fit("np-fw-published-rule", near).weights[problem.support] == 0)
    safe = fit("np-fw-safe", near)
    assert np.array_equal(safe.weights[problem.support], needed)
    assert safe.counts["screened"] > 0


def test_uniform_zeroing_screens_when_rnm_does_but_anywhere():
    long = simulation(n_iter=3000).problem(0)
    zeroed = []

    def spy(accountant, given):
        screen = methods.uniform_zeroing(accountant, given)

        def noting(point, t):
            found = list(screen(point, t))
            zeroed.extend(found)
            return found

        return noting

    noise = SeededNoise("control")
    methods.paper_frank_wolfe(long, noise, Recorder(long, ()), screening=spy)
    counts = np.bincount(zeroed, minlength=10)
    expected = fit("rnm-screen", long).counts["screened"]
    assert counts.sum() == pytest.approx(expected, rel=0.02)
    # χ² with 9 degrees of freedom passes 39.3 once in 100 000 uniform runs.
    assert np.sum((counts - counts.mean()) ** 2) / counts.mean() < 39.3


@pytest.mark.parametrize(
    ("name", "plain", "change"),
    [
        ("rnm-screen-longer", "rnm-screen", {"n_iter": 180}),
        ("np-fw-200", "np-fw", {"n_iter": 200}),
        ("np-fw-low", "np-fw", {"radius": 1.0}),
        ("np-fw-high", "np-fw", {"radius": 2.0}),
    ],
)
def test_a_changed_method_is_the_method_on_the_changed_problem(problem, name, plain, change):
    found = fit(name, replace(problem, norms=(1.0, 2.0)))
    assert np.array_equal(found.weights, fit(plain, replace(problem, **change)).weights)
    assert found.settings.items() >= change.items()


def test_experiment_b_starts_at_random_as_algorithm_1_does(problem):
    """A step from zero leaves one nonzero at most; from a dense start half survive screening."""
    once = replace(problem, n_iter=1)
    left = [np.count_nonzero(fit("np-fw-adp-last", once, f"{t}").weights) for t in range(20)]
    assert np.mean(left) > 2
    assert np.count_nonzero(fit("np-fw", once).weights) == 1


def test_screening_without_noise_follows_eq_1(problem):
    wide = replace(problem, radius=50.0)
    screen = methods.without_noise(None, wide, every=2)
    point = wide.design.at(np.full(10, 0.3))
    scores = published_scores(wide.design, point, radius=50.0)
    assert list(screen(point, 1)) == []
    assert list(screen(point, 2)) == np.flatnonzero(scores < 0).tolist()


# --- proven -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_rows", "affordable"), [(10, 6), (3000, 131), (10**6, 200)])
def test_the_steps_that_a_budget_affords(n_rows, affordable):
    # n = 3000, d = 600, (5, 1/3000): ρ = 0.77054 (docs/theory/mechanisms.md, Lemma 4), M = 525.
    size = SimpleNamespace(n_rows=n_rows, n_features=600)
    assert methods.affordable_steps(ZCDP(Fraction("0.77054")), size) == affordable


def test_proven_methods_spend_no_more_than_the_stated_total(problem, monkeypatch):
    spent = []

    class Watched(methods.Accountant):
        def release(self, *args, **kwargs):
            found = super().release(*args, **kwargs)
            spent.append((self.spent, self.limit))
            return found

    monkeypatch.setattr(methods, "Accountant", Watched)
    for name in ("proven-dp-fw", "proven-rnm-screen"):
        spent.clear()
        fit(name, problem)
        total, limit = spent[-1]
        assert limit == ZCDP.within(problem.budget)
        assert limit * Fraction(999, 1000) < total <= limit
