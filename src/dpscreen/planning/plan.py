"""Before any budget is spent: what a private fit would find, as words, a data frame and a plot."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpscreen._core.pictures import canvas
from dpscreen._core.words import DETECTED, FALSE_RATE, WIDTH, whole_percent
from dpscreen.models import parameters as check
from dpscreen.models.page.charts import PowerRow, within_one
from dpscreen.models.private_lasso import WALK
from dpscreen.planning import power as simulation
from dpscreen.planning.power import MOST_EXPLAINED, MOST_FEATURES, POWER, Scale, Setting
from dpscreen.solvers import rules
from dpscreen.solvers.walk import suits_line

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

USELESS, WEAK, FAIR = 20, 80, 600
SECONDS, QUICK_SECONDS = 3.5, 1.0
"""How long a plan's simulation takes on an idle core, about, and that of a dry run; a busy core
needs three times as much."""

ROWS_SEARCHED, EPSILON_SEARCHED = (20.0, 1e8), (0.01, 50.0)
FOUND, R2, BEST = "#0b6e4f", "#c1440e", "#9aa5b1"


@dataclass(frozen=True)
class Recommended:
    """What PrivateLasso does when nothing is set; `clip` in deviations of the residuals.

    `smallest_coefficient` is the standardised size below which a coefficient is dropped; 0 where
    released numbers will say what is as good as noise.
    """

    solver: str
    n_iter: int
    clip: float
    smallest_coefficient: float
    standardize: str

    @classmethod
    def of(cls, regime: rules.Regime, max_features: int | None = None) -> Recommended:
        """Read the rules."""
        if suits_line(regime):
            parts = rules.walk_parts()
            left = regime.rho * (1 - rules.WALK_GRAM_PART) * float(parts[-1])
            clip, _ = rules.refit_clips(regime, regime.n_features + 1, left)
            return cls(WALK, len(parts), clip, 0.0, "auto")
        return cls(
            solver="stagewise",
            n_iter=rules.path_steps(regime, max_features),
            clip=rules.clip_factor(regime) / rules.GAUSSIAN,
            smallest_coefficient=rules.smallest_weight(regime, deviation=1.0, spread=1.0),
            standardize="auto",
        )

    @property
    def steps(self) -> str:
        """Return how many steps of which kind are taken."""
        kind = "steps along all features" if self.solver == WALK else f"{self.solver} steps"
        return f"{self.n_iter} {kind}"

    @property
    def words(self) -> str:
        """Return what is done, as a sentence."""
        small = f"below {self.smallest_coefficient:.2g} deviations"
        return (
            f"Left to itself, PrivateLasso takes {self.steps}, clips residuals at "
            f"{self.clip:.2g} times their deviation, and drops coefficients "
            f"{small if self.smallest_coefficient else 'that are as good as noise'}."
        )


@dataclass(frozen=True)
class Plan:
    """What to expect of PrivateLasso in one setting, from simulation alone.

    Attributes
    ----------
    setting : Setting
        What was asked.
    rho, signal, counts : float
        The budget in zCDP, M = n√(2ρ)/ln(2d), and Q = n√(ρ/d).
    settings : Recommended
        What the rules would choose.
    rows : tuple of PowerRow
        For each size of effect: power at a false-selection rate of 5 %, selected features without
        effect and held-out R², with standard errors.
    smallest_effect : float or None
        The smallest standardised coefficient detected with `power_wanted`: between two rows of the
        table, or its first. None if even the largest is not.
    """

    setting: Setting
    rho: float
    signal: float
    counts: float
    settings: Recommended
    rows: tuple[PowerRow, ...]
    smallest_effect: float | None
    power_wanted: float

    @property
    def useful(self) -> bool:
        """Whether M is at least 20."""
        return self.signal >= USELESS

    @property
    def words(self) -> str:
        """Say what the regime is, and what to do about it."""
        return " ".join(_regime_words(self))

    @property
    def finding(self) -> str:
        """Say what is detected, and what that means."""
        return _finding_words(self)

    def to_frame(self) -> pd.DataFrame:
        """Return the table as a data frame, one row for each size of effect."""
        import pandas as pd

        return pd.DataFrame([asdict(row) for row in self.rows])

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers and words."""
        derived = {"useful": self.useful, "words": self.words, "finding": self.finding}
        return (
            asdict(self) | derived | {"false_selection_rate": FALSE_RATE, "power_means": DETECTED}
        )

    def plot(self, path: str | Path) -> None:
        """Write power and R² against the size of the effect; the suffix says the format."""
        draw(self, Path(path))

    def __str__(self) -> str:
        setting = self.setting
        head = (
            f"Plan: {setting.n_rows} rows, {setting.n_features} features, epsilon "
            f"{setting.epsilon:g}, delta {setting.delta:g} (rho {self.rho:.4g}, M = "
            f"{self.signal:.3g})"
        )
        told = (head, self.words, self.finding, self.settings.words)
        return "\n".join([*(textwrap.fill(part, WIDTH) for part in told), "", *_table(self)])


def plan(
    n_rows: int,
    n_features: int,
    epsilon: float,
    delta: float,
    *,
    effects: Iterable[float] | None = None,
    n_effects: int | None = None,
    correlation: float = 0.0,
    looseness: float = 1.0,
    power: float = POWER,
    repetitions: int | None = None,
    random_state: int | str = 0,
    seconds: float | None = None,
    progress: simulation.Progress | None = None,
    max_features: int | None = None,
) -> Plan:
    """Say what PrivateLasso would detect, by fitting it to simulated rows: nothing is spent.

    A feature is detected where its coefficient is larger in size than those of 95 % of the features
    without effect, in tables of the same kind. So power is stated at a false-selection rate of 5 %
    for each feature, and more rows or a larger budget do not lower it.

    Parameters
    ----------
    n_rows, n_features, epsilon, delta : int, int, float, float
        The table's size and the budget.
    effects : iterable of float, default=None
        Sizes of effect: coefficients when features and target have variance 1. None: a grid.
    n_effects : int, default=None
        How many features have that coefficient, the others none. None: five, or a quarter of all,
        and no more than `max_features`.
    correlation : float, default=0
        Between neighbouring features; between those k apart, its kth power.
    looseness : float, default=1
        How many times wider than ±3 (features) and ±5 deviations (target) the bounds will be.
    power : float, default=0.8
        Which share of the features with an effect shall be detected.
    repetitions : int, default=None
        Simulated tables for each size. None: as many as a few seconds allow, more where it counts.
    random_state : int or str, default=0
        Seed of the simulation. No private data is involved.
    seconds : float, default=None
        How long the simulation may take on an idle core, about, where `repetitions` is None. None:
        3.5. A shorter one is less exact, as its standard errors tell.
    progress : callable, default=None
        Called now and then with the share of the simulation that is done.
    max_features : int, default=None
        As in `PrivateLasso`.

    Returns
    -------
    Plan
        Print it, or use `to_frame()`, `plot(path)`, `smallest_effect`.

    Examples
    --------
    >>> import dpscreen
    >>> expected = dpscreen.plan(500, 10, epsilon=1, delta=1e-6, effects=[0.1, 0.4], repetitions=5)
    >>> expected.useful
    True
    """
    choices = (n_effects, correlation, looseness, max_features)
    setting = setting_of(n_rows, n_features, epsilon, delta, *choices)
    check.share("power", power)
    sizes = (
        simulation.default_effects(setting) if effects is None else checked_sizes(setting, effects)
    )
    count = repetitions or simulation.affordable_repetitions(
        setting, len(sizes), seconds=seconds or SECONDS
    )
    tick = simulation.ticks(progress, count * len(sizes))
    rows = _simulated(setting, sizes, repetitions, count, random_state, power, tick)
    regime = setting.regime
    return Plan(
        setting=setting,
        rho=regime.rho,
        signal=regime.signal,
        counts=regime.counts(regime.n_features),
        settings=Recommended.of(regime, max_features),
        rows=rows,
        smallest_effect=simulation.crossing(sizes, [row.power for row in rows], power=power),
        power_wanted=power,
    )


@dataclass(frozen=True)
class Needed:
    """The least ε, or the least number of rows, for an effect; None if none in `searched` will do.

    `name` is "epsilon" or "n_rows". About 10 % accurate.
    """

    name: str
    value: float | None
    searched: tuple[float, float]
    effect: float
    power_wanted: float
    setting: Setting

    def __str__(self) -> str:
        aim = (
            f"to detect effects of {self.effect:g} with {whole_percent(self.power_wanted)} power "
            f"at a false-selection rate of {whole_percent(FALSE_RATE)}"
        )
        low, high = self.searched
        what = "epsilon" if self.name == "epsilon" else "rows"
        if self.value is None:
            return f"No {what} up to {high:g} will do {aim}. {self._advice}"
        if self.value <= low:
            amount = f"Epsilon of {low:g}" if self.name == "epsilon" else f"{low:g} rows"
            return f"{amount}, or less, will do {aim}."
        if self.name == "epsilon":
            return f"Epsilon of about {self.value:.2g} is needed {aim} (to about 10 %)."
        return f"About {_round(self.value)} rows are needed {aim} (to about 10 %)."

    @property
    def _advice(self) -> str:
        if self.name == "n_rows":
            return "Use fewer features or a larger epsilon."
        return f"{self.setting.n_rows} rows are too few: sampling error alone hides such effects."


def plan_for(
    effect: float,
    *,
    n_features: int,
    delta: float,
    n_rows: int | None = None,
    epsilon: float | None = None,
    n_effects: int | None = None,
    correlation: float = 0.0,
    looseness: float = 1.0,
    power: float = POWER,
    random_state: int | str = 0,
) -> Needed:
    """Say which ε, or how many rows, an effect of this size needs: give the one, not the other.

    Parameters are those of `plan`. The answer is good to about 10 %: it is read off simulations.
    """
    if (n_rows is None) == (epsilon is None):
        raise ValueError("give n_rows to learn epsilon, or epsilon to learn n_rows: one of them.")
    name, searched = ("n_rows", ROWS_SEARCHED) if n_rows is None else ("epsilon", EPSILON_SEARCHED)
    rows, budget = (1000 if n_rows is None else n_rows), (1.0 if epsilon is None else epsilon)
    setting = setting_of(rows, n_features, budget, delta, n_effects, correlation, looseness)
    (size,) = checked_sizes(setting, [effect])
    value = simulation.search(
        simulation.with_amount(setting, name),
        size,
        low=searched[0],
        high=searched[1],
        power=check.share("power", power),
        seed=random_state,
    )
    return Needed(name, value, searched, size, power, setting)


# --- checks ---------------------------------------------------------------------------------------


def selecting_rows(n_rows: int, *, split: bool) -> int:
    """Return how many rows select: half of them if the other half gives intervals."""
    return max(2, n_rows // 2) if split else n_rows


def setting_of(
    n_rows: int,
    n_features: int,
    epsilon: float,
    delta: float,
    n_effects: int | None = None,
    correlation: float = 0.0,
    looseness: float = 1.0,
    max_features: int | None = None,
) -> Setting:
    """Return what to simulate, or say which number is wrong; parameters are those of `plan`."""
    features = check.whole("n_features", n_features)
    most = min(features, MOST_FEATURES)
    limit = check.optional(check.whole, "max_features", max_features)
    usual = max(1, min(5, most // 4, limit or most))
    count = usual if n_effects is None else check.whole("n_effects", n_effects)
    if count > most:
        raise ValueError(f"n_effects must be at most {most} here; got {n_effects!r}.")
    if not 0 <= correlation < 1:
        raise ValueError(f"correlation must lie in [0, 1); got {correlation!r}.")
    if not 1 <= looseness < math.inf:
        raise ValueError(f"looseness must be finite and at least 1; got {looseness!r}.")
    return Setting(
        max(2, check.whole("n_rows", n_rows)),
        features,
        check.positive("epsilon", epsilon),
        check.share("delta", delta),
        count,
        float(correlation),
        float(looseness),
        limit,
    )


def checked_sizes(setting: Setting, effects: Iterable[float]) -> tuple[float, ...]:
    """Return sizes of effect in order, or say why they cannot be simulated."""
    sizes = tuple(sorted({check.positive("effects", effect) for effect in effects}))
    if not sizes:
        raise ValueError("effects must hold at least one size.")
    if setting.explained(sizes[-1]) > MOST_EXPLAINED:
        raise ValueError(
            f"{setting.n_effects} features with an effect of {sizes[-1]:g} would explain more than "
            f"{MOST_EXPLAINED:.0%} of the target's variance; use smaller effects, or n_effects=1."
        )
    return sizes


def _simulated(
    setting: Setting,
    sizes: tuple[float, ...],
    asked: int | None,
    count: int,
    seed: int | str,
    power: float,
    tick: Callable[[], None],
) -> tuple[PowerRow, ...]:
    told: Any = {"repetitions": count, "seed": seed, "tick": tick}
    if asked is None:
        return simulation.simulated_power_near(setting, sizes, power=power, **told)
    if check.whole("repetitions", asked) < 2:
        raise ValueError("repetitions must be at least 2, to tell how sure the answer is.")
    return simulation.simulated_power(setting, sizes, **told)


# --- words ----------------------------------------------------------------------------------------


def _regime_words(plan: Plan) -> Iterable[str]:
    if plan.signal < USELESS:
        yield "Too little signal: do not expect a useful model."
        yield "More rows, fewer features or a larger epsilon are needed."
    elif plan.signal < WEAK:
        yield "Little signal: only strong effects are detected."
    elif plan.signal < FAIR:
        yield "A fair signal: strong and moderate effects are detected."
    else:
        yield "A strong signal: the table says how small an effect is detected."
    if not rules.can_place(plan.setting.regime, plan.setting.n_features):
        yield "Bounds of single features cannot be tightened, so give bounds that fit."
    if plan.setting.delta * plan.setting.n_rows >= 1:
        yield "Delta is at least 1/n, which is a weak promise: choose it far smaller."


def _finding_words(plan: Plan) -> str:
    wanted, rate = whole_percent(plan.power_wanted), whole_percent(FALSE_RATE)
    at = f"{wanted} power at a false-selection rate of {rate}"
    if plan.smallest_effect is None:
        largest = plan.rows[-1]
        found = (
            f"No effect up to {largest.effect:g} is detected with {at} "
            f"({whole_percent(largest.power)} there)."
        )
    elif plan.smallest_effect == plan.rows[0].effect:
        found = f"Effects of {plan.smallest_effect:g}, or less, are detected with {at}."
    else:
        found = f"The smallest effect detected with {at} is {plan.smallest_effect:.2g}."
    return f"{found} {_chance_words(plan)}"


def _chance_words(plan: Plan) -> str:
    """Say what detected means, and how many features without effect the model selects."""
    others = plan.setting.n_features - plan.setting.n_effects
    if not others:
        return (
            "All features have an effect here, so there is no false-selection rate: every feature "
            "with a coefficient counts as detected."
        )
    false = max(row.false_positives for row in plan.rows)
    return (
        f"{DETECTED} The model itself selects up to {false:.2g} of {others} features without "
        f"effect ({whole_percent(false / others)}): a coefficient alone is no finding."
    )


def _table(plan: Plan) -> Iterable[str]:
    yield "effect  power        without effect  held-out R²     best R²"
    for row in plan.rows:
        yield (
            f"{row.effect:<6g}  {row.power:.2f} ± {row.power_se:.2f}  {row.false_positives:5.1f} ± "
            f"{row.false_positives_se:<6.1f}  {row.r2:6.3f} ± {row.r2_se:.3f}  {row.best_r2:.3f}"
        )
    scale = Scale.of(plan.setting.regime)
    if (scale.n_rows, scale.n_features) != (plan.setting.n_rows, plan.setting.n_features):
        smaller = f"{scale.n_rows} rows and {scale.n_features} features"
        yield f"Simulated with {smaller}, which stand for all (docs/planning.md)."


def _round(value: float) -> int:
    """Return a number of rows with two digits, rounded up."""
    unit = int(10 ** max(0, math.floor(math.log10(value)) - 1))
    return math.ceil(value / unit) * unit


# --- the plot -------------------------------------------------------------------------------------


def draw(plan: Plan, path: Path) -> None:
    """Write two panels: what is found, and how well it predicts."""
    setting = plan.setting
    figure = canvas(9, 4)
    left, right = figure.subplots(1, 2)
    _power_panel(left, plan)
    _r2_panel(right, plan)
    for axes in (left, right):
        axes.set_xscale("log")
        ticks = [row.effect for row in plan.rows]
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks], rotation=45)
        axes.minorticks_off()
        axes.set_xlabel("effect (standardised coefficient)")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(
            frameon=False, fontsize=8, loc="lower left", bbox_to_anchor=(0, 1), ncols=2
        )  # above the axes: no line runs there
    figure.suptitle(
        f"{setting.n_rows} rows, {setting.n_features} features, ε = {setting.epsilon:g}, "
        f"δ = {setting.delta:g}:  M = {plan.signal:.3g}",
        fontsize=11,
    )
    figure.savefig(path, dpi=130)


def _power_panel(axes: Axes, plan: Plan) -> None:
    sizes = [row.effect for row in plan.rows]
    powers, errors = [row.power for row in plan.rows], within_one(plan.rows)
    axes.errorbar(sizes, powers, errors, color=FOUND, marker="o", ms=4, label="power")
    axes.axhline(FALSE_RATE, color=R2, lw=1, ls="--", label="false-selection rate")
    axes.axhline(plan.power_wanted, color=BEST, lw=1)
    if plan.smallest_effect is not None:
        axes.axvline(plan.smallest_effect, color=BEST, lw=1, ls=":")
    axes.set_ylim(-0.03, 1.05)
    axes.set_ylabel("share")


def _r2_panel(axes: Axes, plan: Plan) -> None:
    sizes = [row.effect for row in plan.rows]
    best = [row.best_r2 for row in plan.rows]
    errors = [2 * row.r2_se for row in plan.rows]
    axes.plot(sizes, best, color=BEST, label="true coefficients")
    axes.errorbar(
        sizes, [row.r2 for row in plan.rows], errors, color=FOUND, marker="o", ms=4, label="private"
    )
    axes.axhline(0, color=BEST, lw=0.6)
    axes.set_ylabel("held-out R²")
