"""The ways to find coefficients, each a small function of a problem, its noise and a recorder.

"Published" ones use the paper's constants, random start and all; their stated ε does not hold.
"Proven" ones spend the same stated total on mechanisms whose cost is proved, from a zero start.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen.paper.problem import Problem, Recorder
from dpscreen.planning.methods import FitRequest, estimator
from dpscreen.privacy import ZCDP, Accountant, Budget, Noise
from dpscreen.rows.design import DenseDesign, Design, GramDesign, Point
from dpscreen.rows.lattice import RelaxedRule
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
    """Frank-Wolfe with the paper's noisy choice and start, and possibly a screening step.

    Steps that are screened spend (ε₁, δ₁). Without screening they spend the whole stated budget, so
    that every method compared has the same total; the paper does not say what its DP-FW had. With
    `whole_loss` the loss is without its ½: gradients and scores double and the noise stays, as if ε
    were twice as large.
    """

    screening: Screening | None = None
    start: str = "random"
    whole_loss: bool = False

    def __call__(self, problem: Problem, noise: Noise, recorder: Recorder) -> Fitted:
        """Run once."""
        if self.whole_loss:
            stated = problem.budget.total
            doubled = Budget(2 * stated.epsilon, stated.delta)
            problem = replace(problem, budget=replace(problem.budget, total=doubled))
        accountant = Accountant(noise, limit=None)
        screened = Screened(self.screening, accountant, problem)
        radius, n_iter, design = problem.radius, problem.n_iter, problem.design
        start = steps.starting_point(self.start, design.n_features, radius=radius, noise=noise)
        budget = problem.budget.parts[0] if self.screening else problem.budget.total
        choose = steps.published_choice(
            accountant, budget, radius=radius, n_iter=n_iter, n_rows=design.n_rows
        )
        weights = _walk(problem, choose, recorder, screen=screened.step, start=start)
        return Fitted(weights, screened.counts)


class Screened:
    """A screening step, if there is one, that counts how many coordinates it has set to zero."""

    def __init__(self, screening: Screening | None, accountant: Accountant, problem: Problem):
        self._screen = screening(accountant, problem) if screening else None
        self.step = self._count if screening else None
        self.counts = {"screened": 0.0} if screening else {}

    def _count(self, point: Point, t: int) -> Iterable[int]:
        assert self._screen is not None
        found = list(self._screen(point, t))
        self.counts["screened"] += len(found)
        return found


def rnm(accountant: Accountant, problem: Problem) -> Screen[Point]:
    """Screen as Algorithm 2 does."""
    return published_rnm(
        accountant,
        problem.design,
        problem.budget.parts[1],
        radius=problem.radius,
        n_iter=problem.n_iter,
    )


def uniform_zeroing(accountant: Accountant, problem: Problem) -> Screen[Point]:
    """Screen when Algorithm 2 does, but whichever coordinate chance names (erratum E7)."""
    screen = rnm(accountant, problem)
    n_features = problem.design.n_features

    def zero_any(point: Point, t: int) -> Iterable[int]:
        return [int(accountant.noise.uniform(1)[0] * n_features) for _ in screen(point, t)]

    return zero_any


def iterations(every: int | None, n_iter: int) -> frozenset[int]:
    """List the iterations after which to screen: every k-th, or only the last (None)."""
    every = every or n_iter
    return frozenset(range(every, n_iter + 1, every))


@dataclass(frozen=True)
class Adp:
    """Screen as Algorithm 1 does, at some iterations."""

    every: int | None

    def __call__(self, accountant: Accountant, problem: Problem) -> Screen[Point]:
        """Return the screening step."""
        return published_adp(
            accountant,
            problem.design,
            problem.budget.parts[1],
            radius=problem.radius,
            at=iterations(self.every, problem.n_iter),
        )


@dataclass(frozen=True)
class WithoutNoise:
    """Zero what Eq. 1 rejects, without noise, at some iterations (Experiment A)."""

    every: int | None

    def __call__(self, _accountant: Accountant, problem: Problem) -> Screen[Point]:
        """Return the screening step."""
        at = iterations(self.every, problem.n_iter)

        def screen(point: Point, t: int) -> Iterable[int]:
            if t not in at:
                return ()
            scores = published_scores(problem.design, point, radius=problem.radius)
            return [int(index) for index in np.flatnonzero(scores < 0)]

        return screen


LONGER = 3
"""How many times RNM-Screen's iterations "more" stands for; the paper does not say."""


def longer_rnm(problem: Problem, noise: Noise, recorder: Recorder) -> Fitted:
    """Run RNM-Screen for more iterations, over which its budget then spreads thinner."""
    longer = replace(problem, n_iter=LONGER * problem.n_iter)
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


@dataclass(frozen=True)
class Steepest:
    """Plain Frank-Wolfe, possibly with a screening step whose victims may come back.

    It starts from zero, as a footnote to Table 3 says, or at random, as the algorithms do.
    """

    screening: Screening | None = None
    start: str = "zero"

    def __call__(self, problem: Problem, noise: Noise, recorder: Recorder) -> Fitted:
        """Run once."""
        screened = Screened(self.screening, Accountant(noise, limit=None), problem)
        start = steps.starting_point(
            self.start, problem.design.n_features, radius=problem.radius, noise=noise
        )
        weights = _walk(problem, steepest_vertex, recorder, screen=screened.step, start=start)
        return Fitted(weights, screened.counts)


@dataclass(frozen=True)
class OtherSettings:
    """Plain Frank-Wolfe for so many iterations, or with λ at an end of the norms that share K."""

    n_iter: int | None = None
    end: int | None = None

    def __call__(self, problem: Problem, noise: Noise, recorder: Recorder) -> Fitted:
        """Run once."""
        n_iter = self.n_iter or problem.n_iter
        radius = problem.radius if self.end is None else problem.norms[self.end]
        changed = replace(problem, n_iter=n_iter, radius=radius)
        fitted = Steepest()(changed, noise, recorder)
        return replace(fitted, settings={"n_iter": n_iter, "radius": radius})


Criterion = Callable[[DenseDesign], Array]


def largest_norm(rows: DenseDesign) -> Array:
    """Score features by their L1 norm, as the paper says."""
    return np.asarray(np.abs(rows.X).sum(axis=0))


def largest_variance(rows: DenseDesign) -> Array:
    """Score features by their variance."""
    return np.asarray(rows.X.var(axis=0))


def largest_correlation(rows: DenseDesign) -> Array:
    """Score features by their correlation with the target, as screening by correlation does."""
    X, y = rows.X - rows.X.mean(axis=0), rows.y - rows.y.mean()
    norms = np.linalg.norm(X, axis=0)
    return np.asarray(np.abs(X.T @ y) / np.where(norms > 0, norms, 1.0))


@dataclass(frozen=True)
class PreselectK:
    """Plain Frank-Wolfe on the K features that score highest."""

    criterion: Criterion

    def __call__(self, problem: Problem, _noise: Noise, _recorder: Recorder) -> Fitted:
        """Run once."""
        sizes = self.criterion(problem.rows.whole)
        chosen = np.flatnonzero(keep_largest(sizes, problem.n_support))
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
        rows, deviation = problem.rows.lattice, problem.rows.target_deviation
        rule = RelaxedRule(problem.radius, problem.rows.target_bound)
        clip = min(deviation, rule.residual_bound)
        # The rule holds at every point of the ball, however that was chosen; only its own sums
        # must not be clipped (Lemma 6).
        screened = self.screening_share > 0
        weights = frank_wolfe(
            rows,
            zero_start(problem.design.n_features),
            radius=problem.radius,
            n_iter=n_iter,
            choose=steps.proven_choice(accountant, optimisation, clip=clip),
            screen=proven_rnm(accountant, rows, screening, rule=rule) if screened else None,
            watch=recorder.watch_until(n_iter),
        )
        bound = problem.rows.target_bound
        settings = {"n_iter": n_iter, "rho": float(limit), "clip": deviation, "target_bound": bound}
        return Fitted(weights, settings=settings)


def affordable_steps(limit: ZCDP, design: Design) -> int:
    """Return M/4 within [6, 200], with M = n√(2ρ)/ln(2d)."""
    signal = design.n_rows * math.sqrt(2 * float(limit)) / math.log(2 * design.n_features)
    return int(np.clip(round(signal / 4), 6, 200))


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
