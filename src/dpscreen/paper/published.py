"""What the paper prints: every result of Tables 1 to 5, its settings, figures and claims.

The numbers live in `published.json`, typed in from the paper, and corrections in `errata.json`;
this module only reads them. Descriptions paraphrase. The paper's figures are known from captions
and text, so their axes are what those imply.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import product
from typing import Any, NamedTuple

CellKey = tuple[int, str, str, str]
"""Where a number stands: table, data set, method, metric."""


class PublishedCell(NamedTuple):
    """One printed result, a mean over 20 trials; bold marks a significant sign test."""

    table: int
    data: str
    method: str
    metric: str
    value: float
    bold: bool

    @property
    def key(self) -> CellKey:
        """The cell without its content."""
        return self[:4]


@dataclass(frozen=True)
class PublishedData:
    """Size and iterations of one data set.

    `n_support` is the number K of nonzeros in the reference solution. On the real sets the paper
    does not print it; replication finds it, and every printed TPR and FPR is, up to rounding, a
    whole count out of K and d - K.
    """

    name: str
    n_rows: int
    n_features: int
    n_iter: int
    n_support: int


@dataclass(frozen=True)
class PublishedClaim:
    """A statement outside the tables; `caveat` says where it fails or what it rests on.

    Each of `readings` is one way to take the words, what is run to judge them so, and perhaps a
    `test` of the results (`claims.on_sets`), or why they are `refuted` without.
    """

    key: str
    where: str
    description: str
    caveat: str | None
    readings: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class PublishedFigure:
    """What a figure shows: one curve per series in each panel."""

    number: int
    title: str
    panels: list[str]
    series: list[str]
    x_axis: str
    y_axis: str
    settings: Mapping[str, float]
    note: str


@dataclass(frozen=True)
class Erratum:
    """A statement of the paper that needs a correction.

    `claim` quotes it, `reason` derives why it fails, `evidence` has numbers, `command` shows it,
    and `matters` says how much depends on it. The proofs are in docs/errata.md.
    """

    key: str
    title: str
    kind: str
    claim: str
    reason: str
    evidence: str
    command: str
    matters: str


@cache
def published_cells(table: int | None = None) -> tuple[PublishedCell, ...]:
    """Every result cell, in reading order; of one table if `table` is given."""
    cells = (PublishedCell(**row) for row in _content()["cells"])
    return tuple(cell for cell in cells if table in (None, cell.table))


@cache
def published_data() -> Mapping[str, PublishedData]:
    """The two synthetic and eight real data sets by name, in the paper's order."""
    return {row["name"]: PublishedData(**row) for row in _content()["data_sets"]}


@cache
def published_claims() -> Mapping[str, PublishedClaim]:
    """The paper's checkable statements outside its tables, by key."""
    return {row["key"]: PublishedClaim(**row) for row in _content()["claims"]}


@cache
def published_figures() -> Mapping[int, PublishedFigure]:
    """Figures 1 to 4 by number."""
    return {row["number"]: PublishedFigure(**row) for row in _content()["figures"]}


@cache
def errata() -> Mapping[str, Erratum]:
    """E1 to E11 by key."""
    return {row["key"]: Erratum(**row) for row in packaged_json("errata.json")}


@cache
def known_inconsistencies() -> Mapping[CellKey, str]:
    """Cells that contradict the paper itself or resist replication, each with the reason."""
    return {
        (row["table"], *place): row["reason"]
        for row in _content()["inconsistencies"]
        for place in product(row["data"], row["methods"], row["metrics"])
    }


def label(key: str) -> str:
    """The name by which a table shows a data set, method or metric."""
    return str(_content()["labels"][key])


@cache
def _content() -> Any:
    return packaged_json("published.json")


def packaged_json(name: str) -> Any:
    """Return the content of a JSON file of this package."""
    return json.loads(files("dpscreen.paper").joinpath(name).read_text(encoding="utf-8"))
