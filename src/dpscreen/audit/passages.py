"""Every kind of release that shipped fits make, one at a time, where one more row shows most.

A fit is recorded, and replayed with one row more under the same releases. The inputs of a mechanism
in the two runs are what an observer has to distinguish who knows everything else, all earlier
releases included. So the budget of one release is not lost in that of the whole fit. The mechanism
is the fit's own, and so is the cost charged for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy.special import ndtr, softmax

from dpscreen._core.arrays import Array
from dpscreen.planning.power import fit_quietly
from dpscreen.privacy import Budget, DiscreteGaussian, Noise, NoisyMax, SignedNoisyMax
from dpscreen.privacy.replay import Passage, Steer, record, replay

CUT = 1.5
"""The claim is audited at the ε where noise that is so many times too small is detected best."""

UNDETECTED = 0.005
"""Probabilities that some thousand runs cannot distinguish from 0."""

EPSILONS = tuple(0.01 * 1.5**k for k in range(16))

Curve = Callable[[float], float]
"""From ε to the δ with which it holds."""


@dataclass(frozen=True)
class Neighbours:
    """Rows, and one more row that makes the difference."""

    X: Array
    y: Array
    row: Array
    target: float

    def rows(self, with_row: bool) -> tuple[Array, Array]:
        """Return one of the two data sets."""
        if not with_row:
            return self.X, self.y
        return np.vstack((self.X, self.row)), np.append(self.y, self.target)


@dataclass(frozen=True)
class AuditedFit:
    """A shipped estimator whose releases are audited on small data sets.

    Columns may be copied. `steer` makes transcripts in which a release shows most: what is claimed
    is claimed for all of them.
    """

    make: Callable[[], Any]
    outcomes: bool = False
    copies: int = 1
    steer: Steer | None = None

    def releases(self) -> Iterator[MovedRelease]:
        """Yield the inputs of every mechanism, without one more row and with it."""
        for seed, rows in enumerate(_drawn_pairs()):
            data = replace(rows, X=np.tile(rows.X, self.copies), row=np.tile(rows.row, self.copies))
            if self.outcomes:
                y = np.where(rows.y > 0, 1.0, 0.0)
                data = replace(data, y=y, target=float(rows.target > 0))
            model = self.make().set_params(random_state=seed)
            with record(steer=self.steer) as without:
                fit_quietly(model, *data.rows(False))
            coins = [np.append(tossed, seed % 2 == 0) for tossed in without.coins] or None
            with replay(without, coins=coins) as more:
                fit_quietly(model, *data.rows(True))
            for one, other in zip(without.passages, more.passages, strict=True):
                yield MovedRelease(one, other)

    def sharpest(self) -> dict[str, MovedRelease]:
        """Return for every purpose the release in which one more row shows most."""
        found: dict[str, MovedRelease] = {}
        for release in self.releases():
            purpose = release.without.purpose
            if purpose not in found or (release.moves and release.power > found[purpose].power):
                found[purpose] = release
        return found


def _drawn_pairs() -> Iterator[Neighbours]:
    """Yield rows and one more, which decides what is released."""
    ends, rng = np.array([-1.0, 1.0]), np.random.default_rng(0)
    for d, n in ((1, 3), (1, 40), (2, 3), (2, 40)):
        # Nothing but the one more; then corners of the bounds, which leave some choices open.
        for target in (-4.0, 4.0):
            yield Neighbours(np.zeros((n, d)), np.zeros(n), np.ones(d), target)
        X, y = rng.choice((-1.0, -0.5, 1.0), (n, d)), rng.choice((-4.0, 0.0, 4.0), n)
        yield Neighbours(X, y, rng.choice(ends, d), 4.0)
    for d, n in ((1, 1), (1, 2), (1, 3), (1, 400), (2, 1), (2, 400)):
        # All agree, and the one more does not.
        X = rng.choice(ends, (n, d))
        yield Neighbours(X, 2 * X.sum(axis=1), np.ones(d), -4.0)
    for share in (0.5, 0.6, 0.68, 0.75, 0.9):
        # Targets at two magnitudes, and a quantile between them.
        y = np.where(np.arange(200) < 200 * share, 0.01, 1.0) * rng.choice(ends, 200)
        yield Neighbours(rng.choice(ends, (200, 1)), y, np.ones(1), 4.0)


@dataclass(frozen=True, eq=False)
class MovedRelease:
    """A mechanism of a fit, its inputs without one more row and with it, and its claim."""

    without: Passage
    more: Passage

    @property
    def moves(self) -> bool:
        """Whether one more row changes the input of the mechanism."""
        return bool(np.any(self._moved))

    @property
    def claim(self) -> Budget:
        """Return the point of the charged curve where too little noise is detected best."""
        return self._best_point[1]

    @property
    def power(self) -> float:
        """Return the margin by which too little noise breaks the claim, as `_margin` has it."""
        return self._best_point[0]

    @cached_property
    def _best_point(self) -> tuple[float, Budget]:
        mechanism = self.without.mechanism
        charged = _charged(mechanism)
        # The curve of this pair of inputs, with noise CUT times too small.
        if isinstance(mechanism, DiscreteGaussian):
            moved = np.linalg.norm(self._moved) * mechanism.unit / mechanism.scale
            true: Curve = partial(gaussian_delta, apart=CUT * float(moved))
        else:
            without, more = (
                softmax(CUT * _scores(mechanism, one)) for one in (self.without, self.more)
            )
            true = partial(_discrete_delta, one=without, other=more)
        power, epsilon = max((_margin(charged, true, epsilon), epsilon) for epsilon in EPSILONS)
        return power, Budget(epsilon, min(max(charged(epsilon), 1e-9), 1 - 1e-9))

    @property
    def _moved(self) -> Array:
        return np.asarray(self.more.given - self.without.given, dtype=np.float64).ravel()

    def sample(self, with_row: bool, runs: int, noise: Noise, *, weaken: float) -> Array:
        """Return, for every run, a sufficient statistic of which of the two inputs it was."""
        mechanism: Any = self.without.mechanism
        mechanism = replace(mechanism, scale=mechanism.scale / weaken)
        given = (self.more if with_row else self.without).given.ravel()
        if isinstance(mechanism, DiscreteGaussian):
            noisy = mechanism(np.tile(given, runs), noise).reshape(runs, -1)
            return np.asarray(noisy @ self._moved[:, None])
        gained = _scores(mechanism, self.more) - _scores(mechanism, self.without)
        chosen = []
        for _ in range(runs):
            found = mechanism(given, noise)
            if isinstance(mechanism, SignedNoisyMax):
                found = found.feature + (given.size if found.sign < 0 else 0)
            chosen.append(int(found))
        return np.asarray(gained[chosen][:, None])


def _scores(mechanism: Any, passage: Passage) -> Array:
    """Return all scores of a choice, in units of its noise's scale."""
    given = passage.given.ravel() * (mechanism.unit / mechanism.scale)
    return np.concatenate((given, -given)) if isinstance(mechanism, SignedNoisyMax) else given


def _margin(charged: Curve, true: Curve, epsilon: float) -> float:
    """Return how far the true δ is above the claimed one, in standard deviations of one run."""
    delta, found = charged(epsilon), true(epsilon)
    likely = max(found, delta)
    unlikely = (1 - likely) / math.exp(epsilon)
    variance = likely * (1 - likely) + math.exp(2 * epsilon) * unlikely * (1 - unlikely)
    return (found - delta - UNDETECTED) / math.sqrt(max(variance, UNDETECTED))


# --- the charged cost as a privacy curve ----------------------------------------------------------


def gaussian_delta(epsilon: float, apart: float) -> float:
    """Return δ of two Gaussians so many standard deviations apart."""
    if apart == 0:
        return 0.0
    above, below = ndtr(apart / 2 - epsilon / apart), ndtr(-apart / 2 - epsilon / apart)
    return float(above - math.exp(epsilon) * below)


def choice_delta(epsilon: float, span: float) -> float:
    """Return δ of choices whose log-odds move by at most `span`.

    (docs/theory/mechanisms.md, Lemma 2)

    The worst is between two candidates: max σ(t + s) − e^ε σ(t), whose derivative is zero where
    (1 + e^t)/(1 + e^(t+s)) = e^((ε−s)/2).
    """
    if epsilon >= span:
        return 0.0
    start = -math.expm1((epsilon - span) / 2) / math.expm1((epsilon + span) / 2)
    moved = start * math.exp(span)
    return moved / (1 + moved) - math.exp(epsilon) * start / (1 + start)


def _charged(mechanism: Any) -> Curve:
    """Return the curve that the charged cost stands for.

    (docs/theory/mechanisms.md, Lemmas 2 and 3)
    """
    apart = math.sqrt(2 * float(mechanism.cost))
    if isinstance(mechanism, DiscreteGaussian):
        return partial(gaussian_delta, apart=apart)
    if isinstance(mechanism, NoisyMax | SignedNoisyMax):
        return partial(choice_delta, span=2 * apart)
    raise TypeError(f"{mechanism.name}: nothing is claimed for it.")


def _discrete_delta(epsilon: float, one: Array, other: Array) -> float:
    """Return δ of two laws of a choice."""
    grown = math.exp(epsilon)
    both = (one - grown * other, other - grown * one)
    return max(float(np.maximum(beyond, 0).sum()) for beyond in both)
