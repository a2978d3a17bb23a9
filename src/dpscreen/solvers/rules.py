"""Every choice that PrivateLasso makes by itself, as a function of public and released numbers.

No function here sees a row. The origin of each constant is in docs/constants.md. Three
public numbers carry the rules:

    M = n√(2ρ)/ln(2d)    how much signal a selection can carry: n against its noise (`signal`)
    Q = n√(ρ/d)          signal-to-noise ratio of a row count, in a vector of d counts (`counts`)
    100/(n²ρ)            the share of ρ that finds a quantile of n numbers (`need`)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpscreen._core.arrays import clamp

GAUSSIAN = 1.4826
"""A normal's standard deviation, in median absolute deviations. Derived."""


@dataclass(frozen=True)
class Regime:
    """What rules rest on: the number of rows, public or released, the features', and ρ.

    In simulations each row may stand for many, at a ρ that leaves n²ρ as it is: `thinning` says for
    how many.
    """

    n_rows: int
    n_features: int
    rho: float
    thinning: float = 1.0

    @property
    def signal(self) -> float:
        """Return M."""
        return self.depth / math.log(2 * self.n_features)

    @property
    def depth(self) -> float:
        """Return n√(2ρ): how many noise scales an empty cell beyond all rows is off the median."""
        return self.n_rows * math.sqrt(2 * self.rho)

    def counts(self, n_columns: int) -> float:
        """Return Q for so many columns."""
        return self.n_rows * math.sqrt(self.rho / n_columns)

    @property
    def need(self) -> float:
        """Return the share of ρ at which an empty cell beyond all rows is 14 noise scales away."""
        return 100 / (self.n_rows**2 * self.rho)


# --- the number of rows ---------------------------------------------------------------------------

COUNT_SHARE = 0.01
"""Share of the budget for the number of rows. Conventional."""

LEAST_ROWS, ROUND = 10, 0.01
"""Least number of rows that rules use; relative error of a declared one, which may be a round
number. Conventional."""


# --- marginals ------------------------------------------------------------------------------------

CENTRED, ANYWHERE = 0.15, 1.0
"""Prior standard deviation of a centre, in half-widths of bounds: of a column that is declared to
lie about zero, and of others. Conventional."""

CLASS_SHARE = 0.01
"""Share of the budget for the number of rows of the second class. Conventional."""

UNKNOWN_SCALE = 0.5
"""Scale of a numeric column that is not located, in half-widths of its bounds. Conventional."""

LEAST_COUNTS, MOMENT_COUNTS = 7.0, 20.0
"""Q from which on numeric columns are located, and their means and mean squares are released.
Tuned."""

LEAST_VARIANCE = 1e-3
"""Least variance of a column, its range being −1 to 1. Conventional."""

RARE = 0.36
"""Variance, in half-widths, of a level that a tenth of the rows has. Conventional."""

MOST_MARGINALS = 0.4
"""Largest share of the budget for marginals of the features. Tuned."""

MOST_RATIO = 64.0
"""Most scales from a centre to an end of a range: the lattice divides that by 2^14. Derived."""


def target_share(regime: Regime) -> float:
    """Return the share of ρ for the marginal of the target."""
    return clamp(3 * regime.need, 0.02, 0.3)


def marginals_share(regime: Regime, n_numeric: int) -> float:
    """Return the share of ρ for the marginals of numeric columns."""
    q = regime.counts(n_numeric)
    return clamp(min(clamp(100 / q**2, 0.06, MOST_MARGINALS), q**2 / 1000), 0.001, MOST_MARGINALS)


# --- the residuals' scale and the features' spread ------------------------------------------------

SPREAD_SHARE, UNKNOWN_SPREAD = 0.01, 1 / 3
"""Share of the budget for the mean square of all features; and its root where it is not released,
in half-widths. Conventional."""


# --- stagewise ------------------------------------------------------------------------------------

INTERCEPT_SHARE = 0.025
"""Share of what is left that the intercept takes in a path. Tuned."""

STEPS_PER_FEATURE = 2
"""Steps of a path for each of `max_features`: one that selects it, and one that may repeat another.

Small steps admit features that are correlated with the first ones. Tuned."""


def n_steps(regime: Regime) -> int:
    """Return T: M/4, but no more than 200, or 2.5√M where that is more."""
    slow = 2.5 * math.sqrt(regime.signal)
    return round(clamp(regime.signal / 4, max(6, slow), max(200, slow)))


def path_steps(regime: Regime, max_features: int | None) -> int:
    """Return T of a path that a refit follows: no more than it takes to select the features."""
    steps = n_steps(regime)
    return steps if max_features is None else min(steps, STEPS_PER_FEATURE * max_features)


def first_step(regime: Regime, *, deviation: float, spread: float, n_iter: int) -> float:
    """Return η₀, in units of the target: the steps add up to 0.4√T to 0.5√T standard deviations."""
    length = min(regime.signal / 25, clamp(math.sqrt(regime.signal / 250), 0.8, 1.0))
    return length * deviation / (spread * math.sqrt(n_iter))


def clip_factor(regime: Regime) -> float:
    """Return the clip, in median absolute deviations of the residuals."""
    return clamp(regime.signal / 600, 0.6, 3.0)


def cell_clip(regime: Regime, *, spread: float) -> float:
    """Return where cells are clipped when a feature is chosen, on the lattice.

    Noise is as large as the largest cell. A cell of one root mean square is nearly as informative
    as one of three, at a third of the noise; with more signal there is less to gain.
    """
    return (1 + regime.signal / 400) * spread


# --- the refit ------------------------------------------------------------------------------------


def refit_share(regime: Regime) -> float:
    """Return the part of what is left that the refit takes from the path."""
    return clamp(regime.signal / 100, 0.25, 0.5)


# --- how good it is -------------------------------------------------------------------------------

QUALITY_SHARE = 0.03
"""Share of the budget for the measures of quality. Conventional."""


# --- peers ----------------------------------------------------------------------------------------

LARGEST_WEIGHT = 100.0
"""Where weights of peers are cut off, in standard deviations of the target. Conventional."""
