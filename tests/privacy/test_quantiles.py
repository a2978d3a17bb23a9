"""Quantiles by counting: what one row can change, by brute force, and what is then booked."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpscreen.privacy import ZCDP, Accountant, SeededNoise
from dpscreen.privacy.accountant import (
    MEDIAN,
    cell_scores,
    columns_change,
    excess_change,
    release_cell,
    release_search,
)

QUANTILES = [MEDIAN, Fraction(7, 10), Fraction(4, 5), Fraction(1, 5)]
EDGES = np.array([0.0, 1.0, 2.0, 3.0, np.inf])


def accountant(limit: float = 1e6) -> Accountant:
    return Accountant(SeededNoise("quantiles"), limit=ZCDP(Fraction(limit)))


def in_cells(values) -> np.ndarray:
    """Count values between EDGES, the last cell open."""
    places = np.searchsorted(EDGES, np.asarray(values), side="right") - 1
    return np.bincount(np.minimum(places, len(EDGES) - 2), minlength=len(EDGES) - 1)


def small_data():
    """Yield every multiset of at most five values out of four, one in each cell."""
    for size in range(6):
        yield from itertools.combinations_with_replacement((0.5, 1.5, 2.5, 3.5), size)


@pytest.mark.parametrize("quantile", QUANTILES)
def test_lemma_11_holds_and_cannot_be_improved(quantile):
    """One row moves a score by at most max(p, r − p), two scores apart by at most twice that."""
    most, widest = 0, 0
    for values in small_data():
        here = cell_scores(in_cells(values), quantile=quantile)
        for extra in (0.5, 1.5, 2.5, 3.5):
            moved = cell_scores(in_cells([*values, extra]), quantile=quantile) - here
            most = max(most, int(np.abs(moved).max()))
            widest = max(widest, int(np.ptp(moved)))
    assert most == excess_change(quantile)
    assert widest <= 2 * excess_change(quantile)
    assert widest > excess_change(quantile)


@pytest.mark.parametrize("quantile", QUANTILES)
def test_the_cell_with_the_quantile_scores_best(quantile):
    values = np.random.default_rng(0).exponential(1.0, size=999)
    scores = cell_scores(in_cells(values), quantile=quantile)
    inside = np.searchsorted(EDGES, np.quantile(values, float(quantile)), side="right") - 1
    assert scores[inside] == 0
    assert (np.delete(scores, inside) < 0).all()


@given(
    n_columns=st.integers(1, 4),
    quantile=st.sampled_from(QUANTILES),
    cells=st.lists(st.booleans(), min_size=4, max_size=4),
)
def test_lemma_12_bounds_a_vector_of_counts(n_columns, quantile, cells):
    part, whole = quantile.as_integer_ratio()
    change = np.array([whole * below - part for below in cells[:n_columns]])
    assert np.linalg.norm(change) <= columns_change(n_columns, quantile)


def test_the_change_of_many_columns_is_never_rounded_below_the_root():
    """By a unit in the last place it was, of a product of two rounded numbers: compared exactly."""
    tails = (Fraction(part, 2**20) for part in range(2**20 - 1, 2**20 - 400, -2))
    for quantile in (Fraction(3, 4), Fraction(5, 6), *tails):
        for n_columns in (1, 2, 73, 77, 273, 1051, 10_007):
            booked = Fraction(columns_change(n_columns, quantile))
            assert booked**2 >= excess_change(quantile) ** 2 * n_columns


def test_lemma_12_is_attained():
    for quantile in QUANTILES:
        part, whole = quantile.as_integer_ratio()
        row = np.full(9, max((-part, whole - part), key=abs))
        assert np.linalg.norm(row) == pytest.approx(columns_change(9, quantile), rel=1e-12)


def test_a_large_budget_finds_the_cell_and_a_release_costs_what_was_asked():
    account = accountant()
    values = np.random.default_rng(1).normal(1.4, 0.1, size=100)
    cost = ZCDP(Fraction(1, 3))
    cell = release_cell(account, in_cells(values), cost=cost, purpose="a median")
    assert cell == 1
    assert cost.rho * (1 - Fraction(1, 10**12)) <= account.spent.rho <= cost.rho


def test_a_search_finds_every_columns_quantile():
    X = np.random.default_rng(2).normal([0.0, 3.0, -7.0], [1.0, 0.1, 2.0], size=(4000, 3))
    account, cost = accountant(), ZCDP(Fraction(2))
    found = release_search(
        account,
        lambda middles: 2 * np.count_nonzero(middles > X, axis=0) - len(X),
        np.full(3, -16.0),
        np.full(3, 16.0),
        change=columns_change(3, MEDIAN),
        levels=12,
        cost=cost,
        purpose="medians",
    )
    np.testing.assert_allclose(found, np.median(X, axis=0), atol=0.06)
    assert cost.rho * (1 - Fraction(1, 10**12)) <= account.spent.rho <= cost.rho


def test_counts_are_whole_numbers_and_no_row_is_left_out():
    scores = cell_scores(in_cells([0.0, 1.0, 5.0, np.inf]))
    assert scores.dtype == np.int64
    assert cell_scores(in_cells([])).tolist() == [0, 0, 0, 0]
