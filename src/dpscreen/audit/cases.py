"""What is audited: whole fits, each kind of their releases, and what the paper claims.

A case runs shipped code many times on a data set without a row and on the same with it, and hands
back released numbers only. Rows are built from the sensitivity proofs: the one more pulls every
choice the same way by as much as the proof allows, and the others leave the choice open.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from dpscreen._core.arrays import Array, Integers
from dpscreen.audit.passages import AuditedFit, MovedRelease, Neighbours, cut_of
from dpscreen.models import (
    ADPScreen,
    DPFrankWolfe,
    PrivateLasso,
    PrivateLogistic,
    PrivateLogit,
    PrivateOLS,
    RNMScreen,
    peers,
)
from dpscreen.planning.power import fit_quietly
from dpscreen.privacy import Accountant, Budget, LaplaceNoisyMax, Noise
from dpscreen.rows.design import DenseDesign
from dpscreen.solvers import frank_wolfe as steps
from dpscreen.solvers.frank_wolfe import vertex_scores
from dpscreen.solvers.screening import published_rnm

Sample = Callable[[bool, int, Noise], Array]
"""Runs on the data set without or with the row, and returns a row of released numbers a run."""

CLAIM = Budget(1.0, 0.01)


@dataclass(frozen=True)
class Case:
    """What is claimed, how to run it, and whether the claim is expected to stand.

    `claim` may need a fit to be known.
    """

    name: str
    title: str
    claim: Budget | Callable[[], Budget]
    sample: Sample
    stands: bool
    runs: int = 20_000

    @property
    def claimed(self) -> Budget:
        """Return the claim."""
        return self.claim if isinstance(self.claim, Budget) else self.claim()


# --- whole fits -----------------------------------------------------------------------------------

# The extra row alone has weight: every step is pulled the same way, and else it is a fair coin.
ONE_HOT = Neighbours(np.zeros((1, 1)), np.zeros(1), np.array([1.0]), 4.0)
FEW_ROWS = Neighbours(np.zeros((12, 2)), np.zeros(12), np.array([1.0, -1.0]), 4.0)
# Enough rows for a refit; the one more contradicts them all.
MANY_ROWS = Neighbours(
    np.tile([[1.0], [-1.0]], (200, 1)), np.tile([1.0, -1.0], 200), np.array([1.0]), -4.0
)
AGREED = Neighbours(np.zeros((12, 2)), np.tile([0.0, 1.0], 6), np.array([1.0, -1.0]), 1.0)
# Enough rows for odds, three of four as the feature says; the one more contradicts.
MANY_OUTCOMES = Neighbours(
    np.repeat([[1.0], [-1.0]], 600, axis=0),
    np.repeat([1.0, 0.0, 1.0], [450, 600, 150]),
    np.array([1.0]),
    0.0,
)
# The one more is the only row of its class, and the only one with the feature.
ALONE = Neighbours(np.zeros((40, 1)), np.zeros(40), np.ones(1), 1.0)


@dataclass(frozen=True)
class WholeFit:
    """A shipped estimator from end to end, all that it pays for included, on a few rows."""

    make: Callable[..., Any]
    data: Neighbours
    told: Callable[[Any], Sequence[float]]

    def __call__(self, with_row: bool, runs: int, noise: Noise) -> Array:
        """Return, for every run, released numbers."""
        model = self.make(n_rows=len(self.data.X), random_state=noise)
        rows = self.data.rows(with_row)
        return np.array([self.told(fit_quietly(model, *rows)) for _ in range(runs)], dtype=float)


def _model_of(fitted: Any) -> list[float]:
    return [*fitted.coef_.ravel(), float(fitted.intercept_)]


def _lasso_of(fitted: PrivateLasso) -> list[float]:
    return [*_model_of(fitted), *fitted.target_bounds_]


def _split_of(fitted: PrivateLasso | PrivateLogistic) -> list[float]:
    """Return the first refitted coefficient and its error too; zeros where there is none."""
    found = fitted.inference_.intervals
    refit = [found[0].coefficient, found[0].standard_error] if found else [0.0, 0.0]
    model = _lasso_of if isinstance(fitted, PrivateLasso) else _outcomes_of
    return [*model(fitted), *refit]


def _outcomes_of(fitted: PrivateLogistic) -> list[float]:
    told = fitted.quality_
    return [
        *fitted.coef_[0],
        *fitted.intercept_,
        told.no[0],
        told.yes[-1],
        float(np.nan_to_num(told.deviance)),
    ]


def _table_of(fitted: PrivateOLS) -> list[float]:
    return [*_model_of(fitted), *np.nan_to_num(fitted.bse)]


BOUNDS = {"feature_bounds": (-1, 1), "target_bounds": (-4, 4)}
STEPS = {"radius": 1.0, "n_iter": 16, "clip": 1.0}


def _made(estimator: Callable[..., Any], budget: Budget, **options: Any) -> Callable[..., Any]:
    """Return what makes the estimator; options that it does not have are left out."""
    given = {"epsilon": budget.epsilon, "delta": budget.delta, **BOUNDS, **options}
    taken = set(estimator().get_params())

    def make(**more: Any) -> Any:
        asked = given | more
        return estimator(**{name: one for name, one in asked.items() if name in taken})

    return make


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

        return _watched(point, choose, n_iter=self.n_iter, radius=self.radius)


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


class GramRuns:
    """The published Frank-Wolfe for many runs on the Gram form, a row a run."""

    def __init__(self, X: Array, y: Array, runs: int) -> None:
        self._gram, self._moment = X.T @ X, X.T @ y
        self._v = np.zeros((runs, len(self._gram)))
        self._pull = np.zeros_like(self._v)
        self._runs = np.arange(runs)
        self.scale = 1.0

    @property
    def weights(self) -> Array:
        """Return the weights, a row a run."""
        return np.asarray(self.scale * self._v)

    def add(self, features: Integers, amounts: Integers) -> None:
        """Add to one unscaled weight in every run."""
        self._v[self._runs, features] += amounts
        self._pull += amounts[:, None] * self._gram[features]

    def gradient(self) -> Array:
        """Return the gradient of every run."""
        return np.asarray(self.scale * self._pull - self._moment)


def laplace_choices(mechanism: LaplaceNoisyMax, scores: Array, noise: Noise) -> Integers:
    """Return the noisy maximum of every row of scores."""
    draws = noise.laplace(scores.size).reshape(scores.shape)
    return np.asarray(np.argmax(scores + mechanism.scale * draws, axis=1), dtype=np.int64)


def _watched(
    point: GramRuns, choose: Callable[[], Integers], *, n_iter: int, radius: float
) -> Array:
    """Run `frank_wolfe` of one feature many times, and return counts of vertices, and weights."""
    counts = np.zeros((len(point.weights), 2))
    for t in range(1, n_iter + 1):
        positions = choose()
        counts[np.arange(len(counts)), positions] += 1
        point.add(np.zeros_like(positions), np.where(positions < 1, 1, -1) * (t + 1))
        point.scale = 2 * radius / ((t + 1) * (t + 2))
    return np.hstack((counts, point.weights))


@dataclass(frozen=True)
class PublishedNoisyMax:
    """Report-noisy-max of scores that move apart, for which its noise lacks a factor 2 (E4)."""

    claim: Budget

    def __call__(self, with_row: bool, runs: int, noise: Noise) -> Array:
        """Return, for every run, what was chosen."""
        mechanism = LaplaceNoisyMax.as_published(self.claim.epsilon, sensitivity=1.0)
        scores = np.array([3.0, 1.0] if with_row else [4.0, 0.0])
        chosen = laplace_choices(mechanism, np.tile(scores, (runs, 1)), noise)
        return np.asarray(chosen[:, None], dtype=np.float64)


# --- single releases ------------------------------------------------------------------------------

AMPLE = Budget(100.0, 1e-6)
"""A budget of which each release has enough to be looked at alone in some thousand runs."""


def _ample(estimator: Callable[..., Any], **options: Any) -> AuditedFit:
    make = _made(estimator, AMPLE, **{"n_rows": 400, "n_iter": 10} | options)
    return AuditedFit(make, outcomes="classes" in estimator().get_params())


def _share_of(peer: str) -> float:
    """Return an epsilon of which each release of a peer has its share: some make many, some two."""
    return 10.0 if peer in ("AdaSSP", "PrivateSIS") else AMPLE.epsilon


def _steep(purpose: str, _mechanism: object, size: int) -> Array | None:
    """Release gradients so large that some lengths of a step leave the bounds and others do not."""
    return np.full(size, -4e3) if purpose == "noisy gradient" else None


def _even_classes(purpose: str, _mechanism: object, size: int) -> Array | None:
    """Release as many rows of either class: a table of one class alone is refused."""
    return np.full(size, 200.0) if purpose == "the number of rows of the second class" else None


WALKS = {"dp-fw": DPFrankWolfe, "rnm-screen": RNMScreen, "adp-screen": ADPScreen}
FITS: dict[str, AuditedFit] = {
    "lasso": _ample(PrivateLasso, n_rows=100, standardize=True),
    "lasso-even": _ample(PrivateLasso, n_rows=4),
    "lasso-counted": _ample(PrivateLasso, n_rows=None),
    "lasso-walk": _ample(PrivateLasso, epsilon=20.0, n_rows=None, n_iter=None),
    "lasso-fw": _ample(PrivateLasso, solver="frank-wolfe", standardize=False),
    "lasso-gradient": _ample(PrivateLasso, solver="noisy-gradient"),
    "lasso-lengths": replace(
        _ample(PrivateLasso, solver="noisy-gradient", standardize=True), steer=_steep
    ),
    "lasso-short-rows": replace(_ample(PrivateLasso, row_norm=2.0, n_rows=100), copies=30),
    "split": _ample(PrivateLasso, inference="split", n_rows=4_000, epsilon=20.0),
    "ols": _ample(PrivateOLS, epsilon=70.0),
    "logit": replace(_ample(PrivateLogit, epsilon=70.0), steer=_even_classes),
    "logistic": _ample(PrivateLogistic),
    "logistic-counted": _ample(
        PrivateLogistic, n_rows=10**6
    ),  # known to 1 %: no middle is taken off
    "logistic-walk": _ample(PrivateLogistic, epsilon=20.0, n_rows=20, n_iter=None),
    "logistic-split": _ample(PrivateLogistic, inference="split", n_rows=4_000, epsilon=20.0),
    **{name: _ample(one, **STEPS, screening_share=0.05) for name, one in WALKS.items()},
    **{
        name.lower(): _ample(getattr(peers, name), epsilon=_share_of(name))
        for name in peers.__all__
    },
}
RELEASES: dict[str, tuple[str, ...]] = {
    "lasso": (
        "the target's centre",
        "the target's scale",
        "the target's distances from its centre",
        "the target's mean",
        "the features' histograms",
        "the features' tails",
        "the features' distances from points",
        "the features' means and mean squares",
        "stagewise step",
        "the intercept",
        "the residuals' scale",
        "chosen features squared",
        "residuals times chosen features, in units of the clip",
        "squared residuals",
        "squared target",
        "the target's sum",
        "magnitudes of residuals",
        "magnitudes of the target",
        "how far residuals lie",
    ),
    "lasso-even": ("sides of zero", "all features about zero"),
    "lasso-counted": ("the number of rows",),
    "lasso-walk": ("all features squared",),
    "lasso-fw": ("the features' mean square", "Frank-Wolfe step"),
    "lasso-gradient": ("the rows' norm", "noisy gradient"),
    "lasso-lengths": ("step length",),
    "lasso-short-rows": ("how many rows are long",),
    "split": ("residuals times features, in units of the clips", "the same squared"),
    "ols": (
        "the features' distances from their centres",
        "features squared: a look",
        "lengths of rows",
        "features squared: the whole",
        "sizes of influences",
        "residuals times features, in units of the clips",
        "residuals times features, with a lower clip",
        "the same squared",
        "the number of rows that were shortened",
    ),
    "logit": ("features squared, times the variance of outcomes",),
    "logistic-walk": ("all features squared",),
    "logistic-split": ("residuals times features, in units of the clips",),
    "logistic": ("the number of rows of the second class", "chances by outcome"),
    "logistic-counted": ("the deviance",),
    "dp-fw": ("Frank-Wolfe step",),
    "rnm-screen": ("screening",),
    "adp-screen": ("screening",),
    "adassp": ("features squared", "features times target, in units of the clip"),
    "boostedadassp": ("features times residuals, in units of the clip",),
    "noisyiht": ("noisy gradient, in units of the clip",),
    "privategcd": ("greedy coordinate", "its gradient"),
}
"""Each kind of release, with the first fit that makes it."""

BY_BRUTE_FORCE = frozenset({"range of the features in predictions"})
"""Releases that no row of the designs here moves: it adds as much to the loss of every range.

tests/solvers/test_prediction_range.py tries neighbours that do.
"""


@cache
def sharpest(fit: str) -> dict[str, MovedRelease]:
    """Return for every purpose of a fit the release in which one more row shows most."""
    return FITS[fit].sharpest()


@dataclass(frozen=True)
class OneRelease:
    """One kind of release of a fit, for what was booked; `weaken` times too little noise."""

    fit: str
    purpose: str
    weaken: float = 1.0

    def claim_now(self) -> Budget:
        """Return what is claimed of this release; it takes a fit to know."""
        return sharpest(self.fit)[self.purpose].claim

    def __call__(self, with_row: bool, runs: int, noise: Noise) -> Array:
        """Return, for every run, what tells most."""
        asked = sharpest(self.fit)[self.purpose]
        return asked.sample(with_row, runs, noise, weaken=self.weaken)


# --- the list -------------------------------------------------------------------------------------

OPTIMISATION = Budget(4.9, 1 / 4000)  # the paper's ε₁ and δ₁ for Table 1
SCREENING = Budget(1.0, 0.01)
NOISY_MAX = Budget(1.0, 1e-9)


def all_cases() -> dict[str, Case]:
    """Return every case by name."""
    return {case.name: case for case in (*_published(), *_whole(), *_single())}


def _published() -> Iterator[Case]:
    for name, title, claim, sample in (
        ("dp-fw", "DP-FW, published, paper's setting (E1)", OPTIMISATION, PublishedFrankWolfe),
        ("screening", "RNM-Screen's screening, published (E2)", SCREENING, PublishedScreening),
        ("noisy-max", "report-noisy-max, published (E4)", NOISY_MAX, PublishedNoisyMax),
    ):
        yield Case(f"published-{name}", title, claim, sample(claim), stands=False)


def _whole() -> Iterator[Case]:
    lasso, split = _made(PrivateLasso, CLAIM), _made(PrivateLasso, CLAIM, inference="split")
    logistic, ols = _made(PrivateLogistic, CLAIM), _made(PrivateOLS, CLAIM)
    logistic_split = _made(PrivateLogistic, CLAIM, inference="split")
    walks = {name: _made(one, CLAIM, **STEPS) for name, one in WALKS.items()}
    samples = {
        **{name: WholeFit(make, ONE_HOT, _model_of) for name, make in walks.items()},
        "private-lasso": WholeFit(lasso, FEW_ROWS, _lasso_of),
        "private-lasso-split": WholeFit(split, MANY_ROWS, _split_of),
        "private-ols": WholeFit(ols, MANY_ROWS, _table_of),
        "private-logistic": WholeFit(logistic, AGREED, _outcomes_of),
        "private-logistic-rare": WholeFit(logistic, ALONE, _outcomes_of),
        "private-logistic-split": WholeFit(logistic_split, MANY_OUTCOMES, _split_of),
    }
    for name, sample in samples.items():
        yield Case(name, f"{name}, a whole fit", CLAIM, sample, stands=True, runs=3_000)


def _single() -> Iterator[Case]:
    """Yield each kind of release, and the same with 1.5 times too little noise."""
    for fit, purposes in RELEASES.items():
        for purpose in purposes:
            told, name = f"{fit}: {purpose}", f"{fit}-{_slug(purpose)}"
            exact, weak = OneRelease(fit, purpose), OneRelease(fit, purpose, weaken=cut_of(purpose))
            yield Case(name, told, exact.claim_now, exact, stands=True, runs=40_000)
            told += f", noise cut by {cut_of(purpose):g}"
            yield Case(f"weak-{name}", told, weak.claim_now, weak, stands=False, runs=40_000)


def _slug(purpose: str) -> str:
    return "-".join(re.findall(r"[a-z]+", purpose.lower().replace("'s", "s").replace("s'", "s")))
