"""From counts to a certified lower bound on ε.

If an event has probability p on one data set and q on a neighbouring one, (ε, δ)-differential
privacy demands p ≤ e^ε q + δ. So a lower confidence limit of p and an upper one of q certify
ε ≥ ln((p − δ)/q), at the confidence of the two limits together.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from dpscreen._core.arrays import AnyArray, Array


def clopper_pearson(successes: ArrayLike, runs: int, *, miss: float) -> tuple[Array, Array]:
    """Return one-sided limits (low, high); each fails to hold with probability at most `miss`."""
    k = np.asarray(successes, dtype=np.float64)
    low = np.where(k > 0, betaincinv(np.maximum(k, 1), runs - k + 1, miss), 0.0)
    high = np.where(k < runs, betaincinv(k + 1, np.maximum(runs - k, 1), 1 - miss), 1.0)
    return low, high


def certified_epsilon(
    hits: ArrayLike,
    runs: int,
    other_hits: ArrayLike,
    other_runs: int,
    *,
    delta: float,
    confidence: float,
) -> Array:
    """Return the ε that the counts of events certify, 0 where they certify nothing."""
    miss = (1 - confidence) / 2
    low = clopper_pearson(hits, runs, miss=miss)[0]
    high = clopper_pearson(other_hits, other_runs, miss=miss)[1]
    ratio = np.maximum(low - delta, 0.0) / high
    return np.log(np.maximum(ratio, 1.0))


# The search looks at this many thresholds a statistic; more would hardly find better ones.
_THRESHOLDS = 200


@dataclass(frozen=True)
class Event:
    """One side of a threshold on a released number; `first`: likely on the first data set."""

    statistic: int
    threshold: float
    above: bool
    first: bool

    def count(self, outputs: Array) -> int:
        """Return in how many runs the event happened."""
        values = outputs[:, self.statistic]
        happened = values >= self.threshold if self.above else values <= self.threshold
        return int(np.count_nonzero(happened))

    def epsilon(self, here: Array, there: Array, *, delta: float, confidence: float) -> float:
        """Return the ε that the event certifies from runs on the two data sets."""
        likely, unlikely = (here, there) if self.first else (there, here)
        certified = certified_epsilon(
            self.count(likely),
            len(likely),
            self.count(unlikely),
            len(unlikely),
            delta=delta,
            confidence=confidence,
        )
        return float(certified)


def best_event(here: Array, there: Array, *, delta: float, confidence: float) -> Event:
    """Return the event that certifies most on these runs."""
    found = (
        _best_threshold(here, there, kind, delta=delta, confidence=confidence)
        for kind in product(range(here.shape[1]), (True, False), (True, False))
    )
    return max(found, key=lambda pair: pair[0])[1]


def _best_threshold(
    here: Array, there: Array, kind: tuple[int, bool, bool], *, delta: float, confidence: float
) -> tuple[float, Event]:
    """Return the best threshold for one statistic, side and direction, with what it certifies."""
    statistic, above, first = kind
    likely, unlikely = (here, there) if first else (there, here)
    values = np.unique(np.concatenate((here[:, statistic], there[:, statistic])))
    places = np.unique(np.linspace(0, len(values) - 1, _THRESHOLDS).astype(int))
    thresholds = values[places]
    certified = certified_epsilon(
        _counts(likely[:, statistic], thresholds, above),
        len(likely),
        _counts(unlikely[:, statistic], thresholds, above),
        len(unlikely),
        delta=delta,
        confidence=confidence,
    )
    best = int(np.argmax(certified))
    return float(certified[best]), Event(statistic, float(thresholds[best]), above, first)


def _counts(values: Array, thresholds: Array, above: bool) -> AnyArray:
    ordered = np.sort(values)
    if above:
        return len(values) - np.searchsorted(ordered, thresholds, side="left")
    return np.searchsorted(ordered, thresholds, side="right")
