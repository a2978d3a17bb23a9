"""Where a target of few rows lies: what released cells tell under normal templates.

A noisy max chooses a cell with known chances, given how the rows are spread (docs/exactness.md,
Lemma 9). So the cell of the median, and that of the distance from it, tell how likely every centre
and every scale is: where noise chose them, the answer is near the middle of the bounds, and in
doubt. No function here sees a row (docs/privacy.md, Lemma 7).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from dpscreen._core.arrays import Array

FINEST = 2.0**-20
"""What answers are rounded to: exponentials differ in their last bits between machines."""

STEPS_AWAY = 2.0 ** np.arange(-11.5, 1.5, 0.5)
"""How far centres may lie from the released cell; the bounds are −1 and 1."""

SCALES = 2.0 ** np.arange(-12, 0.5, 0.5)


@dataclass(frozen=True, eq=False)
class Seat:
    """How likely centres and scales of a normal target are, in units of its bounds.

    `logs` has a row for each centre and a column for each scale.
    """

    centres: Array
    logs: Array

    @classmethod
    def around(cls, released: float) -> Seat:
        """Return what is likely before anything is seen: all centres and log-scales alike.

        They lie closer where the released cell is.
        """
        away = np.concatenate((-STEPS_AWAY[::-1], [0.0], STEPS_AWAY))
        centres = np.unique(np.clip(released + away, -1.0, 1.0))
        middles = (centres[:-1] + centres[1:]) / 2
        widths = np.diff(np.concatenate((centres[:1], middles, centres[-1:])))
        return cls(centres, np.repeat(np.log(widths)[:, None], len(SCALES), axis=1))

    def below(self, edges: Array) -> Array:
        """Return the share of rows below every edge, for each centre and scale."""
        return np.asarray(ndtr((edges - self.centres[:, None, None]) / SCALES[:, None]))

    def within(self, centre: float, distances: Array) -> Array:
        """Return the share of rows that are nearer to a centre."""
        return self.below(centre + distances) - self.below(centre - distances)

    def saw(self, shares: Array, cell: int, depth: float) -> Seat:
        """Return what is likely after a noisy max over `cell_scores` of the median chose a cell.

        `shares` are those of the rows below the edges; `depth` is the number of rows in scales of
        the noise.
        """
        excess = 2 * shares - 1
        scores = -depth * np.maximum(np.maximum(excess[..., :-1], -excess[..., 1:]), 0.0)
        total = np.log(np.exp(scores).sum(axis=-1))  # one cell holds the median: its score is 0
        return replace(self, logs=self.logs + scores[..., cell] - total)

    @property
    def centre(self) -> float:
        """Return the mean of the centre."""
        return _rounded(float(self._chances.sum(axis=1) @ self.centres))

    @property
    def doubt(self) -> float:
        """Return the deviation of the centre."""
        off = (self.centres - self.centre) ** 2
        return max(_rounded(math.sqrt(float(self._chances.sum(axis=1) @ off))), FINEST)

    @property
    def deviation(self) -> float:
        """Return the target's deviation about the centre, as far as that is known."""
        log_scale = float(self._chances.sum(axis=0) @ np.log(SCALES))
        return _rounded(math.hypot(math.exp(log_scale), self.doubt))

    @property
    def _chances(self) -> Array:
        chances = np.exp(self.logs - self.logs.max())
        return np.asarray(chances / chances.sum())


def _rounded(value: float) -> float:
    return round(value / FINEST) * FINEST
