"""The data sets, as `catalogue.json` lists them, and the files they are read from.

A file is identified by a hash of its content, that is of column names, shape and values, not of
bytes: `1`, `1.0` and `1.00` are the same content, and so are a plain and a compressed file. A copy
that was downloaded and converted is accepted if and only if it has the same content.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen._core.messages import message, unknown
from dpscreen._core.words import first_line
from dpscreen.tables.declaration import DataError

if TYPE_CHECKING:
    import pandas as pd

ENVIRONMENT_VARIABLE = "DPSCREEN_DATA"
_ROWS_PER_BLOCK = 2048  # a copy of the whole table would double the peak memory


# --- the catalogue ------------------------------------------------------------------------------


class DataFile(NamedTuple):
    """One file of a data set: the features, then `target` as its last column.

    What is predicted is the sum of the files' targets, each times its `weight`.
    """

    name: str
    target: str
    content_hash: str
    weight: float = 1.0


class Archive(NamedTuple):
    """Where the original is published, and in which format: csv, libsvm or workbook.

    `member` names the file wanted inside a zip; None when the URL is that file. Of a CSV file,
    `dropped` are the columns in front that are not features, and `codes` are letters that stand
    for 1, 2, ….
    """

    url: str
    format: str
    member: str | None = None
    dropped: str = ""
    codes: str = ""


@dataclass(frozen=True)
class Dataset:
    """One data set. `from_libsvm`: the paper took it in LIBSVM's column-scaled form."""

    name: str
    title: str
    n_rows: int
    n_features: int
    features: tuple[str, ...]
    files: tuple[DataFile, ...]
    origin: str
    licence: str
    archive: Archive
    from_libsvm: bool = False


def _entry(row: dict[str, Any]) -> Dataset:
    files = tuple(DataFile(**one) for one in row["files"])
    parts = {"features": tuple(row["features"].split()), "archive": Archive(**row["archive"])}
    return Dataset(**row | parts | {"files": files})


_TEXT = Path(__file__).with_name("catalogue.json").read_text(encoding="utf-8")
CATALOGUE = {row["name"]: _entry(row) for row in json.loads(_TEXT)}
"""Every data set by name, in the order of the paper's tables."""


def dataset(name: str) -> Dataset:
    """The catalogue's entry of that name."""
    if name not in CATALOGUE:
        raise DataError(unknown("data set", name, tuple(CATALOGUE)))
    return CATALOGUE[name]


# --- reading ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class DatasetTable:
    """A data set as published: untransformed, a missing value is NaN in `X`."""

    X: Array
    y: Array
    feature_names: tuple[str, ...]
    from_libsvm: bool = False


def load(name: str | Dataset) -> DatasetTable:
    """The data set of that name."""
    entry = dataset(name) if isinstance(name, str) else name
    frames = [_checked(entry, file) for file in entry.files]
    first, *others = [frame.iloc[:, :-1] for frame in frames]
    if not all(first.equals(other) for other in others):
        raise DataError(message("dataset.features-differ", title=entry.title))
    pairs = zip(frames, entry.files, strict=True)
    y = sum(file.weight * frame[file.target].to_numpy() for frame, file in pairs)
    X = np.ascontiguousarray(first.to_numpy(dtype=np.float64))
    return DatasetTable(X, np.asarray(y), entry.features, entry.from_libsvm)


def _checked(entry: Dataset, file: DataFile) -> pd.DataFrame:
    path = find(file.name)
    if path is None:
        raise DataError(how_to_get(entry))
    frame = read_csv(path)
    if content_hash(frame) != file.content_hash:
        raise DataError(message("dataset.changed", path=path, title=entry.title))
    return frame


def read_csv(path: Path) -> pd.DataFrame:
    """The numbers in a file with a header row; an empty field is a missing value."""
    import pandas as pd

    try:
        return pd.read_csv(path, engine="pyarrow", dtype=np.float64)
    except (OSError, EOFError, ValueError, zlib.error) as reason:
        raise DataError(
            message("dataset.damaged", path=path, reason=first_line(reason))
        ) from reason


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


# --- where they lie -----------------------------------------------------------------------------


def how_to_get(entry: Dataset) -> str:
    """Where the files of a data set were searched for, and what to do if they are not there."""
    file = next((one.name for one in entry.files if find(one.name) is None), entry.files[0].name)
    places = ", ".join(map(str, search_path()))
    named = {"name": entry.name, "title": entry.title}
    return message("dataset.missing", **named, file=file, places=places)


def available() -> dict[str, tuple[Path, ...]]:
    """The data sets that can be loaded here, and the files each is read from."""
    found = {name: [find(file.name) for file in one.files] for name, one in CATALOGUE.items()}
    return {name: tuple(filter(None, paths)) for name, paths in found.items() if all(paths)}


def find(file_name: str) -> Path | None:
    """The first copy of the file on the search path, compressed or not."""
    plain = file_name.removesuffix(".gz")
    paths = (place / name for place in search_path() for name in (plain, f"{plain}.gz"))
    return next((path for path in paths if path.is_file()), None)


def search_path() -> tuple[Path, ...]:
    """The directories that are searched, in order, whether they exist or not."""
    stated = os.environ.get(ENVIRONMENT_VARIABLE)
    return (*((Path(stated).expanduser(),) if stated else ()), cache_directory())


def cache_directory() -> Path:
    """The user's cache, where downloads go."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "dpscreen")
