"""Screening from released selections: a stagewise path that halfway drops what it never selected.

The rule sees released selections and public numbers only, so it is charged nothing
(docs/theory/mechanisms.md, Lemma 7).
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from dpscreen._core.arrays import Mask
from dpscreen.rows.lattice import ExactPoint
from dpscreen.solvers.base import Path
from dpscreen.solvers.frank_wolfe import Vertex
from dpscreen.solvers.selection import PathRun

MOST_NEW = Fraction(2, 3)
"""Largest share of the steps so far that may have selected a new feature, for screening.

Tuned on settings that the evidence does not use (docs/decisions/2026-11-free-screening.md)."""


def screening_step(n_iter: int) -> int:
    """Return the number of steps after which a path is screened: half of them."""
    return n_iter // 2


def screens(n_selected: int, n_steps: int) -> bool:
    """Whether a path that selected so many distinct features in its first steps is screened."""
    return 0 < n_selected <= MOST_NEW * n_steps


class ScreeningRun(PathRun):
    """A path that halfway drops the candidates that it never selected.

    It does so if at most two thirds of the steps so far selected a new feature. The rule sees
    released selections and public numbers only, so it is charged nothing
    (docs/theory/mechanisms.md, Lemma 7).
    """

    def choose(self, t: int, point: ExactPoint) -> Vertex:
        """Screen when it is due, then select among the features that are left."""
        due = t == screening_step(self._plan.n_iter)
        if due and screens(len(self._selector.entered), t):
            self._selector.close()
        return super().choose(t, point)


FREE_SCREEN = "free-screen"


def before_screening(path: Path) -> Path:
    """Return the steps to which all candidates were offered, whatever the rule decided."""
    n = screening_step(len(path))
    return replace(path, features=path.features[:n], signs=path.signs[:n], steps=path.steps[:n])


def screened(path: Path | None, n_features: int) -> Mask:
    """Return which features the path screened, from its first half alone."""
    if path is None:
        return np.zeros(n_features, dtype=bool)
    first = before_screening(path)
    selected = np.unique(first.features)
    found = np.full(n_features, screens(len(selected), len(first)))
    found[selected] = False
    return found
