"""Every private method on the same public tables: scores on held-out rows, ranks, where we lose.

Each method gets the same rows, declared bounds, public number of rows and (ε, δ). What is printed
includes non-private scores and many fits of one table, so this is for public tables alone.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpscreen._core.arrays import Array, Mask
from dpscreen.planning.arenas import Arena, PublicTable
from dpscreen.planning.methods import FAMILY_METHODS, OURS, FitRequest, estimator
from dpscreen.privacy import Budget, SeededNoise, named_seed

DIVISIONS = {
    one.divided(simulated=simulated): one
    for one in FAMILY_METHODS.values()
    for simulated in (False, True)
}
"""Tables that are ranked apart, with the methods that play on them."""

CONTESTED = tuple(name for one in FAMILY_METHODS.values() for name in one.contested)
NOT_PRIVATE = "not private"
HELD_OUT = 0.2
"""Share of rows on which methods are compared. Conventional."""


def measure(division: str) -> str:
    """Return what a division is scored by."""
    return DIVISIONS[division].family.measure.label


@dataclass(frozen=True)
class PlayedFit:
    """One fit: its score on held-out rows, R² or AUC, and its processor time.

    A method may refuse, by public numbers, before anything is spent: that has the worst score.
    """

    table: str
    division: str
    n_rows: int
    n_features: int
    method: str
    epsilon: float | None
    trial: int
    score: float
    refused: bool
    seconds: float


@dataclass(frozen=True)
class ContestRules:
    """What all fits share. Without `methods` all of them play that suit a table."""

    epsilons: tuple[float, ...]
    delta: float
    trials: int
    methods: tuple[str, ...] = ()
    seed: str = "0"

    def entries(self, table: PublicTable) -> tuple[tuple[str, float | None], ...]:
        """List methods with each ε, and the non-private one first."""
        suited = DIVISIONS[table.division].contested
        chosen = [method for method in suited if not self.methods or method in self.methods]
        return (
            (NOT_PRIVATE, None),
            *((method, epsilon) for method in chosen for epsilon in self.epsilons),
        )


def play(
    arenas: dict[str, Arena], rules: ContestRules, *, on_fit: Callable[[], None] = lambda: None
) -> Standings:
    """Fit every method at every ε to every table, as often as the rules say."""
    plays = []
    for name, arena in arenas.items():
        for trial in range(rules.trials):
            table, seed = arena(trial), f"contest/{rules.seed}/{name}/{trial}"
            rng, out = np.random.default_rng(named_seed(seed)), np.zeros(len(table.y), dtype=bool)
            for rows in table.classes:  # hold out a fifth of the rows; of two classes, of each
                order = rng.permutation(np.flatnonzero(rows))
                out[order[: max(1, round(HELD_OUT * len(order)))]] = True
            for method, epsilon in rules.entries(table):
                began = time.process_time()
                model = _fitted(method, epsilon, table, ~out, rules, seed)
                seconds = time.process_time() - began
                score = table.family.simulation.worst
                if model is not None:
                    predict = getattr(model, "decision_function", model.predict)
                    score = table.family.simulation.score(predict(table.X[out]), table.y[out])
                fit = PlayedFit(
                    table=name,
                    division=table.division,
                    n_rows=len(table.y),
                    n_features=table.X.shape[1],
                    method=method,
                    epsilon=epsilon,
                    trial=trial,
                    score=score,
                    refused=model is None,
                    seconds=seconds,
                )
                plays.append(fit)
                on_fit()
    return Standings(tuple(plays))


def n_fits(arenas: dict[str, Arena], rules: ContestRules) -> int:
    """Return how many fits that takes."""
    return rules.trials * sum(len(rules.entries(arena(0))) for arena in arenas.values())


def _fitted(
    method: str,
    epsilon: float | None,
    table: PublicTable,
    rows: Mask,
    rules: ContestRules,
    seed: str,
) -> Any:
    """Return the fitted model; None where a method cannot be set up for this table."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y = table.X[rows], table.y[rows]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # seeded noise, odd bounds, penalties: all on purpose here
        if epsilon is None:
            reference = table.family.simulation.without_privacy(None)
            return make_pipeline(StandardScaler(), reference).fit(X, y)
        request = FitRequest(
            Budget(epsilon, rules.delta),
            table.feature_bounds,
            table.target_bounds,
            n_rows=len(y),
            random_state=SeededNoise(f"{seed}/{method}/{epsilon!r}"),
            classes=(0, 1),
        )
        try:
            return estimator(method, request).fit(X, y)
        except ValueError:
            return None


# --- what came out --------------------------------------------------------------------------------


@dataclass(frozen=True)
class MeanRank:
    """A method at one ε over all tables of a kind: means of rank, score, gap and seconds.

    The gap is what the non-private model has more; `firsts` and `refused` count tables.
    """

    method: str
    epsilon: float
    rank: float
    score: float
    gap: float
    seconds: float
    firsts: int
    refused: int


@dataclass(frozen=True)
class Defeat:
    """A table where a method of other authors has the higher mean score than ours."""

    table: str
    epsilon: float
    ours: str
    score: float
    winner: str
    winners_score: float
    difference: float
    error: float | None


@dataclass(frozen=True)
class Standings:
    """All fits, and what they come to."""

    plays: tuple[PlayedFit, ...]

    @cached_property
    def _scores(self) -> dict[tuple[str, str, float | None], list[PlayedFit]]:
        found: dict[tuple[str, str, float | None], list[PlayedFit]] = {}
        for one in self.plays:
            found.setdefault((one.table, one.method, one.epsilon), []).append(one)
        return found

    @property
    def epsilons(self) -> tuple[float, ...]:
        """Return every ε, the smallest first."""
        return tuple(sorted({one.epsilon for one in self.plays if one.epsilon is not None}))

    @property
    def divisions(self) -> tuple[str, ...]:
        """Name the kinds of tables that were played on, ranked apart, as `DIVISIONS` has them."""
        played = {one.division for one in self.plays if one.epsilon is not None}
        return tuple(one for one in DIVISIONS if one in played)

    def tables(self, division: str) -> tuple[str, ...]:
        """Name the tables of a division."""
        return tuple(dict.fromkeys(one.table for one in self.plays if one.division == division))

    def methods(self, division: str) -> tuple[str, ...]:
        """Name the private methods that played in a division, ours first."""
        played = {one.method for one in self.plays if one.division == division}
        return tuple(one for one in DIVISIONS[division].contested if one in played)

    def shape(self, table: str) -> tuple[int, int]:
        """Return the rows and the features of a table."""
        one = next(one for one in self.plays if one.table == table)
        return one.n_rows, one.n_features

    def scores(self, table: str, method: str, epsilon: float | None) -> Array:
        """Return the scores of all trials."""
        return np.array([one.score for one in self._scores[table, method, epsilon]])

    def mean(self, table: str, method: str, epsilon: float | None) -> float:
        """Return the mean score."""
        return float(self.scores(table, method, epsilon).mean())

    def best(self, table: str) -> float:
        """Return the mean score without privacy."""
        return self.mean(table, NOT_PRIVATE, None)

    def top(self, table: str, epsilon: float) -> float:
        """Return the best mean score of a private method."""
        played = [one for one in self._scores if one[0] == table and one[2] == epsilon]
        return max(self.mean(*one) for one in played)

    def lines(self, division: str, epsilon: float) -> tuple[MeanRank, ...]:
        """Return how every method did at an ε, the best mean rank first."""
        from scipy.stats import rankdata

        tables, methods = self.tables(division), self.methods(division)
        scores = np.array([[self.mean(t, m, epsilon) for m in methods] for t in tables])
        played = [[self._scores[t, m, epsilon] for t in tables] for m in methods]
        ranks, best = rankdata(-scores, axis=1), np.array([[self.best(t)] for t in tables])
        found = (
            MeanRank(
                method,
                epsilon,
                float(ranks[:, j].mean()),
                float(scores[:, j].mean()),
                float((best - scores)[:, j].mean()),
                float(np.mean([one.seconds for fits in played[j] for one in fits])),
                int(np.sum(ranks[:, j] == 1)),
                sum(fits[0].refused for fits in played[j]),
            )
            for j, method in enumerate(methods)
        )
        return tuple(sorted(found, key=lambda line: line.rank))

    def defeats(self, division: str, epsilon: float) -> tuple[Defeat, ...]:
        """Return where another method beats our first one, the largest difference first."""
        methods = self.methods(division)
        ours = next((method for method in methods if method in OURS), None)
        others = [method for method in methods if method not in OURS]
        if ours is None or not others:
            return ()
        found = []
        for table in self.tables(division):
            means = {method: self.mean(table, method, epsilon) for method in (ours, *others)}
            winner = max(others, key=means.__getitem__)
            apart = self.scores(table, winner, epsilon) - self.scores(table, ours, epsilon)
            error = float(apart.std(ddof=1) / math.sqrt(len(apart))) if len(apart) > 1 else None
            if means[winner] > means[ours]:
                pair = ours, means[ours], winner, means[winner]
                found.append(Defeat(table, epsilon, *pair, float(apart.mean()), error))
        return tuple(sorted(found, key=lambda one: -one.difference))
