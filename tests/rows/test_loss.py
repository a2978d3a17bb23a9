"""A second loss fits: whatever a residual is, steps give the same bits wherever the rows lie."""

import pickle
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from dpscreen.privacy import ZCDP, Accountant, SeededNoise
from dpscreen.rows.loss import EXPONENTIAL, LOGISTIC, PROBABILITIES, SQUARED, Loss
from dpscreen.rows.parts import PartedDesign, RowPart
from dpscreen.rows.source import ArrayRows, PublicUnits
from dpscreen.rows.sparse import SparseRows
from dpscreen.rows.streamed import MappedArrays, StreamedRows
from dpscreen.rows.sums import LEVELS, ShortRows, curved_rows, exact_gram
from dpscreen.solvers.base import Choices, Spending, Task
from dpscreen.solvers.engine import solve
from dpscreen.solvers.rules import Regime
from dpscreen.solvers.selection import PathRun


def ramp_residuals(rows, fit, target, scale, levels_per_unit, most, out):
    """Set out[a] to a sigmoid of three lines, less the target, which is ±1/2 for two classes."""
    for a in range(out.size):
        i = a if rows is None else rows[a]
        sigmoid = min(max(-0.5, 0.25 * (scale * np.float64(fit[i]))), 0.5)
        out[a] = np.int16(min(max(-most, np.rint((sigmoid - target[i]) * levels_per_unit)), most))


RAMP = Loss("ramp", ramp_residuals, bound=1.0)
LOSSES = pytest.mark.parametrize(
    "loss", [SQUARED, RAMP, LOGISTIC, EXPONENTIAL], ids=lambda loss: loss.name
)


class Halves(PartedDesign):
    """Rows in two places, as on a cluster."""

    def __init__(self, X, y, units):
        super().__init__(units.n_candidates, units.loss)
        middle = len(X) // 2
        sent = pickle.loads(pickle.dumps(units))  # as to a worker
        self._parts = [
            RowPart(ArrayRows(X[half], y[half]).lattice(sent))
            for half in (slice(middle), slice(middle, None))
        ]

    def total(self, question):
        return sum(part.answer(question) for part in self._parts)


def classes(n_rows, d, seed):
    """Return rows with zeros, and classes 0 and 1 that depend on the first two features."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n_rows, d)) < 0.4, rng.uniform(-1, 1, (n_rows, d)), 0.0)
    y = (3 * X[:, 0] - 3 * X[:, 1] + rng.logistic(size=n_rows) > 0).astype(np.float64)
    return X, y


def every_design(X, y, loss):
    bounds = np.array([[-1.0, 1.0]] * X.shape[1])
    units = PublicUnits(bounds, np.array([0.0, 1.0]), constant=True, loss=loss)
    yield ArrayRows(X, y).lattice(units)
    yield SparseRows(sp.csr_array(X), y).lattice(units)
    yield StreamedRows(MappedArrays(X, y)).lattice(units)
    yield Halves(X, y, units)


def solved(design, *, n_rows, clip=None):
    limit = ZCDP(10)
    regime = Regime(n_rows, design.n_features - 1, float(limit))
    spending = Spending(Accountant(SeededNoise("loss"), limit=limit), limit, regime)
    return solve(Task(spending, design, 0.5, 0.35, Choices(clip=clip)), PathRun)


@LOSSES
@pytest.mark.parametrize("clip", [None, 0.3, 5.0])
def test_a_fit_has_the_same_bits_wherever_the_rows_lie(loss, clip):
    X, y = classes(4000, 6, seed=3)
    first, *others = (
        solved(design, n_rows=len(X), clip=clip) for design in every_design(X, y, loss)
    )
    assert first.weights[0] > 0 > first.weights[1]
    for other in others:
        assert other.weights.tobytes() == first.weights.tobytes()


def test_no_clip_is_wider_than_the_loss_allows():
    X, y = classes(50, 2, seed=0)
    for loss, widest in ((SQUARED, 5.0), (RAMP, 1.0)):
        spending = Spending(Accountant(SeededNoise(0), limit=ZCDP(1)), ZCDP(1), Regime(50, 2, 1.0))
        task = Task(spending, next(every_design(X, y, loss)), 0.5, 0.3, Choices(clip=5.0))
        assert task.clip(100.0) == widest


fits = st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=40)


@LOSSES
@given(fits, st.floats(), st.floats(1e-12, 1e12), st.floats(1e-12, 1e12))
def test_a_level_depends_on_its_row_alone_and_is_clipped(loss, fits, target, scale, clip):
    """Any target, a missing one too: alone or among others, a row has the same level, within ±L."""
    rounding = (scale, LEVELS / clip, float(LEVELS))
    together, alone = np.empty(len(fits), dtype=np.int16), np.empty(1, dtype=np.int16)
    targets = np.full(len(fits), target)
    loss.levels(np.array(fits), targets, rounding, together)
    assert np.abs(together.astype(int)).max() <= LEVELS
    for i in range(len(fits)):
        loss.levels(np.array(fits[i : i + 1]), targets[:1], rounding, alone)
        assert alone[0] == together[i]
    some = np.arange(0, len(fits), 2, dtype=np.uint32)
    listed = np.empty(some.size, dtype=np.int16)
    loss.levels(np.array(fits), targets, rounding, listed, rows=some)
    assert listed.tolist() == together[some].tolist()


def test_a_loss_costs_no_import_of_the_compiler():
    code = "import dpscreen.rows.loss, sys; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- probabilities --------------------------------------------------------------------------------

RNG = np.random.default_rng(30)


def probability(log_odds: float) -> float:
    """Return the table's σ, by Python's own floats."""
    place = min(abs(log_odds), 16.0) * 64
    cell = int(place)
    rise = float(PROBABILITIES[cell + 1] - PROBABILITIES[cell]) if cell < 1024 else 0.0
    upper = float(PROBABILITIES[cell]) + (place - cell) * rise
    return 1.0 - upper if log_odds < 0 else upper


def logistic_level(fit: int, outcome: float, scale: float, clip: float) -> int:
    level = round((probability(scale * float(fit)) - outcome) * (LEVELS / clip))
    return min(max(-LEVELS, level), LEVELS)


def test_the_table_holds_probabilities_rounded_once():
    """Against 28 digits, from which no entry is farther than half of 2^-52."""
    for k, found in enumerate(PROBABILITIES.tolist()):
        true = 1 / (1 + (-Decimal(k) / 64).exp())
        assert abs(Decimal(found) - true) <= Decimal(2) ** -53 + Decimal(10) ** -26


def test_a_probability_is_within_a_tenth_of_a_level_of_the_logistic_function():
    log_odds = RNG.uniform(-40, 40, 20000)
    true = 1 / (1 + np.exp(-log_odds))
    found = np.array([probability(float(one)) for one in log_odds])
    assert np.abs(found - true).max() < 0.1 / LEVELS
    assert (np.diff(found[np.argsort(log_odds)]) >= 0).all()


def hard_outcomes(count):
    """Return fits at cells' edges, between them and far beyond, and outcomes."""
    fit = RNG.integers(-(2**62), 2**62, count) >> RNG.integers(0, 62, count)
    edges = RNG.integers(-1024, 1025, count) * 2**30 + RNG.integers(-1, 2, count)
    return np.where(RNG.random(count) < 0.5, fit, edges), RNG.integers(0, 2, count).astype(float)


@pytest.mark.parametrize("clip", [1.0, 0.5, 0.37])
def test_a_level_is_that_of_plain_floats_at_every_place_of_every_array(clip):
    scale = 2.0**-36
    fit, outcome = hard_outcomes(140)
    expected = [
        logistic_level(f, y, scale, clip) for f, y in zip(fit.tolist(), outcome, strict=True)
    ]
    for size in range(1, 71):
        for first in (0, 1, 2, 3, 5, 7, 70):  # and so other alignments in memory
            part, out = slice(first, first + size), np.empty(size, dtype=np.int16)
            LOGISTIC.levels(fit[part], outcome[part], (scale, LEVELS / clip, float(LEVELS)), out)
            assert out.tolist() == expected[part]


def test_curved_rows_weigh_by_the_chance_and_are_never_longer():
    rows = RNG.integers(-LEVELS, LEVELS + 1, (3, 500)).astype(np.int16)
    levels = RNG.integers(-LEVELS, LEVELS + 1, 500).astype(np.int16)
    levels[:3] = 0, LEVELS // 2, -LEVELS
    curved, p = curved_rows(rows, levels), np.abs(levels) / LEVELS
    assert (np.abs(curved.astype(int)) <= np.abs(rows.astype(int))).all()
    assert np.abs(curved - 2 * np.sqrt(p * (1 - p)) * rows).max() <= 1
    assert (curved[:, 1] == rows[:, 1]).all()
    assert not curved[:, [0, 2]].any()


def test_one_row_moves_the_curved_gram_by_its_own_term_alone():
    X, y = classes(60, 4, seed=1)
    short = ShortRows(np.arange(5), 0.8, constant=5000)

    def gram(kept):
        point = next(every_design(X[kept], y[kept] - 0.5, LOGISTIC)).start(0.01)
        point.add(0, 90)
        point.add(4, -30)
        return point.curved_gram(short)

    whole = gram(np.arange(60))
    for i in range(60):
        moved = whole - gram(np.delete(np.arange(60), i))
        assert (moved == gram(np.array([i]))).all()
        assert np.trace(moved) <= 0.8**2 * LEVELS**2
    assert np.trace(exact_gram(short.of(next(every_design(X, y, LOGISTIC)).columns)[0])) > np.trace(
        whole
    )
