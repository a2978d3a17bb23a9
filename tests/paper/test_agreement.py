"""Verdicts: what matches, what differs, and that nothing is hidden."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from study_rows import row, rows_as_printed

from dpscreen.paper import agreement
from dpscreen.paper.agreement import (
    CHANCE,
    UNEXPLAINED,
    RowIndex,
    check_r2,
    mean_of,
    summarise,
)
from dpscreen.paper.published import known_inconsistencies

HOUSING_F1 = (2, "housing", "rnm-screen", "f1")
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


def test_a_difference_is_explained_by_what_is_known_of_the_cell():
    rows = rows_as_printed(change=lambda c, t: 0.4 + 0.01 * t)
    for comparison in check_cells(rows):
        assert comparison.verdict == "differs"
        assert "Single trials here run from" in comparison.detail
        key = comparison.cell.key
        assert comparison.reason == known_inconsistencies().get(key, UNEXPLAINED)
    assert summarise(check_cells(rows)).share == 0


def test_without_noise_the_ends_of_the_interval_of_the_radius_are_reported():
    rows, place = rows_as_printed(trials=1, change=lambda c, t: 0.4), (3, "housing", "np-fw", "mse")
    plain = "No noise: 0.722 here, 0.322 printed."
    assert check_cell(rows, place).detail == plain
    ends = [
        row("real", "housing", name, metrics={"mse": value})
        for name, value in (("np-fw-low", 0.3), ("np-fw-high", 0.35))
    ]
    detail = check_cell([*rows, *ends], place).detail
    assert detail.startswith(plain)
    assert detail.endswith("λ that share K it is 0.300 and 0.350.")


@pytest.mark.parametrize(("mean", "reason"), [(0.54, CHANCE), (0.56, UNEXPLAINED)])
def test_more_trials_tell_what_is_chance(mean, reason):
    rows = moved(HOUSING_F1, lambda _: 0.2)  # 0.497 is printed
    more = [
        row("real-long", "housing", "rnm-screen", trial, metrics={"f1": mean + trial % 2 / 100})
        for trial in range(100)
    ]
    found = check_cell([*rows, *more], HOUSING_F1)
    assert found.reason == reason
    assert f"100 further ones average {mean + 0.005:.3f} ± 0.001" in found.detail


def test_what_matches_only_by_its_standard_error_is_counted():
    rows = moved(HOUSING_F1, lambda t: 0.6 * (t == 0))
    found = check_cell(rows, HOUSING_F1)
    assert (found.verdict, found.by_spread) == ("matches", True)
    assert summarise(check_cells(rows), counted=True).by_spread == 2  # in Tables 2 and 4
    assert summarise(check_cells(rows)).by_spread == 4  # and again in Tables 3 and 5


def test_without_rows_nothing_is_claimed():
    compared = check_cells([])
    assert {comparison.verdict for comparison in compared} == {"not run"}
    summary = summarise(compared)
    assert (summary.run, summary.not_run) == (0, 184)
    assert math.isnan(summary.share)


# --- sign tests -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "method", "rival", "metric", "won", "p", "better"),
    [
        (2, "rnm-screen", "dp-fw", "density", 20, 1.9e-6, True),
        (3, "oracle-k-fw", "rnm-screen", "f1", 15, 0.0414, True),
        (3, "oracle-k-fw", "rnm-screen", "f1", 14, 0.1153, False),
        (3, "rnm-screen", "oracle-k-fw", "f1", 5, 0.0414, False),
    ],
)
def test_bold_is_tested_against_the_rival(table, method, rival, metric, won, p, better):
    """More F1 is better, and less density."""
    good, bad = (1.0, 0.0) if metric == "f1" else (0.0, 1.0)
    rows = [
        row("real", "housing", name, trial, metrics={metric: value})
        for trial in range(20)
        for name, value in ((method, good if trial < won else bad), (rival, 0.5))
    ]
    sign = check_cell(rows, (table, "housing", method, metric)).sign
    assert (sign.wins, sign.better) == (won, better)
    assert sign.p_two_sided == pytest.approx(p, rel=0.01)


# --- R² ---------------------------------------------------------------------------------------


def test_the_nearer_definition_of_r2_is_named():
    rows = [
        row("real", "housing", "rnm-screen", metrics={"r2_unchosen": 0.48, "r2_missed": 0.2}),
        row("ablation", "housing", "rnm-screen", metrics={"r2_unchosen": 0.48, "r2_missed": 0.0}),
    ]
    assert [(c.table, c.data, c.fits) for c in check_r2(RowIndex(rows))] == [
        (2, "housing", "unchosen"),
        (4, "housing", "missed"),
    ]
