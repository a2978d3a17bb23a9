"""What a case is, rows that differ by one, and many runs of the published steps at once."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from dpscreen._core.arrays import Array, Integers
from dpscreen.models import BoundsWarning
from dpscreen.models.intake import RefitWarning
from dpscreen.privacy import (
    Budget,
    LaplaceNoisyMax,
    Noise,
    SeededNoiseWarning,
    WeakDeltaWarning,
)

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


@contextmanager
def quietly() -> Iterator[None]:
    """Fit without warnings.

    A seed makes an audit repeatable, a large δ makes it sharp, rows are fitted again and again, and
    nothing is released here.
    """
    with warnings.catch_warnings():
        for kind in (SeededNoiseWarning, WeakDeltaWarning, BoundsWarning, RefitWarning):
            warnings.simplefilter("ignore", kind)
        yield


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
