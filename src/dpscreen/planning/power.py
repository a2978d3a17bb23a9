"""What PrivateLasso detects on simulated rows: power and error, with no private data.

A feature is detected where its coefficient is larger in size than all but `FALSE_RATE` of the
coefficients of features without effect, over all tables of the same setting and effect. So power is
stated at one false-selection rate, whatever share of all features a solver lets in.

The simulated target has variance 1: `n_effects` standard normal features carry a coefficient of
±effect each, spread evenly, with alternating signs; the rest is normal noise. The real estimator is
fitted to it. Rows and features beyond what a simulation of seconds can hold are thinned
(docs/planning.md):

    rows       n/s rows at s²ρ: every rule and every noise depends on n²ρ and d only. The sampling
               error, which would grow by √s, is shrunk back in X and in the noise of y
    features   at most `MOST_FEATURES`, at the ρ that leaves M as it is
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from scipy.special import expit

from dpscreen._core.arrays import Array, Integers, Mask
from dpscreen._core.words import FALSE_RATE
from dpscreen.models import BoundsWarning, PrivateLasso
from dpscreen.models.base import FitStart, one_blas_thread
from dpscreen.models.intake import RefitWarning
from dpscreen.models.page.charts import OutcomeRow, PowerRow
from dpscreen.planning.curve import levelled
from dpscreen.privacy import (
    ZCDP,
    Budget,
    DiscreteGaussian,
    Noise,
    NoisyMax,
    SeededNoise,
    SeededNoiseWarning,
    SignedNoisyMax,
    WeakDeltaWarning,
    named_seed,
)
from dpscreen.privacy.budget import MOST_EPSILON
from dpscreen.privacy.sampling import Signed
from dpscreen.solvers import rules

POWER = 0.8
"""What share of the features with an effect must be detected."""

MOST_FEATURES = 500
MOST_CELLS = 400_000
MOST_CELLS_CLIPPED = 1_000_000
"""More where the clip is small: sampling errors of clipped residuals are shrunk back less well."""

ROWS_PER_FEATURE = 4
"""Rows are never thinned below this: the moments of fewer could not be set right."""

TEST_ROWS = 500
MOST_EXPLAINED = 0.9
SIZES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8)
FEATURE_BOUND, TARGET_BOUND = 3.0, 5.0
"""Half the width of the simulated public bounds, in deviations, where they fit."""


@dataclass(frozen=True)
class Setting:
    """What is public before anything is spent, and what is supposed of the data."""

    n_rows: int
    n_features: int
    epsilon: float
    delta: float
    n_effects: int
    correlation: float = 0.0
    looseness: float = 1.0
    max_features: int | None = None

    @property
    def rho(self) -> float:
        """Return the budget in zCDP."""
        return float(ZCDP.within(Budget(self.epsilon, self.delta)))

    @property
    def regime(self) -> rules.Regime:
        """Return the numbers that the rules rest on."""
        return rules.Regime(self.n_rows, self.n_features, self.rho)

    def explained(self, effect: float) -> float:
        """Return the variance that features of this size explain together."""
        return explained(self.n_features, self.n_effects, self.correlation, effect)


@dataclass(frozen=True)
class Scale:
    """How much smaller than the real table the simulated one is."""

    n_rows: int
    n_features: int
    rho: float
    thinning: float

    @classmethod
    def of(cls, regime: rules.Regime, *, most_cells: int | None = None) -> Scale:
        """Choose a table that fits in seconds, or into so many cells."""
        n, d, rho = regime.n_rows, regime.n_features, regime.rho
        kept = min(d, MOST_FEATURES)
        cells = MOST_CELLS if rules.clip_factor(regime) >= 1 else MOST_CELLS_CLIPPED
        rows = min(n, max((most_cells or cells) // kept, ROWS_PER_FEATURE * kept))
        same_signal = (math.log(2 * kept) / math.log(2 * d)) ** 2 if kept < d else 1.0
        return cls(rows, kept, rho * same_signal * (n / rows) ** 2, n / rows)


def support(n_features: int, n_effects: int) -> Integers:
    """Return which features matter: evenly spread."""
    return np.arange(n_effects) * n_features // n_effects


def explained(n_features: int, n_effects: int, correlation: float, effect: float) -> float:
    """Return b′Σb."""
    place, signs = support(n_features, n_effects), (-1.0) ** np.arange(n_effects)
    return effect**2 * float(signs @ _law(place, correlation) @ signs)


def _law(places: Integers, correlation: float) -> Array:
    """Return the features' correlations: those k apart have the correlation to the power k."""
    return np.asarray(float(correlation) ** np.abs(np.subtract.outer(places, places)))


def default_effects(setting: Setting) -> tuple[float, ...]:
    """Return sizes from where nothing is found to where all is: a factor of 40 at most.

    They start at a sampling error, or at what privacy noise hides, and end where a tenth of the
    variance is left to noise.
    """
    floor = max(1 / math.sqrt(setting.n_rows), 2 / setting.regime.signal)
    possible = [size for size in SIZES if setting.explained(size) <= MOST_EXPLAINED]
    kept = tuple(size for size in possible if floor <= size <= 40 * floor)
    return kept or tuple(possible[-3:])


def affordable_repetitions(
    setting: Setting, n_effects: int, *, seconds: float, most_cells: int | None = None
) -> int:
    """Return how many simulated tables fit in about so many seconds: no clock is read.

    A small table takes three times as long, large ones about what is asked for: 3 ms a fit, 0.1 ms
    a step, 60 ns and 0.3 ns a step for a cell.
    """
    scale = Scale.of(setting.regime, most_cells=most_cells)
    steps, cells = rules.n_steps(setting.regime), scale.n_rows * scale.n_features
    fit = 0.003 + 1e-4 * steps + cells * (6e-8 + 3e-10 * steps)
    return round(rules.clamp(seconds / (fit * n_effects), 4, 60))


Progress = Callable[[float], None]
"""Is told which share of the work is done."""


def ticks(progress: Progress | None, total: int) -> Callable[[], None]:
    """Return what is called after each of so many fits."""
    if progress is None:
        return lambda: None
    done = itertools.count(1)
    return lambda: progress(min(1.0, next(done) / max(1, total)))


def simulated_power(
    setting: Setting,
    effects: Sequence[float],
    *,
    repetitions: int,
    seed: int | str,
    most_cells: int | None = None,
    tick: Callable[[], None] | None = None,
) -> tuple[PowerRow, ...]:
    """Fit PrivateLasso to `repetitions` tables for each size; all sizes share rows and noise."""
    scale = Scale.of(setting.regime, most_cells=most_cells)
    measured = _measure(setting, scale, effects, range(repetitions), seed, tick)
    return rising([power_row(setting, effect, one) for effect, one in measured.items()])


def simulated_power_near(
    setting: Setting,
    effects: Sequence[float],
    *,
    repetitions: int,
    seed: int | str,
    power: float,
    tick: Callable[[], None] | None = None,
) -> tuple[PowerRow, ...]:
    """As `simulated_power`, but half of the work goes to the four sizes around the wanted power."""
    scale, first = Scale.of(setting.regime), max(4, repetitions // 2)
    measured = _measure(setting, scale, effects, range(first), seed, tick)
    powers = [detection_of(measured[effect]).power for effect in effects]
    at = next((i for i, seen in enumerate(powers) if seen >= power), len(effects) - 1)
    near = effects[max(0, at - 2) : at + 2]
    more = (repetitions - first) * len(effects) // len(near)
    numbers = range(first, first + max(0, more))
    for effect, found in _measure(setting, scale, near, numbers, seed, tick).items():
        measured[effect] += found
    return rising([power_row(setting, effect, one) for effect, one in measured.items()])


Row = TypeVar("Row", PowerRow, OutcomeRow)


def rising(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Return the rows with the nearest powers that rise, as they do but for few simulations."""
    powers = levelled([row.power for row in rows], [row.repetitions for row in rows])
    return tuple(replace(row, power=float(one)) for row, one in zip(rows, powers, strict=True))


@dataclass(frozen=True, eq=False)
class Scored:
    """One fit to a simulated table.

    `effects` and `others` are the sizes of the coefficients of features with and without an effect,
    `entered` is how many of the others the model selects, and `quality` its held-out R² or AUC.
    """

    effects: Array
    others: Array
    entered: int
    quality: float

    @classmethod
    def of(cls, coef: Array, matter: Mask, found: Mask, quality: float) -> Scored:
        """Divide the features into those that matter and the others."""
        sizes, entered = np.abs(coef), np.count_nonzero(found & ~matter)
        return cls(sizes[matter], sizes[~matter], int(entered), quality)


def critical_size(others: Array) -> float:
    """Return the least of these sizes that at most `FALSE_RATE` of them exceed; 0 without any."""
    if not others.size:
        return 0.0
    place = others.size - 1 - int(FALSE_RATE * others.size)
    return float(np.partition(others, place)[place])


@dataclass(frozen=True)
class Detection:
    """Power at the false-selection rate, the features let in without effect, and the quality."""

    power: float
    power_se: float
    entered: float
    entered_se: float
    quality: float
    quality_se: float


BOOTSTRAP = 100
"""Resamples of the tables for the standard error of power: the critical size has an error, too."""


def detection_of(fits: Sequence[Scored]) -> Detection:
    """Return means over tables, and standard errors: that of power by the bootstrap."""
    effects = np.array([one.effects for one in fits])
    others = np.array([one.others for one in fits])
    power = _power(effects, others)
    draws = np.random.default_rng(0).integers(len(fits), size=(BOOTSTRAP, len(fits)))
    spread = float(np.std([_power(effects[draw], others[draw]) for draw in draws]))
    means = np.array([(one.entered, one.quality) for one in fits])
    entered, quality = means.mean(axis=0).tolist()
    errors = (means.std(axis=0, ddof=1) / math.sqrt(len(fits))).tolist()
    power_se = max(spread, share_error(power, effects.size))
    return Detection(power, power_se, entered, errors[0], quality, errors[1])


def _power(effects: Array, others: Array) -> float:
    """Return which share of the effects is above the critical size of all others."""
    return float(np.mean(effects > critical_size(others.ravel())))


Measured = dict[float, list[Scored]]


def _measure(
    setting: Setting,
    scale: Scale,
    effects: Sequence[float],
    numbers: range,
    seed: int | str,
    tick: Callable[[], None] | None,
) -> Measured:
    """Return the fits to all tables, for each size."""
    measured: Measured = {effect: [] for effect in effects}
    with one_blas_thread():
        for number in numbers:
            table = simulated_table(setting, scale, f"plan/{seed}/{number}")
            for effect, found in measured.items():
                found.append(table.fit(effect, f"plan/{seed}/{number}/{effect!r}"))
                if tick is not None:
                    tick()
    return measured


def power_row(setting: Setting, effect: float, fits: Sequence[Scored]) -> PowerRow:
    """Return what fits to tables with effects of this size detect."""
    found = detection_of(fits)
    return PowerRow(
        effect=effect,
        power=found.power,
        power_se=found.power_se,
        false_positives=found.entered,
        false_positives_se=found.entered_se,
        r2=found.quality,
        r2_se=found.quality_se,
        best_r2=setting.explained(effect),
        repetitions=len(fits),
    )


def share_error(share: float, count: int) -> float:
    """Return a share's standard error after one more hit and one more miss: never 0."""
    smoothed = (share * count + 1) / (count + 2)
    return float(math.sqrt(smoothed * (1 - smoothed) / count))


@dataclass(frozen=True, eq=False)
class SimulatedTable:
    """One simulated table: rows to fit, rows to test on, and the target's noise."""

    setting: Setting
    scale: Scale
    X: Array
    test: Array
    noise: Array

    def fit(self, effect: float, name: str) -> Scored:
        """Return coefficients and held-out R² of a private fit."""
        model = _fitted(self.setting, self.scale, self.X, self.target(effect), name)
        bounds = model.feature_bounds_
        return self.score(effect, model.coef_, model.intercept_, bounds, model.selected_)

    def truth(self, effect: float) -> Array:
        """Return the coefficients behind the target."""
        coef = np.zeros(self.scale.n_features)
        place = support(self.scale.n_features, self.setting.n_effects)
        coef[place] = effect * (-1.0) ** np.arange(self.setting.n_effects)
        return coef

    def unexplained(self, effect: float) -> float:
        """Return the variance of the target's noise."""
        setting = self.setting
        return 1 - explained(self.scale.n_features, setting.n_effects, setting.correlation, effect)

    def target(self, effect: float) -> Array:
        """Return the target of every row."""
        noise = math.sqrt(self.unexplained(effect)) * self.noise
        return np.asarray(self.X @ self.truth(effect) + noise)

    def score(
        self, effect: float, coef: Array, intercept: float, bounds: Array, found: Mask
    ) -> Scored:
        """Return what `fit` does, for any coefficients, of features clipped to the bounds."""
        truth = self.truth(effect)
        used = np.flatnonzero((coef != 0) | (truth != 0))
        test, place = self.test[:, used], truth != 0
        error = test @ truth[used] - np.clip(test, *bounds[used].T) @ coef[used] - intercept
        r2 = 1 - float(np.mean(error**2)) - self.unexplained(effect)
        return Scored.of(coef, place, found, r2)


def simulated_table(setting: Setting, scale: Scale, name: str) -> SimulatedTable:
    """Return one table; the name is its seed."""
    rng = np.random.default_rng(named_seed(name))
    X = _normal_rows(scale.n_rows, scale.n_features, setting.correlation, rng)
    noise = rng.standard_normal(scale.n_rows)
    if scale.thinning > 1:
        X = _with_moments_of_more(X, setting.correlation, scale.thinning)
        noise = _less_correlated(noise, X, scale.thinning)
    test = _normal_rows(TEST_ROWS, scale.n_features, setting.correlation, rng)
    return SimulatedTable(setting, scale, X, test, noise)


def _normal_rows(
    n_rows: int, n_features: int, correlation: float, rng: np.random.Generator
) -> Array:
    """Return standard normal features with the correlations of `_law`."""
    rows = rng.standard_normal((n_rows, n_features))
    if correlation:
        fresh = math.sqrt(1 - correlation**2)
        for j in range(1, n_features):
            rows[:, j] = correlation * rows[:, j - 1] + fresh * rows[:, j]
    return rows


def _with_moments_of_more(X: Array, correlation: float, thinning: float) -> Array:
    """Return rows whose second moments stray as far from their law's as those of s times as many.

    G = Σ + E becomes Σ + E/√s, by a linear map of the rows: L_G⁻ᵀ, then L_targetᵀ.
    """
    law = _law(np.arange(X.shape[1]), correlation)
    seen = X.T @ X / len(X)
    wanted = law + (seen - law) / math.sqrt(thinning)
    turn = np.linalg.solve(np.linalg.cholesky(seen).T, np.linalg.cholesky(wanted).T)
    return np.asarray(X @ turn)


def _less_correlated(noise: Array, X: Array, thinning: float) -> Array:
    """Return noise whose part along the features, and along the constant, is smaller by √s."""
    columns = np.column_stack((X, np.ones(len(X))))
    along = columns @ np.linalg.solve(columns.T @ columns, columns.T @ noise)
    rest = noise - along
    # The rest keeps the variance that noise of all rows would have beside its features.
    rest *= math.sqrt(len(X) / (len(X) - columns.shape[1]))
    return np.asarray(rest + along / math.sqrt(thinning))


def _fitted(setting: Setting, scale: Scale, X: Array, y: Array, name: str) -> PrivateLasso:
    feature, target = setting.looseness * FEATURE_BOUND, setting.looseness * TARGET_BOUND
    model = ThinnedLasso(
        epsilon=thinned_epsilon(setting, scale),
        delta=setting.delta,
        feature_bounds=(-feature, feature),
        target_bounds=(-target, target),
        n_rows=scale.n_rows,
        max_features=setting.max_features,
        random_state=RoughNoise(name),
    )
    model.thinning = scale.thinning
    fit_quietly(model, X, y)
    return model


class ThinnedLasso(PrivateLasso):
    """PrivateLasso on rows each of which stands for many."""

    thinning = 1.0

    def _counted(self, start: FitStart) -> FitStart:
        """Tell rules of how many rows errors of sampling are."""
        spending = super()._counted(start).spending
        regime = replace(spending.regime, thinning=self.thinning)
        return replace(start, spending=replace(spending, regime=regime))


class RoughNoise(SeededNoise):
    """Draws in floating point, for tables that are nobody's: the same laws but for rounding.

    Exact draws take half the time of a small fit, and protect nothing here.
    """

    def answer(
        self,
        mechanism: Callable[[Any, Noise], Any],
        values: Any,
        *,
        purpose: str,
        account: object,
    ) -> Any:
        """Release what the mechanism would, about."""
        match mechanism, values:
            case DiscreteGaussian(), np.ndarray():
                steps = np.rint(mechanism.scale / mechanism.unit * self.normal(values.size))
                return (values + steps) * mechanism.unit
            case NoisyMax(), np.ndarray():
                return self._largest(values * (mechanism.unit / mechanism.scale))
            case SignedNoisyMax(), np.ndarray():
                scores = values * (mechanism.unit / mechanism.scale)
                place = self._largest(np.concatenate((scores, -scores)))
                return Signed(place % values.size, 1 if place < values.size else -1)
        return super().answer(mechanism, values, purpose=purpose, account=account)

    def _largest(self, scores: Array) -> int:
        """Return where the largest score is after Gumbel noise."""
        return int(np.argmax(scores - np.log(self.exponential(scores.size))))


def fit_quietly(model: Any, X: Array, y: Array) -> Any:
    """Return the model, fitted with seeded noise: nothing is private, so warnings would mislead."""
    with warnings.catch_warnings():
        for kind in (SeededNoiseWarning, WeakDeltaWarning, BoundsWarning, RefitWarning):
            warnings.simplefilter("ignore", kind)
        return model.fit(X, y)


def thinned_epsilon(setting: Setting, scale: Scale) -> float:
    """Return the ε at which fewer rows stand for all."""
    if (scale.n_rows, scale.n_features) == (setting.n_rows, setting.n_features):
        return setting.epsilon
    return min(ZCDP(Fraction(scale.rho)).epsilon(setting.delta), MOST_EPSILON)


def constant_for(rate: float, deviation: float) -> float:
    """Return the intercept with which that share of outcomes is of the second class."""
    from scipy.optimize import brentq  # slow to import, and plans of a number need none

    nodes, weights = np.polynomial.hermite_e.hermegauss(31)
    weights = weights / weights.sum()

    def off(constant: float) -> float:
        return float(weights @ expit(constant + deviation * nodes)) - rate

    return float(brentq(off, -60 - 10 * deviation, 60 + 10 * deviation))


# --- reading the curve ----------------------------------------------------------------------------


def crossing(sizes: Sequence[float], powers: Sequence[float], *, power: float) -> float | None:
    """Return where a rising curve through the points reaches `power`: None if it does not.

    The points are made monotone first (isotonic regression), then joined in the logarithm of size.
    """
    logs, curve = np.log(np.asarray(sizes, dtype=np.float64)), levelled(powers)
    reached = np.flatnonzero(curve >= power)
    if not reached.size:
        return None
    at = int(reached[0])
    if at == 0:
        return float(sizes[0])
    share = (power - curve[at - 1]) / (curve[at] - curve[at - 1])
    return float(math.exp(logs[at - 1] + share * (logs[at] - logs[at - 1])))


# --- the inverse ----------------------------------------------------------------------------------

NEIGHBOURS = (1 / 1.7, 1 / 1.3, 1.0, 1.3, 1.7)
COARSE, FINE = (0.1, 150_000), (0.3, MOST_CELLS)
"""Seconds, about, and most cells of a score: on the way, and around the answer."""


def search(
    setting_at: Callable[[float], Setting],
    effect: float,
    *,
    low: float,
    high: float,
    power: float,
    seed: int | str,
) -> float | None:
    """Return the least amount, between `low` and `high`, that gives the power.

    A bisection in the logarithm, on few tables, comes near; then five amounts around it are
    simulated with more tables, and the curve through them is read off. About 10 % accurate.
    """

    def power_at(amount: float, seconds: float, cells: int) -> float:
        setting = setting_at(amount)
        tables = affordable_repetitions(setting, 1, seconds=seconds, most_cells=cells)
        (row,) = simulated_power(
            setting, [effect], repetitions=min(24, tables), seed=seed, most_cells=cells
        )
        return row.power

    if power_at(high, *COARSE) < power:
        return None
    ends = [math.log(low), math.log(high)]
    while ends[1] - ends[0] > math.log(1.4):
        middle = (ends[0] + ends[1]) / 2
        ends[power_at(math.exp(middle), *COARSE) >= power] = middle
    amounts = _around(math.exp((ends[0] + ends[1]) / 2), low, high)
    powers = [power_at(amount, *FINE) for amount in amounts]
    return crossing(amounts, powers, power=power) or amounts[-1]


def _around(amount: float, low: float, high: float) -> list[float]:
    return sorted({min(max(amount * factor, low), high) for factor in NEIGHBOURS})


def with_amount(setting: Setting, name: str) -> Callable[[float], Setting]:
    """Return the setting as a function of its number of rows, or of its ε."""
    if name == "n_rows":
        return lambda amount: replace(setting, n_rows=math.ceil(amount))
    return lambda amount: replace(setting, epsilon=amount)
