"""Verdicts: what matches, what differs, and that nothing is hidden."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from study_rows import rows_as_printed

from dpscreen.paper import agreement
from dpscreen.paper.agreement import (
    RowIndex,
    mean_of,
    summarise,
)

samples = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30)


def check_cells(rows, table=None):
    return agreement.check_cells(RowIndex(rows), table)


def check_cell(rows, place):
    (found,) = (c for c in check_cells(rows, place[0]) if c.cell.key == place)
    return found


def moved(place, off):
    """Rows as printed, but for one cell and its like in other tables."""
    return rows_as_printed(change=lambda c, t: off(t) if c.key[1:] == place[1:] else 0.0)


@given(samples)
def test_mean_and_standard_error(values):
    found = mean_of(values)
    assert found.mean == pytest.approx(np.mean(values), abs=1e-6)
    expected = np.std(values, ddof=1) / math.sqrt(len(values))
    assert found.standard_error == pytest.approx(expected, abs=1e-6)
    assert found.trials == len(values)


def test_printed_values_match_themselves():
    compared = check_cells(rows_as_printed())
    assert len(compared) == 184
    assert {comparison.verdict for comparison in compared} == {"matches"}
    whole, narrow = summarise(compared), summarise(compared, counted=True)
    assert (whole.run, whole.matching, whole.share) == (184, 184, 1.0)
    assert (narrow.run, narrow.matching, narrow.share) == (100, 100, 1.0)


@pytest.mark.parametrize(
    ("place", "off", "verdict"),
    [
        ((2, "housing", "rnm-screen", "f1"), 0.05, "matches"),
        ((2, "housing", "rnm-screen", "f1"), -0.051, "differs"),
        ((3, "housing", "oracle-k-fw", "mse"), 0.05, "matches"),
        ((5, "housing", "oracle-k-fw", "mse"), 0.005, "matches"),
        ((5, "housing", "oracle-k-fw", "mse"), 0.006, "differs"),
        ((5, "housing", "oracle-k-fw", "f1"), 0.05, "matches"),
    ],
)
def test_without_spread_the_fixed_tolerance_decides(place, off, verdict):
    found = check_cell(moved(place, lambda _: off), place)
    assert found.verdict == verdict
    assert bool(found.reason) == bool(found.detail) == (verdict == "differs")
    assert not found.by_spread


def test_without_rows_nothing_is_claimed():
    compared = check_cells([])
    assert {comparison.verdict for comparison in compared} == {"not run"}
    summary = summarise(compared)
    assert (summary.run, summary.not_run) == (0, 184)
    assert math.isnan(summary.share)
