"""The page of a fitted model: one HTML file to show and to hand over, from released values only.

It needs neither network nor scripts. Whatever was not made here, such as feature names, is escaped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dpscreen._core.numbers import figure, whole_percent
from dpscreen._core.pictures import environment, template_text
from dpscreen._core.words import shortened
from dpscreen.models.expected import Expected
from dpscreen.models.page import words
from dpscreen.models.page.charts import MOST_DRAWN, effects_chart, power_chart, what_if_chart
from dpscreen.models.page.words import ModelView, view

if TYPE_CHECKING:
    from dpscreen.privacy import PrivacyStatement

MOST_LISTED = 200
"""Rows of the table; what is beyond is in the model file."""

MOST_BYTES = 500_000


def render_model_page(
    model: Any,
    *,
    schema: Any = None,
    ledger: Mapping[str, Any] | None = None,
    expected: Expected | None = None,
) -> str:
    """Return the page of a fitted model as text; without `expected`, nothing is said of power."""
    schema = getattr(model, "schema", None) if schema is None else schema
    shown = view(model, target=words.target_name(schema))
    content = _content(model, shown, expected) | {"budget": words.budget_facts(ledger)}
    return environment(__name__).get_template("model.html").render(content)


def _doubts(expected: Expected | None) -> list[str]:
    """Warn where the simulation says that there was too little to find anything."""
    useful = expected is None or expected.useful
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
        "power": None if expected is None else power_chart(expected),
        "what_if": None if expected is None else what_if_chart(expected.what_if, statement.epsilon),
        "made": words.made_with(model, shown),
        "number": figure,
        "percent": whole_percent,
        "short": shortened,
    }
