"""Rows in the study's format, made up: as the paper prints, or near its numbers, and quick."""

from __future__ import annotations

import math
import zlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from dpscreen.paper.agreement import METRIC_IN_ROWS, SUITE_OF_TABLE
from dpscreen.paper.experiments import Experiment, UniformProcess
from dpscreen.paper.published import published_cells, published_data
from dpscreen.paper.results import TrialRow
from dpscreen.paper.suites import all_experiments

R2 = tuple(f"r2_{what}{which}" for what in ("unchosen", "missed") for which in ("", "_at_random"))
TRIALS = 3
POINTS = 40


def made_up_rows(*, trials: int = TRIALS, without: tuple[str, ...] = ()) -> tuple[TrialRow, ...]:
    """Return rows of every experiment but those on the data sets named."""
    return tuple(
        _row(experiment, method, trial)
        for experiment in all_experiments()
        if experiment.data not in without
        for method in experiment.methods
        for trial in range(trials)
    )


def printed_metrics(suite: str, data: str, method: str) -> dict[str, float]:
    return {
        METRIC_IN_ROWS.get(cell.metric, cell.metric): cell.value
        for cell in published_cells()
        if (SUITE_OF_TABLE[cell.table], cell.data, cell.method) == (suite, data, method)
    }


def _row(experiment: Experiment, method: str, trial: int) -> TrialRow:
    rng = np.random.default_rng(
        zlib.crc32(f"{experiment.suite}/{experiment.data}/{method}/{trial}".encode())
    )
    process = isinstance(experiment, UniformProcess)
    made = row(
        experiment.suite,
        experiment.data,
        method,
        trial,
        metrics=_process_metrics(experiment, rng) if process else _metrics(experiment, method, rng),
        series={} if process else dict(_series(rng)),
        settings=_settings(experiment),
    )
    return replace(made, versions={"dpscreen": "0", "numpy": "2", "python": "3"}, seconds=0.5)


def _metrics(experiment: Experiment, method: str, rng: np.random.Generator) -> dict[str, float]:
    names = ("tpr", "fpr", "f1", "density", "mse", "screened", *R2)
    guesses = dict(zip(names, rng.uniform(0.2, 0.6, len(names)).tolist(), strict=True))
    printed = printed_metrics(experiment.suite, experiment.data, method)
    near = {name: value + rng.normal(0, 0.01) for name, value in printed.items()}
    return {**guesses, **near} if method != "dp-fw" else {**guesses, "r2_missed": math.nan}


def _process_metrics(experiment: UniformProcess, rng: np.random.Generator) -> dict[str, float]:
    expected = experiment.expected()
    return {"nonzeros": expected["corrected"] * (1 + rng.normal(0, 0.001)), **expected}


def _series(rng: np.random.Generator) -> Iterator[tuple[str, list[float]]]:
    yield "iteration", [float(t) for t in range(1, POINTS + 1)]
    for name in ("mse", "kept_true", "kept_false", "wolfe_gap"):
        yield name, (rng.uniform(0.1, 1, POINTS)).tolist()


def _settings(experiment: Experiment) -> dict[str, object]:
    if isinstance(experiment, UniformProcess):
        return experiment.settings()
    facts = published_data()[experiment.data]
    return {
        "n_rows": facts.n_rows,
        "n_features": facts.n_features,
        "n_iter": facts.n_iter,
        "radius": 50.0,
        "epsilon": 5.0,
        "delta": 1 / facts.n_rows,
        "screening_shares": [0.02, 0.25],
        "preparation": ["Everything was divided by its maximum: not private (erratum E8)."],
        "rho": 0.5,
        "clip": 1.0,
        "target_bound": 60.0,
        "zero_error": 1.0,
    }


def row(suite, data, method, trial=0, *, metrics=None, series=None, settings=None):
    return TrialRow(
        suite=suite,
        data=data,
        method=method,
        trial=trial,
        seed="",
        metrics=metrics or {},
        series=series or {},
        settings=settings or {},
        versions={},
        fingerprint="",
        seconds=0.0,
    )


def rows_as_printed(trials=4, change=lambda cell, trial: 0.0):
    """Return rows whose metrics are the printed values plus `change`."""
    collected = defaultdict(dict)
    for cell in published_cells():
        for trial in range(trials):
            key = (SUITE_OF_TABLE[cell.table], cell.data, cell.method, trial)
            name = METRIC_IN_ROWS.get(cell.metric, cell.metric)
            collected[key][name] = cell.value + change(cell, trial)
    return [row(*key, metrics=metrics) for key, metrics in collected.items()]
