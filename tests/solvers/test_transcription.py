"""The library's published RNM-Screen is the paper's Algorithm 2, draw for draw.

The transcription in benchmarks/ shares no code with the library. Given the library's own standard
draws, scaled by its own constants, it must take the same steps and end at the same weights.
"""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from dpscreen.privacy import Accountant, Budget, SeededNoise
from dpscreen.rows.design import DenseDesign, GramDesign
from dpscreen.solvers import frank_wolfe as steps
from dpscreen.solvers import screening
from dpscreen.solvers.frank_wolfe import frank_wolfe

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
N, D, N_ITER = 60, 8, 120
KINDS = {"dense": DenseDesign, "gram": GramDesign.from_rows}
OPTIMISATION, SCREENING = Budget(60.0, 1e-3), Budget(800.0, 1e-3)


def load_transcription():
    spec = importlib.util.spec_from_file_location("transcription", BENCHMARKS / "transcription.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


transcription = load_transcription()


class Replay:
    """The library's standard Laplace draws in order, at the scale that the transcription asks for.

    The library maximises −⟨v, g⟩ + noise over the 2d vertices where the paper minimises
    ⟨v, g⟩ + noise: the same choice when the noise changes sign. Both minimise the d screening
    scores.
    """

    def __init__(self, seed, *, factor=1.0):
        self._noise = SeededNoise(seed)
        self._factor = factor

    def laplace(self, *, scale, size):
        sign = -1 if size == 2 * D else 1
        return sign * self._factor * scale * self._noise.laplace(size)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(11)
    X = rng.uniform(-1, 1, (N, D))
    return X, X @ np.array([1.0, 1, -1, 0, 0, 0, 0, 0]) + 0.1 * rng.normal(size=N)


def library(rows, start, *, radius, kind, seed):
    """Run the published path and return (w, how often each mechanism was used, features zeroed)."""
    design = KINDS[kind](*rows)
    accountant = Accountant(SeededNoise(seed), limit=None)
    choose = steps.published_choice(
        accountant, OPTIMISATION, radius=radius, n_iter=N_ITER, n_rows=design.n_rows
    )
    rule = screening.published_rnm(accountant, design, SCREENING, radius=radius, n_iter=N_ITER)
    zeroed = []

    def screen(point, t):
        found = tuple(rule(point, t))
        zeroed.append(len(found))
        return found

    w = frank_wolfe(design, start, radius=radius, n_iter=N_ITER, choose=choose, screen=screen)
    return w, [use.count for use in accountant.uses], zeroed


def literal(rows, start, *, radius, seed, vectorised, factor=1.0):
    return transcription.rnm_screen(
        *rows,
        radius=radius,
        n_iter=N_ITER,
        optimisation=(OPTIMISATION.epsilon, OPTIMISATION.delta),
        screening=(SCREENING.epsilon, SCREENING.delta),
        start=start,
        rng=Replay(seed, factor=factor),
        vectorised=vectorised,
    )


@pytest.mark.parametrize("vectorised", [False, True], ids=["loop", "arrays"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("radius", [0.8, 3.0])
@pytest.mark.parametrize("kind_of_start", ["zero", "random"])
def test_the_library_and_the_transcription_take_the_same_steps(
    rows, vectorised, kind, radius, kind_of_start
):
    for seed in range(3):
        start = steps.starting_point(
            kind_of_start, D, radius=radius, noise=SeededNoise(f"start {seed}")
        )
        w, counts, zeroed = library(rows, start, radius=radius, kind=kind, seed=seed)
        expected = literal(rows, start, radius=radius, seed=seed, vectorised=vectorised)
        np.testing.assert_allclose(w, expected, rtol=1e-9, atol=1e-12)
        assert counts == [N_ITER, N_ITER]
        # The noise leaves both answers of the screening possible, so both are compared.
        assert 0 < sum(zeroed) < N_ITER


@pytest.mark.parametrize("factor", [0.95, 1.05])
def test_the_comparison_would_see_noise_5_percent_off(rows, factor):
    start = np.zeros(D)
    same = [
        np.allclose(
            library(rows, start, radius=3.0, kind="dense", seed=seed)[0],
            literal(rows, start, radius=3.0, seed=seed, vectorised=True, factor=factor),
        )
        for seed in range(3)
    ]
    assert not any(same)
