"""The audit itself: it refutes the published claims, not the proven ones, and it has power."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest
from scipy import stats

from dpscreen.audit import all_cases, audit, audit_case, load_findings
from dpscreen.audit.batches import GramRuns, LatticeRuns, exact_choices, laplace_choices
from dpscreen.audit.cases import CLAIM, FITTED, ONE_HOT, Case, ClippedScreening, ProvenFrankWolfe
from dpscreen.privacy import ZCDP, Accountant, Budget, LaplaceNoisyMax, NoisyMax, SeededNoise
from dpscreen.rows.design import GramDesign
from dpscreen.rows.lattice import LatticeDesign
from dpscreen.solvers import frank_wolfe as steps
from dpscreen.solvers.frank_wolfe import frank_wolfe, zero_start
from tools.command import dpscreen, here, invoke

# Runs that are enough for each verdict; make study runs all of them in full.
SMALL = {
    "published-dp-fw": 2_000,
    "published-screening": 2_000,
    "published-noisy-max": 6_000,
    "dp-fw-one-hot": 3_000,
    "dp-fw-all-ones": 2_000,
    "dp-fw-fitted": 2_000,
    "dp-fw-intercept": 2_000,
    "rnm-screening": 400,
    "adp-screening": 200,
    "rnm-screen-clip": 400,
    "private-lasso": 150,
    "private-lasso-split": 100,
    "private-logistic": 60,
    "private-logistic-rare": 60,
    "logistic-releases": 4_000,
    "weak-logistic-releases": 40_000,
    "noisy-max": 4_000,
    "gaussian": 4_000,
    "weak-noisy-max": 40_000,
    "weak-gaussian": 40_000,
    "weak-dp-fw": 40_000,
}
RELEASES = ("count", "histograms", "moments", "gram", "gradient", "squares")
SMALL |= {f"lasso-{name}": 500 for name in RELEASES}
SMALL |= {f"weak-lasso-{name}": 1_500 for name in RELEASES}


@pytest.mark.parametrize("name", all_cases())
def test_verdict_is_the_expected_one(name):
    """False alarm on a proven method: at most 1e-3, and the seed is fixed."""
    found = audit_case(
        all_cases()[name], runs=SMALL[name], confidence=0.99, noise=SeededNoise(f"audit {name}")
    )
    assert found.as_expected, found


@pytest.mark.slow
@pytest.mark.parametrize("name", all_cases())
def test_full_audit(name):
    assert audit_case(all_cases()[name]).as_expected


def test_published_dp_fw_is_refuted_beyond_its_claim():
    found = audit(["published-dp-fw"], runs=2_500, seed="E1")[0]
    assert found.certified > 4.9
    assert found.verdict == "claim refuted"


def test_the_case_with_a_clip_would_see_too_little_noise():
    sample = ClippedScreening(ONE_HOT, weaken=4)
    case = Case("weak", "RNM-Screen with a clip, noise cut by 4", CLAIM, sample, stands=False)
    assert audit_case(case, runs=600, noise=SeededNoise("weak clip")).as_expected


def test_the_split_case_does_refit():
    outputs = all_cases()["private-lasso-split"].sample(True, 20, SeededNoise("refit"))
    assert (outputs[:, -1] > 0).mean() > 0.5


def test_processes_find_what_one_process_finds():
    asked = {"names": ["published-noisy-max", "noisy-max"], "runs": 200, "seed": "jobs"}
    assert audit(**asked, jobs=2) == audit(**asked)


def test_an_unknown_case_is_named():
    with pytest.raises(ValueError, match=r"no case 'published'; there are: published-dp-fw"):
        audit(["published"])


def test_the_curve_falls_with_delta():
    found = audit(["published-screening"], runs=3_000, seed="curve")[0]
    bounds = [epsilon for _, epsilon in found.curve]
    assert bounds[0] >= bounds[-1] > 0


# --- the batches are the library's own arithmetic -------------------------------------------------


def test_lattice_runs_move_like_a_lattice_point():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, size=(5, 3)), rng.uniform(-2, 2, size=5)
    many = LatticeRuns(X, y, 4)
    one = LatticeDesign.from_rows(X, y).at(np.zeros(3), scale=1.0)
    for t in range(1, 9):
        feature, amount = int(rng.integers(3)), int(rng.integers(-5, 6))
        many.add(np.full(4, feature), np.full(4, amount))
        one.add(feature, amount)
        many.scale = one.scale = 1.0 / t
        np.testing.assert_array_equal(many.clipped_sums(0.7)[2], one.clipped_sums(0.7))
    np.testing.assert_array_equal(many.weights[1], one.weights)


def test_gram_runs_follow_the_published_loop_draw_for_draw():
    rng = np.random.default_rng(1)
    X, y = rng.uniform(-1, 1, size=(6, 2)), rng.uniform(-1, 1, size=6)
    setting = {"radius": 2.0, "n_iter": 7, "n_rows": 6}
    budget = Budget(4.0, 0.01)
    choose = steps.published_choice(Accountant(SeededNoise("draws"), limit=None), budget, **setting)
    expected = frank_wolfe(
        GramDesign.from_rows(X, y), zero_start(2), radius=2.0, n_iter=7, choose=choose
    )
    noise, runs = SeededNoise("draws"), GramRuns(X, y, 1)
    mechanism = steps.published_step_mechanism(budget, **setting)
    for t in range(1, 8):
        gradient = runs.gradient()
        scores = np.hstack((-gradient, gradient)) * (2.0 / 6)
        position = laplace_choices(mechanism, scores, noise)
        runs.add(position % 2, np.where(position < 2, 1, -1) * (t + 1))
        runs.scale = 4.0 / ((t + 1) * (t + 2))
    np.testing.assert_allclose(runs.weights[0], expected, rtol=1e-12)


def test_exact_choices_follow_the_exponential_mechanism():
    """Chi-square, false alarm 1e-6; a scale off by 1.2 is rejected."""
    mechanism = NoisyMax.of_cost(ZCDP(0.1), sensitivity=1.0, unit=0.25)
    scores = np.array([0, 3, -5, 9, 9, 1])
    found = exact_choices(mechanism, np.tile(scores, (60_000, 1)), SeededNoise("exact choices"))
    observed = np.bincount(found, minlength=6)

    def p_value(scale):
        law = np.exp(scores * 0.25 / scale)
        return stats.chisquare(observed, 60_000 * law / law.sum()).pvalue

    assert p_value(mechanism.scale) > 1e-6
    assert p_value(mechanism.scale * 1.2) < 1e-6


def test_the_audited_dp_fw_is_the_estimators():
    """The transcripts of the batch and of the library's loop have one law (false alarm 1e-6)."""
    X, y = FITTED.rows(True)
    batch = ProvenFrankWolfe(FITTED)(True, 20_000, SeededNoise("batch"))[:, 0]
    noise, cost = SeededNoise("loop"), ZCDP.within(Budget(1.0, 0.01)) / 16
    counts = []
    for _ in range(800):
        chosen = []
        choose = steps.proven_choice(Accountant(noise, limit=None), cost, clip=1.0)
        frank_wolfe(
            LatticeDesign.from_rows(X, y),
            zero_start(2),
            radius=1.0,
            n_iter=16,
            choose=lambda point, choose=choose, chosen=chosen: (
                chosen.append(choose(point)) or chosen[-1]
            ),
        )
        counts.append(sum(vertex == (0, 1) for vertex in chosen))
    table = [np.bincount(np.clip(x, 1, 9).astype(int), minlength=10)[1:] for x in (batch, counts)]
    assert stats.chi2_contingency(table).pvalue > 1e-6


def test_laplace_choices_are_noisy_maxima():
    mechanism = LaplaceNoisyMax(1.0, 2.0)
    scores = np.array([1.0, 0.0, 3.0])
    batch = laplace_choices(mechanism, np.tile(scores, (1, 1)), SeededNoise("one"))
    assert batch[0] == mechanism(scores, SeededNoise("one"))


# --- the command ----------------------------------------------------------------------------------


run = partial(dpscreen, "audit")


def test_command_prints_json_and_exits_with_0_when_all_is_as_expected():
    done = run("published-noisy-max", "noisy-max", "--runs", "8000", "--seed", "x", "--json")
    assert done.returncode == 0, done.stderr
    findings = json.loads(done.stdout)
    assert [found["verdict"] for found in findings] == ["claim refuted", "not refuted"]


def test_findings_are_saved_for_the_page(tmp_path):
    asked = ("audit", "published-noisy-max", "--runs", 8000, "--seed", "x", "--save")
    done = invoke(*asked, tmp_path / "study")
    assert done.exit_code == 0, done.stderr
    assert [found.verdict for found in load_findings(tmp_path / "study")] == ["claim refuted"]
    (tmp_path / "file").touch()
    done = invoke(*asked, tmp_path / "file" / "study")
    assert done.exit_code == 1
    assert f"Cannot write to {tmp_path / 'file' / 'study'}" in done.stderr


def test_command_exits_with_1_on_a_surprise_and_with_2_on_a_typo():
    assert here("audit", "published-noisy-max", "--runs", 100, "--seed", "x").returncode == 1
    done = here("audit", "published-dpfw")
    assert done.returncode == 2
    assert "Did you mean 'published-dp-fw'" in done.stderr
