"""Sparse rows give the numbers of dense ones, bit for bit (docs/theory/sparse.md, Lemma 21).

A dense lattice design of the same cells is the oracle: after any moves, at any clips, weights,
levels, sums and the candidates counted by class must be equal.
"""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from dpscreen.rows import sparse
from dpscreen.rows.lattice import LatticeDesign, RelaxedRule
from dpscreen.rows.score_index import ScoreIndex
from dpscreen.rows.source import PublicUnits
from dpscreen.rows.sparse import SparseLatticeDesign, SparseRows
from dpscreen.rows.sums import LEVELS, ShortRows, whole_sum

shapes = st.tuples(st.integers(1, 40), st.integers(1, 70))
seeds = st.integers(0, 2**32)
clips = st.sampled_from([0.01, 0.5, 1.0, 3.0, 1e3])


def random_rows(shape, seed, *, density=0.3):
    rng = np.random.default_rng(seed)
    dense = np.where(rng.random(shape) < density, rng.uniform(-1.2, 1.2, shape), 0.0)
    return dense, rng.normal(size=shape[0])


def both(shape, seed, *, constant=True):
    """Return the sparse design and the dense one of the same cells."""
    dense, target = random_rows(shape, seed)
    columns = np.hstack((dense, np.ones((shape[0], int(constant)))))
    ours = SparseLatticeDesign.from_rows(sp.csr_array(dense), target, constant=constant)
    return ours, LatticeDesign.from_rows(columns, target)


def classes_by_hand(sums, shift, depth):
    numbers = [abs(int(value)) >> shift for value in sums]
    top = max(numbers)
    return top, [numbers.count(top - i) for i in range(min(depth, top + 1))], numbers


def assert_counted(index, sums, *, shift, depth):
    """Compare counts, and every member of every class, with counting by hand."""
    top, counts = index.classes(shift, depth)
    right_top, right_counts, numbers = classes_by_hand(sums, shift, depth)
    assert (top, counts.tolist()) == (right_top, right_counts)
    for below, count in enumerate(right_counts):
        inside = [j for j, number in enumerate(numbers) if number == top - below]
        assert [index.member(top - below, top - below, r) for r in range(count)] == inside
    deep = [j for j, number in enumerate(numbers) if number <= top - depth]
    assert [index.member(0, top - depth, r) for r in range(len(deep))] == deep
    assert [index.score(j) for j in range(len(sums))] == sums.tolist()


# --- a point among sparse rows is the point among dense ones ---------------------------------

moves = st.lists(
    st.tuples(st.sampled_from(["add", "zero", "scale", "look"]), seeds, clips), max_size=25
)


@given(shapes, seeds, moves, st.booleans(), st.integers(10, 30))
@settings(max_examples=150)
def test_any_moves_and_clips_give_the_same_numbers(shape, seed, done, constant, shift):
    ours, theirs = both(shape, seed, constant=constant)
    a, b = ours.start(1e-3), theirs.start(1e-3)
    everything = np.arange(shape[1])
    for kind, number, clip in done:
        feature = number % ours.n_features
        if kind == "scale":
            a.scale = b.scale = (1 + number % 7) * 1e-3
        elif kind == "look":
            index = a.signed_scores(clip, everything)
            sums = b.clipped_sums(clip)[: shape[1]]
            assert_counted(index, sums, shift=shift + number % 3, depth=1 + number % 40)
        else:
            for point in (a, b):
                point.add(feature, number % 2001 - 1000) if kind == "add" else point.zero(feature)
    assert a.weights.tolist() == b.weights.tolist()
    for clip in (0.3, 2.0):
        assert a.residual_levels(clip).tolist() == b.residual_levels(clip).tolist()
        assert a.fitted_levels(clip).tolist() == b.fitted_levels(clip).tolist()
        assert a.clipped_sums(clip).tolist() == b.clipped_sums(clip).tolist()
    assert ours.column_squares().tolist() == theirs.column_squares().tolist()


@given(
    shapes, seeds, st.integers(0, 2**16), st.integers(1, LEVELS) | st.just(LEVELS), st.booleans()
)
def test_sums_of_some_candidates_are_those_of_all_wherever_the_point_moves(
    shape, seed, chosen, cell_clip, at_zero
):
    """Candidates that were dropped may still move, the clip may change, and so may candidates."""
    ours, theirs = both(shape, seed)
    rng, every = np.random.default_rng(chosen), np.arange(ours.n_features)
    weights = rng.normal(size=ours.n_features) * (not at_zero)
    a, b = ours.at(weights, scale=1e-3), theirs.at(weights, scale=1e-3)
    assert a.weights.tolist() == b.weights.tolist()
    allowed = np.sort(rng.choice(every, size=1 + chosen % shape[1], replace=False))
    subsets = allowed, allowed, allowed, allowed[:1], every, every[:-1], every[:0]
    for step, subset in enumerate(subsets):
        feature, amount = int(rng.choice(every)), int(rng.integers(-400, 400))
        a.add(feature, amount), b.add(feature, amount)
        clip = 1.0 if step % 3 else 0.3
        expected = b.clipped_sums(clip, cell_clip)
        assert a.clipped_sums(clip, cell_clip).tolist() == expected.tolist()
        for point in (a, b):
            found = point.signed_scores(clip, subset, cell_clip)
            sums = found.sums if isinstance(found, ScoreIndex) else found
            assert sums.tolist() == expected[subset].tolist()


@given(shapes, seeds, st.sampled_from([0.2, 1.0, 2.0]))
@settings(max_examples=30)
def test_all_other_sums_are_the_same(shape, seed, row_norm):
    ours, theirs = both(shape, seed)
    a, b = ours.start(1e-3), theirs.start(1e-3)
    chosen = np.array([0, shape[1]])
    for point in (a, b):
        point.add(0, 40)
    for asked in (
        lambda point: point.residual_total(0.7),
        lambda point: point.residual_counts(0.7).tolist(),
        lambda point: point.relaxed_sums(RelaxedRule(1.0, 2.0)).tolist(),
        lambda point: point.short_gradient(0.7, shape[1], row_norm).tolist(),
        lambda point: point.short_products(0.7, ShortRows(chosen, row_norm)).tolist(),
        lambda point: point.design.short_gram(ShortRows(chosen, row_norm, 700)).tolist(),
    ):
        assert asked(a) == asked(b)


# --- what is kept, is kept right -------------------------------------------------------------


@pytest.mark.parametrize("heavy", [0.0, 2.0])
def test_a_step_may_touch_all_rows_or_few(monkeypatch, heavy):
    monkeypatch.setattr(sparse, "_HEAVY", heavy)
    ours, theirs = both((60, 50), 1)
    a, b = ours.start(1e-3), theirs.start(1e-3)
    everything = np.arange(50)
    for step in range(40):
        index = a.signed_scores(0.5, everything)
        assert_counted(index, b.clipped_sums(0.5)[:50], shift=22, depth=30)
        for point in (a, b):
            point.add(step * 7 % 50, 100 - 5 * step)


@pytest.mark.parametrize(
    ("limit", "value"), [("_PARALLEL_NONZEROS", 0), ("_BLOCK", 7), ("_TILE", 7)]
)
@pytest.mark.parametrize("n_features", [6, 7, 8, 30])
def test_threads_blocks_and_tiles_sum_the_same(monkeypatch, limit, value, n_features):
    monkeypatch.setattr(sparse, limit, value)
    ours, theirs = both((40, n_features), 6)
    levels = np.random.default_rng(0).integers(-LEVELS, LEVELS, 40).astype(np.int16)
    assert ours.sums(levels).tolist() == theirs.sums(levels).tolist()


def test_sums_that_leave_the_window_of_classes_are_counted_anew():
    rng = np.random.default_rng(5)
    dense = np.where(rng.random((400, 30)) < 0.5, 1.0, 0.0)
    target = dense @ rng.normal(size=30) * 5
    ours = SparseLatticeDesign.from_rows(sp.csr_array(dense), target)
    theirs = LatticeDesign.from_rows(dense, target)
    a, b = ours.start(1e-2), theirs.start(1e-2)
    tops = set()
    for step in range(60):
        index = a.signed_scores(20.0, np.arange(30))
        # 2^18 is a narrow class here: sums travel through thousands of classes
        assert_counted(index, b.clipped_sums(20.0), shift=18, depth=100)
        tops.add(int(index.state[1]) // 1024)
        amount = (-1) ** (step // 15) * 200
        a.add(step % 30, amount), b.add(step % 30, amount)
    assert len(tops) > 3


# --- matrices of every form ------------------------------------------------------------------


def forms(dense):
    csr = sp.csr_array(dense)
    unsorted = csr.copy()
    for i in range(len(dense)):
        where = slice(unsorted.indptr[i], unsorted.indptr[i + 1])
        unsorted.indices[where] = unsorted.indices[where][::-1].copy()
        unsorted.data[where] = unsorted.data[where][::-1].copy()
    unsorted.has_sorted_indices = False
    zeros = sp.csr_array((np.zeros(dense.size), np.nonzero(np.ones(dense.shape))), dense.shape)
    stored_zeros = sp.csr_array((dense.ravel(), zeros.indices, zeros.indptr), shape=dense.shape)
    coo = sp.coo_array(dense)
    twice = sp.coo_array(
        (np.tile(coo.data / 2, 2), (np.tile(coo.row, 2), np.tile(coo.col, 2))), shape=dense.shape
    )
    doubled = sp.csr_array(
        (np.repeat(csr.data / 2, 2), np.repeat(csr.indices, 2), 2 * csr.indptr), shape=dense.shape
    )
    wide = sp.csr_array(
        (csr.data, csr.indices.astype(np.int64), csr.indptr.astype(np.int64)), shape=dense.shape
    )
    return {
        "csr": csr, "csc": sp.csc_array(dense), "coo": coo, "matrix": sp.csr_matrix(dense),
        "unsorted": unsorted, "explicit zeros": stored_zeros, "duplicates in coo": twice,
        "duplicates in csr": doubled, "int64 indices": wide, "lil": sp.lil_array(dense),
    }  # fmt: skip


@given(shapes, seeds)
@settings(max_examples=25)
def test_every_form_of_the_same_matrix_is_the_same_design(shape, seed):
    dense, target = random_rows(shape, seed)
    right = LatticeDesign.from_rows(dense, target)
    levels = np.random.default_rng(seed).integers(-LEVELS, LEVELS, shape[0]).astype(np.int16)
    for name, form in forms(dense).items():
        before = form.copy()
        design = SparseLatticeDesign.from_rows(form, target)
        assert design.sums(levels).tolist() == right.sums(levels).tolist(), name
        assert not (design.by_row.values == 0).any()
        for part in ("data", "indices", "indptr"):  # the user's matrix is left as it was
            assert np.array_equal(getattr(form, part, 0), getattr(before, part, 0)), name


def test_a_matrix_that_wrongly_says_it_has_no_duplicates():
    # Were it believed, a cell could count for more than 1, and a row for more than its clip.
    matrix = sp.csr_array((np.ones(4), np.array([1, 1, 0, 1]), np.array([0, 2, 4])), shape=(2, 2))
    matrix.has_sorted_indices = matrix.has_canonical_format = True
    design = SparseLatticeDesign.from_rows(matrix, np.zeros(2))
    assert design.dense_columns(np.arange(2)).T.tolist() == [[0, LEVELS], [LEVELS, LEVELS]]
    assert design.sums(np.full(2, LEVELS, dtype=np.int16)).tolist() == [LEVELS**2, 2 * LEVELS**2]
    assert matrix.nnz == 4


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array])
@pytest.mark.parametrize(
    ("indices", "starts"),
    [([0, 7], [0, 1, 2]), ([0, -1], [0, 1, 2]), ([0, 1], [0, 2, 1]), ([0, 1], [0, 1, 9])],
)
def test_indices_outside_the_shape_are_refused(kind, indices, starts):
    matrix = kind((2, 2))
    matrix.data = np.ones(2)
    matrix.indices, matrix.indptr = np.array(indices), np.array(starts)
    with pytest.raises(ValueError, match="malformed"):
        SparseLatticeDesign.from_rows(matrix, np.zeros(2))


@pytest.mark.parametrize("shape", [(1, 1), (5, 1), (1, 5), (4, 6)])
def test_a_matrix_of_nothing_but_zeros(shape):
    design = SparseLatticeDesign.from_rows(sp.csr_array(shape), np.ones(shape[0]), constant=True)
    point = design.start(1e-3)
    point.add(0, 5)
    index = point.signed_scores(1.0, np.arange(shape[1]))
    assert_counted(index, np.zeros(shape[1], dtype=np.int64), shift=5, depth=4)
    assert point.clipped_sums(1.0)[-1] == -shape[0] * LEVELS**2


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.int64, np.bool_])
def test_numbers_of_every_type_are_taken(dtype):
    dense = (np.random.default_rng(0).random((10, 12)) < 0.3).astype(dtype)
    design = SparseLatticeDesign.from_rows(sp.csr_array(dense), np.zeros(10))
    levels = np.ones(10, dtype=np.int16)
    assert design.sums(levels).tolist() == (LEVELS * dense.sum(axis=0, dtype=int)).tolist()


def test_cells_are_scaled_by_the_bound_of_their_column():
    dense = np.array([[5.0, -3.0, 0.0], [80.0, 1.0, -1e308]])
    bounds = np.array([10.0, 2.0, 1e-3])
    design = SparseLatticeDesign.from_rows(sp.csr_array(dense), np.zeros(2), bounds=bounds)
    right = np.trunc(np.clip(dense, -bounds, bounds) / bounds * LEVELS)
    assert design.dense_columns(np.arange(3)).T.tolist() == right.tolist()


@given(st.lists(st.integers(0, 2**62), min_size=1, max_size=50))
def test_a_sum_may_exceed_64_bits(values):
    assert whole_sum(np.array(values, dtype=np.int64)) == sum(values)


def test_sparse_rows_have_symmetric_bounds_that_are_public():
    rows = SparseRows(sp.csr_array((3, 2)), np.zeros(3))
    with pytest.raises(NotImplementedError, match="public bounds"):
        rows.feature_total(len)
    with pytest.raises(ValueError, match="must be symmetric"):
        rows.lattice(PublicUnits(np.array([[-1, 1], [0, 1]]), np.array([-1, 1]), constant=True))


def test_what_does_not_fit_is_refused(monkeypatch):
    matrix = sp.csr_array((3, 4))
    with pytest.raises(ValueError, match="one target"):
        SparseLatticeDesign.from_rows(matrix, np.zeros(2))
    with pytest.raises(ValueError, match="over all their features"):
        SparseLatticeDesign.from_rows(matrix, np.zeros(3)).shortened(2, 1.0)
    monkeypatch.setattr(sparse, "MOST_ROWS", 2)
    with pytest.raises(ValueError, match="at most 2 rows"):
        SparseLatticeDesign.from_rows(matrix, np.zeros(3))
    monkeypatch.setattr(sparse, "MOST_COLUMNS", 3)
    with pytest.raises(ValueError, match="at most 3 columns"):
        SparseLatticeDesign.from_rows(matrix, np.zeros(3))


def test_building_needs_little_more_than_the_result():
    rng = np.random.default_rng(0)
    n_rows, n_columns, per_row = 20_000, 50_000, 50
    indices = np.sort(rng.integers(0, n_columns, (n_rows, per_row)), axis=1).astype(np.int32)
    starts = np.arange(0, n_rows * per_row + 1, per_row, dtype=np.int32)
    matrix = sp.csr_array((rng.random(indices.size), indices.ravel(), starts), (n_rows, n_columns))
    matrix.sum_duplicates()
    size = matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes
    tracemalloc.start()
    design = SparseLatticeDesign.from_rows(matrix, np.zeros(n_rows))
    design.start(1.0).signed_scores(1.0, np.arange(n_columns))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert size + peak < 4 * size


def test_halves_have_every_row_once():
    """Each row knows its number, by its cell and by its target."""
    numbers = np.arange(1.0, 101.0)
    rows, coins = SparseRows(sp.csr_array(numbers[:, None]), numbers), numbers**2 % 7 < 3
    for side in (coins, ~coins):
        half = rows.where(side)
        assert half.n_rows == side.sum()
        np.testing.assert_array_equal(half.X.toarray()[:, 0], numbers[side])
        np.testing.assert_array_equal(half.y, numbers[side])
