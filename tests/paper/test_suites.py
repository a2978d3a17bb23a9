"""The declared experiments against the settings that the paper prints."""

import pytest

from dpscreen.paper import suites
from dpscreen.paper.experiments import EPSILON, fingerprint_of
from dpscreen.paper.published import (
    PublishedData,
    published_cells,
    published_data,
    published_figures,
)
from dpscreen.paper.results import StudyError
from dpscreen.paper.runner import jobs_for
from dpscreen.paper.suites import all_experiments, all_items, find_items
from dpscreen.privacy import Budget


def experiment(suite, data):
    return next(e for e in all_experiments() if (e.suite, e.data) == (suite, data))


@pytest.mark.parametrize(("figure", "suite"), [(1, "synthetic"), (3, "adp")])
def test_synthetic_settings_are_the_papers(figure, suite):
    printed = published_figures()[figure].settings
    source = experiment(suite, "uncorrelated").source
    total = Budget(EPSILON, 1 / printed["n_rows"])
    optimisation, screening = total.split(share=source.shares[0], delta_share=source.shares[1])
    assert source.data == PublishedData("uncorrelated", 3000, 600, n_iter=1000, n_support=70)
    assert source.radius == printed["radius"]
    assert optimisation.epsilon == pytest.approx(printed["epsilon_optimisation"])
    assert screening.epsilon == pytest.approx(printed["epsilon_screening"])
    assert optimisation.delta == pytest.approx(printed["delta_optimisation"])
    assert screening.delta == pytest.approx(printed["delta_screening"])


@pytest.mark.parametrize(("suite", "transform"), [("real", True), ("ablation", False)])
def test_real_settings_are_the_papers(suite, transform):
    for name, printed in published_data().items():
        if name in suites.SYNTHETIC:
            continue
        found = experiment(suite, name)
        assert found.source.transform == transform
        assert found.source.data.n_iter == printed.n_iter
        assert found.source.r2_intercept == transform
        assert found.source.shares == (0.02, 0.25)
        if suite == "real":
            assert found.source.data == printed


@pytest.mark.parametrize(("data", "possible"), [("residential", {32}), ("blogfeedback", {93, 96})])
def test_the_ablations_supports_follow_from_the_printed_f1(data, possible):
    (printed,) = (c.value for c in published_cells(5) if c.key[1:] == (data, "np-fw", "f1"))
    fitting = {K for K in range(20, 120) if abs(2 / (1 + K) - printed) <= 0.0005}
    assert {min(fitting), max(fitting)} == possible
    assert experiment("ablation", data).source.data.n_support in fitting


def test_every_need_can_be_met_and_every_method_is_needed():
    experiments, items = all_experiments(), all_items().values()
    for item in items:
        met = {name for one in experiments for name in item.needed(one)}
        assert met == set(item.methods) or (met and not item.methods), item
    for one in experiments:
        assert set(one.methods) == {name for item in items for name in item.needed(one)}


def test_declared_settings_tell_rows_apart():
    marks = [fingerprint_of(e, name) for e in all_experiments() for name in e.methods]
    assert len(marks) == len(set(marks))


def test_an_item_runs_only_what_it_needs():
    jobs = jobs_for(find_items(["table1", "figure2"]), 2)
    assert {job.experiment.suite for job in jobs} == {"synthetic", "real"}
    real = {name for job in jobs if job.experiment.suite == "real" for name in job.methods}
    assert real == {"rnm-screen", "proven-dp-fw", "proven-rnm-screen", "private-lasso"}


@pytest.mark.parametrize(
    ("name", "close"), [("tabel1", "table1"), ("Table 1", "table1"), ("zzz", None)]
)
def test_a_wrong_name_gets_a_hint(name, close):
    with pytest.raises(StudyError) as raised:
        find_items([name])
    assert raised.value.args[0].fields.get("close") == close
