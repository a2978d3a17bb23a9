"""How good a model of outcomes is, by its own account: a noisy table of chances by outcome.

One histogram tells all: how many rows of each class have a fitted chance in which cell. Paid for
with a small share of the budget (docs/yes-no.md, Lemma 34).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpscreen._core.arrays import Array, Integers, Mask
from dpscreen.privacy import ZCDP
from dpscreen.privacy.accountant import release_histograms
from dpscreen.rows.lattice import ExactDesign, ExactPoint
from dpscreen.rows.sums import LEVELS
from dpscreen.solvers.base import Spending
from dpscreen.solvers.quality import LOST, NORMAL_975

_HALF = np.array([0.15, 0.35, 0.6, 0.9, 1.3, 1.9, 2.8])
EDGES = np.concatenate((-_HALF[::-1], [0.0], _HALF))
"""Between which log-odds rows are counted, from those of all rows together, in deviations: close in
the middle, because rows whose features are skewed lie close there."""

NARROWEST, WIDEST = 0.1, 2.0
"""The deviations of log-odds that cells are made for."""

WIDEST_AUC, WIDEST_DEVIANCE = 0.4, 1.0
"""A wider interval tells nothing. Without features the deviance is at most 2 ln 2 = 1.39 a row."""

NO_BETTER = "By its {} the model is no better than a constant. "

LEAST_CLASS = 4.0
"""How many deviations of its noise the number of rows of a class must be to count as one."""


@dataclass(frozen=True)
class OutcomeQuality:
    """AUC and deviance of a model, each with the interval of its privacy noise.

    The deviance is −2 log-likelihood over the number of rows; `null_deviance` is that of a model
    that knows the share of outcomes alone, which was released before. `edges` are chances between
    which fitted ones were counted; `no` and `yes` are noisy counts of rows of the two classes, from
    below the first edge to above the last: a reliability plot and an ROC curve can be drawn from
    them. What noise hides is NaN.
    """

    auc: float
    auc_low: float
    auc_high: float
    deviance: float
    deviance_low: float
    deviance_high: float
    null_deviance: float
    in_sample: bool
    edges: tuple[float, ...]
    no: tuple[float, ...]
    yes: tuple[float, ...]

    @property
    def tells_auc(self) -> bool:
        """Whether the AUC stands out of the noise."""
        return self.auc_high - self.auc_low <= WIDEST_AUC

    @property
    def tells_deviance(self) -> bool:
        """Whether the deviance stands out of the noise."""
        return self.deviance_high - self.deviance_low <= WIDEST_DEVIANCE

    def without_noise(self) -> OutcomeQuality:
        """Return the same with NaN for what noise hides."""
        hidden: dict[str, Any] = {}
        if not self.tells_auc:
            hidden |= dict.fromkeys(("auc", "auc_low", "auc_high", "null_deviance"), math.nan)
        if not self.tells_deviance:
            hidden |= dict.fromkeys(("deviance", "deviance_low", "deviance_high"), math.nan)
        return replace(self, **hidden)

    def __str__(self) -> str:
        where = "in-sample: on the rows of the fit" if self.in_sample else "on rows held out"
        if not (self.tells_auc or self.tells_deviance):
            return f"AUC and deviance {LOST}."
        auc = f"AUC {self.auc:.3f} ({self.auc_low:.3f} to {self.auc_high:.3f})"
        ends = f"{self.deviance_low:.3f} to {self.deviance_high:.3f}"
        deviance = f"deviance {self.deviance:.3f} ({ends}) a row"
        if self.tells_auc:  # then so is the share of outcomes
            deviance += f", {self.null_deviance:.3f} without features"
        told = auc if self.tells_auc else f"AUC {LOST}"
        told += f", {deviance}" if self.tells_deviance else f", deviance {LOST}"
        poor = ["AUC"] * (self.auc <= 0.5) + ["deviance"] * (self.deviance >= self.null_deviance)
        no_better = NO_BETTER.format(" and ".join(poor)) if poor else ""
        return f"{told}; {where}. {no_better}The intervals are for privacy noise alone."


def release_outcome_quality(
    spending: Spending,
    design: ExactDesign,
    weights: Array,
    log_odds: float,
    *,
    spread: float,
    cost: ZCDP,
    in_sample: bool,
) -> OutcomeQuality:
    """Release how many rows of each class have a chance in which cell around `log_odds`.

    Features deviate by `spread`; so released weights tell how wide cells have to be
    (docs/yes-no.md, Lemma 34).
    """
    point = design.at(weights, scale=max(1.0, float(np.abs(weights).max(initial=0.0))))
    features, constant = np.split(weights, [spending.regime.n_features])
    deviation = min(max(spread * float(np.linalg.norm(features)), NARROWEST), WIDEST)
    places = log_odds + deviation * EDGES
    if not features.any():  # all rows are in one cell, and there is nothing to tell apart
        places = constant.sum() + EDGES - EDGES[EDGES > 0][0] / 2
    held = _within_reach(np.abs(features).sum(), constant.sum(), places)
    counts = np.stack(chance_counts(point, places)).reshape(1, -1)
    noisy, noise = release_histograms(
        spending.accountant, counts, cost=cost, purpose="chances by outcome"
    )
    n_rows = spending.regime.n_rows
    told = _told(noisy.reshape(2, -1), held, noise, places, n_rows, in_sample=in_sample)
    null = 2 * float(np.logaddexp(0, log_odds) - log_odds * _chances(np.array(log_odds)))
    return replace(told, null_deviance=null).without_noise()


def _within_reach(reach: float, constant: float, places: Array) -> Mask:
    """Return in which cells a row can be at all, by released weights: others hold noise alone."""
    edges = np.concatenate(([0.0], _chances(places), [1.0]))
    low, high = _chances(constant + np.array([-reach, reach]))
    return np.asarray((edges[1:] >= low - 1 / LEVELS) & (edges[:-1] <= high + 1 / LEVELS))


def chance_counts(point: ExactPoint, places: Array) -> tuple[Integers, Integers]:
    """Return how many rows with outcome 0, and with 1, have log-odds between which places.

    A residual that is not negative belongs to outcome 0 and is the chance; a negative one to
    outcome 1 and is the chance less one.
    """
    counts = point.level_counts(1.0)
    edges = np.ceil(LEVELS * _chances(places)).astype(np.int64)
    return _in_cells(counts[LEVELS:], edges), _in_cells(counts[:LEVELS], edges)


def _in_cells(counts: Integers, edges: Integers) -> Integers:
    below = np.concatenate(([0], np.cumsum(counts)))
    at = np.concatenate(([0], np.minimum(edges, len(counts)), [len(counts)]))
    return np.diff(below[at])


def _chances(log_odds: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-np.clip(log_odds, -700, 700))))


def _told(
    counts: Array, held: Mask, noise: float, places: Array, n_rows: int, *, in_sample: bool
) -> OutcomeQuality:
    """Put released counts together; noise is carried through to first order."""
    no, yes = counts[:, held]
    middles = cell_middles(places)[held]
    cost_no, cost_yes = 2 * np.logaddexp(0, middles), 2 * np.logaddexp(0, -middles)
    deviance = max(float(cost_no @ no + cost_yes @ yes) / n_rows, 0.0)
    off = NORMAL_975 * noise * float(np.linalg.norm((cost_no, cost_yes))) / n_rows
    auc, auc_off = noisy_auc(no, yes, noise)
    aucs = (auc, max(auc - auc_off, 0.0), min(auc + auc_off, 1.0))
    # Never narrower than the noise.
    deviances = (deviance, max(deviance - off, 0.0), deviance + off)
    counted = (tuple(one.tolist()) for one in (_chances(places), *(counts * held)))
    return OutcomeQuality(*aucs, *deviances, math.nan, in_sample, *counted).without_noise()


def cell_middles(places: Array) -> Array:
    """Return where rows of each cell between log-odds lie, about; the first and last end as far."""
    half = np.diff(places[:2]).sum() / 2
    return np.concatenate((places[:1] - half, (places[1:] + places[:-1]) / 2, places[-1:] + half))


def noisy_auc(no: Array, yes: Array, noise: float) -> tuple[float, float]:
    """Return the AUC of counts by cell, in order, and how far the noise may move it.

    Rows of one cell count as ties. Where the rows of a class could be noise, nothing is told.
    """
    least = LEAST_CLASS * noise * math.sqrt(len(no))
    n_no, n_yes = float(no.sum()), float(yes.sum())
    if min(n_no, n_yes) < least:
        return 0.5, 0.5
    below = np.cumsum(no) - no / 2
    above = n_yes - np.cumsum(yes) + yes / 2
    auc = min(max(float(below @ yes) / (n_no * n_yes), 0.0), 1.0)
    slopes = np.concatenate((below / n_no - auc, above / n_yes - auc))
    sizes = np.repeat((1 / n_yes, 1 / n_no), len(no))
    both = noise * len(no) / (math.sqrt(2) * n_no * n_yes)  # the product of both classes' noise
    return auc, NORMAL_975 * noise * math.hypot(float(np.linalg.norm(slopes * sizes)), both)
