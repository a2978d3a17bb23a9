"""What released sums tell of a regression: coefficients, covariance, and what cannot be told apart.

Everything here is made from released numbers (docs/privacy.md, Lemma 7); no function sees a row.
The proofs of what the covariance counts are in docs/inference.md, Lemmas 27 to 29.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from dpscreen._core.arrays import Array, Mask
from dpscreen.rows.mixed import MixedRows
from dpscreen.solvers import ols_rules
from dpscreen.solvers.rules import GAUSSIAN, clamp

FINER = 2.0 ** (np.arange(-16, 41) / 8)
"""Clips that are looked at, in units of the last clear edge."""

WINDOW = 3
"""Over how many cells the fall of a tail is seen."""

CLEAR = 4.5
"""How many noises the count of a cell needs to be seen."""

STANDS_OUT = 3.0
"""How many noises it needs to count towards a median, or for rows to be as long."""

NEIGHBOURS = 4
"""How many cells may stand out of the noise together."""

PARTNER = 0.3
"""A feature is told to be alike from this part of the other one's size on."""


def seen_scales(edges: Array, counts: Array, noise: float) -> Array:
    """Return root mean squares of distances in noisy counts below, between and beyond edges.

    Cells count that stand out of the noise, alone or with their neighbours, as uniform inside; what
    is below the first edge is at the centre. Zero where nothing else is seen.
    """
    seen = np.where(_stand_out(counts, noise), np.maximum(counts, 0.0), 0.0)
    cubes = np.diff(edges**3) / np.diff(edges) / 3
    squares = np.concatenate(([0.0], cubes, [0.0]))
    return np.asarray(np.sqrt(seen @ squares / np.maximum(seen.sum(axis=1), 1.0)))


def _stand_out(counts: Array, noise: float) -> Mask:
    """Return which cells are among a few neighbours whose sum stands out of its noise."""
    found = np.zeros(counts.shape, dtype=bool)
    for size in range(1, NEIGHBOURS + 1):
        sums = np.lib.stride_tricks.sliding_window_view(counts, size, axis=1).sum(axis=2)
        clear = sums >= STANDS_OUT * math.sqrt(size) * noise
        for place in range(size):
            found[:, place : place + clear.shape[1]] |= clear
    return found


@dataclass(frozen=True, eq=False)
class EvenFrame:
    """Combinations u = ν·x of columns, their noisy Gram matrix, and the noise of its diagonal."""

    rows: MixedRows
    row_norm: float
    gram: Array
    noise: float

    @property
    def matrix(self) -> Array:
        """Return the matrix that makes u of the columns."""
        return self.row_norm * self.rows.matrix

    @property
    def blur(self) -> float:
        """Return how far noise moves eigenvalues, about."""
        return math.sqrt(2 * len(self.gram)) * self.noise

    @property
    def resolved(self) -> bool:
        """Whether all directions stand out of the noise, so that no other look is needed."""
        return float(np.linalg.eigvalsh(self.gram)[0]) >= ols_rules.RESOLVED * self.blur

    def evened(self, n_rows: int) -> Array:
        """Return a matrix whose combinations vary alike, as far as noise lets see."""
        values, vectors = np.linalg.eigh(self.gram)
        lifted = np.maximum(values, self.blur) / n_rows
        return np.asarray((vectors / np.sqrt(lifted)) @ vectors.T @ self.matrix)


@dataclass(frozen=True)
class LeftOut:
    """A feature that noise does not tell apart from a combination of others, or from none."""

    feature: int
    partners: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Inverse:
    """What solves with a noisy Gram matrix, some features being left out (Lemma 29)."""

    matrix: Array
    left_out: tuple[LeftOut, ...]


def told_apart(frame: EvenFrame, n_features: int, n_rows: int, per_scale: Array) -> Inverse:
    """Leave out features, one by one, until every direction stands out of the noise.

    The coefficient of a feature that is left out is zero: a linear condition, under which the noise
    stays as it was. As in the usual software it is the later one of two that are alike. Directions
    vary alike in the frame; one that varies much less, or had to be stretched very much from the
    columns' own scales, is told by few rows, all of them cut short.
    """
    least = max(ols_rules.TOLD_APART * frame.noise, frame.blur, ols_rules.LEAST_PART * n_rows)
    basis, gone = np.eye(len(frame.gram)), list[int]()
    seen = _not_stretched(frame, per_scale)
    while True:
        values, vectors = np.linalg.eigh(basis.T @ seen @ basis)
        if values.size and values[0] >= least:
            values, vectors = np.linalg.eigh(basis.T @ frame.gram @ basis)
            solved = (basis @ vectors / values) @ (basis @ vectors).T
            return Inverse(np.asarray(solved), _left_out(frame, gone, n_features))
        if len(gone) == n_features:
            return Inverse(np.zeros_like(frame.gram), tuple(LeftOut(j, ()) for j in gone))
        parts = np.abs(frame.matrix.T @ basis @ vectors[:, 0])[:n_features]
        parts[gone] = 0
        gone.append(int(np.flatnonzero(parts >= 0.5 * parts.max())[-1]))
        basis = np.linalg.svd(frame.matrix.T[gone])[2][len(gone) :].T


def _not_stretched(frame: EvenFrame, per_scale: Array) -> Array:
    """Return the Gram matrix without directions that were stretched very much."""
    ways, stretches, _ = np.linalg.svd(frame.matrix / per_scale)
    left = ways[:, stretches <= ols_rules.MOST_STRETCH]
    return np.asarray(left @ (left.T @ frame.gram @ left) @ left.T)


def _left_out(frame: EvenFrame, gone: Sequence[int], n_features: int) -> tuple[LeftOut, ...]:
    """Say of each feature that is gone which of the others it is made of, if it varies at all."""
    back = np.linalg.inv(frame.matrix)
    moments = back @ frame.gram @ back.T
    noise = ols_rules.TOLD_APART * frame.noise * (back**2).sum(axis=1)
    kept = np.array([j for j in range(len(moments)) if j not in gone], dtype=np.int64)
    sizes = np.sqrt(np.maximum(np.diag(moments), 0))
    told = []
    for j in sorted(gone):
        slopes = np.linalg.solve(moments[np.ix_(kept, kept)], moments[kept, j])
        parts = np.abs(slopes) * sizes[kept]
        seen = moments[j, j] > noise[j]
        alike = kept[(parts > PARTNER * sizes[j]) & (kept < n_features)] if seen else kept[:0]
        told.append(LeftOut(j, tuple(alike.tolist())))
    return tuple(told)


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
        """Return the edge beyond which no cell stands out of the noise."""
        last = int(np.flatnonzero(self.counts >= STANDS_OUT * self.noise).max(initial=0))
        return float(self.edges[min(last, len(self.edges) - 1)])

    def tail(self) -> Tail:
        """Return where the tail begins and how fast it falls.

        Cells further out hold noise, and few rows: the index stands for those. A tail is light if
        it falls about as fast as a normal's does there, and heavy if influences have no variance.
        """
        cells = self.counts[1:]
        clear = np.flatnonzero(cells >= CLEAR * self.noise)
        last = max(int(clear.max(initial=WINDOW)), WINDOW)
        outside = max(float(cells[last : last + 2].sum()), self.noise)
        ahead = max(float(cells[last + 1 : last + 3].sum()), math.sqrt(2) * self.noise)

        def index(first: int) -> float:
            before = max(float(cells[first:last].sum()) + outside, 1.2 * outside)
            return math.log(before / outside) / math.log(self.edges[last] / self.edges[first])

        near, far = index(last - 1), index(last - WINDOW)
        share = outside / max(float(self.counts.sum()), 2 * outside)
        light = near >= ols_rules.LIGHT_TAIL * normal_index(share)
        beyond = math.log(max((float(cells[last - 1]) + outside) / ahead, 1.0)) / math.log(2)
        if light or max(far, beyond) >= ols_rules.HEAVY_TAIL:
            slope, part = max(near, min(beyond, ols_rules.HEAVY_TAIL)), ols_rules.ONE_SIDED
        else:
            slope, part = min(near, far), 1.0
        return Tail(float(self.edges[last]), outside, clamp(slope, *ols_rules.TAIL_INDICES), part)

    def cut_off(self, clip: float) -> float:
        """Return Σ(q − C)₊ about: what cells hold, and beyond the last clear edge the tail.

        Where most rows are hidden the clip is so wide that nothing is.
        """
        if not self.shown:
            return 0.0
        tail = self.tail()
        if clip >= tail.edge:
            return float(tail.cut_off(np.array(clip)))
        inside = (self.edges[1:] <= tail.edge) & (self.edges[:-1] >= clip)
        sizes = np.sqrt(self.edges[1:] * self.edges[:-1])
        held = float(np.maximum(self.counts[1:-1], 0)[inside] @ (sizes[inside] - clip))
        return held + tail.outside * (tail.edge * tail.index / (tail.index - 1) - clip)


def normal_index(share: float) -> float:
    """Return how fast |z| of a normal falls over the half octave before that share is outside."""
    edge = float(ndtri(1 - share / 2))
    return math.log(2 * float(ndtr(-edge / math.sqrt(2))) / share) / math.log(math.sqrt(2))


@dataclass(frozen=True)
class Tail:
    """An edge, the rows outside it, the index of the fall, and which part pulls one way."""

    edge: float
    outside: float
    index: float
    one_sided: float

    def cut_off(self, clips: Array) -> Array:
        """Return Σ(q − C)₊ of clips C beyond the edge (docs/inference.md, Lemma 28)."""
        falling = (clips / self.edge) ** -self.index
        return np.asarray(self.outside * falling * clips / (self.index - 1))


@dataclass(frozen=True)
class InfluenceClip:
    """Where influences are clipped, about the bias that may cause, and the residuals' deviation.

    `tight` is the clip without the room that privacy noise leaves where sampling's is larger, and
    `lower` one that cuts off much more: where a tail can still be seen.
    """

    clip: float
    bias: float
    deviation: float
    tight: float
    lower: float


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
    sizes: Sizes, size: ols_rules.TableSize, rho: float, longest: LongestRows, target: float
) -> InfluenceClip:
    """Return the clip C with the least noise and bias: C²/2ρ + B(C)², tails falling as seen.

    Beyond an edge e with N rows outside, N(C/e)^−α·C/(α − 1) is cut off at C. All of it is taken to
    pull one way, or a part of it where tails are light (docs/inference.md, Lemma 28). It is no
    less than what keeps the longest rows whole; that of the `target` where noise hides the sizes.
    """
    if not sizes.shown:
        clip = longest.clip(target)
        return InfluenceClip(clip, 0.0, target, clip, clip / 4)
    tail = sizes.tail()
    deviation = GAUSSIAN * sizes.median / math.sqrt(size.n_columns)
    clips = np.maximum(tail.edge * FINER, longest.clip(deviation))
    biases = ols_rules.ONE_SIDED * np.array([sizes.cut_off(clip) for clip in clips.tolist()])
    best = int(np.argmin(clips**2 / (2 * rho) + biases**2))
    room = math.sqrt(ols_rules.PRIVATE_PART * 2 * rho * size.n_rows) * deviation
    tight = float(clips[best])
    lower = min(tail.edge, tight / 4)
    return InfluenceClip(max(tight, room), float(biases[best]), deviation, tight, lower)


# --- covariance -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class NewtonStep:
    """Where a step began, the noisy Σψu there, its noise, and its clip."""

    start: Array
    moment: Array
    noise: float
    clip: float


@dataclass(frozen=True, eq=False)
class Pooled:
    """The estimate θ from two steps: its noise, what clips cut off, and how far it went.

    `last` is how far the last answer is from the one before.
    """

    theta: Array
    variance: float
    cut_off: float
    way: Array
    last: Array


def pooled(steps: Sequence[NewtonStep], inverse: Inverse, frame: EvenFrame, sizes: Sizes) -> Pooled:
    """Return the mean of two steps' answers, by how little noise each has (Lemma 27).

    The first of them counts for less by as much as the two are further apart than by noise: then
    it was not there yet.
    """
    first, second = (step.start + inverse.matrix @ step.moment for step in steps)
    noises = np.array([step.noise for step in steps])
    cuts = np.array([sizes.cut_off(step.clip) for step in steps])
    ways = np.array([float((step.start - second) @ (step.start - second)) for step in steps])
    variances = noises**2 + frame.noise**2 * ways / 2 + (ols_rules.ONE_SIDED * cuts) ** 2
    apart = frame.gram @ (second - first)
    variances[0] += max(0.0, float(apart @ apart) / len(apart) - float(variances.sum()))
    weights = (1 / variances) / (1 / variances).sum()
    theta = weights[0] * first + weights[1] * second
    start = weights[0] * steps[0].start + weights[1] * steps[1].start
    noise, cut = float(weights**2 @ noises**2), float(weights @ cuts)
    return Pooled(theta, noise, cut, theta - start, second - first)


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

    def along(self, directions: Array) -> Array:
        """Return how far the upper clip moves parameters, about, in each direction (Lemma 38)."""
        sizes = np.sqrt((directions**2).sum(axis=1))
        pulled = np.hypot(directions @ self.moment, self.noise * sizes)
        return np.asarray(np.minimum(self._part * pulled, self.upper * sizes))

    def lost(self, variance: float) -> Array:
        """Return Σ(r − ψ)u about, drawn to zero by as much as noise explains.

        The estimate has noise of that `variance`, which moves the sum too.
        """
        size = float(self.moment @ self.moment)
        noise = len(self.moment) * (self.noise**2 + variance)
        found = max(0.0, 1 - noise / max(size, 1e-300)) * self._part
        return -min(found, self.upper / max(math.sqrt(size), 1e-300)) * self.moment


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


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """Covariance of parameters, their degrees of freedom, and how far clips may have moved them.

    `plain` are about the standard errors of least squares without privacy, as far as can be told:
    the released deviation of residuals over what the noisy Gram matrix says of the features.
    """

    covariance: Array
    freedom: Array
    bias: Array
    plain: Array


@dataclass(frozen=True, eq=False)
class Middle:
    """The noisy ΣΨΨᵀ of influences Ψ = ψu, and the noise of its diagonal."""

    matrix: Array
    noise: float

    @property
    def mean(self) -> float:
        """Return its mean in all directions, which is less noisy than any."""
        k = len(self.matrix)
        return max(float(np.trace(self.matrix)) / k, self.noise / math.sqrt(k))

    @property
    def shrunk(self) -> Array:
        """Return it drawn to its mean by as much as noise explains, and positive."""
        k, even = len(self.matrix), self.mean * np.eye(len(self.matrix))
        apart = float(((self.matrix - even) ** 2).sum())
        part = min(1.0, k * (k + 1) / 2 * self.noise**2 / max(apart, 1e-300))
        values, vectors = np.linalg.eigh((1 - part) * self.matrix + part * even)
        least = ols_rules.LEAST_SPREAD * self.mean
        return np.asarray((vectors * np.maximum(values, least)) @ vectors.T)

    def along(self, directions: Array) -> tuple[Array, Array]:
        """Return hᵀMh/‖h‖² of every direction, each drawn to the mean by itself, and its error."""
        squares = np.maximum((directions**2).sum(axis=1), 1e-300)
        off = ((directions @ self.matrix) * directions).sum(axis=1) / squares - self.mean
        kept = off**2 / (off**2 + self.noise**2)
        least = ols_rules.LEAST_SPREAD * self.mean
        error = self.noise * np.maximum(kept, 1 / math.sqrt(len(self.matrix)))
        return np.maximum(self.mean + kept * off, least), error


@dataclass(frozen=True, eq=False)
class Walked:
    """What a walk released: its frame, the estimate, the middle, and what clips cut off.

    `residual_clip` is where residuals of the longest rows are clipped.
    """

    frame: EvenFrame
    inverse: Inverse
    estimate: Pooled
    middle: Middle
    one_sided: OneSided
    residual_clip: float

    def slopes(self, directions: Array, sampling: Array) -> Array:
        """Return how much of a parameter's rows is not clipped: what a step really goes by.

        (docs/inference.md, Lemma 39)
        """
        squares = np.maximum((directions**2).sum(axis=1), 1e-300)
        gram = ((directions @ self.frame.gram) * directions).sum(axis=1) / squares
        residuals = np.sqrt(sampling / np.maximum(gram, self.frame.noise))
        return kept_slopes(residuals / self.residual_clip)


def uncertainty(walked: Walked, to_parameters: Array) -> Uncertainty:
    """Return what is known of parameters Jθ: G⁻¹(M + P)G⁻¹ (docs/inference.md, Lemma 27).

    P counts the noise of Σψu and that of the Gram matrix along the way that was gone. Where rows
    are clipped the walk is slower than G says: errors are larger by as much, and what is left of
    the way is a part of the last move. The bias of clips counts as a deviation.
    """
    directions = to_parameters @ walked.inverse.matrix
    estimate, middle = walked.estimate, walked.middle
    way, k = estimate.way, len(estimate.way)
    crossed = float(way @ way) * np.eye(k) + np.outer(way, way)
    private = estimate.variance * np.eye(k) + walked.frame.noise**2 / 2 * crossed
    common = directions @ (middle.shrunk + private) @ directions.T
    sampling, error = middle.along(directions)
    squares = (directions**2).sum(axis=1)
    variances = squares * sampling + ((directions @ private) * directions).sum(axis=1)
    freedom = 2 * (variances / np.maximum(squares * error, 1e-300)) ** 2
    slopes, bias = walked.slopes(directions, sampling), walked.one_sided.along(directions)
    left = (1 - slopes) * (to_parameters @ estimate.last)
    variances = (variances + left**2) / slopes**2 + bias**2
    rescaled = np.sqrt(variances / np.maximum(np.diag(common), 1e-300))
    covariance = common * np.outer(rescaled, rescaled)
    return Uncertainty(
        (covariance + covariance.T) / 2,
        np.clip(freedom, ols_rules.LEAST_FREEDOM, 1e6),
        bias,
        np.zeros(len(squares)),
    )
