"""The LASSO reference against the conditions that define a LASSO solution."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpscreen.paper.problem import lasso_reference


def rows(seed=0, n_rows=60, n_features=8):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)) + rng.normal(size=n_features)
    y = X @ rng.normal(size=n_features) + rng.normal(size=n_rows) + 2.0
    return X, y


@settings(max_examples=15)
@given(st.integers(0, 1000), st.integers(1, 6), st.booleans())
@example(703, 4, False)  # four nonzeros over 0.1 % of the penalty: between the points of any grid
@example(403, 5, True)  # a single solution: its norm, summed in two orders, differs in the last bit
def test_it_solves_the_lasso_with_k_nonzeros(seed, n_support, intercept):
    X, y = rows(seed)
    found = lasso_reference(X, y, n_support=n_support, intercept=intercept)
    if intercept:
        X, y = X - X.mean(axis=0), y - y.mean()
    pull = X.T @ (y - X @ found.coef)
    strength = np.abs(pull).max()
    chosen = found.coef != 0
    assert np.count_nonzero(chosen) == n_support
    assert np.allclose(pull[chosen], strength * np.sign(found.coef[chosen]), rtol=0.02)
    norm = np.abs(found.coef).sum()
    assert found.lowest_norm * (1 - 1e-12) <= norm <= found.highest_norm * (1 + 1e-12)
    assert found.radius == (found.lowest_norm + found.highest_norm) / 2


def test_an_impossible_support_is_refused():
    X, y = rows()
    with pytest.raises(ValueError, match="no LASSO solution with 9 nonzeros"):
        lasso_reference(X, y, n_support=9, intercept=False)
