"""What to expect of a fit, and what another ε would have given: simulated, for a model's page.

Only public numbers enter: rows, features and budget. A few features explain half of the target's
variance together. What PrivateLasso misses of that half with next to no privacy noise is the error
of sampling (and of its shrinkage); what it misses beyond that, at a given ε, is the error of
privacy. Both are shares of what could be explained, and they add up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpscreen._core.files import write_text
from dpscreen.models.page import render_model_page
from dpscreen.models.page.charts import EXPLAINABLE, Expected, ExpectedTable, PowerRow, WhatIf
from dpscreen.planning import power as simulation
from dpscreen.planning.plan import plan, setting_of
from dpscreen.planning.power import Setting
from dpscreen.planning.regression_plan import UNLIMITED, around, expected_table
from dpscreen.privacy import ZCDP, Budget, PrivacyStatement

SECONDS = 0.3
"""How long each of the two simulations of a page takes on an idle core, about."""


def what_if(
    setting: Setting,
    *,
    epsilons: Iterable[float] | None = None,
    rows_per_unit: int = 1,
    repetitions: int | None = None,
    progress: simulation.Progress | None = None,
) -> tuple[WhatIf, ...]:
    """Simulate other ε, all on the same rows; None: from a tenth of the setting's to ten times.

    ε is for one unit, of at most so many rows. One too small to be divided up is left out.
    """
    chosen = around(setting.epsilon) if epsilons is None else tuple(sorted(set(epsilons)))
    settings = {epsilon: _for_rows(setting, epsilon, rows_per_unit) for epsilon in chosen}
    possible = {epsilon: one for epsilon, one in settings.items() if one is not None}
    effect = usual_effect(setting)
    times = repetitions or simulation.affordable_repetitions(
        setting, len(possible) + 1, seconds=SECONDS
    )

    tick = simulation.ticks(progress, max(2, times) * (len(possible) + 1))

    def simulated(one: Setting) -> PowerRow:
        (row,) = simulation.simulated_power(
            one, [effect], repetitions=max(2, times), seed="what-if", tick=tick
        )
        return row

    ideal = simulated(replace(setting, epsilon=UNLIMITED))
    rows = [simulated(one) for one in possible.values()]
    return _apart(tuple(possible), rows, ideal)


def epsilon_of_one_row(epsilon: float, delta: float, rows_per_unit: int) -> float:
    """Return the ε whose noise, for one row, is that of ε for a unit of several: ρ/k²."""
    if rows_per_unit == 1:
        return epsilon
    rho = ZCDP.within(Budget(epsilon, delta)).rho / rows_per_unit**2
    return ZCDP(rho).epsilon(delta)


class TriedBudgets:
    """What contests share: budgets for a unit of privacy, which is of several rows at most."""

    setting: Setting
    epsilons: tuple[float, ...]
    rows_per_unit: int

    def check(self) -> None:
        """Raise a ValueError where an ε is too small to be divided up."""
        for epsilon in self.epsilons:
            _ = self.for_one_row(epsilon).rho

    def for_one_row(self, epsilon: float) -> Setting:
        """Return the setting at another ε for a unit, in terms of one row."""
        one_row = epsilon_of_one_row(epsilon, self.setting.delta, self.rows_per_unit)
        return replace(self.setting, epsilon=one_row)

    @property
    def promise(self) -> str:
        """Say δ, and what a unit is if it is more than a row."""
        unit = "" if self.rows_per_unit == 1 else f", {self.rows_per_unit} rows a unit"
        return f"delta {self.setting.delta:g}{unit}"


def usual_effect(setting: Setting) -> float:
    """Return the coefficient at which the features explain half of the variance together."""
    return math.sqrt(EXPLAINABLE / setting.explained(1.0))


def _for_rows(setting: Setting, epsilon: float, rows_per_unit: int) -> Setting | None:
    """Return the setting at another ε; None where that is too small."""
    try:
        one_row = epsilon_of_one_row(epsilon, setting.delta, rows_per_unit)
        found = replace(setting, epsilon=one_row)
        return found if found.rho > 0 else None
    except ValueError:
        return None


def _apart(
    epsilons: Sequence[float], rows: Sequence[PowerRow], ideal: PowerRow
) -> tuple[WhatIf, ...]:
    sampling = _missed(ideal)
    return tuple(
        WhatIf(
            epsilon=epsilon,
            power=row.power,
            power_se=row.power_se,
            privacy_error=max(0.0, _missed(row) - sampling),
            sampling_error=sampling,
            error_se=row.r2_se / row.best_r2,
        )
        for epsilon, row in zip(epsilons, rows, strict=True)
    )


def _missed(row: PowerRow) -> float:
    return max(0.0, 1 - row.r2 / row.best_r2)


# --- what a page shows ----------------------------------------------------------------------------


def write_model_page(
    model: Any,
    path: str | Path,
    *,
    schema: Any = None,
    ledger: Mapping[str, Any] | None = None,
    n_rows: int | None = None,
    expected: Expected | ExpectedTable | None = None,
    about: Mapping[str, str] | None = None,
    progress: simulation.Progress | None = None,
) -> Path:
    """Write a fitted model's page: one HTML file to show and to hand over, whole or not at all.

    It needs no network and runs no script: what the model says, with pictures; what is promised,
    what was to be expected and what came, and what is not protected.

    Parameters
    ----------
    model : fitted estimator
        Of this package, fitted here or loaded. Only what it has released is shown.
    path : path-like
        The file to write; one that exists is replaced.
    schema : TableSchema or mapping, default=None
        Names the target and the unit of privacy.
    ledger : mapping, default=None
        `PrivacyLedger.document()`, read after the fit: what remains of the budget.
    n_rows : int, default=None
        The public number of rows, for what to expect. None: the number that the model's rules used.
    expected : Expected, default=None
        What to expect, if it is already simulated. None: it is simulated, in a few seconds.
    about : mapping, default=None
        What to say of the model: "target", "author", "date", "purpose", each optional; beside what
        the model file says.
    progress : callable, default=None
        Called now and then with the share of the simulation that is done.

    Returns
    -------
    Path
        Where it was written.

    Examples
    --------
    >>> import dpscreen, numpy as np, tempfile, pathlib
    >>> X = np.random.default_rng(0).uniform(0, 1, size=(3000, 3))
    >>> model = dpscreen.PrivateLasso(epsilon=1, delta=1e-6, feature_bounds=(0, 1),
    ...                               target_bounds=(0, 2)).fit(X, X[:, 0] + X[:, 1])
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> page = dpscreen.write_model_page(model, folder / "page.html", about={"target": "cost"})
    >>> "A private model of" in page.read_text(encoding="utf-8")
    True
    """
    target = Path(path)
    shown = expected_of_model(model, n_rows, progress) if expected is None else expected
    told: Any = {"schema": schema, "ledger": ledger, "expected": shown, "about": about}
    write_text(target, render_model_page(model, **told))
    return target


def expected_of_model(
    model: Any, n_rows: int | None = None, progress: simulation.Progress | None = None
) -> Expected | ExpectedTable | None:
    """Simulate what could be expected of such a fit; None where nothing can be."""
    release = model.released()
    rows = n_rows or release.n_rows
    if rows is None or release.classes is not None:
        return None
    statement: PrivacyStatement = release.statement
    public: Any = {
        "n_rows": rows,
        "n_features": release.n_features,
        "epsilon": statement.epsilon,
        "delta": statement.delta,
        "progress": progress,
    }
    if release.table is not None:
        return expected_table(**public)
    split = bool(release.inference is not None and release.inference.available)
    return expected_of(rows_per_unit=statement.rows_per_unit, split=split, **public)


def expected_of(
    *,
    n_rows: int,
    n_features: int,
    epsilon: float,
    delta: float,
    rows_per_unit: int = 1,
    split: bool = False,
    repetitions: int | None = None,
    progress: simulation.Progress | None = None,
) -> Expected:
    """Simulate fits of PrivateLasso: no private data is involved, and nothing is spent.

    With `split`, half of the rows select and are simulated. Several rows a unit multiply every
    noise scale, as a smaller ε for one row would.
    """
    one_row = epsilon_of_one_row(epsilon, delta, rows_per_unit)
    rows = max(2, n_rows // 2) if split else n_rows
    planned = plan(
        *(rows, n_features, one_row, delta),
        repetitions=repetitions or _affordable(rows, n_features, one_row, delta),
        progress=None if progress is None else lambda share: progress(share / 2),
    )
    others = what_if(
        replace(planned.setting, epsilon=epsilon),
        rows_per_unit=rows_per_unit,
        repetitions=repetitions,
        progress=None if progress is None else lambda share: progress((1 + share) / 2),
    )
    return Expected(
        n_rows=planned.setting.n_rows,
        n_features=planned.setting.n_features,
        n_effects=planned.setting.n_effects,
        finding=planned.finding,
        advice=planned.words,
        useful=planned.useful,
        power_wanted=planned.power_wanted,
        rows=planned.rows,
        what_if=others,
        split=split,
    )


def _affordable(n_rows: int, n_features: int, epsilon: float, delta: float) -> int:
    """Return how many simulations of each size a page may take: fewer than a plan by itself."""
    setting = setting_of(n_rows, n_features, epsilon, delta)
    sizes = len(simulation.default_effects(setting))
    return simulation.affordable_repetitions(setting, sizes, seconds=SECONDS)
