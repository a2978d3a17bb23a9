"""Targets of which most rows are zero: `python -m benchmarks heaps [repetitions]`.

Four normal features, two of which say how likely a row is not zero. What is printed for each kind
of target and share of zeros: PrivateLasso's first slope over that of least squares, the median and
the ends of all fits, and how many of PrivateOLS's 95 % intervals miss least squares' slopes. The
features' bounds are twice too wide and off-centre.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.timing import repeats
from dpscreen import PrivateLasso, PrivateOLS

Array = NDArray[np.float64]
Others = Callable[[np.random.Generator, int], Array]

KINDS: dict[str, tuple[Others, tuple[float, float]]] = {
    "0 and 1": (lambda _, n: np.ones(n), (0.0, 1.0)),
    "amounts": (lambda rng, n: rng.gamma(2, 10, n), (0.0, 1000.0)),
    "counts": (lambda rng, n: 1.0 + rng.poisson(1, n), (0.0, 50.0)),
}
SHARES, SIZES, EPSILONS = (0.6, 0.8, 0.9, 0.95), (1000, 10_000), (1.0, 5.0)


def drawn(kind: str, zeros: float, n: int, seed: int) -> tuple[Array, Array, Array]:
    """Return rows, a target with that share of zeros, and least squares' slopes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    likely = np.clip((1 - zeros) * (1 + 0.4 * X[:, 0] - 0.2 * X[:, 1]), 0, 1)
    y = np.where(rng.random(n) < likely, KINDS[kind][0](rng, n), 0.0)
    slopes, *_ = np.linalg.lstsq(np.column_stack((X, np.ones(n))), y, rcond=None)
    return X, y, slopes[:4]


def fits(
    kind: str, zeros: float, n: int, epsilon: float, times: int
) -> Iterator[tuple[float, int]]:
    """Yield a slope over least squares', and how many of four intervals miss."""
    asked: dict[str, Any] = {"epsilon": epsilon, "delta": 1e-6, "feature_bounds": (-8, 12)}
    asked["target_bounds"] = KINDS[kind][1]
    for seed in range(times):
        X, y, slopes = drawn(kind, zeros, n, seed)
        low, high = np.asarray(PrivateOLS(**asked).fit(X, y).conf_int())[:4].T
        missed = np.count_nonzero((low > slopes) | (high < slopes))
        yield PrivateLasso(**asked).fit(X, y).coef_[0] / slopes[0], int(missed)


def main() -> None:
    """Print a table."""
    times = repeats(8)
    print("\n| target | zeros | rows | ε | slope over least squares' | intervals that miss |")
    print("|---|---|---|---|---|---|")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few rows and odd bounds, on purpose
        for kind in KINDS:
            for n, epsilon, zeros in product(SIZES, EPSILONS, SHARES):
                found = list(fits(kind, zeros, n, epsilon, times))
                slopes = np.array([slope for slope, _ in found])
                ends = f"{np.median(slopes):.2g} ({slopes.min():.2g} to {slopes.max():.2g})"
                missed = f"{sum(miss for _, miss in found)} of {4 * times}"
                print(f"| {kind} | {zeros:.0%} | {n} | {epsilon:g} | {ends} | {missed} |")
