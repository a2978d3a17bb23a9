"""Downloading a data set, and from an archive's original file to a frame of numbers.

Each converter is given the columns, features first and then every target, and returns them as one
frame; it raises an error of `_NOT_CONVERTIBLE` where the bytes are not what it expects.
"""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from dpscreen.paper.data.store import (
    CorruptDownload,
    Dataset,
    DownloadFailed,
    cache_directory,
    content_hash,
    dataset,
    parse_numbers,
    write_csv,
)
from dpscreen.tables.declaration import first_line

if TYPE_CHECKING:
    import pandas as pd

Converter = Callable[[bytes, Sequence[str]], "pd.DataFrame"]
Progress = Callable[[int, int], None]

_TIMEOUT_SECONDS = 60
_EXTRA = "`pip install 'dpscreen[paper]'`"
# What zip, XML and number readers raise on bytes that are not theirs; XML's errors are of syntax.
_NOT_CONVERTIBLE = (
    ValueError,
    LookupError,
    RuntimeError,
    SyntaxError,
    zlib.error,
    zipfile.BadZipFile,
)


def convert(payload: bytes, entry: Dataset) -> dict[str, pd.DataFrame]:
    """The data set's files, by name, from what its archive delivers."""
    assert entry.archive is not None, "there is an archive to convert from"
    if entry.archive.member is not None:
        payload = _zip_member(payload, entry.archive.member)
    columns = (*entry.features, *(file.target for file in entry.files))
    whole = CONVERTERS[entry.archive.converter](payload, columns)
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


# --- converters ---------------------------------------------------------------------------------


def abalone(payload: bytes, columns: Sequence[str]) -> pd.DataFrame:
    """UCI's abalone.data, the letter in front coded as LIBSVM does: M = 1, F = 2, I = 3."""
    codes = {b"M": b"1", b"F": b"2", b"I": b"3"}
    coded = re.sub(rb"(?m)^([MFI])(?=,)", lambda sex: codes[sex[1]], payload)
    return parse_numbers(io.BytesIO(coded), columns)


def communities(payload: bytes, columns: Sequence[str]) -> pd.DataFrame:
    """UCI's communities.data: `?` is missing, the five columns that do not predict are dropped."""
    published = ("state", "county", "community", "communityname", "fold", *columns)
    return parse_numbers(io.BytesIO(payload), published, keep=columns, missing="?")


def blogfeedback(payload: bytes, columns: Sequence[str]) -> pd.DataFrame:
    """UCI's blogData_train.csv, bare numbers with the target last."""
    return parse_numbers(io.BytesIO(payload), columns)


def libsvm(payload: bytes, columns: Sequence[str]) -> pd.DataFrame:
    """LIBSVM's text, `label index:value ...` with indices from 1; what is left out is zero."""
    import pandas as pd
    from sklearn.datasets import load_svmlight_file

    *features, target = columns
    values, labels = load_svmlight_file(
        io.BytesIO(payload), n_features=len(features), zero_based=False
    )
    return pd.DataFrame(values.toarray(), columns=features).assign(**{target: labels})


def residential(payload: bytes, columns: Sequence[str]) -> pd.DataFrame:
    """Sheet `Data` of UCI's workbook: the columns headed V-..., so none of the date columns.

    V-11 to V-29 appear once per time lag, and are named after it.
    """
    import pandas as pd

    try:
        cells: pd.DataFrame = pd.read_excel(io.BytesIO(payload), sheet_name="Data", header=None)
    except ImportError:
        raise DownloadFailed(f"this archive is a workbook; to read it, {_EXTRA}") from None
    texts = cells.astype(str).apply(lambda column: column.str.strip())
    headings = texts.isin(["V-1"]).any(axis=1) & texts.isin(["V-9"]).any(axis=1)
    if not headings.any():
        raise ValueError("the sheet has no row of headings V-1, V-2, ...")
    header = int(headings.to_numpy().argmax())
    names = texts.iloc[header][lambda row: row.str.fullmatch(r"V-\d+")]
    lagged = names + "_lag" + (names.groupby(names).cumcount() + 1).astype(str)
    names = names.where(names.str[2:].astype(int) <= 10, lagged)
    records = cells.iloc[header + 1 :].dropna(how="all")[names.index].astype(float)
    found: pd.DataFrame = records.set_axis(list(names), axis=1)[list(columns)]
    return found


CONVERTERS: Mapping[str, Converter] = {
    "uci-abalone": abalone,
    "uci-communities": communities,
    "uci-blogfeedback": blogfeedback,
    "uci-residential": residential,
    "libsvm": libsvm,
}


# --- downloading --------------------------------------------------------------------------------


def fetch(
    name: str | Dataset,
    *,
    into: Path | None = None,
    base_url: str | None = None,
    progress: Progress | None = None,
) -> tuple[Path, ...]:
    """Download the data set into the user's cache, or into the directory given.

    `progress` is called with the bytes received and the bytes expected (0 if unknown). `base_url`
    stands in for the archive's scheme and host, for a mirror. The files are written, each at once,
    only after all of them match the catalogue's content hashes; otherwise nothing is kept.

    What has been verified: this path end to end against a local server with small archives in each
    of the formats, and the content hashes against checked copies of the data. Not verified: the
    archives themselves, which were out of reach. If one has moved or changed, this function says
    so and keeps nothing.
    """
    entry = dataset(name) if isinstance(name, str) else name
    if entry.archive is None:
        raise DownloadFailed(f"{entry.title} cannot be fetched: {entry.origin}")
    url = entry.archive.url
    if base_url is not None:
        url = base_url.rstrip("/") + urlunsplit(urlsplit(url)._replace(scheme="", netloc=""))
    try:
        frames = convert(_download(url, progress), entry)
    except _NOT_CONVERTIBLE as reason:
        raise CorruptDownload(
            f"what {url} sent is not the {entry.title} archive: {first_line(reason)}; "
            "nothing was kept"
        ) from reason
    for file in entry.files:
        if content_hash(frames[file.name]) != file.content_hash:
            raise CorruptDownload(
                f"what {url} sent converts to a {file.name} whose content hash is not the "
                f"catalogue's ({entry.title} may have changed there); nothing was kept"
            )
    directory = cache_directory() if into is None else into
    try:
        for file_name, frame in frames.items():
            write_csv(frame, directory / file_name)
    except OSError as reason:
        raise DownloadFailed(f"the data could not be written to {directory}: {reason}") from reason
    return tuple(directory / file_name for file_name in frames)


def _download(url: str, progress: Progress | None) -> bytes:
    try:
        import requests
    except ImportError:
        raise DownloadFailed(f"to download data, {_EXTRA}") from None
    body = bytearray()
    try:
        with requests.get(url, stream=True, timeout=_TIMEOUT_SECONDS) as answer:
            answer.raise_for_status()
            expected = int(answer.headers.get("content-length", 0))
            for chunk in answer.iter_content(65536):
                body += chunk
                if progress is not None:
                    progress(len(body), expected)
    except (requests.RequestException, OSError) as reason:
        text = f"the download of {url} failed: {reason}"
        if isinstance(reason, requests.HTTPError) and reason.response is not None:
            failure = f"{reason.response.status_code} {reason.response.reason}"
            text = f"the archive answered {failure} for {url}; it may have moved"
        elif isinstance(reason, requests.exceptions.ChunkedEncodingError):
            text = f"the download of {url} broke off before its end; try again"
        elif isinstance(reason, requests.Timeout):
            text = f"the archive did not answer in time for {url}; try again later"
        elif isinstance(reason, requests.ConnectionError):
            text = f"no connection to {urlsplit(url).netloc} for {url}; check the network"
        raise DownloadFailed(text) from reason
    return bytes(body)
