"""Choosing the event that tells two neighbouring data sets apart best.

An event is "this released number is at least (or at most) that threshold". It is chosen on one half
of the runs and judged on the other, so that the search does not flatter the result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpscreen.audit.bounds import certified_epsilon

Array = NDArray[np.float64]

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
        return certified_epsilon(
            self.count(likely),
            len(likely),
            self.count(unlikely),
            len(unlikely),
            delta=delta,
            confidence=confidence,
        )


def best_event(here: Array, there: Array, *, delta: float, confidence: float) -> Event:
    """Return the event that certifies most on these runs."""
    return max(
        _candidates(here, there),
        key=lambda event: event.epsilon(here, there, delta=delta, confidence=confidence),
    )


def _candidates(here: Array, there: Array) -> Iterator[Event]:
    for statistic in range(here.shape[1]):
        values = np.unique(np.concatenate((here[:, statistic], there[:, statistic])))
        places = np.unique(np.linspace(0, len(values) - 1, _THRESHOLDS).astype(int))
        for threshold in values[places]:
            for above in (True, False):
                for first in (True, False):
                    yield Event(statistic, float(threshold), above, first)
