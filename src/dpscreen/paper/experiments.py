"""Where rows come from, which methods run on them, and the row that a trial leaves.

Seeds come from names: what a row is called is all that its random numbers depend on. So it can be
computed again alone, and is the same whatever ran before or beside it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from dpscreen.paper import metrics
from dpscreen.paper.data import Preparation, load, prepare, synthetic
from dpscreen.paper.methods import Fitted, Method
from dpscreen.paper.problem import RULE, PreparedRows, Problem, Recorder, Split, lasso_reference
from dpscreen.paper.published import published_data
from dpscreen.paper.results import TrialRow, fingerprint, versions
from dpscreen.privacy import Budget, SeededNoise, named_seed


def seed_name(**names: str | int) -> str:
    """Join the names in alphabetical order: "data=housing, method=dp-fw, trial=3"."""
    return ", ".join(f"{key}={value}" for key, value in sorted(names.items()))


def rng_for(**names: str | int) -> np.random.Generator:
    """Return the generator that belongs to these names, for data."""
    return np.random.default_rng(named_seed(seed_name(**names)))


def noise_for(**names: str | int) -> SeededNoise:
    """Return the noise that belongs to these names, for mechanisms."""
    return SeededNoise(seed_name(**names))


# --- rows ---------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Source:
    """Rows under the settings of a run. δ is 1/n."""

    kind: ClassVar[str]
    name: str
    n_iter: int
    epsilon: float
    epsilon_share: float
    delta_share: float

    def split(self, n_rows: int) -> Split:
        """Return the budget and how it is split."""
        return Split(Budget(self.epsilon, 1 / n_rows), self.epsilon_share, self.delta_share)

    def declared(self) -> dict[str, Any]:
        """Every setting, for the fingerprint of a row."""
        return {"source": self.kind, **asdict(self)}


@dataclass(frozen=True, kw_only=True)
class Simulation(Source):
    """The paper's synthetic data; every trial draws rows of its own."""

    kind = "simulation"
    correlation: float
    n_rows: int
    n_features: int
    n_positive: int
    n_negative: int
    radius: float

    def problem(self, trial: int) -> Problem:
        """Draw the rows of this trial. They are the same in every suite and for every method."""
        return _simulated(self, trial)


@dataclass(frozen=True, kw_only=True)
class Scattered(Simulation):
    """The same rows, with the true features anywhere in place of one block."""

    kind = "simulation, scattered support"


@dataclass(frozen=True, kw_only=True)
class RealData(Source):
    """A real set under one preparation; K comes from replication, λ from the LASSO."""

    kind = "real"
    preparation: Preparation
    n_support: int
    intercept: bool

    def problem(self, _trial: int) -> Problem:
        """Return the prepared set, the same for every trial."""
        return _prepared(self)

    def declared(self) -> dict[str, Any]:
        """Every setting, for the fingerprint of a row."""
        return super().declared() | {"radius_rule": RULE}


@dataclass(frozen=True, kw_only=True)
class MeanFilled(RealData):
    """A set whose missing cells become the mean of their column, not zero."""

    kind = "real, missing cells at their mean"


@lru_cache(maxsize=1)
def _simulated(source: Simulation, trial: int) -> Problem:
    drawn = synthetic(
        n_rows=source.n_rows,
        n_features=source.n_features,
        n_positive=source.n_positive,
        n_negative=source.n_negative,
        correlation=source.correlation,
        scattered=isinstance(source, Scattered),
        rng=rng_for(data=source.name, trial=trial),
    )
    return Problem(
        rows=PreparedRows(drawn.X, drawn.y),
        reference=drawn.coef,
        radius=source.radius,
        n_iter=source.n_iter,
        budget=source.split(source.n_rows),
        norms=(source.radius,),
        notes=("X was divided by its largest absolute value, which is not private (erratum E8).",),
    )


# One at a time: the largest set fills a few hundred megabytes in each worker.
@lru_cache(maxsize=1)
def _prepared(source: RealData) -> Problem:
    table = load(source.name)
    if isinstance(source, MeanFilled):
        means = np.nanmean(table.X, axis=0)
        table = replace(table, X=np.where(np.isnan(table.X), means, table.X))
    X, y, notes = prepare(table, source.preparation)
    found = lasso_reference(X, y, n_support=source.n_support, intercept=source.intercept)
    low, high = found.lowest_norm, found.highest_norm
    norms = f"λ is {RULE}, from {low:.6g} to {high:.6g}: not private (erratum E8)."
    return Problem(
        rows=PreparedRows(X, y),
        reference=found.coef,
        radius=found.radius,
        n_iter=source.n_iter,
        budget=source.split(len(y)),
        notes=(*notes, norms),
        norms=(low, high),
    )


# --- experiments --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Regression:
    """Methods on one data set. `r2_intercept` None leaves the R² among features out.

    With `blocks` there are that many times the trials asked for: as many studies in a row.
    """

    suite: str
    source: Simulation | RealData
    methods: tuple[Method, ...]
    series: tuple[str, ...] = ()
    r2_intercept: bool | None = None
    blocks: int = 1

    @property
    def data(self) -> str:
        """The name of the data set."""
        return self.source.name

    @property
    def real_data(self) -> str | None:
        """The data set that must be on this machine, if any."""
        return self.source.name if isinstance(self.source, RealData) else None

    @property
    def rough_seconds(self) -> float:
        """About how long a trial takes, to guess the time left."""
        facts = published_data()[self.data]
        return 0.1 + 4e-7 * facts.n_rows * facts.n_features

    @property
    def method_names(self) -> tuple[str, ...]:
        """What can be run."""
        return tuple(method.row_name for method in self.methods)

    def trials(self, name: str, wanted: int) -> range:
        """Return the trials to run: a single one without noise on fixed rows."""
        varies = self.real_data is None or self._method(name).random
        return range(self.blocks * wanted if varies else 1)

    def declared(self, name: str) -> dict[str, Any]:
        """Every setting that a row of this method depends on."""
        return {
            "suite": self.suite,
            "source": self.source.declared(),
            "method": name,
            "series": list(self.series),
            "r2_intercept": self.r2_intercept,
        }

    def run(self, trial: int, names: Iterable[str]) -> Iterator[TrialRow]:
        """Run these methods in one trial, all on the same rows."""
        problem = self.source.problem(trial)
        for name in names:
            yield self._row(problem, self._method(name), trial)

    def _row(self, problem: Problem, method: Method, trial: int) -> TrialRow:
        names = _names(self, method.row_name, trial)
        recorder = Recorder(problem, self.series)
        began = time.perf_counter()
        fit = method.fit(problem, noise_for(**names), recorder)
        seconds = time.perf_counter() - began
        settings = {
            **problem.facts(),
            **fit.settings,
            "method": method.label,
            "calibration": method.calibration,
            "note": method.note,
        }
        found = {"metrics": self._metrics(problem, fit, names), "series": recorder.series}
        return _row_of(self, names, **found, settings=settings, seconds=seconds)

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
        if self.r2_intercept is not None:
            anything = rng_for(**names, part="random subset").permutation(chosen)
            for basis, which in ((chosen, ""), (anything, "_at_random")):
                for name, targets in (("unchosen", ~basis), ("missed", truth & ~basis)):
                    found[f"r2_{name}{which}"] = metrics.explained_r2(
                        problem.rows.moments, basis, targets, intercept=self.r2_intercept
                    )
        return found

    def _method(self, name: str) -> Method:
        return next(method for method in self.methods if method.row_name == name)


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
    method_names = (PROCESS,)
    real_data = None
    rough_seconds = 0.1

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

    def declared(self, name: str) -> dict[str, Any]:
        """Every setting that a row depends on."""
        return {"suite": self.suite, "source": self.settings(), "method": name}

    def run(self, trial: int, names: Iterable[str]) -> Iterator[TrialRow]:
        """Simulate once."""
        for name in names:
            names_of_row = _names(self, name, trial)
            began = time.perf_counter()
            mean = self.mean_nonzeros(rng_for(**names_of_row))
            yield _row_of(
                self,
                names_of_row,
                metrics={"nonzeros": mean, **self.expected()},
                series={},
                settings=self.settings(),
                seconds=time.perf_counter() - began,
            )

    def mean_nonzeros(self, rng: np.random.Generator) -> float:
        """Return the mean number of nonzeros at the end, from a zero start."""
        nonzero = np.zeros((self.n_runs, self.n_features), dtype=bool)
        runs = np.arange(self.n_runs)
        for _ in range(self.n_iter):
            nonzero[runs, rng.integers(self.n_features, size=self.n_runs)] = True
            nonzero[runs, rng.integers(self.n_features, size=self.n_runs)] = False
        return float(nonzero.sum(axis=1).mean())

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


def _names(experiment: Experiment, method: str, trial: int) -> dict[str, Any]:
    """Return what the seed of a row depends on."""
    suite, data = experiment.suite, experiment.data
    return {"suite": suite, "data": data, "method": method, "trial": trial}


def _row_of(experiment: Experiment, names: dict[str, Any], **found: Any) -> TrialRow:
    mark = fingerprint(experiment.declared(names["method"]))
    seed = seed_name(**names)
    return TrialRow(**names, **found, seed=seed, versions=versions(), fingerprint=mark)
