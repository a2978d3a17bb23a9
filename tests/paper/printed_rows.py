"""Rows as they would be if every trial gave what the paper prints."""

from collections import defaultdict

from dpscreen.paper.agreement import METRIC_IN_ROWS, SUITE_OF_TABLE
from dpscreen.paper.published import published_cells
from dpscreen.paper.results import TrialRow


def row(suite, data, method, trial=0, *, metrics=None, series=None, settings=None):
    return TrialRow(
        suite=suite,
        data=data,
        method=method,
        trial=trial,
        seed="",
        metrics=metrics or {},
        series=series or {},
        settings=settings or {},
        versions={},
        fingerprint="",
        seconds=0.0,
    )


def rows_as_printed(trials=4, change=lambda cell, trial: 0.0):
    """Return rows whose metrics are the printed values plus `change`."""
    collected = defaultdict(dict)
    for cell in published_cells():
        for trial in range(trials):
            key = (SUITE_OF_TABLE[cell.table], cell.data, cell.method, trial)
            name = METRIC_IN_ROWS.get(cell.metric, cell.metric)
            collected[key][name] = cell.value + change(cell, trial)
    return [row(*key, metrics=metrics) for key, metrics in collected.items()]
