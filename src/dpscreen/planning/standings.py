"""Every private method on the same public tables: scores on held-out rows, ranks, where we lose.

Each method gets the same rows, declared bounds, public number of rows and (ε, δ). What is printed
includes non-private scores and many fits of one table, so this is for public tables alone.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from dpscreen import __version__
from dpscreen._core.arrays import Mask
from dpscreen._core.pictures import environment
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


# --- the results ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Standings:
    """All fits, and what they come to."""

    plays: tuple[PlayedFit, ...]

    @cached_property
    def fits(self) -> pd.DataFrame:
        """Return the fits as a data frame; the non-private ones have no ε."""
        return pd.DataFrame(self.plays)

    @property
    def epsilons(self) -> tuple[float, ...]:
        """Return every ε, the smallest first."""
        return tuple(sorted({one.epsilon for one in self.plays if one.epsilon is not None}))

    @property
    def divisions(self) -> tuple[str, ...]:
        """Name the kinds of tables that were played on, ranked apart, as `DIVISIONS` has them."""
        played = {one.division for one in self.plays if one.epsilon is not None}
        return tuple(one for one in DIVISIONS if one in played)

    def means(self, division: str, epsilon: float) -> pd.DataFrame:
        """Return mean scores: a row for each table, a column for each method, ours first."""
        played = self._played(division, epsilon)
        means = played.pivot_table("score", index="table", columns="method", sort=False)
        return means[[one for one in DIVISIONS[division].contested if one in means]]

    def best(self, division: str) -> pd.Series[float]:
        """Return the mean score without privacy on each table."""
        played = self.fits[(self.fits["division"] == division) & self.fits["epsilon"].isna()]
        return played.groupby("table", sort=False)["score"].mean()

    def ranks(self, division: str, epsilon: float) -> pd.DataFrame:
        """Return how every method did at an ε over all tables, the best mean rank first.

        The gap is what the non-private model has more; `firsts` and `refused` count tables.
        """
        means, played = self.means(division, epsilon), self._played(division, epsilon)
        ranks = means.rank(axis=1, ascending=False)
        columns = {
            "epsilon": epsilon,
            "rank": ranks.mean(),
            "score": means.mean(),
            "gap": (-means.sub(self.best(division), axis=0)).mean(),
            "seconds": played.groupby("method")["seconds"].mean(),
            "firsts": (ranks == 1).sum(),
            "refused": played[played["trial"] == 0].groupby("method")["refused"].sum(),
        }
        found = pd.DataFrame(columns, index=means.columns).sort_values("rank", kind="stable")
        return found.reset_index(names="method")

    def defeats(self, division: str, epsilon: float) -> list[dict[str, Any]]:
        """Return where another method beats our first one, the largest difference first.

        The error is that of the mean difference over trials.
        """
        means: Any = self.means(division, epsilon)
        mine = [method for method in means if method in OURS]
        others = means.drop(columns=mine)
        if not mine or others.empty:
            return []
        ours, found = mine[0], []
        played = self._played(division, epsilon)
        trials: Any = played.pivot(index=["table", "trial"], columns="method", values="score")
        for table, winner in others.idxmax(axis=1).items():
            apart = trials.loc[table, winner] - trials.loc[table, ours]
            if apart.mean() > 0:
                one = {
                    "table": table,
                    "epsilon": epsilon,
                    "ours": ours,
                    "score": float(means.loc[table, ours]),
                    "winner": winner,
                    "winners_score": float(means.loc[table, winner]),
                    "difference": float(apart.mean()),
                    "error": float(apart.sem()) if len(apart) > 1 else None,
                }
                found.append(one)
        return sorted(found, key=lambda one: -one["difference"])

    def _played(self, division: str, epsilon: float) -> pd.DataFrame:
        fits = self.fits
        return fits[(fits["division"] == division) & (fits["epsilon"] == epsilon)]


def render(standings: Standings, rules: ContestRules) -> str:
    """Return the page of a contest: one HTML file, which runs no script and asks for nothing."""
    page = environment("dpscreen.planning").get_template("standings.html")
    return page.render(standings=standings, rules=rules, measure=measure, version=__version__)
