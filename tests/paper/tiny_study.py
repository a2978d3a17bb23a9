"""A study small enough for tests: the real code on a few dozen rows.

A module of its own, so that worker processes can import what a job refers to.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpscreen.paper.experiments import Regression, Simulation, UniformProcess
from dpscreen.paper.published import PublishedData
from dpscreen.paper.results import ResultStore
from dpscreen.paper.runner import run
from dpscreen.paper.suites import FIGURE_3, KEPT, all_experiments
from dpscreen.tables.declaration import DataError


class WithR2(Simulation):
    """Simulated rows with the R² that the paper has on real sets alone."""

    r2_intercept = True


def simulation(name="uncorrelated", *, n_rows=120, n_iter=60, radius=3.0, kind=Simulation):
    size = PublishedData(name, n_rows=n_rows, n_features=10, n_iter=n_iter, n_support=3)
    return kind(data=size, radius=radius)


def experiments():
    names = next(one.methods for one in all_experiments() if one.suite == "synthetic")
    return (
        Regression("synthetic", simulation(), names, KEPT),
        Regression("synthetic", simulation("correlated", kind=WithR2), names, KEPT),
        Regression("adp", simulation(), (*FIGURE_3, "np-fw"), (*KEPT, "wolfe_gap")),
        UniformProcess(8, 40, n_runs=20),
    )


@dataclass(frozen=True)
class Disturbed(UniformProcess):
    """The process of Theorem 2, and something that happens before it."""

    before: str = "dawdle"

    def run(self, trial, names):
        globals()[self.before]()
        yield from super().run(trial, names)


def dawdle():
    """Take long enough to be interrupted; leave a trace of the process that runs it."""
    Path(os.environ["DAWDLERS"], str(os.getpid())).touch()
    time.sleep(0.1)


def fail():
    raise RuntimeError("the method broke")


def vanish():
    os._exit(3)


def lack_data():
    raise DataError("housing is damaged")


def content(rows):
    """Everything in the rows that must not depend on how they were computed."""
    return {
        row.key: (row.seed, _plain(row.metrics), _plain(row.series), row.settings, row.fingerprint)
        for row in rows
    }


def _plain(values):
    return {name: np.asarray(value).tobytes() for name, value in values.items()}


def run_slowly(store):
    """Run eight trials, two at a time."""
    run(store=store, trials=8, jobs=2, experiments=(Disturbed(2, 1),))


if __name__ == "__main__":
    run_slowly(ResultStore(sys.argv[1]))
