"""The registry, and each method against the estimator or the definition it stands for."""

import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from tiny_study import simulation

from dpscreen import ADPScreen, DPFrankWolfe, RNMScreen
from dpscreen.paper import fitters, methods
from dpscreen.paper.fitters import Screened, iterations, keep_largest
from dpscreen.paper.methods import METHODS, of_rows
from dpscreen.paper.problem import Recorder
from dpscreen.planning import methods as register
from dpscreen.planning.compare import NOT_PRIVATE
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
    return of_rows(name).fit(problem, SeededNoise(seed), Recorder(problem, ()))


def fitted(estimator, problem, **settings):
    rows = problem.rows.whole
    model = estimator(
        radius=problem.radius,
        epsilon=problem.budget.total.epsilon,
        delta=problem.budget.total.delta,
        feature_bounds=(-1, 1),
        target_bounds=(-problem.rows.target_bound, problem.rows.target_bound),
        fit_intercept=False,
        random_state=SeededNoise("noise"),
        **settings,
    )
    return model.fit(rows.X, rows.y).coef_


# --- the registry -----------------------------------------------------------------------------


def test_every_method_runs_and_travels_to_another_process(problem):
    for name, method in METHODS.items():
        copy = pickle.loads(pickle.dumps(method))
        assert copy == method
        weights = copy.fit(problem, SeededNoise(name), Recorder(problem, ())).weights
        assert weights.shape == (problem.design.n_features,)
        assert np.all(np.isfinite(weights))


def test_only_random_methods_touch_the_noise(problem):
    for name, method in METHODS.items():
        one, other = (fit(method.row_name, problem, seed).weights for seed in ("one", "other"))
        if not method.random:
            assert np.array_equal(one, other), name


def test_a_name_means_what_it_means_to_the_product():
    """What the study does to a method of the register is to fit it, by the register's rules."""
    shared = set(METHODS) & {*register.METHODS, NOT_PRIVATE}
    assert shared == {"private-lasso", *register.PEERS}
    assert all(METHODS[name].fit == fitters.OwnRules(name) for name in shared)


def test_rows_have_one_method_each():
    names = [method.row_name for method in METHODS.values()]
    assert len(set(names)) == len(names)


def test_the_proven_methods_without_the_peers():
    assert methods.proven_names() == ("proven-dp-fw", "proven-rnm-screen", "private-lasso")


# --- the same bits as the estimators ----------------------------------------------------------


@estimators
def test_rnm_screen_is_the_estimator(problem):
    expected = fitted(RNMScreen, problem, n_iter=problem.n_iter, calibration="published")
    assert np.array_equal(fit("rnm-screen", problem).weights, expected)


@estimators
def test_dp_fw_is_the_estimator(problem):
    expected = fitted(DPFrankWolfe, problem, n_iter=problem.n_iter, calibration="published")
    assert np.array_equal(fit("dp-fw", problem).weights, expected)


@estimators
@pytest.mark.parametrize(
    ("name", "when"),
    [("adp-screen", "all"), ("adp-screen-50th", 50), ("adp-screen-last", "last")],
)
def test_adp_screen_is_the_estimator(problem, name, when):
    expected = fitted(
        ADPScreen,
        problem,
        n_iter=problem.n_iter,
        calibration="published",
        screen_at=when,
        screening_share=problem.budget.epsilon_share,
        screening_delta_share=problem.budget.delta_share,
    )
    assert np.array_equal(fit(name, problem).weights, expected)


@estimators
def test_proven_dp_fw_is_the_estimator(problem):
    found = fit("proven-dp-fw", problem)
    expected = fitted(
        DPFrankWolfe, problem, n_iter=found.settings["n_iter"], clip=found.settings["clip"]
    )
    assert np.array_equal(found.weights, expected)


@estimators
def test_proven_rnm_screen_is_the_estimator_with_a_clip(problem):
    found = fit("proven-rnm-screen", problem)
    expected = fitted(
        RNMScreen,
        problem,
        n_iter=found.settings["n_iter"],
        clip=found.settings["clip"],
        screening_share=methods.SCREENING_SHARE,
    )
    assert np.array_equal(found.weights, expected)


# --- what each method is ----------------------------------------------------------------------


def test_oracle_k_keeps_the_largest_of_dp_fw(problem):
    dense, sparse = fit("dp-fw", problem).weights, fit("oracle-k-fw", problem).weights
    kept = sparse != 0
    assert kept.sum() == problem.n_support == 3
    assert np.array_equal(sparse[kept], dense[kept])
    assert np.abs(dense[kept]).min() >= np.abs(dense[~kept]).max()


def test_keeping_the_largest_settles_ties_by_position():
    assert keep_largest(np.array([1.0, -2.0, 2.0, 2.0]), 2).tolist() == [0.0, -2.0, 2.0, 0.0]


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
        screen = fitters.uniform_zeroing(accountant, given)

        def noting(point, t):
            found = list(screen(point, t))
            zeroed.extend(found)
            return found

        return noting

    fitters.Published(spy)(long, SeededNoise("control"), Recorder(long, ()))
    counts = np.bincount(zeroed, minlength=10)
    expected = fit("rnm-screen", long).counts["screened"]
    assert counts.sum() == pytest.approx(expected, rel=0.02)
    # χ² with 9 degrees of freedom passes 39.3 once in 100 000 uniform runs.
    assert np.sum((counts - counts.mean()) ** 2) / counts.mean() < 39.3


def test_what_is_screened_is_counted(problem):
    every_other = Screened(lambda *_: lambda _point, t: [1] if t % 2 else [], None, problem)
    assert [list(every_other.step(None, t)) for t in (1, 2, 3)] == [[1], [], [1]]
    assert every_other.counts == {"screened": 2.0}


def test_a_longer_run_is_the_method_on_the_longer_problem(problem):
    found = fit("rnm-screen-longer", problem)
    longer = replace(problem, n_iter=180)
    assert np.array_equal(found.weights, fit("rnm-screen", longer).weights)
    assert found.settings == {"n_iter": 180}
    assert np.array_equal(
        fit("np-fw-200", problem).weights, fit("np-fw", replace(problem, n_iter=200)).weights
    )


def test_the_radius_may_be_at_either_end_of_the_norms_that_share_a_support(problem):
    several = replace(problem, norms=(1.0, 2.0))
    for name, radius in (("np-fw-low", 1.0), ("np-fw-high", 2.0)):
        found = fit(name, several)
        assert np.array_equal(found.weights, fit("np-fw", replace(problem, radius=radius)).weights)
        assert found.settings["radius"] == radius


def test_experiment_b_starts_at_random_as_algorithm_1_does(problem):
    """A step from zero leaves one nonzero at most; from a dense start half survive screening."""
    once = replace(problem, n_iter=1)
    left = [np.count_nonzero(fit("np-fw-adp-last", once, f"{t}").weights) for t in range(20)]
    assert np.mean(left) > 2
    assert np.count_nonzero(fit("np-fw", once).weights) == 1


@pytest.mark.parametrize(
    ("every", "expected"), [(1, range(1, 8)), (3, [3, 6]), (None, [7]), (50, [])]
)
def test_when_lists_iterations(every, expected):
    assert iterations(every, 7) == frozenset(expected)


def test_screening_without_noise_follows_eq_1(problem):
    wide = replace(problem, radius=50.0)
    screen = fitters.WithoutNoise(2)(None, wide)
    point = wide.design.at(np.full(10, 0.3))
    scores = published_scores(wide.design, point, radius=50.0)
    assert list(screen(point, 1)) == []
    assert list(screen(point, 2)) == np.flatnonzero(scores < 0).tolist()


# --- proven -----------------------------------------------------------------------------------


def test_the_steps_that_a_budget_affords(problem):
    # n = 3000, d = 600, (5, 1/3000): ρ = .77054 (MATH, Lemma 4), M = 525.
    class Size:
        n_rows, n_features = 3000, 600

    assert fitters.affordable_steps(ZCDP(Fraction("0.77054")), Size()) == 131
    few, many = (replace_rows(Size(), n) for n in (10, 10**6))
    assert fitters.affordable_steps(ZCDP(Fraction("0.77054")), few) == 6
    assert fitters.affordable_steps(ZCDP(Fraction("0.77054")), many) == 200


def replace_rows(size, n_rows):
    size.n_rows = n_rows
    return size


def test_proven_methods_spend_no_more_than_the_stated_total(problem, monkeypatch):
    spent = []

    class Watched(fitters.Accountant):
        def release(self, *args, **kwargs):
            found = super().release(*args, **kwargs)
            spent.append((self.spent, self.limit))
            return found

    monkeypatch.setattr(fitters, "Accountant", Watched)
    for name in ("proven-dp-fw", "proven-rnm-screen"):
        spent.clear()
        fit(name, problem)
        total, limit = spent[-1]
        assert limit == ZCDP.within(problem.budget.total)
        assert limit * Fraction(999, 1000) < total <= limit
