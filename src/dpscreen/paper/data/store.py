"""The data sets, as `catalogue.json` lists them, and the files they are read from.

A file is identified by a hash of its content, that is of column names, shape and values, not of
bytes: `1`, `1.0` and `1.00` are the same content, and so are a plain and a compressed file. A copy
that was downloaded and converted is accepted if and only if it has the same content.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import os
import sys
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen._core.files import write_bytes
from dpscreen.tables.declaration import DataError, first_line

if TYPE_CHECKING:
    import pandas as pd

ENVIRONMENT_VARIABLE = "DPSCREEN_DATA"
_ROWS_PER_BLOCK = 2048  # a copy of the whole table would double the peak memory


class UnknownDataset(DataError, ValueError):
    """The catalogue has no data set, or no target, of that name."""


class MissingDataset(DataError, FileNotFoundError):
    """The data set is known, but no copy of it was found here."""


class CorruptDataset(DataError, ValueError):
    """A file is there, but it does not hold the data set it is named after."""


class DownloadFailed(DataError):
    """The archive could not be reached, or did not deliver."""


class CorruptDownload(DownloadFailed, CorruptDataset):
    """The archive delivered something other than the data set; nothing was kept."""


# --- the catalogue ------------------------------------------------------------------------------


class DataFile(NamedTuple):
    """One file of a data set: the features, then `target` as its last column."""

    name: str
    target: str
    content_hash: str


class TargetColumns(NamedTuple):
    """What is predicted: a weighted sum of target columns."""

    name: str
    terms: tuple[tuple[str, float], ...]


class Archive(NamedTuple):
    """Where the original is published, and which converter turns it into our files.

    `member` names the file wanted inside a zip; None when the URL is that file.
    """

    url: str
    converter: str
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

    def files_for(self, target: TargetColumns) -> list[DataFile]:
        """The files whose last column is a term of the target."""
        return [file for file in self.files if file.target in dict(target.terms)]


def _entry(row: dict[str, Any]) -> Dataset:
    parts = {
        "features": tuple(row["features"].split()),
        "files": tuple(DataFile(**one) for one in row["files"]),
        "targets": tuple(
            TargetColumns(one["name"], tuple(map(tuple, one["terms"]))) for one in row["targets"]
        ),
        "archive": row["archive"] and Archive(**row["archive"]),
    }
    return Dataset(**row | parts)


_TEXT = files("dpscreen.paper.data").joinpath("catalogue.json").read_text(encoding="utf-8")
CATALOGUE = tuple(map(_entry, json.loads(_TEXT)))


def dataset(name: str) -> Dataset:
    """The catalogue's entry of that name."""
    for entry in CATALOGUE:
        if entry.name == name:
            return entry
    raise UnknownDataset(f"there is no data set {name!r}; known are {', '.join(names())}")


def names() -> tuple[str, ...]:
    """Every name in the catalogue, in the order of the paper's tables."""
    return tuple(entry.name for entry in CATALOGUE)


# --- files of numbers ---------------------------------------------------------------------------


def content_hash(frame: pd.DataFrame) -> str:
    """The sha256 of names, shape and values: float64, little-endian, one NaN, one zero."""
    heading = json.dumps([list(frame.columns), list(frame.shape)], separators=(",", ":"))
    digest = hashlib.sha256(heading.encode())
    for start in range(0, len(frame), _ROWS_PER_BLOCK):
        block = frame.iloc[start : start + _ROWS_PER_BLOCK].to_numpy(dtype="<f8")
        canonical = np.ascontiguousarray(block) + 0.0  # -0.0 becomes 0.0
        canonical[np.isnan(canonical)] = np.nan  # NaNs differ in sign and payload
        digest.update(canonical.tobytes())
    return digest.hexdigest()


def read_csv(path: Path) -> pd.DataFrame:
    """The numbers in a file with a header row; an empty field is a missing value."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            columns = next(csv.reader([stream.readline().decode().strip()]), [])
            return parse_numbers(stream, columns)
    except (OSError, EOFError, ValueError, zlib.error) as reason:
        raise CorruptDataset(
            f"{path} is damaged or is not a table of numbers: {first_line(reason)}"
        ) from reason


def parse_numbers(
    stream: io.BufferedIOBase,
    columns: Sequence[str],
    *,
    keep: Sequence[str] | None = None,
    missing: str = "",
) -> pd.DataFrame:
    """Header-less comma-separated text as a frame; raises ValueError where it is not numeric."""
    from pyarrow import csv as arrow
    from pyarrow import float64

    kept = list(columns if keep is None else keep)
    if len(set(kept)) < len(kept):
        raise ValueError("two columns have the same name")
    numeric = arrow.ConvertOptions(
        column_types=dict.fromkeys(kept, float64()), include_columns=kept, null_values=[missing]
    )
    names = arrow.ReadOptions(column_names=list(columns))
    table: pd.DataFrame = arrow.read_csv(stream, names, convert_options=numeric).to_pandas()
    return table


def write_csv(frame: pd.DataFrame, path: Path) -> None:
    """Write the frame so that a reader sees the whole file or none of it."""
    content = frame.to_csv(index=False, lineterminator="\n").encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    # A fixed time stamp: equal content, equal bytes.
    packed = gzip.compress(content, 6, mtime=0) if path.suffix == ".gz" else content
    write_bytes(path, packed)


# --- where they lie -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class DatasetTable:
    """A data set as published: untransformed, a missing value is NaN in `X`.

    `from_libsvm` marks a set that the paper took in LIBSVM's column-scaled form.
    """

    name: str
    X: Array
    y: Array
    feature_names: tuple[str, ...]
    target_name: str
    from_libsvm: bool = False


def load(name: str | Dataset, *, target: str | None = None) -> DatasetTable:
    """The data set of that name, with its default target or the one asked for."""
    entry = dataset(name) if isinstance(name, str) else name
    wanted, frames = entry.target(target), {}
    for file in entry.files_for(wanted):
        path = find(file.name)
        if path is None:
            raise MissingDataset(how_to_get(entry))
        frame = read_csv(path)
        if content_hash(frame) != file.content_hash:
            raise CorruptDataset(
                f"{path} does not hold the {entry.title} data: its content hash is not the "
                "catalogue's; it may be cut short, changed, or another version"
            )
        frames[file.target] = frame
    first, *others = [frame.iloc[:, :-1] for frame in frames.values()]
    if not all(first.equals(other) for other in others):
        raise CorruptDataset(f"the files of {entry.title} do not agree on the features")
    columns = np.column_stack([frames[column][column] for column, _ in wanted.terms])
    y = columns @ np.array([weight for _, weight in wanted.terms])
    X = np.ascontiguousarray(first.to_numpy(dtype=np.float64))
    return DatasetTable(entry.name, X, y, tuple(first.columns), wanted.name, entry.from_libsvm)


def how_to_get(entry: Dataset) -> str:
    """Where the files of a data set were searched for, and what to do if they are not there."""
    file = next((one.name for one in entry.files if find(one.name) is None), entry.files[0].name)
    fetched = f"Run `dpscreen datasets fetch {entry.name}`, or set"
    remedy = fetched if entry.archive else f"It cannot be fetched ({entry.origin}); set"
    return (
        f"the {entry.title} data are not here: no {file} in "
        f"{', '.join(map(str, search_path()))}. "
        f"{remedy} {ENVIRONMENT_VARIABLE} to a directory that holds {file}."
    )


def available() -> dict[str, tuple[Path, ...]]:
    """The data sets whose default target can be loaded here, and the files each is read from."""
    present = {}
    for entry in CATALOGUE:
        found = [find(file.name) for file in entry.files_for(entry.target())]
        paths = tuple(path for path in found if path is not None)
        if len(paths) == len(found):
            present[entry.name] = paths
    return present


def find(file_name: str) -> Path | None:
    """The first copy of the file on the search path, compressed or not."""
    plain = file_name.removesuffix(".gz")
    candidates = (
        folder / name
        for directory in search_path()
        for folder in (directory, directory / "extra")
        for name in (plain, f"{plain}.gz")
    )
    return next((path for path in candidates if path.is_file()), None)


def search_path() -> tuple[Path, ...]:
    """The directories that are searched, in order, whether they exist or not."""
    stated = os.environ.get(ENVIRONMENT_VARIABLE)
    return (*((Path(stated).expanduser(),) if stated else ()), cache_directory())


def cache_directory() -> Path:
    """The user's cache, where downloads go, as the operating system has it."""
    home = Path.home()
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local"
        return Path(local, "dpscreen", "dpscreen", "Cache")
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "dpscreen"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache", "dpscreen")
