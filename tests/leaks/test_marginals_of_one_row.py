"""One row in the sums behind the marginals, by brute force (docs/theory/marginals.md, Lemma 22).

A row is in one cell of every histogram, and moves means and mean squares by no more than is booked,
wherever the declared bounds lie: those a few floats wide, too, whose middle is no float.
"""

from __future__ import annotations

import itertools
import math
from functools import partial

import numpy as np
import pytest

from dpscreen.rows.source import ArrayRows, as_column
from dpscreen.rows.sums import LEVELS
from dpscreen.solvers.marginals import CELLS, Columns, centred_moments, moments_change

BOUNDS = [
    *((-3.0, 5.0), (0.0, 1.0), (1.0, 2.0), (-1.0, 1e300), (2.0**52 + 1, 2.0**52 + 2)),
    *((2.0**53 - 1, 2.0**53), (1.0, 1.0 + 2**-51)),
]
PARTS = (-2.0, 0.0, 1e-9, 0.25, 0.5, 0.75, 1.0, 3.0)


def cells_of(low: float, high: float) -> list[float]:
    """Return cells within and beyond the bounds."""
    inside = [low + part * (high - low) for part in PARTS]
    return [*inside, math.nextafter(low, -math.inf), math.nextafter(high, math.inf), 0.0, -1e308]


def rows_of(cell: float) -> ArrayRows:
    return ArrayRows(np.array([[cell]]), np.array([cell]))


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_lemma_22_a_row_is_in_one_cell_of_every_histogram(bounds):
    public, one = np.array([bounds]), np.ones(1)
    for cell, centre, width in itertools.product(cells_of(*bounds), (-1, -0.3, 0, 1), (1, 2**-20)):
        rows = rows_of(cell)
        for columns in (
            Columns(rows.feature_total, public, np.arange(1)),
            Columns(partial(rows.target_total, as_column), public, np.arange(1)),
        ):
            histogram = columns.histograms(centre * one, width * one)
            assert histogram.shape == (1, CELLS)
            for counts in (histogram, columns.by_octave(centre * one)):
                assert (counts >= 0).all()
                assert counts.sum() == 1


@pytest.mark.parametrize("weight", [1, 2])
@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_lemma_22_a_row_moves_means_and_mean_squares_by_no_more_than_is_booked(bounds, weight):
    """It reaches that, in whole numbers of 2^-15, at the ends of bounds with a middle."""
    public, booked = np.array([bounds]), moments_change(weight - 1, 2 - weight) * 2 * LEVELS
    largest = max(
        float(np.linalg.norm(centred_moments(rows_of(cell), public, np.arange(1), weight)))
        for cell in cells_of(*bounds)
    )
    assert 0.99 * booked <= largest <= booked
