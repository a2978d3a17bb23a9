"""Private selection of features: forward stagewise paths.

A stagewise path takes one small signed step along one feature at a time, selected by a noisy
maximum of clipped scores. No other weight shrinks, so a step touches one column. How far the steps
go is fixed beforehand, in whole numbers of a grain, so that sums stay exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dpscreen._core.arrays import Integers, clamp
from dpscreen.privacy import ZCDP, SignedNoisyMax, sensitivity
from dpscreen.rows.lattice import UNITS, ExactPoint
from dpscreen.rows.sums import LEVELS
from dpscreen.solvers import rules
from dpscreen.solvers.base import (
    Path,
    Spending,
    Task,
    intercept_move,
    release_scale,
    scale_cost,
)
from dpscreen.solvers.frank_wolfe import Vertex

GRAINS = 2**10
"""Number of grains in the last, smallest step (conventional)."""

Choose = Callable[[int, ExactPoint], Vertex]
"""Takes a point before step t = 0, 1, … and returns the feature and the sign of the step."""


class Selector:
    """Chooses a signed candidate by noisy max over clipped sums.

    Candidates are the features offered, until `limit` of them entered, and constants, which are
    never shut out. Cells are clipped to ±cell_clip for the choice alone; the point moves along
    whole columns (docs/theory/mechanisms.md, Lemmas 1, 2 and 7; docs/theory/exactness.md, Lemma 8).
    """

    def __init__(
        self,
        spending: Spending,
        features: Integers,
        cost: ZCDP,
        *,
        purpose: str,
        cell_clip: float = 1.0,
        limit: int | None = None,
        constants: Sequence[int] = (),
    ) -> None:
        self._accountant, self._cost, self._purpose = spending.accountant, cost, purpose
        self._cell_clip = int(clamp(cell_clip * LEVELS, 1, LEVELS))
        self._limit = len(features) if limit is None else limit
        self._constants, self.entered = list(constants), set[int]()
        self.allowed = np.append(features, self._constants).astype(np.int64)

    def enter(self, candidate: int) -> None:
        """Count a feature that was chosen; the last one admitted closes the door."""
        if candidate not in self._constants:
            self.entered.add(candidate)
            if len(self.entered) == self._limit:
                self.close()

    def close(self) -> None:
        """Admit no feature from now on that was not selected before."""
        self.allowed = np.array(sorted(self.entered) + self._constants, dtype=np.int64)

    def clip_at(self, clip: float) -> None:
        """Clip residuals there from now on; the noise follows."""
        self.clip = clip
        change = sensitivity.clipped_gradient(clip=clip, cell_clip=self._cell_clip / LEVELS)
        self._mechanism = SignedNoisyMax.of_cost(self._cost, sensitivity=change, unit=clip / UNITS)

    def choose(self, point: ExactPoint) -> Vertex:
        """Release the candidate and the sign of the next step."""
        allowed = self.allowed
        scores = point.signed_scores(self.clip, allowed, self._cell_clip)
        place, sign = self._accountant.release(self._mechanism, scores, purpose=self._purpose)
        candidate = int(allowed[place])
        self.enter(candidate)
        return Vertex(candidate, -sign)  # a step against the gradient


# --- stagewise paths ------------------------------------------------------------------------------


def decaying_grains(n_iter: int) -> Integers:
    """Return T, T − 1, …, 1 in grains: steps that decay like 1 − t/T."""
    return GRAINS * np.arange(n_iter, 0, -1, dtype=np.int64)


def grain_size(*, first_step: float, n_iter: int) -> float:
    """Return the grain with which the first of `decaying_grains` is `first_step` long."""
    return first_step / (GRAINS * n_iter)


def stagewise(point: ExactPoint, grains: Integers, *, choose: Choose) -> Path:
    """Take every step from the point, in place, and return what was done."""
    chosen = np.empty((2, len(grains)), dtype=np.int64)
    for t, grain in enumerate(grains):
        vertex = choose(t, point)
        point.add(vertex.feature, vertex.sign * int(grain))
        chosen[:, t] = vertex
    return Path(chosen[0], chosen[1], (point.scale * grains).astype(np.float64))


@dataclass(frozen=True)
class Schedule:
    """How many steps a path has, and what each release costs.

    Halfway the residuals' scale is estimated anew and the intercept moves.
    """

    n_iter: int
    scale: ZCDP
    intercept: ZCDP
    step: ZCDP

    @classmethod
    def of(cls, task: Task, budget: ZCDP, *, n_intercepts: int = 1) -> Schedule:
        """Divide a budget among the steps and what is released on the way."""
        n_iter, scale = task.path_steps, scale_cost(task, budget)
        intercept = budget * Fraction(rules.INTERCEPT_SHARE * int(task.choices.intercept))
        left = ZCDP(budget.rho - scale.rho - intercept.rho)
        return cls(n_iter, scale, intercept / n_intercepts, left / n_iter)


class PathRun:
    """The private side of a stagewise path: what selects, and what is renewed on the way."""

    def __init__(self, task: Task, plan: Schedule) -> None:
        self._task, self._plan = task, plan
        self.scale = task.residual_scale
        self._selector = Selector(
            task.spending,
            task.candidates,
            plan.step,
            purpose="stagewise step",
            cell_clip=rules.cell_clip(task.regime, spread=task.spread),
            limit=task.choices.max_features,
        )
        self._selector.clip_at(task.clip(self.scale))

    def choose(self, t: int, point: ExactPoint) -> Vertex:
        """Release the residuals' scale and move the intercept when that is due, then select."""
        task, plan = self._task, self._plan
        if t == plan.n_iter // 2:
            self.scale = release_scale(task, point, self.scale, plan.scale)
            self._selector.clip_at(task.clip(self.scale))
            if plan.intercept.rho:
                by = intercept_move(task, point, self.scale, plan.intercept)
                point.shift(np.array([task.n_features]), np.array([by]))
        return self._selector.choose(point)


def select(
    task: Task, budget: ZCDP, run_of: type[PathRun]
) -> tuple[ExactPoint, Path | None, float]:
    """Release a path, and return the point that it leads to and the residuals' scale."""
    plan = Schedule.of(task, budget)
    grain = grain_size(first_step=task.first_step(plan.n_iter), n_iter=plan.n_iter)
    point = task.start_point(grain)
    run = run_of(task, plan)
    path = stagewise(point, decaying_grains(plan.n_iter), choose=run.choose)
    return point, replace(path, n_candidates=len(task.candidates)), run.scale
