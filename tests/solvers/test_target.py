"""Few targets: the law that released cells are read by, what is made of them, and no wrecks."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.special import log_softmax, ndtr

from dpscreen import PrivateLasso
from dpscreen.privacy import ZCDP, Accountant, SeededNoise
from dpscreen.privacy.accountant import cell_scores
from dpscreen.rows.source import ArrayRows
from dpscreen.solvers import rules
from dpscreen.solvers.base import Spending
from dpscreen.solvers.target import SCALES, Seat, place_target

pytestmark = [
    pytest.mark.filterwarnings("ignore::dpscreen.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::dpscreen.WeakDeltaWarning"),
    pytest.mark.filterwarnings("ignore::dpscreen.BoundsWarning"),
]


def test_cells_are_read_by_the_law_of_a_noisy_max():
    """Chances are e^(score/β), as of rows that are spread exactly as a template is."""
    n, depth, seat = 10**6, 7.5, Seat.around(0.3)
    edges = np.array([-np.inf, -0.6, -0.1, 0.25, 0.5, 0.75, np.inf])
    rows, column = 20, 8
    below = np.rint(n * ndtr((edges - seat.centres[rows]) / SCALES[column])).astype(np.int64)
    chances = log_softmax(cell_scores(np.diff(below)) * (depth / n))
    for cell in range(6):
        seen = seat.saw(seat.below(edges), cell, depth).logs - seat.logs
        assert seen[rows, column] == pytest.approx(chances[cell], abs=1e-4)


def test_without_rows_nothing_is_known_but_the_bounds():
    seat = Seat.around(0.75)
    seat = seat.saw(seat.below(np.linspace(-1, 1, 5)), 3, 0.0)
    assert seat.centre == pytest.approx(0, abs=0.05)
    assert seat.doubt == pytest.approx(1 / np.sqrt(3), abs=0.1)


def placed(n: int, centre: float, scale: float, seed: int):
    rng = np.random.default_rng(seed)
    limit = ZCDP(Fraction(1, 80))
    accountant = Accountant(SeededNoise(f"seat {seed}"), limit=limit)
    paid = Spending(accountant, limit, rules.Regime(n, 1, float(limit)))
    y = rng.normal(centre, scale, size=n)
    return place_target(paid, ArrayRows(np.zeros((n, 1)), y), np.array([-1.0, 1.0]))


@pytest.mark.parametrize(("n", "most"), [(20, 0.58), (60, 0.29)])
def test_centres_are_as_far_off_as_they_say(n, most):
    """150 targets anywhere in their bounds, a quarter to a 32nd as wide.

    Over 10 such draws squared errors over squared doubts were .9 ± .1 and 1.5 ± .6, and errors
    .42 ± .03 and .14 ± .03, for 20 and 60 rows: limits are 4 deviations away, and a false alarm is
    rarer than 1 in 1000. The middle of the bounds is off by .52.
    """
    rng = np.random.default_rng(n)
    errors, doubts = [], []
    for seed in range(150):
        centre, scale = rng.uniform(-0.9, 0.9), 2.0 ** rng.uniform(-5, -2)
        place = placed(n, centre, scale, seed)
        errors.append(place.centre - centre)
        doubts.append(place.doubt)
    assert np.sum(np.square(errors)) < 4 * np.sum(np.square(doubts))
    assert np.sqrt(np.mean(np.square(errors))) < most


# --- whole fits -----------------------------------------------------------------------------------


def staff(rng):
    """Return 200 rows with six levels and a salary in bounds 26 times its deviation wide."""
    levels = rng.integers(0, 2, size=(200, 6))
    X = np.column_stack((rng.normal(40, 12, 200), levels, rng.exponential(2, 200)))
    y = 20_000 + 400 * X[:, 0] + 3000 * X[:, 1] + rng.normal(0, 8000, 200)
    return X, y, [(0, 120), *[(0, 1)] * 6, (0, 50)], (0, 500_000)


def normal(rng):
    """Return 150 rows of 20 numbers, five of which matter."""
    X = rng.normal(50, 10, size=(150, 20))
    y = X[:, :5].sum(axis=1) + rng.normal(0, 22, size=150)
    return X, y, (0, 120), (60, 540)


@pytest.mark.parametrize("table", [staff, normal])
def test_few_rows_are_no_wrecks(table):
    """20 fits at ε = .5 that can learn next to nothing: R² is hardly below that of the mean.

    7 of 90 and 1 of 90 were below −.5, so that more than 6 of 20 are a false alarm of 1 in 1800.
    With the target's centre in the middle of its bounds 18 and 7 were, and medians −70 and −.33.
    """
    X, y, features, target = table(np.random.default_rng(3))
    found = []
    for seed in range(20):
        model = PrivateLasso(
            epsilon=0.5,
            delta=1e-6,
            feature_bounds=features,
            target_bounds=target,
            quality=False,
            random_state=f"few {seed}",
        )
        found.append(model.fit(X, y).score(X, y))
    assert np.sum(np.array(found) < -0.5) <= 6
    assert np.median(found) > -0.2
