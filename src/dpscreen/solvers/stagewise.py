"""Forward stagewise regression: one small signed step along one feature at a time.

No other weight shrinks, so a step touches one column. How far the steps go is fixed beforehand, in
whole numbers of a grain, so that sums stay exact; who chooses the feature is an argument. The loop
knows nothing of privacy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dpscreen._core.arrays import Integers, Mask
from dpscreen.privacy import ZCDP
from dpscreen.rows.lattice import ExactPoint
from dpscreen.solvers import rules
from dpscreen.solvers.base import (
    MOST_GRAINS,
    Admission,
    Path,
    Selector,
    Solution,
    Task,
    intercept_move,
    mean_cost,
    release_mean_move,
    rescaled,
    vertex_path,
)
from dpscreen.solvers.frank_wolfe import Vertex, frank_wolfe, zero_start
from dpscreen.solvers.refit import Refit, refit, refitted_features

GRAINS = 2**10
"""Into how many grains the last, smallest step is divided: the intercept moves by grains."""

Choose = Callable[[int, ExactPoint], Vertex]
"""Looks at a point before step t = 0, 1, … and names the feature and the sign of the step."""


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
    """How many steps there are, when estimates are renewed, and what each release costs."""

    n_iter: int
    rescale_at: frozenset[int]
    rescale_cost: ZCDP
    intercept_at: frozenset[int]
    intercept_cost: ZCDP
    step_cost: ZCDP

    @classmethod
    def of(cls, task: Task, part: float = 1.0) -> Schedule:
        """Divide what is left of the budget, or a part of it."""
        regime, choices, n_iter = task.regime, task.choices, task.path_steps
        when = rules.rescale_times(regime) if task.rescales else ()
        rescale_at = rules.at_steps(when, n_iter) - {n_iter}
        when = rules.intercept_times(regime) if choices.intercept else ()
        intercept_at = rules.at_steps(when, n_iter)
        rescale_cost = task.spending.share(rules.rescale_share(regime))
        intercept_cost = task.spending.share(rules.INTERCEPT_SHARE) / max(1, len(intercept_at))
        reserved = len(rescale_at) * rescale_cost + len(intercept_at) * intercept_cost
        step_cost = ZCDP((task.spending.remaining * Fraction(part)).rho - reserved.rho) / n_iter
        return cls(n_iter, rescale_at, rescale_cost, intercept_at, intercept_cost, step_cost)


class StagewiseRun:
    """The private side of the stagewise loop: who chooses, and what is renewed on the way.

    `chosen` are the features that stand out after the refit; None: those that the path left.
    """

    chosen: Mask | None = None

    def __init__(self, task: Task, plan: Schedule) -> None:
        self._task = task
        self._plan = plan
        self.deviation = task.deviation
        self._admission = Admission(task.candidates, task.choices.max_features)
        cell_clip = rules.cell_clip(task.regime, spread=task.spread)
        self._selector = Selector(
            task.spending,
            self._admission,
            plan.step_cost,
            purpose="stagewise step",
            cell_clip=cell_clip,
        )
        self._selector.clip_at(task.clip(self.deviation))

    def begin(self, point: ExactPoint) -> None:
        """Leave the point at zero."""

    def finish(self, point: ExactPoint, found: Refit) -> None:
        """Leave the point where the refit has come to."""

    def choose(self, t: int, point: ExactPoint) -> Vertex:
        """Renew estimates when they are due, then choose."""
        self.renew(t, point)
        return self._selector.choose(point)

    def renew(self, t: int, point: ExactPoint) -> None:
        """Renew the residuals' scale and the intercept, if that is due before step t."""
        if t in self._plan.rescale_at:
            self._rescale(point)
        self.centre(t, point)

    def centre(self, t: int, point: ExactPoint) -> None:
        """Move the intercept, if that is due before step t."""
        if t in self._plan.intercept_at:
            self.move_constant(point, self.constant_move(point, self._plan.intercept_cost))

    def constant_move(self, point: ExactPoint, cost: ZCDP) -> float:
        """Release how far to move the intercept."""
        clip = rules.intercept_clip(self._selector.clip, self.deviation)
        return intercept_move(self._task, point, clip, cost)

    def move_constant(self, point: ExactPoint, by: float) -> None:
        """Move the intercept, by a whole number of grains."""
        grains = round(rules.clamp(by / point.scale, -MOST_GRAINS, MOST_GRAINS))
        point.add(self._task.n_features, grains)

    def _rescale(self, point: ExactPoint) -> None:
        self.deviation = rescaled(self._task, point, self.deviation, self._plan.rescale_cost)
        self._selector.clip_at(self._task.clip(self.deviation))


def solve_stagewise(
    task: Task, run_of: Callable[[Task, Schedule], StagewiseRun] = StagewiseRun
) -> Solution:
    """Take small steps along signed features, each chosen by a noisy maximum, then refit."""
    part = 1 - rules.refit_share(task.regime) if task.refits else 1.0
    plan = Schedule.of(task, part)
    run = run_of(task, plan)
    grain = grain_size(first_step=task.first_step(plan.n_iter), n_iter=plan.n_iter)
    point = task.design.start(grain)
    run.begin(point)
    path = _walked(task, point, plan, run)
    _drop_small(point, task, run.deviation)
    run.centre(plan.n_iter, point)
    chosen = point.weights != 0
    chosen[task.n_features :] = True
    task.keep(Solution(point.weights, plan.n_iter, path, run.deviation, chosen))
    deviation = _refitted(task, point, path, run) if task.refits else run.deviation
    stands_out = chosen if run.chosen is None else run.chosen
    return Solution(point.weights, plan.n_iter, path, deviation, stands_out)


def _walked(task: Task, point: ExactPoint, plan: Schedule, run: StagewiseRun) -> Path | None:
    """Take all steps; where no feature is seen to vary only those of the intercept."""
    if not task.idle:
        path = stagewise(point, decaying_grains(plan.n_iter), choose=run.choose)
        return replace(path, n_candidates=len(task.candidates))
    for t in range(plan.n_iter):
        run.renew(t, point)
    return None


def _refitted(task: Task, point: ExactPoint, path: Path | None, run: StagewiseRun) -> float:
    """Refit what was chosen, for all that is left; return the residuals' deviation before it."""
    deviation = run.deviation
    if rules.rescale_times(task.regime) and task.rescales:
        cost = task.spending.share(rules.rescale_share(task.regime))
        cost = min(cost, task.spending.remaining / 4)  # where little is left
        deviation = rescaled(task, point, deviation, cost)
    entered = np.zeros(0, dtype=np.int64) if path is None else path.features
    features = refitted_features(task, point.weights, entered)
    if not features.size and not task.choices.intercept:
        return deviation
    last = mean_cost(task)
    budget = ZCDP(task.spending.remaining.rho - 2 * last.rho)
    run.finish(point, refit(task, point, features, deviation, budget))
    if last.rho:
        run.move_constant(point, release_mean_move(task, point, deviation, last))
    return deviation


def _drop_small(point: ExactPoint, task: Task, deviation: float) -> None:
    weights = point.weights[: task.n_features]
    small = (weights != 0) & (np.abs(weights) < task.smallest_weight(deviation))
    for feature in np.flatnonzero(small):
        point.zero(int(feature))


def solve_frank_wolfe(task: Task) -> Solution:
    """Run clipped DP-FW; the constant is one more candidate, inside the ball (Lemma 10)."""
    n_iter, n_candidates = task.n_steps, task.design.n_features
    radius = task.choices.radius or task.first_step(n_iter) * (n_iter + 1) / 2
    constants = range(task.n_features, n_candidates)
    admission = Admission(task.candidates, task.choices.max_features, constants=constants)
    cost = task.spending.remaining / n_iter
    selector = Selector(task.spending, admission, cost, purpose="Frank-Wolfe step")
    selector.clip_at(task.clip(task.deviation))
    chosen: list[Vertex] = []

    def choose(point: ExactPoint) -> Vertex:
        chosen.append(selector.choose(point))
        return chosen[-1]

    start = zero_start(n_candidates)
    weights = frank_wolfe(task.design, start, radius=radius, n_iter=n_iter, choose=choose)
    path = replace(vertex_path(chosen, radius), n_candidates=len(task.candidates))
    return Solution(weights, n_iter, path, task.deviation)


# --- screening from released selections -----------------------------------------------------------

FREE_SCREEN = "free-screen"


class ScreeningRun(StagewiseRun):
    """A stagewise run that halfway drops the candidates that it never selected.

    It does so if at most two thirds of the steps so far selected a new feature. The rule sees
    released selections and public numbers only, so it is charged nothing (docs/privacy.md,
    Lemma 7).
    """

    def choose(self, t: int, point: ExactPoint) -> Vertex:
        """Screen when it is due, then choose among the features that are left."""
        due = t == rules.screening_step(self._plan.n_iter)
        if due and rules.screens(self._admission.n_entered, t):
            self._admission.close()
        return super().choose(t, point)


def solve_free_screen(task: Task) -> Solution:
    """Take a stagewise path that is screened halfway, then refit."""
    return solve_stagewise(task, ScreeningRun)


def before_screening(path: Path) -> Path:
    """Return the steps to which all candidates were offered, whatever the rule decided."""
    n = rules.screening_step(len(path))
    return replace(path, features=path.features[:n], signs=path.signs[:n], steps=path.steps[:n])


def screened(path: Path | None, n_features: int) -> Mask:
    """Return which features the path screened, from its first half alone."""
    if path is None:
        return np.zeros(n_features, dtype=bool)
    first = before_screening(path)
    selected = np.unique(first.features)
    found = np.full(n_features, rules.screens(len(selected), len(first)))
    found[selected] = False
    return found
