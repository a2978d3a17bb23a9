"""Worst cases of PrivateLogistic: whole fits, and all of its releases as one observer sees them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpscreen._core.arrays import Array, Integers
from dpscreen.audit.batches import CLAIM, Case, Neighbours, exact_choices, repeated
from dpscreen.models import PrivateLogistic
from dpscreen.privacy import (
    ZCDP,
    Accountant,
    DiscreteGaussian,
    Noise,
    SeededNoise,
    SignedNoisyMax,
)
from dpscreen.rows.lattice import LatticeDesign, on_lattice
from dpscreen.rows.loss import LOGISTIC
from dpscreen.rows.source import ArrayRows
from dpscreen.rows.sums import ShortRows
from dpscreen.solvers.base import Admission, Choices, Selector, Spending
from dpscreen.solvers.frank_wolfe import vertex_scores
from dpscreen.solvers.logistic import OutcomeTask, release_intercept_move, release_share
from dpscreen.solvers.outcome_quality import release_outcome_quality
from dpscreen.solvers.refit import release_moment, release_solver
from dpscreen.solvers.rules import Regime

# Rows that agree; the one more contradicts them all.
AGREED = Neighbours(
    np.tile([[1.0, 1.0], [-1.0, -1.0]], (30, 1)), np.tile([1.0, 0.0], 30), np.ones(2), 0.0
)
# The one more is the only row of its class, and the only one with the feature.
ALONE = Neighbours(np.zeros((40, 1)), np.zeros(40), np.ones(1), 1.0)

FAR = -12.0
"""Log-odds at which the residual of a row of the second class is as good as −1."""


@dataclass(frozen=True)
class WholeOutcomeFit:
    """`PrivateLogistic` from end to end, its quality included, on a few rows."""

    data: Neighbours

    def __call__(self, with_row: bool, runs: int, noise: Noise) -> Array:
        """Return, for every run, the released model and its released quality."""
        X, y = self.data.rows(with_row)
        model = PrivateLogistic(
            epsilon=CLAIM.epsilon,
            delta=CLAIM.delta,
            feature_bounds=(-1, 1),
            n_rows=len(self.data.X),
            random_state=noise,
        )

        def released() -> Array:
            fitted = model.fit(X, y)
            told = (fitted.quality_.no[0], fitted.quality_.yes[-1], fitted.quality_.deviance)
            return np.concatenate((fitted.coef_[0], fitted.intercept_, told))

        return repeated(released, runs)


@dataclass(frozen=True)
class OutcomeReleases:
    """Every release of the model once, each where the row counts most, and all together.

    An observer who knows both data sets weighs each answer by how likely either makes it.
    """

    weaken: float = 1.0

    def __call__(self, with_row: bool, runs: int, noise: Noise) -> Array:
        """Return, for every run, what all releases together say for the row."""
        total = np.zeros(runs)
        for (mechanism, here), (_, there) in zip(_asked(False), _asked(True), strict=True):
            weak = replace(mechanism, scale=mechanism.scale / self.weaken)
            total += _evidence(weak, here, there, with_row, runs, noise)
        return total[:, None]


def _evidence(
    mechanism: Any, here: Integers, there: Integers, with_row: bool, runs: int, noise: Noise
) -> Array:
    """Return, for every run, the log of how much likelier the row makes it, less a constant."""
    values = there if with_row else here
    if isinstance(mechanism, DiscreteGaussian):
        found = mechanism(np.tile(values, runs), noise).reshape(runs, -1)
        return np.asarray(found @ (there - here) * mechanism.unit / mechanism.scale**2)
    chosen = exact_choices(mechanism, np.tile(vertex_scores(values), (runs, 1)), noise)
    gained = vertex_scores(there) - vertex_scores(here)
    return np.asarray(gained[chosen] * (mechanism.unit / mechanism.scale))


class _Listener(Accountant):
    """Keeps what mechanisms are asked, and with which numbers."""

    def release(self, mechanism: Any, values: Any, *, purpose: str) -> Any:
        if isinstance(mechanism, DiscreteGaussian | SignedNoisyMax):
            self.asked.append((mechanism, np.atleast_1d(np.asarray(values, dtype=np.int64))))
        return super().release(mechanism, values, purpose=purpose)

    asked: list[tuple[Any, Integers]]


def _asked(with_row: bool) -> list[tuple[Any, Integers]]:
    """Return mechanisms and numbers of the releases, by the library's own steps."""
    X, y = ALONE.rows(with_row)
    limit = ZCDP.within(CLAIM)
    listener = _Listener(SeededNoise("what is asked"), limit=limit)
    listener.asked = []
    spending = Spending(listener, limit, Regime(len(ALONE.X), 1, float(limit)))
    design = LatticeDesign(np.ascontiguousarray(on_lattice(X).T), y, LOGISTIC)
    task = OutcomeTask(spending, design, 2.0, 1.0, Choices(intercept=False))
    share = release_share(spending, ArrayRows(X, y))
    cost, short = spending.remaining / 5, ShortRows(np.arange(1), 1.0)
    middle, far = design.at(np.zeros(1), scale=1.0), design.at(np.array([FAR]), scale=1.0)
    release_intercept_move(task, far, share, cost)
    selector = Selector(spending, Admission(np.arange(1)), cost, purpose="step")
    selector.clip_at(task.clip(2.0))
    selector.choose(far)
    release_solver(task, middle, short, cost)
    release_moment(spending, far, 1.0, short, cost)
    release_outcome_quality(spending, design, np.array([FAR]), 0.0, cost=cost, in_sample=True)
    return listener.asked


def outcome_cases() -> Iterator[Case]:
    """Yield the cases; the last has 1.5 times too little noise, which the audit must see."""
    for name, title, data in (
        ("private-logistic", "PrivateLogistic, a whole fit", AGREED),
        ("private-logistic-rare", "PrivateLogistic, a whole fit, one row of its class", ALONE),
    ):
        yield Case(name, title, CLAIM, WholeOutcomeFit(data), stands=True, runs=4_000)
    title = "PrivateLogistic, every release"
    yield Case("logistic-releases", title, CLAIM, OutcomeReleases(), stands=True)
    weak = OutcomeReleases(weaken=1.5)
    title += " with noise cut by 1.5"
    yield Case("weak-logistic-releases", title, CLAIM, weak, stands=False, runs=200_000)
