"""What a case is, and many runs of a small one at once.

The arithmetic is that of the library's own points and mechanisms, with one more axis for the runs;
tests hold the two together. Only worst cases of a few rows and features are meant.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpscreen._core.arrays import AnyArray, Array, Integers
from dpscreen.models import BoundsWarning
from dpscreen.privacy import (
    Budget,
    LaplaceNoisyMax,
    Noise,
    NoisyMax,
    SeededNoiseWarning,
    SignedNoisyMax,
    WeakDeltaWarning,
)
from dpscreen.privacy.sampling import below_exponential, exponential_mechanism, weight_bits
from dpscreen.rows.lattice import on_lattice
from dpscreen.rows.sums import LEVELS

Sample = Callable[[bool, int, Noise], Array]
"""Runs on the data set without or with the row, and returns a row of released numbers a run."""

CLAIM = Budget(1.0, 0.01)


@dataclass(frozen=True)
class Case:
    """What is claimed, how to run it, and whether the claim is expected to stand."""

    name: str
    title: str
    claim: Budget
    sample: Sample
    stands: bool
    runs: int = 20_000


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


def repeated(fit: Callable[[], Array], runs: int) -> Array:
    """Return what so many fits release, a row a fit."""
    with warnings.catch_warnings():
        # A seed makes an audit repeatable, a large δ makes it sharp; nothing is released here.
        for kind in (SeededNoiseWarning, WeakDeltaWarning, BoundsWarning):
            warnings.simplefilter("ignore", kind)
        return np.array([fit() for _ in range(runs)])


class Runs:
    """Frank-Wolfe for many runs, a row a run; a feature pulls as its row of `pulls` says."""

    def __init__(self, pulls: AnyArray, runs: int) -> None:
        self._pulls = pulls
        self._v = np.zeros((runs, len(pulls)), dtype=pulls.dtype)
        self._pull = np.zeros((runs, pulls.shape[1]), dtype=pulls.dtype)
        self._runs = np.arange(runs)
        self.scale = 1.0

    @property
    def weights(self) -> Array:
        """Return the weights, a row a run."""
        return np.asarray(self.scale * self._v, dtype=np.float64)

    def add(self, features: Integers, amounts: Integers) -> None:
        """Add to one unscaled weight in every run."""
        self._v[self._runs, features] += amounts
        self._pull += amounts[:, None] * self._pulls[features]


class LatticeRuns(Runs):
    """On the lattice: what `LatticePoint` does."""

    def __init__(self, X: Array, y: Array, runs: int) -> None:
        super().__init__(on_lattice(X).T.astype(np.int64), runs)
        self._target = y

    def clipped_sums(self, clip: float) -> Integers:
        """Return the clipped sums of every run, in whole numbers of clip/2^28."""
        residuals = self.scale / LEVELS * self._pull - self._target
        levels = np.clip(np.rint(residuals * (LEVELS / clip)), -LEVELS, LEVELS)
        return np.asarray(levels.astype(np.int64) @ self._pulls.T)


class GramRuns(Runs):
    """On the Gram form: what `GramPoint` does."""

    def __init__(self, X: Array, y: Array, runs: int) -> None:
        super().__init__(X.T @ X, runs)
        self._moment = X.T @ y

    def gradient(self) -> Array:
        """Return the gradient of every run."""
        return np.asarray(self.scale * self._pull - self._moment)


def laplace_choices(mechanism: LaplaceNoisyMax, scores: Array, noise: Noise) -> Integers:
    """Return the noisy maximum of every row of scores."""
    draws = noise.laplace(scores.size).reshape(scores.shape)
    return np.asarray(np.argmax(scores + mechanism.scale * draws, axis=1), dtype=np.int64)


def exact_choices(mechanism: NoisyMax | SignedNoisyMax, scores: Integers, noise: Noise) -> Integers:
    """Return the exact noisy maximum of every row of scores.

    One word a row makes the proposal of `exponential_mechanism`, whose three steps these are.
    """
    from dpscreen.privacy import kernels

    scale, n_bits = mechanism.scale_in_units, weight_bits(scores.shape[1])
    bounds = np.empty_like(scores)
    kernels.upper_weights(scores, kernels.LOG2_E / float(scale), n_bits, bounds)
    found, places = _proposals(bounds, noise)
    sure = (places >= 0) & (places < _certain(bounds[np.arange(len(scores)), found]))
    for row in np.flatnonzero(~sure).tolist():
        x = Fraction(int(scores[row].max() - scores[row, found[row]])) / scale
        missed = places[row] < 0
        if missed or not below_exponential(int(places[row]), n_bits, x, noise):
            found[row] = exponential_mechanism(scores[row], scale, noise)
    return found


def _proposals(bounds: Integers, noise: Noise) -> tuple[Integers, Integers]:
    """Return the candidate on whose share a number falls, and the place there; −1 is a miss."""
    ends = np.cumsum(bounds, axis=1)
    totals = ends[:, -1]
    shift = np.uint64(64 - int(totals.max()).bit_length())
    numbers = (noise.words(len(bounds)) >> shift).astype(np.int64)
    found = np.minimum((ends <= numbers[:, None]).sum(axis=1), bounds.shape[1] - 1)
    rows = np.arange(len(bounds))
    places = numbers - (ends[rows, found] - bounds[rows, found])
    return found, np.where(numbers < totals, places, -1)


def _certain(bounds: Integers) -> Integers:
    """Return `certain_weight` of every bound."""
    return bounds - (bounds >> 14) - 4
