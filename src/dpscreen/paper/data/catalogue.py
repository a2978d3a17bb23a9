"""The data sets, as `catalogue.json` lists them, and what can go wrong with one.

Errors are named for what happened, which an `Error` at their end would not make clearer.
"""

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal

from dpscreen.tables.declaration import DataError


class UnknownDataset(DataError, ValueError):
    """The name, or the target asked for, is not in the catalogue."""


class MissingDataset(DataError, FileNotFoundError):
    """The data set is known, but no copy of it was found here."""


class CorruptDataset(DataError, ValueError):
    """A file is there, but it does not hold the data set it is named after."""


class DownloadFailed(DataError):
    """The archive could not be reached, or did not deliver."""


class CorruptDownload(DownloadFailed, CorruptDataset):
    """The archive delivered something other than the data set; nothing was kept."""


ConverterName = Literal[
    "uci-abalone", "uci-communities", "uci-blogfeedback", "uci-residential", "libsvm"
]


@dataclass(frozen=True)
class DataFile:
    """One file of a data set: the features, then `target` as its last column."""

    name: str
    target: str
    content_hash: str


@dataclass(frozen=True)
class TargetColumns:
    """What is predicted: a weighted sum of target columns."""

    name: str
    terms: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Archive:
    """Where the original is published, and which converter turns it into our files.

    `member` names the file wanted inside a zip; None when the URL is that file.
    """

    url: str
    converter: ConverterName
    member: str | None = None


@dataclass(frozen=True)
class Dataset:
    """One data set. The first of `targets` is the default, the paper's choice.

    `features` is empty where the file's own header is used. `from_libsvm` marks the sets that the
    paper took in LIBSVM's column-scaled form. `missing` is the rule that fits the paper's tables.
    """

    name: str
    title: str
    n_rows: int
    n_features: int
    features: tuple[str, ...]
    files: tuple[DataFile, ...]
    targets: tuple[TargetColumns, ...]
    origin: str
    licence: str
    archive: Archive | None
    from_libsvm: bool = False
    missing: Literal["none", "zero"] = "none"

    def target(self, name: str | None = None) -> TargetColumns:
        """The target of that name, or the default one."""
        for candidate in self.targets:
            if name is None or candidate.name == name:
                return candidate
        offered = ", ".join(candidate.name for candidate in self.targets)
        raise UnknownDataset(f"{self.name} has no target {name!r}; it offers {offered}")


def dataset(name: str) -> Dataset:
    """The catalogue's entry of that name."""
    for entry in CATALOGUE:
        if entry.name == name:
            return entry
    raise UnknownDataset(f"there is no data set {name!r}; known are {', '.join(names())}")


def names() -> tuple[str, ...]:
    """Every name in the catalogue, in the order of the paper's tables."""
    return tuple(entry.name for entry in CATALOGUE)


def _entry(row: dict[str, Any]) -> Dataset:
    """Return a data set as the file describes it; its features are one text of names."""
    targets = ((one["name"], one["terms"]) for one in row["targets"])
    return Dataset(
        **row
        | {
            "features": tuple(row["features"].split()),
            "files": tuple(DataFile(**one) for one in row["files"]),
            "targets": tuple(
                TargetColumns(name, tuple((column, weight) for column, weight in terms))
                for name, terms in targets
            ),
            "archive": None if row["archive"] is None else Archive(**row["archive"]),
        }
    )


def _entries() -> tuple[Dataset, ...]:
    text = files("dpscreen.paper.data").joinpath("catalogue.json").read_text(encoding="utf-8")
    return tuple(_entry(row) for row in json.loads(text))


CATALOGUE = _entries()
