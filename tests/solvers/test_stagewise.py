"""The stagewise loop, against plain arithmetic on the same rows."""

from __future__ import annotations

import numpy as np
import pytest

from dpscreen.rows.kernels import squared_lengths
from dpscreen.rows.lattice import LatticeDesign, LatticePoint
from dpscreen.rows.sums import LEVELS
from dpscreen.solvers.frank_wolfe import Vertex
from dpscreen.solvers.selection import GRAINS, decaying_grains, grain_size, stagewise


@pytest.fixture
def design():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(200, 5))
    return LatticeDesign.from_rows(X, X @ np.array([1.0, 0, -2.0, 0, 0.5]))


def steepest(clip):
    def choose(_t, point):
        sums = point.clipped_sums(clip)
        feature = int(np.argmax(np.abs(sums)))
        return Vertex(feature, -1 if sums[feature] > 0 else 1)

    return choose


def test_steps_decay_and_add_up():
    grains = decaying_grains(8)
    grain = grain_size(first_step=0.4, n_iter=8)
    assert (grain * grains).tolist() == pytest.approx([0.4 * (1 - t / 8) for t in range(8)])
    assert grain * grains.sum() == pytest.approx(0.4 * (8 + 1) / 2)
    assert grains[-1] == GRAINS


def test_the_loop_walks_to_the_truth(design):
    point = LatticePoint(design, grain_size(first_step=0.3, n_iter=60))
    path = stagewise(point, decaying_grains(60), choose=steepest(10.0))
    np.testing.assert_allclose(point.weights, [1, 0, -2, 0, 0.5], atol=0.05)
    np.testing.assert_allclose(path.weights(5), point.weights, atol=1e-12)
    assert len(path) == 60


def test_rows_are_never_longer_than_declared(design):
    for norm in (0.3, 1.0, 1.7, 5.0):
        short = design.shortened(4, norm)
        lengths = squared_lengths(short.columns)
        assert short.n_features == 4
        assert all(int(length) <= (norm * LEVELS) ** 2 for length in lengths)
        long = squared_lengths(design.columns[:4]) > (norm * LEVELS) ** 2
        np.testing.assert_array_equal(short.columns[:, ~long], design.columns[:4, ~long])
        assert np.sqrt(lengths[long] / LEVELS**2).min(initial=norm) >= norm * (1 - 1e-3)
