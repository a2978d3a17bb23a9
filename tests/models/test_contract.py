"""scikit-learn's own checks on every estimator, and what all refuse alike.

Only one tag relaxes them: `poor_score`, because noise at a small budget may not fit the check's toy
data. `check_array_api_input` is skipped by scikit-learn itself unless SCIPY_ARRAY_API is set.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from estimator_settings import PUBLIC
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_is_fitted

from dpscreen import ADPScreen, DPFrankWolfe, FrankWolfeLasso, PrivateLasso, PrivateOLS, RNMScreen

SETTING = {name: one for name, one in PUBLIC.items() if name not in ("radius", "n_iter")}
TABLE = SETTING | {"n_rows": 100_000}  # scikit-learn's own tables are too small for one
EVERY = [
    FrankWolfeLasso(radius=5.0),
    FrankWolfeLasso(radius=5.0, screening="safe"),
    *(
        kind(**PUBLIC, calibration=calibration)
        for kind in (DPFrankWolfe, RNMScreen, ADPScreen)
        for calibration in ("proven", "published")
    ),
    PrivateLasso(**SETTING),
    PrivateLasso(**SETTING, solver="frank-wolfe", standardize=True),
    PrivateOLS(**TABLE),
    PrivateOLS(**TABLE, fit_intercept=False, quality=False),
]


@parametrize_with_checks(EVERY)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kind", [DPFrankWolfe, PrivateLasso])
def test_bounds_by_name(rows, kind):
    X, y = rows
    table = pd.DataFrame(X, columns=list("abcdef"))
    bounds = {name: (-1 - j, 1 + j) for j, name in enumerate("abcdef")}
    setting = SETTING | {"feature_bounds": bounds, "random_state": 1}
    by_name = kind(**setting).fit(table, y)
    by_position = kind(**setting | {"feature_bounds": list(bounds.values())}).fit(X, y)
    np.testing.assert_array_equal(by_name.coef_, by_position.coef_)
    assert list(by_name.feature_names_in_) == list("abcdef")
    assert clone(by_name).get_params()["feature_bounds"] == bounds
    renamed = {("z" if name == "f" else name): pair for name, pair in bounds.items()}
    with pytest.raises(ValueError, match=r"feature_bounds.*missing \['f'\], unknown \['z'\]"):
        kind(**setting | {"feature_bounds": renamed}).fit(table, y)
    with pytest.raises(ValueError, match="column names"):
        kind(**setting).fit(X, y)


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


def test_a_table_refuses_sparse_rows(rows):
    X, y = rows
    with pytest.raises(TypeError, match="toarray"):
        PrivateOLS(**SETTING).fit(sparse.csr_matrix(X), y)
