"""The page of a fitted model: one HTML file to show and to hand over, from released values only.

It needs neither network nor scripts. Whatever was not made here, such as feature names, is escaped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpscreen._core.files import write_text
from dpscreen._core.numbers import figure, p_value, whole_percent
from dpscreen._core.pictures import environment, template_text
from dpscreen._core.words import shortened
from dpscreen.models.page import words
from dpscreen.models.page.charts import MOST_DRAWN, effects_chart, power_chart, what_if_chart
from dpscreen.models.page.words import ModelView, view
from dpscreen.planning import power as simulation
from dpscreen.planning.plan import Plan, plan, setting_of
from dpscreen.planning.what_if import WhatIf, epsilon_of_one_row, what_if

if TYPE_CHECKING:
    from dpscreen.privacy import PrivacyStatement

MOST_LISTED = 200
"""Rows of the table; what is beyond is in the model file."""

MOST_BYTES = 500_000
SECONDS = 1.5


@dataclass(frozen=True)
class Expected:
    """What could be expected of a fit, simulated from public numbers.

    `split` tells that one half of the rows selects, which is then what was simulated.
    """

    plan: Plan
    what_if: tuple[WhatIf, ...]
    split: bool = False


def expected_of(
    *,
    n_rows: int,
    n_features: int,
    epsilon: float,
    delta: float,
    rows_per_unit: int = 1,
    split: bool = False,
    repetitions: int | None = None,
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
    )
    others = what_if(
        replace(planned.setting, epsilon=epsilon),
        rows_per_unit=rows_per_unit,
        repetitions=repetitions,
    )
    return Expected(planned, others, split)


def _affordable(n_rows: int, n_features: int, epsilon: float, delta: float) -> int:
    """Return how many simulations of each size a page may take: fewer than a plan by itself."""
    setting = setting_of(n_rows, n_features, epsilon, delta)
    sizes = len(simulation.default_effects(setting))
    return simulation.affordable_repetitions(setting, sizes, seconds=SECONDS)


def write_model_page(
    model: Any,
    path: str | Path,
    *,
    schema: Any = None,
    ledger: Mapping[str, Any] | None = None,
    n_rows: int | None = None,
    expected: Expected | None = None,
) -> Path:
    """Write a fitted model's page, whole or not at all.

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
    """
    target = Path(path)
    text = render_model_page(model, schema=schema, ledger=ledger, n_rows=n_rows, expected=expected)
    write_text(target, text)
    return target


def render_model_page(
    model: Any,
    *,
    schema: Any = None,
    ledger: Mapping[str, Any] | None = None,
    n_rows: int | None = None,
    expected: Expected | None = None,
) -> str:
    """Return the page as text; see `write_model_page`."""
    schema = getattr(model, "schema", None) if schema is None else schema
    if expected is None:
        expected = _expected_of_model(model, n_rows)
    shown = view(model, target=words.target_name(schema))
    content = _content(model, shown, expected) | {"budget": words.budget_facts(ledger)}
    return environment(__name__).get_template("model.html").render(content)


# --- what to expect -------------------------------------------------------------------------------


def _expected_of_model(model: Any, n_rows: int | None) -> Expected | None:
    rows = n_rows or getattr(model, "n_rows_", None)
    if rows is None:
        return None
    statement: PrivacyStatement = model.privacy_
    return expected_of(
        n_rows=rows,
        n_features=int(model.n_features_in_),
        epsilon=statement.epsilon,
        delta=statement.delta,
        rows_per_unit=statement.rows_per_unit,
        split=bool(getattr(getattr(model, "inference_", None), "available", False)),
    )


def _doubts(expected: Expected | None) -> list[str]:
    """Warn where the simulation says that there was too little to find anything."""
    useful = expected is None or expected.plan.useful
    return [] if useful else ["Do not rely on this model: " + words.TOO_LITTLE]


# --- what the template gets -----------------------------------------------------------------------


def _content(model: Any, shown: ModelView, expected: Expected | None) -> dict[str, Any]:
    from markupsafe import Markup

    statement: PrivacyStatement = model.privacy_
    return {
        "css": Markup(template_text(__name__, "page.css") + template_text(__name__, "model.css")),
        "svg": Markup,
        "view": shown,
        "statement": statement,
        "warnings": [*words.warnings(statement), *_doubts(expected)],
        "headline": words.headline(statement, shown),
        "headline_facts": words.headline_facts(model, shown),
        "paragraphs": words.paragraphs(model),
        "facts": words.statement_facts(statement),
        "assumptions": words.assumptions(statement),
        "unprotected": words.unprotected(statement),
        "effects": effects_chart(shown),
        "listed": shown.lines[:MOST_LISTED],
        "most_drawn": MOST_DRAWN,
        "expected": expected,
        "power": None if expected is None else power_chart(expected.plan),
        "what_if": None if expected is None else what_if_chart(expected.what_if, statement.epsilon),
        "made": words.made_with(model, shown),
        "number": figure,
        "p_value": p_value,
        "percent": whole_percent,
        "short": shortened,
    }
