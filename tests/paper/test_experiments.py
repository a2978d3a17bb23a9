"""One row, measured: its metrics, curves and settings."""

from itertools import combinations

import numpy as np
import pytest
from tiny_study import WithR2, simulation

from dpscreen.paper import experiments, metrics
from dpscreen.paper.data import DatasetTable
from dpscreen.paper.experiments import (
    RealData,
    Regression,
    UniformProcess,
    seed_name,
)
from dpscreen.paper.methods import METHODS, Fitted, Method
from dpscreen.paper.problem import MOST_POINTS, Recorder
from dpscreen.paper.published import PublishedData
from dpscreen.privacy import SeededNoise


@pytest.fixture
def rows_of(monkeypatch):
    """Return a function that measures fixed coefficients on a source."""

    def measured(source, weights, trial):
        method = Method("fixed", "Fixed", lambda *_: Fitted(np.array(weights)), "not private")
        monkeypatch.setitem(experiments.METHODS, "fixed", method)
        experiment = Regression("synthetic", source, ("fixed",))
        return next(experiment.run(trial, ["fixed"]))

    return measured


def test_the_metrics_are_those_of_the_coefficients(rows_of):
    weights = [0.5, 0, -1, 0, 0, 0, 0, 0, 0, 2]
    source = simulation(kind=WithR2)
    row = rows_of(source, weights, 1)
    problem = source.problem(1)
    X, y = problem.rows.whole.X, problem.rows.whole.y
    assert row.metrics["tpr"] == pytest.approx(2 / 3)
    assert row.metrics["fpr"] == pytest.approx(1 / 7)
    assert row.metrics["f1"] == metrics.f1(weights, problem.reference)
    assert row.metrics["density"] == 0.3
    assert row.metrics["mse"] == pytest.approx(np.mean((X @ weights - y) ** 2))
    moments, found = metrics.Gram(X), np.array(weights) != 0
    missed = (problem.reference != 0) & ~found
    assert row.metrics["r2_unchosen"] == pytest.approx(
        metrics.explained_r2(moments, found, ~found, intercept=True)
    )
    assert row.metrics["r2_missed"] == pytest.approx(
        metrics.explained_r2(moments, found, missed, intercept=True)
    )


def test_as_many_random_features_are_the_control_of_r2(rows_of):
    """Over all subsets of a size the control's mean is that of drawing one uniformly."""
    source, weights = simulation(kind=WithR2), np.array([1.0] * 3 + [0.0] * 7)
    found = [rows_of(source, weights, 0) for _ in range(2)]
    problem = source.problem(0)
    gram, size = problem.rows.moments, problem.design.n_features
    possible = [
        metrics.explained_r2(gram, basis, ~basis, intercept=True)
        for places in combinations(range(size), 3)
        for basis in [np.isin(np.arange(size), places)]
    ]
    value = found[0].metrics["r2_unchosen_at_random"]
    assert value == found[1].metrics["r2_unchosen_at_random"]
    assert np.isclose(possible, value).any()


def test_curves_end_at_the_solution():
    curves = ("mse", "kept_true", "kept_false", "wolfe_gap")
    experiment = Regression("real", simulation(n_iter=500), ("rnm-screen",), curves)
    (row,) = experiment.run(0, ["rnm-screen"])
    assert set(row.series) == {"iteration", *curves}
    assert {len(curve) for curve in row.series.values()} == {MOST_POINTS}
    assert row.series["iteration"][0] == 1
    assert row.series["iteration"][-1] == 500
    last = {name: curve[-1] for name, curve in row.series.items()}
    assert last["mse"] == pytest.approx(row.metrics["mse"], rel=1e-5)
    assert last["kept_true"] == pytest.approx(row.metrics["tpr"], rel=1e-5)
    assert last["kept_false"] == pytest.approx(row.metrics["fpr"], rel=1e-5)
    assert min(row.series["wolfe_gap"]) >= 0


def test_a_row_says_what_was_run_and_what_was_not_private():
    (row,) = Regression("real", simulation(), ("proven-dp-fw",)).run(0, ["proven-dp-fw"])
    assert row.seed == "data=uncorrelated, method=proven-dp-fw, suite=real, trial=0"
    assert row.settings["calibration"] == "proven"
    assert row.settings["epsilon"] == 5.0
    assert row.settings["delta"] == 1 / 120
    assert 6 <= row.settings["n_iter"] <= 200
    assert "E8" in row.settings["preparation"][-1]
    assert {"dpscreen", "numpy", "scikit-learn", "python"} <= set(row.versions)


def test_the_noise_is_the_one_that_the_seed_names():
    experiment = Regression("adp", simulation(), ("dp-fw",))
    (row,) = experiment.run(2, ["dp-fw"])
    names = dict(part.split("=") for part in row.seed.split(", "))
    problem = experiment.source.problem(2)
    fit = METHODS["dp-fw"].fit(problem, SeededNoise(seed_name(**names)), Recorder(problem, ()))
    assert problem.mean_squared_error(fit.weights) == row.metrics["mse"]


def test_trials_draw_rows_of_their_own_and_methods_share_them():
    first, second = (simulation().problem(trial).rows.whole.X for trial in (0, 1))
    assert not np.array_equal(first, second)
    assert np.array_equal(first, simulation().problem(0).rows.whole.X)


def test_a_table_is_prepared_once_and_measured_against_the_lasso(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (80, 5))
    y = 3 * X[:, 0] - 2 * X[:, 3] + 0.1 * rng.standard_normal(80)
    made = DatasetTable(X, y, tuple("abcde"))
    monkeypatch.setattr(experiments, "load", lambda name: made)
    source = RealData(data=PublishedData("made", 80, 5, n_iter=9, n_support=2), transform=False)
    problem = source.problem(0)
    assert source.problem(7) is problem
    assert np.flatnonzero(problem.reference).tolist() == [0, 3]
    assert problem.budget.delta == 1 / 80


# --- Theorem 2 --------------------------------------------------------------------------------


def test_the_simulated_process_has_the_corrected_mean():
    process = UniformProcess(12, 30, n_runs=4000)
    mean = next(process.run(0, process.methods)).metrics["nonzeros"]
    expected = process.expected()
    # A count of 12 coordinates varies by less than 2; 4000 runs make .032, and this is 5 of those.
    assert abs(mean - expected["corrected"]) < 0.16
    assert abs(mean - expected["published"]) > 2
