"""Estimators take sparse rows, never make them dense, and release what dense rows would.

With symmetric bounds that are not tightened, the same words give the same coefficients, bit for
bit, whatever the form of the rows.
"""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from dpscreen import DPFrankWolfe, PrivacyLedger, PrivateLasso

BUDGET = {"epsilon": 2.0, "delta": 1e-6, "random_state": 5}
BOUNDS = {"feature_bounds": (-1, 1), "target_bounds": (-3, 3)}
FORMS = {
    "csr": sp.csr_array,
    "csc": sp.csc_matrix,
    "coo": sp.coo_array,
    "lil": sp.lil_matrix,
    "frame": lambda X: pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(X)).rename(columns=str),
}


def sparse_data(n_rows, n_features, seed, *, density=0.1):
    rng = np.random.default_rng(seed)
    X = np.where(
        rng.random((n_rows, n_features)) < density, rng.uniform(-1.1, 1.1, (n_rows, n_features)), 0
    )
    return X, 2 * X[:, 0] - X[:, -1] + rng.normal(0, 0.2, n_rows)


def lasso(**more):
    return PrivateLasso(**BUDGET, **{**BOUNDS, "standardize": False, **more})


# --- one answer ------------------------------------------------------------------------------


@given(
    st.integers(1, 60),
    st.integers(1, 40),
    st.integers(0, 2**32),
    st.sampled_from(
        [
            {},
            {"fit_intercept": False},
            {"max_features": 2},
            {"clip": 0.4},
            {"n_iter": 3, "radius": 2.0},
            {"solver": "frank-wolfe", "max_features": 3},
            {"solver": "frank-wolfe", "fit_intercept": False},
        ]
    ),
)
@settings(max_examples=40)
def test_shapes_and_settings_release_the_same(n_rows, n_features, seed, more):
    X, y = sparse_data(n_rows, n_features, seed, density=0.3)
    dense, other = lasso(**more).fit(X, y), lasso(**more).fit(sp.csr_array(X), y)
    assert dense.coef_.tolist() == other.coef_.tolist()
    assert dense.intercept_ == other.intercept_


# --- bounds ----------------------------------------------------------------------------------


def test_bounds_are_made_symmetric_and_zero_stays_zero():
    X, y = sparse_data(500, 4, 6)
    X = np.abs(X)
    bounds = np.array([[0, 1], [-3, 1], [0.5, 2], [-1, 1]])
    symmetric = np.array([[-1, 1], [-3, 3], [-2, 2], [-1, 1]])
    model = lasso(feature_bounds=bounds).fit(sp.csr_array(X), y)
    right = lasso(feature_bounds=symmetric).fit(X, y)
    assert model.coef_.tolist() == right.coef_.tolist()
    assert model.feature_bounds_.tolist() == symmetric.tolist()
    assert "sparse" in str(model.privacy_)
    assert "sparse" not in str(right.privacy_)


def test_bounds_are_not_tightened_and_a_refusal_comes_before_the_ledger_is_charged(tmp_path):
    X, y = sparse_data(3000, 10, 7)
    wide = {"feature_bounds": (-100, 100), "standardize": "auto"}
    model = lasso(**wide).fit(sp.csr_array(X), y)
    assert model.feature_bounds_.tolist() == [[-100, 100]] * 10
    with pytest.raises(ValueError, match="standardize=True would centre"):
        lasso(standardize=True).fit(sp.csr_array(X), y, ledger=tmp_path / "ledger.json")
    assert not (tmp_path / "ledger.json").exists()


# --- predictions -----------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_predictions_are_those_for_dense_rows(form):
    X, y = sparse_data(500, 12, 9)
    # Bounds that leave out zero: what is not stored is clipped too.
    for bounds in ((-1, 1), (0.2, 0.8), (-0.8, -0.1)):
        model = lasso(feature_bounds=bounds)
        model.fit(pd.DataFrame(X).rename(columns=str) if form == "frame" else X, y)
        dense = pd.DataFrame(2 * X).rename(columns=str) if form == "frame" else 2 * X
        sparse = FORMS[form](2 * X)
        np.testing.assert_allclose(model.predict(sparse), model.predict(dense), rtol=1e-12)


def test_predictions_count_duplicates_once():
    X, y = sparse_data(300, 5, 10)
    model = lasso().fit(X, y)
    twice = sp.coo_array(X)
    twice = sp.coo_array(
        (np.tile(twice.data / 2, 2), (np.tile(twice.row, 2), np.tile(twice.col, 2))), X.shape
    )
    np.testing.assert_allclose(model.predict(twice), model.predict(X), rtol=1e-12)


# --- what is refused -------------------------------------------------------------------------


def test_a_frame_that_leaves_out_something_else_is_refused():
    frame = pd.DataFrame({"a": pd.arrays.SparseArray([1.0, np.nan, 2.0])})
    with pytest.raises(ValueError, match="fill_value must be 0"):
        lasso().fit(frame, [1.0, 2.0, 3.0])


def test_the_published_calibration_needs_dense_rows():
    X, y = sparse_data(100, 5, 12)
    model = DPFrankWolfe(**BUDGET, **BOUNDS, radius=1.0, n_iter=3, calibration="published")
    with pytest.raises(TypeError, match="Sparse data was passed"):
        model.fit(sp.csr_array(X), y)


def test_nothing_is_ever_dense():
    # 300 × 200 000 cells would be 480 megabytes as floats and 120 as 16-bit whole numbers.
    rng = np.random.default_rng(0)
    X = sp.random(300, 200_000, density=2e-4, random_state=rng, format="csr")
    y = rng.normal(size=300)
    for model in (lasso(n_iter=6), DPFrankWolfe(**BUDGET, **BOUNDS, radius=1.0, n_iter=4)):
        model.fit(X[:5], y[:5])  # what is compiled and loaded once does not count
        tracemalloc.start()
        model.fit(X, y).predict(X)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 40e6


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_indices_outside_the_matrix_are_refused_before_anything_is_booked(form, tmp_path):
    X, y = sparse_data(50, 6, 3)
    bad = FORMS[form](X)
    (bad.coords[0] if form == "coo" else bad.indices)[3] = 2**30
    ledger = tmp_path / "budget.db"
    PrivacyLedger.create(ledger, dataset="d", epsilon=5, delta=1e-3)
    with pytest.raises(ValueError, match="malformed"):
        lasso().fit(bad, y, ledger=ledger)
    assert PrivacyLedger(ledger).spent.rho == 0
