"""Frank-Wolfe with a clipped residual, as a solver of private models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dpscreen.rows.lattice import ExactPoint
from dpscreen.solvers.base import Path, Solution, Task
from dpscreen.solvers.frank_wolfe import Vertex, frank_wolfe, zero_start
from dpscreen.solvers.selection import Selector


def solve_frank_wolfe(task: Task) -> Solution:
    """Run clipped DP-FW; the constant is one more candidate, inside the ball (Lemma 1)."""
    n_iter, n_candidates = task.n_steps, task.design.n_features
    radius = task.choices.radius or task.first_step(n_iter) * (n_iter + 1) / 2
    selector = Selector(
        task.spending,
        task.candidates,
        task.spending.remaining / n_iter,
        purpose="Frank-Wolfe step",
        limit=task.choices.max_features,
        constants=range(task.n_features, n_candidates),
    )
    selector.clip_at(task.clip(task.deviation))
    chosen: list[Vertex] = []

    def choose(point: ExactPoint) -> Vertex:
        chosen.append(selector.choose(point))
        return chosen[-1]

    start = zero_start(n_candidates)
    weights = frank_wolfe(task.design, start, radius=radius, n_iter=n_iter, choose=choose)
    path = replace(vertex_path(chosen, radius), n_candidates=len(task.candidates))
    return Solution(weights, n_iter, path, task.deviation)


def vertex_path(chosen: Sequence[Vertex], radius: float) -> Path:
    """Return Frank-Wolfe's path as the last iterate weighs it: 2λ(t+1)/((T+1)(T+2)) for step t."""
    n_iter = len(chosen)
    steps = 2 * radius * np.arange(2, n_iter + 2) / ((n_iter + 1) * (n_iter + 2))
    features, signs = np.array(chosen, dtype=np.int64).T
    return Path(features, signs, steps)
