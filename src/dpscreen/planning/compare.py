"""Methods and budgets side by side on simulated rows: no private data, so nothing is spent.

The rows are those of `dpscreen.planning.power`, thinned in the same way. All methods and all ε
see the same rows. What a non-private LASSO gives is the standard to measure by.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen._core.pictures import COLOURS, INK, canvas, plain_axes
from dpscreen.planning import power as simulation
from dpscreen.planning.methods import ON_OFFER, FitRequest, estimator
from dpscreen.planning.power import (
    FEATURE_BOUND,
    TARGET_BOUND,
    Scale,
    Scored,
    Setting,
    SimulatedTable,
)
from dpscreen.planning.what_if import TriedBudgets, usual_effect
from dpscreen.privacy import Budget, SeededNoise

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NOT_PRIVATE = "lasso"
"""The non-private LASSO, with the penalty σ√(2 ln(2d)/n)."""

SECONDS = 8.0


@dataclass(frozen=True)
class ContestOutcome:
    """What to expect of a method; ε is None where there is no privacy. Each `_se` is simulated."""

    method: str
    epsilon: float | None
    power: float
    power_se: float
    false_positives: float
    false_positives_se: float
    r2: float
    r2_se: float
    best_r2: float
    repetitions: int


@dataclass(frozen=True)
class Contest(TriedBudgets):
    """Who competes, where, and for which effect."""

    setting: Setting
    epsilons: tuple[float, ...]
    methods: tuple[str, ...] = (*ON_OFFER, NOT_PRIVATE)
    effect: float | None = None
    rows_per_unit: int = 1

    @property
    def size(self) -> float:
        """Return the effect; None stands for features that explain half of the variance."""
        return usual_effect(self.setting) if self.effect is None else self.effect

    @property
    def entries(self) -> tuple[tuple[str, float | None], ...]:
        """List methods with each ε, and the non-private one once."""
        return tuple(
            (method, epsilon)
            for method in self.methods
            for epsilon in ((None,) if method == NOT_PRIVATE else self.epsilons)
        )


def compete(
    contest: Contest,
    *,
    repetitions: int | None = None,
    seed: int | str = 0,
    on_table: Callable[[int, int], None] | None = None,
) -> tuple[ContestOutcome, ...]:
    """Fit every method at every ε to the same simulated tables.

    `on_table` hears how many of the tables are done.
    """
    times = repetitions or simulation.affordable_repetitions(
        contest.setting, 2 * len(contest.entries), seconds=SECONDS
    )
    scores: dict[tuple[str, float | None], list[Scored]] = {one: [] for one in contest.entries}
    for number in range(max(2, times)):
        for entry, score in _one_table(contest, f"compare/{seed}/{number}"):
            scores[entry].append(score)
        if on_table is not None:
            on_table(number + 1, max(2, times))
    return tuple(_outcome(contest, entry, found) for entry, found in scores.items())


def _one_table(contest: Contest, name: str) -> Iterator[tuple[tuple[str, float | None], Scored]]:
    # Thinned rows stand for the same sampling error at every ε, so one table serves for all.
    scale = Scale.of(contest.setting.regime)
    table = simulation.simulated_table(contest.setting, scale, name)
    for method, epsilon in contest.entries:
        if epsilon is None:
            yield (method, epsilon), _lasso(table, contest.size)
        else:
            yield (method, epsilon), _private(contest, table, method, epsilon, name)


def _private(
    contest: Contest, table: SimulatedTable, method: str, epsilon: float, name: str
) -> Scored:
    setting = contest.for_one_row(epsilon)
    scale = replace(table.scale, rho=setting.rho * _same_noise(setting, table.scale))
    order = FitRequest(
        Budget(simulation.thinned_epsilon(setting, scale), setting.delta),
        np.tile((-FEATURE_BOUND, FEATURE_BOUND), (scale.n_features, 1)) * setting.looseness,
        (-TARGET_BOUND * setting.looseness, TARGET_BOUND * setting.looseness),
        n_rows=scale.n_rows,
        random_state=SeededNoise(f"{name}/{method}/{epsilon!r}"),
    )
    model = estimator(method, order)
    simulation.fit_quietly(model, table.X, table.target(contest.size))
    found = getattr(model, "selected_", model.coef_ != 0)
    bounds = getattr(model, "feature_bounds_", _no_bounds(table))
    return table.score(contest.size, model.coef_, model.intercept_, bounds, found)


def _same_noise(setting: Setting, scale: Scale) -> float:
    """Return by how much ρ grows where fewer rows and features stand for all (`Scale`)."""
    regime = setting.regime
    features = math.log(2 * scale.n_features) / math.log(2 * regime.n_features)
    return scale.thinning**2 * features**2


def _lasso(table: SimulatedTable, effect: float) -> Scored:
    from sklearn.linear_model import Lasso

    noise = math.sqrt(table.unexplained(effect))
    penalty = noise * math.sqrt(2 * math.log(2 * table.setting.n_features) / table.setting.n_rows)
    model = Lasso(alpha=penalty).fit(table.X, table.target(effect))
    found = model.coef_ != 0
    return table.score(effect, model.coef_, float(model.intercept_), _no_bounds(table), found)


def _no_bounds(table: SimulatedTable) -> Array:
    """Return the bounds of features that are not clipped where a model predicts."""
    return np.tile((-math.inf, math.inf), (table.scale.n_features, 1))


def _outcome(
    contest: Contest, entry: tuple[str, float | None], scores: Sequence[Scored]
) -> ContestOutcome:
    _, *found = astuple(simulation.power_row(contest.setting, contest.size, scores))
    return ContestOutcome(*entry, *found)


MARKERS = ("o", "s", "D", "^")


def draw(outcomes: Sequence[ContestOutcome], title: str, path: Path) -> None:
    """Write held-out R² and power against ε, one line a method; the suffix says the format."""
    figure = canvas(9, 4)
    left, right = figure.subplots(1, 2)
    methods = list(dict.fromkeys(one.method for one in outcomes))
    for place, method in enumerate(methods):
        mine = [one for one in outcomes if one.method == method]
        look = (COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)], method)
        _draw_line(left, mine, "r2", look)
        _draw_line(right, mine, "power", look)
    left.axhline(outcomes[0].best_r2, color=INK, linewidth=0.8, linestyle=":", label="best")
    left.set_ylabel("held-out R²", color=INK)
    right.set_ylabel("power (5 % false selections)", color=INK)
    right.set_ylim(-0.03, 1.06)
    epsilons = sorted({one.epsilon for one in outcomes if one.epsilon is not None})
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
        axes.minorticks_off()
        axes.set_xlabel("ε", color=INK)
        plain_axes(axes)
    left.legend(frameon=False, fontsize=8)
    figure.suptitle(title, fontsize=11, color=INK)
    figure.savefig(path, dpi=130)


def _draw_line(
    axes: Axes, mine: Sequence[ContestOutcome], what: str, look: tuple[str, str, str]
) -> None:
    colour, marker, label = look
    values = [getattr(one, what) for one in mine]
    if mine[0].epsilon is None:
        axes.axhline(values[0], color=colour, linestyle="--", label=f"{label} (not private)")
        return
    down = np.array([2 * getattr(one, f"{what}_se") for one in mine])
    up = np.minimum(down, np.maximum(1 - np.array(values), 0))  # nothing shown is above 1
    epsilons = [one.epsilon for one in mine if one.epsilon is not None]
    axes.errorbar(
        epsilons, values, (down, up), color=colour, marker=marker, markersize=4, label=label
    )
