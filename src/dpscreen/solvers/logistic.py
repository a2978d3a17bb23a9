"""Private steps for outcomes that are yes or no: small moves of log-odds, then Newton steps.

A residual is a chance less an outcome and lies in [−1, 1], whatever the weights; so nothing has to
be known of its scale. The path and the refit are those of least squares (`stagewise`, `refit`) with
another loss. What is added here is the number of rows of each class, and the intercept, which
starts where that number says (docs/yes-no.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpscreen._core.arrays import Array, Integers, Mask
from dpscreen.privacy import ZCDP
from dpscreen.rows.lattice import ExactPoint
from dpscreen.rows.loss import LOGISTIC
from dpscreen.rows.source import PublicUnits, RowSource
from dpscreen.rows.sums import LEVELS
from dpscreen.solvers import rules
from dpscreen.solvers.base import Choices, Solution, Spending, Task
from dpscreen.solvers.belief import sparse_threshold, sure_threshold
from dpscreen.solvers.placing import is_yes_no, place_rows
from dpscreen.solvers.refit import Refit
from dpscreen.solvers.stagewise import Schedule, StagewiseRun, solve_stagewise
from dpscreen.solvers.target import PlacedTarget

OUTCOME_BOUNDS = np.array([0.0, 1.0])
CLASS_SHARE = 0.01
LOG_ODDS = 2.0
"""The deviation that steps are measured in: 1/√(p(1 − p)) at p = ½, where a row tells most."""

ALL_NOISE = 30.0
"""How large n√(2ρ) must be for each feature, for all of them to be refitted."""

LONGEST_MOVE = 1.0
"""How far the intercept moves at once, at most: where outcomes are rare the noise is large."""


def yes_count(y: Array) -> Integers:
    """Return how many outcomes are 1."""
    return np.array([np.count_nonzero(y == 1)], dtype=np.int64)


@dataclass(frozen=True)
class OutcomeShare:
    """The released share of rows with outcome 1, inside (0, 1)."""

    share: float

    @property
    def log_odds(self) -> float:
        """Return the log-odds of the share."""
        return math.log(self.share / (1 - self.share))

    @property
    def variance(self) -> float:
        """Return p(1 − p)."""
        return self.share * (1 - self.share)


@dataclass(frozen=True, kw_only=True)
class OutcomeTask(Task):
    """A task whose target is 0 or 1: the released share of 1, and what features are in its units.

    `binary` are the columns declared 0 and 1.
    """

    share: OutcomeShare
    binary: Mask
    units: PublicUnits

    @property
    def refits_all(self) -> bool:
        """Whether all features are refitted: with fewer rows for each than least squares needs."""
        for_each = self.regime.n_rows / self.n_features
        noise = math.sqrt(2 * self.regime.rho)
        return for_each * noise >= ALL_NOISE and for_each >= rules.ALL_ROWS


def release_share(spending: Spending, rows: RowSource) -> OutcomeShare:
    """Release the share of rows with outcome 1; no rarer, either way, than the noise can tell.

    (docs/yes-no.md, Lemma 31)
    """
    noisy, noise = spending.release_sum(
        int(rows.target_total(yes_count)[0]),
        most=1,
        bound=1.0,
        cost=spending.share(CLASS_SHARE),
        purpose="the number of rows of the second class",
    )
    rarest = min(0.5, noise / spending.regime.n_rows)
    return OutcomeShare(rules.clamp(noisy / spending.regime.n_rows, rarest, 1 - rarest))


def place_outcomes(
    spending: Spending, rows: RowSource, feature_bounds: Array, choices: Choices
) -> tuple[OutcomeTask, PublicUnits]:
    """Release the share of outcomes and where features lie, and put the rows on the lattice.

    Columns of yes and no that are not seen to vary are offered too: a level that one row in fifty
    has may tell most of all about a rare outcome, and one that no row has has no gradient.
    """
    share = release_share(spending, rows)
    task, units = place_rows(
        spending,
        rows,
        (feature_bounds, OUTCOME_BOUNDS),
        choices,
        target=PlacedTarget(0.0, LOG_ODDS),
        loss=LOGISTIC,
    )
    binary = is_yes_no(feature_bounds)
    offered = np.union1d(task.candidates, np.flatnonzero(binary))
    offered_task = vars(task) | {"moving": offered}
    return OutcomeTask(**offered_task, share=share, binary=binary, units=units), units


class OutcomeRun(StagewiseRun):
    """A stagewise run whose intercept starts at the log-odds of all rows together."""

    def __init__(self, task: OutcomeTask, plan: Schedule) -> None:
        super().__init__(task, plan)
        self._share = task.share
        if task.refits_all:  # a clip would lead beyond the answer (docs/yes-no.md, Lemma 33)
            self._selector.clip_at(LOGISTIC.bound)

    def begin(self, point: ExactPoint) -> None:
        """Move the intercept to where the released share says."""
        if self._task.choices.intercept:
            self.move_constant(point, self._share.log_odds)

    def finish(self, point: ExactPoint, found: Refit) -> None:
        """Drop weights that are as good as noise, and tell which features stand out of it."""
        offered = len(self._task.candidates)
        few = found.sizes < sparse_threshold(found.sizes, offered)
        for feature in found.features[few]:
            point.zero(int(feature))
        sure = ~few & (found.sure_sizes >= sure_threshold(offered))
        self.chosen = np.isin(np.arange(point.weights.size), found.features[sure])

    def constant_move(self, point: ExactPoint, cost: ZCDP) -> float:
        """Release how far to move the intercept: −Σr/(np(1 − p)) (docs/yes-no.md, Lemma 31)."""
        return release_intercept_move(self._task, point, self._share, cost)


def release_intercept_move(task: Task, point: ExactPoint, share: OutcomeShare, cost: ZCDP) -> float:
    """Release −Σr/(np(1 − p)), of which one row moves the sum by at most 1.

    (docs/yes-no.md, Lemma 31)
    """
    noisy, noise = task.spending.release_sum(
        point.residual_total(1.0), most=LEVELS, bound=1.0, cost=cost, purpose="the intercept"
    )
    move = -rules.shrunk(noisy, noise) / (task.regime.n_rows * share.variance)
    return rules.clamp(move, -LONGEST_MOVE, LONGEST_MOVE)


def solve_logistic(task: OutcomeTask) -> Solution:
    """Take small steps along signed features, each chosen by a noisy maximum, then refit."""
    return solve_stagewise(task, lambda _, plan: OutcomeRun(task, plan))
