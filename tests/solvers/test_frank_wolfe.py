"""The loop is the textbook recursion, in whatever form it is stored."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpscreen.rows.design import DenseDesign, GramDesign
from dpscreen.solvers.frank_wolfe import (
    Vertex,
    frank_wolfe,
    random_start,
    steepest_vertex,
    vertex_at,
    vertex_scores,
    zero_start,
)

ALARM = 1e-6
KINDS = {"dense": DenseDesign, "gram": GramDesign.from_rows}
kinds = pytest.mark.parametrize("kind", KINDS)
seeds = st.integers(0, 2**32 - 1)


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


# --- vertices -------------------------------------------------------------------------------


@given(seeds)
def test_the_steepest_vertex_is_the_brute_force_minimum(seed):
    X, y = problem(seed)
    point = DenseDesign(X, y).at(ball_point(seed, 5, 2.0))
    vertex = steepest_vertex(point)
    gradient = point.gradient()
    slopes = {Vertex(j, s): s * gradient[j] for j in range(5) for s in (-1, 1)}
    assert vertex == min(slopes, key=slopes.get)
    assert vertex == vertex_at(int(np.argmax(vertex_scores(gradient))), 5)


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
