"""Downloading a data set, and from an archive's original file to a frame of numbers."""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import HTTPError
from urllib.parse import urlsplit, urlunsplit
from urllib.request import urlopen

from dpscreen._core.files import write_bytes
from dpscreen._core.messages import message
from dpscreen._core.words import first_line
from dpscreen.paper.data.store import Archive, Dataset, cache_directory, content_hash, dataset
from dpscreen.tables.declaration import DataError

if TYPE_CHECKING:
    import pandas as pd

Progress = Callable[[float], None]

_TIMEOUT_SECONDS = 60
# What zip, XML and number readers raise on bytes that are not theirs; XML's errors are of syntax.
_NOT_CONVERTIBLE = (
    ValueError,
    LookupError,
    RuntimeError,
    SyntaxError,
    zlib.error,
    zipfile.BadZipFile,
)


def fetch(
    name: str | Dataset, *, base_url: str | None = None, progress: Progress | None = None
) -> tuple[Path, ...]:
    """Download the data set into the user's cache.

    `progress` is called with the share received, 0 if the size is unknown. `base_url` stands in for
    the archive's scheme and host, for a mirror. The files are written, each at once, only after all
    of them match the catalogue's content hashes; otherwise nothing is kept.

    What has been verified: this path end to end against a local server with small archives in each
    of the formats, and the content hashes against checked copies of the data. Not verified: the
    archives themselves, which were out of reach. If one has moved or changed, this function says
    so and keeps nothing.
    """
    entry = dataset(name) if isinstance(name, str) else name
    url = entry.archive.url
    if base_url is not None:
        url = base_url.rstrip("/") + urlunsplit(urlsplit(url)._replace(scheme="", netloc=""))
    asked = {"url": url, "title": entry.title}
    try:
        frames = convert(_download(url, progress), entry)
    except _NOT_CONVERTIBLE as reason:
        raise DataError(
            message("dataset.not-the-archive", **asked, reason=first_line(reason))
        ) from reason
    for file in entry.files:
        if content_hash(frames[file.name]) != file.content_hash:
            raise DataError(message("dataset.other-content", **asked, file=file.name))
    place = cache_directory()
    try:
        place.mkdir(parents=True, exist_ok=True)
        for file_name, frame in frames.items():
            content = frame.to_csv(index=False, lineterminator="\n").encode()
            packed = gzip.compress(content, 6, mtime=0) if file_name.endswith(".gz") else content
            write_bytes(place / file_name, packed)
    except OSError as reason:
        raise DataError(message("dataset.not-written", place=place, reason=reason)) from reason
    return tuple(place / file_name for file_name in frames)


def _download(url: str, progress: Progress | None) -> bytes:
    body, expected = bytearray(), 0
    try:
        with urlopen(url, timeout=_TIMEOUT_SECONDS) as answer:
            expected = int(answer.headers.get("content-length", 0))
            while chunk := answer.read(65536):
                body += chunk
                if progress is not None:
                    progress(len(body) / expected if expected else 0.0)
    except (OSError, HTTPException, ValueError) as reason:
        if isinstance(reason, HTTPError):
            reason.close()
        words = first_line(reason)
        raise DataError(message("dataset.not-downloaded", url=url, reason=words)) from reason
    if len(body) < expected:
        raise DataError(message("dataset.cut-short", url=url))
    return bytes(body)


# --- formats --------------------------------------------------------------------------------------


def convert(payload: bytes, entry: Dataset) -> dict[str, pd.DataFrame]:
    """The data set's files, by name, from what its archive delivers."""
    if entry.archive.member is not None:
        payload = _zip_member(payload, entry.archive.member)
    columns = [*entry.features, *(file.target for file in entry.files)]
    match entry.archive.format:
        case "libsvm":
            whole = _libsvm(payload, columns)
        case "csv":
            whole = _csv(payload, columns, entry.archive)
        case _:
            whole = _workbook(payload)
    return {file.name: whole[[*entry.features, file.target]] for file in entry.files}


def _zip_member(payload: bytes, name: str) -> bytes:
    """The file of that name, in whatever folder or inner zip of the archive it lies."""
    to_search = [payload]
    while to_search:
        with zipfile.ZipFile(io.BytesIO(to_search.pop())) as archive:
            for path in archive.namelist():
                if path.rsplit("/", 1)[-1] == name:
                    return archive.read(path)
                if path.lower().endswith(".zip"):
                    to_search.append(archive.read(path))
    raise ValueError(f"it does not contain {name}")


def _csv(payload: bytes, columns: list[str], archive: Archive) -> pd.DataFrame:
    """UCI's text without a header, where `?` is missing."""
    import pandas as pd

    numbers = bytes(b"1"[0] + place for place in range(len(archive.codes)))
    coded = io.BytesIO(payload.translate(bytes.maketrans(archive.codes.encode(), numbers)))
    names = [*archive.dropped.split(), *columns]
    found = pd.read_csv(coded, engine="pyarrow", header=None, names=names, na_values=["?"])
    return found[columns].astype(float)


def _libsvm(payload: bytes, columns: list[str]) -> pd.DataFrame:
    """LIBSVM's text, `label index:value ...` with indices from 1; what is left out is zero."""
    import pandas as pd
    from sklearn.datasets import load_svmlight_file

    *features, target = columns
    text = io.BytesIO(payload)
    values, labels = load_svmlight_file(text, n_features=len(features), zero_based=False)
    return pd.DataFrame(values.toarray(), columns=features).assign(**{target: labels})


def _workbook(payload: bytes) -> pd.DataFrame:
    """Sheet `Data` of UCI's workbook: the columns headed V-..., so none of the date columns.

    V-11 to V-29 appear once per time lag, and are named after it.
    """
    import pandas as pd

    try:
        cells = pd.read_excel(io.BytesIO(payload), sheet_name="Data", header=None)
    except ImportError:
        raise DataError(message("dataset.workbook")) from None
    header = int(cells.isin(["V-1"]).any(axis=1).to_numpy().argmax())
    names = cells.iloc[header].astype(str).str.strip()
    names = names[names.str.fullmatch(r"V-\d+")]
    lagged = names + "_lag" + (names.groupby(names).cumcount() + 1).astype(str)
    names = names.where(names.str[2:].astype(int) <= 10, lagged)
    records = cells.iloc[header + 1 :].dropna(how="all")[names.index].astype(float)
    return records.set_axis(list(names), axis=1)
