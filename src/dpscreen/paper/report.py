"""What the rows were made with and on, and what was done to the data before."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from dpscreen._core.files import write_text
from dpscreen._core.pictures import COLOURS, environment, template_text
from dpscreen._core.words import duration, how_many
from dpscreen.audit import Finding
from dpscreen.paper import tables as small
from dpscreen.paper.agreement import (
    RELATIVE_TOLERANCE,
    STANDARD_ERRORS,
    TOLERANCE,
    CellCheck,
    CellTally,
    RowIndex,
    check_cells,
    check_control,
    check_r2,
    check_theorem2,
    summarise,
)
from dpscreen.paper.claims import ClaimCheck, check_claims
from dpscreen.paper.errata import Erratum, errata
from dpscreen.paper.figures import DASHES, NUMBERS, FigureView, figure_view, write_figure
from dpscreen.paper.grid import (
    Grid,
    claims_to_markdown,
    errata_to_markdown,
    grid_to_markdown,
    verdict,
)
from dpscreen.paper.published import label
from dpscreen.paper.results import TrialRow
from dpscreen.paper.runner import Skipped
from dpscreen.paper.tables import FEWEST, paper_table


class Fact(NamedTuple):
    """A name and a value."""

    name: str
    value: str


def machine_facts(rows: Sequence[TrialRow]) -> tuple[Fact, ...]:
    """List versions as the rows record them, this machine's cores and the time that fits took."""
    names = dict.fromkeys(name for row in rows for name in row.versions)
    versions = [Fact(name, _several(row.versions.get(name) for row in rows)) for name in names]
    fits = sum(row.seconds for row in rows)
    return (
        *versions,
        Fact("cores, where this page was made", str(os.cpu_count() or "unknown")),
        Fact("results", how_many(len(rows), "row")),
        Fact("time spent in fits", duration(fits)),
    )


def _several(values: Iterable[str | None]) -> str:
    return ", ".join(dict.fromkeys(value for value in values if value is not None))


def preparation_notes(rows: Iterable[TrialRow]) -> tuple[str, ...]:
    """List every note on preparation once; those on λ differ by data set and are left out."""
    notes = (note for row in rows for note in row.settings.get("preparation", ()))
    return tuple(dict.fromkeys(str(note) for note in notes if not str(note).startswith("λ is")))


PAGE = "index.html"
FEATURED = (
    "nonprivate-screening",
    "experiment-a",
    "experiment-b",
    "theorem-2-many-iterations",
    "theorem-2-many-features",
    "rnm-discriminates",
)


@dataclass(frozen=True)
class Report:
    """Everything that can be said about some rows. `skipped` are data sets that are not here."""

    rows: Sequence[TrialRow]
    skipped: tuple[Skipped, ...] = ()
    problems: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()

    @cached_property
    def index(self) -> RowIndex:
        """The rows by what they are results of."""
        return RowIndex(self.rows)

    @cached_property
    def cells(self) -> tuple[CellCheck, ...]:
        """Every printed cell beside ours."""
        return check_cells(self.rows)

    @cached_property
    def summary(self) -> CellTally:
        """How many of the counted cells match."""
        return summarise(self.cells)

    @cached_property
    def tally(self) -> Grid:
        """The same, table by table."""
        return small.tally(self.cells)

    @cached_property
    def tables(self) -> tuple[Grid, ...]:
        """Tables 1 to 5."""
        return tuple(self._table(number) for number in small.TABLES)

    @cached_property
    def r2(self) -> Grid | None:
        """Two definitions of R²."""
        return small.r2_table(check_r2(self.rows))

    @cached_property
    def control(self) -> Grid | None:
        """RNM-Screen against random zeroing."""
        return small.control_table(check_control(self.rows))

    @cached_property
    def theorem2(self) -> Grid | None:
        """Theorem 2 by simulation."""
        return small.theorem2_table(check_theorem2(self.rows))

    @cached_property
    def audit(self) -> Grid | None:
        """What an audit certified."""
        return small.audit_table(self.findings)

    @cached_property
    def proven_settings(self) -> Grid | None:
        """What the proven methods ran with."""
        return small.proven_settings(self.index)

    @cached_property
    def grids(self) -> tuple[Grid, ...]:
        """Every table there is."""
        others = (self.r2, self.control, self.theorem2, self.audit, self.proven_settings)
        return (self.tally, *self.tables, *(grid for grid in others if grid is not None))

    @cached_property
    def claims(self) -> tuple[ClaimCheck, ...]:
        """The paper's statements outside the tables, those that this study is about first."""
        found = check_claims(self.rows)
        first = [claim for key in FEATURED for claim in found if claim.key == key]
        return (*first, *(claim for claim in found if claim.key not in FEATURED))

    @cached_property
    def errata(self) -> tuple[Erratum, ...]:
        """E1 to E11."""
        return errata(self.index)

    @cached_property
    def figures(self) -> tuple[FigureView, ...]:
        """Figures 1 to 4 for the page."""
        return tuple(figure_view(number, self.rows) for number in NUMBERS)

    @cached_property
    def facts(self) -> tuple[Fact, ...]:
        """Versions, cores and times."""
        return machine_facts(self.rows)

    @cached_property
    def preparation(self) -> tuple[str, ...]:
        """What was done to the data outside every guarantee."""
        return preparation_notes(self.rows)

    @property
    def most_trials(self) -> int:
        """The number of trials of the method that has most; 0 without rows."""
        return max((row.trial + 1 for row in self.rows), default=0)

    def _table(self, number: int) -> Grid:
        cells = [found for found in self.cells if found.cell.table == number]
        return paper_table(number, cells, self.index)


def write_report(report: Report, directory: Path) -> Path:
    """Write page, Markdown and figures below `directory`; return the page's path."""
    for folder in ("tables", "figures"):
        (directory / folder).mkdir(parents=True, exist_ok=True)
    for number in NUMBERS:
        write_figure(number, report.rows, directory / "figures")
    for name, text in _markdown(report):
        write_text(directory / "tables" / f"{name}.md", text)
    page = directory / PAGE
    write_text(page, render(report))
    return page


def _markdown(report: Report) -> Iterable[tuple[str, str]]:
    for grid in report.grids:
        yield grid.key, grid_to_markdown(grid)
    yield "claims", claims_to_markdown(report.claims)
    yield "errata", errata_to_markdown(report.errata)


def summary_json(report: Report) -> str:
    """Return counts, differing cells, claims and left out data sets as JSON."""
    summary = report.summary
    content = {
        "trials": report.most_trials,
        "counted": summary.counted,
        "matching": summary.matching,
        "not_run": summary.not_run,
        "differing": [
            {
                "table": found.cell.table,
                "data": found.cell.data,
                "method": found.cell.method,
                "metric": found.cell.metric,
                "printed": found.cell.value,
                "here": found.ours.mean if found.ours else None,
                "counted": found.counted,
                "explanation": found.explanation,
            }
            for found in report.cells
            if found.verdict == "differs"
        ],
        "claims": {claim.key: verdict(claim) for claim in report.claims},
        "left_out": [one.data for one in report.skipped],
    }
    return json.dumps(content, indent=2, ensure_ascii=False)


ORDER = ("table1", "figure1", "table2", "r2", "figure2", "table3", "figure3", "figure4",
         "table4", "table5")  # fmt: skip


def render(report: Report) -> str:
    """Return the page. Whatever comes from rows is escaped; only our own SVG is taken as it is."""
    return environment("dpscreen.paper").get_template("study.html").render(_content(report))


def _content(report: Report) -> dict[str, Any]:
    from markupsafe import Markup

    shown = {grid.key: grid for grid in report.grids}
    drawn = {figure.key: figure for figure in report.figures}
    return {
        "report": report,
        "css": Markup(template_text("dpscreen.models.page", "page.css")),
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
