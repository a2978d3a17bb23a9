"""Theorem 2 by simulation: every round makes one coordinate nonzero and then zeroes one.

Both are uniform, which is what RNM-Screen comes down to when its noise drowns its scores.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dpscreen.study import metrics


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

    def simulate(self, rng: np.random.Generator) -> float:
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
