"""What a page shows of a model beside what it released: what could be expected, simulated.

Simulated from public numbers alone; of a binary outcome, from the share of yes that the model has
released, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from dpscreen._core.files import write_text
from dpscreen.families import FAMILIES
from dpscreen.models.page import render_model_page
from dpscreen.models.page.charts import Expected, ExpectedTable, PowerRow, WhatIf
from dpscreen.models.private_lasso import DENSE
from dpscreen.planning import power as simulation
from dpscreen.planning.plan import plan_of
from dpscreen.planning.power import Contest
from dpscreen.planning.regression_plan import expected_table, simulated_places
from dpscreen.planning.setting import Setting, around
from dpscreen.privacy import PrivacyStatement

SIMULATED = {
    name: family
    for family in FAMILIES.values()
    for name in (family.sparse.estimator, family.table.estimator)
}
"""Estimators whose fits are simulated."""

SOLVERS = (None, "stagewise", DENSE)
"""Solvers that they choose by themselves."""

RAREST = 0.01
"""The least share of either class that is simulated. Conventional."""


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
    simulated: bool = False,
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
    simulated : bool, default=False
        Whether the model is of simulated rows: its page says so at the top.

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
    more: Any = {"schema": schema, "ledger": ledger, "about": about, "simulated": simulated}
    write_text(target, render_model_page(model, expected=shown, **more))
    return target


def expected_of_model(
    model: Any, n_rows: int | None = None, progress: simulation.Progress | None = None
) -> Expected | ExpectedTable | None:
    """Simulate what could be expected of such a fit; None where its own rules cannot be simulated.

    That is without a number of rows, and for estimators and solvers that plans do not fit.
    """
    release = model.released()
    rows = n_rows or release.n_rows
    family = SIMULATED.get(release.estimator)
    if rows is None or family is None or release.solver not in SOLVERS:
        return None
    statement: PrivacyStatement = release.statement
    # The released mean of outcomes, if it matters and is above the noise.
    rate = None if release.quality is None else release.quality.mean_outcome
    more: Any = {
        "rows_per_unit": statement.rows_per_unit,
        "split": bool(release.inference is not None and release.inference.available),
        "max_features": release.max_features,
    }
    if release.table is not None:
        zero_one, adjusted_for = release.zero_one, release.table.nuisance
        others = [j for j in range(release.n_features) if adjusted_for and j not in adjusted_for]
        interest = simulated_places(zero_one, others)
        more = {"table": True, "levels": int(zero_one.sum()), "interest": interest}
    setting = Setting(
        *(rows, release.n_features, statement.epsilon, statement.delta),
        family=family.name,
        rate=None if rate is None else min(max(rate, RAREST), 1 - RAREST),
        **more,
    )
    return (expected_table if setting.table else expected_of)(setting, progress=progress)


def expected_of(
    setting: Setting,
    *,
    repetitions: int | None = None,
    progress: simulation.Progress | None = None,
) -> Expected:
    """Simulate fits of our selection: no private data is involved, and nothing is spent."""
    split, setting = setting.split, setting.selecting
    sizes, seconds = setting.page_effects, simulation.QUICK_SECONDS
    affordable = simulation.affordable_repetitions(setting, len(sizes), seconds=seconds)
    # At least the cost of 8 Gaussian tables.
    tables = repetitions or max(round(8 / setting.kind.simulated_cost), affordable)
    expected = plan_of(setting, sizes, repetitions=tables, progress=_half(progress, 0))
    here = first_detected(expected.rows, expected.power_wanted)
    return Expected(
        **{name: getattr(setting, name) for name in ("n_rows", "n_features", "n_effects", "rate")},
        **{name: getattr(expected, name) for name in ("finding", "useful", "power_wanted", "rows")},
        advice=expected.words,
        what_if=what_if(setting, here, progress=_half(progress, 1)),
        what_if_effect=here.effect,
        split=split,
    )


def _half(progress: simulation.Progress | None, done: int) -> simulation.Progress | None:
    """Return the progress of the first half of the work, or of the second."""
    return None if progress is None else lambda share: progress((done + share) / 2)


# --- other budgets --------------------------------------------------------------------------------


def first_detected(rows: Sequence[PowerRow], power: float) -> PowerRow:
    """Return the smallest effect that has the power, or the largest of all."""
    return next((row for row in rows if row.power >= power), rows[-1])


def what_if(
    setting: Setting, here: PowerRow, *, progress: simulation.Progress | None = None
) -> tuple[WhatIf, ...]:
    """Simulate other ε, from a tenth of the setting's to ten times, on the rows of `here`.

    One too small to be divided up is left out.
    """
    others = []
    for epsilon in around(setting.epsilon):
        with suppress(ValueError):  # too small to be divided up
            if epsilon != setting.epsilon and setting.at(epsilon):
                others.append(epsilon)
    contest = Contest(setting, (setting.method,), tuple(others), (here.effect,))
    found = simulation.simulated(contest, here.repetitions, "plan/0", progress)
    return nested(setting.epsilon, here, dict(zip(others, found, strict=True)))


def nested(epsilon: float, here: PowerRow, others: Mapping[float, PowerRow]) -> tuple[WhatIf, ...]:
    """Return the power at each ε, which never falls: whoever may spend more may spend less.

    The power at this ε is that of `here`; at larger ones it is a running maximum, at smaller ones a
    running minimum.
    """
    rows = dict(sorted({epsilon: here, **others}.items()))
    powers, at = np.array([row.power for row in rows.values()]), list(rows).index(epsilon)
    powers[: at + 1] = np.minimum.accumulate(powers[at::-1])[::-1]
    powers[at:] = np.maximum.accumulate(powers[at:])
    return tuple(
        WhatIf(one, float(power), row.power_se)
        for (one, row), power in zip(rows.items(), powers, strict=True)
    )
