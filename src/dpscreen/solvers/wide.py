"""Rows for a regression table: clipped nowhere near where they lie, in scales that can be trusted.

PrivateLasso narrows bounds, which biases slopes a little; a table must not. A scale that is wrong
costs precision only, but much of it where few rows are all that tells a column.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpscreen._core.arrays import Array, Integers
from dpscreen.privacy.accountant import release_histograms
from dpscreen.rows.loss import SQUARED, Loss
from dpscreen.rows.source import PublicUnits, RowSource
from dpscreen.rows.sums import ColumnMap
from dpscreen.solvers import ols_rules
from dpscreen.solvers.base import Choices, Spending, Task
from dpscreen.solvers.influences import are_points, left_of_level, seen_scales
from dpscreen.solvers.placing import Places, counts_by_side, release_places
from dpscreen.solvers.target import LARGEST, PlacedTarget, place_target
from dpscreen.solvers.zoom import OCTAVES, STANDS_OUT


@dataclass(frozen=True, eq=False)
class WideTask:
    """Rows on the lattice, clipped nowhere near where they lie, and the scales of the features.

    `left` is the part of a scale that is left if rows are cut short.
    """

    task: Task
    units: PublicUnits
    scales: Array
    left: Array


def place_widely(
    spending: Spending, rows: RowSource, bounds: tuple[Array, Array], choices: Choices
) -> WideTask:
    """Release where target and features lie, and put rows on the lattice, clipped far out only."""
    target = place_target(spending, rows, bounds[1])
    # Rows beside a heap may be all that tells a coefficient, hidden or seen: no clip may cut them.
    deviation = target.spread or target.deviation
    target = replace(target, deviation=deviation, heaped=target.spread > 0)
    places = release_places(spending, rows, bounds[0], choices)
    placed = Places.unplaced(bounds[0]) if places is None else places
    every = np.arange(len(bounds[0]))
    return widened(spending, rows, (placed, target, bounds[1]), choices, every)


def widened(
    spending: Spending,
    rows: RowSource,
    where: tuple[Places, PlacedTarget, Array],
    choices: Choices,
    chosen: Integers,
    loss: Loss = SQUARED,
) -> WideTask:
    """Put the scales of chosen features right, and rows on the lattice, clipped far out only.

    `where` has the places of features and target, and the target's bounds. Where features are not
    placed, as in sparse rows, they stay as declared.
    """
    places, target, target_bounds = where
    placing = choices.standardize and not rows.keeps_zero
    placed, left = places, np.ones(len(places.declared))
    if placing:
        longest = math.sqrt(ols_rules.SHORTEST * (len(chosen) + choices.intercept))
        placed, left = _rescaled(spending, rows, places, chosen, longest)
    clips = _far_out(placed) if placing else placed.declared
    reach = np.maximum(clips[:, 1] - placed.centres, placed.centres - clips[:, 0])
    units = PublicUnits(
        clips,
        np.clip(target_bounds, -LARGEST, LARGEST),
        constant=choices.intercept,
        loss=loss,
        features_at=np.stack((placed.centres, reach), axis=1),
        target_at=target.centre,
        nearest=bool(placing),
    )
    design = rows.lattice(units)
    task = Task(spending, design, target.deviation, 1.0, choices, heaped=target.heaped)
    return WideTask(replace(task, at_ends=tuple(placed.at_ends)), units, placed.scales, left)


def _rescaled(
    spending: Spending, rows: RowSource, places: Places, chosen: Integers, longest: float
) -> tuple[Places, Array]:
    """Release how far from their centres rows of numeric columns are, and put scales right.

    A column that is mostly one point, in wide bounds, has a scale that is noise; and one that is
    too small makes the few rows that differ so long that hardly anything is left of them. Rows that
    do not stand out of the noise may be anywhere: such a column stays in its declared bounds, with
    the scale that as many rows at their ends would give it.
    """
    columns = chosen[chosen < len(places.declared)]
    left = np.ones(len(places.declared))
    left[places.two] = left_of_level(places.scales[places.two], longest)
    numeric = columns[~places.two[columns]]
    if not numeric.size:
        return places, left
    widths = ColumnMap.of_bounds(places.declared, numeric).half_widths
    where = ColumnMap(numeric, places.declared[numeric], places.centres[numeric], widths)
    counts = counts_by_side(rows, where)
    noisy, noise = release_histograms(
        spending.accountant,
        counts,
        cost=spending.share(ols_rules.DISTANCE_SHARE),
        purpose="the features' distances from their centres",
    )
    scales, n_rows = places.scales.copy(), spending.regime.n_rows
    seen, part = seen_scales(OCTAVES, noisy, noise, longest)
    seen *= widths
    off = (seen > 2 * scales[numeric]) | ((seen > 0) & (seen < scales[numeric] / 2))
    point = are_points(noisy, noise, n_rows)
    hidden = min(1.0, STANDS_OUT * noise / n_rows)
    seen = np.where(point, np.maximum(seen, math.sqrt(hidden) * widths), seen)
    scales[numeric[off | point]] = seen[off | point]
    doubtful = np.zeros(len(scales), dtype=bool)
    doubtful[numeric] = point
    left[numeric] = np.where(point, 1.0, part)
    return replace(places, scales=scales, doubtful=doubtful), left


def _far_out(places: Places) -> Array:
    """Return the declared bounds, but where they are very many scales away, and it is no point."""
    low, high = places.declared.T
    reach = ols_rules.MOST_SCALES * places.scales
    nearer = np.maximum(low, places.centres - reach), np.minimum(high, places.centres + reach)
    narrow = (nearer[0] < nearer[1]) & ~places.doubtful
    return np.where(narrow[:, None], np.stack(nearer, axis=1), places.declared)
