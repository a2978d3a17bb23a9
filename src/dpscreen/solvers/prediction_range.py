"""The range in which features enter predictions, chosen by one private comparison of losses.

Coefficients are estimated with features clipped to a narrow range, because the noise of a sum grows
with its largest cell. A prediction adds no noise, so its range can be chosen by how well it
predicts: where an effect is linear far into the tails, a narrow range loses most of the fit; where
it is not, a wide one extrapolates (docs/theory/quality.md, Lemma 55).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen.privacy import NoisyMax
from dpscreen.rows.lattice import ExactDesign
from dpscreen.rows.source import PublicUnits, RowSource
from dpscreen.rows.sums import LEVELS
from dpscreen.solvers.base import Task

RANGE_SHARE = 0.1
"""Share of the budget for the comparison. Tuned."""

RESOLVED = 0.006
"""Largest noise of the comparison, as a share of the rows: with more noise there is none. Tuned."""

FACTORS = (1.0, 4.0, 16.0)
"""How many times as far as in the estimation a range extends from a feature's centre.
Conventional."""

LOSS_CAP = 8.0
"""Where a row's loss is capped: at the square of so many standard deviations of the target.
Tuned."""

HANDICAP = 2.0
"""What wider ranges start behind the one of the estimation, in scales of the noise: where they are
wrong, capped losses show little of it. Tuned."""

_SQUARES = np.arange(LEVELS + 1, dtype=np.int64) ** 2 // LEVELS


def range_share(task: Task) -> float:
    """Return the share of the budget for the comparison; 0 where noise would decide it.

    And where no feature is clipped to less than its declared bounds: then there is no wider range.
    """
    noise = 1 / math.sqrt(8 * RANGE_SHARE * task.regime.rho)
    return RANGE_SHARE if task.narrowed and noise <= RESOLVED * task.regime.n_rows else 0.0


@dataclass(frozen=True, eq=False)
class RangedModel:
    """Weights of a model under a map of the features, and the rows on the lattice of that map.

    `spread` is the standard deviation of the features under the map, as the weights combine them.
    """

    units: PublicUnits
    weights: Array
    design: ExactDesign
    spread: float = 1.0

    def capped_loss(self, cap: float) -> int:
        """Return Σ min(|r|, cap)²/cap² in whole numbers of 1/2^14, each row's rounded down."""
        scale = max(cap, float(np.abs(self.weights).max(initial=0.0)))
        point = self.design.at(self.weights, scale=scale)  # the same in all units of the target
        return int(point.residual_counts(cap) @ _SQUARES)

    def widened(self, rows: RowSource, declared: Array, factor: float) -> RangedModel:
        """Return the same coefficients with ranges that extend further, in the declared bounds."""
        centres, (low, high) = self.units.feature_centres, self.units.feature_bounds.T
        ends = (
            np.maximum(declared[:, 0], centres - factor * (centres - low)),
            np.minimum(declared[:, 1], centres + factor * (high - centres)),
        )
        old = self.units.feature_half_widths
        widths = np.maximum(old, np.maximum(centres - ends[0], ends[1] - centres))
        units = replace(
            self.units,
            feature_bounds=np.stack(ends, axis=1),
            features_at=np.stack((centres, widths), axis=1),
        )
        weights = self.weights.copy()
        weights[: len(widths)] *= widths / old
        norms = [math.hypot(*one[: len(widths)]) for one in (self.weights, weights)]
        spread = self.spread * norms[0] / norms[1] if norms[1] else self.spread
        return RangedModel(units, weights, rows.lattice(units), spread)


def choose_range(task: Task, rows: RowSource, model: RangedModel, declared: Array) -> RangedModel:
    """Release which range has the least capped loss, and return the model with that range.

    A row adds between 0 and 1 to each loss, so the changes of two losses differ by at most 1
    (docs/theory/quality.md, Lemma 55). Without a share for it nothing is released.
    """
    share, spending = range_share(task), task.spending
    if not share:
        return model
    wider = [model.widened(rows, declared, factor) for factor in FACTORS[1:]]
    models = [model, *wider]
    cap = min(LOSS_CAP * task.residual_scale, model.units.loss.bound)
    losses = np.array([one.capped_loss(cap) for one in models], dtype=np.int64)
    mechanism = NoisyMax.of_cost(
        spending.share(share), sensitivity=1.0, unit=1 / LEVELS, score_range=1.0
    )
    losses[1:] += round(HANDICAP * mechanism.scale * LEVELS)
    purpose = "range of the features in predictions"
    return models[spending.accountant.release(mechanism, -losses, purpose=purpose)]
