"""Theorem 2 by simulation: every round makes one coordinate nonzero and then zeroes one.

Both are uniform, which is what RNM-Screen comes down to when its noise drowns its scores.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dpscreen.paper import metrics
from dpscreen.paper.fitters import Fitted
from dpscreen.paper.methods import Method
from dpscreen.paper.problem import Problem, Recorder
from dpscreen.paper.results import TrialRow, fingerprint, versions
from dpscreen.paper.sources import Source, noise_for, rng_for, seed_name


@dataclass(frozen=True)
class UniformProcess:
    """The process for d coordinates and T rounds, run many times over in each trial."""

    n_features: int
    n_iter: int
    n_runs: int = 400

    @property
    def name(self) -> str:
        """The name of the setting in the rows."""
        return f"d={self.n_features}, T={self.n_iter}"

    def declared(self) -> dict[str, Any]:
        """Every setting, for the fingerprint of a row."""
        return {"source": "uniform process", **asdict(self)}

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


PROCESS = "uniform-process"


@dataclass(frozen=True)
class Regression:
    """Methods on one data set. `r2_intercept` None leaves the R² among features out."""

    suite: str
    source: Source
    methods: tuple[Method, ...]
    series: tuple[str, ...] = ()
    r2_intercept: bool | None = None

    @property
    def data(self) -> str:
        """The name of the data set."""
        return self.source.name

    @property
    def real_data(self) -> str | None:
        """The data set that must be on this machine, if any."""
        return None if self.source.fresh else self.source.name

    @property
    def rough_seconds(self) -> float:
        """About how long a trial takes, to guess the time left."""
        return 0.1 + 4e-7 * self.source.n_cells

    @property
    def method_names(self) -> tuple[str, ...]:
        """What can be run."""
        return tuple(method.row_name for method in self.methods)

    def trials(self, name: str, wanted: int) -> range:
        """Return the trials worth running: without noise and with fixed rows, one tells all."""
        varies = self.source.fresh or self._method(name).random
        return range(wanted if varies else 1)

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
        found = self._metrics(problem, fit)
        return _trial_row(self, names, found, recorder.series, settings, seconds)

    def _metrics(self, problem: Problem, fit: Fitted) -> dict[str, float]:
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
            for name, targets in (("unchosen", ~chosen), ("missed", truth & ~chosen)):
                found[f"r2_{name}"] = metrics.explained_r2(
                    problem.rows.moments, chosen, targets, intercept=self.r2_intercept
                )
        return found

    def _method(self, name: str) -> Method:
        return next(method for method in self.methods if method.row_name == name)


@dataclass(frozen=True)
class Process:
    """The uniform process of Theorem 2 for one d and T."""

    suite: str
    process: UniformProcess

    method_names = (PROCESS,)
    real_data = None
    rough_seconds = 0.1

    @property
    def data(self) -> str:
        """The name of the setting."""
        return self.process.name

    def trials(self, _name: str, wanted: int) -> range:
        """Return all trials: each is random."""
        return range(wanted)

    def declared(self, name: str) -> dict[str, Any]:
        """Every setting that a row depends on."""
        return {"suite": self.suite, "source": self.process.declared(), "method": name}

    def run(self, trial: int, names: Iterable[str]) -> Iterator[TrialRow]:
        """Simulate once."""
        for name in names:
            seeds = _names(self, name, trial)
            began = time.perf_counter()
            nonzeros = self.process.mean_nonzeros(rng_for(**seeds))
            found = {"nonzeros": nonzeros, **self.process.expected()}
            seconds = time.perf_counter() - began
            yield _trial_row(self, seeds, found, {}, self.process.declared(), seconds)


Experiment = Regression | Process


def _names(experiment: Experiment, method: str, trial: int) -> dict[str, Any]:
    """Return what the seed of a row depends on."""
    return {
        "suite": experiment.suite,
        "data": experiment.data,
        "method": method,
        "trial": trial,
    }


def _trial_row(
    experiment: Experiment,
    names: dict[str, Any],
    found: dict[str, float],
    series: dict[str, list[float]],
    settings: dict[str, Any],
    seconds: float,
) -> TrialRow:
    return TrialRow(
        **names,
        seed=seed_name(**names),
        metrics=found,
        series=series,
        settings=settings,
        versions=versions(),
        fingerprint=fingerprint(experiment.declared(names["method"])),
        seconds=seconds,
    )
