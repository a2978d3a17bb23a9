"""The two designs are one function of the data: against each other and against plain numpy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpscreen.rows.design import DenseDesign, GramDesign, choose_design, gram_pays

seeds = st.integers(0, 2**32 - 1)
moves = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 3), st.floats(-3, 3)),
        st.tuples(st.just("zero"), st.integers(0, 3), st.just(0.0)),
        st.tuples(st.just("scale"), st.just(0), st.sampled_from([0.01, 0.3, 1.0, 2.0, -0.5])),
    ),
    max_size=25,
)
KINDS = {"dense": DenseDesign, "gram": GramDesign.from_rows}
kinds = pytest.mark.parametrize("kind", KINDS)


def problem(seed, n=9, d=4):
    rng = np.random.default_rng(seed)
    X, y = rng.uniform(-1, 1, (n, d)), rng.uniform(-2, 2, n)
    if d > 1:
        X[:, -1] = X[:, 0]  # a duplicate, so that XᵀX is singular
    return X, y


def assert_describes(point, X, y, w):
    """Check every sum of a point against the rows themselves."""
    near = {"rtol": 1e-9, "atol": 1e-9 * (1 + np.abs(w).max())}
    residual = X @ w - y
    np.testing.assert_allclose(point.weights, w, **near)
    np.testing.assert_allclose(point.gradient(), X.T @ residual, **near)
    assert point.squared_error() == pytest.approx(residual @ residual, rel=1e-8, abs=1e-8)
    assert point.fitted_norm() == pytest.approx(np.linalg.norm(X @ w), rel=1e-6, abs=1e-6)


@kinds
@given(
    seed=seeds,
    moves=moves,
    dense_start=st.booleans(),
    scale=st.sampled_from([1.0, 0.2, 7.0]),
    shape=st.sampled_from([(9, 4), (1, 1), (1, 5), (7, 1)]),
)
def test_any_sequence_of_moves_leaves_the_point_where_numpy_says(
    kind, seed, moves, dense_start, scale, shape
):
    (X, y), d = problem(seed, *shape), shape[1]
    start = np.random.default_rng(seed + 1).normal(size=d) if dense_start else np.zeros(d)
    design = KINDS[kind](X, y)
    np.testing.assert_allclose(design.column_norms, np.linalg.norm(X, axis=0))
    assert (design.n_rows, design.n_features) == X.shape
    point, v = design.at(start, scale=scale), start / scale
    for move, index, amount in moves:
        match move:
            case "add":
                point.add(index % d, amount)
                v[index % d] += amount
            case "zero":
                point.zero(index % d)
                v[index % d] = 0.0
            case "scale":
                point.scale = scale = amount
        assert_describes(point, X, y, scale * v)


@kinds
def test_what_is_returned_is_a_copy_and_what_is_given_is_left_alone(kind):
    X, y = problem(4)
    start, rows, target = np.ones(4), X.copy(), y.copy()
    point = KINDS[kind](X, y).at(start)
    weights, gradient = point.weights, point.gradient()
    point.add(1, 5.0)
    assert (weights == 1).all()
    np.testing.assert_allclose(gradient, X.T @ (X @ start - y))
    weights[:] = gradient[:] = np.nan
    assert_describes(point, X, y, np.array([1.0, 6.0, 1.0, 1.0]))
    assert (start == 1).all()
    assert (rows == X).all()
    assert (y == target).all()


def test_an_exact_fit_has_no_error_and_no_root_of_a_negative_number():
    # Rounding in wᵀXᵀXw − 2wᵀXᵀy + yᵀy may fall below 0; a norm and an error must not.
    rng = np.random.default_rng(8)
    for _ in range(200):
        X, w = rng.uniform(-1, 1, (30, 4)), rng.normal(size=4)
        point = GramDesign.from_rows(X, X @ w).at(w)
        assert 0 <= point.squared_error() < 1e-12
        opposite = np.array([1.0, 0, 0, -1.0])
        X[:, -1] = X[:, 0]
        assert 0 <= GramDesign.from_rows(X, X @ w).at(opposite).fitted_norm() < 1e-6


@given(st.integers(1, 500), st.integers(1, 60), st.integers(1, 100))
def test_the_chosen_design_is_the_one_that_pays(n, d, n_iter):
    X, y = np.ones((n, d)), np.ones(n)
    folded = isinstance(choose_design(X, y, n_iter=n_iter), GramDesign)
    assert folded == gram_pays(n, d, n_iter=n_iter)
    if folded:
        assert d * d <= n * d / 2  # a Gram matrix never takes more memory than the rows
