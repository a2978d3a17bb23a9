"""Download a data set from its public archive, convert it, and keep it if it is the right one."""

import tempfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from dpscreen.data.catalogue import Dataset, dataset
from dpscreen.data.content import Frame, content_hash
from dpscreen.data.convert import convert
from dpscreen.data.csvfile import write_csv
from dpscreen.data.errors import CorruptDownload, DownloadFailed, first_line
from dpscreen.data.store import cache_directory

Progress = Callable[[int, int], None]

_TIMEOUT_SECONDS = 60
# What zip, XML and number readers raise on bytes that are not theirs.
_NOT_CONVERTIBLE = (ValueError, LookupError, RuntimeError, zlib.error, zipfile.BadZipFile)


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
    url = _rebased(entry.archive.url, base_url)
    frames = _converted(_download(url, progress), entry, url)
    _check_content(frames, entry, url)
    return _keep(frames, cache_directory() if into is None else into)


def _rebased(url: str, base_url: str | None) -> str:
    if base_url is None:
        return url
    base, original = urlsplit(base_url), urlsplit(url)
    path = base.path.rstrip("/") + original.path
    return urlunsplit((base.scheme, base.netloc, path, original.query, ""))


def _download(url: str, progress: Progress | None) -> bytes:
    import pooch
    import requests

    bar = False if progress is None else _Bar(progress)
    downloader = pooch.HTTPDownloader(progressbar=bar, timeout=_TIMEOUT_SECONDS, chunk_size=65536)
    with tempfile.TemporaryDirectory(prefix="dpscreen-") as directory:
        received = Path(directory) / "archive"
        try:
            downloader(url, str(received), None)
        except (requests.RequestException, OSError) as reason:
            raise DownloadFailed(_explained(url, reason)) from reason
        return received.read_bytes()


def _explained(url: str, reason: Exception) -> str:
    import requests

    if isinstance(reason, requests.HTTPError) and reason.response is not None:
        answer = f"{reason.response.status_code} {reason.response.reason}"
        return f"the archive answered {answer} for {url}; it may have moved"
    if isinstance(reason, requests.exceptions.ChunkedEncodingError):
        return f"the download of {url} broke off before its end; try again"
    if isinstance(reason, requests.Timeout):
        return f"the archive did not answer in time for {url}; try again later"
    if isinstance(reason, requests.ConnectionError):
        return f"no connection to {urlsplit(url).netloc} for {url}; check the network"
    return f"the download of {url} failed: {reason}"


def _converted(payload: bytes, entry: Dataset, url: str) -> dict[str, Frame]:
    try:
        return convert(payload, entry)
    except _NOT_CONVERTIBLE as reason:
        raise CorruptDownload(
            f"what {url} sent is not the {entry.title} archive: {first_line(reason)}; "
            "nothing was kept"
        ) from reason


def _check_content(frames: dict[str, Frame], entry: Dataset, url: str) -> None:
    for file in entry.files:
        if content_hash(frames[file.name]) != file.content_hash:
            raise CorruptDownload(
                f"what {url} sent converts to a {file.name} whose content hash is not the "
                f"catalogue's ({entry.title} may have changed there); nothing was kept"
            )


def _keep(frames: dict[str, Frame], directory: Path) -> tuple[Path, ...]:
    paths = tuple(directory / name for name in frames)
    try:
        for path in paths:
            write_csv(frames[path.name], path)
    except OSError as reason:
        raise DownloadFailed(f"the data could not be written to {directory}: {reason}") from reason
    return paths


class _Bar:
    """The little of a progress bar that pooch talks to, as a plain callback."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._received = 0
        self.total: Any = 0  # set by pooch from Content-Length

    def update(self, size: int) -> None:
        # pooch reports whole chunks, so the last one overshoots
        self._received += size
        if self.total:
            self._received = min(self._received, self.total)
        self._progress(self._received, self.total)

    def reset(self) -> None:
        self._received = 0

    def close(self) -> None:
        """Nothing to tidy up."""
