"""What weights are believed to be, given noisy sums: by how much each may vary, and where it is.

Everything here is made from released numbers (docs/privacy.md, Lemma 7); no function sees a row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtri
from scipy.special import ndtri

from dpscreen._core.arrays import Array, Integers

PRIOR_VARIANCES = 4.0 ** np.arange(-5, 8)
"""What is tried for the variance of weights, in squares of the noise of a middling one."""

ROUNDS, LINE_ROUNDS = 12, 4
"""How often what single weights may vary by is brought up to date; of a line, in each iteration."""

FLOOR = 0.5
"""The least eigenvalue of a matrix that sums have put right, in the blur of its noise."""

CORRELATION = 0.3
"""How features may be correlated where noise hides it."""

ITERATIONS = 2
"""How often what weights are believed to be tells anew how far noise in the matrix leads astray."""


@dataclass(frozen=True, eq=False)
class Seen:
    """The sums that were released at some weights, and the deviation of their noise."""

    weights: Array
    sums: Array
    noise: float


def lifted(gram: Array, noise: float, columns: Integers | slice = slice(None)) -> Array:
    """Draw eigenvalues to their mean by as much as noise explains; none is below the blur."""
    values, vectors = np.linalg.eigh(gram[columns][:, columns])
    k = len(values)
    mean = max(float(values.mean()), noise / math.sqrt(k))
    apart = float(((values - mean) ** 2).sum())
    part = min(1.0, (k * noise) ** 2 / max(apart, 1e-300))
    drawn = np.maximum((1 - part) * values + part * mean, min(noise * math.sqrt(k), mean))
    return np.asarray((vectors * drawn) @ vectors.T)


def put_right(matrix: Array, doubt: float, seen: Sequence[Seen], squares: Array) -> Array:
    """Return the matrix that it makes likely together with differences of sums.

    Sums differ by the matrix times how far their weights are apart, which no weight that is looked
    for enters. Entries may be off by `doubt`, and sums by the roots of `squares`.
    """
    every = np.array([(one.weights, one.sums) for one in seen])
    apart, sums = np.moveaxis(every - np.average(every, axis=0, weights=1 / squares), 0, 2)
    size = doubt / np.sqrt(squares)
    ways, off = size * apart, size * (sums + matrix @ apart)
    found = matrix - ways @ np.linalg.solve(np.eye(len(squares)) + ways.T @ ways, off.T)
    return np.asarray((found + found.T) / 2)


# --- of a line ------------------------------------------------------------------------------------


class LineBelief:
    """What the weights of a line are believed to be, given Σ(y − x·w)x at weights on the way.

    (docs/private-lasso.md, Lemma 51) The first `gram` is Σxxᵀ with noise; sums at different weights
    tell more of it. The last weights are those of constants, if any.
    """

    def __init__(self, gram: Array, noise: float) -> None:
        values = np.asarray(np.linalg.eigvalsh(gram), dtype=np.float64)
        blur = noise * math.sqrt(len(values))
        self._first, self._noise = lifted(gram, noise), entry_doubt(values, noise)
        self._floor = FLOOR * min(blur, max(float(values.mean()), blur / len(values)))
        self._seen = list[Seen]()
        self.weights, self._left = np.zeros(len(gram)), 0.0
        self._covariance, self._variances = np.zeros_like(gram), np.ones(len(gram))

    def see(self, weights: Array, sums: Array, noise: float) -> None:
        """Take in sums that were released at these weights."""
        self._seen.append(Seen(weights, sums, noise))

    def renew(self, deviation: float, constants: Array) -> None:
        """Believe what all sums make likely, for residuals of that deviation.

        `constants` are the prior variances of the constants' weights.
        """
        (values, vectors), away = self._put_right(), self._away()
        gram = (vectors * values) @ vectors.T
        for iteration in range(ITERATIONS):
            away = (away + self._away()) / 2  # where doubt is large, little is believed; and back
            answer, square = self._answer(gram, away)
            told = SumsTold(values, vectors, square + deviation**2 * values, answer)
            begin = self._variances if iteration else None
            self._variances = told.variances(constants, begin, LINE_ROUNDS)
            self.weights, self._covariance = told.posterior(self._variances)
            self._left = float(np.trace(self._covariance))

    def sparse_weights(self, n_features: int, limit: int | None = None) -> Array:
        """Return the weights, all but the first so many being constants', without those of noise.

        The smallest is dropped first, in standard deviations, and the others are set to their
        posterior means without it: of collinear features the last one stands for all. With a
        `limit` this goes on until at most so many features are left.
        """
        most = n_features if limit is None else limit
        weights, covariance, variances = self.weights, self._covariance, self._variances
        kept = np.arange(len(weights))
        while left := int(np.count_nonzero(kept < n_features)):
            sizes = sizes_of(weights, covariance, variances)[:left]
            if left <= most and sizes.min() >= sparse_threshold(sizes, n_features):
                break
            j = int(sizes.argmin())
            along = np.delete(covariance[j], j) / covariance[j, j]
            others = np.delete(np.delete(covariance, j, axis=0), j, axis=1)
            weights = np.delete(weights, j) - along * weights[j]
            covariance = others - np.outer(along, along * covariance[j, j])
            kept, variances = np.delete(kept, j), np.delete(variances, j)
        sparse = np.zeros(len(self.weights))
        sparse[kept] = weights
        return sparse

    def _put_right(self) -> tuple[Array, Array]:
        """Return axes of the matrix that released ones and differences of sums make likely."""
        squares = np.array([one.noise**2 for one in self._seen])
        found = put_right(self._first, self._noise, self._seen, squares)
        values, vectors = np.linalg.eigh(found)
        return np.maximum(values, self._floor), vectors

    def _away(self) -> Array:
        """Return E‖θ − w‖² for the weights of all sums."""
        squares = [((self.weights - one.weights) ** 2).sum() for one in self._seen]
        return np.array(squares) + self._left

    def _answer(self, gram: Array, away: Array) -> tuple[Array, float]:
        """Return Gθ as all sums tell it, s + Gw each, and the square of its noise.

        Noise in the matrix leads astray by as much as w is `away` from θ.
        """
        noises = np.array([one.noise for one in self._seen])
        precisions = 1 / (noises**2 + self._noise**2 * away)
        answers = [one.sums + gram @ one.weights for one in self._seen]
        return precisions @ answers / precisions.sum(), 1 / float(precisions.sum())


class SumsTold:
    """What sums Gθ tell of weights θ, whose noise has such variances along the axes of G."""

    def __init__(self, values: Array, vectors: Array, noises: Array, answer: Array) -> None:
        self._values, self._noises, self._along = values, noises, vectors.T @ answer
        self._pull = vectors @ (values / noises * self._along)
        self._precision = np.asfortranarray((vectors * (values**2 / noises)) @ vectors.T)

    def posterior(self, variances: Array) -> tuple[Array, Array]:
        """Return mean and covariance of weights whose prior has such variances."""
        root = self._root(variances)
        covariance = root @ root.T
        return covariance @ self._pull, covariance

    def _root(self, variances: Array) -> Array:
        """Return the upper triangle R of the covariance RRᵀ."""
        precision = self._precision.copy(order="F")  # as LAPACK takes it, and overwrites it
        np.fill_diagonal(precision, precision.diagonal() + 1 / variances)
        factor, _ = dpotrf(precision, overwrite_a=True)
        root, _ = dtrtri(factor, overwrite_c=True)
        return np.asarray(root)

    def variances(
        self, constants: Array, begin: Array | None = None, rounds: int = ROUNDS
    ) -> Array:
        """Return what each weight may vary by: its own square, and as much as all of them do.

        That is EM for weights of Student's law with one degree of freedom, from where other rounds
        ended, or from the variance under which the answer is likeliest if all have the same.
        """
        d = len(self._pull) - len(constants)
        alike = np.append(np.full(d, self._common_variance()), constants)
        variances = alike if begin is None else begin
        for _ in range(rounds if d else 0):
            common = d / float((1 / variances[:d]).sum())
            root = self._root(variances)
            means, left = root @ (self._pull @ root), np.einsum("ij,ij->i", root, root)
            squares = (means**2 + left + common) / 2
            variances = np.append(np.maximum(squares[:d], 1e-4 * common), constants)
        return variances

    def _common_variance(self) -> float:
        """Return the common variance of weights under which such an answer is likeliest."""
        mean = float(self._values.mean())
        tried = float(self._noises.mean()) / mean**2 * PRIOR_VARIANCES
        whole = tried[:, None] * self._values**2 + self._noises
        return float(tried[(np.log(whole) + self._along**2 / whole).sum(axis=1).argmin()])


def sizes_of(weights: Array, covariance: Array, variances: Array) -> Array:
    """Return weights in deviations of what noise and sampling do to them, given a prior."""
    errors = np.diag(covariance) - covariance**2 @ (1 / variances)
    return np.asarray(np.abs(weights) / np.sqrt(np.maximum(errors, 1e-300)))


def entry_doubt(values: Array, noise: float) -> float:
    """Return how far a noisy matrix with such eigenvalues may be off, in each of its entries.

    Entries differ from those of a multiple of one as eigenvalues say, or as much as features are
    correlated.
    """
    mean = float(values.mean())
    apart = float(((values - mean) ** 2).mean()) / len(values) - noise**2
    square = max(apart, (CORRELATION * mean) ** 2)
    return noise * max(math.sqrt(square / (square + noise**2)), 1e-6)


# --- which of them stand out ----------------------------------------------------------------------


def sure_threshold(n_sizes: int) -> float:
    """Return what none of d normal sizes without an effect exceeds in 19 of 20 fits."""
    return float(-ndtri(0.025 / max(n_sizes, 1)))


def sparse_threshold(sizes: Array, n_offered: int) -> float:
    """Return √(2 ln(d/k)) for the k sizes that are no smaller, in deviations, of d offered.

    So much a size must be to be likelier an effect than noise if k of d features have one; at first
    those of √2 count, as where half have. Where most have an effect, hardly anything is dropped.
    """
    least, left = math.sqrt(2), len(sizes) + 1
    while (kept := int(np.count_nonzero(sizes >= least))) < left:
        left, least = kept, math.sqrt(2 * math.log(n_offered / max(kept, 1)))
    return least
