"""Rows to fit wherever they lie, what is released of them, and partitions that are refused."""

import numpy as np

BOUNDS = {"feature_bounds": (-8.0, 12.0), "target_bounds": (-30.0, 20.0)}
LASSO = {**BOUNDS, "epsilon": 2.0, "delta": 1e-4, "random_state": 5}
SECRET = "secret-4711"
SPOILED = [
    (lambda X: np.where(np.arange(len(X)) == 7, np.nan, X.T).T, "NaN or infinity"),
    (lambda X: X[:, :4], "columns of the others"),
    (lambda X: X[:-1], "different numbers of rows"),
    (lambda X: np.full(X.shape, "secret-4711"), "failed on a partition"),
]
"""What becomes of a partition, and why it is then refused."""


def some_rows(n_rows=900, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(1.0, 2.0, size=(n_rows, d))
    return X, X[:, 0] - 2 * X[:, -1] + rng.normal(size=n_rows)


def released(model):
    return np.append(model.coef_, model.intercept_)


def assert_not_quoted(X, shown):
    assert "4711" not in shown
    assert f"{X[201, 1]:.6f}"[:6] not in shown


def numbered_rows(rows_of):
    """Return rows that know their number by their cell and by their target, and coins."""
    numbers = np.arange(100.0)
    return rows_of(numbers[:, None], numbers), numbers**2 % 7 < 3


def assert_halves_have_every_row_once(rows, coins):
    def seen(part):
        return np.bincount(part.ravel().astype(int), minlength=100)

    for side in (coins, ~coins):
        half = rows.where(side)
        assert half.n_rows == side.sum()
        np.testing.assert_array_equal(half.feature_total(seen), side)
        np.testing.assert_array_equal(half.target_total(seen), side)
        assert (rows.feature_total(seen) == 1).all()  # and so the whole keeps all rows
