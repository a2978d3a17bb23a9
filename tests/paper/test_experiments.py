"""One row, measured: its metrics, curves and settings."""

import numpy as np
import pytest
from tiny_study import simulation

from dpscreen.paper import metrics
from dpscreen.paper.data import ABLATION
from dpscreen.paper.experiments import (
    RealData,
    Regression,
    UniformProcess,
)
from dpscreen.paper.methods import Fitted, Method


def chosen(weights):
    def fit(_problem, _noise, _recorder):
        return Fitted(np.array(weights))

    return Method("fixed", "Fixed", fit, "not private", random=False)


def test_the_metrics_are_those_of_the_coefficients():
    weights = [0.5, 0, -1, 0, 0, 0, 0, 0, 0, 2]
    source = simulation()
    experiment = Regression("synthetic", source, (chosen(weights),), r2_intercept=True)
    (row,) = experiment.run(1, ["fixed"])
    problem = source.problem(1)
    X, y = problem.rows.whole.X, problem.rows.whole.y
    assert row.metrics["tpr"] == pytest.approx(2 / 3)
    assert row.metrics["fpr"] == pytest.approx(1 / 7)
    assert row.metrics["f1"] == metrics.f1(weights, problem.reference)
    assert row.metrics["density"] == 0.3
    assert row.metrics["mse"] == pytest.approx(np.mean((X @ weights - y) ** 2))
    moments, found = metrics.Gram.of(X), np.array(weights) != 0
    missed = (problem.reference != 0) & ~found
    assert row.metrics["r2_unchosen"] == pytest.approx(
        metrics.explained_r2(moments, found, ~found, intercept=True)
    )
    assert row.metrics["r2_missed"] == pytest.approx(
        metrics.explained_r2(moments, found, missed, intercept=True)
    )


def real_data(name, n_support):
    return RealData(
        name=name,
        preparation=ABLATION,
        n_support=n_support,
        intercept=False,
        n_iter=100,
        epsilon=5.0,
        epsilon_share=0.02,
        delta_share=0.25,
    )


@pytest.mark.usefixtures("data_folder")
def test_real_data_are_prepared_once_and_measured_against_the_lasso():
    source = real_data("housing", 4)
    problem = source.problem(0)
    assert source.problem(7) is problem
    assert problem.n_support == 4
    assert problem.budget.total.delta == 1 / 506
    assert problem.radius == pytest.approx(0.59, abs=0.03)
    assert any("λ is the middle" in note for note in problem.notes)


# --- Theorem 2 --------------------------------------------------------------------------------


def test_the_simulated_process_has_the_corrected_mean():
    process = UniformProcess(12, 30, n_runs=4000)
    mean = process.mean_nonzeros(np.random.default_rng(0))
    expected = process.expected()
    # A count of 12 coordinates varies by less than 2; 4000 runs make .032, and this is 5 of those.
    assert abs(mean - expected["corrected"]) < 0.16
    assert abs(mean - expected["published"]) > 2
