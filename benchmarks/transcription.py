"""Algorithm 2 of the paper, transcribed line by line: the slow side of the comparison.

Xw and Xᵀ(Xw − y) are computed afresh wherever the algorithm mentions them, and the scores are made
one feature at a time, as printed. `vectorised=True` writes the loop over features as array
arithmetic and hoists the column norms, as a numpy user would. The test suite uses both as oracles.
"""

from __future__ import annotations

import numpy as np


def rnm_screen(X, y, *, radius, n_iter, optimisation, screening, start, rng, vectorised=False):
    """Run RNM-Screen with (ε₁, δ₁) = optimisation and (ε₂, δ₂) = screening; return w."""
    n, d = X.shape
    eps_iter = screening[0] / np.sqrt(8 * n_iter * np.log(1 / screening[1]))
    sensitivity = 2 * radius / n + 2 * radius**2 / n + 2 * radius * (1 + radius) / n
    scale = sensitivity / eps_iter
    norms = np.linalg.norm(X, axis=0)
    w = start.copy()
    for t in range(1, n_iter + 1):
        w = dp_fw_step(X, y, w, t, radius=radius, n_iter=n_iter, budget=optimisation, rng=rng)
        s = array_scores(X, y, w, radius, norms) if vectorised else scores(X, y, w, radius)
        s = s + rng.laplace(scale=scale, size=d)
        j = np.argmin(s)
        if s[j] < 0:
            w[j] = 0
    return w


def scores(X, y, w, radius):
    """Compute Eq. 1 as Algorithm 2 does in its lines 8 to 10, with L = μ = 1/n."""
    n, d = X.shape
    u = X @ w
    gradient_at_u = (u - y) / n
    gap = u @ gradient_at_u + radius * np.abs(X.T @ gradient_at_u).max()
    s = np.empty(d)
    for i in range(d):
        s[i] = abs(X[:, i] @ gradient_at_u) + u @ gradient_at_u
        s[i] += (np.linalg.norm(X[:, i]) + np.linalg.norm(u)) / n * np.sqrt(max(gap, 0) / (1 / n))
    return s


def array_scores(X, y, w, radius, norms):
    """Compute the same with arrays."""
    n = len(X)
    u = X @ w
    gradient_at_u = (u - y) / n
    gradient = X.T @ gradient_at_u
    slope = u @ gradient_at_u
    gap = slope + radius * np.abs(gradient).max()
    return np.abs(gradient) + slope + (norms + np.linalg.norm(u)) / n * np.sqrt(max(gap, 0) * n)


def dp_fw_step(X, y, w, t, *, radius, n_iter, budget, rng):
    """Take one step of DP-FW: noisy minimum over the 2d vertices, then a convex combination."""
    n, d = X.shape
    epsilon, delta = budget
    gradient = X.T @ (X @ w - y) / n
    scores = np.concatenate((radius * gradient, -radius * gradient))
    scale = radius * np.sqrt(8 * n_iter * np.log(1 / delta)) / (n * epsilon)
    best = np.argmin(scores + rng.laplace(scale=scale, size=2 * d))
    vertex = np.zeros(d)
    vertex[best % d] = radius if best < d else -radius
    step = 2 / (t + 2)
    return (1 - step) * w + step * vertex
