"""Data to study the methods on: simulators, the paper's real data sets, and their preparation.

>>> table = load("housing")                    # as published, checked against a content hash
>>> ready = prepare(table, PAPER)              # not private: see `ready.notes`

`fetch` downloads a data set that `load` does not find. Preparation reads its parameters off the
data and is outside every privacy guarantee (erratum E8).
"""

from dpscreen.data.catalogue import (
    CATALOGUE,
    Archive,
    DataFile,
    Dataset,
    Target,
    dataset,
    names,
)
from dpscreen.data.content import Frame, content_hash
from dpscreen.data.errors import (
    CorruptDataset,
    CorruptDownload,
    DataError,
    DownloadFailed,
    MissingDataset,
    UnknownDataset,
)
from dpscreen.data.fetch import fetch
from dpscreen.data.prepare import (
    ABLATION,
    PAPER,
    STANDARDISED,
    Preparation,
    Prepared,
    prepare,
)
from dpscreen.data.simulate import Simulated, synthetic
from dpscreen.data.store import Table, available, cache_directory, load, search_path

__all__ = [
    "ABLATION",
    "CATALOGUE",
    "PAPER",
    "STANDARDISED",
    "Archive",
    "CorruptDataset",
    "CorruptDownload",
    "DataError",
    "DataFile",
    "Dataset",
    "DownloadFailed",
    "Frame",
    "MissingDataset",
    "Preparation",
    "Prepared",
    "Simulated",
    "Table",
    "Target",
    "UnknownDataset",
    "available",
    "cache_directory",
    "content_hash",
    "dataset",
    "fetch",
    "load",
    "names",
    "prepare",
    "search_path",
    "synthetic",
]
