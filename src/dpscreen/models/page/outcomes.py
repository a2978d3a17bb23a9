"""Pictures of the quality of a model, from released counts by predicted probability or mean.

Drawn only where these counts were released. They are noisy; what noise alone could have made is
left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, logit

from dpscreen._core.pictures import COLOURS, INK, canvas, themed_svg
from dpscreen._core.words import figure, whole_percent
from dpscreen.families.binomial import COUNTS, OutcomeQuality
from dpscreen.models.page.effects import Picture, labelled
from dpscreen.models.release import Release
from dpscreen.privacy.statement import HALVES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEAST_COUNT = 4.0
"""How many standard deviations of its noise a cell must hold to be drawn."""

SIZE = 3.6


@dataclass(frozen=True)
class QualityCell:
    """Rows of similar predictions: their range and middle, the mean outcome and its error.

    `error` is the standard error of the privacy noise.
    """

    low: float
    middle: float
    high: float
    mean: float
    error: float

    def ends(self, most: float = math.inf) -> tuple[float, float]:
        """Return an interval of the mean outcome, which is between 0 and `most`."""
        return max(self.mean - 2 * self.error, 0.0), min(self.mean + 2 * self.error, most)

    @property
    def off(self) -> float:
        """Return by how many standard errors the mean is outside the range of predictions."""
        return max(self.low - self.mean, self.mean - self.high, 0.0) / self.error


def quality_charts(release: Release) -> tuple[Picture, ...]:
    """Return the pictures that the family has of its quality, where noise leaves any."""
    if release.quality is None:
        return ()
    drawn = (CHARTS[name](release) for name in release.family.quality_type.charts)
    return tuple(one for one in drawn if one is not None)


def probability_cells(quality: OutcomeQuality, noise: float) -> list[QualityCell]:
    """Return the cells that hold more than noise, each with the error of its noise."""
    edges = np.array([0.0, *quality.edges, 1.0])
    # Rows of a cell lie about halfway between its log-odds; of the first and last as far beyond.
    places = logit(np.clip(edges[1:-1], 1e-12, 1 - 1e-12))
    half = np.diff(places[:2]).sum() / 2
    inner = (places[1:] + places[:-1]) / 2
    middles = expit(np.concatenate((places[:1] - half, inner, places[-1:] + half)))
    middles = np.clip(middles, edges[:-1], edges[1:])
    no, yes = np.maximum(quality.no, 0.0), np.maximum(quality.yes, 0.0)
    columns = (edges[:-1], middles, edges[1:], yes, no + yes)
    found = []
    for low, middle, high, many, total in np.stack(columns, axis=1).tolist():
        if total > LEAST_COUNT * noise * math.sqrt(2):
            share = many / total
            error = noise * math.hypot(share, 1 - share) / total
            found.append(QualityCell(low, middle, high, share, error))
    return found


def mean_cells(quality: Any) -> list[QualityCell]:
    """Return the cells that hold more rows than noise, each with the error of its noise.

    The first and the last one have no end on one side: half and twice the other stand for it.
    """
    edges = np.array([quality.edges[0] / 2, *quality.edges, 2 * quality.edges[-1]])
    found = []
    for low, high, rows, total in zip(
        edges[:-1].tolist(), edges[1:].tolist(), quality.rows, quality.outcomes, strict=True
    ):
        if rows > LEAST_COUNT * quality.noise:
            mean = max(total, 0.0) / rows
            error = quality.noise * math.hypot(quality.clip, mean) / rows
            found.append(QualityCell(low, math.sqrt(low * high), high, mean, error))
    return found


def _cells_of(release: Release) -> list[QualityCell]:
    """Return the cells of probabilities; none where the model's AUC is not known."""
    quality: Any = release.quality
    if quality.auc_reason is not None:
        return []
    names = {f"{half}{COUNTS}" for half in ("", *HALVES)}
    found = (one.scale for one in release.statement.mechanisms if one.purpose in names)
    return probability_cells(quality, float(next(found, 1.0)))


def _reliability(release: Release) -> Picture | None:
    cells = _cells_of(release)
    if len(cells) <= 1:
        return None
    sheet = canvas(SIZE, SIZE)
    axes = sheet.subplots()
    _errorbars(axes, cells, (0.0, 1.0), most=1.0)
    labelled(axes, "predicted probability", "share of yes, as released")
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    worst = max(cells, key=lambda one: one.off)
    low, high = worst.ends(1.0)
    words = (
        "Reliability: of rows with a predicted probability of "
        f"{whole_percent(worst.low)} to {whole_percent(worst.high)}, {whole_percent(low)} to "
        f"{whole_percent(high)} were yes, within the privacy noise; no other of {len(cells)} "
        "groups is further off for its noise. Thin lines are the range of a group."
    )
    return Picture(themed_svg(sheet, prefix="reliability"), words)


def _roc(release: Release) -> Picture | None:
    quality: Any = release.quality
    if len(_cells_of(release)) <= 1:
        return None
    sheet = canvas(SIZE, SIZE)
    axes = sheet.subplots()
    axes.plot([0, 1], [0, 1], color=INK, linewidth=0.8, linestyle=(0, (1, 2)))
    rates = []
    for counts in (quality.no, quality.yes):  # the share above each edge; negative counts are 0
        above = np.append(np.cumsum(np.maximum(counts, 0.0)[::-1])[::-1], 0.0)
        rates.append(above / max(float(above[0]), 1e-300))
    axes.plot(*rates, color=COLOURS[2], marker="o", markersize=3, linewidth=1.6)
    labelled(axes, "false positive rate", "true positive rate")
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    words = (
        f"ROC curve from released counts, with an area of {quality.auc:.2f} "
        f"({quality.auc_low:.2f} to {quality.auc_high:.2f}); 0.5 is no better than a constant."
    )
    return Picture(themed_svg(sheet, prefix="roc"), words)


def _calibration(release: Release) -> Picture | None:
    quality: Any = release.quality
    cells = mean_cells(quality)
    if len(cells) <= 1:
        return None
    sheet = canvas(SIZE, SIZE)
    axes = sheet.subplots()
    _errorbars(axes, cells, (cells[0].low, cells[-1].high))
    labelled(axes, "predicted mean", "mean outcome, as released")
    worst = max(cells, key=lambda one: one.off)
    low, high = worst.ends()
    words = (
        f"Calibration in {len(cells)} groups by predicted mean: of rows with a predicted "
        f"mean of {figure(worst.low)} to {figure(worst.high)}, the mean outcome was {figure(low)} "
        f"to {figure(high)}, within the privacy noise; no other group is further off for its "
        f"noise. Outcomes above {figure(quality.clip)} count as that."
    )
    return Picture(themed_svg(sheet, prefix="calibration"), words)


CHARTS = {"reliability": _reliability, "roc": _roc, "calibration": _calibration}


def _errorbars(
    axes: Axes, cells: Sequence[QualityCell], along: tuple[float, float], most: float = math.inf
) -> None:
    """Draw mean outcomes with their errors over the ranges of cells, and where both are equal."""
    axes.plot(along, along, color=INK, linewidth=0.8, linestyle=(0, (1, 2)))
    x, y = np.array([(one.middle, one.mean) for one in cells]).T
    ranges = np.array([(one.low, one.high) for one in cells]).T
    ends = np.array([one.ends(most) for one in cells]).T
    axes.errorbar(x, y, xerr=np.abs(ranges - x), fmt="none", ecolor=INK, elinewidth=0.8)
    axes.errorbar(x, y, np.abs(ends - y), color=COLOURS[0], marker="o", markersize=4)
