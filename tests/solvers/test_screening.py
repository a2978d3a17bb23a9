"""The safe rule never rejects what the optimum needs; Eq. 1 as printed does."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Lasso

from dpscreen.rows.design import DenseDesign, GramDesign
from dpscreen.solvers.frank_wolfe import (
    frank_wolfe,
    random_start,
    steepest_vertex,
    wolfe_gap,
    zero_start,
)
from dpscreen.solvers.screening import Elimination, published_scores, safe_scores

seeds = st.integers(0, 2**32 - 1)


def independent(rng, n, d):
    return rng.normal(size=(n, d))


def correlated(rng, n, d):
    return rng.normal(size=(n, d)) + 2 * rng.normal(size=(n, 1))


def duplicated(rng, n, d):
    half = rng.normal(size=(n, -(-d // 2)))
    return np.hstack((half, half))[:, :d]


def with_constants(rng, n, d):
    X = rng.normal(size=(n, d))
    X[:, 0], X[:, 1] = 1.0, 0.0
    return X


DESIGNS = [independent, correlated, duplicated, with_constants]
designs = pytest.mark.parametrize("make", DESIGNS, ids=lambda make: make.__name__)


def solved(make, seed, *, n=30, d=8, size=1.0, strength=None):
    """Return (X, y, an optimum, its radius), certified by a Wolfe gap that is nearly 0."""
    rng = np.random.default_rng(seed)
    X = make(rng, n, d)
    y = size * (X @ (rng.normal(size=d) * (rng.random(d) < 0.4)) + 0.3 * rng.normal(size=n))
    strength = rng.uniform(0.02, 0.9) if strength is None else strength
    alpha = strength * np.abs(X.T @ y).max() / n
    model = Lasso(alpha=alpha, fit_intercept=False, tol=1e-12, max_iter=1_000_000).fit(X, y)
    best = model.coef_
    radius = np.abs(best).sum()
    gradient = X.T @ (X @ best - y)
    gap = wolfe_gap(float(best @ gradient), gradient, radius=radius)
    assert gap <= 1e-6 * (y @ y)
    return X, y, best, radius


def points(design, best, radius, seed):
    """Yield places to screen from: random, on Frank-Wolfe's path, and close to the optimum."""
    rng = np.random.default_rng(seed)
    d = best.size
    for _ in range(4):
        signs = rng.choice([-1.0, 1.0], d)
        far = random_start(rng.exponential(size=d + 1), signs, radius=radius)
        yield far
        for share in (1e-2, 1e-4, 1e-6, 0.0):
            yield (1 - share) * best + share * far
    path = []
    frank_wolfe(
        design,
        zero_start(d),
        radius=radius,
        n_iter=200,
        choose=steepest_vertex,
        watch=lambda t, point: path.append(point.weights) if t % 20 == 0 else None,
    )
    yield from path


@designs
@pytest.mark.parametrize("size", [0.1, 1.0, 30.0])  # radii on both sides of 1
def test_the_safe_rule_never_rejects_a_feature_of_the_optimum(make, size):
    rejected = 0
    for seed in range(25):
        X, y, best, radius = solved(make, seed, size=size)
        design, needed = DenseDesign(X, y), np.abs(best) > 1e-7 * radius
        for w in points(design, best, radius, seed):
            scores = safe_scores(design, design.at(w), radius=radius)
            # At the optimum a needed feature scores 0, so rounding, and the oracle's own, may show.
            negative = scores < -1e-7 * (y @ y) / len(y)
            assert not (negative & needed).any()
            rejected += negative.sum()
    assert rejected > 100  # and it does reject something


@designs
def test_the_search_would_see_an_unsafe_rule(make):
    # The power of the test above: with the √Γ term cut to 0.3 of its size, the rule is caught.
    caught = 0
    for seed in range(60):
        X, y, best, radius = solved(make, seed, n=10, d=6)
        design, needed = DenseDesign(X, y), np.abs(best) > 1e-3 * radius
        for w in points(design, best, radius, seed):
            point = design.at(w)
            gradient = point.gradient()
            linear = (radius * np.abs(gradient) + w @ gradient) / len(y)
            cut = linear + 0.3 * (safe_scores(design, point, radius=radius) - linear)
            caught += ((cut < -1e-7 * (y @ y) / len(y)) & needed).any()
    assert caught > 0


def test_eq_1_as_printed_rejects_the_true_support_at_a_large_radius():
    # E3: at the optimum every score is |g_i| − λ‖g‖∞ < 0 for λ > 1.
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 40))
    truth = np.zeros(40)
    truth[:5], truth[5:10] = 5.0, -5.0
    y = X @ truth + 0.1 * rng.normal(size=200)
    best = Lasso(alpha=0.05, fit_intercept=False, tol=1e-12).fit(X, y).coef_
    radius = np.abs(best).sum()
    assert 40 < radius < 50
    design = DenseDesign(X, y)
    point = design.at(best)
    assert (published_scores(design, point, radius=radius) < 0).all()
    assert (safe_scores(design, point, radius=radius)[:10] > -1e-9).all()


# --- the scores themselves ------------------------------------------------------------------


@given(seeds, st.sampled_from([0.3, 1.0, 20.0]))
def test_scores_are_their_formulas_on_both_designs(seed, radius):
    rng = np.random.default_rng(seed)
    n, d = 12, 4
    X, y = rng.uniform(-1, 1, (n, d)), rng.uniform(-1, 1, n) * radius
    w = random_start(rng.exponential(size=d + 1), rng.choice([-1.0, 1.0], d), radius=radius)
    g = X.T @ (X @ w - y) / n
    G = w @ g + radius * np.abs(g).max()
    norms, fit = np.linalg.norm(X, axis=0), np.linalg.norm(X @ w)
    eq_1 = np.abs(g) + w @ g + (norms + fit) / n * np.sqrt(n * G)
    safe = radius * np.abs(g) + w @ g + (radius * norms + fit) / n * np.sqrt(n * G)
    for design in (DenseDesign(X, y), GramDesign.from_rows(X, y)):
        at = design, design.at(w)
        np.testing.assert_allclose(published_scores(*at, radius=radius), eq_1, rtol=1e-7)
        np.testing.assert_allclose(safe_scores(*at, radius=radius), safe, rtol=1e-7)


# --- elimination ----------------------------------------------------------------------------


def run(design, rule, *, radius, n_iter, start=None, watch=None):
    elimination = Elimination(design, rule, radius=radius)
    w = frank_wolfe(
        design,
        zero_start(design.n_features) if start is None else start,
        radius=radius,
        n_iter=n_iter,
        choose=elimination.choose,
        screen=elimination.screen,
        watch=watch,
    )
    return w, elimination.active


@pytest.mark.parametrize("fold", [False, True])
def test_when_everything_is_rejected_the_loop_goes_on_with_zero(fold):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(20, 4)), rng.normal(size=20)
    design = GramDesign.from_rows(X, y) if fold else DenseDesign(X, y)
    seen = []
    w, active = run(
        design,
        lambda design, point, *, radius: np.full(4, -1.0),
        radius=1.0,
        n_iter=6,
        watch=lambda t, point: seen.append(point.weights.any()),
    )
    assert not active.any()
    assert seen == [False] * 6
    assert (w == 0).all()


def test_what_is_rejected_stays_out():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(20, 4)), rng.normal(size=20)
    X[:, 2] = y  # the steepest by far
    steps = iter(range(1, 100))

    def once(design, point, *, radius):
        return np.where(np.arange(4) == 2, -1.0 if next(steps) == 3 else 1.0, 1.0)

    seen = []
    _, active = run(
        DenseDesign(X, y),
        once,
        radius=1.0,
        n_iter=10,
        watch=lambda t, point: seen.append(point.weights[2] != 0),
    )
    assert seen == [True] * 2 + [False] * 8
    assert active.tolist() == [True, True, False, True]


def test_among_those_left_the_steepest_is_chosen():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(20, 6)), rng.normal(size=20)
    design = DenseDesign(X, y)
    elimination = Elimination(design, safe_scores, radius=1.0)
    point = design.at(np.zeros(6))
    gradient = point.gradient()
    for feature in np.argsort(-np.abs(gradient)):
        vertex = elimination.choose(point)
        assert vertex.feature == feature
        assert vertex.sign == -np.sign(gradient[feature])
        elimination.active[feature] = False
    assert elimination.choose(point) is None


def test_a_feature_left_out_is_not_chosen_even_where_all_others_are_flat():
    X = np.zeros((3, 2))
    X[:, 0] = 1.0
    elimination = Elimination(DenseDesign(X, np.ones(3)), safe_scores, radius=1.0)
    elimination.active[0] = False
    assert elimination.choose(DenseDesign(X, np.ones(3)).at(np.zeros(2))).feature == 1


@designs
def test_safe_elimination_reaches_the_same_optimum(make):
    left_out = 0
    for seed in range(4):
        X, y, best, radius = solved(make, seed, n=40, d=12, strength=0.5)
        design = GramDesign.from_rows(X, y)
        w, active = run(design, safe_scores, radius=radius, n_iter=1500)
        plain = frank_wolfe(
            design, zero_start(12), radius=radius, n_iter=1500, choose=steepest_vertex
        )
        least = design.at(best).squared_error() / 2
        gaps = [design.at(at).squared_error() / 2 - least for at in (w, plain)]
        assert gaps[0] <= gaps[1] + 1e-3 * (y @ y)
        assert gaps[0] <= 2e-3 * (y @ y)
        assert (w[~active] == 0).all()
        assert active[np.abs(best) > 1e-6 * radius].all()
        left_out += (~active).sum()
    assert left_out > 0


def test_at_the_optimum_rounding_does_not_reject_the_only_feature():
    # Started on the vertex that is optimal, every score is 0 up to rounding.
    rng = np.random.default_rng(5)
    for _ in range(50):
        x, radius = rng.uniform(-1, 1, (5, 1)), rng.uniform(0.1, 50)
        design = DenseDesign(x, 2 * radius * x[:, 0])
        w, active = run(design, safe_scores, radius=radius, n_iter=20, start=np.array([radius]))
        assert active.all()
        assert w[0] == pytest.approx(radius)
