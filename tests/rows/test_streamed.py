"""Rows on disk: the same coefficients as in memory, and clear words when the rows go away."""

from __future__ import annotations

import numpy as np
import pytest
from fitted_rows import (
    LASSO,
    assert_halves_have_every_row_once,
    numbered_rows,
    released,
    some_rows,
)

from dpscreen import ADPScreen, DPFrankWolfe, PrivateLasso, PrivateOLS, RNMScreen
from dpscreen.models import intake
from dpscreen.rows import streamed
from dpscreen.rows.streamed import ChosenRows, MappedArrays, RowsChanged, StreamedRows

pytestmark = pytest.mark.filterwarnings("ignore::dpscreen.SeededNoiseWarning")

WALK = {**LASSO, "radius": 5.0, "n_iter": 12}
ESTIMATORS = [
    PrivateLasso(**LASSO),
    PrivateLasso(**LASSO, standardize=True, fit_intercept=False),
    PrivateLasso(**LASSO, solver="frank-wolfe", max_features=2),
    PrivateLasso(**LASSO, inference="split"),
    PrivateOLS(**LASSO),
    DPFrankWolfe(**WALK),
    RNMScreen(**WALK),
    ADPScreen(**WALK, screen_at=4),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: str(one)[:60])
def test_a_mapped_array_gives_the_same_model_to_the_last_bit(estimator, tmp_path, monkeypatch):
    X, y = some_rows(3000, 7)
    here = estimator.fit(X, y)
    expected, statement = released(here), str(here.privacy_)
    np.save(tmp_path / "X.npy", X)
    monkeypatch.setattr(intake, "STREAMED_BYTES", 0)
    monkeypatch.setattr(streamed, "ROWS_PER_CHUNK", 700)
    there = estimator.fit(np.load(tmp_path / "X.npy", mmap_mode="r"), y)
    np.testing.assert_array_equal(released(there), expected)
    assert str(there.privacy_) == statement
    assert there.n_features_in_ == 7


def test_a_choice_of_rows_keeps_their_names_and_notices_new_ones():
    X, y = some_rows(50, 2)
    chosen = np.arange(40) % 2 == 0
    there = ChosenRows(MappedArrays(X[:40], y[:40], ("a", "b")), chosen)
    assert (there.n_features, there.feature_names) == (2, ("a", "b"))
    np.testing.assert_array_equal(np.concatenate(list(there.chunks(None))), X[:40:2])
    with pytest.raises(RowsChanged):
        list(ChosenRows(MappedArrays(X, y), chosen).chunks(None))


def test_halves_of_rows_in_chunks_have_every_row_once(monkeypatch):
    monkeypatch.setattr(streamed, "ROWS_PER_CHUNK", 16)
    rows, coins = numbered_rows(lambda X, y: StreamedRows(MappedArrays(X, y)))
    assert_halves_have_every_row_once(rows, coins)


def test_rows_from_a_file_take_no_second_target_and_no_published_calibration():
    X, y = some_rows(50, 3)
    rows = StreamedRows(MappedArrays(X, y))
    with pytest.raises(ValueError, match="y must be None"):
        PrivateLasso(**LASSO).fit(rows, y)
    with (
        pytest.warns(UserWarning, match="published"),
        pytest.raises(ValueError, match="needs all rows in memory"),
    ):
        DPFrankWolfe(**WALK, calibration="published").fit(rows)


def test_more_rows_than_exact_sums_hold_are_refused_wherever_they_are(monkeypatch):
    monkeypatch.setattr(intake, "MOST_ROWS", 40)
    X, y = some_rows(41, 3)
    for rows in ((X, y), (StreamedRows(MappedArrays(X, y)), None)):
        with pytest.raises(ValueError, match="at most 40 rows"):
            PrivateLasso(**LASSO).fit(*rows)


def test_a_map_that_changes_below_is_noticed_in_the_pass_that_reads_it():
    X, y = some_rows(2000, 3)
    told = []

    def spoil(done, _expected):
        told.append(done)
        X[1500, 1] = np.nan

    with pytest.raises(RowsChanged):
        PrivateLasso(**LASSO).fit(StreamedRows(MappedArrays(X, y), watch=spoil))
    assert told == [1]
