import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpscreen.regression import DenseDesign, GramDesign
from dpscreen.study.paired import PairedDesign

moves = st.lists(st.tuples(st.integers(0, 3), st.floats(-5, 5)), max_size=8)


@given(moves, st.floats(0.1, 3), st.integers(0, 3))
def test_it_is_the_dense_design_after_any_moves(steps, scale, zeroed):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 4)), rng.normal(size=20)
    dense = DenseDesign(X, y)
    paired = PairedDesign(dense, GramDesign.from_rows(X, y))
    points = [design.at(np.ones(4), scale=2.0) for design in (dense, paired)]
    for point in points:
        for index, amount in steps:
            point.add(index, amount)
        point.zero(zeroed)
        point.scale = scale
    expected, found = points
    for clip in (None, 0.5):
        gradients = [point.gradient(clip=clip) for point in points]
        assert np.allclose(*gradients, atol=1e-9 * max(1.0, expected.squared_error()))
    assert np.allclose(found.weights, expected.weights)
    assert found.scale == scale
    assert found.fitted_norm() == pytest.approx(expected.fitted_norm(), abs=1e-6)
    assert found.squared_error() == pytest.approx(expected.squared_error(), rel=1e-9, abs=1e-9)
