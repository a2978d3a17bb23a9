"""The page of a fitted model: one HTML file to show and to hand over, from released values only.

It needs neither network nor scripts. Whatever was not made here, such as feature names, is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dpscreen import __version__
from dpscreen._core.pictures import environment, template_text
from dpscreen._core.words import figure, how_many, shortened, whole_percent, without_towers
from dpscreen.models.page.charts import (
    MOST_DRAWN,
    Expected,
    effects_chart,
    power_chart,
    what_if_chart,
)
from dpscreen.models.release import Summary, summary_of
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
    content = _content(model, target_name(schema), expected)
    content["budget"] = budget_facts(ledger)
    return environment(__name__).get_template("model.html").render(content)


# --- what the template gets -----------------------------------------------------------------------


def _content(model: Any, target: str, expected: Expected | None) -> dict[str, Any]:
    from markupsafe import Markup

    statement: PrivacyStatement = model.privacy_
    summary = summary_of(model.released())
    method = summary.title.partition(":")[0]
    return {
        "css": Markup(template_text(__name__, "page.css") + template_text(__name__, "model.css")),
        "svg": Markup,
        "summary": summary,
        "target": target,
        "method": method,
        "statement": statement,
        "warnings": list(_warnings(statement, expected)),
        "headline": headline(model, summary, target),
        "headline_facts": headline_facts(model, summary),
        "paragraphs": paragraphs(model),
        "facts": statement_facts(statement),
        "assumptions": [_about_units(statement), *ASSUMPTIONS],
        "unprotected": unprotected(statement),
        "effects": effects_chart(summary.rows),
        "listed": summary.rows[:MOST_LISTED],
        "most_drawn": MOST_DRAWN,
        "expected": expected,
        "power": None if expected is None else power_chart(expected),
        "what_if": None if expected is None else what_if_chart(expected.what_if, statement.epsilon),
        "made": made_with(model, method),
        "number": figure,
        "percent": whole_percent,
        "short": shortened,
    }


# --- what it says ---------------------------------------------------------------------------------

Facts = list[tuple[str, str]]

TOO_LITTLE = (
    "Do not rely on this model: the rows are too few for this budget and so many features, and "
    "what is chosen is mostly noise."
)
LIMITS = "NOT protected: "
ASSUMPTIONS = (
    "Bounds, levels and all settings were chosen from knowledge, not by looking at these data.",
    "The computer that fitted the model, and those who ran it, are trusted with the rows.",
    "Values beyond the declared bounds were clipped to them; bounds that cut off much of the data "
    "bias the coefficients.",
    "A straight line is a fair summary: coefficients describe, and are not causes.",
)
ONE_ROW = "Every person is in at most one row. Who is in several is protected less, row by row."
UNPROTECTED = (
    "What holds for people in general: it can be applied to anyone, in the data or not.",
    "What other releases from the same data give away: their costs add to this one.",
    "The rows themselves, against those who can read them or the computer's memory.",
)


def target_name(schema: Any) -> str:
    """Return what the schema calls the target."""
    descriptor = schema.to_dict() if hasattr(schema, "to_dict") else schema
    block = descriptor.get("dpscreen") if isinstance(descriptor, Mapping) else None
    name = block.get("target") if isinstance(block, Mapping) else None
    if not isinstance(block, Mapping) or not isinstance(name, str):
        return "the target"
    transforms = block.get("transform") or {}
    word = transforms.get(name, "none") if isinstance(transforms, Mapping) else "none"
    return shortened(name if word == "none" else f"{word}({name})", 60)


def headline(model: Any, summary: Summary, target: str) -> str:
    """Say in one sentence what this is."""
    statement: PrivacyStatement = model.privacy_
    return (
        f"A linear model of {target} with {len(summary.rows)} of "
        f"{how_many(len(model.coef_), 'feature')}, fitted under differential privacy with "
        f"ε = {statement.epsilon:g} and δ = {statement.delta:g}."
    )


def headline_facts(model: Any, summary: Summary) -> Facts:
    """Return the few numbers that everyone asks for."""
    statement: PrivacyStatement = model.privacy_
    rows = getattr(model, "n_rows_", None)
    facts = [
        ("Epsilon", f"{statement.epsilon:g}"),
        ("Delta", f"{statement.delta:g}"),
        ("Features chosen", f"{len(summary.rows)}"),
    ]
    return facts if rows is None else [*facts, ("Rows", f"{rows:,}".replace(",", "\u202f"))]


def _warnings(statement: PrivacyStatement, expected: Expected | None) -> Iterator[str]:
    """Say what must not be overlooked."""
    if statement.calibration == "published":
        yield (
            "Not private as stated: the paper's constants were used, with which the stated ε does "
            f"not hold (errata {', '.join(statement.errata)})."
        )
    elif not statement.secure_noise:
        yield (
            "Not private: the noise came from a seed, and whoever knows the seed can take it away. "
            "Fit again without random_state before anything is handed over."
        )
    if expected is not None and not expected.useful:
        yield TOO_LITTLE


def paragraphs(model: Any) -> list[str]:
    """Return the model's own explanation; what is not protected stands apart."""
    told, sign, limits = without_towers(model.explain()).partition(LIMITS)
    return [told.strip(), sign + limits] if sign else [told]


# --- the statement --------------------------------------------------------------------------------


def statement_facts(statement: PrivacyStatement) -> Facts:
    """Return what is promised and on what grounds, as names and texts."""
    rho = "" if statement.rho is None else f", ρ = {statement.rho:.6g} in zCDP"
    return [
        ("Promise", f"ε = {statement.epsilon:g}, δ = {statement.delta:g}{rho}"),
        ("Does it hold?", "yes" if statement.holds else "no: see the warning at the top"),
        ("Unit", statement.unit),
        ("Neighbouring data sets", statement.neighbours),
        *([("Number of rows", statement.disclosure)] if statement.rows_disclosed else []),
        *statement.grounds().items(),
        ("Library", statement.library),
    ]


# --- assumptions and limits -----------------------------------------------------------------------


def _about_units(statement: PrivacyStatement) -> str:
    """Say what has to be true of whom the rows belong to."""
    most = how_many(statement.rows_per_unit, "row")
    if statement.of_rows:
        return ONE_ROW
    if statement.surplus_left_out:
        return (
            f"Every person is one value of the column of units. Of each value at most {most} "
            f"{'was' if statement.rows_per_unit == 1 else 'were'} used; surplus rows, and rows "
            "without a value, were left out without looking at what else they hold."
        )
    return (
        f"Every unit has at most {most}: whoever prepared the rows made sure of it, as the fit "
        "does not know whose row is whose."
    )


def unprotected(statement: PrivacyStatement) -> list[str]:
    """List what differential privacy does not hide."""
    told = [f"{text[:1].upper()}{text[1:]}." for text in statement.not_covered]
    return [*UNPROTECTED, *told]


# --- budget and origin ----------------------------------------------------------------------------


def budget_facts(ledger: Mapping[str, Any] | None) -> Facts | None:
    """Return what the ledger granted, what is spent and what remains; None without one."""
    if ledger is None:
        return None
    delta = ledger["delta"]
    facts = [("Data set", shortened(str(ledger["dataset"]), 120))]
    for name in ("total", "spent", "remaining"):
        amount = ledger[name]
        title = "Granted" if name == "total" else name.capitalize()
        facts.append((title, f"ε {amount['epsilon']:g} at δ {delta:g} (ρ {amount['rho']:g})"))
    return facts


def made_with(model: Any, method: str) -> Facts:
    """Say what made the model."""
    return [
        ("Method", method),
        ("Steps", str(getattr(model, "n_iter_", "–"))),
        ("Library", f"{model.privacy_.library}; this page by dpscreen {__version__}"),
    ]
