"""scikit-learn's own checks on PrivateOLS, and what its parameters refuse."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from dpscreen import PrivateOLS

pytestmark = [
    pytest.mark.filterwarnings("ignore::dpscreen.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::dpscreen.WeakDeltaWarning"),
    pytest.mark.filterwarnings("ignore::dpscreen.BoundsWarning"),  # scikit-learn's own rows
]

SETTING = {
    "epsilon": 2.0,
    "delta": 1e-6,
    "feature_bounds": (-10, 10),
    "target_bounds": (-100, 100),
}


@parametrize_with_checks(
    [
        PrivateOLS(**SETTING, n_rows=100_000),  # scikit-learn's own tables are too small for one
        PrivateOLS(**SETTING | {"epsilon": 500.0}, n_rows=100_000),
        PrivateOLS(**SETTING, fit_intercept=False, quality=False, n_rows=100_000),
    ]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"epsilon": -1}, "epsilon"),
        ({"delta": 1.5}, "delta"),
        ({"n_rows": 0}, "n_rows"),
        ({"quality": "yes"}, "quality"),
        ({"rows_per_unit": 2}, "rows_per_unit=1"),
        ({"feature_bounds": None}, "feature_bounds"),
        ({"target_bounds": (1, 0)}, "target_bounds"),
        ({"n_rows": 100}, "about .+ rows.*Nothing was charged"),
    ],
)
def test_bad_parameters_are_named_before_anything_is_spent(rows, given, message, tmp_path):
    model = PrivateOLS(**SETTING | given)
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(*rows, ledger=tmp_path / "ledger.db")
    assert not hasattr(model, "coef_")
    assert not (tmp_path / "ledger.db").exists()


def test_sparse_rows_are_refused(rows):
    from scipy import sparse

    X, y = rows
    with pytest.raises(TypeError, match="toarray"):
        PrivateOLS(**SETTING).fit(sparse.csr_matrix(X), y)


def test_every_parameter_is_keyword_only():
    with pytest.raises(TypeError, match="positional"):
        PrivateOLS(1.0)
