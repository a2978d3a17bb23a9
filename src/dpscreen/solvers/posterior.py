"""Posterior of the coefficients given noisy scores: one implementation for all sparse models.

A score released at b is G(θ − b) plus noise, G the curvature of the loss and θ its minimum. All
scores together give a normal likelihood of θ, and a heavy-tailed prior shrinks what they do not
resolve. Nothing here sees a row: inputs are released or public (docs/theory/mechanisms.md, Lemma
7).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtri
from scipy.special import ndtr

from dpscreen._core.arrays import Array

PRIOR_VARIANCES, EM_ROUNDS = 4.0 ** np.arange(-5, 8), 5
"""Prior variances that are tried, in variances of the noise of a coefficient; and number of EM
rounds for them (conventional)."""

NOISE_FLOOR, VALUE_FLOOR = 0.5, 0.02
"""The least eigenvalue of a Gram matrix, in spectral norms of its noise and in its mean diagonal
(tuned)."""

LEAST_EFFECT = 0.5
"""Coefficients nearer to zero are set to it, in posterior standard deviations (conventional)."""


class Score(NamedTuple):
    """A released score, the coefficients at which it was released, and its noise."""

    at: Array
    value: Array
    noise: float


class Posterior:
    """Mean and covariance of the coefficients, relative to where the iterations started.

    `gram` is Σxxᵀ with noise of standard deviation `noise` on the diagonal and 1/√2 of that beside
    it, so of spectral norm √(2k) times that; `square` is about n times the variance of a column. No
    eigenvalue is taken to be lower than noise may have made it. The last coefficients are of
    constants, with the prior variances `constants`. All others have independent Cauchy priors of
    one scale. The covariance is RRᵀ with the upper triangle `root` as R.
    """

    def __init__(self, gram: Array, noise: float, square: float, constants: Array) -> None:
        values, vectors = np.linalg.eigh(gram)
        floor = max(NOISE_FLOOR * noise * math.sqrt(2 * len(gram)), VALUE_FLOOR * square)
        self._values, self._vectors = np.maximum(values, floor), vectors
        self._lift = self._values - values
        self._gram = (vectors * self._values) @ vectors.T
        self._noise, self._constants = noise, constants
        self._scores: list[Score] = []
        self.mean, self.root = np.zeros(len(gram)), np.zeros_like(gram)

    def spread(self, move: Array, n_rows: float) -> float:
        """Return the root mean square of what a move changes in the predictors."""
        return math.sqrt(max(float(move @ self._gram @ move), 0.0) / n_rows)

    def update(self, score: Score, curvature: float, dispersion: float, drift: float = 0.0) -> None:
        """Take in a score, and recompute mean and covariance from all of them.

        `curvature` is that of the loss in the mean, `drift` its squared relative change from one
        score to another, and `dispersion` the variance of a residual over it. Each score counts by
        its squared error as one at the present coefficients: noise of the matrix, and a curvature
        that changes, grow with the distance at which it was released.

        Prior variances are those under which the scores are likeliest, by EM: a Cauchy prior is a
        normal one whose variance is its own. Their common scale is estimated, from where a common
        variance makes the scores likeliest.
        """
        self._scores.append(score)
        at, scores, noises = (np.array(one) for one in zip(*self._scores, strict=True))
        gram, ways = curvature * self._gram, self.mean - at
        squares = noises**2 + (curvature * self._noise) ** 2 * (ways**2).sum(axis=1)
        precisions = 1 / (squares + drift * ((ways @ gram) ** 2).mean(axis=1))
        weights = precisions / precisions.sum()

        # Gθ is known with independent errors along the axes of G.
        values, vectors, at = curvature * self._values, self._vectors, weights @ at
        variances = 1 / precisions.sum() + dispersion * values
        along = vectors.T @ (weights @ scores + gram @ at)
        self._estimate, self._variances = along / values, variances / values**2
        self._away = self._estimate - vectors.T @ at
        self._pull = vectors @ (values / variances * along)
        half = vectors * (values / np.sqrt(variances))
        self._precision = half @ half.T

        d = len(along) - len(self._constants)
        tried = float(variances.mean()) / float(values.mean()) ** 2 * PRIOR_VARIANCES
        whole = tried[:, None] * values**2 + variances
        first = float(tried[(np.log(whole) + along**2 / whole).sum(axis=1).argmin()])
        prior = np.full(d, first)
        self.mean, self.root = self.given(prior)
        for _ in range(EM_ROUNDS if d else 0):
            common = d / float((1 / prior).sum())
            left = np.einsum("ij,ij->i", self.root, self.root)[:d]
            prior = np.maximum((self.mean[:d] ** 2 + left + common) / 2, 1e-4 * common)
            self.mean, self.root = self.given(prior)

    def given(self, variances: Array) -> tuple[Array, Array]:
        """Return mean and root of the covariance under a normal prior with such variances."""
        precision = self._precision.T.copy(order="F")  # LAPACK overwrites it
        prior = 1 / np.append(variances, self._constants)
        np.fill_diagonal(precision, precision.diagonal() + prior)
        factor, _ = dpotrf(precision, overwrite_a=True)
        root, _ = dtrtri(factor, overwrite_c=True)
        return root @ (self._pull @ root), root

    @property
    def z_values(self) -> Array:
        """Return estimates without a prior, in standard errors of sampling and all noise.

        Noise of the matrix is the same in all scores: it counts by how far they were released from
        the estimates, on average. Along axes whose eigenvalues were floored, nothing is known.
        """
        astray = self._noise**2 * float((self._away**2 + self._variances).sum())
        astray = astray + self._lift**2 * float((self._estimate**2).mean())
        errors = self._variances + astray / self._values**2
        return np.asarray(self._vectors @ self._estimate / np.sqrt(self._vectors**2 @ errors))


# --- which coefficients are not zero --------------------------------------------------------------


def q_values(z_values: Array, n_offered: int) -> Array:
    """Return the least false-discovery rate at which each coefficient would be selected.

    By Benjamini and Hochberg; features that were offered and not fitted count as not detected.
    """
    p_values = np.append(2 * ndtr(-np.abs(z_values)), np.ones(n_offered - len(z_values)))
    order = np.argsort(-p_values)  # scipy.stats has this, and takes half a second to import
    ranks = np.arange(len(p_values), 0, -1)
    found = np.empty(len(p_values))
    found[order] = np.minimum.accumulate(p_values[order] * len(p_values) / ranks)
    return np.minimum(found[: len(z_values)], 1.0)


def sparse_mean(mean: Array, covariance: Array, n_features: int, limit: int | None = None) -> Array:
    """Return the mean after backward elimination of the features without a detected effect.

    The coefficient that is smallest in its posterior standard deviations is set to zero and the
    others to their conditional means, until all exceed half a standard deviation and at most
    `limit` are left. Of collinear features the last one represents all.
    """
    sparse, kept = np.zeros(len(mean)), np.arange(len(mean))
    most = n_features if limit is None else limit
    while left := int(np.count_nonzero(kept < n_features)):
        sizes = np.abs(mean[:left]) / np.sqrt(np.diag(covariance)[:left])
        j = int(sizes.argmin())
        if left <= most and sizes[j] >= LEAST_EFFECT:
            break
        along = covariance[:, j] / covariance[j, j]
        mean = np.delete(mean - along * mean[j], j)
        rest = covariance - np.outer(along, covariance[j])
        covariance, kept = np.delete(np.delete(rest, j, axis=0), j, axis=1), np.delete(kept, j)
    sparse[kept] = mean
    return sparse
