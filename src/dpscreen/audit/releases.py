"""Single releases of `PrivateLasso` beside its path, each on rows that attain its sensitivity.

The library counts and sums the rows itself, without the row and with it, and its own function adds
the noise; who watches knows which way the row moves the numbers, and looks along it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpscreen._core.arrays import Array, Integers
from dpscreen.privacy import ZCDP, Accountant, Budget, Noise
from dpscreen.privacy.accountant import release_histograms, release_sums, release_triangle
from dpscreen.rows.lattice import UNITS, LatticeDesign
from dpscreen.rows.source import ArrayRows
from dpscreen.rows.sums import LEVELS, ColumnMap, ShortRows
from dpscreen.solvers import rules
from dpscreen.solvers.base import Spending
from dpscreen.solvers.placing import NumericColumns, centred_moments, moments_change

Values = Callable[[Array, Array], Integers]
Release = Callable[[Accountant, Integers, ZCDP], Array]

WIDTH = 4
BOUNDS = np.tile((-1.0, 1.0), (WIDTH, 1))
SHORT = ShortRows(np.arange(WIDTH), 2.0)
ALL = np.arange(WIDTH)


@dataclass(frozen=True)
class OneRelease:
    """One release for the whole claim; `weaken` times too little noise, if that is not 1."""

    claim: Budget
    values: Values
    release: Release
    weaken: Fraction = Fraction(1)

    def __call__(self, with_row: bool, runs: int, noise: Noise) -> Array:
        """Return, for every run, what was released, along the way that the row moves it."""
        without, more = self._seen(False), self._seen(True)
        along = (more - without).ravel() / np.linalg.norm(more - without)
        seen, cost = more if with_row else without, ZCDP.within(self.claim) * self.weaken**2
        accountant = Accountant(noise, limit=None)
        told = [self.release(accountant, seen, cost).ravel() @ along for _ in range(runs)]
        return np.array(told)[:, None]

    def _seen(self, with_row: bool) -> Integers:
        """Return what is counted: rows of zeros, and one of ones whose target is far away."""
        X, y = np.zeros((3 + with_row, WIDTH)), np.zeros(3 + with_row)
        X[3:], y[3:] = 1.0, 4.0
        return self.values(X, y)


def count(X: Array, _y: Array) -> Integers:
    """Return the number of rows."""
    return np.array([len(X)])


def squares(X: Array, y: Array) -> Integers:
    """Return Σψ_c(r)² for c = 1, as for the quality."""
    counts = LatticeDesign.from_rows(X, y).start(1.0).residual_counts(1.0)
    return np.array([int(np.sum(counts * np.arange(len(counts), dtype=np.int64) ** 2))])


def histograms(X: Array, y: Array) -> Integers:
    """Return the histograms of a first look."""
    columns = NumericColumns(ArrayRows(X, y), ColumnMap.of_bounds(BOUNDS))
    return columns.histograms(np.zeros(WIDTH), np.ones(WIDTH))


def moments(X: Array, y: Array) -> Integers:
    """Return sums and centred sums of squares."""
    return centred_moments(ArrayRows(X, y), BOUNDS, ALL, np.full(WIDTH, 2))


def gram(X: Array, y: Array) -> Integers:
    """Return the Gram matrix of a refit."""
    return LatticeDesign.from_rows(X, y).short_gram(SHORT)


def gradient(X: Array, y: Array) -> Integers:
    """Return Σψx of a refit."""
    return LatticeDesign.from_rows(X, y).start(1.0).short_products(1.0, SHORT)


def _number(most: int) -> Release:
    def release(accountant: Accountant, values: Integers, cost: ZCDP) -> Array:
        spending = Spending(accountant, cost, rules.Regime(rules.LEAST_ROWS, WIDTH, float(cost)))
        total = int(values[0])
        noisy, _ = spending.release_sum(total, most=most, bound=1.0, cost=cost, purpose="a number")
        return np.array([noisy])

    return release


def _histograms(accountant: Accountant, values: Integers, cost: ZCDP) -> Array:
    return release_histograms(accountant, values, cost=cost, purpose="histograms")[0]


def _sums(units: int, change: float) -> Release:
    def release(accountant: Accountant, values: Integers, cost: ZCDP) -> Array:
        told = {"units_per_one": units, "change": change, "cost": cost, "purpose": "sums"}
        return release_sums(accountant, values, **told)[0]  # type: ignore[arg-type]

    return release


def _triangle(accountant: Accountant, values: Integers, cost: ZCDP) -> Array:
    found, _ = release_triangle(
        accountant, values, units_per_one=UNITS, row_norm=SHORT.row_norm, cost=cost, purpose="gram"
    )
    return found


def releases(claim: Budget, weaken: Fraction = Fraction(1)) -> dict[str, OneRelease]:
    """Return all of them by name."""
    pairs: dict[str, tuple[Values, Release]] = {
        "count": (count, _number(1)),
        "histograms": (histograms, _histograms),
        "moments": (moments, _sums(2 * LEVELS, moments_change(WIDTH, 0))),
        "gram": (gram, _triangle),
        "gradient": (gradient, _sums(UNITS, SHORT.row_norm)),
        "squares": (squares, _number(UNITS)),
    }
    return {
        name: OneRelease(claim, values, release, weaken)
        for name, (values, release) in pairs.items()
    }
