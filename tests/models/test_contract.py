"""scikit-learn's own checks, on every estimator at both calibrations.

Only one tag relaxes them: `poor_score`, because noise at a small budget may not fit the check's toy
data. `check_array_api_input` is skipped by scikit-learn itself unless SCIPY_ARRAY_API is set.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from estimator_settings import PUBLIC
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_is_fitted

from dpscreen import ADPScreen, DPFrankWolfe, FrankWolfeLasso, RNMScreen

pytestmark = [
    pytest.mark.filterwarnings("ignore::dpscreen.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::dpscreen.PublishedCalibrationWarning"),
    pytest.mark.filterwarnings("ignore::dpscreen.WeakDeltaWarning"),
]

EVERY = [
    FrankWolfeLasso(radius=5.0),
    FrankWolfeLasso(radius=5.0, screening="safe"),
    FrankWolfeLasso(radius=0.5, screening="published"),
    *(
        kind(**PUBLIC, calibration=calibration)
        for kind in (DPFrankWolfe, RNMScreen, ADPScreen)
        for calibration in ("proven", "published")
    ),
    DPFrankWolfe(**PUBLIC, clip=0.5, fit_intercept=False, start="random"),
    ADPScreen(**PUBLIC, screen_at="last"),
]


@parametrize_with_checks(EVERY)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_keep_names_and_give_the_same_model(private_class, calibration, rows, frame):
    X, y = rows
    names = [f"f{j}" for j in range(X.shape[1])]
    make = lambda: private_class(**PUBLIC, calibration=calibration, random_state=3)  # noqa: E731
    table = frame({name: X[:, j] for j, name in enumerate(names)})
    named = make().fit(table, frame({"y": y})["y"])
    assert list(named.feature_names_in_) == names
    np.testing.assert_array_equal(named.coef_, make().fit(X, y).coef_)
    np.testing.assert_array_equal(
        named.predict(table), table.to_numpy() @ named.coef_ + named.intercept_
    )


def test_bounds_by_name(rows):
    X, y = rows
    table = pd.DataFrame(X, columns=list("abcdef"))
    bounds = {name: (-1 - j, 1 + j) for j, name in enumerate("abcdef")}
    setting = PUBLIC | {"feature_bounds": bounds, "random_state": 1}
    by_name = DPFrankWolfe(**setting).fit(table, y)
    by_position = DPFrankWolfe(**setting | {"feature_bounds": list(bounds.values())}).fit(table, y)
    np.testing.assert_array_equal(by_name.coef_, by_position.coef_)
    renamed = {("z" if name == "f" else name): pair for name, pair in bounds.items()}
    with pytest.raises(ValueError, match=r"feature_bounds.*missing \['f'\], unknown \['z'\]"):
        DPFrankWolfe(**setting | {"feature_bounds": renamed}).fit(table, y)
    with pytest.raises(ValueError, match="column names"):
        DPFrankWolfe(**setting).fit(X, y)


def test_pipeline_clone_and_grid_search(private_class, rows):
    X, y = rows
    model = make_pipeline(FunctionTransformer(), private_class(**PUBLIC, random_state=0))
    search = GridSearchCV(
        model, {f"{private_class.__name__.lower()}__radius": [1.0, 3.0]}, cv=2
    ).fit(X, y)
    assert search.best_params_.popitem()[1] in (1.0, 3.0)
    copy = clone(private_class(**PUBLIC))
    assert copy.get_params()["feature_bounds"] == PUBLIC["feature_bounds"]
    with pytest.raises(NotFittedError):
        check_is_fitted(copy)


def test_every_parameter_is_keyword_only(private_class):
    with pytest.raises(TypeError, match="positional"):
        private_class(3.0)
