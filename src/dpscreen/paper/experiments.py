"""Where rows come from, which methods run on them, and the row that a trial leaves.

Seeds come from names: what a row is called is all that its random numbers depend on. So it can be
computed again alone, and is the same whatever ran before or beside it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen.paper import metrics
from dpscreen.paper.data import CORRELATION, load, prepare, synthetic
from dpscreen.paper.methods import METHODS, Fitted
from dpscreen.paper.problem import RULE, PreparedRows, Problem, Recorder, lasso_reference
from dpscreen.paper.published import PublishedData
from dpscreen.paper.results import TrialRow, fingerprint, versions
from dpscreen.privacy import Budget, SeededNoise, named_seed


def seed_name(**names: str | int) -> str:
    """Join the names in alphabetical order: "data=housing, method=dp-fw, trial=3"."""
    return ", ".join(f"{key}={value}" for key, value in sorted(names.items()))


def rng_for(**names: str | int) -> np.random.Generator:
    """Return the generator that belongs to these names, for data."""
    return np.random.default_rng(named_seed(seed_name(**names)))


# --- rows ---------------------------------------------------------------------------------------


EPSILON = 5.0
"""The stated total: ε₁ + ε₂ = 4.9 + 0.1 with RNM-Screen, 2.5 + 2.5 in Appendix C; δ₁ + δ₂ = 1/n."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """Rows of a data set; screening gets the `shares` of ε and δ.

    `r2_intercept` is that of the R² among features; None leaves that out.
    """

    data: PublishedData
    shares: tuple[float, float] = (0.02, 0.25)

    @property
    def r2_intercept(self) -> bool | None:
        """Return None: there is no such R² in the paper."""
        return None

    def _problem(self, X: Array, y: Array, **found: Any) -> Problem:
        return Problem(
            rows=PreparedRows(X, y),
            n_iter=self.data.n_iter,
            budget=Budget(EPSILON, 1 / len(y)),
            shares=self.shares,
            **found,
        )


@dataclass(frozen=True, kw_only=True)
class Simulation(Source):
    """The paper's synthetic data: every trial draws rows, the same in all suites and methods.

    The true features are one block, or `scattered` anywhere.
    """

    radius: float
    scattered: bool = False

    @lru_cache(maxsize=1)  # noqa: B019 - one problem at a time
    def problem(self, trial: int) -> Problem:
        """Draw the rows of this trial."""
        drawn = synthetic(
            n_rows=self.data.n_rows,
            n_features=self.data.n_features,
            n_positive=(self.data.n_support + 1) // 2,
            n_negative=self.data.n_support // 2,
            correlation=CORRELATION[self.data.name],
            scattered=self.scattered,
            rng=rng_for(data=self.data.name, trial=trial),
        )
        note = "X was divided by its largest absolute value, which is not private (erratum E8)."
        found = {"reference": drawn.coef, "radius": self.radius, "norms": (self.radius,)}
        return self._problem(drawn.X, drawn.y, **found, notes=(note,))


@dataclass(frozen=True, kw_only=True)
class RealData(Source):
    """A real set; K comes from replication, λ from the LASSO.

    With the transform the LASSO has an intercept, and so has the R². A missing cell becomes zero,
    or with `mean_filled` the mean of its column.
    """

    transform: bool
    mean_filled: bool = False

    @property
    def r2_intercept(self) -> bool:
        """Return what fits the printed values."""
        return self.transform

    # One at a time: the largest set fills a few hundred megabytes in each worker.
    @lru_cache(maxsize=1)  # noqa: B019
    def _prepared(self) -> Problem:
        table = load(self.data.name)
        if self.mean_filled:
            means = np.nanmean(table.X, axis=0)
            table = replace(table, X=np.where(np.isnan(table.X), means, table.X))
        X, y, notes = prepare(table, transform=self.transform)
        found = lasso_reference(X, y, n_support=self.data.n_support, intercept=self.transform)
        norms = found.lowest_norm, found.highest_norm
        note = f"λ is {RULE}, from {norms[0]:.6g} to {norms[1]:.6g}: not private (erratum E8)."
        chosen = {"reference": found.coef, "radius": found.radius, "norms": norms}
        return self._problem(X, y, **chosen, notes=(*notes, note))

    def problem(self, _trial: int) -> Problem:
        """Return the prepared set, the same for every trial."""
        return self._prepared()


# --- experiments --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Regression:
    """Methods on one data set.

    With `blocks` there are that many times the trials asked for: as many studies in a row.
    """

    suite: str
    source: Simulation | RealData
    methods: tuple[str, ...]
    series: tuple[str, ...] = ()
    blocks: int = 1

    @property
    def data(self) -> str:
        """The name of the data set."""
        return self.source.data.name

    @property
    def real_data(self) -> str | None:
        """The data set that must be on this machine, if any."""
        return self.data if isinstance(self.source, RealData) else None

    def trials(self, name: str, wanted: int) -> range:
        """Return the trials to run: a single one without noise on fixed rows."""
        varies = self.real_data is None or METHODS[name].random
        return range(self.blocks * wanted if varies else 1)

    def settings(self) -> dict[str, Any]:
        """Every setting that a row depends on."""
        source = {"kind": type(self.source).__name__, **asdict(self.source), "radius_rule": RULE}
        return {"source": source, "series": self.series}

    def run(self, trial: int, names: Iterable[str]) -> Iterator[TrialRow]:
        """Run these methods in one trial, all on the same rows."""
        problem = self.source.problem(trial)
        for name in names:
            method, names_of_row = METHODS[name], _names(self, name, trial)
            recorder, noise = Recorder(problem, self.series), SeededNoise(seed_name(**names_of_row))
            began = time.perf_counter()
            fit = method.fit(problem, noise, recorder)
            seconds = time.perf_counter() - began
            described = {"method": method.label, "calibration": method.calibration}
            yield _row_of(
                self,
                names_of_row,
                metrics=self._metrics(problem, fit, names_of_row),
                series=recorder.series,
                settings=problem.facts() | fit.settings | described,
                seconds=seconds,
            )

    def _metrics(self, problem: Problem, fit: Fitted, names: dict[str, Any]) -> dict[str, float]:
        chosen, truth = fit.weights != 0, problem.support
        found = {
            "tpr": metrics.true_positive_rate(chosen, truth),
            "fpr": metrics.false_positive_rate(chosen, truth),
            "f1": metrics.f1(chosen, truth),
            "density": metrics.density(chosen),
            "mse": problem.mean_squared_error(fit.weights),
            **fit.counts,
        }
        intercept = self.source.r2_intercept
        if intercept is not None:
            anything = rng_for(**names, part="random subset").permutation(chosen)
            for basis, which in ((chosen, ""), (anything, "_at_random")):
                for name, targets in (("unchosen", ~basis), ("missed", truth & ~basis)):
                    found[f"r2_{name}{which}"] = metrics.explained_r2(
                        problem.rows.moments, basis, targets, intercept=intercept
                    )
        return found


PROCESS = "uniform-process"


@dataclass(frozen=True)
class UniformProcess:
    """Theorem 2 by simulation, for d coordinates and T rounds, many times over in each trial.

    Every round makes one coordinate nonzero and then zeroes one. Both are uniform, which is what
    RNM-Screen comes down to when its noise is far larger than its scores.
    """

    n_features: int
    n_iter: int
    n_runs: int = 400

    suite = "theorem2"
    methods = (PROCESS,)
    real_data = None

    @property
    def data(self) -> str:
        """The name of the setting."""
        return f"d={self.n_features}, T={self.n_iter}"

    def trials(self, _name: str, wanted: int) -> range:
        """Return all trials: each is random."""
        return range(wanted)

    def settings(self) -> dict[str, Any]:
        """Every setting."""
        return {"source": "uniform process", **asdict(self)}

    def run(self, trial: int, names: Iterable[str]) -> Iterator[TrialRow]:
        """Simulate once, from a zero start: the mean number of nonzeros at the end."""
        for name in names:
            names_of_row = _names(self, name, trial)
            began, rng = time.perf_counter(), rng_for(**names_of_row)
            nonzero = np.zeros((self.n_runs, self.n_features), dtype=bool)
            runs = np.arange(self.n_runs)
            for _ in range(self.n_iter):
                nonzero[runs, rng.integers(self.n_features, size=self.n_runs)] = True
                nonzero[runs, rng.integers(self.n_features, size=self.n_runs)] = False
            yield _row_of(
                self,
                names_of_row,
                metrics={"nonzeros": float(nonzero.sum(axis=1).mean()), **self.expected()},
                series={},
                settings=self.settings(),
                seconds=time.perf_counter() - began,
            )

    def expected(self) -> dict[str, float]:
        """Return the corrected and the printed expectation, and their limits for many rounds."""
        d, T = self.n_features, self.n_iter
        return {
            "corrected": metrics.expected_nonzeros(d, T),
            "published": metrics.expected_nonzeros_published(d, T),
            "corrected_limit": metrics.expected_nonzeros_many_iterations(d),
            "published_limit": metrics.expected_nonzeros_many_iterations_published(d),
        }


Experiment = Regression | UniformProcess


def fingerprint_of(experiment: Experiment, method: str) -> str:
    """Return the mark of rows of this method under today's settings and versions."""
    return fingerprint({"suite": experiment.suite, "method": method, **experiment.settings()})


def _names(experiment: Experiment, method: str, trial: int) -> dict[str, Any]:
    """Return what the seed of a row depends on."""
    suite, data = experiment.suite, experiment.data
    return {"suite": suite, "data": data, "method": method, "trial": trial}


def _row_of(experiment: Experiment, names: dict[str, Any], **found: Any) -> TrialRow:
    mark = fingerprint_of(experiment, names["method"])
    return TrialRow(
        **names, **found, seed=seed_name(**names), versions=versions(), fingerprint=mark
    )
