"""The study as a whole: from stored rows to the page, the Markdown tables and the figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from dpscreen._core.files import write_text
from dpscreen.audit import Finding
from dpscreen.report import evidence_tables as small
from dpscreen.report.errata import Erratum, errata
from dpscreen.report.figures import NUMBERS, FigureView, figure_view, write_figure
from dpscreen.report.grid import Grid
from dpscreen.report.machine import Fact, machine_facts, preparation_notes
from dpscreen.report.markdown import claims_to_markdown, errata_to_markdown, grid_to_markdown
from dpscreen.report.paper_tables import paper_table
from dpscreen.study.claims import ClaimCheck, check_claims
from dpscreen.study.compare import (
    CellComparison,
    RowIndex,
    Summary,
    compare_cells,
    compare_r2,
    summarise,
)
from dpscreen.study.evidence import compare_control, compare_theorem2
from dpscreen.study.results import TrialRow
from dpscreen.study.runner import Skipped

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
    def comparisons(self) -> tuple[CellComparison, ...]:
        """Every printed cell beside ours."""
        return compare_cells(self.rows)

    @cached_property
    def summary(self) -> Summary:
        """How many of the counted cells match."""
        return summarise(self.comparisons)

    @cached_property
    def tally(self) -> Grid:
        """The same, table by table."""
        return small.tally(self.comparisons)

    @cached_property
    def tables(self) -> tuple[Grid, ...]:
        """Tables 1 to 5."""
        return tuple(self._table(number) for number in small.TABLES)

    @cached_property
    def r2(self) -> Grid | None:
        """Two definitions of R²."""
        return small.r2_table(compare_r2(self.rows))

    @cached_property
    def control(self) -> Grid | None:
        """RNM-Screen against random zeroing."""
        return small.control_table(compare_control(self.rows))

    @cached_property
    def theorem2(self) -> Grid | None:
        """Theorem 2 by simulation."""
        return small.theorem2_table(compare_theorem2(self.rows))

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
        cells = [found for found in self.comparisons if found.cell.table == number]
        return paper_table(number, cells, self.index)


def write_report(report: Report, directory: Path) -> Path:
    """Write page, Markdown and figures below `directory`; return the page's path."""
    from dpscreen.report.page import render

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
