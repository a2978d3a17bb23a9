"""The median by cells: what one row can change, by brute force."""

from __future__ import annotations

import itertools

import numpy as np

from dpscreen.solvers.tukey import cell_scores

EDGES = np.array([0.0, 1.0, 2.0, 3.0, np.inf])


def in_cells(values) -> np.ndarray:
    """Count values between EDGES, the last cell open."""
    places = np.searchsorted(EDGES, np.asarray(values), side="right") - 1
    return np.bincount(np.minimum(places, len(EDGES) - 2), minlength=len(EDGES) - 1)


def test_lemma_11_holds_and_cannot_be_improved():
    """One row moves a score by at most 1, two scores apart by at most 2, and that is attained."""
    most, widest = 0, 0
    for size in range(6):
        for values in itertools.combinations_with_replacement((0.5, 1.5, 2.5, 3.5), size):
            here = cell_scores(in_cells(values))
            for extra in (0.5, 1.5, 2.5, 3.5):
                moved = cell_scores(in_cells([*values, extra])) - here
                most = max(most, int(np.abs(moved).max()))
                widest = max(widest, int(np.ptp(moved)))
    assert (most, widest) == (1, 2)


def test_the_cell_with_the_median_scores_best():
    values = np.random.default_rng(0).exponential(2.0, size=999)
    scores = cell_scores(in_cells(values))
    inside = np.searchsorted(EDGES, np.median(values), side="right") - 1
    assert scores[inside] == 0
    assert (np.delete(scores, inside) < 0).all()


def test_counts_are_whole_numbers_and_no_row_is_left_out():
    scores = cell_scores(in_cells([0.0, 1.0, 5.0, np.inf]))
    assert scores.dtype == np.int64
    assert cell_scores(in_cells([])).tolist() == [0, 0, 0, 0]
