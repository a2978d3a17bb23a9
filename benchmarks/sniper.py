"""A search for violations of every mechanism: `python -m benchmarks sniper [draws in thousands]`.

`python -m benchmarks dp-sniper` runs the published program of DP-Sniper on the same inputs.

As in DP-Sniper (Bichsel, Steffen, Bogunovic and Vechev, 2021) a classifier learns from outputs on
neighbouring inputs which of the two they come from, and the event is that its score passes a
threshold. As in Delta-Siege (Lokna, Paradis, Dimitrov and Vechev, 2023) the event is judged by the
whole curve of the claim and not at one (ε, δ): ρ-zCDP demands that the Rényi divergence of order α
of the event's two probabilities is at most ρα for all α > 1, so limits of Clopper and Pearson for
them certify a lower bound of ρ. Training, choice of the threshold and judgement have draws of their
own. What is printed is the certified part of the claimed ρ, and the same with noise that is cut by
1.5 and a claim that is not: above 1 a claim is refuted.
"""

from __future__ import annotations

import importlib
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.markdown import write
from benchmarks.timing import repeats
from dpscreen.audit.audit import clopper_pearson
from dpscreen.privacy import (
    ZCDP,
    Accountant,
    DiscreteGaussian,
    GaussianVector,
    LaplaceNoisyMax,
    NoisyMax,
    SecureNoise,
    SignedNoisyMax,
)
from dpscreen.privacy.accountant import (
    release_gram,
    release_histograms,
    release_sums,
    release_triangle,
)
from dpscreen.rows.score_index import ScoreIndex
from dpscreen.solvers.tukey import SafetyTest

Array = Any
Search = Callable[["Pair", int, float, Any], float]
MISS = 1e-3
"""The probability, over all pairs of all mechanisms, that a certified bound is wrong."""

CUT = 1.5
ORDERS = 1 + np.logspace(-3, 2, 60)
THRESHOLDS = 60
UNIT = 2.0**-10


@dataclass(frozen=True)
class Pair:
    """A mechanism, and two inputs that one row may turn into each other."""

    kind: str
    mechanism: Any
    here: Array
    there: Array

    def cut(self) -> Pair:
        """Return the pair with less noise than is claimed."""
        return replace(self, mechanism=replace(self.mechanism, scale=self.mechanism.scale / CUT))


@dataclass(frozen=True)
class Booked:
    """A function of the package that finds a sensitivity, makes its noise and books a cost.

    `scale` is that of the noise over what the claimed cost takes.
    """

    release: Callable[[Accountant, Array, ZCDP], tuple[Array, float]]
    claimed: ZCDP
    scale: float = 1.0

    @property
    def cost(self) -> ZCDP:
        return self.claimed

    def __call__(self, values: Array, noise: Any) -> Array:
        spent = ZCDP(self.claimed.rho / Fraction(self.scale) ** 2)
        return self.release(Accountant(noise, limit=spent), values, spent)[0].ravel()


@dataclass(frozen=True)
class NearThreshold:
    """The safety test of TukeyEM, a number away from its threshold: ε-DP, so ε²/2-zCDP."""

    claimed: ZCDP
    scale: float = 1.0

    @property
    def cost(self) -> ZCDP:
        return self.claimed

    def __call__(self, values: int, noise: Any) -> Array:
        epsilon = Fraction(math.sqrt(2 * float(self.claimed)) / self.scale)
        test = SafetyTest(epsilon, 1e-6)
        return np.array([test(test.threshold + values, noise)], dtype=np.float64)


# --- inputs ---------------------------------------------------------------------------------------


def pairs() -> Iterator[Pair]:
    """Yield mechanisms with the inputs at which too little noise would show most."""
    for rho in (0.05, 0.5, 2.0):
        yield from gaussians(ZCDP(rho))
        yield from choices(ZCDP(rho))
        yield from booked(ZCDP(rho))


WHOLE = 2**28
"""Units in one, of sums over rows."""

NORM = 2.0
"""The norm of the row that is added to sums: four cells of 1."""


def booked(cost: ZCDP) -> Iterator[Pair]:
    """Yield sums and counts to which the row is added that moves them most."""
    row = np.full(4, WHOLE, dtype=np.int64)
    square = np.full((4, 4), WHOLE, dtype=np.int64)

    def histograms(accountant: Accountant, values: Array, spent: ZCDP) -> tuple[Array, float]:
        return release_histograms(accountant, values, cost=spent, purpose="counts")

    def sums(accountant: Accountant, values: Array, spent: ZCDP) -> tuple[Array, float]:
        given = {"units_per_one": WHOLE, "change": NORM, "cost": spent}
        return release_sums(accountant, values, purpose="sums", **given)

    def matrix(release: Any) -> Any:
        def found(accountant: Accountant, values: Array, spent: ZCDP) -> tuple[Array, float]:
            given = {"units_per_one": WHOLE, "row_norm": NORM, "cost": spent}
            whole, noise = release(accountant, values, purpose="matrix", **given)
            return whole[np.triu_indices(4)], noise

        return found

    one = np.zeros((3, 4), dtype=np.int64)
    one[:, 0] = 1
    yield Pair("release_histograms", Booked(histograms, cost), 0 * one, one)
    for start in (0, WHOLE // 2**12 - 1):  # the second one is next to where sums are floored
        yield Pair("release_sums", Booked(sums, cost), 0 * row + start, row + start)
    yield Pair("release_triangle", Booked(matrix(release_triangle), cost), 0 * square, square)
    yield Pair("release_gram", Booked(matrix(release_gram), cost), 0 * square, square)
    for below in (-1, 0):
        yield Pair("safety test", NearThreshold(cost), below, below + 1)


def gaussians(cost: ZCDP) -> Iterator[Pair]:
    for d, unit in ((1, 1.0), (1, 2.0**-10), (4, 2.0**-4), (20, 2.0**-10)):
        discrete = DiscreteGaussian.of_cost(cost, sensitivity=1.0, unit=unit)
        for far in (0, 2**40):
            here = np.full(d, far, dtype=np.int64)
            for moved in _moves(d, round(1 / unit)):
                yield Pair("discrete Gaussian", discrete, here, here + moved)
        continuous = GaussianVector.of_cost(cost, sensitivity=1.0)
        yield Pair("Gaussian", continuous, np.zeros(d), np.eye(d)[0])
        yield Pair("Gaussian", continuous, np.zeros(d), np.full(d, 1 / np.sqrt(d)))


def _moves(d: int, most: int) -> Iterator[Array]:
    """Yield moves within L2 norm `most`: of one number, and of all alike."""
    yield most * np.eye(1, d, dtype=np.int64)[0]
    if d > 1:
        yield np.full(d, int(most / np.sqrt(d)), dtype=np.int64)


def choices(cost: ZCDP) -> Iterator[Pair]:
    whole = round(1 / UNIT)
    exact = NoisyMax.of_cost(cost, sensitivity=1.0, unit=UNIT)
    half = NoisyMax.of_cost(cost, sensitivity=1.0, score_range=1.0, unit=UNIT)
    signed = SignedNoisyMax.of_cost(cost, sensitivity=1.0, unit=UNIT)
    laplace = LaplaceNoisyMax(1.0, 2.0 / np.sqrt(2 * float(cost)))
    one_number = np.array([-whole // 2], dtype=np.int64)
    yield Pair("signed noisy max", signed, one_number, -one_number)
    indexed = ScoreIndex(one_number), ScoreIndex(-one_number)
    yield Pair("signed noisy max, indexed", signed, *indexed)
    for d in (2, 3, 10):
        rise = np.where(np.arange(d) == 0, whole, -whole)
        # The first choice is as likely as all others together, half-way between both inputs.
        level = round(exact.scale / UNIT * np.log(d - 1))
        start = np.where(np.arange(d) == 0, level - whole, 0)
        yield Pair("noisy max", exact, start, start + rise)
        yield Pair("noisy max", exact, np.zeros(d, dtype=np.int64), rise)
        one = np.where(np.arange(d) == 0, whole, 0)
        apart = np.where(
            np.arange(d) == 0, round(half.scale / UNIT * np.log(d - 1)) - whole // 2, 0
        )
        yield Pair("noisy max, one-sided", half, apart, apart + one)
        yield Pair("signed noisy max", signed, np.zeros(d, dtype=np.int64), one)
        yield Pair("signed noisy max", signed, -one, np.zeros(d, dtype=np.int64))
        yield Pair("signed noisy max, indexed", signed, ScoreIndex(0 * one), ScoreIndex(one))
        centre = np.where(np.arange(d) == 0, -0.5 + laplace.scale * np.log(d - 1), 0.5)
        rises = np.where(np.arange(d) == 0, 1.0, -1.0)
        yield Pair("Laplace noisy max", laplace, centre, centre + rises)


# --- the search -----------------------------------------------------------------------------------


def drawn(mechanism: Any, values: Array, count: int, noise: Any) -> Array:
    """Return outputs as rows of numbers; a choice is a row of zeros and a one."""
    if isinstance(mechanism, DiscreteGaussian | GaussianVector):
        d = len(values)
        return mechanism(np.tile(values, count), noise).reshape(count, d)
    found = [mechanism(values, noise) for _ in range(count)]
    if isinstance(found[0], np.ndarray):
        return np.array(found)
    places = [2 * one.feature + (one.sign > 0) if hasattr(one, "feature") else one for one in found]
    return np.eye(2 * values.size)[np.asarray(places, dtype=np.int64)]


def certified(pair: Pair, count: int, miss: float, noise: Any) -> float:
    """Return the certified lower bound of ρ: the better of both directions."""
    sides = [drawn(pair.mechanism, values, count, noise) for values in (pair.here, pair.there)]
    third = count // 3
    train = np.vstack([side[:third] for side in sides])
    centre, scale = train.mean(axis=0), train.std(axis=0) + 1e-12
    labels = np.repeat([1, 0], third)
    model = LogisticRegression(C=1e3, max_iter=200).fit((train - centre) / scale, labels)
    here, there = (model.decision_function((side[third:] - centre) / scale) for side in sides)
    bounds = []
    for p, q in ((here, there), (-there, -here)):
        first, second = p[:third], q[:third]
        edges = np.unique(np.quantile(np.append(first, second), np.linspace(0, 1, THRESHOLDS)))
        edge = max(edges, key=lambda t: _bound(first >= t, second >= t, miss))
        bounds.append(_bound(p[third:] >= edge, q[third:] >= edge, miss / 2))
    return max(bounds)


def _bound(one: Array, other: Array, miss: float) -> float:
    """Return max over α of the Rényi divergence of an event's probabilities, over α."""
    p, _ = clopper_pearson(int(one.sum()), len(one), miss=miss / 2)
    _, q = clopper_pearson(int(other.sum()), len(other), miss=miss / 2)
    return event_rho(float(p), float(q))


def event_rho(p: float, q: float) -> float:
    """Return the least ρ that allows an event of probability p here and q there, p > q."""
    if p <= q:
        return 0.0
    if q >= 1 or p >= 1:
        p, q = min(p, 1 - 1e-12), min(q, 1 - 1e-12)
    with np.errstate(all="ignore"):
        logs = np.logaddexp(
            ORDERS * np.log(p) + (1 - ORDERS) * np.log(q),
            ORDERS * np.log1p(-p) + (1 - ORDERS) * np.log1p(-q),
        )
        return float(np.nanmax(logs / (ORDERS - 1) / ORDERS))


def main() -> None:
    """Search every pair, as it is and with less noise, and print the sharpest of each kind."""
    run("sniper", list(pairs()), certified, 30)


def run(name: str, whole: list[Pair], search: Search, thousands: int) -> None:
    count, noise = 1000 * repeats(thousands), SecureNoise()
    found: dict[str, list[tuple[float, float]]] = {}
    began = time.process_time()
    for pair in whole:
        claimed = float(pair.mechanism.cost)
        miss = MISS / (2 * len(whole))
        now = search(pair, count, miss, noise) / claimed
        less = search(pair.cut(), count, miss, noise) / claimed
        found.setdefault(pair.kind, []).append((now, less))
    seconds = time.process_time() - began
    write(name, table(found, count, seconds))


def table(found: dict[str, list[tuple[float, float]]], count: int, seconds: float) -> str:
    head = f"| mechanism | pairs | largest certified part of ρ | with noise cut by {CUT:g} |"
    lines = [head, "|---|---|---|---|"]
    for kind, parts in found.items():
        now, less = (max(one) for one in zip(*parts, strict=True))
        lines.append(f"| {kind} | {len(parts)} | {now:.2f} | {less:.2f} |")
    tail = f"{count:,} draws a side and pair, {seconds:.0f} seconds of processor time; "
    broken = sum(now > 1 for parts in found.values() for now, _ in parts)
    tail += f"{broken} of {sum(map(len, found.values()))} claims refuted as they are."
    return "\n".join([*lines, "", tail.replace(",", " ", 1)])


# --- the published program ------------------------------------------------------------------------

PUBLISHED_RHO = 0.5
BATCHES = 50
"""Batches of training; ten steps of gradient descent are made on each."""

LEAST = 0.2
"""Probability of an event, `c` of the program. Its default of 0.01 is made for ten million draws:
with some thousands an event must not be rare for its limits to be close."""


@dataclass(frozen=True)
class Program:
    """Modules of the published program of DP-Sniper, as they are."""

    attack: Any
    factories: Any
    optimizers: Any
    mechanisms: Any
    estimators: Any
    limits: Any
    config: Any

    @classmethod
    def found(cls) -> Program:
        """Import the program, and give it a folder for what it writes."""
        parts = (
            "attack.dpsniper",
            "classifiers.classifier_factory",
            "classifiers.torch_optimizer_factory",
            "mechanisms.abstract",
            "probability.estimators",
            "probability.binomial_cdf",
            "search.ddconfig",
        )
        try:
            importlib.import_module("dpsniper.utils.paths").set_output_directory(tempfile.mkdtemp())
            importlib.import_module("dpsniper.utils.torch").torch_initialize(torch_threads=1)
            return cls(*(importlib.import_module(f"dpsniper.{one}") for one in parts))
        except ImportError as problem:
            sys.exit(f"DP-Sniper cannot be imported ({problem}): put its folder on PYTHONPATH.")

    def certified(self, pair: Pair, count: int, miss: float, noise: Any) -> float:
        """Return the lower bound of ρ from its classifier, threshold, estimates and limits."""

        class Mechanism(self.mechanisms.Mechanism):  # type: ignore[name-defined,misc]
            def m(self, a: Array, n_samples: int = 1) -> Array:
                return drawn(pair.mechanism, a, n_samples, noise)

        mechanism = Mechanism()
        config = self.config.DDConfig(
            c=LEAST,
            n_train=count,
            n=count,
            n_check=count,
            prediction_batch_size=count,
            training_batch_size=count // BATCHES,
            n_processes=1,
        )
        classifiers = self.factories.LogisticRegressionFactory(
            in_dimensions=mechanism.m(pair.here).shape[1],
            optimizer_factory=self.optimizers.SGDOptimizerFactory(),
        )
        search = self.attack.DPSniper(mechanism, classifiers, config)
        estimator = self.estimators.PrEstimator(mechanism, count, config)
        bounds = []
        for one, other in ((pair.here, pair.there), (pair.there, pair.here)):
            event = search.best_attack(one, other)
            p, q = (estimator.compute_pr_estimate(values, event) for values in (one, other))
            low = self.limits.lcb(count, math.floor(p * count), miss / 4)
            high = self.limits.ucb(count, math.ceil(q * count), miss / 4)
            bounds.append(event_rho(float(low), float(high)))
        return max(bounds)


def main_published() -> None:
    """Let the published program search the inputs of one budget."""
    whole = [one for one in pairs() if float(one.mechanism.cost) == PUBLISHED_RHO]
    run("dp-sniper", whole, Program.found().certified, 5)
