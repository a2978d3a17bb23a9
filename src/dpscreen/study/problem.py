"""What a method is given: a prepared data set with its reference solution and its settings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from dpscreen._core.arrays import Array, Mask
from dpscreen.privacy import Budget
from dpscreen.regression import DenseDesign, GramDesign, LatticeDesign
from dpscreen.study.metrics import Gram


@dataclass(frozen=True)
class Split:
    """The stated total budget and the part of it that goes to screening, as the paper splits it."""

    total: Budget
    epsilon_share: float
    delta_share: float

    @property
    def optimisation(self) -> Budget:
        """(ε₁, δ₁)."""
        return self.total.split(share=self.epsilon_share, delta_share=self.delta_share)[0]

    @property
    def screening(self) -> Budget:
        """(ε₂, δ₂)."""
        return self.total.split(share=self.epsilon_share, delta_share=self.delta_share)[1]


class Rows:
    """A prepared data set, with everything that is computed from it once and shared by all runs."""

    def __init__(self, X: Array, y: Array) -> None:
        self.whole = DenseDesign(X, y)

    @cached_property
    def folded(self) -> GramDesign:
        """The rows folded into their Gram matrix."""
        return GramDesign.from_rows(self.whole.X, self.whole.y)

    @cached_property
    def lattice(self) -> LatticeDesign:
        """The rows on the lattice, for proven methods."""
        return LatticeDesign.from_rows(self.whole.X, self.whole.y)

    @cached_property
    def moments(self) -> Gram:
        """What regressions among the features need."""
        return Gram.of(self.whole.X)

    @cached_property
    def feature_sizes(self) -> Array:
        """The L1 norm of every column."""
        return np.asarray(np.abs(self.whole.X).sum(axis=0))

    @cached_property
    def target_deviation(self) -> float:
        """The standard deviation of the target."""
        return float(self.whole.y.std())

    @cached_property
    def target_bound(self) -> float:
        """The largest |y|."""
        return float(np.abs(self.whole.y).max())


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows, the coefficients they are measured against, and the settings of the run.

    `reference` is the generating vector on synthetic data, the LASSO's solution on real data.
    """

    rows: Rows
    reference: Array
    radius: float
    n_iter: int
    budget: Split
    notes: tuple[str, ...] = ()

    @property
    def design(self) -> GramDesign:
        """The folded rows, on which all methods run that do not clip."""
        return self.rows.folded

    @property
    def support(self) -> Mask:
        """Which coefficients of the reference are not zero."""
        return np.asarray(self.reference != 0)

    @property
    def n_support(self) -> int:
        """K, how many those are."""
        return int(np.count_nonzero(self.reference))

    def longer(self, times: int) -> Problem:
        """Return the same problem with that many times the iterations."""
        return replace(self, n_iter=times * self.n_iter)

    def mean_squared_error(self, weights: Array) -> float:
        """Return ‖Xw − y‖²/n."""
        return self.design.at(weights).squared_error() / self.design.n_rows

    def facts(self) -> dict[str, Any]:
        """What a row records of the problem it was computed on."""
        return {
            "n_rows": self.design.n_rows,
            "n_features": self.design.n_features,
            "n_support": self.n_support,
            "radius": self.radius,
            "n_iter": self.n_iter,
            "epsilon": self.budget.total.epsilon,
            "delta": self.budget.total.delta,
            "screening_epsilon_share": self.budget.epsilon_share,
            "screening_delta_share": self.budget.delta_share,
            "preparation": list(self.notes),
        }
