"""Where the target lies inside its public bounds: a centre and a deviation.

With rows enough a median, a quantile of the distance from it and a histogram of these distances are
released: if most rows are in a heap, no quantile tells how far the others are.

With few rows a noisy max chooses a cell with known chances, given how the rows are spread
(docs/exactness.md, Lemma 9). So the cell of the median, and that of the distance from it, tell how
likely every centre and every scale is: where noise chose them, the answer is near the middle of the
bounds, and in doubt. No function of `Seat` sees a row (docs/privacy.md, Lemma 7).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from dpscreen._core.arrays import Array, Integers
from dpscreen.privacy import ZCDP
from dpscreen.privacy.accountant import release_cell, release_histograms
from dpscreen.rows.source import (
    PublicUnits,
    RowSource,
    clipped_levels,
    distance_counts,
    target_counts,
)
from dpscreen.rows.sums import LEVELS
from dpscreen.solvers import rules
from dpscreen.solvers.base import Spending, Task, deviation_edges, release_deviation
from dpscreen.solvers.zoom import last_seen

LARGEST = np.finfo(np.float64).max / 4
"""Bounds beyond this are as good as none, and their differences would overflow."""

SPREAD_OCTAVES, SURE_NOISES = 20, 3.5
"""How finely distances of the target are told apart, and how many noises it takes to see rows."""

HEAP_NOISES = 2.0
"""By how many noises more than half of the rows must be near, unless they are one point."""

SMALLEST = float(np.finfo(np.float64).smallest_subnormal)
"""What is nearer to zero is zero, and on neither side of it."""

WINSOR, ROUNDS = 5.0, 40
"""How many spreads away a row counts as it is, and how often a spread is put right by that."""


@dataclass(frozen=True)
class PlacedTarget:
    """Where the target lies inside its public bounds: a centre and a deviation.

    It is `heaped` if far more rows lie far out than the middle of the others lets expect: most are
    zero, say. Then a quantile tells nothing of its spread, nor of that of residuals: `deviation`
    is that of the rows beside the heap, and `spread` that of all. If no others are seen beside a
    point, it is the spread if as many rows as noise can hide were at an end of the bounds.
    With few rows the centre is in `doubt`, by so much; else what is left of it is not known.
    """

    centre: float
    deviation: float
    heaped: bool = False
    spread: float = 0.0
    doubt: float = math.inf


def place_target(
    spending: Spending, rows: RowSource, bounds: Array, *, trusting: bool = False
) -> PlacedTarget:
    """Release where the target lies, in the user's units.

    With trust, bounds that are even about zero declare a target about zero.
    """
    low, high = np.clip(bounds, -LARGEST, LARGEST)
    middle, half = low / 2 + high / 2, high / 2 - low / 2
    target = TargetCounts(rows, bounds)
    even = bool(trusting and low == -high)
    seen = (_even_seat(spending, target) if even else None) or _seat(spending, target)
    centre = middle + half * rules.clamp(seen.centre, -1.0, 1.0)
    deviation, spread = (float(half * min(one, 1.0)) for one in (seen.deviation, seen.spread))
    doubt = float(half * seen.doubt)
    return PlacedTarget(float(centre), deviation, seen.heaped, spread, doubt)


def end_of_target(task: Task, units: PublicUnits) -> str | None:
    """Return at which end of its declared bounds the target seems to lie, if at one.

    Rows beyond an end are clipped to it, so most must be one point there.
    """
    low, high = units.target_bounds
    half, off = high / 2 - low / 2, units.target_centre - low / 2 - high / 2
    point = task.heaped or task.deviation < rules.ONE_POINT * half
    if abs(off) <= (1 - rules.AT_END) * half or not point:
        return None
    return "upper" if off > 0 else "lower"


@dataclass(frozen=True)
class TargetCounts:
    """A private target in units of its bounds, seen through counts and clipped sums."""

    rows: RowSource
    bounds: Array

    def counts(self, edges: Array) -> Integers:
        """Return how many rows lie in each cell."""
        return self.rows.target_total(target_counts, self.bounds, edges)

    def distance_counts(self, centre: float, edges: Array) -> Integers:
        """Return how many rows are so far from the centre."""
        return self.rows.target_total(distance_counts, self.bounds, centre, edges)

    def clipped_levels(self, centre: float, clip: float) -> int:
        """Return Σψ_c(y − centre), each term rounded to c/2^14."""
        return int(self.rows.target_total(clipped_levels, self.bounds, centre, clip)[0])


def unevenness(below: Integers, at: Integers, above: Integers) -> Integers:
    """Return by how much the sides of zero differ; what is on neither counts for that too."""
    return np.asarray(at + np.abs(above - below))


def _even_seat(spending: Spending, target: TargetCounts) -> PlacedTarget | None:
    """Release the deviation about zero, if rows lie on both sides of it; else None.

    A row moves how uneven they are by at most 1 (docs/private-lasso.md, Lemma 54).
    """
    regime = spending.regime
    sides = target.counts(np.array([-1.0, 0.0, SMALLEST, math.inf]))
    uneven, _ = spending.release_sum(
        int(unevenness(*sides)),
        most=1,
        bound=1.0,
        cost=spending.share(rules.side_share(regime)),
        purpose="sides of zero",
    )
    if uneven > rules.MOST_UNEVEN * regime.n_rows:
        return None
    if rules.has_few_targets(regime):
        return _few_scale(spending, target, Seat.about_zero())
    seat = _seat_at(spending, target, 0.0)
    return seat if seat.heaped else replace(seat, doubt=rules.SKEWED * seat.deviation)


def _seat(spending: Spending, target: TargetCounts) -> PlacedTarget:
    """Release centre and deviation, in units of the public bounds."""
    regime = spending.regime
    if rules.has_few_targets(regime):
        return _seat_of_few(spending, target)
    edges = _target_edges(rules.centre_cells(regime))
    cell = _target_median(spending, target, edges, spending.share(rules.centre_share(regime)))
    seat = _seat_at(spending, target, _centre_of(edges, cell))
    mean = _clipped_mean(spending, target, seat.centre, rules.MEAN_CLIP * seat.deviation)
    return replace(seat, centre=seat.centre + mean)


def _seat_at(spending: Spending, target: TargetCounts, centre: float) -> PlacedTarget:
    """Release the deviation about a centre, and whether most rows are in a heap there."""
    deviation = _target_deviation(spending, target, centre)
    beside, spread = _beside_heap(spending, target, centre)
    return PlacedTarget(centre, beside or deviation, beside > 0, spread)


def _seat_of_few(spending: Spending, target: TargetCounts) -> PlacedTarget:
    """Release the cell of the median and that of the distance from it: what is likely then."""
    regime = spending.regime
    cost = spending.share(rules.few_centre_share(regime))
    depth = regime.depth(float(cost))
    edges = _target_edges(rules.few_cells(depth))
    cell = _target_median(spending, target, edges, cost)
    seat = Seat.around(float(edges[cell]) + 1 / (len(edges) - 1))
    return _few_scale(
        spending, target, seat.saw(seat.below(np.append(-math.inf, edges[1:])), cell, depth)
    )


def _few_scale(spending: Spending, target: TargetCounts, seat: Seat) -> PlacedTarget:
    """Release the cell of the distance from the likely centre: what is likely then."""
    regime = spending.regime
    cost, centre = spending.share(rules.few_scale_share(regime)), seat.centre
    sizes = deviation_edges(1 + abs(centre))
    cell = release_cell(
        spending.accountant,
        target.distance_counts(centre, sizes),
        cost=cost,
        purpose="the target's scale",
    )
    seat = seat.saw(seat.within(centre, sizes), cell, regime.depth(float(cost)))
    return PlacedTarget(seat.centre, seat.deviation, doubt=seat.doubt)


def _target_edges(cells: int) -> Array:
    return np.append(2 * np.arange(cells) / cells - 1, math.inf)


def _centre_of(edges: Array, cell: int) -> float:
    """Return the middle of a cell, but of the outermost ones the bound: a heap may be at it."""
    cells = len(edges) - 1
    return {0: -1.0, cells - 1: 1.0}.get(cell, float(edges[cell]) + 1 / cells)


def _target_median(spending: Spending, target: TargetCounts, edges: Array, cost: ZCDP) -> int:
    counts = target.counts(edges)
    return release_cell(spending.accountant, counts, cost=cost, purpose="the target's centre")


def _target_deviation(spending: Spending, target: TargetCounts, centre: float) -> float:
    return release_deviation(
        spending,
        lambda edges: target.distance_counts(centre, edges),
        top=1 + abs(centre),
        cost=spending.share(rules.target_share(spending.regime)),
        purpose="the target's scale",
        quantile=rules.target_quantile(spending.regime),
    )


def _beside_heap(spending: Spending, target: TargetCounts, centre: float) -> tuple[float, float]:
    """Return the deviation of the rows beside the heap that most rows are in, and that of all.

    Where most rows seem to be one point and noise hides all others, a second look costs more. Where
    it hides them still, the second is what it may be at most; both are 0 where there is no heap.
    From noisy histograms by octaves; one row is in one cell (docs/private-lasso.md, Lemma 22).
    """
    n_rows, share = spending.regime.n_rows, rules.heap_share(spending.regime)
    top = 1 + abs(centre)
    ends = top * 2.0 ** -np.arange(SPREAD_OCTAVES, -1.0, -1.0)
    counts = target.distance_counts(centre, np.concatenate(([0.0], ends[:-1], [math.inf])))
    middles = ends / math.sqrt(2)

    def look(share: float) -> tuple[Array, float]:
        noisy, noise = release_histograms(
            spending.accountant,
            counts[None, :],
            cost=spending.share(share),
            purpose="the target's distances from its centre",
        )
        return noisy[0], noise

    noisy, noise = look(share)
    found = spread_beside_heap(noisy, noise, middles, n_rows)
    if found[0] > 0 or noisy.max() <= rules.MOST_AT_POINT * n_rows:
        return found
    more = rules.point_target_share(spending.regime)
    again, less = look(more)
    part = more / (share + more)
    noisy, noise = part * again + (1 - part) * noisy, math.sqrt(part) * less
    found = spread_beside_heap(noisy, noise, middles, n_rows)
    return found if found[0] > 0 else (0.0, math.sqrt(SURE_NOISES * noise / n_rows) * top)


def spread_beside_heap(
    noisy: Array, noise: float, sizes: Array, n_rows: int
) -> tuple[float, float]:
    """Return the root mean square of sizes that are not in a heap, and of all; 0 if there is none.

    If most rows are one point, the others are those that are seen more than an octave beyond it.
    Else there is a heap if half of the rows are in cells within a part of the spread of all.
    Sizes are the cells' middles by octaves.
    """
    last, point = last_seen(noisy, noise, SURE_NOISES), int(noisy.argmax())
    if last is None:
        return 0.0, 0.0
    counts = np.where(np.arange(len(noisy)) <= last, np.maximum(noisy, 0.0), 0.0)
    if noisy[point] > rules.MOST_AT_POINT * n_rows:
        return _spreads_beside_point(noisy, sizes, slice(point + 2, last + 1), n_rows)
    spread = _winsorized_spread(counts, sizes, n_rows)
    inside = math.sqrt(2) * sizes < spread * rules.HEAPED  # whole cells
    if noisy[inside].sum() < n_rows / 2 + HEAP_NOISES * noise * math.sqrt(inside.sum()):
        return 0.0, 0.0
    others, squares = counts[~inside], np.minimum(sizes[~inside], WINSOR * spread) ** 2
    return math.sqrt(float(others @ squares) / max(1.0, others.sum())), spread


def _spreads_beside_point(
    noisy: Array, sizes: Array, seen: slice, n_rows: int
) -> tuple[float, float]:
    """Return the root mean square of the sizes in cells that are seen, and of all.

    In that of all, rows from the last of these on are an octave further out, or at the bound: noise
    hides which of them are, and they may be all that tells a coefficient.
    """
    counts, cells = np.maximum(noisy[seen], 0.0), sizes[seen]
    if not counts.any():
        return 0.0, 0.0
    beside = _winsorized_spread(counts, cells, float(counts.sum()))
    counts[-1] = float(noisy[seen.stop - 1 :].sum())
    cells = np.append(cells[:-1], min(2 * cells[-1], math.sqrt(2) * sizes[-1]))
    whole = float(counts.sum())
    return beside, _winsorized_spread(counts, cells, whole) * math.sqrt(whole / n_rows)


def _winsorized_spread(counts: Array, sizes: Array, n_rows: float) -> float:
    """Return the largest s whose square is the mean of min(size, 5s)².

    Few that are very far out count as if they were less far, as in Huber's second proposal.
    """
    spread = float(sizes[np.flatnonzero(counts)].max(initial=0.0))
    for _ in range(ROUNDS):
        squares = np.minimum(sizes, WINSOR * spread) ** 2
        spread = math.sqrt(float(counts @ squares) / n_rows)
    return spread


def _clipped_mean(spending: Spending, target: TargetCounts, centre: float, clip: float) -> float:
    """Release Σψ_c(y − centre)/n: one row moves the sum by at most c."""
    noisy, noise = spending.release_sum(
        target.clipped_levels(centre, clip),
        most=LEVELS,
        bound=clip,
        cost=spending.share(rules.target_share(spending.regime)),
        purpose="the target's mean",
    )
    return rules.clamp(rules.shrunk(noisy, noise) / spending.regime.n_rows, -clip, clip)


# --- few rows -------------------------------------------------------------------------------------

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

    @classmethod
    def about_zero(cls) -> Seat:
        """Return what is likely of a target that is declared to lie about zero."""
        seat = cls.around(0.0)
        off = seat.centres[:, None] / (rules.SKEWED * SCALES)
        return replace(seat, logs=seat.logs - np.log(SCALES) - off**2 / 2)

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
