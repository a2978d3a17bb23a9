"""Verdicts: what matches, what differs, and that nothing is hidden."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from printed_rows import row, rows_as_printed

from dpscreen.paper.agreement import (
    CHANCE,
    UNEXPLAINED,
    Estimate,
    RowIndex,
    check_cells,
    check_r2,
    is_counted,
    mean_of,
    summarise,
    tolerance,
)
from dpscreen.paper.published import known_inconsistencies, published_cells

samples = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30)


def cell(table, data, method, metric):
    return next(c for c in published_cells(table) if c.key[1:] == (data, method, metric))


@given(samples)
def test_mean_and_standard_error(values):
    found = mean_of(values)
    assert found.mean == pytest.approx(np.mean(values), abs=1e-6)
    expected = np.std(values, ddof=1) / math.sqrt(len(values))
    assert found.standard_error == pytest.approx(expected, abs=1e-6)
    assert found.trials == len(values)


def test_one_trial_has_no_standard_error_and_none_no_mean():
    assert mean_of([3.0]) == Estimate(3.0, 0.0, 1)
    assert mean_of([]) is None


def test_undefined_trials_are_left_out():
    rows = [
        row("real", "housing", "dp-fw", trial, metrics={"r2": value})
        for trial, value in enumerate((1.0, math.nan, 3.0))
    ]
    index = RowIndex(rows)
    assert index.estimate("real", "housing", "dp-fw", "r2") == Estimate(2.0, 1.0, 2)
    assert index.estimate("real", "housing", "dp-fw", "f1") is None


def test_printed_values_match_themselves():
    compared = check_cells(rows_as_printed())
    assert len(compared) == 184
    assert {comparison.verdict for comparison in compared} == {"matches"}
    whole, narrow = summarise(compared), summarise(compared, counted=True)
    assert (whole.run, whole.matching, whole.share) == (184, 184, 1.0)
    assert (narrow.run, narrow.matching, narrow.share) == (100, 100, 1.0)


def test_the_hundred_counted_cells():
    counted = Counter((c.table, c.method, c.metric) for c in published_cells() if is_counted(c))
    once = {
        (1, "rnm-screen", "f1"): 2,
        (1, "rnm-screen", "density"): 2,
        **{(t, "rnm-screen", m): 8 for t in (2, 4) for m in ("f1", "density", "r2")},
        **{(t, "oracle-k-fw", m): 8 for t in (3, 5) for m in ("f1", "mse")},
        **{(t, "rnm-screen", "mse"): 8 for t in (3, 5)},
    }
    assert counted == once
    assert sum(once.values()) == 100


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
    wanted = cell(*place)
    rows = rows_as_printed(change=lambda c, _: off if c.key[1:] == wanted.key[1:] else 0.0)
    (found,) = (c for c in check_cells(rows, wanted.table) if c.cell == wanted)
    assert found.verdict == verdict
    assert bool(found.reason) == bool(found.detail) == (verdict == "differs")
    assert not found.by_spread


@given(st.floats(0, 1), st.floats(0.001, 1))
def test_two_standard_errors_are_always_allowed(mean, error):
    wanted = cell(2, "housing", "rnm-screen", "f1")
    assert tolerance(wanted, Estimate(mean, error, 20)) == max(0.05, 2 * error)


def test_a_difference_is_explained_by_what_is_known_of_the_cell():
    rows = rows_as_printed(change=lambda c, t: 0.4 + 0.01 * t)
    for comparison in check_cells(rows):
        assert comparison.verdict == "differs"
        assert "Single trials here run from" in comparison.detail
        key = comparison.cell.key
        assert comparison.reason == known_inconsistencies().get(key, UNEXPLAINED)
    assert summarise(check_cells(rows)).share == 0


def test_a_method_without_noise_says_so():
    rows = rows_as_printed(trials=1, change=lambda c, t: 0.4)
    (found,) = (c for c in check_cells(rows, 3) if c.cell.key == (3, "housing", "np-fw", "mse"))
    assert found.detail == "No noise: 0.722 here, 0.322 printed."


def test_without_noise_the_ends_of_the_interval_of_the_radius_are_told():
    rows = rows_as_printed(trials=1, change=lambda c, t: 0.4)
    ends = [
        row("real", "housing", name, metrics={"mse": value})
        for name, value in (("np-fw-low", 0.3), ("np-fw-high", 0.35))
    ]
    place = (3, "housing", "np-fw", "mse")
    (found,) = (c for c in check_cells([*rows, *ends], 3) if c.cell.key == place)
    assert found.detail.endswith("λ that share K it is 0.300 and 0.350.")


@pytest.mark.parametrize(("mean", "reason"), [(0.54, CHANCE), (0.56, UNEXPLAINED)])
def test_more_trials_tell_what_is_chance(mean, reason):
    wanted = cell(2, "housing", "rnm-screen", "f1")  # .497
    rows = rows_as_printed(change=lambda c, t: 0.2 if c.key[1:] == wanted.key[1:] else 0.0)
    more = [
        row("real-long", "housing", "rnm-screen", trial, metrics={"f1": mean + trial % 2 / 100})
        for trial in range(100)
    ]
    (found,) = (c for c in check_cells([*rows, *more], 2) if c.cell == wanted)
    assert found.reason == reason
    assert f"100 further ones average {mean + 0.005:.3f} ± 0.001" in found.detail


def test_what_matches_only_by_its_spread_is_told_apart():
    wanted = cell(2, "housing", "rnm-screen", "f1")
    rows = rows_as_printed(change=lambda c, t: 0.6 * (t == 0) * (c.key[1:] == wanted.key[1:]))
    (found,) = (c for c in check_cells(rows, 2) if c.cell == wanted)
    assert (found.verdict, found.by_spread) == ("matches", True)
    assert summarise(check_cells(rows), counted=True).by_spread == 2  # in Tables 2 and 4
    assert summarise(check_cells(rows)).by_spread == 4  # and again in Tables 3 and 5


def test_without_rows_nothing_is_claimed():
    compared = check_cells([])
    assert {comparison.verdict for comparison in compared} == {"not run"}
    summary = summarise(compared)
    assert (summary.run, summary.not_run) == (0, 184)
    assert math.isnan(summary.share)


def test_proven_values_stand_beside_the_printed_ones():
    rows = [
        *rows_as_printed(),
        row("real", "housing", "proven-dp-fw", metrics={"f1": 0.9, "r2_unchosen": 0.3}),
    ]
    beside = {
        c.cell.metric: dict(c.proven) for c in check_cells(rows, 2) if c.cell.data == "housing"
    }
    assert beside["f1"] == {"proven-dp-fw": Estimate(0.9, 0.0, 1)}
    assert beside["r2"] == {"proven-dp-fw": Estimate(0.3, 0.0, 1)}
    assert beside["tpr"] == {}


# --- sign tests -------------------------------------------------------------------------------


def rival_rows(method, metric, values, suite="real"):
    return [
        row(suite, "housing", method, trial, metrics={metric: value})
        for trial, value in enumerate(values)
    ]


def significance(rows, table, method, metric):
    (found,) = (
        c.significance
        for c in check_cells(rows, table)
        if (c.cell.data, c.cell.method, c.cell.metric) == ("housing", method, metric)
    )
    return found


def test_bold_density_is_tested_against_dp_fw():
    rows = [
        *rival_rows("rnm-screen", "density", [0.3] * 8),
        *rival_rows("dp-fw", "density", [1.0] * 8),
    ]
    found = significance(rows, 2, "rnm-screen", "density")
    assert (found.against, found.test.losses, found.better) == ("dp-fw", 8, True)
    assert found.agrees_with_bold


def test_bold_in_table_3_is_tested_between_oracle_k_and_rnm_screen():
    rows = [
        *rival_rows("rnm-screen", "f1", [0.4] * 20),
        *rival_rows("oracle-k-fw", "f1", [0.5] * 15 + [0.3] * 5),
    ]
    oracle = significance(rows, 3, "oracle-k-fw", "f1")
    ours = significance(rows, 3, "rnm-screen", "f1")
    assert oracle.test.p_two_sided == pytest.approx(0.0414, abs=1e-4)
    assert (oracle.better, oracle.agrees_with_bold) == (True, True)
    assert (ours.better, ours.agrees_with_bold) == (False, True)


def test_what_is_not_significant_disagrees_with_bold_type():
    rows = [
        *rival_rows("rnm-screen", "f1", [0.4] * 20),
        *rival_rows("oracle-k-fw", "f1", [0.5] * 14 + [0.3] * 6),
    ]
    found = significance(rows, 3, "oracle-k-fw", "f1")
    assert (found.better, found.agrees_with_bold) == (False, False)


def test_no_rival_no_test():
    rows = rival_rows("rnm-screen", "tpr", [0.4] * 20)
    assert significance(rows, 2, "rnm-screen", "tpr") is None
    assert significance(rows, 2, "rnm-screen", "density") is None


# --- R² ---------------------------------------------------------------------------------------


def test_the_nearer_definition_of_r2_is_named():
    rows = [
        row("real", "housing", "rnm-screen", metrics={"r2_unchosen": 0.48, "r2_missed": 0.2}),
        row("ablation", "housing", "rnm-screen", metrics={"r2_unchosen": 0.48, "r2_missed": 0.0}),
    ]
    assert [(c.table, c.data, c.fits) for c in check_r2(rows)] == [
        (2, "housing", "unchosen"),
        (4, "housing", "missed"),
    ]
