"""Histograms, counts by octaves and moments of columns are what numpy counts, of any rows."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from dpscreen.rows import streamed
from dpscreen.rows.source import ArrayRows, as_column
from dpscreen.rows.streamed import MappedArrays, StreamedRows
from dpscreen.rows.sums import LEVELS, ColumnMap, level_moments
from dpscreen.solvers.marginals import CELLS, EXPONENTS, OCTAVES, Columns, centred_moments

MIDDLE = len(OCTAVES)


def in_half_widths(X, bounds):
    return (np.clip(X, *bounds.T) - bounds.mean(axis=1)) / np.ptp(bounds, axis=1) * 2


def dask_rows(X, y):
    cluster = pytest.importorskip("dpscreen.rows.cluster")
    da = pytest.importorskip("dask.array")
    chunks = da.from_array(X, chunks=(100_001, 3)), da.from_array(y, chunks=100_001)
    return cluster.cluster_rows(*chunks)[0]


SOURCES = {
    "dense": ArrayRows,
    "streamed": lambda X, y: StreamedRows(MappedArrays(X, y)),
    "dask": dask_rows,
}


@pytest.mark.parametrize("source", SOURCES)
def test_statistics_are_what_numpy_counts(source, monkeypatch):
    """300 000 rows, enough for several threads, and the target as a column."""
    monkeypatch.setattr(streamed, "ROWS_PER_CHUNK", 4097)
    X = np.random.default_rng(1).normal(size=(300_000, 3))
    X[:50] = (0.0, 1e9, 0.5)
    bounds = np.array([[-4.0, 4.0], [-2.0, 6.0], [0.0, 1.0]])
    u, rows = in_half_widths(X, bounds), SOURCES[source](X, X[:, 1].copy())
    middles, halves = np.array([-0.25, 0.0, 0.5]), np.array([0.75, 0.375, 1.5])
    columns = Columns(rows.feature_total, bounds, np.arange(3))
    alone = Columns(partial(rows.target_total, as_column), bounds[1:2], np.arange(1))
    found, near = columns.histograms(middles, halves), columns.by_octave(middles)
    for j in range(3):
        edges = middles[j] + halves[j] * np.linspace(-1, 1, CELLS + 1)
        edges[[0, -1]] = -np.inf, np.inf
        np.testing.assert_array_equal(found[j], np.histogram(u[:, j], edges)[0])
        off = u[:, j] - middles[j]
        away = np.clip(np.frexp(off)[1] - EXPONENTS[0], 0, MIDDLE) * (off != 0)
        cells = MIDDLE + np.where(off < 0, -away, away)
        np.testing.assert_array_equal(near[j], np.bincount(cells, minlength=2 * MIDDLE + 1))
    np.testing.assert_array_equal(alone.histograms(middles[1:2], halves[1:2])[0], found[1])
    np.testing.assert_array_equal(alone.by_octave(middles[1:2])[0], near[1])
    levels = np.trunc(u * LEVELS).astype(np.int64)
    sums = levels.sum(axis=0), (levels**2 // LEVELS).sum(axis=0)
    np.testing.assert_array_equal(level_moments(X, ColumnMap.of_bounds(bounds)), sums)
    weights = np.array([2, 1, 2])
    expected = np.concatenate((weights * sums[0], weights * (sums[1] - LEVELS // 2 * len(X))))
    found, _ = centred_moments(rows, bounds, np.arange(3), weights)
    np.testing.assert_array_equal(found, expected)
    rows.close()
