"""Free screening: a stagewise path that screens by its own released selections.

Halfway through the path, features that were never selected stop being candidates, provided that at
most two thirds of the steps so far selected a new feature. The rule sees released selections and
public numbers only, so it is charged nothing (docs/privacy.md, Lemma 7).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpscreen._core.arrays import Mask
from dpscreen.rows.lattice import ExactPoint
from dpscreen.solvers import rules
from dpscreen.solvers.base import Path, Solution, Task
from dpscreen.solvers.frank_wolfe import Vertex
from dpscreen.solvers.stagewise import StagewiseRun, solve_stagewise

FREE_SCREEN = "free-screen"


class ScreeningRun(StagewiseRun):
    """A stagewise run with one screening step."""

    def choose(self, t: int, point: ExactPoint) -> Vertex:
        """Screen when it is due, then choose among the features that are left."""
        due = t == rules.screening_step(self._plan.n_iter)
        if due and rules.screens(self._admission.n_entered, t):
            self._admission.close()
        return super().choose(t, point)


def solve_free_screen(task: Task) -> Solution:
    """Take a stagewise path that is screened halfway, then refit."""
    return solve_stagewise(task, ScreeningRun)


def before_screening(path: Path) -> Path:
    """Return the steps to which all candidates were offered, whatever the rule decided."""
    n = rules.screening_step(len(path))
    return replace(path, features=path.features[:n], signs=path.signs[:n], steps=path.steps[:n])


def screened(path: Path | None, n_features: int) -> Mask:
    """Return which features the path screened, from its first half alone."""
    if path is None:
        return np.zeros(n_features, dtype=bool)
    first = before_screening(path)
    selected = np.unique(first.features)
    found = np.full(n_features, rules.screens(len(selected), len(first)))
    found[selected] = False
    return found
