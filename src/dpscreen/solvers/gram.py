"""Noisy Gram matrices of whitened rows, for regression tables, and which directions they resolve.

Privacy noise is alike in all directions, and features are not. So a Gram matrix is released a few
times, each time of combinations of columns that the one before showed to vary alike. Statements and
proofs: docs/theory/tables.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dpscreen._core.arrays import Array, Integers
from dpscreen.privacy import ZCDP, Accountant
from dpscreen.privacy.accountant import release_gram, release_histograms
from dpscreen.rows.lattice import UNITS, ExactPoint
from dpscreen.rows.mixed import MixedRows, length_counts
from dpscreen.solvers.marginals import SQUARED_NORM, WideTask, is_yes_no

LEVERAGE = 3.0
"""Squared norm per column up to which rows keep their residuals whole. Tuned."""

ROUNDS, ROUND_SHARE, NORM_SHARE, GRAM_SHARE = 3, 0.03, 0.01, 0.25
"""Most whitening rounds; shares of the table's budget for one, for a histogram of row norms, and
for the last Gram matrix. Tuned."""

NOISE_LEVEL, LONGER = 0.3, 1.5
"""Spectral norm of a matrix's noise up to which rows keep larger norms, as a part of n; and squared
norm, over its mean, up to which they keep theirs whatever the least spread. Tuned."""

RESOLVED, DETECTED = 3.5, 4.5
"""Standard deviations of noise that resolve a direction, and that detect a count. Tuned."""

PARTNER, N_CELLS = 0.3, 28
"""Part of a feature's size from which on another one is collinear with it; and half octaves in a
histogram of norms or influences. Conventional."""

GRAINS = 2.0**20
"""Steps of the weights' lattice in one standard deviation of the target. Derived: Lemma 8."""


@dataclass(eq=False)
class TableTask:
    """Rows of a table: its columns on the lattice, the constant last, and the budget for it.

    Rows are as many as declared or released, those of one unit counting as one if `averaged`.
    `constant` are the features that do not vary, as far as their marginals show, and
    `scales_per_cell` half-widths of ranges in released scales; 1 of the constant.
    """

    wide: WideTask
    columns: Integers
    interest: tuple[int, ...] = ()
    required: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        task, units = self.wide.task, self.wide.units
        self.n_rows, self.budget = task.regime.n_rows, task.spending.remaining
        self.accountant: Accountant = task.spending.accountant
        self.averaged = self.accountant.averaged
        self.n_features = int(np.count_nonzero(self.columns < task.n_features))
        self.constant = np.asarray(self.wide.constant[self.columns[: self.n_features]])
        per_cell = units.feature_half_widths / self.wide.scales
        self.scales_per_cell = np.append(per_cell, 1.0)[self.columns]

    def share(self, share: float) -> ZCDP:
        """Return a share of the table's budget."""
        return self.budget * Fraction(share)

    def start(self, *, single: bool = False) -> ExactPoint:
        """Return the point of all rows, or one of each unit, at no weights but of an offset."""
        task, design = self.wide.task, self.wide.single if single else self.wide.task.design
        return task.start_point(task.deviation / GRAINS, design, 0.0)


@dataclass(eq=False)
class Curvature:
    """A noisy matrix of second derivatives in whitened parameters, on the span of a basis.

    That of a quadratic loss is the Gram matrix. `unfloored` are its eigenvalues, the least first,
    and `axes` their directions; those in `values` are floored at what is resolved, and `inverse` is
    made of these (Lemma 29). The basis is orthonormal, and leaves out what would move coefficients
    of features that are not identifiable; without one it is that of all directions.
    """

    matrix: Array
    noise: float
    basis: Array | None = None

    def __post_init__(self) -> None:
        basis = np.eye(len(self.matrix)) if self.basis is None else self.basis
        self.unfloored, vectors = np.linalg.eigh(basis.T @ self.matrix @ basis)
        self.axes = basis @ vectors
        self.floor = max(RESOLVED, math.sqrt(2 * len(self.matrix))) * self.noise
        self.values = np.maximum(self.unfloored, self.floor)
        self.inverse = np.asarray(self.axes / self.values @ self.axes.T)

    def shrunk_to(self, meant: Array, noise: float = 0.0) -> Curvature:
        """Return it shrunk to what was meant, known up to a noise, as far as its own explains.

        (James and Stein 1961; Lemma 62)
        """
        off, k = self.matrix - meant, len(meant)
        chance = k * (k + 1) / 2 * self.noise**2 / max(float((off**2).sum()), 1e-300)
        part = min(chance, 1.0)
        left = math.hypot(self.noise * math.sqrt(max(1 - part, 1 / k)), part * noise)
        return replace(self, matrix=meant + (1 - part) * off, noise=min(left, self.noise))

    def times(self, factor: float) -> Curvature:
        """Return a multiple of it."""
        return replace(self, matrix=factor * self.matrix, noise=factor * self.noise)

    def without(self, conditioner: Conditioner, features: Iterable[int]) -> Curvature:
        """Return it where the coefficients of some features do not move (Lemma 29)."""
        rows = conditioner.matrix.T[list(features)]
        return replace(self, basis=np.linalg.svd(rows)[2][len(rows) :].T)


@dataclass(eq=False)
class Conditioner:
    """Whitened rows u = ν·x with ‖x‖ ≤ 1, and their noisy Gram matrix.

    `matrix` makes u of the columns. `spread` is the standard deviation that each column is meant to
    have, and `mean_norm` about the root mean square of row norms; `longest` is the norm up to which
    rows keep their residuals whole.
    """

    rows: MixedRows
    row_norm: float
    gram: Curvature
    spread: Array
    longest: float

    def __post_init__(self) -> None:
        self.matrix = self.row_norm * self.rows.matrix
        self.mean_norm = float(np.sqrt(self.spread @ self.spread))

    def whitening(self, n_rows: int) -> tuple[Array, bool]:
        """Return a matrix whose combinations of columns vary as spreads say (Lemma 36).

        Also return whether all directions are resolved that can be: then no other round is needed.
        """
        level = math.sqrt(2 * len(self.spread)) * self.gram.noise
        values, vectors = self.gram.unfloored, self.gram.axes
        meant = n_rows / (vectors.T**2 @ self.spread**-2.0)
        resolved = bool(((values >= 1.2 * level) | (meant < 1.2 * level)).all())
        floored = np.maximum(values, np.minimum(level, meant))
        gram = (vectors * floored) @ vectors.T / np.outer(self.spread, self.spread)
        values, vectors = np.linalg.eigh(gram)
        root = (vectors * np.sqrt(n_rows / values)) @ vectors.T
        return np.asarray(self.spread[:, None] * root / self.spread @ self.matrix), resolved


def permitted_square(task: TableTask, k: int, cost: ZCDP) -> float:
    """Return the squared norm of rows with which noise, √(2k)·norm²/√(2ρ), is `NOISE_LEVEL`·n."""
    return NOISE_LEVEL * task.n_rows * math.sqrt(float(cost) / k)


def release_conditioner(task: TableTask, margin: float, most: float, last: float) -> Conditioner:
    """Release whitened rows and their Gram matrix, after up to three whitening rounds.

    As far as noise explains a matrix, features are taken to be uncorrelated. Rows are clipped to
    `margin` times the largest norm that is detected, to `most`, and to what noise permits. A level
    varies no more than clipped rows let it. The `last` share is for the last matrix
    (docs/theory/mechanisms.md, Lemma 26; docs/theory/tables.md, Lemmas 36 and 62).
    """
    n, k = task.n_rows, len(task.columns)
    spread = np.append(task.wide.left, 1.0)[task.columns]
    levels = np.append(is_yes_no(task.wide.units.feature_bounds), False)[task.columns]
    matrix = spread[:, None] * np.diag(task.scales_per_cell)

    def release(margin: float, share: float, what: str) -> Conditioner:
        mean = SQUARED_NORM * k
        least, longest = math.sqrt(mean), _release_longest(task, matrix)
        longest = min(max(longest, least / 1.2), most)
        # Up to `LONGER` times the mean where the noise of all directions permits it.
        square = permitted_square(task, k, task.share(share))
        permitted = max(mean, min(square, LONGER * mean), square * float(spread.min()) ** 2)
        norm = max(min(margin * longest, math.sqrt(permitted)), least)
        rows = MixedRows.near(task.columns, matrix / norm)
        gram, noise = release_gram(
            task.accountant,
            task.wide.task.design.short_gram(rows),
            units_per_one=UNITS,
            cost=task.share(share),
            purpose=f"Gram matrix: {what}",
        )
        longest = min(longest, norm, math.sqrt(LEVERAGE * k))
        return Conditioner(rows, norm, Curvature(norm**2 * gram, norm**2 * noise), spread, longest)

    for _ in range(ROUNDS):
        found = release(1.2, ROUND_SHARE, "whitening")
        level = math.sqrt(2 * k) * found.gram.noise
        detected = np.sqrt(np.maximum(np.diag(found.gram.matrix), level) / n)
        spread = np.where(levels, np.minimum(detected, spread), spread)
        shrunk = found.gram.shrunk_to(n * np.diag(spread**2))
        matrix, resolved = replace(found, gram=shrunk, spread=spread).whitening(n)
        if resolved:
            break
    return release(margin, last, "whitened")


def release_columns(task: TableTask, matrix: Array, margin: float, whole: bool) -> Conditioner:
    """Return rows of few uncorrelated combinations of columns, of variance 1.

    A histogram cannot show a rare level, so rows of the levels of interest count as detected. Where
    others do not count `whole` in scores, they are clipped to high leverage at most
    (docs/theory/marginals.md, Lemma 22; docs/theory/tables.md, Lemma 97).
    """
    units, levels = task.wide.units, [0.0]
    for j, column in ((j, task.columns[j]) for j in task.interest):
        if is_yes_no(units.feature_bounds)[column]:
            ends = np.abs(units.feature_bounds[column] - units.feature_centres[column])
            cell = float(ends.max()) / units.feature_half_widths[column]
            levels.append(float(np.linalg.norm(matrix[:, j])) * cell)
    longest = max(_release_longest(task, matrix), 1.0)
    near = min(longest, math.sqrt(LEVERAGE * len(matrix)))
    norm = max(margin * (longest if whole else near), *levels)
    rows, k = MixedRows.near(task.columns, matrix / norm), len(matrix)
    gram = Curvature(task.n_rows * np.eye(k), 0.0)
    return Conditioner(rows, norm, gram, np.ones(k), max(near, *levels))


def _release_longest(task: TableTask, matrix: Array) -> float:
    """Release about the largest norm of whitened rows (docs/theory/marginals.md, Lemma 22)."""
    top = 256.0 * math.sqrt(len(matrix))
    rows = MixedRows.near(task.columns, matrix / top)
    point, deviation = task.start(single=True), task.wide.task.deviation
    counts = point.row_total(length_counts, deviation, rows, N_CELLS)
    return largest_detected(task, counts, top, "norms of whitened rows")


def largest_detected(task: TableTask, counts: Integers, top: float, purpose: str) -> float:
    """Release a histogram of norms up to `top`, and return about the largest that is detected."""
    noisy, noise = release_histograms(
        task.accountant,
        counts[None, :],
        cost=task.share(NORM_SHARE),
        purpose=purpose,
    )
    # The last cell that is detected together with all beyond it.
    beyond = np.cumsum(noisy[0][::-1])[::-1]
    clear = beyond >= DETECTED * noise * np.sqrt(np.arange(len(beyond), 0, -1))
    edges = top * 2.0 ** (np.arange(-N_CELLS, 1) / 2)
    return float(edges[min(int(np.flatnonzero(clear).max(initial=0)), N_CELLS)])


@dataclass(frozen=True)
class Unidentified:
    """A feature without an interval; `dropped` from the model, or kept at its posterior mean.

    `partners` are features that it is collinear with; it is `detected` if it varies beyond noise.
    Without being `converged`, the estimate moved too far in the last round to have a covariance.
    """

    feature: int
    partners: tuple[int, ...] = ()
    detected: bool = True
    dropped: bool = False
    converged: bool = True
    nuisance: bool = False


def unidentified(
    task: TableTask, conditioner: Conditioner, curvature: Curvature, gone: dict[int, Unidentified]
) -> dict[int, Unidentified]:
    """Return features without which every direction is resolved, those that are gone among them.

    Where a direction combines several features they are collinear, and the last is dropped, as in
    R; one feature alone is kept at its posterior mean, as noise hides it, unless its marginal does
    not vary either. Features that are required are kept in any case, and pass for those of a
    direction that has no others.
    """
    required = list(task.required)
    in_scales = (conditioner.matrix / task.scales_per_cell).T
    gone, left = dict(gone), curvature.without(conditioner, gone)
    while len(gone) < task.n_features and left.unfloored[0] < left.floor:
        parts = np.abs(in_scales @ left.axes[:, 0])[: task.n_features]
        parts[list(gone)] = -1  # never again, even where a direction is that of the constant
        free = parts.copy()
        free[required] = -1
        free = free if free.max() > PARTNER * parts.max() else parts
        j = int(np.flatnonzero(free >= 0.5 * free.max())[-1])
        others = float(np.delete(parts, j).max(initial=0.0))
        alike = bool(task.constant[j]) or others > PARTNER * float(parts[j])
        gone[j] = Unidentified(j, dropped=alike and j not in required)
        left = curvature.without(conditioner, gone)
    return gone


def explained(
    task: TableTask, conditioner: Conditioner, found: dict[int, Unidentified]
) -> Iterator[Unidentified]:
    """Say of features which others they are collinear with, if their variance is detected."""
    back, gram = np.linalg.inv(conditioner.matrix), conditioner.gram
    moments = back @ gram.matrix @ back.T
    sizes = np.sqrt(np.maximum(np.diag(moments), 0))
    kept = np.array([i for i in range(len(moments)) if i not in found], dtype=np.int64)
    constants = np.arange(task.n_features, len(moments))
    beside = moments[constants]
    of_constants = beside * np.linalg.solve(moments[np.ix_(constants, constants)], beside)
    about_mean = np.diag(moments) - of_constants.sum(axis=0)
    for j, one in sorted(found.items()):
        slopes = np.linalg.lstsq(moments[np.ix_(kept, kept)], moments[kept, j], rcond=None)[0]
        alike = (np.abs(slopes) * sizes[kept] > PARTNER * sizes[j]) & (kept < task.n_features)
        detected = bool(about_mean[j] > RESOLVED * gram.noise * float(back[j] @ back[j]))
        partners = tuple(kept[alike & detected].tolist())
        yield replace(one, partners=partners, detected=detected)
