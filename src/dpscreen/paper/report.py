"""The report on some rows: a page, figures, and a summary as JSON."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from dpscreen._core.files import write_text
from dpscreen._core.pictures import environment
from dpscreen._core.words import duration, how_many
from dpscreen.audit import Finding
from dpscreen.paper.agreement import (
    RELATIVE_TOLERANCE,
    STANDARD_ERRORS,
    TOLERANCE,
    RowIndex,
    check_cells,
    is_counted,
    summarise,
)
from dpscreen.paper.claims import check_claims
from dpscreen.paper.figures import NUMBERS, figure_view, write_figure
from dpscreen.paper.published import errata, label
from dpscreen.paper.results import TrialRow
from dpscreen.paper.suites import LONG
from dpscreen.paper.tables import FEWEST, all_tables

PAGE = "index.html"
MANY = {
    "holds": "hold",
    "does not hold": "do not hold",
    "depends on the reading": "depend on the reading",
    "not run": "were not run",
}
"""What is said of several claims with this verdict."""
ORDER = ("table1", "figure1", "table2", "r2", "figure2", "table3", "figure3", "figure4",
         "table4", "table5")  # fmt: skip


class Report:
    """Everything that can be said about some rows. `skipped` are data sets that are not here."""

    def __init__(
        self,
        rows: Sequence[TrialRow],
        skipped: Sequence[str] = (),
        problems: Sequence[str] = (),
        findings: Sequence[Finding] = (),
    ) -> None:
        self.rows, self.index, self.problems = rows, RowIndex(rows), problems
        self.skipped = [label(name) for name in skipped]
        self.cells = check_cells(self.index)
        self.summary, self.narrow = summarise(self.cells), summarise(self.cells, counted=True)
        self.grids = {grid.key: grid for grid in all_tables(self.index, self.cells, findings)}
        self.claims = check_claims(self.index)
        verdicts = Counter(claim.verdict for claim in self.claims)
        self.tally = ", ".join(f"{verdicts[one]} {MANY[one]}" for one in MANY if verdicts[one])
        self.errata = errata().values()
        own = (row.trial + 1 for row in rows if row.suite not in LONG.values())
        self.most_trials = max(own, default=0)


def write_report(report: Report, directory: Path) -> Path:
    """Write page and figures below `directory`; return the page's path."""
    figures = directory / "figures"
    figures.mkdir(parents=True, exist_ok=True)
    for number in NUMBERS:
        write_figure(number, report.index, figures)
    write_text(directory / PAGE, render(report))
    return directory / PAGE


def summary_json(report: Report) -> str:
    """Return counts, differing cells, claims and data sets left out as JSON."""
    content = {
        "trials": report.most_trials,
        "cells": report.summary._asdict(),
        "narrower_count": report.narrow._asdict(),
        "differing": [
            {
                **found.cell._asdict(),
                "here": found.ours.mean if found.ours else None,
                "counted": is_counted(found.cell),
                "explanation": f"{found.reason} {found.detail}",
            }
            for found in report.cells
            if found.verdict == "differs"
        ],
        "claims": {claim.key: claim.verdict for claim in report.claims},
        "left_out": report.skipped,
    }
    return json.dumps(content, indent=2, ensure_ascii=False)


def render(report: Report) -> str:
    """Return the page. Whatever comes from rows is escaped; only our own SVG is taken as it is."""
    from markupsafe import Markup

    rows = report.rows
    drawn = {f"figure{number}": figure_view(number, report.index) for number in NUMBERS}
    notes = (str(one) for row in rows for one in row.settings.get("preparation", ()))
    # Versions as the rows record them, this machine's cores and the time that fits took.
    versions: dict[str, dict[str, None]] = {}
    for row in rows:
        for name, version in row.versions.items():
            versions.setdefault(name, {})[version] = None
    content = {
        "report": report,
        "parts": [(key, report.grids.get(key), drawn.get(key)) for key in ORDER],
        "rule": {
            "errors": f"{STANDARD_ERRORS:g}",
            "fixed": f"{TOLERANCE:g}",
            "relative": f"{RELATIVE_TOLERANCE:.0%}",
        },
        "fewest": FEWEST,
        "facts": {
            **{name: ", ".join(found) for name, found in versions.items()},
            "cores, where this page was made": str(os.cpu_count() or "unknown"),
            "results": how_many(len(rows), "row"),
            "time spent in fits": duration(sum(row.seconds for row in rows)),
        },
        # Those on λ differ by data set.
        "preparation": [one for one in dict.fromkeys(notes) if not one.startswith("λ is")],
        "svg": Markup,
    }
    return environment("dpscreen.paper").get_template("study.html").render(content)
