"""What private methods detect on simulated rows: power and error, with no private data.

A feature is detected where its coefficient is larger in size than all but `FALSE_RATE` of the
coefficients of features without effect, over all tables of the same setting and effect. So power is
stated at one false-selection rate, whatever share of all features a solver selects.

Of the standard normal features, `n_effects` have a coefficient of ±effect each, evenly spread, with
alternating signs; the family of the setting draws outcomes from the linear predictor. The real
estimators are fitted to them. Rows and features beyond what a simulation of seconds can hold are
thinned (docs/decisions/2026-11-planning.md): n/s rows at s²ρ, whose sampling error is shrunk back,
and at most `MOST_FEATURES` features at the ρ that leaves M as it is.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np

from dpscreen._core.arrays import Array, Mask, clamp
from dpscreen._core.words import FALSE_RATE
from dpscreen.models import BoundsWarning
from dpscreen.models.base import FitStart, ScalingModel, blas_threads
from dpscreen.models.page.charts import PowerRow
from dpscreen.models.refits import RefitWarning
from dpscreen.planning.methods import METHODS, FitRequest, estimator
from dpscreen.planning.setting import MOST_FEATURES, Setting, law, normal_rows
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
"""The share of the features with an effect that must be detected (conventional)."""

MOST_CELLS, MOST_CELLS_CLIPPED = 400_000, 1_000_000
"""Most cells of a simulated table; more where the clip is small: sampling errors of clipped
residuals are shrunk back less well. Conventional."""

ROWS_PER_FEATURE = 4
"""Rows are never thinned below this: second moments of fewer could not be corrected.
Conventional."""

SECONDS, QUICK_SECONDS = 3.5, 0.3
"""How long a simulation takes on an idle core, about, and one of several, or of a point.
Conventional."""

MOST_TABLES = 24
"""The most simulated tables of one point, of a search or of a curve. Conventional."""

FEATURE_BOUND, TARGET_BOUND = 3.0, 5.0
"""Half the width of the simulated public bounds, in standard deviations, where they fit.
Conventional."""


# --- what is simulated ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Scale:
    """How much smaller than the real table the simulated one is."""

    n_rows: int
    n_features: int
    thinning: float

    @classmethod
    def of(cls, regime: rules.Regime) -> Scale:
        """Choose a table that fits in seconds."""
        kept = min(regime.n_features, MOST_FEATURES)
        cells = MOST_CELLS if rules.clip_factor(regime) >= 1 else MOST_CELLS_CLIPPED
        rows = min(regime.n_rows, max(cells // kept, ROWS_PER_FEATURE * kept))
        return cls(rows, kept, regime.n_rows / rows)

    def rho(self, regime: rules.Regime) -> float:
        """Return the ρ at which fewer rows and features have the noise of all."""
        features = math.log(2 * self.n_features) / math.log(2 * regime.n_features)
        return regime.rho * (features * self.thinning) ** 2

    def epsilon(self, setting: Setting) -> float:
        """Return the ε at which fewer rows and features stand for all."""
        if (self.n_rows, self.n_features) == (setting.n_rows, setting.n_features):
            return setting.one_row
        thinned = ZCDP(Fraction(self.rho(setting.regime)))
        return min(thinned.epsilon(setting.delta), MOST_EPSILON)


@dataclass(frozen=True)
class Contest:
    """Which methods are fitted at which ε to which effects."""

    setting: Setting
    methods: tuple[str, ...]
    epsilons: tuple[float, ...]
    effects: tuple[float, ...]

    @property
    def entries(self) -> list[Entry]:
        """Return methods with each ε and effect; the one without privacy has no ε."""
        return [
            (method, epsilon, effect)
            for method in self.methods
            for epsilon in (self.epsilons if method in METHODS else (None,))
            for effect in self.effects
        ]

    @property
    def title(self) -> str:
        """Say what is simulated."""
        count = self.setting.n_effects
        return (
            f"{self.setting.shape}, of which {count} {'has' if count == 1 else 'have'} an effect "
            f"of {self.effects[0]:.2g}, delta {self.setting.delta:g}"
        )


# --- fits to simulated tables ---------------------------------------------------------------------


Progress = Callable[[float], None]
"""Receives the share of the work that is done."""

Tick = Callable[[], None]
Entry = tuple[str, float | None, float]
"""A method, its ε if it is private, and the size of effects."""

Measured = dict[Entry, list["Scored"]]


def no_tick() -> None:
    """Show no progress."""


def ticks(progress: Progress | None, total: int) -> Tick:
    """Return what is called after each of so many fits."""
    if progress is None:
        return no_tick
    done = itertools.count(1)
    return lambda: progress(min(1.0, next(done) / max(1, total)))


def affordable_repetitions(setting: Setting, n_fits: int, *, seconds: float) -> int:
    """Return how many simulated tables fit in about so many seconds: no clock is read.

    A small table takes three times as long, large ones about what is allowed: 3 ms a fit, 0.1 ms
    a step, 60 ns and 0.3 ns a step for a cell, times the cost of the family.
    """
    scale = Scale.of(setting.regime)
    steps, cells = rules.n_steps(setting.regime), scale.n_rows * scale.n_features
    fit = 0.003 + 1e-4 * steps + cells * (6e-8 + 3e-10 * steps)
    return round(clamp(seconds / (fit * setting.kind.simulated_cost * n_fits), 4, 60))


def measured(contest: Contest, numbers: range, seed: str, tick: Tick = no_tick) -> Measured:
    """Fit every entry to the same simulated tables."""
    found: Measured = {entry: [] for entry in contest.entries}
    scale = Scale.of(contest.setting.regime)
    with blas_threads().limit(limits=1):
        for number in numbers:
            table = simulated_table(contest.setting, scale, f"{seed}/{number}")
            for (method, epsilon, effect), fits in found.items():
                setting = None if epsilon is None else contest.setting.at(epsilon)
                name = f"{seed}/{number}/{effect!r}"
                fits.append(table.fitted(method, setting, effect, name))
                tick()
    return found


def simulated(
    contest: Contest, repetitions: int | None, seed: str, progress: Progress | None = None
) -> tuple[PowerRow, ...]:
    """Return what each entry detects in so many tables; None: as many as a few seconds allow."""
    if repetitions is None:
        fits = len(contest.entries)
        repetitions = affordable_repetitions(contest.setting, fits, seconds=SECONDS)
    tick = ticks(progress, repetitions * len(contest.entries))
    return power_rows(measured(contest, range(repetitions), seed, tick))


def power_rows(found: Measured) -> tuple[PowerRow, ...]:
    """Return what fits detect, with powers that increase with the effect (isotonic regression)."""
    from scipy.optimize import isotonic_regression  # slow to import

    rows = [detected(entry, fits) for entry, fits in found.items()]
    monotone: list[PowerRow] = []
    for _, group in itertools.groupby(rows, lambda row: (row.method, row.epsilon)):
        line = list(group)
        weights = [row.repetitions for row in line]
        powers = isotonic_regression([row.power for row in line], weights=weights).x
        monotone += [replace(row, power=float(p)) for row, p in zip(line, powers, strict=True)]
    return tuple(monotone)


def simulated_power(
    setting: Setting,
    effects: Sequence[float],
    *,
    repetitions: int,
    seed: int | str,
    near: float | None = None,
    progress: Progress | None = None,
) -> tuple[PowerRow, ...]:
    """Fit our selection to `repetitions` tables for each size; all sizes share rows and noise.

    With `near`, half of the fits are of the four sizes around that power.
    """
    name = f"plan/{seed}"
    contest = Contest(setting, (setting.method,), (setting.epsilon,), tuple(effects))
    if near is None:
        return simulated(contest, repetitions, name, progress)
    tick = ticks(progress, repetitions * len(effects))
    first = max(4, repetitions // 2)
    found = measured(contest, range(first), name, tick)
    powers = [row.power for row in power_rows(found)]
    at = next((i for i, one in enumerate(powers) if one >= near), len(effects) - 1)
    around = replace(contest, effects=contest.effects[max(0, at - 2) : at + 2])
    more = (repetitions - first) * len(effects) // len(around.effects)
    numbers = range(first, first + max(0, more))
    for entry, fits in measured(around, numbers, name, tick).items():
        found[entry] += fits
    return power_rows(found)


# --- what a fit detects ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Scored:
    """One fit to a simulated table.

    `effects` and `others` are the sizes of the coefficients of features with and without an effect,
    `entered` is how many of the others the model selects. `quality` is its score on new rows, and
    `best` that of the true coefficients.
    """

    effects: Array
    others: Array
    entered: int
    quality: float
    best: float


def critical_size(others: Array) -> float:
    """Return the least of these sizes that at most `FALSE_RATE` of them exceed; 0 without any."""
    if not others.size:
        return 0.0
    place = others.size - 1 - int(FALSE_RATE * others.size)
    return float(np.partition(others, place)[place])


BOOTSTRAP = 100
"""Resamples of the tables for the standard error of power: the critical size has an error, too.
Conventional."""


def detected(entry: Entry, fits: Sequence[Scored]) -> PowerRow:
    """Return means over tables, and standard errors: that of power by the bootstrap.

    No share has an error of 0, however alike few tables are.
    """
    effects = np.array([one.effects for one in fits])
    others = np.array([one.others for one in fits])

    def power_of(tables: Any) -> float:
        critical = critical_size(others[tables].ravel())
        return float(np.mean(effects[tables] > critical))

    power = power_of(slice(None))
    draws = np.random.default_rng(0).integers(len(fits), size=(BOOTSTRAP, len(fits)))
    bootstrap_se = float(np.std([power_of(draw) for draw in draws]))
    scores = np.array([(one.entered, one.quality, one.best) for one in fits])
    entered, quality, best = scores.mean(axis=0).tolist()
    entered_se, quality_se, _ = (scores.std(axis=0, ddof=1) / math.sqrt(len(fits))).tolist()
    if others.size and not entered_se:
        n_others = others.shape[1]
        entered_se = n_others * share_error(entered / n_others, others.size)
    return PowerRow(
        *entry,
        power=power,
        power_se=max(bootstrap_se, share_error(power, effects.size)),
        false_positives=entered,
        false_positives_se=entered_se,
        quality=quality,
        quality_se=quality_se,
        best_quality=best,
        repetitions=len(fits),
    )


def share_error(share: float, count: int) -> float:
    """Return a share's standard error after one more hit and one more miss: never 0."""
    smoothed = (share * count + 1) / (count + 2)
    return float(math.sqrt(smoothed * (1 - smoothed) / count))


# --- one table ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SimulatedTable:
    """Rows to fit and to test on, and the standard normal noise behind their outcomes."""

    setting: Setting
    scale: Scale
    X: Array
    noise: Array
    test: Array
    test_noise: Array

    def truth(self, effect: float) -> tuple[Array, float, float]:
        """Return coefficients and intercept of outcomes, and the variance of working residuals."""
        coef, setting = np.zeros(self.scale.n_features), self.setting
        signs = (-1.0) ** np.arange(setting.n_effects)
        coef[setting.support(self.scale.n_features)] = effect * signs
        explained, family = setting.explained(effect, self.scale.n_features), setting.kind
        rate = setting.rate
        intercept = 0.0 if rate is None else family.intercept_for(rate, explained)
        return coef, intercept, family.unexplained(intercept, explained)

    def outcomes(self, effect: float) -> Array:
        """Return the outcome of every row."""
        coef, intercept, variance = self.truth(effect)
        predictors = self.X @ coef + intercept
        return self.setting.kind.simulation.outcomes(predictors, self.noise, math.sqrt(variance))

    def fitted(self, method: str, setting: Setting | None, effect: float, name: str) -> Scored:
        """Fit a method at the budget of a setting, or without privacy, and score it."""
        outcomes = self.outcomes(effect)
        if setting is not None:
            model = self.model(method, setting, outcomes, name)
        elif np.ptp(outcomes) == 0:
            model = SimpleNamespace(coef_=np.zeros(self.scale.n_features), intercept_=0.0)
        else:
            largest = math.sqrt(2 * math.log(2 * self.setting.n_features) / self.setting.n_rows)
            error = math.sqrt(self.truth(effect)[2]) * largest
            model = self.setting.kind.simulation.without_privacy(error).fit(self.X, outcomes)
        return self._scored(model, effect)

    def model(
        self, method: str, setting: Setting, outcomes: Array, name: str, **wishes: Any
    ) -> Any:
        """Return a fitted method at the budget of a setting; the name is the seed of its noise."""
        feature, target = (setting.looseness * one for one in (FEATURE_BOUND, TARGET_BOUND))
        request = FitRequest(
            Budget(self.scale.epsilon(setting), setting.delta),
            np.tile((-feature, feature), (self.scale.n_features, 1)),
            setting.kind.simulated_bounds(target, setting.rate),
            n_rows=self.scale.n_rows,
            max_features=setting.max_features,
            random_state=RoughNoise(name),
            classes=(0, 1),
            **wishes,
        )
        model = estimator(method, request)
        set_thinning(model, self.scale.thinning)
        return fit_quietly(model, self.X, outcomes)

    def _scored(self, model: Any, effect: float) -> Scored:
        """Score coefficients on new rows, of features clipped where the model clips them."""
        coef, (truth, intercept, unexplained) = np.ravel(model.coef_), self.truth(effect)
        used, matter = np.flatnonzero((coef != 0) | (truth != 0)), truth != 0
        test = self.test[:, used]
        bounds = getattr(model, "feature_bounds_", None)
        within = test if bounds is None else np.clip(test, *bounds[used].T)
        predicted = within @ coef[used] + float(np.ravel(model.intercept_)[0])
        expected = test @ truth[used] + intercept
        kind = self.setting.kind
        outcomes = kind.simulation.outcomes(expected, self.test_noise, math.sqrt(unexplained))
        found: Mask = getattr(model, "selected_", coef != 0)
        sizes, entered = np.abs(coef), np.count_nonzero(found & ~matter)
        return Scored(
            sizes[matter],
            sizes[~matter],
            int(entered),
            kind.simulated_score(predicted, expected, outcomes, unexplained),
            kind.simulated_score(expected, expected, outcomes, unexplained),
        )


def simulated_table(setting: Setting, scale: Scale, name: str) -> SimulatedTable:
    """Return one table; the name is its seed."""
    rng = np.random.default_rng(named_seed(name))
    X = normal_rows(scale.n_rows, scale.n_features, setting.correlation, rng)
    noise = rng.standard_normal(scale.n_rows)
    if scale.thinning > 1:
        X = _with_moments_of_more(X, setting.correlation, scale.thinning)
        noise = _less_correlated(noise, X, scale.thinning)
    n_test = setting.kind.test_rows
    test = normal_rows(n_test, scale.n_features, setting.correlation, rng)
    return SimulatedTable(setting, scale, X, noise, test, rng.standard_normal(n_test))


def _with_moments_of_more(X: Array, correlation: float, thinning: float) -> Array:
    """Return rows whose second moments stray as far from their law's as those of s times as many.

    G = Σ + E becomes Σ + E/√s, by a linear map of the rows: L_G⁻ᵀ, then L_targetᵀ.
    """
    expected, gram = law(np.arange(X.shape[1]), correlation), X.T @ X / len(X)
    wanted = expected + (gram - expected) / math.sqrt(thinning)
    turn = np.linalg.solve(np.linalg.cholesky(gram).T, np.linalg.cholesky(wanted).T)
    return np.asarray(X @ turn)


def _less_correlated(noise: Array, X: Array, thinning: float) -> Array:
    """Return noise whose part along the features, and along the constant, is smaller by √s."""
    columns = np.column_stack((X, np.ones(len(X))))
    along = columns @ np.linalg.solve(columns.T @ columns, columns.T @ noise)
    rest = noise - along
    # The rest keeps the variance that noise of all rows would have beside its features.
    rest *= math.sqrt(len(X) / (len(X) - columns.shape[1]))
    return np.asarray(rest + along / math.sqrt(thinning))


def set_thinning(model: Any, thinning: float) -> None:
    """Let a model's rules use the sampling errors of all rows, not of the simulated ones."""
    if not isinstance(model, ScalingModel) or thinning == 1:
        return
    counted = model._counted

    def thinned(start: FitStart) -> FitStart:
        start = counted(start)
        regime = replace(start.spending.regime, thinning=thinning)
        return replace(start, spending=replace(start.spending, regime=regime))

    model.__dict__["_counted"] = thinned


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


# --- the inverse ----------------------------------------------------------------------------------


def crossing(sizes: Sequence[float], powers: Sequence[float], *, power: float) -> float | None:
    """Return where an increasing curve through the points reaches `power`: None if it does not.

    The points are made monotone first (isotonic regression), then joined in the logarithm of size.
    """
    from scipy.optimize import isotonic_regression  # slow to import

    curve = isotonic_regression(powers).x
    if curve[-1] < power:
        return None
    at = int(np.argmax(curve >= power))
    if at == 0:
        return float(sizes[0])
    ends, logs = curve[at - 1 : at + 1], np.log(np.asarray(sizes[at - 1 : at + 1], dtype=float))
    return float(math.exp(np.interp(power, ends, logs)))


NEIGHBOURS = (1 / 1.7, 1 / 1.3, 1.0, 1.3, 1.7)
"""Amounts around the one that bisection found, as multiples of it. Conventional."""


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

    def power_at(amount: float, seconds: float) -> float:
        setting = setting_at(amount)
        tables = min(MOST_TABLES, affordable_repetitions(setting, 1, seconds=seconds))
        (row,) = simulated_power(setting, [effect], repetitions=tables, seed=seed)
        return row.power

    if power_at(high, QUICK_SECONDS / 3) < power:
        return None
    ends = [math.log(low), math.log(high)]
    while ends[1] - ends[0] > math.log(1.4):
        middle = (ends[0] + ends[1]) / 2
        ends[power_at(math.exp(middle), QUICK_SECONDS / 3) >= power] = middle
    middle = math.exp((ends[0] + ends[1]) / 2)
    amounts = sorted({min(max(middle * factor, low), high) for factor in NEIGHBOURS})
    powers = [power_at(amount, QUICK_SECONDS) for amount in amounts]
    return crossing(amounts, powers, power=power) or amounts[-1]
