"""The page: one HTML file that needs nothing else, neither network nor scripts."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any

from dpscreen.report.figures import COLOURS, DASHES
from dpscreen.report.paper_tables import FEWEST
from dpscreen.report.verdicts import verdict
from dpscreen.study.compare import RELATIVE_TOLERANCE, STANDARD_ERRORS, TOLERANCE
from dpscreen.study.published import label

if TYPE_CHECKING:
    from jinja2 import Environment

    from dpscreen.report.study import Report

ORDER = ("table1", "figure1", "table2", "r2", "figure2", "table3", "figure3", "figure4",
         "table4", "table5")  # fmt: skip


def render(report: Report) -> str:
    """Return the page. Whatever comes from rows is escaped; only our own SVG is taken as it is."""
    return _environment().get_template("study.html").render(_content(report))


def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    return Environment(
        loader=FunctionLoader(_template),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _template(name: str) -> str:
    return files("dpscreen.report").joinpath("templates", name).read_text(encoding="utf-8")


def _content(report: Report) -> dict[str, Any]:
    from markupsafe import Markup

    shown = {grid.key: grid for grid in report.grids}
    drawn = {figure.key: figure for figure in report.figures}
    return {
        "report": report,
        "css": Markup(_template("study.css")),
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
