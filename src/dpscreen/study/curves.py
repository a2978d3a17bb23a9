"""Rows to curves: the mean over trials of each series, with a band of two standard errors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dpscreen.study.compare import STANDARD_ERRORS, RowIndex
from dpscreen.study.methods import METHODS, proven_names
from dpscreen.study.published import label, published_data
from dpscreen.study.results import TrialRow
from dpscreen.study.suites import SYNTHETIC

SERIES_LABELS = {"kept_true": "true nonzero", "kept_false": "true zero"}


@dataclass(frozen=True)
class Curve:
    """A mean over trials; `low` and `high` are two standard errors below and above."""

    label: str
    method: str
    series: str
    x: tuple[float, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True)
class Panel:
    """One plot of a figure."""

    name: str
    label: str
    curves: tuple[Curve, ...]


def figure_panels(rows: Iterable[TrialRow], number: int) -> tuple[Panel, ...]:
    """Return the panels of one figure, in the paper's order, as far as there are rows for them."""
    index = RowIndex(rows)
    makers = {1: _figure1, 2: _figure2, 3: _figure3, 4: _figure4}
    if number not in makers:
        raise KeyError(f"the paper has no Figure {number}")
    return tuple(panel for panel in makers[number](index) if panel.curves)


def _figure1(index: RowIndex) -> Iterable[Panel]:
    for data in SYNTHETIC:
        methods = ("rnm-screen", "adp-screen")
        yield Panel(data, label(data), _kept(index, "synthetic", data, methods))


def _figure2(index: RowIndex) -> Iterable[Panel]:
    for data in published_data():
        if data not in SYNTHETIC:
            curves = _curves(index, "real", data, ("rnm-screen", *proven_names()), "mse")
            yield Panel(data, label(data), curves)


def _figure3(index: RowIndex) -> Iterable[Panel]:
    for method, name in (
        ("adp-screen", "every iteration"),
        ("adp-screen-50th", "every 50th iteration"),
        ("adp-screen-last", "last iteration"),
    ):
        yield Panel(name, name, _kept(index, "adp", "uncorrelated", (method,)))


def _figure4(index: RowIndex) -> Iterable[Panel]:
    methods = ("dp-fw-rule", "np-fw-rule", "np-fw")
    curves = _curves(index, "adp", "uncorrelated", methods, "wolfe_gap")
    yield Panel("uncorrelated", label("uncorrelated"), curves)


def _kept(index: RowIndex, suite: str, data: str, methods: Iterable[str]) -> tuple[Curve, ...]:
    return tuple(
        curve
        for method in methods
        for series in SERIES_LABELS
        for curve in _curves(index, suite, data, (method,), series)
    )


def _curves(
    index: RowIndex, suite: str, data: str, methods: Iterable[str], series: str
) -> tuple[Curve, ...]:
    found = (_curve(index.rows(suite, data, method), series) for method in methods)
    return tuple(curve for curve in found if curve)


def _curve(rows: list[TrialRow], series: str) -> Curve | None:
    rows = [row for row in rows if series in row.series]
    if not rows:
        return None
    values = np.array([row.series[series] for row in rows])
    mean = values.mean(axis=0)
    spread = values.std(axis=0, ddof=1) if len(rows) > 1 else np.zeros_like(mean)
    band = STANDARD_ERRORS * spread / np.sqrt(len(rows))
    method = rows[0].method
    name = ", ".join(filter(None, (METHODS[method].label, SERIES_LABELS.get(series))))
    lines = (rows[0].series["iteration"], mean, mean - band, mean + band)
    x, middle, low, high = (tuple(float(value) for value in line) for line in lines)
    return Curve(name, method, series, x, middle, low, high)
