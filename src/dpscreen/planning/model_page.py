"""What a page tells of a model beside what it released: what could be expected, simulated.

Simulated from public numbers alone; of a yes or no, from the share of yes that the model has
released, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpscreen._core.files import write_text
from dpscreen.models.page import render_model_page
from dpscreen.models.page.charts import Expected, ExpectedTable
from dpscreen.models.private_lasso import WALK
from dpscreen.planning import power as simulation
from dpscreen.planning.outcome_plan import expected_of_outcomes
from dpscreen.planning.plan import plan, selecting_rows, setting_of
from dpscreen.planning.regression_plan import HALF, expected_table
from dpscreen.planning.what_if import SECONDS, epsilon_of_one_row, first_detected, what_if
from dpscreen.privacy import PrivacyStatement
from dpscreen.solvers.quality import OutcomeQuality

SIMULATED = (
    ("PrivateLasso", "stagewise"),
    ("PrivateLasso", WALK),
    ("PrivateLogistic", None),
    ("PrivateOLS", None),
    ("PrivateLogit", None),
)
"""Estimators, with the solvers that they choose by themselves, whose fits are simulated."""

RAREST = 0.01
"""The least share of yes, or of no, that is simulated."""


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
    """Simulate what could be expected of such a fit; None where its own rules cannot be simulated.

    That is without a number of rows, and for estimators and solvers that plans do not fit.
    """
    release = model.released()
    rows = n_rows or release.n_rows
    if rows is None or (release.estimator, release.solver) not in SIMULATED:
        return None
    statement: PrivacyStatement = release.statement
    public: Any = {
        "n_rows": rows,
        "n_features": release.n_features,
        "epsilon": statement.epsilon,
        "delta": statement.delta,
        "progress": progress,
    }
    rate = None if release.classes is None else _rate(release.quality)
    if release.table is not None:
        return expected_table(rate=rate, levels=int(release.zero_one.sum()), **public)
    public |= {
        "rows_per_unit": statement.rows_per_unit,
        "split": bool(release.inference is not None and release.inference.available),
        "max_features": release.max_features,
    }
    return expected_of(**public) if rate is None else expected_of_outcomes(rate=rate, **public)


def _rate(quality: object) -> float:
    """Return the share of yes as it was released, where that tells more than noise; or a half."""
    if not isinstance(quality, OutcomeQuality) or quality.auc_reason is not None:
        return HALF
    no, yes = (sum(max(0.0, one) for one in counts) for counts in (quality.no, quality.yes))
    return min(max(yes / (no + yes), RAREST), 1 - RAREST)


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
    max_features: int | None = None,
) -> Expected:
    """Simulate fits of PrivateLasso: no private data is involved, and nothing is spent.

    With `split`, half of the rows select and are simulated. Several rows a unit multiply every
    noise scale, as a smaller ε for one row would.
    """
    one_row = epsilon_of_one_row(epsilon, delta, rows_per_unit)
    numbers = selecting_rows(n_rows, split=split), n_features, one_row, delta
    setting = setting_of(*numbers, max_features=max_features)
    sizes = simulation.default_effects(setting)[::2]  # so each has tables enough
    affordable = simulation.affordable_repetitions(setting, len(sizes), seconds=SECONDS)
    planned = plan(
        *numbers,
        effects=sizes,
        repetitions=repetitions or max(8, affordable),
        max_features=max_features,
        progress=None if progress is None else lambda share: progress(share / 2),
    )
    here = first_detected(planned.rows, planned.power_wanted)
    others = what_if(
        replace(planned.setting, epsilon=epsilon),
        here,
        rows_per_unit=rows_per_unit,
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
        what_if_effect=here.effect,
        split=split,
    )
