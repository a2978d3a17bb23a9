"""The methods of the study, the product's own among them: how each finds coefficients, and a list.

"Published" methods use the paper's constants, random start and all; their stated ε does not hold.
"Proven" ones use the same stated total on mechanisms whose cost is proved, from a zero start; what
they take from the data, as the paper takes λ and scaling, is not private (erratum E8). Names are
those of the paper's tables: "dp-fw" is the published DP-FW.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any, Literal

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen.paper.problem import Problem, Recorder
from dpscreen.planning.methods import FitRequest, estimator
from dpscreen.privacy import ZCDP, Accountant, Budget, Noise
from dpscreen.rows.design import DenseDesign, Design, GramDesign, Point
from dpscreen.solvers import frank_wolfe as steps
from dpscreen.solvers.frank_wolfe import Choose, Screen, frank_wolfe, steepest_vertex, zero_start
from dpscreen.solvers.screening import (
    Elimination,
    FrankWolfeSettings,
    Rule,
    Screening,
    proven_steps,
    published_adp,
    published_rnm,
    published_scores,
    safe_scores,
)


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a run leaves: coefficients, and what else it counted or chose."""

    weights: Array
    counts: dict[str, float] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)


Fitter = Callable[[Problem, Noise, Recorder], Fitted]
"""Fits a problem with this noise and lets the recorder watch. It must be picklable."""

MakeScreen = Callable[[Accountant, Problem], Screen[Point]]


def paper_frank_wolfe(
    problem: Problem,
    noise: Noise,
    recorder: Recorder,
    *,
    screening: MakeScreen | None = None,
    start: str = "random",
    noisy: bool = True,
) -> Fitted:
    """Run Frank-Wolfe with the paper's noise, or without any, and possibly a screening step.

    Steps that are screened use (ε₁, δ₁). Without screening they use the whole stated budget, so
    that every method compared has the same total; the paper does not say what its DP-FW had. What
    is screened may be chosen again.
    """
    accountant, design, radius = Accountant(noise, limit=None), problem.design, problem.radius
    first = steps.starting_point(start, design.n_features, radius=radius, noise=noise)
    choose: Choose[Point] = steepest_vertex
    if noisy:
        budget = problem.parts[0] if screening else problem.budget
        choose = steps.published_choice(
            accountant, budget, radius=radius, n_iter=problem.n_iter, n_rows=design.n_rows
        )
    if screening is None:
        return Fitted(_run(problem, choose, recorder, start=first))
    screen, counts = screening(accountant, problem), {"screened": 0.0}

    def counted(point: Point, t: int) -> Iterable[int]:
        found = list(screen(point, t))
        counts["screened"] += len(found)
        return found

    return Fitted(_run(problem, choose, recorder, start=first, screen=counted), counts)


def _run(
    problem: Problem,
    choose: Choose[Point],
    recorder: Recorder,
    *,
    start: Array | None = None,
    screen: Screen[Point] | None = None,
) -> Array:
    """Run Frank-Wolfe on the folded rows, from zero by default."""
    return frank_wolfe(
        problem.design,
        zero_start(problem.design.n_features) if start is None else start,
        radius=problem.radius,
        n_iter=problem.n_iter,
        choose=choose,
        screen=screen,
        watch=recorder.watch_until(problem.n_iter),
    )


def changed(
    problem: Problem,
    noise: Noise,
    recorder: Recorder,
    *,
    fit: Fitter,
    n_iter: int | None = None,
    times: int = 1,
    end: int | None = None,
    epsilon_factor: float = 1.0,
) -> Fitted:
    """Run a method with other settings: T, or so many times T; λ at an end of those that share K.

    Or with ε multiplied: if the loss lacks its ½, gradients and scores double and the noise stays,
    as if ε were twice as large.
    """
    n_iter = n_iter or times * problem.n_iter
    radius = problem.radius if end is None else problem.norms[end]
    budget = Budget(epsilon_factor * problem.budget.epsilon, problem.budget.delta)
    fitted = fit(replace(problem, n_iter=n_iter, radius=radius, budget=budget), noise, recorder)
    return replace(fitted, settings={"n_iter": n_iter, "radius": radius})


# --- screening steps ----------------------------------------------------------------------------


def rnm(accountant: Accountant, problem: Problem) -> Screen[Point]:
    """Screen as Algorithm 2 does."""
    budget, T = problem.parts[1], problem.n_iter
    return published_rnm(accountant, problem.design, budget, radius=problem.radius, n_iter=T)


def uniform_zeroing(accountant: Accountant, problem: Problem) -> Screen[Point]:
    """Screen when Algorithm 2 does, but a uniformly random coordinate (erratum E7)."""
    screen = rnm(accountant, problem)
    n_features = problem.design.n_features

    def zero_any(point: Point, t: int) -> Iterable[int]:
        return [int(accountant.noise.uniform(1)[0] * n_features) for _ in screen(point, t)]

    return zero_any


def iterations(every: int | None, n_iter: int) -> frozenset[int]:
    """List the iterations after which to screen: every k-th, or only the last (None)."""
    every = every or n_iter
    return frozenset(range(every, n_iter + 1, every))


def adp(accountant: Accountant, problem: Problem, *, every: int | None) -> Screen[Point]:
    """Screen as Algorithm 1 does, at some iterations."""
    budget, at = problem.parts[1], iterations(every, problem.n_iter)
    return published_adp(accountant, problem.design, budget, radius=problem.radius, at=at)


def without_noise(_: Accountant | None, problem: Problem, *, every: int | None) -> Screen[Point]:
    """Zero what Eq. 1 rejects, without noise, at some iterations (Experiment A)."""
    at = iterations(every, problem.n_iter)

    def screen(point: Point, t: int) -> Iterable[int]:
        if t not in at:
            return ()
        scores = published_scores(problem.design, point, radius=problem.radius)
        return [int(index) for index in np.flatnonzero(scores < 0)]

    return screen


# --- baselines ----------------------------------------------------------------------------------


def oracle_k(problem: Problem, noise: Noise, recorder: Recorder) -> Fitted:
    """Keep the K largest coefficients of a DP-FW run; K is read off the reference."""
    fitted = paper_frank_wolfe(problem, noise, recorder)
    return Fitted(keep_largest(fitted.weights, problem.n_support))


def keep_largest(weights: Array, count: int) -> Array:
    """Set all but the `count` largest absolute values to zero."""
    kept = np.zeros_like(weights)
    largest = np.argsort(-np.abs(weights), kind="stable")[:count]
    kept[largest] = weights[largest]
    return kept


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


def preselect_k(
    problem: Problem, _noise: Noise, _recorder: Recorder, *, score: Callable[[DenseDesign], Array]
) -> Fitted:
    """Run plain Frank-Wolfe on the K features that score highest."""
    whole = problem.design
    chosen = np.flatnonzero(keep_largest(score(problem.rows.whole), problem.n_support))
    gram, moment = whole.gram[np.ix_(chosen, chosen)], whole.moment[chosen]
    part = GramDesign(gram, moment, whole.target_square, n_rows=whole.n_rows)
    weights = np.zeros(whole.n_features)
    weights[chosen] = frank_wolfe(
        part,
        zero_start(part.n_features),
        radius=problem.radius,
        n_iter=problem.n_iter,
        choose=steepest_vertex,
    )
    return Fitted(weights)


def eliminating(problem: Problem, _noise: Noise, recorder: Recorder, *, rule: Rule) -> Fitted:
    """Run plain Frank-Wolfe from zero and drop for good what a rule rejects."""
    elimination = Elimination(problem.design, rule, radius=problem.radius)
    weights = _run(problem, elimination.choose, recorder, screen=elimination.screen)
    return Fitted(weights, {"screened": float(np.count_nonzero(~elimination.active))})


def lasso(problem: Problem, _noise: Noise, _recorder: Recorder) -> Fitted:
    """Return the LASSO solution that the others are measured against."""
    return Fitted(problem.reference)


# --- proven: every mechanism's cost is proved --------------------------------------------------

SCREENING_SHARE = Fraction(1, 50)
"""Part of ρ that proven RNM-Screen allocates to screening: the paper's 0.1 of 5."""


def proven(
    problem: Problem, noise: Noise, recorder: Recorder, *, screening_share: Fraction = Fraction(0)
) -> Fitted:
    """Run Frank-Wolfe from zero with clipped sums, exactly, and possibly screening.

    The clip is the target's standard deviation and B its largest |y|; both look at the data, as
    the paper's own choices do (erratum E8).
    """
    limit, rows = ZCDP.within(problem.budget), problem.rows
    n_iter, clip = affordable_steps(limit, problem.design), float(rows.whole.y.std())
    every = Screening(screening_share, 0, partial(iterations, 1), one_at_a_time=True)  # type: ignore[arg-type]
    choose, screen = proven_steps(
        FrankWolfeSettings(
            radius=problem.radius,
            n_iter=n_iter,
            intercept=False,
            published=False,
            start="zero",
            clip=clip,
            screening=every if screening_share else None,
        ),
        Accountant(noise, limit=limit),
        rows.lattice,
        limit,
        target_bound=rows.target_bound,
    )
    weights = frank_wolfe(
        rows.lattice,
        zero_start(problem.design.n_features),
        radius=problem.radius,
        n_iter=n_iter,
        choose=choose,
        screen=screen,
        watch=recorder.watch_until(n_iter),
    )
    bound = {"target_bound": rows.target_bound}
    return Fitted(weights, settings={"n_iter": n_iter, "rho": float(limit), "clip": clip, **bound})


def affordable_steps(limit: ZCDP, design: Design) -> int:
    """Return T = M/4 within [6, 200], where M = n√(2ρ)/ln(2d) measures how much ρ can show."""
    signal = design.n_rows * math.sqrt(2 * float(limit)) / math.log(2 * design.n_features)
    return int(np.clip(round(signal / 4), 6, 200))


def own_rules(problem: Problem, noise: Noise, _recorder: Recorder) -> Fitted:
    """Fit PrivateLasso, which sets itself; only |y| ≤ B looks at the data (erratum E8).

    Its error is that of its predictions: it has an intercept, and clips features as it was fitted.
    """
    X, y, bound = problem.rows.whole.X, problem.rows.whole.y, problem.rows.target_bound
    box = np.tile((-1.0, 1.0), (X.shape[1], 1))
    request = FitRequest(problem.budget, box, (-bound, bound), random_state=noise)
    # Warnings of the study's seeds and of the paper's δ = 1/n.
    with warnings.catch_warnings(action="ignore"):
        model = estimator("private-lasso", request).fit(X, y)
    error = float(np.mean((model.predict(X) - y) ** 2))
    settings = {"n_iter": model.n_iter_, "rho": model.privacy_.rho, "target_bound": bound}
    return Fitted(model.coef_, {"mse": error}, settings)


# --- the list -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Method:
    """A way to find coefficients. `random` is False where the noise is never touched."""

    name: str
    label: str
    fit: Fitter
    calibration: Literal["published", "proven", "not private"] = "published"
    random: bool = True


def proven_names() -> tuple[str, ...]:
    """The methods whose stated budget holds, in their order."""
    return tuple(name for name, method in METHODS.items() if method.calibration == "proven")


_unproven = partial(Method, calibration="not private")
"""A random method of which no budget is stated for the whole."""
_noiseless = partial(_unproven, random=False)
"""A method that is the same in every trial on the same rows."""

LONGER = 3
"""How many times RNM-Screen's iterations "more" stands for; the paper does not say."""
FEW, MANY = 200, 1000
"""The iterations of the paper's middling sets, and those of its largest."""


def _screened(screening: MakeScreen, **settings: Any) -> Fitter:
    return partial(paper_frank_wolfe, screening=screening, **settings)


RNM = _screened(rnm)
PLAIN = partial(paper_frank_wolfe, start="zero", noisy=False)
OTHERWISE = {"third": "K = d/3", "filled": "missing cells at their mean"}
"""What the paper leaves open on real data, taken otherwise; the experiment's source has it so."""
OFTEN = {"": ("", 1), "-50th": (" every 50th", 50), "-last": (" last", None)}
"""How often Appendix C screens: by suffix of the name, words, and every how many iterations."""
ALL = (
    Method("rnm-screen", "RNM-Screen", RNM),
    Method(
        "rnm-screen-longer",
        f"RNM-Screen, {LONGER}T iterations",
        partial(changed, fit=RNM, times=LONGER),
    ),
    Method("adp-screen", "ADP-Screen", _screened(partial(adp, every=1))),
    Method("adp-screen-50th", "ADP-Screen, every 50th", _screened(partial(adp, every=50))),
    Method("adp-screen-last", "ADP-Screen, last", _screened(partial(adp, every=None))),
    Method("dp-fw", "DP-FW", paper_frank_wolfe),
    # From zero: erratum E9.
    Method("dp-fw-zero", "DP-FW from zero", partial(paper_frank_wolfe, start="zero")),
    Method("rnm-screen-zero", "RNM-Screen from zero", _screened(rnm, start="zero")),
    Method("uniform-zeroing", "Uniform zeroing", _screened(uniform_zeroing)),
    _unproven("oracle-k-fw", "Oracle-K FW", oracle_k),
    _noiseless("np-fw", "NP-FW", PLAIN),
    _noiseless("preselect-k-fw", "Preselect-K FW", partial(preselect_k, score=largest_norm)),
    _noiseless("lasso", "LASSO", lasso),
    # The rule corrected for the radius (E3); Eq. 1 as printed, for the unit ball: what it rejects
    # is left out for good, or may be chosen again.
    _noiseless("np-fw-safe", "NP-FW, safe rule", partial(eliminating, rule=safe_scores)),
    _noiseless(
        "np-fw-published-rule",
        "NP-FW, Eq. 1 for good",
        partial(eliminating, rule=published_scores),
    ),
    _noiseless(
        "np-fw-rule",
        "NP-FW, Eq. 1",
        _screened(partial(without_noise, every=1), start="zero", noisy=False),
    ),
    *(
        _noiseless(f"np-fw-{n}", f"NP-FW, {n} iterations", partial(changed, fit=PLAIN, n_iter=n))
        for n in (FEW, MANY)
    ),
    _noiseless("np-fw-low", "NP-FW, smallest λ", partial(changed, fit=PLAIN, end=0)),
    _noiseless("np-fw-high", "NP-FW, largest λ", partial(changed, fit=PLAIN, end=-1)),
    # What the paper leaves open, taken otherwise.
    Method("rnm-screen-scattered", "RNM-Screen, scattered support", RNM),
    Method(
        "rnm-screen-whole-loss",
        "RNM-Screen, no ½",
        partial(changed, fit=RNM, epsilon_factor=2),
    ),
    *(Method(f"rnm-screen-{name}", f"RNM-Screen, {w}", RNM) for name, w in OTHERWISE.items()),
    *(
        _unproven(f"oracle-k-fw-{name}", f"Oracle-K FW, {w}", oracle_k)
        for name, w in OTHERWISE.items()
    ),
    *(
        _noiseless(f"preselect-k-{what}", f"Preselect-K FW, {what}", partial(preselect_k, score=by))
        for what, by in (("variance", largest_variance), ("correlation", largest_correlation))
    ),
    # Appendix C: one of the two steps private, the other not.
    *(
        _unproven(
            f"dp-fw-rule{end}", f"DP-FW, Eq. 1{words}", _screened(partial(without_noise, every=k))
        )
        for end, (words, k) in OFTEN.items()
    ),
    *(
        _unproven(
            f"np-fw-adp{end}",
            f"NP-FW, ADP{words or ' every'}",
            _screened(partial(adp, every=k), noisy=False),
        )
        for end, (words, k) in OFTEN.items()
    ),
    Method("proven-dp-fw", "Proven DP-FW", proven, "proven"),
    Method(
        "proven-rnm-screen",
        "Proven RNM-Screen",
        partial(proven, screening_share=SCREENING_SHARE),
        "proven",
    ),
    Method("private-lasso", "PrivateLasso", own_rules, "proven"),
)
METHODS = {method.name: method for method in ALL}
"""Every method by its name in rows, seeds and the paper's tables."""
