"""The page of a fitted model: one HTML file to show and to hand over, from released values only.

It needs neither network nor scripts. Whatever was not made here, such as feature names, is escaped.
The text that does not depend on the model is in the template.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from dpscreen import __version__
from dpscreen._core.pictures import environment
from dpscreen._core.words import (
    NOTHING,
    figure,
    how_many,
    shortened,
    whole_percent,
    without_towers,
)
from dpscreen.models.explain import sentences
from dpscreen.models.page.charts import Expected, ExpectedTable, power_chart
from dpscreen.models.page.curves import curves_of
from dpscreen.models.page.effects import MOST_DRAWN, effects_chart, effects_of
from dpscreen.models.page.outcomes import quality_charts
from dpscreen.models.release import Release, about_facts, promise_of
from dpscreen.models.summary import Summary, marks_of, summary_of

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
    from markupsafe import Markup

    schema = getattr(model, "schema", None) if schema is None else schema
    descriptor = schema.to_dict() if hasattr(schema, "to_dict") else schema
    release = model.described(schema=descriptor, about=about)
    summary, family, scale = summary_of(release), release.family, release.scale_of_target
    changed = family.words.predictor or ("prediction" if scale is None else f"predicted {scale}")
    powers = expected if isinstance(expected, Expected) else None
    drawn = effects_of(release, summary)
    pages = environment(__name__)
    pages.filters |= {
        "powers": in_powers,
        "number": figure,
        "percent": whole_percent,
        "rows": lambda many: how_many(many, "row"),
        "sentence": lambda text: f"{text[:1].upper()}{text[1:]}.",
        "short": shortened,
    }
    return pages.get_template("model.html").render(
        svg=Markup,
        version=__version__,
        release=release,
        statement=release.statement,
        summary=summary,
        family=family,
        words=family.words,
        target=shortened(release.target or "the target", 60),
        result=without_towers(" ".join(sentences(release, "result"))),
        about=about_facts(release)[1 if release.target else 0 :],
        reading=sentences(release, "reading"),
        footnotes=in_powers(marks_of(release, REASONS)[1]),
        promise=promise_of(release.statement, brief=True),
        protection=" ".join(sentences(release, "protection")),
        limits=" ".join(sentences(release, "limits")),
        changed=changed,
        drawn=drawn,
        effects=effects_chart(drawn),
        curves=curves_of(model, changed),
        outcomes=quality_charts(release),
        table=feature_table(release, summary),
        first=MOST_DRAWN,
        listed=MOST_LISTED,
        expected=powers,
        power=None if powers is None else power_chart(powers, family),
        widths=expected if isinstance(expected, ExpectedTable) else None,
        ledger=ledger,
        simulated=simulated,
    )


# --- the table of features ------------------------------------------------------------------------

Cells = list[tuple[str, str, dict[str, str]]]
"""Rows of a name, its footnote letters, and cells by their headings."""


def feature_table(release: Release, summary: Summary) -> tuple[list[str], Cells]:
    """Return headings, and the features with the intercept last.

    Of ratios the ratio comes first, of others the coefficient.
    """
    table, scale = release.table, release.scale_of_effects
    of_effects = scale.heading.capitalize()
    headings = ["Coefficient", "Step", of_effects]
    if scale.ratio:
        headings = [of_effects, "Step", "Coefficient"]
    if summary.has_intervals:
        headings[1:1] = ["Refit", "95 % interval"] if table is None else ["95 % interval", "p"]
        if table is not None:
            headings.insert(len(headings) if scale.ratio else 3, "Standard error")
    rows: Cells = []
    for j, row in zip(release.selected, summary.rows, strict=True):
        low, refit, high = summary.shown_interval(row) or (math.nan,) * 3
        own = table is None or row.refit is not None  # else it serves predictions alone
        cells = {
            "Coefficient": figure(row.coefficient) if own else NOTHING,
            "Step": row.step_words,
            of_effects: scale.figure(row.effect) if own else NOTHING,
            "Refit": _some(refit),
            "95 % interval": _span(low, high),
            "p": NOTHING if table is None else _probability(table.pvalues.iloc[j]),
            "Standard error": _some(row.standard_error or math.nan),
        }
        rows.append((shortened(row.feature, 60), summary.marks.get(j, ""), cells))
    constant = {"Coefficient": figure(release.intercept)}
    if table is not None and table.given[table.n_features :].any():
        low, high = table.conf_int().iloc[-1]
        constant |= {
            "Coefficient": figure(float(table.params.iloc[-1])),  # which the interval is of
            "95 % interval": NOTHING if scale.ratio else _span(low, high),
            "Standard error": _some(table.bse.iloc[-1]),
            "p": _probability(table.pvalues.iloc[-1]),
        }
    last = {name: constant.get(name, NOTHING) for name in headings}
    return headings, [*rows, ("(intercept)", "", last)]


def _some(value: float) -> str:
    return NOTHING if math.isnan(value) else figure(value)


def _span(low: float, high: float) -> str:
    return NOTHING if math.isnan(low) else f"{figure(low)} to {figure(high)}"


def _probability(value: float) -> str:
    """Return a p-value, which is never shown as 0."""
    return NOTHING if math.isnan(value) else "< 0.001" if value < 0.001 else f"{value:.3f}"


def in_powers(text: str) -> str:
    """Write small numbers as people do: 10⁻⁶ for 1e-06."""
    signs = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")

    def power(found: re.Match[str]) -> str:
        return f"{found[1]}\u00a0·\u00a010⁻{found[2].translate(signs)}".removeprefix(
            "1\u00a0·\u00a0"
        )

    return re.sub(r"(?<![\w.])([0-9](?:\.[0-9]+)?)e-0*([0-9]+)\b", power, text)
