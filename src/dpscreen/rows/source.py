"""The public map between the user's units and those in which the guarantee is stated.

Each feature is mapped from its bounds onto [−1, 1]; the target is only centred on its bounds, so
that radius, clip and residuals stay in the target's units. Values outside the bounds are clipped,
never refused: a refusal would disclose something about the data.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from dpscreen._core.arrays import AnyArray, Array, Integers, Loops, Mask, Narrow
from dpscreen.rows.design import DenseDesign, Design, GramDesign
from dpscreen.rows.lattice import ExactDesign, LatticeDesign
from dpscreen.rows.loss import SQUARED, Loss
from dpscreen.rows.marks import column_sums, marks_of
from dpscreen.rows.owners import Owners, row_digests
from dpscreen.rows.sums import LEVELS, in_parts

kernels = Loops("dpscreen.rows.kernels")

_BLOCK_BYTES = 8 << 20


@dataclass(frozen=True)
class PublicUnits:
    """Bounds, whether a constant candidate stands beside the features, and what a residual is.

    Rows are clipped to bounds, which only biases. What is 0 and what is 1 afterwards are the centre
    and the half-width of the bounds, unless they are given: `features_at` has a centre and a
    half-width for each feature, wide enough for its bounds, and `target_at` the target's centre.
    `nearest` says whether cells are rounded to the nearest level, or truncated. `target_unit` is
    what 1 of the target is afterwards, and `predictor_at` what a predictor of 0 is in the user's
    units, unless that is the target's centre.
    """

    feature_bounds: Array
    target_bounds: Array
    constant: bool
    loss: Loss = SQUARED
    features_at: Array | None = None
    target_at: float | None = None
    nearest: bool = False
    target_unit: float = 1.0
    predictor_at: float | None = None

    n_candidates: int = field(init=False)
    """The number of weights: one for each feature, and one for the constant if there is one."""
    target_ends: tuple[float, float] = field(init=False)
    """The target's bounds as two numbers."""
    target_centre: float = field(init=False)
    """The centre of the target's bounds, or what stands for it."""
    target_bound: float = field(init=False)
    """B, how far the target reaches from its centre, in its unit."""
    feature_centres: Array = field(init=False)
    """The centre of each feature's bounds, or what stands for it."""
    feature_half_widths: Array = field(init=False)
    """The half-width of each feature's bounds, or what stands for it."""

    def __post_init__(self) -> None:
        low, high = map(float, self.target_bounds)
        centre, reach = high / 2 + low / 2, high / 2 - low / 2
        if self.target_at is not None:
            centre = self.target_at
            reach = max(high - centre, centre - low) / self.target_unit
        if self.features_at is not None:
            centres, half_widths = self.features_at.T
        else:
            lower, upper = self.feature_bounds.T
            centres, half_widths = upper / 2 + lower / 2, upper / 2 - lower / 2
        found = {
            "n_candidates": len(self.feature_bounds) + self.constant,
            "target_ends": (low, high),
            "target_centre": centre,
            "target_bound": reach,
            "feature_centres": centres,
            "feature_half_widths": half_widths,
        }
        for name, value in found.items():
            object.__setattr__(self, name, value)

    def float_design(self, X: Array, y: Array, *, gram: bool) -> Design:
        """Return the rows in public units in float64, as a Gram or a dense design."""
        n, target = self.n_candidates, self.centred_target(y)
        if not gram:
            rows = np.empty((len(X), n), order="F")
            for where, block in self._blocks(X):
                rows[where] = block
            return DenseDesign(rows, target)
        products, moment = np.zeros((n, n)), np.zeros(n)
        for where, block in self._blocks(X):
            products += block.T @ block
            moment += block.T @ target[where]
        return GramDesign(products, moment, float(target @ target), n_rows=len(X))

    def _blocks(self, X: Array) -> Iterator[tuple[slice, Array]]:
        """Yield scaled rows a few at a time, so that no second copy of all rows is needed."""
        low, high = self.feature_bounds.T
        size = max(1, _BLOCK_BYTES // (8 * self.n_candidates))
        for first in range(0, len(X), size):
            where = slice(first, min(first + size, len(X)))
            block = np.ones((where.stop - first, self.n_candidates))
            features = block[:, : len(low)]
            # The first clip keeps the difference finite, the last removes what rounding adds.
            np.clip(X[where], low, high, out=features)
            features -= self.feature_centres
            features /= self.feature_half_widths
            features[np.isnan(features)] = 0.0  # a missing cell is at the centre
            np.clip(features, -1.0, 1.0, out=features)
            yield where, block

    def lattice_columns(self, X: Array, features: Sequence[int] | None = None) -> Narrow:
        """Return features in their units, on the lattice, an array each: all, or those that X has.

        They are truncated, or the `nearest` level: that biases no slope. The constant, if there is
        one, follows all features.
        """
        chosen = slice(None) if features is None else list(features)
        given = *self.feature_bounds.T, self.feature_centres, self.feature_half_widths
        units = (np.ascontiguousarray(one[chosen]) for one in given)
        out = np.empty((X.shape[1] + (self.constant and features is None), len(X)), dtype=np.int16)
        out[X.shape[1] :] = LEVELS
        more = 0.5 if self.nearest else 0.0
        in_parts(X.shape, kernels.to_lattice, X, *units, float(LEVELS), more, out)
        return out

    def in_users_units(self, weights: Array) -> tuple[Array, float]:
        """Return coefficients and intercept that apply to the features as the user has them."""
        n_features = len(self.feature_bounds)
        coef = weights[:n_features] / self.feature_half_widths
        constant = float(weights[n_features]) if self.constant else 0.0
        at = self.target_centre if self.predictor_at is None else self.predictor_at
        return coef, at + constant - float(coef @ self.feature_centres)

    def to_users(self, columns: Integers) -> Array:
        """Return the matrix from weights of columns, the constant last, to the user's units."""
        features, matrix = columns[columns < len(self.feature_bounds)], np.eye(len(columns))
        widths, d = self.feature_half_widths[features], len(features)
        matrix[np.arange(d), np.arange(d)] = 1 / widths
        matrix[d:, :d] = -self.feature_centres[features] / widths
        return matrix

    def effect_ranges(self, weights: Array) -> Array:
        """Return what each feature, and the constant, can add to a fitted value: least and most."""
        n_features, half = len(self.feature_bounds), self.feature_half_widths[:, None]
        ends = np.clip((self.feature_bounds - self.feature_centres[:, None]) / half, -1.0, 1.0)
        effects = np.sort(weights[:n_features, None] * ends, axis=1)
        constant = weights[n_features:][:, None] * np.ones((1, 2))
        return np.concatenate((effects, constant))

    def centred_target(self, y: Array) -> Array:
        """Return the target, clipped to its bounds and centred on them, in its unit."""
        low, high = self.target_bounds
        centred = (np.clip(y, low, high) - self.target_centre) / self.target_unit
        return np.clip(centred, -self.target_bound, self.target_bound)


Count = Callable[..., Integers]


class RowsLost(RuntimeError):
    """The rows of a fit cannot be read any more. What was booked stays booked."""


class RowSource(ABC):
    """Private rows of d features and a target: finite numbers, but that NaN is a missing cell.

    It is counted in no cell of a histogram, or in the middle one, and is at the centre of a column
    wherever its cells are mapped, so that a row moves no sum by more than one whose cells are all
    there (docs/theory/marginals.md, Lemma 88).
    """

    keeps_zero: ClassVar[bool] = False
    """Whether features are scaled and never centred, because zeros are not stored."""

    owners: Owners | None = None
    """Whose the rows are, where units with several rows count as one; None if each row counts."""

    disclosed: ClassVar[tuple[str, ...]] = ()
    """What the form of the rows discloses, for the statement."""

    n_features: int
    """d, which is public."""

    n_rows: int
    """The number of rows. It is private, unless it is disclosed."""

    @property
    def n_units(self) -> int:
        """Return how many units count: the rows, unless it is known whose these are."""
        return self.n_rows if self.owners is None else len(self.owners)

    @property
    def singles(self) -> RowSource:
        """Return one row of each unit: all rows, unless it is known whose these are."""
        return self if self.owners is None else self.where(self.owners.singles)

    def close(self) -> None:  # noqa: B027
        """Let go of what was kept for the fit, elsewhere than in this process."""

    def announce(self, passes: int) -> None:  # noqa: B027
        """Expect so many more passes over the rows, for anyone who shows progress."""

    def usable_bounds(self, bounds: Array) -> Array:
        """Return the features' bounds as these rows can be mapped from them."""
        return bounds

    @abstractmethod
    def target_total(self, count: Count, *args: Any) -> Integers:
        """Return Σ count(y, *args) over all parts of the target."""

    @abstractmethod
    def feature_total(self, count: Count, *args: Any) -> Integers:
        """Return Σ count(X, *args) over all parts of the rows."""

    def marks(self, key: bytes) -> frozenset[str]:
        """Return marks by which a ledger recognises the rows; none if no column has many values."""
        return marks_of(self.content, self.target_total, key)

    def content(self, *keys: int) -> Integers:
        """Return sums of hashes of the features' cells."""
        return self.feature_total(column_sums, *keys)

    @abstractmethod
    def lattice(self, units: PublicUnits) -> ExactDesign:
        """Return the rows in public units on the lattice, on which sums are exact."""

    @abstractmethod
    def where(self, chosen: Mask) -> RowSource:
        """Return the chosen rows, one flag for each; each of them counts."""


class ArrayRows(RowSource):
    """Rows in memory."""

    def __init__(self, X: Array, y: Array, owners: Owners | None = None) -> None:
        self.X, self.y, self.owners = X, y, owners
        self.n_rows, self.n_features = X.shape

    def owned(self, ids: AnyArray) -> ArrayRows:
        """Return the rows with those of each unit together; `ids` are whole numbers for each."""
        keys = ids.astype(np.uint64), row_digests(self.X, self.y)
        order, owners = Owners.of(np.column_stack(keys))
        return ArrayRows(self.X[order], self.y[order], owners)

    def target_total(self, count: Count, *args: Any) -> Integers:
        return count(self.y, *args)

    def feature_total(self, count: Count, *args: Any) -> Integers:
        return count(self.X, *args)

    def lattice(self, units: PublicUnits) -> LatticeDesign:
        target = units.centred_target(self.y)
        return LatticeDesign(units.lattice_columns(self.X), target, units.loss, self.owners)

    def where(self, chosen: Mask) -> ArrayRows:
        return ArrayRows(self.X[chosen], self.y[chosen])


# --- what may be asked of a target ----------------------------------------------------------------


def as_column(y: Array, count: Count, *args: Any) -> Integers:
    """Return what a count of features makes of the target as the only column."""
    return count(np.ascontiguousarray(y, dtype=np.float64)[:, None], *args)
