"""The page: one HTML file that needs nothing else, neither network nor scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpscreen.report.canvas import COLOURS
from dpscreen.report.figures import DASHES
from dpscreen.report.jinja import environment, template_text
from dpscreen.report.paper_tables import FEWEST
from dpscreen.report.verdicts import verdict
from dpscreen.study.compare import RELATIVE_TOLERANCE, STANDARD_ERRORS, TOLERANCE
from dpscreen.study.published import label

if TYPE_CHECKING:
    from dpscreen.report.study import Report

ORDER = ("table1", "figure1", "table2", "r2", "figure2", "table3", "figure3", "figure4",
         "table4", "table5")  # fmt: skip


def render(report: Report) -> str:
    """Return the page. Whatever comes from rows is escaped; only our own SVG is taken as it is."""
    return environment().get_template("study.html").render(_content(report))


def _content(report: Report) -> dict[str, Any]:
    from markupsafe import Markup

    shown = {grid.key: grid for grid in report.grids}
    drawn = {figure.key: figure for figure in report.figures}
    return {
        "report": report,
        "css": Markup(template_text("study.css")),
        "parts": [(key, shown.get(key), drawn.get(key)) for key in ORDER],
        "swatches": _swatches(),
        "verdict": verdict,
        "label": label,
        "rule": {
            "errors": f"{STANDARD_ERRORS:g}",
            "fixed": f"{TOLERANCE:g}",
            "relative": f"{RELATIVE_TOLERANCE:.0%}",
        },
        "fewest": FEWEST,
        "svg": Markup,
    }


def _swatches() -> list[list[str]]:
    """Return the CSS of every colour and dash pattern, for the legends."""
    patterns = [" ".join(f"{length * 1.6:g}" for length in dashes) for dashes in DASHES]
    return [
        [f"stroke: var(--c{colour}); stroke-dasharray: {pattern or 'none'}" for pattern in patterns]
        for colour in range(len(COLOURS))
    ]
