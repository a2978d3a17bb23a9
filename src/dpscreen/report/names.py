"""Names short enough for a table's first column."""

from __future__ import annotations

from dpscreen.study.published import label


def metric_name(metric: str) -> str:
    """Return the metric's name; what the paper calls sparsity is called what it is, density."""
    return "Density" if metric == "density" else label(metric)
