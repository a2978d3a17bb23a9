"""The loop is the textbook recursion, in whatever form it is stored."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.linear_model import Lasso

from dpscreen.rows.design import DenseDesign, GramDesign
from dpscreen.solvers.frank_wolfe import (
    Vertex,
    frank_wolfe,
    random_start,
    steepest_vertex,
    vertex_at,
    vertex_scores,
    wolfe_gap,
    zero_start,
)

ALARM = 1e-6
KINDS = {"dense": DenseDesign, "gram": GramDesign.from_rows}
kinds = pytest.mark.parametrize("kind", KINDS)
seeds = st.integers(0, 2**32 - 1)
gradients = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=12).map(np.array)


def problem(seed, n=20, d=5):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    return X, X @ rng.normal(size=d) + 0.1 * rng.normal(size=n)


def ball_point(seed, d, radius):
    rng = np.random.default_rng(seed)
    return random_start(rng.exponential(size=d + 1), rng.choice([-1.0, 1.0], d), radius=radius)


def textbook(X, y, start, *, radius, n_iter, dropped):
    """Run w ← (1 − γ)w + γv, γ = 2/(t + 2), with everything computed afresh; return all w."""
    w, path = start.copy(), []
    for t in range(1, n_iter + 1):
        gradient = X.T @ (X @ w - y)
        vertices = radius * np.vstack((np.eye(w.size), -np.eye(w.size)))
        best = vertices[np.argmin(vertices @ gradient)]
        gamma = 2 / (t + 2)
        w = (1 - gamma) * w + gamma * best
        w[list(dropped(t))] = 0.0
        path.append(w.copy())
    return path


# --- the loop -------------------------------------------------------------------------------


@kinds
@pytest.mark.parametrize("start", ["zero", "random"])
@pytest.mark.parametrize("screened", [False, True])
@given(seed=seeds, radius=st.sampled_from([0.3, 1.0, 4.0, 50.0]))
@settings(max_examples=25)
def test_the_loop_is_the_textbook_recursion(kind, start, screened, seed, radius):
    (X, y), d, n_iter = problem(seed), 5, 40
    first = zero_start(d) if start == "zero" else ball_point(seed, d, radius)

    def dropped(t):  # a public rule: some features at some steps, now one, now several
        return [j for j in range(d) if screened and (t * (j + 2)) % 7 == 0]

    path = []
    last = frank_wolfe(
        KINDS[kind](X, y),
        first,
        radius=radius,
        n_iter=n_iter,
        choose=steepest_vertex,
        screen=(lambda point, t: dropped(t)) if screened else None,
        watch=lambda t, point: path.append(point.weights),
    )
    expected = textbook(X, y, first, radius=radius, n_iter=n_iter, dropped=dropped)
    np.testing.assert_allclose(path, expected, rtol=1e-7, atol=1e-10 * radius)
    np.testing.assert_array_equal(last, path[-1])
    assert (np.abs(path).sum(axis=1) <= radius * (1 + 1e-12)).all()


@kinds
@given(seed=seeds)
@settings(max_examples=25)
def test_from_a_zero_start_the_unscaled_weights_are_whole_numbers(kind, seed):
    rng = np.random.default_rng(seed)
    n_iter, radius = 30, rng.uniform(0.1, 50)

    def watch(t, point):
        unscaled = point.weights * (t + 1) * (t + 2) / (2 * radius)
        np.testing.assert_allclose(unscaled, np.rint(unscaled), atol=1e-9)
        # Unscreened, w is a mean of vertices: Σ|v| ≤ Σ(s + 1), s ≤ t.
        assert np.abs(unscaled).sum() <= t * (t + 3) / 2 + 1e-6

    frank_wolfe(
        KINDS[kind](*problem(seed)),
        zero_start(5),
        radius=radius,
        n_iter=n_iter,
        choose=lambda point: Vertex(int(rng.integers(5)), int(rng.choice([-1, 1]))),
        watch=watch,
    )


def test_each_step_keeps_its_weight():
    # Unrolled: step t weighs 2(t + 1)/((T + 1)(T + 2)), the start 2/((T + 1)(T + 2)) (E9).
    d = n_iter = 9
    steps = iter(Vertex(t, 1) for t in range(d))
    start = ball_point(3, d, 2.0)
    w = frank_wolfe(
        DenseDesign(np.zeros((2, d)), np.zeros(2)),
        start,
        radius=2.0,
        n_iter=n_iter,
        choose=lambda point: next(steps),
    )
    weights = 2 * (np.arange(1, n_iter + 1) + 1) / ((n_iter + 1) * (n_iter + 2))
    np.testing.assert_allclose(w, 2.0 * weights + start * 2 / ((n_iter + 1) * (n_iter + 2)))


def test_screening_comes_after_the_step_and_is_told_which():
    calls = []
    frank_wolfe(
        DenseDesign(*problem(1)),
        zero_start(5),
        radius=1.0,
        n_iter=3,
        choose=lambda point: calls.append(("choose", point.weights.any())) or Vertex(0, 1),
        screen=lambda point, t: calls.append(("screen", t, point.weights[0] != 0)) or (0,),
        watch=lambda t, point: calls.append(("watch", t, point.weights.any())),
    )
    expected = [[("choose", False), ("screen", t, True), ("watch", t, False)] for t in (1, 2, 3)]
    assert calls == [call for step in expected for call in step]


@kinds
def test_with_nothing_to_move_to_the_weights_only_shrink(kind):
    start = ball_point(2, 5, 1.0)
    w = frank_wolfe(
        KINDS[kind](*problem(2)), start, radius=1.0, n_iter=8, choose=lambda point: None
    )
    np.testing.assert_allclose(w, start * 2 / (9 * 10))


# --- vertices -------------------------------------------------------------------------------


@given(gradients)
def test_scores_and_positions_of_vertices_are_inverse(gradient):
    d = gradient.size
    scores = vertex_scores(gradient)
    assert scores.size == 2 * d
    seen = set()
    for position in range(2 * d):
        vertex = vertex_at(position, d)
        seen.add(vertex)
        assert scores[position] == -vertex.sign * gradient[vertex.feature]
    assert seen == {Vertex(feature, sign) for feature in range(d) for sign in (-1, 1)}


@given(seeds)
def test_the_steepest_vertex_is_the_brute_force_minimum(seed):
    X, y = problem(seed)
    point = DenseDesign(X, y).at(ball_point(seed, 5, 2.0))
    vertex = steepest_vertex(point)
    gradient = point.gradient()
    slopes = {Vertex(j, s): s * gradient[j] for j in range(5) for s in (-1, 1)}
    assert vertex == min(slopes, key=slopes.get)
    assert vertex == vertex_at(int(np.argmax(vertex_scores(gradient))), 5)


# --- the Wolfe gap --------------------------------------------------------------------------


def gap_at(design, w, radius):
    gradient = design.at(w).gradient()
    return wolfe_gap(float(w @ gradient), gradient, radius=radius)


@given(seeds, st.sampled_from([0.02, 0.1, 0.5]))
@settings(max_examples=30)
def test_the_wolfe_gap_bounds_the_distance_to_the_optimum(seed, strength):
    X, y = problem(seed)
    n = len(y)
    alpha = strength * np.abs(X.T @ y).max() / n
    best = Lasso(alpha=alpha, fit_intercept=False, tol=1e-12, max_iter=100_000).fit(X, y).coef_
    radius = np.abs(best).sum()
    design = DenseDesign(X, y)
    least = design.at(best).squared_error() / 2
    assert gap_at(design, best, radius) < 1e-6

    def check(w):
        gap = gap_at(design, w, radius)
        assert gap >= design.at(w).squared_error() / 2 - least - 1e-9

    for k in range(5):
        check(ball_point(seed + k, 5, radius))
    w = frank_wolfe(design, zero_start(5), radius=radius, n_iter=300, choose=steepest_vertex)
    check(w)
    # Frank-Wolfe's own rate: 2LD²/(t + 2), with L = ‖X‖² and D = 2λ.
    excess = design.at(w).squared_error() / 2 - least
    assert excess <= 2 * np.linalg.norm(X, 2) ** 2 * (2 * radius) ** 2 / 302


@given(gradients, seeds, st.floats(0.01, 100))
def test_the_wolfe_gap_is_the_best_linear_decrease(gradient, seed, radius):
    w = ball_point(seed, gradient.size, radius)
    gap = wolfe_gap(float(w @ gradient), gradient, radius=radius)
    assert gap == wolfe_gap(float(w @ gradient), np.abs(gradient), radius=radius)
    vertices = radius * np.vstack((np.eye(w.size), -np.eye(w.size)))
    assert gap >= 0
    scale = radius * np.abs(gradient).max()
    assert gap == pytest.approx(((w - vertices) @ gradient).max(), rel=1e-9, abs=1e-9 * scale)


# --- the random start -----------------------------------------------------------------------


def starts(d, count, seed):
    rng = np.random.default_rng(seed)
    drawn = rng.exponential(size=(count, d + 1)), rng.choice([-1.0, 1.0], (count, d))
    return np.array([random_start(e, s, radius=3.0) for e, s in zip(*drawn, strict=True)])


@pytest.mark.parametrize("d", [1, 2, 7])
def test_the_random_start_is_uniform_in_the_ball(d):
    # Uniform: the volume inside ‖w‖₁ is uniform, a coordinate is Beta(1, d), signs are fair.
    # Three tests with a false-alarm rate of 1e-6 each; the radius off by 5 %, or a draw on the
    # surface or with one exponential too many, is seen.
    draws = starts(d, 40_000, seed=d) / 3.0
    radii = np.abs(draws).sum(axis=1)
    assert stats.ks_1samp(radii**d, stats.uniform.cdf).pvalue > ALARM
    assert stats.ks_1samp(np.abs(draws[:, 0]), stats.beta(1, d).cdf).pvalue > ALARM
    assert stats.ks_1samp(np.abs(draws[:, -1]), stats.beta(1, d).cdf).pvalue > ALARM
    assert stats.ks_1samp((radii / 1.05) ** d, stats.uniform.cdf).pvalue < ALARM
    assert stats.ks_1samp(np.abs(draws[:, 0]), stats.beta(1, d + 1).cdf).pvalue < ALARM
    for column in draws.T:
        assert stats.binomtest(int((column > 0).sum()), len(column), 0.5).pvalue > ALARM
