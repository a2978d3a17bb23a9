"""The page of a fitted model: one HTML file to show and to hand over, from released values only.

It needs neither network nor scripts. Whatever was not made here, such as feature names, is escaped.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dpscreen import __version__
from dpscreen._core.pictures import environment
from dpscreen._core.words import (
    NOTHING,
    figure,
    how_many,
    plain,
    shortened,
    whole_percent,
    without_towers,
)
from dpscreen.models.explain import limits_of, protection_of, result_of
from dpscreen.models.page.charts import Expected, ExpectedTable, power_chart
from dpscreen.models.page.curves import curves_of
from dpscreen.models.page.effects import MOST_DRAWN, effects_chart, effects_of
from dpscreen.models.page.outcomes import quality_charts
from dpscreen.models.release import (
    Release,
    Summary,
    SummaryRow,
    about_facts,
    marks_of,
    promise_of,
    reading_of,
    summary_of,
)
from dpscreen.privacy import PrivacyStatement

MOST_LISTED = 200
"""Rows of the whole table; what is beyond is in the model file."""

MOST_BYTES = 500_000

REASONS = " (reasons under How to read it)"
"""Where a page has what its footnotes leave out."""


def render_model_page(
    model: Any,
    *,
    schema: Any = None,
    ledger: Mapping[str, Any] | None = None,
    expected: Expected | ExpectedTable | None = None,
    about: Mapping[str, str] | None = None,
    simulated: bool = False,
) -> str:
    """Return the page of a fitted model as text; without `expected`, nothing is said of power.

    A page of `simulated` rows says so at its top.
    """
    schema = getattr(model, "schema", None) if schema is None else schema
    descriptor = schema.to_dict() if hasattr(schema, "to_dict") else schema
    content = _content(model.described(schema=descriptor, about=about), expected)
    content |= {"budget": budget_facts(ledger), "simulated": simulated}
    content["curves"] = curves_of(model, content["changed"])
    return environment(__name__).get_template("model.html").render(content)


# --- what the template gets -----------------------------------------------------------------------


def _content(release: Release, expected: Expected | ExpectedTable | None) -> dict[str, Any]:
    from markupsafe import Markup

    statement, summary = release.statement, summary_of(release)
    simulated = expected if isinstance(expected, Expected) else None
    drawn, scale = effects_of(release, summary), release.scale_of_target
    predicted = "prediction" if scale is None else f"predicted {scale}"
    return {
        "svg": Markup,
        "summary": summary,
        "reading": list(map(in_powers, reading_of(release))),
        "target": shortened(release.target or "the target", 60),
        "statement": statement,
        "warnings": list(_warnings(statement, simulated)),
        "result": in_powers(without_towers(result_of(release))),
        "about": about_facts(release)[1 if release.target else 0 :],
        "headline_facts": headline_facts(release, summary),
        "footnotes": in_powers(marks_of(release, REASONS)[1]),
        "promise": in_powers(promise_of(statement, brief=True)),
        "protection": in_powers(" ".join(protection_of(statement))),
        "limits": limits_of(statement),
        "facts": statement_facts(statement),
        "assumptions": [_about_units(statement), *ASSUMPTIONS],
        "unprotected": unprotected(statement),
        "effects": effects_chart(drawn),
        "drawn": drawn,
        "outcomes": quality_charts(release),
        "is_table": release.table is not None,
        "table": feature_table(release, summary),
        "first": MOST_DRAWN,
        "listed": MOST_LISTED,
        "changed": release.family.words.predictor or predicted,
        "family": release.family,
        "words": release.family.words,
        "expected": simulated,
        "widths": expected if isinstance(expected, ExpectedTable) else None,
        "power": None if simulated is None else power_chart(simulated, release.family),
        "absent": NOT_SIMULATED,
        "made": made_with(release),
        "number": figure,
        "percent": whole_percent,
    }


# --- the table of features ------------------------------------------------------------------------

Column = tuple[str, Callable[[SummaryRow], str]]


@dataclass(frozen=True)
class FeatureTable:
    """Headings, and rows of a name, its footnote letters and cells; the intercept last."""

    headings: list[str]
    rows: list[tuple[str, str, list[str]]]


def feature_table(release: Release, summary: Summary) -> FeatureTable:
    """Return the features: of ratios the ratio comes first, of others the coefficient."""
    scale = summary.scale

    def of(row: SummaryRow) -> bool:
        """Whether the estimate is one of the table, not only of what predicts."""
        return release.table is None or row.refit is not None

    step: Column = ("Step", lambda row: row.step_words)
    effect: Column = (
        scale.heading.capitalize(),
        lambda row: scale.figure(row.effect) if of(row) else NOTHING,
    )
    coefficient: Column = (
        "Coefficient",
        lambda row: figure(row.coefficient) if of(row) else NOTHING,
    )
    interval: list[Column] = []
    error: list[Column] = []
    if summary.has_intervals:
        shown = summary.shown_interval
        interval.append(("95 % interval", lambda row: _span(shown(row))))
        if release.table is None:
            interval.insert(0, ("Refit", lambda row: _some((shown(row) or (None, None))[1])))
        else:
            chances = dict(zip(map(plain, release.names), release.table.pvalues, strict=False))
            interval.append(("p", lambda row: _chance(chances[row.feature])))
            error.append(("Standard error", lambda row: _some(row.standard_error)))
    columns = [coefficient, *interval, *error, step, effect]
    if scale.ratio:
        columns = [effect, *interval, step, coefficient, *error]
    rows = [
        (shortened(row.feature, 60), mark, [show(row) for _, show in columns])
        for row, mark in zip(summary.rows, summary.marks, strict=True)
    ]
    constant = _constant(release, summary)
    last = [constant.get(name, NOTHING) for name, _ in columns]
    return FeatureTable([name for name, _ in columns], [*rows, ("(intercept)", "", last)])


def _constant(release: Release, summary: Summary) -> dict[str, str]:
    """Return the cells of the intercept; its interval where others are of coefficients, too."""
    found, table = {"Coefficient": figure(summary.intercept)}, release.table
    if table is None or not table.given[table.n_features :].any():
        return found
    low, high = table.conf_int(constant=True).iloc[-1]
    span = {} if summary.scale.ratio else {"95 % interval": _span((low, 0.0, high))}
    error, chance = _some(table.bse.iloc[-1]), _chance(table.pvalues.iloc[-1])
    found["Coefficient"] = figure(float(table.params.iloc[-1]))  # which the interval is of
    return found | span | {"Standard error": error, "p": chance}


def _some(value: float | None) -> str:
    return NOTHING if value is None else figure(value)


def _span(ends: tuple[float, float, float] | None) -> str:
    return NOTHING if ends is None else f"{figure(ends[0])} to {figure(ends[2])}"


def _chance(value: float) -> str:
    """Return a p-value, which is never shown as 0."""
    return NOTHING if math.isnan(value) else "< 0.001" if value < 0.001 else f"{value:.3f}"


# --- what it says ---------------------------------------------------------------------------------

Facts = list[tuple[str, str]]

TOO_LITTLE = (
    "Do not rely on this model: the rows are too few for this budget and so many features, and "
    "what is chosen is mostly noise."
)
NOT_SIMULATED = (
    "Not simulated: no number of rows is known, or plans do not simulate fits by this method."
)
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


def in_powers(text: str) -> str:
    """Write small numbers as people do: 10⁻⁶ for 1e-06."""
    signs = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")

    def power(found: re.Match[str]) -> str:
        return f"{found[1]}\u00a0·\u00a010⁻{found[2].translate(signs)}".removeprefix(
            "1\u00a0·\u00a0"
        )

    return re.sub(r"(?<![\w.])([0-9](?:\.[0-9]+)?)e-0*([0-9]+)\b", power, text)


def headline_facts(release: Release, summary: Summary) -> Facts:
    """Return the few numbers that everyone asks for."""
    statement = release.statement
    used = f"{len(summary.rows)} of {release.n_features}"
    measure, value = release.headline
    return [
        *([(f"{measure}, as released", value)] if measure else []),
        ("Features used", used),
        ("Epsilon", f"{statement.epsilon:g}"),
        ("Delta", in_powers(f"{statement.delta:g}")),
    ]


def _warnings(statement: PrivacyStatement, expected: Expected | None) -> Iterator[str]:
    """Say what must not be overlooked."""
    if statement.calibration == "published":
        yield (
            "Not private as stated: the paper's constants were used, with which the stated ε does "
            f"not hold (errata {', '.join(statement.errata)})."
        )
    elif not statement.secure_noise:
        yield (
            "Not private: the noise came from a seed, and whoever knows the seed can remove it. "
            "Fit again without random_state before anything is handed over."
        )
    if expected is not None and not expected.useful:
        yield TOO_LITTLE


# --- the statement --------------------------------------------------------------------------------


def statement_facts(statement: PrivacyStatement) -> Facts:
    """Return what is promised and on what grounds, as names and texts."""
    rho = "" if statement.rho is None else f", ρ = {statement.rho:.6g} in zCDP"
    return [
        ("Promise", in_powers(f"ε = {statement.epsilon:g}, δ = {statement.delta:g}{rho}")),
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


def made_with(release: Release) -> Facts:
    """Say what made the model."""
    return [
        ("Method", release.estimator),
        ("Steps", str(release.n_iter)),
        ("Library", f"{release.statement.library}; this page by dpscreen {__version__}"),
    ]
