"""Bad input: an error that names the parameter, repeats no data value and leaves nothing fitted."""

from __future__ import annotations

import traceback
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from estimator_settings import PUBLIC
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from dpscreen import (
    ADPScreen,
    DPFrankWolfe,
    PrivateLasso,
    PrivateLogit,
    PrivateOLS,
    RNMScreen,
    WeakDeltaWarning,
)

BAD_PARAMETERS = [
    ("radius", 0), ("radius", -1.0), ("radius", np.nan), ("radius", np.inf),
    ("radius", "3"), ("radius", True),
    ("n_iter", 0), ("n_iter", 2.5), ("n_iter", True), ("n_iter", "5"),
    ("n_iter", 10**12),
    ("epsilon", None), ("epsilon", 0.0), ("epsilon", -1), ("epsilon", np.inf), ("epsilon", np.nan),
    ("delta", None), ("delta", 0), ("delta", 1), ("delta", 1.5), ("delta", -1e-9),
    ("delta", np.nan),
    ("feature_bounds", None), ("feature_bounds", (1, 1)), ("feature_bounds", (1, -1)),
    ("feature_bounds", (0, np.inf)), ("feature_bounds", (0, np.nan)), ("feature_bounds", "ab"),
    ("feature_bounds", [(0, 1)] * 5), ("feature_bounds", (0, 1, 2)), ("feature_bounds", 3),
    ("feature_bounds", (0.0, 5e-324)),
    ("target_bounds", None), ("target_bounds", (2, 2)), ("target_bounds", (3, 2)),
    ("target_bounds", (0, np.inf)), ("target_bounds", [(0, 1)] * 6), ("target_bounds", "xy"),
    ("fit_intercept", "yes"), ("fit_intercept", 1),
    ("rows_per_unit", 0), ("rows_per_unit", -1), ("rows_per_unit", 2**21),
    ("rows_per_unit", 1.5), ("rows_per_unit", True), ("rows_per_unit", "two"),
    ("calibration", "exact"), ("calibration", None),
    ("start", "ones"), ("start", 0),
    ("random_state", -1), ("random_state", 1.5), ("random_state", True),
]  # fmt: skip


SHARED = [
    ("epsilon", -1), ("delta", 1.5), ("n_rows", 0), ("quality", "yes"), ("feature_bounds", None),
    ("target_bounds", (1, 0)), ("rows_per_unit", 2**21), ("rows_per_unit", True),
]  # fmt: skip
OF_ONE = [
    (DPFrankWolfe, "clip", 0), (DPFrankWolfe, "clip", -np.inf),
    (RNMScreen, "screening_share", 0), (RNMScreen, "screening_share", 1),
    (RNMScreen, "screening_delta_share", 1.0),
    (ADPScreen, "screen_at", "first"), (ADPScreen, "screen_at", 6),
    (ADPScreen, "screen_at", [1, 9]), (ADPScreen, "screen_at", []),
    (ADPScreen, "screen_at", [0]), (ADPScreen, "screen_at", 1.5),
    (PrivateLasso, "radius", 0), (PrivateLasso, "n_iter", 0), (PrivateLasso, "clip", np.nan),
    (PrivateLasso, "clip", np.inf),
    (PrivateLasso, "row_norm", -2), (PrivateLasso, "max_features", 0),
    (PrivateLasso, "standardize", "yes"), (PrivateLasso, "solver", "lars"),
    (PrivateLasso, "inference", "bootstrap"),
    (PrivateOLS, "rows_per_unit", 2), (PrivateOLS, "interest", 3), (PrivateOLS, "required", [3]),
    *((kind, *one) for kind in (PrivateLasso, PrivateOLS) for one in SHARED),
    *((kind, *one) for kind in (DPFrankWolfe, RNMScreen, ADPScreen) for one in BAD_PARAMETERS),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "name", "value"), OF_ONE)
def test_a_bad_parameter_is_named_before_anything_is_spent(rows, kind, name, value, tmp_path):
    known = kind().get_params()
    model = kind(**{key: one for key, one in PUBLIC.items() if key in known} | {name: value})
    with pytest.raises((ValueError, TypeError), match=name):
        model.fit(*rows, ledger=tmp_path / "ledger.db")
    assert_unfitted(model)
    assert not (tmp_path / "ledger.db").exists()


def test_clip_does_not_belong_to_the_published_calibration(rows):
    with pytest.raises(ValueError, match="clip"):
        DPFrankWolfe(**PUBLIC, clip=1.0, calibration="published").fit(*rows)


@pytest.mark.parametrize(
    ("pair", "demand"),
    [((0, np.inf), "be finite"), ((5, 1), "have low < high"), ((0, 1e300), "be between .* wide")],
)
def test_bounds_that_cannot_be_are_those_of_a_named_column(rows, pair, demand):
    X, y = rows
    bounds = dict.fromkeys("abcdef", (-1, 1)) | {"d": pair}
    model = PrivateLasso(epsilon=1.0, delta=1e-6, feature_bounds=bounds, target_bounds=(-4, 4))
    with pytest.raises(ValueError, match=f"^feature_bounds of 'd' must {demand}"):
        model.fit(pd.DataFrame(X, columns=list("abcdef")), y)


SECRET = "Zebedee-8675309"


def bad_rows():
    X = np.full((30, 6), 0.8675309)
    y = np.full(30, 0.8675309)
    nan, infinite = X.copy(), X.copy()
    nan[3, 2], infinite[3, 2] = np.nan, np.inf
    text = X.astype(object)
    text[4, 1] = SECRET
    names = list("abcdef")
    frame = pd.DataFrame(X, columns=names)
    return {
        "nan in X": (nan, y),
        "infinity in X": (infinite, y),
        "nan in y": (X, nan[:, 2]),
        "infinity in y": (X, infinite[:, 2]),
        "text in X": (text, y),
        "text in y": (X, text[:, 1]),
        "strings": (X.astype(str), y),
        "frame with text": (frame.assign(b=SECRET), y),
        "polars with text": (pl.DataFrame(frame.to_dict("list")).with_columns(b=pl.lit(SECRET)), y),
        "frame with NA": (frame.astype("Float64").mask(frame.index.to_series() == 3), y),
        "categories": (frame.assign(b=pd.Categorical([SECRET] * 30)), y),
        "dates": (frame.assign(b=pd.Timestamp("1986-07-05")), y),
        "one dimension": (X[:, 0], y),
        "three dimensions": (X[None], y),
        "scalar": (0.8675309, y),
        "complex": (X + 0.8675309j, y),
        "unequal lengths": (X, y[:-1]),
        "no rows": (X[:0], y[:0]),
        "no columns": (X[:, :0], y),
        "wide y": (X, X[:, :2]),
        "no y": (X, None),
        "objects": (np.array([[{"v": SECRET}] * 6] * 30, dtype=object), y),
        "ragged": ([[0.8675309] * 6, [0.8675309]], y[:2]),
        "sparse, with a NaN": (scipy.sparse.csr_matrix(nan), y),
        "sparse, with an infinity": (scipy.sparse.coo_array(infinite), y),
        "sparse, complex": (scipy.sparse.csr_matrix(X + 0.8675309j), y),
        "sparse, with no columns": (scipy.sparse.csc_matrix(X[:, :0]), y),
    }


@pytest.mark.parametrize("case", bad_rows())
def test_bad_rows_are_refused_without_being_quoted(private_class, case):
    X, y = bad_rows()[case]
    model = private_class(**PUBLIC)
    with pytest.raises((ValueError, TypeError)) as caught:
        model.fit(X, y)
    assert_no_data_in(caught.value)
    assert_unfitted(model)


BAD_TO_PREDICT_FOR = [
    case for case in bad_rows() if "y" not in case.split() and case not in {"unequal lengths"}
]


@pytest.mark.filterwarnings("ignore:X has feature names")
@pytest.mark.parametrize("case", BAD_TO_PREDICT_FOR)
def test_bad_rows_to_predict_for_are_not_quoted_either(rows, case):
    X, _ = bad_rows()[case]
    model = DPFrankWolfe(**PUBLIC).fit(*rows)
    with pytest.raises((ValueError, TypeError)) as caught:
        model.predict(X)
    assert_no_data_in(caught.value)


def test_a_warning_that_is_an_error_stays_a_warning(private_class, rows):
    X, y = rows
    with pytest.raises(DataConversionWarning, match="column-vector y"):
        private_class(**PUBLIC).fit(X, y[:, None])


def test_a_failed_refit_forgets_the_earlier_model(private_class, rows):
    X, y = rows
    model = private_class(**PUBLIC).fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.where(X > 0.9, np.nan, X), y)
    assert_unfitted(model)


def test_weak_delta_warns_and_a_strong_one_does_not(private_class, rows):
    with pytest.warns(WeakDeltaWarning, match="delta"):
        private_class(**PUBLIC | {"delta": 1 / 400}, n_rows=400).fit(*rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error", WeakDeltaWarning)
        private_class(**PUBLIC | {"delta": 1 / 401}, n_rows=400).fit(*rows)


def test_the_true_number_of_rows_decides_no_warning(private_class, rows):
    X, y = rows
    assert len(X) == 400
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for n in (1, 2, 399, 400):
            private_class(**PUBLIC | {"delta": 1 / 2}).fit(X[:n], y[:n])
            private_class(**PUBLIC | {"delta": 1 / 400}, n_rows=399).fit(X[:n], y[:n])
    assert [one for one in seen if one.category is WeakDeltaWarning] == []


@pytest.mark.parametrize(
    "change",
    [
        lambda X, y: (X[:1], y[:1]),
        lambda X, y: (np.zeros_like(X), y),
        lambda X, y: (np.ones_like(X), np.zeros_like(y)),
        lambda X, y: (np.repeat(X[:, :1], 6, axis=1), y),
        lambda X, y: (1e6 * X, 1e9 * y),
        lambda X, y: (1e308 * X, -1e308 * np.sign(y)),
        lambda X, y: (X[:3], y[:3]),
        lambda X, y: (X.astype(np.float32), y.astype(int)),
        lambda X, y: (X > 0, y > 0),
    ],
    ids=[
        "one row",
        "zeros",
        "constant",
        "duplicates",
        "outside",
        "huge",
        "n < d",
        "narrow",
        "bool",
    ],
)
def test_odd_data_is_fitted_not_refused(private_class, calibration, rows, change):
    model = private_class(**PUBLIC, calibration=calibration).fit(*change(*rows))
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.intercept_)


@pytest.mark.parametrize("column", ["numpy", "polars", "arrow"])
def test_a_column_of_dates_is_called_one(private_class, rows, column):
    X, y = rows
    frame = pd.DataFrame(X).rename(columns=str).assign(admitted=pd.Timestamp("2024-01-31"))
    if column == "polars":
        frame = pl.from_pandas(frame)
    elif column == "arrow":
        frame = frame.assign(admitted=frame["admitted"].astype("timestamp[ns][pyarrow]"))
    model = private_class(**PUBLIC)
    with pytest.raises(ValueError, match=r"column admitted, holds dates.*days since.*schema"):
        model.fit(frame, y)
    assert_unfitted(model)


def test_two_columns_of_one_name_are_called_so(private_class, rows):
    X, y = rows
    model = private_class(**PUBLIC)
    with pytest.raises(ValueError, match=r"more than one column 'a'\."):
        model.fit(pd.DataFrame(X, columns=["a", "a", *map(str, range(X.shape[1] - 2))]), y)
    assert_unfitted(model)


@pytest.mark.parametrize("kind", [DPFrankWolfe, PrivateLasso, PrivateOLS, PrivateLogit])
def test_weights_are_refused_in_words(kind, rows):
    X, y = rows
    model = kind(epsilon=1, delta=1e-6)
    assert not has_fit_parameter(model, "sample_weight")
    with pytest.raises(TypeError, match="sample_weight: weights of rows, as surveys"):
        model.fit(X, y, sample_weight=np.ones(len(y)))
    with pytest.raises(TypeError, match="fit takes no weights"):
        model.fit(X, y, weights=np.ones(len(y)))
    assert_unfitted(model)


def assert_unfitted(model):
    with pytest.raises(NotFittedError):
        check_is_fitted(model)


def assert_no_data_in(problem):
    told = "".join(traceback.format_exception(problem)) + repr(problem.__context__)
    told += repr(problem.__cause__)
    shown = "".join(str(part) for part in (problem, repr(problem), told.split("Traceback")[0]))
    assert problem.__context__ is None
    assert problem.__cause__ is None
    for value in (SECRET, "8675309", "1986"):
        assert value not in shown
