"""The rows that move most: every release of a whole fit is attacked, and its bound nearly reached.

One row or unit as large as can be, added to few rows or many, under one transcript. No input of a
mechanism moves by more than what was booked; and each moves by nearly as much, so that a
sensitivity which is too small by the part that is missing would be found (docs/evidence.md).
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
import scipy.sparse
from replays import CASES, QUIET, Case, Neighbours, moves_between, wild

from dpscreen import PrivateLasso
from dpscreen.audit.cases import BY_BRUTE_FORCE
from dpscreen.models import outcome_peers

pytestmark = QUIET
FAR = 1e9
OUTCOMES = (
    outcome_peers.ClassMeans,
    outcome_peers.NoisyDescent,
    outcome_peers.OutcomeFrankWolfe,
)
KNOWN = {case.name: case for case in CASES} | {
    f"{kind.__name__}: large budget": Case(kind, {"epsilon": 40.0}, f"{kind.__name__}: peer")
    for kind in OUTCOMES
}
ZERO_ONE = [(0, 1), (-3, 2), (0, 1)]
KNOWN |= {
    f"PrivateLasso: {name}": Case(PrivateLasso, options, f"PrivateLasso: {name}")
    for name, options in {
        "0/1 columns": {"feature_bounds": ZERO_ONE, "n_rows": 6_000},
        "sparse rows": {"n_rows": 6_000, "quality": False},
        "sparse rows, stagewise": {"n_rows": 6_000, "quality": False, "solver": "stagewise"},
    }.items()
}
REACHED = {
    # The part of what is booked that the worst rows reach at least, in every release of the fit.
    "PrivateLasso: large budget": 0.9,
    "PrivateLasso: stagewise, large budget": 0.9,
    "FreeScreen: screened": 0.5,
    "PrivateLasso: rows_per_unit": 0.5,  # few rows: the target's clip is beyond its bounds
    "PrivateLasso: even bounds": 0.6,
    "PrivateLasso: frank-wolfe": 0.99,
    "PrivateLasso: auto with a row norm, 60 features": 0.35,  # as above
    "PrivateLasso: not standardized, no intercept": 0.55,
    "PrivateLasso: auto with a row norm": 0.2,  # residuals of rows with large norm are shrunk
    "PrivateLasso: 0/1 columns": 0.6,
    "PrivateLasso: sparse rows": 0.25,
    "PrivateLasso: sparse rows, stagewise": 0.2,
    "PrivateLasso: split": 0.001,  # in its second half; PrivateOLS reaches most of the same
    "PrivateOLS: loose bounds, large budget": 0.9,
    "PrivateOLS: no intercept, without quality": 0.9,
    "PrivateLogit: loose bounds, large budget": 0.1,  # residuals at the end, squared
    "PrivatePoisson: loose bounds, large budget": 0.5,
    "PrivatePoissonLasso: large budget": 0.2,
    "PrivateLogisticLasso: defaults": 0.55,
    "PrivateLogisticLasso: large budget": 0.25,  # a row adds to the loss of every range
    "PrivateLogisticLasso: split": 0.02,  # residuals at the end, squared
    "DPFrankWolfe: no intercept, tiny radius": 0.99,
    "DPFrankWolfe: clip": 0.99,
    "DPFrankWolfe: clip, rows_per_unit": 0.9,
    "RNMScreen: no intercept, tiny radius": 0.9,
    "ADPScreen: no intercept, tiny radius": 0.8,
    "AdaSSP: n_rows": 0.75,  # residuals of rows with large norm are shrunk
    "BoostedAdaSSP: defaults": 0.97,
    "NoisyIHT: standardized, loose bounds": 0.99,
    "PrivateGCD: defaults": 0.99,
    "PrivateSIS: standardized, loose bounds": 0.99,
    "ClassMeans: large budget": 0.7,
    "NoisyDescent: large budget": 0.7,
    "OutcomeFrankWolfe: large budget": 0.9,
}
LEAST, MOST = 12, 100
N_ROWS, WIDTHS, HEIGHTS = (1, 1, 2, 9, 40), (0.0, 1.0, 1.0, 3.0), (0.0, 1.0, 3.0)


def worst_neighbours(case, trials):
    """Yield rows of several shapes, and the same with one unit at the ends of all bounds."""
    rng, d, k = np.random.default_rng(0), case.rows("normal", 1, 1)[0].shape[1], case.rows_per_unit
    for trial in range(trials):
        n = N_ROWS[trial % len(N_ROWS)]
        X = rng.normal(size=(n, d)) * WIDTHS[trial % len(WIDTHS)]
        y = rng.normal(size=n) * HEIGHTS[trial % len(HEIGHTS)]
        far = rng.choice([-FAR, FAR, 0.0], p=[0.45, 0.45, 0.1], size=d)
        row = far if trial % 4 != 3 else np.where(np.arange(d) == trial % d, FAR, -0.5)
        if trial % 5 == 4:  # residuals of rows beyond the norm bound are shrunk
            row = np.sign(far) * 2.0 ** rng.uniform(-4, 3)
        at, target = [int(rng.integers(n + 1))] * k, rng.choice([-FAR, FAR])
        more = np.insert(X, at, row, axis=0), np.insert(y, at, target)
        coins = rng.random(n) < 0.5
        yield Neighbours((X, y), more, coins, np.insert(coins, at, rng.random() < 0.5))


def tables_of(case, pair):
    rows = scipy.sparse.csr_array if "sparse" in case.name else np.asarray
    target = (lambda y: np.where(y > 0, 1, 0)) if case.estimator in OUTCOMES else np.asarray
    return [(rows(X), target(y)) for X, y in (pair.fewer, pair.more)]


def largest_moves(case, least):
    """Return for every purpose the largest part of what was booked that its input moved by.

    Beyond the first trials there are more only until every purpose reached what it should.
    """
    found = defaultdict(float)
    for trial, pair in enumerate(worst_neighbours(case, MOST)):
        if trial >= LEAST and not short_of(found, least):
            break
        moved = moves_between(
            case.model(),
            tables_of(case, pair),
            coins=([pair.coins_of_fewer], [pair.coins_of_more]),
            steer=wild(trial, 0.3 * (trial % 2)),
        )
        for move in moved:
            assert move.within, f"{move.purpose}: {move.part} of what is booked"
            found[move.purpose] = max(found[move.purpose], move.part)
    return found


def short_of(found, least):
    """Return the purposes whose inputs did not reach that part of what was booked."""
    # Rows that move these most are found in tests/solvers/test_prediction_range.py.
    return {one: part for one, part in found.items() if part < least and one not in BY_BRUTE_FORCE}


@pytest.mark.parametrize("name", REACHED)
def test_the_worst_row_stays_within_what_was_booked(name):
    found = largest_moves(KNOWN[name], REACHED[name])
    assert found
    assert short_of(found, REACHED[name]) == {}
