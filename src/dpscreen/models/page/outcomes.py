"""Pictures of how good a model of outcomes is, from its released table of chances by outcome.

Drawn only where that table was paid for and released. Counts are noisy; what noise could have made
by itself is left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit, logit

from dpscreen._core.arrays import Array
from dpscreen._core.pictures import COLOURS, INK, canvas, plain_axes, themed_svg
from dpscreen._core.words import whole_percent
from dpscreen.models.page.effects import Picture
from dpscreen.models.release import Release
from dpscreen.solvers.quality import OutcomeQuality

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COUNTS = "chances by outcome"
"""What the statement calls the table."""

LEAST_COUNT = 4.0
"""How many deviations of its noise a cell must hold to be drawn."""

SIZE = 3.6


@dataclass(frozen=True)
class ChanceCell:
    """Rows of similar chances: between which they lie, the share of yes, and its standard error."""

    low: float
    chance: float
    high: float
    share: float
    error: float

    @property
    def off(self) -> float:
        """Return how many standard errors the share is from the nearest of the chances."""
        return max(self.low - self.share, self.share - self.high, 0.0) / self.error


def outcome_charts(release: Release) -> tuple[Picture, Picture] | None:
    """Return a reliability plot and an ROC curve; None where no table of chances was released."""
    quality = release.quality
    if not isinstance(quality, OutcomeQuality):
        return None
    cells = chance_cells(quality, _noise(release))
    if len(cells) < 2 or quality.auc_reason is not None:
        return None
    return _reliability(cells), _roc(quality)


def _noise(release: Release) -> float:
    records = release.statement.mechanisms  # of a split, the name of a half comes first
    found = (one.scale for one in records if one.purpose.endswith(COUNTS))
    return float(next(found, 1.0))


def chance_cells(quality: OutcomeQuality, noise: float) -> list[ChanceCell]:
    """Return the cells that hold more than noise, each with the error of its noise."""
    edges = np.array([0.0, *quality.edges, 1.0])
    chances = expit(cell_middles(logit(np.clip(edges[1:-1], 1e-12, 1 - 1e-12))))
    chances = np.clip(chances, edges[:-1], edges[1:])
    spans = np.stack((edges[:-1], chances, edges[1:]), axis=1).tolist()
    no, yes = np.maximum(quality.no, 0.0), np.maximum(quality.yes, 0.0)
    found = []
    for (low, chance, high), few, many in zip(spans, no.tolist(), yes.tolist(), strict=True):
        total = few + many
        if total > LEAST_COUNT * noise * math.sqrt(2):
            share = many / total
            error = noise * math.hypot(share, 1 - share) / total
            found.append(ChanceCell(low, chance, high, share, error))
    return found


def cell_middles(places: Array) -> Array:
    """Return where rows of each cell between log-odds lie, about; the first and last end as far."""
    half = np.diff(places[:2]).sum() / 2
    return np.concatenate((places[:1] - half, (places[1:] + places[:-1]) / 2, places[-1:] + half))


def _reliability(cells: Sequence[ChanceCell]) -> Picture:
    sheet = canvas(SIZE, SIZE)
    axes = sheet.subplots()
    _diagonal(axes)
    chances, shares = [one.chance for one in cells], [one.share for one in cells]
    below = [min(2 * one.error, one.share) for one in cells]
    above = [min(2 * one.error, 1 - one.share) for one in cells]
    reach = [one.chance - one.low for one in cells], [one.high - one.chance for one in cells]
    axes.errorbar(chances, shares, xerr=reach, fmt="none", ecolor=INK, elinewidth=0.8)
    axes.errorbar(chances, shares, [below, above], color=COLOURS[0], marker="o", markersize=4)
    _square(axes, "chance, as the model says", "share of yes, as released")
    worst = max(cells, key=lambda one: one.off)
    low, high = max(worst.share - 2 * worst.error, 0.0), min(worst.share + 2 * worst.error, 1.0)
    words = (
        "Reliability: of rows to which the model gives a chance of "
        f"{whole_percent(worst.low)} to {whole_percent(worst.high)}, {whole_percent(low)} to "
        f"{whole_percent(high)} were yes, as far as noise lets tell; no other of {len(cells)} "
        "groups is further off for its noise. Thin lines are the chances of a group."
    )
    return Picture(themed_svg(sheet, prefix="reliability"), words)


def _roc(quality: OutcomeQuality) -> Picture:
    sheet = canvas(SIZE, SIZE)
    axes = sheet.subplots()
    _diagonal(axes)
    false, true = (_found(counts) for counts in (quality.no, quality.yes))
    axes.plot(false, true, color=COLOURS[2], marker="o", markersize=3, linewidth=1.6)
    _square(axes, "share of no called yes", "share of yes called yes")
    words = (
        f"ROC curve from released counts, with an area of {quality.auc:.2f} "
        f"({quality.auc_low:.2f} to {quality.auc_high:.2f}); a coin would have 0.5."
    )
    return Picture(themed_svg(sheet, prefix="roc"), words)


def _found(counts: Sequence[float]) -> Array:
    """Return which share of rows lies above each edge, from all to none; noise is evened out."""
    kept = np.maximum(counts, 0.0)
    above = np.concatenate((np.cumsum(kept[::-1])[::-1], [0.0]))
    return np.asarray(above / max(float(above[0]), 1e-300))


def _diagonal(axes: Axes) -> None:
    axes.plot([0, 1], [0, 1], color=INK, linewidth=0.8, linestyle=(0, (1, 2)))


def _square(axes: Axes, across: str, up: str) -> None:
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlabel(across, fontsize=9, color=INK)
    axes.set_ylabel(up, fontsize=9, color=INK)
    plain_axes(axes)
