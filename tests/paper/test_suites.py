"""The declared experiments against the settings that the paper prints."""

import pytest

from dpscreen.paper import suites
from dpscreen.paper.data import ABLATION, PAPER
from dpscreen.paper.published import published_data, published_figures
from dpscreen.paper.suites import all_experiments


def experiment(suite, data):
    return next(e for e in all_experiments() if (e.suite, e.data) == (suite, data))


@pytest.mark.parametrize(("figure", "suite"), [(1, "synthetic"), (3, "adp")])
def test_synthetic_settings_are_the_papers(figure, suite):
    printed = published_figures()[figure].settings
    source = experiment(suite, "uncorrelated").source
    optimisation, screening = source.split(printed["n_rows"]).parts
    assert (source.n_rows, source.n_features, source.n_iter) == (3000, 600, 1000)
    assert source.radius == printed["radius"]
    assert source.n_positive == source.n_negative == 35
    assert optimisation.epsilon == pytest.approx(printed["epsilon_optimisation"])
    assert screening.epsilon == pytest.approx(printed["epsilon_screening"])
    assert optimisation.delta == pytest.approx(printed["delta_optimisation"])
    assert screening.delta == pytest.approx(printed["delta_screening"])


@pytest.mark.parametrize(
    ("suite", "preparation", "intercept"), [("real", PAPER, True), ("ablation", ABLATION, False)]
)
def test_real_settings_are_the_papers(suite, preparation, intercept):
    for name, printed in published_data().items():
        if name in suites.SYNTHETIC:
            continue
        found = experiment(suite, name)
        assert found.source.preparation == preparation
        assert found.source.n_iter == printed.n_iter
        assert found.source.intercept == found.r2_intercept == intercept
        assert (found.source.epsilon_share, found.source.delta_share) == (0.02, 0.25)
        if suite == "real":
            assert found.source.n_support == printed.n_support
