"""Data to study the methods on: simulators, the paper's real data sets, and their preparation.

>>> table = load("housing")                    # as published, checked against a content hash
>>> ready = prepare(table)                     # not private: see `ready.notes`

`fetch` downloads a data set that `load` does not find. Preparation reads its parameters off the
data and is outside every privacy guarantee (erratum E8).
"""

from dpscreen.paper.data.fetch import fetch
from dpscreen.paper.data.prepare import CORRELATION, Simulated, prepare, synthetic
from dpscreen.paper.data.store import (
    CATALOGUE,
    Dataset,
    DatasetTable,
    available,
    dataset,
    how_to_get,
    load,
    search_path,
)

__all__ = [
    "CATALOGUE",
    "CORRELATION",
    "Dataset",
    "DatasetTable",
    "Simulated",
    "available",
    "dataset",
    "fetch",
    "how_to_get",
    "load",
    "prepare",
    "search_path",
    "synthetic",
]
