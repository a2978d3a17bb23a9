"""What is audited: whole fits, each kind of their releases, and what the paper claims.

A case runs shipped code many times on a data set without a row and on the same with it, and returns
released numbers only. Rows are built from the sensitivity proofs: the one more moves every choice
in the same direction by as much as the proof allows, and the others leave the choice open.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np

from dpscreen._core.arrays import Array, Integers
from dpscreen.audit.passages import CUT, AuditedFit, MovedRelease, Neighbours
from dpscreen.models import (
    ADPScreen,
    DPFrankWolfe,
    PrivateLasso,
    PrivateLogisticLasso,
    PrivateLogit,
    PrivateOLS,
    PrivatePoisson,
    RNMScreen,
    peers,
)
from dpscreen.planning.power import fit_quietly
from dpscreen.privacy import Accountant, Budget, LaplaceNoisyMax, Noise
from dpscreen.rows.design import DenseDesign
from dpscreen.solvers import frank_wolfe as steps
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

# Only the extra row has weight: it moves every step one way; without it each is a fair coin.
ONE_HOT = Neighbours(np.zeros((1, 1)), np.zeros(1), np.array([1.0]), 4.0)
FEW_ROWS = Neighbours(np.zeros((12, 2)), np.zeros(12), np.array([1.0, -1.0]), 4.0)
# Enough rows for a refit; the one more contradicts them all.
MANY_ROWS = Neighbours(
    np.tile([[1.0], [-1.0]], (200, 1)), np.tile([1.0, -1.0], 200), np.array([1.0]), -4.0
)
AGREED = Neighbours(np.zeros((12, 2)), np.tile([0.0, 1.0], 6), np.array([1.0, -1.0]), 1.0)
# Enough rows for odds ratios, three of four as the feature says; the one more contradicts.
MANY_OUTCOMES = Neighbours(
    np.repeat([[1.0], [-1.0]], 600, axis=0),
    np.repeat([1.0, 0.0, 1.0], [450, 600, 150]),
    np.array([1.0]),
    0.0,
)
# The one more is the only row of its class, and the only one with the feature.
ALONE = Neighbours(np.zeros((40, 1)), np.zeros(40), np.ones(1), 1.0)


Released = Callable[[Any], Sequence[float]]
"""From a fitted model to released numbers."""


def whole_fit(make: Callable[..., Any], data: Neighbours, released: Released) -> Sample:
    """Return runs of a shipped estimator from end to end, on a few rows."""

    def sample(with_row: bool, runs: int, noise: Noise) -> Array:
        model = make(n_rows=len(data.X), random_state=noise)
        rows = data.rows(with_row)
        return np.array([released(fit_quietly(model, *rows)) for _ in range(runs)], dtype=float)

    return sample


def _model_of(fitted: Any) -> list[float]:
    return [*fitted.coef_.ravel(), float(fitted.intercept_)]


def _lasso_of(fitted: PrivateLasso) -> list[float]:
    return [*_model_of(fitted), *fitted.target_bounds_]


def _split_of(shown: Callable[[Any], list[float]], fitted: Any) -> list[float]:
    """Return the first refitted coefficient and its error too; zeros where there is none."""
    found = fitted.inference_.intervals
    refit = [found[0].coefficient, found[0].standard_error] if found else [0.0, 0.0]
    return [*shown(fitted), *refit]


def _outcomes_of(fitted: PrivateLogisticLasso) -> list[float]:
    quality = fitted.quality_
    shown = [quality.no[0], quality.yes[-1], float(np.nan_to_num(quality.deviance))]
    return [*fitted.coef_[0], *fitted.intercept_, *shown]


def _table_of(fitted: PrivateOLS) -> list[float]:
    return [*_model_of(fitted), *np.nan_to_num(fitted.bse)]


BOUNDS = {"feature_bounds": (-1, 1), "target_bounds": (-4, 4)}
STEPS = {"radius": 1.0, "n_iter": 16, "clip": 1.0}


def _made(estimator: Callable[..., Any], budget: Budget, **options: Any) -> Callable[..., Any]:
    """Return what makes the estimator; options that it does not have are left out."""
    given = {"epsilon": budget.epsilon, "delta": budget.delta, **BOUNDS, **options}
    taken = set(estimator().get_params())

    def make(**more: Any) -> Any:
        options = given | more
        return estimator(**{name: one for name, one in options.items() if name in taken})

    return make


# --- published steps ------------------------------------------------------------------------------


def published_dp_fw(claim: Budget, with_row: bool, runs: int, noise: Noise) -> Array:
    """Run published DP-FW with the paper's λ = 50 and T = 1000, on 100 rows of which 99 are zero.

    Erratum E1: one row moves the gradient 2λ times further than "Lipschitz constant 1" allows for.
    """
    X, y, radius = np.zeros((100, 1)), np.zeros(100), 50.0
    if with_row:
        X[0], y[0] = 1.0, -radius
    setting: dict[str, Any] = {"radius": radius, "n_iter": 1000}
    mechanism = steps.published_step_mechanism(claim, **setting, n_rows=100)
    return frank_wolfe_runs(X, y, mechanism, noise, runs=runs, **setting)


def frank_wolfe_runs(
    X: Array,
    y: Array,
    mechanism: LaplaceNoisyMax,
    noise: Noise,
    *,
    runs: int,
    radius: float,
    n_iter: int,
) -> Array:
    """Run the published Frank-Wolfe many times at once, on the Gram form.

    Returns a row a run: how often each vertex was chosen, and the final weights.
    """
    gram, moment, d, every = X.T @ X, X.T @ y, X.shape[1], np.arange(runs)
    unscaled, counts, scale = np.zeros((runs, d)), np.zeros((runs, 2 * d)), 1.0
    for t in range(1, n_iter + 1):
        gradient = scale * (unscaled @ gram) - moment
        scores = np.hstack((-gradient, gradient)) * (radius / len(X))
        chosen = laplace_choices(mechanism, scores, noise)
        counts[every, chosen] += 1
        unscaled[every, chosen % d] += np.where(chosen < d, 1, -1) * (t + 1)
        scale = 2 * radius / ((t + 1) * (t + 2))
    return np.hstack((counts, scale * unscaled))


def laplace_choices(mechanism: LaplaceNoisyMax, scores: Array, noise: Noise) -> Integers:
    """Return the noisy maximum of every row of scores."""
    draws = noise.laplace(scores.size).reshape(scores.shape)
    return np.asarray(np.argmax(scores + mechanism.scale * draws, axis=1), dtype=np.int64)


def published_screening(claim: Budget, with_row: bool, runs: int, noise: Noise) -> Array:
    """Screen once as published RNM-Screen does, at the pair that attains the true sensitivity (E2).

    n − 1 rows (1, λ) and w = λ score exactly 0; one more row (1, −λ) raises the score by (√n + 1)/2
    times what Theorem 1 allows for. Returns, for every run, whether the feature was screened.
    """
    n_rows, radius = 10_000, 1.0
    y = np.full(n_rows - (not with_row), radius)
    y[-1] = -radius if with_row else radius
    design = DenseDesign(np.ones((len(y), 1)), y)
    point = design.at(np.array([radius]))
    design.n_rows = n_rows  # 1/n is a constant of the algorithm, the same on both sides
    screen = published_rnm(Accountant(noise, limit=None), design, claim, radius=radius, n_iter=1)
    return np.array([[float(len(list(screen(point, 1))))] for _ in range(runs)])


def published_noisy_max(claim: Budget, with_row: bool, runs: int, noise: Noise) -> Array:
    """Choose by report-noisy-max from scores that move apart: its noise lacks a factor 2 (E4)."""
    mechanism = LaplaceNoisyMax.as_published(claim.epsilon, sensitivity=1.0)
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


def _even_classes(purpose: str, _mechanism: object, size: int) -> Array | None:
    """Release as many rows of either class: a table of one class alone is refused."""
    return np.full(size, 200.0) if purpose == "number of rows of the second class" else None


FRANK_WOLFE = {"dp-fw": DPFrankWolfe, "rnm-screen": RNMScreen, "adp-screen": ADPScreen}
FITS: dict[str, AuditedFit] = {
    "lasso": _ample(PrivateLasso, n_rows=100, standardize=True),
    "lasso-counted": _ample(PrivateLasso, n_rows=None),
    "lasso-dense": _ample(PrivateLasso, epsilon=20.0, n_rows=None, n_iter=None),
    "lasso-fw": _ample(PrivateLasso, solver="frank-wolfe", standardize=False),
    "lasso-row-norm": replace(_ample(PrivateLasso, row_norm=2.0, n_rows=100), copies=30),
    "split": _ample(PrivateLasso, inference="split", n_rows=4_000, epsilon=20.0),
    "ols": _ample(PrivateOLS, epsilon=70.0),
    "logit": replace(_ample(PrivateLogit, epsilon=70.0), steer=_even_classes),
    "poisson": _ample(PrivatePoisson, epsilon=70.0, target_bounds=(0, 4)),
    "logistic": _ample(PrivateLogisticLasso),
    # The number of rows is known to 1 %: no middle is taken off.
    "logistic-counted": _ample(PrivateLogisticLasso, n_rows=10**6),
    "logistic-dense": _ample(PrivateLogisticLasso, epsilon=20.0, n_rows=20, n_iter=None),
    "logistic-split": _ample(PrivateLogisticLasso, inference="split", n_rows=4_000, epsilon=20.0),
    **{name: _ample(one, **STEPS, screening_share=0.05) for name, one in FRANK_WOLFE.items()},
    **{
        name.lower(): _ample(getattr(peers, name), epsilon=_share_of(name))
        for name in peers.__all__
    },
}
RELEASES: dict[str, tuple[str, ...]] = {
    "lasso": (
        "target: histogram",
        "target: distances from the centre",
        "features: histogram",
        "features: distances from the centre",
        "features: means and mean squares",
        "stagewise step",
        "the intercept",
        "scale of the residuals",
        "Gram matrix",
        "score",
        "squared residuals",
        "squared target",
        "the target's sum",
        "magnitudes of residuals",
        "magnitudes of the target",
    ),
    "lasso-counted": ("the number of rows",),
    "lasso-dense": ("Gram matrix", "score"),
    "lasso-fw": ("features: mean square of all", "Frank-Wolfe step"),
    "split": (
        "score: clipped residuals times whitened features",
        "direction of clipped influences",
        "meat of the sandwich covariance",
    ),
    "ols": (
        "norms of whitened rows",
        "Gram matrix: whitening",
        "Gram matrix: whitened",
        "sizes of influences",
        "score: clipped residuals times whitened features",
        "direction of clipped influences",
        "meat of the sandwich covariance",
        "the number of norm-clipped rows",
    ),
    "logit": ("curvature of the loss",),
    "poisson": (
        "target: mean",
        "norms of whitened rows times roots of means",
        "deviance of the model",
        "deviance of a constant",
        "counts and outcomes by predicted mean",
    ),
    "logistic-dense": ("Gram matrix", "score"),
    "logistic": ("number of rows of the second class", "probabilities by outcome"),
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


# --- the list -------------------------------------------------------------------------------------

OPTIMISATION = Budget(4.9, 1 / 4000)  # the paper's ε₁ and δ₁ for Table 1
SCREENING = Budget(1.0, 0.01)
NOISY_MAX = Budget(1.0, 1e-9)


def all_cases() -> dict[str, Case]:
    """Return every case by name."""
    return {case.name: case for case in (*_published(), *_whole(), *_single())}


def _published() -> Iterator[Case]:
    for name, title, claim, sample in (
        ("dp-fw", "DP-FW, published, paper's setting (E1)", OPTIMISATION, published_dp_fw),
        ("screening", "RNM-Screen's screening, published (E2)", SCREENING, published_screening),
        ("noisy-max", "report-noisy-max, published (E4)", NOISY_MAX, published_noisy_max),
    ):
        yield Case(f"published-{name}", title, claim, partial(sample, claim), stands=False)


def _whole() -> Iterator[Case]:
    lasso, logistic = _made(PrivateLasso, CLAIM), _made(PrivateLogisticLasso, CLAIM)
    parts = {"inference": "split"}
    steps_of = {name: _made(one, CLAIM, **STEPS) for name, one in FRANK_WOLFE.items()}
    cases: tuple[tuple[str, Callable[..., Any], Neighbours, Released], ...] = (
        *((name, make, ONE_HOT, _model_of) for name, make in steps_of.items()),
        ("private-lasso", lasso, FEW_ROWS, _lasso_of),
        ("private-lasso-split", partial(lasso, **parts), MANY_ROWS, partial(_split_of, _lasso_of)),
        ("private-ols", _made(PrivateOLS, CLAIM), MANY_ROWS, _table_of),
        ("private-logistic", logistic, AGREED, _outcomes_of),
        ("private-logistic-rare", logistic, ALONE, _outcomes_of),
        (
            "private-logistic-split",
            partial(logistic, **parts),
            MANY_OUTCOMES,
            partial(_split_of, _outcomes_of),
        ),
    )
    for name, make, data, released in cases:
        sample = whole_fit(make, data, released)
        yield Case(name, f"{name}, a whole fit", CLAIM, sample, stands=True, runs=3_000)


def _single() -> Iterator[Case]:
    """Yield each kind of release, and the same with 1.5 times too little noise."""
    for fit, purposes in RELEASES.items():
        for purpose in purposes:
            words = re.findall(r"[a-z]+", purpose.lower().replace("'s", "s").replace("s'", "s"))
            name, title = "-".join((fit, *words)), f"{fit}: {purpose}"
            # It takes a fit to know what was charged.
            claim = partial(_claim, fit, purpose)
            for weak, less, cut in (("", "", 1.0), ("weak-", f", noise cut by {CUT:g}", CUT)):
                sample = partial(_sample, fit, purpose, cut)
                stands = cut == 1
                yield Case(weak + name, title + less, claim, sample, stands, runs=40_000)


def _claim(fit: str, purpose: str) -> Budget:
    return sharpest(fit)[purpose].claim


def _sample(fit: str, purpose: str, cut: float, with_row: bool, runs: int, noise: Noise) -> Array:
    return sharpest(fit)[purpose].sample(with_row, runs, noise, weaken=cut)
