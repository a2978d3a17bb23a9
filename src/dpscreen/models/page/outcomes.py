"""Pictures of the quality of a model, from released counts by predicted probability or mean.

Drawn only where these counts were released. They are noisy; what noise alone could have made is
left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, logit

from dpscreen._core.arrays import Array
from dpscreen._core.pictures import COLOURS, INK, canvas, plain_axes, themed_svg
from dpscreen._core.words import figure, whole_percent
from dpscreen.models.page.effects import Picture
from dpscreen.models.release import Release
from dpscreen.solvers.family import OutcomeQuality

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COUNTS = "probabilities by outcome"
"""What the statement calls the table."""

LEAST_COUNT = 4.0
"""How many standard deviations of its noise a cell must hold to be drawn."""

SIZE = 3.6


@dataclass(frozen=True)
class ProbabilityCell:
    """Rows of similar probabilities: their range, the share of yes, and its standard error."""

    low: float
    probability: float
    high: float
    share: float
    error: float

    @property
    def off(self) -> float:
        """Return by how many standard errors the share is outside the range of probabilities."""
        return max(self.low - self.share, self.share - self.high, 0.0) / self.error


def quality_charts(release: Release) -> tuple[Picture, ...]:
    """Return the pictures that the family has of its quality, where noise leaves any."""
    if release.quality is None:
        return ()
    drawn = (CHARTS[name](release) for name in release.family.quality_type.charts)
    return tuple(one for one in drawn if one is not None)


def _with_cells(
    draw: Callable[[OutcomeQuality, Sequence[ProbabilityCell]], Picture],
) -> Callable[[Release], Picture | None]:
    """Return what draws cells of probabilities, if two of them hold more than noise."""

    def drawn(release: Release) -> Picture | None:
        quality: Any = release.quality
        if quality.auc_reason is not None:
            return None
        records = release.statement.mechanisms  # of a split, the name of a half comes first
        found = (one.scale for one in records if one.purpose.endswith(COUNTS))
        cells = probability_cells(quality, float(next(found, 1.0)))
        return draw(quality, cells) if len(cells) > 1 else None

    return drawn


def probability_cells(quality: OutcomeQuality, noise: float) -> list[ProbabilityCell]:
    """Return the cells that hold more than noise, each with the error of its noise."""
    edges = np.array([0.0, *quality.edges, 1.0])
    middles = expit(cell_middles(logit(np.clip(edges[1:-1], 1e-12, 1 - 1e-12))))
    middles = np.clip(middles, edges[:-1], edges[1:])
    no, yes = np.maximum(quality.no, 0.0), np.maximum(quality.yes, 0.0)
    columns = (edges[:-1], middles, edges[1:], yes, no + yes)
    found = []
    for low, middle, high, many, total in np.stack(columns, axis=1).tolist():
        if total > LEAST_COUNT * noise * math.sqrt(2):
            share = many / total
            error = noise * math.hypot(share, 1 - share) / total
            found.append(ProbabilityCell(low, middle, high, share, error))
    return found


def cell_middles(places: Array) -> Array:
    """Return where rows of each cell between log-odds lie, about; the first and last end as far."""
    half = np.diff(places[:2]).sum() / 2
    return np.concatenate((places[:1] - half, (places[1:] + places[:-1]) / 2, places[-1:] + half))


def _reliability(_: OutcomeQuality, cells: Sequence[ProbabilityCell]) -> Picture:
    sheet = canvas(SIZE, SIZE)
    axes = sheet.subplots()
    _diagonal(axes)
    middles, shares = [one.probability for one in cells], [one.share for one in cells]
    below = [min(2 * one.error, one.share) for one in cells]
    above = [min(2 * one.error, 1 - one.share) for one in cells]
    ends = [[one.probability - one.low, one.high - one.probability] for one in cells]
    axes.errorbar(middles, shares, xerr=np.transpose(ends), fmt="none", ecolor=INK, elinewidth=0.8)
    axes.errorbar(middles, shares, [below, above], color=COLOURS[0], marker="o", markersize=4)
    _square(axes, "predicted probability", "share of yes, as released")
    worst = max(cells, key=lambda one: one.off)
    low, high = max(worst.share - 2 * worst.error, 0.0), min(worst.share + 2 * worst.error, 1.0)
    words = (
        "Reliability: of rows with a predicted probability of "
        f"{whole_percent(worst.low)} to {whole_percent(worst.high)}, {whole_percent(low)} to "
        f"{whole_percent(high)} were yes, within the privacy noise; no other of {len(cells)} "
        "groups is further off for its noise. Thin lines are the range of a group."
    )
    return Picture(themed_svg(sheet, prefix="reliability"), words)


def _roc(quality: OutcomeQuality, _: Sequence[ProbabilityCell]) -> Picture:
    sheet = canvas(SIZE, SIZE)
    axes = sheet.subplots()
    _diagonal(axes)
    false, true = (_found(counts) for counts in (quality.no, quality.yes))
    axes.plot(false, true, color=COLOURS[2], marker="o", markersize=3, linewidth=1.6)
    _square(axes, "false positive rate", "true positive rate")
    words = (
        f"ROC curve from released counts, with an area of {quality.auc:.2f} "
        f"({quality.auc_low:.2f} to {quality.auc_high:.2f}); 0.5 is no better than a constant."
    )
    return Picture(themed_svg(sheet, prefix="roc"), words)


@dataclass(frozen=True)
class MeanCell:
    """Rows of similar predicted means: their range, the mean outcome, and its standard error."""

    low: float
    high: float
    mean: float
    error: float

    @property
    def off(self) -> float:
        """Return by how many standard errors the mean is outside the range of predictions."""
        return max(self.low - self.mean, self.mean - self.high, 0.0) / self.error


def mean_cells(quality: Any) -> list[MeanCell]:
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
            found.append(MeanCell(low, high, mean, error))
    return found


def _calibration(release: Release) -> Picture | None:
    quality: Any = release.quality
    cells = mean_cells(quality)
    if len(cells) <= 1:
        return None
    sheet = canvas(SIZE, SIZE)
    axes = sheet.subplots()
    ends = [cells[0].low, cells[-1].high]
    axes.plot(ends, ends, color=INK, linewidth=0.8, linestyle=(0, (1, 2)))
    middles = [math.sqrt(one.low * one.high) for one in cells]
    across = [[at - one.low, one.high - at] for at, one in zip(middles, cells, strict=True)]
    means = [one.mean for one in cells]
    bars = [[min(2 * one.error, one.mean), 2 * one.error] for one in cells]
    axes.errorbar(middles, means, xerr=np.transpose(across), fmt="none", ecolor=INK, elinewidth=0.8)
    axes.errorbar(middles, means, np.transpose(bars), color=COLOURS[0], marker="o", markersize=4)
    axes.set_xlabel("predicted mean", fontsize=9, color=INK)
    axes.set_ylabel("mean outcome, as released", fontsize=9, color=INK)
    plain_axes(axes)
    worst = max(cells, key=lambda one: one.off)
    low, high = max(worst.mean - 2 * worst.error, 0.0), worst.mean + 2 * worst.error
    words = (
        f"Calibration in {len(cells)} groups by predicted mean: of rows with a predicted "
        f"mean of {figure(worst.low)} to {figure(worst.high)}, the mean outcome was {figure(low)} "
        f"to {figure(high)}, within the privacy noise; no other group is further off for its "
        f"noise. Outcomes above {figure(quality.clip)} count as that."
    )
    return Picture(themed_svg(sheet, prefix="calibration"), words)


CHARTS = {
    "reliability": _with_cells(_reliability),
    "roc": _with_cells(_roc),
    "calibration": _calibration,
}


def _found(counts: Sequence[float]) -> Array:
    """Return the share of rows above each edge, from all to none; negative counts are 0."""
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
