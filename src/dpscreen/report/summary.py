"""The outcome in a few numbers, for other programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from dpscreen.report.verdicts import verdict

if TYPE_CHECKING:
    from dpscreen.report.study import Report


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
            for found in report.comparisons
            if found.verdict == "differs"
        ],
        "claims": {claim.key: verdict(claim) for claim in report.claims},
        "left_out": [one.data for one in report.skipped],
    }
    return json.dumps(content, indent=2, ensure_ascii=False)
