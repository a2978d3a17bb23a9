"""The contest: locked tables stay locked, rivals within their budget, and scores are scores."""

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from dpscreen.privacy import ZCDP, Budget, SeededNoise

sys.path.insert(0, str(Path(__file__).parents[1]))
contest = import_module("benchmarks.contest")
tables = import_module("benchmarks.contest.tables")
rivals = import_module("benchmarks.contest.rivals")
binned = import_module("benchmarks.contest.binned")
intervals = import_module("benchmarks.contest.intervals")
synthetic = import_module("benchmarks.contest.synthetic")
support = import_module("benchmarks.contest.support")
counts = import_module("benchmarks.contest.counts")
play = import_module("benchmarks.contest.play")
sniper = import_module("benchmarks.sniper")


def test_locked_tables_are_run_by_the_logged_command_alone(monkeypatch):
    loaded = []
    monkeypatch.setattr(contest, "loaded", lambda entries: loaded.extend(entries) or iter(()))
    monkeypatch.setattr(contest.play, "simulations", lambda: iter(()))
    monkeypatch.setattr(contest.intervals, "plays", lambda *_: iter(()))
    monkeypatch.setattr(contest.support, "plays", lambda *_: iter(()))
    assert not [one for one in contest.blocks(1, locked=False) if one[1]]
    assert loaded
    assert not any(one.locked for one in loaded)
    monkeypatch.setenv("DPSCREEN_METHODS", "private-lasso")
    with pytest.raises(SystemExit, match="no choices"):
        contest.main()


def test_a_stopped_run_goes_on_with_the_table_that_it_may_not_have_finished(tmp_path):
    def made():
        for name in ("one", "two", "three"):
            yield "regression", name, iter([{"division": "regression", "table": name, "k": 1}])

    earlier = [{"division": "regression", "table": name, "k": 0} for name in ("one", "two")]
    found = contest.kept(made(), tmp_path / "records.jsonl", earlier)
    assert [(one["table"], one["k"]) for one in found] == [("one", 0), ("two", 1), ("three", 1)]
    assert len((tmp_path / "records.jsonl").read_text().splitlines()) == 3
    assert contest.finished([]) == []


def test_manifest_names_every_table_once_with_a_checksum():
    found = tables.manifest()
    assert len({one.name for one in found}) == len(found)
    assert all(len(one.sha256) == 64 for one in found)
    for division in ("regression", "binary", "counts"):
        assert {one.locked for one in found if one.division == division} == {True, False}


def test_divergence_of_sketches_is_that_of_normal_rows():
    gamma, alpha = 3.0, 1.7

    def divergence(one, other):
        def ratio(x):
            return np.exp(alpha * norm.logpdf(x, 0, one) + (1 - alpha) * norm.logpdf(x, 0, other))

        return np.log(quad(ratio, -60, 60)[0]) / (alpha - 1)

    small = np.sqrt(1 - 1 / gamma)
    most = max(divergence(1.0, small), divergence(small, 1.0))
    found = rivals.sketch_divergence(np.array([alpha, 2 * gamma]), gamma, 5)
    assert found[0] == pytest.approx(5 * most, rel=1e-6)
    assert np.isinf(found[1])


def test_sketches_spend_what_is_left_and_no_more():
    budget, size = Budget(1.0, 1e-6), 100
    rho = float(ZCDP.within(budget)) / 2
    gamma = rivals.least_gamma(rho, budget.epsilon, budget.delta * 0.9, size)
    alpha = 1 + np.logspace(-2, 4, 5000)
    for factor, fits in ((1.01, True), (0.97, False)):
        floor = gamma * factor
        sketches = rivals.ROUNDS * rivals.sketch_divergence(alpha, floor, size)
        whole = (rho + size / (2 * floor**2)) * alpha + sketches
        delta = rivals.converted_delta(whole, alpha, budget.epsilon)
        assert (delta <= budget.delta * 0.9) is fits


@pytest.mark.filterwarnings("ignore::dpscreen.privacy.SeededNoiseWarning")
@pytest.mark.parametrize("kind", ["HessianMixing", "GradientDescent", "BestSubset"])
def test_rivals_find_a_strong_signal_within_the_budget(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 6))
    y = 2 * X[:, 0] + rng.normal(size=4000)
    model = getattr(rivals, kind)(
        epsilon=5.0,
        delta=1e-6,
        feature_bounds=(-6.0, 8.0),
        target_bounds=(-20.0, 15.0),
        n_rows=4000,
        random_state=SeededNoise(1),
        **({"size": 1} if kind == "BestSubset" else {}),
    ).fit(X, y)
    assert int(np.argmax(np.abs(model.coef_))) == 0


@pytest.mark.filterwarnings("ignore::dpscreen.privacy.SeededNoiseWarning")
@pytest.mark.parametrize("method", ["noisy-poisson-descent", "log-private-lasso", "log-adassp"])
def test_rivals_for_counts_find_means_within_the_budget(method, monkeypatch):
    spent = []
    book = counts.Accountant.release
    monkeypatch.setattr(
        counts.Accountant,
        "release",
        lambda self, mechanism, *rest, **named: (
            spent.append(mechanism.cost.rho) or book(self, mechanism, *rest, **named)
        ),
    )
    rng = np.random.default_rng(5)
    X = rng.normal(size=(4000, 3))
    y = rng.poisson(np.exp(0.5 + 0.5 * X[:, 0])).astype(float)
    bounds = np.array([(-6.0, 8.0)] * 3)
    table = tables.PublicTable(X, y, bounds, (0.0, 60.0), tables.FAMILIES["counts"])
    request = play.Request(X, y, table, 3.0, "counts")
    model = play.COUNTS[method](request)
    assert 0.15 < play.scored(model, X, y, "counts")["score"] < 0.5
    assert 0.99 < float(sum(spent) / ZCDP.within(request.budget).rho) <= 1


def test_bins_of_neighbours_differ_by_one_count_and_binagg_fits():
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 10, (6000, 2))
    y = X @ np.array([1.0, -1.0]) + rng.normal(size=6000)
    bounds = np.array([(0.0, 10.0), (0.0, 10.0)])
    line = binned.fit_binagg(X, y, bounds, (-15.0, 15.0), Budget(10.0, 1e-6), SeededNoise(2))
    low, high = line.intervals().T
    assert (low < [1.0, -1.0]).all()
    assert (high > [1.0, -1.0]).all()
    assert (high - low < 2).all()
    tree = binned.PrivTree(1.0, (-1.0, -1.0), (1.0, 1.0))
    unit = X / 5 - 1
    boxes = tree(unit, SeededNoise(3))
    inside = [
        (np.greater_equal(unit, low) & (np.less(unit, high) | (high == 1))).all(axis=1)
        for low, high in boxes
    ]
    assert (np.sum(inside, axis=0) == 1).all()  # every row is in one box
    assert (binned._bin_of(unit, boxes, np.ones(2)) == np.argmax(inside, axis=0)).all()


def test_least_squares_over_a_ball_is_the_constrained_minimum():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(50, 2))
    y = X @ np.array([3.0, 0.0]) + rng.normal(size=50)
    gram, moment, subset = X.T @ X, X.T @ y, np.array([[0, 1]])
    angles = np.linspace(0, 2 * np.pi, 20_001)
    rim = np.stack((np.cos(angles), np.sin(angles)))
    best = (np.einsum("ik,ij,jk->k", rim, gram, rim) - 2 * moment @ rim).min()
    assert rivals.subset_errors(gram, moment, subset, 1.0)[0] == pytest.approx(best, rel=1e-6)
    free = -moment @ np.linalg.solve(gram, moment)
    assert rivals.subset_errors(gram, moment, subset, 100.0)[0] == pytest.approx(free, rel=1e-6)


def test_moments_of_a_tree_are_those_of_its_joint_law():
    rng = np.random.default_rng(3)
    first, second = rng.dirichlet(np.ones(6)).reshape(2, 3), rng.dirichlet(np.ones(3), size=3)
    share = first.sum(axis=0)
    tables_of = {(0, 1): first, (1, 2): share[:, None] * second}
    joint = first[:, :, None] * second[None]
    middles = [np.array([0.0, 1.0]), np.array([-1.0, 0.0, 2.0]), np.array([0.0, 1.0, 5.0])]
    grid = np.stack(np.meshgrid(*middles, indexing="ij")).reshape(3, -1)
    mean = grid @ joint.ravel()
    covariance = (grid * joint.ravel()) @ grid.T - np.outer(mean, mean)
    found = synthetic.tree_moments(middles, tables_of)
    assert found[0] == pytest.approx(mean)
    assert found[1] == pytest.approx(covariance)


def test_scores():
    sample = intervals.Sample(
        np.zeros((2, 2)), np.zeros(2), np.array([0.0, 1.0]), np.array([(0, 1), (0, 2)]), (-1.0, 1.0)
    )
    ends = np.array([(-1.0, 1.0), (1.5, 2.0)])
    found = intervals.judged(ends, sample, np.ones(2))
    assert found["covered"] == 1
    assert found["score"] == pytest.approx(-(2 + 0.5 + 40 * 0.5) / 2)
    none = intervals.judged(np.full((2, 2), np.nan), sample, np.ones(2))
    assert none["refused"]
    assert none["score"] == pytest.approx(-(4 + 2) / 2)
    assert support.f1(np.array([0, 1]), np.array([1, 2])) == 0.5
    assert support.f1(np.array([]), np.array([1])) == 0


def test_an_event_certifies_nearly_all_of_a_choice_and_never_more_than_is_true():
    for rho in (0.01, 0.5, 2.0):
        edges = np.linspace(-4, 4, 81)
        shift = np.sqrt(2 * rho)
        parts = [sniper.event_rho(norm.sf(e - shift), norm.sf(e)) for e in edges]
        assert 0.5 * rho < max(parts) <= rho
        half = np.sqrt(8 * rho) / 2  # two candidates whose log-odds move by √(8ρ)
        chosen = 1 / (1 + np.exp(-half))
        assert 0.7 * rho < sniper.event_rho(chosen, 1 - chosen) <= rho * (1 + 1e-9)
    assert sniper.event_rho(0.2, 0.3) == 0


@pytest.mark.parametrize("kind", ["noisy max", "signed noisy max"])
def test_the_search_refutes_a_choice_with_less_noise_than_is_claimed(kind):
    rho = 0.5
    pair = next(one for one in sniper.choices(ZCDP(rho)) if one.kind == kind)
    noise = SeededNoise(4)
    assert sniper.certified(pair, 9000, 1e-3, noise) <= rho
    assert sniper.certified(pair.cut(), 9000, 1e-3, noise) > rho


def test_losses_go_to_the_first_page_and_all_ranks_to_the_second(tmp_path, monkeypatch):
    scores = {"private-lasso": (0.5, 0.1), "adassp": (0.4, 0.2), play.NOT_PRIVATE: (0.6, 0.3)}
    records = [
        {"division": "regression", "table": table, "method": method, "epsilon": epsilon}
        | {"trial": trial, "score": found[k] + trial / 100, "seconds": 0.1, "refused": False}
        for method, found in scores.items()
        for k, table in enumerate(("one", "two"))
        for epsilon in ((None,) if method == play.NOT_PRIVATE else play.EPSILONS)
        for trial in range(2)
    ]
    pages = [tmp_path / name for name in ("peers.md", contest.TABLES)]
    for page in pages:
        page.write_text("<!-- contest of regression -->\n<!-- end of contest of regression -->\n")
    monkeypatch.setenv("DPSCREEN_PAGE", str(pages[0]))
    contest.published(records)
    first, second = (page.read_text(encoding="utf-8") for page in pages)
    assert (
        "rival is better on 1 of 2 tables, on 1 by more than 2 standard errors: two to adassp"
        in (" ".join(first.split()))
    )
    assert "| adassp | **1.5** (0.305) |" in second
    assert "| private-lasso | 0.150 (0.200) |" in second
