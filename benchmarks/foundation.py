"""RNM-Screen against a transcription, the clipped DP-FW against bare products, memory, imports."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np

from benchmarks import transcription
from benchmarks.timing import machine, peak_bytes, report, side_by_side
from dpscreen import DPFrankWolfe, RNMScreen
from dpscreen.paper.data import synthetic
from dpscreen.privacy import Accountant, Budget, SecureNoise
from dpscreen.rows.design import GramDesign
from dpscreen.solvers import frank_wolfe as steps
from dpscreen.solvers import screening
from dpscreen.solvers.frank_wolfe import frank_wolfe, zero_start

TRANSCRIBED_STEPS = 40


def main() -> None:
    warnings.simplefilter("ignore")
    print(f"Foundation ({machine()})")
    against_transcription()
    step_cost_over_rows()
    against_bare_products()
    import_cost()


def against_transcription() -> None:
    """Time a whole fit of 1000 steps against the transcription, run for a few steps and scaled."""
    data = synthetic(rng=np.random.default_rng(0))
    setting = dict(radius=50.0, optimisation=(4.9, 1 / 4000), screening=(0.1, 1 / 12000))

    def transcribe(vectorised: bool) -> None:
        transcription.rnm_screen(
            data.X,
            data.y,
            **setting,
            n_iter=TRANSCRIBED_STEPS,
            start=np.zeros(600),
            rng=np.random.default_rng(1),
            vectorised=vectorised,
        )

    literal, vectorised, ours = side_by_side(
        lambda: transcribe(False),
        lambda: transcribe(True),
        lambda: _published(1000).fit(data.X, data.y),
    )
    scale = 1000 / TRANSCRIBED_STEPS
    report(
        "RNM-Screen 3000 x 600, T = 1000: times faster than the transcription",
        scale * literal / ours,
        at_least=80,
    )
    report(
        "  than the same with the loop over features written as array arithmetic",
        scale * vectorised / ours,
    )
    print(f"  ({ours * 1e3:.0f} ms a fit, {ours * 1e3:.0f} µs a step, the Gram matrix included)")
    memory = peak_bytes(lambda: _published(1000).fit(data.X, data.y))
    report("  peak memory over the size of X, X included", 1 + memory / data.X.nbytes, at_most=2.5)


def step_cost_over_rows() -> None:
    """Time steps alone on Gram designs of few and of many rows."""
    rng = np.random.default_rng(2)
    runs = []
    for n_rows in (3_000, 300_000):
        X = rng.uniform(-1, 1, size=(n_rows, 200))
        runs.append(_steps_on(GramDesign.from_rows(X, X[:, 0]), n_rows))
    few, many = side_by_side(*runs, rounds=9)
    report("a step on the Gram form: 300 000 rows over 3000 rows", many / few, at_most=1.2)


def against_bare_products() -> None:
    """Time a whole clipped fit of 100 steps against 100 bare products Xᵀr."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, size=(50_000, 280))
    y = X[:, 0] - X[:, 1] + rng.normal(0, 0.1, size=50_000)
    r = rng.normal(size=50_000)

    def bare() -> None:
        for _ in range(100):
            X.T @ r

    def fit() -> None:
        _clipped(100).fit(X, y)

    products, ours = side_by_side(bare, fit)
    report(
        "clipped DP-FW 50 000 x 280, T = 100: over 100 bare products", ours / products, at_most=1.5
    )
    report(
        "  peak memory over the size of X, X included", 1 + peak_bytes(fit) / X.nbytes, at_most=2.5
    )


def _published(n_iter: int) -> RNMScreen:
    return RNMScreen(
        radius=50,
        n_iter=n_iter,
        epsilon=5,
        delta=1 / 3000,
        calibration="published",
        start="random",
        feature_bounds=(-1, 1),
        target_bounds=(-50, 50),
        fit_intercept=False,
    )


def _clipped(n_iter: int) -> DPFrankWolfe:
    return DPFrankWolfe(
        radius=3,
        n_iter=n_iter,
        epsilon=1,
        delta=1e-6,
        clip=1.0,
        feature_bounds=(-1, 1),
        target_bounds=(-3, 3),
        fit_intercept=False,
    )


def _steps_on(design: GramDesign, n_rows: int):
    budget = Budget(5, 1e-5)
    accountant = Accountant(SecureNoise(), limit=None)
    setting = dict(radius=2.0, n_iter=300)
    choose = steps.published_choice(accountant, budget, n_rows=n_rows, **setting)
    screen = screening.published_rnm(accountant, design, budget, **setting)
    start = zero_start(design.n_features)
    return lambda: frank_wolfe(design, start, choose=choose, screen=screen, **setting)


def import_cost() -> None:
    """Time the import of the package and of numpy, each in a new process."""

    def start(code: str) -> None:
        subprocess.run([sys.executable, "-c", code], check=True)

    nothing, ours, numpy = side_by_side(
        lambda: start(""), lambda: start("import dpscreen"), lambda: start("import numpy")
    )
    report("import dpscreen over import numpy", (ours - nothing) / (numpy - nothing), at_most=1)
