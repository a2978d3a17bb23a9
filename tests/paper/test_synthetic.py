import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpscreen.paper.data import synthetic


def seeded(**options):
    return synthetic(rng=np.random.default_rng(7), **options)


def test_defaults_are_the_paper_s():
    data = seeded()
    assert data.X.shape == (3000, 600)
    assert np.array_equal(data.coef, np.r_[np.ones(35), -np.ones(35), np.zeros(530)])
    np.testing.assert_array_equal(data.y, data.X @ data.coef)


@settings(max_examples=30)
@given(
    n_rows=st.integers(1, 40),
    n_features=st.integers(1, 30),
    correlation=st.floats(-0.99, 0.99),
    seed=st.integers(0, 99),
)
def test_largest_entry_is_one(n_rows, n_features, correlation, seed):
    data = synthetic(
        n_rows=n_rows,
        n_features=n_features,
        n_positive=n_features // 2,
        n_negative=0,
        correlation=correlation,
        rng=np.random.default_rng(seed),
    )
    assert np.abs(data.X).max() == 1.0
    assert np.count_nonzero(data.coef) == n_features // 2


def fourth_neighbour_correlations(correlation):
    """Sample correlations at lags 0 to 4, over 20 000 rows: standard error below .0071 each.

    The tests allow .03, more than four standard errors: a false alarm in under 1e-4 of the seeds
    for all lags together, and the seed is fixed.
    """
    X = seeded(n_rows=20_000, n_features=5, n_positive=1, n_negative=1, correlation=correlation).X
    return np.corrcoef(X, rowvar=False)[0]


@pytest.mark.parametrize("correlation", [0.0, 0.5, -0.7, 0.95])
def test_correlation_decays_geometrically(correlation):
    expected = correlation ** np.arange(5)
    assert np.abs(fourth_neighbour_correlations(correlation) - expected).max() < 0.03


def test_the_correlation_test_has_power():
    sample = fourth_neighbour_correlations(0.55)
    assert np.abs(sample - 0.5 ** np.arange(5)).max() > 0.03


def test_columns_have_equal_variance():
    X = seeded(n_rows=20_000, n_features=8, n_positive=1, n_negative=1, correlation=0.8).X
    spread = X.std(axis=0)
    assert spread.max() / spread.min() < 1.05


def test_the_generator_decides():
    np.testing.assert_array_equal(seeded(n_rows=9).X, seeded(n_rows=9).X)
    other = synthetic(n_rows=9, rng=np.random.default_rng(8))
    assert not np.array_equal(other.X, seeded(n_rows=9).X)
