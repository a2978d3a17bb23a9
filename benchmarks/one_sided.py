"""Skewed noise that grows with a feature: `python -m benchmarks one-sided [repetitions]`.

Six designs in which most of what clips cut off pulls along one feature. What is printed for each
budget: how often PrivateOLS's 95 % intervals hold that feature's slope, how often the others', and
the widths of that feature's intervals over those of least squares.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from benchmarks.inference import Cell, Design, Draw, measure, simulated, visits

Array = NDArray[np.float64]
REPETITIONS = "100"
EPSILONS = (0.5, 1.0, 3.0)
SLOPES = (1.0, 0.5, 0.0, -1.0, 0.3)


def beside_gamma(noise: Callable[[np.random.Generator, int], Array]) -> Design:
    """Return a design of 20 000 rows whose noise grows with a skewed column."""

    def drawn(rng: np.random.Generator) -> Draw:
        X = rng.normal(size=(20_000, 5))
        X[:, 1] = rng.gamma(2, 1, 20_000)
        return simulated(X, SLOPES, noise(rng, 20_000) * (0.3 + X[:, 1]))

    return drawn


def beside_normal(rng: np.random.Generator) -> Draw:
    """Exponential noise, the wider the farther a normal column lies from −1."""
    X = rng.normal(size=(20_000, 5))
    noise = rng.exponential(size=20_000) - 1
    return simulated(X, SLOPES, noise * (0.5 + np.abs(X[:, 0] + 1)))


def mixed(rng: np.random.Generator) -> Array:
    """8 000 rows of an age, two shares, a skewed and a normal column."""
    n = 8000
    age, skewed = rng.normal(50, 10, n), rng.exponential(2, n)
    return np.column_stack(
        (age, rng.integers(0, 2, n), skewed, rng.normal(size=n) * 3, rng.random(n) < 0.1)
    ).astype(float)


def gumbel(rng: np.random.Generator) -> Draw:
    """Gumbel noise that grows with the skewed column."""
    X = mixed(rng)
    return simulated(X, SLOPES, rng.gumbel(-0.5772, 1, len(X)) * (1 + X[:, 2]))


def weibull(rng: np.random.Generator) -> Draw:
    """Weibull noise that grows with age."""
    X = mixed(rng)
    return simulated(X, SLOPES, (rng.weibull(0.7, len(X)) - 1.2658) * np.exp(X[:, 0] / 20))


DESIGNS: dict[str, tuple[Design, int]] = {
    "visits": (visits, 2),
    "lognormal": (beside_gamma(lambda rng, n: rng.lognormal(size=n) - np.exp(0.5)), 1),
    "gamma": (beside_gamma(lambda rng, n: rng.gamma(0.5, 1, n) - 0.5), 1),
    "exponential": (beside_normal, 0),
    "gumbel": (gumbel, 2),
    "weibull": (weibull, 0),
}
"""Designs, each with the feature that noise follows."""


def main() -> None:
    """Print a table, and means over designs."""
    times = int(os.environ.get("DPSCREEN_TRIALS", REPETITIONS))
    designs = {name: design for name, (design, _) in DESIGNS.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        *_, found = measure(designs, EPSILONS, times)
    print("\n| noise | ε | held where noise follows | held elsewhere | width over least squares' |")
    print("|---|---|---|---|---|")
    for epsilon in (*EPSILONS, np.inf):
        rows = [followed(found[name][epsilon], j) for name, (_, j) in DESIGNS.items()]
        for name, row in zip((*DESIGNS, "mean"), (*rows, np.mean(rows, axis=0)), strict=True):
            print(f"| {name} | {epsilon:g} | " + " | ".join(f"{one:.3f}" for one in row) + " |")


def followed(cell: Cell, j: int) -> Array:
    """Return how often a feature and the others are held, and the median width of the feature."""
    held = np.array(cell.held)
    others = np.delete(held, j, axis=1)
    return np.array([np.nanmean(held[:, j]), np.nanmean(others), np.nanmedian(cell.wider, 0)[j]])
