"""A second loss fits: whatever a residual is, steps give the same bits wherever the rows lie."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from dpscreen.privacy import ZCDP, Accountant, SeededNoise
from dpscreen.rows.loss import SQUARED, Loss
from dpscreen.rows.parts import PartedDesign, RowPart
from dpscreen.rows.source import ArrayRows, PublicUnits
from dpscreen.rows.sparse import SparseRows
from dpscreen.rows.streamed import MappedArrays, StreamedRows
from dpscreen.rows.sums import LEVELS
from dpscreen.solvers.base import Choices, Spending, Task
from dpscreen.solvers.rules import Regime
from dpscreen.solvers.stagewise import solve_stagewise


def ramp_residuals(rows, fit, target, scale, levels_per_unit, most, out):
    """Set out[a] to a sigmoid of three lines, less the target, which is ±1/2 for two classes."""
    for a in range(out.size):
        i = a if rows is None else rows[a]
        sigmoid = min(max(-0.5, 0.25 * (scale * np.float64(fit[i]))), 0.5)
        out[a] = np.int16(min(max(-most, np.rint((sigmoid - target[i]) * levels_per_unit)), most))


RAMP = Loss("ramp", ramp_residuals, bound=1.0)
LOSSES = pytest.mark.parametrize("loss", [SQUARED, RAMP], ids=lambda loss: loss.name)


class Halves(PartedDesign):
    """Rows in two places, as on a cluster."""

    def __init__(self, X, y, units):
        super().__init__(units.n_candidates, units.loss)
        middle = len(X) // 2
        sent = pickle.loads(pickle.dumps(units))  # as to a worker
        self._parts = [
            RowPart(sent.lattice_design(X[half], y[half]))
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
    return solve_stagewise(Task(spending, design, 0.5, 0.35, Choices(clip=clip)))


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


def test_the_losses_are_told_apart():
    X, y = classes(4000, 6, seed=3)
    squared, ramp = (
        solved(next(every_design(X, y, loss)), n_rows=len(X)).weights for loss in (SQUARED, RAMP)
    )
    assert squared.tobytes() != ramp.tobytes()


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


def test_a_loss_is_a_value_that_travels_by_name():
    again = pickle.loads(pickle.dumps(RAMP))
    assert again == RAMP
    assert again.loop is ramp_residuals


def test_a_loss_costs_no_import_of_the_compiler():
    code = "import dpscreen.rows.loss, sys; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
