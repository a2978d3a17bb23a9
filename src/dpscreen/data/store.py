"""Find the data sets on this machine and read them.

Two places are tried in turn: the directory named by the environment variable DPSCREEN_DATA, and the
user's cache, where `dpscreen datasets fetch` puts what it downloads. What is read is compared with
the catalogue's content hash, so a wrong copy is an error and never a wrong result.
"""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen.data.catalogue import CATALOGUE, DataFile, Dataset, Target, dataset
from dpscreen.data.content import Frame, content_hash
from dpscreen.data.csvfile import read_csv
from dpscreen.data.errors import CorruptDataset, MissingDataset

ENVIRONMENT_VARIABLE = "DPSCREEN_DATA"


@dataclass(frozen=True, eq=False)
class Table:
    """A data set as published: untransformed, a missing value is NaN in `X`.

    `from_libsvm` marks a set that the paper took in LIBSVM's column-scaled form.
    """

    name: str
    X: Array
    y: Array
    feature_names: tuple[str, ...]
    target_name: str
    from_libsvm: bool = False


def load(name: str | Dataset, *, target: str | None = None) -> Table:
    """The data set of that name, with its default target or the one asked for."""
    entry = dataset(name) if isinstance(name, str) else name
    wanted = entry.target(target)
    frames = {file.target: _read(entry, file) for file in _files_for(entry, wanted)}
    features, names = _features(entry, frames)
    columns = np.column_stack([frames[column].values[:, -1] for column, _ in wanted.terms])
    y = columns @ np.array([weight for _, weight in wanted.terms])
    return Table(entry.name, features, y, names, wanted.name, entry.from_libsvm)


def available() -> dict[str, tuple[Path, ...]]:
    """The data sets whose default target can be loaded here, and the files each is read from."""
    present = {}
    for entry in CATALOGUE:
        found = [find(file.name) for file in _files_for(entry, entry.target())]
        paths = tuple(path for path in found if path is not None)
        if len(paths) == len(found):
            present[entry.name] = paths
    return present


def find(file_name: str) -> Path | None:
    """The first copy of the file on the search path, compressed or not."""
    plain = file_name.removesuffix(".gz")
    for directory in search_path():
        for folder in (directory, directory / "extra"):
            for candidate in (folder / plain, folder / f"{plain}.gz"):
                if candidate.is_file():
                    return candidate
    return None


def search_path() -> tuple[Path, ...]:
    """The directories that are looked into, in order, whether they exist or not."""
    stated = os.environ.get(ENVIRONMENT_VARIABLE)
    return (*((Path(stated).expanduser(),) if stated else ()), cache_directory())


def cache_directory() -> Path:
    """The user's cache, where downloads go."""
    import pooch

    return Path(pooch.os_cache("dpscreen"))


def _files_for(entry: Dataset, target: Target) -> tuple[DataFile, ...]:
    columns = {column for column, _ in target.terms}
    return tuple(file for file in entry.files if file.target in columns)


def _read(entry: Dataset, file: DataFile) -> Frame:
    path = find(file.name)
    if path is None:
        raise MissingDataset(_how_to_get(entry, file))
    frame = read_csv(path)
    if content_hash(frame) != file.content_hash:
        raise CorruptDataset(
            f"{path} does not hold the {entry.title} data: its content hash is not the "
            "catalogue's; it may be cut short, changed, or another version"
        )
    return frame


def _features(entry: Dataset, frames: dict[str, Frame]) -> tuple[Array, tuple[str, ...]]:
    first, *others = frames.values()
    for other in others:
        if not np.array_equal(first.values[:, :-1], other.values[:, :-1], equal_nan=True):
            raise CorruptDataset(f"the files of {entry.title} do not agree on the features")
    return np.ascontiguousarray(first.values[:, :-1]), first.columns[:-1]


def _how_to_get(entry: Dataset, file: DataFile) -> str:
    places = ", ".join(str(place) for place in search_path())
    if entry.archive is None:
        remedy = f"It cannot be fetched ({entry.origin}); set"
    else:
        remedy = f"Run `dpscreen datasets fetch {entry.name}`, or set"
    return (
        f"the {entry.title} data are not here: no {file.name} in {places}. "
        f"{remedy} {ENVIRONMENT_VARIABLE} to a directory that holds {file.name}."
    )
