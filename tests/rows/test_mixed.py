"""Combinations of columns: functions of their row alone, and no row counts beyond its cap."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpscreen.rows.kernels import squared_lengths
from dpscreen.rows.mixed import (
    MixedRows,
    capped_middle,
    capped_products,
    clipped_directions,
    long_count,
    size_counts,
)
from dpscreen.rows.sums import LEVELS

some = settings(max_examples=40, deadline=None)
seeds = st.integers(0, 2**32 - 1)


def drawn(seed, n=9, k=3):
    """Return columns with extreme cells among them, residuals, and a mixing that stretches."""
    rng = np.random.default_rng(seed)
    columns = rng.integers(-LEVELS, LEVELS, size=(k, n), endpoint=True)
    columns[:, rng.random(n) < 0.3] = LEVELS
    residuals = rng.integers(-LEVELS, LEVELS, size=n, endpoint=True).astype(np.int16)
    residuals[rng.random(n) < 0.3] = -LEVELS
    mixing = rng.normal(size=(k, k)) * 10.0 ** rng.integers(-3, 3)
    return columns.astype(np.int16), residuals, MixedRows.near(np.arange(k), mixing)


@given(seeds)
@some
def test_a_row_is_made_of_itself_alone_and_is_short(seed):
    columns, _, mixed = drawn(seed)
    rows, factors = mixed.of(columns)
    assert squared_lengths(rows).max() <= LEVELS**2
    order = np.random.default_rng(seed).permutation(columns.shape[1])
    again, same = mixed.of(np.ascontiguousarray(columns[:, order]))
    np.testing.assert_array_equal(again, rows[:, order])
    np.testing.assert_array_equal(same, factors[order])
    alone = np.hstack([mixed.of(columns[:, [i]])[0] for i in range(columns.shape[1])])
    np.testing.assert_array_equal(alone, rows)


def test_many_rows_in_threads_are_the_same_as_few(monkeypatch):
    columns, _, mixed = drawn(3, n=40_000)
    whole = mixed.of(columns)
    monkeypatch.setattr("dpscreen.rows.sums._PARALLEL_CELLS", 1)
    for one, other in zip(whole, mixed.of(columns), strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_mixing_is_what_was_asked_for():
    columns, _, mixed = drawn(5)
    wanted = mixed.matrix @ columns.astype(np.float64)
    rows, factors = mixed.of(columns)
    np.testing.assert_allclose(rows, wanted * factors, atol=1)


def test_rows_up_to_the_reach_count_whole_and_longer_ones_as_if_they_were_that_long():
    """Rows of length 0.5 to 40: weights are 1 up to the reach, then fall by a square."""
    lengths = np.array([0.5, 1.0, 2.0, 3.0, 6.0, 40.0])
    factors, levels = 1 / np.maximum(lengths, 1.0), np.full(6, 400, dtype=np.int16)
    short = MixedRows.near(np.arange(2), np.eye(2))
    for mixed, reach in ((short, 1.0), (replace(short, reach=3.0), 3.0)):
        weights = mixed.residuals(levels, factors) / 400 * factors
        np.testing.assert_allclose(weights, np.minimum(1, (reach / lengths) ** 2), atol=0.003)
    far = replace(short, reach=3.0).residuals(np.array([LEVELS, -LEVELS], np.int16), factors[1:3])
    np.testing.assert_array_equal(far, [LEVELS, -LEVELS])


@given(seeds, st.floats(0.01, 1.0), st.sampled_from([1.0, 3.0]))
@some
def test_lemma_25_one_row_moves_sums_by_no_more_than_the_cap(seed, cap, reach):
    columns, residuals, mixed = drawn(seed)
    rows, factors = mixed.of(columns)
    residuals = replace(mixed, reach=reach).residuals(residuals, factors)
    given_rows = rows, squared_lengths(rows), residuals
    whole = capped_products(*given_rows, cap), capped_middle(*given_rows, cap)
    for gone in range(rows.shape[1]):
        left = tuple(np.delete(one, gone, axis=-1) for one in given_rows)
        moved = whole[0] - capped_products(*left, cap)
        assert np.linalg.norm(moved.astype(float)) <= cap * LEVELS**2
        middle = (whole[1] - capped_middle(*left, cap)).astype(float)
        assert np.sqrt(np.trace(middle @ middle)) <= LEVELS**2  # of rank one: its own trace


@given(seeds, st.floats(0.01, 1.0), st.sampled_from([1.0, 3.0]))
@some
def test_lemma_69_one_row_moves_directions_by_one_and_only_if_it_is_clipped(seed, cap, reach):
    columns, residuals, mixed = drawn(seed)
    rows, factors = mixed.of(columns)
    residuals = replace(mixed, reach=reach).residuals(residuals, factors)
    whole = clipped_directions(rows, squared_lengths(rows), residuals, cap)
    for gone in range(rows.shape[1]):
        left = np.delete(rows, gone, axis=1), np.delete(residuals, gone)
        moved = whole - clipped_directions(left[0], squared_lengths(left[0]), left[1], cap)
        x, r = rows[:, gone].astype(float), float(residuals[gone])
        size = np.linalg.norm(x)
        assert np.linalg.norm(moved.astype(float)) <= LEVELS
        if abs(r) * size < 0.99 * cap * LEVELS**2 and abs(r) < LEVELS:
            assert not moved.any()
        elif abs(r) * size > 1.01 * cap * LEVELS**2 and size > 1:
            np.testing.assert_allclose(moved, np.sign(r) * x / size * LEVELS, atol=1)


def test_lemma_25_the_cap_is_reached():
    rows = np.array([[LEVELS], [0]], dtype=np.int16)
    given_rows = rows, squared_lengths(rows), np.array([LEVELS], dtype=np.int16)
    assert capped_products(*given_rows, 0.25)[0] > 0.249 * LEVELS**2
    assert capped_middle(*given_rows, 0.25)[0, 0] > 0.99 * LEVELS**2


@given(seeds)
@some
def test_influences_are_counted_once_where_they_lie(seed):
    columns, residuals, mixed = drawn(seed, n=200)
    rows, _ = mixed.of(columns)
    residuals[:5] = 0
    top, n_cells = 0.5, 10
    sizes = np.abs(residuals.astype(float)) * np.sqrt(squared_lengths(rows)) / LEVELS**2
    edges = top * 2.0 ** (np.arange(-n_cells, 1) / 2)
    wanted = np.bincount(np.searchsorted(edges, sizes, side="right"), minlength=n_cells + 2)
    found = size_counts(rows, squared_lengths(rows), residuals, top, n_cells)
    assert found.sum() == 200
    assert np.abs(found - wanted).sum() <= 2  # a size on an edge may be rounded across it


@pytest.mark.parametrize("length", [0.5, 2.0])
def test_rows_that_were_shrunk_are_counted(length):
    columns = np.full((3, 4), int(LEVELS * length / 2), dtype=np.int16)
    rows, factors = MixedRows.near(np.arange(3), np.eye(3)).of(columns)
    assert long_count(rows, squared_lengths(rows), factors) == (4 if length > 1 else 0)
