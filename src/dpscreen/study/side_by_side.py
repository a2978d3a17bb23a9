"""Methods and budgets side by side on simulated rows: no private data, so nothing is spent.

The rows are those of `dpscreen.study.plan`, thinned in the same way. All methods and all ε see the
same rows. What a non-private LASSO gives is the standard to measure by.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen.estimators import PrivateLasso
from dpscreen.privacy import Budget, SeededNoise, SeededNoiseWarning, WeakDeltaWarning
from dpscreen.study import plan as simulation
from dpscreen.study.on_offer import METHODS, Order, estimator
from dpscreen.study.plan import REACH, TARGET_REACH, Scale, Setting, Table
from dpscreen.study.what_if import epsilon_of_one_row, usual_effect

Score = tuple[float, float, float]
NOT_PRIVATE = "lasso"
"""The non-private LASSO, with the penalty σ√(2 ln(2d)/n)."""

SECONDS = 8.0


@dataclass(frozen=True)
class Outcome:
    """What to expect of a method; ε is None where there is no privacy. Each `_se` is simulated."""

    method: str
    epsilon: float | None
    power: float
    power_se: float
    false_positives: float
    false_positives_se: float
    r2: float
    r2_se: float
    best_r2: float
    repetitions: int


@dataclass(frozen=True)
class Contest:
    """Who competes, where, and for which effect."""

    setting: Setting
    epsilons: tuple[float, ...]
    methods: tuple[str, ...] = (*METHODS, NOT_PRIVATE)
    effect: float | None = None
    rows_per_unit: int = 1

    @property
    def size(self) -> float:
        """Return the effect; None stands for features that explain half of the variance."""
        return usual_effect(self.setting) if self.effect is None else self.effect

    def check(self) -> None:
        """Raise a ValueError where an ε is too small to be divided up."""
        for epsilon in self.epsilons:
            _ = self.for_one_row(epsilon).rho

    def for_one_row(self, epsilon: float) -> Setting:
        """Return the setting at another ε for a unit, in terms of one row."""
        one_row = epsilon_of_one_row(epsilon, self.setting.delta, self.rows_per_unit)
        return replace(self.setting, epsilon=one_row)

    @property
    def entries(self) -> tuple[tuple[str, float | None], ...]:
        """List methods with each ε, and the non-private one once."""
        return tuple(
            (method, epsilon)
            for method in self.methods
            for epsilon in ((None,) if method == NOT_PRIVATE else self.epsilons)
        )


def compete(
    contest: Contest,
    *,
    repetitions: int | None = None,
    seed: int | str = 0,
    on_table: Callable[[int, int], None] | None = None,
) -> tuple[Outcome, ...]:
    """Fit every method at every ε to the same simulated tables.

    `on_table` hears how many of the tables are done.
    """
    times = repetitions or simulation.affordable_repetitions(
        contest.setting, 2 * len(contest.entries), seconds=SECONDS
    )
    scores: dict[tuple[str, float | None], list[Score]] = {one: [] for one in contest.entries}
    for number in range(max(2, times)):
        for entry, score in _one_table(contest, f"compare/{seed}/{number}"):
            scores[entry].append(score)
        if on_table is not None:
            on_table(number + 1, max(2, times))
    return tuple(_outcome(contest, entry, found) for entry, found in scores.items())


def _one_table(contest: Contest, name: str) -> Iterator[tuple[tuple[str, float | None], Score]]:
    # Thinned rows stand for the same sampling error at every ε, so one table serves for all.
    scale = Scale.of(contest.setting.regime)
    table = simulation.simulated_table(contest.setting, scale, name)
    for method, epsilon in contest.entries:
        if epsilon is None:
            yield (method, epsilon), _lasso(table, contest.size)
        else:
            yield (method, epsilon), _private(contest, table, method, epsilon, name)


def _private(contest: Contest, table: Table, method: str, epsilon: float, name: str) -> Score:
    setting = contest.for_one_row(epsilon)
    scale = replace(table.scale, rho=setting.rho * _same_noise(setting, table.scale))
    order = Order(
        Budget(simulation.thinned_epsilon(setting, scale), setting.delta),
        np.tile((-REACH, REACH), (scale.n_features, 1)) * setting.looseness,
        (-TARGET_REACH * setting.looseness, TARGET_REACH * setting.looseness),
        n_rows=scale.n_rows,
        random_state=SeededNoise(f"{name}/{method}/{epsilon!r}"),
    )
    model = estimator(method, order)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        warnings.simplefilter("ignore", WeakDeltaWarning)
        model.fit(table.X, table.target(contest.size))
    if isinstance(model, PrivateLasso):
        return table.score(contest.size, table.kept(model), model.intercept_, model.feature_bounds_)
    return table.score(contest.size, model.coef_, model.intercept_, _no_bounds(table))


def _same_noise(setting: Setting, scale: Scale) -> float:
    """Return by how much ρ grows where fewer rows and features stand for all (`Scale`)."""
    regime = setting.regime
    features = math.log(2 * scale.n_features) / math.log(2 * regime.n_features)
    return scale.thinning**2 * features**2


def _lasso(table: Table, effect: float) -> Score:
    from sklearn.linear_model import Lasso

    noise = math.sqrt(table.unexplained(effect))
    penalty = noise * math.sqrt(2 * math.log(2 * table.setting.n_features) / table.setting.n_rows)
    model = Lasso(alpha=penalty).fit(table.X, table.target(effect))
    return table.score(effect, model.coef_, float(model.intercept_), _no_bounds(table))


def _no_bounds(table: Table) -> Array:
    """Return the bounds of features that are not clipped where a model predicts."""
    return np.tile((-math.inf, math.inf), (table.scale.n_features, 1))


def _outcome(contest: Contest, entry: tuple[str, float | None], scores: Sequence[Score]) -> Outcome:
    found = np.array(scores)
    (power, false, r2), errors = found.mean(axis=0), found.std(axis=0, ddof=1)
    power_se, false_se, r2_se = (float(error) for error in errors / math.sqrt(len(found)))
    power_se = max(power_se, simulation.share_error(power, len(found) * contest.setting.n_effects))
    best = contest.setting.explained(contest.size)
    return Outcome(
        *entry, float(power), power_se, float(false), false_se, float(r2), r2_se, best, len(found)
    )
