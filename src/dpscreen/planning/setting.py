"""What is public of a fit before anything is spent, and what is supposed of its data.

The command line, the studio and Python all plan from a `Setting`. Nothing heavy is loaded here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpscreen._core.arrays import Array, Integers
from dpscreen._core.messages import message
from dpscreen.families import FAMILIES, GAUSSIAN, Family
from dpscreen.privacy import ZCDP, Budget
from dpscreen.privacy.budget import MOST_EPSILON
from dpscreen.solvers import rules

MOST_FEATURES = 500
"""Most features of a simulated table, for the time that it takes. Conventional."""

MOST_EXPLAINED = 0.9
"""Largest R² that simulated effects have. Conventional."""

SIZES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8)
"""Standardised effects that are simulated. Conventional."""

FACTORS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 10.0)
"""Multiples of ε that a plan compares. Conventional."""


@dataclass(frozen=True)
class Setting:
    """One fit to plan for: of a sparse model, or of a regression `table`.

    `n_effects` features have an effect; 0 stands for the usual number. `correlation` is that of
    neighbouring features, `looseness` how many times too wide bounds are. `rate` is the mean of
    outcomes: None is the usual one of the family, which stays None where it does not matter. With
    a `split` half of the rows select, and the other half gives intervals.

    Of a table the first `levels` features are columns of 0 and 1; `interest` and `required` are the
    places of features, as estimators have them by name.
    """

    n_rows: int
    n_features: int
    epsilon: float
    delta: float
    n_effects: int = 0
    correlation: float = 0.0
    looseness: float = 1.0
    max_features: int | None = None
    rate: float | None = None
    family: str = GAUSSIAN.name
    rows_per_unit: int = 1
    split: bool = False
    table: bool = False
    levels: int = 0
    interest: tuple[int, ...] = ()
    required: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Put in what is usual; refuse what cannot be simulated."""
        most, usual_rate = min(self.n_features, MOST_FEATURES), self.kind.simulation.rate
        usual = {
            "n_rows": max(2, self.n_rows),
            "n_effects": self.n_effects or max(1, min(5, most // 4, self.max_features or most)),
            "rate": usual_rate if self.rate is None else float(self.rate),
        }
        for name, value in usual.items():
            object.__setattr__(self, name, value)
        if self.n_effects > most:
            raise ValueError(message("plan.n-effects", most=most, given=self.n_effects))
        if not 0 <= self.correlation < 1:
            raise ValueError(message("plan.correlation", given=self.correlation))
        if not 1 <= self.looseness < math.inf:
            raise ValueError(message("plan.looseness", given=self.looseness))
        if self.rate is not None and not self.kind.supposes(self.rate):
            raise ValueError(message("plan.rate", given=self.rate, family=self.family))

    @property
    def kind(self) -> Family:
        """Return the family of the outcomes."""
        return FAMILIES[self.family]

    @property
    def method(self) -> str:
        """Return the method that is simulated."""
        return (self.kind.table if self.table else self.kind.sparse).method

    def at(self, epsilon: float) -> Setting:
        """Return the setting at another ε; a ValueError says that it is too small."""
        setting = replace(self, epsilon=epsilon)
        if not setting.rho:
            raise ValueError(message("plan.epsilon-too-small", epsilon=epsilon))
        return setting

    @property
    def selecting(self) -> Setting:
        """Return the setting of the rows that select: half of them with a split."""
        return replace(self, n_rows=self.n_rows // 2, split=False) if self.split else self

    @property
    def one_row(self) -> float:
        """Return the ε whose noise, for one row, is that of ε for a unit of several: ρ/k²."""
        if self.rows_per_unit == 1:
            return self.epsilon
        rho = ZCDP.within(Budget(self.epsilon, self.delta)).rho / self.rows_per_unit**2
        return ZCDP(rho).epsilon(self.delta)

    @property
    def rho(self) -> float:
        """Return the budget in zCDP, for one row."""
        return float(ZCDP.within(Budget(self.one_row, self.delta)))

    @property
    def regime(self) -> rules.Regime:
        """Return the numbers that the rules rest on."""
        return rules.Regime(self.n_rows, self.n_features, self.rho)

    @property
    def shape(self) -> str:
        """Return rows, the mean of outcomes and features in words."""
        rate = "" if self.rate is None else f", {self.kind.simulation.rate_words}".format(self.rate)
        unit = f" (up to {self.rows_per_unit} of each unit)" * (self.rows_per_unit > 1)
        return f"{self.n_rows} rows{unit}{rate}, {self.n_features} features"

    # --- effects --------------------------------------------------------------------------------

    def explained(self, effect: float, n_features: int | None = None) -> float:
        """Return the variance b′Σb of the linear predictor, with so many features."""
        which, signs = self.support(n_features), (-1.0) ** np.arange(self.n_effects)
        return effect**2 * float(signs @ law(which, self.correlation) @ signs)

    def support(self, n_features: int | None = None) -> Integers:
        """Return which features have an effect: at equal distances."""
        return np.arange(self.n_effects) * (n_features or self.n_features) // self.n_effects

    @property
    def usual_effect(self) -> float:
        """Return the usual effect of the family, or the one at which predictors vary as usual."""
        simulation = self.kind.simulation
        return simulation.usual_effect or simulation.spreads[0] / math.sqrt(self.explained(1.0))

    @property
    def usual_effects(self) -> tuple[float, ...]:
        """Return sizes of effect from where nothing is found to where all is.

        Unless the family has its own they start at a sampling error, or at what privacy noise
        hides, span a factor of 40 at most, and end where a tenth of the variance is left to noise.
        """
        if self.kind.simulation.effects:
            return self.kind.simulation.effects
        floor = max(1 / math.sqrt(self.n_rows), 2 / self.regime.signal)
        possible = [size for size in SIZES if self.explained(size) <= MOST_EXPLAINED]
        kept = tuple(size for size in possible if floor <= size <= 40 * floor)
        return kept or tuple(possible[-3:])

    @property
    def page_effects(self) -> tuple[float, ...]:
        """Return at most seven of the usual effects, so that each has tables enough."""
        return self.usual_effects[:: 1 + len(self.usual_effects) // 7]


def law(which: Integers, correlation: float) -> Array:
    """Return the features' correlations: those k apart have the correlation to the power k."""
    return np.asarray(float(correlation) ** np.abs(np.subtract.outer(which, which)))


def normal_rows(
    n_rows: int, n_features: int, correlation: float, rng: np.random.Generator
) -> Array:
    """Return standard normal features with the correlations of `law`."""
    rows = rng.standard_normal((n_rows, n_features))
    if correlation:
        fresh = math.sqrt(1 - correlation**2)
        for j in range(1, n_features):
            rows[:, j] = correlation * rows[:, j - 1] + fresh * rows[:, j]
    return rows


def around(epsilon: float) -> tuple[float, ...]:
    """Return ε from a tenth of this one to ten times, with two digits; this one as it is."""
    return tuple(
        epsilon if factor == 1 else float(f"{epsilon * factor:.2g}")
        for factor in FACTORS
        if factor == 1 or epsilon * factor < MOST_EPSILON
    )
