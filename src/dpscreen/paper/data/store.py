"""The data sets, as `catalogue.json` lists them, and the files they are read from.

A file is told by a fingerprint of what it says: of column names, shape and values, not of bytes:
`1`, `1.0` and `1.00` are the same content, and so are a plain and a compressed file. That lets a
copy that was downloaded and converted be accepted when, and only when, it says the same.
"""

import csv
import gzip
import hashlib
import io
import json
import os
import sys
import warnings
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen._core.files import replacing
from dpscreen.tables.declaration import DataError, first_line

_ROWS_PER_BLOCK = 2048  # a copy of the whole table would double the peak memory

# Errors are named for what happened, which an `Error` at their end would not make clearer.


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
    return Dataset(
        **row
        | {
            "features": tuple(row["features"].split()),
            "files": tuple(DataFile(**one) for one in row["files"]),
            "targets": tuple(
                TargetColumns(one["name"], tuple(map(tuple, one["terms"])))
                for one in row["targets"]
            ),
            "archive": None if row["archive"] is None else Archive(**row["archive"]),
        }
    )


CATALOGUE = tuple(
    _entry(row)
    for row in json.loads(
        files("dpscreen.paper.data").joinpath("catalogue.json").read_text(encoding="utf-8")
    )
)


# --- numbers, and what they say -----------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Frame:
    """Named columns of float64; a missing value is NaN."""

    columns: tuple[str, ...]
    values: Array

    def __post_init__(self) -> None:
        """Refuse values whose shape does not fit the names."""
        if self.values.ndim != 2 or self.values.shape[1] != len(self.columns):
            raise ValueError(
                f"{len(self.columns)} column names do not fit values of shape {self.values.shape}"
            )

    def select(self, columns: Sequence[str]) -> "Frame":
        """These columns, in this order."""
        places = {name: place for place, name in enumerate(self.columns)}
        absent = [name for name in columns if name not in places]
        if absent:
            raise ValueError(f"there is no column {absent[0]!r}")
        return Frame(tuple(columns), self.values[:, [places[name] for name in columns]])


def content_hash(frame: Frame) -> str:
    """The sha256 of names, shape and values: float64, little-endian, one NaN, one zero."""
    heading = json.dumps([list(frame.columns), list(frame.values.shape)], separators=(",", ":"))
    digest = hashlib.sha256(heading.encode())
    for block in _blocks(frame.values):
        canonical = block.astype("<f8") + 0.0  # -0.0 becomes 0.0
        canonical[np.isnan(canonical)] = np.nan  # NaNs differ in sign and payload
        digest.update(canonical.tobytes())
    return digest.hexdigest()


def _blocks(values: Array) -> Iterator[Array]:
    for start in range(0, len(values), _ROWS_PER_BLOCK):
        yield values[start : start + _ROWS_PER_BLOCK]


_UNREADABLE = (OSError, EOFError, ValueError, zlib.error)


def read_csv(path: Path) -> Frame:
    """The numbers in a file with a header row; an empty field is a missing value."""
    try:
        with _opened(path) as stream:
            columns = _header(stream.readline())
            return parse_numbers(stream, columns)
    except _UNREADABLE as reason:
        raise CorruptDataset(
            f"{path} is damaged or is not a table of numbers: {first_line(reason)}"
        ) from reason


def parse_numbers(
    stream: io.BufferedIOBase,
    columns: Sequence[str],
    *,
    keep: Sequence[str] | None = None,
    missing: str = "",
) -> Frame:
    """Header-less comma-separated text as a frame; raises ValueError where it is not numeric."""
    import pandas as pd

    kept = list(columns if keep is None else keep)
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # rows that are too long
        try:
            table = pd.read_csv(
                stream,
                header=None,
                names=list(columns),
                usecols=None if keep is None else kept,
                index_col=False,
                dtype=dict.fromkeys(kept, np.float64),
                keep_default_na=False,
                na_values=[missing],
                **_exact_decimals(pd.__version__),
            )
        except pd.errors.ParserWarning as reason:
            raise ValueError("a row has more fields than there are columns") from reason
    return Frame(tuple(kept), table[kept].to_numpy(dtype=np.float64))


def write_csv(frame: Frame, path: Path) -> None:
    """Write the frame so that a reader sees the whole file or none of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as stream:
        if path.suffix != ".gz":
            _write(frame, stream)
            return
        # No name and a fixed time stamp: equal content, equal bytes.
        with gzip.GzipFile("", "wb", compresslevel=6, fileobj=stream, mtime=0) as compressed:
            _write(frame, compressed)


def _exact_decimals(pandas_version: str) -> dict[str, Any]:
    # Before 3.1 pandas is off by a last bit now and then unless told; since then it warns if told.
    major, minor = (int(part) for part in pandas_version.split(".")[:2])
    return {} if (major, minor) >= (3, 1) else {"float_precision": "round_trip"}


def _write(frame: Frame, stream: BinaryIO | gzip.GzipFile) -> None:
    stream.write(_lines([frame.columns]))
    for block in _blocks(frame.values):
        stream.write(_lines(np.where(np.isnan(block), "", block.astype(object)).tolist()))


def _lines(rows: Iterable[Iterable[str | float]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)  # floats as repr: nothing is lost
    return text.getvalue().encode()


def _opened(path: Path) -> io.BufferedIOBase:
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")


def _header(line: bytes) -> tuple[str, ...]:
    names = next(csv.reader([line.decode().strip()]), [])
    if not names:
        raise ValueError("it has no header row")
    return tuple(names)


ENVIRONMENT_VARIABLE = "DPSCREEN_DATA"


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
    wanted = entry.target(target)
    frames = {file.target: _read(entry, file) for file in _files_for(entry, wanted)}
    features, names = _features(entry, frames)
    columns = np.column_stack([frames[column].values[:, -1] for column, _ in wanted.terms])
    y = columns @ np.array([weight for _, weight in wanted.terms])
    return DatasetTable(entry.name, features, y, names, wanted.name, entry.from_libsvm)


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
    """The user's cache, where downloads go: where this system wants it."""
    home = Path.home()
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local"
        return Path(local, "dpscreen", "dpscreen", "Cache")
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "dpscreen"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache", "dpscreen")


def _files_for(entry: Dataset, target: TargetColumns) -> tuple[DataFile, ...]:
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
