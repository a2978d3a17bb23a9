"""The audit itself: it refutes the published claims, not the proven ones, and it has power."""

from __future__ import annotations

import json
import warnings
from functools import partial

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from dpscreen.audit import AuditFileProblem, all_cases, audit, audit_case, load_findings
from dpscreen.audit.audit import best_event, with_learned_score
from dpscreen.audit.cases import (
    BY_BRUTE_FORCE,
    CLAIM,
    FITS,
    RELEASES,
    Case,
    frank_wolfe_runs,
    laplace_choices,
    sharpest,
)
from dpscreen.audit.passages import choice_delta, gaussian_delta
from dpscreen.privacy import Accountant, Budget, LaplaceNoisyMax, SecureNoise, SeededNoise
from dpscreen.rows.design import GramDesign
from dpscreen.solvers import frank_wolfe as steps
from dpscreen.solvers.frank_wolfe import frank_wolfe, zero_start
from tools.command import dpscreen, here, invoke

# Runs that are enough for each verdict; make study runs all of them in full.
SMALL = {
    "published-dp-fw": 4_000,
    "published-screening": 2_000,
    "published-noisy-max": 6_000,
    "private-lasso-split": 6,
    "private-logistic-split": 6,
    "weak-rnm-screen-screening": 16_000,
    "weak-adp-screen-screening": 10_000,
    "weak-privategcd-its-gradient": 6_000,
    "weak-lasso-the-targets-sum": 10_000,
    "weak-lasso-magnitudes-of-the-target": 10_000,
    "weak-logistic-counted-the-deviance": 12_000,
}
WEAK, STANDING = 4_000, 8


def runs_of(name):
    return SMALL.get(name, WEAK if name.startswith("weak") else STANDING)


@pytest.mark.parametrize("name", [name for name in all_cases() if not name.startswith("weak")])
def test_verdict_is_the_expected_one(name):
    """False alarm on a proven method: at most 1e-3, and the seed is fixed."""
    case, noise = all_cases()[name], SeededNoise(f"audit {name}")
    single = ":" in case.title
    found = audit_case(case, runs=WEAK if single else runs_of(name), noise=noise)
    assert found.as_expected, found


@pytest.mark.parametrize("name", [name for name in all_cases() if name.startswith("weak")])
def test_too_little_noise_is_seen(name):
    """Every kind of release, with noise cut by 1.5 (choices of a quantile: by 3)."""
    found = audit_case(all_cases()[name], runs=runs_of(name), noise=SeededNoise(f"audit {name}"))
    assert found.broken, found


def test_every_kind_of_release_is_audited():
    """Whatever any estimator releases, with whichever option, has a case that runs it."""
    audited = {purpose for purposes in RELEASES.values() for purpose in purposes}
    for name in FITS:
        made = set(sharpest(name))
        assert made <= audited | BY_BRUTE_FORCE, (name, made - audited)
        assert set(RELEASES.get(name, ())) <= made


def test_curves_are_those_of_exact_laws():
    """Against an integral, against a search over all odds, and against what zCDP books."""
    grid = np.linspace(-12, 12, 200_001)
    for apart, epsilon in ((0.3, 0.1), (1.0, 0.5), (2.5, 0.01)):
        beyond = stats.norm.pdf(grid, apart) - np.exp(epsilon) * stats.norm.pdf(grid)
        expected = np.trapezoid(np.maximum(beyond, 0), grid)
        assert gaussian_delta(epsilon, apart) == pytest.approx(expected, abs=1e-6)
        odds = np.linspace(-40, 40, 400_001)
        expected = np.max(expit(odds + apart) - np.exp(epsilon) * expit(odds))
        assert choice_delta(epsilon, apart) == pytest.approx(max(expected, 0), abs=1e-7)
    assert choice_delta(1.0, 1.0) == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", all_cases())
def test_full_audit(name):
    assert audit_case(all_cases()[name]).as_expected


@pytest.mark.parametrize("name", ["private-lasso-split", "private-logistic-split"])
def test_the_split_case_does_refit(name):
    outputs = all_cases()[name].sample(True, 20, SeededNoise("refit"))
    assert (outputs[:, -1] > 0).mean() > 0.5


def test_an_audit_with_the_noise_of_a_release_warns_of_nothing():
    """It fits the same rows again and again, on purpose."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(all_cases()["private-lasso"].sample(True, 3, SecureNoise())) == 3


def test_a_classifier_sees_what_no_single_number_shows():
    """A product of signs: each number alone is a fair coin on both sides."""
    rng = np.random.default_rng(0)
    one, other = rng.choice((-1.0, 1.0), (2, 4_000))
    here, there = (np.column_stack((one, sign * one * np.abs(other))) for sign in (1, -1))
    here, there, spent = with_learned_score(here, there)
    assert spent == 1_000
    event = best_event(here[spent:], there[spent:], delta=0.0, confidence=0.999)
    assert event.statistic == 2
    assert event.epsilon(here[spent:], there[spent:], delta=0.0, confidence=0.999) > 4


def test_learning_certifies_nothing_where_there_is_nothing():
    """False alarm 1e-3; the runs that trained the classifier may not judge it."""
    rng = np.random.default_rng(1)
    same = Case("same", "the same twice", CLAIM, lambda *_: rng.normal(size=(400, 3)), stands=True)
    assert audit_case(same, runs=400, noise=SeededNoise("same")).certified < 0.2


def test_processes_find_what_one_process_finds():
    asked = {"names": ["published-noisy-max", "published-screening"], "runs": 200, "seed": "jobs"}
    assert audit(**asked, jobs=2) == audit(**asked)


def test_an_unknown_case_is_named():
    with pytest.raises(ValueError, match=r"no case 'published'; there are: published-dp-fw"):
        audit(["published"])


# --- the batches are the library's own arithmetic -------------------------------------------------


def test_batched_runs_follow_the_published_loop_draw_for_draw():
    rng = np.random.default_rng(1)
    X, y = rng.uniform(-1, 1, size=(6, 2)), rng.uniform(-1, 1, size=6)
    setting = {"radius": 2.0, "n_iter": 7}
    budget, accountant = Budget(4.0, 0.01), Accountant(SeededNoise("draws"), limit=None)
    choose = steps.published_choice(accountant, budget, **setting, n_rows=6)
    expected = frank_wolfe(GramDesign.from_rows(X, y), zero_start(2), **setting, choose=choose)
    mechanism = steps.published_step_mechanism(budget, **setting, n_rows=6)
    (found,) = frank_wolfe_runs(X, y, mechanism, SeededNoise("draws"), runs=1, **setting)
    np.testing.assert_allclose(found[4:], expected, rtol=1e-12)
    assert found[:4].sum() == 7


def test_laplace_choices_are_noisy_maxima():
    mechanism = LaplaceNoisyMax(1.0, 2.0)
    scores = np.array([1.0, 0.0, 3.0])
    batch = laplace_choices(mechanism, np.tile(scores, (1, 1)), SeededNoise("one"))
    assert batch[0] == mechanism(scores, SeededNoise("one"))


# --- the command ----------------------------------------------------------------------------------


run = partial(dpscreen, "audit")


def test_command_prints_json_and_exits_with_0_when_all_is_as_expected():
    done = run(
        "published-noisy-max", "dp-fw-frank-wolfe-step", "--runs", "8000", "--seed", "x", "--json"
    )
    assert done.returncode == 0, done.stderr
    findings = json.loads(done.stdout)
    assert [found["verdict"] for found in findings] == ["claim refuted", "not refuted"]


def test_findings_are_saved_for_the_page(tmp_path):
    assert load_findings(tmp_path / "study") == ()
    asked = ("audit", "published-noisy-max", "--runs", 8000, "--seed", "x", "--save")
    done = invoke(*asked, tmp_path / "study")
    assert done.exit_code == 0, done.stderr
    (found,) = audit(["published-noisy-max"], runs=8000, seed="x")
    assert load_findings(tmp_path / "study") == (found,)
    assert found.verdict == "claim refuted"
    stored = json.loads((tmp_path / "study" / "audit.json").read_text())[0] | {"runs": "500"}
    (tmp_path / "study" / "audit.json").write_text(json.dumps([stored]))
    with pytest.raises(AuditFileProblem, match="audit"):
        load_findings(tmp_path / "study")
    (tmp_path / "file").touch()
    done = invoke(*asked, tmp_path / "file" / "study")
    assert done.exit_code == 1
    assert f"Cannot write to {tmp_path / 'file' / 'study'}" in done.stderr


def test_command_exits_with_1_on_a_surprise_and_with_2_on_a_typo():
    assert here("audit", "published-noisy-max", "--runs", 100, "--seed", "x").returncode == 1
    done = here("audit", "published-dpfw")
    assert done.returncode == 2
    assert "Did you mean 'published-dp-fw'" in done.stderr
