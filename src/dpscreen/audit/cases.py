"""Worst cases: neighbouring data sets built from the sensitivity proofs, and what is claimed there.

A case runs the library's own steps many times on a data set without a row and on the same with it,
and hands back released numbers only. A tight case is one where the extra row pulls every choice the
same way by as much as the proof allows, and the other rows leave the choice open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dpscreen._core.arrays import AnyArray, Array, Integers
from dpscreen.audit.batches import (
    CLAIM,
    Case,
    GramRuns,
    LatticeRuns,
    Neighbours,
    Runs,
    Sample,
    exact_choices,
    laplace_choices,
    repeated,
)
from dpscreen.audit.outcomes import outcome_cases
from dpscreen.audit.releases import releases
from dpscreen.models import PrivateLasso
from dpscreen.privacy import (
    ZCDP,
    Accountant,
    Budget,
    DiscreteGaussian,
    LaplaceNoisyMax,
    Noise,
    NoisyMax,
)
from dpscreen.rows.design import DenseDesign
from dpscreen.rows.lattice import ExactPoint, LatticeDesign, RelaxedRule
from dpscreen.solvers import frank_wolfe as steps
from dpscreen.solvers.frank_wolfe import vertex_scores
from dpscreen.solvers.screening import (
    FrankWolfeSettings,
    Screening,
    optimise,
    proven_adp,
    proven_rnm,
    proven_steps,
    published_rnm,
)

STEPS = 16


# --- proven steps on rows -------------------------------------------------------------------------


# The extra row alone has weight: every step is pulled the same way, and else it is a fair coin.
ONE_HOT = Neighbours(np.zeros((1, 1)), np.zeros(1), np.array([1.0]), 4.0)
ALL_ONES = Neighbours(np.zeros((1, 2)), np.zeros(1), np.ones(2), -4.0)
FEW_ROWS = Neighbours(np.zeros((12, 2)), np.zeros(12), np.array([1.0, -1.0]), 4.0)
# Enough rows for a refit; the one more contradicts them all.
MANY_ROWS = Neighbours(
    np.tile([[1.0], [-1.0]], (200, 1)), np.tile([1.0, -1.0], 200), np.array([1.0]), -4.0
)
FITTED = Neighbours(np.eye(2), np.array([0.5, -0.5]), np.array([1.0, -1.0]), 4.0)


@dataclass(frozen=True)
class ProvenFrankWolfe:
    """Proven DP-FW with clip 1 and radius 1, and what an observer of its steps can count."""

    data: Neighbours
    constant: bool = False
    weaken: float = 1.0

    def __call__(self, with_row: bool, runs: int, noise: Noise) -> Array:
        """Return, for every run, how often each vertex was chosen, and the final weights."""
        X, y = self.data.rows(with_row)
        X = np.hstack((X, np.ones((len(X), 1)))) if self.constant else X
        proven = steps.step_mechanism(ZCDP.within(CLAIM) / STEPS, clip=1.0)
        mechanism = replace(proven, scale=proven.scale / self.weaken)
        point = LatticeRuns(X, y, runs)

        def choose() -> Integers:
            return exact_choices(mechanism, vertex_scores(point.clipped_sums(1.0)), noise)

        return _watched(point, choose, X.shape[1], n_iter=STEPS, radius=1.0)


def _watched(
    point: Runs,
    choose: Callable[[], Integers],
    n_features: int,
    *,
    n_iter: int,
    radius: float,
) -> Array:
    """Run `frank_wolfe` for many runs, and return the count of each vertex and the weights."""
    counts = np.zeros((len(point.weights), 2 * n_features))
    for t in range(1, n_iter + 1):
        positions = choose()
        counts[np.arange(len(counts)), positions] += 1
        signs = np.where(positions < n_features, 1, -1)
        point.add(positions % n_features, signs * (t + 1))
        point.scale = 2 * radius / ((t + 1) * (t + 2))
    return np.hstack((counts, point.weights))


@dataclass(frozen=True)
class ProvenScreening:
    """The proven screening step alone, repeated at one point; it may screen nothing."""

    data: Neighbours
    gaussian: bool = False

    def __call__(self, with_row: bool, runs: int, noise: Noise) -> Array:
        """Return, for every run, how often each feature was screened, and how often nothing."""
        design = LatticeDesign.from_rows(*self.data.rows(with_row))
        point = design.at(np.array([1.0, 0.0]), scale=1.0)
        accountant = Accountant(noise, limit=None)
        cost, rule = ZCDP.within(CLAIM) / STEPS, RelaxedRule(1.0, 1.0)
        if self.gaussian:
            always = frozenset(range(1, STEPS + 1))
            screen = proven_adp(accountant, design, cost, rule=rule, at=always)
        else:
            screen = proven_rnm(accountant, design, cost, rule=rule)
        outputs = np.zeros((runs, design.n_features + 1))
        for output in outputs:
            for t in range(1, STEPS + 1):
                found = list(screen(point, t))
                output[found] += 1
                output[-1] += not found
        return outputs


@dataclass(frozen=True)
class ClippedScreening:
    """Proven RNM-Screen whose steps clip and whose rule does not, from end to end.

    With `weaken`, all noise is so many times too small.
    """

    data: Neighbours
    weaken: int = 1

    def __call__(self, with_row: bool, runs: int, noise: Noise) -> Array:
        """Return, for every run, how often each feature was raised and screened, and the model."""
        design = LatticeDesign.from_rows(*self.data.rows(with_row))
        cost = ZCDP.within(CLAIM) * self.weaken**2
        return np.array([self._run(design, cost, noise) for _ in range(runs)])

    def _run(self, design: LatticeDesign, cost: ZCDP, noise: Noise) -> Array:
        settings = FrankWolfeSettings(
            radius=1.0,
            n_iter=STEPS,
            intercept=False,
            published=False,
            start="zero",
            clip=1.0,
            screening=Screening(0.1, 0.1),
        )
        accountant = Accountant(noise, limit=None)
        choose, screen = proven_steps(settings, accountant, design, cost, target_bound=4.0)
        assert screen is not None
        raised, screened = np.zeros((2, design.n_features))

        def seen_choice(point: ExactPoint) -> steps.Vertex | None:
            vertex = choose(point)
            if vertex is not None:
                raised[vertex.feature] += vertex.sign > 0
            return vertex

        def seen_screen(point: ExactPoint, t: int) -> list[int]:
            found = list(screen(point, t))
            screened[found] += 1
            return found

        weights = optimise(settings, design, (seen_choice, seen_screen), noise)
        return np.concatenate((raised, screened, weights))


@dataclass(frozen=True)
class WholeFit:
    """`PrivateLasso` from end to end, all of its paid estimates included, on a few rows.

    With `split`, half of the rows refits what the other half selected, and that is released too.
    """

    data: Neighbours
    split: bool = False

    def __call__(self, with_row: bool, runs: int, noise: Noise) -> Array:
        """Return, for every run, the released model and the released bounds of the target."""
        X, y = self.data.rows(with_row)
        model = PrivateLasso(
            epsilon=CLAIM.epsilon,
            delta=CLAIM.delta,
            feature_bounds=(-1, 1),
            target_bounds=(-4, 4),
            n_rows=len(self.data.X),
            inference="split" if self.split else None,
            random_state=noise,
        )

        def released() -> Array:
            fitted = model.fit(X, y)
            told = (fitted.coef_, [fitted.intercept_], fitted.target_bounds_)
            return np.concatenate((*told, self._refitted(fitted)))

        return repeated(released, runs)

    def _refitted(self, fitted: PrivateLasso) -> list[float]:
        """Return the first refitted coefficient and its error; zeros where there is none."""
        if not self.split or not fitted.inference_.intervals:
            return [0.0, 0.0]
        first = fitted.inference_.intervals[0]
        return [first.coefficient, first.standard_error]


# --- published steps ------------------------------------------------------------------------------


@dataclass(frozen=True)
class PublishedFrankWolfe:
    """Published DP-FW with the paper's λ = 50 and T = 1000, on 100 rows of which 99 are zero.

    Erratum E1: one row moves the gradient 2λ times further than "Lipschitz constant 1" allows for.
    """

    claim: Budget
    n_iter: int = 1000
    radius: float = 50.0

    def __call__(self, with_row: bool, runs: int, noise: Noise) -> Array:
        """Return, for every run, how often each vertex was chosen, and the final weight."""
        X, y = np.zeros((100, 1)), np.zeros(100)
        if with_row:
            X[0], y[0] = 1.0, -self.radius
        mechanism = steps.published_step_mechanism(
            self.claim, radius=self.radius, n_iter=self.n_iter, n_rows=100
        )
        point = GramRuns(X, y, runs)

        def choose() -> Integers:
            scores = vertex_scores(point.gradient()) * (self.radius / 100)
            return laplace_choices(mechanism, scores, noise)

        return _watched(point, choose, 1, n_iter=self.n_iter, radius=self.radius)


@dataclass(frozen=True)
class PublishedScreening:
    """One screening of published RNM-Screen at the pair that attains the true sensitivity (E2).

    n − 1 rows (1, λ) and w = λ score exactly 0; one more row (1, −λ) lifts the score by (√n + 1)/2
    times what Theorem 1 allows for.
    """

    claim: Budget
    n_rows: int = 10_000
    radius: float = 1.0

    def __call__(self, with_row: bool, runs: int, noise: Noise) -> Array:
        """Return, for every run, whether the feature was screened."""
        count = self.n_rows - (not with_row)
        y = np.full(count, self.radius)
        y[-1] = -self.radius if with_row else self.radius
        design = DenseDesign(np.ones((count, 1)), y)
        point = design.at(np.array([self.radius]))
        design.n_rows = self.n_rows  # 1/n is a constant of the algorithm, the same on both sides
        screen = published_rnm(
            Accountant(noise, limit=None), design, self.claim, radius=self.radius, n_iter=1
        )
        return np.array([[float(len(list(screen(point, 1))))] for _ in range(runs)])


# --- mechanisms alone -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Repeated:
    """A mechanism asked again and again about numbers that one row moves as far as it may."""

    answer: Callable[[AnyArray, int, Noise], AnyArray]
    without: AnyArray
    with_row: AnyArray
    times: int

    def __call__(self, with_row: bool, runs: int, noise: Noise) -> Array:
        """Return, for every run, the sum of the answers."""
        values = self.with_row if with_row else self.without
        answers = self.answer(values, runs * self.times, noise)
        sums = np.asarray(answers, dtype=np.float64).reshape(runs, -1).sum(axis=1)
        return np.asarray(sums[:, None])


def _noisy_max(weaken: float = 1.0) -> Repeated:
    proven = NoisyMax.of_cost(ZCDP.within(CLAIM) / STEPS, sensitivity=1.0, unit=2.0**-20)
    mechanism = replace(proven, scale=proven.scale / weaken)

    def answer(scores: Integers, count: int, noise: Noise) -> Integers:
        return exact_choices(mechanism, np.tile(scores, (count, 1)), noise)

    return Repeated(answer, np.array([0, 0]), np.array([-(2**20), 2**20]), times=STEPS)


def _gaussian(weaken: float = 1.0) -> Repeated:
    """Four numbers that one row moves by 1 each, so by 2 in L2, released four times."""
    proven = DiscreteGaussian.of_cost(ZCDP.within(CLAIM) / 4, sensitivity=2.0, unit=2.0**-10)
    mechanism = replace(proven, scale=proven.scale / weaken)

    def answer(values: Integers, count: int, noise: Noise) -> Array:
        return mechanism(np.tile(values, count), noise)

    return Repeated(answer, np.zeros(4, dtype=np.int64), np.full(4, 2**10), times=4)


def _laplace(epsilon: float) -> Repeated:
    """Scores that move in both directions, for which the published noise lacks a factor 2 (E4)."""
    mechanism = LaplaceNoisyMax.as_published(epsilon, sensitivity=1.0)

    def answer(scores: Array, count: int, noise: Noise) -> Integers:
        return laplace_choices(mechanism, np.tile(scores, (count, 1)), noise)

    return Repeated(answer, np.array([4.0, 0.0]), np.array([3.0, 1.0]), times=1)


# --- the list -------------------------------------------------------------------------------------

OPTIMISATION = Budget(4.9, 1 / 4000)  # the paper's ε₁ and δ₁ for Table 1
SCREENING = Budget(1.0, 0.01)


def all_cases() -> dict[str, Case]:
    """Return every case by name."""
    return {case.name: case for case in (*_broken(), *_standing(), *_weakened(), *outcome_cases())}


def _broken() -> Iterator[Case]:
    for name, title, claim, sample in (
        ("dp-fw", "DP-FW, published, paper's setting (E1)", OPTIMISATION, PublishedFrankWolfe),
        ("screening", "RNM-Screen's screening, published (E2)", SCREENING, PublishedScreening),
    ):
        yield Case(f"published-{name}", title, claim, sample(claim), stands=False)
    title = "report-noisy-max, published (E4)"
    yield Case("published-noisy-max", title, Budget(1.0, 1e-9), _laplace(1.0), stands=False)


def _standing() -> Iterator[Case]:
    for key, title, sample in (
        ("one-hot", "one-hot row", ProvenFrankWolfe(ONE_HOT)),
        ("all-ones", "row of ones", ProvenFrankWolfe(ALL_ONES)),
        ("fitted", "rows that fit", ProvenFrankWolfe(FITTED)),
        ("intercept", "with intercept", ProvenFrankWolfe(ONE_HOT, constant=True)),
    ):
        title = f"DP-FW, proven, {STEPS} steps, {title}"
        yield Case(f"dp-fw-{key}", title, CLAIM, sample, stands=True)
    gaussian, split = ProvenScreening(ALL_ONES, gaussian=True), WholeFit(MANY_ROWS, split=True)
    slow: tuple[tuple[str, str, Sample, int], ...] = (
        ("rnm-screening", "RNM-Screen's screening, proven", ProvenScreening(ALL_ONES), 3_000),
        ("adp-screening", "ADP-Screen's screening, proven", gaussian, 3_000),
        ("rnm-screen-clip", "RNM-Screen, proven, with a clip", ClippedScreening(ONE_HOT), 3_000),
        ("private-lasso", "PrivateLasso, a whole fit", WholeFit(FEW_ROWS), 5_000),
        ("private-lasso-split", "PrivateLasso, split and refitted", split, 2_000),
    )
    for name, title, run, runs in slow:
        yield Case(name, title, CLAIM, run, stands=True, runs=runs)
    for name, release in releases(CLAIM).items():
        title = f"PrivateLasso's {name} alone"
        yield Case(f"lasso-{name}", title, CLAIM, release, stands=True, runs=10_000)
    yield Case("noisy-max", f"noisy max, {STEPS} times", CLAIM, _noisy_max(), stands=True)
    yield Case("gaussian", "discrete Gaussian, 4 times", CLAIM, _gaussian(), stands=True)


def _weakened() -> Iterator[Case]:
    """Return proven methods with 1.5 times too little noise: what the audit must be able to see."""
    samples: tuple[tuple[str, str, Sample], ...] = (
        ("dp-fw", "DP-FW", ProvenFrankWolfe(ONE_HOT, weaken=1.5)),
        ("noisy-max", "noisy max", _noisy_max(1.5)),
        ("gaussian", "discrete Gaussian", _gaussian(1.5)),
    )
    for key, what, sample in samples:
        title = f"{what} with noise cut by 1.5"
        yield Case(f"weak-{key}", title, CLAIM, sample, stands=False, runs=200_000)
    for name, release in releases(CLAIM, weaken=Fraction(3)).items():
        title = f"PrivateLasso's {name} with noise cut by 3"
        yield Case(f"weak-lasso-{name}", title, CLAIM, release, stands=False, runs=20_000)
