"""scikit-learn's own checks on PrivateLasso, every solver."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from dpscreen import PrivateLasso

pytestmark = [
    pytest.mark.filterwarnings("ignore::dpscreen.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::dpscreen.WeakDeltaWarning"),
]

SETTING = {
    "epsilon": 2.0,
    "delta": 1e-6,
    "feature_bounds": (-10, 10),
    "target_bounds": (-100, 100),
}
EVERY = [
    PrivateLasso(**SETTING),
    PrivateLasso(**SETTING, solver="frank-wolfe", standardize=True),
    PrivateLasso(**SETTING, solver="noisy-gradient", max_features=2, fit_intercept=False),
    PrivateLasso(**SETTING, radius=3.0, n_iter=4, clip=1.0, standardize=False, n_rows=100),
]


@parametrize_with_checks(EVERY)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore::dpscreen.BoundsWarning")  # scikit-learn's rows sit at ends
def test_scikit_learn_check(estimator, check):
    check(estimator)


def test_frames_bounds_by_name_and_clones(rows):
    X, y = rows
    names = list("abcdef")
    table = pd.DataFrame(X, columns=names)
    by_name = SETTING | {"feature_bounds": dict.fromkeys(names, (-10, 10)), "random_state": 3}
    named = PrivateLasso(**by_name).fit(table, y)
    plain = PrivateLasso(**SETTING, random_state=3).fit(X, y)
    np.testing.assert_array_equal(named.coef_, plain.coef_)
    assert list(named.feature_names_in_) == names
    assert clone(named).get_params()["feature_bounds"] == by_name["feature_bounds"]


def test_every_parameter_is_keyword_only():
    with pytest.raises(TypeError, match="positional"):
        PrivateLasso(1.0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"epsilon": -1}, "epsilon"),
        ({"delta": 1.5}, "delta"),
        ({"radius": 0}, "radius"),
        ({"n_iter": 0}, "n_iter"),
        ({"clip": float("nan")}, "clip"),
        ({"row_norm": -2}, "row_norm"),
        ({"max_features": 0}, "max_features"),
        ({"n_rows": 0}, "n_rows"),
        ({"standardize": "yes"}, "standardize"),
        ({"solver": "lars"}, "solver"),
        ({"inference": "bootstrap"}, "inference"),
        ({"feature_bounds": None}, "feature_bounds"),
        ({"target_bounds": (1, 0)}, "target_bounds"),
    ],
)
def test_bad_parameters_are_named(rows, given, message):
    model = PrivateLasso(**SETTING | given)
    with pytest.raises(ValueError, match=message):
        model.fit(*rows)
    assert not hasattr(model, "coef_")
