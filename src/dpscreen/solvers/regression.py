"""What released sums tell of a regression: coefficients, covariance, and what cannot be told apart.

Everything here is made from released numbers (docs/privacy.md, Lemma 7); no function sees a row.
The proofs of what the covariance counts are in docs/inference.md, Lemmas 27, 29 and 39.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpscreen._core.arrays import Array, Mask
from dpscreen.rows.mixed import MixedRows
from dpscreen.solvers import ols_rules
from dpscreen.solvers.belief import sure_threshold
from dpscreen.solvers.influences import OneSided, Sizes, kept_slopes

PARTNER = 0.3
"""A feature is told to be alike from this part of the other one's size on."""


@dataclass(frozen=True, eq=False)
class EvenFrame:
    """Combinations u = ν·x of columns, their noisy Gram matrix, and the noise of its diagonal.

    `spread` is how much each is meant to vary, and `longest` how long rows are at most, about.
    """

    rows: MixedRows
    row_norm: float
    gram: Array
    noise: float
    spread: Array
    longest: float

    @property
    def matrix(self) -> Array:
        """Return the matrix that makes u of the columns."""
        return self.row_norm * self.rows.matrix

    def reaching(self, reach: float) -> EvenFrame:
        """Return the same, but rows so many times as long count whole in sums of influences."""
        return replace(self, rows=replace(self.rows, reach=reach))

    @property
    def mean_length(self) -> float:
        """Return the root mean square of rows' lengths, about."""
        return float(np.sqrt(self.spread @ self.spread))

    @property
    def blur(self) -> float:
        """Return how far noise moves eigenvalues, about."""
        return math.sqrt(2 * len(self.gram)) * self.noise

    def _seen(self, n_rows: int, spread: Array) -> tuple[Array, Array, Array]:
        """Return eigenvalues, directions, and the least that such spreads would give them."""
        values, vectors = np.linalg.eigh(self.gram)
        return values, vectors, n_rows / (vectors.T**2 @ spread**-2.0)

    def seen_spread(self, n_rows: int, spread: Array, levels: Mask) -> Array:
        """Return the same spreads, but of levels no more than is seen of them."""
        seen = np.sqrt(np.maximum(np.diag(self.gram), self.blur) / n_rows)
        return np.where(levels, np.minimum(seen, spread), spread)

    def resolved(self, n_rows: int, spread: Array) -> bool:
        """Whether all directions stand out of the noise that can, so that no look is needed."""
        values, _, wanted = self._seen(n_rows, spread)
        clear = ols_rules.RESOLVED * self.blur
        return bool(((values >= clear) | (wanted < clear)).all())

    def evened(self, n_rows: int, spread: Array) -> Array:
        """Return a matrix whose combinations vary as spreads say, as far as noise lets see.

        In units of spreads: else noise mixes a direction that hardly varies with one that is not
        meant to vary more, and rows of a rare level are stretched with the other.
        """
        values, vectors, wanted = self._seen(n_rows, spread)
        lifted = np.maximum(values, np.minimum(self.blur, wanted))
        seen = (vectors * lifted) @ vectors.T / np.outer(spread, spread)
        values, vectors = np.linalg.eigh(seen)
        evenly = (vectors * np.sqrt(n_rows / values)) @ vectors.T
        return np.asarray(spread[:, None] * evenly / spread @ self.matrix)


@dataclass(frozen=True)
class LeftOut:
    """A feature that noise does not tell apart from a combination of others, or from none.

    With no partner it may still vary: then many others, each a little, are what it is like. It is
    `drowned` if it is told apart, but nothing could be said of its coefficient.
    """

    feature: int
    partners: tuple[int, ...]
    drowned: bool = False
    varies: bool = False


@dataclass(frozen=True, eq=False)
class Inverse:
    """What solves with a noisy Gram matrix, some features being left out (Lemma 29)."""

    matrix: Array
    left_out: tuple[LeftOut, ...]

    def without(self, feature: int, frame: EvenFrame) -> Inverse:
        """Return what solves without one more feature, which noise drowns."""
        ways = frame.matrix[:, [feature]]
        across = self.matrix @ ways
        matrix = self.matrix - across @ across.T / float(ways[:, 0] @ across[:, 0])
        gone = (*self.left_out, LeftOut(feature, (), drowned=True))
        return Inverse(matrix, tuple(sorted(gone, key=lambda one: one.feature)))

    def begun(self, start: Array, frame: EvenFrame) -> Array:
        """Return where steps that began there would have begun without what is drowned."""
        drowned = any(one.drowned for one in self.left_out)
        return np.asarray(self.matrix @ (frame.gram @ start)) if drowned else start

    def damping(self, n_rows: int, frame: EvenFrame) -> Array:
        """Return D: a step where rows count longer than in the Gram matrix is `matrix` times Db.

        Of a direction that varies less than it was made to, by more than the blur, rows were
        shortened, so that a whole step would go beyond the end (docs/inference.md, Lemma 50).
        """
        scales = np.outer(frame.spread, frame.spread)
        values, vectors = np.linalg.eigh(self.matrix * scales)
        blur = vectors.T**2 @ (frame.blur / frame.spread**2)
        larger = np.clip(n_rows * values / (1 + values * blur), 1.0, ols_rules.REACH**2)
        damped = (vectors * values * 2 / (1 + larger)) @ vectors.T
        return np.asarray(frame.gram @ (damped / scales))


def told_apart(frame: EvenFrame, n_features: int, per_scale: Array) -> Inverse:
    """Leave out features, one by one, until every direction stands out of the noise.

    The coefficient of a feature that is left out is zero: a linear condition, under which the noise
    stays as it was. As in the usual software it is the later one of two that are alike. A direction
    that had to be stretched very much from the columns' own scales is told by few rows, all of them
    cut short.
    """
    least = max(ols_rules.TOLD_APART * frame.noise, frame.blur)
    basis, gone = np.eye(len(frame.gram)), list[int]()
    seen = _not_stretched(frame, per_scale)
    while True:
        values, vectors = np.linalg.eigh(basis.T @ seen @ basis)
        if values.size and values[0] >= least:
            values, vectors = np.linalg.eigh(basis.T @ frame.gram @ basis)
            solved = (basis @ vectors / values) @ (basis @ vectors).T
            return Inverse(np.asarray(solved), _left_out(frame, gone, n_features, least))
        if len(gone) == n_features:
            return Inverse(np.zeros_like(frame.gram), tuple(LeftOut(j, ()) for j in gone))
        parts = np.abs((frame.matrix / per_scale).T @ basis @ vectors[:, 0])[:n_features]
        parts[gone] = 0
        gone.append(int(np.flatnonzero(parts >= 0.5 * parts.max())[-1]))
        basis = np.linalg.svd(frame.matrix.T[gone])[2][len(gone) :].T


def _not_stretched(frame: EvenFrame, per_scale: Array) -> Array:
    """Return the Gram matrix without directions that were stretched very much."""
    ways, stretches, _ = np.linalg.svd(frame.matrix / per_scale / frame.spread[:, None])
    left = ways[:, stretches <= ols_rules.MOST_STRETCH]
    return np.asarray(left @ (left.T @ frame.gram @ left) @ left.T)


def _left_out(
    frame: EvenFrame, gone: Sequence[int], n_features: int, least: float
) -> tuple[LeftOut, ...]:
    """Say of each feature that is gone which of the others it is made of, if it varies at all.

    It does if it would not be gone without the others: if beside the constant it varies by what a
    direction has at `least` that is told apart.
    """
    back = np.linalg.inv(frame.matrix)
    moments = back @ frame.gram @ back.T
    noise = ols_rules.TOLD_APART * frame.noise * (back**2).sum(axis=1)
    kept = np.array([j for j in range(len(moments)) if j not in gone], dtype=np.int64)
    sizes = np.sqrt(np.maximum(np.diag(moments), 0))
    constant, told = moments[n_features:, n_features:], []
    for j in sorted(gone):
        slopes = np.linalg.solve(moments[np.ix_(kept, kept)], moments[kept, j])
        parts = np.abs(slopes) * sizes[kept]
        seen = moments[j, j] > noise[j]
        alike = kept[(parts > PARTNER * sizes[j]) & (kept < n_features)] if seen else kept[:0]
        alone = back[j] - np.linalg.solve(constant, moments[n_features:, j]) @ back[n_features:]
        varies = alone @ frame.gram @ alone > least * (alone @ alone)
        told.append(LeftOut(j, tuple(alike.tolist()), varies=bool(varies)))
    return tuple(told)


# --- covariance -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class NewtonStep:
    """Where a step began, the noisy Σψu there, its noise, and its clip."""

    start: Array
    moment: Array
    noise: float
    clip: float

    def sum_at(self, theta: Array, gram: Array) -> Array:
        """Return about what the sum would be elsewhere."""
        return np.asarray(self.moment - gram @ (theta - self.start))

    def pulls(self, directions: Array, variances: Array) -> bool:
        """Whether the sum is not zero along a direction: by chance so in one of twenty walks.

        `variances` are of what is in it besides, by direction.
        """
        along = np.abs(directions @ self.moment)
        return bool((along > sure_threshold(len(along)) * np.sqrt(variances)).any())


class SolutionBelief:
    """Where the least squares are believed to lie, by all steps so far (Lemma 27).

    No line explains more than there is: θᵀGθ is at most the target's sum of squares, shared by all
    directions. Steps that begin where noise threw the one before would find all rows of a rare
    level beyond their clip. Only where steps begin follows from it, not what they answer.
    """

    def __init__(self, values: Array, vectors: Array, squares: float) -> None:
        self._values, self._vectors = values, vectors
        self._mean, self._variances = np.zeros(len(values)), squares * values

    @classmethod
    def before(cls, inverse: Inverse, squares: float) -> SolutionBelief:
        """Return what is believed before any step."""
        values, vectors = np.linalg.eigh(inverse.matrix)
        return cls(np.maximum(values, 0.0), vectors, squares / len(values))

    def after(self, answer: Array, noise: float) -> Array:
        """Return where it lies, now that a step has answered with such a noise in Σψu."""
        noises = np.maximum((noise * self._values) ** 2, 1e-300)
        part = self._variances / (self._variances + noises)
        self._mean = self._mean + part * (self._vectors.T @ answer - self._mean)
        self._variances = (1 - part) * self._variances
        return np.asarray(self._vectors @ self._mean)


@dataclass(frozen=True, eq=False)
class Pooled:
    """The estimate θ from two steps: its noise, what clips cut off, and how far it went.

    `ways` are how far the estimate is from where each step began, and `noises` that of each step's
    sum; in the estimate they have the `variance`, about, in each direction. `last` is how far the
    last answer is from the one before, and `part` that of the last in the estimate; `whole` is how
    far a whole step would have gone, with noise of `whole_variance` as a sum.
    """

    theta: Array
    variance: float
    cut_off: float
    ways: Array
    last: Array
    whole: Array
    whole_variance: float
    part: float
    damping: Array
    noises: Array

    @property
    def way(self) -> Array:
        """Return how far the estimate is from where steps began, in the mean of the two."""
        return np.asarray((1 - self.part) * self.ways[0] + self.part * self.ways[1])

    def private(self, frame: EvenFrame) -> Array:
        """Return the covariance of privacy's noise as a sum: of Σψu, and of G along both ways.

        What damping takes off the last step is left to the one before, with all its noise.
        """
        last, every = self.part * self.damping, np.eye(len(self.theta))
        parts = (every - last, last)
        noises = (noise**2 * part @ part.T for noise, part in zip(self.noises, parts, strict=True))
        crossed = (
            one @ (way @ other_way * every + np.outer(other_way, way)) @ other.T
            for one, way in zip(parts, self.ways, strict=True)
            for other, other_way in zip(parts, self.ways, strict=True)
        )
        return np.asarray(sum(noises) + frame.noise**2 / 2 * sum(crossed))

    def left_by_long_rows(self, to_parameters: Array, squares: Array) -> Array:
        """Return the variance of parameters from rows that are longer than counts.

        The last step saw rows that are longer. What that changed, beyond twice what noise does,
        is half of what whole rows would change, or less (docs/inference.md, Lemma 50).
        """
        seen = (to_parameters @ self.whole) ** 2 - 2 * squares * self.whole_variance
        return np.maximum(seen, 0.0) * ((1 - self.part) ** 2 + 1 / 3)


def pooled(
    steps: Sequence[NewtonStep],
    inverse: Inverse,
    frame: EvenFrame,
    cut: tuple[Sizes, float],
    damping: Array,
) -> Pooled:
    """Return the mean of two steps' answers, by how little noise each has (Lemma 27).

    The first of them counts for less by as much as the two are further apart than by noise: then
    it was not there yet. A part of what clips `cut` off is taken to pull one way. Of what damping
    takes off the last step, the answer before stays.
    """
    begun = [inverse.begun(step.start, frame) for step in steps]
    first, whole = (
        at + inverse.matrix @ step.moment for at, step in zip(begun, steps, strict=True)
    )
    second = begun[1] + inverse.matrix @ damping @ steps[1].moment
    noises = np.array([step.noise for step in steps])
    cuts = np.array([cut[0].cut_off(step.clip) for step in steps])
    ways = np.array([float((step.start - second) @ (step.start - second)) for step in steps])
    variances = noises**2 + frame.noise**2 * ways / 2 + (cut[1] * cuts) ** 2
    apart = frame.gram @ (second - first)
    variances[0] += max(0.0, float(apart @ apart) / len(apart) - float(variances.sum()))
    weights = (1 / variances) / (1 / variances).sum()
    theta = weights[0] * first + weights[1] * second
    return Pooled(
        theta,
        float(weights**2 @ noises**2),
        float(weights @ cuts),
        np.array([theta - step.start for step in steps]),
        second - first,
        whole - first,
        float(noises @ noises) + frame.noise**2 * float(ways.sum()) / 2,
        float(weights[1]),
        damping,
        noises,
    )


def private_errors(
    estimate: Pooled, frame: EvenFrame, inverse: Inverse, per_scale: Array, bias: OneSided
) -> Array:
    """Return privacy's errors of coefficients, per deviation that others leave of a feature.

    What a feature explains that way is at most the target's deviation, of which an error of half as
    much tells nothing (docs/inference.md, Lemma 52).
    """
    scaled = (frame.matrix / per_scale).T
    directions, back = scaled @ inverse.matrix, np.linalg.inv(scaled)
    squares, moments = (directions**2).sum(axis=1), back.T @ frame.gram @ back
    variances = ((directions @ estimate.private(frame)) * directions).sum(axis=1)
    variances += estimate.left_by_long_rows(scaled, squares)
    variances += bias.along(directions, estimate.variance) ** 2
    alike = np.maximum(np.diag(moments) * (directions * scaled).sum(axis=1), 1.0)
    return np.asarray(np.sqrt(variances / alike))


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

    def mean(self, spread: Array) -> float:
        """Return it over squared spreads, the mean of all directions: less noisy than any."""
        whole = float(spread @ spread)
        return max(float(np.trace(self.matrix)), math.sqrt(len(spread)) * self.noise) / whole

    def shrunk(self, spread: Array) -> Array:
        """Return it drawn to what spreads say by as much as noise explains, and positive."""
        k, even = len(spread), self.mean(spread) * np.diag(spread**2)
        apart = float(((self.matrix - even) ** 2).sum())
        part = min(1.0, k * (k + 1) / 2 * self.noise**2 / max(apart, 1e-300))
        drawn = ((1 - part) * self.matrix + part * even) / np.outer(spread, spread)
        values, vectors = np.linalg.eigh(drawn)
        least = ols_rules.LEAST_SPREAD * self.mean(spread)
        whole = (vectors * np.maximum(values, least)) @ vectors.T
        return np.asarray(whole * np.outer(spread, spread))

    def along(self, directions: Array, spread: Array) -> tuple[Array, Array]:
        """Return hᵀMh/‖h‖² of every direction, each drawn to the mean by itself, and its error."""
        squares = np.maximum((directions**2).sum(axis=1), 1e-300)
        even = self.mean(spread) * (directions**2 @ spread**2) / squares
        off = ((directions @ self.matrix) * directions).sum(axis=1) / squares - even
        kept = off**2 / (off**2 + self.noise**2)
        error = self.noise * np.maximum(kept, 1 / math.sqrt(len(self.matrix)))
        return np.maximum(even + kept * off, ols_rules.LEAST_SPREAD * even), error


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

    def slopes(self, directions: Array, to_parameters: Array) -> Array:
        """Return how much of a parameter's rows is not clipped: what a step really goes by.

        (docs/inference.md, Lemma 39)
        """
        damped = directions @ self.estimate.damping
        squares = np.maximum((damped**2).sum(axis=1), 1e-300)
        gram = (damped * to_parameters).sum(axis=1) / squares
        sampling, _ = self.middle.along(damped, self.frame.spread)
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
    private, spread = estimate.private(walked.frame), walked.frame.spread
    common = directions @ (middle.shrunk(spread) + private) @ directions.T
    sampling, error = middle.along(directions, spread)
    squares = (directions**2).sum(axis=1)
    variances = squares * sampling + ((directions @ private) * directions).sum(axis=1)
    freedom = 2 * (variances / np.maximum(squares * error, 1e-300)) ** 2
    slopes, bias = (
        walked.slopes(directions, to_parameters),
        walked.one_sided.along(directions, estimate.variance),
    )
    left = (1 - slopes) * (to_parameters @ estimate.last)
    variances = (variances + left**2) / slopes**2 + bias**2
    if walked.frame.rows.reach > 1:
        variances += estimate.left_by_long_rows(to_parameters, squares)
    rescaled = np.sqrt(variances / np.maximum(np.diag(common), 1e-300))
    covariance = common * np.outer(rescaled, rescaled)
    return Uncertainty(
        (covariance + covariance.T) / 2,
        np.clip(freedom, ols_rules.LEAST_FREEDOM, 1e6),
        bias,
        np.zeros(len(squares)),
    )
