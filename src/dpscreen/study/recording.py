"""Curves over the iterations: what the figures plot, thinned to a couple of hundred points."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpscreen.regression import wolfe_gap
from dpscreen.regression.design import Position
from dpscreen.study.problem import Problem

MOST_POINTS = 200
DIGITS = 6


class Recorder:
    """Watches a run and keeps the wanted curves at evenly spread iterations.

    mse          ‖Xw − y‖²/n
    kept_true    fraction of the reference's nonzeros that are nonzero
    kept_false   fraction of the reference's zeros that are nonzero
    wolfe_gap    (wᵀS + λ‖S‖∞)/n
    """

    def __init__(self, problem: Problem, wanted: Sequence[str]) -> None:
        self._problem = problem
        self._wanted = wanted
        self._curves: dict[str, list[float]] = {name: [] for name in ("iteration", *wanted)}

    def watch_until(self, n_iter: int) -> Watcher:
        """Return the callback for a run of this many iterations."""
        return Watcher(self, watched_iterations(n_iter) if self._wanted else frozenset())

    def note(self, t: int, point: Position) -> None:
        """Append one point to every curve."""
        self._curves["iteration"].append(t)
        for name in self._wanted:
            value = getattr(self, f"_{name}")(point)
            self._curves[name].append(float(f"{value:.{DIGITS}g}"))

    @property
    def series(self) -> dict[str, list[float]]:
        """The curves with their iterations; empty if nothing was watched."""
        return self._curves if self._curves["iteration"] else {}

    def _mse(self, point: Position) -> float:
        return self._problem.mean_squared_error(point.weights)

    def _kept_true(self, point: Position) -> float:
        return float(np.mean(point.weights[self._problem.support] != 0))

    def _kept_false(self, point: Position) -> float:
        return float(np.mean(point.weights[~self._problem.support] != 0))

    def _wolfe_gap(self, point: Position) -> float:
        gradient = self._problem.design.at(point.weights).gradient()
        slope = float(point.weights @ gradient)
        gap = wolfe_gap(slope, gradient, radius=self._problem.radius)
        return gap / self._problem.design.n_rows


class Watcher:
    """The callback of one run."""

    def __init__(self, recorder: Recorder, iterations: frozenset[int]) -> None:
        self._recorder = recorder
        self._iterations = iterations

    def __call__(self, t: int, point: Position) -> None:
        """Note the iterate if its iteration is one of those kept."""
        if t in self._iterations:
            self._recorder.note(t, point)


def watched_iterations(n_iter: int) -> frozenset[int]:
    """Return at most `MOST_POINTS` iterations from 1 to n_iter, both ends among them."""
    spread = np.linspace(1, n_iter, min(n_iter, MOST_POINTS))
    return frozenset(int(t) for t in np.rint(spread))
