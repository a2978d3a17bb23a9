"""What noisy histograms tell: scales, how heavy tails are, where to clip, and what that cuts off.

Everything here is made from released numbers (docs/privacy.md, Lemma 7); no function sees a row.
The reasons are in docs/inference.md, Lemmas 28, 38 and 39.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import log_ndtr, ndtr

from dpscreen._core.arrays import Array, Mask
from dpscreen.solvers import ols_rules
from dpscreen.solvers.rules import CLEAR, GAUSSIAN
from dpscreen.solvers.zoom import STANDS_OUT, last_seen, onward, stand_out

FINER = 2.0 ** (np.arange(-16, 41) / 8)
"""Clips that are looked at, in units of the last clear edge."""


def seen_scales(
    edges: Array, counts: Array, noise: float, longest: float = math.inf
) -> tuple[Array, Array]:
    """Return root mean squares of distances in noisy counts by side, the nearest in the middle.

    Cells count that stand out of the noise, alone or with their neighbours and with those further
    out, as uniform inside; what is below the first edge is at the centre. Zero where nothing else
    is seen. And which part is left if no distance is `longest` times that, or more.
    """
    half = counts.shape[1] // 2 + 1
    inward, outward = counts[:, half - 1 :: -1], counts[:, half:]
    beyond = np.hstack((onward(inward, noise)[:, ::-1], onward(outward, noise)))
    clear = stand_out(counts, noise, CLEAR) & beyond
    shares = np.where(clear, np.maximum(counts, 0.0), 0.0)
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1.0)
    cubes = np.append(np.diff(edges**3) / np.diff(edges) / 3, 0.0)
    squares = np.concatenate((cubes[::-1], [0.0], cubes))
    found = np.maximum(shares @ squares, 1e-300)
    cut = np.minimum(squares, longest**2 * found[:, None])
    left = np.where(found > 1e-300, (shares * cut).sum(axis=1) / found, 1.0)
    return np.sqrt(shares @ squares), np.sqrt(left)


def left_of_level(deviation: Array, longest: float) -> Array:
    """Return which part of the deviation of 0 and 1 is left if no distance is so many of it.

    Rows of a level that a share p has are √(1/p − 1) deviations from the mean
    (docs/inference.md, Lemma 36).
    """
    rare = (1 - np.sqrt(np.maximum(1 - 4 * deviation**2, 0.0))) / 2
    cut = rare * np.minimum(1 / rare - 1, longest**2)
    return np.sqrt(cut + (1 - rare) * np.minimum(rare / (1 - rare), longest**2))


def are_points(counts: Array, noise: float, n_rows: int) -> Mask:
    """Return which columns have all rows that are seen, and most of all, at one place.

    That is a cell, or two with a common edge. Of a normal column no two cells hold a third; of a
    skewed one that ends near its centre, like incomes, up to two thirds.
    """
    clear = counts >= CLEAR * noise
    first, last = clear.argmax(axis=1), clear.shape[1] - 1 - clear[:, ::-1].argmax(axis=1)
    held = np.where(clear, counts, 0.0).sum(axis=1)
    return np.asarray((last - first <= 1) & (held > ols_rules.POINT * n_rows))


# --- where influences are clipped -----------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Sizes:
    """A noisy histogram of influences ‖u‖·|r|: edges, counts below, between and beyond them.

    `n_rows` are about all that there are.
    """

    edges: Array
    counts: Array
    noise: float
    n_rows: int

    @property
    def median(self) -> float:
        """Return the median, interpolated."""
        whole = np.cumsum(self._clear_counts)
        middle = max(float(whole[-1]), 1.0) / 2
        edges = np.concatenate(([0.0], self.edges))
        found = float(np.interp(middle, np.concatenate(([0.0], whole[:-1])), edges))
        return max(found, float(self.edges[0]) / 2)

    @property
    def _clear_counts(self) -> Array:
        return np.where(self.counts >= STANDS_OUT * self.noise, self.counts, 0.0)

    @property
    def shown(self) -> bool:
        """Whether most rows are in cells that stand out of the noise."""
        seen = float(self._clear_counts.sum()) >= 0.6 * self.n_rows
        return seen and bool((self.counts[1:] >= CLEAR * self.noise).any())

    @property
    def last_edge(self) -> float:
        """Return the edge beyond which cells together do not stand out of their noise."""
        last = last_seen(self.counts, self.noise, CLEAR) or 0
        return float(self.edges[min(last, len(self.edges) - 1)])

    @cached_property
    def tail(self) -> Tail:
        """Return where the tail begins, and how many rows it has by each law: as that is likely.

        Cells from the one before that edge on tell it, those that noise hides too: together they
        hold the rows that matter most. Or that cell is the end of all others, and those beyond
        have a law of their own (docs/inference.md, Lemma 28).
        """
        cells = self.counts[1:]
        clear = np.flatnonzero(onward(cells[None, :], self.noise, CLEAR)[0])
        last = max(int(clear.max(initial=1)), 1)
        counts = cells[last - 1 :]
        shares = -np.diff(_beyond(self.edges[last - 1 :] / self.edges[last]), append=0.0)
        precision = 1 / (self.noise**2 + np.maximum(counts, 0.0))
        fits = [_rows_of_laws(counts[cut:], shares[:, cut:], precision[cut:]) for cut in (0, 1)]
        misfits = np.array([misfits for _, misfits in fits])
        chances = np.exp((misfits.min() - misfits) / 2) * [[1.0], [ols_rules.APART]]
        rows = np.array([rows for rows, _ in fits]) * chances / chances.sum()
        return Tail(float(self.edges[last]), rows.sum(axis=0))

    def cut_off(self, clip: float) -> float:
        """Return Σ(q − C)₊ about: what cells hold, and beyond the last clear edge the tail.

        Where most rows are hidden the clip is so wide that nothing is.
        """
        if not self.shown:
            return 0.0
        tail = self.tail
        inside = (self.edges[1:] <= tail.edge) & (self.edges[:-1] >= clip)
        sizes = np.sqrt(self.edges[1:] * self.edges[:-1])
        held = float(np.maximum(self.counts[1:-1], 0)[inside] @ (sizes[inside] - clip))
        return held + tail.cut_off(clip)


@dataclass(frozen=True, eq=False)
class Tail:
    """An edge, and the rows beyond it by the law of their fall."""

    edge: float
    rows: Array

    def cut_off(self, clip: float) -> float:
        """Return Σ(q − C)₊ of a clip C (docs/inference.md, Lemma 28)."""
        far = max(clip, self.edge)
        means = self.edge * _cut_off_beyond(far / self.edge)
        return float(self.rows @ (means + max(self.edge - clip, 0.0)))


def _rows_of_laws(counts: Array, shares: Array, precision: Array) -> tuple[Array, Array]:
    """Return how many rows fit counts best by each law, and how badly they do."""
    rows = np.maximum(shares * precision @ counts / (shares**2 @ precision), 0.0)
    return rows, (counts - rows[:, None] * shares) ** 2 @ precision


def _beyond(sizes: Array) -> Array:
    """Return how many rows are larger than sizes, by each law; beyond a size of one, it is one."""
    logs, indices = np.log(sizes), ols_rules.TAIL_INDICES[:, None]
    return np.exp(np.concatenate((-indices * logs, -indices * logs - logs**2 / 2)))


def _cut_off_beyond(size: float) -> Array:
    """Return the integral of that from a size on, by each law."""
    falls = ols_rules.TAIL_INDICES - 1
    bent = falls**2 / 2 + log_ndtr(-falls - math.log(size))
    return np.concatenate((size**-falls / falls, math.sqrt(2 * math.pi) * np.exp(bent)))


@dataclass(frozen=True)
class InfluenceClip:
    """Where influences are clipped, and the residuals' deviation.

    `tight` is the clip without the room that privacy noise leaves where sampling's is larger, and
    `lower` one that cuts off much more: where a tail can still be seen. `part` of what is cut off
    is taken to pull one way.
    """

    clip: float
    deviation: float
    tight: float
    lower: float
    part: float


@dataclass(frozen=True)
class LongestRows:
    """How long rows are, and up to how many deviations their residuals stay whole."""

    length: float
    kept: float

    def clip(self, deviation: float) -> float:
        """Return the least influence that may be clipped.

        Few rows may be all that tells a coefficient, those of a rare level for example. They are
        long, so a clip that suits most rows would cut nearly all of theirs.
        """
        return self.length * self.kept * deviation


def influence_clip(
    sizes: Sizes,
    mean_length: float,
    rho: float,
    longest: LongestRows,
    target: float,
    *,
    heaped: bool = False,
    part: float = ols_rules.ONE_SIDED,
) -> InfluenceClip:
    """Return the clip C with the least noise and bias: C²/2ρ + B(C)², tails falling as seen.

    Beyond an edge e with N rows outside, N(C/e)^−α·C/(α − 1) is cut off at C. A `part` is taken
    to pull one way; all of it where there is room for more noise (docs/inference.md, Lemma 28). It
    is no less than what keeps the longest rows whole; that of the `target` where noise hides sizes.
    Rows are as long as `mean_length`, the root of the mean square. Of a `heaped` target a median
    tells nothing.
    """
    if not sizes.shown:
        clip = longest.clip(target)
        return InfluenceClip(clip, target, clip, clip / 4, part)
    tail = sizes.tail
    deviation = max(GAUSSIAN * sizes.median / mean_length, target if heaped else 0.0)
    clips = np.maximum(tail.edge * FINER, longest.clip(deviation))
    cuts = np.array([sizes.cut_off(clip) for clip in clips.tolist()])
    tight, whole = (
        float(clips[np.argmin(clips**2 / (2 * rho) + (pulling * cuts) ** 2)])
        for pulling in (part, 1.0)
    )
    room = math.sqrt(ols_rules.PRIVATE_PART * 2 * rho * sizes.n_rows) * deviation
    clip, lower = max(tight, min(room, whole)), min(tail.edge, tight / 4)
    return InfluenceClip(clip, deviation, tight, lower, part)


# --- what clips cut off ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class OneSided:
    """Noisy Σψu at the estimate with a lower clip, its noise, and what is cut off at both clips.

    At the estimate that sum is about zero with the clip of the steps, so it is what influences
    between the two pull one way. Those beyond the upper clip are taken to pull like them.
    """

    moment: Array
    noise: float
    lower: float
    upper: float

    @property
    def _part(self) -> float:
        """Return what is cut off beyond the upper clip over what is between the two."""
        return self.upper / max(self.lower - self.upper, self.upper / 4, 1e-300)

    def along(self, directions: Array, variance: float) -> Array:
        """Return how far the upper clip moves parameters, about, in each direction (Lemma 38).

        It counts for less by as much as noise explains of all directions together: that of the
        sum, and of the estimate, with that `variance`.
        """
        noise = len(self.moment) * (self.noise**2 + variance)
        seen = max(0.0, 1 - noise / max(float(self.moment @ self.moment), 1e-300))
        return math.sqrt(seen) * np.abs(self._cut_off(directions))

    def lost(self, directions: Array, variance: float) -> Array:
        """Return what parameters lack because of it: what is beyond two deviations of noise."""
        noises = (directions**2).sum(axis=1) * (self.noise**2 + variance)
        sums = np.maximum((directions @ self.moment) ** 2, 1e-300)
        seen = np.maximum(0.0, 1 - 4 * noises / sums)
        return np.asarray(-seen * self._cut_off(directions))

    def _cut_off(self, directions: Array) -> Array:
        """Return what the upper clip cuts off in each direction, noise and all."""
        most = self.upper * np.sqrt((directions**2).sum(axis=1))
        return np.clip(self._part * (directions @ self.moment), -most, most)


def kept_slopes(sizes: Array) -> Array:
    """Return which part of normal residuals is not clipped, from their size once clipped.

    Sizes are roots of mean squares in units of the clip (docs/inference.md, Lemma 39).
    """
    return np.interp(sizes, *_SIZES_AND_SLOPES)


def _sizes_and_slopes() -> tuple[Array, Array]:
    clips = np.geomspace(12.0, 0.1, 200)  # in deviations
    density = np.exp(-(clips**2) / 2) / math.sqrt(2 * math.pi)
    inside = 1 - 2 * ndtr(-clips)
    squares = inside - 2 * clips * density + clips**2 * (1 - inside)
    return np.sqrt(squares) / clips, inside


_SIZES_AND_SLOPES = _sizes_and_slopes()
