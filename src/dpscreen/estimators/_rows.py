"""Private rows, wherever they are: all that a fit may ask of them is whole-number sums over rows.

A sum over rows is the same whatever their order, and whether they lie in one array, in a file or on
many machines; so are the released coefficients, noise being equal. What asks is a module-level
function of some of the rows, `count(X, …)` or `count(y, …)`, that returns whole numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dpscreen._core.arrays import Array, Integers, Mask
from dpscreen.regression.lattice import LEVELS, ExactDesign, cell_counts

if TYPE_CHECKING:
    from dpscreen.estimators._units import PublicUnits

Count = Callable[..., Integers]


class RowSource(ABC):
    """Private rows with finite numbers in them, d features and a target."""

    keeps_zero: ClassVar[bool] = False
    """Whether features are scaled and never centred, because zeros are not stored."""

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Return d, which is public."""

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Return the number of rows. It is private, unless it is disclosed."""

    def close(self) -> None:  # noqa: B027
        """Let go of what was kept for the fit, elsewhere than in this process."""

    def announce(self, passes: int) -> None:  # noqa: B027
        """Expect so many more passes over the rows, for whoever shows progress."""

    @property
    def disclosed(self) -> tuple[str, ...]:
        """Return what the form of the rows tells, for the statement."""
        return ()

    def usable_bounds(self, bounds: Array) -> Array:
        """Return the features' bounds as these rows can be mapped from them."""
        return bounds

    @abstractmethod
    def target_total(self, count: Count, *args: Any) -> Integers:
        """Return Σ count(y, *args) over all parts of the target."""

    @abstractmethod
    def feature_total(self, count: Count, *args: Any) -> Integers:
        """Return Σ count(X, *args) over all parts of the rows."""

    @abstractmethod
    def lattice(self, units: PublicUnits) -> ExactDesign:
        """Return the rows in public units on the lattice, on which sums are exact."""

    @abstractmethod
    def where(self, chosen: Mask) -> RowSource:
        """Return the chosen rows, one flag for each."""


@dataclass(frozen=True, eq=False)
class ArrayRows(RowSource):
    """Rows in memory."""

    X: Array
    y: Array

    @property
    def n_features(self) -> int:
        """Return d."""
        return int(self.X.shape[1])

    @property
    def n_rows(self) -> int:
        """Return the number of rows."""
        return len(self.X)

    def target_total(self, count: Count, *args: Any) -> Integers:
        """Return count(y, *args)."""
        return count(self.y, *args)

    def feature_total(self, count: Count, *args: Any) -> Integers:
        """Return count(X, *args)."""
        return count(self.X, *args)

    def lattice(self, units: PublicUnits) -> ExactDesign:
        """Return the rows in public units on the lattice."""
        return units.lattice_design(self.X, self.y)

    def where(self, chosen: Mask) -> ArrayRows:
        """Return the chosen rows."""
        return ArrayRows(self.X[chosen], self.y[chosen])


# --- what may be asked of a target ----------------------------------------------------------------


def in_bounds(y: Array, bounds: Array) -> Array:
    """Return the target, clipped, in units in which its bounds are −1 and 1."""
    low, high = bounds
    return np.asarray((np.clip(y, low, high) - (low / 2 + high / 2)) / (high / 2 - low / 2))


def target_counts(y: Array, bounds: Array, edges: Array) -> Integers:
    """Return how many targets lie in each cell between edges, in units of the bounds."""
    return cell_counts(in_bounds(y, bounds), edges)


def distance_counts(y: Array, bounds: Array, centre: float, edges: Array) -> Integers:
    """Return how many targets are so far from the centre, in units of the bounds."""
    return cell_counts(np.abs(in_bounds(y, bounds) - centre), edges)


def clipped_levels(y: Array, bounds: Array, centre: float, clip: float) -> Integers:
    """Return Σψ_c(y − centre), each term rounded to c/2^14."""
    values = in_bounds(y, bounds) - centre
    levels = np.rint(np.clip(values / clip, -1, 1) * LEVELS).astype(np.int64)
    return np.array([levels.sum()], dtype=np.int64)
