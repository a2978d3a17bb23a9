"""The ways to find coefficients, each a small function of a problem, its noise and a recorder.

"Published" ones use the paper's constants, random start and all; their stated ε does not hold.
"Proven" ones spend the same stated total on mechanisms whose cost is proved, from a zero start.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen.paper.problem import Problem, Recorder
from dpscreen.planning.methods import FitRequest, estimator
from dpscreen.privacy import ZCDP, Accountant, Noise
from dpscreen.rows.design import Design, GramDesign, Point
from dpscreen.rows.lattice import ExactPoint, RelaxedRule
from dpscreen.solvers import frank_wolfe as steps
from dpscreen.solvers.frank_wolfe import Choose, Screen, frank_wolfe, steepest_vertex, zero_start
from dpscreen.solvers.screening import (
    Elimination,
    Rule,
    proven_rnm,
    published_adp,
    published_rnm,
    published_scores,
)


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a run leaves: coefficients, and what else it counted or chose."""

    weights: Array
    counts: dict[str, float] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)


Fitter = Callable[[Problem, Noise, Recorder], Fitted]
"""Fits a problem with this noise and lets the recorder watch. It must be picklable."""


def _walk(
    problem: Problem,
    choose: Choose[Point],
    recorder: Recorder,
    *,
    screen: Screen[Point] | None = None,
    start: Array | None = None,
) -> Array:
    """Run Frank-Wolfe on the folded rows, from zero unless told otherwise."""
    return frank_wolfe(
        problem.design,
        zero_start(problem.design.n_features) if start is None else start,
        radius=problem.radius,
        n_iter=problem.n_iter,
        choose=choose,
        screen=screen,
        watch=recorder.watch_until(problem.n_iter),
    )


# --- published: the paper's constants ---------------------------------------------------------

Screening = Callable[[Accountant, Problem], Screen[Point]]


@dataclass(frozen=True)
class Published:
    """Frank-Wolfe with the paper's noisy choice and random start, and possibly a screening step.

    Steps that are screened spend (ε₁, δ₁). Without screening they spend the whole stated budget, so
    that every method compared has the same total; the paper does not say what its DP-FW had.
    """

    screening: Screening | None = None

    def __call__(self, problem: Problem, noise: Noise, recorder: Recorder) -> Fitted:
        """Run once."""
        accountant = Accountant(noise, limit=None)
        screen = Counted(self.screening(accountant, problem)) if self.screening else None
        start = steps.starting_point(
            "random", problem.design.n_features, radius=problem.radius, noise=noise
        )
        choose = self._choice(accountant, problem)
        weights = _walk(problem, choose, recorder, screen=screen, start=start)
        return Fitted(weights, screen.counts if screen else {})

    def _choice(self, accountant: Accountant, problem: Problem) -> Choose[Point]:
        budget = problem.budget.optimisation if self.screening else problem.budget.total
        return steps.published_choice(
            accountant,
            budget,
            radius=problem.radius,
            n_iter=problem.n_iter,
            n_rows=problem.design.n_rows,
        )


class Counted:
    """A screening step that counts how many coordinates it has set to zero."""

    def __init__(self, screen: Screen[Point]) -> None:
        self._screen = screen
        self.screened = 0

    def __call__(self, point: Point, t: int) -> Iterable[int]:
        """Screen, and count."""
        found = list(self._screen(point, t))
        self.screened += len(found)
        return found

    @property
    def counts(self) -> dict[str, float]:
        """The count as a metric."""
        return {"screened": float(self.screened)}


def rnm(accountant: Accountant, problem: Problem) -> Screen[Point]:
    """Screen as Algorithm 2 does."""
    return published_rnm(
        accountant,
        problem.design,
        problem.budget.screening,
        radius=problem.radius,
        n_iter=problem.n_iter,
    )


def uniform_zeroing(accountant: Accountant, problem: Problem) -> Screen[Point]:
    """Screen when Algorithm 2 does, but whichever coordinate chance names (erratum E7)."""
    screen = rnm(accountant, problem)
    n_features = problem.design.n_features

    def zero_any(point: Point, t: int) -> Iterable[int]:
        return [_uniform_index(accountant.noise, n_features) for _ in screen(point, t)]

    return zero_any


def _uniform_index(noise: Noise, n_features: int) -> int:
    return int(noise.uniform(1)[0] * n_features)


@dataclass(frozen=True)
class When:
    """After which iterations to screen: every k-th, or only the last (None)."""

    every: int | None

    def iterations(self, n_iter: int) -> frozenset[int]:
        """List them."""
        every = self.every or n_iter
        return frozenset(range(every, n_iter + 1, every))


@dataclass(frozen=True)
class Adp:
    """Screen as Algorithm 1 does, at some iterations."""

    when: When

    def __call__(self, accountant: Accountant, problem: Problem) -> Screen[Point]:
        """Return the screening step."""
        return published_adp(
            accountant,
            problem.design,
            problem.budget.screening,
            radius=problem.radius,
            at=self.when.iterations(problem.n_iter),
        )


@dataclass(frozen=True)
class WithoutNoise:
    """Zero what Eq. 1 rejects, without noise, at some iterations (Experiment A)."""

    when: When

    def __call__(self, _accountant: Accountant, problem: Problem) -> Screen[Point]:
        """Return the screening step."""
        at = self.when.iterations(problem.n_iter)

        def screen(point: Point, t: int) -> Iterable[int]:
            if t not in at:
                return ()
            scores = published_scores(problem.design, point, radius=problem.radius)
            return [int(index) for index in np.flatnonzero(scores < 0)]

        return screen


LONGER = 3
"""How many times the iterations "more iterations" stands for; the paper does not say."""


def longer_rnm(problem: Problem, noise: Noise, recorder: Recorder) -> Fitted:
    """Run RNM-Screen for more iterations, over which its budget then spreads thinner."""
    longer = problem.longer(LONGER)
    fitted = Published(rnm)(longer, noise, recorder)
    return Fitted(fitted.weights, fitted.counts, {"n_iter": longer.n_iter})


def oracle_k(problem: Problem, noise: Noise, recorder: Recorder) -> Fitted:
    """Keep the K largest coefficients of a DP-FW run; K is read off the reference."""
    fitted = Published()(problem, noise, recorder)
    return Fitted(keep_largest(fitted.weights, problem.n_support))


def keep_largest(weights: Array, count: int) -> Array:
    """Set all but the `count` largest absolute values to zero."""
    kept = np.zeros_like(weights)
    largest = np.argsort(-np.abs(weights), kind="stable")[:count]
    kept[largest] = weights[largest]
    return kept


# --- not private ------------------------------------------------------------------------------


def np_fw(problem: Problem, _noise: Noise, recorder: Recorder) -> Fitted:
    """Plain Frank-Wolfe from zero."""
    return Fitted(_walk(problem, steepest_vertex, recorder))


def preselect_k(problem: Problem, _noise: Noise, _recorder: Recorder) -> Fitted:
    """Plain Frank-Wolfe on the K features of largest L1 norm."""
    chosen = np.flatnonzero(keep_largest(problem.rows.feature_sizes, problem.n_support))
    whole = problem.design
    part = GramDesign(
        whole.gram[np.ix_(chosen, chosen)],
        whole.moment[chosen],
        whole.target_square,
        n_rows=whole.n_rows,
    )
    weights = np.zeros(whole.n_features)
    weights[chosen] = frank_wolfe(
        part,
        zero_start(part.n_features),
        radius=problem.radius,
        n_iter=problem.n_iter,
        choose=steepest_vertex,
    )
    return Fitted(weights)


@dataclass(frozen=True)
class Eliminating:
    """Plain Frank-Wolfe from zero that leaves out for good what a rule rejects."""

    rule: Rule

    def __call__(self, problem: Problem, _noise: Noise, recorder: Recorder) -> Fitted:
        """Run once."""
        elimination = Elimination(problem.design, self.rule, radius=problem.radius)
        weights = _walk(problem, elimination.choose, recorder, screen=elimination.screen)
        return Fitted(weights, {"screened": float(np.count_nonzero(~elimination.active))})


@dataclass(frozen=True)
class Steepest:
    """Plain Frank-Wolfe from zero with a screening step whose victims may come back."""

    screening: Screening

    def __call__(self, problem: Problem, noise: Noise, recorder: Recorder) -> Fitted:
        """Run once."""
        screen = Counted(self.screening(Accountant(noise, limit=None), problem))
        return Fitted(_walk(problem, steepest_vertex, recorder, screen=screen), screen.counts)


def lasso(problem: Problem, _noise: Noise, _recorder: Recorder) -> Fitted:
    """Return the LASSO solution that the others are measured against."""
    return Fitted(problem.reference)


# --- proven: every mechanism's cost is proved --------------------------------------------------


@dataclass(frozen=True)
class Proven:
    """Frank-Wolfe from zero with clipped sums, exactly, and possibly screening.

    T = M/4 within [6, 200], where M = n√(2ρ)/ln(2d) measures how much signal ρ can carry. The clip
    is the target's standard deviation and B its largest |y|; both look at the data, as the paper's
    own choices do (erratum E8).
    """

    screening_share: Fraction

    def __call__(self, problem: Problem, noise: Noise, recorder: Recorder) -> Fitted:
        """Run once."""
        limit = ZCDP.within(problem.budget.total)
        accountant = Accountant(noise, limit=limit)
        n_iter = affordable_steps(limit, problem.design)
        optimisation = limit * ((1 - self.screening_share) / n_iter)
        screening = limit * (self.screening_share / n_iter)
        weights = frank_wolfe(
            problem.rows.lattice,
            zero_start(problem.design.n_features),
            radius=problem.radius,
            n_iter=n_iter,
            choose=_proven_choice(accountant, optimisation, problem),
            screen=_proven_rnm(accountant, screening, problem) if self.screening_share else None,
            watch=recorder.watch_until(n_iter),
        )
        return Fitted(weights, settings=_proven_settings(problem, limit, n_iter))


def affordable_steps(limit: ZCDP, design: Design) -> int:
    """Return M/4 within [6, 200], with M = n√(2ρ)/ln(2d)."""
    signal = design.n_rows * math.sqrt(2 * float(limit)) / math.log(2 * design.n_features)
    return int(np.clip(round(signal / 4), 6, 200))


def _proven_choice(accountant: Accountant, cost: ZCDP, problem: Problem) -> Choose[ExactPoint]:
    rule = _rule(problem)
    clip = min(problem.rows.target_deviation, rule.residual_bound)
    return steps.proven_choice(accountant, cost, clip=clip)


def _proven_rnm(accountant: Accountant, cost: ZCDP, problem: Problem) -> Screen[ExactPoint]:
    # The rule holds at every point of the ball, however that was chosen; only its own sums must
    # not be clipped (Lemma 6).
    return proven_rnm(accountant, problem.rows.lattice, cost, rule=_rule(problem))


def _rule(problem: Problem) -> RelaxedRule:
    return RelaxedRule(problem.radius, problem.rows.target_bound)


def _proven_settings(problem: Problem, limit: ZCDP, n_iter: int) -> dict[str, Any]:
    return {
        "n_iter": n_iter,
        "rho": float(limit),
        "clip": problem.rows.target_deviation,
        "target_bound": problem.rows.target_bound,
    }


@dataclass(frozen=True)
class OwnRules:
    """A method of the register that sets itself; only |y| ≤ B looks at the data (erratum E8).

    Its error is that of its predictions: it has an intercept, and clips features as it was fitted.
    """

    name: str

    def __call__(self, problem: Problem, noise: Noise, _recorder: Recorder) -> Fitted:
        """Run once."""
        X, y, bound = problem.rows.whole.X, problem.rows.whole.y, problem.rows.target_bound
        box = np.tile((-1.0, 1.0), (X.shape[1], 1))
        request = FitRequest(problem.budget.total, box, (-bound, bound), random_state=noise)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the study's seeds and of the paper's δ = 1/n
            model = estimator(self.name, request).fit(X, y)
        error = float(np.mean((model.predict(X) - y) ** 2))
        settings = {"n_iter": model.n_iter_, "rho": model.privacy_.rho, "target_bound": bound}
        return Fitted(model.coef_, {"mse": error}, settings)
