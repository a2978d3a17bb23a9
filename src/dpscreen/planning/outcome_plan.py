"""What to expect of private models of outcomes, before any budget is spent: AUC and features found.

Simulated: standard normal features, of which some move the log-odds by ±effect for one deviation,
and as many outcomes of the second class as are supposed. More rows than a simulation of seconds can
hold are fewer at a larger ρ, so that n²ρ, which the noise rests on, stays as it is; more features
are fewer at the ρ that leaves M as it is. Sampling error is then that of fewer rows, so things look
a little worse than they are (docs/planning.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import Any

import numpy as np
from scipy.special import expit

from dpscreen._core.arrays import Array
from dpscreen._core.words import DETECTED, whole_percent
from dpscreen.models.page.charts import Expected, OutcomeRow
from dpscreen.planning.methods import FitRequest, estimator
from dpscreen.planning.plan import USELESS, selecting_rows, setting_of
from dpscreen.planning.power import (
    FEATURE_BOUND,
    MOST_FEATURES,
    POWER,
    Progress,
    RoughNoise,
    Scored,
    Setting,
    constant_for,
    detection_of,
    fit_quietly,
    rising,
    support,
    ticks,
)
from dpscreen.planning.regression_plan import HALF, around
from dpscreen.planning.what_if import TriedBudgets, first_detected, for_rows, nested
from dpscreen.privacy import ZCDP, Budget, named_seed
from dpscreen.privacy.budget import MOST_EPSILON

NOT_PRIVATE = "logistic"
"""Logistic regression with a light ridge, to measure by."""

PRIVATE = ("private-logistic", "noisy-descent", "outcome-fw", "class-means")

METHODS = (*PRIVATE, NOT_PRIVATE)
EFFECTS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.8)
USUAL_EFFECT = 0.5
MOST_CELLS, TEST_ROWS, TABLES = 400_000, 4000, 4
TOO_FEW = "Do not expect a useful model: more rows, fewer features or a larger epsilon needed."


@dataclass(frozen=True)
class OutcomeContest(TriedBudgets):
    """Which methods are tried at which ε for which effects, and the supposed share of outcomes.

    An effect is what one standard deviation of a feature adds to the log-odds.
    """

    setting: Setting
    rate: float
    methods: tuple[str, ...] = ("private-logistic",)
    epsilons: tuple[float, ...] = ()
    effects: tuple[float, ...] = EFFECTS
    rows_per_unit: int = 1

    @property
    def title(self) -> str:
        """Say what is simulated."""
        setting = self.setting
        return (
            f"{setting.n_rows} rows, {self.rate:.0%} yes, {setting.n_features} features, "
            f"{setting.n_effects} with an effect, {self.promise}"
        )

    @property
    def entries(self) -> Iterator[tuple[str, float | None, float]]:
        """Yield methods with each ε and effect; the non-private one without an ε."""
        for method in self.methods:
            private = self.epsilons or (self.setting.epsilon,)
            for epsilon in private if method in PRIVATE else (None,):
                yield from ((method, epsilon, effect) for effect in self.effects)

    @property
    def n_rows(self) -> int:
        """Return how many rows are simulated."""
        return min(self.setting.n_rows, max(2000, MOST_CELLS // self.n_features))

    @property
    def n_features(self) -> int:
        """Return how many features are simulated."""
        return min(self.setting.n_features, MOST_FEATURES)


Score = tuple[Scored, float]
"""A fit, and the AUC that the true coefficients have on the same rows."""


def expected_outcomes(
    contest: OutcomeContest,
    *,
    tables: int = TABLES,
    seed: int | str = 0,
    progress: Progress | None = None,
    tick: Callable[[], None] | None = None,
) -> tuple[OutcomeRow, ...]:
    """Fit every method to the same simulated tables: nothing is read, nothing is spent."""
    entries = list(contest.entries)
    scores: dict[tuple[str, float | None, float], list[Score]] = {one: [] for one in entries}
    tick = tick or ticks(progress, tables * len(entries))
    for number in range(tables):
        for effect in contest.effects:
            table = SimulatedOutcomes.of(contest, effect, f"outcomes/{seed}/{number}")
            for entry in entries:
                if entry[2] == effect:
                    scores[entry].append(table.score(*entry[:2]))
                    tick()
    rows = [_row(entry, found) for entry, found in scores.items()]
    return tuple(one for _, group in groupby(rows, _tried) for one in rising(list(group)))


def _tried(row: OutcomeRow) -> tuple[str, float | None]:
    """Return which method was tried, and at which ε."""
    return row.method, row.epsilon


def expected_of_outcomes(
    *,
    n_rows: int,
    n_features: int,
    epsilon: float,
    delta: float,
    rate: float = HALF,
    rows_per_unit: int = 1,
    split: bool = False,
    tables: int = TABLES,
    progress: Progress | None = None,
    max_features: int | None = None,
) -> Expected:
    """Simulate fits of PrivateLogistic, for a page: by sizes of effect, then at other ε."""
    numbers = selecting_rows(n_rows, split=split), n_features, epsilon, delta
    setting = setting_of(*numbers, max_features=max_features)
    possible = [one for one in around(epsilon) if for_rows(setting, one, rows_per_unit)]
    public: Any = {"setting": setting, "rate": rate, "rows_per_unit": rows_per_unit}
    sizes = OutcomeContest(**public)
    tick = ticks(progress, tables * (len(sizes.effects) + len(possible) - 1))
    rows = expected_outcomes(sizes, tables=tables, tick=tick)
    here = first_detected(rows, POWER)
    others = [one for one in possible if one != epsilon]
    tried = OutcomeContest(**public, epsilons=tuple(others), effects=(here.effect,))
    found = expected_outcomes(tried, tables=tables, tick=tick) if others else ()
    useful = sizes.for_one_row(epsilon).regime.signal >= USELESS
    return Expected(
        n_rows=setting.n_rows,
        n_features=setting.n_features,
        n_effects=setting.n_effects,
        finding=finding(rows),
        advice="" if useful else TOO_FEW,
        useful=useful,
        power_wanted=POWER,
        rows=rows,
        what_if=nested(epsilon, here, dict(zip(others, found, strict=True))),
        what_if_effect=here.effect,
        split=split,
        rate=rate,
    )


def _row(entry: tuple[str, float | None, float], scores: Sequence[Score]) -> OutcomeRow:
    found = detection_of([fit for fit, _ in scores])
    return OutcomeRow(
        *entry,
        power=found.power,
        power_se=found.power_se,
        false_positives=found.entered,
        false_positives_se=found.entered_se,
        auc=found.quality,
        auc_se=found.quality_se,
        best_auc=float(np.mean([best for _, best in scores])),
        repetitions=len(scores),
    )


@dataclass(frozen=True, eq=False)
class SimulatedOutcomes:
    """Simulated rows to fit and to test on, and the coefficients behind their outcomes."""

    contest: OutcomeContest
    name: str
    X: Array
    y: Array
    test: Array
    truth: Array
    test_y: Array

    @classmethod
    def of(cls, contest: OutcomeContest, effect: float, name: str) -> SimulatedOutcomes:
        """Draw them; the name is the seed."""
        setting, rng = contest.setting, np.random.default_rng(named_seed(name))
        d, truth = contest.n_features, np.zeros(contest.n_features)
        signs = (-1.0) ** np.arange(setting.n_effects)
        truth[support(d, setting.n_effects)] = effect * signs
        X = rng.standard_normal((contest.n_rows, d))
        test = rng.standard_normal((TEST_ROWS, d))
        constant = constant_for(contest.rate, float(np.linalg.norm(truth)))
        y, test_y = (
            (rng.random(len(rows)) < expit(rows @ truth + constant)).astype(np.float64)
            for rows in (X, test)
        )
        return cls(contest, name, X, y, test, truth, test_y)

    def score(self, method: str, epsilon: float | None) -> Score:
        """Return coefficients and held-out AUC of a fit, and the best AUC."""
        coef, found = self._not_private() if epsilon is None else self._private(method, epsilon)
        matter = self.truth != 0
        fit = Scored.of(coef, matter, found, auc(self.test @ coef, self.test_y))
        return fit, auc(self.test @ self.truth, self.test_y)

    def _private(self, method: str, epsilon: float) -> tuple[Array, Any]:
        bound = FEATURE_BOUND * self.contest.setting.looseness
        request = FitRequest(
            Budget(self._thinned(epsilon), self.contest.setting.delta),
            np.tile((-bound, bound), (self.X.shape[1], 1)),
            target_bounds=(0.0, 1.0),
            classes=(0, 1),
            n_rows=len(self.X),
            max_features=self.contest.setting.max_features,
            random_state=RoughNoise(f"{self.name}/{method}/{epsilon!r}"),
        )
        model = fit_quietly(estimator(method, request), self.X, self.y)
        return model.coef_[0], getattr(model, "selected_", model.coef_[0] != 0)

    def _thinned(self, epsilon: float) -> float:
        """Return the ε at which so many rows have the noise of all."""
        setting = self.contest.for_one_row(epsilon)
        if self.X.shape == (setting.n_rows, setting.n_features):
            return setting.epsilon
        fewer = math.log(2 * self.X.shape[1]) / math.log(2 * setting.n_features)
        more = (setting.n_rows / len(self.X) * fewer) ** 2
        return min(ZCDP(Fraction(setting.rho * more)).epsilon(setting.delta), MOST_EPSILON)

    def _not_private(self) -> tuple[Array, Any]:
        from sklearn.linear_model import LogisticRegression

        coef = (
            LogisticRegression(C=0.1).fit(self.X, self.y).coef_[0] if self._both else 0 * self.truth
        )
        return coef, coef != 0

    @property
    def _both(self) -> bool:
        return bool(0 < self.y.sum() < len(self.y))


def auc(line: Array, y: Array) -> float:
    """Return how often a row of the second class has more than one of the first; ½: no telling."""
    from scipy.stats import rankdata  # slow to import: half a second

    yes = float(y.sum())
    if not 0 < yes < len(y):
        return 0.5
    return float((rankdata(line)[y == 1].sum() - yes * (yes + 1) / 2) / (yes * (len(y) - yes)))


def finding(rows: Sequence[OutcomeRow], *, power: float = POWER) -> str:
    """Say in words from which effect on features are detected, and what AUC costs."""
    found = [one for one in rows if one.power >= power]
    detected = (
        f"Effects of {found[0].effect:g} log-odds for one standard deviation, and more, are "
        f"detected with at least {whole_percent(power)} power."
        if found
        else f"None of these effects is detected with {whole_percent(power)} power."
    )
    last = rows[-1]
    return (
        f"{detected} {DETECTED} With effects of {last.effect:g}, AUC is {last.auc:.3f} of "
        f"{last.best_auc:.3f} that can be had."
    )
