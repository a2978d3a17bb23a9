"""The report on some rows: a page, tables in Markdown, figures, and a summary as JSON."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dpscreen._core.files import write_text
from dpscreen._core.pictures import COLOURS, environment
from dpscreen._core.words import duration, how_many
from dpscreen.audit import Finding
from dpscreen.paper.agreement import (
    RELATIVE_TOLERANCE,
    STANDARD_ERRORS,
    TOLERANCE,
    RowIndex,
    check_cells,
    summarise,
)
from dpscreen.paper.claims import check_claims
from dpscreen.paper.errata import errata
from dpscreen.paper.figures import DASHES, NUMBERS, figure_view, write_figure
from dpscreen.paper.findings import ClaimCheck
from dpscreen.paper.grid import claims_to_markdown, errata_to_markdown, grid_to_markdown
from dpscreen.paper.published import label
from dpscreen.paper.results import TrialRow
from dpscreen.paper.runner import Skipped
from dpscreen.paper.suites import LONG
from dpscreen.paper.tables import FEWEST, all_tables


def machine_facts(rows: Sequence[TrialRow]) -> dict[str, str]:
    """Name versions as the rows record them, this machine's cores and the time that fits took."""
    names = dict.fromkeys(name for row in rows for name in row.versions)
    return {
        **{name: _several(row.versions.get(name) for row in rows) for name in names},
        "cores, where this page was made": str(os.cpu_count() or "unknown"),
        "results": how_many(len(rows), "row"),
        "time spent in fits": duration(sum(row.seconds for row in rows)),
    }


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


MANY = (
    ("holds", "hold"),
    ("does not hold", "do not hold"),
    ("depends on the reading", "depend on the reading"),
    ("not run", "were not run"),
)
"""What is said of several claims with this verdict."""


class Report:
    """Everything that can be said about some rows. `skipped` are data sets that are not here.

    Claims that this study is about come first.
    """

    def __init__(
        self,
        rows: Sequence[TrialRow],
        skipped: tuple[Skipped, ...] = (),
        problems: tuple[str, ...] = (),
        findings: tuple[Finding, ...] = (),
    ) -> None:
        index = RowIndex(rows)
        self.rows, self.skipped, self.problems = rows, skipped, problems
        self.cells = check_cells(rows)
        self.summary, self.narrow = summarise(self.cells), summarise(self.cells, counted=True)
        self.grids = {grid.key: grid for grid in all_tables(index, self.cells, findings)}
        self.claims = sorted(check_claims(rows), key=_place)
        verdicts = Counter(claim.verdict for claim in self.claims)
        self.tally = ", ".join(f"{verdicts[one]} {many}" for one, many in MANY if verdicts[one])
        self.errata = errata(index)
        own = (row.trial + 1 for row in rows if row.suite not in LONG.values())
        self.most_trials = max(own, default=0)


def _place(claim: ClaimCheck) -> int:
    return FEATURED.index(claim.key) if claim.key in FEATURED else len(FEATURED)


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
    for key, grid in report.grids.items():
        yield key, grid_to_markdown(grid)
    yield "claims", claims_to_markdown(report.claims)
    yield "errata", errata_to_markdown(report.errata)


def summary_json(report: Report) -> str:
    """Return counts, differing cells, claims and left out data sets as JSON."""
    content = {
        "trials": report.most_trials,
        "cells": asdict(report.summary),
        "narrower_count": asdict(report.narrow),
        "differing": [
            {
                **found.cell.key._asdict(),
                "printed": found.cell.value,
                "here": found.ours.mean if found.ours else None,
                "counted": found.counted,
                "explanation": f"{found.reason} {found.detail}",
            }
            for found in report.cells
            if found.verdict == "differs"
        ],
        "claims": {claim.key: claim.verdict for claim in report.claims},
        "readings": {
            claim.key: [
                {"reading": one.reading, "run": one.run, "verdict": one.verdict}
                for one in claim.judged
            ]
            for claim in report.claims
        },
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

    drawn = {f"figure{number}": figure_view(number, report.rows) for number in NUMBERS}
    return {
        "report": report,
        "parts": [(key, report.grids.get(key), drawn.get(key)) for key in ORDER],
        "swatches": _swatches(),
        "label": label,
        "rule": {
            "errors": f"{STANDARD_ERRORS:g}",
            "fixed": f"{TOLERANCE:g}",
            "relative": f"{RELATIVE_TOLERANCE:.0%}",
        },
        "fewest": FEWEST,
        "facts": machine_facts(report.rows),
        "preparation": preparation_notes(report.rows),
        "svg": Markup,
    }


def _swatches() -> list[list[str]]:
    """Return the CSS of every colour and dash pattern, for the legends."""
    patterns = [" ".join(f"{length * 1.6:g}" for length in dashes) for dashes in DASHES]
    return [
        [f"stroke: var(--c{colour}); stroke-dasharray: {pattern or 'none'}" for pattern in patterns]
        for colour in range(len(COLOURS))
    ]
