"""Rows on disk: the same coefficients as in memory, and clear words when the rows go away."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpscreen import ADPScreen, DPFrankWolfe, PrivateLasso, PrivateOLS, RNMScreen
from dpscreen.models import intake
from dpscreen.rows import streamed
from dpscreen.rows.streamed import ChosenRows, MappedArrays, RowsChanged, StreamedRows

pytestmark = pytest.mark.filterwarnings("ignore::dpscreen.SeededNoiseWarning")

BOUNDS = {"feature_bounds": (-8.0, 12.0), "target_bounds": (-30.0, 20.0)}
WALK = {**BOUNDS, "epsilon": 2.0, "delta": 1e-4, "radius": 5.0, "n_iter": 12, "random_state": 5}
LASSO = {**BOUNDS, "epsilon": 2.0, "delta": 1e-4, "random_state": 5}
ESTIMATORS = [
    PrivateLasso(**LASSO),
    PrivateLasso(**LASSO, standardize=True, fit_intercept=False),
    PrivateLasso(**LASSO, solver="frank-wolfe", max_features=2),
    PrivateLasso(**LASSO, solver="noisy-gradient"),
    PrivateLasso(**LASSO, inference="split"),
    PrivateOLS(**LASSO),
    DPFrankWolfe(**WALK),
    RNMScreen(**WALK),
    ADPScreen(**WALK, screen_at=4),
]


def some_rows(n_rows, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(1.0, 2.0, size=(n_rows, d))
    return X, X[:, 0] - 2 * X[:, -1] + rng.normal(size=n_rows)


def released(model):
    return np.append(model.coef_, model.intercept_)


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


@settings(max_examples=25)
@given(
    n_rows=st.integers(2, 300), d=st.integers(1, 8), size=st.integers(1, 301), seed=st.integers()
)
def test_any_shape_and_any_chunks_give_the_same_model(n_rows, d, size, seed):
    X, y = some_rows(n_rows, d, abs(seed))
    model = PrivateLasso(**{**LASSO, "delta": 1e-6, "random_state": abs(seed)})
    expected = released(model.fit(X, y))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streamed, "ROWS_PER_CHUNK", size)
        np.testing.assert_array_equal(
            released(model.fit(StreamedRows(MappedArrays(X, y)))), expected
        )


def test_progress_is_told_pass_by_pass():
    X, y = some_rows(2000, 5)
    told: list[tuple[int, int]] = []
    rows = StreamedRows(MappedArrays(X, y), watch=lambda *step: told.append(step))
    PrivateLasso(**LASSO, n_iter=9).fit(rows)
    passes = [done for done, _ in told]
    assert passes == list(range(1, len(told) + 1))
    assert told[-1][0] == told[-1][1]
    assert len(told) <= 9 + 8


def test_bad_numbers_on_disk_are_refused_without_being_quoted():
    X, y = some_rows(50, 3)
    X[17, 1] = np.nan
    with pytest.raises(ValueError, match="contains NaN or infinity"):
        PrivateLasso(**LASSO).fit(StreamedRows(MappedArrays(X, y)))
    X, y = some_rows(50, 3)
    y[3] = np.inf
    with pytest.raises(ValueError, match="contains NaN or infinity"):
        PrivateLasso(**LASSO).fit(StreamedRows(MappedArrays(X, y)))


def test_a_choice_of_rows_keeps_their_names_and_notices_new_ones():
    X, y = some_rows(50, 2)
    chosen = np.arange(40) % 2 == 0
    there = ChosenRows(MappedArrays(X[:40], y[:40], ("a", "b")), chosen)
    assert (there.n_features, there.feature_names) == (2, ("a", "b"))
    np.testing.assert_array_equal(np.concatenate(list(there.chunks(None))), X[:40:2])
    with pytest.raises(RowsChanged):
        list(ChosenRows(MappedArrays(X, y), chosen).chunks(None))


def test_halves_of_rows_in_chunks_have_every_row_once(monkeypatch):
    """Each row knows its number, by its cell and by its target."""
    monkeypatch.setattr(streamed, "ROWS_PER_CHUNK", 16)
    numbers = np.arange(100.0)
    rows, coins = StreamedRows(MappedArrays(numbers[:, None], numbers)), numbers**2 % 7 < 3

    def seen(part):
        return np.bincount(part.ravel().astype(int), minlength=100)

    for side in (coins, ~coins):
        half = rows.where(side)
        assert half.n_rows == side.sum()
        np.testing.assert_array_equal(half.feature_total(seen), side)
        np.testing.assert_array_equal(half.target_total(seen), side)


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
