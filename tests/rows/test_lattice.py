"""Exact sums (docs/theory/exactness.md, Lemma 8): the same in any order, and one row moves them by
≤ c.

An attack on float sums is kept beside them: it is shown to work on floats, then to fail here.
"""

import os
import re
import select
import signal
import warnings
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import product

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpscreen.privacy import SeededNoise
from dpscreen.privacy.sampling import exponential_mechanism
from dpscreen.rows import sums
from dpscreen.rows.lattice import (
    LONGEST_WAY,
    MOST_ROWS,
    UNITS,
    LatticeDesign,
    RelaxedRule,
    exact_relaxed_scores,
    on_lattice,
)
from dpscreen.rows.loss import LOGISTIC, SQUARED
from dpscreen.rows.sums import LEVELS

RNG = np.random.default_rng(88)
levels = st.integers(-LEVELS, LEVELS)
sizes = st.floats(1e-3, 1e3)
targets = st.floats(-1e4, 1e4) | st.sampled_from([0.0, -0.0, 1e300, -1e300, np.inf, -np.inf])


def random_design(n_rows, n_features, *, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n_rows, n_features))
    X[rng.random(X.shape) < 0.1] = 1.0
    return LatticeDesign.from_rows(X, rng.normal(size=n_rows))


def walked(design, *, scale=0.01, steps=12, seed=1):
    """Return a point after some steps; the same steps for every design of as many features."""
    rng, point = np.random.default_rng(seed), design.at(np.zeros(design.n_features), scale=scale)
    for _ in range(steps):
        point.add(int(rng.integers(design.n_features)), int(rng.integers(-40, 40)))
    return point


def rows_of(design, chosen):
    return LatticeDesign(design.columns[:, chosen], design.target[chosen])


def level_of(fit, target, scale, clip):
    """Return one row's residual level in Python floats: IEEE double, one operation at a time."""
    residual = (scale / LEVELS * float(fit) - target) * (LEVELS / clip)
    return round(min(max(residual, -float(LEVELS)), float(LEVELS)))


@pytest.fixture
def threads(monkeypatch):
    """Return a function that makes even the smallest sum use that many threads."""

    def use(count):
        monkeypatch.setattr(sums, "threads", lambda: count)
        monkeypatch.setattr(sums, "_PARALLEL_CELLS", 0)

    return use


# --- onto the lattice ------------------------------------------------------------------------


@given(st.lists(st.floats(-1, 1) | st.floats(allow_nan=False), min_size=1, max_size=40))
def test_features_are_clipped_and_truncated_toward_zero(values):
    k = on_lattice(np.array(values))
    assert k.dtype == np.int16
    for value, level in zip(np.clip(values, -1, 1).tolist(), k.tolist(), strict=True):
        assert level == int(Fraction(value) * LEVELS)  # int() truncates


# --- equal to arithmetic in Python integers --------------------------------------------------


@given(st.data(), st.integers(1, 20), st.integers(1, 9), sizes, sizes)
def test_sums_are_those_of_python_integers(data, n_rows, n_features, clip, scale):
    columns = data.draw(
        st.lists(
            st.lists(levels, min_size=n_rows, max_size=n_rows),
            min_size=n_features,
            max_size=n_features,
        )
    )
    y = data.draw(st.lists(targets, min_size=n_rows, max_size=n_rows))
    steps = data.draw(
        st.lists(st.tuples(st.integers(0, n_features - 1), st.integers(-(2**40), 2**40)))
    )
    point = LatticeDesign(np.array(columns, dtype=np.int16), np.array(y)).at(
        np.zeros(n_features), scale=scale
    )
    v = [0] * n_features
    for feature, amount in steps:
        point.add(feature, amount)
        v[feature] += amount
    fit = [sum(columns[j][i] * v[j] for j in range(n_features)) for i in range(n_rows)]
    psi = [level_of(fit[i], y[i], scale, clip) for i in range(n_rows)]
    assert point.residual_levels(clip).tolist() == psi
    expected = [sum(p * k for p, k in zip(psi, column, strict=True)) for column in columns]
    assert point.clipped_sums(clip).tolist() == expected
    assert point.design.column_squares().tolist() == [sum(k * k for k in c) for c in columns]


def test_sums_beyond_32_bits():
    n_rows = 70_001
    columns = np.full((6, n_rows), LEVELS, dtype=np.int16)
    columns[1::2] *= -1
    design = LatticeDesign(columns, np.full(n_rows, -5.0))
    expected = [sign * n_rows * UNITS for sign in (1, -1, 1, -1, 1, -1)]
    assert design.at(np.zeros(6)).clipped_sums(1.0).tolist() == expected
    assert design.column_squares().tolist() == [n_rows * UNITS] * 6


def test_no_rows_give_zeros():
    design = LatticeDesign(np.empty((3, 0), dtype=np.int16), np.empty(0))
    assert design.at(np.zeros(3)).clipped_sums(1.0).tolist() == [0, 0, 0]


# --- the same bits in any order --------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 3, 5, 16])
def test_any_order_and_any_number_of_threads_give_the_same_sums(threads, count):
    design = random_design(301, 23)
    point = walked(design)
    expected = design.columns.astype(np.int64) @ point.residual_levels(0.7).astype(np.int64)
    threads(count)
    for _ in range(10):
        shuffled = rows_of(design, RNG.permutation(design.n_rows))
        assert (walked(shuffled).clipped_sums(0.7) == expected).all()
        with ThreadPoolExecutor(4) as workers:  # and points of several threads at a time
            found = list(workers.map(lambda _: walked(design).clipped_sums(0.7), range(4)))
        assert all((one == expected).all() for one in found)
    assert (design.column_squares() == (design.columns.astype(np.int64) ** 2).sum(axis=1)).all()


# --- a residual depends on its own row alone -------------------------------------------------


def hard_rows(count):
    """Return fits and targets whose residuals fall on ties and on the edges of the clip."""
    fit = RNG.integers(-(2**62), 2**62, count) >> RNG.integers(0, 62, count)
    near = fit * (0.01 / LEVELS)
    offset = RNG.choice([0.0, 0.5, -0.5, 1.5, LEVELS, -LEVELS, LEVELS + 0.5], count) / LEVELS
    return fit, np.nextafter(near - offset, RNG.choice([-np.inf, np.inf], count))


def levels_at(fit, target, *, clip=1.0):
    point = LatticeDesign(np.zeros((1, fit.size), dtype=np.int16), target).at(
        np.zeros(1), scale=0.01
    )
    point._fit = fit
    return point.residual_levels(clip).copy(), point.fitted_levels(clip)


def test_a_residual_is_the_same_at_every_place_of_every_array():
    fit, target = hard_rows(140)
    alone = [levels_at(fit[i : i + 1], target[i : i + 1]) for i in range(fit.size)]
    residuals, fitted = (np.concatenate(part) for part in zip(*alone, strict=True))
    expected = [level_of(f, y, 0.01, 1.0) for f, y in zip(fit.tolist(), target, strict=True)]
    assert residuals.tolist() == expected
    for size in range(1, 71):
        for first in (0, 1, 2, 3, 5, 7, 70):  # and so other alignments in memory
            part = slice(first, first + size)
            for found, wanted in zip(
                levels_at(fit[part], target[part]), (residuals, fitted), strict=True
            ):
                assert (found == wanted[part]).all()


WHOLE, REAL = numba.int64[::1], numba.float64[::1]
LOOPS = {
    "residuals": (SQUARED.loop, [numba.none, WHOLE, REAL]),
    "residuals of some rows": (SQUARED.loop, [numba.uint32[::1], WHOLE, REAL]),
    "chances": (LOGISTIC.loop, [numba.none, WHOLE, REAL]),
    "chances of some rows": (LOGISTIC.loop, [numba.uint32[::1], WHOLE, REAL]),
}


@pytest.mark.parametrize("name", LOOPS)
def test_products_and_sums_are_not_fused(name):
    # A fused multiply-add rounds once; were it used for some lanes only, place would matter.
    loop, inputs = LOOPS[name]
    uncached = numba.njit(nogil=True)(loop)
    uncached.compile((*inputs, *[numba.float64] * 3, numba.int16[::1]))
    (text,) = uncached.inspect_asm().values()
    assert re.search(r"cvt\w*2sd|scvtf", text)  # it is the loop that is looked at
    assert not re.search(r"fn?m(add|sub)|fmla|fmls", text)


def test_a_tiny_clip_is_refused_or_right():
    try:
        found, _ = levels_at(np.zeros(44, dtype=np.int64), np.zeros(44), clip=1e-308)
    except (ValueError, OverflowError):
        return
    assert not found.any()


# --- one row moves a sum by its own term -----------------------------------------------------


def assert_one_row_is_one_term(design, clip, **walk):
    point = walked(design, **walk)
    psi, whole = point.residual_levels(clip).astype(np.int64), point.clipped_sums(clip)
    for i in range(design.n_rows):
        rest = walked(rows_of(design, np.arange(design.n_rows) != i), **walk).clipped_sums(clip)
        change = whole - rest
        assert (change == psi[i] * design.columns[:, i]).all()
        assert np.abs(change).max() <= UNITS


@pytest.mark.parametrize("n_rows", [1, 2, 5, 16, 17, 33, 64])
def test_removing_a_row_removes_its_term(n_rows):
    assert_one_row_is_one_term(random_design(n_rows, 6, seed=n_rows), 0.4)


def test_removing_a_row_removes_its_term_from_adversarial_data():
    signs = np.array(list(product([-1.0, 1.0], repeat=4)))
    target = np.resize([1e9, -1e9, 0.5**15, 1.0, -1.0, np.inf, 1e-320], len(signs))
    design = LatticeDesign.from_rows(signs, target)
    assert_one_row_is_one_term(design, 1.0, scale=1 / 3)
    assert_one_row_is_one_term(design, 1 / 7, scale=1e-7)


def test_the_clip_is_attained():
    design = LatticeDesign.from_rows(np.array([[1.0, -1.0]]), np.array([-100.0]))
    assert design.at(np.zeros(2)).clipped_sums(3.0).tolist() == [UNITS, -UNITS]


# --- the same on floats: an attack -----------------------------------------------------------


def order_attack(m=2**19):
    """Return targets for a single feature of ones: the sum of −y hovers at a power of two.

    A running sum above 2^19 absorbs steps of 2^−34, one below it does not. The first row decides on
    which side of it the sum is when the m small steps come.
    """
    return -np.concatenate([np.ones(m + 1), np.full(m, -(2.0**-34))])


def running_sum(y):
    return np.cumsum(np.clip(-y, -1, 1))[-1]  # one after the other, as a loop would


def test_an_order_of_summation_that_beats_floats_fails_here():
    y = order_attack()
    change = running_sum(y) - running_sum(y[1:])
    assert change == 1 + 2.0**-15  # the clip is 1
    assert running_sum(y[::-1]) != running_sum(y)
    ones = np.full((1, y.size), LEVELS, dtype=np.int16)
    whole = LatticeDesign(ones, y).at(np.zeros(1)).clipped_sums(1.0)
    rest = LatticeDesign(ones[:, 1:], y[1:]).at(np.zeros(1)).clipped_sums(1.0)
    turned = LatticeDesign(ones, y[::-1].copy()).at(np.zeros(1)).clipped_sums(1.0)
    assert (whole - rest).tolist() == [UNITS]
    assert turned.tolist() == whole.tolist()


# --- several processes, several threads ------------------------------------------------------


def small_fit(design, seed, steps=25):
    """Return the features chosen by a short exact fit."""
    point, noise, chosen = design.at(np.zeros(design.n_features), scale=0.05), SeededNoise(seed), []
    for step in range(steps):
        sums = point.clipped_sums(0.8)
        index = exponential_mechanism(np.concatenate([-sums, sums]), Fraction(UNITS), noise)
        point.add(index % design.n_features, (steps - step) * (1 if index < sums.size else -1))
        chosen.append(index)
    return chosen


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_sums_with_threads_of_its_own(threads):
    threads(2)
    design = random_design(400, 24)
    expected = small_fit(design, "child")  # the parent's pool has live threads now
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads is the point
        child = os.fork()
    if child == 0:
        same = small_fit(design, "child") == expected
        os.write(writing, b"same" if same else b"else")
        os._exit(0)
    try:
        ready, _, _ = select.select([reading], [], [], 60)
        assert ready, "the child hangs"
        assert os.read(reading, 4) == b"same"
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reading)
        os.close(writing)


# --- limits ----------------------------------------------------------------------------------


def test_more_rows_than_sums_can_hold_are_refused():
    columns = np.broadcast_to(np.int16(0), (1, MOST_ROWS + 1))
    with pytest.raises(ValueError, match=str(MOST_ROWS)):
        LatticeDesign(columns, np.zeros(1))


def test_every_row_has_one_target():
    with pytest.raises(ValueError, match="one target"):
        LatticeDesign(np.zeros((2, 5), dtype=np.int16), np.zeros(4))


def test_a_way_that_is_too_long_is_refused_for_good():
    design = LatticeDesign.from_rows(np.array([[1.0], [-1.0]]), np.zeros(2))
    point = design.at(np.zeros(1))
    point.add(0, LONGEST_WAY - 1)
    assert point._fit.tolist() == [LEVELS * (LONGEST_WAY - 1), -LEVELS * (LONGEST_WAY - 1)]
    assert LEVELS * LONGEST_WAY <= 2**62
    for _ in range(2):
        with pytest.raises(OverflowError, match="n_iter"):
            point.add(0, -1)  # a way back counts too


@pytest.mark.parametrize("weight", [2.0**44, -(2.0**44), 2.0**63, -1e300])
def test_weights_beyond_whole_numbers_are_refused(weight):
    design = LatticeDesign.from_rows(np.array([[1.0, 0.5], [0.25, -1.0]]), np.array([1.0, 2.0]))
    with pytest.raises(OverflowError, match="n_iter"):
        design.at(np.array([weight, 0.0]))
    with pytest.raises(OverflowError, match="n_iter"):
        design.at(np.zeros(2)).move(np.array([0]), np.array([-(2**63)]))


def test_starting_weights_are_truncated_to_grains():
    design = random_design(50, 4)
    weights, scale = np.array([0.5, -0.3, 0.0, 1e-9]), 0.01
    point = design.at(weights, scale=scale)
    assert (np.abs(point.weights) <= np.abs(weights)).all()
    assert np.abs(point.weights - weights).max() <= scale / 2**20
    before = point._fit.copy()
    point.add(1, 3)
    assert point.weights[1] == pytest.approx(-0.3 + 3 * scale, abs=1e-7)
    point.add(1, -3)
    assert (point._fit == before).all()


@given(st.floats(1e-6, 1e6), st.floats(0, 1e6))
def test_no_term_of_the_relaxed_rule_reaches_2_to_63(radius, target_bound):
    rule = RelaxedRule(radius, radius + target_bound)
    most = MOST_ROWS * UNITS
    assert rule.weight * 2 * most < 2**63
    size, common = most, most + rule.kappa * most
    spread = Fraction(rule.weight, 64) * 2 * most
    assert 2 * (size + common + spread) < 2**63  # so are differences of two scores


# --- the relaxed rule in whole numbers -------------------------------------------------------

RULES = [RelaxedRule(1.0, 2.0), RelaxedRule(50.0, 100.0), RelaxedRule(2.0, 2.0)]
RULES += [RelaxedRule(0.3, 7.1), RelaxedRule(1e-3, 5.0)]
rules = pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"λ={rule.radius:g}")


def transcribed(point, rule):
    """Return the docstring's formula in units of R/2^28 and fractions, nothing rounded."""
    k, design = point.design.columns.astype(object), point.design
    radius, bound = Fraction(rule.radius), Fraction(rule.residual_bound)
    r = [Fraction(int(p)) * bound / LEVELS for p in point.residual_levels(rule.residual_bound)]
    u = [Fraction(int(f)) * radius / LEVELS for f in point.fitted_levels(rule.radius)]
    x = [[Fraction(int(c), LEVELS) for c in column] for column in k]
    S = [sum(a * b for a, b in zip(r, column, strict=True)) for column in x]
    slope = sum(a * b for a, b in zip(u, r, strict=True)) / radius
    fit = sum(a * a for a in u) / radius
    scores = [
        abs(S[j])
        + slope
        + (radius * sum(a * a for a in x[j]) + fit) / rule.kappa
        + rule.kappa / 2 * (slope + max(map(abs, S)))
        for j in range(design.n_features)
    ]
    return [score / (bound / UNITS) for score in scores]


def scores_of(design, rule, vertex):
    """Return the exact scores at w = λ·vertex, a signed one-hot or zero vector."""
    point = design.at(np.zeros(design.n_features), scale=rule.radius)
    for j in np.flatnonzero(vertex):
        point.add(int(j), int(vertex[j]))
    return exact_relaxed_scores(point, design.column_squares(), rule)


@rules
def test_relaxed_scores_are_the_formula_rounded_down_twice(rule):
    rng = np.random.default_rng(5)
    for n_rows in (1, 2, 9):
        X = rng.uniform(-1, 1, (n_rows, 4))
        y = rng.uniform(-1, 1, n_rows) * (rule.residual_bound - rule.radius)
        design = LatticeDesign.from_rows(X, y)
        point = design.at(np.zeros(4), scale=rule.radius / 8)
        for feature, amount in ((0, 3), (1, -2), (3, 2)):
            point.add(feature, amount)
        found = exact_relaxed_scores(point, design.column_squares(), rule).tolist()
        for exact, score in zip(transcribed(point, rule), found, strict=True):
            assert 0 <= exact - score < rule.rounding


def allowed(rule):
    """Return Δ in units of R/2^28: Lemma 6 divided by λ, and the roundings."""
    radius, bound = Fraction(rule.radius), Fraction(rule.residual_bound)
    return (2 * bound + 2 * radius / rule.kappa + rule.kappa * bound) / (
        bound / UNITS
    ) + rule.rounding


def neighbours(rule, rng, n_features=3):
    """Yield rows, one more row, and a vertex: the extremes, and rows drawn between them."""
    room = rule.residual_bound - rule.radius
    corners = [np.array(x) for x in product([-1.0, 0.0, 1.0], repeat=n_features)]
    vertices = [np.zeros(n_features), *np.eye(n_features), *-np.eye(n_features)]
    for _ in range(150):
        n_rows = int(rng.integers(0, 5))
        drawn = [corners[rng.integers(len(corners))] for _ in range(n_rows + 1)]
        if rng.random() < 0.3:
            drawn = [x * rng.uniform(0, 1, n_features) for x in drawn]
        y = room * rng.choice([-1.0, 1.0, 0.0, rng.uniform(-1, 1)], n_rows + 1)
        yield np.array(drawn), y, vertices[rng.integers(len(vertices))]


@rules
def test_one_row_changes_relaxed_scores_by_no_more_than_allowed(rule):
    most = 0
    for X, y, vertex in neighbours(rule, np.random.default_rng(9)):
        whole = scores_of(LatticeDesign.from_rows(X, y), rule, vertex)
        rest = scores_of(LatticeDesign.from_rows(X[1:], y[1:]), rule, vertex)
        changes = [0, *(int(a) - int(b) for a, b in zip(whole, rest, strict=True))]
        most = max(most, max(changes) - min(changes))  # "screen nothing" never changes: the 0
    assert most <= allowed(rule)


@rules
def test_the_allowed_change_is_attained(rule):
    worst = np.ones((1, 2)), np.array([rule.radius - rule.residual_bound]), np.array([1.0, 0.0])
    X, y, vertex = worst
    whole = scores_of(LatticeDesign.from_rows(X, y), rule, vertex)
    rest = scores_of(LatticeDesign.from_rows(X[:0], y[:0]), rule, vertex)
    assert 0.99 * allowed(rule) <= int((whole - rest).max()) <= allowed(rule)


def test_cells_are_capped_for_sums_and_nowhere_else():
    design = random_design(40, 3)
    capped = design.capped(LEVELS // 3)
    assert np.abs(capped.columns).max() == LEVELS // 3
    inside = np.abs(design.columns) <= LEVELS // 3
    assert (capped.columns[inside] == design.columns[inside]).all()
    assert (np.sign(capped.columns) == np.sign(design.columns)).all()
    assert np.abs(design.columns).max() == LEVELS
    assert design.capped(LEVELS) is design
