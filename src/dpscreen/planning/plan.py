"""Before any budget is spent: what a private fit would find, as words, a data frame and a plot."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpscreen._core.messages import message, unknown
from dpscreen._core.words import DETECTED, FALSE_RATE, WIDTH, whole_percent
from dpscreen.families import FAMILIES, GAUSSIAN
from dpscreen.models.page.charts import PowerRow
from dpscreen.models.parameters import checked
from dpscreen.models.private_lasso import DENSE
from dpscreen.planning import power as simulation
from dpscreen.planning.compare import draw, power_lines
from dpscreen.planning.power import POWER, Scale
from dpscreen.planning.setting import MOST_EXPLAINED, Setting
from dpscreen.solvers import rules
from dpscreen.solvers.engine import ROUNDS, most_columns, residual_clip

if TYPE_CHECKING:
    import pandas as pd

USELESS = 20
"""Signal M below which no useful model is expected. Tuned."""

REGIMES = {600: "strong", 80: "fair", USELESS: "little", 0: "too-little"}
"""What to expect from a signal M of at least so much. Conventional."""
SECONDS = simulation.SECONDS
ROWS_SEARCHED, EPSILON_SEARCHED = (20.0, 1e8), (0.01, 50.0)
"""Where rows and ε are searched for. Conventional."""


@dataclass(frozen=True)
class Recommended:
    """What PrivateLasso does by default; `clip` in standard deviations of the residuals."""

    solver: str
    n_iter: int
    clip: float
    standardize: str

    @classmethod
    def of(cls, regime: rules.Regime, max_features: int | None = None) -> Recommended:
        """Read the rules."""
        if regime.n_features <= most_columns(regime):
            return cls(DENSE, ROUNDS, residual_clip(regime, regime.n_features + 1), "auto")
        return cls(
            solver="stagewise",
            n_iter=rules.path_steps(regime, max_features),
            clip=rules.clip_factor(regime) / rules.GAUSSIAN,
            standardize="auto",
        )

    @property
    def steps(self) -> str:
        """Return how many steps of which kind are taken."""
        kind = "Newton rounds over all features" if self.solver == DENSE else f"{self.solver} steps"
        return f"{self.n_iter} {kind}"


@dataclass(frozen=True)
class Plan:
    """What to expect of a model that selects features, in one setting, from simulation alone.

    Attributes
    ----------
    setting : Setting
        What is simulated.
    rho, signal, counts : float
        The budget in zCDP, M = n√(2ρ)/ln(2d), and Q = n√(ρ/d).
    settings : Recommended or None
        What the rules of PrivateLasso choose; None for another model.
    rows : tuple of PowerRow
        For each size of effect: power at a false-selection rate of 5 %, selected features without
        effect and the score on new rows, with standard errors.
    smallest_effect : float or None
        The smallest effect detected with `power_wanted`: between two rows of the table, or its
        first. None if even the largest is not.
    """

    setting: Setting
    rho: float
    signal: float
    counts: float
    settings: Recommended | None
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
        regime = next(word for least, word in REGIMES.items() if self.signal >= least)
        found = [message(f"signal.{regime}")]
        if self.counts < rules.LEAST_COUNTS:
            found.append(message("plan.close-bounds"))
        if self.setting.delta * self.setting.n_rows >= 1:
            found.append(message("plan.weak-delta"))
        return " ".join(found)

    @property
    def finding(self) -> str:
        """Say what is detected, what that means, and how well it predicts."""
        setting, last, smallest = self.setting, self.rows[-1], self.smallest_effect
        words, measure = setting.kind.words, setting.kind.measure.label
        code = "all" if smallest == self.rows[0].effect else "smallest"
        detected = message(
            f"detected.{code}" if smallest else "detected.none",
            effect=last.effect if smallest is None else smallest,
            unit=f" {words.effect_axis}" * bool(words.increment),
            power=whole_percent(self.power_wanted),
            rate=whole_percent(FALSE_RATE),
            there=whole_percent(last.power),
        )
        others = setting.n_features - setting.n_effects
        false = max(row.false_positives for row in self.rows)
        meaning = message("plan.no-others")
        if others:
            share = whole_percent(false / others)
            meaning = message(
                "plan.others", means=DETECTED, selected=false, others=others, share=share
            )
        scores = {"score": last.quality, "best": last.best_quality}
        quality = message("plan.quality", effect=last.effect, measure=measure, **scores)
        return f"{detected} {meaning} {quality}"

    def to_frame(self) -> pd.DataFrame:
        """Return the table as a data frame, one row for each size of effect."""
        import pandas as pd

        return pd.DataFrame(self._rows())

    def _rows(self) -> tuple[dict[str, float], ...]:
        return tuple(row.to_dict(self.setting.kind.measure.name) for row in self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers and words."""
        return asdict(self) | {
            "rate": self.setting.rate,
            "rows": self._rows(),
            "useful": self.useful,
            "words": self.words,
            "finding": self.finding,
            "false_selection_rate": FALSE_RATE,
            "power_means": DETECTED,
        }

    def plot(self, path: str | Path) -> None:
        """Write the score and power against the size of the effect; the suffix says the format."""
        setting = self.setting
        draw(
            self.rows,
            setting.kind.measure.label,
            f"{setting.shape}, ε = {setting.epsilon:g}, δ = {setting.delta:g}:  M = "
            f"{self.signal:.3g}",
            Path(path),
            against=("effect", f"effect ({setting.kind.words.effect_axis})"),
            marks=(self.power_wanted, self.smallest_effect),
        )

    def __str__(self) -> str:
        setting = self.setting
        head = (
            f"Plan: {setting.shape}, epsilon {setting.epsilon:g}, delta {setting.delta:g} (rho "
            f"{self.rho:.4g}, M = {self.signal:.3g})"
        )
        paragraphs = [head, self.words, self.finding]
        if self.settings is not None:
            paragraphs.append(
                f"With its defaults, PrivateLasso takes {self.settings.steps}, clips residuals at "
                f"{self.settings.clip:.2g} × their standard deviation, and sets coefficients "
                "below the noise to zero."
            )
        whole = (part.replace(" %", "\u00a0%") for part in paragraphs)
        folded = (textwrap.fill(part, WIDTH).replace("\u00a0", " ") for part in whole)
        lines = [*folded, "", *power_lines(self.rows, setting.kind.measure.label, "effect")]
        scale = Scale.of(setting.regime)
        if (scale.n_rows, scale.n_features) != (setting.n_rows, setting.n_features):
            smaller = f"{scale.n_rows} rows and {scale.n_features} features"
            lines.append(f"Simulated with {smaller}, which stand for all.")
        return "\n".join(lines)


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
    rate: float | None = None,
    family: str = GAUSSIAN.name,
    rows_per_unit: int = 1,
) -> Plan:
    """Say what a private model would detect, by fitting it to simulated rows: nothing is spent.

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
        How many times wider than ±3 (features) and ±5 (target) standard deviations bounds will be.
    power : float, default=0.8
        Which share of the features with an effect shall be detected.
    repetitions : int, default=None
        Simulated tables for each size. None: as many as a few seconds allow, more where it counts.
    random_state : int or str, default=0
        Seed of the simulation. No private data is involved.
    seconds : float, default=None
        How long the simulation may take on an idle core, about, where `repetitions` is None. None:
        3.5. A shorter one is less exact, as its standard errors show.
    progress : callable, default=None
        Called now and then with the share of the simulation that is done.
    max_features : int, default=None
        As in `PrivateLasso`.
    rate : float, default=None
        The supposed mean of binary outcomes. None: 0.5.
    family : {"gaussian", "binomial"}, default="gaussian"
        The kind of outcome: PrivateLasso is simulated, or PrivateLogisticLasso. An effect on a
        binary outcome is what one standard deviation of a feature adds to the log-odds.
    rows_per_unit : int, default=1
        As in `PrivateLasso`: the budget is for one unit of at most so many rows.

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
    setting = setting_of(
        *(n_rows, n_features, epsilon, delta),
        n_effects=n_effects,
        correlation=correlation,
        looseness=looseness,
        max_features=max_features,
        rate=rate,
        family=family,
        rows_per_unit=rows_per_unit,
    )
    return plan_of(
        setting,
        setting.usual_effects if effects is None else checked_sizes(setting, effects),
        power=power,
        repetitions=repetitions,
        random_state=random_state,
        seconds=seconds or SECONDS,
        progress=progress,
    )


def plan_of(
    setting: Setting,
    sizes: Sequence[float],
    *,
    power: float = POWER,
    repetitions: int | None = None,
    random_state: int | str = 0,
    seconds: float = SECONDS,
    progress: simulation.Progress | None = None,
) -> Plan:
    """Simulate a setting of `setting_of` with effects of these sizes; as `plan` otherwise."""
    checked("power", power)
    if repetitions is not None and checked("repetitions", repetitions) < 2:
        raise ValueError(message("plan.repetitions"))
    count = repetitions or simulation.affordable_repetitions(setting, len(sizes), seconds=seconds)
    rows = simulation.simulated_power(
        setting,
        sizes,
        repetitions=count,
        seed=random_state,
        near=power if repetitions is None else None,
        progress=progress,
    )
    regime, kind = setting.regime, setting.kind
    return Plan(
        setting=setting,
        rho=regime.rho,
        signal=regime.signal,
        counts=regime.counts(regime.n_features),
        settings=Recommended.of(regime, setting.max_features) if kind.quadratic else None,
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
        (low, high), is_epsilon = self.searched, self.name == "epsilon"
        if self.value is None:
            code = "no-epsilon" if is_epsilon else "no-rows"
        elif self.value <= low:
            code = "least-epsilon" if is_epsilon else "least-rows"
        else:
            code = "epsilon" if is_epsilon else "rows"
        value = self.value or low
        unit = int(10 ** max(0, math.floor(math.log10(value)) - 1))
        return message(
            f"needed.{code}",
            effect=self.effect,
            power=whole_percent(self.power_wanted),
            rate=whole_percent(FALSE_RATE),
            n_rows=self.setting.n_rows,
            epsilon=value,
            rows=math.ceil(value / unit) * unit,  # two digits, rounded up
            least=low,
            most=high,
        )


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
    rows_per_unit: int = 1,
) -> Needed:
    """Say which ε, or how many rows, an effect of this size needs: give the one, not the other.

    Parameters are those of `plan`. The answer is good to about 10 %: it is read off simulations.
    """
    if (n_rows is None) == (epsilon is None):
        raise ValueError(message("plan.one-of-two"))
    name, searched = ("n_rows", ROWS_SEARCHED) if n_rows is None else ("epsilon", EPSILON_SEARCHED)
    choices: Any = {"n_effects": n_effects, "correlation": correlation, "looseness": looseness}
    public = (1000 if n_rows is None else n_rows), n_features
    budget = (1.0 if epsilon is None else epsilon), delta
    setting = setting_of(*public, *budget, rows_per_unit=rows_per_unit, **choices)
    (size,) = checked_sizes(setting, [effect])

    def at(amount: float) -> Setting:
        if n_rows is None:
            return replace(setting, n_rows=math.ceil(amount))
        return replace(setting, epsilon=amount)

    value = simulation.search(
        at,
        size,
        low=searched[0],
        high=searched[1],
        power=checked("power", power),
        seed=random_state,
    )
    return Needed(name, value, searched, size, power, setting)


# --- checks ---------------------------------------------------------------------------------------


def setting_of(
    n_rows: int,
    n_features: int,
    epsilon: float,
    delta: float,
    *,
    n_effects: int | None = None,
    max_features: int | None = None,
    family: str = GAUSSIAN.name,
    rows_per_unit: int = 1,
    **more: Any,
) -> Setting:
    """Return what to simulate, or say which number is wrong; parameters are those of `plan`."""
    if family not in FAMILIES:
        raise ValueError(unknown("family", family, tuple(FAMILIES)))
    return Setting(
        checked("n_rows", n_rows),
        checked("n_features", n_features),
        checked("epsilon", epsilon),
        checked("delta", delta),
        n_effects=0 if n_effects is None else checked("n_effects", n_effects),
        max_features=None if max_features is None else checked("max_features", max_features),
        family=family,
        rows_per_unit=checked("rows_per_unit", rows_per_unit),
        **more,
    )


def checked_sizes(setting: Setting, effects: Iterable[float]) -> tuple[float, ...]:
    """Return sizes of effect in order, or say why they cannot be simulated."""
    sizes = tuple(sorted({checked("effects", effect) for effect in effects}))
    if not sizes:
        raise ValueError(message("plan.no-effects"))
    if setting.kind.simulated_dispersion(setting.explained(sizes[-1])) < 1 - MOST_EXPLAINED:
        most = f"{MOST_EXPLAINED:.0%}"
        public = {"n_effects": setting.n_effects, "effect": sizes[-1], "most": most}
        raise ValueError(message("plan.too-much-explained", **public))
    return sizes
