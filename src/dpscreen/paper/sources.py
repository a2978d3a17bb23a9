"""Seeds from names: what a row is called is all that its random numbers depend on.

So a row can be computed again alone, and is the same whatever ran before or beside it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from dpscreen.paper.data import Preparation, dataset, load, prepare, synthetic
from dpscreen.paper.problem import RULE, PreparedRows, Problem, Split, lasso_reference
from dpscreen.privacy import Budget, SeededNoise, named_seed


def seed_name(**names: str | int) -> str:
    """Join the names into one, in alphabetical order: "data=housing, method=dp-fw, trial=3"."""
    return ", ".join(f"{key}={value}" for key, value in sorted(names.items()))


def rng_for(**names: str | int) -> np.random.Generator:
    """Return the generator that belongs to these names, for data."""
    return np.random.default_rng(named_seed(seed_name(**names)))


def noise_for(**names: str | int) -> SeededNoise:
    """Return the noise that belongs to these names, for mechanisms."""
    return SeededNoise(seed_name(**names))


@dataclass(frozen=True)
class Simulation:
    """The paper's synthetic data; every trial draws rows of its own. δ is 1/n."""

    name: str
    correlation: float
    n_rows: int
    n_features: int
    n_positive: int
    n_negative: int
    n_iter: int
    radius: float
    epsilon: float
    epsilon_share: float
    delta_share: float

    fresh = True

    def problem(self, trial: int) -> Problem:
        """Draw the rows of this trial. They are the same in every suite and for every method."""
        return _simulated(self, trial)

    @property
    def n_cells(self) -> int:
        """The number of entries of X, which running time goes with."""
        return self.n_rows * self.n_features

    def declared(self) -> dict[str, Any]:
        """Every setting, for the fingerprint of a row."""
        return {"source": "simulation", **asdict(self)}


@dataclass(frozen=True)
class RealData:
    """A real set under one preparation; K comes from replication, λ from the LASSO. δ is 1/n."""

    name: str
    preparation: Preparation
    n_support: int
    intercept: bool
    n_iter: int
    epsilon: float
    epsilon_share: float
    delta_share: float

    fresh = False

    def problem(self, _trial: int) -> Problem:
        """Return the prepared set, the same for every trial."""
        return _prepared(self)

    @property
    def n_cells(self) -> int:
        """The number of entries of X, which running time goes with."""
        entry = dataset(self.name)
        return entry.n_rows * entry.n_features

    def declared(self) -> dict[str, Any]:
        """Every setting, for the fingerprint of a row."""
        return {"source": "real", "radius_rule": RULE, **asdict(self)}


Source = Simulation | RealData


@lru_cache(maxsize=1)
def _simulated(source: Simulation, trial: int) -> Problem:
    drawn = synthetic(
        n_rows=source.n_rows,
        n_features=source.n_features,
        n_positive=source.n_positive,
        n_negative=source.n_negative,
        correlation=source.correlation,
        rng=rng_for(data=source.name, trial=trial),
    )
    return Problem(
        rows=PreparedRows(drawn.X, drawn.y),
        reference=drawn.coef,
        radius=source.radius,
        n_iter=source.n_iter,
        budget=_split(source, source.n_rows),
        notes=("X was divided by its largest absolute value, which is not private (erratum E8).",),
    )


# One at a time: the largest set fills a few hundred megabytes in each worker.
@lru_cache(maxsize=1)
def _prepared(source: RealData) -> Problem:
    ready = prepare(load(source.name), source.preparation)
    reference = lasso_reference(
        ready.X, ready.y, n_support=source.n_support, intercept=source.intercept
    )
    return Problem(
        rows=PreparedRows(ready.X, ready.y),
        reference=reference.coef,
        radius=reference.radius,
        n_iter=source.n_iter,
        budget=_split(source, len(ready.y)),
        notes=(
            *ready.notes,
            f"λ is {RULE}, from {reference.lowest_norm:.6g} to {reference.highest_norm:.6g}: "
            "not private (erratum E8).",
        ),
    )


def _split(source: Source, n_rows: int) -> Split:
    return Split(Budget(source.epsilon, 1 / n_rows), source.epsilon_share, source.delta_share)
