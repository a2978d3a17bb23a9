"""How far one added or removed row can move what a mechanism sees: one lemma, one function.

Notation (docs/theory/mechanisms.md): rows with ‖x‖∞ ≤ 1 and |y| ≤ B, weights with ‖w‖₁ ≤ λ
(`radius`), so a residual is at most R = λ + B. "Sums" are Σ over rows; "means" divide by a constant
n. The functions named `published_*` are what the paper prints; they are too small (errata E1 and
E2) and serve the published calibration only.
"""

from __future__ import annotations

import math


def residual_bound(*, radius: float, target_bound: float) -> float:
    """Return R = λ + B, the largest |x·w − y|; no clip is needed.

    (docs/theory/mechanisms.md, Lemma 1)
    """
    return radius + target_bound


def clipped_gradient(*, clip: float, cell_clip: float = 1.0) -> float:
    """Return how far one row moves any coordinate of Σ ψ_c(r_i) x_i: exactly c.

    (docs/theory/mechanisms.md, Lemma 1.) With cells of size at most κ (`cell_clip`) it is cκ,
    rounded up.
    """
    return clip if cell_clip == 1 else math.nextafter(clip * cell_clip, math.inf)


def published_vertex_score(*, radius: float, n_rows: int) -> float:
    """Return the paper's sensitivity of ⟨v, g⟩: λ/n, from "Lipschitz constant 1".

    It is too small (docs/errata.md, E1).
    """
    return radius / n_rows


def published_screening_score(*, radius: float, n_rows: int) -> float:
    """Return the paper's sensitivity of Eq. 1 (Theorem 1): (2λ + 2λ² + 2λ(1+λ)) / n.

    It is too small (docs/errata.md, E2).
    """
    return (2 * radius + 2 * radius**2 + 2 * radius * (1 + radius)) / n_rows


def published_screening_vector(*, radius: float, n_rows: int, n_features: int) -> float:
    """Return the paper's L2 sensitivity of all d scores of Eq. 1 (Theorem 1): √d times one.

    It is too small (docs/errata.md, E2).
    """
    return math.sqrt(n_features) * published_screening_score(radius=radius, n_rows=n_rows)


def screening_score(*, radius: float, n_rows: int) -> float:
    """Return the exact sensitivity of Eq. 1 for B = λ: 2λ(1+λ)(1/n + 1/√n).

    (docs/errata.md, E2.) n is a public constant and at least the number of rows.
    """
    return 2 * radius * (1 + radius) * (1 / n_rows + 1 / math.sqrt(n_rows))


def relaxed_screening_score(*, radius: float, target_bound: float, kappa: float) -> float:
    """Return how far one row moves a relaxed score, in sums: 2λR + 2λ²/κ + κλR.

    (docs/theory/selection.md, Lemma 6.) It also bounds the range of the changes that one row makes
    over all candidates, "screen nothing" (which never changes) included: two features differ by at
    most 2λR + λ²/κ, a feature and "screen nothing" by at most the whole.
    """
    residual = residual_bound(radius=radius, target_bound=target_bound)
    return 2 * radius * residual + 2 * radius**2 / kappa + kappa * radius * residual
