"""Data to study the methods on: simulators, the paper's real data sets, and their preparation.

>>> table = load("housing")                    # as published, checked against a content hash
>>> ready = prepare(table, PAPER)              # not private: see `ready.notes`

`fetch` downloads a data set that `load` does not find. Preparation reads its parameters off the
data and is outside every privacy guarantee (erratum E8).
"""

from dpscreen.paper.data.catalogue import (
    CATALOGUE,
    Archive,
    CorruptDataset,
    CorruptDownload,
    DataFile,
    Dataset,
    DownloadFailed,
    MissingDataset,
    TargetColumns,
    UnknownDataset,
    dataset,
    names,
)
from dpscreen.paper.data.fetch import fetch
from dpscreen.paper.data.prepare import (
    ABLATION,
    PAPER,
    STANDARDISED,
    Preparation,
    Prepared,
    prepare,
)
from dpscreen.paper.data.simulated import Simulated, synthetic
from dpscreen.paper.data.store import (
    DatasetTable,
    Frame,
    available,
    cache_directory,
    content_hash,
    load,
    search_path,
)
from dpscreen.tables.declaration import DataError

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
    "DatasetTable",
    "DownloadFailed",
    "Frame",
    "MissingDataset",
    "Preparation",
    "Prepared",
    "Simulated",
    "TargetColumns",
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
