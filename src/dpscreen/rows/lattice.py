"""Rows on a lattice of whole numbers: sums that are exact, and the same in any order.

The sum of floats depends on their order, and one row can move it by more than its own size; so
what a proven method selects on is summed in whole numbers (docs/theory/exactness.md, Lemma 8):

* a feature in [−1, 1] is truncated to k/2^14 and kept as the 16-bit k, a quarter of a float64;
* weights are scale·v with whole v, so Σ_j k_ij v_j, the fit of a row, is a whole number;
* a row's residual is computed from that number and its own target alone (`Loss`), clipped to ±c and
  rounded to ψ·c/2^14 with whole ψ.

Σ_i ψ_i k_ij is then a whole number of units c/2^28 which one row moves by at most 2^28: exactly c.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import wraps
from math import floor, sqrt
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from dpscreen._core.arrays import Array, Integers, Loops, Narrow
from dpscreen.rows.loss import SQUARED, Loss, Rounding
from dpscreen.rows.mixed import WHOLE, MixedRows, RowCount
from dpscreen.rows.owners import Owners
from dpscreen.rows.score_index import ScoreIndex
from dpscreen.rows.sums import (
    LEVELS,
    ShortRows,
    column_sums,
    curved_rows,
    exact_gram,
    in_parts,
    scaled,
    short_factors,
)

kernels = Loops("dpscreen.rows.kernels")

T = TypeVar("T")
FitCount = Callable[..., Integers]
"""Fitted values, targets and arguments to whole numbers that add up over rows."""

UNITS = LEVELS**2
# Then no sum below, the weighted ones of the relaxed rule included, reaches 2^63.
MOST_ROWS = 2**28
# A start that is not zero needs fractions of the whole numbers that steps add.
FINE_GRAIN = 2**20
# A fit of at most 2^14 times the way travelled stays below 2^63.
LONGEST_WAY = 2**48
# How far a weight is moved at once, in scales.
MOST_SCALES = 2.0**36
_WEIGHT_BITS = 6


def on_lattice(values: Array) -> Narrow:
    """Return values, clipped to [−1, 1], as whole numbers of 1/2^14, truncated toward zero."""
    return np.trunc(np.clip(values, -1.0, 1.0) * LEVELS).astype(np.int16)


class ExactPoint(ABC):
    """Weights w = scale·v/grain with whole v, and what may be asked about the rows there.

    It is reached from zero by moves along single features. The answers are sums of whole numbers
    over rows, the same whatever the order of the rows, and whether they lie in one place or many.
    Residual levels are whole numbers of clip/2^14, between −2^14 and 2^14.
    """

    def __init__(self, n_features: int, scale: float, *, grain: int = 1) -> None:
        self.scale = scale
        self._grain = grain
        self._v = np.zeros(n_features, dtype=np.int64)
        self._travelled = 0

    @property
    def weights(self) -> Array:
        """Return w, as a new array."""
        return np.asarray(self.scale / self._grain * self._v, dtype=np.float64)

    def add(self, feature: int, amount: int) -> None:
        """Add a whole number to one unscaled weight."""
        self.move(np.array([feature]), np.array([amount * self._grain]))

    def zero(self, feature: int) -> None:
        """Set the weight of one feature to zero."""
        if self._v[feature]:
            self.move(np.array([feature]), -self._v[[feature]])

    def shift(self, features: Integers, ways: Array) -> None:
        """Move some weights by `ways`, each rounded to a multiple of the scale, or `MOST_SCALES`.

        So residuals stay functions of their rows, and whole numbers do not overflow.
        """
        amounts = np.rint(np.clip(ways / self.scale, -MOST_SCALES, MOST_SCALES)).astype(np.int64)
        moved = amounts != 0
        self.move(features[moved], amounts[moved] * self._grain)

    def move(self, features: Integers, grains: Integers) -> None:
        """Add so many grains to the unscaled weights of some features."""
        self._travelled += int(np.abs(grains.astype(np.float64)).sum())  # −2^63 has no int64 size
        if self._travelled >= LONGEST_WAY:
            raise OverflowError("too many steps for exact sums; lower n_iter.")
        np.add.at(self._v, features, grains)
        self._moved(features, grains)

    @abstractmethod
    def _moved(self, features: Integers, grains: Integers) -> None:
        """Take the rows along."""

    @abstractmethod
    def clipped_sums(self, clip: float, cell_clip: int = LEVELS) -> Integers:
        """Return Σ ψ_c(r_i) x_i in whole numbers of clip/2^28, for every feature (Lemma 1).

        Cells are clipped to ±cell_clip first, in whole numbers of 1/2^14.
        """

    def signed_scores(
        self, clip: float, allowed: Integers, cell_clip: int = LEVELS
    ) -> Integers | ScoreIndex:
        """Return the same sums of the allowed features alone, in a form to select from."""
        return self.clipped_sums(clip, cell_clip)[allowed]

    @abstractmethod
    def residual_total(self, clip: float) -> int:
        """Return the sum of the residual levels."""

    @abstractmethod
    def residual_counts(self, clip: float) -> Integers:
        """Return how many residual levels have size 0, 1, …, 2^14."""

    @abstractmethod
    def fit_total(self, count: FitCount, *args: Any) -> Integers:
        """Return Σ count(fitted values, targets, *args) over parts of the rows."""

    @abstractmethod
    def relaxed_sums(self, rule: RelaxedRule) -> Integers:
        """Return Σψk for every feature, then Σφψ and Σφ², φ the fitted levels."""

    @abstractmethod
    def short_gradient(self, clip: float, n_features: int, row_norm: float) -> Integers:
        """Return `clipped_sums` of the first features, of rows norm-clipped to `row_norm`."""

    @abstractmethod
    def short_products(self, clip: float, short: ShortRows) -> Integers:
        """Return Σψx over short rows, each residual ψ shrunk by its row's factor, in 1/2^28."""

    @abstractmethod
    def row_total(self, count: RowCount, clip: float, mixed: MixedRows, *args: Any) -> Integers:
        """Return Σ count(rows, ‖x‖², residuals, *args) over parts, residuals shrunk like rows."""

    @abstractmethod
    def curved_total(self, count: RowCount, clip: float, mixed: MixedRows, *args: Any) -> Integers:
        """Return `row_total` with roots of the mean outcome in place of the residuals.

        (docs/theory/tables.md, Lemma 91)
        """

    @abstractmethod
    def curved_gram(self, short: ShortRows | MixedRows) -> Integers:
        """Return Σ4p(1 − p)xxᵀ over short rows, in 1/2^28, where a residual is ± p or ± (1 − p).

        (docs/theory/tables.md, Lemma 32)
        """


class ExactDesign(ABC):
    """Rows on the lattice, wherever they are.

    The constant is among the `n_features` columns if there is one.
    """

    n_features: int
    loss: Loss

    @abstractmethod
    def start(self, scale: float, grain: int = 1) -> ExactPoint:
        """Return the point w = 0, to which whole numbers of `scale`/grain will be added."""

    def at(self, weights: Array, *, scale: float = 1.0) -> ExactPoint:
        """Return the point next to `weights` that lies on the lattice, stored with that scale."""
        grain = FINE_GRAIN if weights.any() else 1
        point = self.start(scale, grain)
        wanted = np.trunc(weights / scale * grain)
        grains = np.clip(wanted, -LONGEST_WAY, LONGEST_WAY).astype(np.int64)  # that far is refused
        features = np.flatnonzero(grains)
        point.move(features, grains[features])
        return point

    @abstractmethod
    def column_squares(self) -> Integers:
        """Return Σ_i k_ij² for every feature: 2^28 times the squared norm of the column."""

    @abstractmethod
    def short_gram(self, short: ShortRows | MixedRows) -> Integers:
        """Return Σxxᵀ over short rows, in whole numbers of 1/2^28."""


def keeps_last(method: Callable[..., T]) -> Callable[..., T]:
    """Keep what a method of `LatticeRows` returned last, for the next call with equal arguments."""

    @wraps(method)
    def answer(self: LatticeRows, *args: Any) -> T:
        key = tuple(
            arg.tobytes() if isinstance(arg, np.ndarray) else getattr(arg, "key", arg)
            for arg in args
        )
        last = self.last_answers.get(method.__name__)
        if last is None or last[0] != key:
            last = self.last_answers[method.__name__] = key, method(self, *args)
        found: T = last[1]
        return found

    return answer


class LatticeRows(ExactDesign):
    """Rows in one place, dense or sparse, as a point moves among them.

    What was derived from them last, such as rows clipped in norm, is kept for the next question.
    """

    n_rows: int
    target: Array
    owners: Owners | None = None
    """Whose the rows are, if units with several rows count as one."""
    last_answers: dict[str, tuple[object, Any]]

    @abstractmethod
    def move(self, fit: Integers, features: Integers, amounts: Integers) -> None:
        """Add Σ amount·column of some features to the fit of every row."""

    @abstractmethod
    def sums(self, levels: Narrow) -> Integers:
        """Return Σ_i levels_i k_ij for every feature."""

    @abstractmethod
    def dense_columns(self, chosen: Integers) -> Narrow:
        """Return a few columns, one array each."""

    @abstractmethod
    def _capped(self, cell_clip: int) -> Self: ...

    def capped(self, cell_clip: int) -> Self:
        """Return the rows with every cell clipped to ±cell_clip, in whole numbers of 1/2^14."""
        return self if cell_clip >= LEVELS else self._capped(cell_clip)

    @abstractmethod
    def only(self, chosen: Integers) -> Self:
        """Return the rows with some of their columns; of sparse rows, never the constant."""

    @abstractmethod
    def shortened(self, n_features: int, row_norm: float) -> Self:
        """Return the first features of all rows, those longer than `row_norm` shrunk to it."""

    @keeps_last
    def made_short(self, short: ShortRows | MixedRows) -> tuple[Narrow, Array]:
        """Return the short rows, and what each was multiplied by."""
        return short.of(self.dense_columns(short.chosen))

    def short_gram(self, short: ShortRows | MixedRows) -> Integers:
        """Return Σxxᵀ over short rows, in whole numbers of 1/2^28; of units, their means."""
        return exact_gram(self.shared(self.made_short(short)[0]))

    def shared(self, rows: Narrow) -> Narrow:
        """Return rows whose products add up to means over the rows of each unit, if units count."""
        return rows if self.owners is None else self.owners.shared(rows)


class LatticeDesign(LatticeRows):
    """Columns of 16-bit whole numbers, and a target of which only clipped residuals are used."""

    def __init__(
        self, columns: Narrow, target: Array, loss: Loss = SQUARED, owners: Owners | None = None
    ) -> None:
        if columns.shape[1] > MOST_ROWS:
            raise ValueError(f"exact sums hold at most {MOST_ROWS} rows.")
        if target.shape != columns.shape[1:]:
            raise ValueError("there must be one target for every row.")
        self.columns = np.ascontiguousarray(columns)
        self.target, self.loss, self.owners, self.last_answers = target, loss, owners, {}
        self.n_features, self.n_rows = columns.shape

    @classmethod
    def from_rows(cls, X: Array, y: Array) -> LatticeDesign:
        """Put rows that are in memory, already in [−1, 1], on the lattice."""
        return cls(np.ascontiguousarray(on_lattice(X).T), np.asarray(y, dtype=np.float64))

    def start(self, scale: float, grain: int = 1) -> LatticePoint:
        return LatticePoint(self, scale, grain=grain)

    def move(self, fit: Integers, features: Integers, amounts: Integers) -> None:
        size = len(fit), len(features)
        in_parts(size, kernels.add_columns, fit, self.columns, features, amounts)

    def dense_columns(self, chosen: Integers) -> Narrow:
        every = np.array_equal(chosen, np.arange(self.n_features))
        return self.columns if every else self.columns[chosen]

    def column_squares(self) -> Integers:
        return np.concatenate([column_sums(column[None], column) for column in self.columns])

    def sums(self, levels: Narrow) -> Integers:
        return column_sums(self.columns, levels)

    @keeps_last
    def _capped(self, cell_clip: int) -> LatticeDesign:
        cells = np.clip(self.columns, np.int16(-cell_clip), np.int16(cell_clip))
        return self._with(cells)

    @keeps_last
    def only(self, chosen: Integers) -> LatticeDesign:
        return self._with(self.columns[chosen])

    @keeps_last
    def shortened(self, n_features: int, row_norm: float) -> LatticeDesign:
        columns = self.columns[:n_features]
        factors = short_factors(kernels.squared_lengths(columns), row_norm)
        return self._with(scaled(columns, factors))

    def _with(self, columns: Narrow) -> LatticeDesign:
        return LatticeDesign(columns, self.target, self.loss, self.owners)


def few(chosen: Integers, n_features: int) -> bool:
    """Whether it pays to copy the chosen columns: they are half of all at most."""
    return 0 < 2 * len(chosen) <= n_features


class LatticePoint(ExactPoint):
    """Weights, and the fit Σ_j k_ij v_j of every row.

    `fit` may be given where the rows come in parts: it is then brought up to date in place.
    """

    def __init__(
        self,
        design: LatticeRows,
        scale: float,
        *,
        grain: int = 1,
        fit: Integers | None = None,
    ) -> None:
        super().__init__(design.n_features, scale, grain=grain)
        self.design = design
        self._fit = np.zeros(design.n_rows, dtype=np.int64) if fit is None else fit
        self._levels = np.empty(design.n_rows, dtype=np.int16)

    def _moved(self, features: Integers, grains: Integers) -> None:
        self.design.move(self._fit, features, grains)

    def residual_levels(self, clip: float) -> Narrow:
        """Return each row's clipped residual, in whole numbers of clip/2^14.

        The array is overwritten by the next call.
        """
        design = self.design
        design.loss.levels(self._fit, design.target, self._rounding(clip), self._levels)
        return self._levels

    def _rounding(self, clip: float) -> Rounding:
        # The clip, which is public, must divide 2^14 without overflow.
        if not 1e-290 < clip < 1e290:
            raise ValueError("clip and radius must lie between 1e-290 and 1e290.")
        return self.scale / self._grain / LEVELS, LEVELS / clip, float(LEVELS)

    def fitted_levels(self, bound: float) -> Narrow:
        """Return each row's fitted value, clipped to ±bound, in whole numbers of bound/2^14."""
        scale, levels_per_unit, most = self._rounding(bound)
        with np.errstate(all="ignore"):  # a warning would depend on the rows
            levels = np.rint(scale * self._fit.astype(np.float64) * levels_per_unit)
        return np.clip(levels, -most, most).astype(np.int16)

    def clipped_sums(self, clip: float, cell_clip: int = LEVELS) -> Integers:
        return self.design.capped(cell_clip).sums(self.residual_levels(clip))

    def signed_scores(
        self, clip: float, allowed: Integers, cell_clip: int = LEVELS
    ) -> Integers | ScoreIndex:
        """Return the sums of the allowed features; of a few, no others are computed."""
        if not few(allowed, self.design.n_features):
            return super().signed_scores(clip, allowed, cell_clip)
        return self.design.capped(cell_clip).only(allowed).sums(self.residual_levels(clip))

    def residual_total(self, clip: float) -> int:
        return int(self.residual_levels(clip).sum(dtype=np.int64))

    def residual_counts(self, clip: float) -> Integers:
        sizes = np.abs(self.residual_levels(clip))
        return np.bincount(sizes, minlength=LEVELS + 1).astype(np.int64)

    def fit_total(self, count: FitCount, *args: Any) -> Integers:
        scale, _, _ = self._rounding(1.0)
        return count(scale * self._fit.astype(np.float64), self.design.target, *args)

    def relaxed_sums(self, rule: RelaxedRule) -> Integers:
        residuals = self.residual_levels(rule.residual_bound)
        fitted = self.fitted_levels(rule.radius)
        return np.concatenate(
            (
                self.design.sums(residuals),
                column_sums(fitted[None], residuals),
                column_sums(fitted[None], fitted),
            )
        )

    def short_gradient(self, clip: float, n_features: int, row_norm: float) -> Integers:
        return self.design.shortened(n_features, row_norm).sums(self.residual_levels(clip))

    def short_products(self, clip: float, short: ShortRows) -> Integers:
        rows, factors = self.design.made_short(short)
        (residuals,) = scaled(self.residual_levels(clip)[None], factors)
        return column_sums(rows, residuals)

    def row_total(self, count: RowCount, clip: float, mixed: MixedRows, *args: Any) -> Integers:
        """Return count(rows, ‖x‖², residuals, *args); the mean of ψx is the row of a unit."""
        rows, factors = self.design.made_short(mixed)
        residuals = mixed.residuals(self.residual_levels(clip), factors)
        if self.design.owners is not None:
            rows = self.design.owners.means(rows, residuals)
            residuals = np.full(rows.shape[1], WHOLE, dtype=np.int16)
        return count(rows, kernels.squared_lengths(rows), residuals, *args)

    def curved_total(self, count: RowCount, clip: float, mixed: MixedRows, *args: Any) -> Integers:
        design, (scale, per_unit, most) = self.design, self._rounding(clip)
        nothing, roots = np.zeros(design.n_rows), np.empty(design.n_rows, dtype=np.int16)
        design.loss.levels(self._fit, nothing, (scale / 2, per_unit, most), roots)
        rows, factors = design.made_short(mixed)
        residuals = mixed.residuals(roots, factors)
        squares = kernels.squared_lengths(rows)  # the cap is by the norm of the row (Lemma 89)
        return count(design.shared(rows), squares, residuals, *args)

    def curved_gram(self, short: ShortRows | MixedRows) -> Integers:
        rows = self.design.shared(self.design.made_short(short)[0])
        return exact_gram(curved_rows(rows, self.residual_levels(1.0)))


@dataclass(frozen=True)
class RelaxedRule:
    """The public constants of the relaxed rule on the lattice.

    κ is moved a little from its best value √(2λ/R), so that λ/(κR), the factor between the squares
    and the gradient, is a whole number of 1/2^6.
    """

    radius: float
    target_bound: float

    rounding: ClassVar[int] = 2
    """How many units the two roundings can add to the change that one row makes."""

    @property
    def residual_bound(self) -> float:
        """Return R = λ + B, at which residuals are clipped."""
        return self.radius + self.target_bound

    @property
    def weight(self) -> int:
        """Return λ/(κR) in whole numbers of 1/2^6."""
        best: float = 2**_WEIGHT_BITS * sqrt(self.radius / (2 * self.residual_bound))
        return max(1, round(best))

    @property
    def kappa(self) -> Fraction:
        """Return κ."""
        ratio = Fraction(self.radius) / Fraction(self.residual_bound)
        return ratio * Fraction(2**_WEIGHT_BITS, self.weight)


def exact_relaxed_scores(point: ExactPoint, squares: Integers, rule: RelaxedRule) -> Integers:
    """Return the relaxed scores of Lemma 6, divided by λ, in whole numbers of R/2^28.

    Term by term s̃_i/λ = |S_i| + wᵀS/λ + (λ‖x_(i)‖² + ‖Xw‖²/λ)/κ + (κ/2)(wᵀS/λ + ‖S‖∞), with the
    residuals and the fitted values of single rows rounded to R/2^14 and λ/2^14. All sums are whole;
    the two places where a fraction is rounded down are counted in `RelaxedRule.rounding`.
    """
    sums = point.relaxed_sums(rule)
    size, slope, fit_square = np.abs(sums[:-2]), int(sums[-2]), int(sums[-1])
    common = slope + floor(rule.kappa * (slope + int(size.max())) / 2)
    spread = (rule.weight * (squares + fit_square)) >> _WEIGHT_BITS
    return np.asarray(size + spread + common, dtype=np.int64)
